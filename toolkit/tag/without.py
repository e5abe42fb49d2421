"""The option ``without`` of a set: its taggers see texts of which some spans are removed.

The spans that they find are mapped back to the whole text. A span keeps its score and stays one span: it begins at its
first code point in the whole text and ends behind its last one. Text that was removed inside the span is part of it,
text that was removed before or behind it is not. A rule that replaces such spans and cuts the removed ones therefore
gives the same text as replacing them in the shorter text. Values for each line are refused, because a line of the
shorter text may come from several lines of the whole text.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from toolkit.data import schema
from toolkit.data.documents import Document, Span
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, DataError
from toolkit.tag.tagger import Reference, Tagger, value_type
from toolkit.text import editing
from toolkit.text.batch import Batch

OPTION = "without"


def reference_of(text: object) -> Reference:
    """Return the attribute that the option names.

    Raises:
        ConfigError: if it is not ``SET.KEY[.field]``.
    """
    set_name, *rest = text.split(".") if isinstance(text, str) else [""]
    if not set_name or not rest or not all(rest):
        raise ConfigError(f"expected SET.KEY[.field], which names the spans to remove, got {text!r}")
    return Reference(OPTION, str(text), set_name, rest[0], tuple(rest[1:]), list[Span])


def check_values(class_: type[Tagger], name: str) -> None:
    """Check that what a tagger finds in a shorter text can be told of the whole one.

    Args:
        class_: of the tagger.
        name: of the tagger, for the message.

    Raises:
        ConfigError: if it gives a value for each line, or does not declare what it gives.
    """
    type_ = value_type(class_)
    got = str(type_) if schema.is_per_line(type_) else ""
    if class_.PER_LINE:
        got = f"values of lines ({', '.join(class_.PER_LINE)})"
    if not got and schema.has_any(type_):
        got = f"{type_}, a type that does not say where spans are"
    if got:
        raise ConfigError(
            "expected a tagger whose value is about the whole text, or has spans, got "
            f"{name} with {got}: "
            "without the spans, the text has other lines than the document. Leave `without` out, "
            "or cut the spans by a mix (rule `cut`) and tag its output"
        )


def check_read(reference: Reference, type_: Type) -> None:
    """Check that an attribute which a tagger reads beside ``without`` says something of the document as a whole.

    Raises:
        ConfigError: if it has spans or a value for each line, which are places in the whole text.
    """
    if reference.option != OPTION and (schema.is_per_line(type_) or schema.has_spans(type_)):
        raise ConfigError(
            f"expected an attribute of the whole document, got {type_}, which is about lines or "
            f"spans of the whole text: because of `{OPTION}`, the tagger sees only a part of this "
            f"text. Leave `{OPTION}` out, or name another attribute"
        )


class ShorterDocument(Document):
    """A document without some spans of its text; id, source, metadata and attributes are those of the whole one.

    Args:
        whole: the document.
        spans: code points of its text; what overlaps is removed once.

    Raises:
        DataError: if a span is out of range.
    """

    def __init__(self, whole: Document, spans: Iterable[Span]) -> None:
        self._whole = whole
        self._begins: list[int] = []  # of each piece that is left, here and in the whole text
        self._origins: list[int] = []
        pieces, end, length = [], 0, 0
        cuts = editing.merge(editing.edits_of_spans(spans, "", whole.text))
        for start, after in [*((cut.start, cut.end) for cut in cuts), (len(whole.text),) * 2]:
            if end < start:
                self._begins.append(length)
                self._origins.append(end)
                pieces.append(whole.text[end:start])
                length += start - end
            end = after
        metadata = whole.raw_metadata
        super().__init__("".join(pieces), id=whole.id, source=whole.source, metadata=metadata, row=whole.row)

    def attribute(self, path: str) -> Any:
        return self._whole.attribute(path)

    def in_whole(self, start: int, end: int) -> tuple[int, int]:
        """Return where a span of this text begins and ends in the whole text.

        Raises:
            DataError: if it is out of range.
        """
        if not 0 <= start <= end <= len(self.text):
            raise DataError(f"expected spans between 0 and {len(self.text)}, got [{start}, {end}]")
        if start < end:
            return self._origin(start), self._origin(end - 1) + 1
        at = self._origin(start) if start < len(self.text) else self._origin(start - 1) + 1 if start else 0
        return at, at

    def _origin(self, at: int) -> int:
        """Return where a code point of this text stands in the whole text."""
        piece = bisect_right(self._begins, at) - 1
        return self._origins[piece] + at - self._begins[piece]


class Shorter:
    """The documents of a batch without some spans of their texts.

    Args:
        numbered: the whole documents, to which the spans were given, with the number of each in its file.
        reference: of the spans.
        path: of the file, for messages.

    Attributes:
        numbered: the shorter documents, with the same numbers.
        batch: of the shorter documents.

    Raises:
        DataError: if a span is out of range.
    """

    def __init__(self, numbered: Sequence[tuple[Document, int]], reference: Reference, path: str) -> None:
        self._path = path
        self.numbered: list[tuple[ShorterDocument, int]] = []
        for document, number in numbered:
            try:
                self.numbered.append((ShorterDocument(document, document.attribute(reference.text)), number))
            except DataError as error:
                message = f"{OPTION}: {reference.text}: {error.message}"
                raise DataError(message, path=path, line=number, id=document.id) from None
        self.batch = Batch([document for document, _ in self.numbered])

    def in_whole(self, values: Sequence[Any], type_: Type, annotation: Any, key: str) -> Sequence[Any]:
        """Return the values of the shorter documents with their spans as those of the whole texts.

        Args:
            values: one for each document.
            type_: declared.
            annotation: the same in Python.
            key: of the tagger, for messages.

        Raises:
            DataError: if a span is out of range.
        """
        if not schema.has_spans(type_):
            return values
        found = []
        for value, (document, number) in zip(values, self.numbered, strict=True):
            try:
                told = _in_whole(msgspec.to_builtins(value), type_, document)
            except DataError as error:
                message = f"tagger {key}: {error.message}"
                raise DataError(message, path=self._path, line=number, id=document.id) from None
            found.append(msgspec.convert(told, annotation))
        return found


def _in_whole(value: Any, type_: Type, document: ShorterDocument) -> Any:
    if value is None or not schema.has_spans(type_):
        return value
    if type_.kind == "span":
        return [*document.in_whole(value[0], value[1]), *value[2:]]
    if type_.kind == "object":
        return value | {name: _in_whole(value[name], t, document) for name, t in type_.fields if name in value}
    assert type_.item
    if type_.kind == "list":
        return [_in_whole(each, type_.item, document) for each in value]
    if type_.kind == "map":
        return {name: _in_whole(each, type_.item, document) for name, each in value.items()}
    return _in_whole(value, type_.item, document)
