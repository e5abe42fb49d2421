"""Reads supervised fastText models, ``.bin`` and ``.ftz``, for the compiled predictions.

Source: the format is that of fastText 0.9.2 (``fasttext.cc``, ``dictionary.cc``, ``quantmatrix.cc``,
``productquantizer.cc``), little-endian. Joulin et al. 2016, arXiv:1607.01759 and arXiv:1612.03651.
"""

import mmap
import struct
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiling import Compiled
from toolkit.errors import ConfigError

Array = np.ndarray[Any, np.dtype[Any]]

SEPARATORS = b" \t\n\v\f\r\0"
PREFIX = b"__label__"
EOS = b"</s>"

HS, NS, SOFTMAX, OVA = 1, 2, 3, 4
"""Losses, as fastText numbers them."""

OFFSET, PRIME = 2166136261, 16777619
EMPTY = 0xFFFFFFFFFFFFFFFF
STEPS = 512
"""Of the table of sigmoids, from -8 to 8."""

ROOM = 1 << 14
"""Rows that are noted before they are added up."""

MAGIC = 793712314
SUPERVISED = 3
CENTROIDS = 256

SUMMED = 64 << 20
"""Bytes up to which the rows of known words are added up with those of their n-grams, in each process."""


def fnv(data: bytes) -> int:
    """FNV-1a as fastText has it, over signed bytes."""
    hash_ = OFFSET
    for byte in data:
        hash_ = ((hash_ ^ (byte if byte < 128 else byte - 256)) & 0xFFFFFFFF) * PRIME & 0xFFFFFFFF
    return hash_


class Model(NamedTuple):
    """A model as the compiled code takes it; all arrays are read-only and one-dimensional.

    Attributes:
        dim: of the vectors.
        minn: shortest character n-gram, in code points.
        maxn: longest; 0: none.
        word_ngrams: longest n-gram of words.
        loss: as fastText numbers them.
        labels: how many.
        bucket: hashed features; ``magic`` divides by it.
        magic: 2^64 // bucket + 1.
        is_pruned: whether only some buckets have rows.
        is_summed: whether the rows of known words hold those of their n-grams.
        eos: the word that ends a line, -1 if it is not known.
        mask: of the slots of the table.
        filter_mask: of the bits of the filter.
        known: rows of the known words.
        features: how many rows each is the sum of; 0 for labels, which come behind the words.
        hashed: rows of the buckets (that were kept).
        bitmap: a bit for each bucket: whether it was kept.
        ranks: for each word of the bitmap, the kept buckets before it.
        table: the upper half of each known word's (or label's) hash, and its number; open addressing from that half's
            low bits.
        filter: a bit for each value of that half's low bits that a known word has; stays in the nearest cache.
        first: the first 8 bytes of each known word and label.
        lengths: their bytes.
        places: where they begin in the file.
        file: its bytes, signed.
        left: for each node of the tree its child, -1 for leaves, which come first.
        right: likewise.
        output: a row for each label, or inner node.
        sigmoid: its table.
        separators: 1 for each byte (plus 128) that words are split at.
        masks: of the first n bytes of 8.
    """

    dim: int
    minn: int
    maxn: int
    word_ngrams: int
    loss: int
    labels: int
    bucket: int
    magic: int
    is_pruned: bool
    is_summed: bool
    eos: int
    mask: int
    filter_mask: int
    known: Array
    features: Array
    hashed: Array
    bitmap: Array
    ranks: Array
    table: Array
    filter: Array
    first: Array
    lengths: Array
    places: Array
    file: Array
    left: Array
    right: Array
    output: Array
    sigmoid: Array
    separators: Array
    masks: Array


