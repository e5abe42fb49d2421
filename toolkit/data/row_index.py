"""The row index of a shard: what dry runs, duplicate checks, jumps and sampling need, without reading text.

``.toolkit/rows/<shard>.bin`` holds 24 bytes a row, little-endian:

    offset  bytes  what
    0       8      xxh3-64 of (source, id): UTF-8, joined by a NUL byte
    8       4      code points of the text
    12      4      UTF-8 bytes of the text
    16      8      offset of the row's first byte in the uncompressed shard

``.toolkit/rows/<shard>.records.gz`` has, of documents that ingest made of WARC records, where each record is stored: a
JSON list of path, offset and length for each row, or null.

A `ShardState` in the record log of the dataset (`toolkit.data.record_logs`) is written last; it says which version of
the shard was indexed. ``.toolkit/rows/<shard>.begins`` has places of an external file from which it can be read: gzip
members, row groups.
"""

import contextlib
import os
import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
import xxhash

from toolkit.data import record_logs
from toolkit.data.dataset import START, Begin, Dataset, IndexRow, ShardLines, normal_path
from toolkit.data.document_fields import FieldCounts, paths_in
from toolkit.data.documents import (
    BAD_ROW,
    DOCUMENT_DECODER,
    NO_ATTRIBUTES,
    Document,
    DocumentRow,
    Rows,
    check_metadata,
    to_document,
)
from toolkit.errors import DataError
from toolkit.lazy_numpy import np
from toolkit.storage import Stat, ephemeral, freshness
from toolkit.storage.compression import compression_of
from toolkit.storage.freshness import Artifact, FileRecord
from toolkit.storage.json_files import json_digest, load
from toolkit.storage.outputs import HEAD, Output, OutputBatch, RowOutput, write_file
from toolkit.storage.paths import exists, join, listed_stat, remove, stat
from toolkit.storage.reading import Lines, open_stored, version_read
from toolkit.storage.record_log import Group
from toolkit.storage.threads import for_each

P = TypeVar("P")
A = TypeVar("A")
R = TypeVar("R")

_ROW = struct.Struct("<QIIQ")
_HELD = 1 << 15  # rows gathered before they are written


VERSION = 4
"""Of row indexes; one of another version is made anew."""


