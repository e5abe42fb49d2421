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
from typing import Any

import numba

from toolkit.text.fasttext.arrays import EMPTY, OFFSET, PRIME, ROOM, STEPS, fnv
from toolkit.text.fasttext.model_file import EOS, HS, PREFIX, SOFTMAX
from toolkit.text.kernels.intrinsics import (
    LANES,
    add_lanes,
    dot_eights,
    eight_bytes,
    float_of,
    high_product,
    lowest_bit,
    offset,
    ones,
)

_NGRAM = 116049371  # of word n-grams
_ALL_33 = 0x2121212121212121
_UPPER_HALF = 0x8080808080808080
_LABEL_BYTES = tuple(PREFIX)
_EOS_BYTES = tuple(EOS)
_EOS_HASH = fnv(EOS) - (1 << 32 if fnv(EOS) >= 1 << 31 else 0)


_inline = functools.partial(numba.njit, inline="always")


@_inline
def _step(hash_: Any, byte: Any) -> Any:
    """FNV-1a, of signed bytes."""
    return numba.uint32(numba.uint32(hash_ ^ numba.uint32(numba.int32(byte))) * numba.uint32(PRIME))


@_inline
def _mixed(hash_: Any, eight: Any) -> Any:
    """A hash of words for the table of known words, taken on by up to 8 bytes; the upper bits are the good ones."""
    mix = (numba.uint64(hash_) ^ numba.uint64(eight)) * numba.uint64(0x9E3779B97F4A7C15)
    return mix ^ (mix >> numba.uint64(32))


@_inline
def _modulo(value: Any, magic: Any, divisor: Any) -> Any:
    """Without a division (Granlund and Montgomery 1994); magic is 2^64 // divisor + 1, value and divisor are uint32."""
    quotient = high_product(numba.uint64(value), magic)
    return numba.uint32(numba.uint32(value) - numba.uint32(quotient) * numba.uint32(divisor))


# --- features ---------------------------------------------------------------------------------------------------------


@_inline
def _word(
    table: Any, mask: Any, filter: Any, filter_mask: Any, firsts: Any, lengths: Any, places: Any, file: Any, masks: Any,
    text: Any, start: Any, length: Any,
) -> Any:  # fmt: skip
    """The known word that these bytes are, -1 if none; and all its bytes' bits together."""
    first = eight_bytes(text, start) & masks[min(length, 8)]
    bits = first
    mix = _mixed(length, first)
    for j in range(8, length, 8):
        eight = eight_bytes(text, start + j) & masks[min(length - j, 8)]
        bits |= eight
        mix = _mixed(mix, eight)
    upper = mix >> numba.uint64(32)
    found = numba.int64(-1)
    maybe = numba.int64(upper) & filter_mask
    if (filter[maybe >> 6] >> numba.uint64(maybe & 63)) & numba.uint64(1) == 0:
        return found, bits
    slot = numba.int64(upper) & mask
    while True:
        entry = table[slot]
        if entry == numba.uint64(EMPTY):
            break
        if entry >> numba.uint64(32) == upper:
            word = numba.int64(entry & numba.uint64(0xFFFFFFFF))
            if firsts[word] == first and lengths[word] == length:
                same = True
                place = places[word]
                for j in range(8, length):
                    if file[place + j] != text[start + j]:
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
    rows[n] = numba.int32(found)
    if not is_pruned:
        return n + 1
    bits = bitmap[numba.int64(found >> numba.uint32(6))]
    return n + numba.int64((bits >> numba.uint64(found & numba.uint32(63))) & numba.uint64(1))


