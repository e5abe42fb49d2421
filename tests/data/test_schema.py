"""Types of attribute values: their form on disk, what is inferred from data, and what annotations declare."""

import typing
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
import pytest
from hypothesis import given, strategies as st

from toolkit.data import schema
from toolkit.data.documents import Prediction, Span
from toolkit.data.schema import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NEVER,
    NULL,
    SPAN,
    SPANS,
    STR,
    Type,
    field_name,
    fits,
    from_annotation,
    from_json,
    infer,
    list_of,
    nullable,
    to_json,
    to_python,
    union,
)
from toolkit.errors import ConfigError

KEYS = st.sampled_from(["a", "b", "class", "_private", "x y", "é", "__len__"])


def _composed(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    fields = st.dictionaries(KEYS, inner, max_size=3).map(lambda d: Type("object", fields=tuple(d.items())))
    return inner.map(list_of) | inner.map(lambda t: Type("map", t)) | inner.map(nullable) | fields


TYPES = st.recursive(st.sampled_from([BOOL, INT, FLOAT, STR, SPAN, ANY]), _composed, max_leaves=6)

_INTS = st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_SPANS = st.tuples(_INTS, _INTS, _FLOATS | _INTS).map(list)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _INTS | _FLOATS | st.text(max_size=3) | _SPANS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def decodes(value: Any, type_: Type) -> Any:
    """The value as it comes back from JSON as this type; raises if it is not of it."""
    return msgspec.json.decode(msgspec.json.encode(value), type=to_python(type_))


def canonical(type_: Type) -> Any:
    """A type as JSON without the order of fields."""
    return msgspec.json.encode(to_json(type_), order="deterministic")


# --- on disk ----------------------------------------------------------------------------------------------------------


@given(TYPES)
def test_types_come_back_from_their_form_on_disk(type_: Type) -> None:
    assert from_json(msgspec.json.decode(msgspec.json.encode(to_json(type_)))) == type_


@pytest.mark.parametrize(
    "value",
    ["integer", 3, None, [], {}, {"list": "int", "map": "int"}, {"set": "int"}, {"object": ["a"]}, {"list": "x"}],
)
def test_what_is_no_type_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="expected an attribute type, got"):
        from_json(value)


def test_types_are_shown_in_words() -> None:
    shape = Type("object", fields=(("label", nullable(STR)), ("top", list_of(SPAN)), ("by", Type("map", FLOAT))))
    assert str(shape) == "{label: str | null, top: list[span], by: map[float]}"


# --- inferred from values ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (None, NULL),
        (True, BOOL),
        (3, INT),
        (3.0, FLOAT),
        ("", STR),
        ([], list_of(NEVER)),
        ([1, 2.5], list_of(FLOAT)),
        ([1, None], list_of(nullable(INT))),
        ([1, "a"], list_of(ANY)),
        ([True, 1], list_of(ANY)),
        ([0, 3, 0.5], SPAN),
        ([[0, 3, 0.5], [3, 4, 1]], SPANS),
        ([0, 3, True], list_of(ANY)),
        ([0, 3], list_of(INT)),
        ({"a": 1}, Type("object", fields=(("a", INT),))),
        ([{"a": 1}, {"a": 0.5}], list_of(Type("object", fields=(("a", FLOAT),)))),
        ([{"a": 1}, {"b": 2}], list_of(Type("map", INT))),
        ([{"a": 1}, {"a": None}], list_of(Type("object", fields=(("a", nullable(INT)),)))),
    ],
)
def test_the_narrowest_type_is_inferred(value: Any, type_: Type) -> None:
    assert infer(value) == type_


@given(VALUES)
def test_a_value_is_of_the_type_inferred_from_it(value: Any) -> None:
    decodes(value, infer(value))
    assert fits(infer(value), infer(value))


@given(VALUES, VALUES)
def test_the_union_of_two_types_holds_the_values_of_both_in_any_order(a: Any, b: Any) -> None:
    both = union(infer(a), infer(b))
    decodes(a, both)
    decodes(b, both)
    assert canonical(both) == canonical(union(infer(b), infer(a)))
    assert union(both, infer(a)) == both


@given(TYPES, TYPES)
def test_unions_are_idempotent_commutative_and_start_from_never(a: Type, b: Type) -> None:
    assert union(a, a) == a
    assert canonical(union(a, b)) == canonical(union(b, a))
    assert union(a, NEVER) == union(NEVER, a) == a
    assert union(a, NULL) == nullable(a)


@given(st.lists(VALUES, max_size=4), TYPES)
def test_what_fits_decodes(values: list[Any], wanted: Type) -> None:
    for value in values:
        declared = infer(value)
        for target in (wanted, union(wanted, declared), nullable(declared)):
            if fits(declared, target) and b'"any"' not in canonical(declared):
                assert fits(infer(decodes(value, target)), target)


