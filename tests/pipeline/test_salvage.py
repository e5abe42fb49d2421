"""`on_error: salvage` keeps what stands before the damage of a compressed file, and says so until the file is whole."""

import bz2
import gzip
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, read_rows
from tests.pipeline.test_warc import record
from tests.storage.web_server import Behaviour, web
from toolkit.storage.compression import compress_zstd

ROWS = [json.dumps({"id": f"d{i}", "text": f"The text of document {i}. " * 5}).encode() + b"\n" for i in range(40)]


def members(*groups: list[bytes]) -> bytes:
    return b"".join(gzip.compress(b"".join(group), mtime=0) for group in groups)


def truncated() -> tuple[bytes, int, int]:
    """The file, the documents that are whole, and the byte."""
    first, second = members(ROWS[:10]), members(ROWS[10:])
    cut = first + second[:-30]
    return cut, -1, len(cut)


def between_members() -> tuple[bytes, int, int]:
    data = members(ROWS[:10]) + members(ROWS[10:])[:12]
    return data, 10, len(data)


def corrupt() -> tuple[bytes, int, int]:
    first, second = members(ROWS[:10]), bytearray(members(ROWS[10:]))
    second[-6] ^= 0xFF  # of the checksum
    return first + bytes(second), 10, -1


def garbage() -> tuple[bytes, int, int]:
    whole = members(ROWS[:10], ROWS[10:20])
    return whole + b"this is no member", 20, len(whole) + 9  # when a whole head is there


def begin(project: Project, data: bytes, **options: Any) -> Path:
    path = project.root / "in" / "a.jsonl.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    (path.parent / "b.jsonl.gz").write_bytes(gzip.compress(ROWS[0].replace(b"d0", b"e0")))
    entry = {"format": "jsonl", "from": [f"{path.parent}/*"], "source": "s", "on_error": "salvage", "pack": "1 B"}
    project.config["ingest"] = [entry | options]
    project.config["mix"] = {"output": {"format": "dolma", "path": str(project.out)}}
    return path


@pytest.mark.parametrize("make", [truncated, between_members, corrupt, garbage])
def test_what_is_whole_before_the_damage_is_kept(make: Any, project: Project) -> None:
    data, count, byte = make()
    path = begin(project, data)
    ran = project("ingest", "--json").fails(1)
    (told,) = ran.json["salvaged"]
    ids = [row["id"] for row in project.shard("s/a.jsonl.gz")]
    assert ids == [f"d{i}" for i in range(len(ids))]
    assert 30 <= len(ids) < 40 if count < 0 else len(ids) == count
    assert f"kept the {len(ids)} documents before it" in told
    assert told.startswith(f"{path}: ")
    if byte >= 0:
        assert f"at byte {byte:,};" in told
    assert ran.json["counts"]["salvaged"] == 1
    assert not [name for name in ran.json["counts"] if name.startswith("rejected.")], "no part of a document is left"


