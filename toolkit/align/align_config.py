"""The section ``align:``: its sets, and the readers of their external rows.

A row is an id and values, without a text: the readers are those of input formats with named fields.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, cast

import msgspec

from toolkit.config import settings as config
from toolkit.config.scale import ScaleOption, check as check_scale
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import MOST_FIELDS, field_types, own_types
from toolkit.data.documents import Span, value_at
from toolkit.data.schema import ANY, Type, check_fields, from_json, nullable
from toolkit.errors import ConfigError, DataError, UnknownPlugin, did_you_mean, errors_from, short
from toolkit.ingest.reader import READERS, SAMPLE, Draft, Input, Sample, first_drafts
from toolkit.ingest.tables.fields import FieldReader, Placed, declare, declared_type
from toolkit.label_files.reader import ANNOTATIONS, AnnotationReader, named_so
from toolkit.records import sets
from toolkit.storage.compression import SUFFIXES as COMPRESSIONS
from toolkit.storage.paths import is_set_name, join, list_files, strip_suffix
from toolkit.storage.store import note_roots

Chosen = Literal["rest"] | tuple[str, ...]

NOT_OPTIONS = ("fields", "metadata")
"""Options of readers that are about documents."""


@functools.cache
def values_reader(format: str) -> type[FieldReader] | type[AnnotationReader]:
    """Return a format's reader of drafts with id, source and values.

    Raises:
        ConfigError: if there is no such format, or its items have no named fields.
    """
    forms = ANNOTATIONS.names()
    if format in forms:
        return ANNOTATIONS.find(format)
    if hint := "" if format in READERS.names() else did_you_mean(format, forms):
        raise UnknownPlugin(f"no format is called {format!r}{hint}")
    result = READERS.find(format)
    if not issubclass(result, FieldReader):
        raise ConfigError(
            "expected a format whose items have named fields (parquet, jsonl, csv …), or of annotation files "
            f"({', '.join(forms)}), got {format!r}"
        )
    fields: list[Any] = [("id", str, "id"), ("values", Chosen, "rest")]
    fields[1:1] = [("source", str | None, None), ("shard", str | None, None)]
    methods = {"draft": _draft, "columns": _columns, "placed": _placed, "declared_values": _declared_values}
    output: Any = msgspec.defstruct(
        f"{result.__name__}Values", fields, bases=(result,), namespace=methods, frozen=True, forbid_unknown_fields=True
    )
    return cast("type[FieldReader]", output)


def _draft(self: Any, row: dict[str, Any], number: int) -> Draft:
    """Return the id, the source and the values of an item."""
    for name in self.leave_out:
        row.pop(name, None)
    id = _name(row, self.id, "id")
    source = _name(row, self.source, "source") if self.source else None
    shard = _name(row, self.shard, "shard") if self.shard else None
    if self.values == "rest":
        values = row
        for name in (self.id, self.source, self.shard):
            values.pop(name, None)
    else:
        values = {}
        for name in self.values:
            _take(values, row, name)
    return Draft(text="", number=number, id=id, source=source, shard=shard, extra=values)


def _take(values: dict[str, Any], row: dict[str, Any], path: str) -> None:
    """Put a field of a row among the values; one at a dotted path into the same objects as it is in."""
    if path in row or "." not in path:
        values[path] = row.get(path)
        return
    *above, last = path.split(".")
    for key in above:
        values = values.setdefault(key, {})
        if not isinstance(values, dict):
            raise DataError(f"expected an object in {key!r}, of which `values` names {path!r}, got {short(values)}")
    values[last] = value_at(row, path)


def _name(row: dict[str, Any], path: str, option: str) -> str:
    value = row[path] if path in row else value_at(row, path)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value
    hint = "" if _first(path) in row else did_you_mean(path, row) or f"; there are: {', '.join(row)}"
    got = "none" if value is None else short(value)
    raise DataError(f"expected a text or an integer in {path!r} (`{option}:`), got {got}{hint}")


def _columns(self: Any, columns: Iterable[str], path: str) -> list[str]:
    """Return the columns of a table to read."""
    names = list(columns)
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"expected columns of different names, got {twice[0]!r} twice", path=path)
    listed = {
        "id": (self.id,),
        "source": (self.source,) if self.source else (),
        "shard": (self.shard,) if self.shard else (),
        "values": () if self.values == "rest" else self.values,
        "leave_out": self.leave_out,
        "typed": tuple(self.typed),
        "not_null": self.not_null,
    }
    for option, chosen in listed.items():
        for name in chosen:
            if name not in names and _first(name) not in names:
                hint = did_you_mean(name, names) or f"; there are: {', '.join(names)}"
                raise DataError(f"expected the column {name!r} of `{option}`, got none{hint}", path=path)
    if self.values == "rest":
        return [name for name in names if name not in self.leave_out]
    names_of_documents = filter(None, (self.id, self.source, self.shard))
    selected = {part for name in (*names_of_documents, *self.values) for part in (name, _first(name))}
    return [name for name in names if name in selected]


def _first(path: str) -> str:
    return path.partition(".")[0]


def _placed(self: Any, columns: Mapping[str, Type], _: Iterable[Any]) -> Any:
    """Return the types of the values from a table's columns."""
    left_out = {self.id, self.source, self.shard, *self.leave_out}
    names = [name for name in columns if name not in left_out] if self.values == "rest" else self.values
    if lacks := [name for name in names if name not in columns and _type_at(columns, name) is None]:
        raise DataError(f"expected the column {lacks[0]!r} of `values`, got none")
    return self.declared_values(_types_of(names, columns), (), "the columns of all files")


