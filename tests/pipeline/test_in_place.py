"""Documents in place: what is made of files of others is what an ingest of them would give, and nothing is copied."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
import xxhash

from tests import files_in_place as theirs
from tests.conftest import Run
from tests.files_in_place import NAMES, attributes, config, data_of, lay_out, output, rows_of
from tests.pipeline.conftest import Project, read_rows
from toolkit.config.settings import ConfigNode
from toolkit.data import row_index
from toolkit.ingest.in_place import open_dataset
from toolkit.storage.paths import list_files

pytest.importorskip("pyarrow", exc_type=ImportError)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_", "processes"),
    [("wet", 1), ("jsonl", 1), ("parquet", 1), pytest.param("parquet", 2, marks=pytest.mark.slow)],
)
def test_outputs_and_attributes_are_those_after_an_ingest(
    format_: str, processes: int, tmp_path: Path, run: Run
) -> None:
    root = str(tmp_path)
    lay_out(root, format_)
    before = sorted(list_files(root))
    for in_place in (True, False):
        path = config(root, format_, in_place=in_place, processes=processes)
        for command in ("run", "validate", "run"):  # the last one finds all done
            run(command, "-c", path).succeeds()
    assert output(root, "in-place") == output(root, "ingested") != {}
    found = attributes(root, "in-place", format_)
    assert found == attributes(root, "ingested", format_)
    assert {"length-0/a", "length-0/more/c", "exact-0/b"} <= {*found}
    assert sorted(name for name in list_files(root) if name.startswith("theirs/")) == before
    assert not (tmp_path / "in-place" / "documents").exists()
    assert (tmp_path / f"in-place/attributes/length-0/more/c.{NAMES[format_]}.jsonl.gz").exists()


@pytest.fixture(params=[*(pytest.param(name, marks=pytest.mark.slow) for name in ("wet", "jsonl")), "parquet"])
def placed(request: pytest.FixtureRequest, project: Project) -> Project:
    """A project with documents in place of each format, which are not tagged yet."""
    lay_out(str(project.root), request.param)
    project.config = json.loads(Path(config(str(project.root), request.param, in_place=True)).read_text())
    return project


def files(project: Project) -> list[Path]:
    return sorted(path for path in (project.root / "theirs").rglob("*") if path.is_file())


@pytest.mark.slow
def test_a_file_that_has_changed_is_done_again_and_no_other(placed: Project) -> None:
    placed.ok("run")
    format_ = placed.config["documents"]["format"]
    files(placed)[0].write_bytes(data_of(format_, rows_of(7)))
    placed("mix").fails(1, "got those of an earlier version; run `toolkit tag`")
    assert placed.ok("tag", "--json").json["written"] == {"length-0": 1, "shape-0": 1}
    placed.ok("run")
    os.utime(files(placed)[1], (1, 1))  # which changes nothing of what it holds
    assert placed.ok("tag", "--json").json["written"] == {"length-0": 0, "shape-0": 0}


@pytest.mark.slow
def test_the_reader_and_its_options_are_part_of_the_lineage(placed: Project) -> None:
    placed.ok("run")
    placed.config["documents"]["trim"] = {"min_chars": 13}
    for command in ("tag", "dedup"):
        placed(command).fails(2, "was made with other settings", "documents.")
    assert placed("mix").code == 2
    placed.ok("run", "--overwrite")
    assert placed.ok("validate").code == 0


@pytest.mark.slow
def test_commands_that_look(placed: Project) -> None:
    first = placed.ok("head", "-n", 1, "--json").json["documents"][0]
    assert first["source"] == "own"
    assert first["place"] == f"{files(placed)[0]}:1"
    tagged = placed.ok("tag", "--json").json
    assert tagged["counts"]["documents"] == tagged["documents"]
    if placed.config["documents"]["format"] != "jsonl":
        assert tagged["counts"]["trim"] > 0
    placed.ok("run")
    assert "all is done" in placed.ok("status").out
    assert f"{tagged['documents']}" in placed.ok("stats").out
    shown = placed.ok("head", files(placed)[1], "-n", 1, "--json").json["documents"][0]
    assert shown["attributes"]["length-0"]["length"]["chars"] == len(shown["text"])
    assert placed.ok("head", "--id", shown["id"], "--json").json["documents"][0]["id"] == shown["id"]
    assert placed("head", "--id", "nobody").code == 2
    assert "would be kept" in placed.ok("mix", "--dry-run").out
    (placed.root / "theirs" / ".2.9999.tmp").write_text("of theirs")
    placed.ok("clean")
    assert (placed.root / "theirs" / ".2.9999.tmp").exists()


@pytest.mark.slow
def test_a_croissant_file_and_a_card_of_the_dataset(project: Project) -> None:
    """The files are listed, their rows are described by nobody; the sets are, as ever."""
    lay_out(str(project.root), "parquet")
    shutil.copytree(project.root / "theirs", project.data / "pages")
    about = {"name": "n", "description": "d", "license": "https://x.example/l", "url": "https://x.example/"}
    about["date_published"] = "2026-01-01"
    creator = {"type": "Person", "name": "me", "url": "https://x.example"}
    documents = {"format": "parquet", "path": str(project.data / "pages"), "source": "s", "fields": {"text": "body"}}
    project.config |= {"documents": documents, "tag": {"length-0": "length"}}
    project.config["about"] = {**about, "creator": creator}
    project.config["dataset"] = str(project.data)
    project.ok("tag")
    assert "external files are read in place; they are listed" in project.ok("croissant").out
    project.ok("card")
    found = json.loads((project.data / "croissant.json").read_text())
    assert "read in place parquet (" in json.dumps(found)
    assert [each["name"] for each in found["recordSet"]] == ["attributes-length-0"]
    assert "pages/more/c.parquet" in [each.get("contentUrl") for each in found["distribution"]]
    project.ok("validate")


@pytest.mark.parametrize("format_", ["wet", "parquet"])
def test_a_document_is_read_from_the_place_before_it(format_: str, project: Project) -> None:
    """A gzip member of WET, a row group of Parquet; ids by number, rows that were trimmed away count as items."""
    (project.root / "theirs").mkdir()
    for name in ("a", "b"):
        path = project.root / f"theirs/{name}.{NAMES[format_]}"
        path.write_bytes(data_of(format_, rows_of(ord(name), 300)))
    documents = {"format": format_, "path": str(path.parent), "source": "s", "trim": {"min_chars": 12}}
    documents |= {"fields": {"text": "body", "id": "none"}} if format_ == "parquet" else {}
    project.config |= {"dataset": str(project.data), "documents": documents, "tag": {"length-0": "length"}}
    project.ok("tag")
    dataset = open_dataset(ConfigNode({"documents": documents}), str(project.data), documents, None)
    shard = dataset.shards()[1]
    with dataset.lines(shard, 10**6) as lines:
        rows = [json.loads(line) for line in lines]
        begins = list(lines.begins)
    assert len(begins) >= 4
    assert begins[2].number > begins[2].row  # some before it became no document
    for begin in begins:
        with dataset.lines(shard, 10**6, begin=begin) as lines:
            assert [json.loads(line) for line in lines] == rows[begin.row :]
    values = read_rows(project.attributes / "length-0" / shard)
    for number in (0, 1, begins[1].row, begins[2].row - 1, len(rows) - 1):
        (found,) = project.ok("head", "--id", rows[number]["id"], "--json").json["documents"]
        assert (found["place"], found["text"]) == (f"{path}:{number + 1}", rows[number]["text"])
        assert found["attributes"]["length-0"] == values[number]["attributes"]
        assert row_index.begin_of(dataset, shard, number).row <= number


# --- what is refused --------------------------------------------------------------------------------------------------


def test_attributes_are_not_taken_for_files_of_others(project: Project) -> None:
    folder = project.root / "theirs"
    folder.mkdir()
    (folder / "x.jsonl").write_text('{"text": "one"}\n')
    documents = {"format": "jsonl", "path": str(folder), "source": "s"}
    project.config |= {"dataset": str(folder), "documents": documents, "tag": {"length-0": "length"}}
    project("tag").fails(2, "that does not contain the attributes")
    assert [path.name for path in folder.iterdir()] == ["x.jsonl"]
    documents["path"] = str(folder / "*.jsonl")
    project.ok("tag")
    assert project.ok("tag", "--json").json["shards"] == 1
    documents["path"] = str(folder / "**")
    project("tag").fails(1, "x.jsonl.jsonl.gz: expected external files, got attributes")


def test_no_files(placed: Project) -> None:
    placed.config["documents"]["path"] = str(placed.root / "nowhere" / "*.gz")
    placed("tag").fails(2, "expected at least one file, got no match")


# --- faults -----------------------------------------------------------------------------------------------------------


def test_damage_is_told_as_an_ingest_tells_it(placed: Project) -> None:
    """Of the file that is cut short nothing is written; the others are done, and it too when it has been mended."""
    format_ = placed.config["documents"]["format"]
    broken = files(placed)[1]
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) * 2 // 3])
    ran = placed("tag", "--json").fails(1)
    (said,) = ran.json["failed"]
    assert said.startswith(str(broken))
    ingested = placed.run("ingest", "-c", config(str(placed.root), format_, in_place=False), "--json")
    assert ingested.json["failed"] == [said]
    assert len(list((placed.attributes.parent.parent / "in-place/attributes/length-0").rglob("*.gz"))) == 2
    broken.write_bytes(whole)
    assert placed.ok("tag", "--json").json["written"] == {"length-0": 1, "shape-0": 1}
    placed.ok("run")


@pytest.mark.parametrize(
    ("format_", "rows", "expected"),
    [
        ("jsonl", b'{"body": "one", "key": "1"}\n{"body": 2}\n', ":2: expected a text, got a whole number - at $.text"),
        ("jsonl", b'{"body": "one"}\n{"bdy": "two"}\n', ":2: expected field body, got an object without it"),
        ("parquet", theirs.parquet([{"bdy": "x"}]), ": expected a column 'body' of texts"),
        ("parquet", theirs.parquet([{"body": "x"}, {"body": None}]), ":2: expected a text in body, got null"),
    ],
)
def test_a_row_that_does_not_fit(format_: str, rows: bytes, expected: str, project: Project) -> None:
    path = project.root / f"theirs.{format_}"
    path.write_bytes(rows)
    documents = {"format": format_, "path": str(path), "source": "s", "fields": {"text": "body"}}
    project.config |= {"dataset": str(project.data), "documents": documents, "tag": {"length-0": "length"}}
    project("tag").fails(1, f"{path}{expected}")
    assert not list(project.data.rglob("*.gz"))


def test_a_gzip_file_that_lost_members_is_no_shorter_file(project: Project) -> None:
    """Where members end no decompressor notices: the row index knows how many documents there were."""
    path = project.root / "theirs.jsonl.gz"
    lines = [
        json.dumps({"text": f"text {xxhash.xxh3_128_hexdigest(bytes([i % 251, i // 251]))}"}).encode() + b"\n"
        for i in range(2000)
    ]
    members = [gzip.compress(b"".join(lines[i : i + 500]), mtime=0) for i in range(0, 2000, 500)]
    path.write_bytes(b"".join(members))
    documents = {"format": "jsonl", "path": str(path), "source": "s"}
    project.config |= {"dataset": str(project.data), "documents": documents, "tag": {"length-0": "length"}}
    project.ok("tag")
    path.write_bytes(b"".join(members[:2]))
    project("tag").fails(1, "expected 2000 documents as before, got only the first 1000: the file was cut short")


def test_streams_and_other_datasets_may_be_in_place(project: Project) -> None:
    for format_ in ("jsonl", "parquet"):
        folder = project.root / format_
        folder.mkdir()
        (folder / f"x.{NAMES[format_]}").write_bytes(data_of(format_, rows_of(1, 9)))
    parts = {
        format_: {
            "documents": {"format": format_, "path": str(project.root / format_), "source": format_}
            | {"fields": {"text": "body", "id": "key"}},
            "attributes": str(project.root / f"attributes-{format_}"),
        }
        for format_ in ("jsonl", "parquet")
    }
    for part in parts.values():
        project.config = {**part, "tag": {"length-0": "length"}}
        project.ok("tag")
    streams = [{"name": name, "dataset": part, "attributes": ["length-0"]} for name, part in parts.items()]
    project.config = {"mix": {"streams": streams, "output": {"format": "dolma", "path": str(project.out)}}}
    project.ok("mix")
    assert len(read_rows(project.out / "documents" / "documents.jsonl.gz")) == 18
    project.config = {
        **parts["jsonl"],
        "dedup": {"exact-0": {"kind": "exact", "against": [{"documents": parts["parquet"]["documents"]}]}},
    }
    project.ok("dedup")
    values = read_rows(project.root / "attributes-jsonl/exact-0/x.jsonl.gz.jsonl.gz")
    assert all(row["attributes"]["exact"]["duplicate_of"][0] == "parquet" for row in values)
