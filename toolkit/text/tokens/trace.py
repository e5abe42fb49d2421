r"""Traces: from ranges of tokens in a file to the documents they are of, and to the text that they stand for.

Beside a file of tokens, ``FILE.trace`` lists its pieces in order: the tokens of a piece follow one another in the file
and in one document. ``FILE.ids`` has sources and ids in the same order; it may be absent. Both are written as a stream
and read at random::

    FILE.trace = block* footer u32(bytes of the footer) "TRACE\2"
    block, footer = zlib(JSON head, line feed, columns)

A column of integers is its least value, bytes of an item, and the bytes of all items, those of one rank together, so
that zlib finds few values beside each other. Places in the text follow from the tokens: each stands for as many code
points as its own text has (`Tokenizer.widths`, which the footer has: a trace depends on no path, and outlives the
tokenizer). A block lists only where that is not so (`Origin.odds`).
"""

import functools
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import IO, Any, NamedTuple

import msgspec

from toolkit.errors import DataError
from toolkit.lazy_numpy import np
from toolkit.storage import store_of
from toolkit.storage.paths import exists, size_of
from toolkit.text.kernels.signatures import Array
from toolkit.text.tokens.tokenizer import Tokenizer

TRACE, IDS = ".trace", ".ids"
"""Suffixes of the two files, after the whole name of the file of tokens."""

PIECES = 1024
"""Pieces of a block: a look at one token inflates some kB."""

_MAGIC = b"TRACE\2"
_END = struct.Struct("<I6s")
_COLUMN = struct.Struct("<qBI")
_MOST = 1 << 28
_AGAIN = "delete it, and run `toolkit tokenize` (or `mix`) again"

Edit = tuple[int, int, int]
"""A stretch of the original text, start and end, and how many code points stand there in the text after edits."""


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """Document of some tokens.

    Attributes:
        shard: Relative path of the shard, after ``STREAM/`` where streams have names.
        row: Row in the shard, from 1.
        copy: Number of this copy of the document, from 1.
        chars: Code points of the text that was encoded.
        edits: Stretches of the text that rules have replaced, in order.
        odds: Tokens before which the text moves by other than their own code points, and by how many more.
        start: Code points of the text before those that were encoded.
    """

    id: str
    source: str
    shard: str
    row: int
    copy: int
    chars: int
    edits: list[Edit] = []
    odds: list[tuple[int, int]] = []
    start: int = 0


class Piece(NamedTuple):
    """Successive tokens of one document in a file.

    Attributes:
        first, end: Tokens in the file, from 0, end exclusive.
        start: Code points of the text (after edits) before them.
        origin: Document; its `chars` are those from `start` to the end of the piece.
    """

    first: int
    end: int
    start: int
    origin: Origin


