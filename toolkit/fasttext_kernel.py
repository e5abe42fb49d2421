"""Predictions of supervised fastText models, compiled: what the fastText library gives, several times as fast.

Source: fastText 0.9.2 (``dictionary.cc``, ``matrix.cc``, ``loss.cc``). A text's features are its words and their
character n-grams, hashed by FNV-1a over signed bytes; their rows are averaged; the output is a tree of binary decisions
(``hs``), softmax, or one sigmoid a label (``ova``, ``ns``). Three things are done otherwise, with the same result but
for the order of float32 additions:

- the rows of a known word and of its n-grams are added up once, when the model is loaded;
- which buckets a pruned model has kept is asked of a bitmap that stays in the cache, their rows lie in its order;
- the tree is descended best branch first, by products of probabilities; branches that cannot win are left out.
"""

import functools
import math
from typing import Any, NamedTuple

import numba
import numpy as np

from toolkit.compiling import jit
from toolkit.intrinsics import (
    LANES,
    add_lanes,
    dot_eights,
    float_of,
    high_product,
    keep,
    lowest_bit,
    offset,
    pointer,
)
from toolkit.intrinsics import (
    at as _at,
)
from toolkit.intrinsics import (
    eight_bytes as _eight_bytes,
)
from toolkit.intrinsics import (
    ones as _ones,
)
from toolkit.intrinsics import (
    put as _put,
)

Array = np.ndarray[Any, np.dtype[Any]]

SEPARATORS = b" \t\n\v\f\r\0"
PREFIX = b"__label__"
EOS = b"</s>"

HS, NS, SOFTMAX, OVA = 1, 2, 3, 4
"""Losses, as fastText numbers them."""

OFFSET, _PRIME = 2166136261, 16777619
EMPTY = 0xFFFFFFFFFFFFFFFF
_NGRAM = 116049371  # of word n-grams
_ALL_33 = 0x2121212121212121
_UPPER_HALF = 0x8080808080808080
_ROOM = 1 << 14  # rows that are noted before they are added up
_STEPS = 512  # of the table of sigmoids, from -8 to 8


def fnv(data: bytes) -> int:
    """FNV-1a as fastText has it, over signed bytes."""
    hash_ = OFFSET
    for byte in data:
        hash_ = ((hash_ ^ (byte if byte < 128 else byte - 256)) & 0xFFFFFFFF) * _PRIME & 0xFFFFFFFF
    return hash_


_LABEL_BYTES = tuple(PREFIX)
_EOS_BYTES = tuple(EOS)
_EOS_HASH = fnv(EOS) - (1 << 32 if fnv(EOS) >= 1 << 31 else 0)


_inline = functools.partial(numba.njit, inline="always")


@_inline
def step(hash_: Any, byte: Any) -> Any:
    """FNV-1a, of signed bytes."""
    return numba.uint32(numba.uint32(hash_ ^ numba.uint32(numba.int32(byte))) * numba.uint32(_PRIME))


@_inline
def mixed(hash_: Any, eight: Any) -> Any:
    """A hash of words for the table of known words, taken on by up to 8 bytes; the upper bits are the good ones."""
    mix = (numba.uint64(hash_) ^ numba.uint64(eight)) * numba.uint64(0x9E3779B97F4A7C15)
    return mix ^ (mix >> numba.uint64(32))


@_inline
def _modulo(value: Any, magic: Any, divisor: Any) -> Any:
    """Without a division (Granlund and Montgomery 1994); magic is 2^64 // divisor + 1, value and divisor are uint32."""
    quotient = high_product(numba.uint64(value), magic)
    return numba.uint32(numba.uint32(value) - numba.uint32(quotient) * numba.uint32(divisor))


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
        magic: see `_modulo`.
        is_pruned: whether only some buckets have rows.
        is_summed: whether the rows of known words hold those of their n-grams.
        eos: the word that ends a line, -1 if it is not known.
        known: rows of the known words.
        features: how many rows each is the sum of.
        hashed: rows of the buckets (that were kept).
        bitmap: a bit for each bucket: whether it was kept.
        ranks: for each word of the bitmap, the kept buckets before it.
        table: (`mixed` >> 32) << 32 | word, found by open addressing from that half's low bits.
        filter: a bit for each value of that half's low bits that a known word has; stays in the nearest cache.
        first: the first 8 bytes of each known word.
        lengths: of the known words, bytes.
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
    bucket: Any
    magic: Any
    is_pruned: bool
    is_summed: bool
    eos: int
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


