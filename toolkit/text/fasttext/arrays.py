"""Arrays for compiled predictions, built from a model's file (see `model_file`)."""

import math
from typing import NamedTuple

import numpy as np

from toolkit.errors import ConfigError
from toolkit.text.fasttext.model_file import EOS, Contents, Quantised
from toolkit.text.kernels import signatures
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.line_table import LineTable

SEPARATORS = b" \t\n\v\f\r\0"
OFFSET, PRIME = 2166136261, 16777619
EMPTY = 0xFFFFFFFFFFFFFFFF
STEPS = 512
"""Of the table of sigmoids, from -8 to 8."""

ROOM = 1 << 14
"""Rows that are noted before they are added up."""

CACHE_LINE = 64
"""Bytes that a processor fetches together."""

SUMMED = 64 << 20
"""Bytes up to which the rows of known words are added up with those of their n-grams, in each process."""

SUMS = 1 << 32
"""Additions that this may take at most; more is what a hostile file asks for."""

PROBES = 64
"""Slots of the table of words that are looked at for each of them, on average at most; usual is less than 2."""


def fnv(data: bytes) -> int:
    """Return FNV-1a as fastText has it, over signed bytes."""
    hash_ = OFFSET
    for byte in data:
        hash_ = ((hash_ ^ (byte if byte < 128 else byte - 256)) & 0xFFFFFFFF) * PRIME & 0xFFFFFFFF
    return hash_


class WordTable(NamedTuple):
    """The known words and labels of a model, in a hash table.

    Attributes:
        mask: Mask of the slots of the table.
        filter_mask: Filter mask of the bits of the filter.
        slots: the upper half of each word's hash, and its number; open addressing from that half's low bits.
        filter: a bit for each value of that half's low bits that a known word has; stays in the nearest cache.
        first: the first 8 bytes of each word.
        lengths: their bytes.
        places: Offset of each word in the file.
        file: its bytes, signed.
        masks: Masks of the first n bytes of 8.
    """

    mask: int
    filter_mask: int
    slots: signatures.UInt64s
    filter: signatures.UInt64s
    first: signatures.UInt64s
    lengths: signatures.Int64s
    places: signatures.Int64s
    file: signatures.Bytes
    masks: signatures.UInt64s


class Buckets(NamedTuple):
    """The hashed features of a model: n-grams of characters and of words.

    Attributes:
        size: Number of buckets; ``magic`` divides by it.
        magic: 2^64 // size + 1.
        is_pruned: True if only some buckets have rows.
        bitmap: a bit for each bucket: whether it was kept.
        ranks: Number of kept buckets before each word of the bitmap.
        rows: Rows of the buckets (that were kept).
    """

    size: signatures.UInt64
    magic: signatures.UInt64
    is_pruned: bool
    bitmap: signatures.UInt64s
    ranks: signatures.UInt32s
    rows: signatures.Float32s


class Model(NamedTuple):
    """A model as the compiled code takes it; all arrays are read-only and one-dimensional.

    Attributes:
        dim: Dim of the vectors.
        minn: shortest character n-gram, in code points.
        maxn: longest; 0: none.
        word_ngrams: longest n-gram of words.
        loss: Loss, as fastText numbers them.
        labels: Number of labels.
        is_summed: True if the rows of known words hold those of their n-grams.
        eos: the word that ends a line, -1 if it is not known.
        words: the known words; labels come behind them.
        word_rows: rows of the known words.
        features: Number of rows in each sum; 0 for labels.
        buckets: the hashed features.
        left: Left child of each node of the tree, -1 for leaves, which come first.
        right: Right child of each node.
        output: a row for each label, or inner node.
        sigmoid: its table.
        separators: 1 for each byte (plus 128) that words are split at.
    """

    dim: int
    minn: int
    maxn: int
    word_ngrams: int
    loss: int
    labels: int
    is_summed: bool
    eos: int
    words: WordTable
    word_rows: signatures.Float32s
    features: signatures.Int32s
    buckets: Buckets
    left: signatures.Int32s
    right: signatures.Int32s
    output: signatures.Float32s
    sigmoid: signatures.Float32s
    separators: signatures.UInt8s


