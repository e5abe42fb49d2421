"""Rows as record batches and as examples of `datasets`: the same values, with types from the schema."""

import importlib.util
import itertools
import json
import pickle
from typing import Any

import pytest

import toolkit
from tests.pipeline.conftest import Project, attributes, document, write_rows
from toolkit.api import dataset as api_rows

pa = pytest.importorskip("pyarrow", reason="record batches need pyarrow")


def test_columns_have_the_declared_types(small: Project, root: str) -> None:
    rows = toolkit.Dataset(root).joined("shape-0")
    reader = rows.to_arrow()
    assert [(field.name, str(field.type)) for field in reader.schema][:6] == [
        ("id", "string"),
        ("source", "string"),
        ("text", "large_string"),
        ("added", "string"),
        ("created", "string"),
        ("metadata", "large_string"),
    ]
    assert str(reader.schema.field("noise").type) == "struct<chars: int64, noise: int64>"
    found = reader.read_all().to_pylist()
    assert [(row["id"], row["text"], row["noise"]) for row in found] == [
        (row.document.id, row.document.text, row["noise"]) for row in rows
    ]
    assert pa.table(rows).num_rows == 12
    assert rows.to_arrow(["noise", "id"]).read_all().column_names == ["noise", "id"]


def test_values_of_all_kinds_come_through(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of another program: their types are inferred."""
    dates = {"added": "2020-01-01", "created": "2019-01-01"}
    rows = [document("1", "ä", **dates, metadata={"a": [1]}), document("2", "b", metadata=None), document("3", "")]
    write_rows(project.documents / "x.jsonl.gz", rows)
    values: list[dict[str, Any]] = [
        {"spans": [[0, 1, 0.5]], "n": 1, "s": None, "mixed": 1, "l": [True], "o": {"k": [[0, 1, 1]]}, "f": 1},
        {"spans": [], "n": 2, "s": "t", "mixed": "x", "l": [], "o": {"k": []}, "f": 0.25},
        {"spans": [], "n": 3, "s": None, "mixed": None, "l": [False], "o": {"k": []}, "f": 2},
    ]
    write_rows(project.attributes / "x" / "x.jsonl.gz", [attributes(str(i), each) for i, each in enumerate(values, 1)])
    monkeypatch.setattr(api_rows, "HELD_ROWS", 2)
    reader = toolkit.Dataset(project.data).joined("x").to_arrow()
    batches = list(reader)
    assert [batch.num_rows for batch in batches] == [2, 1]
    found = pa.Table.from_batches(batches).to_pylist()
    assert [row["spans"] for row in found] == [[{"start": 0, "end": 1, "score": 0.5}], [], []]
    assert [row["mixed"] for row in found] == ["1", '"x"', None]
    assert [row["o"] for row in found][:2] == [{"k": [{"start": 0, "end": 1, "score": 1.0}]}, {"k": []}]
    assert [(row["n"], row["s"], row["l"], row["f"]) for row in found] == [
        (1, None, [True], 1.0), (2, "t", [], 0.25), (3, None, [False], 2.0)]  # fmt: skip
    assert [row["metadata"] and json.loads(row["metadata"]) for row in found] == [{"a": [1]}, None, None]
    assert [row["added"] for row in found] == ["2020-01-01", None, None]


def test_a_number_that_does_not_fit_is_an_error_that_names_the_rows(project: Project) -> None:
    write_rows(project.documents / "x.jsonl.gz", [document("1", "a")])
    write_rows(project.attributes / "x" / "x.jsonl.gz", [attributes("1", {"n": 2**63})])
    with pytest.raises(toolkit.DataError, match=r"x\.jsonl\.gz: expected values of n in rows 1 to 1 that fit"):
        toolkit.Dataset(project.data).joined("x").to_arrow().read_all()


def test_an_error_of_a_row_comes_through_the_reader(small: Project, root: str) -> None:
    (small.attributes / "shape-0" / "b.jsonl.gz").unlink()
    with pytest.raises(toolkit.DataError, match=r"b\.jsonl\.gz"):
        toolkit.Dataset(root).joined("shape-0").to_arrow().read_all()


def test_columns_that_are_not_there_or_twice_are_errors(project: Project, root: str) -> None:
    with pytest.raises(toolkit.ConfigError, match="columns: expected a column, got 'nois'; did you mean 'noise'"):
        toolkit.Dataset(root).joined("shape-0").to_arrow(["nois"])
    write_rows(project.documents / "x.jsonl.gz", [document("1", "a")])
    write_rows(project.attributes / "x" / "x.jsonl.gz", [attributes("1", {"text": 1})])
    rows = toolkit.Dataset(project.data).joined("x", shards=["x.jsonl.gz"])
    with pytest.raises(toolkit.ConfigError, match="the columns of documents, got 'text'; rename it"):
        rows.to_arrow()


@pytest.mark.parametrize(("method", "package"), [("to_arrow", "pyarrow"), ("to_iterable_dataset", "datasets")])
def test_a_missing_package_is_told_with_the_line_that_installs_it(
    method: str, package: str, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(toolkit.MissingExtra, match=f"expected the package {package} .*pip install"):
        getattr(toolkit.Dataset(root).joined("shape-0"), method)()


@pytest.mark.filterwarnings("ignore")  # other people's
@pytest.mark.slow
def test_datasets_share_the_shards_among_workers(root: str) -> None:
    datasets = pytest.importorskip("datasets", reason="an IterableDataset needs the package datasets")
    rows = toolkit.Dataset(root).joined("shape-0", where="line_shape.lines < 3")
    found = rows.to_iterable_dataset()
    assert isinstance(found, datasets.IterableDataset)
    examples = list(found)
    assert [each["id"] for each in examples] == [row.document.id for row in rows]
    assert examples[0]["noise"] == next(iter(rows))["noise"]
    assert set(found.features) == set(examples[0])
    parts = [list(pickle.loads(pickle.dumps(found)).shard(3, i)) for i in range(3)]
    assert sorted(each["id"] for each in itertools.chain(*parts)) == sorted(each["id"] for each in examples)
    assert all(parts)


@pytest.mark.filterwarnings("ignore")
def test_polars_duckdb_and_pandas_read_the_rows(root: str) -> None:
    rows = toolkit.Dataset(root).joined("shape-0")
    long = [row.document.id for row in rows if row["noise"]["chars"] > 20]
    polars = pytest.importorskip("polars", reason="polars is another program")
    assert polars.DataFrame(rows).filter(polars.col("noise").struct["chars"] > 20)["id"].to_list() == long
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is another program")
    table = rows.to_arrow()
    assert duckdb.sql("select id from table_ where noise.chars > 20".replace("table_", "table_of_rows"),
                      connection=_connected(duckdb, table)).fetchall() == [(each,) for each in long]  # fmt: skip


def _connected(duckdb: Any, table: Any) -> Any:
    connection = duckdb.connect()
    connection.register("table_of_rows", table)
    return connection