# --- features ---------------------------------------------------------------------------------------------------------


@_inline
def _word(
    table: Any, mask: Any, filter: Any, filter_mask: Any, firsts: Any, lengths: Any, places: Any, file: Any, masks: Any,
    text: Any, start: Any, length: Any,
) -> Any:  # fmt: skip
    """The known word that these bytes are, -1 if none; and all its bytes' bits together."""
    first = _eight_bytes(text, start) & _at(masks, min(length, 8))
    bits = first
    mix = mixed(length, first)
    for j in range(8, length, 8):
        eight = _eight_bytes(text, start + j) & _at(masks, min(length - j, 8))
        bits |= eight
        mix = mixed(mix, eight)
    upper = mix >> numba.uint64(32)
    found = numba.int64(-1)
    maybe = numba.int64(upper) & filter_mask
    if (_at(filter, maybe >> 6) >> numba.uint64(maybe & 63)) & numba.uint64(1) == 0:
        return found, bits
    slot = numba.int64(upper) & mask
    while True:
        entry = _at(table, slot)
        if entry == numba.uint64(EMPTY):
            break
        if entry >> numba.uint64(32) == upper:
            word = numba.int64(entry & numba.uint64(0xFFFFFFFF))
            if _at(firsts, word) == first and _at(lengths, word) == length:
                same = True
                place = _at(places, word)
                for j in range(8, length):
                    if _at(file, place + j) != _at(text, start + j):
                        same = False
                        break
                if same:
                    found = word
                    break
        slot = (slot + 1) & mask
    return found, bits


@_inline
def _gather(hash_: Any, magic: Any, bucket: Any, bitmap: Any, is_pruned: Any, rows: Any, n: Any) -> Any:
    """Notes the bucket of a hash, if it has a row; how many are noted then."""
    found = _modulo(hash_, magic, bucket)
    _put(rows, n, numba.int32(found))
    if not is_pruned:
        return n + 1
    bits = _at(bitmap, numba.int64(found >> numba.uint32(6)))
    return n + numba.int64((bits >> numba.uint64(found & numba.uint32(63))) & numba.uint64(1))


@_inline
def _gather_ngrams(
    text: Any, start: Any, end: Any, first: Any, last: Any, minn: Any, maxn: Any, magic: Any, bucket: Any, bitmap: Any,
    is_pruned: Any, rows: Any, n: Any,
) -> Any:  # fmt: skip
    """Notes the character n-grams, from those that begin at first up to last, of a word that has its < and >."""
    for a in range(first, last):
        if _at(text, a) < -64:  # inside a code point
            continue
        hash_ = numba.uint32(OFFSET)
        j = a
        for size in range(1, maxn + 1):
            if j >= end:
                break
            hash_ = step(hash_, _at(text, j))
            j += 1
            while j < end and _at(text, j) < -64:
                hash_ = step(hash_, _at(text, j))
                j += 1
            if size >= minn and not (size == 1 and (a == start or j == end)):
                n = _gather(hash_, magic, bucket, bitmap, is_pruned, rows, n)
    return n


