"""Files and folders of others: what a path names, and what an error says of a file that is something else."""

import csv
import gzip
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import xxhash

from tests.pipeline.conftest import Project, inputs_of, read_rows, write_rows
from tests.storage.web_server import Behaviour, web
from toolkit.describe import croissant

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

ROWS = [{"text": f"text {i}", "lang": "de" if i % 2 else "en"} for i in range(6)]


def write(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    """Writes rows in the format that the suffix names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path)
        case ".arrow":
            with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
                writer.write_table(table)
        case ".csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, rows[0])
            writer.writeheader()
            writer.writerows(rows)
            path.write_text(text.getvalue())
        case _:
            write_rows(path, rows)
    return path


def saved(folder: Path, rows: list[dict[str, Any]] = ROWS) -> None:
    """A folder as `datasets.save_to_disk` writes it, with a file of its cache."""
    half = len(rows) // 2
    names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    for name, some in zip(names, (rows[:half], rows[half:]), strict=True):
        write(folder / name, some)
    write(folder / "cache-0123.arrow", [{"text": "of the cache"}])
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))


def texts(project: Project) -> dict[str, int]:
    """How many documents each shard has."""
    shards = sorted(project.documents.rglob("*.jsonl.gz"))
    return {str(path.relative_to(project.documents)): len(project.shard(str(path))) for path in shards}


def test_a_folder_that_datasets_wrote(project: Project) -> None:
    saved(project.root / "in")
    ran = project.ingest({"format": "arrow", "from": str(project.root / "in"), "source": "own", "metadata": "rest"})
    assert ran.code == 0, ran.err
    assert texts(project) == {f"own/data-0000{i}-of-00002.jsonl.gz": 3 for i in (0, 1)}
    row = project.shard("own/data-00001-of-00002.jsonl.gz")[0]
    assert row == {"id": "data-00001-of-00002.arrow:1", "text": "text 3", "source": "own", "metadata": {"lang": "de"}}


def test_splits_that_datasets_wrote(project: Project) -> None:
    for split in ("train", "test"):
        saved(project.root / "in" / split)
    (project.root / "in" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    entry = {"format": "arrow", "from": str(project.root / "in"), "source": "own"}
    assert project.ingest({**entry, "split": "test"}).code == 0
    assert list(texts(project)) == [f"own/test/data-0000{i}-of-00002.jsonl.gz" for i in (0, 1)]
    assert "expected a split of it, got 'tset'; did you mean 'test'?" in project.ingest({**entry, "split": "tset"}).err


HEADER = """---
language: de
configs:
- config_name: small
  data_files:
  - {split: train, path: "small/train-*.parquet"}
  - {split: test, path: small/test.parquet}
- config_name: large
  data_files: large/*.parquet
---
# A corpus
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"config": "small"}, ["small/test", "small/train-0", "small/train-1"]),
        ({"config": "small", "split": "train"}, ["small/train-0", "small/train-1"]),
        ({"config": "large"}, ["large/a"]),
        ({}, "expected `config:`, because it has several; there are: small, large"),
        ({"config": "smal"}, "expected a config of it, got 'smal'; did you mean 'small'?"),
        ({"config": "large", "split": "test"}, "expected a split of it, got 'test'; there are: train"),
    ],
)
def test_a_repository_of_the_hub_by_its_configurations(project: Project, given: dict[str, Any], expected: Any) -> None:
    for name in ("small/train-0", "small/train-1", "small/test", "large/a"):
        write(project.root / "in" / f"{name}.parquet")
    (project.root / "in" / "README.md").write_text(HEADER)
    ran = project.ingest({"format": "parquet", "from": str(project.root / "in"), "source": "own", **given})
    if isinstance(expected, str):
        assert (ran.code, expected in ran.err) == (2, True), ran.err
    else:
        assert ran.code == 0, ran.err
        assert texts(project) == {f"own/{name}.jsonl.gz": 6 for name in expected}


def test_of_several_configurations_the_default_is_taken(project: Project) -> None:
    for name in ("small/train-0", "large/a"):
        write(project.root / "in" / f"{name}.parquet")
    header = HEADER.replace("config_name: large\n", "config_name: large\n  default: true\n")
    (project.root / "in" / "README.md").write_text(header)
    project.ingest({"format": "parquet", "from": str(project.root / "in"), "source": "own"}).succeeds()
    assert texts(project) == {"own/large/a.jsonl.gz": 6}


def test_a_folder_of_texts_and_of_nothing_that_fits(project: Project) -> None:
    for name in ("a.txt", "deep/b.md", "c.txt.gz"):
        path = project.root / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"one\n\ntwo\n") if name.endswith(".gz") else b"one\n\ntwo\n")
    (project.root / "in" / "picture.png").write_bytes(b"\x89PNG")
    entry = {"from": str(project.root / "in"), "source": "own"}
    assert project.ingest({"format": "text", "documents": "file", **entry}).code == 0
    assert texts(project) == {"own/a.pack.jsonl.gz": 3}
    ran = project.ingest({"format": "parquet", **entry})
    assert ran.code == 2
    assert "expected files that end in .parq, .parquet, .pq, got none among 4, such as a.txt; give a glob" in ran.err


OSCAR = b'{"content": "a", "warc_headers": {}, "metadata": {}}\n'


@pytest.mark.parametrize(
    ("format", "name", "what"),
    [
        ("jsonl", "x.parquet", "a Parquet file (`format: parquet`)"),
        ("text", "x.parquet", "a Parquet file (`format: parquet`)"),
        ("csv", "x.arrow", "an Arrow stream (`format: arrow`)"),
        ("parquet", "x.jsonl", "JSON Lines (`format: jsonl`)"),
        ("arrow", "x.csv", "a table with a line for each row (`format: csv`)"),
        ("csv", "x.jsonl", "JSON Lines (`format: jsonl`)"),
        ("wet", "x.jsonl", "JSON Lines (`format: jsonl`)"),
        ("parquet", b"PK\x03\x04....", "a zip archive (or an Excel file)"),
        ("jsonl", b'[\n{"text": "a"}]\n', "a JSON array; make it a line for each element"),
        ("jsonl", b'{\n "text": "a"}\n', "JSON over several lines; make it a line for each document"),
        ("jsonl", OSCAR, "lines of OSCAR (`format: oscar`)"),
        ("jsonl", b"<!DOCTYPE html><html>", "an HTML or XML page"),
        ("jsonl", b"WARC/1.0\r\nWARC-Type: conversion\r\n", "a WARC file of texts (`format: wet`)"),
        (
            "jsonl",
            gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0),
            "gzip data inside, compressed twice; decompress it once",
        ),
        ("parquet", b"", "an empty file"),
    ],
)
def test_a_wrong_format_is_told_with_the_right_one(format: str, name: str | bytes, what: str, project: Project) -> None:
    path = project.root / "in" / (name if isinstance(name, str) else "x")
    if isinstance(name, bytes):
        path.parent.mkdir()
        path.write_bytes(name)
    else:
        write(path)
    project.ingest({"format": format, "from": str(path), "source": "own"}).fails(1, what, str(path))


def test_records_from_before_there_were_these_options_are_those_of_now(project: Project) -> None:
    write(project.root / "in" / "a.jsonl")
    entry = {"format": "jsonl", "from": str(project.root / "in" / "a.jsonl"), "source": "own"}
    assert project.ingest(entry).code == 0
    (record,) = inputs_of(project).values()
    assert not {"metadata", "leave_out", "config", "split"} & record.settings.keys()
    assert "(1 before)" in project.ingest(entry).out
    assert "metadata: None -> 'rest'" in project.ingest({**entry, "metadata": "rest"}).err


@pytest.mark.parametrize(
    ("section", "suffix"), [("ingest", "jsonl"), ("ingest", "csv"), ("documents", "jsonl"), ("documents", "parquet")]
)
def test_a_misspelt_field_of_ids_is_refused(project: Project, section: str, suffix: str) -> None:
    write(project.root / "in" / f"a.{suffix}", [{"key": f"k{i}", "text": f"text {i}"} for i in range(3)])
    path = str(project.root / "in" / f"*.{suffix}")
    for name, ids in (("kye", None), ("none", [f"a.{suffix}:"]), ("key", ["k0"]), (["x", "key"], ["k0"])):
        entry = {"format": suffix, "source": "s", "fields": {"id": name}}
        project.config[section] = [{**entry, "from": path}] if section == "ingest" else {**entry, "path": path}
        ran = project("ingest", "--dry-run", "--json") if section == "ingest" else project("head", "--json")
        if ids is None:
            assert ran.code in (1, 2)
            assert "expected the field kye of ids" in ran.err
            assert "did you mean 'key'?" in ran.err
        else:
            found = ran.json["first"][0]["documents"] if section == "ingest" else ran.json["documents"]
            assert found[0]["id"].startswith(ids[0])


def test_a_dry_run_and_head_show_documents_as_they_would_be(project: Project) -> None:
    rows = [{"body": f"text {i}", "lang": "de", "n": i if i else None, "of": {"a": [1]}} for i in range(5)]
    write(project.root / "in" / "a.parquet", rows)
    write(project.root / "in" / "b.jsonl", ROWS)
    project.config["ingest"] = [
        {
            "format": "parquet",
            "from": str(project.root / "in" / "*.parquet"),
            "source": "own",
            "fields": {"text": "body"},
            "metadata": ["lang", "n"],
        },
        {"format": "jsonl", "from": str(project.root / "in" / "b.jsonl"), "source": "two"},
    ]
    ran = project.ok("ingest", "--dry-run", "--json").json
    assert [(each["format"], each["looked_at"], len(each["documents"])) for each in ran["first"]] == [
        ("parquet", 5, 3),
        ("jsonl", 6, 3),
    ]
    first = ran["first"][0]
    assert [tuple(each.values()) for each in first["fields"]] == [
        ("id", "str", 5),
        ("text", "str", 5),
        ("source", "str", 5),
        ("metadata.lang", "str", 5),
        ("metadata.n", "int", 4),
        ("document.of", "{a: list[int]}", 5),
    ]
    shown = project.ok("head", "-n", "1").out
    assert "a.parquet, document 1 as it would be" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("metadata.n ")] == [
        ["metadata.n", "int", "4"]
    ]
    assert not project.data.exists()
    project.ok("ingest")
    assert project.shard("own/a.jsonl.gz")[:3] == first["documents"]
    assert 'document.of: {"a":[1]}' in project.ok("head", "-n", "1").out


def test_a_dry_run_tells_what_cannot_be_read(project: Project) -> None:
    write(project.root / "in" / "a.parquet")
    path = str(project.root / "in" / "a.parquet")
    project.config["ingest"] = [{"format": "jsonl", "from": path, "source": "own"}]
    for command in (("ingest", "--dry-run"), ("head",)):
        project(*command).fails(1, "a Parquet file (`format: parquet`)")


def test_tables_from_the_web_and_compressed_ones_are_read_once(project: Project, naps: list[float]) -> None:
    """Connections break; every byte is fetched once, and what is recorded is the digest of the file."""
    path = write(project.root / "in" / "a.parquet", [{"text": "x" * 999 + str(i)} for i in range(99)])
    data = path.read_bytes()
    (project.root / "in" / "b.parquet.gz").write_bytes(gzip.compress(data, mtime=0))
    behaviour = Behaviour(chances={"drop": 0.5}, seed=3)
    with web(project.root / "in", behaviour) as url:
        ran = project.ingest({"format": "parquet", "from": [f"{url}a.parquet", f"{url}b.parquet.gz"], "source": "own"})
    assert ran.code == 0, ran.err
    assert texts(project) == {"own/a.jsonl.gz": 99, "own/b.jsonl.gz": 99}
    assert sum(each.sent for each in behaviour.bodies("a.parquet")) == len(data)
    assert inputs_of(project)["own/a.parquet"].content == xxhash.xxh3_128_hexdigest(data)


# `format: croissant`: the records of an external Croissant file become documents.

pytestmark = pytest.mark.filterwarnings("ignore")  # pandas and rdflib have many

CROISSANT_INPUT_ROWS = [
    {"key": "a", "body": "one\ntwo", "about": {"url": "https://example.org/1", "year": 2019}, "tags": ["x", "y"]},
    {"key": "b", "body": "Größe 日本", "about": {"url": None, "year": 2020}, "tags": []},
    {"key": "c", "body": "three", "about": {"url": "https://example.org/3", "year": 2021}, "tags": ["z"]},
]
ENTRY = {"format": "croissant", "source": "theirs", "fields": {"id": "key", "text": "body", "metadata": "about"}}


def field(id_: str, path: str = "", **more: Any) -> dict[str, Any]:
    column = id_.split("/")[1]
    source: dict[str, Any] = {"fileSet": {"@id": "files"}, "extract": {"column": column}}
    if path:
        source["transform"] = {"jsonPath": path}
    return {"@type": "cr:Field", "@id": id_, "name": id_.rpartition("/")[2], "source": source, **more}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Two files of rows with a description, as somebody else publishes them."""
    pytest.importorskip("mlcroissant", reason="the extra `croissant` is not installed")
    folder = tmp_path / "theirs"
    write_rows(folder / "1.jsonl", CROISSANT_INPUT_ROWS[:2])
    write_rows(folder / "2.jsonl", CROISSANT_INPUT_ROWS[2:])
    inner = [field("rows/about/url", "$['url']", dataType="sc:Text")]
    inner.append(field("rows/about/year", "$['year']", dataType="sc:Integer"))
    fields = [field("rows/key", dataType="sc:Text"), field("rows/body", dataType="sc:Text")]
    fields.append({"@type": "cr:Field", "@id": "rows/about", "name": "about", "subField": inner})
    fields.append(field("rows/tags", dataType="sc:Text", repeated=True))
    files: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": name,
            "name": name,
            "contentUrl": name,
            "encodingFormat": "application/jsonlines",
            "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
        }
        for name in ("1.jsonl", "2.jsonl")
    ]
    files.append({"@type": "cr:FileSet", "@id": "files", "name": "files", "includes": "*.jsonl"})
    files[-1]["encodingFormat"] = "application/jsonlines"
    record = {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}
    about = {"@type": "sc:Dataset", "name": "theirs", "conformsTo": f"{croissant.BASE}1.0"}
    document = {"@context": croissant.context("1.0"), **about, "distribution": files, "recordSet": [record]}
    (folder / "metadata.json").write_text(json.dumps(document))
    return folder


def test_records_are_documents(project: Project, theirs: Path) -> None:
    project.config["ingest"] = [ENTRY | {"from": str(theirs / "metadata.json")}]
    project.ok("ingest")
    (shard,) = project.documents.rglob("*.jsonl.gz")
    rows = read_rows(shard)
    assert [(row["id"], row["text"], row["metadata"], row["tags"]) for row in rows] == [
        (row["key"], row["body"], row["about"], row["tags"]) for row in CROISSANT_INPUT_ROWS
    ]


def test_checksums_are_verified_and_mistakes_are_told(project: Project, theirs: Path) -> None:
    path = theirs / "metadata.json"
    project.config["ingest"] = [ENTRY | {"from": str(path), "record_set": "row"}]
    assert "expected the record set 'row', got none; did you mean 'rows'?" in project("ingest").err
    project.config["ingest"] = [ENTRY | {"from": str(path), "record_set": "rows"}]
    write_rows(theirs / "2.jsonl", [CROISSANT_INPUT_ROWS[2] | {"body": "other"}])
    project("ingest").fails(1, f"{theirs / '2.jsonl'}: expected sha256 ")
    project.config["ingest"] = [ENTRY | {"from": str(path), "format": "jsonl"}]
    assert "the file is a Croissant file (`format: croissant`)" in project("ingest").err
    project.config["ingest"] = [ENTRY | {"from": str(path), "record_set": "rows"}]
    path.write_text("{}")
    assert f"{path}: expected the record set 'rows', got none; there are: none" in project("ingest").err


def test_a_description_of_the_web_has_its_files_there(
    project: Project, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlcroissant._src.core import constants

    monkeypatch.setattr(constants, "DOWNLOAD_PATH", constants.epath.Path(project.root / "downloads"))
    text = (theirs / "metadata.json").read_text()
    text = text.replace('"fileSet": {"@id": "files"}', '"fileObject": {"@id": "1.jsonl"}')
    document = json.loads(text)
    document["distribution"] = document["distribution"][:1]
    (theirs / "metadata.json").write_text(json.dumps(document))
    with web(theirs, Behaviour()) as url:
        project.config["ingest"] = [ENTRY | {"from": f"{url}metadata.json"}]
        project.ok("ingest")
    assert [row["id"] for path in project.documents.rglob("*.jsonl.gz") for row in read_rows(path)] == ["a", "b"]