_KERNEL = ["toolkit.intrinsics", "toolkit.fasttext_file"]
_MODEL = (
    "int64 int64 int64 int64 int64 int64 uint64 uint64 int64 int64 int64 int64 int64 "
    "float32* int32* float32* uint64* uint32* uint64* uint64* uint64* int64* int64* int8* "
    "int32* int32* float32* float32* uint8* uint64* "
)
predict = Compiled(
    "toolkit.fasttext_kernel:predict",
    _MODEL + "int8* int64* int64* int64 float32 int64 int32* float32* float32* int32* float32* int32* int32* uint64*",
    _KERNEL,
)
_sum_words = Compiled(
    "toolkit.fasttext_kernel:sum_words",
    "int64 int64 int64 int64 uint64 uint64 int64 int64 uint64* uint32* float32* int64* int64* int8* int8* int32* "
    "float32* int32*",
    _KERNEL,
)
_scan = Compiled("toolkit.fasttext_kernel:scan", "int8* int64 int64 int64 int64* int64* int64* int8* int64*", _KERNEL)
_fill = Compiled(
    "toolkit.fasttext_kernel:fill", "int8* int64 int64* int64* int64 int64 uint64* uint64* uint64*", _KERNEL
)


class _Reader:
    """Takes numbers and arrays from a file in memory, one after the other."""

    def __init__(self, data: mmap.mmap, path: str) -> None:
        self.bytes = np.frombuffer(data, dtype=np.uint8)
        self.at = 0
        self.path = path

    def _take(self, size: int) -> int:
        begin = self.at
        if size < 0 or begin + size > len(self.bytes):
            raise ConfigError(f"{self.path}: expected a fastText model, got one that ends at byte {len(self.bytes):,}")
        self.at += size
        return begin

    def numbers(self, form: str) -> tuple[Any, ...]:
        """Numbers of a `struct` form."""
        size = struct.calcsize("<" + form)
        begin = self._take(size)
        return struct.unpack("<" + form, self.bytes[begin : begin + size].tobytes())

    def array(self, dtype: str, *shape: int) -> Array:
        """An array that stays in the file."""
        count = int(np.prod(shape, dtype=np.int64))
        begin = self._take(count * np.dtype(dtype).itemsize)
        return np.frombuffer(self.bytes, dtype=dtype, count=count, offset=begin).reshape(shape)


def read(path: str) -> tuple[Model, list[str]]:
    """A model, and its labels with their prefix, in the order of its output.

    What is not quantised stays in the file, which processes share.

    Raises:
        ConfigError: if the file is none, or one of word vectors.
    """
    with open(path, "rb") as stream:
        try:
            reader = _Reader(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), path)
        except ValueError:
            raise ConfigError(f"{path}: expected a fastText model, got an empty file") from None
    magic, version = reader.numbers("ii")
    if magic != MAGIC or version not in (11, 12):
        raise ConfigError(f"{path}: expected a fastText model, got a file that does not begin as one")
    dim, _, _, _, _, word_ngrams, loss, kind, bucket, minn, maxn, _, _ = reader.numbers("12id")
    if kind != SUPERVISED or loss not in (HS, NS, SOFTMAX, OVA):
        raise ConfigError(f"{path}: expected a supervised fastText model, got one of word vectors")
    if version == 11:
        maxn = 0  # supervised models had no n-grams of characters then, whatever they say
    size, n_words, n_labels, _, n_pruned = reader.numbers("iiiqq")
    words, labels, counts = _dictionary(reader, size, n_words, n_labels)
    pairs = reader.array("<i4", max(n_pruned, 0), 2)
    (quantised,) = reader.numbers("?")
    input_ = _matrix(reader, quantised)
    (quantised_output,) = reader.numbers("?")
    output = _matrix(reader, quantised and quantised_output)
    if input_.shape[1] != dim or output.shape != (n_labels, dim) or len(input_) < n_words:
        raise ConfigError(f"{path}: expected vectors of {dim} numbers for {n_labels} labels, got {output.shape}")
    hashed, bitmap, ranks = input_[n_words:], np.zeros(1, np.uint64), np.zeros(1, np.uint32)
    if bucket == 1:  # nothing is divided by 1; two buckets of the same row are as good
        hashed, bucket = np.concatenate([hashed, hashed]), 2
        pairs = np.concatenate([pairs, pairs + np.array([1, 0], dtype=np.int32)])
    if n_pruned >= 0:
        hashed, bitmap, ranks = _pruned(input_, pairs, n_words, bucket)
    left, right = _tree(counts)
    table, filter_, first = _table(reader.bytes, words)
    model = Model(
        dim=dim,
        minn=minn,
        maxn=maxn,
        word_ngrams=word_ngrams,
        loss=loss,
        labels=n_labels,
        bucket=max(bucket, 1),
        magic=(1 << 64) // bucket + 1 if bucket > 1 else 0,
        is_pruned=n_pruned >= 0,
        is_summed=True,
        eos=_place_of(EOS, reader.bytes, *words),
        mask=len(table) - 1,
        filter_mask=64 * len(filter_) - 1,
        known=_flat(input_[:n_words]),
        features=_ones(n_words, n_labels),
        hashed=_flat(hashed),
        bitmap=bitmap,
        ranks=ranks,
        table=table,
        filter=filter_,
        first=first,
        lengths=words[1],
        places=words[0],
        file=reader.bytes.view(np.int8),
        left=left,
        right=right,
        output=_flat(output),
        sigmoid=_sigmoids(),
        separators=_separators(),
        masks=np.array([(1 << (8 * i)) - 1 for i in range(9)], dtype=np.uint64),
    )
    if maxn > 0:
        model = _summed(model, n_words) if n_words * dim * 4 <= SUMMED else model._replace(is_summed=False)
    return model, labels