@_inline
def _gather_ascii(
    text: Any, start: Any, end: Any, first: Any, last: Any, minn: Any, maxn: Any, magic: Any, bucket: Any, bitmap: Any,
    is_pruned: Any, rows: Any, n: Any,
) -> Any:  # fmt: skip
    """As `_gather_ngrams`, where each byte is a code point; written out for n-grams of 2 to 4, those of lid.176."""
    if minn == 2 and maxn == 4 and is_pruned:
        whole = min(last, end - 3)
        for a in range(first, whole):
            hash_ = step(step(numba.uint32(OFFSET), _at(text, a)), _at(text, a + 1))
            n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
            hash_ = step(hash_, _at(text, a + 2))
            n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
            hash_ = step(hash_, _at(text, a + 3))
            n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
        for a in range(max(first, whole), min(last, end - 1)):
            hash_ = step(step(numba.uint32(OFFSET), _at(text, a)), _at(text, a + 1))
            n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
            if a + 2 < end:
                n = _gather(step(hash_, _at(text, a + 2)), magic, bucket, bitmap, True, rows, n)
        return n
    for a in range(first, last):
        hash_ = numba.uint32(OFFSET)
        behind = min(a + maxn, end)
        least = a + max(minn, 2 if a == start or a + 1 == end else 1) - 1
        for j in range(a, behind):
            hash_ = step(hash_, _at(text, j))
            if j >= least:
                n = _gather(hash_, magic, bucket, bitmap, is_pruned, rows, n)
    return n


@_inline
def _gather_word_ngrams(
    hash_: Any, words: Any, longest: Any, hashes: Any, magic: Any, bucket: Any, bitmap: Any, ranks: Any,
    is_pruned: Any, rows: Any, n: Any,
) -> Any:  # fmt: skip
    """Notes the n-grams of words that end with one; `hashes` has those of the n-grams that it continues."""
    begin = n
    for place in range(min(words, longest - 1)):
        joined = _at(hashes, place) * numba.uint64(_NGRAM) + numba.uint64(numba.int64(hash_))
        _put(hashes, place, joined)
        short = numba.uint32(joined % numba.uint64(bucket))
        n = _gather(short, magic, bucket, bitmap, is_pruned, rows, n)
    _put(hashes, words % (longest - 1), numba.uint64(numba.int64(hash_)))
    if is_pruned:
        _to_rows(bitmap, ranks, rows, begin, n)
    return n


@_inline
def _to_rows(bitmap: Any, ranks: Any, rows: Any, begin: Any, end: Any) -> None:
    """From buckets to the rows that a pruned model has for them."""
    for q in range(begin, end):
        bucket = numba.uint32(_at(rows, q))
        place = numba.int64(bucket >> numba.uint32(6))
        below = (numba.uint64(1) << numba.uint64(bucket & numba.uint32(63))) - numba.uint64(1)
        rank = numba.uint64(_at(ranks, place)) + _ones(_at(bitmap, place) & below)
        _put(rows, q, numba.int32(rank))


@_inline
def _add(matrix: Any, rows: Any, n: Any, dim: Any, out: Any) -> None:
    """Adds rows of a matrix."""
    done = 0
    while done + LANES <= dim:
        add_lanes(matrix, rows, n, dim, done, out)
        done += LANES
    if done < dim:
        for i in range(n):
            row = numba.int64(_at(rows, i)) * dim
            for d in range(done, dim):
                _put(out, d, _at(out, d) + _at(matrix, row + d))


@_inline
def _dot(hidden: Any, matrix: Any, row: Any, dim: Any) -> Any:
    """The product of two rows, in the same order on every machine."""
    total = dot_eights(hidden, matrix, row, dim >> 3)
    for d in range(dim & ~7, dim):
        total += _at(hidden, d) * _at(matrix, row + d)
    return total


@_inline
def _exp(x: Any) -> Any:
    """e^x to 1e-12: the range cut to half a binary digit, then Taylor's series, in pairs that do not wait."""
    y = min(max(numba.float64(x), -80.0), 80.0)
    k = math.floor(y * 1.4426950408889634 + 0.5)
    r = (y - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
    middle = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800)
    return (low + r4 * (middle + r4 * high)) * float_of(numba.int64(k + 1023) << numba.int64(52))


# --- outputs ----------------------------------------------------------------------------------------------------------


@_inline
def _insert(label: Any, prob: Any, n: Any, k: Any, labels: Any, probs: Any, first: Any) -> Any:
    """Puts a label among the k best, which are sorted and stand from `first`; how many there are then."""
    if n == k and prob <= _at(probs, first + k - 1):
        return n
    at = first + (n if n < k else k - 1)
    while at > first and _at(probs, at - 1) < prob:
        _put(probs, at, _at(probs, at - 1))
        _put(labels, at, _at(labels, at - 1))
        at -= 1
    _put(probs, at, prob)
    _put(labels, at, numba.int32(label))
    return min(n + 1, k)


