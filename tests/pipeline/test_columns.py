"""Columns of Parquet on their way: numbers of 32 bits in rules, and columns that come out as they went in."""

import datetime as dt
import shutil
import struct
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mixers import parquet
from tests.marks import slow
from tests.pipeline.conftest import Project, document, read_rows, record_log, tree, write_rows
from toolkit import Document, Mixed
from toolkit.ingest.input_rows.rows import InputRows
from toolkit.ingest.tables import arrow

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
TEXT = '\x01\x1f\x7f"quoted" back\\slash\ttab ,"text":" 漢字'
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

    project.mixes(
        *[
            {"annotate": f"r{i}", "when": f"{prefix}s is not None and ({ours(condition)})"}
            for i, condition in enumerate(CONDITIONS)
        ],
        attributes=["scores-0"] if where == "attributes" else [],
        parameters={"p": 0.70000001},
    )
    con = duckdb.connect()
    expected = {
        condition: con.execute(f"select count(*) from '{source}' where s is not null and ({sql})").fetchall()[0][0]
        for condition, sql in CONDITIONS.items()
    }
    for options in (["--dry-run"], []):
        found = project.ok("mix", "--json", *options).json["rules"]
        assert dict(zip(CONDITIONS, (rule["documents"] for rule in found), strict=True)) == expected


def _condition(random: Random, prefix: str, depth: int = 2) -> str:
    """A condition on the columns of `_table`, or on a set beside it; what may be null is not compared by size."""
    if depth and random.random() < 0.6:
        left, right = (_condition(random, prefix, depth - 1) for _ in range(2))
        return random.choice([f"({left} and {right})", f"({left} or {right})", f"not ({left})"])
    name, value = random.choice(
        [("f", "0.7"), ("d", "0.3"), ("i", "3"), ("n", "20"), ("s", '"b"'), ("b", "True"), ("c", "5")]
    )
    path = name if name == "c" else prefix + name
    sizes = [f"({path} is not None and {path} {sign} {value})" for sign in ("<", ">=")] if name != "b" else []
    of_text = [f'({path} is not None and startswith(lower({path}), "b"))'] if name == "s" else []
    more = [f"{path} is None", f"{path} == {value}", f"{path} != {value}", f"{path} in [{value}]", "document.chars > 9"]
    return random.choice([*sizes, *of_text, *more])


def _table(random: Random, rows: int) -> Any:
    def some(*values: Any) -> list[Any]:
        return [random.choice([None, *values]) for _ in range(rows)]

    return pa.table(
        {
            "id": [None if random.random() < 0.1 else f"id-{i}" for i in range(rows)],
            "text": [random.choice(["", "two\r\nlines", "ä 𝄞 \\u0041", "words " * 4, TEXT]) for _ in range(rows)],
            "f": pa.array(some(0.7, 0.1, float("nan"), float("inf")), pa.float32()),
            "d": pa.array(some(0.3, 0.1, float("nan"), 1e300), pa.float64()),
            "i": pa.array(some(3, -1, 2**62), pa.int64()),
            "n": pa.array([random.choice([1, 20, 2**60]) for _ in range(rows)], pa.uint64()),
            "s": pa.array(some("a", "B", "b", ""), random.choice([pa.string(), pa.dictionary(pa.int8(), pa.string())])),
            "b": pa.array(some(True, False), pa.bool_()),
            "l": pa.array(some([1.5, None], []), pa.list_(pa.float64())),
            "t": pa.array(some(0, 1577836800123456789), pa.timestamp("ns")),
            "u": pa.array(some("é", "𝄞x", ""), pa.large_string()),
        }
    )


