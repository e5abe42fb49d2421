"""Decisions about near duplicates: unit by unit, then shard by shard.

`resolve` runs all steps, from signatures to decisions, task by task.

What a unit decides is scattered by shard (`DECISION`, with the value of the document). A shard gathers it, and takes
what no unit has decided from an earlier resolution. It does not depend on units, and is kept beside the fates:

``fates-N``       the values of the rows that have some, in the order of the rows
``duplicates-N``  `components.DUPLICATE` of its duplicates, for later resolutions
``marks``         a digest of the inputs of the decision for each shard; and a digest of the names of these files;
                  written last
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, islice, repeat
from typing import Any

import msgspec
import numpy as np
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.errors import amount
from toolkit.exchange.checksummed import bounds_of, packed, read_sealed, unpacked, write_sealed
from toolkit.exchange.scatter import Scatter, gather, ranges, settle
from toolkit.exchange.thresholds import in_groups
from toolkit.execution.executors import Report, Task
from toolkit.storage import store_of
from toolkit.storage.paths import exists, join, list_files, remove, remove_tree
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.kind import Decisions, ResolveJob
from toolkit.whole_corpus.near import components
from toolkit.whole_corpus.near.comparison import EVIDENCE, Best, OrderedUnit, decide, read_shard
from toolkit.whole_corpus.near.minhash import Group, added_up, counted_groups, most_removed, warnings
from toolkit.whole_corpus.records import DECISIONS, NumberedShard, SignedShard
from toolkit.whole_corpus.sign import names_of_rows

DECIDED, FATES = "decided", "fates"
TYPES = ROWS, SIZES, VALUES = ("<u4", "<u4", "u1")

DECISION = np.dtype([*components.DUPLICATE, ("payload", "<u4")])
"""A document of a shard: what it is a duplicate of, itself if it is kept; the payload is its value, empty if alone."""

_BATCH = 1 << 12  # documents of a unit that are scattered at a time


class NearCopies(msgspec.Struct, frozen=True):
    """Near duplicates of a document.

    Attributes:
        duplicate_of: source and id of the kept document that it is most like; null if it is kept, or not compared.
        jaccard: Jaccard similarity of the sets of distinct shingles of both; null where no sets were compared.
        containment: Share of its own distinct shingles in the kept document; null where no sets were compared.
        cluster: source and id of the kept document of the cluster; null if nothing else is in it.
        size: Number of documents of the cluster: the kept one and its duplicates.
    """

    duplicate_of: list[str] | None = None
    jaccard: float | None = None
    containment: float | None = None
    cluster: list[str] | None = None
    size: int = 1


class ToDecide(ConfigStruct):
    """A unit: its part, its number there, and the folder of the work."""

    part: int
    unit: int
    folder: str


def decide_unit(task: ToDecide, report: Report) -> list[str]:
    """Decide about the documents of a unit, and scatter decisions by shard; return the objects."""
    layout = components.load_layout(task.folder, components.PLAN)
    fates = gather(
        task.folder, f"{components.UNITS}-{task.part}", task.unit, task.unit + 1, np.dtype(components.FATE)
    ).records
    documents, number = fates["document"], layout.units[task.part] + task.unit
    shards = (documents >> np.uint64(32)).astype(np.int64)
    is_fixed = shards < layout.own
    was_kept, was_gone = fates["of"] == components.KEPT, fates["of"] >= 0
    comparing = layout.comparing
    with OrderedUnit(task.folder, number, is_fixed | was_kept, comparing.bands) as unit:
        earlier = Best(*(fates[name].astype(np.int64) for name in ("of", "common", "joint")))
        earlier.positions[earlier.positions < 0] = -1
        best = decide(
            unit, earlier, jaccard=comparing.jaccard, containment=comparing.containment,
            verify=comparing.size is not None, memory=layout.memory,
        ).best  # fmt: skip
        decisions = np.zeros(len(fates), dtype=DECISION)
        decisions["row"] = documents & np.uint64(0xFFFFFFFF)
        decisions["of"] = documents[np.where(best.positions >= 0, best.positions, np.arange(len(fates)))]
        decisions["common"], decisions["joint"] = best.common, best.joint
        decisions["size"] = np.where(was_gone, fates["size"], unit.sizes)
        values = _values(unit, is_fixed, best.positions, decisions)
        stem = join(task.folder, f"{DECIDED}-{number}")
        with Scatter(stem, DECISION, len(layout.shards), layout.memory) as scatter:
            for first in range(0, len(fates), _BATCH):
                some = slice(first, first + _BATCH)
                scatter.add(decisions[some], shards[some], [*islice(values, _BATCH)])
    return scatter.objects


def _values(unit: OrderedUnit, is_fixed: Array, positions: Array, decisions: Array) -> Iterator[bytes]:
    """Yield the value of each document; nothing of one that is in no cluster, or of another dataset."""
    sizes = (np.bincount(positions[positions >= 0], minlength=len(positions)) + 1).tolist()
    columns = (decisions[name].tolist() for name in ("common", "joint", "size"))
    for place, (position, is_given, common, joint, own) in enumerate(
        zip(positions.tolist(), is_fixed.tolist(), *columns, strict=True)
    ):
        if is_given or (position < 0 and sizes[place] == 1):
            yield b""
        elif position < 0:
            yield _ENCODER.encode(NearCopies(cluster=_NAME.decode(unit.name(place)), size=sizes[place]))
        else:
            jaccard, containment = (common / joint, common / own) if joint else (None, None)
            of = _NAME.decode(unit.name(position))
            yield _ENCODER.encode(NearCopies(of, jaccard, containment, of, sizes[position]))


_NAME = msgspec.json.Decoder(list[str])
_VALUE = msgspec.json.Decoder(NearCopies)
_ENCODER = msgspec.json.Encoder()

_IS_KEPT = b'{"duplicate_of":null'
"""Prefix of the value of a kept document."""

SHOWN = 3
"""Largest clusters that are shown, and members of each."""


class ShardFates(ConfigStruct):
    """The fates of a shard.

    Attributes:
        digest: Digest of the values.
        removed: Groups that lose most (see `toolkit.whole_corpus.near.minhash`).
        duplicates: Number of duplicates.
        clusters: Number of clusters whose kept documents are in the shard.
        largest: Sizes of the largest of these, and the names of their kept documents.
    """

    digest: str
    removed: list[tuple[str, str, int]]
    duplicates: int
    clusters: int
    largest: list[tuple[int, list[str]]]


def gather_shard(shard: NumberedShard, report: Report) -> ShardFates:
    """Write the decisions about the documents of a shard."""
    folder, number = shard.folder, shard.number
    layout = components.load_layout(folder, components.PLAN)
    decisions, payload = gather(folder, DECIDED, number, number + 1, DECISION)
    values = dict(zip(decisions["row"].tolist(), payload, strict=True))
    for row, value in _earlier_values(layout, number):
        values.setdefault(row, value)
    shown_values = {row: values[row] for row in sorted(values) if values[row]}
    rows, sizes = np.array([*shown_values], dtype=ROWS), np.array([*map(len, shown_values.values())], dtype=SIZES)
    data = packed([rows, sizes, np.frombuffer(b"".join(shown_values.values()), dtype=VALUES)])
    write_sealed(join(layout.fates, f"{FATES}-{number}"), data)
    duplicates = components.earlier_duplicates(layout, number)
    mine = decisions[decisions["of"] != (decisions["row"] | np.uint64(number << 32))][
        [name for name, _ in components.DUPLICATE]
    ]
    earlier = duplicates[~np.isin(duplicates["row"], decisions["row"])]
    duplicates = np.concatenate([earlier, mine.astype(components.DUPLICATE)])
    write_sealed(
        join(layout.fates, f"{components.DUPLICATES}-{number}"),
        duplicates[np.argsort(duplicates["row"], kind="stable")].tobytes(),
    )
    are_kept = [value.startswith(_IS_KEPT) for value in shown_values.values()]
    clusters = (_VALUE.decode(value) for value in compress(shown_values.values(), are_kept))
    largest = sorted(((cluster.size, cluster.cluster or []) for cluster in clusters), key=_by_size)[:SHOWN]
    return ShardFates(
        digest=xxhash.xxh3_128_hexdigest(data),
        removed=most_removed(
            shard.load(), [row for row, is_kept in zip(shown_values, are_kept, strict=True) if not is_kept]
        ),
        duplicates=len(shown_values) - sum(are_kept),
        clusters=sum(are_kept),
        largest=largest,
    )


def _by_size(cluster: tuple[int, list[str]]) -> tuple[int, list[str]]:
    return -cluster[0], cluster[1]


def largest_of(gathered: Iterable[ShardFates]) -> list[tuple[int, list[str]]]:
    """Return the sizes and the kept documents of the largest clusters."""
    return sorted((cluster for shard in gathered for cluster in shard.largest), key=_by_size)[:SHOWN]


def _earlier_values(layout: components.ResolutionLayout, number: int) -> Iterator[tuple[int, bytes]]:
    """Yield rows and values of a shard in the earlier resolution."""
    if layout.numbers and (earlier := layout.numbers[number]) >= 0:
        yield from _stored_values(join(layout.earlier, f"{FATES}-{earlier}"))


def _stored_values(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield rows with values, and these; nothing if the file is not there."""
    if exists(path):
        rows, sizes, values = unpacked(read_sealed(path), TYPES)
        text, bounds = values.tobytes(), bounds_of(sizes).tolist()
        for row, begin, end in zip(rows.tolist(), bounds, bounds[1:], strict=False):
            yield row, text[begin:end]


