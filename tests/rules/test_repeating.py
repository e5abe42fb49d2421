"""How often a document is written: numbers, expressions, curves; several rules, and the draw that they share."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.test_ruleset import doc, refused, rules
from toolkit.errors import DataError
from toolkit.rules import RuleSet
from toolkit.rules.rule import sample_hash

IDS = [str(i) for i in range(4000)]


def copies(found: RuleSet, n: int | None = 0, id: str = "1") -> int:
    values: Any = (n, None, [], doc(id))
    return 0 if isinstance(found.decide(*values), int) else found.copies(*values)


@pytest.mark.parametrize(("amount", "least", "most"), [(0, 0, 0), (0.3, 0, 1), (1, 1, 1), (2.5, 2, 3), (7, 7, 7)])
def test_an_amount_is_written_as_often_as_it_says_and_its_fraction_is_drawn(
    amount: float, least: int, most: int
) -> None:
    compiled = rules(f"- {{repeat: {amount}}}")
    found = [copies(compiled, id=id) for id in IDS]
    assert (min(found), max(found)) == (least, most)
    part = amount % 1
    assert abs(sum(found) - amount * len(IDS)) <= 4 * math.sqrt(len(IDS) * part * (1 - part))


def test_the_fraction_is_drawn_as_a_sample_draws_and_independently_of_one() -> None:
    compiled = (
        rules("- {repeat: 0.3}"),
        rules("- {sample: 0.3, seed: repeat}"),
        rules("- {sample: 0.5}\n- {repeat: 0.5}"),
    )
    repeated = {id for id in IDS if copies(compiled[0], id=id)}
    assert repeated == {id for id in IDS if sample_hash("repeat", "s", id) < 0.3 * 2**64}
    assert repeated == {id for id in IDS if copies(compiled[1], id=id)}
    both = [copies(compiled[2], id=id) for id in IDS]
    assert abs(sum(both) - 1000) < 4 * math.sqrt(4000 * 0.25 * 0.75)


def test_what_when_tests_is_not_null_in_the_amount() -> None:
    for when, amount in (("n is not None", "n"), ("not n is None and n > 0", "n + 0")):
        compiled = rules(f"- {{repeat: {{score: {amount}, curve: [[0, 0], [4, 4]]}}, when: {when}}}")
        assert [copies(compiled, n=n) for n in (3, None)] == [3, 1]
    for when in ("n is None", "n is not None or lang is None", "lang is not None"):
        assert "a value that may be null; test it first" in refused(f"- {{repeat: n, when: {when}}}")


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
    (curve,) = rules(f"- repeat: {{score: document.chars / 1, curve: {{{target}}}}}")._repeating.values()
    assert {x: curve.times((0, None, [], _Scored(x))) for x in amounts} == pytest.approx(amounts, rel=1e-4)


def test_a_curve_that_cannot_have_its_average_is_refused() -> None:
    message = refused("- {repeat: {score: n, curve: {average: 4.2, drop_below: 0.4}}}")
    assert "repeat.curve: average: expected at most 4.16, as nothing below the rank 0.4 is written" in message


@given(st.floats(-1, 2, allow_nan=False))
def test_a_curve_is_straight_between_its_points_and_level_beyond_them(score: float) -> None:
    amount = CURVE.times((0, None, [], _Scored(score)))
    points = [(-9.0, 0.0), (0.0, 0.0), (0.5, 0.4), (0.9, 2.0), (1.0, 7.0), (9.0, 7.0)]
    (x, y), (x2, y2) = next((a, b) for a, b in itertools.pairwise(points) if a[0] <= score < b[0])
    assert amount == pytest.approx(y + (y2 - y) * (score - x) / (x2 - x))


(CURVE,) = rules(
    "- {repeat: {score: document.chars / 1, curve: [[0.0, 0], [0.5, 0.4], [0.9, 2], [1.0, 7]]}}"
)._repeating.values()


class _Scored:
    """A document whose size is a score."""

    def __init__(self, chars: float) -> None:
        self.chars = chars


def test_amounts_are_multiplied_and_drawn_once() -> None:
    found = rules("- {repeat: 0.5}\n- {repeat: 2}\n- {repeat: 3, when: n == 1}")
    assert {copies(found, id=id) for id in IDS} == {1}
    assert {copies(found, n=1, id=id) for id in IDS} == {3}


def test_what_a_draw_leaves_out_is_counted_by_the_last_rule_that_applies() -> None:
    found = rules("- {repeat: 0.5}\n- {drop: n is None}\n- {repeat: 0.5, when: n > 3}\n- {repeat: 0, when: n == 9}")
    assert {found.decide(0, None, [], doc(id)) for id in IDS} == {0, ()}
    assert {found.decide(4, None, [], doc(id)) for id in IDS} == {2, ()}
    assert {found.decide(9, None, [], doc(id)) for id in IDS} == {3}
    assert {found.decide(None, None, [], doc(id)) for id in IDS} == {1}


def test_an_expression_says_how_often() -> None:
    assert copies(rules("- {repeat: len(xs) + 2, when: n == 1}"), n=1) == 2
    assert copies(rules("- {repeat: len(xs) + 2, when: n == 1}"), n=2) == 1
    with pytest.raises(DataError, match=r"rule 'repeat len\(xs\) - 1' .* expected a number of 0 or more.*got -1"):
        rules("- {repeat: len(xs) - 1}").decide(0, None, [], doc())
    with pytest.raises(DataError, match=r"expected an amount of at most 100, got 400; write `min\(…, 100\)`"):
        rules("- {repeat: len(xs) + 20}\n- {repeat: 20}").decide(0, None, [], doc())


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
    assert message in refused(text)
