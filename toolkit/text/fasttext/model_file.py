"""Read supervised fastText models, ``.bin`` and ``.ftz``: everything that such a file says of itself is checked here.

Compiled code, ours and that of the fastText library, takes the result without checking anything. A number in the file
decides how much memory is allocated only after it is known to fit the size of the file. Fields that only training
reads (``ws``, ``epoch``, ``minCount``, ``neg``, ``lrUpdateRate``, ``t``, ``ntokens``) may be anything.

Source: the format is that of fastText 0.9.2 (``fasttext.cc``, ``dictionary.cc``, ``quantmatrix.cc``,
``productquantizer.cc``), little-endian. Joulin et al. 2016, arXiv:1607.01759 and arXiv:1612.03651.
"""

import math
import mmap
import os
import re
import struct
from itertools import islice
from typing import Any, NamedTuple, NoReturn

from toolkit.errors import ConfigError, DataError
from toolkit.lazy_numpy import np
from toolkit.text.kernels.signatures import Array

PREFIX = b"__label__"
EOS = b"</s>"

HS, NS, SOFTMAX, OVA = 1, 2, 3, 4
"""Losses, as fastText numbers them."""

MAGIC = 793712314
VERSIONS = (11, 12)
CBOW, SKIPGRAM, SUPERVISED = 1, 2, 3
CENTROIDS = 256

COPIED = 16 << 20
"""Bytes up to which a file is read into memory. A larger one is mapped, so that processes share it."""

# Limits that the format does not have. Each is far above what models are trained with, and keeps a file from making
# the work or the memory grow beyond all measure.
LONGEST_NGRAM = 100
"""Of ``minn``, ``maxn`` and ``wordNgrams``: the work for each character, or word, of a text."""
NGRAMS = 1 << 30
"""Of the n-grams of all known words together, which the fastText library holds in memory."""
PRUNED_BUCKETS = 1 << 28
"""Of the buckets of a pruned model, each of which has a bit in memory."""
UNLIKELY = 40
"""Hashes spread over all buckets: kept ones that lie in a part by a chance below ``e ** -UNLIKELY`` are refused."""
COUNT = 10**15
"""Of the counts of all labels together; fastText's tree takes this number for infinity."""
DEPTH = 128
"""Of the tree over the labels, which the fastText library descends by recursion."""
LARGEST = 1e12
"""Of the numbers in matrices, so that no sum of their products overflows a float32."""
DECODED, RATIO = 1 << 30, 64
"""Bytes of a quantised matrix when it is decoded: at most the first, or as many times the file as the second says."""

ENTRY = 10
"""Bytes of an entry of the dictionary besides its text: NUL, an int64, an int8."""
_ENTRY = re.compile(rb"([^\0]*+)(?:\0.{0,9}|\Z)", re.DOTALL)  # the last one may be cut off


class Quantised(NamedTuple):
    """A matrix as the centroids of its parts.

    Attributes:
        codes: uint8 (rows, parts).
        centroids: float32; of each part 256 centroids of `width` numbers, those of the last one may be shorter.
        dim: numbers of a row.
        width: numbers of a part.
        norms: float32 (rows, 1), what each row is multiplied by; None without.
    """

    codes: Array
    centroids: Array
    dim: int
    width: int
    norms: Array | None = None

    def decoded(self) -> Array:
        """Return the rows, float32 (rows, dim)."""
        parts = self.codes.shape[1]
        if parts * self.width == self.dim:  # all parts have one width, so a number is a row of one table for all
            tables = self.centroids.reshape(-1, self.width)
            numbers = self.codes + np.arange(parts, dtype=np.intp) * CENTROIDS
            rows: Array = tables.take(numbers.reshape(-1), axis=0).reshape(-1, self.dim)
        else:
            rows = np.empty((len(self.codes), self.dim), dtype=np.float32)
            for part in range(parts):
                begin = part * self.width
                size = min(self.width, self.dim - begin)
                table = self.centroids[begin * CENTROIDS : (begin + size) * CENTROIDS].reshape(CENTROIDS, size)
                rows[:, begin : begin + size] = table[self.codes[:, part]]
        if self.norms is not None:
            rows *= self.norms
        return rows