def values_of(path: str, rows: int) -> Iterator[NearCopies | msgspec.Raw]:
    """Yield the value of each row of a shard; `path` is that of its fates, if it has any."""
    alone, at = NearCopies(), 0
    for row, value in _stored_values(path):
        yield from repeat(alone, row - at)
        yield msgspec.Raw(value)
        at = row + 1
    yield from repeat(alone, rows - at)


class Question(ConfigStruct):
    """Query to all shards, in a file: groups, and the names of kept documents."""

    groups: list[Group]
    originals: list[list[str]]


class GroupCountTask(ConfigStruct):
    """A shard, and a question about its groups and clusters."""

    shard: NumberedShard
    question: str


class GroupCounts(ConfigStruct):
    """The compared documents of each group, and some duplicates of kept documents: name and similarity."""

    groups: list[int]
    duplicates: list[list[tuple[list[str], float | None]]]


def count_groups(task: GroupCountTask, report: Report) -> GroupCounts:
    """Answer a question."""
    signed, layout = task.shard.load(), components.load_layout(task.shard.folder, components.PLAN)
    question = msgspec.msgpack.decode(read_sealed(task.question), type=Question)
    begins = {b'{"duplicate_of":' + _ENCODER.encode(name) + b",": i for i, name in enumerate(question.originals)}
    results: list[list[tuple[int, float | None]]] = [[] for _ in question.originals]
    for row, value in _stored_values(join(layout.fates, f"{FATES}-{signed.number}")):
        if value.startswith(tuple(begins)):
            number = next(i for begin, i in begins.items() if value.startswith(begin))
            if len(results[number]) < SHOWN - 1:
                results[number].append((row, _VALUE.decode(value).jaccard))
    rows = sorted({row for some in results for row, _ in some})
    names = dict(zip(rows, names_of_rows(signed, np.array(rows, dtype=np.int64)), strict=True))
    counts = counted_groups(signed)
    return GroupCounts(
        groups=[counts[group] for group in question.groups],
        duplicates=[[(names[row], jaccard) for row, jaccard in some] for some in results],
    )


