"""Documents as the page shows them: bounded text, values as short texts, and what of these is marked in the text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.data.schema import SPANS, Type
from toolkit.view.corpus import Found, Values

HEAD = 400
"""Code points of the beginning of a text in a list."""

TEXT = 300_000
"""Code points of a text that are shown at first."""

VALUE = 2_000
"""Characters of a value as JSON that are shown."""

DEEPEST = 3
"""Objects in each other whose fields have rows of their own."""


def in_list(found: Found) -> dict[str, Any]:
    """Return a document as it stands in a list."""
    return {
        "at": list(found.at),
        "id": found.id,
        "source": found.source,
        "chars": len(found.text),
        "head": found.text[:HEAD].strip(),
        "faults": found.faults,
    }


def whole(found: Found, sets: Sequence[Values], *, all_of_it: bool = False) -> dict[str, Any]:
    """Return a document with all that is known of it.

    Args:
        found: the document.
        sets: whose values it may have.
        all_of_it: whether all of its text is wanted.
    """
    return {
        **in_list(found),
        "text": found.text if all_of_it else found.text[:TEXT],
        "fields": list(_rows("", found.fields)),
        "values": [
            {"set": each.name, "rows": list(_rows("", found.values[each.name]))}
            for each in sets
            if each.name in found.values
        ],
        "marks": marks(found, sets),
    }


def _rows(path: str, value: Any, depth: int = 0) -> Iterator[tuple[str, str, bool]]:
    """Yield the parts of a value: its path, the JSON of it, and whether that is cut."""
    if isinstance(value, dict) and value and depth < DEEPEST:
        for name, inner in value.items():
            yield from _rows(f"{path}.{name}" if path else name, inner, depth + 1)
        return
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    yield path, text[:VALUE], len(text) > VALUE


def marks(found: Found, sets: Sequence[Values]) -> dict[str, Any]:
    """Return what of a document's values is marked in its text, by their types alone.

    Labels of lines are a list of objects with ``label``; the label is the first one of an object with ``label`` and
    ``prob``; spans are spans; header and footer are ``header_lines`` and ``footer_lines`` of an object.
    """
    marked: dict[str, Any] = {"label": None, "lines": [], "spans": [], "header": 0, "footer": 0}
    for each in sets:
        for key, type_ in each.types.items():
            value = found.values.get(each.name, {}).get(key)
            if value is not None:
                _mark(marked, key, type_.not_null, value)
    return marked


def _mark(marked: dict[str, Any], key: str, type_: Type, value: Any) -> None:
    fields = dict(type_.fields)
    if type_ == SPANS and isinstance(value, list):
        marked["spans"] += [[key, *span] for span in value if isinstance(span, list) and len(span) == 3]
    elif type_.kind == "list" and type_.item and "label" in dict(type_.item.not_null.fields):
        marked["lines"] = marked["lines"] or [_labelled(line) for line in value]
    elif isinstance(value, Mapping):
        if {"label", "prob"} <= {*fields}:
            marked["label"] = marked["label"] or value.get("label")
        for name in ("header", "footer"):
            count = value.get(f"{name}_lines")
            marked[name] = marked[name] or (count if isinstance(count, int) else 0)
        for name, inner in fields.items():
            if value.get(name) is not None and inner.not_null == SPANS:
                _mark(marked, f"{key}.{name}", SPANS, value[name])


def _labelled(line: Any) -> list[Any]:
    return [line.get("label"), line.get("prob")] if isinstance(line, Mapping) else [None, None]
