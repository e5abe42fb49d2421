"""Syntax trees of Python, made by one thread at a time.

CPython counts the depth of a tree that it makes for all threads together, and takes the sum for an error of its own
(`SystemError: AST constructor recursion depth mismatch`, https://github.com/python/cpython/issues/106905).
"""

import ast
import threading

_ONE_AT_A_TIME = threading.RLock()  # a garbage collection within may parse, too


def parse_module(source: bytes, path: str) -> ast.Module:
    """Return the tree of a module; raise as `ast.parse` does."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, path)


def parse_expression(text: str) -> ast.expr:
    """Return the tree of an expression; raise as `ast.parse` does."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, mode="eval").body
