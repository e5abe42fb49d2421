"""Records of attribute sets: the schema of each, and a completion record for each shard.

``.toolkit/sets/<set>/schema.json``  a `SetSchema`: types and settings, the same for all shards
``.toolkit/record-log/``             a `ShardRecord` of each shard: written last, forgotten before its data is replaced;
                                     what the models are called whose digests the settings have; an `Aligned` of a set
                                     of aligned values, written before its first shard
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from threading import RLock
from typing import Any, Self, cast

import msgspec
from msgspec.structs import replace

from toolkit.data import record_logs, row_index, schema
from toolkit.data.alignment import missing_file
from toolkit.data.dataset import Dataset
from toolkit.data.record_logs import place_in_set
from toolkit.data.row_index import BriefState, ShardState
from toolkit.errors import AlignmentError, DataError, StaleError
from toolkit.records import external_sets
from toolkit.records.external_sets import ExternalContent
from toolkit.storage.freshness import (
    DONE,
    Artifact,
    FileRecord,
    State,
    files_state,
    state,
    stored_xxh3,
    unchanged,
)
from toolkit.storage.json_files import decode, load_strictly, save
from toolkit.storage.outputs import RowOutput
from toolkit.storage.packed_rows import PackedMap
from toolkit.storage.paths import exists, join, listed_stat, read_once, stat, stat_each
from toolkit.storage.record_log import Group, RecordKey


class KeySchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """One key of a set.

    Attributes:
        type: Type in the form of `toolkit.data.schema`.
        settings: Settings of its tagger (see `toolkit.tag.tagger.settings`).
        code: Digests of the tagger's own code, if it does not belong to the toolkit (see `plugin_code`). They are no
            settings, because the author of an edit can declare that the values stay the same.
        descriptions: Descriptions of the value and its parts, by `toolkit.data.schema.descriptions`; another wording
            changes no value.
        models: Paths of its tagger's models, by option; the settings have their digests. Also the file of a prompt,
            whose content the settings have.
    """

    type: Any
    settings: dict[str, Any]
    code: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    models: dict[str, str] = {}


def key_schema(
    type_: schema.Type,
    settings: dict[str, Any],
    code: Mapping[str, str] | None = None,
    models: Mapping[str, str] | None = None,
) -> KeySchema:
    """Return the schema of a key from the type of its values."""
    return KeySchema(schema.to_json(type_), settings, dict(code or {}), schema.descriptions(type_), dict(models or {}))


class SetSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The common facts of all shards of a set.

    Attributes:
        keys: Keys in the order of writing.
        reads: Digest of the schema of each set that it reads.
    """

    version: int = 1
    keys: dict[str, KeySchema]
    reads: dict[str, str] = {}

    def types(self) -> dict[str, schema.Type]:
        return {key: schema.described(schema.from_json(k.type), k.descriptions) for key, k in self.keys.items()}

    def of_values(self) -> "SetSchema":
        """Return the schema without code, descriptions and places of models."""
        keys = {
            key: msgspec.structs.replace(key_schema, code={}, descriptions={}, models={})
            for key, key_schema in self.keys.items()
        }
        return msgspec.structs.replace(self, keys=keys)


