"""Source files as trees, each parsed once for all tests of a process that look at code."""

import ast
import functools
import gc
from collections.abc import Iterator
from pathlib import Path


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a source file; the module is the first."""
    gc.disable()  # a search for garbage among hundreds of thousands of nodes that stay takes most of the time
    try:
        return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    finally:
        gc.freeze()
        gc.enable()


def texts(path: Path, *, besides: frozenset[int] = frozenset()) -> Iterator[str]:
    """The texts in a module that are no docstrings, nor `besides`, nodes by their identity."""
    bare = besides | {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value