class Best(NamedTuple):
    """The question to a model about some lines, and its answer.

    Attributes:
        k: at most so many labels a line.
        threshold: only labels with at least this probability.
        labels: (lines, k), best first, filled with -1.
        probs: (lines, k), of these labels.
    """

    k: int
    threshold: signatures.Float32
    labels: signatures.Int32s
    probs: signatures.Float32s


class Scratch(NamedTuple):
    """Arrays to work in.

    Attributes:
        hidden: (dim) the sum of rows.
        nodes: (labels + 2) of the tree that wait.
        values: (labels + 2) of these, or of all labels.
        word_rows: (ROOM) rows of known words that are still to be added.
        hashed: (ROOM) rows of buckets that are still to be added.
        hashes: (word_ngrams) of the n-grams of words that may go on.
    """

    hidden: signatures.Float32s
    nodes: signatures.Int32s
    values: signatures.Float32s
    word_rows: signatures.Int32s
    hashed: signatures.Int32s
    hashes: signatures.UInt64s

    @classmethod
    def of(cls, model: Model) -> "Scratch":
        """Return arrays for a model."""
        word_rows, hashed = np.empty((2, ROOM), np.int32)
        nodes, values = np.empty(model.labels + 2, np.int32), np.empty(model.labels + 2, np.float32)
        hashes = np.empty(model.word_ngrams, np.uint64)
        return cls(np.empty(model.dim, np.float32), nodes, values, word_rows, hashed, hashes)


predict = Compiled("toolkit.text.fasttext.fasttext_kernel:predict", Model, LineTable, "int64", Best, Scratch)
_sum_words = Compiled("toolkit.text.fasttext.fasttext_kernel:sum_words", Model, "int64 int8* int32* float32* int32*")
_fill = Compiled("toolkit.text.fasttext.fasttext_kernel:fill", WordTable, "int64 int64*")


def model_of(contents: Contents) -> Model:
    """Return a model as the compiled code takes it. What is not quantised stays in the file.

    Raises:
        ConfigError: if its words were chosen so that a table of them is slow.
    """
    n_words, n_labels, bucket = contents.words, len(contents.labels), contents.bucket
    input_, output, pruned = _rows(contents.input), _rows(contents.output), contents.pruned
    hashed, bitmap, ranks = input_[n_words:], np.zeros(1, np.uint64), np.zeros(1, np.uint32)
    if bucket == 1:  # nothing is divided by 1; two buckets of the same row are as good
        hashed, bucket = np.concatenate([hashed, hashed]), 2
        pruned = None if pruned is None else np.concatenate([pruned, pruned + np.array([1, 0], dtype=np.int32)])
    if pruned is not None:
        hashed, bitmap, ranks = _pruned(input_[n_words:], pruned, bucket)
    leaves = np.full((2, 1), -1, np.int32)
    left, right = leaves if contents.tree is None else contents.tree
    model = Model(
        dim=contents.dim,
        minn=contents.minn,
        maxn=contents.maxn,
        word_ngrams=contents.word_ngrams,
        loss=contents.loss,
        labels=n_labels,
        is_summed=True,
        eos=_place_of(EOS, contents),
        words=_word_table(contents),
        word_rows=_flat(input_[:n_words]),
        features=np.concatenate([np.ones(n_words, np.int32), np.zeros(n_labels, np.int32)]),
        buckets=Buckets(
            size=max(bucket, 1),
            magic=(1 << 64) // bucket + 1 if bucket > 1 else 0,
            is_pruned=pruned is not None,
            bitmap=bitmap,
            ranks=ranks,
            rows=_flat(hashed),
        ),
        left=left,
        right=right,
        output=_flat(output),
        sigmoid=_sigmoids(),
        separators=_separators(),
    )
    if contents.maxn == 0:
        return model
    additions = (int(contents.lengths[:n_words].sum()) + 2 * n_words) * contents.maxn * contents.dim
    if n_words * contents.dim * 4 <= SUMMED and additions <= SUMS:
        return _summed(model, n_words)
    return model._replace(is_summed=False)


