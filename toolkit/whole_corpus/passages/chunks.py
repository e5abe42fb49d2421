"""Stretches of texts, cut at anchors; and units of length: bytes, words, tokens.

Where the length counts words or tokens, the texts that are looked at are these alone, `BYTES` bytes for each: one that
begins a character and others that continue it, with 49 bits of the hash of the word, or of the token's number. So a
word is to all that follows what a character is, and spans are of whole words; `in_text` says where these are in the
text. Words are the segments between Unicode's word boundaries that are not white space, so marks of punctuation are
words, too.

Source: Schleimer, Wilkerson, Aiken, Winnowing: Local Algorithms for Document Fingerprinting (2003). The anchor of a
passage is, of all its runs of so many bytes, the one with the least hash, and of these the last. So equal passages have
equal anchors at equal places, and a passage that begins a byte later mostly has the same one: about two anchors are in
as many bytes as a passage has runs.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.exchange.checksummed import bounds_of
from toolkit.session import cached
from toolkit.text.batch import Batch
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s, UInt32s, UInt64s
from toolkit.text.kernels.split_mix import finalized
from toolkit.text.line_table import PADDING, LineTable
from toolkit.text.tokens import Tokenizer
from toolkit.text.words import Words
from toolkit.whole_corpus.exact.pieces import Texts, hashes_128
from toolkit.whole_corpus.records import SignedShard
from toolkit.whole_corpus.sign import documents_of

PLACE = np.dtype([("start", "<u4"), ("end", "<u4"), ("skipped", "u1"), ("over", "u1")])
"""Where the text of a stretch lies: code points of the whole characters in it, and the bytes before and behind them
that are parts of others."""


class Cut(NamedTuple):
    """How passages are looked at.

    Attributes:
        length: bytes of a passage.
        runs: Runs of bytes in a passage, of which one is its anchor.
    """

    length: int
    runs: int

    @classmethod
    def of(cls, length: int) -> "Cut":
        """Return the parameters for a length in bytes."""
        return cls(length, length // 2)


class StretchBuffers(NamedTuple):
    """Room for stretches.

    Attributes:
        anchors: uint64, the hash of the anchor of each, spread evenly.
        passages: uint32, how many each has; the first begins with the text, the others each behind the one before.
        bounds: int64 (texts + 1), the first of each text, and the end of all.
    """

    anchors: UInt64s
    passages: UInt32s
    bounds: Int64s


class Places(NamedTuple):
    """Room for a `PLACE` of each stretch, column by column."""

    starts: UInt32s
    ends: UInt32s
    skipped: UInt8s
    over: UInt8s


_find = Compiled(
    "toolkit.whole_corpus.passages.passage_kernel:stretches",
    Texts,
    Cut,
    "uint64*",
    StretchBuffers,
    "int64",
)
_places = Compiled("toolkit.whole_corpus.passages.passage_kernel:places", Texts, Cut, StretchBuffers, Places)


class Stretches(NamedTuple):
    """The stretches of some texts.

    Attributes:
        keys: uint64 (stretches, 2): of each the hash of its anchor, and that of its text.
        passages: uint32, of each.
        counts: int64, of each text.
        places: `PLACE`, of each.
    """

    keys: Array
    passages: Array
    counts: Array
    places: Array


def stretches_of(texts: Sequence[bytes], cut: Cut, seeds: Sequence[int]) -> Stretches:
    """Return the stretches of texts in UTF-8; those of texts with other seeds are never equal."""
    whole = buffer_of(texts)
    result = _find_stretches(whole, cut)
    n, counts = int(result.bounds[-1]), np.diff(result.bounds)
    firsts = first_bytes(result.passages, counts)
    begins = np.repeat(whole.starts, counts) + firsts
    same = Texts(whole.utf8, begins, begins + result.passages + (cut.length - 1), n)
    seeded = np.repeat(np.array(seeds, dtype=np.uint64), counts)
    keys = np.stack([result.anchors, hashes_128(same)[:, 0]], axis=1) ^ seeded[:, None]
    places = Places(*np.empty((2, n), dtype=np.uint32), *np.empty((2, n), dtype=np.uint8))
    _places(whole, cut, result, places)
    rows = np.empty(n, dtype=PLACE)
    for name, column in zip(PLACE.names or (), places, strict=True):
        rows[name] = column
    return Stretches(keys, result.passages, counts, rows)


def buffer_of(texts: Sequence[bytes]) -> Texts:
    """Return texts in one buffer."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    utf8 = np.frombuffer(b"".join([*texts, bytes(PADDING)]), dtype=np.int8)
    return Texts(utf8, ends[:-1], ends[1:], len(texts))


def first_bytes(passages: Array, counts: Array) -> Array:
    """Return the offset of each stretch in its text, in bytes."""
    before = bounds_of(passages)
    begins: Array = before[:-1] - np.repeat(before[bounds_of(counts)[:-1]], counts)
    return begins


