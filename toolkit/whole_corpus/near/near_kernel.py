"""Shingles, signatures and the comparison of sets in compiled code. Used by its neighbours in this folder alone."""

import functools
from typing import Any

import numba

from toolkit.text import unicode_table
from toolkit.text.kernels.intrinsics import ones
from toolkit.text.kernels.mixing import mixed
from toolkit.text.ngrams import PRIME
from toolkit.text.unicode_table import ALPHA, BREAKS, OTHER, Characters
from toolkit.text.words import Words
from toolkit.whole_corpus.near.comparison import WORDS, Best, Documents, Lists, Rules
from toolkit.whole_corpus.near.minhash import Functions, Room, Shingles, Weights

_inline = functools.partial(numba.njit, inline="always")
_u32, _u64 = numba.uint32, numba.uint64

decoded, number_of = _inline(unicode_table.decoded), _inline(unicode_table.number_of)


def shingles(words: Words, texts: Any, weights: Weights, table: Characters, room: Any, shingles: Shingles) -> None:
    """Find the hash of each shingle: the fewest words from one on that weigh enough.

    Args:
        words: Words of the texts.
        texts: Number of texts.
        weights: Weights of words and of a shingle.
        table: Table of the code points.
        room: int64, room for a number a word.
        shingles: Result, of a shingle a word at most.
    """
    hashes, bounds = shingles.hashes, shingles.bounds
    utf8, n = words.lines.utf8, numba.int64(0)
    for i in range(words.bounds[texts]):
        point, _ = decoded(utf8, words.starts[i])
        number = number_of(table, point)
        alone = (number & BREAKS) == OTHER and (number & ALPHA) != 0
        room[i] = weights.character if alone else weights.word
    for text in range(texts):
        bounds[text] = n
        begin, end = words.bounds[text], words.bounds[text + 1]
        behind, weight = begin, numba.int64(0)
        for i in range(begin, end):
            while behind < end and weight < weights.shingle:
                weight += room[behind]
                behind += 1
            if weight < weights.shingle:
                break
            hash_ = words.folded[i]
            for j in range(i + 1, behind):
                hash_ = hash_ * _u64(PRIME) + words.folded[j]
            hashes[n] = mixed(hash_)
            n += 1
            weight -= room[i]
    bounds[texts] = n


def band_keys(texts_shingles: Shingles, texts: Any, cut: Functions, room: Room, keys: Any, enough: Any) -> None:
    """Find the key of each band of each text: a hash of the smallest values that its hash functions have of shingles.

    Args:
        texts_shingles: the shingles of the texts.
        texts: Number of texts.
        cut: the hash functions, and how signatures are cut into bands.
        room: Scratch space.
        keys: uint64 (texts, bands), to be filled.
        enough: uint8 (texts), 1 for a text that has keys.
    """
    shingles, bounds = texts_shingles.hashes, texts_shingles.bounds
    bands, rows, fewest, factors, terms = cut.bands, cut.rows, cut.fewest, cut.factors, cut.terms
    smallest, distinct = room.smallest, room.distinct
    hashes = bands * rows
    for text in range(texts):
        begin, end = bounds[text], bounds[text + 1]
        different, at = numba.int64(0), begin
        while at < end and different < fewest:
            is_known = False
            for i in range(different):
                is_known = is_known or distinct[i] == shingles[at]
            if not is_known:
                distinct[different] = shingles[at]
                different += 1
            at += 1
        enough[text] = different >= fewest
        if different < fewest:
            continue
        for i in range(hashes):
            smallest[i] = _u32(0xFFFFFFFF)
        for at in range(begin, end):
            half = _u32(shingles[at] >> _u64(32))
            for i in range(hashes):
                value = _u32(half * factors[i]) + terms[i]
                value = _u32(value)
                value = _u32(value ^ (value >> _u32(15)))
                value = _u32(value * _u32(0x2C1B3C6D))
                smallest[i] = min(smallest[i], value)
        for band in range(bands):
            key = _u64(band + 1)
            for i in range(band * rows, (band + 1) * rows):
                key = (key ^ smallest[i]) * _u64(PRIME)
                key ^= key >> _u64(29)
            keys[text * bands + band] = mixed(key)


# --- sets -------------------------------------------------------------------------------------------------------------


