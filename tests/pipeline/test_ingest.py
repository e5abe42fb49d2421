"""Inputs of every format, sound and damaged, become documents; nothing vanishes uncounted."""

import base64
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.marks import slow
from tests.pipeline.conftest import Project, document, read_rows, strays, tree, write_rows
from toolkit.config.settings import ConfigNode
from toolkit.data import record_logs
from toolkit.data.dataset import open_dataset
from toolkit.ingest import ingest_config, inputs
from toolkit.ingest.plan import listed_stats, plan
from toolkit.ingest.run import cached_outcome, finished_outcome
from toolkit.records import ingested
from toolkit.storage.compression import zstd
from toolkit.storage.freshness import stored_xxh3

LINE = "a line that is long enough to stay: " + "x" * 80


def record(number: int, body: str | bytes = LINE, *, type: str = "conversion", length: int | None = None) -> bytes:
    """A WARC record; a wrong length on demand."""
    block = body.encode() if isinstance(body, str) else body
    head = (
        f"WARC/1.0\r\nWARC-Type: {type}\r\nWARC-Target-URI: http://host/{number}\r\nWARC-Date: 2024-01-01"
        f"T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{number}>\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(block) if length is None else length}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


INFO = record(0, "Software: x\r\n", type="warcinfo")


def write_wet(project: Project, *records: bytes, name: str = "w", plain: bool = False) -> Path:
    """A WET file: a gzip member for each record, as Common Crawl writes them."""
    path = project.root / "in" / f"{name}.warc.wet{'' if plain else '.gz'}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(each if plain else gzip.compress(each) for each in records))
    return path


def wet(*paths: Path, **options: Any) -> dict[str, Any]:
    return {"format": "wet", "from": [*map(str, paths)], "source": "cc", **options}


def rejects(project: Project, shard: str) -> list[dict[str, Any]]:
    return read_rows(project.data / ".toolkit" / "rejects" / f"{shard}.jsonl.gz")


# --- wet --------------------------------------------------------------------------------------------------------------


def test_wet_records_keep_their_headers(project: Project) -> None:
    head = (
        b"WARC/1.0\r\nWARC-Type: conversion\r\nX-One: first\r\nWARC-Record-ID: <urn:uuid:1>\r\n"
        b"warc-date: 2024-01-01T00:00:00Z\r\nX-ONE: second, third\r\nX-Umlaut: \xc3\xbc\r\n"
        b"Content-Length: 5\r\nX-Empty:\r\n\r\n"
    )
    project.ingest(wet(write_wet(project, INFO, head + b"a\r\nb\n\r\n\r\n")))
    (row,) = project.shard("cc/w.jsonl.gz")
    assert list(row) == ["id", "text", "source", "added", "created", "metadata"]
    assert (row["id"], row["source"]) == ("<urn:uuid:1>", "cc")
    assert row["added"] == row["created"] == "2024-01-01T00:00:00Z"
    assert row["text"] == "a\r\nb\n"
    assert list(row["metadata"]["warc_headers"].items()) == [
        ("warc-type", "conversion"),
        ("x-one", "first, second, third"),
        ("warc-record-id", "<urn:uuid:1>"),
        ("warc-date", "2024-01-01T00:00:00Z"),
        ("x-umlaut", "ü"),
        ("content-length", "5"),
        ("x-empty", ""),
    ]


def test_what_is_not_utf_8_in_a_header_is_replaced(project: Project) -> None:
    head = b"WARC/1.0\r\nWARC-Type: conversion\r\nX-Latin-\xe9: caf\xe9\r\nX-One: \xc3\xbc\r\nContent-Length: 1\r\n\r\n"
    project.ingest(wet(write_wet(project, INFO, head + b"a\r\n\r\n", record(1))))
    headers = project.shard("cc/w.jsonl.gz")[0]["metadata"]["warc_headers"]
    assert list(headers.values()) == ["conversion", "caf\ufffd", "ü", "1"]
    assert [name for name in headers if "latin" in name] == ["x-latin-\ufffd"]


def test_wet_records_are_counted_by_type(project: Project) -> None:
    path = write_wet(project, INFO, record(1), record(2, type="metadata"), record(3), INFO)
    project.config["ingest"] = [wet(path)]
    counts = project.ok("ingest", "--json").json["counts"]
    assert counts == {"documents": 2, "record.metadata": 1, "record.warcinfo": 2}


@pytest.mark.parametrize(("form", "kind"), [("wet", "response"), ("warc", "conversion")])
def test_a_file_of_the_other_format_is_an_error(project: Project, form: str, kind: str) -> None:
    path = write_wet(project, INFO, record(1, type=kind), record(2, type=kind))
    project.ingest({"format": form, "from": [str(path)], "source": "cc"}).fails(
        1, f"got 2 {'responses' if form == 'wet' else 'texts'}", f"(`format: {'warc' if form == 'wet' else 'wet'}`)?"
    )


def test_trim_drops_short_lines_at_both_ends_and_counts_what_is_left_empty(project: Project) -> None:
    texts = {
        "menu\n" + LINE + "\nshort\n" + LINE + "\nfoot\n": LINE + "\nshort\n" + LINE,
        LINE[:100] + "\n" + LINE[:101]: LINE[:101],
        "ü" * 101: "ü" * 101,
        "ü" * 100: None,
        "\U0001f600" * 101 + "\r\nfoot\r\n": "\U0001f600" * 101,
        LINE + "\r\n" + LINE + "\r": LINE + "\n" + LINE,
        "nothing\nhere": None,
        "": None,
        "x" * 60 + "\u2028" + "y" * 60: "x" * 60 + "\u2028" + "y" * 60,
    }
    path = write_wet(project, *(record(i, text) for i, text in enumerate(texts)))
    project.config["ingest"] = [wet(path, trim={"min_chars": 101})]
    counts = project.ok("ingest", "--json").json["counts"]
    rows = project.shard("cc/w.jsonl.gz")
    assert [row["text"] for row in rows] == [text for text in texts.values() if text is not None]
    assert counts == {"documents": 6, "trim": 3}
    assert rows[0]["metadata"]["warc_headers"]["content-length"] == str(len(next(iter(texts))))


@pytest.mark.parametrize(
    ("option", "texts"),
    [
        ("replace", ["ok", "a\ufffd\ufffdb\nfine", "ok"]),
        ("drop_line", ["ok", "fine", "ok"]),
        ("drop_document", ["ok", "ok"]),
    ],
)
def test_invalid_utf8_is_handled_as_asked_and_counted(project: Project, option: str, texts: list[str]) -> None:
    path = write_wet(project, record(1, "ok"), record(2, b"a\xff\xfeb\nfine"), record(3, "ok"))
    project.config["ingest"] = [wet(path, invalid_utf8=option)]
    counts = project.ok("ingest", "--json").json["counts"]
    assert [row["text"] for row in project.shard("cc/w.jsonl.gz")] == texts
    assert counts == {"documents": len(texts), f"invalid_utf8.{option}": 1}


def test_a_file_without_a_valid_record_fails_by_name_while_others_go_on(project: Project) -> None:
    good = write_wet(project, record(1), name="good")
    for name, data in {"empty": b"", "html": b"<html>\n" * 100, "half": b"WARC/1.0\r\nWARC-Type: conv"}.items():
        (good.parent / f"{name}.warc.wet").write_bytes(data)
    project.config["ingest"] = [wet(good.parent / "*")]
    ran = project("ingest").fails(1)
    for name in ("empty", "html", "half"):
        assert f"{name}.warc.wet" in ran.err
    assert "3 failed" in ran.err
    assert list(tree(project.documents)) == ["cc/good.jsonl.gz"]


@pytest.mark.parametrize("cut", [4, 120, -5, *slow(1, 8, 9, 30, 200, -200)])
def test_a_truncated_gzip_file_fails_wherever_it_ends(project: Project, cut: int) -> None:
    path = project.root / "in.warc.wet.gz"
    path.write_bytes(gzip.compress(b"".join(record(i, f"{i} " * 50) for i in range(50)))[:-cut])
    for on_error in ("error", "skip"):
        project.ingest(wet(path, on_error=on_error)).fails(1, "truncated", str(path))
        assert not project.documents.exists() or tree(project.documents) == {}


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_a_file_that_ends_in_the_last_member_fails(project: Project, cut: int) -> None:
    path = write_wet(project, *(record(i) for i in range(5)))
    path.write_bytes(path.read_bytes()[:-cut])
    assert project.ingest(wet(path)).code == 1
    assert not project.documents.exists() or tree(project.documents) == {}


def test_a_changed_byte_in_a_gzip_file_is_found(project: Project) -> None:
    path = project.root / "in.warc.wet.gz"
    data = bytearray(gzip.compress(b"".join(record(i, f"{i} " * 50) for i in range(50))))
    data[-8] ^= 1  # the checksum
    path.write_bytes(data)
    project.ingest(wet(path)).fails(1, str(path))


def test_garbage_behind_a_gzip_file_is_found(project: Project) -> None:
    path = write_wet(project, record(1), record(2))
    path.write_bytes(path.read_bytes() + b"not gzip at all, but someone's text")
    project.ingest(wet(path)).fails(1, str(path))


def test_a_truncated_record_fails_and_skip_keeps_those_before_it(project: Project) -> None:
    path = write_wet(project, record(1), record(2), record(3)[:-40], plain=True)
    project.ingest(wet(path)).fails(1, "record 3")
    assert not project.documents.exists() or tree(project.documents) == {}
    project.config["ingest"][0]["on_error"] = "skip"
    counts = project.ok("ingest", "--json").json["counts"]
    assert [row["id"] for row in project.shard("cc/w.jsonl.gz")] == ["<urn:uuid:1>", "<urn:uuid:2>"]
    assert counts == {"documents": 2, "rejected.record": 1}
    (bad,) = rejects(project, "cc/w")
    assert base64.b64decode(bad["base64"]) == record(3)[:-40]
    assert bad["input"] == str(path)


@pytest.mark.parametrize("position", [1, *slow(0, 3)])
def test_a_record_with_a_wrong_length_is_an_error_or_the_only_one_skipped(project: Project, position: int) -> None:
    bodies = [f"document {i}: " + LINE for i in range(4)]
    paths = []
    for wrong in (-30, -4, -1, 2, 4, 5, 40, 150, 400, 100_000):
        lengths = [len(body) + (wrong if i == position else 0) for i, body in enumerate(bodies)]
        records = [record(i, body, length=length) for i, (body, length) in enumerate(zip(bodies, lengths, strict=True))]
        paths.append(write_wet(project, *records, name=f"w{wrong}", plain=True))
    project.ingest(wet(*paths)).fails(1, *map(str, paths))
    assert not project.documents.exists() or tree(project.documents) == {}
    project.config["ingest"][0]["on_error"] = "skip"
    counts = project.ok("ingest", "--json").json["counts"]
    assert (counts["documents"], counts["rejected.record"] >= len(paths)) == (3 * len(paths), True)
    sound = [body for i, body in enumerate(bodies) if i != position]
    for name in (path.name.partition(".")[0] for path in paths):
        assert [row["text"] for row in project.shard(f"cc/{name}.jsonl.gz")] == sound
        raw = b"".join(base64.b64decode(bad["base64"]) for bad in rejects(project, f"cc/{name}"))
        assert bodies[position].encode() in raw


@pytest.mark.parametrize("line", [b"WARC-Type: conversion\r\n", b"Content-Length: 116\r\n"])
def test_records_without_type_or_length_are_errors_or_skipped(project: Project, line: bytes) -> None:
    broken = record(2).replace(line, b"")
    assert broken != record(2)
    path = write_wet(project, record(1), broken, record(3), plain=True)
    assert project.ingest(wet(path)).code == 1
    project.config["ingest"][0]["on_error"] = "skip"
    project.ok("ingest")
    assert [row["id"] for row in project.shard("cc/w.jsonl.gz")] == ["<urn:uuid:1>", "<urn:uuid:3>"]
    assert any(b"<urn:uuid:2>" in base64.b64decode(bad["base64"]) for bad in rejects(project, "cc/w"))


def test_text_that_looks_like_a_record_stays_text(project: Project) -> None:
    body = "see below\n" + record(7).decode() + "the end"
    project.config["ingest"] = [wet(write_wet(project, record(1, body), record(2)))]
    project.ok("ingest")
    assert [row["text"] for row in project.shard("cc/w.jsonl.gz")] == [body, LINE]


def test_a_reject_file_of_an_earlier_run_goes_when_all_is_well(project: Project) -> None:
    path = write_wet(project, record(1), record(2)[:-40], plain=True)
    project.ingest(wet(path, on_error="skip"))
    assert len(rejects(project, "cc/w")) == 1
    write_wet(project, record(1), record(2), plain=True)
    project.ok("ingest")
    assert not (project.data / ".toolkit/rejects/cc/w.jsonl.gz").exists()


def test_a_document_larger_than_the_limit_is_an_error_that_names_the_option(project: Project) -> None:
    project.config["max_document_bytes"] = 1000
    project.ingest(wet(write_wet(project, record(1), record(2, "x" * 2000)))).fails(1, "max_document_bytes")


def test_lines_of_json_that_are_too_long_are_not_taken_for_another_format(project: Project) -> None:
    project.config["max_document_bytes"] = 100_000
    path = write_rows(project.root / "in" / "a.jsonl", [document("0", "x" * 200_000)])
    ran = project.ingest({"format": "jsonl", "from": str(path), "source": "s"})
    assert ran.code == 1
    assert f"{path}:1: expected a line of at most 100,000 bytes" in ran.err
    assert "is read here as" not in ran.err
    ran = project.ingest({"format": "csv", "from": str(path), "source": "s"})
    assert "the file is JSON (`format: jsonl` or `format: dolma` or `format: oscar`), and is read here as" in ran.err


# --- oscar ------------------------------------------------------------------------------------------------------------

EN, NL = {"label": "en", "prob": 0.9000001}, {"label": "nl", "prob": 1.0000877}


def oscar_line(id: str, content: str = "one\ntwo", sentences: Any = (EN, None), **metadata: Any) -> dict[str, Any]:
    found = {"identification": EN, "annotation": ["tiny"], "sentence_identifications": list(sentences)} | metadata
    headers = {"warc-record-id": id, "warc-date": "2021-09-16T00:00:00Z", "x": "ü"}
    return {"content": content, "warc_headers": headers, "metadata": found}


def oscar(path: Path, **options: Any) -> dict[str, Any]:
    return {"format": "oscar", "from": [str(path)], "source": "oscar", **options}


def test_an_oscar_release_becomes_documents_and_attributes(project: Project) -> None:
    path = write_rows(project.root / "en.jsonl.gz", [oscar_line("1"), oscar_line("2", "x", [NL], annotation=None)])
    project.ingest(oscar(path))
    rows = project.shard("oscar/en.jsonl.gz")
    assert rows[0] == {
        "id": "1",
        "text": "one\ntwo",
        "source": "oscar",
        "added": "2021-09-16T00:00:00Z",
        "created": "2021-09-16T00:00:00Z",
        "metadata": {"warc_headers": {"warc-record-id": "1", "warc-date": "2021-09-16T00:00:00Z", "x": "ü"}},
    }
    first, second = project.values("oscar-0", "oscar/en.jsonl.gz")
    assert first["line_language"] == [EN, None]
    assert first["oscar"]["annotation"] == ["tiny"]
    assert first["oscar"]["identification"] == EN
    assert second == {
        "line_language": [NL],
        "oscar": {"identification": EN, "annotation": None, "categories": None, "tlsh": None, "harmful_pp": None},
    }


@pytest.mark.parametrize("perplexity", ["harmful_pp", "harmful_ppl"])
def test_the_field_names_of_oscar_2301_are_read(project: Project, perplexity: str) -> None:
    found: dict[str, Any] = {
        "quality_warnings": ["tiny", "noisy"],
        "categories": ["adult"],
        "tlsh": "tlsh:ABC",
        perplexity: 12.5,
    }
    line = oscar_line("1", **found)
    del line["metadata"]["annotation"]
    data = json.dumps(line).encode() + b"\n"
    path = project.root / "en_part_1.jsonl.zst"
    path.write_bytes(zstd().compress(data) + zstd().compress(data.replace(b'"1"', b'"2"')))
    project.ingest(oscar(path, set="oscar-2301"))
    assert [row["id"] for row in project.shard("oscar/en_part_1.jsonl.gz")] == ["1", "2"]
    values = project.values("oscar-2301", "oscar/en_part_1.jsonl.gz")
    assert values[1]["oscar"] == {
        "identification": EN,
        "annotation": ["tiny", "noisy"],
        "categories": ["adult"],
        "tlsh": "tlsh:ABC",
        "harmful_pp": 12.5,
    }
    path.write_bytes(path.read_bytes()[:-3])
    assert project.ingest(oscar(path, set="oscar-2301")).code == 1


BAD_LINES: list[Any] = [
    oscar_line("bad", sentences=[EN]),
    oscar_line("bad", sentences=[EN, EN, EN]),
    oscar_line("bad", content="one\ntwo\n"),
    oscar_line("bad", content="", sentences=[EN, EN]),
    oscar_line("bad", sentences=[EN, {"label": "en"}]),
    oscar_line("bad", sentences=[EN, {"label": 3, "prob": 0.5}]),
    oscar_line("bad", sentences=[EN, "en"]),
    oscar_line("bad", identification={"label": None, "prob": 0.5}),
    oscar_line("bad", annotation="tiny"),
    {"content": "x", "metadata": {}},
    {"content": 3, "warc_headers": {}, "metadata": {"identification": EN, "sentence_identifications": []}},
    b"{",
    b"",
    b'"text"',
]


def test_bad_oscar_lines_are_errors_or_skipped_with_their_attributes(project: Project) -> None:
    paths = [
        write_rows(project.root / "in" / f"{i}.jsonl", [oscar_line("1"), line, oscar_line("3", "x", [NL])])
        for i, line in enumerate(BAD_LINES)
    ]
    every = project.root / "in" / "*.jsonl"
    project.ingest(oscar(every)).fails(1, *(f"{path}:2: expected" for path in paths))
    assert not project.documents.exists() or tree(project.documents) == {}
    assert not project.attributes.exists() or tree(project.attributes) == {}
    project.ingest(oscar(every, on_error="skip"))
    project.ok("ingest")
    for i in range(len(paths)):
        assert [row["id"] for row in project.shard(f"oscar/{i}.jsonl.gz")] == ["1", "3"]
        values = project.values("oscar-0", f"oscar/{i}.jsonl.gz")
        assert [value["line_language"] for value in values] == [[EN, None], [NL]]
        assert len(rejects(project, f"oscar/{i}")) == 1


def test_oscar_documents_of_empty_lines_come_out_as_they_went_in(project: Project) -> None:
    counts = {"a\n": 2, "a\n\n": 3, "\n": 2, "\na": 2, "": 1, "\n\n\n": 4, "a\u2028b\x0cc\rd": 1}
    found = [oscar_line(str(i), content, [EN] * n) for i, (content, n) in enumerate(counts.items())]
    lines = [json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() for line in found]
    project.ingest(oscar(write_rows(project.root / "en.jsonl", lines)))
    output = {"format": "oscar", "path": str(project.out), "identification": "oscar.identification"}
    project.config["mix"] = {
        "attributes": ["oscar-0"],
        "rules": [{"annotate": "tiny", "when": "len(line_language) > 0"}],
        "output": output,
    }
    project.ok("run")
    assert gzip.decompress((project.out / "en" / "en.jsonl.gz").read_bytes()).splitlines() == lines


def test_oscar_lines_without_headers_get_ids(project: Project) -> None:
    line = oscar_line("1")
    line["warc_headers"] = {}
    project.ingest(oscar(write_rows(project.root / "en.jsonl", [line, line])))
    assert [row["id"] for row in project.shard("oscar/en.jsonl.gz")] == ["en.jsonl:1", "en.jsonl:2"]


def test_attributes_that_an_ingest_made_come_back_when_they_are_gone(project: Project) -> None:
    project.ingest(oscar(write_rows(project.root / "en.jsonl", [oscar_line("1")])))
    made = project.attributes / "oscar-0" / "oscar" / "en.jsonl.gz"
    data = made.read_bytes()
    made.unlink()
    project.ok("ingest")
    assert made.read_bytes() == data


# --- jsonl ------------------------------------------------------------------------------------------------------------


def jsonl(path: Path, **options: Any) -> dict[str, Any]:
    return {"format": "jsonl", "from": [str(path)], "source": "j", **options}


def test_jsonl_fields_are_mapped_by_dotted_paths_and_alternatives(project: Project) -> None:
    rows: list[dict[str, Any]] = [
        {"document_id": 7, "raw_content": "first", "meta": {"date": "2020", "url": "u"}, "score": 0.5, "tags": ["ü"]},
        {"id": "x", "text": "second", "meta": None, "big": 12345678901234567890123},
        {"text": "third", "id": None},
    ]
    fields = {"id": ["id", "document_id"], "text": ["text", "raw_content"], "created": "meta.date"}
    project.ingest(jsonl(write_rows(project.root / "r.jsonl.gz", rows), fields=fields))
    assert project.shard("j/r.jsonl.gz") == [
        {
            "id": "7",
            "text": "first",
            "source": "j",
            "created": "2020",
            "meta": {"date": "2020", "url": "u"},
            "score": 0.5,
            "tags": ["ü"],
        },
        {"id": "x", "text": "second", "source": "j", "meta": None, "big": 12345678901234567890123},
        {"id": "r.jsonl.gz:3", "text": "third", "source": "j"},
    ]


def test_an_unmapped_key_cannot_take_the_place_of_a_document_field(project: Project) -> None:
    path = write_rows(project.root / "r.jsonl", [{"id": 5, "source": 6, "text": "a"}])
    ran = project.ingest(jsonl(path, fields={"id": "uuid", "source": "origin"}))
    if ran.code == 0:
        for row in project.shard("j/r.jsonl.gz"):
            assert isinstance(row["id"], str)
            assert isinstance(row["source"], str)
        project.ok("validate")
    else:
        assert f"{path}:1: " in ran.err


def test_bad_jsonl_lines_are_errors_or_skipped_and_kept_aside(project: Project) -> None:
    lines = [
        b"{",
        b"",
        b"[]",
        b'{"id": "2"}',
        b'{"id": "2", "text": null}',
        b'{"id": "2", "text": 3}',
        b'{"id": true, "text": "x"}',
        b'{"id": {"a": 1}, "text": "x"}',
        b'{"id": "2", "text": "x", "metadata": 3}',
        b'{"id": "2", "text": "x", "created": 2020}',
        b'{"id": "2", "text": "\xff"}',
        b'{"id": "2", "text": "\\ud800"}',
        b'{"id": "2", "text": "x"} trailing',
        b'{"id": "2", "text": NaN}',
    ]
    paths = [
        write_rows(project.root / "in" / f"{i}.jsonl", [{"id": "1", "text": "a"}, line, {"id": "3", "text": "c"}])
        for i, line in enumerate(lines)
    ]
    project.ingest(jsonl(project.root / "in" / "*.jsonl")).fails(1, *(f"{path}:2: expected" for path in paths))
    project.config["ingest"][0]["on_error"] = "skip"
    counts = project.ok("ingest", "--json").json["counts"]
    assert counts["documents"] == 2 * len(lines)
    assert sum(n for name, n in counts.items() if name.startswith("rejected.")) == len(lines)
    for i, line in enumerate(lines):
        assert [row["id"] for row in project.shard(f"j/{i}.jsonl.gz")] == ["1", "3"]
        (bad,) = rejects(project, f"j/{i}")
        assert (base64.b64decode(bad["base64"]), bad["number"]) == (line, 2)


@pytest.mark.parametrize(
    ("format", "suffix", "line"), [("jsonl", "jsonl", 2), ("dolma", "jsonl", 2), ("csv", "csv", 3)]
)
def test_a_source_with_a_nul_byte_is_a_bad_item(format: str, suffix: str, line: int, project: Project) -> None:
    rows = [document("1", "a", "s"), document("2", "b", "s\0t"), document("3", "c", "s")]
    path = project.root / "in" / f"a.{suffix}"
    write_rows(path, rows)
    if format == "csv":
        path.write_text("".join(f"{','.join(row)}\n" for row in [rows[0], *map(dict.values, rows)]))
    fields = {} if format == "dolma" else {"fields": {"source": "source"}}
    entry = {"format": format, "from": [str(path)], "source": "j", **fields}
    project.ingest(entry).fails(1, f"{path}:{line}: expected a source without NUL bytes")
    project.config["ingest"] = [entry | {"on_error": "skip", "max_rejected": 1}]
    assert project.ok("ingest", "--json").json["counts"] == {"documents": 2, "rejected.wrong type": 1}
    assert [row["id"] for row in project.shard("j/a.jsonl.gz")] == ["1", "3"]
    (bad,) = rejects(project, "j/a")
    assert json.loads(base64.b64decode(bad["base64"])) == rows[1]


def test_ids_from_content_do_not_depend_on_the_place(project: Project) -> None:
    for name in ("a", "b"):
        write_rows(
            project.root / "in" / f"{name}.jsonl", [{"text": name}, {"text": "same"}][:: 1 if name == "a" else -1]
        )
    project.ingest(jsonl(project.root / "in" / "*.jsonl", ids="content"))
    first, second = project.shard("j/a.jsonl.gz"), project.shard("j/b.jsonl.gz")
    assert first[1]["id"] == second[0]["id"]
    assert first[0]["id"] != first[1]["id"]


def test_ids_by_a_pattern_are_those_that_others_made_of_the_same_places(project: Project) -> None:
    """As in RedPajama-V2, whose signals name documents by file and row from 0."""
    path = write_rows(project.root / "in/2023-06/en.jsonl", [{"text": "a"}, {"text": "b", "id": "own"}, {"text": "c"}])
    project.ingest(jsonl(path.parent.parent / "**/*.jsonl", ids="{path}/{index}"))
    ids = [row["id"] for row in project.shard("j/2023-06/en.jsonl.gz")]
    assert ids == ["2023-06/en.jsonl/0", "own", "2023-06/en.jsonl/2"]
    for pattern, said in (("{path}", "a pattern such as {path}/{index}, got '{path}'"), ("{row}", "got {row}")):
        ran = project.ingest(jsonl(path, ids=pattern))
        assert (ran.code, said in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "Infinity"])
