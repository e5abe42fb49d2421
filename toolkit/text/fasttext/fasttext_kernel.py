"""Predictions of supervised fastText models, compiled: what the fastText library gives, several times as fast.

Source: fastText 0.9.2 (``dictionary.cc``, ``matrix.cc``, ``loss.cc``). A text's features are its words and their
character n-grams, hashed by FNV-1a over signed bytes; their rows are averaged; the output is a tree of binary decisions
(``hs``), softmax, or one sigmoid a label (``ova``, ``ns``). Three things are done otherwise, with the same result but
for the order of float32 additions:

- the rows of a known word and of its n-grams are added up once, when the model is loaded;
- which buckets a pruned model has kept is asked of a bitmap that stays in the cache, their rows lie in its order;
- the tree is descended best branch first, by products of probabilities; branches that cannot win are left out.
"""

from typing import Any

import numba

from toolkit.text.fasttext.arrays import EMPTY, OFFSET, PRIME, ROOM, Best, Buckets, Model, Scratch, WordTable, fnv
from toolkit.text.fasttext.model_file import EOS, HS, PREFIX
from toolkit.text.fasttext.outputs import best_of_all, best_of_tree
from toolkit.text.kernels.intrinsics import (
    LANES,
    add_lanes,
    eight_bytes,
    high_product,
    inline,
    lowest_bit,
    offset,
    ones,
)
from toolkit.text.line_table import LineTable

_NGRAM = 116049371  # of word n-grams
_ALL_33 = 0x2121212121212121
_UPPER_HALF = 0x8080808080808080
_LABEL_BYTES = tuple(PREFIX)
_EOS_BYTES = tuple(EOS)
_EOS_HASH = fnv(EOS) - (1 << 32 if fnv(EOS) >= 1 << 31 else 0)


@inline
def _step(hash_: Any, byte: Any) -> Any:
    """Take FNV-1a on by a signed byte."""
    return numba.uint32(numba.uint32(hash_ ^ numba.uint32(numba.int32(byte))) * numba.uint32(PRIME))


@inline
def _mixed(hash_: Any, eight: Any) -> Any:
    """Take a hash of words on by up to 8 bytes; the upper bits are the good ones."""
    mix = (numba.uint64(hash_) ^ numba.uint64(eight)) * numba.uint64(0x9E3779B97F4A7C15)
    return mix ^ (mix >> numba.uint64(32))


@inline
def _modulo(value: Any, magic: Any, divisor: Any) -> Any:
    """Return the remainder of uint32 without a division.

    ``magic`` is 2^64 // divisor + 1 (Granlund and Montgomery 1994).
    """
    quotient = high_product(numba.uint64(value), magic)
    return numba.uint32(numba.uint32(value) - numba.uint32(quotient) * numba.uint32(divisor))


# --- features ---------------------------------------------------------------------------------------------------------


@inline
def _word(words: WordTable, text: Any, start: Any, length: Any) -> Any:
    """Return the number of a known word, -1 for others.

    Return also all bits of its bytes together.
    """
    first = eight_bytes(text, start) & words.masks[min(length, 8)]
    bits = first
    mix = _mixed(length, first)
    for j in range(8, length, 8):
        eight = eight_bytes(text, start + j) & words.masks[min(length - j, 8)]
        bits |= eight
        mix = _mixed(mix, eight)
    upper = mix >> numba.uint64(32)
    result = numba.int64(-1)
    maybe = numba.int64(upper) & words.filter_mask
    if (words.filter[maybe >> 6] >> numba.uint64(maybe & 63)) & numba.uint64(1) == 0:
        return result, bits
    slot = numba.int64(upper) & words.mask
    while True:
        entry = words.slots[slot]
        if entry == numba.uint64(EMPTY):
            break
        if entry >> numba.uint64(32) == upper:
            word = numba.int64(entry & numba.uint64(0xFFFFFFFF))
            if words.first[word] == first and words.lengths[word] == length:
                same = True
                place = words.places[word]
                for j in range(8, length):
                    if words.file[place + j] != text[start + j]:
                        same = False
                        break
                if same:
                    result = word
                    break
        slot = (slot + 1) & words.mask
    return result, bits


