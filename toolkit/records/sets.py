"""What is known about attribute sets: their schema, and a completion record for each shard.

``.toolkit/sets/<set>/schema.json``          a `SetSchema`: types and settings, the same for all shards
``.toolkit/sets/<set>/models.json``          what the models are called whose digests the settings have
``.toolkit/sets/<set>/shards/<shard>.json``  a `ShardRecord`: written last, deleted before its data is replaced
``.toolkit/sets/<set>/seen/<shard>.json``    a `Seen`: what we found in a file that another program wrote
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from toolkit.data import schema
from toolkit.data.alignment import MAX_ROW, missing_file
from toolkit.data.dataset import Dataset
from toolkit.data.documents import BAD_ROW, AttributesRow, Rows
from toolkit.data.row_index import ShardState
from toolkit.errors import DataError, StaleError
from toolkit.storage import Stat
from toolkit.storage.concurrent import for_each
from toolkit.storage.json_files import load, load_strictly, save
from toolkit.storage.paths import exists, join, lacking, list_files, remove, stat
from toolkit.storage.streams import Lines, RowOutput, content_digest, write_file


class KeySchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """One key of a set.

    Attributes:
        type: in the form of `toolkit.data.schema`.
        settings: of its tagger (see `toolkit.tag.tagger.settings`).
        code: digests of the tagger's own code, where it does not belong to the toolkit (see `plugin_code`).
            Apart from the settings, because who edits it can say that the values stay the same.
        descriptions: what the value and its parts are, by `toolkit.data.schema.descriptions`; who words one otherwise
            changes no value.
    """

    type: Any
    settings: dict[str, Any]
    code: dict[str, str] = {}
    descriptions: dict[str, str] = {}


def key_schema(type_: schema.Type, settings: dict[str, Any], code: Mapping[str, str] | None = None) -> KeySchema:
    """Return what is recorded of a key whose values are of a type."""
    return KeySchema(schema.to_json(type_), settings, dict(code or {}), schema.descriptions(type_))


class SetSchema(msgspec.Struct, frozen=True, kw_only=True):
    """What all shards of a set have in common.

    Attributes:
        keys: in the order in which they are written.
        reads: for each set that it was made from, the digest of that set's schema.
    """

    version: int = 1
    keys: dict[str, KeySchema]
    reads: dict[str, str] = {}

    def types(self) -> dict[str, schema.Type]:
        return {key: schema.described(schema.from_json(k.type), k.descriptions) for key, k in self.keys.items()}

    def of_values(self) -> "SetSchema":
        """Return the schema without the digests of code and the descriptions, which say nothing of values."""
        keys = {key: msgspec.structs.replace(found, code={}, descriptions={}) for key, found in self.keys.items()}
        return msgspec.structs.replace(self, keys=keys)


class OutputState(msgspec.Struct, frozen=True, kw_only=True):
    """A file that we wrote.

    Attributes:
        size, stamp: of the stored file, the quick test.
        sha256: hex, of the stored bytes.
        content: xxh3-128 (hex) of the uncompressed bytes, by which lineage is told.
        content_size: uncompressed bytes.
        content_sha256: hex, of the uncompressed bytes.
    """

    size: int
    stamp: str
    sha256: str
    content: str
    content_size: int
    content_sha256: str


def output_state(output: RowOutput) -> OutputState:
    """The state of a file just written."""
    return OutputState(
        size=output.stat.size,
        stamp=output.stat.stamp,
        sha256=output.sha256,
        content=output.content,
        content_size=output.content_size,
        content_sha256=output.content_sha256,
    )


class ShardRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One shard of a set is complete.

    Attributes:
        input: the version of the documents that it describes.
        settings: of the set's taggers, in full.
        reads: content digest of the same shard in each set that was read.
        rows: in and out, which are equal.
        counts: by reason.
        output: the attribute file.
        seconds: of work.
    """

    version: int = 1
    input: ShardState
    settings: dict[str, Any]
    reads: dict[str, str]
    rows: int
    counts: dict[str, int]
    output: OutputState
    seconds: float


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """An attribute file that another program wrote, as it was read once."""

    size: int
    stamp: str
    content: str
    rows: int
    types: dict[str, Any]
    everywhere: list[str]


def set_folder(dataset: Dataset, set_name: str) -> str:
    return join(dataset.bookkeeping, "sets", set_name)


def load_schema(dataset: Dataset, set_name: str) -> SetSchema | None:
    remedy = f"restore it, or delete {set_folder(dataset, set_name)} and tag with --overwrite"
    return load_strictly(join(set_folder(dataset, set_name), "schema.json"), SetSchema, remedy)


def save_schema(dataset: Dataset, set_name: str, found: SetSchema) -> None:
    save(join(set_folder(dataset, set_name), "schema.json"), found)


def load_models(dataset: Dataset, set_name: str) -> dict[str, str]:
    """What the models of a set are called, by sha256; apart from the schema, because a name changes no value."""
    return load(_models_path(dataset, set_name), dict[str, str]) or {}