def test_a_number_that_json_does_not_have_is_told(project: Project, number: str) -> None:
    path = write_rows(project.root / "r.jsonl", [f'{{"id": "1", "text": "a", "n": {number}}}'.encode()])
    ran = project.ingest(jsonl(path))
    assert f"r.jsonl:1: expected a JSON object, got {number} in it" in ran.err
    assert "several lines" not in ran.err


# --- text -------------------------------------------------------------------------------------------------------------


def test_text_documents_end_at_blank_lines(project: Project) -> None:
    path = project.root / "t.txt"
    path.write_bytes("\n\nfirst\nline two\n\n  \t\nsecond\r\nü\u2028x\x0cy\n\n".encode())
    project.ingest({"format": "text", "from": [str(path)], "source": "t"})
    rows = project.shard("t/t.jsonl.gz")
    assert [row["text"].split() for row in rows] == [["first", "line", "two"], ["second", "ü", "x", "y"]]
    assert rows[1]["text"].rstrip("\n") == "second\r\nü\u2028x\x0cy"
    assert [row["id"] for row in rows] == ["t.txt:1", "t.txt:2"]


def test_text_can_be_one_document_a_file(project: Project) -> None:
    for name, text in {"a": "one\n\ntwo\n", "b": "three"}.items():
        (project.root / f"{name}.txt").write_text(text)
    project.ingest({"format": "text", "from": [str(project.root / "?.txt")], "source": "t", "documents": "file"})
    assert [row["text"].rstrip("\n") for row in project.shard("t/a.pack.jsonl.gz")] == ["one\n\ntwo", "three"]