def test_it_is_not_done_again_until_the_file_is_another(project: Project) -> None:
    path = begin(project, truncated()[0])
    assert project("ingest").code == 1
    shard = project.documents / "s" / "a.jsonl.gz"
    before = shard.stat()
    again = project("ingest", "--json").fails(1)
    assert len(again.json["salvaged"]) == 1
    assert (shard.stat().st_mtime_ns, shard.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    project.config["ingest"][0]["on_error"] = "skip"
    project("ingest").fails(1, "truncated")
    project.config["ingest"][0]["on_error"] = "salvage"
    path.write_bytes(members(ROWS))
    whole = project.ok("ingest", "--json").json
    assert whole["salvaged"] == []
    assert len(project.shard("s/a.jsonl.gz")) == 40


def test_inputs_are_told_in_their_order_whichever_were_done_before(project: Project) -> None:
    """So is, of inputs with equally many bad items, the reject file; status names the same."""
    path = begin(project, truncated()[0], max_rejected=0.0)
    path.with_name("b.jsonl.gz").write_bytes(gzip.compress(b"{bad\n")[:-4])
    first = project("ingest", "--json").json
    assert [note.split(":")[0] for note in first["salvaged"]] == [str(path), str(path.with_name("b.jsonl.gz"))]
    path.write_bytes(gzip.compress(b'{"id":1}\n')[:-4])
    ran = project("ingest", "--json").json
    assert ran["skipped"] == 1
    assert [note.split(":")[0] for note in ran["salvaged"]] == [str(path), str(path.with_name("b.jsonl.gz"))]
    (told,) = ran["rejected"]
    assert told["file"].endswith("rejects/s/a.jsonl.gz")
    assert list(told["reasons"]) == sorted(told["reasons"])
    assert told["file"] in project("status").out


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": compress_zstd,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("damage", ["truncated", "corrupt"])
@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_each_compression_is_salvaged(suffix: str, damage: str, project: Project) -> None:
    compress, rows = COMPRESSORS[suffix], [row[:-3] + b" %d" % i**9 + row[-3:] for i, row in enumerate(ROWS)]
    first, second = (compress(b"".join(group)) for group in (rows[:10], rows[10:]))
    flipped = bytearray(second)
    flipped[len(second) // 2] ^= 0xFF
    data = first + (second[:-1] if damage == "truncated" else bytes(flipped))
    path = project.root / "in" / f"a.jsonl.{suffix}"
    path.parent.mkdir()
    path.write_bytes(data)
    ran = project.ingest({"format": "jsonl", "from": [str(path)], "source": "s", "on_error": "salvage"}).fails(1)
    ids = [row["id"] for row in project.shard("s/a.jsonl.gz")]
    assert ids == [f"d{i}" for i in range(len(ids))]
    assert len(ids) == 10 if damage == "corrupt" else len(ids) >= 10
    told = re.search(
        rf"salvaged: .*: expected a sound (\w+) file, got .* at byte ([\d,]+); kept the {len(ids)} ", ran.out
    )
    assert told, ran.out
    byte = int(told[2].replace(",", ""))
    assert len(first) + len(second) // 2 <= byte <= len(data)
    assert damage == "corrupt" or byte == len(data)


def test_a_file_on_the_web_is_salvaged(project: Project) -> None:
    data, count, _ = corrupt()
    (project.root / "www").mkdir()
    (project.root / "www" / "a.jsonl.gz").write_bytes(data)
    with web(project.root / "www", Behaviour()) as url:
        entry = {"format": "jsonl", "from": [f"{url}/a.jsonl.gz"], "source": "s", "on_error": "salvage"}
        ran = project.ingest(entry)
    assert ran.code == 1, ran.err
    assert f"kept the {count} documents before it" in ran.out
    (shard,) = project.documents.rglob("*.jsonl.gz")
    assert [row["id"] for row in read_rows(shard)] == [f"d{i}" for i in range(count)]


def test_dry_runs_and_status_name_what_was_salvaged(project: Project) -> None:
    path = begin(project, garbage()[0])
    project("ingest", "--dry-run", "--json").succeeds()
    path.write_bytes(truncated()[0])
    first = project("ingest", "--dry-run", "--json")
    assert first.json["first"][0]["looked_at"] >= 30, "the beginning is looked at as it will be read"
    project("ingest")
    for command, arguments, code in (("ingest", ["--dry-run"], 1), ("run", ["--dry-run"], 1), ("status", [], 1)):
        project(command, *arguments).fails(code).shows(f"salvaged: {path}: expected a sound gzip file")


def test_a_run_per_shard_names_it_again(project: Project) -> None:
    begin(project, corrupt()[0])
    for _ in range(2):
        ran = project("run", "--per-shard", "--json").fails(1)
        assert len(ran.json["salvaged"]) == 1
        assert len(project.output()) == 11
    assert project("run", "--per-shard", "--dry-run").code == 1
    project.config["ingest"][0]["on_error"] = "skip"
    project("run", "--per-shard").fails(1, "restore it from a copy")
    project.config["ingest"][0]["on_error"] = "salvage"
    assert len(project("run", "--per-shard", "--json").json["salvaged"]) == 1


@pytest.mark.parametrize("options", [{"on_error": "skip"}, {"on_error": "error"}])
def test_others_still_refuse_a_truncated_file(options: dict[str, Any], project: Project) -> None:
    begin(project, truncated()[0], **options)
    project("ingest").fails(1, "truncated")
    assert not (project.documents / "s" / "a.jsonl.gz").exists()


def test_a_file_without_anything_whole_is_refused(project: Project) -> None:
    begin(project, members(ROWS)[:40])
    project("ingest").fails(1, "truncated")
    assert [row["id"] for row in project.shard("s/b.jsonl.gz")] == ["e0"]


def test_a_run_goes_on_with_what_was_kept_and_ends_with_1(project: Project) -> None:
    begin(project, corrupt()[0])
    ran = project("run").fails(1).shows("salvaged: ")
    assert len(project.output()) == 11
    assert not [line for line in ran.out.split("\n") if line.startswith("not run")]


def test_whole_records_of_a_crawl_are_kept(project: Project) -> None:
    path = project.root / "in" / "a.warc.wet.gz"
    path.parent.mkdir()
    records = [record(n, f"A text {n}.".encode(), type="conversion", kind="text/plain") for n in range(4)]
    path.write_bytes(b"".join(map(gzip.compress, records))[:-9])
    entry = {"format": "wet", "from": [str(path)], "source": "cc", "on_error": "salvage"}
    project.ingest(entry).fails(1)
    (shard,) = project.documents.rglob("*.jsonl.gz")
    assert [row["text"] for row in read_rows(shard)] == ["A text 0.", "A text 1.", "A text 2."]
