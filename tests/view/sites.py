"""A dataset with hostile documents, and its page on a port of this machine."""

import http.client
import json
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import toolkit
from tests.browser.made import HOSTILE
from tests.pipeline.conftest import document, write_rows
from toolkit.commands import view
from toolkit.commands.view import Options
from toolkit.config.settings import ConfigNode
from toolkit.stages.dispatch import open_context
from toolkit.view.answers import CorpusAnswers
from toolkit.view.labels import LabelFile, LabelQuestion
from toolkit.view.server import ViewServer

LONG = "".join(f"line {i}\n" for i in range(60_000))
TEXTS = [*HOSTILE, LONG, "x" * (1 << 20), "שלום עולם\nمرحبا", "日本語の文章です。"]
MANY = 130


def lay_out(root: Path) -> dict[str, Any]:
    """Write the dataset, tagged; return its configuration. ``a`` has the hostile documents, ``b`` many short ones."""
    documents = root / "data" / "documents"
    rows = [document(f"hostile-{i} <b>", text, source="s<script>", note=text[:200]) for i, text in enumerate(TEXTS)]
    write_rows(documents / "a.jsonl.gz", rows)
    write_rows(documents / "b.jsonl.gz", [document(f"b-{i}", "word\n" * (i % 7 + 1)) for i in range(MANY)])
    config: dict[str, Any] = {
        "dataset": str(root / "data"),
        "executor": {"type": "in_process"},
        "tag": {"shape-0": ["line_shape"], "noise-0": ["noise"], "noise-1": ["noise"]},
        "mix": {
            "attributes": ["shape-0", "noise-0"],
            "rules": [
                {"drop": "line_shape.lines > 5", "name": "long </td><script>"},
                {"annotate": "x", "when": "noise.noise > 0"},
            ],
            "output": {"format": "dolma", "path": str(root / "out")},
        },
    }  # fmt: skip
    toolkit.tag(config)
    return config


class Answer(NamedTuple):
    """An answer of HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Site:
    """The page of a dataset, and who asks it."""

    def __init__(self, server: ViewServer, labels: LabelFile) -> None:
        self.server, self.labels = server, labels
        self.port: int = server.server_address[1]
        self.token = server.token

    def send(self, target: str, headers: dict[str, str], method: str = "GET", body: bytes | None = None) -> Answer:
        """Ask as it stands here, and nothing else."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    @property
    def usual(self) -> dict[str, str]:
        return {"Host": f"127.0.0.1:{self.port}", "X-Token": self.token}

    def ask(self, name: str, **given: Any) -> Answer:
        """Ask as the page does."""
        return self.send(f"/api/{name}?{urllib.parse.urlencode(given)}", self.usual)

    def ok(self, name: str, **given: Any) -> Any:
        """The answer to what can be answered; of a query when it is done."""
        while True:
            answer = self.ask(name, **given)
            assert answer.status == 200, answer.body
            if answer.json.get("done", True):
                return answer.json

    def ids(self, **given: Any) -> list[str]:
        return [row["id"] for row in self.ok("rows", **given)["rows"]]

    def label(self, **given: Any) -> Answer:
        headers = self.usual | {"Content-Type": "application/json"}
        return self.send("/api/label", headers, "POST", json.dumps(given).encode())


@contextmanager
def serving(config: dict[str, Any], labels: Path, *questions: LabelQuestion) -> Iterator[Site]:
    """Serve the dataset of a configuration."""
    options = Options(config="c.yaml", config_node=ConfigNode(config, "c.yaml"), quiet=True)
    asked = questions or (LabelQuestion("verdict", ("keep", "drop")), LabelQuestion("edu", (0.0, 1.0, 2.0)))
    with open_context(options) as context:
        corpus = view.of_configuration(context)
        explainer = view.explainer_of(context, corpus) if context.has("mix") else None
        rules = view.rules_of(context) if context.has("mix") else []
        with LabelFile(str(labels), asked, "ann") as held:
            server = ViewServer(
                CorpusAnswers(corpus, held, explainer, rules, [each.name for each in corpus.sets]), debug=True
            )
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
            try:
                yield Site(server, held)
            finally:
                server.end()
