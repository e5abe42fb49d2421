"""Rows of others as documents: where their fields are, and which of them become metadata.

What formats share whose items are objects with named fields: JSON Lines, Parquet, Arrow, CSV.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import value_at
from toolkit.errors import DataError, did_you_mean, short
from toolkit.ingest import folders
from toolkit.ingest.reader import Draft, Reader

Names = str | list[str]

REST = "rest"

Chosen = Literal["rest"] | tuple[str, ...]

OWN = ("id", "text", "source", "added", "created", "metadata")
"""Fields of a document that `Fields` finds."""

_LATER = ("metadata", "leave_out", "config", "split")
"""Options that records of inputs do not name where they are not given: records of before have none of them."""


class Fields(ConfigStruct):
    """Where the fields of a document are: a key, a dotted path into objects, or several to be tried in turn."""

    id: Names = "id"
    text: Names = "text"
    source: Names = "source"
    added: Names = "added"
    created: Names = "created"
    metadata: Names = "metadata"

    def of(self, name: str) -> list[str]:
        """Return the names that are tried for a field."""
        names: Names = getattr(self, name)
        return [names] if isinstance(names, str) else names


class FieldReader(Reader):
    """Reads items with named fields: extend it for a format, and make documents by `draft`."""

    fields: Annotated[Fields, msgspec.Meta(description="name, dotted path or list of them for each field")] = Fields()
    metadata: Annotated[
        Chosen,
        msgspec.Meta(description="top-level fields that become fields of the metadata: their names, or `rest`, all"),
    ] = ()
    leave_out: Annotated[
        Chosen, msgspec.Meta(description="top-level fields that are not read: their names, or `rest`, all others")
    ] = ()

    config: Annotated[
        str | None, msgspec.Meta(description="of a folder from the Hub: one of the `configs:` in its README.md")
    ] = None
    split: Annotated[str | None, msgspec.Meta(description="of a folder: the split to read; default: all")] = None

    def __post_init__(self) -> None:
        if self.leave_out == REST == self.metadata:
            raise ValueError("expected `rest` in `metadata` or in `leave_out`, got it in both")
        for name in _listed(self.leave_out):
            if name in _listed(self.metadata):
                raise ValueError(f"expected {name!r} in `metadata` or in `leave_out`, got it in both")

    def inputs(self, pattern: str) -> Sequence[folders.Found]:
        if self.config is None and self.split is None and not folders.is_listable(pattern):
            return super().inputs(pattern)
        return folders.chosen(pattern, self.SUFFIXES, self.config, self.split)

    def settings(self) -> dict[str, Any]:
        return {key: value for key, value in super().settings().items() if value or key not in _LATER}

    def draft(self, row: dict[str, Any], number: int) -> Draft:
        """Return the document of an item; what is neither mapped nor gathered nor left out is kept, top-level.

        Args:
            row: its fields; changed here.
            number: of the item.

        Raises:
            msgspec.ValidationError: if it has no text, or a field that is not of its type.
            DataError: if a field would be lost: two for one name.
        """
        for name in _listed(self.leave_out):
            row.pop(name, None)
        gathered = {name: row[name] for name in _listed(self.metadata) if name in row}
        found: dict[str, Any] = {}
        for name in OWN:
            key, value = self._find(row, name)
            found[name] = value
            if key is not None:
                row.pop(key, None)
        for name in gathered:
            row.pop(name, None)
        if self.metadata == REST:
            gathered, row = row, {}
        elif self.leave_out == REST:
            row = {}
        if taken := [name for name in found if name in row]:
            raise msgspec.ValidationError(
                f"Expected no unmapped key {taken[0]}, got one: map `{taken[0]}` to it, or away"
            )
        if found["text"] is None:
            wanted = " or ".join(self.fields.of("text"))
            raise msgspec.ValidationError(f"Expected field {wanted}, got an object without it")
        if isinstance(row.get("attributes"), str):
            row["attributes"] = _object(row["attributes"], "attributes")
        found |= _converted(found)
        if gathered:
            found["metadata"] = _together(found["metadata"], gathered)
        return msgspec.convert({**found, "number": number, "extra": row}, Draft)

    def _find(self, row: dict[str, Any], field: str) -> tuple[str | None, Any]:
        for name in self.fields.of(field):
            if name in row:
                return name, row[name]
            if "." in name and (value := value_at(row, name)) is not None:
                return name, value
        return None, None

    def columns(self, there: Iterable[str], path: str) -> list[str]:
        """Return which columns of a table must be read, in its order.

        Args:
            there: the columns of the table.
            path: of its file, for messages.

        Raises:
            DataError: if two are called alike, or one is not there that an option names.
        """
        names = list(there)
        if twice := [name for name in names if names.count(name) > 1]:
            raise DataError(f"expected columns of different names, got {twice[0]!r} twice", path=path)
        for option, chosen in (("metadata", self.metadata), ("leave_out", self.leave_out)):
            for name in _listed(chosen):
                if name not in names:
                    hint = did_you_mean(name, names) or f"; there are: {', '.join(names)}"
                    raise DataError(f"expected the column {name!r} of `{option}`, got none{hint}", path=path)
        if not any(name in names or name.partition(".")[0] in names for name in self.fields.of("text")):
            wanted = " or ".join(map(repr, self.fields.of("text")))
            listed = ", ".join(names) or "none"
            message = (
                f"expected a column {wanted} of texts; say which it is: `fields: {{text: NAME}}`; there are: {listed}"
            )
            raise DataError(message, path=path)
        if self.leave_out == REST:
            mapped = {
                part for field in OWN for name in self.fields.of(field) for part in (name, name.partition(".")[0])
            }
            return [name for name in names if name in mapped or name in _listed(self.metadata)]
        return [name for name in names if name not in _listed(self.leave_out)]


def _listed(chosen: Chosen) -> tuple[str, ...]:
    """Return the names that an option gives; none for `rest`."""
    return chosen if isinstance(chosen, tuple) else ()


def _converted(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a document that an item may have in another form than documents have."""
    changed: dict[str, Any] = {}
    if isinstance(found["id"], int) and not isinstance(found["id"], bool):
        changed["id"] = str(found["id"])
    for name in ("added", "created"):
        if isinstance(found[name], date):  # or a datetime
            changed[name] = msgspec.to_builtins(found[name])
    if isinstance(found["metadata"], str):
        changed["metadata"] = _object(found["metadata"], "metadata")
    return changed


def _object(text: str, name: str) -> dict[str, Any] | None:
    """Return the object that a JSON text is; None of an empty one."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any] | None)
    except msgspec.DecodeError:
        raise msgspec.ValidationError(
            f"Expected `{name}` as an object, or its JSON text, got the text {short(text)}"
        ) from None


def _together(metadata: Any, gathered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata with fields of the item behind them.

    Raises:
        DataError: if both have a field of the same name, and it is not the same.
    """
    own = msgspec.convert(metadata, dict[str, Any] | None) or {}
    for name, value in gathered.items():
        if name in own and own[name] != value:
            got = f"{short(own[name])} in the metadata and {short(value)} beside them"
            raise DataError(f"expected one value of `metadata.{name}`, got {got}; leave one out with `leave_out`")
    return {**own, **gathered}
