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
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from toolkit.compiling import jit

Array = np.ndarray[Any, np.dtype[Any]]

SEPARATORS = b" \t\n\v\f\r\0"
PREFIX = b"__label__"
EOS = b"</s>"

HS, NS, SOFTMAX, OVA = 1, 2, 3, 4
"""Losses, as fastText numbers them."""

OFFSET, _PRIME = 2166136261, 16777619
EMPTY = 0xFFFFFFFFFFFFFFFF
_NGRAM = 116049371  # of word n-grams
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


# Array access without numba's look at negative indexes, which costs a third of the time.


@intrinsic
def _at(_: Any, array: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = cgutils.gep_inbounds(builder, made.data, arguments[1])
        return context.unpack_value(builder, signature.args[0].dtype, pointer)

    return array.dtype(array, index), codegen


@intrinsic
def _put(_: Any, array: Any, index: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = cgutils.gep_inbounds(builder, made.data, arguments[1])
        context.pack_value(builder, signature.args[0].dtype, arguments[2], pointer)
        return context.get_dummy_value()

    return types.void(array, index, array.dtype), codegen


@intrinsic
def _eight_bytes(_: Any, array: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = cgutils.gep_inbounds(builder, made.data, arguments[1])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(array, index), codegen


@intrinsic
def _ones(_: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@_inline
def step(hash_: Any, byte: Any) -> Any:
    """FNV-1a, of signed bytes."""
    return numba.uint32(numba.uint32(hash_ ^ numba.uint32(numba.int32(byte))) * numba.uint32(_PRIME))


@_inline
def _modulo(value: Any, magic: Any, divisor: Any) -> Any:
    """Without a division (Lemire et al. 2019, arXiv:1902.01961); magic is 2^64 // divisor + 1."""
    low = numba.uint64(magic * numba.uint64(value))
    high = (low >> numba.uint64(32)) * numba.uint64(divisor)
    rest = ((low & numba.uint64(0xFFFFFFFF)) * numba.uint64(divisor)) >> numba.uint64(32)
    return numba.uint32((high + rest) >> numba.uint64(32))


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
        table: hash << 32 | word, found by open addressing from the hash's low bits.
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
    table: Any,
    firsts: Any,
    lengths: Any,
    places: Any,
    file: Any,
    masks: Any,
    text: Any,
    start: Any,
    length: Any,
    hash_: Any,
) -> Any:
    """The known word that these bytes are, -1 if none."""
    found = numba.int64(-1)
    first = _eight_bytes(text, start) & _at(masks, min(length, 8))
    mask = numba.int64(table.shape[0] - 1)
    slot = numba.int64(hash_) & mask
    while True:
        entry = _at(table, slot)
        if entry == numba.uint64(EMPTY):
            break
        if numba.uint32(entry >> numba.uint64(32)) == hash_:
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
    return found


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
    text: Any,
    start: Any,
    end: Any,
    minn: Any,
    maxn: Any,
    magic: Any,
    bucket: Any,
    bitmap: Any,
    is_pruned: Any,
    rows: Any,
    n: Any,
) -> Any:
    """Notes the character n-grams of a word that stands between < and > in the text."""
    for a in range(start, end):
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
    text: Any,
    start: Any,
    end: Any,
    minn: Any,
    maxn: Any,
    magic: Any,
    bucket: Any,
    bitmap: Any,
    is_pruned: Any,
    rows: Any,
    n: Any,
) -> Any:
    """As `_gather_ngrams`, where each byte is a code point; written out for n-grams of 2 to 4, those of lid.176."""
    if minn == 2 and maxn == 4 and is_pruned:
        for a in range(start, end - 1):
            hash_ = step(step(numba.uint32(OFFSET), _at(text, a)), _at(text, a + 1))
            n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
            if a + 2 < end:
                hash_ = step(hash_, _at(text, a + 2))
                n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
                if a + 3 < end:
                    hash_ = step(hash_, _at(text, a + 3))
                    n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
        return n
    for a in range(start, end):
        hash_ = numba.uint32(OFFSET)
        last = min(a + maxn, end)
        least = a + max(minn, 2 if a == start or a + 1 == end else 1) - 1
        for j in range(a, last):
            hash_ = step(hash_, _at(text, j))
            if j >= least:
                n = _gather(hash_, magic, bucket, bitmap, is_pruned, rows, n)
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


@jit
def _add_16(matrix: Any, rows: Any, n: Any, out: Any) -> None:
    """Adds rows of 16 numbers, which stay in registers."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = a8 = a9 = a10 = a11 = a12 = a13 = a14 = a15 = numba.float32(0)
    for i in range(n):
        r = numba.int64(_at(rows, i)) * 16
        a0 += _at(matrix, r)
        a1 += _at(matrix, r + 1)
        a2 += _at(matrix, r + 2)
        a3 += _at(matrix, r + 3)
        a4 += _at(matrix, r + 4)
        a5 += _at(matrix, r + 5)
        a6 += _at(matrix, r + 6)
        a7 += _at(matrix, r + 7)
        a8 += _at(matrix, r + 8)
        a9 += _at(matrix, r + 9)
        a10 += _at(matrix, r + 10)
        a11 += _at(matrix, r + 11)
        a12 += _at(matrix, r + 12)
        a13 += _at(matrix, r + 13)
        a14 += _at(matrix, r + 14)
        a15 += _at(matrix, r + 15)
    sums = (a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15)
    for d in range(16):
        out[d] += sums[d]


@jit
def _add(matrix: Any, rows: Any, n: Any, dim: Any, out: Any) -> None:
    """Adds rows of a matrix."""
    if dim == 16:
        _add_16(matrix, rows, n, out)
        return
    for i in range(n):
        r = numba.int64(_at(rows, i)) * dim
        for d in range(dim):
            out[d] += _at(matrix, r + d)


@_inline
def _dot(hidden: Any, matrix: Any, row: Any, dim: Any) -> Any:
    """The product of two rows, in eight sums whatever the machine has registers for."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = numba.float32(0)
    d = 0
    while d + 8 <= dim:
        s0 += _at(hidden, d) * _at(matrix, row + d)
        s1 += _at(hidden, d + 1) * _at(matrix, row + d + 1)
        s2 += _at(hidden, d + 2) * _at(matrix, row + d + 2)
        s3 += _at(hidden, d + 3) * _at(matrix, row + d + 3)
        s4 += _at(hidden, d + 4) * _at(matrix, row + d + 4)
        s5 += _at(hidden, d + 5) * _at(matrix, row + d + 5)
        s6 += _at(hidden, d + 6) * _at(matrix, row + d + 6)
        s7 += _at(hidden, d + 7) * _at(matrix, row + d + 7)
        d += 8
    while d < dim:
        s0 += _at(hidden, d) * _at(matrix, row + d)
        d += 1
    return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))


