"""References ``SET[.KEY[.field]]`` to values in attribute sets; and ``text``, which is one.

``text: SET.KEY[.field]`` stands beside taggers, in entries of ``dedup`` and in ``mix``: a text in an attribute set that
is taken for the text of each document.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolkit.data.documents import Document
from toolkit.data.schema import Type, has_spans, is_per_line
from toolkit.errors import ConfigError

OPTION = "text"
NULL = "null_text"
"""Rule of a mix that drops documents whose chosen text is null."""


class SetReference(NamedTuple):
    """The place of a value: its set, its key, which is empty where it is not named, and fields inside the value."""

    set: str
    key: str
    path: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the reference as it stands in a configuration."""
        return ".".join((self.set, self.key, *self.path))

    def expression(self, name: str) -> str:
        """Return an expression of rules, true for a null text.

        Args:
            name: Name of the key in the mix.
        """
        parts = [".".join((name, *self.path[:i])) for i in range(len(self.path) + 1)]
        return " or ".join(f"{part} is None" for part in parts)

    def of(self, attributes: Mapping[str, Any]) -> str | None:
        """Return the text in the attributes of a row; None where the value, or a part of the path, is null."""
        value: Any = attributes.get(self.key)
        for name in self.path:
            value = None if value is None else value.get(name)
        return value if isinstance(value, str) else None


_REFERENCE = re.compile(r"\s*([\w-]+)(?:\.(\w+)((?:\.\w+)*))?\s*")


def split_reference(text: str) -> SetReference | None:
    """Return the parts of ``SET[.KEY[.field]]``; None for another text. The set need not exist."""
    match = _REFERENCE.fullmatch(text)
    return SetReference(match[1], match[2] or "", tuple((match[3] or "").split(".")[1:])) if match else None


def parse_reference(text: object, values: str = "a text of an attribute set, or a name in `edits:`") -> SetReference:
    """Return the reference in an option.

    Args:
        text: Value of the option.
        values: Values that the option names, for the message.

    Raises:
        ConfigError: if it is not ``SET.KEY[.field]``.
    """
    set_name, *rest = text.split(".") if isinstance(text, str) else [""]
    if not set_name or not rest or not all(rest) or set_name in ("metadata", "document"):  # which no set is called
        raise ConfigError(f"expected SET.KEY[.field], which names {values}, got {text!r}")
    return SetReference(set_name, rest[0], tuple(rest[1:]))


class TextDocument(Document):
    """A document with another text; everything else is that of the document."""

    def __init__(self, document: Document, text: str) -> None:
        super().__init__(text, id=document.id, source=document.source, metadata=document.raw_metadata, row=document.row)
        self._document = document

    def attribute(self, path: str) -> Any:
        return self._document.attribute(path)


def text_of(settings: Mapping[str, Any] | None) -> str | None:
    """Return the text option in the settings of a key. None stands for the text of the documents."""
    if settings is None or "format" in settings:  # of other programs, and of ingest: about the documents as they are
        return None
    result = settings.get(OPTION)  # places in an edited text are mapped back to that of the documents
    return result if isinstance(result, str) else None


def check_same(own: str | None, theirs: str | None, type_: Type, name: str) -> None:
    """Check the text of values with positions (spans, lines).

    Args:
        own: Chosen text of whoever uses the values; None for that of the documents.
        theirs: Text that the values were computed from.
        type_: Type of the values.
        name: Name of the values, for the message.

    Raises:
        ConfigError: if they are places in another text.
    """
    if own != theirs and (has_spans(type_) or is_per_line(type_.not_null)):
        names = [f"`{OPTION}: {item}`" if item else "the documents' own text" for item in (theirs, own)]
        raise ConfigError(f"{name} has places in {names[0]}, and is used here with {names[1]}; use one text for both")
