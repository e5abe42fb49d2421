"""n-grams are counted as a few lines of plain Python count them."""

from collections import Counter

import numpy as np
import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit import Batch, Document
from toolkit.text import Repeated, Sequences, Top

Texts = list[list[tuple[int, int]]]


def sequences(texts: Texts) -> Sequences:
    """Of numbers and their sizes."""
    flat = [word for text in texts for word in text]
    return Sequences(
        np.array([number for number, _ in flat], dtype=np.uint64),
        np.array([size for _, size in flat], dtype=np.int64),
        np.cumsum([0, *map(len, texts)], dtype=np.int64),
    )


def slow_top(text: list[tuple[int, int]], n: int) -> tuple[int, int]:
    grams = [tuple(number for number, _ in text[i : i + n]) for i in range(len(text) - n + 1)]
    if not grams:
        return 0, 0
    gram, count = Counter(grams).most_common(1)[0]  # the first of several
    at = grams.index(gram)
    return count, sum(size for _, size in text[at : at + n])


def slow_repeated(text: list[tuple[int, int]], n: int) -> tuple[int, int, int, int, int]:
    grams = [tuple(number for number, _ in text[i : i + n]) for i in range(len(text) - n + 1)]
    counts = Counter(grams)
    covered: set[int] = set()
    again: set[int] = set()
    seen = set()
    for i, gram in enumerate(grams):
        if counts[gram] > 1:
            covered |= set(range(i, i + n))
        if gram in seen:
            again |= set(range(i, i + n))
        seen.add(gram)
    sizes = [size for _, size in text]
    several = sum(count for count in counts.values() if count > 1)
    return sum(sizes[i] for i in covered), sum(sizes[i] for i in again), len(grams), several, len(counts)


NUMBERS = st.integers(0, 3) | st.integers(0, 2**64 - 1).map(
    lambda number: xxhash.xxh3_64_intdigest(str(number).encode())
)
"""As hashes of words are: numbers that are chosen for it give two n-grams one hash."""

WORD = st.tuples(NUMBERS, st.integers(0, 5))
TEXTS = st.lists(st.lists(WORD, max_size=30), max_size=5)


@given(TEXTS, st.integers(1, 6))
@example([], 2)
@example([[]], 1)
@example([[], [(1, 1)], [(1, 1), (1, 2), (1, 4)], []], 2)
@example([[(0, 1)] * 20, [(0, 1)] * 19], 3)
@example([[(1, 1), (2, 1), (1, 2), (2, 2), (3, 1)]], 1)
def test_ngrams_are_those_of_plain_python(texts: Texts, n: int) -> None:
    found = sequences(texts)
    top, repeated = found.top(n), found.repeated(n)
    assert isinstance(top, Top)
    assert isinstance(repeated, Repeated)
    assert list(zip(*(column.tolist() for column in top), strict=True)) == [slow_top(text, n) for text in texts]
    columns = zip(*(column.tolist() for column in repeated), strict=True)
    assert list(columns) == [slow_repeated(text, n) for text in texts]
    assert found.totals.tolist() == [sum(size for _, size in text) for text in texts]
    joined = found.joined(n)
    for at, text in enumerate(texts):
        grams = [tuple(number for number, _ in text[i : i + n]) for i in range(len(text) - n + 1)]
        hashes = joined.hashes[slice(*joined.bounds[at : at + 2])].tolist()
        assert len(set(zip(grams, hashes, strict=True))) == len(set(grams)) == len(set(hashes))
    assert joined.totals.tolist() == [
        sum(size for i in range(len(text) - n + 1) for _, size in text[i : i + n]) for text in texts
    ]


@given(TEXTS, st.integers(0, 6))
@example([], 2)
@example([[], [(1, 1)]], 3)
@example([[(0, 1)] * 20, [(0, 1), (1, 2)] * 19], 6)
@example([[(1, 1), (2, 1), (3, 1), (9, 1), (2, 1), (3, 1), (8, 1), (1, 1), (2, 1), (3, 1)]], 4)
def test_repetition_of_all_lengths_is_that_of_each(texts: Texts, longest: int) -> None:
    found = sequences(texts).repetition(longest)
    assert found.top.shape == found.covered.shape == (longest + 1, len(texts))
    assert not found.top[0].any()
    assert not found.covered[0].any()
    for n in range(1, longest + 1):
        tops = [slow_top(text, n) for text in texts]
        assert found.top[n].tolist() == [count * size if count > 1 else 0 for count, size in tops]
        assert found.covered[n].tolist() == [slow_repeated(text, n)[0] for text in texts]
    numbers = [[number for number, _ in text] for text in texts]
    first = [[number not in text[:i] for i, number in enumerate(text)] for text in numbers]
    expected = [
        text.count(number) if is_first else 0
        for text, firsts in zip(numbers, first, strict=True)
        for number, is_first in zip(text, firsts, strict=True)
    ]
    assert found.occurrences.tolist() == (expected if longest else [0] * len(expected))


def test_texts_of_very_different_lengths_are_counted_in_one_table() -> None:
    chance = np.random.default_rng(7)
    texts = [
        [(int(number), int(number) % 7) for number in chance.integers(0, 50, size)]
        for size in (3000, 1, 0, 40, 2500, 3)
    ]
    found = sequences(texts)
    for n in (1, 2, 5, 10):
        assert list(zip(*(c.tolist() for c in found.top(n)), strict=True)) == [slow_top(text, n) for text in texts]
        columns = zip(*(c.tolist() for c in found.repeated(n)), strict=True)
        assert list(columns) == [slow_repeated(text, n) for text in texts]


def test_words_are_the_same_with_and_without_regard_to_case() -> None:
    words = Batch.of([Document("The cat. the cat! A dog"), Document("")]).words()
    assert Sequences.of(words).top(2).counts.tolist() == [1, 0]
    folded = Sequences.of(words, folded=True)
    assert [column.tolist() for column in folded.top(2)] == [[2, 0], [6, 0]]
    assert folded.repeated(2).covered.tolist() == [12, 0]
    assert folded.totals.tolist() == [16, 0]


def test_order_counts() -> None:
    assert sequences([[(1, 1), (2, 1), (2, 1), (1, 1)]]).repeated(2).distinct.tolist() == [3]
    assert sequences([[(1, 1), (2, 1), (3, 1), (3, 1), (2, 1), (1, 1)]]).repeated(3).several.tolist() == [0]


@pytest.mark.parametrize("different", [1, 2, 1_000_000], ids=["one word", "two words", "all different"])
def test_a_million_words_take_no_more_than_their_number(different: int) -> None:
    numbers = np.arange(1_000_000, dtype=np.uint64) % np.uint64(different)
    sizes = np.ones(len(numbers), dtype=np.int64)
    found = Sequences(numbers, sizes, np.array([0, len(numbers)], dtype=np.int64))
    for n in (1, 10):
        repeated = found.repeated(n)
        assert repeated.total[0] == 1_000_000 - n + 1
        assert repeated.distinct[0] == min(different, 1_000_000 - n + 1)
        assert repeated.covered[0] == (0 if different == 1_000_000 else 1_000_000)
    assert found.repetition(10).covered[1:, 0].tolist() == [0 if different == 1_000_000 else 1_000_000] * 10