class ShardState(Artifact, frozen=True, kw_only=True):
    """The indexed version of a shard.

    Attributes:
        size, stamp: of the stored file (see `toolkit.storage.paths.Stat`), the quick test.
        content: xxh3-128 (hex) of the uncompressed bytes.
        rows: documents.
        chars: code points of all texts.
        bytes: UTF-8 bytes of all texts.
        head: xxh3-64 (hex) of the first bytes as stored.
        inline: True if a document may have attributes of its own, as Dolma's may.
        inline_keys: their names, sorted; None if there are too many to be listed.
        reader: Reader of documents in place, the digest of the settings by which the file was read; else empty.
        counts: Counts of documents in place, by reason: what of the file became documents, and what did not.
        source: Source of all documents in place; empty if they have several.
        fields: documents that have a value in each field, by its path (see `toolkit.data.document_fields.FieldCounts`).
        web_fields: the same of documents with WARC headers, which `fields` leaves out.
        root: Root of documents that do not lie beside our records, the folder that they are below.
    """

    version: int = VERSION
    size: int
    stamp: str
    content: str
    rows: int
    chars: int
    bytes: int
    head: str
    inline: bool = False
    inline_keys: list[str] | None = []
    reader: str = ""
    counts: dict[str, int] = {}
    source: str = ""
    fields: dict[str, int] = {}
    web_fields: dict[str, int] = {}
    root: str = ""

    @property
    def made_with(self) -> str:
        return self.reader

    @property
    def all_fields(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return documents by fields: those without WARC headers, those with them."""
        return self.fields, self.web_fields


class DamagedIndex(DataError):
    """Raised for a row index changed since it was written."""


def path_of(dataset: Dataset, shard: str) -> str:
    """Return the path of a shard's row index."""
    return _base(dataset, shard) + ".bin"


def _base(dataset: Dataset, shard: str) -> str:
    """Return the path of a shard's row index without its suffix."""
    return ephemeral.existing_path(dataset.bookkeeping, shard) or _dataset_base(dataset, shard)


def _dataset_base(dataset: Dataset, shard: str) -> str:
    """Return the same beside the records of the dataset."""
    return join(dataset.bookkeeping, "rows", shard)


def _head(path: str) -> str:
    with open_stored(path) as stream:
        return xxhash.xxh3_64_hexdigest(stream.read(HEAD))


def reader_of(dataset: Dataset) -> str:
    """Return the digest of the reader's settings; empty for our documents."""
    lineage = dataset.lineage
    return json_digest(lineage) if lineage else ""


def root_of(dataset: Dataset) -> str:
    """Return the documents root as records name it: nothing if it is beside them, so that both can be moved."""
    beside = os.path.dirname(dataset.documents) == os.path.dirname(dataset.bookkeeping)
    return "" if beside else normal_path(dataset.documents)


def row_hash(source: str, id: str) -> int:
    """Return the xxh3-64 of (source, id)."""
    return xxhash.xxh3_64_intdigest(f"{source}\0{id}".encode())


class _CopyNumber(msgspec.Struct):
    copy: Any = None


_METADATA = msgspec.json.Decoder(_CopyNumber)


def key_of(source: str, id: str, metadata: msgspec.Raw) -> bytes:
    """Return the xxh3-128 of source, id and copy: a mix that repeats documents numbers the copies."""
    copy = None
    if b'"copy"' in bytes(metadata):
        with contextlib.suppress(*BAD_ROW):
            copy = _METADATA.decode(metadata).copy
    number = copy if isinstance(copy, int) else None
    return xxhash.xxh3_128_digest(msgspec.json.encode((source, id, number)))


def identity_record(row: int, source: str, id: str, metadata: msgspec.Raw) -> bytes:
    """Return a record of `toolkit.records.identity.NOTED`: the key of a document, and its row, from 1."""
    return key_of(source, id, metadata) + row.to_bytes(4, "little")


BEGINS = ".begins"

INLINE_KEYS = 10_000
"""Names of attributes in documents that are listed of a shard."""

_INLINE = msgspec.json.Decoder(dict[str, msgspec.Raw])

NUL_IN_SOURCE = "expected a source without NUL bytes, got {!r}; name it otherwise"

Entry = tuple[int, int, int, tuple[str, ...] | None, tuple[str, ...]]
"""Of a row: its hash, the code points and UTF-8 bytes of its text, the keys of its own attributes, None without any;
and the paths of its fields."""


def entry_of(row: DocumentRow, line: bytes) -> Entry:
    """Return the index entry of a row, without its place; errors as of `entry`."""
    chars = len(row.text)
    size = chars if row.text.isascii() else len(row.text.encode())
    keys = None if row.attributes is NO_ATTRIBUTES else _inline_keys(row)
    return entry(row.source, row.id, chars, size, keys, line)


def entry(
    source: str,
    id: str,
    chars: int,
    size: int,
    keys: tuple[str, ...] | None,
    fields: bytes | Mapping[str, Any] | tuple[str, ...],
) -> Entry:
    """Return the index entry of a document, without its place.

    Args:
        source: Source of the document.
        id: Its id.
        chars: Code points of its text.
        size: Bytes of its text in UTF-8.
        keys: Keys of its own attributes, None without any.
        fields: Its JSON, its top-level fields, or the paths of its fields.

    Raises:
        DataError: If the source has a NUL byte.
    """
    if "\0" in source:  # two documents would have one hash: see `row_hash`
        raise DataError(NUL_IN_SOURCE.format(source), id=id)
    return row_hash(source, id), chars, size, keys, paths_in(fields)


def _inline_keys(row: DocumentRow) -> tuple[str, ...]:
    try:
        return tuple(_INLINE.decode(row.attributes))
    except (msgspec.DecodeError, UnicodeDecodeError):  # null, or no object: there are no keys to ask for
        return ()


class RowIndexOutput(Output):
    """Writes the row index of a shard while its rows pass by; a context manager that leaves nothing on failure.

    A compressed shard that turns out to be the beginning of what was indexed before, from its first stored byte, has
    been cut short (between two members, where no decompressor notices): that is an error, unless the shard is just
    being `replaced`. Any other change is a change.

    Args:
        dataset: Dataset of the shard.
        shard: Shard that is indexed.
        replaced: True if the documents are just being written.
        group: Group that the index belongs to, and appears with; without one it appears with the block, and `finish`.
    """

    def __init__(self, dataset: Dataset, shard: str, *, replaced: bool = False, group: Group | None = None) -> None:
        self._dataset, self._shard, self._group = dataset, shard, group
        self._is_ephemeral = group is None and ephemeral.is_needed(dataset.bookkeeping)
        base = ephemeral.path_of(dataset.bookkeeping, shard) if self._is_ephemeral else _dataset_base(dataset, shard)
        super().__init__(base + ".bin", group.files if group else None, digest=False)
        self._base = base
        self._documents = dataset.shard_path(shard)
        self._reader = reader_of(dataset)
        self._replaced = replaced
        self._digest = xxhash.xxh3_128()
        self._rows: list[bytes] = []
        self.rows = self.chars = self.bytes = 0
        self.inline = False
        self.inline_keys: set[str] = set()
        self._fields = FieldCounts()

    def add(self, entry: "Entry", offset: int) -> None:
        """Add a row, in order; `offset` is that of its first byte in the uncompressed shard."""
        hash_, chars, size, keys, fields = entry
        self.rows += 1
        self._fields.add(fields)
        if keys is not None:
            self.inline = True
            if len(self.inline_keys) <= INLINE_KEYS:
                self.inline_keys.update(keys)
        self.chars += chars
        self.bytes += size
        self._rows.append(_ROW.pack(hash_, chars, size, offset))
        if len(self._rows) >= _HELD:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._rows)
        self.write(data)
        self._digest.update(data)
        self._rows = []

    def _check_not_cut_short(self) -> None:
        old = None if self._replaced else recorded(self._dataset, self._shard)
        if old is None or old.reader != self._reader or self.rows >= old.rows:
            return
        before = _dataset_base(self._dataset, self._shard) + ".bin"
        binary = stat(before)
        if not binary or binary.size != old.rows * _ROW.size:
            return
        if not compression_of(self._documents) or _head(self._documents) != old.head:
            return
        beginning = xxhash.xxh3_128()
        left = self.rows * _ROW.size
        with open_stored(before) as stream:
            while block := stream.read(min(left, _HELD * _ROW.size)):
                beginning.update(block)
                left -= len(block)
        if beginning.digest() == self._digest.digest():
            raise DataError(
                f"expected {old.rows} documents as before, got only the first {self.rows}: the file was cut short; "
                f"restore it, or delete {before} if the shorter file is right",
                path=self._documents,
                line=self.rows + 1,
            )

    def _finish(self) -> None:
        self._flush()
        self._check_not_cut_short()

    def finish(
        self, stat: Stat, content: str, lines: ShardLines | None = None, head: bytes | None = None
    ) -> ShardState:
        """Declare the index complete, after the ``with`` block; return the state of the shard.

        Args:
            stat: the version of the file.
            content: digest of its rows.
            lines: Lines of the shard, if it was read.
            head: the first `HEAD` bytes of the file, if it is not there yet.
        """
        if lines and lines.begins:
            write_file(self._base + BEGINS, msgspec.json.encode(lines.begins))
        elif self._reader:
            remove(self._base + BEGINS)
        fields, web_fields = self._fields.counted()
        state = ShardState(
            size=stat.size,
            stamp=stat.stamp,
            content=content,
            rows=self.rows,
            chars=self.chars,
            bytes=self.bytes,
            head=_head(self._documents) if head is None else xxhash.xxh3_64_hexdigest(head),
            inline=self.inline,
            inline_keys=sorted(self.inline_keys) if len(self.inline_keys) <= INLINE_KEYS else None,
            reader=self._reader,
            counts=dict(sorted(lines.counts.items())) if lines else {},
            source=lines.source if lines else "",
            fields=fields,
            web_fields=web_fields,
            root=root_of(self._dataset),
        )
        place, record = (record_logs.ROWS, self._shard), msgspec.json.encode(state)
        if self._is_ephemeral:
            write_file(self._base + ephemeral.RECORD, record)
        elif self._group:
            self._group.save(place, record, record_logs.of(self._dataset))
        elif recorded(self._dataset, self._shard) != state:
            record_logs.of(self._dataset).save({place: record})
        return state


