"""Checked expressions as functions: their code is compiled, and sees nothing but what is given to it."""

import ast
import functools
import struct
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from toolkit import distribution
from toolkit.config.syntax_trees import parse_expression
from toolkit.data.schema import field_name, is_number


def compile_function(
    code: str, arguments: tuple[str, ...], constants: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Return the function of a checked expression's code.

    Args:
        code: Code of a checked expression.
        arguments: Variables that it refers to.
        constants: Other names that it refers to; they are looked up when it runs.
    """
    compiled = _compiled(f"lambda {', '.join(arguments)}: ({code})", "eval")
    return eval(compiled, _globals(constants))  # type: ignore[no-any-return]  # noqa: S307


def compile_chain(
    conditions: Iterable[tuple[str, str, bool]], arguments: tuple[str, ...], constants: Mapping[str, Any]
) -> Callable[..., int | tuple[int, ...]]:
    """Return a function for conditions in order, up to the last one.

    It returns the number of the first true condition that ends it; else the numbers of the true ones.

    Args:
        conditions: Code of a checked expression that is true or false, that of a number, and whether it ends the chain.
        arguments: See `compile_function`.
        constants: See `compile_function`.
    """
    lines = [f"def chain({', '.join(arguments)}):", "    found = ()"]
    for code, number, ends in conditions:
        lines.append(f"    if {code}: {f'return {number}' if ends else f'found += ({number},)'}")
    names = _globals(constants)
    exec(_compiled("\n".join([*lines, "    return found"]), "exec"), names)  # noqa: S102
    return names["chain"]  # type: ignore[no-any-return]


def fields_asked(codes: Iterable[str], document: str) -> set[str] | None:
    """Return the fields of documents read by code; None if unbounded. Id, source and chars are left out.

    Those of the metadata are ``metadata.field``, others top-level ones.

    Args:
        codes: Codes of checked expressions.
        document: Variable that is the document.
    """
    result, left = set[str](), 0
    for node in (node for code in codes for node in ast.walk(parse_expression(code))):
        match node:
            case ast.Call(ast.Attribute(ast.Name(name), "field"), [ast.Constant(str(of))]) if name == document:
                result.add(of)
                left -= 1
            case ast.Call(
                ast.Name("at" | "get"), [ast.Attribute(ast.Name(name), "metadata"), ast.Constant(str(of)), *_]
            ):
                result.add(f"metadata.{of}")
                left -= name == document
            case ast.Attribute(ast.Name(name), "id" | "source" | "chars"):
                left -= name == document
            case ast.Name(name):
                left += name == document
    return None if left or result & {"text", "metadata", "attributes"} else result


@functools.lru_cache(maxsize=4096)
def _compiled(code: str, mode: str) -> Any:
    """Return compiled code, once: the rules are the same for every shard that a process works on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # `label is None` is fine where all documents have one label
        return compile(code, "<rules>", mode)


def _globals(constants: Mapping[str, Any] | None) -> dict[str, Any]:
    return {**(constants or {}), "__builtins__": _BUILTINS}


def _get(values: Any, key: str, default: Any) -> Any:
    result = values.get(key) if isinstance(values, dict) else None
    if isinstance(values, msgspec.Struct):
        result = getattr(values, field_name(key), None)
    return default if result is None else result


def _field(values: Any, key: str) -> Any:
    """Return a field of an untyped value. A KeyError says that it has none."""
    if not isinstance(values, dict):
        raise TypeError(f"expected an object with the field {key}, got {values!r}")
    return values[key]


def _at(values: Any, key: str) -> Any:
    """Return a field of an undeclared value; null if absent. It is null also if the value is null."""
    if values is None:
        return None
    if not isinstance(values, dict):
        raise TypeError(f"expected an object or null with the field {key}, got {values!r}")
    return values.get(key)


def _note(value: Any, nulls: list[bool]) -> Any:
    """Return a compared value; count a null."""
    if value is None:
        nulls.append(True)
    return value


def _hit(compare: Callable[[], Any]) -> bool:
    """Return True for a true comparison. One with an error is not true."""
    try:
        return bool(compare())
    except Exception:
        return False


def _truth(value: Any) -> bool:
    """Return an unchecked condition. A TypeError says that it is none."""
    if value is not True and value is not False:
        raise TypeError(f"expected true or false, got {value!r}")
    return value


def _times(left: Any, right: Any) -> Any:
    """Return a product of unchecked numbers. That of a text would be as long as one likes."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError(f"expected numbers around *, got {type(left).__name__} and {type(right).__name__}")
    return left * right


def _modulo(left: Any, right: Any) -> Any:
    """Return a remainder of unchecked numbers. That of a text would format it."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError(f"expected numbers around %, got {type(left).__name__} and {type(right).__name__}")
    return left % right


def single(value: Any) -> Any:
    """Return a number as the shortest text of its float32 gives it; also numbers in a list; all else as it is.

    >>> single(0.70000001), single(0.1 + 0.2), single([16777217, None])
    (0.7, 0.3, [16777216.0, None])
    """
    if isinstance(value, list | tuple):
        return [single(item) for item in value]
    exact = double(value)
    if not isinstance(exact, float) or exact == value:
        return value
    return next(short for digits in range(1, 10) if double(short := float(f"{exact:.{digits}g}")) == exact)


def double(value: Any) -> Any:
    """Return the nearest float32 of a number, or of numbers. Anything else is unchanged.

    >>> double(0.7), double(2)
    (0.699999988079071, 2.0)
    """
    if isinstance(value, list):
        return [double(item) for item in value]
    try:
        return _SINGLE.unpack(_SINGLE.pack(value))[0] if is_number(value) else value
    except OverflowError:  # beyond all of them, which remains so
        return value


_SINGLE = struct.Struct("<f")


@functools.lru_cache(maxsize=4096)
def compiled_pattern(pattern: str) -> Any:
    """Return a pattern compiled by RE2. Its time is linear in the text whatever the pattern is.

    Raises:
        ValueError: saying what is wrong with the pattern.
        MissingExtra: if the package is not installed.
    """
    try:
        import re2
    except ImportError:
        raise distribution.missing_extra("", "`matches` in expressions", "google-re2") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from None


def _text(value: Any, function: str) -> str:
    """Return an argument of a function as text. A TypeError says that it is none."""
    if not isinstance(value, str):
        raise TypeError(f"expected a text for {function}, got {type(value).__name__}")
    return value


def _matches(text: Any, pattern: str) -> bool:
    """Return True if a pattern matches anywhere in a text."""
    return compiled_pattern(pattern).search(_text(text, "matches")) is not None


_BUILTINS = {f.__name__: f for f in (len, any, all, min, max, sum, abs)} | {
    "get": _get,
    "field": _field,
    "at": _at,
    "note": _note,
    "hit": _hit,
    "truth": _truth,
    "times": _times,
    "modulo": _modulo,
    "single": functools.lru_cache(1024)(single),
    "double": double,
    "lower": lambda text: _text(text, "lower").lower(),
    "startswith": lambda text, start: _text(text, "startswith").startswith(_text(start, "startswith")),
    "endswith": lambda text, end: _text(text, "endswith").endswith(_text(end, "endswith")),
    "matches": _matches,
}
