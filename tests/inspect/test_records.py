"""What mlcroissant reads by a Croissant file is what lies in the files."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.inspect.conftest import ABOUT
from tests.inspect.reading import differences, left_out, lines_of, load, record_sets
from tests.pipeline.conftest import Project, read_rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # pandas and rdflib have many
    pytest.mark.skipif(find_spec("mlcroissant") is None, reason="the extra `croissant` is not installed"),
]

SPECS = ("1.0", "1.1")


def check_dataset(root: Path, suffix: str = ".jsonl.gz") -> int:
    """Every record of every record set of a dataset, against the rows; how many there are."""
    path, count = root / "croissant.json", 0
    found = load(path)
    for name, record in record_sets(path).items():
        folder = "documents" if name == "documents" else f"attributes/{name.removeprefix('attributes-')}"
        opened = None if name == "documents" else "attributes"
        raw = list(lines_of(root, f"{folder}/**/*{suffix}"))
        read = list(found.records(name))
        rows = [row for _, _, row in raw]
        row = "path_row" if name == "documents" and "row" in rows[0] else "row"
        assert differences(read, rows, opened, ("file", row)) == []
        assert left_out(record, rows, opened) == set()
        places = [(each[f"{name}/file"].decode(), each[f"{name}/{row}"]) for each in read]
        assert places == [(file[len(folder) + 1 : -len(suffix)], number) for file, number, _ in raw]
        count += len(read)
    return count


def check_output(folder: Path, languages: list[str] | None = None) -> int:
    """Every record of an OSCAR output, against the lines, and again filtered by language."""
    path = folder / "croissant.json"
    (record,) = record_sets(path).values()
    raw = list(lines_of(folder, "*/*.jsonl.gz"))
    rows = [row for _, _, row in raw]
    read = list(load(path).records("documents"))
    assert differences(read, rows, "metadata", ("language",)) == []
    assert [each["documents/language"].decode() for each in read] == [file.partition("/")[0] for file, _, _ in raw]
    assert left_out(record, rows, "metadata") == set()
    counts = {each["languages/code"]: each["languages/documents"] for each in load(path).records("languages")}
    for language in counts if languages is None else languages:
        some = list(load(path).records("documents", filters={"documents/language": language}))
        assert (
            differences(
                some, [row for _, _, row in lines_of(folder, f"{language}/*.jsonl.gz")], "metadata", ("language",)
            )
            == []
        )
        assert len(some) == counts[language]
    assert sum(counts.values()) == len(rows)
    return len(read)


@pytest.mark.parametrize("spec", SPECS)
def test_records_of_a_dataset_are_its_rows(described: Project, spec: str) -> None:
    described.ok("croissant", "--of", "dataset", "--spec", spec)
    assert check_dataset(described.data) == 12


def test_records_of_an_output_are_its_lines(released: Project) -> None:
    released.ok("croissant")
    (fields,) = (each["field"] for each in record_sets(released.out / "croissant.json").values())
    referring = {"documents/language", "documents/identification/label"}
    assert referring == {
        part["@id"]
        for each in fields
        for part in (each, *each.get("subField", ()))
        if part.get("references") == {"field": {"@id": "languages/code"}}
    }
    assert len(list(released.out.glob("en/*.jsonl.gz"))) > 1
    assert check_output(released.out, ["en", "zh"]) > 20


def test_splits_are_aligned_with_the_documents(released: Project) -> None:
    released.config["about"]["splits"] = {"train": 0.5, "test": 0.5}
    released.ok("croissant")
    found = load(released.out / "croissant.json")
    splits = list(found.records("document-splits"))
    assert "references" not in json.dumps(record_sets(released.out / "croissant.json")["documents"]["field"][0])
    documents = list(found.records("documents"))
    key = "documents/warc_headers"
    assert [(d["documents/file"], d["documents/row"], d[key][f"{key}/warc-record-id"]) for d in documents] == [
        tuple(each[f"document-splits/{name}"] for name in ("file", "row", "id")) for each in splits
    ]
    counts = {each["splits/name"]: each["splits/documents"] for each in found.records("splits")}
    names = [each["document-splits/split"].decode() for each in splits]
    assert counts == {name: names.count(name) for name in ("train", "test")}
    assert min(counts.values()) > 0
    released.ok("validate")


@pytest.mark.parametrize("schema", [pytest.param("22.01", marks=pytest.mark.long), "23.01"])
def test_real_pages_are_read_as_they_are(pipeline: Project, shared: Path, schema: str) -> None:
    names = ("hplt-sample200.warc.wet.gz", "whirlwind.warc.wet.gz", "npmwarc*.warc.wet", "htmlpool-real.warc.wet.gz")
    pipeline.config["ingest"][0]["from"] = [f"{shared}/wet/{name}" for name in names]
    pipeline.config["tag"]["spans-0"] = ["emails", "gopher_quality", "length"]
    pipeline.config["mix"]["output"] |= {"schema": schema, "part_size": "1 MB"}
    pipeline.config["about"] = dict(ABOUT)
    pipeline.ok("run")
    pipeline.ok("croissant")
    pipeline.ok("croissant", "--of", "dataset")
    assert check_output(pipeline.out) > 500
    assert check_dataset(pipeline.data) > 5 * 500
    pipeline.ok("validate")


def test_released_documents_are_read_as_they_are(golden: Project) -> None:
    golden.config["about"] = dict(ABOUT)
    golden.ok("run")
    golden.ok("croissant")
    golden.ok("croissant", "--of", "dataset")
    assert check_output(golden.out) == 23
    assert check_dataset(golden.data) == 4 * 23


def test_an_undivided_parquet_output_has_splits(small: Project) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    small.config["about"] = ABOUT | {"splits": {"train": 0.5, "test": 0.5}}
    small.config["mix"]["output"] = {"format": "parquet", "path": str(small.out)}
    small.ok("mix")
    small.ok("croissant")
    found = load(small.out / "croissant.json")
    splits = list(found.records("document-splits"))
    places = [(d["documents/file"], d["documents/row"], d["documents/id"]) for d in found.records("documents")]
    assert places == [tuple(each[f"document-splits/{name}"] for name in ("file", "row", "id")) for each in splits]
    assert {each["document-splits/split"] for each in splits} == {b"train", b"test"}
    small.ok("validate")


def test_parts_of_a_split_are_files_of_their_own(released: Project) -> None:
    """A reader that wants one opens no other; which document is in which does not depend on how they are told."""
    released.config["about"]["splits"] = {"train": 0.7, "test": 0.3}
    released.ok("croissant")
    rows = [row for path in sorted((released.out / "splits").rglob("*.gz")) for row in read_rows(path)]
    by_rows = {row["id"]: row["split"] for row in rows}
    released.config["about"]["splits"]["by"] = "file"
    released("croissant").fails(2, "expected the output of a mix that parts its files")
    out = released.root / "parted"
    released.config["mix"]["output"]["path"] = str(out)
    released.ok("croissant", "--of", "dataset")  # whose files no mix parts: each document has its split, as before
    of_dataset = [row for path in (released.data / "splits").rglob("*.gz") for row in read_rows(path)]
    assert {row["split"] for row in of_dataset} == {"train", "test"}
    assert "0 findings" in released.ok("validate", released.data / "croissant.json").out
    released.ok("mix")
    released.ok("croissant")
    assert "0 findings" in released.ok("validate").out
    assert [id_ for id_, each in _described(json.loads((out / "croissant.json").read_text())) if not each] == []
    by_file = {
        row["warc_headers"]["warc-record-id"]: path.partition("/")[0]
        for path, _, row in lines_of(out, "*/*/*.jsonl.gz")
    }
    assert by_file == by_rows
    read = list(load(out / "croissant.json").records("documents"))
    names = [(r["documents/warc_headers"]["documents/warc_headers/warc-record-id"].decode(), r) for r in read]
    assert {id_: r["documents/split"].decode() for id_, r in names} == by_rows
    assert all(r["documents/language"] == r["documents/identification"]["documents/identification/label"] for r in read)
    opened: list[str] = []
    dataset = load(out / "croissant.json")
    for record in dataset.records("documents", filters={"documents/split": "test"}):
        opened.append(record["documents/split"].decode())
    assert set(opened) == {"test"}
    assert len(opened) == sum(split == "test" for split in by_rows.values())
    listed = {row["splits/name"]: row for row in dataset.records("splits")}
    assert listed["train"]["splits/url"] == "cr:TrainingSplit"
    assert listed["test"]["splits/documents"] == len(opened)
    english = list(load(out / "croissant.json").records("documents", filters={"documents/language": "en"}))
    assert english == [record for record in read if record["documents/language"] == b"en"]


def _described(description: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the id of each field, and of each that is a part of one, with its description."""
    fields = [field for each in description["recordSet"] for field in each["field"]]
    while fields:
        field = fields.pop()
        yield field["@id"], field.get("description", "")
        fields += field.get("subField", [])