class Loud(parquet.Parquet):
    """A format with an `encode` of its own."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        return super().encode(document.with_text(document.text.upper()), mixed)


class Silent(parquet.Parquet):
    """A format that says that it copies the text, and does not."""

    def copies_text(self) -> bool:
        return True

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        return [("documents", b'{"id":"a"}\n')]


def test_a_format_that_says_wrongly_that_it_copies_the_text_is_told(project: Project) -> None:
    pq.write_table(pa.table({"id": ["a"], "text": [TEXT]}), project.root / "a.parquet")
    project.config["documents"] = {"format": "parquet", "source": "own", "path": str(project.root / "a.parquet")}
    project.mixes({"drop": "document.chars < 2"}, format=f"{__file__}:Silent")
    project("mix").fails(1, "in pieces of a format that copies the text (`copies_text`), got one without it")


def test_a_format_that_extends_another_one_sees_texts(project: Project) -> None:
    pq.write_table(pa.table({"id": ["a"], "text": [TEXT]}), project.root / "a.parquet")
    project.config["documents"] = {"format": "parquet", "source": "own", "path": str(project.root / "a.parquet")}
    project.mixes({"drop": "document.chars < 2"}, format=f"{__file__}:Loud")
    project.ok("mix")
    assert pq.read_table(project.out / "documents.parquet")["text"].to_pylist() == [TEXT.upper()]


def test_a_fault_is_told_and_no_rule_sees_an_empty_text(project: Project) -> None:
    """Rows before a faulty one are looked at one by one, with their texts."""
    pq.write_table(pa.table({"id": list("abcd"), "text": ["x"] * 4}), project.root / "a.parquet", row_group_size=2)
    project.config["documents"] = {"format": "parquet", "source": "own", "path": str(project.root / "a.parquet")}
    rows = [{"id": id, "source": "own", "attributes": {"c": 1}} for id in ("a", "b", "wrong", "d")]
    write_rows(project.attributes / "c-0" / "a.parquet.jsonl.gz", rows)
    project.mixes({"drop": "9 / document.chars > 10"}, attributes=["c-0"], format="parquet")
    assert "got those of 'wrong' from 'own'" in project("mix").err


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_rules_decide_over_columns_as_over_rows(seed: int, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    random, rest = Random(seed), seed % 2
    prefix = "metadata." if rest else "document."
    made = _table(random, 300)
    pq.write_table(made, project.root / "a.parquet", row_group_size=70)
    project.config["documents"] = {"format": "parquet", "source": "own", "path": str(project.root / "a.parquet")}
    project.config["documents"] |= {"metadata": "rest"} if rest else {}
    ids = [id or f"a.parquet:{i}" for i, id in enumerate(made["id"].to_pylist(), 1)]
    rows = [{"id": id, "source": "own", "attributes": {"c": random.choice([1, 5, 9])}} for id in ids]
    write_rows(project.attributes / "c-0" / "a.parquet.jsonl.gz", rows)
    kinds = ["drop", "drop", "keep", "annotate"]
    rules = [
        {"annotate": f"r{i}", "when": condition} if (kind := random.choice(kinds)) == "annotate" else {kind: condition}
        for i, condition in enumerate(_condition(random, prefix) for _ in range(5))
    ]
    label = f"{prefix}s if {prefix}s is not None and {prefix}s != '' else 'none'"
    form = "dolma" if seed % 5 == 1 else "parquet"
    project.mixes(*rules, attributes=["c-0"], label=label, format=form, unicode_words=True, allow_empty=True)
    monkeypatch.setattr(arrow, "HELD", 1000)
    found = []
    for of_table in (InputRows._of_table, lambda *_: None):
        monkeypatch.setattr(InputRows, "_of_table", of_table)
        told = project.ok("mix", "--json").json
        logs = [record_log(path) for path in (project.data / ".toolkit/record-log").iterdir() if path.is_file()]
        states = [state for log in logs for key, state in log.items() if key.startswith("rows ")]
        index = tree(project.data / ".toolkit/rows"), states
        assert states
        manifest = (project.out / ".toolkit/manifest.json").read_text()
        found.append((told.pop("rules"), told, tree(project.out), manifest, index))
        shutil.rmtree(project.out)
        shutil.rmtree(project.data / ".toolkit")
    assert found[0] == found[1]
    assert sum(rule["documents"] for rule in found[0][0])


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
    project.ingest({"format": "parquet", "source": "own", "from": [str(project.root / "*.parquet")]}).succeeds()
    rows = read_rows(project.documents / "own/a.jsonl.gz")
    assert [(row["metadata"], row["own"]) for row in rows] == [({"a": 1}, 1), ({"a": 2}, None)]


# --- Parquet in, Parquet out ------------------------------------------------------------------------------------------

UTC = dt.UTC
MOMENT = dt.datetime(2020, 1, 1, 1, 2, 3, 456789, tzinfo=UTC)
DEEP = pa.struct({"a": pa.int16(), "in": pa.struct({"x": pa.list_(pa.float32())})})
COLUMNS: dict[str, tuple[list[Any], Any]] = {
    "url": (["http://a.org", None], pa.string()),
    "lang": (["en", "de", None], pa.dictionary(pa.int32(), pa.string())),
    "score": ([0.1, None, 0.7], pa.float32()),
    "half": ([0.0999755859375, None], pa.float16()),
    "f64": ([0.1, 1e300, -0.0], pa.float64()),
    "u64": ([2**64 - 1, None], pa.uint64()),
    "i8": ([-128, None], pa.int8()),
    "flag": ([True, None, False], pa.bool_()),
    "day": ([dt.date(2020, 1, 1), None], pa.date32()),
    "zone": ([MOMENT, None], pa.timestamp("us", "Europe/Berlin")),
    "ns": ([1577836800123456789, None, -1], pa.timestamp("ns")),
    "ms": ([-315615476544], pa.timestamp("ms")),
    "far": ([-(10**17), 2**62, None, -62167219200000001], pa.timestamp("us")),
    "far_zone": ([-(10**15), 10**15], pa.timestamp("ms", "Europe/Berlin")),
    "far_days": ([-719529, 4 * 10**6, None, -719163], pa.date32()),
    "far_span": ([2**62, -(2**62) - 1], pa.duration("ms")),
    "far_list": ([[-(10**12), 1], None], pa.list_(pa.timestamp("s"))),
    "time": ([dt.time(1, 2, 3, 4), None], pa.time64("us")),
    "span": ([dt.timedelta(days=-1, microseconds=3), None], pa.duration("us")),
    "price": ([Decimal("1.50"), Decimal("-0.01"), None], pa.decimal128(12, 2)),
    "wide": ([Decimal("1" * 40)], pa.decimal256(50, 3)),
    "large": (["\u00fc", None], pa.large_string()),
    "bytes": ([b"\x00\xff", None], pa.binary()),
    "four": ([b"abcd", None], pa.binary(4)),
    "lists": ([[["a", None], []], None, [None]], pa.list_(pa.list_(pa.string()))),
    "flags": ([[True, None], [], None], pa.list_(pa.bool_())),
    "empty": ([[]], pa.list_(pa.list_(pa.bool_()))),
    "vector": ([[0.1, 0.2], None], pa.list_(pa.float32(), 2)),
    "deep": ([{"a": 1, "in": {"x": [0.1, None]}}, None, {"a": None, "in": None}], DEEP),
    "map": ([[("k", 1), ("j", None)], None, []], pa.map_(pa.string(), pa.int32())),
    "numbered": ([[(1, "a")], None], pa.map_(pa.int32(), pa.string())),
    "nothing": ([None], pa.null()),
    "no_values": ([None], pa.float32()),
    "label": ([1, None], pa.int64()),
    "prob": (["a", None], pa.string()),
    "created": ([MOMENT, None], pa.timestamp("us", "UTC")),
}
ROWS = 6


def table_of(names: list[str]) -> Any:
    ids = pa.array(range(10, 10 + ROWS), pa.int64())
    columns = {"id": ids, "text": [f"text {i}" for i in range(ROWS)], "source": ["a", "b"] * (ROWS // 2)}
    arrays = {name: pa.array((COLUMNS[name][0] * ROWS)[:ROWS], COLUMNS[name][1]) for name in names}
    return pa.table(columns | arrays)


def read_back(out: Path) -> Any:
    return pa.concat_tables(pq.read_table(path) for path in sorted(out.rglob("*.parquet")))


@pytest.mark.parametrize(
    ("metadata", "way"),
    [
        ("own columns", "in place"),
        ("a struct", "ingested"),
        ("gathered", "ingested"),
        *slow(
            ("own columns", "step by step"),
            ("own columns", "ingested"),
            ("a struct", "in place"),
            ("gathered", "in place"),
        ),
    ],
)
def test_columns_come_out_as_they_went_in(metadata: str, way: str, project: Project) -> None:
    table = table_of(list(COLUMNS))
    inside = ["url", "score", "deep", "ns"]
    if metadata == "a struct":
        nulls = pa.array([i == 2 for i in range(ROWS)])
        arrays = [table[name].combine_chunks() for name in inside]
        struct_ = pa.StructArray.from_arrays(arrays, inside, mask=nulls)
        table = table.drop_columns(inside).append_column("metadata", struct_)
    for number, part in enumerate((table.slice(0, 2), table.slice(2))):
        pq.write_table(part, project.root / f"{number}.parquet")
    table = read_back(project.root)
    options: dict[str, Any] = {"format": "parquet", "source": "own"}
    options |= {"metadata": inside} if metadata == "gathered" else {}
    pattern = str(project.root / "*.parquet")
    project.config |= (
        {"documents": {**options, "path": pattern}}
        if way == "in place"
        else {"ingest": [{**options, "from": [pattern]}]}
    )
    output = {"format": "parquet", "path": str(project.out), "part_size": 500}
    project.config["mix"] = {"attributes": [], "rules": [], "output": output}
    if way == "step by step":
        project.ok("ingest")
    found = project.ok("mix" if way != "ingested" else "run", "--json").json
    assert (found["mix"] if way == "ingested" else found)["not_carried"] == {}
    out = read_back(project.out)
    assert len(list(project.out.glob("*.parquet"))) > 1
    if metadata == "gathered":
        struct_ = out["metadata"].combine_chunks()
        for name in inside:
            out = out.append_column(name, struct_.field(name))
    names = [name for name in table.column_names if name != "text"]
    assert {name: str(out[name].type) for name in names} == {name: str(table[name].type) for name in names}
    for name in names:
        assert out[name].combine_chunks().equals(table[name].combine_chunks()), name
    assert project.run("validate", str(project.out)).code == 0


@pytest.mark.parametrize(("one", "found"), [(pa.int16(), "large_string"), (pa.null(), "int32")], ids=str)
def test_a_column_of_two_types_has_one_that_holds_both(project: Project, one: Any, found: str) -> None:
    """Where none of Arrow's does without change, JSON as text."""
    for name, values in (("a", pa.nulls(1, one)), ("b", pa.array([1], pa.int32()))):
        pq.write_table(pa.table({"text": ["x"], "n": values}), project.root / f"{name}.parquet")
    project.ingest({"format": "parquet", "source": "own", "from": [str(project.root / "*.parquet")]}).succeeds()
    project.mixes(attributes=[], format="parquet")
    project.ok("mix")
    assert str(read_back(project.out)["n"].type) == found


