"""Rules: the forms in which they are written, includes, errors with their lines, and who drops a document first."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.rules.test_ruleset import doc, refused as refused_repeating, rules as rules_repeating
from toolkit.config import settings as config
from toolkit.data.schema import INT, STR, Type, list_of, nullable
from toolkit.errors import ConfigError, DataError
from toolkit.rules.checker import Name
from toolkit.rules.kinds.blocklist import Blocklist
from toolkit.rules.kinds.drop import Sample
from toolkit.rules.rule import Rule, sample_hash
from toolkit.rules.rules_yaml import merged, read_rules, read_scope
from toolkit.rules.ruleset import RuleSet

NAMES = {
    "n": Name(INT, "n"),
    "label": Name(nullable(STR), "label"),
    "xs": Name(list_of(INT), "xs"),
    "by": Name(Type("map", INT), "by"),
}


def read(text: str, folder: Path | str = "") -> list[Rule]:
    return read_rules(config.parse(text, "c.yaml"), str(folder))


def refused(text: str, folder: Path | str = "") -> str:
    with pytest.raises(ConfigError) as raised:
        read(text, folder)
    return str(raised.value)


def rules(text: str) -> RuleSet:
    return RuleSet(read(text), NAMES, tuple(NAMES))


def test_rules_are_read_in_their_order_under_names_of_their_own() -> None:
    found = read(
        "- {drop: n > 3, name: long}\n"
        "- drop: n < 0\n"
        "- keep: label is not None\n"
        "- annotate: short\n"
        "  when: n < 2\n"
        "- {annotate: short, when: n < 1, name: very short}\n"
        "- {drop: label is None, name: no}\n"
    )
    assert [(r.kind, r.name, r.expressions[0], r.annotation, r.place) for r in found] == [
        ("drop", "long", "n > 3", "", "c.yaml:1"),
        ("drop", "n < 0", "n < 0", "", "c.yaml:2"),
        ("keep", "not (label is not None)", "label is not None", "", "c.yaml:3"),
        ("annotate", "short", "n < 2", "short", "c.yaml:4"),
        ("annotate", "very short", "n < 1", "short", "c.yaml:6"),
        ("drop", "no", "label is None", "", "c.yaml:7"),
    ]
    assert found[1].recorded() == {"kind": "drop", "name": "n < 0", "expression": "n < 0"}, "moved lines change nothing"


def test_edits_are_rules_too() -> None:
    found = read(
        "- {replace: emails, by: '|||{tag}|||', min_score: 0.5, when: n > 1}\n"
        "- {cut: repeated, max_score: 1}\n- {cut: lines, when: label is None}\n- drop: n > 3\n"
    )
    assert [(r.kind, r.name, r.expressions[0], r.edits) for r in found] == [
        ("replace", "emails", "emails", True),
        ("cut", "repeated", "repeated", True),
        ("cut lines", "cut lines: label is None", "label is None", True),
        ("drop", "n > 3", "n > 3", False),
    ]
    assert [r.recorded() for r in found[:2]] == [
        {
            "kind": "replace",
            "name": "emails",
            "expression": "emails",
            "when": "n > 1",
            "by": "|||emails|||",
            "min_score": 0.5,
        },
        {"kind": "cut", "name": "repeated", "expression": "repeated", "max_score": 1},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drop: n > 1", "c.yaml:1: expected a list of rules"),
        ("- n > 1", "c.yaml:1: [0]: expected a rule such as `drop: EXPRESSION`, got 'n > 1'"),
        ("- drop: n > 1\n- dorp: n > 1", "c.yaml:2: [1]: expected one of annotate, cut, drop, keep"),
        ("- dorp: n > 1", "did you mean 'drop'?"),
        ("- {drop: n > 1, keep: n > 2}", "expected one of annotate, cut, drop, keep"),
        ("- {name: x}", "got ['name']"),
        (
            "- {drop: n > 1,\n   nmae: x}",
            "c.yaml:2: [0].nmae: unknown option 'nmae' of the rule 'drop'; did you mean 'name'?",
        ),
        ("- {drop: n > 1, by: a}", "unknown option 'by' of the rule 'drop'"),
        ("- {include: x.yaml, name: x}", "unknown option 'name' of the rule 'include'"),
        ("- annotate: x", "c.yaml:1: [0]: expected `when:` beside `annotate`"),
        (
            "- drop: true",
            "[0].drop: expected a text or a list, got true; write quotes around an expression that YAML would",
        ),
        ("- drop: [a]", "expected an expression, or with `syntax:` a pattern or a list of them, got ['a']"),
        ("- drop:", "[0].drop: expected a text or a list, got null"),
        ("- replace: xs", "expected `by:` beside `replace`"),
        ("- {replace: xs, by: 3}", "[0].by: expected a text, got 3"),
        ("- {cut: xs, min_score: high}", "[0].min_score: expected a number, got 'high'"),
        ("- {cut: xs, min_score: true}", "[0].min_score: expected a number, got true"),
        ("- {cut: xs, by: a}", "unknown option 'by' of the rule 'cut'"),
        ("- cut: lines", "expected `when:` beside `cut: lines`"),
        ("- {drop: n > 1, min_score: 1}", "unknown option 'min_score' of the rule 'drop'"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_line(text: str, message: str) -> None:
    assert message in refused(text)


def test_two_rules_of_one_name_are_refused_with_both_places() -> None:
    assert refused("- drop: n > 1\n- {drop: n > 2, name: n > 1}") == (
        "c.yaml:2: expected each rule under a name of its own, got 'n > 1' also at c.yaml:1; give it a `name:`"
    )


# --- include ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["- drop: n > 1\n", "rules:\n- drop: n > 1\n", "dataset: x\nmix:\n  attributes: [a]\n  rules:\n  - drop: n > 1\n"],
    ids=["a list", "a mapping with rules", "a configuration"],
)
def test_rules_can_be_included(text: str, tmp_path: Path) -> None:
    shared = tmp_path / "shared.yaml"
    shared.write_text(text)
    found = read("- drop: n > 0\n- include: shared.yaml\n- drop: n > 2\n", tmp_path)
    assert [rule.expressions[0] for rule in found] == ["n > 0", "n > 1", "n > 2"]
    assert found[1].place == f"{shared}:{text.count(chr(10))}"


def test_included_paths_are_relative_to_the_file_that_includes(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text("- include: b.yaml\n")
    (tmp_path / "sub" / "b.yaml").write_text("- drop: n > 1\n")
    (tmp_path / "b.yaml").write_text("- drop: n > 2\n")
    assert [rule.expressions[0] for rule in read("- include: sub/a.yaml", tmp_path)] == ["n > 1"]


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("rules:\n- drop: n > 1\n- drpo: n > 2\n")
    assert refused("- include: a.yaml", tmp_path).startswith(f"{tmp_path}/a.yaml:3: rules[1]: expected one of annotate")


def test_includes_that_do_not_end_or_lead_nowhere_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- include: b.yaml\n")
    (tmp_path / "b.yaml").write_text("- drop: n > 1\n- include: a.yaml\n")
    assert refused("- include: a.yaml", tmp_path) == (
        f"{tmp_path}/b.yaml:2: [1]: expected includes that end, got a.yaml including itself"
    )
    assert refused("- include: none.yaml", tmp_path).startswith(
        "c.yaml:1: [0]: expected a file of rules, got nothing at"
    )
    (tmp_path / "empty.yaml").write_text("dataset: x\n")
    assert "empty.yaml, got none" in refused("- include: empty.yaml", tmp_path)


def test_a_file_included_twice_gives_names_twice(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- drop: n > 1\n")
    assert "each rule under a name of its own" in refused("- include: a.yaml\n- include: a.yaml\n", tmp_path)


# --- decisions --------------------------------------------------------------------------------------------------------


def test_the_first_rule_that_drops_decides_and_annotations_are_in_order() -> None:
    found = rules(
        "- {annotate: second, when: n > 1}\n- {drop: n > 3, name: a}\n- {keep: n < 3, name: b}\n"
        "- {drop: n > 2, name: c}\n- {annotate: last, when: n > 0}\n"
    )
    outcomes = [found.decide(n, None, [], {}) for n in (0, 1, 2, 3, 4)]
    assert outcomes == [(), (4,), (0, 4), 2, 1]
    assert found.annotations((0, 4)) == ["second", "last"]


def test_an_annotation_that_two_rules_add_is_there_once() -> None:
    found = rules("- {annotate: a, when: n > 0}\n- {annotate: b, when: n > 0}\n- {annotate: a, when: n > 1, name: c}\n")
    assert found.annotations(found.decide(2, None, [], {})) == ["a", "b"]


def test_a_rule_alone_drops_what_no_later_rule_drops() -> None:
    found = rules("- drop: label is None\n- {annotate: a, when: n > 0}\n- drop: n > 3\n- drop: label == 'en'")
    for n, label, alone in ((1, None, True), (4, None, False), (4, "fr", True), (4, "en", False), (1, "en", True)):
        dropped = found.decide(n, label, [], {})
        assert isinstance(dropped, int)
        assert found.only_drop(dropped, n, label, [], {}) is alone, (n, label)


def test_keep_is_drop_of_the_opposite() -> None:
    keep, drop = rules("- keep: n > 1 and n < 3"), rules("- drop: not (n > 1 and n < 3)")
    for n in range(5):
        assert keep.decide(n, None, [], {}) == drop.decide(n, None, [], {})


def test_rules_know_what_rules_before_them_have_ruled_out() -> None:
    assert rules("- drop: label is None\n- drop: label == 'en'").facts == {"label"}
    assert rules("- keep: label is not None and n > 1\n- drop: label == 'en'").needs.keys == {"label", "n"}
    with pytest.raises(ConfigError, match=r"^c\.yaml:2: rule \"label < 'en'\": label may be null here"):
        rules("- {annotate: x, when: label is None}\n- drop: label < 'en'")
    with pytest.raises(ConfigError, match=r"^c\.yaml:1: .*label may be null here"):
        rules("- drop: label < 'en'\n- drop: label is None")
    with pytest.raises(ConfigError, match=r"^c\.yaml:2: .*label may be null here"):
        rules("- keep: label is None\n- drop: label < 'en'")
    assert rules("- keep: label == 'en'\n- drop: label < 'en'").facts == {"label"}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("langauge > 1", r"^c\.yaml:1: rule 'langauge > 1': expected an attribute, got 'langauge'"),
        ("lable is None", "did you mean 'label'"),
        ("n", "expected a condition, true or false, got a value of type int"),
        ("n >", "expected an expression"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_before_anything_runs(rule: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rules(f"- drop: {rule}")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("1 // n > 0", "ZeroDivisionError"),
        ("xs[0] > 1", "expected an element, got a list that is too short"),
        ("by['a'] > 1", "expected the key 'a', got a map without it; use get"),
        ("max(xs) > 1", "ValueError"),
    ],
)
def test_a_rule_that_meets_a_value_it_cannot_use_is_an_error_not_a_decision(rule: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        rules(f'- {{drop: "{rule}", name: bad}}').decide(0, None, [], {})
    assert str(raised.value).startswith("rule 'bad' (c.yaml:1) failed: ")
    assert message in str(raised.value)


def test_no_rules_keep_everything() -> None:
    assert rules("[]").decide(0, None, [], {}) == ()


# Rules as they are written: groups, includes, parameters and languages, forms of set and sample; what is refused.


def read_rules_reading(text: str, folder: Path | str = "", outer: str = "{}") -> list[Rule]:
    return read_rules(config.parse(text, "c.yaml"), str(folder), read_scope(config.parse(outer, "c.yaml"), str(folder)))


def refused_rules_reading(text: str, folder: Path | str = "", outer: str = "{}") -> str:
    with pytest.raises(ConfigError) as raised:
        read_rules_reading(text, folder, outer)
    return str(raised.value)


# --- groups and includes ----------------------------------------------------------------------------------------------


def test_a_group_gives_its_rules_its_name_and_its_condition() -> None:
    found = read_rules_reading(
        "- group: a\n  when: x\n  rules:\n"
        "  - {drop: n > 1, when: y, name: one}\n"
        "  - {group: b, when: z or w, rules: [{annotate: two, when: n > 2}, {sample: 0.5}, {route: '\"r\"'}]}\n"
        "  - {drop: n > 3, name: three}\n"
        "- {drop: n > 4, name: four}\n"
    )
    assert [(rule.name, rule.group, rule.when, rule.recorded().get("expression")) for rule in found] == [
        ("a: one", "a", "(x) and (y)", "n > 1"),
        ("a/b: two", "a/b", "(x) and (z or w)", "n > 2"),
        ("a/b: sample 0.5", "a/b", "(x) and (z or w)", None),
        ('a/b: route "r"', "a/b", "(x) and (z or w)", '"r"'),
        ("a: three", "a", "x", "n > 3"),
        ("four", "", "", "n > 4"),
    ]


def test_an_include_gives_its_rules_the_condition_and_the_group_around_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.yaml").write_text("- drop: n > 1\n- {group: b, when: z, rules: [include: b.yaml]}\n")
    (tmp_path / "sub/b.yaml").write_text("mix: {rules: [{drop: n > 2, when: w}]}\n")
    found = read_rules_reading("- {group: g, when: x, rules: [{include: sub/a.yaml, when: y}]}", tmp_path)
    assert [(rule.name, rule.when) for rule in found] == [
        ("g: n > 1", "(x) and (y)"),
        ("g/b: n > 2, when w", "(x) and (y) and (z) and (w)"),
    ]


# --- parameters -------------------------------------------------------------------------------------------------------


def test_what_is_given_outside_goes_before_what_is_given_inside_label_by_label(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "parameters: {p: 1, q: 1, r: 1}\n"
        "languages: {en: {p: 2, q: 2}}\n"
        "rules: [{drop: n > p, name: p}, {drop: n > q + r, name: q}, {drop: n > 0, name: none}]\n"
    )
    found = read_rules_reading(
        "- {include: a.yaml, parameters: {p: 3}, languages: {fr: {p: 4}, en: {q: 5}}}",
        tmp_path,
        "{parameters: {r: 6}, languages: {fr: {p: 7}}}",
    )
    assert [rule.parameters for rule in found] == [
        {"p": {"": 3, "en": 2, "fr": 7}},
        {"q": {"": 1, "en": 5}, "r": {"": 6}},
        {},
    ]
    assert merged({"a": {"": 1, "en": 2}}, {"a": {"": 3}, "b": {"": 4}}) == {"a": {"": 3, "en": 2}, "b": {"": 4}}


def test_values_by_language_may_stand_in_a_file_for_each(tmp_path: Path) -> None:
    for name, text in (("en.yaml", "{p: 1, words: [a, b]}"), ("zh-Hant.v2.yaml", "p: 2"), ("fr.yaml", "# nothing yet")):
        (tmp_path / name).write_text(text)
    outer = "{parameters: {p: 0, words: []}, languages: '*.yaml'}"
    (rule,) = read_rules_reading('- drop: n > p and "a" in words', tmp_path, outer)
    assert rule.parameters == {"p": {"": 0, "en": 1, "zh-Hant": 2}, "words": {"": [], "en": ["a", "b"]}}
    (tmp_path / "en.yml").write_text("p: 3")
    assert "en.yml:1: p: expected one file for the label 'en'" in refused_rules_reading(
        "- drop: n > p", tmp_path, "{parameters: {p: 0}, languages: '*.y*ml'}"
    )
    assert "expected at least one file" in refused_rules_reading("[]", tmp_path, "languages: none/*.yaml")


def test_three_integers_are_a_list_like_any_other() -> None:
    assert read_rules_reading("- drop: n in p", outer="parameters: {p: [1, 2, 3]}")[0].parameters == {
        "p": {"": [1, 2, 3]}
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parameters: [p]", "parameters: expected a mapping of parameters, got ['p']"),
        ("parameters: {p: }", "parameters.p: expected a number, a text, true, false, or a list of such"),
        ("parameters: {p: {a: 1}}", "got {'a': 1}"),
        ("parameters: {p: [1, a]}", "got [1, 'a']"),
        ("parameters: {p: [[1]]}", "got [[1]]"),
        ("parameters: {p: .inf}", "got inf"),
        ("parameters: {p: .nan}", "got nan"),
        ("parameters: {label: 1}", "parameters.label: expected a name that expressions can use, got 'label'"),
        ("parameters: {a-b: 1}", "got 'a-b'"),
        ("parameters: {len: 1}", "got 'len'"),
        ("languages: [en]", "languages: expected {LABEL: {PARAMETER: VALUE}}, a table, or a glob of files"),
        ("languages: {en: 3}", "languages.en: expected a mapping of parameters, got 3"),
        ("languages: {en: {p: {}}}", "languages.en.p: expected a number"),
        ("languages: missing.yaml", "languages: missing.yaml: expected a file"),
    ],
)
def test_parameters_that_are_none_are_refused(text: str, message: str) -> None:
    assert message in refused_rules_reading("- drop: n > p", outer=text)


@pytest.mark.parametrize("given", ["parameters: {limt: 1}", "parameters: {limit: 1}, languages: {en: {limt: 1}}"])
def test_a_parameter_that_no_rule_uses_is_refused_with_what_is_close(given: str, tmp_path: Path) -> None:
    message = "expected parameters that a rule uses, got 'limt'; did you mean 'limit'?"
    assert message in refused_rules_reading(f"- {{group: g, {given}, rules: [drop: n > limit]}}")
    (tmp_path / "a.yaml").write_text("- drop: n > limit\n")
    assert message in refused_rules_reading(f"- {{include: a.yaml, {given}}}", tmp_path)
    assert refused_rules_reading("- {include: a.yaml, parameters: {other: 1}}", tmp_path).endswith(
        "got 'other'; used are: none"
    )


# --- forms ------------------------------------------------------------------------------------------------------------


def test_set_gives_one_rule_for_each_field() -> None:
    found = read_rules_reading(
        "- {set: quality, to: n / 2, when: x}\n- {set: metadata.a.b, to: 1, name: ab}\n"
        "- {set: {c: true, d.e: 1.5, f: '\"x\"'}, when: y}\n"
    )
    assert [(rule.name, rule.field, rule.expressions[0], rule.when) for rule in found] == [
        ("set quality", "quality", "n / 2", "x"),
        ("ab", "a.b", "1", ""),
        ("set c", "c", "True", "y"),
        ("set d.e", "d.e", "1.5", "y"),
        ("set f", "f", '"x"', "y"),
    ]


def test_a_share_may_depend_on_the_label() -> None:
    plain, by_label = read_rules_reading(
        "- {sample: 0.1, when: x}\n- {sample: {en: 0.5, default: 0, no: 1}, seed: 3}\n"
    )
    assert isinstance(plain, Sample)
    assert isinstance(by_label, Sample)
    assert (plain.name, plain.share, plain.shares) == ("sample 0.1 of x", 0.1, {})
    assert (by_label.name, by_label.share, by_label.shares) == (
        "sample en=0.5 default=0 no=1", 0.0, {"en": 0.5, "no": 1.0},
    )  # fmt: skip
    assert read_rules_reading("- sample: {en: 0.5}")[0].recorded()["share"] == 1.0


def test_what_is_recorded_of_a_rule_tells_zero_from_nothing_and_knows_no_places(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a\n")
    (tmp_path / "copy.txt").write_text("a\n")

    def settings(text: str) -> dict[str, object]:
        (rule,) = read_rules_reading(text, tmp_path)
        return rule.recorded()

    one, other = (settings(f"- {{drop: blocklist, files: {name}.txt}}") for name in ("list", "copy"))
    assert one == other
    assert "list" not in str(one["files"])
    assert settings("- {cut: xs, min_score: 0}") != settings("- cut: xs")
    assert settings("- {cut: xs, max_score: 0.0}") != settings("- cut: xs")
    assert settings("- {sample: 0, name: x}") != settings("- {sample: {default: 1}, name: x}")


def test_files_of_a_blocklist_may_be_globs_and_stand_beside_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.txt"):
        (tmp_path / "sub" / name).write_text(name)
    (tmp_path / "sub/rules.yaml").write_text("- {drop: blocklist, files: ['*.txt', a.txt], entries: ids}\n")
    (rule,) = read_rules_reading("- include: sub/rules.yaml", tmp_path)
    assert isinstance(rule, Blocklist)
    assert (rule.name, rule.entries) == ("blocklist", "ids")
    assert list(rule.files) == [f"{tmp_path}/sub/a.txt", f"{tmp_path}/sub/b.txt"], "each once"
    digests = dict(rule.files)
    (tmp_path / "sub/a.txt").write_text("other")
    assert read_rules_reading("- include: sub/rules.yaml", tmp_path)[0].recorded()["files"] != list(digests.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {group: g}", "[0]: expected `rules:` beside `group`"),
        ("- {group: g, rules: {drop: n > 1}}", "[0].rules: expected a list of rules"),
        ("- {group: g, rules: [drop: n > 1], name: x}", "[0].name: unknown option 'name' of the rule 'group'"),
        ("- {group: '', rules: []}", "[0].group: expected a text that is not empty"),
        ("- {drop: n > 1, when: ' '}", "[0].when: expected a text that is not empty"),
        ("- {group: g, rules: [{drop: n > 1}, {drop: n > 1}]}", "got 'g: n > 1' also at c.yaml:1"),
        ("- sample: {}", "[0].sample: expected a share, or {LABEL: SHARE}, got none"),
        ("- sample: {en: 2}", "[0].sample.en: expected a share between 0 and 1, got 2"),
        ("- sample: true", "[0].sample: expected a share, or {LABEL: SHARE}, got true"),
        ("- sample: [0.5]", "[0].sample: expected a share, or {LABEL: SHARE}, got [0.5]"),
        ("- set: x", "expected a field of the metadata and an expression (a text has quotes of its own"),
        ("- {set: x, too: 1}", "did you mean 'to'?"),
        ("- {set: {x: 1}, to: 2}", "[0].to: expected `set: FIELD` beside `to:`"),
        ("- {set: a..b, to: 1}", "expected a field of the metadata"),
        ("- set: {}", "[0].set: expected `set: FIELD`"),
        ("- set: {x: [1]}", "got 'x': [1]"),
        ("- route: 3", "[0].route: expected a text, got 3"),
        ("- {drop: get(a, b, 1) > 2}", "[0].b: unknown option 'b' of the rule 'drop'"),
        ("- {drop: get(a, b, 1) > 2}", "inside of braces, write quotes around an expression that has commas"),
        ("- {drop: blocklist}", "[0]: expected `files:` beside `drop: blocklist`"),
        ("- {drop: blocklist, files: [1]}", "[0].files[0]: expected a text, got 1"),
        ("- {drop: blocklist, files: []}", "[0].files: expected a list of at least 1, got []"),
        ("- {drop: blocklist, files: no.txt, strict: true}", "unknown option 'strict' of the rule 'drop: blocklist'"),
        ("- {drop: blocklist, files: no.txt}", "[0].files: no.txt: expected a file, got nothing there"),
        ("- {drop: n > 1, files: no.txt}", "[0].files: expected 'files' only beside `drop: blocklist`"),
        ("- {drop: blocklist, files: no.txt, entries: id}", "[0].entries: expected any, ids, hosts or urls, got 'id'"),
        (
            "- {drop: blocklist, files: no.txt, url: url}",
            "[0].url: expected a field (`metadata.url`, `document.url`), got",
        ),
    ],
)
def test_what_is_no_rule_is_refused_with_its_place(text: str, message: str) -> None:
    found = refused_rules_reading(text)
    assert found.startswith("c.yaml:1: ")
    assert message in found


# How often a document is written: numbers, expressions, curves; several rules, and the draw that they share.

IDS = [str(i) for i in range(4000)]


def copies(found: RuleSet, n: int | None = 0, id: str = "1") -> int:
    values: Any = (n, None, [], doc(id))
    return 0 if isinstance(found.decide(*values), int) else found.copies(*values)


@pytest.mark.parametrize(("amount", "least", "most"), [(0, 0, 0), (0.3, 0, 1), (1, 1, 1), (2.5, 2, 3), (7, 7, 7)])
def test_an_amount_is_written_as_often_as_it_says_and_its_fraction_is_drawn(
    amount: float, least: int, most: int
) -> None:
    compiled = rules_repeating(f"- {{repeat: {amount}}}")
    found = [copies(compiled, id=id) for id in IDS]
    assert (min(found), max(found)) == (least, most)
    part = amount % 1
    assert abs(sum(found) - amount * len(IDS)) <= 4 * math.sqrt(len(IDS) * part * (1 - part))


def test_the_fraction_is_drawn_as_a_sample_draws_and_independently_of_one() -> None:
    compiled = (
        rules_repeating("- {repeat: 0.3}"),
        rules_repeating("- {sample: 0.3, seed: repeat}"),
        rules_repeating("- {sample: 0.5}\n- {repeat: 0.5}"),
    )
    repeated = {id for id in IDS if copies(compiled[0], id=id)}
    assert repeated == {id for id in IDS if sample_hash("repeat", "s", id) < 0.3 * 2**64}
    assert repeated == {id for id in IDS if copies(compiled[1], id=id)}
    both = [copies(compiled[2], id=id) for id in IDS]
    assert abs(sum(both) - 1000) < 4 * math.sqrt(4000 * 0.25 * 0.75)


def test_what_when_tests_is_not_null_in_the_amount() -> None:
    for when, amount in (("n is not None", "n"), ("not n is None and n > 0", "n + 0")):
        compiled = rules_repeating(f"- {{repeat: {{score: {amount}, curve: [[0, 0], [4, 4]]}}, when: {when}}}")
        assert [copies(compiled, n=n) for n in (3, None)] == [3, 1]
    for when in ("n is None", "n is not None or lang is None", "lang is not None"):
        assert "a value that may be null; test it first" in refused_repeating(f"- {{repeat: n, when: {when}}}")


@pytest.mark.parametrize(
    ("target", "amounts"),  # of allenai/dolma3's `solve_fit`, with buckets of as many tokens
    [
        (
            "average: 1.25, drop_below: 0.4",
            {0.2: 0, 0.43: 0.006981694, 0.68: 0.958768253, 0.94: 5.355704382, 0.95: 7.000000999, 1: 7.000000999},
        ),
        ("average: 2.5, drop_below: 0.4", {0.39: 0, 0.4: 0.779131, 0.68: 4.0399454, 0.97: 7.000000999}),
        ("average: 0.3", {0: 0.00016874, 0.5: 0.1483439, 0.99: 1.256825678}),
        (
            "average: 1, drop_below: 0.55, most: 4, steps: 10",
            {0.49: 0, 0.5: 0.255196982, 0.85: 2.889953267, 1: 4.000001},
        ),
    ],
)
def test_a_curve_with_an_average_is_that_of_dolma_3(target: str, amounts: dict[float, float]) -> None:
    (curve,) = rules_repeating(f"- repeat: {{score: document.chars / 1, curve: {{{target}}}}}")._repeating.values()
    assert {x: curve.times((0, None, [], _Scored(x))) for x in amounts} == pytest.approx(amounts, rel=1e-4)


def test_a_curve_that_cannot_have_its_average_is_refused() -> None:
    message = refused_repeating("- {repeat: {score: n, curve: {average: 4.2, drop_below: 0.4}}}")
    assert "repeat.curve: average: expected at most 4.16, as nothing below the rank 0.4 is written" in message


@given(st.floats(-1, 2, allow_nan=False))
def test_a_curve_is_straight_between_its_points_and_level_beyond_them(score: float) -> None:
    amount = CURVE.times((0, None, [], _Scored(score)))
    points = [(-9.0, 0.0), (0.0, 0.0), (0.5, 0.4), (0.9, 2.0), (1.0, 7.0), (9.0, 7.0)]
    (x, y), (x2, y2) = next((a, b) for a, b in itertools.pairwise(points) if a[0] <= score < b[0])
    assert amount == pytest.approx(y + (y2 - y) * (score - x) / (x2 - x))


(CURVE,) = rules_repeating(
    "- {repeat: {score: document.chars / 1, curve: [[0.0, 0], [0.5, 0.4], [0.9, 2], [1.0, 7]]}}"
)._repeating.values()


class _Scored:
    """A document whose size is a score."""

    def __init__(self, chars: float) -> None:
        self.chars = chars


def test_amounts_are_multiplied_and_drawn_once() -> None:
    found = rules_repeating("- {repeat: 0.5}\n- {repeat: 2}\n- {repeat: 3, when: n == 1}")
    assert {copies(found, id=id) for id in IDS} == {1}
    assert {copies(found, n=1, id=id) for id in IDS} == {3}


def test_what_a_draw_leaves_out_is_counted_by_the_last_rule_that_applies() -> None:
    found = rules_repeating(
        "- {repeat: 0.5}\n- {drop: n is None}\n- {repeat: 0.5, when: n > 3}\n- {repeat: 0, when: n == 9}"
    )
    assert {found.decide(0, None, [], doc(id)) for id in IDS} == {0, ()}
    assert {found.decide(4, None, [], doc(id)) for id in IDS} == {2, ()}
    assert {found.decide(9, None, [], doc(id)) for id in IDS} == {3}
    assert {found.decide(None, None, [], doc(id)) for id in IDS} == {1}


def test_an_expression_says_how_often() -> None:
    assert copies(rules_repeating("- {repeat: len(xs) + 2, when: n == 1}"), n=1) == 2
    assert copies(rules_repeating("- {repeat: len(xs) + 2, when: n == 1}"), n=2) == 1
    with pytest.raises(DataError, match=r"rule 'repeat len\(xs\) - 1' .* expected a number of 0 or more.*got -1"):
        rules_repeating("- {repeat: len(xs) - 1}").decide(0, None, [], doc())
    with pytest.raises(DataError, match=r"expected an amount of at most 100, got 400; write `min\(…, 100\)`"):
        rules_repeating("- {repeat: len(xs) + 20}\n- {repeat: 20}").decide(0, None, [], doc())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {repeat: -1}", "c.yaml:1: [0].repeat: expected a number between 0 and 100, or an expression, got -1"),
        ("- {repeat: true}", "expected"),
        ("- {repeat: 200}", "expected a number between 0 and 100, or an expression, got 200"),
        ("- {repeat: n}", "expected a number, how often a document is written, got a value that may be null"),
        ("- {repeat: document.id}", "expected a number, how often a document is written, got a value of type str"),
        ("- {repeat: {score: n, curve: [[0, 1]]}}", "expected a number, the score, got a value that may be null"),
        ("- {repeat: {score: n}}", "curve"),
        ("- {repeat: {score: n, curves: [[0, 1]]}}", "did you mean 'curve'"),
        ("- {repeat: {score: n, curve: []}}", "repeat.curve: expected points [score, amount]"),
        ("- {repeat: {score: n, curve: [[0, 1], [0, 2]]}}", "expected scores that rise, got 0 after 0"),
        ("- {repeat: {score: n, curve: [[0, 1], [1, -2]]}}", "expected amounts between 0 and 100, got -2"),
        ("- {repeat: {score: n, curve: [[0, 1, 2]]}}", "expected points [score, amount]"),
        ("- {repeat: 2, seed: a}\n- {repeat: 3, seed: b}", "c.yaml:2: rule 'repeat 3': expected one seed"),
    ],
)
def test_what_cannot_be_an_amount_is_refused_with_its_place(text: str, message: str) -> None:
    assert message in refused_repeating(text)
