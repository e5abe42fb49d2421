"""Signatures: values that stay, bands that are computed, and pairs that are compared as often as their curve says."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.marks import slow
from tests.whole_corpus.near.conftest import slow_shingles
from toolkit.errors import ConfigError
from toolkit.whole_corpus.near.minhash import (
    ENOUGH,
    MOST_HASHES,
    PRESETS,
    Bands,
    MinHasher,
    Shingles,
    Size,
    _find_signatures,
    curve,
)

SIZE = Size.of(5)


def test_signatures_are_for_ever() -> None:
    """Kept signatures are compared with new ones: other values need another `VERSION`."""
    found = MinHasher(Bands(2, 3), SIZE).of(
        ["The quick brown fox jumps over the lazy dog, twice.", "ก็ไม่รู้เหมือนกันว่าจะ", "a b c"]
    )
    assert found.enough.tolist() == [True, True, False]
    assert found.shingles.tolist() == [6, 6, 0]
    assert [[f"{key:016x}" for key in row] for row in found.keys.tolist()] == GOLDEN


GOLDEN = [
    ["30555a447d68e2e1", "7b594ba12585d5c1"],
    ["f36f2993ede49e5e", "3d968242eece3da7"],
    ["0000000000000000", "0000000000000000"],
]

TEXTS = st.lists(st.sampled_from(["ab", "b", "กข็", "的", "一", "Åå", "; ", "。", "\n", " "]), max_size=60).map("".join)


@given(st.lists(TEXTS, max_size=4), st.integers(1, 4), st.integers(1, 9) | st.none())
def test_shingles_are_those_of_a_few_lines_of_python(texts: list[str], ngram: int, characters: int | None) -> None:
    found = Shingles.of(texts, Size.of(ngram, characters))
    sets = [each.tolist() for each in found.sets()]
    assert [len(each) for each in sets] == [len(slow_shingles(text, ngram, characters)) for text in texts]
    assert all(each == sorted(set(each)) for each in sets)
    same = [slow_shingles(text, ngram, characters) for text in texts]
    for i, one in enumerate(same):
        for j, other in enumerate(same):
            assert len(set(sets[i]) & set(sets[j])) == len(one & other)


def sets_of_similarity(pairs: int, common: int, apart: int) -> Shingles:
    """Pairs of sets that have some hashes in common, and each some of its own."""
    random_ = np.random.default_rng(7)
    rows = []
    for _ in range(pairs):
        drawn = random_.integers(0, 2**64, common + 2 * apart, dtype=np.uint64)
        rows += [drawn[: common + apart], np.concatenate([drawn[:common], drawn[common + apart :]])]
    return Shingles(np.concatenate(rows), np.arange(2 * pairs + 1) * (common + apart))


@pytest.mark.parametrize("bands", [PRESETS["fineweb"].bands, *slow((PRESETS["dolma3"].bands,), (Bands.computed(0.8),))])
@pytest.mark.parametrize(("common", "apart"), [(60, 20), (80, 10), (40, 5), (90, 5)])
def test_pairs_are_compared_as_often_as_the_curve_says(bands: Bands, common: int, apart: int) -> None:
    """Inside the 99 % interval of the curve, for similarities of 0.6, 0.8, 0.8 of smaller sets, and 0.9."""
    pairs = 2000
    shingles = sets_of_similarity(pairs, common, apart)
    signer = MinHasher(bands, SIZE)
    keys = np.zeros((2 * pairs, bands.bands), dtype=np.uint64)
    _find_signatures(shingles, 2 * pairs, signer._functions, signer._room, keys, np.zeros(2 * pairs, dtype=np.uint8))
    found = (keys[::2] == keys[1::2]).any(axis=1).mean()
    chance = bands.probability(common / (common + 2 * apart))
    assert abs(found - chance) <= 2.576 * (chance * (1 - chance) / pairs) ** 0.5 + 1 / pairs


@pytest.mark.parametrize("jaccard", [0.1, 0.3, 0.5, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999])
def test_bands_are_computed_for_the_threshold(jaccard: float) -> None:
    bands = Bands.computed(jaccard)
    assert bands.probability(jaccard) >= ENOUGH
    assert bands.hashes <= MOST_HASHES
    more = Bands((bands.hashes + bands.rows) // (bands.rows + 1), bands.rows + 1)
    assert more.probability(jaccard) < bands.probability(jaccard)


def test_identical_sets_share_all_bands() -> None:
    assert Bands.computed(1.0) == Bands(1, MOST_HASHES)
    with pytest.raises(ConfigError, match="at least"):
        Bands.computed(0.001)


def test_the_curve_is_told() -> None:
    assert curve(PRESETS["fineweb"].bands) == (
        "14 bands of 8 hashes; probability that a pair is compared, by similarity: 0.053 at 0.50, 0.211 at 0.60, "
        "0.565 at 0.70, 0.772 at 0.75, 0.924 at 0.80, 0.988 at 0.85, 1.000 at 0.90, 1.000 at 0.95"
    )
