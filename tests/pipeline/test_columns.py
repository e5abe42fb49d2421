"""Columns of Parquet on their way: numbers of 32 bits in rules, and columns that come out as they went in."""

import struct
from typing import Any

import pytest

from tests.pipeline.conftest import Project, document, read_rows, write_rows

pa = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
duckdb = pytest.importorskip("duckdb", reason="it compares the same columns")

SCORES = [0.7, 0.7000001, 0.69999, 0.13899999856948853, 0.2, None, 16777216.0, 1e-40, 1.5]
CONDITIONS = {
    "s >= 0.7": "s >= 0.7",
    "s > 0.7": "s > 0.7",
    "0.7 <= s": "0.7 <= s",
    "not s < 0.7": "not s < 0.7",
    "s == 0.7": "s = 0.7",
    "s != 0.7": "s != 0.7",
    "s in [0.7, 0.139]": "s in (0.7, 0.139)",
    "s not in [0.7, 0.139]": "s not in (0.7, 0.139)",
    "0.13 < s <= 0.7": "0.13 < s and s <= 0.7",
    "s > 0.69999999": "s > 0.69999999",
    "s == 16777217": "s = 16777217",
    "s >= d": "s >= d",
    "d == s": "d = s",
    "0.2 <= s <= d": "0.2 <= s and s <= d",
    "0.25 in l and 0.7 in l": "list_contains(l, 0.25::FLOAT) and list_contains(l, 0.7::FLOAT)",
    "(s if s > 1 else 0.7) == 0.7": "(case when s > 1 then s else 0.7 end) = 0.7",
    "max(s, 0.7) == 0.7": "greatest(s, 0.7) = 0.7",
    "s >= p": "s >= 0.70000001",
}
OPTIONS = {"format": "parquet", "source": "own", "metadata": "rest"}


@pytest.mark.parametrize("where", ["ingested", "in place", "attributes"])
def test_a_float32_is_compared_as_duckdb_compares_it(where: str, project: Project) -> None:
    source, names = project.root / "scores.parquet", [str(i) for i in range(len(SCORES))]
    columns = {
        "id": names,
        "text": names,
        "s": pa.array(SCORES, pa.float32()),
        "d": pa.array([0.7] * len(SCORES), pa.float64()),
        "l": pa.array([[each or 0.0, 0.25] for each in SCORES], pa.list_(pa.float32())),
    }
    pq.write_table(pa.table(columns), source)
    if where == "ingested":
        project.ingest({**OPTIONS, "from": [str(source)]})
    elif where == "in place":
        project.config["documents"] = {**OPTIONS, "path": str(source)}
    else:
        write_rows(project.documents / "scores.jsonl.gz", [document(each, each, source="own") for each in names])
        folder = project.attributes / "scores-0"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({name: columns[name] for name in columns if name != "text"}), folder / "scores.parquet")
    prefix = "" if where == "attributes" else "metadata."

    def ours(condition: str) -> str:
        words = condition.replace("(", "( ").replace(",", " ,").split(" ")
        return " ".join(f"{prefix}{word}" if word in ("s", "d", "l") else word for word in words)

    project.config["mix"] = {
        "attributes": ["scores-0"] if where == "attributes" else [],
        "parameters": {"p": 0.70000001},
        "rules": [
            {"annotate": f"r{i}", "when": f"{prefix}s is not None and ({ours(condition)})"}
            for i, condition in enumerate(CONDITIONS)
        ],
        "output": {"format": "dolma", "path": str(project.out)},
    }
    con = duckdb.connect()
    expected = {
        condition: con.execute(f"select count(*) from '{source}' where s is not null and ({sql})").fetchall()[0][0]
        for condition, sql in CONDITIONS.items()
    }
    for options in (["--dry-run"], []):
        found = project.ok("mix", "--json", *options).json["rules"]
        assert dict(zip(CONDITIONS, (rule["documents"] for rule in found), strict=True)) == expected


def test_a_float32_is_written_with_the_fewest_digits(project: Project) -> None:
    values = [0.1, 0.13899999856948853, 1e-45, 3.4028234663852886e38, -0.0, 16777217.0]
    half = pa.array([0.5, 0.1, None, 1.5, 2.0, 3.0], pa.float16())
    columns = {"text": list("abcdef"), "s": pa.array(values, pa.float32()), "h": half}
    columns["in"] = pa.array([{"deep": [each, None]} for each in values], pa.struct({"deep": pa.list_(pa.float32())}))
    pq.write_table(pa.table(columns), project.root / "a.parquet")
    project.ingest({**OPTIONS, "from": [str(project.root / "*.parquet")]})
    rows = read_rows(project.documents / "own/a.jsonl.gz")
    assert [row["metadata"]["s"] for row in rows] == [0.1, 0.139, 1e-45, 3.4028235e38, 0.0, 16777216.0]
    assert [row["metadata"]["in"]["deep"] for row in rows][:2] == [[0.1, None], [0.139, None]]
    for name, array in (("s", columns["s"]), ("h", half)):
        packed = [None if each is None else struct.pack("f", each) for each in array.to_pylist()]
        found = (row["metadata"][name] for row in rows)
        assert [None if each is None else struct.pack("f", each) for each in found] == packed


def test_nulls_in_an_own_column_beside_a_struct_without_nulls(project: Project) -> None:
    columns: dict[str, Any] = {"text": ["one", "two"], "own": [1, None], "metadata": [{"a": 1}, {"a": 2}]}
    pq.write_table(pa.table(columns), project.root / "a.parquet")
    ran = project.ingest({"format": "parquet", "source": "own", "from": [str(project.root / "*.parquet")]})
    assert ran.code == 0, ran.err
    rows = read_rows(project.documents / "own/a.jsonl.gz")
    assert [(row["metadata"], row["own"]) for row in rows] == [({"a": 1}, 1), ({"a": 2}, None)]
