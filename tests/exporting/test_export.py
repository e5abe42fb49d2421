"""Sets as Parquet: other programs read them, `align` makes the same set of them, and only what is new is written."""

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, read_bytes, read_rows, strays, tree, write_rows
from toolkit.data.tables import from_arrow
from toolkit.exporting import shard as exporting

pq = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow (extra parquet)")


def written(project: Project, *options: object) -> Any:
    return json.loads(project.ok("export", "--parquet", project.root / "exp", *options, "--json").out)["written"]


def test_files_have_the_declared_types_and_other_programs_read_them(edges: Project, tmp_path: Path) -> None:
    assert written(edges) == {"edges-0": 1}
    path = tmp_path / "exp" / "edges-0" / "x.parquet"
    file = pq.ParquetFile(path)
    assert file.schema_arrow.names == ["id", "source", "row", "edges"]
    about = file.metadata.row_group(0).column(0)
    assert (about.compression, about.has_offset_index, about.has_column_index) == ("ZSTD", True, True)
    inside = file.schema_arrow.field("edges").type
    assert str(inside.field("spans").type) == "list<element: struct<start: int64, end: int64, score: double>>"
    assert str(inside.field("counts").type).startswith("map<string, int64")
    assert not file.schema_arrow.field("edges").nullable
    rows = [row["attributes"]["edges"] for row in read_rows(edges.attributes / "edges-0" / "x.jsonl.gz")]
    counts = [each["counts"] for each in file.read()["edges"].to_pylist()]
    assert [dict(each) for each in counts] == [row["counts"] for row in rows]
    wanted = [(row["number"], row["score"], row["text"], [s[2] for s in row["spans"]]) for row in rows]
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is another program")
    select = "SELECT edges.number, edges.score, edges.text, [s.score for s in edges.spans] FROM read_parquet(?)"
    assert duckdb.connect().execute(select, [str(path)]).fetchall() == wanted
    polars = pytest.importorskip("polars", reason="polars is another program")
    frame = polars.read_parquet(path)
    assert [(each["number"], each["score"], each["text"]) for each in frame["edges"].to_list()] == [
        each[:3] for each in wanted
    ]
    assert frame["row"].to_list() == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # other people's
def test_datasets_read_them(small: Project, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is another program")
    written(small)
    found = datasets.load_dataset("parquet", data_files=str(tmp_path / "exp" / "shape-0" / "**" / "*.parquet"),
                                  split="train", cache_dir=str(tmp_path / "cache"))  # fmt: skip
    assert sorted(found["id"])[:2] == ["a-1", "a-2"]
    assert len(found) == 12


def test_align_makes_the_same_set_of_them(edges: Project, tmp_path: Path) -> None:
    written(edges)
    files = str(tmp_path / "exp" / "edges-0" / "*.parquet")
    edges.config["align"] = {"edges-1": {"from": files, "id": "id", "source": "source"}}
    edges.ok("align")
    paths = [edges.attributes / name / "x.jsonl.gz" for name in ("edges-0", "edges-1")]
    assert read_bytes(paths[0]) == read_bytes(paths[1])
    schemas = [
        json.loads((edges.data / ".toolkit" / "sets" / f"edges-{i}" / "schema.json").read_bytes()) for i in (0, 1)
    ]
    assert schemas[0]["keys"]["edges"]["type"] == schemas[1]["keys"]["edges"]["type"]


def test_the_folder_is_a_place_of_attributes(small: Project, tmp_path: Path) -> None:
    """Parquet files beside documents, in their order, are sets of other programs; the types are those declared."""
    written(small)
    small.config |= {"documents": str(small.documents), "attributes": str(tmp_path / "exp")}
    del small.config["dataset"], small.config["tag"]
    small.ok("mix")
    known = {row["id"] for shard in ("a.jsonl.gz", "b.jsonl.gz", "deep/er/c.jsonl.gz") for row in small.shard(shard)}
    assert {row["id"] for row in small.output()} == known - {"a-3", "b-2", "deep/er/c-3"}


def test_only_what_is_missing_or_changed_is_written(small: Project, tmp_path: Path) -> None:
    small.config["tag"]["noise-0"] = ["noise"]
    small.ok("tag")
    assert written(small) == {"noise-0": 3, "shape-0": 3}
    first = tree(tmp_path / "exp")
    assert written(small) == {"noise-0": 0, "shape-0": 0}
    files = [tmp_path / "exp" / "shape-0" / name for name in ("a.parquet", "b.parquet")]
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-10])
    assert written(small, "--set", "noise-0") == {"noise-0": 0}
    assert written(small) == {"noise-0": 0, "shape-0": 2}
    assert tree(tmp_path / "exp") == first
    rows = small.shard("b.jsonl.gz")
    rows[0]["text"] = "other"
    write_rows(small.documents / "b.jsonl.gz", rows)
    stale = small("export", "--parquet", tmp_path / "exp")
    assert (stale.code, "b.jsonl.gz" in stale.err, "run `toolkit tag`" in stale.err) == (1, True, True)
    small.ok("tag")
    assert written(small) == {"noise-0": 1, "shape-0": 1}
    assert {name for name, digest in tree(tmp_path / "exp").items() if digest != first[name]} == {
        "noise-0/b.parquet", "shape-0/b.parquet"
    }  # fmt: skip
    (small.documents / "a.jsonl.gz").unlink()
    small.ok("clean", "--forget", "a.jsonl.gz")
    small.ok("export", "--parquet", tmp_path / "exp").shows("2 files of shards that are gone were deleted")
    assert sorted(tree(tmp_path / "exp")) == [
        f"{name}-0/{shard}.parquet" for name in ("noise", "shape") for shard in ("b", "deep/er/c")
    ]
    assert strays(tmp_path / "exp") == []


