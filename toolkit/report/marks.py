"""The thresholds of rules: which numbers of a document they compare with which, and on which side they drop."""

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from toolkit.config.settings import ConfigStruct
from toolkit.inspect.stats.thresholds import HOLDS, numbers, path_of, thresholds
from toolkit.rules import Role, Rule
from toolkit.rules.expression_tree import ExpressionError, parse

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
    found = thresholds([rule], path)
    for each in found:
        drops = _drops(rule, path, each.sign)
        yield MarkAt(number, each.label, each.number, each.sign, drops, each.text, each.others(found))


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
    for node, _ in _comparisons(rule):
        for one, other, _ in _sides(node):
            names = {each.id for each in ast.walk(one) if isinstance(each, ast.Name)}
            path = path_of(one, {})
            if numbers(other, rule.parameters) and names and not names & {*rule.parameters} and path not in known:
                yield path


# --- ratios -----------------------------------------------------------------------------------------------------------


def ratio_marks(number: int, rule: Rule, known: Collection[str]) -> Iterator[tuple[str, str, MarkAt]]:
    """Yield the thresholds that a rule has for ratios of two numbers, with the paths of these.

    Args:
        number: of the rule.
        rule: of a stream.
        known: the paths of numbers that there are.
    """
    for node, negated in _comparisons(rule):
        for one, other, sign in _sides(node):
            for upper, lower, value, how in _ratios(one, other):
                values = numbers(value, rule.parameters)
                if upper not in known or lower not in known or min(values.values(), default=0) <= 0:
                    continue
                for label, factor in values.items():
                    at = 1 / factor if how in ("over", "floor") else factor
                    yield (
                        upper,
                        lower,
                        MarkAt(
                            number,
                            label,
                            at,
                            sign,
                            _side(rule, sign, negated=negated),
                            f"{upper} / {lower} {sign} {at:g}",
                            [each for each in values if each] if not label else [],
                            how,
                            factor,
                        ),
                    )


def _ratios(one: ast.expr, other: ast.expr) -> Iterator[tuple[str, str, ast.expr, How]]:
    """Yield upper, lower and value of ``A / B < v``, ``A < v * B``, ``A < B / v`` and ``A < B // v``."""
    if isinstance(one, ast.BinOp):
        if isinstance(one.op, ast.Div):
            yield path_of(one.left, {}), path_of(one.right, {}), other, ""
        return
    match other:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            yield path_of(one, {}), path_of(right, {}), left, "times"
            yield path_of(one, {}), path_of(left, {}), right, "times"
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            yield path_of(one, {}), path_of(left, {}), right, "over"
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            yield path_of(one, {}), path_of(left, {}), right, "floor"


# --- comparisons ------------------------------------------------------------------------------------------------------


_SIGNS: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="),
}  # fmt: skip
"""Of a comparison, as it is written, and with its sides exchanged."""


def _comparisons(rule: Rule) -> Iterator[tuple[ast.Compare, bool]]:
    """Yield the comparisons of a rule outside of comprehensions, each with whether it is negated."""
    for text in rule.expressions:
        try:
            tree = parse(text)
        except ExpressionError:
            continue
        yield from _compared(tree, negated=False)


def _compared(node: ast.AST, *, negated: bool) -> Iterator[tuple[ast.Compare, bool]]:
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
        return
    if isinstance(node, ast.Compare):
        yield node, negated
        return
    inside = negated != (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    for child in ast.iter_child_nodes(node):
        yield from _compared(child, negated=inside)


def _sides(node: ast.Compare) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """Yield what is compared by size with what, both ways round, and the sign between the two."""
    operands = [node.left, *node.comparators]
    for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
        if type(op) in _SIGNS:
            written, turned = _SIGNS[type(op)]
            yield left, right, written
            yield right, left, turned


def _drops(rule: Rule, path: str, sign: str) -> str:
    """Return which numbers a rule drops by a comparison, ``below`` or ``above``; empty if it cannot be told."""
    turned = {_is_negated(text, path) for text in rule.expressions} - {None}
    return _side(rule, sign, negated=bool(turned.pop())) if len(turned) == 1 else ""


def _side(rule: Rule, sign: str, *, negated: bool) -> str:
    if rule.ROLE is not Role.DROPS or sign not in ("<", "<=", ">", ">="):
        return ""
    below = sign in ("<", "<=")
    return "below" if below != (negated != bool(getattr(rule, "KEEPS", False))) else "above"


def _is_negated(text: str, path: str) -> bool | None:
    """Return whether comparisons of a path stand behind a `not`; None if there is none, or some do."""
    try:
        tree = parse(text)
    except ExpressionError:
        return None
    found = set(_negations(tree, path, negated=False))
    return found.pop() if len(found) == 1 else None


def _negations(node: ast.AST, path: str, *, negated: bool) -> Iterator[bool]:
    if isinstance(node, ast.Compare):
        if any(ast.unparse(each) == path for each in (node.left, *node.comparators)):
            yield negated
        return
    inside = negated != (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    for child in ast.iter_child_nodes(node):
        yield from _negations(child, path, negated=inside)
