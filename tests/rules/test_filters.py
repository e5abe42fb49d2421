"""Dolma's filter languages: what Dolma 1.2.1 itself was seen to do, what is refused, and what becomes of translations.

The documents and what matches them were observed by running Dolma, one filter at a time.
"""

import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from toolkit.data.schema import ANY, BOOL, FLOAT, INT, NEVER, SPANS, STR, Type, infer, list_of, nullable, to_python
from toolkit.errors import ConfigError, DataError, MissingExtra
from toolkit.rules.checker import Name
from toolkit.rules.compiling import compile_function
from toolkit.rules.expressions import check_condition
from toolkit.rules.filters import Syntax, guarded_keys, matcher, selected_key, selection, translate
from toolkit.rules.filters.translation import KeyInfo

VALUES: dict[str, Any] = {
    "null": None,
    "[]": [],
    ".7": [[0, 5, 0.7]],
    "1": [[0, 5, 1]],
    "1.": [[0, 5, 1.0]],
    "two": [[0, 5, 0.2], [5, 6, 0.9]],
    "{}": {},
    "a": {"a": 1},
    "b": {"a": {"b": True}},
    "i0": 0,
    "i1": 1,
    "f1": 1.0,
    "true": True,
    "false": False,
    '""': "",
    "x": "x",
    "ab": ["a", "b"],
    "12": [1, 2],
    "[null]": [None],
    "as": [{"a": 1}, {"a": 2}],
}
"""The values of the attribute k, by short names; `none` is a document that has no k."""
SPAN_LISTS = ".7 1 1. two"
FULL_LISTS = f"{SPAN_LISTS} ab 12 [null] as"
PRESENT = " ".join(VALUES)


def matching(text: str, syntax: Syntax = "jsonpath", **options: bool) -> str:
    matches = matcher(text, syntax, **options)
    documents = {name: {"text": "t", "attributes": {"k": value}} for name, value in VALUES.items()}
    return " ".join(name for name, doc in (documents | {"none": {"attributes": {}}}).items() if matches(doc))


def without(*names: str) -> str:
    return " ".join(name for name in VALUES if name not in names)


# --- JSONPath, as Dolma understands it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$.attributes.k", PRESENT),
        ("$@.attributes['k']", PRESENT),
        (".attributes.['k']", PRESENT),
        ("$.attributes.k.a", "a b"),
        ("$.attributes.k[0]", FULL_LISTS),
        ("$.attributes.k[0][2]", SPAN_LISTS),
        ("$.attributes.k[*]", f"{SPAN_LISTS} a b ab 12 [null] as"),
        ("$.attributes.k[1,0]", FULL_LISTS),
        ("$.attributes['j','k']", PRESENT),
        ("$.attributes.k[5:]", ""),
        ("$.attributes.k[:2]", "two ab 12 as"),
        ("$.attributes.k[0:0]", FULL_LISTS),
        ("$.attributes.k[:-1]", FULL_LISTS),
        ("$..a", "a b as"),
        ("$..*[?(@ == 1)]", "1 a i1 12 as"),
        ("$.attributes[?(@.k)]", PRESENT),
        ("$.attributes[?(@.k[0])]", FULL_LISTS),
        ("$.attributes[?(!@.k)]", "none"),
        ("$.attributes[?(!@.k || @.k == 1)]", "i1 none"),
        ("$.attributes[?(!@.k == 1)]", without("i1") + " none"),
        ("$.attributes[?(@.k[0][2] >= 0.7)]", ".7 1 1."),
        ("$.attributes[?(@.k[0][2] > 0.7)]", "1 1."),
        ("$.attributes[?(@.k[0][2] < 0.7)]", "two"),
        ("$.attributes[?(@.k[0][2] != 0.7)]", without(".7") + " none"),
        ("$.attributes[?(@.k && @.k[0] && @.k[0][2] >= 0.5)]", ".7 1 1."),
        ("$.attributes[?(@.k[*][2] > 0.5)]", ".7 1 1."),
        ("$.attributes.k[?(@[2] > 0.5)]", f"{SPAN_LISTS}"),
        ("$.attributes.k[?(@.a == 1)]", "a as"),
        ("$.attributes.k[?(@ == 1)]", "i1 12"),
        ("$.attributes[?(@.k == null)]", "null"),
        ("$.attributes[?(@.k == true)]", "true"),
        ("$.attributes[?(@.k > true)]", ""),
        ("$.attributes[?(@.k == 'x')]", "x"),
        ("$.attributes[?(@.k >= 'x')]", "x"),
        ("$.attributes[?(@.k > 'a')]", ""),
        ("$.attributes[?(@.k <= null)]", "null"),
        ("$.attributes[?(@.nosuch in @.k)]", ""),
        ("$.attributes[?(@.k in ['x', 'y'])]", "x"),
        ("$.attributes[?(@.k in [1,2])]", "i1"),
        ("$.attributes[?('a' in @.k)]", "ab"),
        ("$.attributes[?(1 in @.k)]", "a 12"),
        ("$.attributes[?(@.k == ['a','b'])]", "ab"),
        ("$.attributes[?(@.k.a.b == true)]", "b"),
        ("$.attributes[?(0.5 < @.k)]", "i1 f1"),
        ("$.attributes[?($.attributes.k == 1)]", "i1"),
        ("$.attributes[?(@.x == @.y)]", PRESENT + " none"),
        ("$.attributes[?((@.k > 0.5) && (@.k < 2))]", "i1 f1"),
        ("$.attributes[?(@.k == 'x' || @.k == 1 && @.x)]", "x"),
        ("$.attributes[?(@.k)].k[0]", FULL_LISTS),
        ("$.text", PRESENT),
        ("$.attributes", PRESENT + " none"),
    ],
)
def test_a_jsonpath_matches_what_it_matches_in_dolma(text: str, found: str) -> None:
    assert matching(text, strict=True) == found