@pytest.mark.parametrize("in_place", [False, True])
def test_numbers_that_json_does_not_have_are_null_and_their_columns_are_named(
    project: Project, *, in_place: bool
) -> None:
    """In the dry run, the mix, its JSON and the report; those in lists need no `typed`, whatever row they are in."""
    nan = float("nan")
    columns = {"id": ["a", "b"], "text": ["x", "y"], "s": [1.0, nan], "n": [None, 1.0], "l": [[0.5, nan], [-nan]]}
    pq.write_table(pa.table(columns), project.root / "t.parquet")
    options = {"format": "parquet", "source": "own", "typed": {"s": "float"}}
    place = str(project.root / "t.parquet")
    output = {"format": "parquet", "path": str(project.out)}
    project.config["mix"] = {"attributes": [], "rules": [{"drop": "document.n is None"}], "output": output}
    counts = {"not_finite.l": 2, "not_finite.s": 1}
    told = "2 numbers of l that JSON does not have (NaN, infinite) and that became null, 1 number of s"
    if in_place:
        project.config["documents"] = {**options, "path": place}
        assert project.ok("mix", "--dry-run", "--json").json["read_in_place"] == counts
        assert told in project.ok("mix").out
        assert project.ok("mix", "--json").json["read_in_place"] == counts
    else:
        project.config["ingest"] = [{**options, "from": [place]}]
        assert "1 number of s that JSON does not have" in project.ok("ingest", "--dry-run").out
        assert project.ok("run", "--json").json["ingest"]["counts"] == {"documents": 2, **counts}
    assert read_back(project.out).select(["s", "n", "l"]).to_pylist() == [{"s": None, "n": 1.0, "l": [None]}]
    assert told in project.ok("report", "-o", project.root / "report.html").out


