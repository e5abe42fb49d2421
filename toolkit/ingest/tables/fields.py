"""External rows as documents: where their fields are, and which of them become metadata.

What formats share whose items are objects with named fields: JSON Lines, Parquet, Arrow, CSV.

The types of documents' own fields from those of columns: which column becomes which field, and what is declared.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar, Literal

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import schema
from toolkit.data.document_fields import COLUMNS, DOCUMENT, KEYS, METADATA, OwnTypes, merged, of_rows, own_types
from toolkit.data.documents import value_at
from toolkit.data.schema import ANY, BOOL, FLOAT, INT, STR, Type, nullable
from toolkit.data.tables.from_arrow import types_in
from toolkit.data.tables.to_arrow import to_text
from toolkit.errors import DataError, did_you_mean, short
from toolkit.ingest import folders
from toolkit.ingest.reader import SAMPLE, Draft, Input, NullText, Reader, first_drafts

Placed = dict[str, dict[str, Type]]
"""Types of fields by root (`metadata`, `document`) and name."""


def inner_fields(type_: Type | None) -> dict[str, Type] | None:
    """Return the fields of an object, or nullable object; None of anything else."""
    if type_ is None:
        return {}
    result = type_.not_null
    if result.kind != "object":
        return None
    return {name: nullable(t) if type_.kind == "nullable" else t for name, t in result.fields}


def closed_paths(placed: Placed, *, metadata: bool) -> list[str]:
    """Return the dotted paths of the closed objects of a schema.

    Args:
        placed: the fields.
        metadata: True if those of the metadata are all known.
    """
    results = [DOCUMENT, *([METADATA] if metadata else [])]
    for root, fields in placed.items():
        for name, type_ in fields.items():
            results += _objects(f"{root}.{name}", type_)
    return results


def _objects(path: str, type_: Type) -> Iterable[str]:
    inner = type_.not_null
    if inner.kind == "object":
        yield path
        for name, field in inner.fields:
            yield from _objects(f"{path}.{name}", field)


def declare(placed: Placed, path: tuple[str, ...], type_: Type, *, must: bool) -> None:
    """Set the declared type of a field.

    Args:
        placed: the fields; changed here.
        path: a root, and names inside it.
        type_: Type of the field.
        must: True if it, and the objects that it is in, are never null.
    """
    root, name, *inside = path
    placed[root][name] = _with(placed[root].get(name), inside, type_, must=must)


def declared_type(placed: Placed, path: tuple[str, ...], option: str) -> Type:
    """Return the type of a field in `not_null`, without null.

    Raises:
        DataError: if it has no known type.
    """
    root, *names = path
    type_: Type | None = Type("object", fields=tuple(placed[root].items()))
    for name in names:
        type_ = (inner_fields(type_) or {}).get(name)
    if type_ is None or type_.not_null == ANY:
        raise DataError(f"expected a field of known type in `not_null`, got {option!r}; give `typed: {{{option}: …}}`")
    return type_.not_null


def _with(old: Type | None, names: list[str], type_: Type, *, must: bool) -> Type:
    if not names:
        return type_
    fields: dict[str, Any] = inner_fields(old.not_null if old else None) or {}
    fields[names[0]] = _with(fields.get(names[0]), names[1:], type_, must=must)
    result = Type("object", fields=tuple(fields.items()))
    return result if must or (old is not None and old.kind == "object") else nullable(result)


Names = str | list[str]

REST = "rest"

Chosen = Literal["rest"] | tuple[str, ...]

NO_ID = "none"
"""The name of the field of ids where items are to be numbered, whatever fields they have."""

OWN = ("id", "text", "source", "added", "created", "metadata")
"""Fields of a document that `Fields` finds."""

_LATER = ("metadata", "leave_out", "config", "split")
"""Options that records of inputs do not name where they are not given: records of before have none of them."""

_ONLY_CHECKED = ("typed", "not_null")
"""Options that change nothing of what good documents become."""

_OF_COLUMNS = ("metadata", "leave_out")
"""Options whose names are those of columns, and no paths into them."""

_KINDS = {"str": STR, "int": INT, "float": FLOAT, "bool": BOOL}


class Fields(ConfigStruct):
    """The places of the fields of a document: a key, a dotted path into objects, or several to be tried in turn."""

    id: Names = "id"
    text: Names = "text"
    source: Names = "source"
    added: Names = "added"
    created: Names = "created"
    metadata: Names = "metadata"

    def of(self, name: str) -> list[str]:
        """Return the candidate names of a field."""
        names: Names = getattr(self, name)
        return [names] if isinstance(names, str) else names


class FieldReader(Reader):
    """Reads items with named fields: extend it for a format, and make documents by `draft`.

    Attributes:
        fields: field of a document -> the name of a field of the row, a dotted path, or a list of these
        metadata: top-level fields that become fields of the metadata: their names, or `rest`, all
        leave_out: top-level fields that are not read: their names, or `rest`, all others
        config: one of the `configs:` in the README.md of a folder from the Hub
        split: the split of a folder to read; default: all
        typed: types of fields by name (a dotted path leads into objects); `json`: any
        not_null: fields that are never null; a document without one is bad
    """

    CHECKED: ClassVar[tuple[str, ...]] = _ONLY_CHECKED
    """Options that are not recorded: they change nothing of good documents."""

    fields: Fields = Fields()
    metadata: Chosen = ()
    leave_out: Chosen = ()

    config: str | None = None
    split: str | None = None

    typed: dict[str, Literal["str", "int", "float", "bool", "json"]] = {}
    not_null: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.leave_out == REST == self.metadata:
            raise ValueError("expected `rest` in `metadata` or in `leave_out`, got it in both")
        for name in _names_in(self.leave_out):
            if name in _names_in(self.metadata):
                raise ValueError(f"expected {name!r} in `metadata` or in `leave_out`, got it in both")

    def inputs(self, pattern: str) -> Sequence[folders.ListedFile]:
        if self.config is None and self.split is None and not folders.is_listable(pattern):
            return super().inputs(pattern)
        return folders.inputs_of_folder(pattern, self.SUFFIXES, self.config, self.split)

    def settings(self) -> dict[str, Any]:
        options = super().settings().items()
        return {key: value for key, value in options if (value or key not in _LATER) and key not in self.CHECKED}

    # --- types --------------------------------------------------------------------------------------------------------

    def own_types(self, inputs: Sequence[Input]) -> OwnTypes | None:
        """Return the types of the own fields of documents: those that are declared, else those of the first rows."""
        drafts = [*first_drafts(self, inputs, tolerant=True)]  # damage is told where the input is ingested
        if drafts and all(draft.id is None for draft in drafts):
            self._check_id(dict.fromkeys(name for draft in drafts for name in draft.extra), inputs[0].path)
        own_types = of_rows([{**draft.extra, METADATA: draft.metadata} for draft in drafts], "")
        placed: Placed = {
            root: {name: schema.from_json(value) for name, value in fields.items()}
            for root, fields in own_types.fields.items()
        }
        return self.declared(placed, (), f"the first {SAMPLE:,} rows")

    def declared(self, placed: Placed, closed: Iterable[str], known_by: str) -> OwnTypes:
        """Return types of fields, including the declared ones.

        Raises:
            DataError: if one is not to be null, and has no known type.
        """
        for name, kind in self.typed.items():
            if (path := self._place_of(name)) is not None:
                type_ = schema.nullable(_KINDS[kind]) if kind in _KINDS else schema.ANY
                declare(placed, path, type_, must=False)
        for name in self.not_null:
            if (path := self._place_of(name)) is not None:
                declare(placed, path, declared_type(placed, path, name), must=True)
        return own_types(placed, closed, known_by + (", or is declared" if self.typed or self.not_null else ""))

    def placed(self, columns: Mapping[str, schema.Type], arrow: Iterable[Any]) -> OwnTypes:
        """Return the types of documents from those of table columns.

        Args:
            columns: Types by name.
            arrow: The same columns, as fields of Arrow.
        """
        import pyarrow as pa

        keys, gathered, rest = self._layout(columns)
        metadata = columns[keys[METADATA]] if METADATA in keys else self._inside(columns, keys)
        inside = inner_fields(metadata)
        results: Placed = {METADATA: inside or {}, DOCUMENT: {name: columns[name] for name in rest if name not in KEYS}}
        for name in gathered:
            type_ = columns[name]
            results[METADATA][name] = merged(results[METADATA][name], type_) if name in results[METADATA] else type_
        types = self.declared(results, closed_paths(results, metadata=inside is not None), COLUMNS)

        fields = {field.name: field for field in arrow}
        base = fields.get(keys.get(METADATA, ""))
        struct = {field.name: field for field in base.type} if base and pa.types.is_struct(base.type) else {}
        struct |= {name: fields[name] for name in gathered}
        named = {field: fields[key] for field, key in keys.items() if field in ("added", "created", "id")}
        if "id" in named and not (pa.types.is_integer(named["id"].type) and columns[keys["id"]] == schema.INT):
            del named["id"]
        if inside is not None and struct and not any("." in name for name in self.fields.of(METADATA)):
            named[METADATA] = pa.field(METADATA, pa.struct(list(struct.values())))
        placed_fields = {name: fields[name] for name in rest} | named
        text = to_text([pa.field(name, field.type) for name, field in placed_fields.items()])
        return msgspec.structs.replace(types, arrow=text)

    def _layout(self, columns: Iterable[str]) -> tuple[dict[str, str], list[str], list[str]]:
        """Return the columns of document fields, of metadata, and the remaining ones."""
        unmapped = [name for name in columns if name not in _names_in(self.leave_out)]
        gathered = [name for name in _names_in(self.metadata) if name in unmapped]
        keys: dict[str, str] = {}
        for field in OWN:
            if key := next((name for name in self.fields.of(field) if name in unmapped), ""):
                keys[field] = key
                unmapped.remove(key)
        if self.metadata == REST:
            return keys, unmapped, []
        return keys, gathered, [name for name in unmapped if name not in gathered and self.leave_out != REST]

    def _inside(self, columns: Mapping[str, schema.Type], keys: Mapping[str, str]) -> schema.Type | None:
        """Return the type of the metadata, if they are inside a column."""
        for name in self.fields.of(METADATA):
            root, *inner = name.split(".")
            is_read = root not in (*_names_in(self.leave_out), *keys.values())
            type_ = columns.get(root) if inner and is_read else None
            for key in inner:
                type_ = (inner_fields(type_) or {}).get(key) if type_ else None
            if type_ is not None:
                return type_
        return None

    def _place_of(self, name: str) -> tuple[str, ...] | None:
        """Return the path of a document field by an item's field; None of one that is not its own."""
        for path in self.fields.of(METADATA):
            if name.startswith(f"{path}."):
                return (METADATA, *name.removeprefix(f"{path}.").split("."))
        if any(name in self.fields.of(field) for field in OWN):
            return None
        head, *inside = (name,) if name in _names_in(self.metadata) else name.split(".")
        root = METADATA if self.metadata == REST or head in _names_in(self.metadata) else DOCUMENT
        return (root, head, *inside)

    def draft(self, row: dict[str, Any], number: int) -> Draft:
        """Return the document of an item; what is neither mapped nor gathered nor left out is kept, top-level.

        Args:
            row: its fields; changed here.
            number: Number of the item.

        Raises:
            NullText: if its text is null.
            msgspec.ValidationError: if it has no text, or a field that is not of its type.
            DataError: if a field would be lost: two for one name.
        """
        names = list(row)
        for name in _names_in(self.leave_out):
            row.pop(name, None)
        gathered = {name: row[name] for name in _names_in(self.metadata) if name in row}
        results: dict[str, Any] = {}
        for name in OWN:
            key, value = self._find(row, name)
            results[name] = value
            if key is not None:
                row.pop(key, None)
        is_null = results["text"] is None and self._has_text(names, row)
        for name in gathered:
            row.pop(name, None)
        if self.metadata == REST:
            gathered, row = row, {}
        elif self.leave_out == REST:
            row = {}
        if clashes := [name for name in results if name in row]:
            raise msgspec.ValidationError(
                f"Expected no key {clashes[0]} in the row, because `fields` takes the {clashes[0]} of the "
                f"document from another key: write "
                f"`fields: {{{clashes[0]}: {clashes[0]}}}`, or list the key in `metadata` or `leave_out`"
            )
        if results["text"] is None and not is_null:
            raise msgspec.ValidationError(self._no_text(names))
        if isinstance(row.get("attributes"), str):
            row["attributes"] = _object(row["attributes"], "attributes")
        results |= _convert(results)
        if gathered:
            results["metadata"] = _with_metadata(results["metadata"], gathered)
        text = "" if is_null else results["text"]
        draft = msgspec.convert({**results, "text": text, "number": number, "extra": row}, Draft)
        if is_null:
            raise NullText(f"Expected a text in {' or '.join(self.fields.of('text'))}, got null", draft)
        return draft

    def _has_text(self, present: Iterable[str], row: Mapping[str, Any]) -> bool:
        """Return True if an item has the text's field."""
        names = self.fields.of("text")
        outer = [(value_at(row, name.rpartition(".")[0]), name.rpartition(".")[2]) for name in names if "." in name]
        return any(name in present for name in names) or any(isinstance(o, Mapping) and key in o for o, key in outer)

    def _no_text(self, fields: Iterable[str]) -> str:
        """Return the message for an item without a text."""
        names, result = self.fields.of("text"), list(fields)
        expected = " or ".join(names)
        hint = did_you_mean(names[0], result) or f"; it has: {', '.join(result[:20])}"
        return f"Expected field {expected}, got an object without it{hint}; `fields: {{text: NAME}}` names another"

    def _check_id(self, names: Iterable[str], path: str) -> None:
        """Raise DataError if `fields` names an absent field of ids."""
        expected, present = self.fields.of("id"), list(names)
        if expected in ([], [Fields().id], [NO_ID]) or any(name.partition(".")[0] in present for name in expected):
            return
        hint = did_you_mean(expected[0], present) or f"; there are: {', '.join(present) or 'none'}"
        message = f"expected the field {' or '.join(expected)} of ids, which `fields` names, got none{hint}"
        raise DataError(f"{message}; `fields: {{id: {NO_ID}}}` numbers the items", path=path)

    def _find(self, row: dict[str, Any], field: str) -> tuple[str | None, Any]:
        for name in self.fields.of(field):
            if name in row:
                return name, row[name]
            if "." in name and (value := value_at(row, name)) is not None:
                return name, value
        return None, None

    def plain(self, columns: Any) -> dict[str, str] | None:
        """Return the columns of a table by document field; None if `draft` does more.

        Args:
            columns: those that are read, as a schema of Arrow.
        """
        import pyarrow as pa

        types = {field.name: field.type for field in columns}
        dotted = [name for field in OWN for name in self.fields.of(field) if "." in name]
        if types_in(columns.metadata) is not None or any(name.partition(".")[0] in types for name in dotted):
            return None
        keys, gathered, rest = self._layout(types)
        texts = [types[name] for field, name in keys.items() if field != "id" or not pa.types.is_integer(types[name])]
        odd = METADATA in keys or {*rest} & {*OWN, "attributes"} or any("." in name for name in (*rest, *gathered))
        if odd or "text" not in keys or not {*texts} <= {pa.string(), pa.large_string()}:
            return None
        return keys | {f"{METADATA}.{name}": name for name in gathered} | {name: name for name in rest}

    def columns(self, table_columns: Iterable[str], path: str) -> list[str]:
        """Return the columns to read of a table, in its order.

        Args:
            table_columns: the columns of the table.
            path: Path of its file, for messages.

        Raises:
            DataError: if two are called alike, or one is not there that an option names.
        """
        names = list(table_columns)
        if twice := [name for name in names if names.count(name) > 1]:
            raise DataError(f"expected columns of different names, got {twice[0]!r} twice", path=path)
        options = (
            ("metadata", _names_in(self.metadata)),
            ("leave_out", _names_in(self.leave_out)),
            ("typed", tuple(self.typed)),
            ("not_null", self.not_null),
        )
        for option, chosen in options:
            for name in chosen:
                if name not in names and (option in _OF_COLUMNS or name.partition(".")[0] not in names):
                    hint = did_you_mean(name, names) or f"; there are: {', '.join(names)}"
                    raise DataError(f"expected the column {name!r} of `{option}`, got none{hint}", path=path)
        self._check_id(names, path)
        if not any(name in names or name.partition(".")[0] in names for name in self.fields.of("text")):
            expected = " or ".join(map(repr, self.fields.of("text")))
            listed = ", ".join(names) or "none"
            hint = did_you_mean(self.fields.of("text")[0], names)
            message = (
                f"expected a column {expected} of texts{hint}; say which it is: `fields: {{text: NAME}}`; there are: "
                f"{listed}"
            )
            raise DataError(message, path=path)
        if self.leave_out == REST:
            mapped = {
                part for field in OWN for name in self.fields.of(field) for part in (name, name.partition(".")[0])
            }
            return [name for name in names if name in mapped or name in _names_in(self.metadata)]
        return [name for name in names if name not in _names_in(self.leave_out)]


