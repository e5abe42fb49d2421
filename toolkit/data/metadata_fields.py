"""Options that name a field of a document's metadata where they may name an attribute: ``metadata.language``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.data import schema
from toolkit.data.documents import Document
from toolkit.errors import DataError, short

METADATA = "metadata"
"""What such an option begins with; no attribute set of the section ``tag:`` is called so."""


def path_of(text: str) -> tuple[str, ...] | None:
    """Return the keys that ``metadata.field…`` names; None of another text."""
    name, *path = text.split(".")
    return tuple(path) if name == METADATA and path else None


def label_of(path: str) -> str:
    """Return the expression of the label that an attribute has, for `toolkit.Writer.label`.

    Args:
        path: ``KEY[.field…]``, whose value is an object with a ``label``; or ``metadata.field…``, whose value may also
            be the label itself.
    """
    found = path_of(path)
    if found is None:
        return f"{path}.label"
    value = value_of(found)
    return f"get({value}, 'label', {value})"


def value_of(path: tuple[str, ...]) -> str:
    """Return the expression of a field of the metadata, null where it is absent or null."""
    value = "document.metadata"
    for key in path:
        value = f"get({value}, {key!r}, None)"
    return value


@dataclass(frozen=True)
class MetadataField:
    """A field of the metadata that an option names.

    Attributes:
        option: that names it.
        path: keys, one inside the other.
        type: a msgspec type that the value is converted to.
    """

    option: str
    path: tuple[str, ...]
    type: Any

    @property
    def text(self) -> str:
        """The field as the option names it."""
        return ".".join((METADATA, *self.path))

    def of(self, document: Document) -> Any:
        """Return the value of a document; None where a field of the path is absent or null.

        Where an object with a ``label`` is wanted, a text is the label.

        Raises:
            DataError: if the value is not of the type, or a field on the way is no object.
        """
        value: Any = document.metadata
        for i, key in enumerate(self.path):
            if value is None:
                break
            if not isinstance(value, Mapping):
                inside = ".".join((METADATA, *self.path[:i]))
                raise DataError(f"{self.option}: expected an object or null at {inside}, got {short(value)}")
            value = value.get(key)
        wanted = schema.from_annotation(self.type, self.text)
        taken = {"label": value} if isinstance(value, str) and wanted.get("label") else value
        try:
            return msgspec.convert(taken, self.type)
        except msgspec.ValidationError as error:
            got = "nothing there, or null" if value is None else f"{short(value)} ({error})"
            raise DataError(f"{self.option}: expected {self.text} of type {wanted}, got {got}") from None
