"""Decisions about equal texts or pieces, and values of documents.

A partition is a range of hashes: of each run a contiguous slice, so nothing is sorted on disk, and any number of
partitions gives the same. What is found is written partition by partition, with one section for each run:

``layout``       a `KeyRuns`: the shards, and how many partitions there are
``part-N-of-M``  an object of `toolkit.exchange`, whose partitions are the runs; and the record of a `Part`
"""

from collections.abc import Iterator
from itertools import pairwise, repeat
from typing import NamedTuple

import msgspec
import numpy as np
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError
from toolkit.exchange.scatter import gather_sections, once, scatter_sections, settle
from toolkit.execution.executors import Report, Task
from toolkit.storage.paths import join
from toolkit.storage.threads import for_each
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, UInt8s, UInt32s
from toolkit.text.kernels.split_mix import GAMMA, finalized
from toolkit.whole_corpus.exact import runs as exact_runs
from toolkit.whole_corpus.kind import Decisions, ResolveJob
from toolkit.whole_corpus.records import SignedShard, load_layout, save_layout

COST = {True: 320, False: 112}
"""Bytes of memory that a key takes while its partition is resolved, with names and without."""

_MASK = (1 << 128) - 1


class KeyRuns(msgspec.Struct, frozen=True):
    """Input of a resolution: the runs of all shards, in order, the layout of their keys, the number of partitions."""

    runs: list[exact_runs.RunOfKeys]
    layout: exact_runs.KeyLayout
    parts: int


class Part(msgspec.Struct, frozen=True):
    """The result of a partition.

    Attributes:
        digests: Digests of what became of each own shard's items, by its number; those of all partitions are added.
        distinct: different hashes.
        stay: items of own shards that stay.
        grouped: Number of staying hashes whose upper half other hashes have, too, if the layout asks for it.
        objects: Objects of the sections.
    """

    digests: dict[int, str]
    distinct: int
    stay: int
    grouped: int
    objects: list[str]


class PartToResolve(ConfigStruct):
    """A partition, and the folder of the layout."""

    folder: str
    part: int


def resolve(work: ResolveJob, layout: exact_runs.KeyLayout, items: str) -> Decisions:
    """Resolve all partitions; `items` is what is compared, for people."""
    parts, notes = resolve_parts(work, layout, work.folder)
    fates = {}
    for signed in work.shards:
        if signed.own:
            digest = sum(int(part.digests.get(signed.number, "0"), 16) for part in parts) & _MASK
            fates[signed.shard] = f"{digest:032x}"
    distinct = sum(part.distinct for part in parts)
    compared = sum(int(signed.record.counts[items]) for signed in work.shards if signed.own)
    stay = sum(part.stay for part in parts)
    counts = {items: compared, "distinct": distinct, "duplicates": compared - stay}
    return Decisions(fates, counts, _collisions(layout.bits, distinct) + notes)