@pytest.mark.parametrize(
    ("text", "dolma", "ours"),
    [
        ("$.attributes[?(@.k == 1.0)]", "f1", "i1 f1"),
        ("$.attributes[?(@.k[0][2] >= 1.0)]", "1.", "1 1."),
        ("$.attributes[?(@.k[0][2] >= 1)]", "1", "1 1."),
        ("$.attributes[?(@.k >= 1e0)]", "f1", "i1 f1"),
        ("$.attributes[?(@.k == [1.0,2.0])]", "", "12"),
        ("$.attributes[?(@.k in [1.0,2.0])]", "f1", "i1 f1"),
    ],
)
def test_numbers_compare_as_numbers_unless_dolmas_fault_is_asked_for(text: str, dolma: str, ours: str) -> None:
    assert (matching(text, strict=True), matching(text)) == (dolma, ours)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("attributes.k", "expected a JSONPath such as `$.attributes.KEY`, got 'attributes.k'"),
        ("$.attributes[?(@.k = 1)]", "unexpected token '='"),
        ("$.attributes[?(@.k", "unbalanced parentheses"),
        ("$.attributes.0", "expected a JSONPath, got '$.attributes.0'"),
        ("$.attributes[k]", "is not supported"),
        ("$.attributes.k[-1]", "`[-1]` is not supported"),
        ("$.attributes.k | $.b", "a union of paths is not supported"),
        ("$.attributes[?(@.k.length() > 1)]", "`.length()` is not supported; write it in jq"),
        ("$.attributes[?(@.k ~= 'a')]", "`~=` is not supported"),
        ("$.attributes[?(@.k size 2)]", "`size` is not supported"),
        ("$.attributes[?(@.k == 'it\\'s')]", "a backslash between quotes is not supported"),
        ("$.attributes[?(@.k in [1])]", "a list of one number, is not supported"),
        ("$.attributes[?(@.k > 99999999999999999999)]", "is not supported"),
        ("$..[0]", "`..` before anything but a key or `*` is not supported"),
        ("$.attributes.k[0, 'a']", "is not supported"),
        ("$.attributes[?(1 < @.k < 3)]", "is not supported"),
        ("$" + ".k[?(@" * 500, "expected a JSONPath"),
    ],
)
def test_other_patterns_are_refused(text: str, words: str) -> None:
    for use in (matcher, selection, lambda text, syntax: translate(text, syntax, {})):
        with pytest.raises(ConfigError) as caught:
            use(text, "jsonpath")
        assert words in str(caught.value)


def test_keys_may_be_called_like_operators() -> None:
    assert matcher("$.metadata[?(@.size > 1 && @.length < 3)]", "jsonpath")({"metadata": {"size": 2, "length": 2}})