@inline
def _gather(buckets: Buckets, is_pruned: Any, hash_: Any, rows: Any, n: Any) -> Any:
    """Note the bucket of a hash, if it has a row; return how many are noted then.

    `is_pruned` is that of the buckets; an argument of its own, so that it may be a constant.
    """
    result = _modulo(hash_, buckets.magic, buckets.size)
    rows[n] = numba.int32(result)
    if not is_pruned:
        return n + 1
    bits = buckets.bitmap[numba.int64(result >> numba.uint32(6))]
    return n + numba.int64((bits >> numba.uint64(result & numba.uint32(63))) & numba.uint64(1))


@inline
def _gather_ngrams(model: Model, text: Any, start: Any, end: Any, first: Any, last: Any, rows: Any, n: Any) -> Any:
    """Collect the character n-grams of a word with < and >.

    They begin at `first` up to `last`.
    """
    for a in range(first, last):
        if text[a] < -64:  # inside a code point
            continue
        hash_ = numba.uint32(OFFSET)
        j = a
        for size in range(1, model.maxn + 1):
            if j >= end:
                break
            hash_ = _step(hash_, text[j])
            j += 1
            while j < end and text[j] < -64:
                hash_ = _step(hash_, text[j])
                j += 1
            if size >= model.minn and not (size == 1 and (a == start or j == end)):
                n = _gather(model.buckets, model.buckets.is_pruned, hash_, rows, n)
    return n


@inline
def _gather_ascii(model: Model, text: Any, start: Any, end: Any, first: Any, last: Any, rows: Any, n: Any) -> Any:
    """Collect the character n-grams of an ASCII word.

    Those of 2 to 4 characters, as lid.176 has them, are written out.
    """
    buckets = model.buckets
    if model.minn == 2 and model.maxn == 4 and buckets.is_pruned:
        whole = min(last, end - 3)
        for a in range(first, whole):
            hash_ = _step(_step(numba.uint32(OFFSET), text[a]), text[a + 1])
            n = _gather(buckets, True, hash_, rows, n)
            hash_ = _step(hash_, text[a + 2])
            n = _gather(buckets, True, hash_, rows, n)
            hash_ = _step(hash_, text[a + 3])
            n = _gather(buckets, True, hash_, rows, n)
        for a in range(max(first, whole), min(last, end - 1)):
            hash_ = _step(_step(numba.uint32(OFFSET), text[a]), text[a + 1])
            n = _gather(buckets, True, hash_, rows, n)
            if a + 2 < end:
                n = _gather(buckets, True, _step(hash_, text[a + 2]), rows, n)
        return n
    for a in range(first, last):
        hash_ = numba.uint32(OFFSET)
        behind = min(a + model.maxn, end)
        least = a + max(model.minn, 2 if a == start or a + 1 == end else 1) - 1
        for j in range(a, behind):
            hash_ = _step(hash_, text[j])
            if j >= least:
                n = _gather(buckets, buckets.is_pruned, hash_, rows, n)
    return n


@inline
def _gather_word_ngrams(model: Model, room: Scratch, hash_: Any, words: Any, n: Any) -> Any:
    """Collect the n-grams of words with a given last one.

    The hashes in `room` are those of the n-grams that it continues.
    """
    buckets, longest = model.buckets, model.word_ngrams
    for place in range(min(words, longest - 1)):
        joined = room.hashes[place] * numba.uint64(_NGRAM) + numba.uint64(numba.int64(hash_))
        room.hashes[place] = joined
        short = numba.uint32(joined % numba.uint64(buckets.size))
        n = _gather(buckets, buckets.is_pruned, short, room.hashed, n)
    room.hashes[words % (longest - 1)] = numba.uint64(numba.int64(hash_))
    return n


@inline
def _to_rows(buckets: Buckets, rows: Any, n: Any) -> None:
    """Turn buckets into the rows of a pruned model."""
    for q in range(n):
        bucket = numba.uint32(rows[q])
        place = numba.int64(bucket >> numba.uint32(6))
        below = (numba.uint64(1) << numba.uint64(bucket & numba.uint32(63))) - numba.uint64(1)
        rank = numba.uint64(buckets.ranks[place]) + ones(buckets.bitmap[place] & below)
        rows[q] = numba.int32(rank)


