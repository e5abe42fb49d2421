"""The thresholds of rules: which comparisons count, and the side on which they drop documents."""

from typing import Any

import pytest

from toolkit.config.settings import ConfigNode
from toolkit.report.fields import computed_of, marks_of, ratio_marks
from toolkit.rules.rule import Rule
from toolkit.rules.rules_yaml import read_rules

KNOWN = ("a", "b")


def rule(entry: dict[str, Any]) -> Rule:
    (found,) = read_rules(ConfigNode([entry]), "")
    return found


@pytest.mark.parametrize(
    ("entry", "drops"),
    [
        ({"drop": "a < 3"}, ["below"]),
        ({"drop": "3 < a"}, ["above"]),
        ({"keep": "a < 3"}, ["above"]),
        ({"keep": "b", "when": "a < 3"}, ["below"]),
        ({"drop": "not (b or not a < 3)"}, ["below"]),
        ({"drop": "a < 3 or not (a <= 9)"}, ["below", "above"]),
        ({"drop": "a < 3 and not (a < 1)"}, ["", ""]),
        ({"drop": "any(a < 3 and x.p < 0.5 for x in c)"}, ["below"]),
        ({"drop": "any([a < 3, b])"}, ["below"]),
        ({"drop": "all(x.p < 0.5 for x in c if a > 3)"}, ["below"]),
        ({"drop": "len([x for x in c if a < 3]) > 5"}, [""]),
        ({"drop": "(a < 3) == b"}, [""]),
        ({"drop": "(b if a < 3 else not b)"}, [""]),
        ({"drop": "b in [x.p < 3 for x in c] or a == 3"}, [""]),
        ({"annotate": "few", "when": "a < 3"}, [""]),
        ({"drop": "any(a < 3 for a in c)"}, []),
    ],
)
def test_a_comparison_drops_on_the_side_where_the_rule_acts(entry: dict[str, Any], drops: list[str]) -> None:
    assert [mark.drops for mark in marks_of(0, rule(entry), "a")] == drops


def test_comparisons_in_loops_count_as_others_if_they_are_about_the_document() -> None:
    found = rule({"drop": "any(a < 2 * b and 3 * a > 9 and x.a < 2 * x.b and 3 * x.a > 9 for x in c)"})
    assert [(*paths, mark.drops) for *paths, mark in ratio_marks(0, found, KNOWN)] == [("a", "b", "below")]
    assert list(computed_of(found, KNOWN)) == ["3 * a"]
