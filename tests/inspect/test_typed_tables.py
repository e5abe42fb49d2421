"""Cards and Croissant of Parquet outputs that keep the columns of their input."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Run
from tests.inspect.conftest import ABOUT
from tests.inspect.reading import load, record_sets
from tests.inspect.test_targets import ok
from toolkit.data.schema import ANY, FLOAT, INT, NEVER, NULL, SPANS, STR, Type, list_of, nullable
from toolkit.describe.fields import KEYS, completed, fields_of, merged
from toolkit.ingest.folders import NAMES

pa: Any = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
pq: Any = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # pandas and rdflib have many

_DAY = dt.datetime.fromisoformat("2024-05-18T01:58:10")
_METADATA = {
    "url": "https://example.org/1",
    "n": 7,
    "deep": {"shares": [0.5, 0.25], "er": {"at": _DAY}},
    "tags": ["x", "ü"],
    "heads": [{"name": "h", "value": 1}, {"name": None, "value": 2}],
}
_METADATA_TYPE = pa.struct(
    {
        "url": pa.string(),
        "n": pa.int32(),
        "deep": pa.struct({"shares": pa.list_(pa.float32()), "er": pa.struct({"at": pa.timestamp("us")})}),
        "tags": pa.list_(pa.string()),
        "heads": pa.list_(pa.struct({"name": pa.string(), "value": pa.int64()})),
    }
)
_COLUMNS: dict[str, tuple[Any, list[Any], str | None, list[Any]]] = {
    "score": (pa.float32(), [0.5, None], "sc:Float", [0.5, None]),
    "day": (pa.date32(), [dt.date(9999, 12, 31), None], "sc:Date", [dt.datetime.fromisoformat("9999-12-31"), None]),
    "seen": (pa.timestamp("ms", "UTC"), [_DAY, None], "sc:DateTime", [_DAY.replace(tzinfo=dt.UTC), None]),
    "clock": (pa.time64("us"), [dt.time(1, 2, 3), None], "sc:Time", [dt.time(1, 2, 3), None]),
    "price": (pa.decimal128(9, 2), [Decimal("1.50"), None], "sc:Float", [1.5, None]),
    "kind": (pa.dictionary(pa.int32(), pa.string()), ["a", "b"], "sc:Text", [b"a", b"b"]),
    "flag": (pa.bool_(), [True, None], "sc:Boolean", [True, None]),
    "large": (pa.uint64(), [2**64 - 1, 0], "sc:Integer", [2**64 - 1, 0]),
    "vector": (pa.list_(pa.float32(), 2), [[1.0, 2.0], [3.0, 4.0]], "sc:Float", [[1.0, 2.0], [3.0, 4.0]]),
    "days": (
        pa.list_(pa.date32()),
        [[dt.date(2024, 1, 1)], []],
        "sc:Date",
        [[dt.datetime.fromisoformat("2024-01-01")], []],
    ),
    "row": (pa.int64(), [3, 4], "sc:Integer", [3, 4]),
    "a b.c": (pa.string(), ["x", "y"], "sc:Text", [b"x", b"y"]),
    "raw": (pa.binary(), [b"\xff", None], None, []),
    "took": (pa.duration("us"), [dt.timedelta(1), None], None, []),
    "counts": (pa.map_(pa.string(), pa.int64()), [[("k", 1)], None], None, []),
    "never": (pa.null(), [None, None], None, []),
}
"""Columns: type, values, type in Croissant (none has no words for it), and the values that its reader gives."""

_UNDESCRIBED = {
    "raw": "Croissant has no type for bytes",
    "took": "Croissant has no type for durations",
    "counts": "its keys are not fixed",
    "never": "it never has a value",
}


@pytest.fixture
def out(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The output of the configuration that `init` writes for a table, with all its columns."""
    monkeypatch.chdir(tmp_path)
    columns = {"id": pa.array(["1", "2"]), "text": pa.array(["one", "two"])}
    columns |= {name: pa.array(values, type_) for name, (type_, values, _, _) in _COLUMNS.items()}
    pq.write_table(pa.table(columns | {"metadata": pa.array([_METADATA, None], _METADATA_TYPE)}), "in.parquet")
    ok(run("init", "--from", "in.parquet", "-o", "c.yaml"))
    config = yaml.safe_load(Path("c.yaml").read_text())
    config = {key: config[key] for key in ("dataset", "ingest")} | {"about": ABOUT}
    config["mix"] = {"output": {"format": "parquet", "path": "out"}}
    Path("c.yaml").write_text(yaml.safe_dump(config))
    ok(run("run", "-c", "c.yaml"))
    return tmp_path / "out"


