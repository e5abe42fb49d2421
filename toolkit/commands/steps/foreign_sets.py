"""Attribute sets of a stream that other programs made: they are read to know their types."""

from typing import Any

import msgspec

from toolkit.commands.steps.context import Context
from toolkit.mix import joined_sets
from toolkit.mix.settings import Stream
from toolkit.records.foreign import Seen, look_at
from toolkit.runs.executors import Task


class ForeignFile(msgspec.Struct, frozen=True):
    """One attribute file of another program."""

    dataset: Any
    set: str
    shard: str


def look(work: ForeignFile, report: Any) -> Seen:
    """Read an attribute file of another program."""
    return look_at(work.dataset, work.set, work.shard)


def look_at_all(context: Context, stream: Stream, shards: list[str]) -> tuple[dict[str, list[Seen]], dict[str, str]]:
    """Return what the files of other programs hold, by set; and for each shard that cannot be read, why.

    Their types are those of all shards, so a share looks at the others' files, too: behind its own, because by then the
    other shares have noted what is in theirs.
    """
    foreign = joined_sets.foreign_sets(stream, {})
    if not foreign:
        return {}, {}
    ours = set(shards)
    others = [shard for shard in stream.dataset.shards() if shard not in ours] if context.share else []
    listed = [
        Task(f"{name}/{shard}", ForeignFile(stream.dataset, name, shard))
        for shard in [*shards, *others]
        for name in foreign
    ]
    results = context.run("foreign", look, listed, "files")
    seen: dict[str, list[Seen]] = {name: [] for name in foreign}
    unreadable: dict[str, str] = {}
    for task, result in zip(listed, results, strict=True):
        if result.value:
            seen[task.payload.set].append(result.value)
        elif result.failure and task.payload.shard in ours:
            unreadable.setdefault(task.payload.shard, result.failure.message)
    return seen, unreadable