def current(dataset: Dataset, shard: str) -> ShardState | None:
    """Return the state of an unchanged shard, by the quick test; else None."""
    apart = ephemeral.existing_path(dataset.bookkeeping, shard)
    record, base = _recorded(dataset, shard, apart), apart or _dataset_base(dataset, shard)

    def files(indexed: ShardState) -> list[FileRecord]:
        documents = FileRecord(dataset.shard_path(shard), indexed.size, indexed.stamp)
        return [documents, FileRecord(base + ".bin", indexed.rows * _ROW.size)]

    return record if freshness.state(record, settings=reader_of(dataset), files=files).is_done else None


class BriefState(Artifact, frozen=True, kw_only=True, gc=False):
    """The required fields of a `ShardState`."""

    version: int
    size: int
    stamp: str
    content: str
    rows: int
    chars: int
    bytes: int
    head: str
    reader: str = ""


def indexed_rows(dataset: Dataset) -> Callable[[str, BriefState], int | None] | None:
    """Return a function from shards and records to rows; None without a listing.

    It returns None for a shard without an index of this form and reader.
    """
    listed, reader = listed_stat(join(dataset.bookkeeping, "rows")), reader_of(dataset)

    def rows(shard: str, record: BriefState) -> int | None:
        index = listed(shard + ".bin") if listed and (record.version, record.reader) == (VERSION, reader) else None
        return record.rows if index and index.size == record.rows * _ROW.size else None

    return rows if listed else None


