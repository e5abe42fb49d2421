"""One pass: what is per shard of all stages, done one after the other while the documents are made.

    input ──ingest──> documents ──tag──> attributes ──mix──> intermediate of the output
                          └──────── deleted ──┘   once that is safe

The records stay: of the input, of its shards in each set, and of the mix. They tell what has been done, and that it
was done of what is there now.

The stages behind ingest, for one shard, while its documents are being made.

    ingest ──FreshBlock──> taggers ──rows──> attributes/<set>/X
                              ├──rows──> rules, writer ──> intermediate of the mix
                              └──rows──> signers ──> signatures of sets over the whole dataset

The same parts as those of `toolkit.tag.run`, `toolkit.mix.stage` and `toolkit.whole.sign`, connected in memory: nothing
is read back. The files are the same, and so are their records. What fails here is left out, and done (or told) by the
stage itself, which finds it missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.documents import FreshDocument
from toolkit.data.row_index import ShardState
from toolkit.errors import DataError, ToolkitError
from toolkit.execution.blocks import in_order, threads_for
from toolkit.execution.executors import Report, Result, Task
from toolkit.ingest import inputs, plan, run
from toolkit.ingest.attempts import Grouped
from toolkit.ingest.run import FreshBlock
from toolkit.mix import bindings, stage
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.encode import Encoded, Encoder
from toolkit.mix.join import Joiner
from toolkit.mix.settings import MixSettings
from toolkit.mix.stage import StageOutput
from toolkit.records import ingested, sets
from toolkit.records import sets as records
from toolkit.records.takedown import takedown_of
from toolkit.storage.artifact import state
from toolkit.storage.paths import remove_with_folders
from toolkit.storage.record_log import Group
from toolkit.tag import plan as tag_plan
from toolkit.tag import run as tagging
from toolkit.tag.plan import build
from toolkit.tag.run import AttributesOutput, ShardToTag
from toolkit.tag.steps import Effort, Values, values_of
from toolkit.text.batch import Batch

if TYPE_CHECKING:
    from toolkit.whole.sign import ShardToSign, Signing


class ShardToPass(NamedTuple):
    """The work on a shard while its documents are made.

    Attributes:
        path: of its documents.
        tag: all its sets are written; they read no others.
        mix: joins no sets but these, and those that the input carries.
        sign: its entries read no others either.
        carried: the sets that the input carries.
        processes: that work on it; signatures are made by one.
    """

    path: str
    tag: ShardToTag | None
    mix: ShardToMix | None
    sign: "ShardToSign | None"
    carried: Sequence[str]
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
                from toolkit.whole.sign import Signing

                self._signing = self._signatures.enter_context(
                    Signing(sign, [entry.set for entry in sign.entries], self._group)
                )
                self._joiner = Joiner(self._signing.whole, self._signing.keys)
            for passed in in_order(_Passing, self._work, given, processes, path):
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

    def _sign(self, signing: "Signing", passed: "_Passed", batch: Batch) -> None:
        by_set = {**passed.carried, **dict(zip(self._work.todo, passed.rows, strict=True))}
        others = [by_set[each.set] for each in signing.whole.sets]
        try:
            values = [list(of_sets) for _, of_sets in zip(batch, self._joiner.values(others), strict=False)]
            signing.add(passed.number, batch, values)
        except Exception:
            self._leave_signatures()

    def complete(self, state: ShardState, carried: Mapping[str, str]) -> None:
        """Add attributes and intermediate to the group, with their records."""
        tag, contents = self._work.tag, dict(carried)
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
        carried: rows of the sets that the input carries.
    """

    number: int
    rows: list[list[bytes]]
    efforts: list[Effort]
    encoded: Encoded | None
    batch: Batch | None
    carried: dict[str, list[bytes]]


