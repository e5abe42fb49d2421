"""Options that name a field of a document where they may name an attribute: ``metadata.language``, ``document.url``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.data import schema
from toolkit.data.documents import Document
from toolkit.errors import DataError, in_words, short

METADATA = "metadata"
"""What an option begins with that names a field of the metadata."""

DOCUMENT = "document"
"""What one begins with that names a top-level field."""

ROOTS = (METADATA, DOCUMENT)
"""No attribute set of the section ``tag:`` is called so."""


def path_of(text: str) -> tuple[str, ...] | None:
    """Return the names in ``metadata.field…`` and ``document.field…``; None of another text."""
    path = tuple(text.split("."))
    return path if path[0] in ROOTS and len(path) > 1 and all(path) else None


def label_of(path: str) -> str:
    """Return the expression of the label that an attribute has, for `toolkit.Writer.label`.

    Args:
        path: ``KEY[.field…]``, whose value is an object with a ``label``; or ``metadata.field…`` (``document.field…``),
            whose value may also be the label itself.
    """
    found = path_of(path)
    if found is None:
        return f"{path}.label"
    value = value_of(found)
    if found[0] == METADATA:
        return f"get({value}, 'label', {value})"
    return f"get({value}, 'label', {value}) if {value} is not None else None"


def value_of(path: tuple[str, ...]) -> str:
    """Return the expression of a field of the document, null where it is absent or null."""
    if path[0] == DOCUMENT:
        return ".".join(path)
    value = "document.metadata"
    for key in path[1:]:
        value = f"get({value}, {key!r}, None)"
    return value


@dataclass(frozen=True)
class MetadataField:
    """A field of a document that an option names.

    Attributes:
        option: that names it.
        path: one of `ROOTS`, then keys, one inside the other.
        type: a msgspec type that the value is converted to.
    """

    option: str
    path: tuple[str, ...]
    type: Any

    @property
    def text(self) -> str:
        """The field as the option names it."""
        return ".".join(self.path)

    def of(self, document: Document) -> Any:
        """Return the value of a document; None where a field of the path is absent or null.

        Where an object with a ``label`` is wanted, a text is the label.

        Raises:
            DataError: if the value is not of the type, or a field on the way is no object.
        """
        root, *path = self.path
        value: Any = document.metadata if root == METADATA else {path[0]: document.field(path[0])}
        for i, key in enumerate(path, 1):
            if value is None:
                break
            if not isinstance(value, Mapping):
                inside = ".".join(self.path[:i])
                raise DataError(f"{self.option}: expected an object or null at {inside}, got {short(value)}")
            value = value.get(key)
        wanted = schema.from_annotation(self.type, self.text)
        taken = {"label": value} if isinstance(value, str) and wanted.get("label") else value
        try:
            return msgspec.convert(taken, self.type)
        except msgspec.ValidationError as error:
            got = "nothing there, or null" if value is None else f"{short(value)} ({in_words(str(error))})"
            raise DataError(f"{self.option}: expected {self.text} of type {wanted}, got {got}") from None
