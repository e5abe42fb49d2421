"""Which copies a budget takes: of each group those with the least hashes, until its target is met.

The bound of a group is found in two readings of what is drawn: the first adds amounts up in bins of hashes, which tells
the bin in which the target is met; the second holds the hashes of these bins alone. Memory does not grow with documents
but for those of one bin of many.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from toolkit.rules.kinds.repeat import EVERYTHING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CELLS = 1 << 22
"""Bins of all groups together, at most: 32 MiB of amounts."""

_MOST_BINS = 1 << 16


class Drawn(NamedTuple):
    """The copies of documents of some shard and group, in the order of their hashes."""

    group: str
    hashes: "NDArray[np.uint64]"
    amounts: "NDArray[np.float64]"


Read = Callable[[], Iterator[Drawn]]
"""Gives what is drawn of each shard and group; called for each reading."""


class GroupBudget(msgspec.Struct, kw_only=True):
    """What a budget comes to for a group.

    Attributes:
        group: its name; empty where there is but one.
        available: what the rules leave, copies counted.
        once: the same, each document counted once.
        target: what is wanted.
        taken: what is taken.
        missing: what lacks to the target because there is no more.
        documents: different ones that are taken.
        copies: times that these are written, all counted.
        distinct: the amount of these documents, each once.
        chars, bytes: of the texts that were written, after edits.
    """

    group: str
    available: float = 0.0
    once: float = 0.0
    target: float = 0.0
    taken: float = 0.0
    missing: float = 0.0
    documents: int = 0
    copies: int = 0
    distinct: float = 0.0
    chars: int = 0
    bytes: int = 0

    @property
    def epochs(self) -> float:
        """Return how often a document that is taken is seen, on average, by amount."""
        return self.taken / self.distinct if self.distinct else 0.0


class Bound(NamedTuple):
    """The greatest hash that is taken, -1 for none; and what the amounts up to it come to."""

    hash: int
    taken: float


def find_bounds(read: Read, goals: Mapping[str, Sequence[float]]) -> dict[str, list[list[Bound]]]:
    """Return for each goal of each group the bounds around it: the nearest first, then the one beyond the goal, if any.

    Copies with one hash are taken together.

    Args:
        read: gives what is drawn; groups without a goal are left out.
        goals: by group.
    """
    import numpy as np

    numbers = {group: i for i, group in enumerate(sorted(goals))}
    bits = max(1, min(_MOST_BINS, _CELLS // max(len(numbers), 1)).bit_length() - 1)
    shift = np.uint64(64 - bits)
    sums = np.zeros((len(numbers), 1 << bits))
    for each in read():
        if each.group in numbers:
            bins = (each.hashes >> shift).astype(np.int64)
            sums[numbers[each.group]] += np.bincount(bins, weights=each.amounts, minlength=1 << bits)
    before = np.cumsum(sums, axis=1)
    deciding = {
        group: {int(np.searchsorted(before[i], goal, side="right")) for goal in goals[group] if goal < before[i, -1]}
        for group, i in numbers.items()
    }
    held = _held(read, deciding, bits)
    found: dict[str, list[list[Bound]]] = {group: [] for group in goals}
    for group, i in numbers.items():
        for goal in goals[group]:
            around = [Bound(EVERYTHING, float(before[i, -1]))]
            if goal < around[0].taken:
                bin_ = int(np.searchsorted(before[i], goal, side="right"))
                base = float(before[i, bin_ - 1]) if bin_ else 0.0
                around = _around(held[group, bin_], base, goal, (bin_ << (64 - bits)) - 1)
            found[group].append(around)
    return found


def settled(found: Mapping[str, Sequence[Bound]], goals: Mapping[str, float]) -> dict[str, Bound]:
    """Return a bound for each group with which all groups together come to the sum of their goals.

    Each is one of the two around the goal of its group: the one that makes up for what the groups before it have too
    much or too little. So all together differ from the sum by half a document, the largest at a bound, at most. What a
    group lacks because there is no more is not made up for.

    Args:
        found: the bounds around the goal of each group.
        goals: by group.
    """
    over, chosen = 0.0, dict[str, Bound]()
    for group in sorted(found):
        over_of = {bound: over + bound.taken - goals[group] for bound in found[group]}
        chosen[group] = min(found[group], key=lambda bound: abs(over_of[bound]))
        over = over_of[chosen[group]] if len(over_of) > 1 else over
    return chosen


_Copies = tuple["NDArray[np.uint64]", "NDArray[np.float64]"]
"""Hashes, sorted, and amounts."""


def _held(read: Read, deciding: Mapping[str, set[int]], bits: int) -> dict[tuple[str, int], _Copies]:
    """Return the copies of the deciding bins, by group and bin."""
    import numpy as np

    found: dict[tuple[str, int], list[_Copies]] = {}
    for each in read() if any(deciding.values()) else ():
        bins = sorted(deciding.get(each.group, ()))
        lows = np.array([bin_ << (64 - bits) for bin_ in bins], dtype=np.uint64)
        begins = np.searchsorted(each.hashes, lows)
        ends = np.searchsorted(each.hashes, lows + np.uint64((1 << (64 - bits)) - 1), side="right")
        for bin_, begin, end in zip(bins, begins.tolist(), ends.tolist(), strict=True):
            if begin < end:
                copies = each.hashes[begin:end].copy(), each.amounts[begin:end].copy()
                found.setdefault((each.group, bin_), []).append(copies)
    together = {}
    for key, parts in found.items():
        hashes = np.concatenate([hashes for hashes, _ in parts])
        order = np.argsort(hashes, kind="stable")
        together[key] = hashes[order], np.concatenate([amounts for _, amounts in parts])[order]
    return together


def _around(copies: _Copies, base: float, goal: float, below: int) -> list[Bound]:
    """Return the bounds with which amounts are next to a goal: the nearest, of two the less; then that beyond the goal.

    Args:
        copies: of a bin, in which the goal is met.
        base: the sum of the bins before it.
        goal: of all.
        below: the greatest hash before the bin; -1 if there is none.
    """
    import numpy as np

    hashes, amounts = copies
    last = np.flatnonzero(np.append(hashes[1:] != hashes[:-1], True))  # of copies with one hash
    sums = np.append(base, base + np.cumsum(amounts)[last])
    behind = int(np.searchsorted(sums, goal, side="right"))
    before = int(np.searchsorted(sums, sums[behind - 1]))  # the first that comes to it: more would add nothing
    places = [before] if sums[before] == goal or behind == len(sums) else [before, behind]
    found = [Bound(below if i == 0 else int(hashes[last[i - 1]]), float(sums[i])) for i in places]
    return sorted(found, key=lambda bound: abs(bound.taken - goal))