@_inline
def _common(sets: Any, a: Any, a_end: Any, b: Any, b_end: Any, need: Any) -> Any:
    """Return how many numbers two sorted sets have in common; less than `need`, any number, where they have less."""
    result = numba.int64(0)
    while a < a_end and b < b_end:
        # what is left cannot make up for what is missing: looked at now and then, because it costs as much as a step
        if result + min(a_end - a, b_end - b) < need:
            break
        for _ in range(min(16, a_end - a, b_end - b)):
            left, right = sets[a], sets[b]
            result += left == right
            a += left <= right
            b += right <= left
    return result


def sketch(sets: Any, bounds: Any, documents: Any, sketches: Any) -> None:
    """Fill in the sketch of each set, zeros: `WORDS` numbers of 64 bits; a bit is the parity of the shingles there."""
    for document in range(documents):
        for i in range(bounds[document], bounds[document + 1]):
            place = (sets[i] >> _u64(7)) & _u64(64 * WORDS - 1)
            sketches[document * WORDS + numba.int64(place >> _u64(6))] ^= _u64(1) << (place & _u64(63))


def decide(documents: Documents, n: Any, rules: Rules, lists: Lists, best: Best, counts: Any) -> None:
    """Take documents in order; keep each that no kept one is a verified duplicate of.

    Args:
        documents: Documents in order.
        n: Number of documents.
        rules: when a document is a duplicate.
        lists: Lists of what is kept in each bucket; empty.
        best: Result, with the matches so far.
        counts: int64 (3): pairs that share a bucket; of these, pairs whose sets were compared shingle by shingle; and
            pairs of duplicates.
    """
    for at in range(n):
        begin, end = documents.entry_bounds[at], documents.entry_bounds[at + 1]
        if not documents.is_fixed[at]:
            if rules.verify:
                _compare(documents, at, rules, lists, best, counts)
            else:
                for entry in range(begin, end):
                    first = lists.heads[documents.entries[entry]]
                    if first >= 0:
                        position = documents.positions[lists.documents[first]]
                        if best.positions[at] < 0 or position < best.positions[at]:
                            best.positions[at] = position
            if best.positions[at] >= 0:
                continue
        if at >= rules.before:
            continue
        for entry in range(begin, end):
            bucket = documents.entries[entry]
            lists.documents[entry] = at
            lists.links[entry] = -1
            if lists.heads[bucket] < 0:
                lists.heads[bucket] = entry
            else:
                lists.links[lists.tails[bucket]] = entry
            lists.tails[bucket] = entry


@_inline
def _compare(documents: Documents, at: Any, rules: Rules, lists: Lists, best: Best, counts: Any) -> None:
    """Compare a document with all kept ones in its buckets; of the most similar, the first is its best."""
    a, a_end = documents.bounds[at], documents.bounds[at + 1]
    size = a_end - a
    for entry in range(documents.entry_bounds[at], documents.entry_bounds[at + 1]):
        follower = lists.heads[documents.entries[entry]]
        while follower >= 0:
            if best.common[at] > 0 and best.common[at] == best.joint[at]:
                break  # the same set; the first that has it comes first in each of the buckets
            other = lists.documents[follower]
            follower = lists.links[follower]
            if lists.stamps[other] == at + 1:
                continue
            lists.stamps[other] = at + 1
            counts[0] += 1
            b, b_end = documents.bounds[other], documents.bounds[other + 1]
            both = size + b_end - b
            least = rules.jaccard
            if best.positions[at] >= 0:
                least = max(least, best.common[at] / best.joint[at])
            need = numba.int64(least / (1.0 + least) * both) - 1
            if min(size, b_end - b) < need:
                continue
            apart = numba.int64(0)
            for i in range(WORDS):
                apart += numba.int64(ones(documents.sketches[at * WORDS + i] ^ documents.sketches[other * WORDS + i]))
            if apart > both - 2 * need:
                continue
            counts[1] += 1
            common = _common(documents.sets, a, a_end, b, b_end, need)
            joint = both - common
            similarity = common / joint
            if similarity < rules.jaccard or common / size < rules.containment:
                continue
            counts[2] += 1
            before = -1.0
            if best.positions[at] >= 0:
                before = best.common[at] / best.joint[at]
            position = documents.positions[other]
            if similarity > before or (similarity == before and position < best.positions[at]):
                best.positions[at], best.common[at], best.joint[at] = position, common, joint
