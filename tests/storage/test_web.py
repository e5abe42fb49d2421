"""Reading the web: whole and of one version, or an error; politely."""

import functools
import http.server
import importlib.metadata
import random
import re
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.marks import slow
from tests.serving import Server, serving
from tests.storage.web_server import Behaviour, web
from toolkit.errors import DataError, Unreadable
from toolkit.storage import Stat, retrying, store_of
from toolkit.storage.stores.http import Http, WebReader

DATA = random.Random(0).randbytes(300_000)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Behaviour]]:
    """The URL of a file, and how it is served."""
    (tmp_path / "file.bin").write_bytes(DATA)
    behaviour = Behaviour()
    with web(tmp_path, behaviour) as url:
        yield url + "file.bin", behaviour


def read(path: str, offset: int = 0) -> bytes:
    with store_of(path).open(path) as stream:
        stream.read(offset)
        return stream.read()


@pytest.mark.parametrize("seed", [0, *slow(1)])
@pytest.mark.parametrize("length", ["said", "chunked"])
@pytest.mark.parametrize("ranges", ["right", "ignored"])
@pytest.mark.parametrize("fault", ["drop", "reset"])
def test_a_connection_that_breaks_at_any_byte_is_gone_on_with_there(
    fault: str, ranges: str, length: str, seed: int, server: tuple[str, Behaviour], naps: list[float]
) -> None:
    path, behaviour = server
    behaviour.__dict__ |= {"ranges": ranges, "length": length, "chances": {fault: 0.6}, "seed": seed}
    behaviour.__post_init__()
    for _ in range(4):
        assert read(path) == DATA
    assert max(naps, default=0) <= 60
    broken = [each for each in behaviour.bodies("") if each.sent < len(DATA)]
    assert broken
    if ranges == "right" and fault == "drop":
        assert sum(each.sent for each in behaviour.bodies("")) == 4 * len(DATA), "no byte twice"


def test_a_server_that_breaks_every_connection_is_read_as_long_as_something_comes(
    server: tuple[str, Behaviour], naps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, behaviour = server
    monkeypatch.setattr(behaviour, "fault", lambda path, size: ("drop", 7_000))
    assert read(path) == DATA
    assert [each.sent for each in behaviour.log] == [7_000] * 42 + [6_000]
    monkeypatch.setattr(behaviour, "fault", lambda path, size: ("drop", 7_000 if size > 150_000 else 0))
    with pytest.raises(Unreadable, match=r"expected the rest from byte 154,000, got none of it \(.* for 5 min \("):
        read(path)


def test_a_connection_that_breaks_behind_the_last_byte_of_a_file_of_unknown_length_is_an_end(
    server: tuple[str, Behaviour], naps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, behaviour = server
    behaviour.length = "chunked"
    monkeypatch.setattr(behaviour, "fault", lambda path, size: ("drop", size))
    assert read(path) == DATA
    assert [each.status for each in behaviour.log] == [200, 416]


def test_requests_say_who_asks_and_for_plain_bytes(server: tuple[str, Behaviour]) -> None:
    path, behaviour = server
    store_of(path).stat(path)
    read(path)
    version = importlib.metadata.version("tagmix")
    assert {each.agent for each in behaviour.log} == {f"tagmix/{version}"}
    assert [each.method for each in behaviour.log] == ["HEAD", "GET"]


@pytest.mark.parametrize("status", [500, 503, *slow(403, 408, 429, 520)])
def test_busy_servers_are_waited_for_as_long_as_they_say(
    status: int, server: tuple[str, Behaviour], naps: list[float]
) -> None:
    path, behaviour = server
    behaviour.chances, behaviour.retry_after, behaviour.seed = {str(status): 0.5}, "7", 3
    behaviour.__post_init__()
    store_of(path).stat(path + ".nothing")  # an answer: who refuses from the beginning is not waited for
    for _ in range(5):
        assert read(path) == DATA
    refused = [each for each in behaviour.log if each.status == status]
    assert len(naps) == len(refused) > 0
    assert all(7 <= nap <= 10 for nap in naps)


def test_a_server_that_stays_busy_is_waited_for_and_given_up_and_named(
    server: tuple[str, Behaviour], naps: list[float], capfd: pytest.CaptureFixture[str]
) -> None:
    path, behaviour = server
    behaviour.chances, behaviour.retry_after = {"503": 1.0}, None
    with pytest.raises(Unreadable, match=r"file\.bin: expected the file, got the answer 503 .* for 5 min \("):
        read(path)
    assert naps[0] < 1 < naps[3] < naps[6] <= 10, "each time later"
    assert sum(naps) == pytest.approx(300)
    said = capfd.readouterr().err.splitlines()
    assert 9 <= len(said) <= 12, "soon, and then about twice a minute"
    host = path.split("/")[2]
    assert all(re.match(rf"waiting for {host}: the answer 503 .*; .* so far, at most .* more", line) for line in said)
    before = len(behaviour.log)
    with pytest.raises(Unreadable):
        read(path)
    assert sum(naps) < 307, "what was waited for in vain is not waited for again, until it answers"
    behaviour.chances.clear()
    assert read(path) == DATA
    assert len(behaviour.log) > before


def test_a_server_that_refuses_from_the_beginning_is_given_up_soon(
    server: tuple[str, Behaviour], naps: list[float]
) -> None:
    path, behaviour = server
    behaviour.chances, behaviour.retry_after = {"403": 1.0}, None
    with pytest.raises(Unreadable, match=r"got the answer 403 .*; the server refuses this address, or asks for pat"):
        read(path)
    assert sum(naps) < 10


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("3", 3, 3), ("100000", 60, 60), ("0", 0.1, 0.5), ("-5", 0.1, 0.5), ("soon", 0.1, 0.5), ("", 0.1, 0.5),
        (None, 0.1, 0.5), ("in 30 s", 20, 30), ("30 s ago", 0.1, 0.5), ("9" * 400, 60, 60),
    ],
)  # fmt: skip
def test_what_servers_ask_for_is_waited_for_at_most_a_minute(asked: str | None, least: float, most: float) -> None:
    dates = {"in 30 s": formatdate(time.time() + 30, usegmt=True), "30 s ago": formatdate(time.time() - 30)}
    assert least <= retrying._wait(1, retrying.retry_after(dates.get(asked or "", asked))) <= most


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ({"ranges": "wrong"}, r"expected the bytes from 100,000, got the range 'bytes 99999-"),
        ({"lying": 10}, r"expected a file of 300,010 bytes, as the server said, got none after byte 300,000"),
    ],
)
def test_what_servers_lie_about_is_an_error(
    behaviour: dict[str, object], message: str, server: tuple[str, Behaviour], naps: list[float]
) -> None:
    path, served = server
    served.__dict__ |= behaviour
    with pytest.raises(DataError, match=message):
        WebReader(path, 100_000).readall()