def _flat(matrix: Array) -> Array:
    return np.ascontiguousarray(matrix).reshape(-1)


# --- words and labels -------------------------------------------------------------------------------------------------


def _dictionary(
    reader: _Reader, size: int, n_words: int, n_labels: int
) -> tuple[tuple[Array, Array], list[str], Array]:
    """Where words and labels are and how long, the labels, and how often each of these occurred."""
    if not 0 <= size <= len(reader.bytes):
        raise ConfigError(f"{reader.path}: expected a fastText model, got one with {size} words")
    places, lengths = np.zeros(size, np.int64), np.zeros(size, np.int64)
    counts, kinds = np.zeros(size, np.int64), np.zeros(size, np.int8)
    found = np.zeros(1, np.int64)
    _scan(reader.bytes.view(np.int8), len(reader.bytes), reader.at, size, places, lengths, counts, kinds, found)
    end = int(found[0])
    if end < 0 or (int((kinds == 0).sum()), int((kinds == 1).sum())) != (n_words, n_labels):
        raise ConfigError(f"{reader.path}: expected {n_words} words and {n_labels} labels, got others")
    reader.at = end
    named = [
        bytes(reader.bytes[p : p + n]).decode(errors="replace")
        for p, n in zip(places[n_words:], lengths[n_words:], strict=True)
    ]
    return (places, lengths), named, counts[n_words:].copy()


def _place_of(word: bytes, data: Array, places: Array, lengths: Array) -> int:
    """The number of a word, -1 if there is none."""
    found = np.flatnonzero(lengths == len(word))
    for i, byte in enumerate(word):
        found = found[data[places[found] + i] == byte]
    return int(found[0]) if len(found) else -1


def _ones(words: int, labels: int) -> Array:
    return np.concatenate([np.ones(words, np.int32), np.zeros(labels, np.int32)])


