"""Ids that are not unique: files that number their rows, the pattern that qualifies ids, refusals, and `allow`."""

import csv
import gzip
import io
from typing import Any

import pytest

from tests.files_in_place import parquet, wet
from tests.pipeline.conftest import Project, read_rows, write_rows

FILES, ROWS = ("a", "b", "c"), 200


def numbered(name: str, rows: int = ROWS) -> list[dict[str, Any]]:
    """Rows of a file that numbers them from 0, with texts of its own."""
    return [{"id": str(i), "text": f"text {i} of the file {name}", "source": "s", "file": name} for i in range(rows)]


def data_of(format_: str, rows: list[dict[str, Any]]) -> bytes:
    match format_:
        case "csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, rows[0])
            writer.writeheader()
            writer.writerows(rows)
            return text.getvalue().encode()
        case "parquet":
            return parquet(rows)
        case "wet":
            return gzip.decompress(wet([{"key": row["id"], "body": row["text"]} for row in rows]))
    raise NotImplementedError(format_)


@pytest.mark.parametrize("format_", ["jsonl", "dolma", "csv", "parquet", "wet"])
def test_a_pattern_with_the_own_id_qualifies_it(project: Project, format_: str) -> None:
    folder = project.root / "in" / "more"
    for name in ("a", "b"):
        path, rows = folder / f"{name}.{format_}", numbered(name, 3)
        if format_ in ("jsonl", "dolma"):
            write_rows(path, rows)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data_of(format_, rows))
    entry = {"format": format_, "from": f"{project.root}/in/**/*.{format_}", "source": "s", "ids": "{path}/{id}"}
    assert project.ingest(entry).code == 0
    shards = sorted(project.documents.rglob("*.gz"))
    made = [row["id"] for shard in shards for row in project.shard(str(shard))]
    own = "<urn:{}>" if format_ == "wet" else "{}"
    assert made == [f"more/{name}.{format_}/{own.format(i)}" for name in ("a", "b") for i in range(3)]


def test_in_place_a_pattern_qualifies_ids_as_ingest_does(project: Project) -> None:
    folder = project.root / "in"
    for name in ("a", "b"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(b'{"id": 7, "text": "t"}\n'))
    project.config["documents"] = {"format": "jsonl", "path": f"{folder}/*.gz", "source": "s", "ids": "{path}/{id}"}
    project.config["dataset"] = str(project.data)
    project.config["tag"] = {"length-0": "length"}
    project.ok("tag")
    found = [read_rows(project.attributes / f"length-0/{name}.jsonl.gz.jsonl.gz") for name in ("a", "b")]
    assert [row["id"] for (row,) in found] == ["a.jsonl.gz/7", "b.jsonl.gz/7"]


def test_a_document_without_an_id_of_its_own_has_none_to_qualify(project: Project) -> None:
    path = write_rows(project.root / "r.jsonl", [{"id": "1", "text": "a"}, {"text": "b"}])
    ran = project.ingest({"format": "jsonl", "from": str(path), "source": "s", "ids": "{path}/{id}"})
    assert ran.code == 1
    assert "r.jsonl:2: expected a document with an id, because of `ids: {path}/{id}`, got one without" in ran.err


@pytest.mark.parametrize("format_", ["jsonl", "csv", "parquet"])
def test_init_qualifies_ids_where_files_number_their_rows(project: Project, format_: str) -> None:
    folder, made = project.root / "in", project.root / "made.yaml"
    for name in FILES:
        path, rows = folder / f"{name}.{format_}", numbered(name, 5)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data_of(format_, rows)) if format_ != "jsonl" else write_rows(path, rows)
    assert project.run("init", "--from", folder, "-o", made).code == 0
    text = made.read_text()
    assert 'ids: "{path}/{id}"' in text
    assert text.count('"{path}/{id}"') == 1 + (format_ != "csv"), text  # in the form without a copy, too
    assert project.run("ingest", "-c", made, f"dataset={project.data}").code == 0
    ids = [row["id"] for shard in project.documents.rglob("*.gz") for row in read_rows(shard)]
    assert len({*ids}) == len(ids) == 15
    (folder / f"b.{format_}").unlink()
    (folder / f"c.{format_}").unlink()
    assert project.run("init", "--from", folder, "-o", project.root / "one.yaml").code == 0
    assert "ids:" not in (project.root / "one.yaml").read_text()
