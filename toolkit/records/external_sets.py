"""Reads external attribute sets once, and caches their contents.

``seen SET`` SHARD  an `ExternalContent`, in the record log of the dataset
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import xxhash

from toolkit.data import record_logs, schema
from toolkit.data.alignment import attribute_lines, missing_file
from toolkit.data.dataset import Dataset
from toolkit.data.documents import BAD_ROW, AttributesRow, Rows
from toolkit.data.tables import TABLE
from toolkit.errors import DataError
from toolkit.storage import Stat, ephemeral
from toolkit.storage.freshness import Artifact, FileRecord, state
from toolkit.storage.json_files import decoder_of, load, save
from toolkit.storage.paths import stat
from toolkit.storage.reading import stored_digest
from toolkit.storage.record_log import Group, RecordKey

_SPANS = (schema.SPANS, schema.list_of(schema.NEVER))
_DECODER = msgspec.json.Decoder(AttributesRow)


class ExternalContent(Artifact, frozen=True, kw_only=True):
    """The recorded content of an external attribute file."""

    size: int
    stamp: str
    content: str
    rows: int
    types: dict[str, Any]
    everywhere: list[str]


External = Callable[[str], list[ExternalContent]]
"""A function that returns the contents of the files of an external set, by its name."""


def seen_now(dataset: Dataset, set_name: str, shard: str) -> ExternalContent | None:
    """Return the recorded content of an external file, if it is unchanged."""
    record = _load(dataset, set_name, shard)
    return record if _is_current(record, dataset.attribute_file(set_name, shard)) else None


def _is_current(record: ExternalContent | None, path: str) -> bool:
    return state(record, files=lambda record: [FileRecord(path, record.size, record.stamp)]).is_done


def place_of(set_name: str, shard: str) -> RecordKey:
    """Return the key of an external file's content in the record log."""
    return f"seen {set_name}", shard


def look_at(dataset: Dataset, set_name: str, shard: str, group: Group | None = None) -> ExternalContent:
    """Read an external attribute file, once; return its types, rows and digest.

    Raises:
        DataError: if it is not an attribute file, or lacks keys that it had when it was read before.
    """
    path, before = dataset.attribute_file(set_name, shard), _load(dataset, set_name, shard)
    if before and _is_current(before, path):
        return before
    result = stat(path)
    if result is None:
        raise missing_file(path, dataset, shard, None)
    current = _look_at_table(path, result) if path.endswith(TABLE) else _look_at_rows(path, result)
    if before and current.rows and (lost := _lost_keys(before, current)):
        raise DataError(
            f"expected the keys that the file had before, got none of {', '.join(lost)}; restore the file, or run "
            f"`toolkit clean --forget {set_name}` if they are not needed",
            path=path,
        )
    _save(dataset, set_name, shard, current, group)
    return current


def _lost_keys(before: ExternalContent, now: ExternalContent) -> list[str]:
    """Return the lost keys of a file, sorted. Spans that only some documents had may be those of none now."""
    return sorted(
        key
        for key in before.types.keys() - now.types.keys()
        if key in before.everywhere or schema.from_json(before.types[key]) not in _SPANS
    )


def sets_seen(dataset: Dataset) -> list[str]:
    """Return the external sets with recorded content, sorted."""
    log = record_logs.of(dataset)
    return [name for name in dataset.sets() if log.keys(place_of(name, "")[0])]


def forget(dataset: Dataset, shards: Iterable[str], set_names: Iterable[str]) -> None:
    """Forget recorded contents of external sets: of shards, and of whole sets."""
    log, listed = record_logs.of(dataset), list(shards)
    whole = [place_of(name, shard) for name in set_names for shard in log.keys(place_of(name, "")[0])]
    log.forget([*whole, *(place_of(name, shard) for name in sets_seen(dataset) for shard in listed)])


def types_of(records: Iterable[ExternalContent]) -> dict[str, tuple[schema.Type, schema.Type | None]]:
    """Return the type of each key of an external set; and that where rows have it, if some lack it."""
    types: dict[str, schema.Type] = {}
    files = [result for result in records if result.rows]
    for file in files:
        for key, value in file.types.items():
            type_ = schema.from_json(value)
            types[key] = schema.union(types[key], type_) if key in types else type_
    result: dict[str, tuple[schema.Type, schema.Type | None]] = {}
    for key, type_ in types.items():
        optional = not all(key in file.everywhere for file in files)
        if type_ == schema.list_of(schema.NEVER):
            type_ = schema.SPANS
        present = type_ if optional else None
        if optional and type_ != schema.SPANS:
            type_ = schema.nullable(type_)
        result[key] = (type_, present)
    return result


def values_of(dataset: Dataset, set_name: str, shard: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of an external attribute file: number and values.

    Raises:
        DataError: as `look_at`.
    """
    path = dataset.attribute_file(set_name, shard)
    with attribute_lines(path) as lines:
        rows = Rows(lines, _DECODER, path)
        for row, _ in rows:
            yield rows.number, _plain(row, rows)


def _load(dataset: Dataset, set_name: str, shard: str) -> ExternalContent | None:
    result = ephemeral.existing_path(dataset.bookkeeping, set_name, shard)
    if result:
        return load(result + ephemeral.RECORD, ExternalContent)
    return record_logs.of(dataset).load(*place_of(set_name, shard), ExternalContent)


def _save(dataset: Dataset, set_name: str, shard: str, contents: ExternalContent, group: Group | None) -> None:
    if ephemeral.is_needed(dataset.bookkeeping):
        save(ephemeral.path_of(dataset.bookkeeping, set_name, shard) + ephemeral.RECORD, contents)
        return
    place, record, log = place_of(set_name, shard), msgspec.json.encode(contents), record_logs.of(dataset)
    if group:
        group.save(place, record, log)
    else:
        log.save({place: record})


def _look_at_table(path: str, stat: Stat) -> ExternalContent:
    from toolkit.data.tables import attributes as table_rows

    rows, types = table_rows.look(path)
    return _contents(stat, stored_digest(path, xxhash.xxh3_128()), rows, types, list(types))


def _look_at_rows(path: str, stat: Stat) -> ExternalContent:
    types: dict[str, schema.Type] = {}
    counts: dict[str, int] = {}
    whole = 0  # rows that have all keys and no new types
    decoder: msgspec.json.Decoder[Any] | None = None
    with attribute_lines(path, digest=True) as lines:
        rows = Rows(lines, _DECODER, path)
        for row, _ in rows:
            try:
                if decoder:
                    decoder.decode(row.attributes)
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
                decoder = decoder_of(struct) if struct else None
    counts = {key: count + whole for key, count in counts.items()}
    everywhere = [key for key, count in counts.items() if count == rows.number]
    return _contents(stat, lines.content or "", rows.number, types, everywhere)


def _contents(
    stat: Stat, content: str, rows: int, types: dict[str, schema.Type], everywhere: list[str]
) -> ExternalContent:
    plain = {key: schema.to_json(type_) for key, type_ in types.items()}
    return ExternalContent(
        size=stat.size, stamp=stat.stamp, content=content, rows=rows, types=plain, everywhere=everywhere
    )


def _plain(row: AttributesRow, rows: Rows[AttributesRow]) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(row.attributes)
    except BAD_ROW as error:
        raise DataError(f"expected JSON values, got: {error}", path=rows.path, line=rows.number, id=row.id) from None
    if values == []:  # Dolma's deduper writes [] for a document that it skipped
        return {}
    if not isinstance(values, dict):
        raise DataError("expected an object - at $.attributes", path=rows.path, line=rows.number, id=row.id)
    return values