def save_models(dataset: Dataset, set_name: str, names: dict[str, str]) -> None:
    """Notes what models are called, by sha256; a model that is known keeps its name."""
    known = load_models(dataset, set_name)
    if names.keys() - known.keys():
        write_file(_models_path(dataset, set_name), msgspec.json.encode(names | known, order="sorted") + b"\n")


def _models_path(dataset: Dataset, set_name: str) -> str:
    return join(set_folder(dataset, set_name), "models.json")


def record_path(dataset: Dataset, set_name: str, shard: str) -> str:
    return join(set_folder(dataset, set_name), "shards", shard + ".json")


def load_record(dataset: Dataset, set_name: str, shard: str) -> ShardRecord | None:
    return load(record_path(dataset, set_name, shard), ShardRecord)


def recorded_shards(dataset: Dataset, set_name: str) -> list[str]:
    """The shards of which a set has a completion record, sorted."""
    folder = join(set_folder(dataset, set_name), "shards")
    return [path.removesuffix(".json") for path in list_files(folder, hidden=True) if path.endswith(".json")]


def ingest_files(dataset: Dataset, suffix: str) -> list[str]:
    """Paths of what ingest noted of its inputs: ``.json`` records, ``.started`` attempts that did not end; sorted."""
    folder = join(dataset.bookkeeping, "ingest")
    return [join(folder, path) for path in list_files(folder, hidden=True) if path.endswith(suffix)]


class Ingested(msgspec.Struct):
    """What is asked of the record of an input (`toolkit.ingest.inputs.InputRecord`) when all of them are read."""

    input: str
    shards: dict[str, Any]
    settings: dict[str, Any] = {}
    deleted: bool = False
    counts: dict[str, int] = {}
    entry: str = ""
    max_rejected: float = 0.1
    rejects: str = ""


def ingested(dataset: Dataset) -> dict[str, Ingested]:
    """Return the records of all inputs by their paths, sorted.

    Raises:
        DataError: naming the records that are damaged: nobody knows which shards there should be.
    """
    found = _all_ingested(dataset)
    if damaged := [str(record) for record in found.values() if isinstance(record, DataError)]:
        raise DataError("\n".join(damaged))
    return {path: record for path, record in found.items() if isinstance(record, Ingested)}


def _all_ingested(dataset: Dataset) -> dict[str, Ingested | DataError | None]:
    """Return the record of each input, or what is wrong with it; None for one that has gone meanwhile."""

    def look(path: str) -> Ingested | DataError | None:
        try:
            return load_strictly(path, Ingested, "run `toolkit ingest`, which makes it again")
        except DataError as error:
            return error

    paths = ingest_files(dataset, ".json")
    return dict(zip(paths, for_each(look, paths), strict=True))


def sound(dataset: Dataset) -> list[Ingested]:
    """Return the records of inputs, but for those that are damaged."""
    return [record for record in _all_ingested(dataset).values() if isinstance(record, Ingested)]


def deleted_shards(dataset: Dataset) -> list[str]:
    """Return the shards whose documents were deleted when they had been mixed, sorted."""
    return sorted(shard for record in sound(dataset) if record.deleted for shard in record.shards)


def missing_shards(
    dataset: Dataset,
    shards: Iterable[str],
    inputs: Mapping[str, Ingested],
    concern: Callable[[str], bool] = lambda shard: True,
) -> list[str]:
    """Return a message for each shard that was ingested and whose documents are gone, sorted.

    Args:
        dataset: where the documents are.
        shards: that there are.
        inputs: by `ingested`.
        concern: says of a shard whether it matters.
    """
    there = set(shards)
    missing = []
    for path, found in inputs.items():
        for shard in found.shards:
            if shard not in there and dataset.admits(shard) and concern(shard):
                documents = dataset.shard_path(shard)
                if exists(documents):
                    continue  # another run has just ingested it
                got = "`run --per-shard` has deleted them" if found.deleted else f"got {lacking(documents)}"
                missing.append(
                    f"{documents}: expected the documents of {found.input}, {got}; run "
                    f"`toolkit ingest`, or delete {path} if they are to go"
                )
    return sorted(missing)


def is_intact(dataset: Dataset, set_name: str, shard: str, record: ShardRecord, *, learn: bool = False) -> bool:
    """Return whether an attribute file is the one that its record describes.

    By size and stamp; if only the stamp differs (the file was copied, or touched), by its content.

    Args:
        dataset: of the file.
        set_name: of the set.
        shard: of the dataset.
        record: of the shard in the set.
        learn: whether the record is to learn another stamp; those who only look write nothing.
    """
    path = dataset.attribute_path(set_name, shard)
    found = stat(path)
    if found is None or found.size != record.output.size:
        return False
    if found.stamp == record.output.stamp:
        return True
    try:
        same = content_digest(path) == record.output.content
    except DataError:
        return False
    if same and learn:
        output = msgspec.structs.replace(record.output, stamp=found.stamp)
        save(record_path(dataset, set_name, shard), msgspec.structs.replace(record, output=output))
    return same