def check_content(dataset: Dataset, shard: str, state: ShardState, content: str | None) -> None:
    """Check the digest of a shard against its index.

    Raises:
        DataError: if other documents were indexed.
    """
    if content != state.content:
        path = path_of(dataset, shard)
        forget(dataset, [shard])  # else the next run would believe it, too
        raise DataError(
            f"expected the documents that {path} describes, got other content with the same size and time: the "
            "documents or this index are damaged. Check the documents, then run again, which makes a new index",
            path=dataset.shard_path(shard),
        )


def counts(dataset: Dataset, shards: Iterable[str]) -> dict[str, int]:
    """Return the counts of documents in place, by reason. Shards not read yet count nothing."""
    result = Counter[str]()
    for state in for_each(lambda shard: current(dataset, shard), list(shards) if dataset.in_place else []):
        result.update(state.counts if state else {})
    return dict(sorted(result.items()))


def rows_of(dataset: Dataset, shard: str, source: str, id: str) -> list[int]:
    """Return the rows, from 0, with a document's hash. The shard has been indexed."""
    hash_, number, results = row_hash(source, id), 0, list[int]()
    for block in read(dataset, shard):
        results += [number + int(row) for row in (block["hash"] == hash_).nonzero()[0]]
        number += len(block)
    return results


