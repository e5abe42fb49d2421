"""Expressions of rules: what is allowed and its value, what is refused and why, and what is known not to be null."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from toolkit.data.documents import Document, Span
from toolkit.data.schema import ANY, BOOL, FLOAT, INT, SPANS, STR, Type, infer, list_of, nullable, to_python, union
from toolkit.rules.checker import Facts, Name
from toolkit.rules.compiling import compile_function
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import check, check_condition

PREDICTION = Type("object", fields=(("label", nullable(STR)), ("prob", FLOAT), ("class", INT)))
TYPES: dict[str, Type] = {
    "n": INT,
    "f": FLOAT,
    "flag": BOOL,
    "s": STR,
    "maybe": nullable(INT),
    "xs": list_of(INT),
    "words": list_of(STR),
    "lines": list_of(nullable(PREDICTION)),
    "language": PREDICTION,
    "best": nullable(PREDICTION),
    "shares": Type("map", nullable(FLOAT)),
    "counts": Type("map", INT),
    "spans": SPANS,
    "free": ANY,
    "r0": INT,
    "nothing": nullable(list_of(INT)),
}
NAMES = {key: Name(type_, f"a_{key}") for key, type_ in TYPES.items()}


def decoded(value: Any, type_: Type) -> Any:
    return msgspec.convert(value, to_python(type_))


VALUES: dict[str, Any] = {
    "n": 7,
    "f": 0.5,
    "flag": True,
    "s": "text",
    "maybe": None,
    "xs": [3, 1, 2],
    "words": ["b", "a"],
    "lines": [decoded({"label": "en", "prob": 0.9, "class": 1}, PREDICTION), None],
    "language": decoded({"label": "en", "prob": 0.75, "class": 4}, PREDICTION),
    "best": None,
    "shares": {"en": 0.75, "fr": None},
    "counts": {"a b": 2},
    "spans": [Span(0, 3, 0.5), Span(5, 6)],
    "free": {"x": {"y": [1, 2]}},
    "r0": 10,
    "nothing": None,
}


def evaluate(text: str, known: Facts = frozenset(), **changes: Any) -> Any:
    found = check(text, NAMES, known)
    function = compile_function(found.code, tuple(name.code for name in NAMES.values()))
    return function(*(VALUES | changes).values())


# --- allowed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n + 1", 8),
        ("-n // 2", -4),
        ("n % 4 * 2 - 1", 5),
        ("n / 2", 3.5),
        ("+f", 0.5),
        ("1 < n <= 7", True),
        ("n == 7.0", True),
        ("n != f", True),
        ("  n > 3\n", True),
        ("flag and not n > 8 or False", True),
        ("n > 8 and n // 0 > 1", False),
        ("s == 'text'", True),
        ("s < 'u'", True),
        ("'ex' in s", True),
        ("s in ['a', 'text']", True),
        ("s not in ('a', 'b')", True),
        ("2 in xs", True),
        ("2.5 in xs", False),
        ("s in counts", False),
        ("'a b' in counts", True),
        ("counts['a b']", 2),
        ("xs[0]", 3),
        ("xs[-1]", 2),
        ("s[0]", "t"),
        ("xs[n - 6]", 1),
        ("language.prob", 0.75),
        ("language['prob']", 0.75),
        ("language['class']", 4),
        ("language.label is None", False),
        ("language.label is not None", True),
        ("'en' is not None", True),
        ("maybe is None or maybe > 3", True),
        ("maybe is not None and maybe > 3", False),
        ("0 if maybe is None else maybe", 0),
        ("1 if flag else 2.5", 1),
        ("len(xs) + len(s) + len(counts)", 8),
        ("min(xs) + max(xs) * sum(xs)", 19),
        ("max(n, f, 9)", 9),
        ("max(words)", "b"),
        ("abs(-f)", 0.5),
        ("sum([])", 0),
        ("any(x > 2 for x in xs)", True),
        ("all([x > 2 for x in xs])", False),
        ("sum(x * x for x in xs if x != 2)", 10),
        ("[w for w in words]", ["b", "a"]),
        ("len([x for x in xs for y in words])", 6),
        ("sum(counts[k] for k in counts)", 2),
        ("get(counts, 'zz', 0)", 0),
        ("get(shares, 'fr', 0.0)", 0.0),
        ("get(shares, 'en', 0)", 0.75),
        ("get(language, 'prob', 0.0)", 0.75),
        ("get(shares, 'zz', None) is None", True),
        ("spans[0].start + spans[0][1]", 3),
        ("sum(x.score * (x.end - x.start) for x in spans)", 2.5),
        ("len([x for x in lines if x is None])", 1),
        ("min([x.prob for x in lines if x is not None])", 0.9),
        ("any(x is not None and x.label is not None and x.label == 'en' for x in lines)", True),
        ("free.x.y[1]", 2),
        ("len(free.x.y) > 1", True),
        ("get(free, 'z', 3)", 3),
    ],
)
def test_allowed_expressions_have_the_value_that_python_gives(text: str, value: Any) -> None:
    found = evaluate(text)
    assert (found, type(found)) == (value, type(value))


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected an expression, got ''"),
        ("n >", "expected an expression"),
        ("n = 3", "expected an expression"),
        ("n; n", "expected an expression"),
        ("langage.prob", "expected an attribute, got 'langage'; did you mean 'language'?"),
        ("zzz", "expected an attribute, got 'zzz'; there are: best, counts"),
        ("language.probe", "expected a field, got 'probe'; did you mean 'prob'?, in `language.probe`"),
        ("language['zzz']", "there are: label, prob, class"),
        ("n.real", "expected an object with the field real, got a value of type int"),
        ("counts.en", 'got a value of type map[int]: write get(counts, "en", …)'),
        ("n[0]", "expected a list, a map or an object, got int at int"),
        ("xs['a']", "got list[int] at str"),
        ("xs[True]", "got list[int] at bool"),
        ("counts[0]", "got map[int] at int"),
        ("xs[0:2]", "a Slice is not allowed"),
        ("spans[0][3]", "got span at int"),
        ("n and flag", "expected bool, got int, in `n`"),
        ("not xs", "expected bool, got list[int] (write `len(…) > 0`)"),
        ("-s", "expected int or float, got str"),
        ("flag + 1", "expected int or float, got bool"),
        ("s + 1", "expected str, got int"),
        ("s * 1000000000", "expected int or float, got str"),
        ("s % n", "expected int or float, got str"),
        ("n ** 9999", "expected + - * / // or %"),
        ("n << 9999", "expected + - * / // or %"),
        ("~n", "expected not, + or -"),
        ("n == 'a'", "expected values that compare, got int == str"),
        ("flag == 1", "got bool == int"),
        ("xs < xs", "got list[int] < list[int]"),
        ("n in 3", "expected a list, a map or a text after `in`, got int"),
        ("n in words", "expected a value of type str before `in`, got int"),
        ("n in s", "expected a value of type str before `in`, got int"),
        ("n is flag", "expected `is` only in `… is None` and `… is not None`"),
        ("n is 3", "expected `is` only in"),
        ("None is n", "expected `is` only in"),
        ("maybe > 3", "maybe may be null here: test it first (`maybe is not None and …`), or give a default"),
        ("language.label < 'en'", "language.label may be null here"),
        ("n < maybe", "maybe may be null here"),
        ("1 == n < maybe", "maybe may be null here"),
        ("language.label in s", "language.label may be null here"),
        ("n in nothing", "nothing may be null here"),
        ("maybe == 's'", "expected values that compare, got int == str"),
        ("best.prob > 0.5", "best may be null here"),
        ("shares['en'] > 0.5", "shares['en'] may be null here"),
        ("lines[0].prob > 0.5", "lines[0] may be null here"),
        ("sum(shares[k] for k in shares)", "expected a list without nulls"),
        ("[1, None]", "None may be null here"),
        ("get(shares, 'en', None) > 1", "may be null here"),
        ("len(maybe)", "maybe may be null here"),
        ("len(n)", "expected list or map or str, got int"),
        ("len(xs, xs)", "expected one argument of len"),
        ("len()", "expected one of the functions len, any"),
        ("any(xs)", "expected a list of bool, got list[int]"),
        ("sum(words)", "expected a list of int or float or bool, got list[str]"),
        ("max([flag])", "expected a list of int or float or str, got list[bool]"),
        ("max(xs, xs)", "expected int or float, got list[int]"),
        ("max(xs, default=0)", "expected one of the functions"),
        ("get(counts, 'a')", "expected get(map, key, default)"),
        ("get(counts, 3, 0)", "expected str, got int"),
        ("get(counts, 'a', 'b')", "expected a default of type int, got str"),
        ("get(xs, 'a', 0)", "expected map, got list[int]"),
        ("[x for x in n]", "expected a list to go over, got int"),
        ("[x for x in s]", "expected a list to go over, got str"),
        ("[x for x, y in xs]", "expected one variable after `for`"),
        ("[x for x in xs if x]", "expected bool, got int"),
        ("[x for x in xs][0] > y", "expected an attribute, got 'y'"),
        ("{x for x in xs}", "a SetComp is not allowed"),
        ("{'a': 1}", "a Dict is not allowed"),
        ("lambda: n", "a Lambda is not allowed"),
        ("(y := n)", "a NamedExpr is not allowed"),
        ("f'{n}'", "a JoinedStr is not allowed"),
        ("[*xs]", "a Starred is not allowed"),
        ("1j", "expected a number, a text, True, False or None"),
        ("b'a'", "expected a number, a text, True, False or None"),
        ("...", "expected a number, a text, True, False or None"),
    ],
)
def test_refused_expressions_say_what_was_expected(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        check(text, NAMES)
    assert words in str(raised.value)


@pytest.mark.parametrize(("text", "hint"), [("n", ""), ("xs", "len(…) > 0"), ("maybe", ""), ("language", "")])
def test_a_condition_must_be_true_or_false(text: str, hint: str) -> None:
    with pytest.raises(ExpressionError, match="expected a condition, true or false, got a value of type") as raised:
        check_condition(text, NAMES)
    assert hint in str(raised.value)


# --- what is known not to be null -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "if_true", "if_false"),
    [
        ("maybe is None", "", "maybe"),
        ("maybe is not None", "maybe", ""),
        ("not maybe is None", "maybe", ""),
        ("not (maybe is not None)", "", "maybe"),
        ("maybe is None or language.label is None", "", "maybe language.label"),
        ("maybe is not None and language.label is not None", "maybe language.label", ""),
        ("maybe is None and language.label is None", "", ""),
        ("flag and maybe is not None", "maybe", ""),
        ("flag or maybe is not None", "", ""),
        ("(flag and maybe is not None) or maybe is not None", "maybe", ""),
        ("maybe is None or maybe < 3", "", "maybe"),
        ("flag", "", ""),
        ("maybe == 3", "maybe", ""),
        ("maybe != 3", "", "maybe"),
        ("maybe == n", "", ""),
        ("maybe in [1, 2]", "maybe", ""),
        ("maybe not in [1, 2]", "", "maybe"),
        ("maybe in xs", "", ""),
        ("maybe == None", "", "maybe"),
        ("None == maybe", "", ""),
    ],
)
def test_tests_for_null_are_remembered(test: str, if_true: str, if_false: str) -> None:
    found = check(test, NAMES)
    assert found.if_true == frozenset(if_true.split())
    assert found.if_false == frozenset(if_false.split())


def test_what_is_known_makes_a_value_safe() -> None:
    known = check("maybe is None or language.label is None", NAMES).if_false
    assert evaluate("maybe > 3 and language.label == 'en'", known, maybe=4) is True
    assert check("maybe > 3", NAMES, known).if_false >= known, "it stays known"
    with pytest.raises(ExpressionError, match="best may be null"):
        check("best.prob > 3", NAMES, known)


def test_a_fact_about_an_attribute_says_nothing_of_a_variable_of_that_name() -> None:
    with pytest.raises(ExpressionError, match="maybe may be null here"):
        check("maybe is not None and any(maybe.prob > 1 for maybe in lines)", NAMES)
    with pytest.raises(ExpressionError, match="maybe may be null here"):
        check("any(maybe is not None for maybe in lines) and maybe > 3", NAMES)
    with pytest.raises(ExpressionError, match="x may be null here"):
        check("any(x is not None and any(x.prob > 1 for x in lines) for x in lines)", NAMES)


# --- nulls as in Python -----------------------------------------------------------------------------------------------

NULLABLE = {"a": nullable(INT), "b": nullable(INT), "s": nullable(STR), "n": INT, "t": STR, "xs": list_of(INT)}


def comparisons() -> st.SearchStrategy[str]:
    numbers, texts = st.sampled_from(["a", "b", "n", "1", "2", "None"]), st.sampled_from(["s", "t", "'x'", "None"])
    equal = st.sampled_from([" == ", " != "])
    parts = [
        st.tuples(numbers, equal, numbers),
        st.tuples(numbers, equal, numbers, equal, numbers),
        st.tuples(texts, equal, texts),
        st.tuples(numbers, st.sampled_from([" in ", " not in "]), st.sampled_from(["xs", "[1, 2]", "[n, 7]"])),
        st.tuples(texts, st.sampled_from([" in ", " not in "]), st.sampled_from(["['x']", "[t, 'y']"])),
        st.tuples(st.sampled_from(["a", "b", "s"]), st.sampled_from([" is None", " is not None"])),
        st.sampled_from([("a == 1 and a > 0",), ("b != 2 or b < 5",), ("s in ['x'] and 'x' <= s",)]),
    ]
    return st.one_of(*parts).map("".join)


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        inner.map("not ({})".format),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda each: "({}) {} ({})".format(*each)),
        st.tuples(inner, inner, inner).map(lambda each: "({}) if ({}) else ({})".format(*each)),
        inner.map("any(({}) for x in xs)".format),
    ),
    max_leaves=5,
)


@given(
    text=CONDITIONS,
    a=st.sampled_from([None, 1, 2]),
    b=st.sampled_from([None, 1, 2]),
    s=st.sampled_from([None, "x", "y"]),
)
def test_nulls_compare_as_in_python(text: str, a: Any, b: Any, s: Any) -> None:
    values = {"a": a, "b": b, "s": s, "n": 1, "t": "x", "xs": [1, 3]}
    names = {key: Name(type_, key) for key, type_ in NULLABLE.items()}
    found = check_condition(text, names)
    wanted = eval(text, {"any": any, **values})
    assert compile_function(found.code, tuple(values))(*values.values()) is wanted
    certain = found.if_true if wanted else found.if_false
    assert all(eval(fact, values.copy()) is not None for fact in certain)
    seen: list[bool] = []
    if found.noting:
        assert compile_function(found.noting, (*values, "seen"))(*values.values(), seen) is wanted
    assert not (seen and None not in (a, b, s))


@pytest.mark.parametrize(
    ("text", "values", "nulls"),
    [
        ("maybe == 3", {}, 1),
        ("maybe == 3", {"maybe": 3}, 0),
        ("maybe is not None and maybe == 3", {}, 0),
        ("flag or maybe == 3", {}, 0),
        ("any(x.label == 'en' for x in lines if x is not None)", {}, 0),
        ("maybe not in xs", {}, 1),
    ],
)
def test_nulls_that_are_compared_are_noted(text: str, values: dict[str, Any], nulls: int) -> None:
    noting, seen = check(text, NAMES).noting, list[bool]()
    if noting:
        given = {**VALUES, **values}
        compile_function(noting, (*(f"a_{key}" for key in given), "seen"))(*given.values(), seen)
    assert len(seen) == nulls


# --- fields of which no type is declared ------------------------------------------------------------------------------

OPEN = {
    "document": Name(Type("object", fields=(("id", STR), ("metadata", Type("map", ANY)))), "document", open=True),
    "metadata": Name(Type("map", ANY), "document.metadata", open=True),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metadata.lang == 'de'", True),
        ("metadata.of.n != None and metadata.of.n > 1", True),
        ("metadata.gone.n == 7", False),
        ("document.metadata.lang in ['de']", True),
        ("document.url == 'u' and document.id == '1'", True),
        ("document.gone is None", True),
        ("'lang' in metadata", True),
    ],
)
def test_fields_of_documents_are_written_as_those_of_attributes(text: str, expected: bool) -> None:
    row = b'{"id": "1", "text": "", "url": "u", "metadata": {"lang": "de", "of": {"n": 2}}}'
    metadata = {"lang": "de", "of": {"n": 2}}
    found = check_condition(text, OPEN)
    assert compile_function(found.code, ("document",))(Document("", id="1", metadata=metadata, row=row)) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.n > 3", "metadata.n may be null here: test it first"),
        ("len(document.tags) > 3", "document.tags may be null here"),
        ("document.id.x == 3", "expected an object with the field x, got a value of type str"),
        ("metadata.__class__ == 3", "expected a field"),
    ],
)
def test_they_may_be_null(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        check(text, OPEN)


# --- safety -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "s.__class__",
        "free.__class__.__mro__",
        "().__class__",
        "language.__class__",
        "__import__('os')",
        "open('x')",
        "eval('1')",
        "print(1)",
        "s.upper()",
        "free.x()",
        "(lambda: 1)()",
        "get(language, '__class__', 1)",
        "xs.sort()",
        "__builtins__",
        "v_x",
        "a_n",
    ],
)
def test_nothing_is_reached_but_the_values_given(text: str) -> None:
    try:
        found = evaluate(text)
    except ExpressionError:
        return
    assert found is None, "an absent key of a free value"


def test_variables_of_comprehensions_hide_neither_functions_nor_arguments() -> None:
    assert evaluate("[len for len in xs if len > 1][0] + len(xs)") == 6
    assert evaluate("sum(a_r0 + r0 for a_r0 in xs)") == 36
    assert evaluate("sum(n for n in xs) + n") == 13
    assert evaluate("[sum([x for x in words for x in xs]) for x in lines]") == [12, 12]


def test_names_are_those_used_as_attributes() -> None:
    assert check("n > 1 and any(n > r0 for x in xs)", NAMES).names == ("n", "r0", "xs")
    assert check("any(f > 1 for f in xs)", NAMES).names == ("xs",)
    assert check("'language' == 'n'", NAMES).names == ()


# --- against Python itself --------------------------------------------------------------------------------------------

_NUMBER = st.sampled_from(["n", "r0", "f"]) | st.integers(0, 20).map(str) | st.floats(0, 9, width=16).map(repr)
_CONDITION = st.sampled_from(["flag", "True", "False", "s == 'text'", "n in xs", "'t' in s"])


def _numbers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner)
    other = st.builds("{}({})".format, st.sampled_from(["-", "+", "abs"]), inner)
    return binary | other | st.builds("max({}, {})".format, inner, inner)


_NUMBERS = st.recursive(_NUMBER, _numbers, max_leaves=6)
_COMPARISON = st.builds(
    "{} {} {} {} {}".format,
    _NUMBERS,
    st.sampled_from(["<", "<=", "==", "!=", ">", ">="]),
    _NUMBERS,
    st.sampled_from(["<", ">=", "=="]),
    _NUMBERS,
)
_CONDITIONS = st.recursive(
    _CONDITION | _COMPARISON,
    lambda inner: (
        st.builds("{} {} {}".format, inner, st.sampled_from(["and", "or"]), inner)
        | st.builds("not {}".format, inner)
        | st.builds("({})".format, inner)
        | st.builds("any({} for x in xs)".format, inner)
        | st.builds("({} if {} else {})".format, inner, inner, inner)
    ),
    max_leaves=6,
)


def outcome(function: Any) -> Any:
    try:
        return repr(function())
    except ZeroDivisionError:
        return ZeroDivisionError


@given(_CONDITIONS | _NUMBERS)
def test_values_are_those_of_python_itself(text: str) -> None:
    assert outcome(lambda: evaluate(text)) == outcome(lambda: eval(text, dict(VALUES)))


@settings(max_examples=50)
@given(_NUMBERS)
def test_the_type_of_a_value_is_the_one_that_was_checked(text: str) -> None:
    declared = check(text, NAMES).type
    try:
        found = evaluate(text)
    except ZeroDivisionError:
        return
    assert union(infer(found), declared) == declared