def _types_of(names: Iterable[str], columns: Mapping[str, Type]) -> dict[str, Type]:
    """Return the types of the present values; one at a dotted path is in objects that are never null."""
    placed: Placed = {"document": {}}
    for name in names:
        if type_ := columns.get(name) or _type_at(columns, name):
            path = (name,) if name in columns else tuple(name.split("."))
            declare(placed, ("document", *path), type_, must=True)
    return placed["document"]


def _type_at(columns: Mapping[str, Type], path: str) -> Type | None:
    """Return the type at a dotted path, nullable below nullable objects; None if there is none."""
    type_, may_be_null = Type("object", fields=tuple(columns.items())), False
    for name in path.split("."):
        inner = type_.not_null.get(name)
        if inner is None:
            return None
        may_be_null |= type_.kind == "nullable"
        type_ = inner
    return nullable(type_) if may_be_null else type_


def _declared_values(self: Any, types: dict[str, Type], closed: Iterable[str], known_by: str) -> Any:
    placed: Placed = {"metadata": {}, "document": types}
    for name, kind in self.typed.items():
        plain = {"str": "str", "int": "int", "float": "float", "bool": "bool"}.get(kind)
        type_ = nullable(from_json(plain)) if plain else ANY
        declare(placed, ("document", *name.split(".")), type_, must=False)
    for name in self.not_null:
        path = ("document", *name.split("."))
        declare(placed, path, declared_type(placed, path, name), must=True)
    return own_types(placed, closed, known_by)


def value_types(reader: Any, inputs: Sequence[Input], makes_schema: bool) -> dict[str, Type]:
    """Return the types of the values: by the columns of all files, or else by the first rows.

    Args:
        reader: Reader of `values_reader`.
        inputs: all of them.
        makes_schema: True if the format has a schema.

    Raises:
        DataError: if a value that is asked for is not there.
    """
    if makes_schema and (result := reader.own_types(inputs)) is not None:
        return {name: from_json(value) for name, value in result.fields["document"].items()}
    rows = [msgspec.json.decode(msgspec.json.encode(draft.extra)) for draft in first_drafts(reader, inputs)]
    for name in () if reader.values == "rest" else reader.values:
        is_present = any(row.get(name) is not None or value_at(row, name) is not None for row in rows)
        if rows and not is_present and name not in reader.typed:
            raise DataError(
                f"expected the field {name!r} of `values`, got none, or null, in the first {len(rows):,} rows; give "
                f"its type if it comes later: `typed: {{{name}: float}}`",
                path=inputs[0].path,
            )
    types = field_types(rows, spans=True)
    types = types if reader.values == "rest" else _types_of(reader.values, types)
    if len(types) > MOST_FIELDS:
        raise DataError(f"expected at most {MOST_FIELDS} values a row, got {len(types)}; choose some with `values:`")
    result = reader.declared_values(types, (), f"the first {SAMPLE:,} rows")
    return {name: from_json(value) for name, value in result.fields["document"].items()}