@pytest.mark.parametrize("form", ["jsonl", "text", *slow("dolma", "oscar")])
def test_a_byte_order_mark_is_no_text_and_utf_16_is_an_error(project: Project, form: str) -> None:
    path = project.root / ("t.txt.gz" if form == "text" else "t.jsonl.gz")
    row = {"id": "1", "text": "ü", "source": "t"} if form != "oscar" else oscar_line("1", "ü", [EN])
    line = "ü\n" if form == "text" else json.dumps(row) + "\n"
    path.write_bytes(gzip.compress(f"\ufeff{line}".encode()))
    project.ingest({"format": form, "from": [str(path)], "source": "t"})
    assert [row["text"] for row in project.shard("t/t.jsonl.gz")] == ["ü"]
    path.write_bytes(gzip.compress(line.encode("utf-16")))
    project("ingest").fails(1, f"{path}:1: expected UTF-8, got a file that begins with the byte order mark of UTF-16")


# --- dolma ------------------------------------------------------------------------------------------------------------


def dolma(path: Path, **options: Any) -> dict[str, Any]:
    return {"format": "dolma", "from": [str(path)], **options}


def test_dolma_documents_are_kept_byte_by_byte(project: Project) -> None:
    lines = [
        b'{"text":"a\\u00fc\\/b",  "source":"s","id":"1","n":1.10,"big":12345678901234567890123,"metadata":{"b":1}}',
        '{"id":"2","source":"s","text":"ü\u2028","added":null,"created":null,"metadata":null,"attributes":{"k":[]}}'.encode(),
    ]
    project.ingest(dolma(write_rows(project.root / "d.jsonl.gz", lines)))
    assert gzip.decompress((project.documents / "d.jsonl.gz").read_bytes()) == b"".join(x + b"\n" for x in lines)