def content_of(dataset: Dataset, set_name: str, shard: str) -> str:
    """Content digest of an attribute file, from its record or from what was seen.

    Raises:
        DataError: if there is no such file, or it is not the one that its record describes.
    """
    path = dataset.attribute_path(set_name, shard)
    if load_schema(dataset, set_name) is None:
        return look_at(dataset, set_name, shard).content
    record = load_record(dataset, set_name, shard)
    if not exists(path):
        raise missing_file(path, dataset.shard_path(shard))
    if record is None:
        raise DataError("expected a complete file, got one without its record; run `toolkit tag`", path=path)
    if not is_intact(dataset, set_name, shard, record):
        raise DataError("expected the file that its completion record describes, it was changed since", path=path)
    return record.output.content


def check_lineage(dataset: Dataset, set_name: str, shard: str, documents: ShardState) -> None:
    """Raises StaleError if a shard of a set was made from other documents, or other attributes, than there are now."""
    record = load_record(dataset, set_name, shard)
    if record is None:
        return
    path = dataset.attribute_path(set_name, shard)
    if record.input.content != documents.content:
        raise StaleError(
            f"expected attributes of {dataset.shard_path(shard)} as it is now, got those of an earlier version; "
            "run `toolkit tag`",
            path=path,
        )
    for other, digest in record.reads.items():
        check_lineage(dataset, other, shard, documents)
        if content_of(dataset, other, shard) != digest:
            raise StaleError(
                f"expected attributes made from the set {other} as it is now, got those made from an earlier version; "
                "run `toolkit tag`",
                path=path,
            )


# --- sets of other programs -------------------------------------------------------------------------------------------

_DECODER = msgspec.json.Decoder(AttributesRow)


def seen_before(dataset: Dataset, set_name: str, shard: str) -> bool:
    """Whether an attribute file that another program wrote is as it was when `look_at` read it."""
    seen = load(_seen_path(dataset, set_name, shard), Seen)
    return seen is not None and Stat(seen.size, seen.stamp) == stat(dataset.attribute_path(set_name, shard))


def _seen_path(dataset: Dataset, set_name: str, shard: str) -> str:
    return join(set_folder(dataset, set_name), "seen", shard + ".json")


def look_at(dataset: Dataset, set_name: str, shard: str) -> Seen:
    """Reads an attribute file that another program wrote, once: its types, rows and digest.

    Raises:
        DataError: if it is not an attribute file.
    """
    path = dataset.attribute_path(set_name, shard)
    found = stat(path)
    if found is None:
        raise missing_file(path, dataset.shard_path(shard))
    cache = _seen_path(dataset, set_name, shard)
    seen = load(cache, Seen)
    if seen is not None and Stat(seen.size, seen.stamp) == found:
        return seen
    types: dict[str, schema.Type] = {}
    counts: dict[str, int] = {}
    whole = 0  # rows that have all keys and no new types
    known: msgspec.json.Decoder[Any] | None = None
    with Lines(path, MAX_ROW, digest=True) as lines:
        rows = Rows(lines, _DECODER, path)
        for row, _ in rows:
            try:
                if known:
                    known.decode(row.attributes)
                    whole += 1
                    continue
            except BAD_ROW:
                pass
            values = _plain(row, rows)
            before = dict(types)
            for key, value in values.items():
                types[key] = schema.union(types[key], schema.infer(value)) if key in types else schema.infer(value)
                counts[key] = counts.get(key, 0) + 1
            if types != before:
                counts = {key: counts[key] + (whole if key in before else 0) for key in counts}
                whole = 0
                struct = schema.exact(types)
                known = msgspec.json.Decoder(struct) if struct else None
    counts = {key: count + whole for key, count in counts.items()}
    seen = Seen(
        size=found.size,
        stamp=found.stamp,
        content=lines.content or "",
        rows=rows.number,
        types={key: schema.to_json(t) for key, t in types.items()},
        everywhere=[key for key, count in counts.items() if count == rows.number],
    )
    save(cache, seen)
    return seen


def _plain(row: AttributesRow, rows: Rows[AttributesRow]) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(row.attributes)
    except BAD_ROW as error:
        raise DataError(f"expected JSON values, got: {error}", path=rows.path, line=rows.number, id=row.id) from None
    if values == []:  # Dolma's deduper writes [] for a document that it skipped
        return {}
    if not isinstance(values, dict):
        raise DataError("expected object - at $.attributes", path=rows.path, line=rows.number, id=row.id)
    return values


def forget(dataset: Dataset, set_name: str, shard: str) -> None:
    """Deletes the record of a shard, before its data is replaced."""
    remove(record_path(dataset, set_name, shard))
