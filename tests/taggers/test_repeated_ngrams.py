"""What repeated n-grams cover, against a slow rendering."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taggers.repeated_ngrams import RepeatedNgrams
from toolkit import Document
from toolkit.config.settings import convert, parse
from toolkit.errors import ConfigError


def slow(words: list[str], n: int) -> tuple[float, float]:
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    counts = Counter(grams)
    every = {i + j for i, gram in enumerate(grams) if counts[gram] > 1 for j in range(n)}
    again = {i + j for i, gram in enumerate(grams) if gram in grams[:i] for j in range(n)}
    return tuple(float(Fraction(len(which), len(words) or 1)) for which in (every, again))  # type: ignore[return-value]


@given(st.lists(st.lists(st.sampled_from(["a", "B", "b", "é"]), max_size=40), max_size=3))
def test_shares_are_those_of_marked_words(texts: list[list[str]]) -> None:
    documents = [Document(" ".join(words)) for words in texts]
    for words, value in zip(texts, RepeatedNgrams(n=(1, 2, 3, 7), case=True).tag_batch(documents), strict=True):
        assert value.words == len(words)
        for n in (1, 2, 3, 7):
            assert (value.covered[str(n)], value.again[str(n)]) == slow(words, n)
    for words, value in zip(texts, RepeatedNgrams(n=(2,)).tag_batch(documents), strict=True):
        assert (value.covered["2"], value.again["2"]) == slow([word.lower() for word in words], 2)


@pytest.mark.parametrize("n", [[], [0], [101], 3])
def test_n_is_a_list_of_numbers(n: object) -> None:
    with pytest.raises(ConfigError):
        convert(parse(f'{{"n": {n}}}'), RepeatedNgrams, "tagger repeated_ngrams")
