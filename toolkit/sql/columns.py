"""Declared types as those of DuckDB, and the expressions by which JSON becomes values of them."""

from collections.abc import Iterable, Mapping
from itertools import count

from toolkit.data.schema import Type

_PLAIN = {"bool": "BOOLEAN", "int": "BIGINT", "float": "DOUBLE", "float32": "FLOAT", "str": "VARCHAR"}
_SPAN = 'STRUCT("start" BIGINT, "end" BIGINT, "score" DOUBLE)'


def quoted(name: str) -> str:
    """Return a name as SQL has it, whatever is in it.

    >>> quoted("lines-0"), quoted('a"b')
    ('"lines-0"', '"a""b"')
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def distinct(names: Iterable[str]) -> bool:
    """Return whether names differ for SQL, which does not tell upper from lower case."""
    listed = list(names)
    return len({name.casefold() for name in listed}) == len(listed)


def type_of(type_: Type) -> str:
    """Return the type of a column: what may be null is of the type without that.

    A span is a struct of ``start``, ``end`` and ``score``, a map a MAP; a value of no declared type is JSON, and so is
    an object whose fields SQL cannot tell apart, or that has none.
    """
    match type_.kind:
        case "span":
            return _SPAN
        case "object" if _is_struct(type_):
            fields = (f"{quoted(name)} {type_of(inner)}" for name, inner in type_.fields)
            return f"STRUCT({', '.join(fields)})"
    if type_.item is not None:
        inner = type_of(type_.item)
        return {"list": f"{inner}[]", "map": f"MAP(VARCHAR, {inner})"}.get(type_.kind, inner)
    return _PLAIN.get(str(type_), "JSON")


def parsed_type(type_: Type) -> str:
    """Return the type that the JSON of a value is parsed as: that of the column, but a span is a list of numbers."""
    match type_.kind:
        case "span":
            return "DOUBLE[]"
        case "object" if _is_struct(type_):
            fields = (f"{quoted(name)} {parsed_type(inner)}" for name, inner in type_.fields)
            return f"STRUCT({', '.join(fields)})"
    if type_.item is not None:
        inner = parsed_type(type_.item)
        return {"list": f"{inner}[]", "map": f"MAP(VARCHAR, {inner})"}.get(type_.kind, inner)
    return _PLAIN.get(str(type_), "JSON")


def _is_struct(type_: Type) -> bool:
    return bool(type_.fields) and distinct(name for name, _ in type_.fields)


def row_type(types: Mapping[str, Type]) -> str:
    """Return the type that a row of attributes is parsed as, with exactly these keys."""
    keys = ", ".join(f"{quoted(key)} {parsed_type(type_)}" for key, type_ in types.items())
    return f'STRUCT("source" VARCHAR, "id" VARCHAR, "attributes" STRUCT({keys}))'


def value_of(type_: Type, parsed: str) -> str:
    """Return the expression that makes the value of a column from what was parsed.

    Args:
        type_: the declared one.
        parsed: an expression of the type `parsed_type`.
    """
    return _value(type_, parsed, count())


def _value(type_: Type, parsed: str, numbers: "count[int]") -> str:
    if not _has_span(type_):
        return parsed
    match type_.kind:
        case "span":
            parts = f"{{'start': {parsed}[1]::BIGINT, 'end': {parsed}[2]::BIGINT, 'score': {parsed}[3]}}"
            return _unless_null(parsed, parts)
        case "object":
            fields = (
                f"{literal(name)}: {_value(inner, f'{parsed}.{quoted(name)}', numbers)}" for name, inner in type_.fields
            )
            return _unless_null(parsed, f"{{{', '.join(fields)}}}")
    assert type_.item
    if type_.kind == "nullable":
        return _value(type_.item, parsed, numbers)
    each = f"x{next(numbers)}"
    change = f"lambda {each}: {_value(type_.item, each, numbers)}"
    if type_.kind == "map":
        return f"map(map_keys({parsed}), list_transform(map_values({parsed}), {change}))"
    return f"list_transform({parsed}, {change})"


def _unless_null(parsed: str, value: str) -> str:
    return f"CASE WHEN {parsed} IS NULL THEN NULL ELSE {value} END"


def _has_span(type_: Type) -> bool:
    """Return whether there is a span where the type is no JSON."""
    if type_.kind == "object" and not _is_struct(type_):
        return False
    return type_.kind == "span" or any(
        _has_span(inner) for inner in (type_.item, *(inner for _, inner in type_.fields)) if inner
    )