class TraceWriter:
    """Writes a trace, piece by piece.

    Args:
        out: Takes the trace.
        ids: Takes the ids; None for none.
        head: Facts that readers need: ``width`` (bytes of a token), ``offset`` (bytes before the first one),
            ``sequence`` (tokens of a sequence; null for documents).
        tokenizer: Tokenizer of the tokens.
    """

    def __init__(self, out: IO[bytes], ids: IO[bytes] | None, head: dict[str, Any], tokenizer: Tokenizer) -> None:
        self._out, self._ids, self._head, self._tokenizer = out, ids, head, tokenizer
        self._dtype = f"<u{head['width']}"
        self._shards: dict[str, int] = {}
        self._pieces: list[Piece] = []
        self._blocks: list[tuple[int, int, int]] = []
        self._sizes = [0, 0]
        self._end = 0

    def start(self, origin: Origin, tokens: bytes) -> int:
        """Return the code points before the rest of a document.

        Given are the first tokens of it.
        """
        numbers = np.frombuffer(tokens, self._dtype)
        moved = sum(by for at, by in origin.odds if at <= len(numbers))
        return origin.start + int(self._tokenizer.widths[0][numbers].sum()) + moved

    def add(self, first: int, count: int, origin: Origin, start: int, before: int = 0) -> None:
        """Add a piece.

        Args:
            first: Its first token in the file.
            count: Tokens.
            origin: Document of the tokens; its `chars` are those up to the end of the piece.
            start: Code points of the text before it: `Origin.start`, or the result of `start`.
            before: Tokens of the document before the piece.
        """
        odds = [(at - before, by) for at, by in origin.odds if before < at < before + count or (at == before == 0)]
        origin = msgspec.structs.replace(origin, chars=origin.chars - start, odds=odds)
        self._pieces.append(Piece(first, first + count, start, origin))
        if len(self._pieces) == PIECES:
            self._flush()

    def close(self, tokens: int) -> None:
        """Write the last block and the footer.

        Args:
            tokens: Tokens of the file, with those of no document.
        """
        self._flush()
        head = self._head | {"tokens": tokens, "shards": list(self._shards), "ids": self._ids is not None}
        blocks = [[block[i] for block in self._blocks] for i in range(3)]
        footer = _packed(head, [*blocks, *(column.tolist() for column in self._tokenizer.widths)])
        self._out.write(footer + _END.pack(len(footer), _MAGIC))

    def _flush(self) -> None:
        if not self._pieces:
            return
        pieces, origins = self._pieces, [piece.origin for piece in self._pieces]
        ends = [self._end, *(piece.end for piece in pieces)]
        counts = [piece.end - piece.first for piece in pieces]
        per_token = round(1000 * sum(origin.chars for origin in origins) / sum(counts))
        edits = [_deltas(origin.edits) for origin in origins]
        columns: list[Sequence[int]] = [
            [piece.first - end for piece, end in zip(pieces, ends, strict=False)],
            counts,
            [self._shards.setdefault(origin.shard, len(self._shards)) for origin in origins],
            [b - a for a, b in pairwise([0, *(origin.row for origin in origins)])],
            [origin.copy for origin in origins],
            [piece.start for piece in pieces],
            [origin.chars - per_token * count // 1000 for origin, count in zip(origins, counts, strict=True)],
            [len(origin.edits) for origin in origins],
            *([edit[i] for listed in edits for edit in listed] for i in range(3)),
            [len(origin.odds) for origin in origins],
            *([odd[i] for origin in origins for odd in origin.odds] for i in range(2)),
        ]
        self._blocks.append((pieces[0].first, self._sizes[0], self._sizes[1]))
        self._sizes[0] += self._out.write(_packed({"per_token": per_token, "end": self._end}, columns))
        if self._ids is not None:
            names = msgspec.json.encode([(origin.source, origin.id) for origin in origins])
            self._sizes[1] += self._ids.write(zlib.compress(names, 9))
        self._end = ends[-1]
        self._pieces = []


class TraceFile:
    """Reads the trace of a file of tokens.

    Args:
        path: File of tokens.

    Attributes:
        tokens: Tokens of the file.
        has_ids: True if sources and ids are beside it; without them `Origin` has empty ones.

    Raises:
        DataError: If there is none, or it is damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        trace = path + TRACE
        size = size_of(trace)
        if not size:
            message = f"expected {trace}, the trace of {path}, got no such file; run `toolkit tokenize`"
            raise DataError(message, path=path)
        length, magic = _END.unpack(self._read(max(size - _END.size, 0), min(size, _END.size)).rjust(_END.size))
        if magic != _MAGIC or length > size - _END.size:
            raise DataError(
                f"expected the trace of a file of tokens, got another file, or an old form; {_AGAIN}", path=trace
            )
        head, columns = self._unpacked(self._read(size - _END.size - length, length))
        self.tokens: int = head["tokens"]
        self._head = head
        self._firsts, *offsets, widths, inner = columns
        self._widths = widths.astype(np.int32), inner.astype(bool)
        self._offsets = [*offsets[0].tolist(), size - _END.size - length]
        ids = path + IDS
        self.has_ids = bool(head["ids"]) and exists(ids)
        self._id_offsets = [*offsets[1].tolist(), size_of(ids) or 0] if self.has_ids else []

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._firsts)

    def pieces(self, first: int = 0, end: int | None = None) -> Iterator[Piece]:
        """Yield the pieces with tokens of a range, whole, in order.

        Tokens between them are of no document.
        """
        end = self.tokens if end is None else min(end, self.tokens)
        number = max(int(np.searchsorted(self._firsts, first, "right")) - 1, 0)
        while number < len(self) and self._firsts[number] < end:
            block = self.block(number)
            begin = int(np.searchsorted([piece.end for piece in block], first, "right"))
            for piece in block[begin:]:
                if piece.first >= end:
                    return
                yield piece
            number += 1

    def rows(self, rows: Collection[tuple[str, int]]) -> Iterator[Piece]:
        """Yield the pieces of rows of shards, in order; the trace is read once."""
        shards = {*self._head["shards"]}
        for number in range(len(self) if any(shard in shards for shard, _ in rows) else 0):
            yield from (piece for piece in self.block(number) if (piece.origin.shard, piece.origin.row) in rows)

    def lengths(self) -> Array:
        """Return the tokens of each entry of the file: of each document, or of each sequence."""
        length = self._head["sequence"]
        if length:
            return np.full(self.tokens // length, length, np.int64)
        return np.array([piece.end - piece.first for piece in self.pieces()], np.int64)

    def numbers(self, first: int, end: int) -> Array:
        """Return the tokens of a range."""
        width, offset = self._head["width"], self._head["offset"]
        data = store_of(self.path).read(self.path, offset + first * width, (end - first) * width)
        if len(data) != (end - first) * width:
            raise DataError(f"expected {self.tokens:,} tokens, as its trace has, got fewer", path=self.path)
        return np.frombuffer(data, f"<u{width}")

    def span(self, piece: Piece, first: int, end: int) -> tuple[int, int, list[Edit]]:
        """Return the original text's stretch of some tokens, and edits inside it.

        Tokens that hold a part of a character stand for the whole of it, and tokens around a text for none of it.

        Args:
            piece: Piece of this file.
            first: First token in the file.
            end: Token after the last; all are of the piece.
        """
        start, behind = 0, piece.origin.chars
        if (first, end) != piece[:2] or piece.start:
            start, behind = self._places(piece, first, end)
        return original_span(piece.start + start, piece.start + behind, piece.origin.edits)

    def _places(self, piece: Piece, first: int, end: int) -> tuple[int, int]:
        widths, inner = self._widths
        numbers = self.numbers(piece.first, end)
        skip, last = first - piece.first, end - 1 - piece.first
        moved = np.cumsum(widths[numbers], dtype=np.int64)
        odds = dict(piece.origin.odds)

        def base(token: int) -> int:
            return int(moved[token - 1] if token else 0) + sum(by for at, by in odds.items() if at <= token)

        begin = base(skip) - int(inner[numbers[skip]])
        at = base(last)
        behind = max(at + int(widths[numbers[last]]) + min(0, odds.get(last + 1, 0)), at)
        chars = piece.origin.chars
        begin = min(begin, chars)
        return begin, max(min(behind, chars), begin)

    @functools.lru_cache(16)  # noqa: B019  # a look at many tokens goes through a file in order
    def block(self, number: int) -> list[Piece]:
        """Return the pieces of a block."""
        begin, end = self._offsets[number : number + 2]
        head, columns = self._unpacked(self._read(begin, end - begin))
        gaps, counts, shards, rows, copies, starts, chars, edits, *of_edits, odds, odd_at, odd_by = columns
        ends = head["end"] + np.cumsum(gaps + counts)
        chars = chars + head["per_token"] * counts // 1000
        edited = _split([*zip(*(column.tolist() for column in of_edits), strict=True)], edits)
        moved = _split([*zip(odd_at.tolist(), odd_by.tolist(), strict=True)], odds)
        names = self._names(number, len(counts))
        listed = (ends - counts, ends, starts, shards, np.cumsum(rows), copies, chars)
        return [
            Piece(
                first,
                end,
                start,
                Origin(id, source, self._head["shards"][shard], row, copy, n, _summed(edit), [*moved_by]),
            )
            for (first, end, start, shard, row, copy, n), edit, moved_by, (source, id) in zip(
                zip(*(column.tolist() for column in listed), strict=True), edited, moved, names, strict=True
            )
        ]

    def _names(self, number: int, pieces: int) -> list[tuple[str, str]]:
        if not self.has_ids:
            return [("", "")] * pieces
        begin, end = self._id_offsets[number : number + 2]
        path = self.path + IDS
        try:
            names = msgspec.json.decode(
                zlib.decompress(store_of(path).read(path, begin, end - begin)), type=list[tuple[str, str]]
            )
        except (zlib.error, msgspec.DecodeError) as error:
            raise DataError(f"expected ids, got: {error}; delete the file to go without", path=path) from None
        if len(names) != pieces:
            raise DataError(f"expected {pieces} ids in block {number}, got {len(names)}", path=path)
        return names

    def _read(self, offset: int, size: int) -> bytes:
        return store_of(self.path).read(self.path + TRACE, offset, size)

    def _unpacked(self, data: bytes) -> tuple[dict[str, Any], list[Array]]:
        try:
            return _unpacked(data)
        except (zlib.error, msgspec.DecodeError, struct.error, ValueError, KeyError) as error:
            raise DataError(f"expected a sound trace, got: {error}; {_AGAIN}", path=self.path + TRACE) from None


def original_span(start: int, end: int, edits: Sequence[Edit]) -> tuple[int, int, list[Edit]]:
    """Map a stretch of the edited text to the original text.

    Return also the edits inside it.

    What stands in place of a stretch comes from all of it.
    """
    moved = 0  # code points that the text after edits has more, up to here
    first = last = None
    inside: list[Edit] = []
    for edit in edits:
        begin, length = edit[0] + moved, edit[2]
        if first is None and start < begin + length:
            first = edit[0] if start >= begin else start - moved
        if last is None and end <= begin and (end > start or end < begin or length):
            last = end - moved
        elif last is None and end <= begin + length and length:
            last = edit[1]
        if start < end and (start < begin + length or (not length and start < begin)) and begin < end:
            inside.append(edit)
        moved += length - (edit[1] - edit[0])
    first = start - moved if first is None else first
    return first, max(first, end - moved if last is None else last), inside


def _deltas(edits: Sequence[Edit]) -> list[tuple[int, int, int]]:
    ends = [0, *(edit[1] for edit in edits)]
    return [(start - before, end - start, new) for (start, end, new), before in zip(edits, ends, strict=False)]


def _summed(edits: Iterable[tuple[int, int, int]]) -> list[Edit]:
    results, at = list[Edit](), 0
    for gap, length, new in edits:
        results.append((at + gap, at + gap + length, new))
        at += gap + length
    return results


def _split(values: list[Any], counts: Array) -> Iterator[list[Any]]:
    at = 0
    for count in counts.tolist():
        yield values[at : at + count]
        at += count


def _packed(head: dict[str, Any], columns: Sequence[Sequence[int]]) -> bytes:
    parts = [msgspec.json.encode(head), b"\n"]
    for column in columns:
        numbers = np.array(column, np.int64)
        least = int(numbers.min()) if len(numbers) else 0
        above = (numbers - least).astype("<u8")
        width = (int(above.max()).bit_length() + 7) // 8 if len(numbers) else 0
        planes = above.view(np.uint8).reshape(-1, 8).T[:width]
        parts += [_COLUMN.pack(least, width, len(numbers)), planes.tobytes()]
    return zlib.compress(b"".join(parts), 9)


def _unpacked(data: bytes) -> tuple[dict[str, Any], list[Array]]:
    inflater = zlib.decompressobj()
    content = inflater.decompress(data, _MOST)
    if not inflater.eof:
        raise ValueError("a block that does not end")
    text, _, rest = content.partition(b"\n")
    columns, at = list[Array](), 0
    while at < len(rest):
        least, width, items = _COLUMN.unpack_from(rest, at)
        at += _COLUMN.size
        above = np.zeros((items, 8), np.uint8)
        above[:, :width] = np.frombuffer(rest, np.uint8, width * items, at).reshape(width, items).T
        columns.append(above.view("<u8").reshape(-1).astype(np.int64) + least)
        at += width * items
    return msgspec.json.decode(text), columns
