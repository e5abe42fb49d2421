"""From types of rows to fields."""

import pytest

from toolkit.data.schema import ANY, FLOAT, INT, NEVER, NULL, SPANS, STR, Type, list_of, nullable
from toolkit.describe.fields import KEYS, completed, fields_of, merged
from toolkit.ingest.folders import NAMES


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