def test_a_dolma_document_without_source_gets_one_or_is_an_error(project: Project) -> None:
    path = write_rows(project.root / "d.json", [{"id": "1", "text": "a", "source": "x"}, {"id": "2", "text": "b"}])
    project.ingest(dolma(path)).fails(1, f"{path}:2: expected field source")
    project.ingest(dolma(path, source="d"))
    assert [row["source"] for row in project.shard("d/d.jsonl.gz")] == ["x", "d"]


def test_trim_takes_nothing_but_lines_from_a_dolma_document(project: Project) -> None:
    row = {"id": "1", "text": "menu\n" + LINE, "source": "s", "added": "2020", "metadata": {"k": 1}, "other": [1]}
    ran = project.ingest(dolma(write_rows(project.root / "d.jsonl", [row]), trim={}))
    if ran.code == 0:
        assert project.shard("d.jsonl.gz") == [row | {"text": LINE}]
    else:
        assert ran.code == 2
        assert "trim" in ran.err


# --- inputs and shards ------------------------------------------------------------------------------------------------


def test_large_inputs_are_cut_into_shards_deterministically(project: Project) -> None:
    rows = [{"id": str(i), "text": "t" * (i * 7 % 50)} for i in range(60)]
    path = write_rows(project.root / "r.jsonl", rows)
    project.ingest(jsonl(path, shard_size=1000))
    shards = sorted(project.documents.rglob("*.gz"))
    assert [s.name for s in shards] == [f"r.{n:05d}.jsonl.gz" for n in range(len(shards))]
    assert len(shards) > 2
    assert [row["id"] for s in shards for row in read_rows(s)] == [row["id"] for row in rows]
    for shard in shards[:-1]:
        data = gzip.decompress(shard.read_bytes())
        assert 1000 <= len(data) < 1100
    before = tree(project.documents)
    project.config["dataset"] = str(project.root / "again")
    project.ok("ingest")
    assert tree(project.root / "again" / "documents") == before


