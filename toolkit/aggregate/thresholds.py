"""Thresholds of rules for an attribute, read from their expressions."""

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from toolkit.data.schema import is_number
from toolkit.rules.expression_tree import ExpressionError, parse
from toolkit.rules.rule import Rule

HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
"""Of two numbers, or arrays of numbers, by the sign."""


class Threshold(NamedTuple):
    """A number in a rule's comparison with an attribute.

    Attributes:
        number: Number of all labels, or of one.
        label: Label that it is for; empty for all others.
        rule: name.
        text: ``language.prob < 0.6``.
    """

    number: float
    label: str
    rule: str
    text: str

    @property
    def sign(self) -> str:
        """Return the sign of the comparison, with the attribute at its left."""
        return self.text.split(" ")[-2]

    def holds(self, value: float) -> bool:
        """Return True if the comparison is true of a value."""
        return bool(HOLDS[self.sign](value, self.number))

    def excluded_labels(self, listed: "Iterable[Threshold]") -> list[str]:
        """Return the labels with a threshold of their own: of those of the same comparison that are for a label."""
        if self.label:
            return []
        return [item.label for item in listed if item.label and (item.rule, item.sign) == (self.rule, self.sign)]


_SIGNS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="), ast.Eq: ("==", "=="),
    ast.NotEq: ("!=", "!="),
}  # fmt: skip
"""Of a comparison, as it is written, and with its sides exchanged."""


def thresholds(rules: Iterable[Rule], attribute: str) -> list[Threshold]:
    """Return the thresholds of rules for an attribute. They are numbers, or parameters with a number for each label."""
    results: dict[Threshold, None] = {}
    for rule in rules:
        for comparison in comparisons(rule):
            if path_of(comparison.left, comparison.paths) == attribute:
                for label, number in numbers(comparison.right, rule.parameters).items():
                    text = f"{attribute} {comparison.sign} {number:g}"
                    results[Threshold(number, label, rule.name, text)] = None
    return sorted(results, key=lambda item: (item.number, item.rule, item.label))


def compared(rules: Iterable[Rule]) -> list[str]:
    """Return the attributes in comparisons with numbers, in the rules' order. They are named as for ``--histogram``."""
    result = (
        path_of(comparison.left, comparison.paths)
        for rule in rules
        for comparison in comparisons(rule)
        if numbers(comparison.right, rule.parameters)
    )
    return list(dict.fromkeys(result))


# --- comparisons ------------------------------------------------------------------------------------------------------


Paths = Mapping[str, str]
"""Elements that loop variables stand for, such as ``line_language[]``; empty where there is no such name."""


class ThresholdPair(NamedTuple):
    """Two values in a rule's comparison. The walk yields each pair twice, with either of the two at the left.

    Attributes:
        left, sign, right: ``language.prob``, ``<``, ``0.6``.
        paths: the variables of the loops around the comparison; no others of its names are such variables.
        turned: True if the rule acts where the comparison is false, as behind `not`; None if that cannot be told.
    """

    left: ast.expr
    sign: str
    right: ast.expr
    paths: Paths
    turned: bool | None

    @property
    def is_by_size(self) -> bool:
        """Return True if the comparison is by size."""
        return self.sign not in ("==", "!=")


def comparisons(rule: Rule) -> Iterator[ThresholdPair]:
    """Yield all comparisons in a rule's expressions, inside loops, too."""
    for text in rule.expressions:
        try:
            tree = parse(text)
        except ExpressionError:  # it is told where rules are compiled
            continue
        yield from _walk(tree, {}, turned=rule.KEEPS and text == rule.expression)


def _walk(node: ast.AST, paths: Paths, *, turned: bool | None) -> Iterator[ThresholdPair]:
    """Yield the comparisons below a node.

    Args:
        node: Node of an expression.
        paths: the variables of the loops around it.
        turned: True if the rule acts where the node is false; None if that cannot be told.
    """
    match node:
        case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.GeneratorExp() | ast.ListComp() as loop]):
            conditions = turned if name == "any" else _opposite(turned)  # `all` asks less if a condition is false
            yield from _walk_loop(loop, paths, turned=turned, conditions=conditions)
            return
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
            yield from _walk_loop(node, paths, turned=None, conditions=None)
            return
        case ast.Compare(left=first, ops=ops, comparators=others):
            operands = [first, *others]
            for left, op, right in zip(operands, ops, others, strict=False):
                if type(op) in _SIGNS:
                    written, exchanged = _SIGNS[type(op)]
                    yield ThresholdPair(left, written, right, paths, turned)
                    yield ThresholdPair(right, exchanged, left, paths, turned)
    for part, part_turned in _parts(node, turned):
        yield from _walk(part, paths, turned=part_turned)


def _parts(node: ast.AST, turned: bool | None) -> list[tuple[ast.AST, bool | None]]:
    """Return the children of a node, each with its `turned`; None if that cannot be told."""
    match node:
        case ast.BoolOp(values=nodes):
            return [(node, turned) for node in nodes]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [(operand, _opposite(turned))]
        case ast.IfExp(test=test, body=body, orelse=other):
            return [(test, None), (body, turned), (other, turned)]
        case ast.Call(func=ast.Name(id="any" | "all"), args=[ast.List(elts=nodes) | ast.Tuple(elts=nodes)]):
            return [(node, turned) for node in nodes]
    return [(child_node, None) for child_node in ast.iter_child_nodes(node)]


def _walk_loop(
    loop: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp,
    paths: Paths,
    *,
    turned: bool | None,
    conditions: bool | None,
) -> Iterator[ThresholdPair]:
    """Yield the comparisons in a loop, with its variables resolved.

    Args:
        loop: a comprehension.
        paths: the variables of the loops around it.
        turned: Turned of the values that it gives.
        conditions: Conditions of those behind `if`.
    """
    for generator in loop.generators:
        yield from _walk(generator.iter, paths, turned=None)
        bound = {name.id: "" for name in ast.walk(generator.target) if isinstance(name, ast.Name)}
        if isinstance(generator.target, ast.Name):
            bound[generator.target.id] = path_of(generator.iter, paths) + "[]"
        paths = {**paths, **bound}
        for condition in generator.ifs:
            yield from _walk(condition, paths, turned=conditions)
    results = [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]
    for result in results:
        yield from _walk(result, paths, turned=turned)


def _opposite(turned: bool | None) -> bool | None:
    return None if turned is None else not turned


def path_of(node: ast.expr, paths: Paths) -> str:
    """Return the name of a node's value for ``--histogram``."""
    match node:
        case ast.Name(id=name):
            return paths.get(name, name)
        case ast.Attribute(value=value, attr=name):
            return f"{path_of(value, paths)}.{name}"
        case ast.Call(func=ast.Name(id="len"), args=[inside]):
            return f"len({path_of(inside, paths)})"
    return ast.unparse(node)


def numbers(node: ast.expr, parameters: Mapping[str, Mapping[str, object]]) -> dict[str, float]:
    """Return the number of a node by label, ``""`` for all others; none if it is not one."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return {"": float(value)}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {label: -number for label, number in numbers(operand, parameters).items()}
        case ast.Name(id=name) if name in parameters:
            return {label: float(value) for label, value in parameters[name].items() if is_number(value)}
    return {}