@_inline
def _gather_ngrams(
    text: Any, start: Any, end: Any, first: Any, last: Any, minn: Any, maxn: Any, magic: Any, bucket: Any, bitmap: Any,
    is_pruned: Any, rows: Any, n: Any,
) -> Any:  # fmt: skip
    """Notes the character n-grams, from those that begin at first up to last, of a word that has its < and >."""
    for a in range(first, last):
        if text[a] < -64:  # inside a code point
            continue
        hash_ = numba.uint32(OFFSET)
        j = a
        for size in range(1, maxn + 1):
            if j >= end:
                break
            hash_ = _step(hash_, text[j])
            j += 1
            while j < end and text[j] < -64:
                hash_ = _step(hash_, text[j])
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
            hash_ = _step(_step(numba.uint32(OFFSET), text[a]), text[a + 1])
            n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
            hash_ = _step(hash_, text[a + 2])
            n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
            hash_ = _step(hash_, text[a + 3])
            n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
        for a in range(max(first, whole), min(last, end - 1)):
            hash_ = _step(_step(numba.uint32(OFFSET), text[a]), text[a + 1])
            n = _gather(hash_, magic, bucket, bitmap, True, rows, n)
            if a + 2 < end:
                n = _gather(_step(hash_, text[a + 2]), magic, bucket, bitmap, True, rows, n)
        return n
    for a in range(first, last):
        hash_ = numba.uint32(OFFSET)
        behind = min(a + maxn, end)
        least = a + max(minn, 2 if a == start or a + 1 == end else 1) - 1
        for j in range(a, behind):
            hash_ = _step(hash_, text[j])
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
        joined = hashes[place] * numba.uint64(_NGRAM) + numba.uint64(numba.int64(hash_))
        hashes[place] = joined
        short = numba.uint32(joined % numba.uint64(bucket))
        n = _gather(short, magic, bucket, bitmap, is_pruned, rows, n)
    hashes[words % (longest - 1)] = numba.uint64(numba.int64(hash_))
    if is_pruned:
        _to_rows(bitmap, ranks, rows, begin, n)
    return n


@_inline
def _to_rows(bitmap: Any, ranks: Any, rows: Any, begin: Any, end: Any) -> None:
    """From buckets to the rows that a pruned model has for them."""
    for q in range(begin, end):
        bucket = numba.uint32(rows[q])
        place = numba.int64(bucket >> numba.uint32(6))
        below = (numba.uint64(1) << numba.uint64(bucket & numba.uint32(63))) - numba.uint64(1)
        rank = numba.uint64(ranks[place]) + ones(bitmap[place] & below)
        rows[q] = numba.int32(rank)


@_inline
def _add(matrix: Any, rows: Any, n: Any, dim: Any, out: Any) -> None:
    """Adds rows of a matrix."""
    done = 0
    while done + LANES <= dim:
        add_lanes(matrix, rows, n, dim, done, out)
        done += LANES
    if done < dim:
        for i in range(n):
            row = numba.int64(rows[i]) * dim
            for d in range(done, dim):
                out[d] = out[d] + matrix[row + d]


@_inline
def _dot(hidden: Any, matrix: Any, row: Any, dim: Any) -> Any:
    """The product of two rows, in the same order on every machine."""
    total = dot_eights(hidden, matrix, row, dim >> 3)
    for d in range(dim & ~7, dim):
        total += hidden[d] * matrix[row + d]
    return total


@_inline
def _exp(x: Any) -> Any:
    """e^x to 1e-12: the range cut to half a binary digit, then Taylor's series, in pairs that do not wait."""
    y = numba.float64(x)
    y = y if y > -80.0 else -80.0  # so is what is no number, if a mapped file has changed
    y = y if y < 80.0 else 80.0
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
    if n == k and prob <= probs[first + k - 1]:
        return n
    at = first + (n if n < k else k - 1)
    while at > first and probs[at - 1] < prob:
        probs[at] = probs[at - 1]
        labels[at] = labels[at - 1]
        at -= 1
    probs[at] = prob
    labels[at] = numba.int32(label)
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
    nodes[0] = numba.int32(2 * n - 2)
    scores[0] = numba.float32(1)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        node = numba.int64(nodes[waiting])
        score = scores[waiting]
        if score < limit:
            continue
        if node < n:
            found = _insert(node, score, found, k, labels, probs, first_of_row)
            if found == k:
                limit = max(limit, probs[first_of_row + k - 1])
            continue
        p = numba.float32(1.0 / (1.0 + _exp(-_dot(hidden, output, (node - n) * dim, dim))))
        left = score * (numba.float32(1) - p + small)
        right = score * (p + small)
        first, second, low, high = rights[node], lefts[node], right, left
        if right > left:
            first, second, low, high = second, first, left, right
        if low >= limit:
            nodes[waiting] = first
            scores[waiting] = low
            waiting += 1
        if high >= limit:
            nodes[waiting] = second
            scores[waiting] = high
            waiting += 1