def resolve_parts(work: ResolveJob, layout: exact_runs.KeyLayout, folder: str) -> tuple[list[Part], list[str]]:
    """Resolve all partitions into a folder; and sentences for people."""
    runs = [run for signed in work.shards for run in exact_runs.runs_of(signed)]
    total = sum(run.run.keys for run in runs)
    cost = COST[layout.names] + 3 * layout.dtype["rank"].itemsize if layout.ranks else COST[layout.names]
    parts = max(1, -(-total * cost // max(work.memory, 1)))
    notes = []
    if layout.rate:
        parts = max(1, -(-total // exact_runs.KEYS))
        notes = [_filters(work.memory, total, parts, layout.rate)]
    save_layout(_layout(folder), KeyRuns(runs, layout, parts))
    tasks = [Task(f"part {part}", PartToResolve(folder, part)) for part in range(parts)]
    results: list[Part] = work.run("deciding which copies stay", resolve_part, tasks)
    settle(work.run, folder, _SECTIONS, [path for part in results for path in part.objects])
    return results, notes


def _filters(memory: int, total: int, parts: int, rate: float) -> str:
    """Return a sentence about the Bloom filters.

    Raises:
        ConfigError: if one needs more memory than there may be.
    """
    keys = -(-total // parts)
    size = exact_runs.bits_of(keys, rate) // 8
    if (needed := size + exact_runs.BYTES * keys) > memory:
        raise ConfigError(
            f"memory: expected at least {-(-needed // 10**6)} MB for `approximate: bloom`, whose filters are as large "
            f"as `false_positive_rate: {rate:g}` asks for, got {memory:,} bytes"
        )
    return (
        f"Bloom filters of {size / 1e6:,.1f} MB in {parts:,} partitions, one after the other: "
        f"at most a share of {rate:g} of new texts may wrongly count as seen"
    )


def _collisions(bits: int, distinct: int) -> list[str]:
    """Return a sentence about expected collisions of hashes."""
    if bits == 128:
        return []
    expected = distinct * (distinct - 1) / 2 / 2**bits
    message = "about this many pairs of different texts count as equal"
    return [f"{bits} bits: {expected:.2g} collisions expected among {distinct:,} different hashes: {message}"]


def _layout(folder: str) -> str:
    return join(folder, "layout")


_SECTIONS = "sections"


def resolve_part(work: PartToResolve, report: Report) -> Part:
    """Resolve a partition, unless a record says it is done."""
    whole: KeyRuns = load_layout(_layout(work.folder), KeyRuns)
    stem = join(work.folder, f"part-{work.part}-of-{whole.parts}")

    def resolve() -> Part:
        slices = for_each(lambda run: run.slice(whole.layout, work.part, whole.parts), whole.runs)
        return _resolve(whole, slices, stem)

    return once(stem + ".json", "", Part, resolve)


def _resolve(whole: KeyRuns, slices: list[tuple[int, Array]], stem: str) -> Part:
    layout = whole.layout
    ends = np.cumsum([0, *(len(keys) for _, keys in slices)], dtype=np.int64).tolist()

    def column(name: str) -> Array:
        return np.concatenate([np.zeros(0, dtype=layout.dtype[name]), *(keys[name] for _, keys in slices)])

    high, low = column("hi"), column("lo") if layout.bits == 128 else None
    writer = None
    if layout.rate:
        stays = exact_runs.first_seen(high, low, layout.rate)
    else:
        numbers, chosen = exact_runs.numbered(high, low, _ranks(whole, ends, column("rank")) if layout.ranks else None)
        stays = np.zeros(len(numbers), dtype=bool)
        stays[chosen] = True
        if not layout.within:
            own = np.repeat([run.own for run in whole.runs], np.diff(ends))
            stays |= own & own[chosen][numbers]
        writer = _Documents(whole, ends, slices, numbers, chosen) if layout.names else None
    grouped = _grouped(high, stays) if layout.grouped else None
    sections, digests, stay = dict[int, bytes](), dict[int, int](), 0
    for i, (run, (before, _)) in enumerate(zip(whole.runs, slices, strict=True)):
        if run.own or grouped is not None:
            mine = stays[ends[i] : ends[i + 1]]
            if writer:
                section, digest = writer.section(i, run.number, before, mine)
            else:
                section = len(mine).to_bytes(4, "little") + np.packbits(mine).tobytes()
                digest = _digest(run.number, before + np.flatnonzero(~mine))
            if grouped is not None:
                section += np.packbits(grouped[ends[i] : ends[i + 1]]).tobytes()
            sections[i] = section
            digests[run.shard] = (digests.get(run.shard, 0) + digest) & _MASK
            stay += int(mine.sum()) * run.own
    objects = scatter_sections(stem, len(whole.runs), sections)
    results = {shard: f"{digest:x}" for shard, digest in digests.items()}
    return Part(results, int(stays.sum()), stay, 0 if grouped is None else int(grouped.sum()), objects)


def _grouped(high: Array, stays: Array) -> Array:
    """Return a mask of staying hashes with a shared upper half; bool."""
    places = np.flatnonzero(stays)
    order = places[np.argsort(high[places], kind="stable")]
    same = high[order[1:]] == high[order[:-1]]
    result = np.zeros(len(high), dtype=bool)
    result[order[1:][same]] = result[order[:-1][same]] = True
    return result


def _ranks(whole: KeyRuns, ends: list[int], ranks: Array) -> Array:
    """Return ranks in the same order, with other datasets before all.

    Among themselves these are as they were: in a run, the lowest of equal ones has been chosen already.
    """
    own = np.repeat([run.own for run in whole.runs], np.diff(ends))
    if own.all():
        return ranks
    order = np.lexsort((ranks, own))
    rises = (ranks[order][1:] != ranks[order][:-1]) | (own[order][1:] != own[order][:-1])
    result = np.empty(len(ranks))
    result[order] = np.concatenate([[0], np.cumsum(rises)])
    return result


def _digest(run: int, keys: Array) -> int:
    """Return a digest of a set of keys of a run: it can be added to others."""
    numbers = keys.astype(np.uint64) + np.uint64((run + 1) << 40)
    result = 0
    for seed, shift in ((0, 0), (1, 64)):
        mixed = _mixed(numbers, seed)
        low, high = mixed & np.uint64(0xFFFFFFFF), mixed >> np.uint64(32)
        result += (int(low.sum(dtype=np.uint64)) + (int(high.sum(dtype=np.uint64)) << 32)) << shift  # nothing is lost
    return result & _MASK


def _mixed(numbers: Array, seed: int) -> Array:
    """Return well mixed numbers (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        result = numbers * np.uint64(2) + np.uint64(seed)
        return finalized((result + np.uint64(GAMMA)) * np.uint64(0xD1342543DE82EF95))


class _Documents:
    """Makes the sections of documents: only those of which others are equal are in them."""

    def __init__(
        self, whole: KeyRuns, ends: list[int], slices: list[tuple[int, Array]], numbers: Array, chosen: Array
    ) -> None:
        self._ends, self._groups = ends, numbers
        keys = np.concatenate([np.zeros(0, dtype=whole.layout.dtype), *(result for _, result in slices)])
        self._copies = np.bincount(numbers, keys["count"], minlength=len(chosen)).astype(np.int64)
        many = np.flatnonzero(self._copies > 1)
        winners = chosen[many]
        self._names = dict(zip(many.tolist(), [b""] * len(many), strict=True))
        runs = np.searchsorted(np.array(ends), winners, side="right") - 1
        for i in sorted({*runs.tolist()}):
            chosen = np.flatnonzero(runs == i)
            self._take(whole.runs[i], keys[winners[chosen]], many[chosen].tolist())

    def _take(self, run: exact_runs.RunOfKeys, keys: Array, groups: list[int]) -> None:
        """Read the names of the staying documents of one run."""
        low = int(keys["name"].min())
        high = int((keys["name"] + keys["size"]).max())
        data = run.bytes_at(run.run.names + low, high - low)
        for group, at, size in zip(groups, keys["name"].tolist(), keys["size"].tolist(), strict=True):
            self._names[group] = data[at - low : at - low + size]

    def section(self, i: int, number: int, before: int, stays: Array) -> tuple[bytes, int]:
        """Return the section of a run, and its digest.

        Args:
            i: the run.
            number: Number of the run in its shard.
            before: keys of it in partitions before this one.
            stays: True if its first document of each key stays.
        """
        begin, end = self._ends[i], self._ends[i + 1]
        groups = self._groups[begin:end]
        copies = self._copies[groups]
        many = np.flatnonzero(copies > 1)
        names = [self._names[group] for group in groups[many].tolist()]
        rows = (many + before).astype("<u4"), copies[many].astype("<u4"), stays[many].astype("u1")
        digest = 0
        for name, key, total, stay in zip(names, *(row.tolist() for row in rows), strict=True):
            digest += xxhash.xxh3_128_intdigest(b"%d %d %d %d " % (number, key, total, stay) + name)
        return msgspec.msgpack.encode((*(row.tobytes() for row in rows), names)), digest


def parts_of(folder: str, signed: int) -> tuple[KeyRuns, list[int]]:
    """Return a folder's resolution, and the indices of a shard's runs."""
    whole: KeyRuns = load_layout(_layout(folder), KeyRuns)
    return whole, [i for i, run in enumerate(whole.runs) if run.shard == signed]


def staying(folder: str, run: int) -> Array:
    """Return a mask of the staying keys of a run: bool."""
    return _bits(folder, run, 0)


def grouped(folder: str, run: int) -> Array:
    """Return a mask of the staying keys with a shared upper half: bool."""
    return _bits(folder, run, 1)


def _bits(folder: str, run: int, row: int) -> Array:
    results = []
    for section in gather_sections(folder, _SECTIONS, run):
        (count,) = np.frombuffer(section, dtype="<u4", count=1).tolist()
        bits = np.frombuffer(section, dtype="u1", offset=4 + row * -(-count // 8))
        results.append(np.unpackbits(bits, count=count).astype(bool))
    return np.concatenate(results)


_NUMBER = exact_runs.FIRST - 1


def values_of_documents(signed: SignedShard, folder: str) -> Iterator[msgspec.Raw]:
    """Yield ``{"duplicate_of", "copies"}`` of each document."""
    whole, places = parts_of(folder, signed.number)
    for place in places:
        values = {exact_runs.ABSENT: _value(b"null", 0)}
        for section in gather_sections(folder, _SECTIONS, place):
            *columns, names = msgspec.msgpack.decode(section, type=tuple[bytes, bytes, bytes, list[bytes]])
            typed = map(np.frombuffer, columns, ("<u4", "<u4", "u1"))
            for key, copies, is_here, name in zip(*(column.tolist() for column in typed), names, strict=True):
                values[key] = values[key | exact_runs.FIRST] = _value(name, copies)
                if is_here:
                    values[key | exact_runs.FIRST] = _value(b"null", copies)
        yield from map(values.get, whole.runs[place].items().tolist(), repeat(_value(b"null", 1)))


def _value(name: bytes, copies: int) -> msgspec.Raw:
    return msgspec.Raw(b'{"duplicate_of":%b,"copies":%d}' % (name, copies))


def values_of_pieces(signed: SignedShard, folder: str, length: int = 1) -> Iterator[msgspec.Raw]:
    """Yield ``{"seen", "spans", "chars_seen"}`` of each document.

    Args:
        signed: its shard.
        folder: Folder of the decisions.
        length: Pieces that a repeat has, the one that its hash belongs to first.
    """
    whole, places = parts_of(folder, signed.number)
    for place in places:
        yield from _pieces(whole.runs[place], staying(folder, place), length)


class Piled(NamedTuple):
    """The pieces of a run.

    Attributes:
        items: uint32, of each piece, as in the run.
        sizes: uint32, of each piece, its code points.
        bounds: uint32, of each document, its pieces, and the code points before them.
        stays: uint8, of each hash, whether it stays in this run; and 1, for pieces that are not compared.
        keys: Number of hashes.
        parts: uint8, `_PARTS`, of which the first bytes say where each begins, and the last ends.
    """

    items: UInt32s
    sizes: UInt32s
    bounds: UInt32s
    stays: UInt8s
    keys: int
    parts: UInt8s


_PARTS = (b'{"seen":[', b'],"spans":[', b'],"chars_seen":', b",1.0]")


def _parts() -> np.ndarray:
    places = np.cumsum([len(_PARTS) + 1, *map(len, _PARTS)]).astype("u1")
    return np.concatenate([places, np.frombuffer(b"".join(_PARTS), dtype="u1")])


_values = Compiled("toolkit.whole_corpus.exact.exact_kernel:values", Piled, "int64 uint8* int64*")

_SPAN, _VALUE = len(b"[,,1.0],") + 2 * 10, len(b'{"seen":[],"spans":[],"chars_seen":}') + 10
"""Bytes of JSON, at most: numbers have ten digits."""


def _pieces(run: exact_runs.RunOfKeys, stays: np.ndarray, length: int) -> Iterator[msgspec.Raw]:
    items, bounds = run.items(), run.bounds()
    if length > 1:  # the last pieces of a document are never compared, so a repeat ends with its document
        repeated = (items & exact_runs.FIRST == 0) | ~np.append(stays, True)[np.minimum(items & _NUMBER, len(stays))]
        for _ in range(length - 1):
            repeated[1:] |= repeated[:-1]
        items, stays = np.where(repeated, 0, exact_runs.ABSENT).astype("u4"), np.zeros(1, dtype=bool)
    pieces, documents = len(items), len(bounds)
    out = np.empty(len(b"false,") * pieces + _SPAN * ((pieces + documents) // 2 + 1) + _VALUE * documents, dtype="u1")
    ends = np.zeros(documents + 1, dtype=np.int64)
    piled = Piled(
        items, run.sizes(), np.ascontiguousarray(bounds), np.append(stays, True).astype("u1"), len(stays), _parts()
    )
    _values(piled, documents, out, ends[1:])
    result = out[: ends[-1]].tobytes()
    for begin, end in pairwise(ends.tolist()):
        yield msgspec.Raw(result[begin:end])
