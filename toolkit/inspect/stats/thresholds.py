"""The thresholds that rules set for an attribute, found in their expressions."""

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from toolkit.rules import Rule
from toolkit.rules.expression_tree import ExpressionError, parse

HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
"""Of two numbers, or arrays of numbers, by the sign."""


class Threshold(NamedTuple):
    """A number that a rule compares an attribute with.

    Attributes:
        number: of all labels, or of one.
        label: that it is for; empty for all others.
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
        return [each.label for each in listed if each.label and (each.rule, each.sign) == (self.rule, self.sign)]


_SIGNS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="), ast.Eq: ("==", "=="),
    ast.NotEq: ("!=", "!="),
}  # fmt: skip
"""Of a comparison, as it is written, and with its sides exchanged."""


def thresholds(rules: Iterable[Rule], attribute: str) -> list[Threshold]:
    """Return where rules compare an attribute with a number, or with a parameter that has one for each label."""
    found: dict[Threshold, None] = {}
    for rule in rules:
        for text in rule.expressions:
            try:
                tree = parse(text)
            except ExpressionError:
                tree = None
            for node, paths in _comparisons(tree, {}) if tree else ():
                found.update(dict.fromkeys(_of(node, paths, rule, attribute)))
    return sorted(found, key=lambda each: (each.number, each.rule, each.label))


def compared(rules: Iterable[Rule]) -> list[str]:
    """Return what rules compare with a number, as ``--histogram`` names it, in the order of the rules."""
    found: dict[str, None] = {}
    for rule in rules:
        for text in rule.expressions:
            try:
                tree = parse(text)
            except ExpressionError:
                continue
            for node, paths in _comparisons(tree, {}):
                names = dict.fromkeys(path_of(each, paths) for each in (node.left, *node.comparators))
                found.update({name: None for name in names if any(True for _ in _of(node, paths, rule, name))})
    return list(found)


Paths = Mapping[str, str]
"""What the variables of comprehensions stand for: elements, ``line_language[]``."""


def _comparisons(node: ast.AST, paths: Paths) -> Iterator[tuple[ast.Compare, Paths]]:
    """Yield all comparisons, each with the variables that it sees."""
    if isinstance(node, ast.Compare):
        yield node, paths
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
        for each in node.generators:
            yield from _comparisons(each.iter, paths)
            bound = {name.id: "" for name in ast.walk(each.target) if isinstance(name, ast.Name)}
            if isinstance(each.target, ast.Name):
                bound[each.target.id] = path_of(each.iter, paths) + "[]"
            paths = {**paths, **bound}
            for condition in each.ifs:
                yield from _comparisons(condition, paths)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for result in results:
            yield from _comparisons(result, paths)
        return
    for child in ast.iter_child_nodes(node):
        yield from _comparisons(child, paths)


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


def _of(node: ast.Compare, paths: Paths, rule: Rule, attribute: str) -> Iterable[Threshold]:
    operands = [node.left, *node.comparators]
    for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
        if type(op) not in _SIGNS:
            continue
        written, turned = _SIGNS[type(op)]
        for one, other, sign in ((left, right, written), (right, left, turned)):
            if path_of(one, paths) == attribute:
                for label, number in numbers(other, rule.parameters).items():
                    yield Threshold(number, label, rule.name, f"{attribute} {sign} {number:g}")


def numbers(node: ast.expr, parameters: Mapping[str, Mapping[str, object]]) -> dict[str, float]:
    """Return the number that a node stands for, by label, ``""`` for all others; none if it is not one."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return {"": float(value)}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {label: -number for label, number in numbers(operand, parameters).items()}
        case ast.Name(id=name) if name in parameters:
            return {
                label: float(value)
                for label, value in parameters[name].items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            }
    return {}
