"""The bounds of a budget: each group takes the copies with the least hashes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from toolkit.exchange.thresholds import KeySource, Reached, find
from toolkit.execution.executors import Run
from toolkit.lazy_numpy import np
from toolkit.rules.kinds.repeat import EVERYTHING


class GroupBudget(msgspec.Struct, kw_only=True):
    """The result of a budget for a group.

    Attributes:
        group: Name; empty where there is but one.
        available: Amount of the copies that the rules leave.
        once: Amount of their documents, each counted once.
        target: Target of the group.
        amount: Amount of the copies taken.
        missing: Amount missing to the target because there is no more.
        documents: Number of distinct documents taken.
        copies: Number of copies of these.
        distinct: Amount of these documents, each once.
        chars, bytes: Sizes of the texts written, after edits.
    """

    group: str
    available: float = 0.0
    once: float = 0.0
    target: float = 0.0
    amount: float = msgspec.field(name="taken", default=0.0)
    missing: float = 0.0
    documents: int = 0
    copies: int = 0
    distinct: float = 0.0
    chars: int = 0
    bytes: int = 0

    @property
    def epochs(self) -> float:
        """Return the average number of copies of a document, by amount."""
        return self.amount / self.distinct if self.distinct else 0.0


class Bound(NamedTuple):
    """The greatest hash taken and the amount up to it. The hash is -1 if none is taken."""

    hash: int
    amount: float


def find_bounds(
    run: Run, label: str, folder: str, sources: Sequence[KeySource], goals: Sequence[Sequence[float]]
) -> list[list[list[Bound]]]:
    """Return for each goal of each group the bounds around it: the nearest first, then the one beyond the goal, if any.

    Copies with one hash are taken together.

    Args:
        run: Function that runs tasks, as of a command.
        label: Name of the step.
        folder: Folder of their files.
        sources: Copies of groups of shards; the key is the hash.
        goals: Goals of the groups, by number.
    """
    totals, reached = find(run, label, folder, sources, dict(enumerate(goals)))
    everything = [[Bound(EVERYTHING, totals.get(group, 0.0))] for group in range(len(goals))]
    met = {at: _around(result, goals[at[0]][at[1]]) for at, result in reached.items()}
    return [[met.get((group, i), everything[group]) for i in range(len(goal))] for group, goal in enumerate(goals)]


def settled(bounds: Mapping[str, Sequence[Bound]], goals: Mapping[str, float]) -> dict[str, Bound]:
    """Return bounds with the sum of the goals of all groups.

    Each is one of the two around the goal of its group: the one that makes up for what the groups before it have too
    much or too little. So all together differ from the sum by half a document, the largest at a bound, at most. What a
    group lacks because there is no more is not made up for.

    Args:
        bounds: Bounds around the goal of each group.
        goals: Goals by group.
    """
    over, chosen = 0.0, dict[str, Bound]()
    for group in sorted(bounds):
        over_of = {bound: over + bound.amount - goals[group] for bound in bounds[group]}
        chosen[group] = min(bounds[group], key=lambda bound: abs(over_of[bound]))
        over = over_of[chosen[group]] if len(over_of) > 1 else over
    return chosen


def _around(copies: Reached, goal: float) -> list[Bound]:
    """Return the bounds next to a goal: the nearest, of two the less; then that beyond the goal."""
    hashes = copies.keys
    last = np.flatnonzero(np.append(hashes[1:] != hashes[:-1], True))  # of copies with one hash
    sums = np.append(copies.base, copies.base + np.cumsum(copies.amounts)[last])
    behind = int(np.searchsorted(sums, goal, side="right"))
    before = int(np.searchsorted(sums, sums[behind - 1]))  # the first that comes to it: more would add nothing
    places = [before] if sums[before] == goal or behind == len(sums) else [before, behind]
    results = [Bound(copies.below if i == 0 else int(hashes[last[i - 1]]), float(sums[i])) for i in places]
    return sorted(results, key=lambda bound: abs(bound.amount - goal))