@_inline
def _best_of_tree(
    lefts: Any, rights: Any, output: Any, dim: Any, n: Any, hidden: Any, threshold: Any, nodes: Any, scores: Any,
    k: Any, labels: Any, probs: Any, first_of_row: Any,
) -> None:  # fmt: skip
    """The most probable leaves. Each decision's probability is p + 1e-5, as fastText has it."""
    small = numba.float32(1e-5)
    limit = threshold + small
    found = 0
    _put(nodes, 0, numba.int32(2 * n - 2))
    _put(scores, 0, numba.float32(1))
    waiting = 1
    while waiting > 0:
        waiting -= 1
        node = numba.int64(_at(nodes, waiting))
        score = _at(scores, waiting)
        if score < limit:
            continue
        if node < n:
            found = _insert(node, score, found, k, labels, probs, first_of_row)
            if found == k:
                limit = max(limit, _at(probs, first_of_row + k - 1))
            continue
        p = numba.float32(1.0 / (1.0 + _exp(-_dot(hidden, output, (node - n) * dim, dim))))
        left = score * (numba.float32(1) - p + small)
        right = score * (p + small)
        first, second, low, high = _at(rights, node), _at(lefts, node), right, left
        if right > left:
            first, second, low, high = second, first, left, right
        if low >= limit:
            _put(nodes, waiting, first)
            _put(scores, waiting, low)
            waiting += 1
        if high >= limit:
            _put(nodes, waiting, second)
            _put(scores, waiting, high)
            waiting += 1


@_inline
def _best_of_all(
    loss: Any, output: Any, sigmoid: Any, dim: Any, n: Any, hidden: Any, threshold: Any, values: Any, k: Any,
    labels: Any, probs: Any, first_of_row: Any,
) -> None:  # fmt: skip
    """The most probable labels where each has an output of its own."""
    for i in range(n):
        _put(values, i, _dot(hidden, output, i * dim, dim))
    if loss == SOFTMAX:
        highest = _at(values, 0)
        for i in range(1, n):
            highest = max(highest, _at(values, i))
        total = numba.float32(0)
        for i in range(n):
            _put(values, i, numba.float32(_exp(_at(values, i) - highest)))
            total += _at(values, i)
        for i in range(n):
            _put(values, i, _at(values, i) / total)
    else:
        for i in range(n):
            x = _at(values, i)
            if x < -8:
                _put(values, i, numba.float32(0))
            elif x > 8:
                _put(values, i, numba.float32(1))
            else:
                _put(values, i, _at(sigmoid, numba.int64((x + 8) * _STEPS / 16)))
    found = 0
    for i in range(n):
        if _at(values, i) >= threshold:
            found = _insert(i, _at(values, i) + numba.float32(1e-5), found, k, labels, probs, first_of_row)


@_inline
def _end_of_word(text: Any, start: Any, end: Any, separators: Any) -> Any:
    """Where the next separator is; looks at 8 bytes at once for one below 33, as all separators are."""
    found = start
    while found < end:
        eight = _eight_bytes(text, found)
        low = (eight - numba.uint64(_ALL_33)) & ~eight & numba.uint64(_UPPER_HALF)
        if low == 0:
            found += 8
            continue
        found += lowest_bit(low) >> 3
        if _at(separators, numba.int64(_at(text, found)) + 128) == 1:
            break
        found += 1
    return min(found, end)


@_inline
def _begins(text: Any, start: Any, length: Any, word: Any) -> Any:
    """Whether the bytes begin with a word, given as a tuple of bytes."""
    if length < len(word):
        return False
    same = True
    for j in range(len(word)):
        same = same and _at(text, start + j) == word[j]
    return same


# --- whole texts ------------------------------------------------------------------------------------------------------


