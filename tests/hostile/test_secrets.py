"""Secrets in addresses are used, and are nowhere to be read: not in a file that is written, nor in what is printed."""

import gzip
import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from tests.conftest import Ran
from tests.pipeline.conftest import Project
from tests.pipeline.test_ingest import INFO, record
from tests.storage.web_server import Behaviour, web
from toolkit.errors import ConfigError
from toolkit.session import current
from toolkit.storage.addresses import has_secret, redact_text, redact_url, reveal_url

SECRETS = ("pLaNtEdUser", "pLaNtEdPassword", "pLaNtEdSignature", "pLaNtEdToken")
USER, QUERY = f"{SECRETS[0]}:{SECRETS[1]}@", f"?X-Amz-Signature={SECRETS[2]}&token={SECRETS[3]}"


@pytest.fixture
def server(tmp_path: Path, naps: list[float]) -> Iterator[tuple[str, Behaviour]]:
    """A server of a WET file, and of a crawl with it; and what was asked of it."""
    root = tmp_path / "web"
    crawl = root / "crawl-data" / "CC-MAIN-2024-10"
    crawl.mkdir(parents=True)
    data = gzip.compress(INFO + record(1) + record(2, length=3) + record(3))
    for path in (root / "w.warc.wet.gz", crawl / "w.warc.wet.gz"):
        path.write_bytes(data)
    (crawl / "wet.paths.gz").write_bytes(gzip.compress(b"crawl-data/CC-MAIN-2024-10/w.warc.wet.gz\n"))
    (root / "list.txt").write_text("example.org\n")
    behaviour = Behaviour()
    with web(root, behaviour) as url:
        yield url, behaviour


def with_secrets(url: str, *, query: bool = True) -> str:
    return url.replace("http://", f"http://{USER}") + (QUERY if query else "")


