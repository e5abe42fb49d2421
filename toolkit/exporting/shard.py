"""Exports shards of sets as Parquet, and indexes of raw files.

``FOLDER/<set>/<shard>.parquet``  columns ``id``, ``source``, ``row``, and one for each key
``FOLDER/.toolkit/exported/``     an `Exported` of each: forgotten before its file is replaced, written last
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import line_index, record_logs, row_index
from toolkit.data.dataset import SHARD_SUFFIXES, Dataset, normal_path
from toolkit.data.schema import Type, to_json
from toolkit.data.tables import TABLE, attributes, from_arrow, parquet, to_arrow
from toolkit.errors import ConfigError, DataError, amount, few
from toolkit.execution.executors import Report
from toolkit.mix.join import JoinedSet, JoinedShard, inputs_of, row_decoder
from toolkit.mix.rule_effects.preview import indexed_rows
from toolkit.records import origins, sets as records
from toolkit.records.origins import Origin
from toolkit.records.sets import ShardAttributes
from toolkit.storage import Stat, paths, store_of
from toolkit.storage.compression import compression_in
from toolkit.storage.freshness import Artifact, Derived, FileRecord, State, state
from toolkit.storage.json_files import json_digest
from toolkit.storage.outputs import Output
from toolkit.storage.reading import open_stored
from toolkit.storage.record_log import RecordKey, RecordLog

VERSION = 1
"""Of the files; those of another are made again."""

COLUMNS = ("id", attributes.SOURCE, from_arrow.ROW)
"""Columns beside the keys."""

GROUP = 1 << 15
"""Rows of a row group."""

PIECE = 1 << 12
"""Rows that are objects at a time."""

LEVEL = 3
"""Of zstd."""


class Exported(Derived, frozen=True, kw_only=True):
    """The record of a complete file.

    Attributes:
        made_of: Digest of the attributes, their types, and the version of the format.
        size, stamp, sha256: State of the file.
        rows: Number of its rows.
    """

    size: int
    stamp: str
    sha256: str
    rows: int


class ShardToExport(ConfigStruct):
    """A shard joined with one set, and the folder of files."""

    work: JoinedShard
    folder: str

    @property
    def joined(self) -> JoinedSet:
        return self.work.sets[0]

    @property
    def path(self) -> str:
        """Return the path of the file."""
        file = paths.strip_suffix(self.work.dataset.file_of(self.work.shard), (*SHARD_SUFFIXES, TABLE))
        return paths.join(self.folder, self.joined.set, file + TABLE)

    @property
    def place(self) -> RecordKey:
        """Return the key of the record."""
        return place_of(self.joined.set, self.work.shard)


def place_of(set_name: str, shard: str) -> RecordKey:
    return f"exported {set_name}", shard


def bookkeeping(folder: str) -> str:
    """Return the folder of the records of a folder of files."""
    return paths.join(folder, paths.BOOKKEEPING)


def log_of(folder: str) -> RecordLog:
    """Return the records of a folder of files."""
    return record_logs.at(bookkeeping(folder), paths.join(bookkeeping(folder), "exported"))


def origin_of(dataset: Dataset) -> Origin:
    """Return the origin of the files of a dataset's sets: the place of the sets, and digests of their shards."""
    contents = {}
    for name in dataset.sets():
        for shard in origins.least(records.recorded_shards(dataset, name)):
            if record := records.load_record(dataset, name, shard):
                contents[f"{name}/{shard}"] = record.output.content
    return Origin(datasets={dataset.attributes: normal_path(dataset.attributes)}, shards=contents)


def check_source(folder: str, dataset: Dataset, *, overwrite: bool) -> str:
    """Check the origin of a folder; return a notice if its files are replaced.

    Raises:
        ConfigError: if it has; they would be deleted as gone.
    """
    origin, names = origins.load(folder), store_of(folder).folders(folder)
    sets = [name for name in names if not name.startswith(".")]
    goes = f"{amount(sum(1 for _ in paths.list_files(folder)), 'file')}, sets: {few(sets)}" if origin else ""
    return origins.check(f"--parquet {folder}", origin, origin_of(dataset), goes, overwrite=overwrite)


