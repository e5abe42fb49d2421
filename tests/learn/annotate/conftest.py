"""A server, and a project whose documents it scores."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Ran, Run
from tests.learn.annotate.server import Server, serving

PROMPT = {
    "prompt_name": "educational_value",
    "language": "en",
    "prompt": "Judge this.\n{{ text }}",
    "score": {"regex": r"Educational score:\s*(\d+)", "min": 0, "max": 5},
}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


class Annotated:
    """A dataset of one or several shards, and its configuration."""

    def __init__(self, root: Path, run: Run, server: Server) -> None:
        self.root, self._run, self.server = root, run, server
        (root / "data/documents").mkdir(parents=True)
        self.entry: dict[str, Any] = {
            "endpoint": server.url,
            "model": "org/model",
            "prompt": dict(PROMPT),
            "concurrency": 4,
            "timeout": 30,
            "backoff": 0.01,
        }
        self.more: dict[str, Any] = {}

    def write(self, texts: list[str], shard: str = "a") -> None:
        rows = [json.dumps({"id": f"{shard}{i}", "text": text, "source": "s"}) for i, text in enumerate(texts)]
        (self.root / f"data/documents/{shard}.jsonl").write_text("".join(row + "\n" for row in rows))

    @property
    def yaml(self) -> Path:
        path = self.root / "own.yaml"
        config = {"dataset": str(self.root / "data"), "annotate": {"edu-0": self.entry}, **self.more}
        path.write_text(yaml.safe_dump(config))
        return path

    def run(self, *arguments: object, command: str = "annotate") -> Ran:
        return self._run(command, "-c", self.yaml, *arguments)

    def rows(self, shard: str = "a", name: str = "edu-0") -> list[Any]:
        """Return the values of a shard."""
        lines = (self.root / f"data/attributes/{name}/{shard}.jsonl").read_text().splitlines()
        return [next(iter(json.loads(line)["attributes"].values())) for line in lines]

    def stored(self) -> list[dict[str, Any]]:
        """Return the lines of all answers on disk."""
        files = sorted((self.root / "data/.toolkit/answers").rglob("*.jsonl"))
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]


@pytest.fixture
def project(tmp_path: Path, run: Run, server: Server) -> Annotated:
    return Annotated(tmp_path, run, server)
