"""An expression as a tree, bounded before anything walks over it: expressions may come with somebody else's rules."""

import ast
import re


class ExpressionError(Exception):
    """An expression that cannot be used; the caller knows the file and the line."""


class UnknownName(ExpressionError):
    """An expression with a name that nothing has.

    Attributes:
        name: the name.
        message: the error without its hint.
    """

    def __init__(self, name: str, message: str, hint: str) -> None:
        self.name, self.message = name, message
        super().__init__(message + hint)


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
        raise ExpressionError(f"expected an expression, got {shown!r}{_way_out(text) or f': {error.msg}'}") from None
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


_STRINGS = re.compile(r"\"[^\"]*\"|'[^']*'")
_SET_AND_KEY = re.compile(r"\b[A-Za-z_]\w*(?:-\w+)+\.(?=[A-Za-z_])")
_OPERATORS = {
    "&&": (r"&&", "`and`"),
    "||": (r"\|\|", "`or`"),
    "!": (r"!(?!=)", "`not`"),
    "=": (r"(?<![=!<>:])=(?!=)", "`==`"),
}
"""Operators of other languages, each with its pattern and its name here."""


def without_sets(text: str) -> str:
    """Return the way out of an expression that names keys as ``SET.KEY``; empty if it does not."""
    short = _SET_AND_KEY.sub("", text)
    return f"; in expressions, keys stand as names: write `{short}`" if short != text else ""


def _way_out(text: str) -> str:
    """Return what to write in place of what Python does not read; empty if that is not known."""
    plain = _STRINGS.sub('""', text)
    words = [f"{name} for {operator}" for operator, (pattern, name) in _OPERATORS.items() if re.search(pattern, plain)]
    return (f"; write {', '.join(words)}" if words else "") + without_sets(text)