@_inline
def _exp(x: Any) -> Any:
    """e^x to 1e-12: the range cut to half a binary digit, then Taylor's series."""
    y = min(max(numba.float64(x), -80.0), 80.0)
    k = math.floor(y * 1.4426950408889634 + 0.5)
    r = (y - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
    p = 1.0 + r * (1 / 10)
    for n in range(9, 0, -1):
        p = 1.0 + r * p / n
    return math.ldexp(p, int(k))


# --- outputs ----------------------------------------------------------------------------------------------------------


@_inline
def _insert(label: Any, prob: Any, n: Any, labels: Any, probs: Any) -> Any:
    """Puts a label among the best, which are sorted; how many there are then."""
    k = labels.shape[0]
    if n == k and prob <= probs[k - 1]:
        return n
    at = n if n < k else k - 1
    while at > 0 and probs[at - 1] < prob:
        probs[at] = probs[at - 1]
        labels[at] = labels[at - 1]
        at -= 1
    probs[at] = prob
    labels[at] = label
    return min(n + 1, k)


@jit
def _best_of_tree(model: Any, hidden: Any, threshold: Any, nodes: Any, scores: Any, labels: Any, probs: Any) -> None:
    """The most probable leaves. Each decision's probability is p + 1e-5, as fastText has it."""
    output, lefts, rights, dim = model.output, model.left, model.right, model.dim
    small = numba.float32(1e-5)
    limit = threshold + small
    k = labels.shape[0]
    found = 0
    nodes[0] = 2 * model.labels - 2
    scores[0] = numba.float32(1)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        node = numba.int64(nodes[waiting])
        score = scores[waiting]
        if score < limit:
            continue
        if node < model.labels:
            found = _insert(node, score, found, labels, probs)
            if found == k:
                limit = max(limit, probs[k - 1])
            continue
        row = (node - model.labels) * dim
        p = numba.float32(1.0 / (1.0 + _exp(-_dot(hidden, output, row, dim))))
        left = score * (numba.float32(1) - p + small)
        right = score * (p + small)
        first, second, low, high = rights[node], lefts[node], right, left
        if right > left:
            first, second, low, high = lefts[node], rights[node], left, right
        if low >= limit:
            nodes[waiting] = first
            scores[waiting] = low
            waiting += 1
        if high >= limit:
            nodes[waiting] = second
            scores[waiting] = high
            waiting += 1


@jit
def _best_of_all(model: Any, hidden: Any, threshold: Any, values: Any, labels: Any, probs: Any) -> None:
    """The most probable labels where each has an output of its own."""
    n, dim, output = model.labels, model.dim, model.output
    for i in range(n):
        values[i] = _dot(hidden, output, i * dim, dim)
    if model.loss == SOFTMAX:
        highest = values[0]
        for i in range(1, n):
            highest = max(highest, values[i])
        total = numba.float32(0)
        for i in range(n):
            values[i] = numba.float32(_exp(values[i] - highest))
            total += values[i]
        for i in range(n):
            values[i] /= total
    else:
        for i in range(n):
            x = values[i]
            if x < -8:
                values[i] = numba.float32(0)
            elif x > 8:
                values[i] = numba.float32(1)
            else:
                values[i] = model.sigmoid[numba.int64((x + 8) * _STEPS / 16)]
    found = 0
    for i in range(n):
        if values[i] >= threshold:
            found = _insert(i, values[i] + numba.float32(1e-5), found, labels, probs)


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
    # Arrays are taken out of the tuple once: each time costs the counting of references.
    table, firsts, lengths, places = model.table, model.first, model.lengths, model.places
    file, masks, separators = model.file, model.masks, model.separators
    bitmap, ranks, is_pruned, is_summed = model.bitmap, model.ranks, model.is_pruned, model.is_summed
    of_known, of_hashed, features_of = model.known, model.hashed, model.features
    dim, minn, maxn, word_ngrams, eos = model.dim, model.minn, model.maxn, model.word_ngrams, model.eos
    magic, bucket = model.magic, model.bucket
    hidden = np.zeros(dim, np.float32)
    nodes = np.zeros(model.labels + 2, np.int32)
    values = np.zeros(model.labels + 2, np.float32)
    known = np.zeros(1 << 10, np.int32)
    hashed = np.zeros(1 << 14, np.int32)
    hashes = np.zeros(1 << 10, np.int32)
    for i in range(starts.shape[0]):
        at, end = starts[i], ends[i]
        features = n_known = n_hashed = n_words = numba.int64(0)
        ended, empty = False, True
        for d in range(dim):
            hidden[d] = numba.float32(0)
        while True:
            while at < end and _at(separators, numba.int64(_at(text, at)) + 128) == 1:
                at += 1
            if at >= end:
                break
            start, empty = at, False
            hash_ = numba.uint32(OFFSET)
            bits = numba.int8(0)
            while at < end:
                byte = _at(text, at)
                if _at(separators, numba.int64(byte) + 128) == 1:
                    break
                bits |= byte
                hash_ = step(hash_, byte)
                at += 1
            length = at - start
            if _at(text, start) == _LABEL_BYTES[0] and _begins(text, start, length, _LABEL_BYTES):
                continue
            word = _word(table, firsts, lengths, places, file, masks, text, start, length, hash_)
            if n_known + 2 > known.shape[0]:
                _add(of_known, known, n_known, dim, hidden)
                n_known = numba.int64(0)
            room = maxn * (length + 2) + word_ngrams + 1
            if n_hashed + room > hashed.shape[0]:
                _add(of_hashed, hashed, n_hashed, dim, hidden)
                n_hashed = numba.int64(0)
                if room > hashed.shape[0]:
                    hashed = np.zeros(room, np.int32)
            if n_words + 2 > hashes.shape[0]:
                longer = np.zeros(2 * hashes.shape[0], np.int32)
                longer[: hashes.shape[0]] = hashes
                hashes = longer
            hashes[n_words] = numba.int32(hash_)
            n_words += 1
            if word >= 0:
                _put(known, n_known, numba.int32(word))
                n_known += 1
                features += _at(features_of, word)
            ended = word == eos if word >= 0 else length == 4 and _begins(text, start, length, _EOS_BYTES)
            if not ended and maxn > 0 and not (word >= 0 and is_summed):
                before, behind = _at(text, start - 1), _at(text, at)
                _put(text, start - 1, numba.int8(60))
                _put(text, at, numba.int8(62))
                begin = n_hashed
                if bits >= 0:
                    n_hashed = _gather_ascii(
                        text, start - 1, at + 1, minn, maxn, magic, bucket, bitmap, is_pruned, hashed, n_hashed
                    )
                else:
                    n_hashed = _gather_ngrams(
                        text, start - 1, at + 1, minn, maxn, magic, bucket, bitmap, is_pruned, hashed, n_hashed
                    )
                _put(text, start - 1, before)
                _put(text, at, behind)
                if is_pruned:
                    _to_rows(bitmap, ranks, hashed, begin, n_hashed)
                features += n_hashed - begin
            if ended:
                break
        if empty:  # fastText would predict from its end of the line alone
            continue
        if not ended:  # fastText's own end of the line
            hashes[n_words] = numba.int32(_EOS_HASH)
            n_words += 1
            if eos >= 0:
                _put(known, n_known, numba.int32(eos))
                n_known += 1
                features += _at(features_of, eos)
        if word_ngrams > 1:
            for a in range(n_words):
                joined = numba.uint64(numba.int64(hashes[a]))
                for b in range(a + 1, min(n_words, a + word_ngrams)):
                    joined = joined * numba.uint64(_NGRAM) + numba.uint64(numba.int64(hashes[b]))
                    if n_hashed + 2 > hashed.shape[0]:
                        _add(of_hashed, hashed, n_hashed, dim, hidden)
                        n_hashed = numba.int64(0)
                    short = numba.uint32(joined % numba.uint64(bucket))
                    n = _gather(short, magic, bucket, bitmap, is_pruned, hashed, n_hashed)
                    if is_pruned:
                        _to_rows(bitmap, ranks, hashed, n_hashed, n)
                    features += n - n_hashed
                    n_hashed = n
        if features == 0:
            continue
        _add(of_known, known, n_known, dim, hidden)
        _add(of_hashed, hashed, n_hashed, dim, hidden)
        share = numba.float32(1.0 / features)
        for d in range(dim):
            hidden[d] *= share
        if model.loss == HS:
            _best_of_tree(model, hidden, threshold, nodes, values, labels[i], probs[i])
        else:
            _best_of_all(model, hidden, threshold, values, labels[i], probs[i])


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
    text = np.zeros(longest + 16, np.int8)
    rows = np.zeros((longest + 2) * model.maxn + 1, np.int32)
    for i in range(known.shape[0]):
        for d in range(model.dim):
            known[i, d] = _at(model.known, i * model.dim + d)
        features[i] = 1
        if i == model.eos:
            continue
        length = model.lengths[i]
        text[0] = 60
        for j in range(length):
            text[1 + j] = _at(model.file, model.places[i] + j)
        text[1 + length] = 62
        n = _gather_ngrams(
            text, 0, length + 2, model.minn, model.maxn, model.magic, model.bucket, model.bitmap, model.is_pruned, rows,
            numba.int64(0),
        )  # fmt: skip
        if model.is_pruned:
            _to_rows(model.bitmap, model.ranks, rows, numba.int64(0), n)
        _add(model.hashed, rows, n, model.dim, known[i])
        features[i] += n
