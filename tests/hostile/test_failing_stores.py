"""Stores that fail in every way: no credential is printed, recorded or raised, whatever the answer repeats."""

import http.server
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.hostile.test_secrets import MIX, QUERY, SECRETS, USER
from tests.pipeline.conftest import Project
from tests.serving import Server, serving
from tests.sessions import forget_hosts, forget_stores
from toolkit.errors import ToolkitError
from toolkit.storage import retrying

KEY, SECRET, TOKEN = "AKIAPLANTED", SECRETS[1], SECRETS[3]
NEVER = re.compile("|".join((*SECRETS, SECRET, TOKEN, "Signature=(?!…)")))

pytestmark = pytest.mark.slow

ANSWERS = {
    "403": (403, "AccessDenied"),
    "signature": (403, "SignatureDoesNotMatch"),
    "key": (403, "InvalidAccessKeyId"),
    "unknown": (400, "SomethingElse"),
    "no bucket": (404, "NoSuchBucket"),
    "redirect": (307, "TemporaryRedirect"),
    "503": (503, "SlowDown"),
    "501": (501, "NotImplemented"),
}
WAYS = (*ANSWERS, "garbage", "reset", "hang", "refused", "no TLS")


def _handler(way: Callable[[], str]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        """Repeats all that it was asked with, as S3 does of a signature that does not match."""

        def _answer(self) -> None:
            asked = f"http://{self.headers.get('Host')}{self.path} {USER} {QUERY} {TOKEN} {self.headers}"
            asked = re.sub("[<>&]", "", asked)
            if way() == "garbage":
                self.wfile.write(f"{asked}\r\n\r\n".encode())
                return
            if way() == "hang":
                self.connection.settimeout(5)
                self.connection.recv(1)
                return
            if way() not in ANSWERS:
                return
            status, code = ANSWERS[way()]
            body = f"<Error><Code>{code}</Code><Message>{asked}</Message><StringToSign>{asked}</StringToSign></Error>"
            self.send_response_only(status, "no")
            self.send_header("Content-Length", str(len(body)))
            if status == 307:
                self.send_header("Location", f"http://{USER}127.0.0.1:9/x{QUERY}")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body.encode())

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def failing(naps: list[float], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Gives the authority of a server that fails in some way from now on, and the scheme to ask it with."""
    monkeypatch.setattr(retrying, "READ_STRANGER", 1.0)
    monkeypatch.setattr(retrying, "READ", 1.0)
    now = [""]

    def fail(way: str) -> str:
        now[0] = way
        port = 1 if way == "refused" else server.server_address[1]
        return f"{'https' if way == 'no TLS' else 'http'}://{USER}127.0.0.1:{port}/"

    with serving(Server(_handler(lambda: now[0]))) as server:
        yield fail
    forget_stores()


def check(project: Project, *arguments: str, ends: tuple[int, ...] = (1, 2)) -> None:
    """Run a command; no secret is in what it prints, raises, or leaves on the disk."""
    forget_hosts()
    forget_stores()
    ran: Ran | None = None
    raised = ""
    try:
        ran = project(*arguments)
    except ToolkitError as error:  # --debug shows all of it
        raised = "".join(traceback.format_exception(error))
    said = [raised, *((ran.out, ran.err) if ran else ())]
    files = [path for path in project.root.rglob("*") if path.is_file() and path != project.yaml]
    said += [str(path) for path in files] + [path.read_text(errors="replace") for path in files]
    for text in said:
        if found := NEVER.search(text):
            pytest.fail(f"{arguments}: {found[0]} in {text[max(0, found.start() - 150) : found.end() + 100]!r}")
    if ran and ran.code not in ends:
        pytest.fail(f"{arguments}: {ran.code}: {ran.err[:500]}")


@pytest.mark.s3
@pytest.mark.parametrize(
    ("way", "place"),
    [
        *(
            pytest.param(way, "storage", marks=[pytest.mark.long] if way in ("403", "key", "unknown") else [])
            for way in WAYS  # those are final as `signature` is, which repeats more
        ),
        ("reset", "environment"),
    ],
)
def test_an_endpoint_that_fails_gives_away_nothing(
    way: str, place: str, failing: Callable[[str], str], small: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("boto3", reason="the extra s3 is not installed")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    url = failing(way)
    if place == "storage":
        small.config["storage"] = {"endpoint_url": url}
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    small.config |= {
        "dataset": "s3://bucket/data",
        "executor": {"type": "in_process"},
        "ingest": [{"format": "jsonl", "from": "s3://bucket/in/*.jsonl", "source": "a"}],
        "mix": {**MIX, "output": {"format": "dolma", "path": str(small.out)}},
    }
    for name in ("documents", "attributes"):
        small.config.pop(name, None)
    if place == "environment":  # where else it is told is the same, whoever has named the endpoint
        check(small, "tag", "--debug")
        check(small, "status")
        return
    for arguments in (("ingest",), ("ingest", "--dry-run", "--json"), ("tag", "--debug"), ("status",), ("validate",)):
        check(small, *arguments)
    small.config["mix"]["output"]["path"] = "s3://bucket/out"
    check(small, "mix")


@pytest.mark.parametrize("way", [pytest.param(way, marks=pytest.mark.long) if way == "hang" else way for way in WAYS])
def test_a_mirror_that_fails_gives_away_nothing(
    way: str, failing: Callable[[str], str], project: Project, tmp_path: Path
) -> None:
    url = failing(way)
    project.config["executor"] = {"type": "in_process"}
    one = {"format": "wet", "from": [f"{url}x.warc.wet.gz{QUERY}"], "source": "a"}
    crawl = {"format": "wet", "crawl": "CC-MAIN-2024-10", "base_url": url, "source": "c"}
    for entries in ([one], [crawl, one]):  # the server repeats secrets of all; a command hides those that it has
        project.config["ingest"] = entries
        for arguments in (("ingest",), ("ingest", "--debug"), ("ingest", "--dry-run", "--json"), ("status", "--json")):
            check(project, *arguments, ends=(0, 1, 2))
