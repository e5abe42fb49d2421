"""Rules over the types of attributes: labels and parameters, what is set, where it goes, what may be null."""

from typing import Any

import msgspec
import pytest

from toolkit.config import settings
from toolkit.data.documents import Document
from toolkit.data.schema import ANY, INT, STR, Type, list_of, nullable
from toolkit.errors import ConfigError, DataError
from toolkit.rules.checker import Name
from toolkit.rules.rule import sample_hash
from toolkit.rules.rules_yaml import read_rules, read_scope
from toolkit.rules.ruleset import RuleSet

NAMES = {
    "n": Name(nullable(INT), "n"),
    "lang": Name(nullable(STR), "lang"),
    "xs": Name(list_of(INT), "xs"),
    "document": Name(
        Type("object", fields=(("id", STR), ("source", STR), ("chars", INT), ("metadata", Type("map", ANY)))),
        "document",
    ),
}
ARGUMENTS = ("n", "lang", "xs", "document")


def rules(text: str, given: str = "{}", **options: Any) -> RuleSet:
    scope = read_scope(settings.parse(given, "c.yaml"))
    return RuleSet(read_rules(settings.parse(text, "c.yaml"), "", scope), NAMES, ARGUMENTS, **options)


def refused(text: str, given: str = "{}", **options: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        rules(text, given, **options)
    return str(raised.value)


def doc(id: str = "1", **metadata: Any) -> Document:
    return Document("text", id=id, source="s", metadata=metadata)


# --- labels and parameters --------------------------------------------------------------------------------------------

BY_LABEL = "{parameters: {p: 5, words: []}, languages: {en: {p: 1, words: [2]}, no: {p: 0.5}}}"


def test_a_parameter_has_the_value_of_the_label_or_that_of_all_others() -> None:
    found = rules("- {drop: n is not None and n > p}\n- {drop: n is not None and n in words}", BY_LABEL, label="lang")
    decided = {
        (n, lang): found.decide(n, lang, [], doc()) for n in (0, 1, 2, 5, 6) for lang in ("en", "no", "fr", None)
    }
    assert {key for key, dropped in decided.items() if dropped == 0} == {
        *((n, "en") for n in (2, 5, 6)), *((n, "no") for n in (1, 2, 5, 6)), (6, "fr"), (6, None),
    }  # fmt: skip
    assert set(decided.values()) == {0, ()}
    assert found.decide(2, "en", [], doc()) == 0
    assert found.needs.keys >= {"lang"}


@pytest.mark.parametrize("label", [None, '"all"'])
def test_what_depends_on_labels_needs_labels_that_differ(label: str | None) -> None:
    rule, message = "- drop: n is not None and n > p", "expected a label for each document"
    assert message in refused(rule, "{parameters: {p: 5}, languages: {en: {p: 1}}}", label=label)
    assert message in refused("- sample: {en: 0.1}", label=label)
    rules(rule, "parameters: {p: 1}", label=label)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("parameters: {p: a}", "expected values that compare, got int > str"),
        (
            "{parameters: {p: 1}, languages: {en: {p: a}}}",
            "expected values of one type, got {'all others': 1, 'en': 'a'}",
        ),
        ("{parameters: {p: [1]}, languages: {en: {p: [a]}}}", "expected values of one type"),
        ("{parameters: {p: 1}, languages: {en: {p: true}}}", "expected values of one type"),
        ("{languages: {en: {p: 1}}}", "expected a value of 'p' for all other labels: `parameters: {p: …}`"),
        ("parameters: {n: 1}", "expected another name for the parameter 'n'"),
    ],
)
def test_a_parameter_is_checked_like_any_value(given: str, message: str) -> None:
    found = refused("- drop: n is not None and n > p", given, label="lang")
    assert found.startswith("c.yaml:1: ")
    assert message in found


def test_a_sample_by_label_is_the_sample_of_each_label() -> None:
    found = rules("- sample: {en: 0.25, de: 0, default: 0.5}", label="lang")
    for i in range(200):
        height = sample_hash("", "s", str(i)) / 2**64
        for lang, share in (("en", 0.25), ("de", 0), ("fr", 0.5), (None, 0.5)):
            assert found.decide(0, lang, [], doc(str(i))) == (() if height < share else 0)


def test_a_label_may_come_from_anything_that_is_a_text_or_null() -> None:
    found = rules("[]", label='get(document.metadata, "lang", "none")')
    assert found.label is not None
    assert found.needs.documents
    assert found.label(0, None, [], doc(lang="fr")) == "fr"
    assert found.label(0, None, [], doc()) == "none"
    with pytest.raises(DataError, match="expected a text or null as label, got 3"):
        found.label(0, None, [], doc(lang=3))
    broken = rules("[]", label='"x" if xs[0] > 1 else lang')
    assert broken.label is not None
    with pytest.raises(DataError, match=r"the label `.*` failed: expected an element"):
        broken.label(0, None, [], doc())
    assert "got a value of type int | null" in refused("[]", label="n")
    assert "did you mean 'lang'?" in refused("[]", label="langs")


