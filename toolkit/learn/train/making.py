"""Makes a model of the section: examples per shard, then the whole."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError, ToolkitError
from toolkit.exchange.sealed import read_sealed
from toolkit.execution.executors import Report, Task
from toolkit.execution.grouped import tasks_of
from toolkit.learn.train import folder, metrics, section
from toolkit.learn.train.examples import DECODER, EXAMPLES, Example, Examples
from toolkit.learn.train.trainer import Work
from toolkit.mix.join import JoinedShard, at_document, joint_rows
from toolkit.storage.paths import join, remove_tree
from toolkit.text.batch import Batch
from toolkit.whole import resolve, sign
from toolkit.whole.expressions import Evaluator
from toolkit.whole.records import set_folder
from toolkit.whole.section import Entry

_TOGETHER = 256


@dataclass
class Making:
    """Makes models.

    Attributes:
        dataset: whose documents are labelled.
        shards: of it.
        max_document_bytes: of a document.
        run: tasks, as `toolkit.stages.context.Context.run` does.
    """

    dataset: Dataset
    shards: Sequence[str]
    max_document_bytes: int
    run: Callable[..., list[Any]]

    def count(self, entry: Entry) -> tuple[Examples, Counter[str]]:
        """Return the examples that there are, and why documents are left out; nothing is written."""
        limit = self.max_document_bytes
        works = [JoinedShard.of(self.dataset, entry.joined, shard, limit) for shard in self.shards]
        tasks = tasks_of(works, [ToCount(entry, work) for work in works])
        found: list[Example] = []
        left = Counter[str]()
        for data, counts in self._run(f"counting the labels of {entry.set}", count_shard, tasks):
            found += map(DECODER.decode, data.splitlines())
            left.update(counts)
        trainer = section.trainer_of(entry)
        return Examples.of(trainer.task, found, trainer.scale), left

    def make(self, entry: Entry, where: str) -> folder.Card:
        """Train a model, and write its folder."""
        trainer = section.trainer_of(entry)
        tasks = sign.works(self.dataset, [entry], self.shards, self.max_document_bytes)
        self._run(f"gathering the texts of {entry.set}", sign.sign_shard, tasks)
        signed = resolve.signed_shards(self.dataset, entry, self.shards)
        found = [DECODER.decode(line) for each in signed for line in read_sealed(each.path(EXAMPLES)).splitlines()]
        examples = Examples.of(trainer.task, found, trainer.scale)
        examples.check(trainer.minimum)
        left = Counter[str]()
        for each in signed:
            left.update(each.record.counts)
        shards = [join(each.folder, each.shard) for each in signed]
        work = Work(shards, examples, join(set_folder(self.dataset, entry.set), "fit"), entry.set, self._run)
        fitted = trainer.fit(work)
        made_from = section.made_from(self.dataset, entry, self.shards)
        if made_from is None:
            raise DataError(
                "expected documents that do not change while a model is trained, got some that have changed; run again"
            )
        card = folder.Card(
            name=entry.set,
            kind=entry.kind.rpartition(":")[0].rpartition(".")[2],
            task=trainer.task,
            labels=examples.names,
            licence=trainer.licence,
            made_from=made_from,
            settings=entry.settings,
            chosen=fitted.chosen,
            documents=examples.counts(),
            left_out=dict(left),
            metrics=metrics.measured(examples, fitted.values),
            versions=folder.versions(*trainer.PACKAGES),
            files={},
            learnt_from={name: folder.labels_of(self.dataset, name, self.shards) for name in entry.reads},
        )
        folder.write(where, {trainer.file: fitted.model, **fitted.beside}, card, self.dataset)
        found_card = folder.load(where)
        assert found_card
        return found_card

    def clear(self, entry: Entry) -> None:
        """Delete what was kept to train a model that is whole now; also what an earlier run could not delete."""
        remove_tree(set_folder(self.dataset, entry.set))

    def _run(self, what: str, function: Callable[[Any, Report], Any], tasks: Sequence[Task[Any]]) -> list[Any]:
        unit = "shards" if tasks and tasks[0].key in self.shards else "tasks"
        results = self.run(what, function, tasks, unit, spreads=unit == "tasks")
        if broken := [result.failure for result in results if result.failure]:
            more = f"\nand {len(broken) - 1} more failures" if len(broken) > 1 else ""
            raise ToolkitError(broken[0].message + more)
        return [result.value for result in results]


class ToCount(ConfigStruct):
    """A shard whose labels are counted."""

    entry: Entry
    work: JoinedShard


def count_shard(job: ToCount, report: Report) -> tuple[bytes, dict[str, int]]:
    """Return the examples of a shard, a line of JSON each, and why documents are left out."""
    entry, whole, trainer = job.entry, job.work, section.trainer_of(job.entry)
    checked = entry.checked()
    evaluator = Evaluator(checked, len(entry.joined))
    keys = {name for each in checked for name in each.expression.names if name != "document"}
    found: list[bytes] = []
    left = Counter[str]()
    with ExitStack() as stack:
        rows = joint_rows(whole, stack, keys)
        first = 0
        while some := list(islice(rows, _TOGETHER)):
            try:
                documents = Batch([document for document, _, _, _ in some])
                examples, why = trainer.examples(evaluator.block(first, documents, [values for *_, values in some]))
            except DataError as error:
                raise at_document(error, whole, error.line or first + 1, error.id) from None
            found += [msgspec.json.encode(each) for each in examples if each]
            left.update(why)
            first += len(some)
            report(len(some), 0)
    return b"\n".join(found), dict(left)
