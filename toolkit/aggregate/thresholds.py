"""The thresholds that rules set for an attribute, found in their expressions."""

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
    """A number that a rule compares an attribute with.

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
        """Return that of the comparison, with the attribute at its left."""
        return self.text.split(" ")[-2]

    def holds(self, value: float) -> bool:
        """Return whether the comparison is true of a value."""
        return bool(HOLDS[self.sign](value, self.number))

    def others(self, listed: "Iterable[Threshold]") -> list[str]:
        """Return the labels that this one is not for: of those of the same comparison that are for a label."""
        if self.label:
            return []
        return [item.label for item in listed if item.label and (item.rule, item.sign) == (self.rule, self.sign)]


_SIGNS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="), ast.Eq: ("==", "=="),
    ast.NotEq: ("!=", "!="),
}  # fmt: skip
"""Of a comparison, as it is written, and with its sides exchanged."""


def thresholds(rules: Iterable[Rule], attribute: str) -> list[Threshold]:
    """Return where rules compare an attribute with a number, or with a parameter that has one for each label."""
    results: dict[Threshold, None] = {}
    for rule in rules:
        for comparison in comparisons(rule):
            if path_of(comparison.left, comparison.paths) == attribute:
                for label, number in numbers(comparison.right, rule.parameters).items():
                    text = f"{attribute} {comparison.sign} {number:g}"
                    results[Threshold(number, label, rule.name, text)] = None
    return sorted(results, key=lambda item: (item.number, item.rule, item.label))


def compared(rules: Iterable[Rule]) -> list[str]:
    """Return what rules compare with a number, as ``--histogram`` names it, in the order of the rules."""
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


class Comparison(NamedTuple):
    """Two values that a rule compares. The walk yields each pair twice, with either of the two at the left.

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
        """Return whether one of the two has to be the greater one."""
        return self.sign not in ("==", "!=")


def comparisons(rule: Rule) -> Iterator[Comparison]:
    """Yield all comparisons in the expressions of a rule, also those inside loops."""
    for text in rule.expressions:
        try:
            tree = parse(text)
        except ExpressionError:  # it is told where rules are compiled
            continue
        yield from _walk(tree, {}, turned=rule.KEEPS and text == rule.expression)


def _walk(node: ast.AST, paths: Paths, *, turned: bool | None) -> Iterator[Comparison]:
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
                    yield Comparison(left, written, right, paths, turned)
                    yield Comparison(right, exchanged, left, paths, turned)
    for part, part_turned in _parts(node, turned):
        yield from _walk(part, paths, turned=part_turned)


def _parts(node: ast.AST, turned: bool | None) -> list[tuple[ast.AST, bool | None]]:
    """Return the nodes below a node, each with whether the rule acts where it is false; None if that cannot be told."""
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
) -> Iterator[Comparison]:
    """Yield the comparisons in a loop, and what its variables stand for there.

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
    """Return the name that ``--histogram`` has for what a node stands for."""
    match node:
        case ast.Name(id=name):
            return paths.get(name, name)
        case ast.Attribute(value=value, attr=name):
            return f"{path_of(value, paths)}.{name}"
        case ast.Call(func=ast.Name(id="len"), args=[inside]):
            return f"len({path_of(inside, paths)})"
    return ast.unparse(node)


def numbers(node: ast.expr, parameters: Mapping[str, Mapping[str, object]]) -> dict[str, float]:
    """Return the number that a node stands for, by label, ``""`` for all others; none if it is not one."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return {"": float(value)}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {label: -number for label, number in numbers(operand, parameters).items()}
        case ast.Name(id=name) if name in parameters:
            return {label: float(value) for label, value in parameters[name].items() if is_number(value)}
    return {}