def _rows(matrix: signatures.Array | Quantised) -> signatures.Array:
    return matrix.decoded() if isinstance(matrix, Quantised) else matrix


def _flat(matrix: signatures.Array) -> signatures.Array:
    return np.ascontiguousarray(matrix).reshape(-1)


def _in_lines(array: signatures.Array) -> signatures.Array:
    """Return a copy aligned to cache lines.

    So a row of 16 numbers lies in one line, and not in two.
    """
    room = np.empty(array.nbytes + CACHE_LINE, dtype=np.uint8)
    begin = -room.__array_interface__["data"][0] % CACHE_LINE
    copy = room[begin : begin + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


def _place_of(word: bytes, contents: Contents) -> int:
    """Return the number of a known word, -1 if it is none."""
    places, data = contents.places, contents.bytes
    result = np.flatnonzero(contents.lengths[: contents.words] == len(word))
    for i, byte in enumerate(word):
        result = result[data[places[result] + i] == byte]
    return int(result[0]) if len(result) else -1


def _word_table(contents: Contents) -> WordTable:
    places = contents.places
    slots = 1 << max(6, (2 * len(places)).bit_length())
    words = WordTable(
        mask=slots - 1,
        filter_mask=8 * slots - 1,
        slots=np.full(slots, EMPTY, np.uint64),
        filter=np.zeros(8 * slots // 64, np.uint64),
        first=np.zeros(len(places), np.uint64),
        lengths=contents.lengths,
        places=places,
        file=contents.bytes.view(np.int8),
        masks=np.array([(1 << (8 * i)) - 1 for i in range(9)], dtype=np.uint64),
    )
    probes = np.array([PROBES * (len(places) + PROBES)], np.int64)
    _fill(words, len(places), probes)
    if probes[0] < 0:
        raise ConfigError(
            f"{contents.path}: words: expected words as a training writes them, got words whose hashes collide "
            "so often that to look one up would take too long; fetch the model again"
        )
    return words


def _summed(model: Model, n_words: int) -> Model:
    """Return the model with each known word's rows added up."""
    word_rows, features = _in_lines(model.word_rows), model.features.copy()
    longest = int(model.words.lengths[:n_words].max(initial=0))
    word, rows = np.zeros(longest + 16, np.int8), np.zeros((longest + 2) * model.maxn + 1, np.int32)
    _sum_words(model, n_words, word, rows, word_rows, features)
    return model._replace(word_rows=word_rows, features=features, is_summed=True)


def _pruned(
    hashed: signatures.Array, pairs: signatures.Array, bucket: int
) -> tuple[signatures.Array, signatures.Array, signatures.Array]:
    """Return the rows of the kept buckets, in the buckets' order.

    A bitmap has a bit for each bucket; ranks are the sums of bits before.
    """
    pairs = pairs[np.argsort(pairs[:, 0])]  # in which each is once
    bitmap = np.zeros(bucket // 64 + 1, np.uint64)
    np.bitwise_or.at(bitmap, pairs[:, 0] >> 6, np.uint64(1) << (pairs[:, 0] & 63).astype(np.uint64))
    counts = np.bincount(pairs[:, 0] >> 6, minlength=len(bitmap))
    ranks = (np.cumsum(counts) - counts).astype(np.uint32)
    return _in_lines(hashed[pairs[:, 1]].reshape(-1)), bitmap, ranks


def _sigmoids() -> signatures.Array:
    """Return the table as the library makes it; numpy's own exponential is another on other processors."""
    powers = np.array([math.exp(8 - i * 16 / STEPS) for i in range(STEPS + 1)]).astype(np.float32)
    return (1 / (1 + powers.astype(np.float64))).astype(np.float32)


def _separators() -> signatures.Array:
    result = np.zeros(256, np.uint8)
    result[[byte + 128 for byte in SEPARATORS]] = 1
    return result
