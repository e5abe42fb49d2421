"""Step 2, whole: from signatures to fates, task by task (see `toolkit.whole.near`)."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.errors import amount
from toolkit.exchange.scatter import settle
from toolkit.execution.executors import Task
from toolkit.storage import store_of
from toolkit.storage.paths import exists, join, remove, remove_tree
from toolkit.whole.kind import Resolved, Work
from toolkit.whole.near import signing
from toolkit.whole.near.connecting import (
    Bucketed,
    ToBucket,
    connect,
    find_buckets,
    partitions_of,
    parts_of,
    ranges,
    runs_of,
)
from toolkit.whole.near.deciding import (
    DECIDED,
    FATES,
    SHOWN,
    Cluster,
    Decided,
    Gathered,
    ToDecide,
    ToGather,
    ToIndex,
    decide_unit,
    gather_shard,
    index_units,
)
from toolkit.whole.near.evidence import ToRead, read_shard
from toolkit.whole.near.graph import INDEX, Numbering, Planned, ToPlan, plan_units, were_there
from toolkit.whole.near.signatures import Size
from toolkit.whole.records import DECISIONS, SignedShard

_WORK = "work-"


class Comparing(ConfigStruct):
    """How documents are compared.

    Attributes:
        bands: of signatures.
        size: of shingles; None if sets are not compared.
        jaccard: the least similarity.
        containment: the least part of what is removed that the kept document has.
        descending: whether the document with the greatest order is kept.
        ranks: Type of the order.
        warn: a part of a source, host or language; where more is removed, that is told.
    """

    bands: int
    size: Size | None
    jaccard: float
    containment: float
    descending: bool
    ranks: str
    warn: float


class _Place(NamedTuple):
    """Where is worked: the folder for that, the one of an earlier resolution, the number of the first own shard."""

    folder: str
    known: str
    own: int


def resolve(work: Work, comparing: Comparing) -> Resolved:
    """Write the fates of all documents, and what later resolutions can use of them."""
    folder = join(work.folder, f"{_WORK}{work.memory}")
    own = next((each.number for each in work.shards if each.own), len(work.shards))
    place = _Place(folder, _known(work.folder), own)
    remove(join(work.folder, INDEX))  # of an attempt that was not finished: what it points to is written anew
    bucketed, partitions = _bucket(work, comparing, place)
    candidates, planned = _plan(work, comparing, place, bucketed, partitions)
    numbering = Numbering(units=[each.units for each in planned], fresh=[each.fresh for each in planned])
    evidence = _read(work, comparing, folder, planned, numbering)
    decided = _decide(work, comparing, place, numbering, evidence)
    settle(work.run, folder, INDEX, [path for each in decided for path in each.index])
    settle(work.run, folder, DECIDED, [path for each in decided for path in each.objects])
    work.run(
        "keeping what later runs compare with",
        index_units,
        [
            Task(
                "keep",
                ToIndex(
                    memory=work.memory,
                    marks=[_mark(each) for each in work.shards],
                    folder=folder,
                    fates=work.folder,
                ),
            )
        ],
    )
    gathered = _gather(work, folder, candidates)
    fates = {each.shard: "" for each in work.shards if each.own}
    fates |= {shard: found.digest for shard, found in gathered.items()}
    notes = [_sizes(planned, bucketed), *_losses(work, comparing, gathered.values()), *_largest(decided)]
    for name in store_of(work.folder).folders(work.folder):
        if name.startswith(_WORK):  # of attempts with another memory, too
            remove_tree(join(work.folder, name))
    return Resolved(fates, _counts(comparing, candidates, decided), notes)


def _known(folder: str) -> str:
    """Return the folder of fates of an earlier resolution that is complete; empty if there is none."""
    above, _, name = folder.rpartition("/")
    for other in store_of(above).folders(above):
        if other.startswith(DECISIONS) and other != name and exists(join(above, other, INDEX)):
            return join(above, other)
    return ""


def _read(
    work: Work, comparing: Comparing, folder: str, planned: list[Planned], numbering: Numbering
) -> list[tuple[int, int]]:
    """Have the text of candidates read; return the numbers of their shards, and how many files each has."""
    unread = [sum(counts) for counts in zip(*(each.unread for each in planned), strict=True)]
    tasks = [
        Task(
            f"{each.shard} ({each.number})",
            ToRead(
                signed=each,
                numbering=numbering,
                bands=comparing.bands,
                size=comparing.size,
                memory=work.memory,
                folder=folder,
            ),
            unread[each.number],
        )
        for each in work.shards
        if unread[each.number]
    ]
    files = work.run("reading documents that may be near duplicates", read_shard, tasks)
    return [(task.payload.signed.number, count) for task, count in zip(tasks, files, strict=True)]


def _decide(
    work: Work, comparing: Comparing, place: _Place, numbering: Numbering, evidence: list[tuple[int, int]]
) -> list[Decided]:
    tasks = []
    for number, (part, there) in enumerate(numbering.all()):
        to_decide = ToDecide(
            number=number,
            place=(part, there),
            files=evidence,
            shards=len(work.shards),
            own=place.own,
            bands=comparing.bands,
            jaccard=comparing.jaccard,
            containment=comparing.containment,
            verify=comparing.size is not None,
            memory=work.memory,
            folder=place.folder,
            fates=work.folder,
            known=place.known if number >= sum(numbering.fresh) else "",
        )
        tasks.append(Task(f"unit {number}", to_decide))
    return work.run("deciding which near duplicates stay", decide_unit, tasks)


def _gather(work: Work, folder: str, candidates: list[int]) -> dict[str, Gathered]:
    mine = [each for each in work.shards if each.own and candidates[each.number]]
    tasks = [
        Task(
            f"{each.shard} ({each.number})",
            ToGather(signed=each, folder=folder, path=join(work.folder, f"{FATES}-{each.number}")),
        )
        for each in mine
    ]
    return dict(
        zip(
            (each.shard for each in mine),
            work.run("putting what was found in the order of the documents", gather_shard, tasks),
            strict=True,
        )
    )


def _bucket(work: Work, comparing: Comparing, place: _Place) -> tuple[list[Bucketed], int]:
    """Return what ranges of keys have, and the number of partitions of their pairs."""
    partitions = partitions_of(sum(each.record.compared for each in work.shards), work.memory)
    runs = runs_of(work.shards)
    there = were_there(place.known, [_mark(each) for each in work.shards]) if place.known else []
    tasks = [
        Task(f"range {i}", ToBucket(shards=runs, own=place.own, was_there=there, begin=begin, end=end,
                                    partitions=partitions, path=join(place.folder, f"buckets-{i}")))
        for i, (begin, end) in enumerate(ranges(work.shards, comparing.bands, work.memory))
    ]  # fmt: skip
    return work.run("finding documents that may be near duplicates", find_buckets, tasks), partitions


def _plan(
    work: Work, comparing: Comparing, place: _Place, bucketed: list[Bucketed], partitions: int
) -> tuple[list[int], list[Planned]]:
    """Return how many documents of each shard share a bucket, and what is decided together, part by part."""
    marks = [_mark(each) for each in work.shards]
    compared = sum(each.record.compared for each in work.shards)
    parts = parts_of(min(compared, 2 * sum(each.pairs for each in bucketed)), work.memory)
    candidates = connect(work, place.folder, bucketed, partitions, parts, comparing.ranks)
    tasks = []
    for part in range(parts):
        to_plan = ToPlan(
            part=part,
            own=place.own,
            descending=comparing.descending,
            ranks=comparing.ranks,
            bands=comparing.bands,
            marks=marks,
            known=place.known,
            memory=work.memory,
            unit=work.memory // 4,
            folder=place.folder,
        )
        tasks.append(Task(f"part {part}", to_plan))
    return candidates, work.run("planning which documents are compared", plan_units, tasks)


def _mark(signed: SignedShard) -> int:
    """Return a digest of what the part of a shard in a decision depends on."""
    record = signed.record
    parts = [signed.own, record.digest, msgspec.json.encode(record.settings, order="sorted").decode()]
    return xxhash.xxh3_64_intdigest(msgspec.json.encode(parts))


def _counts(comparing: Comparing, candidates: list[int], decided: list[Decided]) -> dict[str, int]:
    """Return counts that depend on no bound of memory, nor on earlier decisions, as those of pairs that are met do."""
    found = Counter({"duplicates": 0, "clusters": 0})
    for each in decided:
        found.update(each.counts)
    unverified = found["duplicates"] if comparing.size is None else 0
    return {**found, "candidates": sum(candidates), "unverified": unverified}


def _sizes(planned: list[Planned], bucketed: list[Bucketed]) -> str:
    """Return a sentence about what was large."""
    largest = max((each.largest for each in bucketed), default=0)
    return (
        f"{sum(each.buckets for each in bucketed):,} buckets had several documents, at most {largest:,}; they make "
        f"{amount(sum(each.components for each in planned), 'group')} of at most "
        f"{amount(max(each.largest for each in planned), 'document')}"
    )


def _losses(work: Work, comparing: Comparing, gathered: Iterable[Gathered]) -> list[str]:
    """Return warnings of groups that lose much."""
    removed = signing.added_up(found.removed for found in gathered)
    if not removed:
        return []
    mine = [each for each in work.shards if each.own]
    tasks = [Task(each.shard, signing.ToCount(signed=each, groups=list(removed))) for each in mine]
    counts = work.run("counting the documents of large groups", signing.count_groups, tasks)
    return signing.warnings(removed, [sum(column) for column in zip(*counts, strict=True)], comparing.warn)


def _largest(decided: list[Decided]) -> list[str]:
    """Return sentences about the largest clusters."""
    clusters = sorted((each for unit in decided for each in unit.clusters), key=lambda each: (-each.size, each.kept))
    return [_shown(each) for each in clusters[:SHOWN]]


def _shown(cluster: Cluster) -> str:
    others = ", ".join(
        f"{name[1]} ({'not compared' if jaccard is None else f'{jaccard:.3f}'})" for name, jaccard in cluster.some
    )
    return f"cluster of {cluster.size:,}: {cluster.kept[1]} is kept, not {others}"