# --- jq, as Dolma understands it --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "included", "excluded"),
    [
        (".attributes.k", without("null", "[]", "{}", "i0", "false", '""'), ...),
        (".attributes?.k?", without("null", "[]", "{}", "i0", "false", '""'), ...),
        (".attributes.k[]?", "two .7 1 1. a b ab 12 as", ...),
        (".attributes.k == 1.0", "i1 f1", ...),
        (".attributes | has(\"k\")", PRESENT, ...),
        ("[.attributes.k[]? | .[2]?] | any(. > 0.5)", SPAN_LISTS, ...),
        ("select(.attributes.k == 1)", "i1 f1", ...),
        (".attributes.k?//false", without("null", "[]", "{}", "i0", "false", '""'), ...),
        ('.attributes.k == "?//"', "", ...),
        (".attributes.k[]? | .[2]? | . > 0.5", ".7 1 1.", SPAN_LISTS),
        (".attributes.k == 1, .attributes.k == 1.0 and .attributes.j == null", "i1 f1", ...),
        (".attributes.k == 1, false", "", "i1 f1"),
        ("empty", "", ...),
    ],
)  # fmt: skip
def test_a_jq_filter_matches_what_it_matches_in_dolma(text: str, included: str, excluded: Any) -> None:
    assert sorted(matching(text, "jq").split()) == sorted(included.split())
    wanted = included if excluded is ... else excluded
    assert sorted(matching(text, "jq", exclude=True).split()) == sorted(wanted.split())


def test_an_element_of_what_is_missing_is_null_in_jq() -> None:
    assert not matcher(".attributes.nosuch[0][2] > 0.5", "jq")({"attributes": {}})


def test_a_jq_filter_that_fails_is_an_error_of_the_document() -> None:
    with pytest.raises(DataError, match=r"the jq filter '\.attributes\.k\.a' failed: "):
        matching(".attributes.k.a", "jq")


@pytest.mark.parametrize("text", ["[", "nosuch(1)"])
def test_what_is_no_jq_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected a jq filter, got '.*': jq: error"):
        matcher(text, "jq")


@pytest.mark.parametrize(("syntax", "package"), [("jq", "jq"), ("jsonpath", "jsonpath")])
def test_a_library_that_is_not_installed_is_named(
    syntax: Syntax, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pip install 'tagmix\[dolma\]'"):
        selection(".attributes", syntax)


# --- selected ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "syntax", "selected"),
    [
        ("$.attributes.s", "jsonpath", [[0, 2, 0.5]]),
        ("$.attributes.s[*]", "jsonpath", [0, 2, 0.5]),
        ("$.attributes.o.*", "jsonpath", [[], [[1, 2, 1]]]),
        ("$.attributes.nosuch", "jsonpath", None),
        ("$.attributes.null", "jsonpath", None),
        ("$..id", "jsonpath", "d0"),
        (".attributes.s", "jq", [[0, 2, 0.5]]),
        (".attributes.s[]", "jq", [0, 2, 0.5]),
        (".attributes.o[]", "jq", [[], [[1, 2, 1]]]),
        (".attributes.nosuch?", "jq", None),
        ("empty", "jq", None),
    ],
)
def test_one_value_is_selected_as_it_is_and_several_as_a_list(text: str, syntax: Syntax, selected: Any) -> None:
    attributes = {"s": [[0, 2, 0.5]], "o": {"a": [], "b": [[1, 2, 1]]}, "null": None}
    assert selection(text, syntax)({"id": "d0", "attributes": attributes}) == selected


@pytest.mark.parametrize(
    ("text", "syntax", "key"),
    [
        ("$.attributes.emails", "jsonpath", "emails"),
        (" $@.attributes['e mails'] ", "jsonpath", "e mails"),
        (".attributes.emails", "jq", "emails"),
        (".attributes?.emails?", "jq", "emails"),
        ('.attributes["e mails"]', "jq", "e mails"),
        ("$.attributes.pii.email", "jsonpath", None),
        ("$.emails", "jsonpath", None),
        (".attributes.emails[0]", "jq", None),
    ],
)
def test_a_selector_of_one_attribute_is_known(text: str, syntax: Syntax, key: str | None) -> None:
    assert selected_key(text, syntax) == key


# --- translated -------------------------------------------------------------------------------------------------------

INNER = Type("object", fields=(("a", FLOAT), ("class", BOOL)))
KEYS = {
    "spans": KeyInfo(SPANS, optional=True),
    "sure_spans": KeyInfo(SPANS, optional=False),
    "n": KeyInfo(INT, optional=False),
    "m": KeyInfo(INT, optional=True),
    "f": KeyInfo(FLOAT, optional=True),
    "s": KeyInfo(STR, optional=False),
    "t": KeyInfo(nullable(STR), optional=True),
    "u": KeyInfo(nullable(INT), optional=False),
    "b": KeyInfo(BOOL, optional=True),
    "xs": KeyInfo(list_of(INT), optional=True),
    "ys": KeyInfo(list_of(nullable(STR)), optional=False),
    "zs": KeyInfo(nullable(list_of(FLOAT)), optional=False),
    "o": KeyInfo(Type("object", fields=(("email", SPANS), ("flag", BOOL), ("inner", nullable(INNER)))), optional=True),
    "map": KeyInfo(Type("map", nullable(FLOAT)), optional=False),
    "x": KeyInfo(list_of(list_of(INT)), optional=False),
    "free": KeyInfo(ANY, optional=False),
    "empty": KeyInfo(list_of(NEVER), optional=False),
    "not-a-name": KeyInfo(INT, optional=False),
}