def test_an_input_that_has_shrunk_leaves_no_old_shard(project: Project) -> None:
    path = project.root / "r.jsonl"
    write_rows(path, ({"id": str(i), "text": "t" * 100} for i in range(30)))
    project.ingest(jsonl(path, shard_size=1000))
    assert len(tree(project.documents)) == 4
    write_rows(path, [{"id": "0", "text": "new"}])
    project.ok("ingest")
    assert list(tree(project.documents)) == ["j/r.00000.jsonl.gz"]


def test_an_input_that_has_shrunk_after_a_failed_attempt_leaves_no_old_shard(project: Project) -> None:
    path = project.root / "r.jsonl"
    write_rows(path, ({"id": str(i), "text": "t" * 100} for i in range(30)))
    project.ingest(jsonl(path, shard_size=1000))
    path.write_text("damaged\n")
    assert project("ingest").code == 1
    write_rows(path, [{"id": "0", "text": "new"}])
    project.ok("ingest")
    assert list(tree(project.documents)) == ["j/r.00000.jsonl.gz"]
    assert strays(project.root) == []


def test_one_input_in_two_entries_is_two_shards_and_two_outcomes(project: Project) -> None:
    path = write_rows(project.root / "r.jsonl", [{"id": "1", "text": "t"}])
    project.ingest(wet(path), jsonl(path)).fails(1, str(path), "1 failed")