def types_of(joined: JoinedSet) -> dict[str, Type]:
    """Return the types of the keys of a set, by their names.

    Raises:
        ConfigError: if one is called as another column.
    """
    types = {key.key: key.declared for key in joined.keys}
    for name in COLUMNS:
        if name in types:
            raise ConfigError(
                f"{joined.set}: expected keys with other names than the columns {', '.join(COLUMNS)}, got {name!r}; "
                "leave the set out with `--set`"
            )
    return types


def _made_of(joined: JoinedSet, content: str) -> str:
    return json_digest((VERSION, content, {key.key: to_json(key.declared) for key in joined.keys}))


def state_of(shard: ShardToExport, made_of: str | None = None) -> State:
    """Return the state of a file, by the quick tests; `made_of` if it is known."""
    record = log_of(shard.folder).load(*shard.place, Exported)

    def now() -> Iterator[tuple[str, str | None]]:
        dataset, name = shard.work.dataset, shard.work.shard
        content = ShardAttributes(dataset, shard.joined.set, name, row_index.current(dataset, name)).digest(quick=True)
        yield "", content and _made_of(shard.joined, content)

    return state(
        record,
        [("", made_of)] if made_of else now(),
        files=lambda record: [FileRecord(shard.path, record.size, record.stamp)],
    )


def export_shard(shard: ShardToExport, report: Report) -> bool:
    """Write the file of a shard, unless it is there; return whether it was written.

    Raises:
        DataError: as a mix of the set would; or if a value does not fit its declared type.
    """
    work, joined = shard.work, shard.joined
    documents, digests = inputs_of(work)
    made_of, log = _made_of(joined, digests[joined.set]), log_of(shard.folder)
    if state_of(shard, made_of).is_done:
        report(documents.rows, 0)
        return False
    log.forget([shard.place])
    with Output(shard.path) as output:
        _write(shard, output)
    result = Exported(
        made_of=made_of, size=output.stat.size, stamp=output.stat.stamp, sha256=output.sha256, rows=documents.rows
    )
    log.save({shard.place: msgspec.json.encode(result)})
    report(documents.rows, paths.size_of(work.attributes_of(joined)))
    return True