# --- the check of values ----------------------------------------------------------------------------------------------

_PYTHON: dict[str, Any] = {"bool": bool, "int": int, "float": float, "str": str, "span": Span}


def value_struct(types: Mapping[str, Type]) -> type[msgspec.Struct]:
    """Return a Struct for objects of these types alone, in this order; where one may be null it may be absent, too."""
    fields = list[Any]()
    check_fields(types)
    names = {}
    for i, (name, type_) in enumerate(types.items()):
        names[f"f{i}"] = name
        if type_.kind == "nullable":
            fields.append((f"f{i}", _python(type_), None))
        elif type_.kind in ("any", "null"):
            fields.append((f"f{i}", msgspec.Raw, msgspec.Raw(b"null")))
        else:
            fields.append((f"f{i}", _python(type_)))
    return msgspec.defstruct("Values", fields, rename=names, kw_only=True, gc=False, forbid_unknown_fields=True)


def _python(type_: Type) -> Any:
    if type_.kind == "object":
        return value_struct(dict(type_.fields))
    if type_.item:
        inner: Any = _python(type_.item)
        if type_.kind == "nullable":
            return inner | None
        return list[inner] if type_.kind == "list" else dict[str, inner]
    return _PYTHON.get(type_.kind, msgspec.Raw)


FORMATS = "parquet, arrow, jsonl, csv, tsv, annotations, label_studio or argilla"


class Common(ConfigStruct):
    """The options of a set of ``align:``, for all formats; a format's own stand beside them.

    Attributes:
        from_: paths, globs or folders of files with values
        format: parquet, arrow, jsonl, csv, tsv, annotations, label_studio or argilla; default: by the files' names
        missing: a document without values is an error, or null (all its values are null)
        surplus: a row whose id no document has is an error, or ignored
        duplicates: several rows or documents with one id are an error; or the first row counts, for all of these
            documents
    """

    from_: list[str] | str = msgspec.field(name="from")
    format: str | None = None
    missing: Literal["error", "null"] | None = "error"
    surplus: Literal["error", "ignore"] = "error"
    duplicates: Literal["error", "first"] = "error"
    scale: ScaleOption = None


class Entry(ConfigStruct):
    """A set of the section, as data for a worker.

    Attributes:
        set: its name.
        common: options of all formats.
        options: Options of its own.
        place: Place in the configuration, for messages.
    """

    set: str
    common: dict[str, Any]
    options: dict[str, Any]
    place: str = ""

    def settings(self) -> Common:
        return config.convert(ConfigNode(self.common), Common)

    @property
    def format(self) -> str:
        """Return the format, from the option or the file names.

        Raises:
            ConfigError: if neither tells it.
        """
        common = self.settings()
        if common.format is not None:
            return common.format
        paths = [common.from_] if isinstance(common.from_, str) else common.from_
        results = {named_so(path) or _format_by(_suffix(path)) for path in paths}
        if len(results) > 1 or "" in results:
            raise ConfigError(f"{self.place}: expected `format:` ({FORMATS}), got none")
        return results.pop()

    def reader(self) -> Any:
        """Return the reader of the rows (see `values_reader`)."""
        return config.convert(ConfigNode(self.options), values_reader(self.format), f"format {self.format}")

    @property
    def missing_is_null(self) -> bool:
        return self.settings().missing in ("null", None)

    def inputs(self) -> list[str]:
        """Return the paths of the files, in order.

        Raises:
            ConfigError: if a path names none.
        """
        common = self.settings()
        results: list[str] = []
        for pattern in [common.from_] if isinstance(common.from_, str) else common.from_:
            note_roots([pattern])
            with errors_from(self.place, keeps=True):
                results += [path for path, _, _ in self.reader().inputs(pattern)]
        return list(dict.fromkeys(results))

    def recorded(self) -> dict[str, Any]:
        """Return all settings behind the values."""
        reader = self.reader()
        options = {**config.plain(reader)}
        for name in NOT_OPTIONS:
            options.pop(name, None)
        common = self.settings()
        policy = {"missing": "null" if self.missing_is_null else "error", "duplicates": common.duplicates}
        options["scale"] = config.plain(common.scale)
        options_given = {name: value for name, value in options.items() if value not in (None, [], {}, ())}
        return {"align": {"format": self.format, **policy, **options_given}}


