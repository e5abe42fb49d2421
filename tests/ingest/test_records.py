"""Records of WARC files: what is sound is given, whatever stands between, at every size of reads, one by one or not."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.targets import wet
from toolkit.errors import DataError
from toolkit.ingest.reader import Input, Rejects
from toolkit.ingest.web import records

READ = records._Tape.read


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
    PLAIN.replace(b"Content-Length", b"content-length"),
    PLAIN.replace(b"WARC-Type", b"Type"),
    PLAIN + b"\r\n",
    b"WARC/1.0\r\n\r\n",
    b"junk",
]


def _mixed() -> bytes:
    return b"".join(PLAIN * 2 + each for each in UNUSUAL) + PLAIN


def _outcome(path: Path, *, skip: bool, at_once: bool = False) -> list[Any]:
    """Return the records, what was kept aside, and the error at the end."""
    found: list[Any] = []
    with Rejects(str(path) + ".rejects") as rejects:
        source = Input(str(path), "cc", 2_000, rejects if skip else None)
        try:
            batches = chain.from_iterable(records.record_batches(source))
            for each in batches if at_once else records.sound_records(source, large=skip):
                found.append((each.type, each.id, each.date, each.fields, each.block, each.offset, each.end))
        except DataError as error:
            found.append(str(error))
    return [*found, source.counts]


def test_plain_records_between_unusual_ones_are_given_at_any_size_of_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.warc.wet"
    for data in [PLAIN * 3, b"", _mixed(), *(PLAIN + each + PLAIN * 2 for each in UNUSUAL), *wet.SEEDS]:
        path.write_bytes(data)
        for skip in (False, True):
            outcome = _outcome(path, skip=skip)
            with monkeypatch.context() as patched:
                patched.setattr(records._Tape, "read", lambda tape, size=-1: READ(tape, min(size, 50)))
                assert _outcome(path, skip=skip) == outcome, data
        ids = [row[1] for row in outcome if isinstance(row, tuple)]
        assert ids.count("<urn:1>") >= data.count(PLAIN), data  # with `skip`, nothing sound is lost
    path.write_bytes(PLAIN)
    assert _outcome(path, skip=False)[0][3]["x-quoted"] == '"a" \\ b: c'


def test_records_are_the_same_many_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.warc.wet"
    digests = [b"WARC-Block-Digest: sha1:" + each for each in (b"A" * 32, b"a" * 32, b"A" * 31, b"1" * 32)]
    for data in [_mixed(), *(PLAIN * 3 + each + PLAIN * 2 for each in [*UNUSUAL, *map(_record, digests)]), *wet.SEEDS]:
        path.write_bytes(data)
        expected = _outcome(path, skip=False)
        for size in (1 << 20, 50):
            monkeypatch.setattr(records, "BATCH", size)
            monkeypatch.setattr(records, "PIECE", size)
            assert _outcome(path, skip=False, at_once=True) == expected, data


def test_columns_know_what_is_not_as_its_digest_says(tmp_path: Path) -> None:
    path, digest = tmp_path / "a.warc.wet", b"WARC-Block-Digest: sha1:"
    sound = _record(digest + b"Y4CZXMMUGPGDZK5KMI3MQPKWM2FIIPOS"), _record(b"WARC-Payload-Digest: md5:0"), PLAIN
    for middle, are_sound in [*((each, True) for each in sound), (_record(digest + b"A" * 32), False)]:
        path.write_bytes(PLAIN + middle + PLAIN)
        columns = next(records.record_batches(Input(str(path), "cc", 2_000, None)))
        assert isinstance(columns, records.RecordColumns)
        assert len(columns) == 2
        assert columns.are_sound == are_sound == all(records.digest_fault(each) is None for each in columns)