@_inline
def _best_of_all(
    loss: Any, output: Any, sigmoid: Any, dim: Any, n: Any, hidden: Any, threshold: Any, values: Any, k: Any,
    labels: Any, probs: Any, first_of_row: Any,
) -> None:  # fmt: skip
    """The most probable labels where each has an output of its own."""
    for i in range(n):
        values[i] = _dot(hidden, output, i * dim, dim)
    if loss == SOFTMAX:
        highest = values[0]
        for i in range(1, n):
            highest = max(highest, values[i])
        total = numba.float32(0)
        for i in range(n):
            values[i] = numba.float32(_exp(values[i] - highest))
            total += values[i]
        for i in range(n):
            values[i] = values[i] / total
    else:
        for i in range(n):
            x = values[i]
            if x > 8:
                values[i] = numba.float32(1)
            elif x >= -8:
                values[i] = sigmoid[numba.int64((x + numba.float32(8)) * numba.float32(STEPS / 16))]
            else:  # so is what is no number, if a mapped file has changed
                values[i] = numba.float32(0)
    found = 0
    for i in range(n):
        if values[i] >= threshold:
            found = _insert(i, values[i] + numba.float32(1e-5), found, k, labels, probs, first_of_row)


@_inline
def _end_of_word(text: Any, start: Any, end: Any, separators: Any) -> Any:
    """Where the next separator is; looks at 8 bytes at once for one below 33, as all separators are."""
    found = start
    while found < end:
        eight = eight_bytes(text, found)
        low = (eight - numba.uint64(_ALL_33)) & ~eight & numba.uint64(_UPPER_HALF)
        if low == 0:
            found += 8
            continue
        found += lowest_bit(low) >> 3
        if separators[numba.int64(text[found]) + 128] == 1:
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
        same = same and text[start + j] == word[j]
    return same


# --- whole texts ------------------------------------------------------------------------------------------------------


def predict(
    dim: Any, minn: Any, maxn: Any, word_ngrams: Any, loss: Any, n_labels: Any, bucket: Any, magic: Any,
    is_pruned: Any, is_summed: Any, eos: Any, mask: Any, filter_mask: Any,
    of_known: Any, features_of: Any, of_hashed: Any, bitmap: Any, ranks: Any, table: Any, filter_: Any, firsts: Any,
    lengths: Any, places: Any, file: Any, lefts: Any, rights: Any, output: Any, sigmoid: Any, separators: Any,
    masks: Any,
    bytes_: Any, starts: Any, ends: Any, n_stretches: Any, threshold: Any, k: Any, found_labels: Any, found_probs: Any,
    hidden: Any, nodes: Any, values: Any, known: Any, hashed: Any, hashes: Any,
) -> None:  # fmt: skip
    """The best labels of each stretch of a text.

    Args: the fields of `toolkit.text.fasttext.arrays.Model`, then

        bytes_: int8, with at least 8 bytes behind the last stretch, and around each stretch one separator; bytes around
            words are changed and put back.
        starts: int64, offset of each stretch.
        ends: int64, exclusive.
        n_stretches: how many.
        threshold: float32; only labels with at least this probability.
        k: at most so many labels.
        found_labels: int32 (stretches, k), filled with -1; what is found, best first.
        found_probs: float32, likewise.
        hidden: float32 (dim); room to work in, as all that follow.
        nodes: int32 (labels + 2).
        values: float32 (labels + 2).
        known: int32 (ROOM).
        hashed: int32 (ROOM).
        hashes: uint64 (word_ngrams).
    """
    piece = ROOM // (2 * maxn) if maxn else ROOM
    for i in range(n_stretches):
        at, end = starts[i], ends[i]
        features = n_known = n_hashed = n_words = numba.int64(0)
        ended, empty = False, True
        for d in range(dim):
            hidden[d] = numba.float32(0)
        while True:
            while at < end and separators[numba.int64(bytes_[at]) + 128] == 1:
                at += 1
            if at >= end:
                break
            start, empty = at, False
            at = _end_of_word(bytes_, at, end, separators)
            length = at - start
            word, bits = _word(
                table, mask, filter_, filter_mask, firsts, lengths, places, file, masks, bytes_, start, length
            )
            if word >= 0 and features_of[word] == 0:  # a label
                continue
            if word < 0 and bytes_[start] == _LABEL_BYTES[0] and _begins(bytes_, start, length, _LABEL_BYTES):
                continue
            if n_known + 2 > ROOM:
                _add(of_known, known, n_known, dim, hidden)
                n_known = numba.int64(0)
            if word >= 0:
                known[n_known] = numba.int32(word)
                n_known += 1
                features += features_of[word]
            ended = word == eos if word >= 0 else length == 4 and _begins(bytes_, start, length, _EOS_BYTES)
            if not ended and maxn > 0 and not (word >= 0 and is_summed):
                before, behind = bytes_[start - 1], bytes_[at]
                bytes_[start - 1] = numba.int8(60)
                bytes_[at] = numba.int8(62)
                first = start - 1
                while first < at + 1:
                    if n_hashed + maxn * piece > ROOM:
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
                    first = last
                bytes_[start - 1] = before
                bytes_[at] = behind
            if word_ngrams > 1:
                hash_ = numba.uint32(OFFSET)
                for j in range(start, at):
                    hash_ = _step(hash_, bytes_[j])
                if n_hashed + word_ngrams > ROOM:
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
                if n_hashed + word_ngrams > ROOM:
                    _add(of_hashed, hashed, n_hashed, dim, hidden)
                    n_hashed = numba.int64(0)
                n = _gather_word_ngrams(
                    numba.int32(_EOS_HASH), n_words, word_ngrams, hashes, magic, bucket, bitmap, ranks, is_pruned,
                    hashed, n_hashed,
                )  # fmt: skip
                features += n - n_hashed
                n_hashed = n
            if eos >= 0:
                known[n_known] = numba.int32(eos)
                n_known += 1
                features += features_of[eos]
        if features == 0:
            continue
        _add(of_hashed, hashed, n_hashed, dim, hidden)
        _add(of_known, known, n_known, dim, hidden)
        share = numba.float32(1.0 / features)
        for d in range(dim):
            hidden[d] = hidden[d] * share
        if loss == HS:
            _best_of_tree(
                lefts, rights, output, dim, n_labels, hidden, threshold, nodes, values, k, found_labels, found_probs,
                i * k,
            )  # fmt: skip
        else:
            _best_of_all(
                loss, output, sigmoid, dim, n_labels, hidden, threshold, values, k, found_labels, found_probs, i * k
            )  # fmt: skip