class OutputState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a file of ours.

    Attributes:
        size, stamp: Stored file, for the quick test.
        sha256: hex, of the stored bytes.
        content: Digest (xxh3-128, hex) of the uncompressed bytes, for lineage.
        content_size: Number of uncompressed bytes.
        content_sha256: hex, of the uncompressed bytes.
    """

    size: int
    stamp: str
    sha256: str
    content: str
    content_size: int
    content_sha256: str


def output_state(output: RowOutput) -> OutputState:
    """Return the state of a file just written."""
    return OutputState(
        size=output.stat.size,
        stamp=output.stat.stamp,
        sha256=output.sha256,
        content=output.content,
        content_size=output.content_size,
        content_sha256=output.content_sha256,
    )


class ShardRecord(Artifact, frozen=True, kw_only=True):
    """The record of a complete shard of a set; if its inputs have changed, the shard is done again.

    Attributes:
        input: Version of the documents.
        settings: Settings of the set's taggers, in full.
        reads: Content digest of the same shard in each set that it reads.
        rows: Number of rows, of input and output.
        counts: Counts by reason.
        output: State of the attribute file.
        seconds: Seconds of work.
    """

    version: int = 1
    input: ShardState
    settings: dict[str, Any]
    reads: dict[str, str]
    rows: int
    counts: dict[str, int]
    output: OutputState
    seconds: float

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.input.content, **self.reads}


def set_folder(dataset: Dataset, set_name: str) -> str:
    return join(dataset.bookkeeping, "sets", set_name)


def load_schema(dataset: Dataset, set_name: str) -> SetSchema | None:
    def load(path: str) -> SetSchema | None:
        remedy = f"restore it, or delete {set_folder(dataset, set_name)} and tag with --overwrite"
        return load_strictly(path, SetSchema, remedy)

    return read_once(_schema_path(dataset, set_name), load)


def command_of(dataset: Dataset, set_name: str) -> str:
    """Return the command of a set: ``tag``, or another one, by its settings."""
    set_schema = load_schema(dataset, set_name)
    settings = [key.settings for key in set_schema.keys.values()] if set_schema else []
    if any("align" in setting for setting in settings):
        return "align"
    if any("stage" in setting for setting in settings):
        return "make"
    if any(setting.get("tagger", "").startswith(_ANNOTATORS) for setting in settings):
        return "annotate"
    kinds = {setting["kind"] for setting in settings if "kind" in setting}
    return next((_COMMANDS.get(kind, "dedup") for kind in kinds), "tag")


def missing_attributes(dataset: Dataset, set_name: str, shard: str) -> AlignmentError:
    """Return the error for a missing file of a set."""
    path = dataset.attribute_file(set_name, shard)
    return missing_file(path, dataset, shard, command_of(dataset, set_name) if load_schema(dataset, set_name) else None)


_ANNOTATORS = "toolkit.learn.annotate."
_COMMANDS = {"sample": "sample", "rank": "calibrate", "map": "calibrate"}


def save_schema(dataset: Dataset, set_name: str, set_schema: SetSchema) -> None:
    save(_schema_path(dataset, set_name), set_schema)


def _schema_path(dataset: Dataset, set_name: str) -> str:
    return join(set_folder(dataset, set_name), "schema.json")


def load_models(dataset: Dataset, set_name: str) -> dict[str, str]:
    """Return the names of the models of a set, by sha256; apart from the schema, because a name changes no value."""
    return record_logs.of(dataset).load("models", set_name, dict[str, str]) or {}


def save_models(dataset: Dataset, set_name: str, names: dict[str, str], *, only: bool = False) -> None:
    """Note the names of models, by sha256; a model that is known keeps its name. With `only`, there are no others."""
    recorded = load_models(dataset, set_name)
    if names.keys() - recorded.keys() or (only and recorded != names):
        recorded = {} if only else recorded
        record_logs.of(dataset).save({("models", set_name): msgspec.json.encode(names | recorded, order="sorted")})


def load_record(dataset: Dataset, set_name: str, shard: str) -> ShardRecord | None:
    return record_logs.of(dataset).load(*place_in_set(set_name, shard), ShardRecord)


def is_recorded(dataset: Dataset, set_name: str, shard: str) -> bool:
    """Return True if there is a completion record, even of another version."""
    return record_logs.of(dataset).get(*place_in_set(set_name, shard)) is not None


def is_damaged(dataset: Dataset, set_name: str, shard: str) -> bool:
    """Return True if a completion record is damaged. It may also be lost in a damaged file."""
    if is_recorded(dataset, set_name, shard):
        return load_record(dataset, set_name, shard) is None
    return bool(record_logs.of(dataset).damaged) and stat(dataset.attribute_path(set_name, shard)) is not None


def recorded_shards(dataset: Dataset, set_name: str) -> list[str]:
    """Return the shards of a set with completion records, sorted."""
    return record_logs.of(dataset).keys(place_in_set(set_name, "")[0])


def save_records(dataset: Dataset, shard: str, records: Mapping[str, ShardRecord], group: Group | None = None) -> None:
    """Save the completion records of a shard in some sets. Its data is durable, or belongs to a group."""
    encoded = {place_in_set(name, shard): msgspec.json.encode(record) for name, record in records.items()}
    if group is None:
        record_logs.of(dataset).save(encoded)
        return
    for place, record in encoded.items():
        group.save(place, record, record_logs.of(dataset))


def forget(dataset: Dataset, set_name: str, shard: str) -> None:
    """Forget the record of a shard before its data is replaced."""
    forget_all(dataset, [set_name], [shard])


def forget_all(dataset: Dataset, set_names: Iterable[str], shards: Collection[str]) -> None:
    """Forget the records of shards in sets before their data is replaced."""
    record_logs.of(dataset).forget(place_in_set(name, shard) for name in set_names for shard in shards)


# --- aligned values ---------------------------------------------------------------------------------------------------


class AlignedInput(msgspec.Struct, frozen=True):
    """A file with values: its path, stored bytes, stamp (the quick test), and xxh3-128 (hex) of what is stored."""

    path: str
    size: int
    stamp: str
    content: str


class Aligned(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of a set, in order, and counts by name."""

    version: int = 1
    inputs: list[AlignedInput]
    counts: dict[str, int] = {}

    @property
    def contents(self) -> list[str]:
        """Return the digests of the inputs, to compare versions."""
        return [input_.content for input_ in self.inputs]