@pytest.mark.parametrize(
    ("declared", "wanted", "expected"),
    [
        (INT, FLOAT, True),
        (FLOAT, INT, False),
        (BOOL, INT, False),
        (INT, nullable(FLOAT), True),
        (nullable(INT), INT, False),
        (nullable(INT), nullable(FLOAT), True),
        (NULL, nullable(INT), True),
        (list_of(NEVER), list_of(STR), True),
        (list_of(INT), list_of(FLOAT), True),
        (list_of(nullable(INT)), list_of(INT), False),
        (Type("object", fields=(("a", INT), ("b", STR))), Type("object", fields=(("a", FLOAT),)), True),
        (Type("object", fields=(("a", INT),)), Type("object", fields=(("a", INT), ("b", STR))), False),
        (SPAN, list_of(FLOAT), False),
        (ANY, STR, True),
        (STR, ANY, True),
    ],
)
def test_a_type_fits_where_all_its_values_do(declared: Type, wanted: Type, expected: bool) -> None:
    assert fits(declared, wanted) is expected


def test_objects_decode_to_attributes_with_safe_names() -> None:
    found = decodes(
        {"a": 1, "class": 2, "_x": 3, "x y": 4, "unknown": 5}, infer({"a": 0, "class": 0, "_x": 0, "x y": 0})
    )
    assert [getattr(found, field_name(key)) for key in ("a", "class", "_x", "x y")] == [1, 2, 3, 4]
    assert field_name("a") == "a"
    with pytest.raises(msgspec.ValidationError, match="missing required field `class`"):
        decodes({"a": 1}, infer({"a": 0, "class": 0}))


# --- declared by annotations ------------------------------------------------------------------------------------------


class Value(msgspec.Struct, rename={"kind": "class"}):
    kind: Literal["a", "b"]
    probs: dict[str, float]
    spans: list[Span]
    best: Prediction | None


class Pair(NamedTuple):
    a: int
    b: int


@pytest.mark.parametrize(
    ("annotation", "type_"),
    [
        (bool, BOOL),
        (int, INT),
        (Annotated[float, msgspec.Meta(ge=0)], FLOAT),
        (str | None, nullable(STR)),
        (list[Span], SPANS),
        (tuple[int, ...], list_of(INT)),
        (dict[str, list[float]], Type("map", list_of(FLOAT))),
        (Any, ANY),
        (Prediction, Type("object", fields=(("label", STR), ("prob", FLOAT)))),
        (
            Value,
            Type(
                "object",
                fields=(
                    ("class", STR),
                    ("probs", Type("map", FLOAT)),
                    ("spans", SPANS),
                    ("best", nullable(Type("object", fields=(("label", STR), ("prob", FLOAT))))),
                ),
            ),
        ),
    ],
)
def test_annotations_declare_types(annotation: Any, type_: Type) -> None:
    assert from_annotation(annotation, "tagger x") == type_


@pytest.mark.parametrize("annotation", [int | str, bytes, Pair, None, list[int | str]])
def test_annotations_outside_the_algebra_are_refused(annotation: Any) -> None:
    with pytest.raises(ConfigError, match=r"^tagger x: expected "):
        from_annotation(annotation, "tagger x")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 3)
    | st.floats(0, 1)
    | st.sampled_from("ab")
    | st.sampled_from([[0, 3], [0, 3, 0.5], [1, 2, 1]]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b-c"]), VALUES, min_size=1), min_size=2, max_size=6))
def test_what_an_exact_type_takes_is_not_news(rows: list[dict[str, Any]]) -> None:
    types: dict[str, schema.Type] = {}
    for row in rows[:-1]:
        types = {**types, **{k: schema.union(types.get(k, schema.NEVER), schema.infer(v)) for k, v in row.items()}}
    struct = schema.exact(types)
    try:
        assert struct
        msgspec.json.decode(msgspec.json.encode(rows[-1]), type=struct)
    except (AssertionError, msgspec.ValidationError):
        return
    assert rows[-1].keys() == types.keys()
    assert {k: schema.union(types[k], schema.infer(v)) for k, v in rows[-1].items()} == types


# --- descriptions -----------------------------------------------------------------------------------------------------


class Part(msgspec.Struct):
    """A part.

    Attributes:
        size: How large it is,
            in metres.
        width, height: One of its edges.
    """

    size: int
    width: float
    height: float | None


class Whole(msgspec.Struct):
    """A whole; what `Meta` says stands before what this says.

    Attributes:
        name: Not said.
        parts: All parts.
        of: Parts by key.

    Something else:
        parts: Not this.
    """

    name: Annotated[str, msgspec.Meta(description="What it is called.")]
    parts: list[Part | None]
    of: dict[str, Part] | None
    rest: int = msgspec.field(name="the rest")


T = TypeVar("T")


class Generic(msgspec.Struct, typing.Generic[T]):
    """One of any type.

    Attributes:
        it: The one.
    """

    it: T


TOLD = {
    "name": "What it is called.",
    "parts": "All parts.",
    "parts[].size": "How large it is, in metres.",
    "parts[].width": "One of its edges.",
    "parts[].height": "One of its edges.",
    "of": "Parts by key.",
    "of{}.size": "How large it is, in metres.",
    "of{}.width": "One of its edges.",
    "of{}.height": "One of its edges.",
}


def test_descriptions_go_with_types_and_are_apart_on_disk() -> None:
    type_ = from_annotation(Whole, "x")
    assert schema.descriptions(type_) == TOLD
    again = from_json(to_json(type_))
    assert again == type_, "types are the same, whatever is said of them"
    assert (again != type_) is False, "and not different"
    assert schema.descriptions(again) == {}
    assert schema.descriptions(schema.described(again, TOLD)) == TOLD
    assert str(type_) == str(again)
    assert schema.descriptions(from_annotation(Generic[int], "x")) == {"it": "The one."}