@pytest.mark.parametrize("of", ["dataset", "output"])
def test_no_field_is_without_description(released: Project, of: str) -> None:
    released.config["about"]["splits"] = {"train": 0.7, "test": 0.3}
    released.ok("croissant", "--of", of)
    folder = released.out if of == "output" else released.data
    found = dict(_described(json.loads((folder / "croissant.json").read_text())))
    assert [id_ for id_, each in found.items() if not each] == []
    assert {"documents/split", "languages/name" if of == "output" else "splits/name"} & found.keys()


OUTPUTS: dict[str, dict[str, Any]] = {
    "by language": {"format": "dolma", "by": "language", "attributes": True},
    "together": {"format": "dolma", "part_size": 20_000},
    "parquet": {"format": "parquet", "by": "language", "attributes": True},
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_records_of_other_formats_are_their_rows(released: Project, name: str, tmp_path: Path) -> None:
    out = tmp_path / "other"
    released.config["mix"]["output"] = {**OUTPUTS[name], "path": str(out)}
    released.ok("mix")
    released.ok("croissant")
    if OUTPUTS[name]["format"] == "parquet":
        import pyarrow.parquet as pq

        rows = [row for path in sorted(out.glob("*/*.parquet")) for row in pq.read_table(path).to_pylist()]
    else:
        rows = [row for _, _, row in lines_of(out, "documents/**/*.jsonl.gz")]
    (record,) = record_sets(out / "croissant.json").values()
    read = list(load(out / "croissant.json").records("documents"))
    assert differences(read, rows, None, ("language",)) == []
    assert left_out(record, rows, None) == set()
    if "by" in OUTPUTS[name]:
        some = list(load(out / "croissant.json").records("documents", filters={"documents/language": "en"}))
        assert some == [each for each in read if each["documents/language"] == b"en"]
        assert some
