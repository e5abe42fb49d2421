"""Step 2, whole: from the stretches of all shards to spans, task by task (see `toolkit.whole.passages`)."""

from toolkit.config.settings import ConfigStruct
from toolkit.runs.executors import Task
from toolkit.storage import store_of
from toolkit.storage.json_files import load, save
from toolkit.storage.paths import exists, join, remove, remove_tree
from toolkit.whole.exact.resolving import resolve_parts
from toolkit.whole.exact.runs import Layout
from toolkit.whole.kind import Resolved, Work
from toolkit.whole.passages.asking import Asked, ToAsk, ask_shard
from toolkit.whole.passages.comparing import COST, ToCompare, compare_unit
from toolkit.whole.passages.gathering import FATES, SHOWN, Gathered, ToGather, gather_shard
from toolkit.whole.passages.stretches import Cut
from toolkit.whole.passages.units import Counted

_WORK = "work-"
_DONE = "gathered.json"


class Done(ConfigStruct):
    """That the spans of all shards are there.

    Attributes:
        fates: of each shard, by its path, a digest.
        counts: for people.
        notes: sentences for people.
    """

    fates: dict[str, str]
    counts: dict[str, int]
    notes: list[str]


def resolve(work: Work, length: int, counted: Counted, *, ranks: bool) -> Resolved:
    """Write the spans of all documents.

    What an earlier attempt has left is gone on with, until all is done: only then the folders of work go, one file
    after the other, so that what is left of them is of no use.
    """
    path = join(work.folder, _DONE)
    done = load(path, Done)
    if done is None:
        if exists(path):  # it is damaged
            _remove_work(work.folder)
            remove(path)
        done = _resolved(work, length, counted, ranks)
        save(path, done)
    _remove_work(work.folder)
    return Resolved(done.fates, done.counts, done.notes)


def _resolved(work: Work, length: int, counted: Counted, ranks: bool) -> Done:
    folder = join(work.folder, f"{_WORK}{work.memory}")
    parts, _ = resolve_parts(work, Layout(128, ranks, False, grouped=True), folder)
    passages = sum(part.grouped for part in parts) * Cut.of(length).runs
    units = max(1, -(-passages * COST // max(work.memory // 2, 1)))
    asked = _ask(work, folder, length, counted, units)
    _compare(work, folder, length, units, ranks, asked)
    gathered = _gather(work, folder, length, counted, units)
    own = [each for each in work.shards if each.own]
    counts = {
        "bytes": sum(int(each.record.counts["bytes"]) for each in own),
        "repeated bytes": sum(each.bytes for each in gathered),
        "spans": sum(each.spans for each in gathered),
        "documents with spans": sum(each.documents for each in gathered),
    }
    fates = {each.shard: found.digest for each, found in zip(own, gathered, strict=True)}
    return Done(fates=fates, counts=counts, notes=_longest(gathered))


def _remove_work(folder: str) -> None:
    """Remove the folders of work, those of attempts with another memory, too."""
    for name in store_of(folder).folders(folder):
        if name.startswith(_WORK):
            remove_tree(join(folder, name))


def fates_path(folder: str, number: int) -> str:
    """Return the path of the spans of a shard."""
    return join(folder, f"{FATES}-{number}")


def _ask(work: Work, folder: str, length: int, counted: Counted, units: int) -> list[Asked]:
    tasks = [
        Task(
            f"{each.shard} ({each.number})",
            ToAsk(
                signed=each,
                resolved=folder,
                length=length,
                counted=counted,
                units=units,
                memory=work.memory,
                folder=folder,
            ),
            each.record.rows,
        )
        for each in work.shards
    ]
    return work.run("again", ask_shard, tasks)


def _compare(work: Work, folder: str, length: int, units: int, ranked: bool, asked: list[Asked]) -> None:
    tasks = [
        Task(
            f"unit {number}",
            ToCompare(
                number=number,
                passages=sum(each.passages[number] for each in asked),
                files=[each.files for each in asked],
                ranked=ranked,
                length=length,
                memory=work.memory,
                folder=folder,
            ),
        )
        for number in range(units)
    ]
    work.run("passages", compare_unit, tasks)


def _gather(work: Work, folder: str, length: int, counted: Counted, units: int) -> list[Gathered]:
    tasks = []
    for each in work.shards:
        path = fates_path(work.folder, each.number)
        to_gather = ToGather(
            signed=each, resolved=folder, units=units, length=length, counted=counted, folder=folder, path=path
        )
        tasks += [Task(f"{each.shard} ({each.number})", to_gather)] * each.own
    return work.run("gather", gather_shard, tasks)


def _longest(gathered: list[Gathered]) -> list[str]:
    """Return sentences about the longest spans."""
    every = sorted((each for shard in gathered for each in shard.longest), key=lambda each: -each[0])
    return [
        f"{size:,} bytes in {name[1]} ({name[0]}), characters {start:,} to {end:,}, stand elsewhere before"
        for size, name, start, end in every[:SHOWN]
    ]
