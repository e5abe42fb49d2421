"""Inputs that attack: each item becomes a document, is counted, or is an error with its place; memory is bounded."""

import base64
import bz2
import gzip
import itertools
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, example, given, settings, strategies as st

from tests.marks import slow
from tests.pipeline.conftest import Project, document, read_rows, write_rows
from tests.pipeline.test_ingest import INFO, record, rejects, wet
from toolkit.data.documents import MAX_NESTING, DocumentRow, is_nested_too_deeply
from toolkit.errors import ToolkitError
from toolkit.ingest.reader import READERS, Input, Rejects
from toolkit.ingest.web import records
from toolkit.storage import compression
from toolkit.storage.compression import compress_zstd
from toolkit.storage.reading import HEAD, Lines, LongLine

DEEP = b'{"id": "d", "text": "t", "source": "s", "metadata": {"x": ' + b"[" * 1000 + b"]" * 1000 + b"}}"
GOOD = b'{"id": "%d", "text": "good", "source": "s"}'

BAD: dict[str, tuple[bytes, str]] = {
    "deep": (DEEP, "nested too deeply"),
    "deep in vain": (DEEP.replace(b"]", b""), "nested too deeply"),
    "a little too deep": (DEEP.replace(b"[" * 880, b"").replace(b"]" * 880, b""), "nested too deeply"),
    "large number": (b'{"id": "d", "text": "t", "source": "s", "n": 1e999}', "wrong type"),
    "long number": (b'{"id": "d", "text": "t", "source": "s", "n": ' + b"9" * 100_000 + b"}", "wrong type"),
    "surrogate": (b'{"id": "d", "text": "\\ud800 t", "source": "s"}', "invalid JSON"),
    "NUL": (b'{"id": "d", "text": "\0", "source": "s"}', "invalid JSON"),
    "no UTF-8": (b'{"id": "d", "text": "\xff", "source": "s"}', "invalid UTF-8"),
    "mark": (b'\xef\xbb\xbf{"id": "d", "text": "t", "source": "s"}', "invalid JSON"),
    "long": (b'{"id": "d", "text": "' + b"t" * 300_000 + b'", "source": "s"}', "too large"),
}
KEPT_BY_DOLMA = ("large number", "long number")
"""Which keeps rows byte by byte."""


@pytest.mark.parametrize("format", ["jsonl", "dolma"])
def test_a_line_that_no_library_reads_costs_one_line(format: str, project: Project) -> None:
    project.config["max_document_bytes"] = 200_000
    paths = {
        name: write_rows(project.root / "in" / f"{i}.jsonl.gz", [GOOD % 1, line, GOOD % 2])
        for i, (name, (line, _)) in enumerate(BAD.items())
    }
    entry = {"format": format, "from": str(project.root / "in" / "*.gz"), "source": "s"}
    project.ingest({**entry, "on_error": "skip"}).succeeds()
    refused = []
    for name, path in paths.items():
        kept = name in KEPT_BY_DOLMA and format == "dolma"
        written = gzip.decompress((project.documents / "s" / path.name).read_bytes()).splitlines()
        ids = [msgspec.json.decode(row, type=DocumentRow).id for row in written]
        assert ids == ["1", *(["d"] if kept else []), "2"], name
        if not kept:
            (found,) = rejects(project, f"s/{path.name.partition('.')[0]}")
            line, reason = BAD[name]
            assert (found["number"], found["reason"], base64.b64decode(found["base64"])) == (2, reason, line)
            refused.append(f"failed: {path}:2: expected ")
    project.ingest({**entry, "on_error": "error"}).fails(1, *refused)


def test_a_long_line_is_not_held(project: Project) -> None:
    """Of one that is larger than the head of it there are beginning, size and offset in the reject file."""
    project.config["max_document_bytes"] = 1000
    long = b"x" * (HEAD + 5000)
    path = write_rows(project.root / "in" / "x.jsonl.gz", [GOOD % 1, long, GOOD % 2, long])
    project.ingest({"format": "jsonl", "from": [str(path)], "source": "s", "on_error": "skip"}).succeeds()
    assert [row["id"] for row in project.shard("s/x.jsonl.gz")] == ["1", "2"]
    first, second = rejects(project, "s/x")
    offset = len(GOOD % 1) + 1
    assert (first["number"], first["bytes"], first["offset"]) == (2, len(long), offset)
    assert (second["number"], second["bytes"], second["offset"]) == (4, len(long), 2 * offset + len(long) + 1)
    assert base64.b64decode(first["base64"]) == long[:HEAD]


