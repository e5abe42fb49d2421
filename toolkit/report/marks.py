"""The thresholds of rules: which numbers of a document they compare with which, and on which side they drop."""

import ast
from collections.abc import Collection, Iterator
from typing import Any, Literal

from toolkit.config.settings import ConfigStruct
from toolkit.inspect.stats.thresholds import HOLDS, Comparison, comparisons, numbers, path_of, thresholds
from toolkit.rules import Role, Rule

How = Literal["", "times", "over", "floor"]
"""How a rule compares two numbers: ``A / B < v``, ``A < v * B``, ``A < B / v``, ``A < B // v``."""


class MarkAt(ConfigStruct):
    """A threshold of a rule; what it says is that of `toolkit.report.facts.Mark`.

    Attributes:
        rule: number of the rule in its stream.
        others: labels that have a value of their own, so that this one is not theirs.
        how: the rule compares, if the score is a ratio.
        factor: the number that is written in such a comparison.
    """

    rule: int
    label: str
    value: float
    sign: str
    drops: str
    text: str
    others: list[str] = []
    how: How = ""
    factor: float = 0.0


def marks_of(number: int, rule: Rule, path: str) -> Iterator[MarkAt]:
    """Yield the thresholds that a rule, by its number, has for a number of documents."""
    sides: dict[str, set[str]] = {}
    for each in comparisons(rule):
        if path_of(each.left, each.paths) == path:
            sides.setdefault(each.sign, set()).add(_side(rule, each))
    found = thresholds([rule], path)
    for mark in found:
        (drops, *more) = sides[mark.sign]
        side = "" if more else drops
        yield MarkAt(number, mark.label, mark.number, mark.sign, side, mark.text, mark.others(found))


def holds(mark: MarkAt, values: Any, lower: Any = None) -> Any:
    """Return for each number whether a comparison holds, reckoned as the rule does; never for what is not a number.

    Args:
        mark: the threshold.
        values: of the score; of a mark that says how two numbers are compared, the first of them.
        lower: the second, for such a mark.
    """
    match mark.how:
        case "times":
            bound = mark.factor * lower
        case "over":
            bound = lower / mark.factor
        case "floor":
            bound = lower // mark.factor
        case _:
            bound = mark.value
    if mark.sign == "!=":
        return (values != bound) & (values == values)  # noqa: PLR0124  (NaN stands for null)
    return HOLDS[mark.sign](values, bound)


def computed_of(rule: Rule, known: Collection[str]) -> Iterator[str]:
    """Yield what a rule computes of a document, or takes from its metadata, and compares with a number.

    Args:
        rule: of a stream.
        known: numbers that there are beside that, by their paths, and ratios of two.
    """
    for each in comparisons(rule):
        names = {node.id for node in ast.walk(each.left) if isinstance(node, ast.Name)}
        is_of_document = names and not names & {*rule.parameters, *each.paths}
        path = path_of(each.left, each.paths)
        if is_of_document and each.is_by_size and path not in known and numbers(each.right, rule.parameters):
            yield path


# --- ratios -----------------------------------------------------------------------------------------------------------


def ratio_marks(number: int, rule: Rule, known: Collection[str]) -> Iterator[tuple[str, str, MarkAt]]:
    """Yield the thresholds that a rule has for ratios of two numbers, with the paths of these.

    Args:
        number: of the rule.
        rule: of a stream.
        known: the paths of numbers that there are.
    """
    for each in comparisons(rule):
        if not each.is_by_size:
            continue
        for upper, lower, value, how in _ratios(each):
            values = numbers(value, rule.parameters)
            if upper not in known or lower not in known or min(values.values(), default=0) <= 0:
                continue
            for label, factor in values.items():
                at = 1 / factor if how in ("over", "floor") else factor
                others = [one for one in values if one] if not label else []
                text = f"{upper} / {lower} {each.sign} {at:g}"
                mark = MarkAt(number, label, at, each.sign, _side(rule, each), text, others, how, factor)
                yield upper, lower, mark


def _ratios(found: Comparison) -> Iterator[tuple[str, str, ast.expr, How]]:
    """Yield upper, lower and value of ``A / B < v``, ``A < v * B``, ``A < B / v`` and ``A < B // v``."""

    def path(node: ast.expr) -> str:
        return path_of(node, found.paths)

    match found.left, found.right:
        case ast.BinOp(left=upper, op=ast.Div(), right=lower), value:
            yield path(upper), path(lower), value, ""
        case ast.BinOp(), _:
            return
        case upper, ast.BinOp(left=left, op=ast.Mult(), right=right):
            yield path(upper), path(right), left, "times"
            yield path(upper), path(left), right, "times"
        case upper, ast.BinOp(left=lower, op=ast.Div(), right=value):
            yield path(upper), path(lower), value, "over"
        case upper, ast.BinOp(left=lower, op=ast.FloorDiv(), right=value):
            yield path(upper), path(lower), value, "floor"


def _side(rule: Rule, found: Comparison) -> str:
    """Return which numbers a rule drops by a comparison, ``below`` or ``above``; empty if it cannot be told."""
    if rule.ROLE is not Role.DROPS or found.turned is None or not found.is_by_size:
        return ""
    return "below" if (found.sign in ("<", "<=")) != found.turned else "above"