@inline
def _add(matrix: Any, rows: Any, n: Any, dim: Any, out: Any) -> None:
    """Add rows of a matrix."""
    first = 0
    while first + LANES <= dim:
        add_lanes(matrix, rows, n, dim, first, out)
        first += LANES
    if first < dim:
        for i in range(n):
            row = numba.int64(rows[i]) * dim
            for d in range(first, dim):
                out[d] = out[d] + matrix[row + d]


@inline
def _add_hashed(model: Model, room: Scratch, n: Any) -> None:
    """Add the rows of the collected buckets.

    They are those of a whole line, because a loop for each word is short.
    """
    if model.buckets.is_pruned:
        _to_rows(model.buckets, room.hashed, n)
    _add(model.buckets.rows, room.hashed, n, model.dim, room.hidden)


@inline
def _end_of_word(text: Any, start: Any, end: Any, separators: Any) -> Any:
    """Return the offset of the next separator.

    Eight bytes are compared at once with 33; all separators are below it.
    """
    result = start
    while result < end:
        eight = eight_bytes(text, result)
        low = (eight - numba.uint64(_ALL_33)) & ~eight & numba.uint64(_UPPER_HALF)
        if low == 0:
            result += 8
            continue
        result += lowest_bit(low) >> 3
        if separators[numba.int64(text[result]) + 128] == 1:
            break
        result += 1
    return min(result, end)


@inline
def _begins(text: Any, start: Any, length: Any, word: Any) -> Any:
    """Return True if the bytes begin with a word.

    The word is a tuple of bytes.
    """
    if length < len(word):
        return False
    same = True
    for j in range(len(word)):
        same = same and text[start + j] == word[j]
    return same


# --- whole texts ------------------------------------------------------------------------------------------------------


def predict(model: Model, lines: LineTable, n_lines: Any, best: Best, room: Scratch) -> None:
    """Find the best labels of each line.

    Args:
        model: on whose words and tree they depend.
        lines: Lines with at least 8 bytes behind the last one, and a separator around each; bytes around words are
            changed and restored.
        n_lines: Number of n lines.
        best: Result.
        room: Scratch arrays.
    """
    text, dim = lines.utf8, model.dim
    piece = ROOM // (2 * model.maxn) if model.maxn else ROOM
    for i in range(n_lines):
        at, end = lines.starts[i], lines.ends[i]
        features = n_known = n_hashed = n_words = numba.int64(0)
        ended, empty = False, True
        for d in range(dim):
            room.hidden[d] = numba.float32(0)
        while True:
            while at < end and model.separators[numba.int64(text[at]) + 128] == 1:
                at += 1
            if at >= end:
                break
            start, empty = at, False
            at = _end_of_word(text, at, end, model.separators)
            length = at - start
            word, bits = _word(model.words, text, start, length)
            if word >= 0 and model.features[word] == 0:  # a label
                continue
            if word < 0 and text[start] == _LABEL_BYTES[0] and _begins(text, start, length, _LABEL_BYTES):
                continue
            if n_known + 2 > ROOM:
                _add(model.word_rows, room.word_rows, n_known, dim, room.hidden)
                n_known = numba.int64(0)
            if word >= 0:
                room.word_rows[n_known] = numba.int32(word)
                n_known += 1
                features += model.features[word]
            ended = word == model.eos if word >= 0 else length == 4 and _begins(text, start, length, _EOS_BYTES)
            if not ended and model.maxn > 0 and not (word >= 0 and model.is_summed):
                before, behind = text[start - 1], text[at]
                text[start - 1] = numba.int8(60)
                text[at] = numba.int8(62)
                first = start - 1
                while first < at + 1:
                    if n_hashed + model.maxn * piece > ROOM:
                        _add_hashed(model, room, n_hashed)
                        n_hashed = numba.int64(0)
                    last = min(first + piece, at + 1)
                    begin = n_hashed
                    if bits & numba.uint64(_UPPER_HALF) == 0:
                        n_hashed = _gather_ascii(model, text, start - 1, at + 1, first, last, room.hashed, n_hashed)
                    else:
                        n_hashed = _gather_ngrams(model, text, start - 1, at + 1, first, last, room.hashed, n_hashed)
                    features += n_hashed - begin
                    first = last
                text[start - 1] = before
                text[at] = behind
            if model.word_ngrams > 1:
                hash_ = numba.uint32(OFFSET)
                for j in range(start, at):
                    hash_ = _step(hash_, text[j])
                if n_hashed + model.word_ngrams > ROOM:
                    _add_hashed(model, room, n_hashed)
                    n_hashed = numba.int64(0)
                n = _gather_word_ngrams(model, room, numba.int32(hash_), n_words, n_hashed)
                features += n - n_hashed
                n_hashed = n
                n_words += 1
            if ended:
                break
        if empty:  # fastText would predict from its end of the line alone
            continue
        if not ended:  # fastText's own end of the line
            if model.word_ngrams > 1:
                if n_hashed + model.word_ngrams > ROOM:
                    _add_hashed(model, room, n_hashed)
                    n_hashed = numba.int64(0)
                n = _gather_word_ngrams(model, room, numba.int32(_EOS_HASH), n_words, n_hashed)
                features += n - n_hashed
                n_hashed = n
            if model.eos >= 0:
                room.word_rows[n_known] = numba.int32(model.eos)
                n_known += 1
                features += model.features[model.eos]
        if features == 0:
            continue
        _add_hashed(model, room, n_hashed)
        _add(model.word_rows, room.word_rows, n_known, dim, room.hidden)
        share = numba.float32(1.0 / features)
        for d in range(dim):
            room.hidden[d] = room.hidden[d] * share
        if model.loss == HS:
            best_of_tree(model, room, best, i * best.k)
        else:
            best_of_all(model, room, best, i * best.k)