def begin_of(dataset: Dataset, shard: str, row: int) -> Begin:
    """Return the last place to read a row from; by default the start."""
    begins = load(_base(dataset, shard) + BEGINS, list[Begin]) if dataset.in_place else None
    return max((begin for begin in begins or () if begin.row <= row), default=START)


def forget(dataset: Dataset, shards: Collection[str]) -> None:
    """Delete the row indexes of shards."""
    record_logs.of(dataset).forget((record_logs.ROWS, shard) for shard in shards)
    paths = [path(dataset, shard) for shard in shards for path in (path_of, _records_path)]
    paths += [_base(dataset, shard) + BEGINS for shard in shards if dataset.in_place]
    for_each(remove, paths)


def recorded(dataset: Dataset, shard: str) -> ShardState | None:
    """Return the state of a shard as it was indexed."""
    return _recorded(dataset, shard, ephemeral.existing_path(dataset.bookkeeping, shard))


def _recorded(dataset: Dataset, shard: str, apart: str | None) -> ShardState | None:
    """Return the same, from an ephemeral record if there is one."""
    if apart:
        return load(apart + ephemeral.RECORD, ShardState)
    state = record_logs.of(dataset).load(record_logs.ROWS, shard, ShardState)
    return state if state and state.version == VERSION else None


def ensure(dataset: Dataset, shard: str, max_bytes: int, group: Group | None = None) -> ShardState:
    """Return the state of a shard; read and index it first if that has not been done, or it has changed.

    Raises:
        DataError: if a row is not a document.
    """
    return current(dataset, shard) or build(dataset, shard, max_bytes, group)


def build(dataset: Dataset, shard: str, max_bytes: int, group: Group | None = None) -> ShardState:
    """Read a shard and write its row index; return its state."""
    with indexing(dataset, shard, max_bytes, group) as index:
        for block in index.lines.blocks():
            index.documents(block)
    return index.state


class _StrictRow(DocumentRow, forbid_unknown_fields=True):
    """A row without other fields."""


_PLAIN_DECODER = msgspec.json.Decoder(_StrictRow)


class Indexing:
    """The rows of a shard, indexed while they are read: see `indexing`.

    Attributes:
        lines: Lines of the shard; all are read, and given to `documents`.
        state: State of the shard, behind the ``with`` block.
    """

    state: ShardState

    def __init__(self, path: str, output: RowIndexOutput, lines: ShardLines) -> None:
        self.lines = lines
        self._path, self._output, self._offset = path, output, 0
        self._decode: Callable[[bytes], DocumentRow] = _PLAIN_DECODER.decode

    def documents(self, block: Iterable[bytes]) -> list[Document]:
        """Index the next lines; return their documents.

        Raises:
            DataError: if a row is not a document.
        """
        documents, output = [], self._output
        for line in block:
            document, keys, fields = (
                (line.document, None, line.paths or line) if isinstance(line, IndexRow) else self._decoded(line)
            )
            size = len(document.utf8)
            try:
                output.add(entry(document.source, document.id, document.chars, size, keys, fields), self._offset)
            except DataError as error:
                raise DataError(error.message, path=self._path, line=output.rows + 1, id=error.id) from None
            documents.append(document)
            self._offset += len(line) + 1
        return documents

    def _decoded(self, line: bytes) -> tuple[Document, tuple[str, ...] | None, bytes | dict[str, Any]]:
        """Return the document of a line, its own keys, and its fields."""
        try:
            row = self._decode(line)
            check_metadata(row.metadata)
        except BAD_ROW:
            rows = Rows(iter((line,)), DOCUMENT_DECODER, self._path, self._output.rows)
            row, _ = next(rows)
            to_document(row, rows)  # which names a fault
            self._decode = DOCUMENT_DECODER.decode  # it has fields of its own, and so may others
        document = Document(row.text, id=row.id, source=row.source, metadata=row.metadata, row=line)
        document.utf8 = row.text.encode()  # stays for who compares texts
        keys = None if row.attributes is NO_ATTRIBUTES else _inline_keys(row)
        return document, keys, msgspec.structs.asdict(row) if isinstance(row, _StrictRow) else line


