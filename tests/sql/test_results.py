"""Results: formats, errors with their place, and documents that want to harm whoever looks at them."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.conftest import Project, document, write_rows
from toolkit.sql import printing
from toolkit.sql.session import ResultColumn, query_error

HOSTILE = [
    "\x1b]0;title\x07\x1b[2J",
    "\u202eevil\u2066",
    "a\nb\tc\r\0",
    "=HYPERLINK(\"http://example.org\")",
    "+1", "-1", "@SUM(A1)", "\t=1", "'=1",
    "<script>alert(1)</script> [x](javascript:alert(1)) | `a` *b*",
    "x" * (1 << 20),
    "表" * 400,
]  # fmt: skip


@pytest.fixture
def hostile(project: Project) -> Project:
    rows = [document(str(i), text, metadata={"k": text}) for i, text in enumerate(HOSTILE)]
    write_rows(project.documents / "x.jsonl.gz", rows)
    return project


def test_nothing_of_a_document_reaches_the_terminal(hostile: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ran = hostile.ok(
        "sql", "SELECT id, text, metadata, [text] AS l, {'a': text} AS s, text AS \"a\x1b[1m\" FROM documents"
    )
    assert all(c.isprintable() or c == "\n" for c in ran.out)
    assert max(map(len, ran.out.splitlines())) <= 100
    errors = hostile("sql", "SELECT error(text) FROM documents WHERE id = '0'").fails(1)
    assert all(c.isprintable() or c == "\n" for c in errors.err)


@pytest.fixture
def long_fields() -> Iterator[None]:
    before = csv.field_size_limit(2 << 20)
    yield
    csv.field_size_limit(before)


@pytest.mark.usefixtures("long_fields")
def test_cells_that_spreadsheets_would_run_are_texts_in_csv(hostile: Project, tmp_path: Path) -> None:
    sql = (
        "SELECT id::INT - 5 AS number, -1.5 AS decimal, INTERVAL '-1 day' AS before, text, [text] AS list "
        "FROM documents ORDER BY id::INT"
    )
    ran = hostile.ok("sql", sql, "--output", tmp_path / "x.csv")
    assert "warning: 5 cells begin as formulas and have an apostrophe before it" in ran.err
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"][:1] for row in rows[3:9]] == ["'"] * 6
    assert [row["text"].removeprefix("'") for row in rows[3:8]] == HOSTILE[3:8]
    assert (rows[0]["number"], rows[0]["decimal"]) == ("-5", "-1.5")  # a number is none
    assert rows[0]["before"].startswith("-1 day")
    assert [json.loads(row["list"]) for row in rows] == [[text] for text in HOSTILE]
    exact = hostile.ok("sql", "SELECT text FROM documents ORDER BY id::INT", "--format", "csv", "--formulas")
    assert [row[0] for row in csv.reader(io.StringIO(exact.out, newline=""))][1:] == HOSTILE


@pytest.mark.slow
def test_formats_give_the_same_values(hostile: Project, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    sql = "SELECT id, text, metadata, 2::HUGEINT ** 70 AS big, MAP {1: 2.5} AS m, DATE '2020-01-01' AS d FROM documents"
    for name in ("x.json", "x.jsonl", "x.parquet", "x.md"):
        said = hostile.ok("sql", sql, "--output", tmp_path / name)
        assert said.out == f"{len(HOSTILE)} rows -> {tmp_path / name}\n"
    listed = json.loads((tmp_path / "x.json").read_bytes())
    assert [json.loads(line) for line in (tmp_path / "x.jsonl").read_bytes().splitlines()] == listed
    assert [(row["text"], row["metadata"]) for row in listed] == [(text, {"k": text}) for text in HOSTILE]
    assert pq.read_table(tmp_path / "x.parquet").column("text").to_pylist() == HOSTILE
    assert "<script>" not in (tmp_path / "x.md").read_text()
    assert (tmp_path / "x.md").read_text().count("\n") == len(HOSTILE) + 2
    ran = hostile.ok("sql", "SELECT 1 AS a, 2 AS a, NULL AS n, 'NaN'::DOUBLE AS f", "--json")
    assert ran.json["rows"] == [{"a": 1, "a_2": 2, "n": None, "f": None}]


def test_a_file_appears_whole_or_not_at_all(hostile: Project, tmp_path: Path) -> None:
    target = tmp_path / "x.jsonl"
    target.write_text("before")
    ran = hostile("sql", "SELECT CASE WHEN id = '11' THEN error('stop') ELSE id END FROM documents", "--output", target)
    assert (ran.code, ran.err) == (1, "error: sql: Invalid Input Error: stop\n")
    assert target.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["config.yaml", "data", "x.jsonl"]


def test_the_place_is_that_in_a_long_line() -> None:
    sql = "SELECT " + ", ".join(f"column_{i}" for i in range(50)) + ", foo FROM x"
    at = sql.index("foo")
    cut = "..." + sql[at - 40 : at + 10]
    said = f"Binder Error: no foo\n\nLINE 1: {cut}\n        {' ' * 43}^^^"
    assert str(query_error(said, sql, [])).startswith(f"sql:1:{at + 1}: Binder Error: no foo")


def test_a_query_that_needs_more_memory_goes_to_disk_and_leaves_nothing(
    hostile: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    rows = "SELECT row_number() OVER (ORDER BY hash(range)) AS n, repeat('y', 90) || range AS y FROM range(900000)"
    sql = f"SELECT count(*) AS n FROM ({rows}) WHERE n % 2 = 0 AND y LIKE 'y%'"
    ran = hostile.ok("sql", sql, "--memory", "60 MB", "--json")
    assert ran.json["rows"] == [{"n": 450000}]
    assert list((tmp_path / "spill").iterdir()) == []


def test_a_table_is_cut_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    columns = [ResultColumn("n", "BIGINT"), ResultColumn("text", "VARCHAR"), ResultColumn("other", "VARCHAR")]
    shown = printing.table(columns, [(1, "a" * 50, "b" * 50), (100, None, "é")]).splitlines()
    assert shown[0].split() == ["n", "text", "other"]
    assert [len(line) <= 40 for line in shown] == [True] * 4
    assert shown[2].startswith("  1  aaaa")
    assert "…" in shown[2]


@pytest.mark.slow
def test_the_end_of_a_process_says_nothing(small: Project) -> None:
    """DuckDB complains if its types outlive the interpreter, as what tasks have frozen would."""
    small.config |= {"executor": {"type": "in_process"}, "tag": {"new-0": ["noise"]}}
    code = f"import duckdb; from toolkit import cli; cli.main(['tag', '-c', {str(small.yaml)!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "leaked" not in done.stderr