_MARKS = "marks"


def resolve(work: ResolveJob, comparing: components.Comparing) -> Decisions:
    """Write the decisions about all documents, for later resolutions, too."""
    folder = work.scratch
    own = next((shard.number for shard in work.shards if shard.own), len(work.shards))
    remove(join(work.folder, _MARKS))  # of an attempt that was not finished: what it stands for is written anew
    marks = [_mark(shard) for shard in work.shards]
    layout = components.ResolutionLayout(
        comparing=comparing,
        memory=work.memory,
        shards=[components.ShardPlace(folder=shard.path(""), rows=shard.record.rows) for shard in work.shards],
        own=own,
        fates=work.folder,
    )
    earlier, numbers = _earlier(work.folder, marks)
    layout = msgspec.structs.replace(layout, earlier=earlier, numbers=numbers)
    components.save_layout(folder, layout)
    bucketed, candidates, planned = plan(work, comparing, folder)
    components.save_layout(
        folder, msgspec.structs.replace(layout, units=[*accumulate((p.units for p in planned), initial=0)])
    )
    unread = Counter[int]()
    for item in planned:
        unread.update(item.unread)
    reading = [Task(name, shard, unread[shard.number]) for name, shard in work.numbered(unread)]
    _settle(work, folder, EVIDENCE, work.run("reading documents that may be near duplicates", read_shard, reading))
    units = [(part, unit) for part, item in enumerate(planned) for unit in range(item.units)]
    deciding = [Task(f"unit {i}", ToDecide(part=p, unit=u, folder=folder)) for i, (p, u) in enumerate(units)]
    _settle(work, folder, DECIDED, work.run("deciding which near duplicates stay", decide_unit, deciding))
    own_candidates = [number for number in candidates if number >= own]
    gathering = [Task(name, shard) for name, shard in work.numbered({*own_candidates})]
    gathered: list[ShardFates] = work.run(
        "putting what was found in the order of the documents", gather_shard, gathering
    )
    fates = {shard.shard: "" for shard in work.shards if shard.own}
    for task, result in zip(gathering, gathered, strict=True):
        fates[work.shards[task.payload.number].shard] = result.digest
    notes = [_sizes(planned, bucketed), *_losses(work, comparing, folder, gathered)]
    duplicates = sum(item.duplicates for item in gathered)
    counts = {"duplicates": duplicates, "clusters": sum(item.clusters for item in gathered)}
    counts |= {"candidates": sum(candidates.values()), "unverified": duplicates if comparing.size is None else 0}
    write_sealed(join(work.folder, _MARKS), np.array([*marks, _names(work.folder)], dtype="<u8").tobytes())
    return Decisions(fates, counts, notes)


