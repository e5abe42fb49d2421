"""Step 2, whole: from signatures to fates, task by task (see `toolkit.whole_corpus.near`)."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import msgspec
import numpy as np
import xxhash

from toolkit.errors import amount
from toolkit.exchange.scatter import ranges, settle
from toolkit.exchange.sealed import read_sealed, write_sealed
from toolkit.exchange.thresholds import in_groups
from toolkit.execution.executors import Task
from toolkit.storage import store_of
from toolkit.storage.paths import exists, join, list_files, remove, remove_tree
from toolkit.whole_corpus.kind import Resolved, Work
from toolkit.whole_corpus.near.connecting import (
    DUPLICATES,
    KEYS,
    MEMBERS,
    UNITS,
    Bucketed,
    Comparing,
    Layout,
    Planned,
    ShardPlace,
    ToPlan,
    WorkRange,
    connect,
    find_buckets,
    partitions_of,
    parts_of,
    plan_units,
    save_layout,
    scatter_keys,
)
from toolkit.whole_corpus.near.deciding import (
    DECIDED,
    FATES,
    SHOWN,
    Counts,
    Gathered,
    Question,
    ToCount,
    ToDecide,
    ToGather,
    count_groups,
    decide_unit,
    gather_shard,
    largest_of,
)
from toolkit.whole_corpus.near.evidence import EVIDENCE, ToRead, read_shard
from toolkit.whole_corpus.near.signing import added_up, warnings
from toolkit.whole_corpus.records import DECISIONS, SignedShard

_MARKS = "marks"


def resolve(work: Work, comparing: Comparing) -> Resolved:
    """Write the fates of all documents, and what later resolutions can use of them."""
    folder = work.scratch
    own = next((shard.number for shard in work.shards if shard.own), len(work.shards))
    remove(join(work.folder, _MARKS))  # of an attempt that was not finished: what it stands for is written anew
    marks = [_mark(shard) for shard in work.shards]
    layout = Layout(
        comparing=comparing,
        memory=work.memory,
        shards=[ShardPlace(folder=shard.path(""), rows=shard.record.rows) for shard in work.shards],
        own=own,
        fates=work.folder,
    )
    earlier, numbers = _earlier(work.folder, marks)
    layout = msgspec.structs.replace(layout, earlier=earlier, numbers=numbers)
    save_layout(folder, layout)
    bucketed, candidates, planned = plan(work, comparing, folder)
    save_layout(folder, msgspec.structs.replace(layout, units=[*accumulate((p.units for p in planned), initial=0)]))
    unread = Counter[int]()
    for item in planned:
        unread.update(item.unread)
    reading = [Task(name, ToRead(shard=shard), unread[shard.number]) for name, shard in work.numbered(unread)]
    _settle(work, folder, EVIDENCE, work.run("reading documents that may be near duplicates", read_shard, reading))
    units = [(part, unit) for part, item in enumerate(planned) for unit in range(item.units)]
    deciding = [Task(f"unit {i}", ToDecide(part=p, unit=u, folder=folder)) for i, (p, u) in enumerate(units)]
    _settle(work, folder, DECIDED, work.run("deciding which near duplicates stay", decide_unit, deciding))
    own_candidates = [number for number in candidates if number >= own]
    gathering = [Task(name, ToGather(shard=shard)) for name, shard in work.numbered({*own_candidates})]
    gathered: list[Gathered] = work.run("putting what was found in the order of the documents", gather_shard, gathering)
    fates = {shard.shard: "" for shard in work.shards if shard.own}
    for task, result in zip(gathering, gathered, strict=True):
        fates[work.shards[task.payload.shard.number].shard] = result.digest
    notes = [_sizes(planned, bucketed), *_losses(work, comparing, folder, gathered)]
    duplicates = sum(item.duplicates for item in gathered)
    counts = {"duplicates": duplicates, "clusters": sum(item.clusters for item in gathered)}
    counts |= {"candidates": sum(candidates.values()), "unverified": duplicates if comparing.size is None else 0}
    write_sealed(join(work.folder, _MARKS), np.array([*marks, _names(work.folder)], dtype="<u8").tobytes())
    return Resolved(fates, counts, notes)


def _earlier(folder: str, marks: Sequence[int]) -> tuple[str, list[int]]:
    """Return the folder of an earlier resolution of some of these shards and no others, and their numbers there.

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
            known = {mark: i for i, mark in enumerate(earlier)}
            numbers = [known.get(mark, -1) for mark in marks]
            if [number for number in numbers if number >= 0] == list(range(len(earlier))):
                return path, numbers
    return "", []