class Contents(NamedTuple):
    """The contents of a file, checked.

    Attributes:
        path: Path of the file.
        data: all its bytes; a mapping where they are many.
        dim: Dim of the vectors, 1 or more.
        minn: shortest character n-gram, in code points.
        maxn: longest; 0: none.
        word_ngrams: longest n-gram of words.
        loss: Loss, as fastText numbers them.
        bucket: hashed features.
        labels: their names with their prefix, in the order of the output; one or more.
        words: Number of known words.
        places: int64, where the known words and then the labels begin in the file.
        lengths: int64, their bytes.
        pruned: int32 (n, 2), the buckets that a pruned model has kept and their rows; None if it has all.
        tree: int32 (2, 2 * labels - 1), for each node its children, -1 for leaves, which come first; the root is last.
            None for other losses than `HS`.
        input: the rows of the words, then those of the buckets.
        output: a row for each label, or inner node.
    """

    path: str
    data: bytes | mmap.mmap
    dim: int
    minn: int
    maxn: int
    word_ngrams: int
    loss: int
    bucket: int
    labels: list[str]
    words: int
    places: Array
    lengths: Array
    pruned: Array | None
    tree: Array | None
    input: Array | Quantised
    output: Array | Quantised

    @property
    def bytes(self) -> Array:
        """Return the file's bytes as uint8."""
        return np.frombuffer(self.data, dtype=np.uint8)

    def check_unchanged(self) -> None:
        """Check a mapped file for its old length.

        A read beyond its end would kill the process.

        Raises:
            DataError: if it is not.
        """
        if isinstance(self.data, mmap.mmap) and (size := self.data.size()) != len(self.data):
            raise DataError(
                f"expected the fastText model of {len(self.data):,} bytes that was read, got {size:,} bytes: the file "
                "was written to while it was used; put a model in place by renaming it, and run again",
                path=self.path,
            )


def read(path: str) -> Contents:
    """Read a model file.

    Arrays that are not quantised stay in the file.

    Raises:
        ConfigError: if it is not the file of a supervised model, whole and consistent.
    """
    reader = _ModelReader(path)
    magic, version = reader.numbers("ii")
    if magic != MAGIC:
        raise ConfigError(f"{path}: expected a fastText model, got a file that does not begin as one")
    reader.check("version", "11 or 12", version, version in VERSIONS)
    dim, _, _, _, _, word_ngrams, loss, kind, bucket, minn, maxn, _, _ = reader.numbers("12id")
    if kind in (CBOW, SKIPGRAM):
        raise ConfigError(f"{path}: expected a supervised fastText model, got one of word vectors")
    if version == 11:
        maxn = 0  # supervised models had no n-grams of characters then, whatever they say
    reader.check("model", "3 (supervised)", kind, kind == SUPERVISED)
    reader.check("dim", "1 or more", dim, dim >= 1)
    for field, value in (("wordNgrams", word_ngrams), ("minn", minn), ("maxn", maxn)):
        reader.check(field, f"from 0 to {LONGEST_NGRAM}", value, 0 <= value <= LONGEST_NGRAM)
    reader.check("loss", "from 1 to 4", loss, HS <= loss <= OVA)
    least = int(maxn > 0 or word_ngrams > 1)  # what n-grams are hashed to
    reader.check("bucket", f"{least} or more", bucket, bucket >= least)

    size, n_words, n_labels, _, n_kept = reader.numbers("iiiqq")
    reader.check("number of words", "0 or more", n_words, n_words >= 0)
    reader.check("number of labels", "1 or more", n_labels, n_labels >= 1)
    reader.check("number of entries", f"{n_words + n_labels:,}, words and labels", size, size == n_words + n_labels)
    places, lengths, counts = _entries(reader, size, n_words)
    ngrams = (int(lengths[:n_words].sum()) + 2 * n_words) * maxn
    reader.check("maxn", f"such that words have at most {NGRAMS:,} n-grams", f"{ngrams:,}", ngrams <= NGRAMS)
    labels = _labels(reader, places[n_words:], lengths[n_words:])
    pruned = _pruned_buckets(reader, n_kept, bucket)

    quantised = reader.flag("mark of a quantised input")
    reader.check("input", "quantised, since it is pruned", "one that is not", quantised or pruned is None)
    input_ = _matrix(reader, "input", quantised, n_words + (bucket if pruned is None else len(pruned)), dim)
    quantised_output = reader.flag("mark of a quantised output")
    output = _matrix(reader, "output", quantised and quantised_output, n_labels, dim)
    length = len(reader.data)
    reader.check("file length", f"{reader.at:,} bytes, as its fields say", f"{length:,}", reader.at == length)
    return Contents(
        path=path,
        data=reader.data,
        dim=dim,
        minn=minn,
        maxn=maxn,
        word_ngrams=word_ngrams,
        loss=loss,
        bucket=bucket,
        labels=labels,
        words=n_words,
        places=places,
        lengths=lengths,
        pruned=pruned,
        tree=_tree(reader, counts[n_words:]) if loss == HS else None,
        input=input_,
        output=output,
    )