def seen(info: KeyInfo) -> Type:
    """The type of a key in expressions."""
    return nullable(info.type) if info.optional and info.type != SPANS else info.type


NAMES = {key: Name(seen(info), f"a_{key}") for key, info in KEYS.items() if key.isidentifier()}


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("$.attributes[?(@.spans && @.spans[0] && @.spans[0][2] >= 0.5)]", "len(spans) > 0 and spans[0][2] >= 0.5"),
        ("$.attributes[?(@.spans[0][2] < 0.5)]", "len(spans) > 0 and spans[0][2] < 0.5"),
        ("$.attributes[?(@.spans[0][2] != 0.5)]", "not (len(spans) > 0 and spans[0][2] == 0.5)"),
        ("$.attributes.spans[?(@[2] > 0.9)]", "any(x1[2] > 0.9 for x1 in spans)"),
        ("$.attributes.sure_spans", "True"),
        ("$.attributes", "True"),
        ("$.attributes[?(@.n > 3)]", "n > 3"),
        ("$@.attributes[?(3 < @['m'])]", "m is not None and m > 3"),
        ("$.attributes.m", "m is not None"),
        ("$.attributes[?(!@.m)]", "not (m is not None)"),
        ("$.attributes[?(!!@.n == 3)]", "not (not (n == 3))"),
        ("$.attributes[?(@.u == null)]", "u is None"),
        ("$.attributes[?(@.u >= 3)]", "u is not None and u >= 3"),
        ("$.attributes[?(@.t == 'x')]", "t is not None and t == 'x'"),
        ("$.attributes[?(@.b == false)]", "b is not None and not b"),
        ("$.attributes[?(@.s in ['x', 'y'])]", "s in ['x', 'y']"),
        ("$.attributes[?(@.s > 3)]", "False"),
        ("$.attributes[?(@.s != 3)]", "True"),
        ("$.attributes[?(@.o.inner.class == true)]", "o is not None and o.inner is not None and o.inner['class']"),
        ("$.attributes[?(@.map['a b'] > 1)]", "'a b' in map and map['a b'] is not None and map['a b'] > 1"),
        ("$.attributes[?(@.n > 3 || @.m > 3 && @.b)]", "(n > 3 or (m is not None and m > 3 and b is not None))"),
        ("$.attributes[?(@.n > 3)] ", "n > 3"),
        ("$.attributes[?($.attributes.n > 3)]", "n > 3"),
    ],
)
def test_filters_of_attributes_become_expressions(text: str, expression: str) -> None:
    assert translate(text, "jsonpath", KEYS) == expression
    assert check_condition(expression, NAMES).type == BOOL


@pytest.mark.parametrize(
    "text",
    [
        "$.attributes.spans",
        "$.attributes[?(!@.spans)]",
        "$.attributes[?(@.spans || @.spans[0])]",
        "$.attributes[?(@.spans && @.spans[0][2] != 1)]",
        "$.attributes.t",
        "$.attributes[?(@.t == null)]",
        "$.attributes[?(@.nosuch > 1)]",
        "$.attributes[?(@.free > 1)]",
        "$.attributes.empty[0]",
        "$.attributes['not-a-name']",
        "$.attributes.o.undeclared",
        "$.attributes.xs[*]",
        "$.attributes[?(@.n == @.m)]",
        "$.attributes[?(!!@.n == @.n[0])]",
        "$.attributes.zs[?(@ > 1)]",
        "$.attributes.sure_spans[0][?(@ == 0)]",
        "$.metadata[?(@.length < 500)]",
        "$.attributes[?($.id == 'x')]",
        "$",
        "$..n",
    ],
)
def test_what_cannot_be_told_from_the_types_is_not_translated(text: str) -> None:
    assert translate(text, "jsonpath", KEYS) is None


def test_jq_is_not_translated_but_checked() -> None:
    assert translate(".attributes.n > 3", "jq", KEYS) is None
    with pytest.raises(ConfigError):
        translate("[", "jq", KEYS)


