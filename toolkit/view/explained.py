"""Why a mix keeps or drops one document: its rows alone are read. And which documents a rule drops."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

import msgspec

from toolkit.errors import ToolkitError
from toolkit.mix.effects.explain import explain_one
from toolkit.mix.effects.preview import blocks
from toolkit.mix.join import Joiner, JointBlock, ShardToMix, inputs_of
from toolkit.runs.blocks import Block
from toolkit.view.corpus import At, Question, Scanned, Stop
from toolkit.view.dataset import DatasetCorpus


class Explainer:
    """Explains documents of a dataset by a mix.

    Args:
        corpus: of the dataset.
        prepared: gives the shards of the mix, and for those that are not in it why; called once, when it is first
            needed: it looks at all shards, and a budget at all their attributes.
    """

    def __init__(
        self, corpus: DatasetCorpus, prepared: Callable[[], tuple[Sequence[ShardToMix], Mapping[str, str]]]
    ) -> None:
        self._corpus, self._prepared = corpus, prepared
        self._works: dict[str, list[ShardToMix]] = {}
        self._fault: ToolkitError | None = None
        self._is_prepared = False
        self._lock = Lock()

    def forget(self) -> None:
        """Prepare the mix anew when it is needed again."""
        with self._lock:
            self._is_prepared = False

    def explain(self, at: At) -> list[dict[str, Any]]:
        """Return what the rules of each stream of the mix say of a document; nothing if it is in none.

        Raises:
            ToolkitError: if the mix cannot be made, or the document cannot be read.
        """
        found = []
        for work in self._of(self._corpus.names[at.shard]):
            explanation = msgspec.to_builtins(explain_one(work, self._joined(work, at)))
            found.append({"stream": work.stream.name, **explanation})
        return found

    def rows_dropped_by(self, shard: int, rule: str | None, stop: Stop) -> set[int]:
        """Return the rows of a shard, from 0, that a rule drops as the first one; those that stay without a rule.

        Of several streams that take the shard, one is enough.

        Raises:
            ToolkitError: as of `explain`.
        """
        found: set[int] = set()
        for work in self._of(self._corpus.names[shard]):
            inputs_of(work)
            rules, first = work.compile_rules(), 0
            for block in blocks(work, rules, stop.computing):
                stop.check()
                for row, outcome in enumerate(block.outcomes, first):
                    if (rules.rules[outcome].name if isinstance(outcome, int) else None) == rule:
                        found.add(row)
                first += len(block.outcomes)
        return found

    def _of(self, shard: str) -> list[ShardToMix]:
        with self._lock:
            if not self._is_prepared:
                self._works, self._fault = {}, None
                try:
                    works, unreadable = self._prepared()
                    mine = [work for work in works if work.dataset.documents == self._corpus.dataset.documents]
                    for work in mine:
                        self._works.setdefault(work.shard, []).append(work)
                    if unreadable and not mine:
                        raise ToolkitError("\n".join(unreadable.values()))
                except ToolkitError as error:
                    self._fault = error
                self._is_prepared = True
            if self._fault:
                raise self._fault
            return self._works.get(shard, [])

    def _joined(self, work: ShardToMix, at: At) -> Any:
        """Return a document joined as the mix joins it."""
        document, others = self._corpus.lines_at(at, [joined.set for joined in work.sets])
        needs = work.compile_rules().needs
        block = JointBlock(at.row, Block([document]), [Block([other]) for other in others])
        return next(iter(Joiner(work, needs.keys, needs.fields, joined=needs.joined).rows(block)))


class DroppedBy:
    """A question about the documents alone that a rule of the mix drops.

    Args:
        question: about these.
        explainer: of the mix.
        rule: its name; None for the documents that stay.
    """

    def __init__(self, question: Question, explainer: Explainer, rule: str | None) -> None:
        self._question, self._explainer, self._rule = question, explainer, rule
        self.reads_documents = question.reads_documents

    def scan(self, shard: int, stop: Stop) -> Iterator[Scanned]:
        """Yield what these documents of a shard say, in order."""
        among = self._explainer.rows_dropped_by(shard, self._rule, stop)
        for block in self._question.scan(shard, stop):
            chosen = [i for i, row in enumerate(block.rows) if row in among]
            scores = [block.scores[i] for i in chosen] if block.scores else []
            yield Scanned(block.looked_at, [block.rows[i] for i in chosen], scores)
