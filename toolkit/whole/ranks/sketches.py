"""Ranks within an error, over all runs: the knots of each group are added up, as `toolkit.whole.ranks.runs` says."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from toolkit.errors import ConfigError
from toolkit.text.kernels.signatures import Array
from toolkit.whole.ranks import runs
from toolkit.whole.ranks.runs import RunOfShard, Steps, runs_of
from toolkit.whole.records import SignedShard

COST = 96
"""Bytes of memory that a knot takes while all are added up."""


class Sketch(msgspec.Struct, frozen=True):
    """The ranks of a group, as `Steps`."""

    documents: int
    scores: list[float]
    at: list[float]
    between: list[float]


class Group(msgspec.Struct, frozen=True):
    """What there is of a group: documents, knots, the least score and the greatest."""

    documents: int
    knots: int
    lowest: float
    highest: float


def collected(
    shards: Sequence[SignedShard], column: int, memory: int, *, together: bool = False
) -> dict[str, list[Array]]:
    """Return the knots of all runs, by label; all under one if they are wanted together.

    Raises:
        ConfigError: if they need more memory than there may be.
    """
    found: dict[str, list[Array]] = {}
    needed = 0
    for run in (run for signed in shards for run in runs_of(signed)):
        for label, knots in run.knots(run.run.columns[column]):
            needed += len(knots) * COST
            found.setdefault("" if together else label, []).append(knots)
    if needed > memory:
        raise ConfigError(
            f"memory: expected at least {-(-needed // 10**6)} MB for the sketches of all groups of all shards, got "
            f"{memory:,} bytes; a larger `sketch` needs less"
        )
    return found


def add(shards: Sequence[SignedShard], column: int, error: float, memory: int) -> dict[str, Sketch]:
    """Return the ranks of all groups, by label.

    Raises:
        ConfigError: if that needs more memory than there may be.
    """
    parts = collected(shards, column, memory)
    return {label: _packed(runs.added(parts[label], error)) for label in sorted(parts)}


def _packed(found: Steps) -> Sketch:
    return Sketch(found.documents, found.scores.tolist(), found.at.tolist(), found.between.tolist())


def groups(sketches: Mapping[str, Sketch]) -> dict[str, Group]:
    """Return what there is of each group."""
    return {
        label: Group(each.documents, len(each.scores), each.scores[0], each.scores[-1])
        for label, each in sketches.items()
    }


def ranks(sketches: Mapping[str, Sketch], run: RunOfShard, column: int) -> Array:
    """Return the rank of each key of a run."""
    of_run = run.run.columns[column]
    keys, starts = run.keys(of_run), run.starts(of_run).tolist()
    found = np.zeros(len(keys))
    for label, begin, end in zip(run.run.groups, starts[:-1], starts[1:], strict=True):
        each = sketches[label]
        at = [np.array(part) for part in (each.scores, each.at, each.between)]
        found[begin:end] = runs.stepped(at[0], at[1], at[2], keys[begin:end])
    return found