def _table(data: Array, words: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    places, lengths = words
    slots = 1 << max(6, (2 * len(places)).bit_length())
    table = np.full(slots, EMPTY, np.uint64)
    filter_ = np.zeros(8 * slots // 64, np.uint64)
    first = np.zeros(len(places), np.uint64)
    _fill(
        data.view(np.int8), len(places), places, lengths, len(table) - 1, 64 * len(filter_) - 1, table, filter_, first
    )
    return table, filter_, first


def _summed(model: Model, n_words: int) -> Model:
    """With the rows of known words and of their n-grams added up."""
    known, features = model.known.copy(), model.features.copy()
    longest = int(model.lengths.max(initial=0))
    word, rows = np.zeros(longest + 16, np.int8), np.zeros((longest + 2) * model.maxn + 1, np.int32)
    _sum_words(
        n_words, model.dim, model.minn, model.maxn, model.bucket, model.magic, model.is_pruned, model.eos,
        model.bitmap, model.ranks, model.hashed, model.places, model.lengths, model.file, word, rows, known, features,
    )  # fmt: skip
    return model._replace(known=known, features=features, is_summed=True)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _matrix(reader: _Reader, quantised: bool) -> Array:
    if not quantised:
        rows, columns = reader.numbers("qq")
        return reader.array("<f4", rows, columns)
    with_norms, rows, columns, size = reader.numbers("?qqi")
    matrix = _decoded(reader, reader.array("u1", rows, size // max(rows, 1)))
    if with_norms:
        norms = _decoded(reader, reader.array("u1", rows, 1))
        matrix = norms * matrix
    if matrix.shape != (rows, columns):
        raise ConfigError(f"{reader.path}: expected {rows} x {columns} quantised numbers, got {matrix.shape}")
    return matrix


def _decoded(reader: _Reader, codes: Array) -> Array:
    """Rows from their codes: of each part of a row the centroid."""
    dim, parts, width, last = reader.numbers("4i")
    centroids = reader.array("<f4", dim * CENTROIDS)
    rows = np.empty((len(codes), dim), dtype=np.float32)
    for part in range(parts):
        size = last if part == parts - 1 else width
        begin = part * CENTROIDS * width
        table = centroids[begin : begin + CENTROIDS * size].reshape(CENTROIDS, size)
        rows[:, part * width : part * width + size] = table[codes[:, part]]
    return rows


def _pruned(input_: Array, pairs: Array, n_words: int, bucket: int) -> tuple[Array, Array, Array]:
    """The rows of the buckets that were kept, in their order; a bit for each bucket; and how many bits are before."""
    order = np.argsort(pairs[:, 0], kind="stable")
    kept = pairs[order]
    bitmap = np.zeros(bucket // 64 + 1, np.uint64)
    np.bitwise_or.at(bitmap, kept[:, 0] >> 6, np.uint64(1) << (kept[:, 0] & 63).astype(np.uint64))
    counts = np.bincount(kept[:, 0] >> 6, minlength=len(bitmap))
    ranks = (np.cumsum(counts) - counts).astype(np.uint32)
    return input_[n_words + kept[:, 1]], bitmap, ranks


def _tree(counts: Array) -> tuple[Array, Array]:
    """Huffman's tree over the labels, as fastText builds it: leaves first, the root last."""
    n = len(counts)
    left, right = np.full(max(2 * n - 1, 1), -1, np.int32), np.full(max(2 * n - 1, 1), -1, np.int32)
    weights = [*counts.tolist(), *[10**15] * (n - 1)]
    leaf, node = n - 1, n
    for i in range(n, 2 * n - 1):
        chosen = []
        for _ in range(2):
            if leaf >= 0 and weights[leaf] < weights[node]:
                chosen.append(leaf)
                leaf -= 1
            else:
                chosen.append(node)
                node += 1
        left[i], right[i] = chosen
        weights[i] = weights[chosen[0]] + weights[chosen[1]]
    return left, right


def _sigmoids() -> Array:
    x = (np.arange(513) * 16 / 512 - 8).astype(np.float32)
    return (1 / (1 + np.exp(-x))).astype(np.float32)


def _separators() -> Array:
    found = np.zeros(256, np.uint8)
    found[[byte + 128 for byte in SEPARATORS]] = 1
    return found