def place_of_aligned(set_name: str) -> RecordKey:
    """Return the key of a set's inputs in the record log."""
    return "aligned", set_name


def load_aligned(dataset: Dataset, set_name: str) -> Aligned | None:
    """Return the inputs of a set of aligned values; None for other sets."""
    return record_logs.of(dataset).load(*place_of_aligned(set_name), Aligned)


def changed_input(aligned: Aligned) -> str:
    """Return the path of a changed input; a missing one has not changed."""
    paths = [input_.path for input_ in aligned.inputs]
    stats = {path: stat for path, stat in zip(paths, stat_each(paths), strict=True) if stat}
    files = [
        FileRecord(input_.path, input_.size, input_.stamp, input_.content, stored_xxh3) for input_ in aligned.inputs
    ]
    return files_state((file for file in files if file.path in stats), stat=stats.get).changed


NOT_INDEXED = State("stale", "its documents are not indexed, or have changed")


class _Brief(ShardRecord, frozen=True, kw_only=True):
    """A `ShardRecord` with less of its input, and encoded settings."""

    input: BriefState  # type: ignore[assignment]
    settings: msgspec.Raw  # type: ignore[assignment]

    @property
    def file(self) -> OutputState:
        return self.output


_UNKNOWN = -1
"""Stands for the number of the settings of a set that another program made."""