def test_the_folder_of_another_dataset_is_refused(small: Project, tmp_path: Path) -> None:
    written(small)
    before = tree(tmp_path / "exp")
    for more in ((), ("--dry-run",)):
        small("export", "--parquet", tmp_path / "exp", *more, f"attributes={tmp_path / 'others'}").fails(
            2, "choose another folder"
        )
    assert tree(tmp_path / "exp") == before


@pytest.mark.slow
def test_one_process_and_two_write_the_same_bytes(small: Project, tmp_path: Path) -> None:
    del small.config["executor"]
    for processes in (1, 2):
        small.ok("export", "--parquet", tmp_path / str(processes), f"processes={processes}")
    assert tree(tmp_path / "1") == tree(tmp_path / "2") != {}


def test_row_groups_are_bounded(small: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "PIECE", 2)
    monkeypatch.setattr(exporting, "GROUP", 4)
    written(small)
    found = pq.ParquetFile(tmp_path / "exp" / "shape-0" / "a.parquet")
    assert [found.metadata.row_group(i).num_rows for i in range(found.metadata.num_row_groups)] == [4, 1]
    assert found.read().column("row").to_pylist() == [1, 2, 3, 4, 5]


def test_sets_of_other_programs_and_what_cannot_be_exported(by_hand: Project, tmp_path: Path) -> None:
    assert written(by_hand) == {"exp": 3}
    found = pq.read_table(tmp_path / "exp" / "exp" / "a.parquet")
    assert found.column("exp__lines__count").to_pylist()[0] == [{"start": 0, "end": 7, "score": 1.0}]
    assert written(by_hand) == {"exp": 0}
    rows = read_rows(by_hand.attributes / "exp" / "a.jsonl.gz")
    write_rows(by_hand.attributes / "bad" / "a.jsonl.gz", [row | {"attributes": {"row": 1}} for row in rows])
    for name in ("b.jsonl.gz", "deep/er/c.jsonl.gz"):
        rows = read_rows(by_hand.attributes / "exp" / name)
        write_rows(by_hand.attributes / "bad" / name, [row | {"attributes": {"row": 1}} for row in rows])
    by_hand("export", "--parquet", tmp_path / "exp").fails(
        2, "bad: expected keys with other names than the columns id, source, row, got 'row'"
    )
    by_hand("export", "--parquet", tmp_path / "exp", "--set", "ex").fails(2, "did you mean 'exp'")


