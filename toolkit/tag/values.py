"""What the taggers of some sets say of a batch of documents: the rows of the sets, and what it took."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from toolkit.data.dataset import Dataset
from toolkit.records import sets as records
from toolkit.storage.threads import for_each
from toolkit.tag.plan import Plan, Step
from toolkit.tag.steps import encodable, run_steps
from toolkit.tag.when import Numbered
from toolkit.text.batch import Batch, Column

ASKED = "asked"
"""The count of documents of which the taggers of a set with `when` were asked."""


class Effort(NamedTuple):
    """What the taggers of a set did.

    Attributes:
        asked: documents of which at least one was asked.
        seconds: of all together.
        counts: of values by reasons, as taggers tell them.
    """

    asked: int = 0
    seconds: float = 0.0
    counts: Mapping[str, int] = {}

    def __add__(self, other: tuple[Any, ...]) -> "Effort":
        return Effort(self.asked + other[0], self.seconds + other[1], Counter(self.counts) + Counter(other[2]))


_ENCODER = msgspec.json.Encoder()


class Values(NamedTuple):
    """The values of some documents.

    Attributes:
        rows: of attributes, for each set.
        efforts: of each set.
        columns: the values, by set and key, where a tagger has made a `Column`.
    """

    rows: list[list[bytes]]
    efforts: list[Effort]
    columns: dict[tuple[str, str], Column[Any]]


def values_of(
    batch: Batch, numbered: Sequence[Numbered], steps: Sequence[Step], todo: Sequence[str], path: str
) -> Values:
    """Return what taggers say of some documents.

    Args:
        batch: of the documents.
        numbered: the same, with the number of each in its file.
        steps: the taggers, each after those that it reads.
        todo: the sets.
        path: of the file, for messages.
    """
    values = {}
    asked: dict[str, set[int]] = {name: set() for name in todo}
    seconds = dict.fromkeys(todo, 0.0)
    counts: dict[str, Counter[str]] = {name: Counter() for name in todo}
    for ran in run_steps(batch, numbered, steps, path):
        name = ran.step.set
        values[name, ran.step.key] = ran.values
        asked[name].update(range(len(batch)) if ran.rows is None else ran.rows)
        seconds[name] += ran.seconds
        counts[name].update(ran.step.tagger.tallied(ran.values))
    found = []
    for set_name in todo:
        keys = [step.key for step in steps if step.set == set_name]
        columns = [encodable(values[set_name, key]) for key in keys]
        found.append(
            [
                _ENCODER.encode(
                    {"source": document.source, "id": document.id, "attributes": dict(zip(keys, row, strict=True))}
                )
                for document, *row in zip(batch, *columns, strict=True)
            ]
        )
    efforts = [Effort(len(asked[name]), seconds[name], counts[name]) for name in todo]
    return Values(found, efforts, {name: column for name, column in values.items() if isinstance(column, Column)})


# --- of whole sets ----------------------------------------------------------------------------------------------------


class Worked(NamedTuple):
    """What the taggers of a set did in some shards: documents that these have and that were asked, and seconds."""

    documents: int = 0
    asked: int = 0
    seconds: float = 0.0


def worked(plan: Plan, dataset: Dataset, shards: Sequence[str], *, always: bool = False) -> dict[str, Worked]:
    """Return what the sets of a plan took in shards, by their records.

    Args:
        plan: of the sets.
        dataset: of the shards.
        shards: those that have no record are left out.
        always: whether it is told of plans in which no set has `when`, too.
    """
    if not always and not any(entry.when for entries in plan.sets.values() for entry in entries):
        return {}
    found = {}
    for name in plan.sets:
        made = [each for each in for_each(partial(records.load_record, dataset, name), shards) if each]
        found[name] = Worked(
            sum(each.rows for each in made),
            sum(each.counts.get(ASKED, each.rows) for each in made),
            round(sum(each.seconds for each in made), 3),
        )
    return found