class FinishedShards:
    """The up-to-date shards of a dataset, made with any settings.

    One pass over records and listing of a set finds them, when the first is asked for. All others must be inspected one
    by one: they may be out of date, have no listing, or differ in a stamp alone.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._lock = dataset, RLock()
        self._columns: dict[str, PackedMap[tuple[str, int]]] = {}
        self._numbers: dict[tuple[bytes, tuple[str, ...]], int | None] = {}
        self._made_with: list[tuple[dict[str, Any], Collection[str]]] = []

    def get(self, set_name: str, shard: str) -> tuple[str, int] | None:
        """Return content digest and number of a shard: that of the settings in a set; of documents, the rows.

        The documents have no name. Tables have other names than their shards, and are not among an external set's.
        """
        column = self._columns.get(set_name) or self._find(set_name)
        return column.get(shard) if column else None

    def content(
        self, set_name: str, shard: str, settings: Mapping[str, Any] | None = None, reads: Iterable[str] = ()
    ) -> str | None:
        """Return the content digest of a shard in a set; None if it was made with other settings, or reads others."""
        item = self.get(set_name, shard)
        return item[0] if item and (settings is None or item[1] in self.numbers(settings, reads)) else None

    def all_of(self, set_names: Iterable[str]) -> Callable[[str], list[tuple[str, int]] | None]:
        """Return a function from shards to items of documents and sets.

        It returns None unless all of them are up to date.
        """
        columns = [self._columns.get(name) or self._find(name) for name in ("", *set_names)]
        listed = [column for column in columns if column]

        def items(shard: str) -> list[tuple[str, int]] | None:
            results = [item for column in listed if (item := column.get(shard))]
            return results if len(results) == len(columns) else None

        return items

    def numbers(self, settings: Mapping[str, Any], reads: Iterable[str]) -> set[int]:
        """Return the numbers of these settings with just these sets read."""
        pair = settings, {*reads}
        return {number for number, made_with in enumerate(self._made_with) if made_with == pair}

    def _find(self, set_name: str) -> PackedMap[tuple[str, int]] | None:
        dataset = self._dataset
        listed = listed_stat(join(dataset.attributes, set_name) if set_name else dataset.documents)
        if listed is None:  # this reads nothing, so it may be asked for each shard: there may be a listing later
            return None
        with self._lock:
            if set_name in self._columns:
                return self._columns[set_name]
            file_of: Callable[[str], str] = str
            number: Callable[[str, Any], int | None] | None = self._number_of
            kind, type_ = place_in_set(set_name, "")[0], cast("type[Artifact]", _Brief)
            if not set_name:
                kind, type_, file_of = record_logs.ROWS, BriefState, dataset.file_of
                number = row_index.indexed_rows(dataset)
            elif load_schema(dataset, set_name) is None:
                kind, type_ = external_sets.place_of(set_name, "")[0], ExternalContent
            if number is None:
                return None
            records = record_logs.of(dataset).briefly(kind, type_)
            current = unchanged(records, lambda shard: listed(file_of(shard)), self.content)
            items = ((shard, (record.file.content, number(shard, record))) for shard, record in current)
            column = PackedMap(
                tuple[str, int], ((shard, (content, n)) for shard, (content, n) in items if n is not None)
            )
            return self._columns.setdefault(set_name, column)

    def _number_of(self, shard: str, record: _Brief | ExternalContent) -> int | None:
        """Return the number of the settings of a record; None if they are none."""
        if isinstance(record, ExternalContent):
            return _UNKNOWN
        key = bytes(record.settings), (*record.reads,)
        if key not in self._numbers:
            self._numbers[key] = None
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                self._made_with.append((decode(record.settings, dict[str, Any]), record.reads.keys()))
                self._numbers[key] = len(self._made_with) - 1
        return self._numbers[key]


def finished_shards(dataset: Dataset) -> FinishedShards:
    """Return the up-to-date shards of a dataset; they are kept until records are written or read anew."""
    return record_logs.of(dataset).derived((FinishedShards, dataset), lambda: FinishedShards(dataset))


class ShardSets:
    """The attributes of a shard in all sets, each inspected once.

    Args:
        dataset: Dataset of the shard.
        shard: Shard of the dataset.
        documents: Current documents; None if unknown.
        finished: Shards of the dataset that are up to date; None to inspect this one.
    """

    def __init__(
        self, dataset: Dataset, shard: str, documents: ShardState | None, finished: FinishedShards | None = None
    ) -> None:
        self.dataset, self.shard, self._documents, self._finished = dataset, shard, documents, finished
        self.contents = dict[str, str]()
        self._attributes: dict[str, ShardAttributes] = {}

    @classmethod
    def now(cls, dataset: Dataset, shard: str) -> Self:
        """Return the sets of a shard as it is now."""
        finished = finished_shards(dataset)
        return cls(dataset, shard, None if finished.get("", shard) else row_index.current(dataset, shard), finished)

    @property
    def documents(self) -> ShardState | None:
        """Return the current documents; None if unknown."""
        if self._documents is None and self._finished and self._finished.get("", self.shard):
            self._documents = row_index.recorded(self.dataset, self.shard)
        return self._documents

    @property
    def version(self) -> tuple[str, int] | None:
        """Return content digest and number of the documents; None if unknown."""
        item, documents = self._finished and self._finished.get("", self.shard), self._documents
        return item or ((documents.content, documents.rows) if documents else None)

    def finished(
        self, set_name: str, settings: Mapping[str, Any] | None = None, reads: Iterable[str] = ()
    ) -> str | None:
        """Return `FinishedShards.content`, or the result of `ShardAttributes.state`."""
        content = self._finished and self._finished.content(set_name, self.shard, settings, reads)
        return content or (self.contents.get(set_name) if settings is None else None)

    def __getitem__(self, set_name: str) -> "ShardAttributes":
        """Return the attributes in a set."""
        if set_name not in self._attributes:
            self._attributes[set_name] = ShardAttributes(self.dataset, set_name, self.shard, self.documents, self)
        return self._attributes[set_name]


class ShardAttributes(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The attributes of a shard in a set, ours or external.

    Attributes:
        dataset: Dataset of the shard.
        set: Name of the set.
        shard: Shard of the dataset.
        documents: Current documents; None if unknown.
        shard_sets: All sets of the shard; None to inspect those that this one reads for itself.
    """

    dataset: Dataset
    set: str
    shard: str
    documents: ShardState | None = None
    shard_sets: ShardSets | None = None

    @property
    def path(self) -> str:
        """Return the path of the attributes in a set of ours."""
        return self.dataset.attribute_path(self.set, self.shard)

    @property
    def record(self) -> ShardRecord | None:
        """Return the completion record; None if there is none."""
        if "record" not in self.__dict__:  # no `cached_property`, which lets the threads of all instances wait
            self.__dict__["record"] = load_record(self.dataset, self.set, self.shard)
        return cast("ShardRecord | None", self.__dict__["record"])

    def files(self, record: ShardRecord) -> list[FileRecord]:
        """Return the files of a completion record."""
        return [FileRecord(self.path, record.output.size, record.output.stamp, record.output.content)]

    def state(
        self,
        settings: Mapping[str, Any] | None = None,
        reads: Iterable[str] | None = None,
        *,
        quick: bool = False,
        learn: bool = False,
    ) -> State:
        """Return the state of attributes of ours.

        Args:
            settings: Settings to make the set with; None if any will do.
            reads: Sets to make it from; by default, the recorded ones.
            quick: Argument of `toolkit.storage.freshness.state`.
            learn: True if the record is to learn another stamp; those who only look write nothing.
        """
        record = self.record
        if record and self.documents is None:
            return NOT_INDEXED
        names = record.reads if record and reads is None else reads or ()
        result = state(record, self.inputs(names, quick=quick), settings, self.files, quick=quick)
        if record and learn and result.stamps:
            output = msgspec.structs.replace(record.output, stamp=result.stamps[self.path])
            save_records(self.dataset, self.shard, {self.set: msgspec.structs.replace(record, output=output)})
        if record and self.shard_sets and result is DONE:  # with these settings, and so with those of the record
            self.shard_sets.contents[self.set] = record.output.content
        return result

    def inputs(self, reads: Iterable[str], *, quick: bool = False) -> Iterator[tuple[str, str | None]]:
        """Yield the digests of the documents and of the sets, for `toolkit.storage.freshness.state`."""
        yield "", self.documents.content if self.documents else None
        shard_sets = self.shard_sets or ShardSets(self.dataset, self.shard, self.documents)
        for name in reads:
            yield name, shard_sets[name].digest(quick=quick)

    def digest(self, *, quick: bool = False) -> str | None:
        """Return the content digest; None if the attributes are out of date.

        Raises:
            DataError: if there is no such file of an external set, or it is not one of attributes.
        """
        if finished := self.shard_sets and self.shard_sets.finished(self.set):
            return finished
        if load_schema(self.dataset, self.set) is None:
            look = external_sets.seen_now if quick else external_sets.look_at
            contents = look(self.dataset, self.set, self.shard)
            return contents.content if contents else None
        is_done = self.state(quick=quick).is_done
        return self.record.output.content if self.record and is_done else None

    def content(self, *, learn: bool = False) -> str:
        """Return the content digest, recorded or of an external file.

        Without `documents`, the inputs do not matter.

        Args:
            learn: Argument of `state`.

        Raises:
            StaleError: if they were made from other documents, or other attributes, than there are now.
            DataError: if there is no such file, or it is not the one that its record describes.
        """
        if finished := self.shard_sets and self.shard_sets.finished(self.set):
            return finished
        if load_schema(self.dataset, self.set) is None:
            return external_sets.look_at(self.dataset, self.set, self.shard).content
        path, record = self.path, self.record
        result = self.state(learn=learn) if self.documents else state(record, files=self.files)
        if record and result.is_done:
            return record.output.content
        if not exists(path):
            raise missing_attributes(self.dataset, self.set, self.shard)
        run = f"run `toolkit {command_of(self.dataset, self.set)}`"
        if record is None:
            raise DataError(f"expected a complete file, got one without its completion record; {run}", path=path)
        if result.name == "missing":
            message = f"expected the file that its record describes, got one that was changed later; {run}"
            raise DataError(message, path=path)
        if result.error:
            raise result.error
        if result.changed:
            replace(self, set=result.changed).content()  # which raises where that is stale itself
        of = f"the set {result.changed}" if result.changed else self.dataset.shard_path(self.shard)
        output = "made from " if result.changed else "of "
        message = f"expected attributes {output}{of} as it is now, got those {output}an earlier version; {run}"
        raise StaleError(message, path=path)