@pytest.mark.parametrize("value", [2**63, {"a": [2**64 - 1]}])
def test_an_integer_that_parquet_has_no_type_for_is_an_error_that_says_so(project: Project, value: Any) -> None:
    write_rows(project.documents / "x.jsonl", [document("1", "a")])
    write_rows(project.attributes / "a-0" / "x.jsonl", [attributes("1", {"n": value})])
    project("export", "--parquet", project.out).fails(1, "x.jsonl:1: expected values of n", "an `int` has 64 bits")


def test_dry_run_writes_nothing(small: Project, tmp_path: Path) -> None:
    small.ok("export", "--parquet", tmp_path / "exp", "--dry-run").shows("a.parquet")
    assert not (tmp_path / "exp").exists()


def test_a_footer_that_cannot_be_read_declares_nothing() -> None:
    assert from_arrow.types_in(None) is None
    assert from_arrow.types_in({from_arrow.KEY: b"{"}) is None
    assert from_arrow.types_in({from_arrow.KEY: b'{"set":"a","types":{"k":"ignore_start"}}'}) is None


# Indexes of raw files, as Modalities makes them, in a folder that mirrors theirs.

LINES = ['{"id":"a","text":"Größe"}\n', '{"id":"b","text":"zwei"}\r\n', '{"id":"c","text":""}']
"""With a line end of each kind, and without one at the end of the file."""


@pytest.fixture
def raw(project: Project, tmp_path: Path) -> Path:
    for name in ("2014-41/de/00000.jsonl", "2014-41/de/00001.jsonl", "2015-02/fr/00000.jsonl"):
        path = tmp_path / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("".join(LINES).replace('":"', f'":"{name[:7]}').encode())
    ids = "{path}/{id}"
    project.ingest({"format": "jsonl", "from": [str(tmp_path / "raw/**/*.jsonl")], "source": "cc", "ids": ids})
    return tmp_path / "raw"


def written_raw_index(project: Project, folder: Path) -> int:
    found: int = json.loads(project.ok("export", "--idx", folder, "--json").out)["written"]
    return found


def test_indexes_are_those_of_modalities(project: Project, raw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "indexes"
    assert written_raw_index(project, folder) == 3
    for path in raw.rglob("*.jsonl"):
        lines = path.read_bytes().split(b"\n")
        pairs = [(sum(len(line) + 1 for line in lines[:i]), len(line)) for i, line in enumerate(lines)]
        assert (folder / path.relative_to(raw).with_suffix(".idx")).read_bytes() == pickle.dumps(pairs, 4)
    assert not [*folder.rglob("*.jsonl")]
    one = folder / "2014-41/de/00000.idx"
    for target in (folder, one):
        assert "0 findings" in project.ok("validate", target).out
    one.write_bytes(pickle.dumps([(0, 1)], 4))
    assert f"{one}: line 1 of {raw}/2014-41/de/00000.jsonl: expected (0, " in project("validate", folder).fails(1).out
    assert written_raw_index(project, folder) == 1
    assert written_raw_index(project, folder) == 0
    (folder / "2015-02/fr/00000.idx").unlink()
    assert written_raw_index(project, folder) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"{}\n"), "expected plain lines of JSON, which Modalities reads, got gzip"),
        (b'{"id":"a","text":"t"}\n\n', "00000.jsonl:2: expected JSON, which Modalities asks of each line, got a blank"),
        (b'{"id":"a"', "00000.jsonl:1: expected JSON, which Modalities asks of each line, got"),
        (b"", "expected lines of JSON, got an empty file"),
    ],
)
def test_what_modalities_cannot_read_is_refused(project: Project, raw: Path, content: bytes, message: str) -> None:
    (raw / "2014-41/de/00000.jsonl").write_bytes(content)
    project("export", "--idx", project.root / "indexes").fails(1, message)
    assert not (project.root / "indexes/2014-41/de/00000.idx").exists()
    assert (project.root / "indexes/2014-41/de/00001.idx").exists()