def _earlier(folder: str, marks: Sequence[int]) -> tuple[str, list[int]]:
    """Return the folder of an earlier resolution, and its shard numbers.

    Returns:
        folder: Path; empty if there is none.
        numbers: Number of each shard; -1 for one that is new.
    """
    above, _, name = folder.rpartition("/")
    for other in store_of(above).folders(above):
        path = join(above, other)
        if other.startswith(DECISIONS) and other != name and exists(join(path, _MARKS)):
            *earlier, names = np.frombuffer(read_sealed(join(path, _MARKS)), dtype="<u8").tolist()
            if names != _names(path):  # something is lost, say because a kill ended the removal of the folder
                continue
            numbers_of_marks = {mark: i for i, mark in enumerate(earlier)}
            numbers = [numbers_of_marks.get(mark, -1) for mark in marks]
            if [number for number in numbers if number >= 0] == list(range(len(earlier))):
                return path, numbers
    return "", []


def _names(folder: str) -> int:
    """Return a digest of the names of the files of a resolution: to read, a shard without one has no duplicates."""
    names = [name for name in list_files(folder) if name.startswith((FATES, components.DUPLICATES))]
    return xxhash.xxh3_64_intdigest(msgspec.json.encode(names))


def _mark(signed: SignedShard) -> int:
    """Return a digest of a shard's part in the input."""
    record = signed.record
    parts = [signed.own, signed.shard, record.digest, msgspec.json.encode(record.settings, order="sorted").decode()]
    return xxhash.xxh3_64_intdigest(msgspec.json.encode(parts))


def _settle(work: ResolveJob, folder: str, name: str, objects: list[list[str]]) -> None:
    settle(work.run, folder, name, [*chain.from_iterable(objects)])


