"""The lines and paragraphs of documents, as they are compared, with their places."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import xxhash

from toolkit.text.batch import Batch
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array
from toolkit.text.line_table import PADDING, LineTable
from toolkit.whole.exact.hashing import Texts
from toolkit.whole.exact.normalize import FUNCTIONS, Normalisation

Unit = Literal["document", "line", "paragraph"]

_strip = Compiled("toolkit.whole.exact.kernel:strip", "int8* int64 int64* int64*")


class Pieces(NamedTuple):
    """The pieces of some documents, in order.

    Attributes:
        found: what is compared, in UTF-8, of those pieces that are.
        compared: bool, whether a piece is.
        sizes: int64, code points from the start of each to that of the next; the last ends with the text.
        counts: int64, the pieces of each document.
        before: int64, code points before the first, of each document.
    """

    found: Texts
    compared: Array
    sizes: Array
    counts: Array
    before: Array

    def among(self, chosen: Array) -> "Pieces":
        """Return the same, with those pieces compared alone that are chosen; bool, of all."""
        kept = chosen[self.compared]
        starts, ends = self.found.starts[kept], self.found.ends[kept]
        return self._replace(found=Texts(self.found.utf8, starts, ends, len(starts)), compared=self.compared & chosen)

    def texts(self) -> list[bytes]:
        """Return what is compared."""
        utf8 = self.found.utf8.tobytes()
        bounds = zip(self.found.starts.tolist(), self.found.ends.tolist(), strict=True)
        return [utf8[begin:end] for begin, end in bounds]


class _Lines(NamedTuple):
    """Lines of documents: those of the text, and what is compared of them.

    Attributes:
        read: those of the text.
        sizes: int64, code points with the line's end.
        utf8: int8, in which `starts` and `ends` are, and `PADDING` behind.
        starts: int64, where what is compared begins.
        ends: int64, where it ends; nothing is between them of a line that is not compared.
    """

    read: LineTable
    sizes: Array
    utf8: Array
    starts: Array
    ends: Array


def _lines(documents: Batch, name: Normalisation) -> _Lines:
    read, open_ended = documents.lines, documents.open_ended
    sizes = read.chars + np.append(read.starts[1:], len(read.utf8) - PADDING) - read.ends
    sizes[read.bounds[1:][open_ended] - 1] -= 1
    if name == "none":
        return _Lines(read, sizes, read.utf8, read.starts, read.ends)
    if name == "dolma":  # its `skip_empty`
        starts, ends = _stripped(read)
        return _Lines(read, sizes, read.utf8, read.starts, np.where(starts == ends, read.starts, read.ends))
    function = FUNCTIONS[name]
    same = [
        function(document.text) + "\n" * is_open
        for document, is_open in zip(documents, open_ended.tolist(), strict=True)
    ]
    table = LineTable.of(same)
    return _Lines(read, sizes, table.utf8, *_stripped(table))


def _stripped(table: LineTable) -> tuple[Array, Array]:
    starts, ends = table.starts.copy(), table.ends.copy()
    _strip(table.utf8, len(starts), starts, ends)
    return starts, ends


def lines_of(documents: Batch, name: Normalisation) -> Pieces:
    """Return the lines of documents."""
    lines = _lines(documents, name)
    compared = lines.ends > lines.starts
    starts, ends = lines.starts[compared], lines.ends[compared]
    counts = np.diff(lines.read.bounds)
    found = Texts(lines.utf8, starts, ends, len(starts))
    return Pieces(found, compared, lines.sizes, counts, np.zeros(len(counts), dtype=np.int64))


def paragraphs_of(documents: Batch, name: Normalisation) -> Pieces:
    """Return the paragraphs of documents: lines between those that are blank, which have white space at most.

    Blank lines belong to the paragraph before them; those before the first to none.
    """
    lines = _lines(documents, name)
    bounds, blank = lines.read.bounds, np.equal(*_stripped(lines.read))
    begins_document = np.zeros(len(blank) + 1, dtype=bool)
    begins_document[bounds] = True
    after_blank = np.append(True, blank)[:-1] | begins_document[:-1]
    firsts = np.flatnonzero(~blank & after_blank)
    before_blank = np.append(blank[1:], True) | begins_document[1:]
    behind = np.flatnonzero(~blank & before_blank) + 1
    paragraphs = np.searchsorted(firsts, bounds)
    counts = np.diff(paragraphs)
    chars = _sums(lines.sizes)
    begins, ends = chars[firsts], chars[bounds[1:]]
    sizes = np.append(begins[1:], 0) - begins
    some = counts > 0
    last = paragraphs[1:][some] - 1
    sizes[last] = ends[some] - begins[last]
    before = ends - chars[bounds[:-1]]
    before[some] = begins[paragraphs[:-1][some]] - chars[bounds[:-1]][some]
    has_text = _sums(lines.ends > lines.starts)
    compared = has_text[behind] > has_text[firsts]
    apart = _sums(lines.starts[1:] != lines.ends[:-1] + 1)
    firsts, behind = firsts[compared], behind[compared]
    found = _joined(lines, firsts, behind, apart[behind - 1] > apart[firsts])
    return Pieces(found, compared, sizes, counts, before)


def _joined(lines: _Lines, firsts: Array, behind: Array, cut: Array) -> Texts:
    """Return lines together; those that do not stand one behind the other are put so, behind the buffer."""
    starts, ends = lines.starts[firsts], lines.ends[behind - 1]
    if not cut.any():
        return Texts(lines.utf8, starts, ends, len(starts))
    utf8 = lines.utf8.tobytes()
    texts = []
    for first, end in zip(firsts[cut].tolist(), behind[cut].tolist(), strict=True):
        bounds = zip(lines.starts[first:end].tolist(), lines.ends[first:end].tolist(), strict=True)
        texts.append(b"\n".join([utf8[begin:end_] for begin, end_ in bounds]))
    places = _sums(np.array(list(map(len, texts)), dtype=np.int64)) + len(utf8)
    starts[cut], ends[cut] = places[:-1], places[1:]
    whole = b"".join([utf8, *texts, bytes(PADDING)])
    return Texts(np.frombuffer(whole, dtype=np.int8), starts, ends, len(starts))


def _sums(values: Array) -> Array:
    """Return the sums of the values before each, and of all."""
    found = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=found[1:])
    return found


PIECES: dict[Unit, Callable[[Batch, Normalisation], Pieces]] = {
    "line": lines_of,
    "paragraph": paragraphs_of,
}


def hasher(bits: int) -> Callable[..., bytes]:
    """Return the function that hashes a text: of so many bits, with a seed, if one is given."""
    return xxhash.xxh3_128_digest if bits == 128 else xxhash.xxh3_64_digest
