"""Errors of configurations in our form, and their paths."""

import re
from typing import Any, Literal, get_args, get_origin

import msgspec

from toolkit.errors import did_you_mean, in_words, short

Path = tuple[str | int, ...]


def path_of(place: str) -> Path:
    """Return the keys and indexes of a place as msgspec writes it: ``$.rules[1].drop``."""
    path: list[str | int] = []
    for key, index, name in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]|\[(\.\.\.)\]", place):
        if key:
            path.append(key)
        elif index:
            path.append(int(index))
        elif name:
            break
    return tuple(path)


def explain(text: str, path: Path, value: Any, type_: Any, subject: str) -> str:
    """Return msgspec's error in our form: expected …, got …; with suggestions.

    Args:
        text: Text of msgspec's error, without its place.
        path: Path that place, by keys and indexes.
        value: Whole value.
        type_: Type that it should have been of.
        subject: named in errors about unknown options.
    """
    if m := re.match(r"Object contains unknown field `(.+)`", text):
        options = _fields_at(type_, path)
        about = f" of {subject}" if subject else ""
        listed = f"; known: {', '.join(sorted(options))}" if options else "; there are none"
        if m[1] == "croissant" and "about" in options:
            listed = '; the version of Croissant is set as `about: {croissant: "1.1"}`'
        return f"unknown option {m[1]!r}{about}{did_you_mean(m[1], options) or listed}"
    if m := re.match(r"Object missing required field `(.+)`", text):
        inside = value
        for key in path:
            inside = inside[key]
        unknown = [str(key) for key in inside if key not in _fields_at(type_, path)] if isinstance(inside, dict) else []
        hint = next((f"; was {key!r} meant for it?" for key in unknown if did_you_mean(key, [m[1]])), "")
        return f"expected the option {m[1]!r}, which is missing{hint}"
    try:
        for key in path:
            value = value[key]
        if choices := _choices(_type_at(type_, path)) if text.startswith("Invalid enum value") else ():
            first_choices = [*(["a mapping"] if _struct_in(_type_at(type_, path)) else ()), *choices[:-1]]
            named = f"{', '.join(first_choices)} or {choices[-1]}" if first_choices else choices[-1]
            return f"expected {named}, got {_format(value)}"
        if title := _title(_type_at(type_, path)):
            return f"expected {title}, got {_format(value)}"
    except (KeyError, IndexError, TypeError):
        return in_words(text)
    if text.startswith("Expected `"):  # of msgspec; an option that can be left out need not be null
        text = in_words(text.partition(", got ")[0].replace(" | null`", "`")).replace("an object", "a mapping")
    message = in_words(text)
    if ", got " in message:
        return message
    if (
        re.fullmatch(r"expected a number of at most 1(\.0)?", message)
        and isinstance(value, int | float)
        and value <= 100
    ):
        return f"{message}, got {_format(value)}; write {value / 100:g} for {value:g} %"
    number = isinstance(value, int | float) and not isinstance(value, bool)  # of 23.10 the last digit is lost by now
    return f"{message}, got {_format(value)}" + (
        "; write it in quotes" if number and message == "expected a text" else ""
    )


def _format(value: Any) -> str:
    """Return a value as YAML may have it."""
    return "a mapping" if isinstance(value, dict) else repr(value) if isinstance(value, str | float) else short(value)


def _fields_at(type_: Any, path: Path) -> list[str]:
    """Return the known options at a place, by the Struct there."""
    struct = _struct_in(_type_at(type_, path))
    return [f.encode_name for f in msgspec.structs.fields(struct)] if struct else []


def _type_at(type_: Any, path: Path) -> Any:
    """Return the type at a path; None if there is none."""
    for key in path:
        if isinstance(key, int):
            continue  # into a list: `_struct_in` finds what its elements are
        struct = _struct_in(type_)
        if struct is None:
            return None
        type_ = {f.encode_name: f.type for f in msgspec.structs.fields(struct)}.get(key)
    return type_


def _title(type_: Any) -> str:
    """Return the title of a type, from `Meta(title=…)`; empty without one."""
    return next((meta.title for meta in getattr(type_, "__metadata__", ()) if getattr(meta, "title", None)), "")


def _choices(type_: Any) -> list[str]:
    """Return the words of all `Literal` types in a type."""
    if get_origin(type_) is Literal:
        return [str(arg) for arg in get_args(type_)]
    return [word for inner in get_args(type_) for word in _choices(inner)]


def _struct_in(type_: Any) -> type[msgspec.Struct] | None:
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return type_
    return next((result for inner in get_args(type_) if (result := _struct_in(inner))), None)