class _ModelReader:
    """Takes numbers and arrays from a file, one after the other."""

    def __init__(self, path: str) -> None:
        self.path, self.at = path, 0
        self.data = _opened(path)
        self.bytes = np.frombuffer(self.data, dtype=np.uint8)

    def check(self, field: str, expected: str, got: object, holds: bool) -> None:
        """Refuse the file unless something holds."""
        if not holds:
            self.refuse(field, expected, got)

    def refuse(self, field: str, expected: str, got: object) -> NoReturn:
        """Raise the error for a field."""
        raise ConfigError(
            f"{self.path}: {field}: expected {expected}, got {got}; this is not the whole and unchanged file of a "
            "fastText model: fetch it again, or train it with fastText 0.9"
        )

    def take(self, size: int) -> int:
        """Return the offset of the next bytes."""
        begin = self.at
        if size > len(self.data) - begin:
            raise ConfigError(
                f"{self.path}: expected a fastText model, got one that ends at byte {len(self.data):,}, where "
                f"{size:,} bytes from byte {begin:,} belong to it; fetch it again"
            )
        self.at += size
        return begin

    def numbers(self, form: str) -> tuple[Any, ...]:
        """Return numbers of a `struct` form."""
        return struct.unpack_from("<" + form, self.data, self.take(struct.calcsize("<" + form)))

    def flag(self, field: str) -> bool:
        """Return a byte of 0 or 1."""
        (value,) = self.numbers("B")
        self.check(field, "0 or 1", value, value <= 1)
        return bool(value)

    def array(self, dtype: str, *shape: int) -> Array:
        """Return an array of the file.

        No number of the shape is negative.
        """
        count = 1
        for size in shape:
            count *= size
        begin = self.take(count * np.dtype(dtype).itemsize)
        return np.frombuffer(self.data, dtype=dtype, count=count, offset=begin).reshape(shape)

    def floats(self, field: str, *shape: int) -> Array:
        """Return numbers of the file."""
        result = self.array("<f4", *shape)
        if result.size:
            low, high = float(result.min()), float(result.max())  # NaN where one is NaN
            within = low >= -LARGEST and high <= LARGEST
            self.check(field, f"numbers from {-LARGEST:g} to {LARGEST:g}", f"{low:g} to {high:g}", within)
        return result


