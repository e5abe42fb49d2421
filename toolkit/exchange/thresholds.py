"""Thresholds in the order of keys, from sums of amounts: for samples, budgets and cuts of shuffled outputs.

Each pass is a task for each group of shards. The first adds amounts up in bins of keys, which tells the bin in which a
goal is reached; others narrow that range until its keys fit into memory; the last collects them. The caller holds bins
and these keys, whatever the number of documents.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.exchange.checksummed import read_sealed, write_sealed
from toolkit.exchange.tables import MEMORY
from toolkit.execution.executors import Report, Run, Task
from toolkit.lazy_numpy import np
from toolkit.storage.paths import join, remove
from toolkit.storage.stores.local.scratch import owner
from toolkit.text.kernels.signatures import Array

CELLS = 1 << 20
"""Bins of all ranges together, at most: 16 MiB of sums and counts."""

_MOST_BINS, _BITS = 1 << 16, 64
_ITEM = 64
"""Bytes of memory that a collected key takes, about."""

ROWS = 1 << 24
"""Rows of the shards of a task, about."""

_CELL = [("cell", "<u4"), ("count", "<u8"), ("sum", "<f8")]
_HELD = [("range", "<u4"), ("key", "<u8"), ("amount", "<f8"), ("place", "<u8")]


class Keys(NamedTuple):
    """Some keys of a group: uint64, their amounts, and numbers that tell their rows apart."""

    group: int
    keys: Array
    amounts: Array
    places: Array | int = 0


class KeySource(ConfigStruct):
    """Reads keys of some shards; a subclass says how."""

    def read(self) -> Iterator[Keys]:
        """Yield the keys in the order of shards and rows."""
        raise NotImplementedError


class Reached(NamedTuple):
    """The keys around a goal, sorted: the sum of the lower ones is `base`, all are above `below`."""

    base: float
    below: int
    keys: Array
    amounts: Array
    places: Array


class _Range(NamedTuple):
    """A range of keys of a group, and the sum before it."""

    group: int
    low: int
    bits: int
    base: float


class _Pass(ConfigStruct):
    """A source, the file of ranges, and the file of results."""

    source: Any
    ranges: str
    path: str


class _Ranges(ConfigStruct):
    """The ranges of a pass, and the bits of its bins; none if keys are collected."""

    ranges: list[tuple[int, int, int]]
    bits: int | None


def in_groups(rows: Iterable[int]) -> list[tuple[int, int]]:
    """Return the shard range of each task, by rows."""
    results, first, last, total = list[tuple[int, int]](), 0, 0, 0
    for i, count in enumerate(rows, 1):
        total += count
        if total >= ROWS:
            results.append((first, i))
            first, total = i, 0
        last = i
    return [*results, (first, last)] if total or not results else results


def find(
    run: Run, label: str, folder: str, sources: Sequence[KeySource], goals: Mapping[int, Sequence[float]],
    memory: int = MEMORY,
) -> tuple[dict[int, float], dict[tuple[int, int], Reached]]:  # fmt: skip
    """Return the sum of each group, and the keys around each goal.

    Args:
        run: Runs tasks, as of a command.
        label: Name of the step.
        folder: Folder for files that tasks write, which are deleted.
        sources: Keys of groups of shards.
        goals: Goals of each group.
        memory: Bytes for the keys that are collected.
    """
    passes = _Passes(run, label, folder, sources)
    at = {(group, i): _Range(group, 0, _BITS, 0.0) for group in sorted(goals) for i in range(len(goals[group]))}
    totals: dict[int, float] = {}
    while at:
        ranges = sorted({*at.values()})
        bits = max(1, min(_MOST_BINS, CELLS // len(ranges)).bit_length() - 1)
        counts, sums = passes.count(ranges, bits)
        before = np.array([range_.base for range_ in ranges])[:, None] + np.cumsum(sums, axis=1)
        numbers, counts_of_ranges = {range_: i for i, range_ in enumerate(ranges)}, dict[_Range, int]()
        if not totals:
            totals = {range_.group: float(before[i, -1]) for i, range_ in enumerate(ranges)}
            at = {key: item for key, item in at.items() if goals[key[0]][key[1]] < totals[key[0]]}
        for key, item in at.items():
            number, inner = numbers[item], max(0, item.bits - bits)
            place = min(int(np.searchsorted(before[number], goals[key[0]][key[1]], side="right")), sums.shape[1] - 1)
            base = float(before[number, place - 1]) if place else item.base
            at[key] = _Range(item.group, item.low + (place << inner), inner, base)
            counts_of_ranges[at[key]] = int(counts[number, place])
        if sum(counts_of_ranges.values()) * _ITEM <= memory or not any(item.bits for item in at.values()):
            break
    ranges = sorted({*at.values()})
    collected = dict(zip(ranges, passes.collect(ranges), strict=True))
    return totals, {key: collected[item] for key, item in at.items()}


class _Passes:
    """Runs the passes over all groups of shards."""

    def __init__(self, run: Run, label: str, folder: str, sources: Sequence[KeySource]) -> None:
        self._run, self._label, self._folder, self._sources, self._pass = run, label, folder, sources, 0

    def _files(self, ranges: Sequence[_Range], bits: int | None) -> Iterator[bytes]:
        stem = join(self._folder, f"pass-{owner()}-{self._pass}")
        self._pass += 1
        listed = _Ranges(ranges=[(range_.group, range_.low, range_.bits) for range_ in ranges], bits=bits)
        write_sealed(f"{stem}-ranges", msgspec.msgpack.encode(listed))
        tasks = [
            Task(f"{self._label} {i}", _Pass(source=source, ranges=f"{stem}-ranges", path=f"{stem}-{i:06d}"))
            for i, source in enumerate(self._sources, 1)
        ]
        self._run(self._label, _pass, tasks)
        for task in tasks:
            yield read_sealed(task.payload.path)
            remove(task.payload.path)
        remove(f"{stem}-ranges")

    def count(self, ranges: Sequence[_Range], bits: int) -> tuple[Array, Array]:
        """Return counts and sums of keys in each bin of each range."""
        counts, sums = np.zeros((len(ranges), 1 << bits), dtype=np.int64), np.zeros((len(ranges), 1 << bits))
        for data in self._files(ranges, bits):
            cells = np.frombuffer(data, dtype=_CELL)
            counts.reshape(-1)[cells["cell"]] += cells["count"].astype(np.int64)
            sums.reshape(-1)[cells["cell"]] += cells["sum"]
        return counts, sums

    def collect(self, ranges: Sequence[_Range]) -> list[Reached]:
        """Return the keys of each range."""
        rows = np.concatenate([np.zeros(0, dtype=_HELD), *(np.frombuffer(d, _HELD) for d in self._files(ranges, None))])
        rows = rows[np.lexsort((rows["key"], rows["range"]))]  # which is stable: rows with one key stay in order
        ends = np.searchsorted(rows["range"], np.arange(len(ranges) + 1))
        return [
            Reached(range_.base, range_.low - 1, mine["key"], mine["amount"], mine["place"])
            for range_, mine in zip(ranges, np.split(rows, ends[1:-1]), strict=True)
        ] if ranges else []  # fmt: skip


def _pass(task: _Pass, report: Report) -> None:
    """Count or collect the keys of shards within ranges."""
    listed = msgspec.msgpack.decode(read_sealed(task.ranges), type=_Ranges)
    ranges, bits = listed.ranges, listed.bits
    by_group: dict[int, list[int]] = {}
    for number, (group, _, _) in enumerate(ranges):
        by_group.setdefault(group, []).append(number)
    lows = np.array([low for _, low, _ in ranges], dtype=np.uint64)
    highs = np.array([low + (1 << width) - 1 for _, low, width in ranges], dtype=np.uint64)
    bins = 1 << (bits or 0)
    counts, sums = np.zeros((len(lows), bins), dtype=np.int64), np.zeros((len(lows), bins))
    collected = [np.zeros(0, dtype=_HELD)]
    for group, keys, amounts, places in task.source.read():
        mine = by_group.get(group, [])
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        begins = np.searchsorted(ordered, lows[mine])
        ends = np.searchsorted(ordered, highs[mine], side="right")
        for number, begin, end in zip(mine, begins.tolist(), ends.tolist(), strict=True):
            if begin == end:
                continue
            some = ordered[begin:end]
            if bits is None:
                rows = np.zeros(len(some), dtype=_HELD)
                rows["range"], rows["key"], rows["amount"] = number, some, amounts[order[begin:end]]
                rows["place"] = places if isinstance(places, int) else places[order[begin:end]]
                collected.append(rows)
                continue
            inner = max(0, ranges[number][2] - bits)
            offsets = ((some - lows[number]) >> np.uint64(inner)).astype(np.int64)
            counts[number] += np.bincount(offsets, minlength=bins)
            sums[number] += np.bincount(offsets, weights=amounts[order[begin:end]], minlength=bins)
    result = np.concatenate(collected)
    if bits is not None:
        cells = np.flatnonzero(counts)
        result = np.zeros(len(cells), dtype=_CELL)
        result["cell"], result["count"], result["sum"] = cells, counts.reshape(-1)[cells], sums.reshape(-1)[cells]
    write_sealed(task.path, result.tobytes())