@pytest.mark.parametrize("etag", [True, False])
def test_a_file_that_changes_between_two_connections_is_an_error(
    etag: bool, server: tuple[str, Behaviour], naps: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, behaviour = server
    behaviour.etag = etag
    monkeypatch.setattr(behaviour, "fault", lambda path, size: ("drop", 100_000))
    stream = WebReader(path)
    assert stream.read(10) == DATA[:10]
    (tmp_path / "file.bin").write_bytes(DATA + (b"" if etag else b"more"))
    if etag:
        (tmp_path / "file.bin").write_bytes(DATA[::-1])
    with pytest.raises(DataError, match="got one that has changed"):
        stream.readall()


def test_a_file_of_another_version_than_expected_is_an_error(server: tuple[str, Behaviour]) -> None:
    path, _ = server
    found = store_of(path).stat(path)
    assert found
    assert WebReader(path, 5, found).readall() == DATA[5:]
    assert WebReader(path, len(DATA), found).readall() == b""
    with pytest.raises(DataError, match="got one that has changed"):
        WebReader(path, 5, Stat(found.size, 'etag "other"'))


def test_a_part_is_read_though_the_server_knows_no_ranges_and_connections_break_before_it(
    server: tuple[str, Behaviour], naps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, behaviour = server
    behaviour.ranges = "ignored"
    monkeypatch.setattr(behaviour, "fault", lambda path, size: ("drop", 100_000 * len(behaviour.log)))
    assert WebReader(path, 150_000).readall() == DATA[150_000:]
    assert len(behaviour.log) == 4


def test_servers_that_know_no_head_and_no_lengths(server: tuple[str, Behaviour]) -> None:
    path, behaviour = server
    behaviour.head = False
    found = Http().stat(path)
    assert found
    assert found.size == len(DATA)
    behaviour.length = "chunked"
    assert Http().stat(path) == Stat(0, found.stamp)
    assert Http().read(path, 17, 5) == DATA[17:22]
    assert Http().stat(path + "x") is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("http://", "expected an answer, got"),
        ("http://127.0.0.1:9/x", r"got none: [^<>]*refused for 6 s \(\d attempts\); 127.0.0.1:9 has never answered"),
        ("http://no-such-host.invalid/x", r"got none: .* for 6 s .*; no-such-host.invalid has never answered"),
    ],
)
def test_what_answers_not_at_all_is_said_soon(path: str, message: str, naps: list[float]) -> None:
    with pytest.raises(Unreadable, match=message):
        store_of(path).open(path)
    assert sum(naps) == (0 if path == "http://" else pytest.approx(6)), "what is no URL is not asked twice"
    asked = len(naps)
    with pytest.raises(Unreadable):
        store_of(path).open(path)
    assert len(naps) == asked, "and then only once"


def test_connections_are_used_again(tmp_path: Path) -> None:
    """A run asks for the size of each of thousands of inputs: one connection does."""
    (tmp_path / "x").write_bytes(DATA)
    opened: list[object] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            opened.append(self.client_address)
            super().setup()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with serving(Server(functools.partial(Handler, directory=str(tmp_path)))) as served:
        url = f"{served.url}/x"
        for _ in range(5):
            assert store_of(url).stat(url) is not None
            assert read(url) == DATA
    assert len(opened) == 1