def _opened(path: str) -> bytes | mmap.mmap:
    """Return all bytes of a file."""
    try:
        with open(path, "rb") as stream:
            if os.fstat(stream.fileno()).st_size > COPIED:
                return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            return stream.read()
    except (OSError, ValueError) as error:  # ValueError: it has become empty meanwhile
        raise ConfigError(f"{path}: expected a fastText model, got: {error}") from None


# --- words and labels -------------------------------------------------------------------------------------------------


def _entries(reader: _ModelReader, size: int, n_words: int) -> tuple[Array, Array, Array]:
    """Return offsets, lengths and counts of the words, then of the labels."""
    data, at = reader.data, reader.at
    if size * ENTRY > len(data) - at:
        reader.take(size * ENTRY)  # refuses
    listed = islice(_ENTRY.finditer(data, at), size)
    result = ((match.end(), hash(match[1])) for match in listed if match.end() == match.end(1) + ENTRY)
    entries = np.fromiter(result, np.dtype([("end", np.int64), ("hash", np.int64)]))
    if len(entries) < size:
        reader.take(len(data) + ENTRY)  # refuses
    begin, end_ = np.append(at, entries["end"][:-1]), entries["end"] - ENTRY
    reader.take(int(entries["end"][-1]) - reader.at)
    _check_unique(reader, begin, end_, entries["hash"])
    kinds = reader.bytes[end_ + ENTRY - 1]
    wrong = np.flatnonzero(kinds != (np.arange(size) >= n_words))
    if len(wrong):
        i = int(wrong[0])
        reader.refuse(f"entry {i:,}", "a word (0)" if i < n_words else "a label (1)", f"the kind {kinds[i]}")
    counts = np.zeros(size, np.int64)
    for i in range(8):
        counts |= reader.bytes[end_ + 1 + i].astype(np.int64) << (8 * i)
    low, high = int(counts.min()), int(counts.max())
    within = low >= 0 and high < COUNT
    reader.check("count of an entry", f"from 0 to {COUNT - 1:,}", f"{low if low < 0 else high:,}", within)
    total = float(counts[n_words:].sum(dtype=np.float64))
    reader.check("counts of labels", f"less than {COUNT:,} together", f"{total:,.0f}", total < COUNT)
    return begin, end_ - begin, counts


def _check_unique(reader: _ModelReader, places: Array, ends: Array, hashes: Array) -> None:
    """Check for repeated texts.

    In the library the last one would count, and the others lose their place.
    """
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    if not len(same):
        return
    texts: set[bytes] = set()
    for i in np.unique(np.concatenate([order[same], order[same + 1]])).tolist():
        text = reader.data[int(places[i]) : int(ends[i])]
        reader.check(f"entry {i:,}", "a word or label that is there once", repr(text), text not in texts)
        texts.add(text)


def _labels(reader: _ModelReader, places: Array, lengths: Array) -> list[str]:
    """Return the names of the labels.

    They differ also without their prefix.
    """
    results: list[str] = []
    for i, (place, length) in enumerate(zip(places.tolist(), lengths.tolist(), strict=True)):
        text = reader.data[place : place + length]
        reader.check(f"label {i}", "another text than that of a line's end", text, text != EOS)
        try:
            results.append(text.decode())
        except UnicodeDecodeError:
            reader.refuse(f"label {i}", "UTF-8", text)
    names = {label.removeprefix(PREFIX.decode()) for label in results}
    reader.check("labels", f"names that differ without {PREFIX.decode()}", "equal ones", len(names) == len(results))
    return results


def _tree(reader: _ModelReader, counts: Array) -> Array:
    """Return Huffman's tree over the labels, as fastText builds it."""
    n = len(counts)
    children = np.full((2, 2 * n - 1), -1, np.int32)
    weights, depths = [*counts.tolist(), *[COUNT] * (n - 1)], [0] * (2 * n - 1)
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
        children[:, i] = left, right = chosen
        weights[i] = weights[left] + weights[right]
        depths[i] = 1 + max(depths[left], depths[right])
    reader.check("counts of labels", f"a tree of at most {DEPTH} levels", depths[-1], depths[-1] <= DEPTH)
    return children