def values(type_: Type) -> st.SearchStrategy[Any]:
    match type_.kind:
        case "int":
            return st.integers(-1, 3)
        case "float":
            return st.sampled_from([0.0, 0.5, 1.0, 2.0, 1])
        case "str":
            return st.sampled_from(["", "a", "x"])
        case "bool":
            return st.booleans()
        case "span":
            return st.tuples(st.integers(0, 3), st.integers(0, 3), values(FLOAT)).map(list)
        case "nullable":
            return st.none() | values(type_.item or ANY)
        case "map":
            return st.dictionaries(st.sampled_from(["a", "b"]), values(type_.item or ANY))
        case "object":
            return st.fixed_dictionaries({name: values(field) for name, field in type_.fields})
    return st.lists(values(type_.item or ANY), max_size=3)


TOLD = {key: info for key, info in KEYS.items() if key in NAMES and key not in ("free", "empty")}
ROWS = st.fixed_dictionaries(
    {key: values(info.type) for key, info in TOLD.items() if not info.optional},
    optional={key: values(info.type) for key, info in TOLD.items() if info.optional},
)
STEPS = st.lists(
    st.sampled_from(["[0]", "[1]", "[2]", ".a", "['b']", ".inner", ".class", ".email", ".flag"]), max_size=3
)
LITERALS = st.sampled_from(["0", "1", "1.0", "0.5", "-1", "'x'", "''", "true", "false", "null"])
LISTS = st.sampled_from(["['x', 'a']", "['x']", "[1, 2]", "[0.5, 1.0]"])
OPERATORS = st.sampled_from(["==", "!=", "<", ">", "<=", ">="])


def conditions(paths: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    atoms = (
        paths
        | st.tuples(paths, OPERATORS, LITERALS).map(" ".join)
        | st.tuples(LITERALS, OPERATORS, paths).map(" ".join)
        | st.tuples(paths, LISTS).map(" in ".join)
        | paths.flatmap(lambda path: STEPS.map(lambda steps: f"{path} && {path}{''.join(steps)} > 0"))
    )
    return st.recursive(
        atoms,
        lambda inner: (
            st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda parts: "({} {} {})".format(*parts))
            | inner.map("!({})".format)
        ),
        max_leaves=5,
    )


ATTRIBUTE_PATHS = st.tuples(st.sampled_from(sorted(TOLD)), STEPS).map(lambda parts: parts[0] + "".join(parts[1]))
FILTERS = (
    conditions(ATTRIBUTE_PATHS.map("@.{}".format)).map("$.attributes[?({})]".format)
    | ATTRIBUTE_PATHS.map("$.attributes.{}".format)
    | st.tuples(ATTRIBUTE_PATHS, conditions(STEPS.map(lambda steps: "@" + "".join(steps)))).map(
        lambda parts: "$.attributes.{}[?({})]".format(*parts)
    )
)


@pytest.mark.slow
@given(FILTERS, st.lists(ROWS, min_size=1, max_size=5))
def test_a_translation_is_true_for_the_documents_that_the_filter_matches(text: str, rows: list[dict[str, Any]]) -> None:
    expression = translate(text, "jsonpath", KEYS)
    if expression is None:
        return
    code = check_condition(expression, NAMES).code
    function = compile_function(code, tuple(name.code for name in NAMES.values()))
    matches = matcher(text, "jsonpath")
    for row in rows:
        found = function(*(value_of(key, row) for key in NAMES))
        assert found is matches({"attributes": row}), (expression, row)


def value_of(key: str, row: dict[str, Any]) -> Any:
    if key not in row:
        return [] if KEYS[key].type == SPANS else None
    return msgspec.convert(row[key], to_python(KEYS[key].type))


def test_the_type_of_what_dolma_writes_is_told() -> None:
    row = {"exp__tox__toxic": [[0, 90, 0.5]], "pii": {"too_much_pii": True, "email": [[0, 5, 1.0]]}, "toxicity": 0.1}
    keys = {key: KeyInfo(infer(value), optional=False) for key, value in row.items()}
    for text in (
        "$.attributes[?(@.exp__tox__toxic[0][2] > 0.5)]",
        "$.attributes[?(@.pii.too_much_pii == true)]",
        "$.attributes[?(@.toxicity > 0.8)]",
    ):
        assert translate(text, "jsonpath", keys) is not None


def test_keys_that_jq_asks_for_with_a_question_mark_are_told() -> None:
    assert guarded_keys(".attributes.k[0]?[2]? < 0.5 and .attributes.other > 1") == {"k"}
    assert guarded_keys('(.attributes.a? // 0) > 1 or .attributes["b"]') == {"a"}