def test_unchanged_inputs_are_skipped_and_changed_ones_redone(project: Project) -> None:
    for name in ("a", "b"):
        write_rows(project.root / "in" / f"{name}.jsonl", [{"id": name, "text": "t"}])
    project.ingest(jsonl(project.root / "in" / "*"))
    times = {p: p.stat().st_mtime_ns for p in project.documents.rglob("*.gz")}
    write_rows(project.root / "in" / "b.jsonl", [{"id": "B", "text": "t"}])
    (project.root / "in" / "a.jsonl").touch()
    assert project.ok("ingest", "--json").json["skipped"] == 1
    changed = [p.name for p, time in times.items() if p.stat().st_mtime_ns != time]
    assert changed == ["b.jsonl.gz"]
    assert project.shard("j/b.jsonl.gz")[0]["id"] == "B"


@pytest.mark.parametrize("options", [{}, {"pack": "1 MB"}], ids=["alone", "pack"])
def test_a_touched_input_is_read_once_more_and_then_known(
    project: Project, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write_rows(project.root / "in" / name, [{"id": name, "text": "t"}]) for name in ("a.jsonl", "b.jsonl")]
    project.ingest(jsonl(project.root / "in" / "*", **options))
    read: list[str] = []

    def digest(path: str) -> str:
        read.append(path)
        return stored_xxh3(path)

    monkeypatch.setattr(inputs, "stored_xxh3", digest)
    for expected in ([*map(str, paths)], []):
        if expected:
            for path in paths:
                os.utime(path, (1, 1))
        assert project.ok("ingest", "--json").json["skipped"] == 2
        assert sorted(read) == expected
        read.clear()