def sum_words(
    n_words: Any, dim: Any, minn: Any, maxn: Any, bucket: Any, magic: Any, is_pruned: Any, eos: Any, bitmap: Any,
    ranks: Any, hashed: Any, places: Any, lengths: Any, file: Any, word: Any, rows: Any, sums: Any, features: Any,
) -> None:  # fmt: skip
    """Adds to the rows of known words those of their n-grams.

    Args: of them the model's, then

        word: int8, 16 more than the longest word has bytes; room to work in.
        rows: int32, (2 more than these) times maxn, and 1; likewise.
        sums: float32 (words, dim), the rows of the words; changed.
        features: int32 (words), 1; becomes how many rows each sum is of.
    """
    for i in range(n_words):
        if i == eos:
            continue
        length = lengths[i]
        word[0] = 60
        for j in range(length):
            word[1 + j] = file[places[i] + j]
        word[1 + length] = 62
        n = _gather_ngrams(
            word, 0, length + 2, 0, length + 2, minn, maxn, magic, bucket, bitmap, is_pruned, rows, numba.int64(0)
        )
        if is_pruned:
            _to_rows(bitmap, ranks, rows, numba.int64(0), n)
        _add(hashed, rows, n, dim, offset(sums, i * dim))
        features[i] += n


def fill(
    file: Any, n: Any, places: Any, lengths: Any, mask: Any, filter_mask: Any, most: Any, table: Any, filter_: Any,
    first: Any, probes: Any,
) -> None:  # fmt: skip
    """Fills the table of known words, and its filter.

    Args: of them the model's, then

        most: slots that may be looked at in all.
        probes: int64 (1); becomes how many of these are left, -1 if they were too few.
    """
    left = most
    for i in range(n):
        mix = numba.uint64(lengths[i])
        begin = 0
        while begin == 0 or begin < lengths[i]:
            eight = numba.uint64(0)
            for j in range(begin, min(begin + 8, lengths[i])):
                eight |= numba.uint64(numba.uint8(file[places[i] + j])) << numba.uint64(8 * (j - begin))
            mix = _mixed(mix, eight)
            if begin == 0:
                first[i] = eight
            begin += 8
        upper = mix >> numba.uint64(32)
        bit = numba.int64(upper) & filter_mask
        filter_[bit >> 6] |= numba.uint64(1) << numba.uint64(bit & 63)
        slot = numba.int64(upper) & mask
        while table[slot] != numba.uint64(EMPTY):
            slot = (slot + 1) & mask
            left -= 1
            if left < 0:
                probes[0] = -1
                return
        table[slot] = (upper << numba.uint64(32)) | numba.uint64(i)
    probes[0] = left