def test_fields_that_a_mix_adds_stand_in_the_struct(project: Project) -> None:
    pq.write_table(table_of(["score", "ns"]), project.root / "a.parquet")
    project.ingest({**OPTIONS, "from": [str(project.root / "*.parquet")]})
    project.mixes({"set": "kind", "to": "document.chars"}, {"repeat": 2}, attributes=[], format="parquet")
    project.ok("mix")
    rows = read_back(project.out)["metadata"].to_pylist()
    assert [row["copy"] for row in rows] == [1, 2] * ROWS
    assert {row["kind"] for row in rows} == {"6"}
    assert read_back(project.out)["metadata"].type.field("score").type == pa.float32()


def test_own_fields_of_json_have_columns(project: Project) -> None:
    more = {**document("2", "b", mixed={"a": 2}, annotation="mine"), "a.b": 1}
    rows = [document("1", "a", url="u", n=1, mixed=[1]), more]
    write_rows(project.root / "a.jsonl", rows)
    project.ingest({"format": "jsonl", "from": [str(project.root / "a.jsonl")]})
    output = {"format": "parquet", "path": str(project.out)}
    project.config["mix"] = {"attributes": [], "rules": [], "output": output}
    assert project.ok("mix", "--json").json["not_carried"] == {"annotation": 1}
    found = read_back(project.out).to_pylist()
    assert [row["a.b"] for row in found] == [None, 1]
    assert [(row["url"], row["n"], row["mixed"]) for row in found] == [("u", 1, "[1]"), (None, None, '{"a":2}')]