@pytest.mark.parametrize(
    ("changed", "change", "options", "state"),
    [
        ("in/a.jsonl", lambda path: None, {}, "finished"),
        ("in/a.jsonl", Path.touch, {}, "done"),
        ("in/a.jsonl", lambda path: path.write_text(path.read_text().replace("t", "u")), {}, "stale"),
        ("in/a.jsonl", lambda path: None, {"ids": "content"}, "stale"),
        ("in/a.jsonl", lambda path: None, {"pack": "1 MB"}, "missing"),
        ("data/documents/j/a.jsonl.gz", Path.unlink, {}, "missing"),
        ("data/documents/j/a.jsonl.gz", lambda path: os.truncate(path, 20), {}, "missing"),
        ("data/documents/j/a.jsonl.gz", Path.touch, {}, "finished"),
        ("data/.toolkit/inputs/records.jsonl.gz", Path.unlink, {}, "missing"),
    ],
)
def test_one_pass_finds_only_inputs_that_are_done(
    project: Project, changed: str, change: Callable[[Path], object], options: dict[str, Any], state: str
) -> None:
    for name in "ab":
        write_rows(project.root / "in" / f"{name}.jsonl", [{"id": name, "text": "t"}])
    project.ingest(jsonl(project.root / "in" / "*"))
    change(project.root / changed)
    dataset = open_dataset(str(project.data), None, None)
    entries = ingest_config.read_section(ConfigNode([jsonl(project.root / "in" / "*", **options)]))
    work = plan(entries, dataset, 1 << 20, overwrite=False)[0]
    finished = inputs.finished_inputs(dataset)(work)
    assert bool(finished) == (state == "finished")
    record = ingested.load(dataset, work.key)
    assert inputs.input_state(work, record, listed_stats(work.files)).name == state.replace("finished", "done")
    assert bool(inputs.why_not_done(work, ())) == (state in ("stale", "missing"))
    outcome = finished_outcome(work, inputs.finished_inputs(dataset))
    assert outcome == (cached_outcome(work) if finished else None)