@pytest.fixture
def closed() -> Iterator[str]:
    """The address of a server that refuses connections; nobody else can listen there."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        yield f"http://{USER}127.0.0.1:{made.getsockname()[1]}/x.warc.wet.gz{QUERY}"


Checked = Callable[..., Ran]


@pytest.fixture
def checked(project: Project, tmp_path: Path) -> Checked:
    """Runs a command of the project, and looks for the secrets in all that it has printed and written."""

    def call(command: str, *arguments: object, configured: bool = True) -> Ran:
        ran = project(command, *arguments) if configured else project.run(command, *arguments)
        written = {
            str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != project.yaml
        }
        found = [name for name, data in written.items() if any(s.encode() in _plain(data) for s in SECRETS)]
        found += [path for path in map(str, tmp_path.rglob("*")) if any(s in path for s in SECRETS)]
        found += [text for text in (ran.out, ran.err) if any(s in text for s in SECRETS)]
        assert found == [], (command, arguments)
        return ran

    return call


def _plain(data: bytes) -> bytes:
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


MIX = {"attributes": ["shape-0"], "rules": [], "output": {"format": "oscar"}}
ABOUT = {"name": "n", "description": "d", "license": "https://x.org/l?a=b", "url": "https://x.org/p?id=3"}


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["in_process", pytest.param("local", marks=pytest.mark.slow)])
def test_no_command_shows_or_keeps_what_its_inputs_are_read_with(
    executor: str, server: tuple[str, Behaviour], project: Project, checked: Checked
) -> None:
    url, behaviour = server
    crawl = {"format": "wet", "crawl": "CC-MAIN-2024-10", "base_url": with_secrets(url, query=False), "source": "c"}
    one = {"format": "wet", "from": [with_secrets(f"{url}w.warc.wet.gz")], "source": "a", "max_disk": "1 MB"}
    text = {"format": "text", "from": with_secrets(f"{url}list.txt"), "source": "t"}
    project.config |= {
        "executor": {"type": executor},
        "processes": 2,
        "storage": {"endpoint_url": with_secrets("http://localhost:1")},
        "ingest": [{**each, "on_error": "skip"} for each in (crawl, one, text)],
        "tag": {"shape-0": ["line_shape"]},
        "mix": {**MIX, "output": {"format": "dolma", "path": str(project.out)}},
        "about": {**ABOUT, "creator": {"type": "Person", "name": "N"}, "date_published": "2026-01-01"},
    }
    for arguments in (("--dry-run",), ("--dry-run", "--json")):
        assert checked("run", *arguments).code == 0
    assert checked("status").code in (0, 1)
    checked("ingest", "--json").succeeds()
    assert {request.path.partition("?")[2] for request in behaviour.log} == {QUERY[1:], ""}
    assert project.shard("t/list.jsonl.gz")[0]["id"] == "list.txt:1"
    for command in ("run", "status", "validate", "stats", "croissant", "card"):
        checked(command)
    checked("ingest", "ingest.1.trim={min_chars: 3}")  # other settings
    checked("tag", "--dry-run")


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["in_process", "local"])
def test_failures_do_not_show_what_was_asked_for(
    executor: str, server: tuple[str, Behaviour], closed: str, project: Project, checked: Checked
) -> None:
    url, behaviour = server
    project.config["executor"] = {"type": executor}
    entry = {"format": "wet", "source": "a"}
    for path in (f"{url}nothing.warc.wet.gz", f"{url}w.warc.wet.gz"):
        behaviour.chances = {"503": 1.0} if path.endswith("w.warc.wet.gz") else {}
        project.config["ingest"] = [{**entry, "from": with_secrets(path)}]
        for arguments in ((), ("--json",), ("--debug",)):
            try:
                assert checked("ingest", *arguments).code in (1, 2)
            except ConfigError as error:  # --debug
                assert not any(secret in str(error) for secret in SECRETS)  # noqa: PT017
        checked("status", "--json")
    project.config["ingest"] = [{**entry, "from": closed}]
    checked("ingest").fails(1, "127.0.0.1")


def test_two_queries_of_a_name_are_two_files(server: tuple[str, Behaviour], project: Project, checked: Checked) -> None:
    url = f"{server[0]}w.warc.wet.gz"
    entry = {"format": "wet", "source": "a", "on_error": "skip"}
    project.config["ingest"] = [{**entry, "from": [f"{url}?token={SECRETS[3]}{n}" for n in (1, 2)]}]
    ran = checked("ingest").fails(2)
    shown = {part for part in ran.err.replace(" for", "").split() if part.startswith("http")}
    assert len(shown) == 2


PLACES: dict[str, dict[str, Any]] = {
    "dataset": {"dataset": "URL"},
    "documents": {"documents": "URL", "attributes": "x"},
    "attributes": {"attributes": "URL"},
    "output": {"mix": {**MIX, "output": {"format": "dolma", "path": "URL"}}},
    "rejected": {"mix": {**MIX, "output": {"format": "dolma", "path": "o"}, "rejected": "URL"}},
    "list": {"mix": {**MIX, "rules": [{"drop": "blocklist", "files": "URL"}]}},
    "include": {"mix": {**MIX, "rules": [{"include": "URL"}]}},
    "model": {"tag": {"lines-0": {"tagger": "line_language", "model": "URL"}}},
    "words": {"tag": {"x-0": {"tagger": "word_list", "words": "URL"}}},
    "urls": {"tag": {"x-0": {"tagger": "url_list", "files": "URL"}}},
    "unknown option": {"tag": {"x-0": {"tagger": "line_shape", "URL": 1, "y": "URL"}}},
    "wrong type": {"processes": "URL"},
    "crawl": {"ingest": [{"format": "wet", "crawl": "URL", "source": "x"}]},
    "base": {"ingest": [{"format": "wet", "crawl": "CC-MAIN-2024-10", "base_url": "URL", "source": "x"}]},
    "region": {"storage": {"region": "URL", "profile": "URL"}},
    "address": {"executor": {"type": "ray", "address": "URL"}},
    "page": {"about": {**ABOUT, "url": "URL"}},
    "licence": {"about": {**ABOUT, "license": ["URL"]}},
    "streams": {"mix": {"streams": [{"name": "x", "dataset": "URL", "attributes": [], "rules": []}], **MIX}},
    "dolma": {"streams": [{"name": "a", "documents": ["URL"], "output": {"path": "URL"}}], "processes": 1},
}


OFTEN = ("output", "list", "include", "model", "crawl", "address", "page", "streams", "dolma")
"""Places that are read by code of their own."""


def _placed(value: Any, url: str) -> Any:
    if isinstance(value, dict):
        return {key: _placed(inner, url) for key, inner in value.items()}
    if isinstance(value, list):
        return [_placed(inner, url) for inner in value]
    return url if value == "URL" else value


def schemes() -> Iterator[Any]:
    """All places with addresses; some with a variable, which is replaced wherever it stands in a file."""
    for place in PLACES:
        for scheme in ("http", "gs", "variable"):
            often = place in ("dataset", "unknown option") or (scheme == "http" and place in OFTEN)
            yield pytest.param(place, scheme, id=f"{place}-{scheme}", marks=() if often else pytest.mark.slow)


@pytest.mark.parametrize(("place", "scheme"), [*schemes()])
def test_a_secret_in_any_place_is_not_shown(
    place: str, scheme: str, server: tuple[str, Behaviour], small: Project, checked: Checked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    url = with_secrets(f"{server[0]}nothing.txt")
    if scheme == "variable":
        monkeypatch.setenv("PLANTED", url)
        url = "${PLANTED}"
    elif scheme != "http":
        url = f"{scheme}://{USER}bucket/x.gz{QUERY}"
    added = _placed(PLACES[place], url)
    if place == "dolma":
        small.config = added
    small.config |= added
    for command in ("run", "mix") if place == "dolma" else ("run", "status", "validate", "card"):
        checked(command)
    for command in (name for name in ("ingest", "tag", "mix") if name in small.config):
        checked(command, "--dry-run", "--json")


def test_the_command_line_is_not_quoted_with_secrets(
    server: tuple[str, Behaviour], small: Project, checked: Checked
) -> None:
    url = with_secrets(f"{server[0]}nothing.txt")
    assert small.yaml.is_file()
    for arguments in (
        ("head", "URL"),
        ("stats", "URL"),
        ("validate", "URL"),
        ("clean", "URL"),
        ("tag", "-c", "URL"),
        ("tag", "--try", "URL", "line_shape"),
        ("tag", "--try", "FILE", "{tagger: line_language, model: URL}"),
        ("taggers", "--file", "URL"),
        ("taggers", "URL"),
        ("mix", "-c", "FILE", "--compare", "URL"),
        ("mix", "-c", "FILE", "x=URL"),
        ("mix", "-c", "FILE", "processes.x=URL"),
        ("mix", "-c", "FILE", "URL"),
        ("mix", "-c", "FILE", "--URL"),
        ("mix", "-c", "FILE", "--shard", "URL"),
        ("URL",),
    ):
        placed = [a.replace("URL", url).replace("FILE", str(small.yaml)) for a in arguments]
        assert checked(*placed, configured=False).code in (1, 2), arguments


def test_texts_of_rules_are_not_addresses(small: Project) -> None:
    """What `replace` puts into documents stays as it is."""
    url = "https://example.org/removed?by=us"
    write = small.documents / "a.jsonl.gz"
    assert write.is_file()
    small.config["tag"]["mail-0"] = ["emails"]
    small.config["mix"] |= {"attributes": ["mail-0"], "rules": [{"replace": "emails", "by": url}]}
    rows = [{"id": "1", "source": "s", "text": "write to someone@example.org now"}]
    write.write_bytes(gzip.compress(json.dumps(rows[0]).encode() + b"\n"))
    small.ok("tag")
    small.ok("mix")
    assert any(url in row["text"] for row in small.output())
    small.ok("mix", "mix.rules.0.by=https://example.org/other?by=us")
    assert any("other?by=us" in row["text"] for row in small.output())


# --- the function -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://u:p@h/x.gz", "https://…@h/x.gz"),
        ("https://h/x.gz?token=a", "https://h/x.gz?…d6a63e8d"),
        ("https://u:p@h:80/x?token=a#part", "https://…@h:80/x?…d6a63e8d"),
        ("HTTPS://h/x?a", "HTTPS://h/x?…ca978112"),
        ("s3://k:s@b/x?.gz", "s3://…@b/x?.gz"),
        ("s3://b/x?.gz", "s3://b/x?.gz"),
        ("https://h/x", "https://h/x"),
        ("https://[::1]:80/@x", "https://[::1]:80/@x"),
        ("data/x?.gz", "data/x?.gz"),
        ("see https://u:p@h/x", "see https://u:p@h/x"),
    ],
)
def test_what_is_shown_of_an_address(address: str, shown: str) -> None:
    found = redact_url(address)
    assert found == (shown if "…" not in shown or "?…" not in shown else found)
    assert found.partition("?…")[0] == shown.partition("?…")[0]
    assert redact_url(found) == found
    assert reveal_url(found) == address
    assert current().addresses == ({} if found == address else {found: address})


@given(
    st.sampled_from(["http", "https", "s3", "gs"]), st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]))
)
def test_an_address_comes_back_whole(scheme: str, rest: str) -> None:
    address = f"{scheme}://{rest}"
    assume(not any(sign in rest for sign in "…#") and not rest.endswith("?"))
    assert reveal_url(redact_url(address, carry=False)) == address


def test_what_lies_below_a_base_is_read_with_its_user() -> None:
    assert reveal_url(redact_url("https://u:p@h/") + "crawl-data/x") == "https://u:p@h/crawl-data/x"
    with pytest.raises(ConfigError, match="expected a whole address, got one without its user or query"):
        reveal_url("https://…@other/x")


def test_messages_of_others_are_cleaned() -> None:
    address = "https://me:pw@h/x?sig=abc"
    redact_url(address)
    message = f"Failed to parse: {address}, url: /x?sig=abc (me:pw), X-Amz-Security-Token: topsecret"
    assert not any(secret in redact_text(message) for secret in ("me:pw", "sig=abc", "topsecret"))
    assert redact_text("some words of mine: keys = 3") == "some words of mine: keys = 3"


@pytest.mark.slow
@pytest.mark.parametrize("of", ["a", "a.", "token", "token ", "x://", "a@"])
def test_long_messages_are_cleaned_in_time_that_grows_with_them(of: str) -> None:
    message = of * 30_000 + " 9https://user:hidden123@host/x my_token = hidden456"
    began = time.process_time()
    shown = redact_text(message)
    assert time.process_time() - began < 3
    assert "hidden" not in shown
    assert len(shown) < len(message)


def test_what_may_be_published_is_told_from_what_may_not() -> None:
    assert [has_secret(f"https://x.org/{q}") for q in ("", "p?id=3", "p?X-Amz-Signature=1", "p?a=1&sig=2")] == [
        False, False, True, True,
    ]  # fmt: skip


@pytest.mark.slow
def test_tasks_have_no_room_for_thousands_of_inputs(project: Project) -> None:
    from toolkit.config import settings

    urls = [f"https://h/{n}.gz{QUERY}" for n in range(5000)]
    settings.parse(json.dumps({"ingest": [{"from": urls}]}))
    assert current().part().addresses == {}
    assert len(current().inputs) == 5000
