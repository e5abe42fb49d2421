"""The section ``align:``: for each set, where its values are, under which id, and what is tolerated."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec

from toolkit.align.rows import NOT_OPTIONS, value_types, values_reader
from toolkit.config import settings as config
from toolkit.config.scale import ScaleOption
from toolkit.config.scale import check as check_scale
from toolkit.config.settings import ConfigNode, ConfigStruct, Description
from toolkit.data.dataset import Dataset
from toolkit.data.schema import Type, nullable
from toolkit.errors import ConfigError, DataError
from toolkit.ingest.reader import READERS, Input, Sample
from toolkit.ingest.tables.fields import FieldReader
from toolkit.label_files.reader import named_so
from toolkit.records import sets
from toolkit.storage.compression import SUFFIXES as COMPRESSIONS
from toolkit.storage.paths import is_set_name, join, list_files, strip_suffix
from toolkit.storage.store import note_roots

FORMATS = "parquet, arrow, jsonl, csv, tsv, annotations, label_studio or argilla"


class Common(ConfigStruct):
    """The options of a set of ``align:`` that all formats share; a format's own stand beside them."""

    from_: Annotated[list[str] | str, Description(description="paths, globs or folders of files with values")] = (
        msgspec.field(name="from")
    )
    format: Annotated[str | None, Description(description=f"{FORMATS}; default: by the files' names")] = None
    missing: Annotated[
        Literal["error", "null"] | None,
        Description(description="what a document without values is: an error, or null (all its values are null)"),
    ] = "error"
    surplus: Annotated[
        Literal["error", "ignore"],
        Description(description="what a row is whose id no document has: an error, or ignored"),
    ] = "error"
    duplicates: Annotated[
        Literal["error", "first"],
        Description(
            description="if several rows or documents have one id: an error; or the first row counts, for "
            "all of these documents"
        ),
    ] = "error"
    scale: ScaleOption = None


class Entry(ConfigStruct):
    """A set of the section, as data that can be sent to a worker.

    Attributes:
        set: its name.
        common: options of all formats.
        options: Options of its own.
        place: in the configuration, for messages.
    """

    set: str
    common: dict[str, Any]
    options: dict[str, Any]
    place: str = ""

    def settings(self) -> Common:
        return config.convert(ConfigNode(self.common), Common)

    @property
    def format(self) -> str:
        """Return the format, as it is given, or as the files are called.

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
            try:
                results += [path for path, _, _ in self.reader().inputs(pattern)]
            except ConfigError as error:
                raise type(error)(f"{self.place}: {error}") from None
        return list(dict.fromkeys(results))

    def recorded(self) -> dict[str, Any]:
        """Return all that decides what values become."""
        reader = self.reader()
        options = {**config.plain(reader)}
        for name in NOT_OPTIONS:
            options.pop(name, None)
        common = self.settings()
        policy = {"missing": "null" if self.missing_is_null else "error", "duplicates": common.duplicates}
        options["scale"] = config.plain(common.scale)
        given = {name: value for name, value in options.items() if value not in (None, [], {}, ())}
        return {"align": {"format": self.format, **policy, **given}}


def _format_by(suffix: str) -> str:
    """Return the format whose files end so, rather the one that is called so; empty if there is none."""
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
        try:
            class_ = values_reader(entry.format)
        except ConfigError as error:
            raise place.error(("format",), str(error)) from None
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
    """Check that nothing else is there under the name of a set.

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
            told = "".join(f"\n  {name}: {before.get(name)!r} -> {now.get(name)!r}" for name in names)
            raise ConfigError(
                f"the set {entry.set!r} exists and was made with other settings:{told}\nchoose another name, or "
                "--overwrite"
            )
