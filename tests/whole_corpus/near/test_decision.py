"""The decision is that of a few lines of plain Python, whatever fits into memory."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.near.comparison import Piece, decide

BANDS = 3


class Small(NamedTuple):
    """A document: its keys, its shingles, and whether it is kept without being asked."""

    keys: tuple[int, ...]
    shingles: frozenset[int]
    given: bool = False


class Held:
    """A unit in memory."""

    bands = BANDS

    def __init__(self, documents: list[Small], *, compared: bool = True) -> None:
        self.all = documents
        self.is_fixed = np.array([each.given for each in documents], dtype=bool)
        self.sizes = np.array([len(each.shingles) * compared for each in documents], dtype=np.int64)

    def keys(self, which: Array) -> Array:
        return np.array([self.all[i].keys for i in which], dtype=np.uint64).reshape(-1, BANDS)

    def piece(self, which: Array) -> Piece:
        sets = [sorted(self.all[i].shingles) if self.sizes[i] else [] for i in which]
        flat = np.array([shingle for each in sets for shingle in each], dtype=np.uint64)
        return Piece(self.keys(which), flat, np.cumsum([0, *map(len, sets)], dtype=np.int64))


def slow(documents: list[Small], jaccard: float, containment: float, *, verify: bool) -> list[tuple[int, int, int]]:
    """Of each document the kept one that it is a duplicate of, with shingles in common and in all."""
    kept: list[int] = []
    found = []
    for at, document in enumerate(documents):
        best = (-1, 0, 0)
        for other in kept if not document.given else ():
            mine, theirs = document.shingles, documents[other].shingles
            if not set(document.keys) & set(documents[other].keys):
                continue
            if not verify:
                best = best if best[0] >= 0 else (other, 0, 0)
                continue
            common, joint = len(mine & theirs), len(mine | theirs)
            if common / joint < jaccard or common / len(mine) < containment:
                continue
            if best[0] < 0 or common / joint > best[1] / best[2]:
                best = (other, common, joint)
        if best[0] < 0:
            kept.append(at)
        found.append(best)
    return found


def check(documents: list[Small], jaccard: float, containment: float = 0.0, *, verify: bool = True) -> None:
    unit = Held(documents, compared=verify)
    for memory in (1, 3000, 1 << 30):
        best = decide(unit, jaccard=jaccard, containment=containment, verify=verify, memory=memory).best
        assert list(zip(*(column.tolist() for column in best), strict=True)) == slow(
            documents, jaccard, containment, verify=verify
        ), memory


SPREAD = 0x9E3779B97F4A7C15
HASHES = [i * SPREAD % 2**64 for i in range(1, 11)]


def small(shingles: frozenset[int], given: bool) -> Small:
    """A document whose keys, as those of signatures, follow from its shingles; a few keys are those of many."""
    return Small(tuple(min(each * odd % 2**64 for each in shingles) % 4 for odd in (3, 5, 7)), shingles, given)


DOCUMENTS = st.lists(st.builds(small, st.frozensets(st.sampled_from(HASHES), min_size=1), st.booleans()), max_size=20)


@given(DOCUMENTS, st.sampled_from([0.3, 0.5, 0.8, 1.0]), st.sampled_from([0.0, 0.9, 1.0]), st.booleans())
@example([small(frozenset(HASHES[: 10 if i > 4 else 1 + 3 * (i > 3)]), i in (5, 6)) for i in range(8)], 0.3, 0.0, True)
@example([Small((0, 0, 0), frozenset({1}), given=True), Small((0, 1, 1), frozenset({1}))], 1.0, 1.0, True)
def test_documents_are_decided_as_plain_python_decides(
    documents: list[Small], jaccard: float, containment: float, verify: bool
) -> None:
    check(documents, jaccard, containment, verify=verify)


def test_of_a_chain_the_ends_stay() -> None:
    """A ~ B, B ~ C, A not ~ C."""
    a, b, c = (frozenset(range(i, i + 100)) for i in (0, 11, 22))
    documents = [Small((1, 2, 3), each) for each in (a, b, c)]
    best = decide(Held(documents), jaccard=0.8, memory=1 << 20).best
    assert best.positions.tolist() == [-1, 0, -1]
    assert (best.common.tolist()[1], best.joint.tolist()[1]) == (89, 111)


@pytest.mark.parametrize(("common", "is_found"), [(889, True), (888, False)])
def test_the_threshold_is_met_exactly(common: int, is_found: bool) -> None:
    """Sets of a thousand hashes: 889 in common are a Jaccard similarity of 0.8002, 888 are 0.7986."""
    hashes = np.random.default_rng(1).integers(0, 2**64, 3000, dtype=np.uint64).tolist()
    first, second = frozenset(hashes[:1000]), frozenset(hashes[1000 - common : 2000 - common])
    best = decide(Held([Small((1, 2, 3), first), Small((1, 2, 3), second)]), jaccard=0.8, memory=1 << 20).best
    assert best.positions.tolist() == [-1, 0 if is_found else -1]


def test_of_many_copies_each_is_compared_once() -> None:
    documents = [Small((1, 2, 3), frozenset(range(50)))] * 2000
    decided = decide(Held(documents), jaccard=0.8, memory=1 << 30)
    assert (decided.best.positions == 0).sum() == decided.pairs == decided.compared == decided.duplicates == 1999
