"""Expressions of rules: refused, or as Python itself evaluates them."""

import ast
import warnings
from typing import Any

from tests.rules.test_expressions import NAMES, VALUES
from toolkit.rules.compiling import compile_function
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import check as checked, paths_in

SEEDS = [
    text.encode()
    for text in (
        "n > 3 and not flag",
        "maybe is None or maybe // 2 == 1",
        "any(x > 1 and x < r0 for x in xs)",
        "len(spans) > 0 and spans[0].score >= 0.5",
        "get(shares, 'en', 0.0) * n",
        "[x for x in words if x in s]",
        "sum(f for x in xs) / len(lines) if xs else -f",
        "(best.label == 'en') == (s == 'text')",
        "free.x.y[1] + 1 < n < 9",
        "max(n, r0) % 4 != 0",
    )
]
_OURS = (TypeError, ZeroDivisionError, KeyError, IndexError, AttributeError, OverflowError, ValueError)
"""What a value may refuse at run time, which a rule reports with the document."""
_NOT_PYTHON = ("free", "get", "document", "line", "spans", ".", "shares", "counts", "maybe", "best", "nothing", "lines")


class _Lists(ast.NodeTransformer):
    """Makes lists of tuples, as they are in rules, and of what is generated for nobody that takes it one by one."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.args = [
            self.generic_visit(each) if isinstance(each, ast.GeneratorExp) else self.visit(each)  # type: ignore[misc]
            for each in node.args
        ]
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.ListComp:
        self.generic_visit(node)
        return ast.ListComp(node.elt, node.generators)

    def visit_Tuple(self, node: ast.Tuple) -> ast.List:
        self.generic_visit(node)
        return ast.List(node.elts, ast.Load())


def _outcome(function: Any) -> Any:
    try:
        return repr(function())
    except _OURS as error:
        return type(error)


def check(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    try:
        found = checked(text, NAMES)
    except ExpressionError as error:
        assert str(error)  # noqa: PT017
        return
    paths_in(text, NAMES)
    function = compile_function(found.code, tuple(f"a_{key}" for key in VALUES))
    values = tuple(VALUES.values())
    if any(word in text for word in _NOT_PYTHON):
        try:
            function(*values)
        except _OURS:
            return
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.fix_missing_locations(_Lists().visit(ast.parse(text.strip(), mode="eval")))
            code = compile(tree, "python", "eval")
            expected = _outcome(lambda: eval(code, dict(VALUES)))  # the checker lets nothing else through
        assert _outcome(lambda: function(*values)) == expected