@given(
    parts=st.lists(st.binary(max_size=30), max_size=8),
    block=st.integers(1, 12),
    limit=st.integers(1, 25),
    ended=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_long_lines_are_those_that_are_too_long(
    parts: list[bytes], block: int, limit: int, ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.storage.reading.READ", block)
    monkeypatch.setattr("toolkit.storage.reading.HEAD", 4)
    data = b"\n".join(parts) + (b"\n" if ended else b"")
    assume(not any(pattern.match(data) for pattern in compression._MAGIC.values()))  # else it has the wrong suffix
    (tmp_path / "x.jsonl").write_bytes(data)
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    offset = 0
    with Lines(str(tmp_path / "x.jsonl"), limit, long_lines=True) as lines:
        for line in expected:
            found = next(lines)
            if len(line) <= limit:
                assert (found, type(found)) == (line, bytes)
            else:
                assert isinstance(found, LongLine)
                assert (found, found.size, found.offset) == (line[:4], len(line), offset)
            offset += len(line) + 1
        assert list(lines) == []


def test_a_text_that_is_too_large_costs_one_document(project: Project) -> None:
    project.config["max_document_bytes"] = 1000
    path = project.root / "x.txt"
    texts = ["first", "many\n" * 400 + "lines", "third", "y" * 3000 + "\nand more", "fifth"]
    path.write_text("\n\n".join(texts))
    entry = {"format": "text", "from": [str(path)], "source": "s"}
    project.ingest({**entry, "on_error": "skip"}).succeeds()
    assert [(row["id"], row["text"]) for row in project.shard("s/x.jsonl.gz")] == [
        ("x.txt:1", "first"),
        ("x.txt:3", "third"),
        ("x.txt:5", "fifth"),
    ]
    assert [(row["number"], row["reason"]) for row in rejects(project, "s/x")] == [(2, "too large"), (4, "too large")]
    project.ingest(entry).fails(1, "x.txt:", "raise `max_document_bytes`")


# --- bombs ------------------------------------------------------------------------------------------------------------

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 9),
    "zst": compress_zstd,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
LIMITED = """
import resource, sys
from toolkit.cli import main
from toolkit.ingest import run  # not what is measured, as the following
from toolkit.ingest.web import records
from toolkit.ingest.formats import dolma, jsonl, oscar, text, wet
import fastwarc.warc, isal.igzip
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + int(sys.argv[1]), -1))
sys.exit(main(sys.argv[2:]))
"""


def limited(project: Project, *arguments: str, room: int) -> subprocess.CompletedProcess[str]:
    """A command in a process that can get so many bytes more than it holds at its beginning.

    What is limited are addresses, of which each thread takes 64 MB for what it might allocate, if it may.
    """
    command = [sys.executable, "-c", LIMITED, str(room), *arguments, "-c", str(project.yaml)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "MALLOC_ARENA_MAX": "1"}
    )


def write_zeros(path: Path, suffix: str, size: int, before: bytes, behind: bytes) -> None:
    """A file of a gigabyte of zeros or so: one member, repeated."""
    compress = COMPRESS[suffix]
    member = compress(bytes(1 << 24))
    with path.open("wb") as stream:
        stream.write(compress(before))
        for _ in range(size >> 24):
            stream.write(member)
        stream.write(compress(behind))


def bombs() -> Iterator[Any]:
    """Every compression with one format, every format with one compression; the others take long."""
    for format, suffix in itertools.product(("wet", "jsonl", "text"), COMPRESS):
        often = format == "jsonl" or suffix == "gz"
        yield pytest.param(
            format, suffix, id=f"{format}-{suffix}", marks=pytest.mark.slow if often else pytest.mark.long
        )


@pytest.mark.parametrize(("format", "suffix"), [*bombs()])
def test_a_gigabyte_of_zeros_needs_little_memory_and_costs_one_item(format: str, suffix: str, project: Project) -> None:
    project.config["max_document_bytes"] = 10_000_000
    path = project.root / f"x.{format}.{suffix}"
    before, behind = {
        "wet": (INFO + record(1), record(2)),
        "jsonl": (GOOD % 1 + b"\n", b"\n" + GOOD % 2 + b"\n"),
        "text": (b"first\n\n", b"\n\nsecond\n"),
    }[format]
    write_zeros(path, suffix, 1 << 30, before, behind)
    project.config["ingest"] = [{"format": format, "from": [str(path)], "source": "s", "on_error": "skip"}]
    ran = limited(project, "ingest", "--json", room=400 << 20)
    assert (ran.returncode, ran.stderr.count("Error")) == (0, 0), ran.stderr
    (shard,) = (project.documents / "s").iterdir()
    assert len(read_rows(shard)) == 2
    (reject,) = (project.data / ".toolkit" / "rejects" / "s").iterdir()
    (row,) = read_rows(reject)
    assert row["bytes"] >= 1 << 30
    project.config["ingest"][0]["on_error"] = "error"
    project.config["dataset"] = str(project.root / "other")
    ran = limited(project, "ingest", room=400 << 20)
    assert ran.returncode == 1
    assert f"{path}:" in ran.stderr
    assert "MemoryError" not in ran.stderr


