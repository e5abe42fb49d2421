"""The row index of a shard: what dry runs, duplicate checks, jumps and sampling need, without reading text.

``.toolkit/rows/<shard>.bin`` holds 24 bytes a row, little-endian:

    offset  bytes  what
    0       8      xxh3-64 of (source, id): UTF-8, joined by a NUL byte
    8       4      code points of the text
    12      4      UTF-8 bytes of the text
    16      8      offset of the row's first byte in the uncompressed shard

``.toolkit/rows/<shard>.json`` (a `ShardState`) is written last; it says which version of the shard was indexed.
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import msgspec
import xxhash

from toolkit.data.dataset import Dataset
from toolkit.data.documents import DOCUMENT_DECODER, NO_ATTRIBUTES, DocumentRow, Rows, to_document
from toolkit.errors import DataError
from toolkit.storage import Stat
from toolkit.storage.compression import compression_of
from toolkit.storage.json_files import load
from toolkit.storage.outputs import Output, write_file
from toolkit.storage.paths import join, remove, stat
from toolkit.storage.reading import Lines, open_stored

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np

_ROW = struct.Struct("<QIIQ")
_HELD = 1 << 15  # rows gathered before they are written


VERSION = 3
"""Of row indexes; one of another version is made anew."""


class ShardState(msgspec.Struct, frozen=True, kw_only=True):
    """Which version of a shard was read.

    Attributes:
        size, stamp: of the stored file (see `toolkit.storage.paths.Stat`), the quick test.
        content: xxh3-128 (hex) of the uncompressed bytes.
        rows: documents.
        chars: code points of all texts.
        bytes: UTF-8 bytes of all texts.
        head: xxh3-64 (hex) of the first bytes as stored.
        inline: whether a document may have attributes of its own, as Dolma's may.
        inline_keys: their names, sorted; None if there are too many to be listed.
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


class DamagedIndex(DataError):
    """A row index is not what it was when it was written."""


def path_of(dataset: Dataset, shard: str) -> str:
    """Return the path of a shard's row index, without ``.bin`` or ``.json``."""
    return join(dataset.bookkeeping, "rows", shard)


def _head(path: str) -> str:
    with open_stored(path) as stream:
        return xxhash.xxh3_64_hexdigest(stream.read(4096))


def row_hash(source: str, id: str) -> int:
    """Return the xxh3-64 of (source, id)."""
    return xxhash.xxh3_64_intdigest(f"{source}\0{id}".encode())


INLINE_KEYS = 10_000
"""Names of attributes in documents that are listed of a shard."""

_INLINE = msgspec.json.Decoder(dict[str, msgspec.Raw])

Entry = tuple[int, int, int, tuple[str, ...] | None]
"""Of a row: its hash, the code points and UTF-8 bytes of its text, the keys of its own attributes, None without any."""


def entry_of(row: DocumentRow, size: int | None = None) -> Entry:
    """Return what the index says of a row, but for its place; `size` is that of its text in UTF-8, if it is known."""
    chars = len(row.text)
    if size is None:
        size = chars if row.text.isascii() else len(row.text.encode())
    return row_hash(row.source, row.id), chars, size, None if row.attributes is NO_ATTRIBUTES else _inline_keys(row)


def _inline_keys(row: DocumentRow) -> tuple[str, ...]:
    try:
        return tuple(_INLINE.decode(row.attributes))
    except (msgspec.DecodeError, UnicodeDecodeError):  # null, or no object: there are no keys to ask for
        return ()