@jit
def predict(model: Any, text: Any, starts: Any, ends: Any, threshold: Any, labels: Any, probs: Any) -> None:
    """The best labels of each stretch of a text.

    Args:
        model: a `Model`.
        text: int8, with at least 8 bytes behind the last stretch, and around each stretch one separator; bytes around
            words are changed and put back.
        starts: int64, offset of each stretch.
        ends: int64, exclusive.
        threshold: float32; only labels with at least this probability.
        labels: int32 (stretches, k), filled with -1; what is found, best first.
        probs: float32, likewise.
    """
    table, mask = pointer(model.table), model.table.shape[0] - 1
    filter_, filter_mask = pointer(model.filter), 64 * model.filter.shape[0] - 1
    firsts, lengths, places = pointer(model.first), pointer(model.lengths), pointer(model.places)
    file, masks, separators = pointer(model.file), pointer(model.masks), pointer(model.separators)
    bitmap, ranks, is_pruned, is_summed = pointer(model.bitmap), pointer(model.ranks), model.is_pruned, model.is_summed
    of_known, of_hashed, features_of = pointer(model.known), pointer(model.hashed), pointer(model.features)
    lefts, rights, output, sigmoid = (
        pointer(model.left), pointer(model.right), pointer(model.output), pointer(model.sigmoid)
    )  # fmt: skip
    dim, minn, maxn, word_ngrams, eos = model.dim, model.minn, model.maxn, model.word_ngrams, model.eos
    magic, bucket, loss, n_labels, k = model.magic, model.bucket, model.loss, model.labels, labels.shape[1]
    bytes_, found_labels, found_probs = pointer(text), pointer(labels), pointer(probs)
    sums = np.zeros(dim, np.float32)
    tree_nodes, tree_values = np.zeros(n_labels + 2, np.int32), np.zeros(n_labels + 2, np.float32)
    known_rows, hashed_rows = np.zeros(_ROOM, np.int32), np.zeros(_ROOM, np.int32)
    word_hashes = np.zeros(word_ngrams, np.uint64)
    piece = _ROOM // (2 * maxn) if maxn else _ROOM
    hidden, nodes, values = pointer(sums), pointer(tree_nodes), pointer(tree_values)
    known, hashed, hashes = pointer(known_rows), pointer(hashed_rows), pointer(word_hashes)
    for i in range(starts.shape[0]):
        at, end = starts[i], ends[i]
        features = n_known = n_hashed = n_words = numba.int64(0)
        ended, empty = False, True
        for d in range(dim):
            _put(hidden, d, numba.float32(0))
        while True:
            while at < end and _at(separators, numba.int64(_at(bytes_, at)) + 128) == 1:
                at += 1
            if at >= end:
                break
            start, empty = at, False
            at = _end_of_word(bytes_, at, end, separators)
            length = at - start
            if _at(bytes_, start) == _LABEL_BYTES[0] and _begins(bytes_, start, length, _LABEL_BYTES):
                continue
            word, bits = _word(
                table, mask, filter_, filter_mask, firsts, lengths, places, file, masks, bytes_, start, length
            )
            if n_known + 2 > _ROOM:
                _add(of_known, known, n_known, dim, hidden)
                n_known = numba.int64(0)
            if word >= 0:
                _put(known, n_known, numba.int32(word))
                n_known += 1
                features += _at(features_of, word)
            ended = word == eos if word >= 0 else length == 4 and _begins(bytes_, start, length, _EOS_BYTES)
            if not ended and maxn > 0 and not (word >= 0 and is_summed):
                before, behind = _at(bytes_, start - 1), _at(bytes_, at)
                _put(bytes_, start - 1, numba.int8(60))
                _put(bytes_, at, numba.int8(62))
                for first in range(start - 1, at + 1, piece):
                    if n_hashed + maxn * piece > _ROOM:
                        _add(of_hashed, hashed, n_hashed, dim, hidden)
                        n_hashed = numba.int64(0)
                    last = min(first + piece, at + 1)
                    begin = n_hashed
                    if bits & numba.uint64(_UPPER_HALF) == 0:
                        n_hashed = _gather_ascii(
                            bytes_, start - 1, at + 1, first, last, minn, maxn, magic, bucket, bitmap, is_pruned,
                            hashed, n_hashed,
                        )  # fmt: skip
                    else:
                        n_hashed = _gather_ngrams(
                            bytes_, start - 1, at + 1, first, last, minn, maxn, magic, bucket, bitmap, is_pruned,
                            hashed, n_hashed,
                        )  # fmt: skip
                    if is_pruned:
                        _to_rows(bitmap, ranks, hashed, begin, n_hashed)
                    features += n_hashed - begin
                _put(bytes_, start - 1, before)
                _put(bytes_, at, behind)
            if word_ngrams > 1:
                hash_ = numba.uint32(OFFSET)
                for j in range(start, at):
                    hash_ = step(hash_, _at(bytes_, j))
                if n_hashed + word_ngrams > _ROOM:
                    _add(of_hashed, hashed, n_hashed, dim, hidden)
                    n_hashed = numba.int64(0)
                n = _gather_word_ngrams(
                    numba.int32(hash_), n_words, word_ngrams, hashes, magic, bucket, bitmap, ranks, is_pruned, hashed,
                    n_hashed,
                )  # fmt: skip
                features += n - n_hashed
                n_hashed = n
                n_words += 1
            if ended:
                break
        if empty:  # fastText would predict from its end of the line alone
            continue
        if not ended:  # fastText's own end of the line
            if word_ngrams > 1:
                if n_hashed + word_ngrams > _ROOM:
                    _add(of_hashed, hashed, n_hashed, dim, hidden)
                    n_hashed = numba.int64(0)
                n = _gather_word_ngrams(
                    numba.int32(_EOS_HASH), n_words, word_ngrams, hashes, magic, bucket, bitmap, ranks, is_pruned,
                    hashed, n_hashed,
                )  # fmt: skip
                features += n - n_hashed
                n_hashed = n
            if eos >= 0:
                _put(known, n_known, numba.int32(eos))
                n_known += 1
                features += _at(features_of, eos)
        if features == 0:
            continue
        _add(of_known, known, n_known, dim, hidden)
        _add(of_hashed, hashed, n_hashed, dim, hidden)
        share = numba.float32(1.0 / features)
        for d in range(dim):
            _put(hidden, d, _at(hidden, d) * share)
        if loss == HS:
            _best_of_tree(
                lefts, rights, output, dim, n_labels, hidden, threshold, nodes, values, k, found_labels, found_probs,
                i * k,
            )  # fmt: skip
        else:
            _best_of_all(
                loss, output, sigmoid, dim, n_labels, hidden, threshold, values, k, found_labels, found_probs, i * k
            )  # fmt: skip
    keep(sums)
    keep(known_rows)
    keep(hashed_rows)
    keep(word_hashes)
    keep(tree_nodes)
    keep(tree_values)


