"""Finds the comparisons of a JSONPath for which it matters if 1 and 1.0 are one number: those of equality."""

from collections.abc import Iterator
from typing import Any

from toolkit.data.schema import is_number
from toolkit.rules.filters import tree


def deciding(path: tree.Path) -> list[tree.Path]:
    """Return a path for each comparison of a JSONPath that may depend on 1 being 1.0.

    Each finds something at least where its comparison meets a number that equals the other. Where none of them finds
    anything, the JSONPath means the same either way.
    """
    return list(_in_path(path))


def _in_path(path: tree.Path) -> Iterator[tree.Path]:
    for i, step in enumerate(path):
        if isinstance(step, tree.Filter):
            yield from ((*path[:i], tree.Filter(test)) for test in _in_test(step.test))


def _in_test(test: tree.Test) -> Iterator[tree.Test]:
    match test:
        case tree.And(left=left, right=right) | tree.Or(left=left, right=right):
            yield from _in_test(left)
            yield from _in_test(right)
        case tree.Not(test=inner):
            yield from _in_test(inner)
        case tree.Query(path=path, of_document=of_document):
            yield from (tree.Query(each, of_document) for each in _in_path(path))
        case tree.Comparison(left=left, operator=operator, right=right):
            for side in (left, right):
                if isinstance(side, tree.Query):
                    yield from _in_test(side)
            if operator not in ("<", ">") and _may_be_number(left) and _may_be_number(right):
                yield tree.Comparison(left, "in" if operator == "in" else "==", right)


def _may_be_number(operand: tree.Operand) -> bool:
    return isinstance(operand, tree.Query) or _has_number(operand.value)


def _has_number(value: Any) -> bool:
    return any(map(_has_number, value)) if isinstance(value, list) else is_number(value)
