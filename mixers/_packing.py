"""Packing: documents become sequences of one length, and where documents begin is kept.

Source for fitting: Ding et al. 2024, "Fewer truncations improve language modeling", arXiv:2404.10830 (best fit
decreasing), here in windows, so that memory is bounded.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

import msgspec

from mixers._token_files import Entry
from toolkit.text import TraceWriter

WINDOW = 512
"""Sequences whose documents are fitted together."""


def cut(entries: Iterable[Entry], size: int, pad: bytes, bounds: "array[int]") -> Iterator[Entry]:
    """Yield sequences of consecutive documents, cut at a fixed size. The last one is padded.

    Args:
        entries: Documents.
        size: Bytes of a sequence.
        pad: Bytes of the token that fills what is left.
        bounds: Array for the beginnings of documents (and the padding), in tokens, and the end of all.
    """
    buffer, at = bytearray(), 0
    for entry in entries:
        bounds.append(at)
        at += len(entry.tokens) // len(pad)
        buffer += entry.tokens
        while len(buffer) >= size:
            yield Entry(bytes(buffer[:size]), entry.id, entry.source, entry.row)
            del buffer[:size]
    if buffer:
        bounds.append(at)
        at += (size - len(buffer)) // len(pad)
        yield Entry(bytes(buffer) + pad * ((size - len(buffer)) // len(pad)))
    bounds.append(at)


def fit(entries: Iterable[Entry], size: int, pad: bytes, bounds: "array[int]", trace: TraceWriter) -> Iterator[Entry]:
    """Yield sequences of whole documents. Only a document longer than a sequence is cut.

    Documents of a window are put where they fit best, the longest first; what is left of a sequence is padded.
    Arguments as of `cut`; where the padding of a sequence begins is in `bounds`, too. The pieces go to the trace.
    """
    at = 0
    for pieces in _windows(entries, size, len(pad), trace):
        for sequence in _fitted(pieces, size):
            tokens = bytearray()
            for i in sequence:
                bounds.append(at + len(tokens) // len(pad))
                _, _, _, _, origin, before, start = pieces[i]
                assert origin is not None
                trace.add(bounds[-1], len(pieces[i].tokens) // len(pad), origin, start, before)
                tokens += pieces[i].tokens
            if len(tokens) < size:
                bounds.append(at + len(tokens) // len(pad))
            first = pieces[sequence[0]]
            yield first._replace(tokens=bytes(tokens) + pad * ((size - len(tokens)) // len(pad)))
            at += size // len(pad)
    bounds.append(at)


def _windows(entries: Iterable[Entry], size: int, width: int, trace: TraceWriter) -> Iterator[list[Entry]]:
    """Yield windows of pieces, each at most as long as a sequence."""
    pieces: list[Entry] = []
    total = 0
    for entry in entries:
        origin, tokens = entry.origin, entry.tokens
        assert origin is not None
        start = origin.start
        for begin in range(0, len(tokens), size):
            is_last = begin + size >= len(tokens)
            end = origin.chars if is_last else min(trace.start(origin, tokens[: begin + size]), origin.chars)
            of_piece = msgspec.structs.replace(origin, chars=end)
            piece = tokens[begin : begin + size]
            pieces.append(entry._replace(tokens=piece, origin=of_piece, before=begin // width, start=start))
            start = end
            total += len(pieces[-1].tokens)
            if total >= WINDOW * size:
                yield pieces
                pieces, total = [], 0
    if pieces:
        yield pieces


def _fitted(pieces: list[Entry], size: int) -> list[list[int]]:
    """Return the numbers of the pieces in each sequence. Both are in the order of the documents."""
    sequences: list[list[int]] = []
    rooms: list[tuple[int, int]] = []  # what is left of a sequence, and which one; sorted
    for i in sorted(range(len(pieces)), key=lambda i: (-len(pieces[i].tokens), i)):
        length = len(pieces[i].tokens)
        place = bisect_left(rooms, (length, -1))
        if place == len(rooms):
            room, number = size, len(sequences)
            sequences.append([])
        else:
            room, number = rooms.pop(place)
        sequences[number].append(i)
        if room > length:
            insort(rooms, (room - length, number))
    return sorted(map(sorted, sequences))