def _names_in(chosen: Chosen) -> tuple[str, ...]:
    """Return the names in an option; none for `rest`."""
    return chosen if isinstance(chosen, tuple) else ()


def _convert(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the converted fields of a document, for other forms in items."""
    changed: dict[str, Any] = {}
    if isinstance(fields["id"], int) and not isinstance(fields["id"], bool):
        changed["id"] = str(fields["id"])
    for name in ("added", "created"):
        if isinstance(fields[name], date):  # or a datetime
            changed[name] = msgspec.to_builtins(fields[name])
    if isinstance(fields["metadata"], str):
        changed["metadata"] = _object(fields["metadata"], "metadata")
    return changed


def _object(text: str, name: str) -> dict[str, Any] | None:
    """Return the object in a JSON text; None of an empty one."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any] | None)
    except msgspec.DecodeError:
        raise msgspec.ValidationError(
            f"Expected `{name}` as an object, or its JSON text, got the text {short(text)}"
        ) from None


def _with_metadata(metadata: Any, gathered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata with fields of the item behind them.

    Raises:
        DataError: if both have a field of the same name, and it is not the same.
    """
    own = msgspec.convert(metadata, dict[str, Any] | None) or {}
    for name, value in gathered.items():
        if name in own and own[name] != value:
            got = f"{short(own[name])} in the metadata and {short(value)} in the field of the row"
            raise DataError(f"expected one value of `metadata.{name}`, got {got}; leave one out with `leave_out`")
    return {**own, **gathered}