# --- numbers ----------------------------------------------------------------------------------------------------------


def _pruned_buckets(reader: _ModelReader, n: int, bucket: int) -> Array | None:
    """Return the kept buckets and their rows; None if the model is not pruned."""
    reader.check("pruneidx_size", "-1 (not pruned), 0 or more", n, n >= -1)
    if n < 0:
        return None
    reader.check("bucket", f"at most {PRUNED_BUCKETS:,} in a pruned model", bucket, bucket <= PRUNED_BUCKETS)
    pairs = reader.array("<i4", n, 2)
    for column, field, most in ((0, "pruned bucket", bucket), (1, "row of a pruned bucket", n)):
        result = np.sort(pairs[:, column])
        if n:
            low, high = int(result[0]), int(result[-1])
            reader.check(field, f"from 0 to {most - 1}", low if low < 0 else high, low >= 0 and high < most)
            twice = result[1:][result[1:] == result[:-1]]
            reader.check(field, "each once", f"{twice[:1]} twice", not len(twice))
    most = int(pairs[:, 0].max()) + 1 if n else bucket
    likely = not n or n * math.log(bucket / most) < UNLIKELY
    reader.check("bucket", f"about {most:,}, below which all {n:,} kept buckets are", f"{bucket:,}", likely)
    return pairs


def _matrix(reader: _ModelReader, name: str, quantised: bool, rows: int, dim: int) -> Array | Quantised:
    with_norms = quantised and reader.flag(f"mark of norms of the {name}")
    got = reader.numbers("qq")
    shape = f"{rows:,} rows of {dim:,} numbers, as words, labels and bucket say"
    reader.check(name, shape, f"{got[0]:,} of {got[1]:,}", got == (rows, dim))
    if not quantised:
        return reader.floats(name, rows, dim)
    most = max(DECODED, RATIO * len(reader.data))
    reader.check(name, f"at most {most:,} bytes when it is decoded", f"{4 * rows * dim:,}", 4 * rows * dim <= most)
    (size,) = reader.numbers("i")
    fits = size % rows == 0 and size >= rows if rows else size == 0
    reader.check(f"codes of the {name}", f"a multiple of {rows:,}", f"{size:,}", fits)
    codes = reader.array("u1", size)
    width, centroids = _quantiser(reader, name, size, rows, dim)
    result = Quantised(codes.reshape(rows, -1 if rows else 0), centroids, dim, width)
    if not with_norms:
        return result
    codes = reader.array("u1", rows)
    _, norms = _quantiser(reader, f"norms of the {name}", rows, rows, 1)
    largest = float(np.abs(norms).max()) * float(np.abs(centroids).max())
    reader.check(f"norms of the {name}", f"numbers up to {LARGEST:g}", f"{largest:g}", largest <= LARGEST)
    return result._replace(norms=norms[codes].reshape(rows, 1))


def _quantiser(reader: _ModelReader, name: str, size: int, rows: int, dim: int) -> tuple[int, Array]:
    """Return the width of a part, and the centroids.

    Codes of the given size stand for the rows.
    """
    got, parts, width, last = reader.numbers("4i")
    reader.check(f"quantiser of the {name}: dim", str(dim), got, got == dim)
    reader.check(f"quantiser of the {name}: dsub", "1 or more", width, width >= 1)
    expected = -(-dim // width)
    reader.check(f"quantiser of the {name}: nsubq", str(expected), parts, parts == expected)
    expected = dim - (parts - 1) * width
    reader.check(f"quantiser of the {name}: lastdsub", str(expected), last, last == expected)
    reader.check(f"codes of the {name}", f"{rows * parts:,}", f"{size:,}", size == rows * parts)
    return width, reader.floats(f"centroids of the {name}", dim * CENTROIDS)