@pytest.mark.parametrize(
    "block",
    [
        b"\0" * 3_000_000,
        b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: ²\r\n\r\nxx\r\n\r\n".encode(),
        b"WARC/1.0\r\nWARC-Type: conversion\r\nX: " + b"y" * 3_000_000 + b"\r\nContent-Length: 1\r\n\r\nx\r\n\r\n",
        b"WARC/1.0\r\n" + b"X: y\r\n" * 100_000 + b"Content-Length: 1\r\n\r\nx\r\n\r\n",
        record(7, length=10**17),
        record(7, length=1_000_001) + b"z" * 2_000_000,
    ],
    ids=["zeros", "long length", "no digit", "long header", "many headers", "too large", "too large indeed"],
)
def test_a_record_that_attacks_costs_one_record(
    block: bytes, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "ROOM", 100_000)
    project.config["max_document_bytes"] = 1_000_000
    path = project.root / "w.warc.wet.gz"
    path.write_bytes(gzip.compress(INFO + record(1) + block + record(2)))
    project.ingest(wet(path, on_error="skip")).succeeds()
    rows = project.shard("cc/w.jsonl.gz")
    assert [row["id"] for row in rows if row["text"] != "x"] == ["<urn:uuid:1>", "<urn:uuid:2>"]
    assert len(rows) + len(rejects(project, "cc/w") if len(rows) == 2 else []) == 3
    ran = project.ingest(wet(path, on_error="error"))
    assert ran.code == 1 or len(rows) == 3
    assert "Traceback" not in ran.err


def test_nesting_is_counted_outside_of_texts() -> None:
    deep = b"[" * MAX_NESTING + b"]" * MAX_NESTING
    assert not is_nested_too_deeply(deep)
    assert is_nested_too_deeply(b"[" + deep + b"]")
    assert not is_nested_too_deeply(b'{"a": "\\"' + b"[" * 1000 + b'\\\\"}')
    assert not is_nested_too_deeply(b"[]" * 1000)


# --- documents and attributes -----------------------------------------------------------------------------------------

DEEP_ATTRIBUTES = b'{"id": "2", "source": "s", "attributes": {"k": ' + b"[" * 1000 + b"]" * 1000 + b"}}"


@pytest.mark.parametrize("command", ["tag", "mix", "validate", "stats", "head"])
def test_a_document_that_no_library_reads_is_named_with_its_line(command: str, project: Project) -> None:
    shard = write_rows(project.documents / "a.jsonl.gz", [document("1", "x"), DEEP])
    project.config["tag"] = {"shape-0": ["line_shape"]}
    project.config["mix"] = {"attributes": [], "rules": [], "output": {"format": "dolma", "path": str(project.out)}}
    ran = project(command, *([shard] if command == "head" else []))
    assert ran.code in (1, 2)
    assert f"{shard}:2: expected a JSON object, got one with lists and objects nested too deeply" in ran.err + ran.out
    assert "Traceback" not in ran.err


def test_attributes_that_no_library_reads_are_named_with_their_line(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document("1", "x"), document("2", "y")])
    rows: list[dict[str, Any] | bytes] = [
        {"id": "1", "source": "s", "attributes": {"k": [[0, 1, 1.0]]}},
        DEEP_ATTRIBUTES,
    ]
    path = write_rows(project.attributes / "f" / "a.jsonl.gz", rows)
    project.mixes({"drop": "len(k) > 1"}, attributes=["f"])
    ran = project("mix")
    assert ran.code in (1, 2)
    assert f"{path}:2: expected" in ran.err
    assert "nested too deeply" in ran.err


# --- anything at all --------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *(line for line, _ in BAD.values() if len(line) < 5000),
        *(GOOD % 1, b"\n", b"\n\n", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"{", b"}", b"["),
        *(b'"', b"\\"),
        *(INFO, record(1), record(2, length=3), record(3, length=500), record(4)[:-3], b"WARC/1.0\r\n", b"filedesc:"),
        b"\r\n\r\n",
        json.dumps({
            "content": "a\nb",
            "warc_headers": {"warc-record-id": "x"},
            "metadata": {
                "identification": {"label": "en", "prob": 1.0},
                "annotation": None,
                "sentence_identifications": [None, {"label": "en", "prob": 1.0}],
            },
        }).encode(),
    ]
)  # fmt: skip
FORMATS = ["wet", "jsonl", "oscar", "dolma", "text"]


