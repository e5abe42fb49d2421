"""The stages behind ingest, for one shard, while its documents are being made.

    ingest ──FreshBlock──> taggers ──rows──> attributes/<set>/X
                              ├──rows──> rules, writer ──> intermediate of the mix
                              └──rows──> signers ──> signatures of sets over the whole dataset

The same parts as those of `toolkit.tag.run`, `toolkit.mix.stage` and `toolkit.whole.sign`, connected in memory: nothing
is read back. The files are the same, and so are their records. What fails here is left out, and done (or told) by the
stage itself, which finds it missing.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import NamedTuple, Self

from toolkit.data.documents import DOCUMENT_DECODER, FreshDocument
from toolkit.data.row_index import ShardState
from toolkit.ingest.run import FreshBlock
from toolkit.mix.encode import Encoded, Encoder
from toolkit.mix.join import Joiner, ShardToMix
from toolkit.mix.stage import StageOutput
from toolkit.records import sets
from toolkit.runs.blocks import in_order
from toolkit.storage.journal import Group
from toolkit.tag.plan import build
from toolkit.tag.run import AttributesOutput, ShardToTag
from toolkit.tag.values import Effort, Values, values_of
from toolkit.text.batch import Batch
from toolkit.whole.sign import ShardToSign, Signing


class ShardToPass(NamedTuple):
    """What is done with a shard while its documents are made.

    Attributes:
        path: of its documents.
        tag: all its sets are written; they read no others.
        mix: joins no sets but these, and the one that the input carries.
        sign: its entries read no others either.
        carried: the set that the input carries.
        processes: that work on it; signatures are made by one.
    """

    path: str
    tag: ShardToTag | None
    mix: ShardToMix | None
    sign: ShardToSign | None
    carried: str | None
    processes: int

    @property
    def todo(self) -> list[str]:
        """Return the sets that are written, each behind those that it reads."""
        return list(dict.fromkeys(step.set for step in build(self.tag.plan))) if self.tag else []


class ShardPass:
    """Tags, mixes and signs a shard whose documents are being made: a `toolkit.ingest.run.Follower`.

    A context manager, which leaves nothing unless `complete` is called.

    Attributes:
        tagged: whether the attributes were written.

    Args:
        work: the shard.
        group: of the documents, with which the files appear.
    """

    def __init__(self, work: ShardToPass, group: Group) -> None:
        self.tagged = False
        self._work = work
        self._group = group
        self._attributes: AttributesOutput | None = None
        self._stage: StageOutput | None = None
        self._signing: Signing | None = None

    def __enter__(self) -> Self:
        self._files, self._stage_file, self._signatures = ExitStack(), ExitStack(), ExitStack()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def take(self, blocks: Iterator[FreshBlock]) -> None:
        """Tag, encode and sign the blocks; raise only what they raise."""
        path, tag, mix, sign, _, processes = self._work
        given = _Given(blocks)
        try:
            if tag:
                self._attributes = self._files.enter_context(AttributesOutput(tag, self._work.todo, self._group))
            if mix:
                self._stage = self._stage_file.enter_context(StageOutput(mix, self._group))
            if sign:
                self._signing = self._signatures.enter_context(Signing(sign, [entry.set for entry in sign.entries]))
                self._joiner = Joiner(self._signing.whole, self._signing.keys)
            sent = (block._replace(rows=[]) for block in given) if processes > 1 else given
            for passed in in_order(_Passing, self._work, sent, processes, path):
                self._write(passed)
        except Exception:
            if given.fault:
                raise given.fault from None
            self._leave()

    def _write(self, passed: "_Passed") -> None:
        if self._attributes:
            self._attributes.write(passed.rows, passed.efforts)
        if self._stage and passed.encoded:
            self._stage.write(passed.encoded)
        elif self._stage:
            self._leave_stage()
        if self._signing and passed.batch is not None:
            self._sign(self._signing, passed, passed.batch)

    def _sign(self, signing: Signing, passed: "_Passed", batch: Batch) -> None:
        by_set = dict(zip(self._work.todo, passed.rows, strict=True))
        others = [passed.carried if each.set == self._work.carried else by_set[each.set] for each in signing.whole.sets]
        try:
            values = [list(of_sets) for _, of_sets in zip(batch, self._joiner.values(others), strict=False)]
            signing.add(passed.number, batch, values)
        except Exception:
            self._leave_signatures()

    def complete(self, state: ShardState, carried: str) -> None:
        """Add attributes and intermediate to the group, with their records."""
        tag, set_name = self._work.tag, self._work.carried
        contents = {set_name: carried} if set_name else {}
        try:
            if tag and self._attributes:
                sets.forget_all(tag.dataset, self._work.todo, [tag.shard])
                self._files.close()
                self.tagged = True  # even if what follows fails: what has no record then is written again
                self._attributes.record(state, contents)
                contents |= self._attributes.contents
            if self._stage and self._work.mix:
                self._stage_file.close()
                self._stage.record(state, {each.set: contents[each.set] for each in self._work.mix.sets})
            if self._signing:
                self._signing.finish()
                self._signatures.close()
                self._signing.record(state, contents)
        except Exception:
            self._leave()

    def _leave(self) -> None:
        """Leave nothing of what is not complete."""
        self._leave_stage()
        self._leave_signatures()
        self._files.__exit__(_Left, _Left(), None)
        self._attributes = None

    def _leave_stage(self) -> None:
        self._stage_file.__exit__(_Left, _Left(), None)
        self._stage = None

    def _leave_signatures(self) -> None:
        self._signatures.__exit__(_Left, _Left(), None)
        self._signing = None


class _Left(Exception):
    """Tells outputs that they are not to appear."""


class _Given(Iterator[FreshBlock]):
    """The blocks, as they are; `fault` is what they have raised."""

    def __init__(self, blocks: Iterator[FreshBlock]) -> None:
        self._blocks = blocks
        self.fault: Exception | None = None

    def __next__(self) -> FreshBlock:
        try:
            return next(self._blocks)
        except StopIteration:
            raise
        except Exception as error:
            self.fault = error
            raise


class _Passed(NamedTuple):
    """A block.

    Attributes:
        number: of documents before it.
        rows, efforts: of each set.
        encoded: what the mix writes; None once a document cannot be mixed.
        batch: the documents, where signatures are made of them.
        carried: rows of the set that the input carries.
    """

    number: int
    rows: list[list[bytes]]
    efforts: list[Effort]
    encoded: Encoded | None
    batch: Batch | None
    carried: list[bytes]


class _Passing:
    """Tags and encodes blocks."""

    def __init__(self, work: ShardToPass) -> None:
        self._todo = work.todo
        self._steps = build(work.tag.plan) if work.tag else []
        self._encoder = Encoder(work.mix) if work.mix else None
        self._joined = [each.set for each in work.mix.sets] if work.mix else []
        self._work = work

    def __call__(self, block: FreshBlock) -> _Passed:
        rows = block.rows or list(map(DOCUMENT_DECODER.decode, block.lines))
        batch = Batch(
            [
                FreshDocument(row.text, id=row.id, source=row.source, row=line, utf8=text)
                for row, text, line in zip(rows, block.texts, block.lines, strict=True)
            ]
        )
        numbered = list(zip(batch, count(block.number + 1)))
        found = values_of(batch, numbered, self._steps, self._todo, self._work.path) if self._steps else _NOTHING
        encoded = None
        if self._encoder:
            by_set = dict(zip(self._todo, found.rows, strict=True))
            others = [block.carried if name == self._work.carried else by_set[name] for name in self._joined]
            try:
                encoded = self._encoder.fresh(block.number, batch, others, found.columns)
            except Exception:
                self._encoder = None
        signed = batch if self._work.sign else None
        return _Passed(block.number, found.rows, found.efforts, encoded, signed, block.carried)


_NOTHING = Values([], [], {})
