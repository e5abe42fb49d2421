"""Rules as they are written: groups, includes, parameters and languages, forms of set and sample; what is refused."""

from pathlib import Path

import pytest

from toolkit.config import settings as config
from toolkit.errors import ConfigError
from toolkit.rules import Rule, merged, read_rules, read_scope
from toolkit.rules.kinds.blocklist import Blocklist
from toolkit.rules.kinds.drop import Sample


def read(text: str, folder: Path | str = "", outer: str = "{}") -> list[Rule]:
    return read_rules(config.parse(text, "c.yaml"), str(folder), read_scope(config.parse(outer, "c.yaml"), str(folder)))


def refused(text: str, folder: Path | str = "", outer: str = "{}") -> str:
    with pytest.raises(ConfigError) as raised:
        read(text, folder, outer)
    return str(raised.value)


# --- groups and includes ----------------------------------------------------------------------------------------------


def test_a_group_gives_its_rules_its_name_and_its_condition() -> None:
    found = read(
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
    found = read("- {group: g, when: x, rules: [{include: sub/a.yaml, when: y}]}", tmp_path)
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
    found = read(
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
    (rule,) = read('- drop: n > p and "a" in words', tmp_path, outer)
    assert rule.parameters == {"p": {"": 0, "en": 1, "zh-Hant": 2}, "words": {"": [], "en": ["a", "b"]}}
    (tmp_path / "en.yml").write_text("p: 3")
    assert "en.yml:1: p: expected one file for the label 'en'" in refused(
        "- drop: n > p", tmp_path, "{parameters: {p: 0}, languages: '*.y*ml'}"
    )
    assert "expected at least one file" in refused("[]", tmp_path, "languages: none/*.yaml")


def test_three_integers_are_a_list_like_any_other() -> None:
    assert read("- drop: n in p", outer="parameters: {p: [1, 2, 3]}")[0].parameters == {"p": {"": [1, 2, 3]}}


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
    assert message in refused("- drop: n > p", outer=text)


@pytest.mark.parametrize("given", ["parameters: {limt: 1}", "parameters: {limit: 1}, languages: {en: {limt: 1}}"])
def test_a_parameter_that_no_rule_uses_is_refused_with_what_is_close(given: str, tmp_path: Path) -> None:
    message = "expected parameters that a rule uses, got 'limt'; did you mean 'limit'?"
    assert message in refused(f"- {{group: g, {given}, rules: [drop: n > limit]}}")
    (tmp_path / "a.yaml").write_text("- drop: n > limit\n")
    assert message in refused(f"- {{include: a.yaml, {given}}}", tmp_path)
    assert refused("- {include: a.yaml, parameters: {other: 1}}", tmp_path).endswith("got 'other'; used are: none")


# --- forms ------------------------------------------------------------------------------------------------------------


def test_set_gives_one_rule_for_each_field() -> None:
    found = read(
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
    plain, by_label = read("- {sample: 0.1, when: x}\n- {sample: {en: 0.5, default: 0, no: 1}, seed: 3}\n")
    assert isinstance(plain, Sample)
    assert isinstance(by_label, Sample)
    assert (plain.name, plain.share, plain.shares) == ("sample 0.1 of x", 0.1, {})
    assert (by_label.name, by_label.share, by_label.shares) == (
        "sample en=0.5 default=0 no=1", 0.0, {"en": 0.5, "no": 1.0},
    )  # fmt: skip
    assert read("- sample: {en: 0.5}")[0].recorded()["share"] == 1.0


def test_what_is_recorded_of_a_rule_tells_zero_from_nothing_and_knows_no_places(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a\n")
    (tmp_path / "copy.txt").write_text("a\n")

    def settings(text: str) -> dict[str, object]:
        (rule,) = read(text, tmp_path)
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
    (rule,) = read("- include: sub/rules.yaml", tmp_path)
    assert isinstance(rule, Blocklist)
    assert (rule.name, rule.entries) == ("blocklist", "ids")
    assert list(rule.files) == [f"{tmp_path}/sub/a.txt", f"{tmp_path}/sub/b.txt"], "each once"
    digests = dict(rule.files)
    (tmp_path / "sub/a.txt").write_text("other")
    assert read("- include: sub/rules.yaml", tmp_path)[0].recorded()["files"] != list(digests.values())


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
    found = refused(text)
    assert found.startswith("c.yaml:1: ")
    assert message in found
