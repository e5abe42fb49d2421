"""Documents that are dropped as copies of documents that are not kept: counted, shown, and refused."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from toolkit.commands._mix_preparation import PreparedMix
from toolkit.data.alignment import attribute_lines
from toolkit.data.documents import AttributesRow, Rows
from toolkit.errors import DataError, amount
from toolkit.execution.executors import Result, Task
from toolkit.execution.grouped import shard_tasks
from toolkit.mix import orphans, stage
from toolkit.mix.effects.preview import Preview, ShardToPreview
from toolkit.mix.join import RAW_ATTRIBUTES, ShardToMix
from toolkit.mix.orphans import FIELD
from toolkit.mix.publish import OrphanCount, orphan_counts
from toolkit.mix.settings import MixSettings
from toolkit.mix.stage import StageRecord
from toolkit.stages.context import Context
from toolkit.storage.outputs import write_file
from toolkit.storage.stores.local.scratch import scratch

_ROWS = msgspec.json.Decoder(AttributesRow)


@dataclass
class Orphans:
    """The orphans of a mix: how many by rule and set, and some of them, for people."""

    counts: list[OrphanCount] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def documents(self) -> int:
        return sum(each.documents for each in self.counts)

    def text(self) -> str:
        """Return lines for the report; empty if there are none."""
        return told(self.counts) + "".join(f"\n  {each}" for each in self.examples)

    def refused(self, context: Context, settings: MixSettings) -> str:
        """Return why the mix is not published; empty where it may be: if only a part is mixed, that is a warning."""
        return refusal(context, settings, self.counts, self.examples)


def told(counts: Sequence[OrphanCount]) -> str:
    """Return lines of a report that say how many orphans there are; empty if there are none."""
    if not counts:
        return ""
    number = sum(each.documents for each in counts)
    return f"\n\norphans: {amount(number, 'document')} dropped as copies of documents that are not kept: {_by(counts)}"


def refusal(context: Context, settings: MixSettings, counts: Sequence[OrphanCount], examples: Sequence[str]) -> str:
    """Return why a mix with so many orphans is not published; empty where it may be, which a part of one warns of."""
    if not counts or settings.orphans == "allow":
        return ""
    shown = f"; for example {'; '.join(examples)}" if examples else ""
    message = (
        f"{settings.place}: expected to keep one of the documents of which others are dropped as copies, got "
        f"{amount(sum(each.documents for each in counts), 'document')} dropped as copies of documents that are not "
        f"kept: {_by(counts)}{shown}. Let only documents compete that the other rules keep (`when:` of the set), let "
        "the sets prefer the same documents (`keep:`), or publish without these texts: `orphans: allow` under `mix:`"
    )
    if not context.only_warns:
        return message
    context.warn([message])
    return ""


def _by(counts: Sequence[OrphanCount]) -> str:
    return ", ".join(
        f"{each.documents:,} by {each.stream + ': ' if each.stream else ''}{each.rule!r} ({each.set})"
        for each in counts
    )


def of_stages(prepared: PreparedMix, stages: Mapping[str, StageRecord]) -> Orphans:
    """Return the orphans of a mix whose first stage is done.

    Args:
        prepared: the mix.
        stages: of its shards, by key; what is in no other shard is not kept.
    """
    output = prepared.settings.output.path
    works = [work for work in prepared.works if work.key in stages]
    return _told(works, orphans.judge([stage.noted_of(output, work.key, stages[work.key]) for work in works]))


@contextmanager
def previewing(works: Sequence[ShardToMix]) -> Iterator["Previewing"]:
    """Give a folder in which previews note what becomes of documents."""
    with scratch() as folder:
        yield Previewing(works, folder)


class Previewing:
    """The previews of shards, and the orphans that they come to."""

    def __init__(self, works: Sequence[ShardToMix], folder: str) -> None:
        self._works = works
        self._places = [
            (os.path.join(folder, f"{i}.kept"), os.path.join(folder, f"{i}.copies")) for i in range(len(works))
        ]

    def tasks(self) -> list[Task[ShardToPreview]]:
        """Return a task of `preview_with_fates` for each shard."""
        return [
            Task(task.name, ShardToPreview(task.payload, *places), task.size, key=task.key)
            for task, places in zip(shard_tasks(list(self._works)), self._places, strict=True)
        ]

    def orphans(self, results: Sequence[Result[Preview]]) -> Orphans:
        """Return the orphans; documents of shards that have failed do not count as kept."""
        noted: list[orphans.Noted | None] = []
        for places, result in zip(self._places, results, strict=True):
            if result.value and result.value.fates:  # of another machine
                for path, data in zip(places, (result.value.fates.kept, result.value.fates.copies), strict=True):
                    write_file(path, data)
            there = all(map(os.path.exists, places))
            noted.append(orphans.Noted(*places, sum(map(os.path.getsize, places))) if there else None)
        return _told(self._works, orphans.judge(noted))


def _told(works: Sequence[ShardToMix], found: orphans.Found) -> Orphans:
    return Orphans(orphan_counts(works, found), [_example(works[each.shard], each) for each in found.first])


def _example(work: ShardToMix, orphan: orphans.Orphan) -> str:
    """Return where an orphan is, and what it is a copy of, as far as that can still be read."""
    joined = work.sets[orphan.set]
    place = f"{work.name}:{orphan.row}"
    path = work.attributes_of(joined)
    try:
        with attribute_lines(path) as lines:
            for row, line in Rows(lines, _ROWS, path):
                if lines.number < orphan.row:
                    continue
                values = [RAW_ATTRIBUTES.decode(line).value(key.key) for key in joined.keys]
                named = [value[FIELD] for value in values if isinstance(value, dict) and value.get(FIELD)]
                return f"{place}: {row.id} ({row.source})" + "".join(f", a copy of {n[1]} ({n[0]})" for n in named[:1])
    except DataError:  # of a run that keeps no attributes
        pass
    return place