def test_a_label_that_is_known_not_to_be_null_may_be_used_under_both_names() -> None:
    for first in ("lang", "label"):
        for second in ("lang", "label"):
            found = rules(f"- drop: {first} is None\n- drop: {second} == 'en'\n- route: {second}", label="lang")
            assert found.facts == {"lang", "label"}
    with pytest.raises(ConfigError, match="label may be null here"):
        rules("- {drop: lang is None, when: n is None}\n- drop: label < 'en'", label="lang")


def test_an_attribute_called_label_is_itself() -> None:
    names = {**NAMES, "label": Name(nullable(STR), "xs")}
    text = "- drop: lang is None\n- drop: label < 'en'"
    with pytest.raises(ConfigError, match="label may be null here"):
        RuleSet(read_rules(settings.parse(text, "c.yaml")), names, ARGUMENTS, "lang")


# --- set and route ----------------------------------------------------------------------------------------------------


def fields(found: RuleSet, *values: Any) -> dict[str, Any]:
    given = found.set_fields(found.applied(*values), *values)
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(given))
    return decoded


def test_fields_are_set_where_their_condition_holds_and_the_last_counts() -> None:
    found = rules(
        "- {set: {a: n, b.c: xs}}\n- {set: a, to: lang, when: n is None, name: other}\n"
        "- {set: b.d.e, to: document.id, when: lang is not None}\n- {set: p, to: p * 2}\n",
        "{parameters: {p: 1}, languages: {en: {p: 4}}}",
        label="lang",
    )
    assert fields(found, 1, "en", [2], doc()) == {"a": 1, "b": {"c": [2], "d": {"e": "1"}}, "p": 8}
    assert fields(found, None, None, [], doc()) == {"a": None, "b": {"c": []}, "p": 2}
    assert found.fields == {"a", "b.c", "b.d.e", "p"}
    assert {"n", "lang", "xs"} <= found.needs.to_set


def test_a_field_inside_another_that_is_set_is_refused() -> None:
    for text in ("- set: {a: 1, a.b: 2}", "- set: {a.b.c: 1, a.b: 2}"):
        assert "inside a" in refused(text)
    rules("- set: {a: 1, ab: 2, b.c: 3, b.d: 4}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("document", "expected a value for JSON"),
        ("xs[5]", "expected an element"),
        ("1 // len(xs)", "ZeroDivisionError"),
    ],
)
def test_a_value_that_cannot_be_set_is_an_error_of_the_rule(text: str, message: str) -> None:
    found = rules(f"- {{set: x, to: '{text}'}}")
    with pytest.raises(DataError) as raised:
        fields(found, 1, None, [], doc())
    assert str(raised.value).startswith("rule 'set x' (c.yaml:1)")
    assert message in str(raised.value)


def test_the_first_route_that_holds_counts_and_knows_the_label_of_the_format() -> None:
    found = rules(
        "- {route: '\"a/\" + label', when: n is not None and n == 1}\n"
        "- {route: '\"b\"', when: n is not None and n < 3, name: b}\n",
        label="lang",
    )
    for n, folder in ((1, "a/en-piece"), (2, "b"), (3, "en-piece"), (None, "en-piece")):
        values: tuple[Any, ...] = (n, "en", [], doc())
        applied = found.applied(*values)
        assert found.route(applied, "en-piece", *values) == folder
        assert applied == {1: [0], 2: [1]}.get(n or 0, [])
    assert "expected a text, the folder, got a value that may be null" in refused("- route: lang", label="lang")
    tested = rules("- {route: lang, when: lang is not None}")
    assert [tested.applied(1, lang, [], doc()) for lang in ("en", None)] == [[0], []]
    assert "got a value of type int" in refused("- route: '3'")
    broken = rules("- route: get(document.metadata, 'x', None)")
    with pytest.raises(DataError, match="expected a text, the folder, got None"):
        broken.route([0], "en", 1, None, [], doc())


# --- what a dry run needs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reads", "source"),
    [
        ("- drop: document.chars > 3", False, False),
        ("- drop: document.id == '1'", False, False),
        ("- drop: document.source == 's'", False, True),
        ("- sample: 0.5", False, True),
        ("- drop: '\"url\" in document.metadata'", True, False),
        ("- {annotate: x, when: '\"a\" in document.metadata'}", True, False),
        ("- {set: x, to: document.metadata}", True, False),
        ("- {group: g, when: 'len(document.metadata) > 1', rules: [sample: 0.1]}", True, True),
    ],
)
def test_documents_are_read_only_where_a_rule_asks_for_them(text: str, reads: bool, source: bool) -> None:
    found = rules(text)
    assert (found.needs.documents, found.needs.source) == (reads, source)