class _Passing:
    """Tags and encodes blocks."""

    def __init__(self, work: ShardToPass) -> None:
        self._todo = work.todo
        self._steps = build(work.tag.plan) if work.tag else []
        self._encoder = Encoder(work.mix) if work.mix else None
        self._joined = [each.set for each in work.mix.sets] if work.mix else []
        self._work = work

    def __call__(self, block: FreshBlock) -> _Passed:
        batch = Batch([FreshDocument(row.id, row.source, row.line, row.utf8 or b"", row.chars) for row in block.rows])
        numbered = list(zip(batch, count(block.number + 1)))
        found = _NOTHING
        if self._work.tag:
            takedown = takedown_of(self._work.tag.dataset)
            found = values_of(batch, numbered, self._steps, self._todo, self._work.path, takedown)
        encoded = None
        if self._encoder:
            by_set = {**block.carried, **dict(zip(self._todo, found.rows, strict=True))}
            others = [by_set[name] for name in self._joined]
            try:
                encoded = self._encoder.fresh(block.number, batch, others, found.columns)
            except Exception:
                self._encoder = None
        signed = batch if self._work.sign else None
        return _Passed(block.number, found.rows, found.efforts, encoded, signed, block.carried)


_NOTHING = Values([], [], {})


class InputToPass(ConfigStruct):
    """One input.

    Attributes:
        input: what is ingested.
        tag: what is done to its shards, if anything; `shard` of it is empty.
        mix: the same.
        sign: the same.
        processes: that work on it.
    """

    input: plan.InputToIngest
    tag: tagging.ShardToTag | None
    mix: bindings.ShardToMix | None
    sign: "ShardToSign | None" = None
    processes: int = 1

    @property
    def key(self) -> str:
        return self.input.key

    def tagged(self, shard: str) -> tagging.ShardToTag | None:
        """Return how a shard is tagged."""
        return self.tag and msgspec.structs.replace(self.tag, shard=shard, processes=self.processes)

    def mixed(self, shard: str) -> bindings.ShardToMix:
        """Return how a shard is mixed, of inputs that are."""
        assert self.mix
        return msgspec.structs.replace(self.mix, shard=shard, processes=self.processes)


class InputPassed(ConfigStruct):
    """The outcome of an input.

    Attributes:
        ingested: that of its ingest.
        tagged: shards whose attributes were written on the way.
        failed: why shards could not be mixed, by key, where documents are deleted and the mix may omit them.
    """

    ingested: run.IngestedInput
    tagged: list[str] = []
    failed: dict[str, str] = {}

    @property
    def documents(self) -> int:
        """Return how many it has."""
        return self.ingested.documents


def ingest_together(tasks: list[Task[InputToPass]], report: Report) -> list[Result[InputPassed]]:
    """Do what `ingest` does for small inputs, which become durable together."""
    return run.in_group(ingest, tasks, [task.payload.input for task in tasks], report)


def ingest(work: InputToPass, report: Report, grouped: Grouped | None = None) -> InputPassed:
    """Ingest an input, unless that has been done; tag, encode and sign its documents while they are made.

    Args:
        work: the input.
        report: told of what is done.
        grouped: as of `toolkit.ingest.run.ingest_input`.

    Raises:
        DataError: of the ingest only.
    """
    tags, mixes, signed = _can_follow(work)
    passes: dict[str, ShardPass] = {}

    def follow(shard: str, carried: Sequence[str], group: Group) -> ShardPass:
        tag, mix = work.tagged(shard) if tags else None, work.mixed(shard) if mixes else None
        to_sign = signed and msgspec.structs.replace(signed, shard=shard)
        path = work.input.dataset.shard_path(shard)
        passes[shard] = ShardPass(ShardToPass(path, tag, mix, to_sign, carried, work.processes), group)
        return passes[shard]

    follows, threads = follow if tags or mixes or signed else None, threads_for(work.processes)
    done = run.ingest_input(work.input, report, follows, grouped, threads)
    return InputPassed(ingested=done, tagged=[shard for shard, each in passes.items() if each.tagged])


def _can_follow(work: InputToPass) -> "tuple[bool, bool, ShardToSign | None]":
    """Return whether shards of an input can be tagged, and mixed, before their files are there; how they are signed.

    Signatures are of documents in order; where several processes work on a shard, they would wait for one.
    """
    tags = work.tag is not None and _is_closed(work.tag.plan)
    made = {*(work.tag.plan.sets if work.tag and tags else ()), *work.input.entry.reader().attribute_sets()}
    mixes = work.mix is not None and made >= {each.set for each in work.mix.sets} and _is_by_shard(work.mix.settings)
    signed = work.sign if work.processes == 1 else None
    if signed:
        entries = [entry for entry in signed.entries if made >= {*entry.reads}]
        signed = msgspec.structs.replace(signed, entries=entries) if entries else None
    return tags, mixes, signed