def _write(shard: ShardToExport, output: Output) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = types_of(shard.joined)
    named = [("id", pa.string(), False), (attributes.SOURCE, pa.string(), True), (from_arrow.ROW, pa.int64(), False)]
    keys = [(name, to_arrow.arrow_type(type_, maps=True), to_arrow.may_be_null(type_)) for name, type_ in types.items()]
    fields = [pa.field(name, type_, nullable=nullable) for name, type_, nullable in [*named, *keys]]
    schema = pa.schema(fields, metadata=from_arrow.entry(shard.joined.set, types))
    with (
        parquet.Sink(output) as sink,
        pq.ParquetWriter(
            sink, schema, compression="zstd", compression_level=LEVEL, write_page_index=True, write_page_checksum=True
        ) as file,
    ):
        pieces = _pieces(shard, schema, types)
        while batches := list(islice(pieces, GROUP // PIECE)):
            file.write_table(pa.Table.from_batches(batches, schema), GROUP)


def _pieces(shard: ShardToExport, schema: Any, types: Mapping[str, Type]) -> Iterator[Any]:
    """Yield the rows as record batches."""
    shapes = {name: to_arrow.shape_of(type_, maps=True) for name, type_ in types.items()}
    number = 1
    for rows in _rows(shard.work, shard.joined):
        plain = [msgspec.to_builtins(row.attributes) for row in rows]
        columns: dict[str, list[Any]] = {
            "id": [row.id for row in rows],
            attributes.SOURCE: [row.source for row in rows],
            from_arrow.ROW: list(range(number, number + len(rows))),
        }
        for name, shape in shapes.items():
            values = [item[name] for item in plain]
            columns[name] = list(map(shape, values)) if shape else values
        numbers, path = (number, number + len(rows) - 1), shard.work.attributes_of(shard.joined)
        yield to_arrow.record_batch(schema, columns.__getitem__, numbers, path=path, line=number)
        number += len(rows)


def _rows(work: JoinedShard, joined: JoinedSet) -> Iterator[list[Any]]:
    """Yield batches of rows of a set, checked against the row index."""
    decoder = row_decoder(joined, {key.name for key in joined.keys})
    index = row_index.read(work.dataset, work.shard, PIECE)
    with ExitStack() as stack:
        for some in indexed_rows(work, joined, decoder.decoder, index, stack):
            for row in some:
                row.attributes = decoder.values(row)
            yield some


def forget_others(folder: str, set_name: str, shards: list[ShardToExport]) -> int:
    """Delete our files of missing shards of a set; return how many."""
    log, existing = log_of(folder), {shard.work.shard for shard in shards}
    kind, _ = place_of(set_name, "")
    deleted = [shard for shard in log.keys(kind) if shard not in existing]
    for shard in deleted:
        stale = ShardToExport(work=msgspec.structs.replace(shards[0].work, shard=shard), folder=folder)
        log.forget([stale.place])
        paths.remove(stale.path)
    return len(deleted)


# --- indexes of raw files ---------------------------------------------------------------------------------------------


_BLOCK = 1 << 20


class Indexed(Artifact, frozen=True, kw_only=True):
    """The record of a complete index: raw file, its state, the state of the index, number of lines."""

    path: str
    raw: Stat
    index: Stat
    lines: int


class RawFileToIndex(ConfigStruct):
    """A raw file.

    Attributes:
        path: Path of the file.
        name: Place of the index below the folder, without the suffix.
        folder: Folder of all indexes.
        max_document_bytes: Bytes of a line, at most.
    """

    path: str
    name: str
    folder: str
    max_document_bytes: int

    @property
    def index(self) -> str:
        """Return the path of the index."""
        return paths.join(self.folder, self.name + line_index.SUFFIX)

    def is_done(self) -> bool:
        """Return True if the index of the unchanged raw file exists."""
        record = log_of(self.folder).load("raw index", self.name, Indexed)
        return state(
            record, files=lambda result: [FileRecord.of(self.path, result.raw), FileRecord.of(self.index, result.index)]
        ).is_done


def index_file(work: RawFileToIndex, report: Report) -> bool:
    """Write the index of a raw file, unless it is there; return whether it was written.

    Raises:
        DataError: if the file is compressed, or a line is no JSON: Modalities reads neither.
    """
    if work.is_done():
        return False
    raw = paths.stat(work.path)
    if raw is None:
        raise DataError(f"expected a raw file, got {paths.missing_reason(work.path)}", path=work.path)
    lines, number, rest = line_index.LineLengths(), 0, b""
    with open_stored(work.path) as stream:
        while block := stream.read(_BLOCK):
            if not number and not rest and (compression := compression_in(block[:16])):
                message = (
                    f"expected plain lines of JSON, which Modalities reads, got {compression}; decompress the file"
                )
                raise DataError(message, path=work.path)
            lines.add(block)
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                number += 1
                _check(line, number, work.path)
            if len(rest) > work.max_document_bytes:
                message = f"expected a line of at most {work.max_document_bytes:,} bytes, got more"
                raise DataError(f"{message}; raise `max_document_bytes`", path=work.path, line=number + 1)
            report(0, len(block))
    if rest:
        number += 1
        _check(rest, number, work.path)
    if not number:
        raise DataError(
            "expected lines of JSON, got an empty file, for which Modalities makes no index", path=work.path
        )
    log = log_of(work.folder)
    log.forget([("raw index", work.name)])
    with Output(work.index) as output:
        for data in line_index.pickled_pairs(lines.pairs()):
            output.write(data)
    record = Indexed(path=work.path, raw=raw, index=Stat(output.stat.size, output.stat.stamp), lines=number)
    log.save({("raw index", work.name): msgspec.json.encode(record)})
    return True


def indexes_in(folder: str) -> list[str]:
    """Return the paths of the indexes in a mirrored folder; none in another one."""
    names = log_of(folder).keys("raw index") if paths.is_folder(paths.join(bookkeeping(folder), "exported")) else ()
    return [paths.join(folder, name + line_index.SUFFIX) for name in sorted(names)]


def raw_file_of(index: str) -> str | None:
    """Return the raw file of an index in a mirrored folder; None for any other index."""
    folder = index
    while folder := folder.rpartition("/")[0]:
        if paths.is_folder(paths.join(bookkeeping(folder), "exported")):
            name = index.removeprefix(folder + "/").removesuffix(line_index.SUFFIX)
            record = log_of(folder).load("raw index", name, Indexed)
            return record.path if record else None
    return None


def _check(line: bytes, number: int, path: str) -> None:
    try:
        msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:
        got = str(error) if line.strip() else "a blank line"
        raise DataError(
            f"expected JSON, which Modalities asks of each line, got {got}", path=path, line=number
        ) from None
