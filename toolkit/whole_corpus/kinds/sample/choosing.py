"""The rows that samples are drawn from, how many documents a stratum gives, and which ones.

The k-th least key of each stratum is found as `toolkit.exchange.thresholds` says. Documents with equal keys, which the
same id has, or a rare chance, are told apart by shard and row.

What is kept of a shard's rows to draw samples: for each row its key, its stratum and its split.

``rows.bin``   uint64 keys of all rows, then uint32 strata, then uint8 splits; little-endian, sealed

Documents with the least keys of their stratum are chosen. A key is the hash of source and id, which is as good as
random, or, where documents have weights, -log(u) / weight of it, with which the k least are a weighted sample without
replacement (Efraimidis and Spirakis, Weighted random sampling with a reservoir, 2006).

How many documents each stratum gives: equal, proportional or given quotas, in whole numbers that add up.

Shares become whole numbers by the largest remainder (Hamilton's method), ties by the label, so that the numbers add up
exactly, whatever the order in which strata were met.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from toolkit.exchange.sealed import read_sealed
from toolkit.exchange.thresholds import Keys, KeySource, find
from toolkit.execution.executors import Run
from toolkit.rules.rule import sample_hash
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.records import NumberedShards, SignedShard

FILE = "rows.bin"
OUT = 2**32 - 1
"""The stratum of a row that cannot be chosen."""

_BYTES = 8 + 4 + 1


class Strata(NamedTuple):
    """Strata of a shard, as recorded: their labels, and the number of documents of each."""

    labels: list[str]
    counts: list[int]


def strata_of(signed: SignedShard) -> Strata:
    """Return the strata of a shard."""
    return msgspec.convert(signed.record.details, Strata)


class Rows(NamedTuple):
    """The rows of a shard, in order.

    Attributes:
        keys: uint64.
        strata: uint32, numbers of the shard's own labels; `OUT` for a row that cannot be chosen.
        splits: uint8, numbers of the splits, in their order.
    """

    keys: Array
    strata: Array
    splits: Array


def packed(rows: Rows) -> bytes:
    """Return the content of the file."""
    data = rows.keys.astype("<u8").tobytes() + rows.strata.astype("<u4").tobytes()
    return data + rows.splits.astype("u1").tobytes()


def load(signed: SignedShard) -> Rows:
    """Return the rows of a shard.

    Raises:
        DataError: if the file is not what was written.
    """
    count = signed.record.rows
    data = read_sealed(signed.path(FILE), 0, count * _BYTES)
    return Rows(
        np.frombuffer(data, "<u8", count),
        np.frombuffer(data, "<u4", count, 8 * count),
        np.frombuffer(data, "u1", count, 12 * count),
    )


def weighted_key(key: int, weight: float) -> int:
    """Return the key of a document that has a weight above 0, as the bits of a double, which are in its order."""
    exponential = -math.log((key + 0.5) / 2.0**64)
    return int(np.float64(max(exponential, 0.0) / weight).view(np.uint64))


def split_of(seed: str, value: Any, bounds: Array) -> int:
    """Return the number of the split of a value: of one hash for all with that value.

    Args:
        seed: Seed of the sample.
        value: whatever JSON has.
        bounds: where the share of each split ends.
    """
    drawn = sample_hash(f"split {seed}", "", msgspec.json.encode(value, order="sorted").decode()) / 2.0**64
    shares = np.flatnonzero(np.diff(bounds, prepend=0.0))
    return min(int(np.searchsorted(bounds, drawn, side="right")), int(shares[-1]))


Short = Literal["redistribute", "report"]


class Quota(NamedTuple):
    """The quota of a stratum.

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
    results = by_weights(counts, weights, sum(numbers.values()), short)
    return {label: Quota(numbers[label], quota.given) for label, quota in results.items()}


def divide(total: int, weights: Mapping[str, Fraction]) -> dict[str, int]:
    """Return whole numbers in proportion to weights, which add up to a total; all are 0 if the weights are."""
    whole = sum(weights.values())
    if not whole:
        return dict.fromkeys(weights, 0)
    exact = {label: total * weight / whole for label, weight in weights.items()}
    results = {label: int(number) for label, number in exact.items()}
    left = total - sum(results.values())
    for label in sorted(exact, key=lambda label: (results[label] - exact[label], label))[:left]:
        results[label] += 1
    return results


def _redistributed(counts: Mapping[str, int], weights: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Return quotas of which none is above what its stratum has, as near to the weights as that allows.

    Strata that have too few give all that they have; the others divide what is left by their weights, until none of
    them has too few either.
    """
    given: dict[str, int] = {}
    left, open_ = total, dict(weights)
    while open_:
        results = divide(left, open_)
        full = [label for label, number in results.items() if number >= counts.get(label, 0)]
        if not full:
            return given | results
        for label in full:
            given[label] = min(results[label], counts.get(label, 0))
            left -= given[label]
            del open_[label]
    return given


def missing(quotas: Mapping[str, Quota]) -> Sequence[str]:
    """Return the labels of the strata that give fewer documents than they should, in order."""
    return [label for label, quota in quotas.items() if quota.given < quota.wanted]


class SampleKeys(KeySource):
    """The keys of the rows of shards, by the numbers of their strata in a file of labels; places are shard and row."""

    shards: NumberedShards
    labels: str

    def read(self) -> Iterator[Keys]:
        """Yield the keys of each shard and stratum."""
        labels = msgspec.msgpack.decode(read_sealed(self.labels), type=list[str])
        numbers = {label: i for i, label in enumerate(labels)}
        for signed in self.shards.load():
            kept = load(signed)
            order = np.argsort(kept.strata, kind="stable")
            own = strata_of(signed).labels
            ends = np.searchsorted(kept.strata[order], np.arange(len(own) + 1))
            for label, begin, end in zip(own, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
                rows = order[begin:end]
                places = (signed.number << 32) + rows
                yield Keys(numbers[label], kept.keys[rows], np.ones(len(rows)), places)


class Chosen(msgspec.Struct, frozen=True):
    """Which documents of a stratum are chosen: those with keys below a bound, and some of those that have it.

    Attributes:
        below: the bound; 2**64 if all are.
        ties: shard and row of documents with this very key that are chosen, too.
    """

    below: int
    ties: list[tuple[int, int]] = []


def choose(
    run: Run, folder: str, sources: Sequence[KeySource], counts: Sequence[int], wanted: Sequence[int], memory: int
) -> list[Chosen]:
    """Return which documents of each stratum are chosen.

    Args:
        run: runs tasks, as of a command.
        folder: Folder of their files.
        sources: keys of groups of shards.
        counts: documents of each stratum.
        wanted: how many of them are chosen, at most as many.
        memory: bytes that may be used.
    """
    goals = {i: [float(k)] for i, (n, k) in enumerate(zip(counts, wanted, strict=True)) if 0 < k < n}
    _, reached = find(run, "choosing documents", folder, sources, goals, memory)
    results = [Chosen(2**64 if k else 0) for k in wanted]
    for (stratum, _), (base, _, keys, _, places) in reached.items():
        rank = wanted[stratum] - int(base)
        bound = int(keys[rank])
        first = int(np.searchsorted(keys, keys[rank]))
        results[stratum] = Chosen(bound, [(place >> 32, place & 0xFFFFFFFF) for place in places[first:rank].tolist()])
    return results