def _is_closed(plan_: tag_plan.Plan) -> bool:
    """Return whether the sets of a plan read no other sets."""
    return all(r.set in plan_.sets for step in tag_plan.build(plan_) for r in step.references)


def _is_by_shard(settings: MixSettings) -> bool:
    """Return whether documents can be mixed before the digests of their attributes are known, and those of all shards.

    Patterns of other programs are held against all shards, and so are weights and a budget.
    """
    return (
        settings.output.provenance in (False, "line")
        and len(settings.streams) == 1
        and not settings.needs_all_shards
        and not any(rule.foreign for rule in settings.streams[0].rules)
    )


def pass_input(work: InputToPass, report: Report) -> InputPassed:
    """Ingest, tag and mix an input, unless that has been done; delete its documents and attributes.

    Raises:
        DataError: of any of the three; what has been made stays, and is not made again.
    """
    record = inputs.recorded(work.input)
    if record and is_mixed(work, record):
        forget_data(work, record)  # an attempt may have been killed before it could
        report(record.rows, 0)
        return InputPassed(ingested=run.outcome_of(record, skipped=True))
    done = ingest(work, report)
    failed = {}
    for shard in done.ingested.shards:
        if tag := work.tagged(shard):
            tagging.tag_shard(tag, _say_nothing)
        mixed = work.mixed(shard)
        try:
            stage.mix_shard(mixed, _say_nothing)
        except ToolkitError as error:
            if mixed.settings.on_failed_shard == "stop":
                raise
            failed[mixed.key] = str(error)
    record = inputs.noted(work.input)
    if record is None:
        raise DataError(
            "expected the record of the input, which this run has just made, got none; run again", path=work.key
        )
    if not failed:
        if not is_mixed(work, record):
            raise DataError(
                "expected its part of the mix, which this run has just made, got none; run again", path=work.key
            )
        forget_data(work, record)
    return msgspec.structs.replace(done, ingested=msgspec.structs.replace(done.ingested, skipped=False), failed=failed)


def _say_nothing(documents: int, size: int) -> None:
    """Report nothing: documents are counted once, when they are ingested."""


def is_mixed(work: InputToPass, record: ingested.InputRecord) -> bool:
    """Return True if the parts of the mix of all shards of an input are there."""
    for shard, found in record.shards.items():
        mixed = work.mixed(shard)
        if stage.made_from(mixed, found.content, attributes_by_record(mixed, found.content)) is None:
            return False
    return True


def attributes_by_record(work: bindings.ShardToMix, documents: str) -> dict[str, str] | None:
    """Return the content digests of a shard's attributes, as `toolkit.mix.join.inputs_of`; the files may be gone.

    Args:
        work: what is mixed of the shard.
        documents: content digest of its documents.

    Returns:
        None if a set is not there, or was made of something else.
    """
    digests = {}
    for joined in work.sets:
        record = records.load_record(work.dataset, joined.set, work.shard)
        read = {name: records.load_record(work.dataset, name, work.shard) for name in (record.reads if record else ())}
        inputs = [("", documents), *((name, each.output.content if each else None) for name, each in read.items())]
        if record is None or not state(record, inputs).is_done:
            return None
        digests[joined.set] = record.output.content
    return digests


def forget_data(work: InputToPass, record: ingested.InputRecord) -> None:
    """Delete the documents of an input, their row indexes, and their attributes in all sets."""
    dataset = work.input.dataset
    inputs.note_deletion(work.input, record)
    sets = dict.fromkeys([*_sets_of_run(work), *(joined.set for joined in work.mixed("").sets)])
    for shard in record.shards:
        for path, root in ((dataset.shard_path(shard), dataset.documents), *_attributes(dataset, sets, shard)):
            remove_with_folders(path, root)
    row_index.forget(dataset, record.shards)


def _sets_of_run(work: InputToPass) -> list[str]:
    return [*(work.tag.plan.sets if work.tag else ()), *work.input.entry.reader().attribute_sets()]


def _attributes(dataset: Dataset, sets: Mapping[str, None], shard: str) -> list[tuple[str, str]]:
    return [(dataset.attribute_path(name, shard), dataset.attributes) for name in sets]
