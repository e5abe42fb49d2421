"""How many documents each stratum gives: equal, proportional or given quotas, in whole numbers that add up.

Shares become whole numbers by the largest remainder (Hamilton's method), ties by the label, so that the numbers add up
exactly, whatever the order in which strata were met.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

Short = Literal["redistribute", "report"]


class Quota(NamedTuple):
    """What a stratum gives.

    Attributes:
        wanted: documents that it should give.
        given: documents that it gives: fewer where it has no more, more where others have too few.
    """

    wanted: int
    given: int


def equal(counts: Mapping[str, int], total: int, short: Short) -> dict[str, Quota]:
    """Return equal quotas of strata, by label.

    Args:
        counts: documents of each stratum.
        total: documents wanted of all together.
        short: what becomes of documents that a stratum lacks: others give them, or nobody does.
    """
    return by_weights(counts, dict.fromkeys(counts, Fraction(1)), total, short)


def proportional(counts: Mapping[str, int], total: int) -> dict[str, Quota]:
    """Return quotas of strata in proportion to their documents; all of them where more are wanted than there are."""
    sizes = {label: Fraction(count) for label, count in counts.items()}
    wanted, given = divide(total, sizes), divide(min(total, sum(counts.values())), sizes)
    return {label: Quota(wanted[label], given[label]) for label in sorted(counts)}


def by_weights(
    counts: Mapping[str, int], weights: Mapping[str, Fraction], total: int, short: Short
) -> dict[str, Quota]:
    """Return quotas in proportion to weights; a stratum without a weight, or without documents, may be among them."""
    wanted = divide(total, weights)
    given = {label: min(number, counts.get(label, 0)) for label, number in wanted.items()}
    if short == "redistribute":
        given = _redistributed(counts, weights, total)
    return {label: Quota(wanted[label], given[label]) for label in sorted(wanted)}


def by_numbers(counts: Mapping[str, int], numbers: Mapping[str, int], short: Short) -> dict[str, Quota]:
    """Return quotas given as numbers of documents; what strata lack is divided in proportion to the numbers."""
    weights = {label: Fraction(number) for label, number in numbers.items()}
    found = by_weights(counts, weights, sum(numbers.values()), short)
    return {label: Quota(numbers[label], quota.given) for label, quota in found.items()}


def divide(total: int, weights: Mapping[str, Fraction]) -> dict[str, int]:
    """Return whole numbers in proportion to weights, which add up to a total; all are 0 if the weights are."""
    whole = sum(weights.values())
    if not whole:
        return dict.fromkeys(weights, 0)
    exact = {label: total * weight / whole for label, weight in weights.items()}
    found = {label: int(number) for label, number in exact.items()}
    left = total - sum(found.values())
    for label in sorted(exact, key=lambda label: (found[label] - exact[label], label))[:left]:
        found[label] += 1
    return found


def _redistributed(counts: Mapping[str, int], weights: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Return quotas of which none is above what its stratum has, as near to the weights as that allows.

    Strata that have too few give all that they have; the others divide what is left by their weights, until none of
    them has too few either.
    """
    given: dict[str, int] = {}
    left, open_ = total, dict(weights)
    while open_:
        found = divide(left, open_)
        full = [label for label, number in found.items() if number >= counts.get(label, 0)]
        if not full:
            return given | found
        for label in full:
            given[label] = min(found[label], counts.get(label, 0))
            left -= given[label]
            del open_[label]
    return given


def missing(quotas: Mapping[str, Quota]) -> Sequence[str]:
    """Return the labels of the strata that give fewer documents than they should, in order."""
    return [label for label, quota in quotas.items() if quota.given < quota.wanted]
