"""Records that compiled code finds are those that fastwarc finds, whatever stands between them."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fuzz.targets import wet
from toolkit.errors import DataError
from toolkit.ingest.reader import Input, Rejects
from toolkit.ingest.web import plain_records, records


def _record(*headers: bytes, text: bytes = b"one\n", length: int | None = None) -> bytes:
    size = len(text) if length is None else length
    lines = [b"WARC/1.0", b"WARC-Type: conversion", *headers, b"Content-Length: %d" % size]
    return b"\r\n".join(lines) + b"\r\n\r\n" + text + b"\r\n\r\n"


PLAIN = _record(b"WARC-Record-ID: <urn:1>", b"WARC-Date: 2024-01-02T03:04:05Z", b'X-Quoted: "a" \\ b: c')
UNUSUAL = [
    _record("WARC-Target-URI: https://ä.example".encode()),
    _record(b"X: 1", b"x: 2"),
    _record(b"X:1"),
    _record(b"X:  1 "),
    _record(b"X: "),
    _record(b"X: a\tb"),
    _record(b"X: a", b" folded"),
    _record(b"no header"),
    _record(*(b"X-%d: 1" % i for i in range(80))),
    _record(b"X: " + b"a" * 10_000),
    _record(text=b"two", length=2),
    _record(text=b"two", length=4),
    _record(text=b"x" * 3_000),
    _record(text=b""),
    PLAIN.replace(b"\r\n", b"\n"),
    PLAIN.replace(b"WARC/1.0", b"WARC/1.1"),
    PLAIN.replace(b"WARC/1.0", b"WARC/0.17"),
    PLAIN.replace(b"Content-Length: 4", b"Content-Length: 0004"),
    PLAIN.replace(b"WARC-Type", b"Type"),
    PLAIN + b"\r\n",
    b"WARC/1.0\r\n\r\n",
    b"junk",
]


def _mixed() -> bytes:
    return b"".join(PLAIN * 2 + each for each in UNUSUAL) + PLAIN


def _outcome(path: Path, *, skip: bool) -> list[Any]:
    """Return the records, what was kept aside, and the error at the end."""
    found: list[Any] = []
    with Rejects(str(path) + ".rejects") as rejects:
        source = Input(str(path), "cc", 2_000, rejects if skip else None)
        try:
            for each in records.sound_records(source, large=skip):
                found.append((each.type, each.id, each.date, each.fields, each.block, each.offset, each.end))
        except DataError as error:
            found.append(str(error))
    return [*found, source.counts]


def _both(path: Path, monkeypatch: pytest.MonkeyPatch, *, skip: bool) -> tuple[list[Any], list[Any]]:
    def none(*_: object) -> Iterator[plain_records.Record]:
        return iter(())

    fast = _outcome(path, skip=skip)
    with monkeypatch.context() as patched:
        patched.setattr(records, "plain_records", none)
        return fast, _outcome(path, skip=skip)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("read", [50, 1 << 20])
def test_compiled_code_finds_what_fastwarc_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: int, skip: bool
) -> None:
    monkeypatch.setattr(records, "READ", read)
    path = tmp_path / "a.warc.wet"
    random = Random(f"{read} {skip}")
    files = [PLAIN * 3, b"", _mixed(), *(PLAIN + each + PLAIN * 2 for each in UNUSUAL), *wet.SEEDS]
    mixed = _mixed()
    for _ in range(30):
        at = random.randrange(len(mixed))
        files.append(random.choice([mixed[:at], mixed[at:], mixed[:at] + b"\xff" + mixed[at + 1 :]]))
    for data in files:
        path.write_bytes(data)
        fast, slow = _both(path, monkeypatch, skip=skip)
        assert fast == slow, data


def test_plain_records_need_no_fastwarc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked once, about what follows the last one: nothing."""
    path = tmp_path / "a.warc.wet"
    path.write_bytes(PLAIN * 100)
    asked, found = [], records._records

    def asking(tape: Any, source: Input, *, large: bool) -> Iterator[plain_records.Record]:
        asked.append(tape.take())
        return found(tape, source, large=large)

    monkeypatch.setattr(records, "_records", asking)
    outcome = _outcome(path, skip=False)
    assert len(outcome) == 101
    assert asked == [(b"", 100 * len(PLAIN))]
    assert outcome[0][3]["x-quoted"] == '"a" \\ b: c'


def test_a_large_record_is_joined_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not anew with each block that is read, which would take as long as its size to the power of two."""
    large = _record(text=b"line\n" * 10_000)
    path = tmp_path / "a.warc.wet"
    path.write_bytes(large + PLAIN)
    looked, find = [], plain_records._find

    def looking(part: bytes, largest: int) -> tuple[list[list[int]], bytes, bool]:
        looked.append(len(part))
        return find(part, largest)

    monkeypatch.setattr(records, "READ", 100)
    monkeypatch.setattr(plain_records, "_find", looking)
    with Rejects(str(tmp_path / "rejects")) as rejects:
        found = list(records.sound_records(Input(str(path), "cc", 1 << 20, rejects)))
    assert [len(each.block or b"") for each in found] == [50_000, 4]
    assert sum(looked) < 10 * len(large)
