"""The bootstrap: rounds in which documents are drawn anew, and the intervals that they give.

A round draws as many documents as there are, with replacement; every prediction is measured on the same draw, so a
difference of two is paired. The interval is the 2.5th to the 97.5th percentile of what the rounds give, moved so that
their mean is what is measured: rounds lack rare labels, which would move a mean over labels. Of more than
`MOST` documents, rounds draw from random parts of `MOST` documents, and what they give is scaled by
√(`MOST` / documents): the bootstrap of m out of n (Bickel, Götze and van Zwet 1997), which costs the same for any n.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from toolkit.evaluating.agreement import Array

MOST = 5_000
"""Documents that a round draws, at most."""

PARTS = 8
"""Random parts that rounds draw from, at most."""

Measures = Callable[[Array], Callable[[Array], Mapping[str, float | None]]]
"""Gives, of some documents (as places), what measures them with weights."""


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the random numbers of a group: the same whatever other groups there are."""
    return np.random.Generator(np.random.PCG64([seed, xxhash.xxh3_64_intdigest(name.encode())]))


def cells(columns: Sequence[Array]) -> tuple[Array, Array]:
    """Return which documents stand for those that are equal in all columns, and how many each stands for."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        found, own = np.unique(column, return_inverse=True)
        codes = codes * len(found) + own
        _, codes = np.unique(codes, return_inverse=True)  # or they grow out of 64 bits
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    return first, counts.astype(np.float64)


def draws(counts: Array, rounds: int, random: np.random.Generator) -> Iterator[Array]:
    """Yield the weights of each round, given how many documents there are of each."""
    total = int(counts.sum())
    if 3 * len(counts) < total:
        for _ in range(rounds):
            yield random.multinomial(total, counts / total).astype(np.float64)
        return
    of = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    for _ in range(rounds):
        yield np.bincount(of[random.integers(0, total, total)], minlength=len(counts)).astype(np.float64)


def bootstrapped(
    columns: Sequence[Array], measures: Measures, rounds: int, random: np.random.Generator
) -> tuple[dict[str, float | None], dict[str, Interval | None]]:
    """Return what some documents measure, and the interval of each metric.

    Args:
        columns: of the documents: all that is measured depends on these.
        measures: of them.
        rounds: of the bootstrap.
        random: that draws.
    """
    places, counts = cells(columns)
    measure = measures(places)
    points = dict(measure(counts))
    if len(places) <= MOST:
        return points, _intervals(points, [(points, _drawn(measure, counts, rounds, random))], 1.0)
    documents = len(columns[0])
    parts = random.permutation(documents)[: PARTS * MOST]
    parts = parts[: len(parts) // MOST * MOST].reshape(-1, MOST)
    found = []
    for i, part in enumerate(parts):
        some, of_some = cells([column[part] for column in columns])
        measure = measures(part[some])
        share = rounds // len(parts) + (i < rounds % len(parts))
        found.append((dict(measure(of_some)), _drawn(measure, of_some, share, random)))
    return points, _intervals(points, found, (MOST / documents) ** 0.5)


_Drawn = list[Mapping[str, float | None]]


def _drawn(
    measure: Callable[[Array], Mapping[str, float | None]], counts: Array, rounds: int, random: np.random.Generator
) -> _Drawn:
    return [measure(weights) for weights in draws(counts, rounds, random)]


def _intervals(
    points: Mapping[str, float | None], parts: Sequence[tuple[Mapping[str, float | None], _Drawn]], scale: float
) -> dict[str, Interval | None]:
    """Return the interval of each metric; None if half of the rounds, or more, do not define it."""
    found: dict[str, Interval | None] = {}
    for name, point in points.items():
        listed = [
            each - middle
            for of_part, drawn in parts
            if (middle := of_part[name]) is not None
            for each in (row[name] for row in drawn)
            if each is not None
        ]
        found[name] = None
        if point is not None and 2 * len(listed) > sum(len(drawn) for _, drawn in parts):
            spread = np.array(listed)
            low, high = (np.quantile(spread, [0.025, 0.975]) - spread.mean()) * scale + point
            found[name] = Interval(float(low), float(high))
    return found
