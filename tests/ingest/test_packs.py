"""Where packs end: told from each input, so that one that comes or goes changes what is beside it, and no more."""

import itertools
import random

import xxhash
from hypothesis import given
from hypothesis import strategies as st

from toolkit.ingest import plan

BOUND = 1000
INPUTS = st.dictionaries(st.text("abc.019/é", min_size=1, max_size=8), st.integers(0, BOUND - 1), max_size=60)

Pack = tuple[str, ...]


def cut(inputs: dict[str, int], bound: int = BOUND) -> list[Pack]:
    """The packs of inputs, in the order of their paths."""
    listed = sorted(inputs.items())
    return [tuple(listed[i][0] for i in places) for places in plan.divide(listed, bound)]


def ends(path: str, size: int, bound: int = BOUND) -> bool:
    """Whether the path of an input says that a pack ends behind it; in floating point, hence not at the very edge."""
    weight = size + bound / plan.MOST
    return xxhash.xxh3_64_intdigest(path.encode()) / 2**64 < plan.SMALLER * weight / bound


@given(INPUTS)
def test_each_input_is_in_one_pack_and_none_is_too_large(inputs: dict[str, int]) -> None:
    found = cut(inputs)
    assert [path for pack in found for path in pack] == sorted(inputs)
    assert all(pack and sum(inputs[path] for path in pack) <= BOUND for pack in found)


@given(INPUTS)
def test_a_pack_ends_where_a_path_says_so_or_where_the_next_input_is_too_large(inputs: dict[str, int]) -> None:
    found = cut(inputs)
    for pack, after in itertools.pairwise(found):
        weight = sum(inputs[path] + BOUND / plan.MOST for path in (*pack, after[0]))
        assert ends(pack[-1], inputs[pack[-1]]) or weight > BOUND
    assert not any(ends(path, inputs[path]) for pack in found for path in pack[:-1])


@given(INPUTS, st.data())
def test_what_lies_between_paths_that_end_packs_depends_on_nothing_else(
    inputs: dict[str, int], data: st.DataObject
) -> None:
    if not inputs:
        return
    gone = data.draw(st.sampled_from(sorted(inputs)))
    left = {path: size for path, size in inputs.items() if path != gone}
    before = [path for path in sorted(left) if path < gone and ends(path, left[path])]
    after = [path for path in sorted(left) if path > gone and ends(path, left[path])]
    for pack in set(cut(inputs)) ^ set(cut(left)):
        assert not before or pack[0] > before[-1]
        assert not after or pack[-1] <= after[0]


def test_one_of_a_thousand_inputs_that_comes_or_goes_changes_at_most_two_packs() -> None:
    chance = random.Random(2)
    inputs = {f"notes/{i:04d}.txt": chance.randrange(50, 2000) for i in range(1000)}
    bound = 64_000
    before = set(cut(inputs, bound))
    assert len(before) > 16  # as there would be if all were full
    for path in list(inputs)[::5]:
        without = {other: size for other, size in inputs.items() if other != path}
        added = inputs | {path + "-more": chance.randrange(50, 2000)}
        assert len(set(cut(without, bound)) - before) <= 2
        assert len(set(cut(added, bound)) - before) <= 2


def test_many_inputs_of_no_size_share_few_packs() -> None:
    found = cut({f"{i:06d}.txt": 0 for i in range(20_000)}, 64_000_000)
    assert 10 < len(found) < 40