def _names(folder: str) -> int:
    """Return a digest of the names of the files of a resolution: to read, a shard without one has no duplicates."""
    names = [name for name in list_files(folder) if name.startswith((FATES, DUPLICATES))]
    return xxhash.xxh3_64_intdigest(msgspec.json.encode(names))


def _mark(signed: SignedShard) -> int:
    """Return a digest of what the part of a shard in a decision depends on."""
    record = signed.record
    parts = [signed.own, signed.shard, record.digest, msgspec.json.encode(record.settings, order="sorted").decode()]
    return xxhash.xxh3_64_intdigest(msgspec.json.encode(parts))


def _settle(work: Work, folder: str, name: str, objects: list[list[str]]) -> None:
    settle(work.run, folder, name, [*chain.from_iterable(objects)])


def plan(work: Work, comparing: Comparing, folder: str) -> tuple[list[Bucketed], dict[int, int], list[Planned]]:
    """Return what ranges of keys have, how many candidates each shard has, and what is decided together.

    Args:
        work: Work.
        comparing: How documents are compared.
        folder: Folder of the work, which has the layout.
    """
    compared = sum(shard.record.compared for shard in work.shards)
    partitions, keys = partitions_of(compared, work.memory), join(folder, KEYS)
    ranges_of_keys = partitions_of(comparing.bands * compared // 8, work.memory)
    scattering = [
        Task(f"shards {first}", WorkRange(first=first, last=last, partitions=ranges_of_keys, folder=folder))
        for first, last in in_groups(comparing.bands * shard.record.rows for shard in work.shards)
    ]
    _settle(work, keys, KEYS, work.run("finding documents that may be near duplicates", scatter_keys, scattering))
    bucketing = [
        Task(f"range {first}", WorkRange(first=first, last=last, partitions=partitions, folder=folder))
        for first, last in ranges(keys, [KEYS], 4 * work.memory)  # 128 bytes a key
    ]
    bucketed: list[Bucketed] = work.run("finding documents that may be near duplicates", find_buckets, bucketing)
    remove_tree(keys)
    parts = parts_of(min(compared, 2 * sum(item.pairs for item in bucketed)), work.memory)
    objects = [*chain.from_iterable(item.objects for item in bucketed)]
    candidates = connect(work, folder, objects, partitions, parts)
    planning = [Task(f"part {part}", ToPlan(part=part, folder=folder)) for part in range(parts)]
    planned: list[Planned] = work.run("planning which documents are compared", plan_units, planning)
    for part, item in enumerate(planned):
        settle(work.run, folder, f"{UNITS}-{part}", item.objects[0])
    _settle(work, folder, MEMBERS, [item.objects[1] for item in planned])
    return bucketed, candidates, planned


def _sizes(planned: list[Planned], bucketed: list[Bucketed]) -> str:
    """Return a sentence about what was large."""
    largest = max((item.largest for item in bucketed), default=0)
    return (
        f"{sum(item.buckets for item in bucketed):,} buckets had several documents, at most {largest:,}; they make "
        f"{amount(sum(item.components for item in planned), 'group')} of at most "
        f"{amount(max(item.largest for item in planned), 'document')}"
    )


def _losses(work: Work, comparing: Comparing, folder: str, gathered: list[Gathered]) -> list[str]:
    """Return warnings of groups that lose much, and sentences about the largest clusters."""
    removed, largest = added_up(item.removed for item in gathered), largest_of(gathered)
    if not removed:
        return []
    question = join(folder, "question")
    asked = Question(groups=list(removed), kept=[name for _, name in largest])
    write_sealed(question, msgspec.msgpack.encode(asked))
    tasks = [Task(name, ToCount(shard=shard, question=question)) for name, shard in work.numbered()]
    counted: list[Counts] = work.run("counting the documents of large groups", count_groups, tasks)
    notes = warnings(
        removed, [sum(column) for column in zip(*(counts.groups for counts in counted), strict=True)], comparing.warn
    )
    for i, (size, kept) in enumerate(largest):
        some = [*chain.from_iterable(counts.duplicates[i] for counts in counted)][: SHOWN - 1]
        notes.append(_shown(size, kept, some))
    return notes


def _shown(size: int, kept: list[str], duplicates: list[tuple[list[str], Any]]) -> str:
    others = ", ".join(
        f"{name[1]} ({'not compared' if jaccard is None else f'{jaccard:.3f}'})" for name, jaccard in duplicates
    )
    return f"cluster of {size:,}: {kept[1]} is kept, not {others}"
