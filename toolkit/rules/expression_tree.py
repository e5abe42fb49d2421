"""An expression as a tree, bounded before anything walks over it: expressions may come with somebody else's rules."""

import ast


class ExpressionError(Exception):
    """An expression that cannot be used; the caller knows the file and the line."""


MAX_CHARS = 1_000_000
"""Characters of an expression; longer lists of values are blocklists."""

MAX_DEPTH = 60
"""Operators, calls and brackets in each other; Python's own parser takes little more than twice as many."""

MAX_LOOPS = 3
"""``for`` in each other: what it costs for each document grows with the product of the lists' lengths."""


def parse(text: str) -> ast.expr:
    """Return the tree of an expression, bounded in every respect, so that all that walks over it may recurse.

    Raises:
        ExpressionError: if it is none, or too long, nested too deeply, or has a number of more than 64 bits.
    """
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"expected an expression of at most {MAX_CHARS:,} characters, got {len(text):,}")
    shown = text if len(text) <= 200 else text[:200] + "…"
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"expected an expression, got {shown!r}: {error.msg}") from None
    except ValueError as error:  # a NUL among others
        raise ExpressionError(f"expected an expression, got {shown!r}: {error}") from None
    except (RecursionError, MemoryError):
        raise ExpressionError("expected an expression, got one that is nested too deeply") from None
    waiting: list[tuple[ast.AST, int, int]] = [(tree, 1, 0)]
    while waiting:
        node, depth, loops = waiting.pop()
        if depth > MAX_DEPTH:
            raise ExpressionError(
                f"expected an expression, got one that is nested too deeply: more than {MAX_DEPTH} levels"
            )
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and (loops := loops + len(node.generators)) > MAX_LOOPS:
            raise ExpressionError(f"expected at most {MAX_LOOPS} `for` in each other, got more")
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >> 64:
            raise ExpressionError("expected numbers of at most 64 bits, got a larger one")
        below = depth + isinstance(node, ast.expr)
        waiting += ((child, below, loops) for child in ast.iter_child_nodes(node))
    return tree