@contextlib.contextmanager
def indexing(dataset: Dataset, shard: str, max_bytes: int, group: Group | None = None) -> Iterator[Indexing]:
    """Index a shard while the block reads its rows; so who needs the rows, too, reads them once."""
    path, group = dataset.shard_path(shard), None if ephemeral.is_needed(dataset.bookkeeping) else group
    before = stat(path)
    with RowIndexOutput(dataset, shard, group=group) as output, dataset.lines(shard, max_bytes, digest=True) as lines:
        yield (index := Indexing(path, output, lines))
    content = lines.content or ""
    index.state = output.finish(version_read(path, before, content), content, lines)


RecordLocation = tuple[str, int, int]
"""Path of a WARC file, and the offset and the length of a record as it is stored there."""


def _records_path(dataset: Dataset, shard: str) -> str:
    return _dataset_base(dataset, shard) + ".records.gz"


def write_places(
    dataset: Dataset, shard: str, places: Iterable[RecordLocation | None], together: OutputBatch | None
) -> None:
    """Write the places of the WARC records of a shard's rows."""
    with RowOutput(_records_path(dataset, shard), together=together) as output:
        output.write_rows([msgspec.json.encode(place) for place in places])


def places(dataset: Dataset, shard: str) -> Iterator[RecordLocation | None]:
    """Yield the place of each row's WARC record; None if unknown.

    Raises:
        DataError: if the shard was not made of WARC records by `ingest`.
    """
    with Lines(_records_path(dataset, shard), 1 << 20, fixed=True) as lines:
        yield from (msgspec.json.decode(line, type=RecordLocation | None) for line in lines)


def clear_places(dataset: Dataset, shard: str, rows: Collection[int], together: OutputBatch | None) -> None:
    """Delete the places of the records of some rows, from 1."""
    if exists(_records_path(dataset, shard)):
        listed = [None if row in rows else place for row, place in enumerate(places(dataset, shard), 1)]
        write_places(dataset, shard, listed, together)


def hashes(dataset: Dataset, shard: str) -> "np.ndarray":
    """Return the hashes of source and id of all documents; errors as of `read`."""
    return np.concatenate([np.zeros(0, "<u8"), *(block["hash"] for block in read(dataset, shard))])


def read(dataset: Dataset, shard: str, rows: int = 1 << 20) -> "Iterator[np.ndarray]":
    """Yield the row index in blocks: structured arrays with fields ``hash chars bytes offset``.

    Raises:
        DamagedIndex: behind the last block, if these are not the code points and bytes that were indexed; the index
            is deleted, so that the next run makes it anew, unless this one only looks.
    """
    kind = np.dtype([("hash", "<u8"), ("chars", "<u4"), ("bytes", "<u4"), ("offset", "<u8")])
    path = path_of(dataset, shard)
    chars = size = 0
    with open_stored(path) as stream:
        while block := stream.read(rows * kind.itemsize):
            result = np.frombuffer(block, dtype=kind)
            chars += int(result["chars"].sum(dtype=np.uint64))
            size += int(result["bytes"].sum(dtype=np.uint64))
            yield result
    state = recorded(dataset, shard)
    if state and (chars, size) != (state.chars, state.bytes):
        remedy = "delete it, and run again"
        if not ephemeral.is_needed(dataset.bookkeeping):
            forget(dataset, [shard])
            remedy = "it was deleted, run again"
        raise DamagedIndex(
            f"expected a row index of {state.chars:,} code points and {state.bytes:,} bytes, got {chars:,} and "
            f"{size:,}: it is damaged; {remedy}",
            path=path,
        )