def _find_stretches(texts: Texts, cut: Cut) -> StretchBuffers:
    """Return the stretches; where there is room for fewer than there are, it is made for as many, once."""
    ring, room = np.empty(cut.runs, dtype=np.uint64), 64 + 2 * texts.items + 3 * len(texts.utf8) // cut.runs
    while True:
        bounds = np.zeros(texts.items + 1, dtype=np.int64)
        result = StretchBuffers(np.empty(room, dtype=np.uint64), np.empty(room, dtype=np.uint32), bounds)
        _find(texts, cut, ring, result, room)
        n = int(bounds[-1])
        if n <= room:
            return StretchBuffers(result.anchors[:n], result.passages[:n], bounds)
        room = n


Unit = Literal["byte", "word", "token"]

BYTES = 8
"""Of a word, or a token."""


class LengthUnit(ConfigStruct):
    """Unit of lengths, and the tokenizer's file if the unit is tokens."""

    unit: Unit = "byte"
    tokenizer: str = ""

    def size_of(self, length: int) -> int:
        """Return the bytes of a passage, as it is looked at."""
        return length if self.unit == "byte" else BYTES * length

    def texts_of(self, documents: Batch) -> list[bytes]:
        """Return the bytes of each document to compare."""
        if self.unit == "byte":
            return documents.utf8
        if self.unit == "token":
            return _tokens(self.tokenizer, [document.text for document in documents])
        words = documents.words("segments")
        return _hashed(words.hashes, words.bounds)

    @property
    def form(self) -> Callable[[str], bytes]:
        """Return the function from a text to the bytes to compare."""
        if self.unit == "byte":
            return str.encode
        if self.unit == "token":
            return lambda text: _tokens(self.tokenizer, [text])[0]
        return lambda text: _hashed((words := _split(text)).hashes, words.bounds)[0]

    def in_text(self, signed: SignedShard, rows: Array, starts: Array, ends: Array) -> list[Array]:
        """Return the places of spans of words or tokens in the texts: first and last code points, and bytes; int64
        each.

        Args:
            signed: the shard, some of whose texts are read.
            rows: Rows of the spans, which ascend.
            starts: the word that each begins with.
            ends: the word behind its last one.

        Raises:
            DataError: if the documents are others than those that have been signed.
        """
        is_wanted = np.zeros(signed.record.rows, dtype=bool)
        is_wanted[rows] = True
        result = np.zeros((4, len(rows)), dtype=np.int64)
        if is_wanted.any():
            edges = np.append(np.flatnonzero(np.append(True, np.diff(rows) != 0)), len(rows)).tolist()
            documents = documents_of(signed, is_wanted)
            for first, behind in pairwise(edges):
                here, text = slice(first, behind), next(documents).text
                result[:, here] = (
                    _of_tokens(self.tokenizer, text, starts[here], ends[here])
                    if self.unit == "token"
                    else _of_words(text, starts[here], ends[here])
                )
            next(documents, None)  # which are held against what was signed when all have been read
        return list(result)


@cached(1)
def _loaded(tokenizer: str) -> Tokenizer:
    return Tokenizer(tokenizer)


def _tokens(tokenizer: str, texts: Sequence[str]) -> list[bytes]:
    tokens, bounds = _loaded(tokenizer).encode(texts)
    return _hashed(tokens.astype(np.uint64), bounds)


def _split(text: str) -> Words:
    return Words.of(LineTable.of([text]), "segments")


def _hashed(numbers: Array, bounds: Array) -> list[bytes]:
    """Return the bytes of texts, from a number and bounds of words."""
    hashes = finalized(numbers)
    result = np.empty((len(hashes), BYTES), dtype=np.uint8)
    result[:, 0] = hashes & np.uint64(0x7F)
    for i in range(1, BYTES):
        result[:, i] = np.uint64(0x80) | (hashes >> np.uint64(1 + 6 * i)) & np.uint64(0x3F)
    data = result.tobytes()
    return [data[begin:end] for begin, end in pairwise((BYTES * bounds).tolist())]


def _of_words(text: str, starts: Array, ends: Array) -> Sequence[Array]:
    words = _split(text)
    begins, behinds = words.starts[starts], words.ends[ends - 1]
    before = np.zeros(len(words.lines.utf8) + 1, dtype=np.int64)  # code points
    np.cumsum(words.lines.utf8 >= -64, out=before[1:])
    return before[begins] - before[1], before[behinds] - before[1], begins, behinds


def _of_tokens(tokenizer: str, text: str, starts: Array, ends: Array) -> Sequence[Array]:
    """Return the places of spans; a character that is also of a token outside of its span is not in it."""
    places = np.array(_loaded(tokenizer).library.encode(text, add_special_tokens=False).offsets, dtype=np.int64)
    firsts, lasts = places[starts, 0], places[ends - 1, 1]
    before, behind = np.maximum(starts - 1, 0), np.minimum(ends, len(places) - 1)
    firsts = np.where(starts > 0, np.maximum(firsts, places[before, 1]), firsts)
    lasts = np.where(ends < len(places), np.minimum(lasts, places[behind, 0]), lasts)
    lasts = np.maximum(firsts, lasts)
    utf8 = np.zeros(len(text) + 1, dtype=np.int64)
    points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    np.cumsum(1 + (points > 0x7F) + (points > 0x7FF) + (points > 0xFFFF), out=utf8[1:])
    return firsts, lasts, utf8[firsts], utf8[lasts]