@jit
def sum_words(model: Any, known: Any, features: Any) -> None:
    """The rows of each known word and of its n-grams, added up.

    Args:
        model: whose `known` rows are those of the words alone.
        known: float32 (words, dim), zero; what is found.
        features: int32 (words); how many rows each sum is of.
    """
    longest = 0
    for i in range(known.shape[0]):
        longest = max(longest, model.lengths[i])
    word = np.zeros(longest + 16, np.int8)
    ngrams = np.zeros((longest + 2) * model.maxn + 1, np.int32)
    text, rows, bitmap, ranks = pointer(word), pointer(ngrams), pointer(model.bitmap), pointer(model.ranks)
    hashed, sums = pointer(model.hashed), pointer(known)
    for i in range(known.shape[0]):
        for d in range(model.dim):
            known[i, d] = model.known[i * model.dim + d]
        features[i] = 1
        if i == model.eos:
            continue
        length = model.lengths[i]
        word[0] = 60
        for j in range(length):
            word[1 + j] = model.file[model.places[i] + j]
        word[1 + length] = 62
        n = _gather_ngrams(
            text, 0, length + 2, 0, length + 2, model.minn, model.maxn, model.magic, model.bucket, bitmap,
            model.is_pruned, rows,
            numba.int64(0),
        )  # fmt: skip
        if model.is_pruned:
            _to_rows(bitmap, ranks, rows, numba.int64(0), n)
        _add(hashed, rows, n, model.dim, offset(sums, i * model.dim))
        features[i] += n
    keep(ngrams)