@pytest.mark.slow
def test_every_column_of_a_typed_output_is_described_and_read(out: Path, run: Run) -> None:
    ok(run("croissant", "-c", "c.yaml"))
    (record,) = record_sets(out / "croissant.json").values()
    fields = {each["name"]: each for each in record["field"]}
    names = pq.read_schema(out / "documents.parquet").names
    assert {*names} - {*fields} == {*_UNDESCRIBED}
    assert all(f"{name} ({why})" in record["description"] for name, why in _UNDESCRIBED.items())
    assert {name: fields[name]["dataType"] for name in fields.keys() & _COLUMNS} == {
        name: kind for name, (_, _, kind, _) in _COLUMNS.items() if kind
    }
    inner = {name: [each["name"] for each in fields[name]["subField"]] for name in fields if "metadata" in name}
    assert inner == {
        "metadata": ["url", "n", "tags"],
        "metadata.deep": ["shares"],
        "metadata.deep.er": ["at"],
        "metadata.heads": ["name", "value"],
    }
    pytest.importorskip("mlcroissant")
    read = list(load(out / "croissant.json").records("documents"))
    for name, (_, _, kind, values) in _COLUMNS.items():
        if kind:
            id_ = fields[name]["@id"]
            assert [each[id_] for each in read] == values, name
    first, second = ({key: each[key] for key in each if "metadata" in key} for each in read)
    assert first == {
        "documents/metadata": {
            "documents/metadata/url": b"https://example.org/1",
            "documents/metadata/n": 7,
            "documents/metadata/tags": [b"x", "ü".encode()],
        },
        "documents/metadata.deep": {"documents/metadata.deep/shares": [0.5, 0.25]},
        "documents/metadata.deep.er": {"documents/metadata.deep.er/at": _DAY},
        "documents/metadata.heads": [
            {"documents/metadata.heads/name": b"h", "documents/metadata.heads/value": 1},
            {"documents/metadata.heads/name": None, "documents/metadata.heads/value": 2},
        ],
    }
    assert json.dumps(second).count("null") == 7
    ok(run("validate", out / "croissant.json"))


@pytest.mark.slow
def test_the_card_has_a_row_for_each_column_and_field(out: Path, run: Run) -> None:
    ok(run("card", "-c", "c.yaml"))
    rows = [line.split("|") for line in (out / "README.md").read_text().split("\n") if line.startswith("| `")]
    types = {row[1].strip(" `"): row[2].strip() for row in rows}
    assert {*pq.read_schema(out / "documents.parquet").names} <= {*types}
    shown = ("text", "score", "day", "seen", "price", "raw", "took", "metadata.deep.er.at")
    assert [types[name] for name in shown] == [
        "text", "number, or null", "date, or null", "time, or null", "decimal number, or null", "bytes, or null",
        "duration, or null", "time, or null",
    ]  # fmt: skip
    assert types["metadata.heads.value"] == "integer, or null"


# From types of rows to fields.


def object_(**fields: Type) -> Type:
    return Type("object", fields=tuple(fields.items()))


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        (INT, FLOAT, FLOAT),
        (INT, STR, ANY),
        (NULL, INT, nullable(INT)),
        (nullable(INT), FLOAT, nullable(FLOAT)),
        (Type("datetime"), Type("datetime"), Type("datetime")),
        (Type("datetime"), STR, STR),
        (list_of(NEVER), list_of(STR), list_of(STR)),
        (object_(a=INT), object_(b=STR), object_(a=nullable(INT), b=nullable(STR))),
        (object_(a=INT), NULL, nullable(object_(a=INT))),
        (object_(a=INT), object_(**{f"k{i}": INT for i in range(KEYS)}), Type("map", ANY)),
    ],
)
def test_types_of_two_rows_are_merged(a: Type, b: Type, both: Type) -> None:
    assert merged(a, b) == both
    assert {str(merged(b, a)), str(both)} <= {str(both), str(object_(b=nullable(STR), a=nullable(INT)))}


def test_what_lies_deeper_is_lifted_out() -> None:
    prediction = object_(label=STR, prob=FLOAT)
    types = {
        "x": object_(n=INT, inner=prediction, lines=list_of(nullable(prediction)), spans=SPANS, m=Type("map", INT))
    }
    fields, undescribed = fields_of(types.items())
    assert [(field.name, field.keys, str(field.type)) for field in fields] == [
        ("x", (), "{n: int}"),
        ("x.inner", ("inner",), "{label: str, prob: float}"),
        ("x.lines", ("lines",), "list[{label: str, prob: float}]"),
        ("x.spans", ("spans",), "list[span]"),
    ]
    assert [each.name for each in undescribed] == ["x.m"]


def test_a_name_is_given_once() -> None:
    types = [("id", STR), ("a", object_(id=INT, b=STR, file=STR)), ("a.b", INT)]
    fields, _ = fields_of(types, opened=("a",), places=("file",))
    assert [(field.name, field.column) for field in fields] == [
        ("id", "id"),
        ("a.id", "a"),
        ("b", "a"),
        ("a.file", "a"),
        ("a.b", "a.b"),
    ]
    fields, undescribed = fields_of([("x", object_(y=object_(z=INT))), ("x.y", INT)])
    assert [field.column for field in fields] == ["x"]
    assert [(each.name, each.why) for each in undescribed] == [("x.y", "another field has this name")]


def test_declared_maps_have_the_keys_that_were_seen() -> None:
    declared = object_(headers=Type("map", STR), none=nullable(list_of(STR)))
    seen = object_(headers=object_(a=STR), none=NULL, more=INT)
    assert completed(declared, seen) == object_(headers=object_(a=STR), none=nullable(list_of(STR)), more=INT)


def test_crawls_are_told_by_paths() -> None:
    path = "s3://commoncrawl/crawl-data/CC-MAIN-2024-22/segments/1/wet/CC-MAIN-20240517233122-20240518-0.warc.wet.gz"
    assert NAMES.findall(path) == ["CC-MAIN-2024-22"]
