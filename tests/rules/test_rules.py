"""Rules: the forms in which they are written, includes, errors with their lines, and who drops a document first."""

from pathlib import Path

import pytest

from toolkit.config import settings as config
from toolkit.data.schema import INT, STR, Type, list_of, nullable
from toolkit.errors import ConfigError, DataError
from toolkit.rules import Rule, RuleSet, read_rules
from toolkit.rules.checker import Name

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
    assert rules("- drop: label is None\n- drop: label == 'en'").known == {"label"}
    assert rules("- keep: label is not None and n > 1\n- drop: label == 'en'").needs.keys == {"label", "n"}
    with pytest.raises(ConfigError, match=r"^c\.yaml:2: rule \"label < 'en'\": label may be null here"):
        rules("- {annotate: x, when: label is None}\n- drop: label < 'en'")
    with pytest.raises(ConfigError, match=r"^c\.yaml:1: .*label may be null here"):
        rules("- drop: label < 'en'\n- drop: label is None")
    with pytest.raises(ConfigError, match=r"^c\.yaml:2: .*label may be null here"):
        rules("- keep: label is None\n- drop: label < 'en'")
    assert rules("- keep: label == 'en'\n- drop: label < 'en'").known == {"label"}


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