def damaged(data: bytes, cut: int, at: int) -> bytes:
    """Without its end, and with one byte changed."""
    data = data[: len(data) - cut] if cut else data
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :] if at < len(data) else data


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes]:
    data = b"".join(draw(st.lists(st.one_of(PIECES, st.binary(max_size=20)), max_size=12)))
    suffix = draw(st.sampled_from(["", *COMPRESS]))
    stored = COMPRESS[suffix](data) if suffix else data
    if draw(st.booleans()):
        stored = damaged(stored, draw(st.integers(0, 4)), draw(st.integers(0, 400)))
    return suffix, stored


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("skip", [True, *slow(False)])
@given(file=files())
@example(file=("", b"\xef\xbb\xbf" + GOOD % 1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_a_file_holds_it_is_read_or_an_error_of_ours(
    format: str, skip: bool, file: tuple[str, bytes], tmp_path: Path
) -> None:
    suffix, stored = file
    path = tmp_path / ("x.in" + (f".{suffix}" if suffix else ""))
    path.write_bytes(stored)
    reader = READERS.find(format)()
    with Rejects(str(tmp_path / "rejects.jsonl.gz")) as kept:
        source = Input(str(path), "s", 2000, kept if skip else None)
        try:
            drafts = list(reader.read(source))
        except ToolkitError as error:
            assert str(path) in str(error)  # noqa: PT017
            return
    rejected = {name: n for name, n in source.counts.items() if name.startswith("rejected.")}
    assert skip or not rejected
    if format in ("jsonl", "oscar", "dolma"):
        assert len(drafts) + sum(rejected.values()) == len(list(lines_of(path)))
    there = (tmp_path / "rejects.jsonl.gz").exists()
    assert len(read_rows(tmp_path / "rejects.jsonl.gz") if there else []) == sum(rejected.values())


def lines_of(path: Path) -> Iterator[bytes]:
    with Lines(str(path), 1 << 30) as lines:
        yield from lines


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ['a"b', *slow("a\\b", "a\nb", "\x1b[31m")])
def test_a_key_that_no_struct_can_have_is_a_key_like_others(key: str, project: Project) -> None:
    """Of a document, of its metadata, inside of another value, and of attributes that somebody else has written."""
    row = {"id": "1", "text": "t", "source": "s", key: 1, "metadata": {key: {key: 2}}, "other": {key: [{key: None}]}}
    write_rows(project.root / "in" / "a.jsonl.gz", [row])
    project.config["ingest"] = [{"format": "jsonl", "from": f"{project.root}/in/*"}]
    project.config["tag"] = {"length-0": {"tagger": "length"}}
    project.mixes({"drop": "f.x > 9"}, {"drop": "document.other is None"}, attributes=["length-0", "f"])
    project.ok("ingest")
    rows = project.shard("a.jsonl.gz")
    assert rows[0]["other"] == row["other"]
    assert rows[0]["metadata"][key] == {key: 2}
    attributes = {"source": "s", "id": "1", "attributes": {"f": {"x": 1, key: 2}}}
    write_rows(project.attributes / "f" / "a.jsonl.gz", [attributes])
    project.config["mix"]["rules"][0] = {"drop": "get(f, 'x', 0) > 9"}
    project.ok("run")
    assert len(project.output()) == 1
    write_rows(project.attributes / "f" / "a.jsonl.gz", [attributes | {"attributes": {key: 1, "f": 1}}])
    ran = project("mix")
    assert ran.code in (0, 1, 2)
    assert "Traceback" not in ran.err
    assert ran.code == 0 or "expected keys without quotes" in ran.err, ran.err


@pytest.mark.slow
@pytest.mark.parametrize("junk", [b"\n" * 110_000, b"not JSON\n" * 110_000, b"0" * (270 << 20) + b"\n"])
def test_types_are_told_by_a_bounded_beginning(junk: bytes, project: Project) -> None:
    """What holds no document of an input counts, too, and leaves some of the sample to the next input."""
    for name, before, key in (("a", junk, "late"), ("b", b"", "early")):
        row = b'{"id": "1", "text": "x", "metadata": {"%s": 1}}\n' % key.encode()
        (project.root / f"{name}.jsonl.gz").write_bytes(gzip.compress(before + row, 1))
    entry = {"format": "jsonl", "from": [f"{project.root}/*.gz"], "source": "s", "on_error": "skip", "max_rejected": 1}
    project.config["ingest"] = [entry]
    assert "fields of the first 0 documents" in project.ok("ingest", "--dry-run").out
    project.ok("ingest")
    types = msgspec.json.decode((project.data / ".toolkit" / "types" / "0.json").read_bytes())["types"]
    assert [*types["fields"]["metadata"]] == ["early"]