def _format_by(suffix: str) -> str:
    """Return the format of files with a suffix, preferably its namesake; empty if there is none."""
    results = []
    for name in READERS.names() if suffix else ():
        with suppress(ConfigError):
            if issubclass(class_ := READERS.find(name), FieldReader) and suffix in class_.SUFFIXES:
                results.append(name)
    return suffix[1:] if suffix[1:] in results else next(iter(results), "")


def _suffix(path: str) -> str:
    name = strip_suffix(path.rpartition("/")[2], tuple(COMPRESSIONS))
    return "." + name.rpartition(".")[2].lower() if "." in name else ""


def read_section(section: ConfigNode) -> list[Entry]:
    """Return the sets of the section ``align:``, checked.

    Raises:
        ConfigError: with the place in the file, if one is not what it should be.
    """
    if not isinstance(section.value, dict) or not section.value:
        raise section.error((), "expected `SET: {from: …, id: …}`")
    keys = tuple(f.encode_name for f in msgspec.structs.fields(Common))
    entries = []
    for name in section.value:
        place = section.at(name)
        if not is_set_name(name):
            raise section.error((name,), f"expected a set name of letters, digits, - and _, got {name!r}")
        if not isinstance(place.value, dict):
            raise place.error((), f"expected {{from: …, id: …}}, got {place.value!r}")
        common, options = config.divide(place, keys)
        scale = config.convert(common, Common).scale
        try:
            check_scale(scale)
        except ConfigError as error:
            raise place.error(("scale",), str(error).removeprefix("scale: ")) from None
        entry = Entry(set=name, common=common.value, options=options.value, place=place.where(()))
        with place.errors_at("format"):
            class_ = values_reader(entry.format)
        for option in NOT_OPTIONS:
            if option in options.value:
                raise place.error(
                    (option,), "expected no such option here: `id:`, `source:` and `values:` name the columns"
                )
        config.refuse_unknown(place, class_, keys, f"align, format {entry.format}")
        reader: Any = config.convert(options, class_, f"format {entry.format}")
        if getattr(reader, "leave_out", None) == "rest":
            raise place.error(
                ("leave_out",), "expected names of fields, got `rest`; to take only some fields, name them in `values:`"
            )
        entries.append(entry)
    return entries


def schema_of(entry: Entry, paths: Sequence[str], limit: int) -> sets.SetSchema:
    """Return the schema of a set: the types of its values, by its inputs.

    Args:
        entry: Entry of the section.
        paths: Paths of the inputs.
        limit: bytes of a row, at most.

    Raises:
        ConfigError: if that cannot be told.
    """
    reader = entry.reader()
    sample = Sample()
    inputs = [Input(path, None, limit, None, sample=sample) for path in paths]
    has_schema = type(reader).own_types is not FieldReader.own_types
    try:
        types: Mapping[str, Type] = value_types(reader, inputs, has_schema)
    except DataError as error:
        advice = "; correct the file, or restore it" if error.line else ""
        raise ConfigError(f"{entry.place}: {error}{advice}") from None
    if not types:
        raise ConfigError(f"{entry.place}: expected values beside the id, got none")
    recorded = entry.recorded()
    results = {name: nullable(type_) if entry.missing_is_null else type_ for name, type_ in types.items()}
    return sets.SetSchema(keys={name: sets.key_schema(type_, recorded) for name, type_ in results.items()})


def check_made(dataset: Dataset, entry: Entry, *, overwrite: bool) -> None:
    """Check the name against those of other sets.

    Raises:
        ConfigError: if there is.
    """
    old = sets.load_schema(dataset, entry.set)
    if overwrite:
        return
    if old is None:
        if next(list_files(join(dataset.attributes, entry.set)), None) is not None:  # a folder alone is no set
            raise ConfigError(
                f"{entry.place}: expected no set {entry.set!r} yet, got one of another program; choose another name, "
                "or --overwrite"
            )
        return
    recorded = entry.recorded()
    for key in old.keys.values():
        if key.settings != recorded:
            before, now = (item.get("align", item) for item in (key.settings, recorded))
            names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
            changes = "".join(f"\n  {name}: {before.get(name)!r} -> {now.get(name)!r}" for name in names)
            raise ConfigError(
                f"the set {entry.set!r} exists and was made with other settings:{changes}\nchoose another name, or "
                "--overwrite"
            )
