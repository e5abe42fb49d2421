"""The stretches of a document's text that a rule is about: what it edits, or spans and lines that it looks at."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import excerpts
from toolkit.data.documents import Document, Span
from toolkit.rules.compiled_rule import CompiledRule
from toolkit.text.editing import clamp

MOST = 3
"""Stretches of a rule that are shown."""

AROUND = 80
"""Code points before and behind a stretch, and most of it, that are kept."""

HEAD = 500
"""Code points of the beginning of a text that are kept."""


class Stretch(ConfigStruct):
    """A stretch of a text.

    Attributes:
        start, end: code points.
        before, text, after: what stands there and around it, cut where it is long.
        value: of a line; null of others.
    """

    start: int
    end: int
    before: str
    text: str
    after: str
    value: Any = None


def of_rule(rule: CompiledRule, document: Document, values: Sequence[Any]) -> list[Stretch]:
    """Return the first stretches that a rule edits; of one that edits none, spans and lines whose values it sees."""
    text = document.text
    edits, _ = clamp(rule.edits(document, values, "clamp"), len(document.text)) if rule.holds(values) else ([], 0)
    found: list[tuple[int, int, Any]] = [(edit.start, edit.end, None) for edit in edits]
    listed = found or list(_watched(rule, document, values))
    return [
        Stretch(
            start,
            end,
            text[max(0, start - AROUND) : start],
            text[start : min(end, start + AROUND)],
            text[end : end + AROUND],
            value,
        )
        for start, end, value in listed[:MOST]
    ]


def _watched(rule: CompiledRule, document: Document, values: Sequence[Any]) -> Iterator[tuple[int, int, Any]]:
    for value in rule.watched(values).values():
        if not isinstance(value, list) or not value:
            continue
        if all(isinstance(each, Span) for each in value):
            yield from ((span.start, span.end, None) for span in value[:MOST])
        elif len(value) == len(document.lines):
            for (start, end), each in zip(document.line_spans[:MOST], value[:MOST], strict=True):
                yield start, end, msgspec.to_builtins(each)


def show(text: str, found: Sequence[Stretch]) -> list[str]:
    """Return lines for people, as wide as the terminal: the stretches, or the beginning of the text."""
    room = excerpts.width() - 6
    if not found:
        return ["    | " + excerpts.head(text, room)] if text else []
    lines = []
    for each in found:
        whole = each.before + each.text + each.after
        shown = excerpts.around(whole, len(each.before), len(each.before) + len(each.text), room)
        lines.append("    | " + shown)
    return lines