class RowIndexOutput:
    """Writes the row index of a shard while its rows pass by; a context manager that leaves nothing on failure.

    A compressed shard that turns out to be the beginning of what was indexed before, from its first stored byte, has
    been cut short (between two members, where no decompressor notices): that is an error, unless the shard is just
    being `replaced`. Any other change is a change.
    """

    def __init__(self, dataset: Dataset, shard: str, *, replaced: bool = False) -> None:
        self._path = path_of(dataset, shard)
        self._documents = dataset.shard_path(shard)
        self._replaced = replaced
        self._digest = xxhash.xxh3_128()
        self._rows: list[bytes] = []
        self.rows = self.chars = self.bytes = 0
        self.inline = False
        self.inline_keys: set[str] = set()

    def __enter__(self) -> Self:
        self._output = Output(self._path + ".bin")
        self._output.__enter__()
        return self

    def add(self, entry: "Entry", offset: int) -> None:
        """Add a row, in order; `offset` is that of its first byte in the uncompressed shard."""
        hash_, chars, size, keys = entry
        self.rows += 1
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
        self._output.write(data)
        self._digest.update(data)
        self._rows = []

    def _check_not_cut_short(self) -> None:
        old = _load(self._path + ".json")
        binary = stat(self._path + ".bin")
        if self._replaced or old is None or self.rows >= old.rows or not binary or binary.size != old.rows * _ROW.size:
            return
        if not compression_of(self._documents) or _head(self._documents) != old.head:
            return
        beginning = xxhash.xxh3_128()
        left = self.rows * _ROW.size
        with open_stored(self._path + ".bin") as stream:
            while block := stream.read(min(left, _HELD * _ROW.size)):
                beginning.update(block)
                left -= len(block)
        if beginning.digest() == self._digest.digest():
            raise DataError(
                f"expected {old.rows} documents as before, got only the first {self.rows}: the file was cut short; "
                f"restore it, or delete {self._path}.json if that is how it should be",
                path=self._documents,
                line=self.rows + 1,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: "TracebackType | None"
    ) -> None:
        try:
            if kind is None:
                self._flush()
                self._check_not_cut_short()
        except BaseException as failure:
            self._output.__exit__(type(failure), failure, tb)
            raise
        self._output.__exit__(kind, error, tb)

    def finish(self, found: Stat, content: str) -> ShardState:
        """Declare the index complete, after the ``with`` block; return the state of the shard."""
        state = ShardState(
            size=found.size,
            stamp=found.stamp,
            content=content,
            rows=self.rows,
            chars=self.chars,
            bytes=self.bytes,
            head=_head(self._documents),
            inline=self.inline,
            inline_keys=sorted(self.inline_keys) if len(self.inline_keys) <= INLINE_KEYS else None,
        )
        write_file(self._path + ".json", msgspec.json.encode(state))
        return state


def current(dataset: Dataset, shard: str) -> ShardState | None:
    """Return the state of a shard as indexed, if it has not changed since by the quick test; else None."""
    path = path_of(dataset, shard)
    state = _load(path + ".json")
    if state is None:
        return None
    found = stat(dataset.shard_path(shard))
    binary = stat(path + ".bin")
    if found != Stat(state.size, state.stamp) or not binary or binary.size != state.rows * _ROW.size:
        return None
    return state


def forget(dataset: Dataset, shard: str) -> None:
    """Delete the row index of a shard."""
    path = path_of(dataset, shard)
    remove(path + ".json")
    remove(path + ".bin")


def _load(path: str) -> ShardState | None:
    state = load(path, ShardState)
    return state if state and state.version == VERSION else None


def ensure(dataset: Dataset, shard: str, max_bytes: int) -> ShardState:
    """Return the state of a shard; read and index it first if that has not been done, or it has changed.

    Raises:
        DataError: if a row is not a document.
    """
    return current(dataset, shard) or build(dataset, shard, max_bytes)


def build(dataset: Dataset, shard: str, max_bytes: int) -> ShardState:
    """Read a shard and write its row index; return its state."""
    path = dataset.shard_path(shard)
    before = stat(path)
    with RowIndexOutput(dataset, shard) as index, Lines(path, max_bytes, digest=True) as lines:
        rows = Rows(lines, DOCUMENT_DECODER, path)
        offset = 0
        for row, line in rows:
            to_document(row, rows)
            index.add(entry_of(row), offset)
            offset += len(line) + 1
    if before is None or stat(path) != before:
        raise DataError("expected the file to stay as it is while it is read, it changed; run again", path=path)
    return index.finish(before, lines.content or "")


def read(dataset: Dataset, shard: str, rows: int = 1 << 20) -> "Iterator[np.ndarray]":
    """Yield the row index in blocks: structured arrays with fields ``hash chars bytes offset``.

    Raises:
        DamagedIndex: behind the last block, if these are not the code points and bytes that were indexed; the index
            is deleted, so that the next run makes it anew.
    """
    import numpy as np

    kind = np.dtype([("hash", "<u8"), ("chars", "<u4"), ("bytes", "<u4"), ("offset", "<u8")])
    path = path_of(dataset, shard)
    chars = size = 0
    with open_stored(path + ".bin") as stream:
        while block := stream.read(rows * kind.itemsize):
            found = np.frombuffer(block, dtype=kind)
            chars += int(found["chars"].sum(dtype=np.uint64))
            size += int(found["bytes"].sum(dtype=np.uint64))
            yield found
    state = _load(path + ".json")
    if state and (chars, size) != (state.chars, state.bytes):
        forget(dataset, shard)
        raise DamagedIndex(
            f"expected a row index of {state.chars:,} code points and {state.bytes:,} bytes, got {chars:,} and "
            f"{size:,}: it is damaged; it was deleted, run again",
            path=path + ".bin",
        )
