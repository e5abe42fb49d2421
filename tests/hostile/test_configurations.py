"""Configurations that would take much more time or memory than they have text: refused with file and line, at once."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.conftest import Run
from tests.pipeline.conftest import Project
from toolkit.config import settings as config
from toolkit.data.schema import ANY, INT
from toolkit.errors import ConfigError
from toolkit.rules.checker import Name
from toolkit.rules.compiling import compile_function
from toolkit.rules.expression_tree import MAX_DEPTH, ExpressionError
from toolkit.rules.expressions import check
from toolkit.rules.filters import jq_finder, jsonpath
from toolkit.storage.globs import glob_regex


def bomb(form: Callable[[str], str]) -> str:
    """Nine levels, each of ten aliases of the one before: 10^10 values."""
    lines = ["a0: &a0 {k: x}"]
    lines += [f"a{i}: &a{i}\n  {form(', '.join([f'*a{i - 1}'] * 10))}" for i in range(1, 10)]
    return "\n".join(lines)


TEXTS = {
    "aliases": (bomb(lambda ten: f"[{ten}]"), 11, "more than 200,000 values, where an alias counts"),
    "merges": (bomb(lambda ten: f"<<: [{ten}]"), 11, "more than 200,000 values, where an alias counts"),
    "itself": ("a: 1\nb: &b\n  c: [*b]", 2, "expected a value that does not contain itself"),
    "brackets": ("a: 1\nb: " + "[" * 5000, 2, "more than 100 lists and mappings in each other"),
    "closed": ("b: " + "[" * 5000 + "]" * 5000, 1, "more than 100 lists"),
    "blocks": ("".join(" " * i + "a:\n" for i in range(2000)), 100, "more than 100 lists"),
    "dashes": ("- " * 5000, 1, "more than 100 lists"),
    "hexadecimal": ("a: 1\nb: 0x" + "f" * 4000, 2, "a number of more than 64 bits"),
    "decimal": ("a: 1\nb: " + "9" * 5000, 2, "a number of more than 64 bits"),
    "not a number": ("a: .nan", 1, "expected a number, got nan"),
    "NUL": ("a: 1\nb: \0", 2, r"the character U\+0000"),
    "no boolean": ("a: !!bool x", 1, "expected a value of the tag !!bool, got 'x'"),
    "no time": ("a: !!timestamp x", 1, "expected a value of the tag !!timestamp"),
    "bytes": ("a: !!binary eA==", 1, "expected a text, a number, true or false; got binary"),
    "code": ("a: !!python/object/apply:os.system [ls]", 1, "expected no tag, got python"),
    "set": ("a: !!set {x, y}", 1, "expected no tag, got set"),
    "key": ("a: 1\n? [b, c]\n: 1", 2, "expected a word for a key"),
    "twice": ("a: 1\nb: 1\na: 2", 3, "expected each key once"),
}


@pytest.mark.parametrize(("text", "line", "message"), TEXTS.values(), ids=TEXTS)
def test_yaml_that_attacks_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^c\.yaml:{line}: .*{message}"):
        config.parse(text, "c.yaml")


def test_aliases_and_merges_that_people_write_are_read() -> None:
    text = "a: &a {x: 1, y: [1, 2]}\nb: {<<: *a, x: 2}\nc: [*a, *a]"
    a = {"x": 1, "y": [1, 2]}
    assert config.parse(text).value == {"a": a, "b": {**a, "x": 2}, "c": [a, a]}


def test_a_configuration_of_a_gigabyte_is_not_read(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "c.yaml"
    with path.open("wb") as stream:
        stream.truncate(1 << 30)
    ran = run("tag", "-c", path)
    message = f"error: {path}: expected a configuration of at most 16,000,000 bytes, got a larger file\n"
    assert (ran.code, ran.err) == (2, message)


@given(st.text(alphabet="[]{}:,-?&*!|>'\"%@#<~ \n\tab019.x\0\ud800", max_size=60))
def test_any_text_is_a_configuration_or_an_error(text: str) -> None:
    try:
        value = config.parse(text, "c.yaml").value
    except ConfigError as error:
        assert re.match(r"c\.yaml(:\d+)?: ", str(error))  # noqa: PT017
    else:
        config.plain(value)


NAMES = {"a": Name(ANY, "a"), "n": Name(INT, "n")}
EXPRESSIONS = {
    "hexadecimal": ("n < 0x" + "f" * 4000, "expected numbers of at most 64 bits"),
    "decimal": ("n < " + "9" * 5000, "expected an expression"),
    "in an error": ("'x' + -" + "9" * 300, "expected numbers of at most 64 bits"),
    "powers": ("9**9**9 > n", "expected + - * / // or %"),
    "long text": ("'x' * 10**9 == a", "expected + - * / // or %"),
    "long list": ("len([1] * 1000000000) > n", "expected int or float, got list"),
    "products": ("n*" * 5000 + "n > 1", "nested too deeply"),
    "brackets": ("(" * 5000 + "n" + ")" * 5000, "expected an expression"),
    "minus": ("-" * 100_000 + "1", "nested too deeply"),
    "not": ("not " * 50_000 + "a", "nested too deeply"),
    "elements": ("a" + "[0]" * 5000, "nested too deeply"),
    "fields": ("a" + ".b" * 5000, "nested too deeply"),
    "conditions": ("n if n > 0 else " * 500 + "n", "nested too deeply"),
    "loops": ("any(True for x in a for y in a for z in a for w in a)", "expected at most 3 `for` in each other"),
    "loops of loops": ("[[[[1 for x in a] for y in a] for z in a] for w in a] == a", "at most 3 `for`"),
    "NUL": ("n > 1\0", "expected an expression"),
    "surrogate": ("a == '\ud800'", "expected an expression"),
    "long": ("a == '" + "x" * 2_000_000 + "'", "at most 1,000,000 characters, got 2,000,0"),
    "infinite": ("n < 1e999", "expected a finite number"),
}


@pytest.mark.parametrize(("text", "message"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions_that_attack_are_refused(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        check(text, NAMES)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 20_000


@pytest.mark.parametrize(
    "text", ["n + " * (MAX_DEPTH - 3) + "n > 0", "a and " * 5000 + "a", f"a in [{'1, ' * 20_000}]"]
)
def test_long_expressions_that_people_may_write_compile(text: str) -> None:
    assert callable(compile_function(check(text, NAMES).code, ("a", "n")))


@pytest.mark.parametrize("text", ["a * 1000000000", "1000000000 * a", "a % 5"])
@pytest.mark.parametrize("value", ["%999999999d", [1]])
def test_values_whose_type_is_not_known_are_not_multiplied_texts(text: str, value: Any) -> None:
    function = compile_function(check(text, NAMES).code, ("a",))
    assert isinstance(function(7), int)
    with pytest.raises(TypeError, match="expected numbers around"):
        function(value)


@given(st.text(alphabet="na0x9.*/-+<>=()[]{},'\" \\\0\n:forinotdlmbd", max_size=40))
def test_any_text_is_an_expression_or_an_error(text: str) -> None:
    try:
        found = check(text, NAMES)
    except ExpressionError:
        return
    assert callable(compile_function(found.code, ("a", "n")))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"drop": "n.x < 0x" + "f" * 4000}, "expected numbers of at most 64 bits"),
        ({"drop": "(" * 3000 + "1"}, "expected an expression"),
        ({"annotate": "x", "when": "-" * 90_000 + "1"}, "nested too deeply"),
    ],
)
def test_a_rule_that_attacks_is_named_with_its_line(small: Project, rule: dict[str, str], message: str) -> None:
    small.ok("tag")
    small.config["mix"]["rules"] = [rule]
    ran = small("mix").fails(2)
    assert re.match(r"error: .*config\.yaml:1: rule ", ran.err)
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_includes_that_double_at_every_level_end(small: Project) -> None:
    for level in range(40):
        twice = [{"include": f"{level + 1}.yaml"}] * 2
        (small.root / f"{level}.yaml").write_text(json.dumps(twice if level < 39 else []))
    small.config["mix"]["rules"] = [{"include": "0.yaml"}]
    small("mix").fails(2, "expected at most 500 includes in all, got more")


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 30 + "b", "a" * 250),
        ("**/a/" * 20 + "b", "a/" * 300),
        ("**/*a*a/" * 10 + "b", "aaaa/" * 300),
        ("[a-z]*" * 20 + "0", "a" * 250),
        ("{a*,b*}*c*{d*,e*}f", "ab" * 120),
        ("*" * 1000 + "b", "a" * 250),
        ("{" * 9000, "x"),
    ],
)
def test_globs_take_time_that_grows_with_the_path_alone(glob: str, path: str) -> None:
    assert not glob_regex(glob).match(path)


@pytest.mark.parametrize(
    ("glob", "message"),
    [("{a,b}" * 12, "at most 1000 alternatives"), ("[" * 50_000, "at most 10,000 characters"), ("[!]", "got: ")],
)
def test_globs_of_too_much_are_refused(glob: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        glob_regex(glob)


def naive(glob: str) -> re.Pattern[str]:
    """The plain meaning of a glob of ``a``, ``b``, ``*``, ``**`` and slashes, in any time."""
    parts = glob.split("/")
    text = "".join("(?:[^/]+/)*" if p == "**" else p.replace("*", "[^/]*") + "/" for p in parts[:-1])
    return re.compile(text + (".*" if parts[-1] == "**" else parts[-1].replace("*", "[^/]*")))


PARTS = st.one_of(st.just("**"), st.text("ab*", max_size=5).filter(lambda part: "**" not in part))


@pytest.mark.slow
@given(st.lists(PARTS, min_size=1, max_size=6).map("/".join), st.text("ab/", max_size=14))
@settings(max_examples=2000)
def test_globs_match_what_their_plain_meaning_matches(glob: str, path: str) -> None:
    assert bool(glob_regex(glob).match(path)) == bool(naive(glob).fullmatch(path))


@pytest.mark.parametrize(
    "text",
    [
        "$.a[?(" * 2000,
        "$[?" + "(" * 3000 + "@.a" + ")" * 3000 + "]",
        "$[?" + "!" * 5000 + "@.a]",
        "$[?" + "@.a && " * 5000 + "@.b]",
        "$.a[?(@.x==" + "9" * 5000 + ")]",
        "$[" + "9" * 5000 + "]",
    ],
)
def test_jsonpaths_that_attack_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a JSONPath"):
        jsonpath.parse(text)


@pytest.mark.parametrize("text", ["[" * 200_000, ".|" * 20_000 + ".", "-" * 100_000 + "1", '"\\(' * 5000])
def test_jq_filters_that_attack_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a jq filter"):
        jq_finder(text)