def plan(
    work: ResolveJob, comparing: components.Comparing, folder: str
) -> tuple[list[components.Bucketed], dict[int, int], list[components.Planned]]:
    """Plan the comparison: ranges of keys, candidates by shard, and units.

    Args:
        work: Work.
        comparing: Parameters of the comparison.
        folder: Folder of the work, which has the layout.
    """
    compared = sum(shard.record.compared for shard in work.shards)
    partitions, keys = components.partitions_of(compared, work.memory), join(folder, components.KEYS)
    ranges_of_keys = components.partitions_of(comparing.bands * compared // 8, work.memory)
    scattering = [
        Task(f"shards {first}", components.WorkRange(first=first, last=last, partitions=ranges_of_keys, folder=folder))
        for first, last in in_groups(comparing.bands * shard.record.rows for shard in work.shards)
    ]
    _settle(
        work,
        keys,
        components.KEYS,
        work.run("finding documents that may be near duplicates", components.scatter_keys, scattering),
    )
    bucketing = [
        Task(f"range {first}", components.WorkRange(first=first, last=last, partitions=partitions, folder=folder))
        for first, last in ranges(keys, [components.KEYS], 4 * work.memory)  # 128 bytes a key
    ]
    bucketed: list[components.Bucketed] = work.run(
        "finding documents that may be near duplicates", components.find_buckets, bucketing
    )
    remove_tree(keys)
    parts = components.parts_of(min(compared, 2 * sum(item.pairs for item in bucketed)), work.memory)
    objects = [*chain.from_iterable(item.objects for item in bucketed)]
    candidates = components.connect(work, folder, objects, partitions, parts)
    planning = [Task(f"part {part}", components.ToPlan(part=part, folder=folder)) for part in range(parts)]
    planned: list[components.Planned] = work.run(
        "planning which documents are compared", components.plan_units, planning
    )
    for part, item in enumerate(planned):
        settle(work.run, folder, f"{components.UNITS}-{part}", item.objects[0])
    _settle(work, folder, components.MEMBERS, [item.objects[1] for item in planned])
    return bucketed, candidates, planned


def _sizes(planned: list[components.Planned], bucketed: list[components.Bucketed]) -> str:
    """Return a sentence about the largest buckets and groups."""
    largest = max((item.largest for item in bucketed), default=0)
    return (
        f"{sum(item.buckets for item in bucketed):,} buckets had several documents, at most {largest:,}; they make "
        f"{amount(sum(item.components for item in planned), 'group')} of at most "
        f"{amount(max(item.largest for item in planned), 'document')}"
    )


def _losses(work: ResolveJob, comparing: components.Comparing, folder: str, gathered: list[ShardFates]) -> list[str]:
    """Return warnings about removal rates, and sentences about large clusters."""
    removed, largest = added_up(item.removed for item in gathered), largest_of(gathered)
    if not removed:
        return []
    question = join(folder, "question")
    content = Question(groups=list(removed), originals=[name for _, name in largest])
    write_sealed(question, msgspec.msgpack.encode(content))
    tasks = [Task(name, GroupCountTask(shard=shard, question=question)) for name, shard in work.numbered()]
    counted: list[GroupCounts] = work.run("counting the documents of large groups", count_groups, tasks)
    notes = warnings(
        removed, [sum(column) for column in zip(*(counts.groups for counts in counted), strict=True)], comparing.warn
    )
    for i, (size, original) in enumerate(largest):
        some = [*chain.from_iterable(counts.duplicates[i] for counts in counted)][: SHOWN - 1]
        notes.append(_describe_cluster(size, original, some))
    return notes


def _describe_cluster(size: int, original: list[str], duplicates: list[tuple[list[str], Any]]) -> str:
    names = ", ".join(
        f"{name[1]} ({'not compared' if jaccard is None else f'{jaccard:.3f}'})" for name, jaccard in duplicates
    )
    return f"cluster of {size:,}: {original[1]} is kept, not {names}"
