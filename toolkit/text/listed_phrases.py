"""Occurrences of listed words and phrases among words of texts, compiled."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import compiled
from toolkit.text.kernels.signatures import Array
from toolkit.text.line_table import LineTable
from toolkit.text.words import HAS_ALNUM, PRIME, Words

_WIDTH = (1 << 64) - 1


class _Phrases(NamedTuple):
    """A list: a hash table of its entries, 0 where there is none, and how many words the longest has."""

    table: Array
    longest: int


def occurrences(segments: Words, lists: Sequence[frozenset[str] | None]) -> Array:
    """Count the entries of each text's list, int64.

    They are whole words in any case; 0 without a list.

    Args:
        segments: Segments of the texts, or words; what has no letter and no number is passed over.
        lists: words and phrases to look for in each text; the same ones for many texts are prepared once.
    """
    numbers = {entries: i for i, entries in enumerate(dict.fromkeys(filter(None, lists)))}
    result = np.zeros(len(lists), dtype=np.int64)
    if numbers:
        phrases = list(map(_prepared, numbers))
        are_words = segments.kinds & HAS_ALNUM != 0
        _find(
            segments.folded[are_words], np.cumsum([0, *segments.sums(are_words)]), len(lists),
            np.array([numbers[entries] if entries else -1 for entries in lists], dtype=np.int64),
            np.cumsum([0, *(len(phrase.table) for phrase in phrases)]),
            np.array([phrase.longest for phrase in phrases], dtype=np.int64),
            np.concatenate([phrase.table for phrase in phrases]),
            result,
        )  # fmt: skip
    return result


@functools.lru_cache(maxsize=128)
def _prepared(entries: frozenset[str]) -> _Phrases:
    words = Words.of(LineTable.of(sorted(entries)))
    grams = set[int]()
    for begin, end in zip(words.bounds[:-1].tolist(), words.bounds[1:].tolist(), strict=True):
        gram = 0
        for word in words.folded[begin:end].tolist():
            gram = (gram * PRIME + word) & _WIDTH
        grams.add(gram)
    table = np.zeros(1 << (2 * len(grams)).bit_length(), dtype=np.uint64)
    for gram in sorted(grams - {0}):
        slot = ((gram * PRIME & _WIDTH) >> 32) & len(table) - 1
        while table[slot]:
            slot = (slot + 1) & len(table) - 1
        table[slot] = gram
    return _Phrases(table, int(np.max(words.counts, initial=0)))


@compiled("uint64* int64* int64 int64* int64* int64* uint64* int64*")
def _find(
    words: Any, bounds: Any, texts: Any, list_of: Any, places: Any, longest: Any, tables: Any, counts: Any
) -> None:
    for text in range(texts):
        if list_of[text] < 0:
            continue
        begin, mask = places[list_of[text]], int(places[list_of[text] + 1] - places[list_of[text]]) - 1
        for i in range(bounds[text], bounds[text + 1]):
            gram = words[i]
            for j in range(i, min(i + longest[list_of[text]], bounds[text + 1])):
                if j > i:
                    gram = gram * PRIME + words[j]
                slot = int((gram * PRIME) >> 32) & mask
                while tables[begin + slot] and tables[begin + slot] != gram:
                    slot = (slot + 1) & mask
                counts[text] += tables[begin + slot] != 0
