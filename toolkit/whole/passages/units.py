"""What the length of a passage counts: bytes, or words.

Where it counts words, the texts that are looked at are words alone, `BYTES` bytes for each: one that begins a character
and others that continue it, with 49 bits of the word's hash. So a word is to all that follows what a character is, and
spans are of whole words; `in_text` says where these are in the text. Words are the segments between Unicode's word
boundaries that are not white space, so marks of punctuation are words, too.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from toolkit.text.batch import Batch
from toolkit.text.kernels.signatures import Array
from toolkit.text.kernels.split_mix import finalized
from toolkit.text.line_table import LineTable
from toolkit.text.words import Words
from toolkit.whole.records import SignedShard
from toolkit.whole.sign import documents_of

Unit = Literal["byte", "word"]

BYTES = 8
"""Of a word."""


def size_of(unit: Unit, length: int) -> int:
    """Return the bytes of a passage, as it is looked at."""
    return length if unit == "byte" else BYTES * length


def texts_of(documents: Batch, unit: Unit) -> list[bytes]:
    """Return what is looked at of each document."""
    return [document.utf8 for document in documents] if unit == "byte" else _words(documents.words("segments"))


def form_of(unit: Unit) -> Callable[[str], bytes]:
    """Return the function that gives what is looked at of a text."""
    return str.encode if unit == "byte" else lambda text: _words(_split(text))[0]


def _split(text: str) -> Words:
    return Words.of(LineTable.of([text]), "segments")


def _words(words: Words) -> list[bytes]:
    hashes = finalized(words.hashes)
    found = np.empty((len(hashes), BYTES), dtype=np.uint8)
    found[:, 0] = hashes & np.uint64(0x7F)
    for i in range(1, BYTES):
        found[:, i] = np.uint64(0x80) | (hashes >> np.uint64(1 + 6 * i)) & np.uint64(0x3F)
    data = found.tobytes()
    return [data[begin:end] for begin, end in pairwise((BYTES * words.bounds).tolist())]


def in_text(signed: SignedShard, rows: Array, starts: Array, ends: Array) -> tuple[Array, Array, Array]:
    """Return where spans of words are in the texts: their first and last code points, and bytes; int64 each.

    Args:
        signed: the shard, some of whose texts are read.
        rows: of the spans, which ascend.
        starts: the word that each begins with.
        ends: the word behind its last one.

    Raises:
        DataError: if the documents are others than those that have been signed.
    """
    is_wanted = np.zeros(signed.record.rows, dtype=bool)
    is_wanted[rows] = True
    found = np.zeros((3, len(rows)), dtype=np.int64)
    if is_wanted.any():
        edges = np.append(np.flatnonzero(np.append(True, np.diff(rows) != 0)), len(rows)).tolist()
        documents = documents_of(signed, is_wanted)
        for first, behind in pairwise(edges):
            here = slice(first, behind)
            found[:, here] = _places(next(documents).text, starts[here], ends[here])
        next(documents, None)  # which are held against what was signed when all have been read
    return found[0], found[1], found[2]


def _places(text: str, starts: Array, ends: Array) -> Sequence[Array]:
    words = _split(text)
    begins, behinds = words.starts[starts], words.ends[ends - 1]
    before = np.zeros(len(words.lines.utf8) + 1, dtype=np.int64)  # code points
    np.cumsum(words.lines.utf8 >= -64, out=before[1:])
    return before[begins] - before[1], before[behinds] - before[1], behinds - begins