def test_an_input_with_rejected_items_is_inspected_by_itself(project: Project) -> None:
    path = write_rows(project.root / "in" / "a.jsonl", [*({"id": f"{n}", "text": "t"} for n in range(20)), {"id": "x"}])
    project.ingest(jsonl(path, on_error="skip"))
    dataset = open_dataset(str(project.data), None, None)
    for on_error, why in (("skip", ""), ("error", "its bad items were treated otherwise")):
        (work,) = plan(
            ingest_config.read_section(ConfigNode([jsonl(path, on_error=on_error)])), dataset, 1 << 20, overwrite=False
        )
        assert inputs.finished_inputs(dataset)(work) is None
        assert inputs.why_not_done(work, ()) == why


def test_other_settings_over_an_old_shard_are_refused_with_the_difference(project: Project) -> None:
    path = write_rows(project.root / "in" / "a.jsonl", [{"id": "1", "text": "t" * 200 + "\nfoot"}])
    project.ingest(jsonl(path))
    before = tree(project.root / "data", bookkeeping=True)
    project.config["ingest"][0] |= {"trim": {"min_chars": 101}}
    project("ingest").fails(2, "trim: None -> {'min_chars': 101}", "--overwrite")
    assert tree(project.root / "data", bookkeeping=True) == before
    assert "has replaced nothing" not in project.ok("ingest", "--overwrite").out
    assert project.shard("j/a.jsonl.gz")[0]["text"] == "t" * 200
    assert "--overwrite has replaced nothing" in project.ok("ingest", "--overwrite").out


@pytest.mark.parametrize(("options", "name"), [({}, "a.jsonl.gz"), ({"shard_size": 1000}, "a.00000.jsonl.gz")])
def test_a_shard_that_someone_else_wrote_is_not_overwritten(
    project: Project, options: dict[str, Any], name: str
) -> None:
    foreign = write_rows(project.documents / "j" / name, [{"id": "mine", "text": "t", "source": "s"}])
    data = foreign.read_bytes()
    path = write_rows(project.root / "in" / "a.jsonl", [{"id": "1", "text": "t"}])
    project.ingest(jsonl(path, **options)).fails(1, str(foreign))
    assert foreign.read_bytes() == data
    project.ok("ingest", "--overwrite")


def test_no_later_shard_of_a_cut_input_overwrites_what_someone_else_wrote(project: Project) -> None:
    foreign = write_rows(project.documents / "j" / "a.00001.jsonl.gz", [{"id": "mine", "text": "t", "source": "s"}])
    data = foreign.read_bytes()
    path = write_rows(project.root / "a.jsonl", [{"id": str(i), "text": "t" * 300} for i in range(9)])
    assert project.ingest(jsonl(path, shard_size=1000)).code == 1
    assert foreign.read_bytes() == data


def test_attributes_that_someone_else_wrote_are_not_overwritten(project: Project) -> None:
    foreign = write_rows(project.attributes / "oscar-0" / "oscar" / "en.jsonl.gz", [{"id": "1", "attributes": {}}])
    data = foreign.read_bytes()
    path = write_rows(project.root / "en.jsonl", [oscar_line("1")])
    ran = project.ingest(oscar(path))
    assert ran.code != 0
    assert foreign.read_bytes() == data


def test_a_suffix_that_lies_is_an_error(project: Project) -> None:
    plain = project.root / "in" / "a.jsonl.gz"
    plain.parent.mkdir()
    plain.write_bytes(b'{"id":"1","text":"t"}\n')
    zipped = project.root / "in" / "b.jsonl"
    zipped.write_bytes(gzip.compress(b'{"id":"1","text":"t"}\n'))
    project.ingest(jsonl(project.root / "in" / "*")).fails(1, "2 failed")


def test_a_failed_input_leaves_nothing_that_looks_like_a_shard(project: Project) -> None:
    path = write_rows(project.root / "r.jsonl", [*({"id": str(i), "text": "t" * 1000} for i in range(3000)), b"{"])
    project.ingest(jsonl(path)).fails(1, f"{path}:3001")
    assert tree(project.documents) == {}
    assert not list(project.root.rglob("*.tmp"))


@pytest.mark.parametrize("text", [r"\ud800", r"a\udc00b", r"\ud83d\ude00 \ud83d"])
def test_half_of_a_surrogate_pair_is_called_so(project: Project, text: str) -> None:
    path = write_rows(project.root / "a.jsonl", [b'{"text": "' + text.encode() + b'"}', {"text": "good"}])
    ran = project.ingest({"format": "jsonl", "from": [str(path)], "source": "s"}).fails(
        1, f"{path}:1: expected a JSON object of characters, got \\ud", "half of a surrogate pair"
    )
    assert "several lines" not in ran.err
    path = write_rows(project.root / "a.jsonl", [rb'{"text": "\\ud800"}', rb'{"text": "\ud83d\ude00"}'])
    assert project.ingest({"format": "jsonl", "from": [str(path)], "source": "s"}).code == 0


@pytest.mark.parametrize("field", ["content", "seconds", "sha256"])
def test_an_input_whose_record_lacks_something_is_made_again(project: Project, field: str) -> None:
    project.ingest(wet(write_wet(project, INFO, record(1))))
    log = record_logs.inputs_of(open_dataset(str(project.data), None, None))
    ((key, encoded),) = log.items(record_logs.INGEST)
    damaged = json.loads(encoded)
    for item in (damaged, *damaged["shards"].values()):
        item.pop(field, None)
    log.save({(record_logs.INGEST, key): json.dumps(damaged).encode()})
    ran = project("ingest", "--json")
    assert (ran.json["done"], ran.json["skipped"]) == (1, 0), ran.err
    assert project("ingest", "--json").json["skipped"] == 1