def sum_words(model: Model, n_words: Any, word: Any, rows: Any, sums: Any, features: Any) -> None:
    """Add to the rows of known words those of their n-grams.

    Args:
        model: Model whose words they are.
        n_words: Number of n words.
        word: int8, 16 more than the longest word has bytes; room to work in.
        rows: int32, (2 more than these) times maxn, and 1; room to work in.
        sums: float32 (words, dim), the rows of the words; changed.
        features: int32 (words), 1; becomes how many rows each sum is of.
    """
    table = model.words
    for i in range(n_words):
        if i == model.eos:
            continue
        length = table.lengths[i]
        word[0] = 60
        for j in range(length):
            word[1 + j] = table.file[table.places[i] + j]
        word[1 + length] = 62
        n = _gather_ngrams(model, word, 0, length + 2, 0, length + 2, rows, numba.int64(0))
        if model.buckets.is_pruned:
            _to_rows(model.buckets, rows, n)
        _add(model.buckets.rows, rows, n, model.dim, offset(sums, i * model.dim))
        features[i] += n


def fill(words: WordTable, n: Any, probes: Any) -> None:
    """Fill the table of known words, and its filter.

    Args:
        words: Table with `places` and `lengths`.
        n: Number of words.
        probes: int64 (1), slots that may be looked at in all; becomes how many of these are left, -1 if they were too
            few.
    """
    remaining = probes[0]
    for i in range(n):
        mix = numba.uint64(words.lengths[i])
        begin = 0
        while begin == 0 or begin < words.lengths[i]:
            eight = numba.uint64(0)
            for j in range(begin, min(begin + 8, words.lengths[i])):
                eight |= numba.uint64(numba.uint8(words.file[words.places[i] + j])) << numba.uint64(8 * (j - begin))
            mix = _mixed(mix, eight)
            if begin == 0:
                words.first[i] = eight
            begin += 8
        upper = mix >> numba.uint64(32)
        bit = numba.int64(upper) & words.filter_mask
        words.filter[bit >> 6] |= numba.uint64(1) << numba.uint64(bit & 63)
        slot = numba.int64(upper) & words.mask
        while words.slots[slot] != numba.uint64(EMPTY):
            slot = (slot + 1) & words.mask
            remaining -= 1
            if remaining < 0:
                probes[0] = -1
                return
        words.slots[slot] = (upper << numba.uint64(32)) | numba.uint64(i)
    probes[0] = remaining
