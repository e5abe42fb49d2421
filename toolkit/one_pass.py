"""One pass: all stages that are per shard, run while the documents are made.

    input ──ingest──> documents ──tag──> attributes ──mix──> intermediate of the output
                          └──────── deleted ──┘   with --per-shard, once that is safe

In memory, for one shard:

    ingest ──DocumentBatch──> taggers ──rows──> attributes/<set>/X
                              ├──rows──> rules, writer ──> intermediate of the mix
                              └──rows──> signers ──> signatures, of each section over the whole dataset

The parts are those of `toolkit.tag.run`, `toolkit.mix.intermediates` and `toolkit.whole_corpus.sign`; so are files and
records.

A block has at most `BLOCK_ROWS` documents, or ends at `BLOCK_BYTES`. The ingest has written it when it gives it away.
Of several processes, each has `AHEAD` blocks; what they make of them comes back in order, and is written by this one.

What fails here is a failure of its stage, which tells it and does not try again, and leaves nothing of that stage and
of those after it. All others become durable with the documents, in one group.
"""

import io
import pickle
import secrets
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from msgspec.structs import replace

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.documents import FreshDocument
from toolkit.data.row_index import ShardState
from toolkit.errors import DataError, ToolkitError
from toolkit.execution.blocks import in_order, threads_for
from toolkit.execution.executors import Failure, Report, Result, Task, failure_of
from toolkit.ingest import inputs, plan, run
from toolkit.ingest.attempts import BatchedIngest
from toolkit.ingest.run import DocumentBatch, IngestedInput
from toolkit.mix import intermediates, publication
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.encode import Encoded, Encoder
from toolkit.mix.intermediates import HELD, StageOutput
from toolkit.mix.join import Joiner
from toolkit.records import ingested, sets
from toolkit.records.takedown import takedown_of
from toolkit.storage.addresses import remember_url
from toolkit.storage.freshness import state
from toolkit.storage.paths import remove_with_folders
from toolkit.storage.record_log import Group
from toolkit.tag import run as tagging
from toolkit.tag.plan import Plan, build
from toolkit.tag.run import AttributesOutput, BatchValues, ShardToTag, values_of
from toolkit.text.batch import Batch

if TYPE_CHECKING:
    from toolkit.whole_corpus.sign import ShardToSign

TAG, MIX = "tag", "mix"
"""Stages, as failures name them; signatures have the section that they are for."""


class InputToPass(ConfigStruct):
    """One input, or a shard of it.

    Attributes:
        input: Input to ingest.
        tag: Tagging of its shards, if any; `shard` of it is empty.
        mix: Mix of its shards, likewise.
        sign: Signatures of its shards, likewise, by section.
        processes: Number of processes for it.
        todo: Sets to write on the way, each after those that it reads.
        digests: Placeholders of the content digests of sets, by name, for documents in the output.
        path: Path of the shard.
    """

    input: plan.InputToIngest
    tag: ShardToTag | None
    mix: ShardToMix | None
    sign: "dict[str, ShardToSign]" = {}
    processes: int = 1
    todo: list[str] = []
    digests: dict[str, str] = {}
    path: str = ""

    def __post_init__(self) -> None:
        """Register the addresses of the input in the process of the work."""
        for file in self.input.files:
            if file.address:
                remember_url(file.path, file.address)

    @property
    def key(self) -> str:
        return self.input.key

    def tagged(self, shard: str) -> ShardToTag | None:
        """Return the tagging of a shard."""
        return self.tag and replace(self.tag, shard=shard, processes=self.processes)

    def mixed(self, shard: str) -> ShardToMix:
        """Return the mix of a shard, if inputs are mixed."""
        assert self.mix
        return replace(self.mix, shard=shard, processes=self.processes)

    def on_the_way(self) -> Self:
        """Return the work without need of files. It reads no sets but these, and those of the input."""
        todo = _closed(self.tag.plan) if self.tag else []
        result = {*todo, *self.input.entry.reader().attribute_sets()}
        mix = self.mix if self.mix and result >= {item.set for item in self.mix.sets} else None
        entries = {
            key: [entry for entry in item.entries if result >= {*entry.reads}] for key, item in self.sign.items()
        }
        sign = {key: replace(item, entries=entries[key]) for key, item in self.sign.items() if entries[key]}
        return replace(self, tag=self.tag if todo else None, mix=mix, sign=sign, todo=todo)

    def of(self, shard: str) -> Self:
        """Return the work on a shard."""
        names = [item.set for item in self.mix.sets] if self.mix and self.mix.settings.output.provenance is True else []
        return replace(
            self,
            path=self.input.dataset.shard_path(shard),
            tag=self.tagged(shard),
            mix=self.mix and self.mixed(shard),
            sign={section: replace(item, shard=shard) for section, item in self.sign.items()},
            digests={name: secrets.token_hex(16) for name in names},
        )


def _closed(plan_: Plan) -> list[str]:
    """Return the self-contained sets of a plan, in reading order."""
    steps = build(plan_)
    result = {*plan_.sets}
    while blocked := {
        step.set for step in steps if step.set in result and any(r.set not in result for r in step.references)
    }:
        result -= blocked
    return [name for name in dict.fromkeys(step.set for step in steps) if name in result]


class ShardPass:
    """Tags, mixes and signs a shard during its ingest.

    A context manager, which leaves nothing unless `complete` is called.

    Attributes:
        tagged: True if the attributes were written.
        failures: Why stages have failed, by stage.

    Args:
        work: Shard.
        group: Group of the documents, with which the files appear.
    """

    def __init__(self, work: InputToPass, group: Group) -> None:
        self.tagged = False
        self.failures: dict[str, Failure] = {}
        self._work = work
        self._group = group
        self._files: dict[str, ExitStack] = {}
        self._outputs: dict[str, Any] = {}
        self._joiners: dict[str, Joiner] = {}
        self._pending: deque[DocumentBatch] = deque()
        self._fault: Exception | None = None
        self._waiting: IO[bytes] = io.BytesIO()
        if work.digests:
            self._waiting = tempfile.SpooledTemporaryFile(HELD)  # noqa: SIM115  # closed in `__exit__`

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.close()
        for name in [*self._outputs]:
            self._discard(name)

    def take(self, blocks: Iterator[DocumentBatch]) -> None:
        """Tag, encode and sign the blocks; raise only their own errors."""
        work = self._work
        if work.tag:
            self._open(TAG, AttributesOutput, work.tag, work.todo)
        if work.mix and not self.failures:
            self._open(MIX, StageOutput, work.mix)
        for section, sign in ({} if TAG in self.failures else work.sign).items():
            from toolkit.whole_corpus.sign import Signing

            self._open(section, Signing, sign, [entry.set for entry in sign.entries])
        blocks = self._capture_errors(blocks) if self._outputs else iter(())
        try:
            for passed in in_order(_BlockEncoder, work, blocks, work.processes, work.path):
                self._for_outputs(self._write, self._pending.popleft(), passed)
        except BaseException as error:
            failure = failure_of(error, work.path)
            if self._fault:
                raise self._fault from None
            self._fail(TAG if work.tag else MIX if work.mix else next(iter(work.sign)), failure)
            for name in [*self._outputs]:  # none has all documents
                self._discard(name)

    def _capture_errors(self, blocks: Iterator[DocumentBatch]) -> Iterator[DocumentBatch]:
        try:
            for block in blocks:
                self._pending.append(block)
                yield block
        except Exception as error:
            self._fault = error
            raise

    def _open(self, name: str, make: Callable[..., Any], *arguments: Any) -> None:
        def enter() -> None:
            self._outputs[name] = self._files[name].enter_context(make(*arguments, self._group))

        self._files[name] = ExitStack()
        self._try(name, enter)

    def _write(self, name: str, output: Any, block: DocumentBatch, passed: "_EncodedBlock") -> None:
        if name == TAG:
            output.write(passed.values.rows, passed.values.efforts)
        elif name != MIX:
            by_set = {**block.carried, **dict(zip(self._work.todo, passed.values.rows, strict=True))}
            joiner = self._joiners[name] = self._joiners.get(name) or Joiner(output.whole, output.keys)
            values = joiner.values([by_set[item.set] for item in output.whole.sets])
            batch = passed.batch or _batch_of(block)
            output.add(block.number, batch, [list(of_sets) for _, of_sets in zip(batch, values, strict=False)])
        elif isinstance(passed.encoded, Failure):
            self._fail(MIX, passed.encoded)
        elif self._work.digests:
            pickle.dump(passed.encoded, self._waiting)
        else:
            output.write(passed.encoded)

    def complete(self, state: ShardState, carried: Mapping[str, str]) -> None:
        """Add attributes, intermediate and signatures to the group, with their records."""
        self._for_outputs(self._finish, state, dict(carried))

    def _finish(self, name: str, output: Any, state: ShardState, contents: dict[str, str]) -> None:
        tag, mix, files = self._work.tag, self._work.mix, self._files[name]
        if tag and name == TAG:
            sets.forget_all(tag.dataset, self._work.todo, [tag.shard])
            files.close()
            output.record(state, contents)
            contents |= output.contents
            self.tagged = True
        elif mix and name == MIX:
            if state.inline and any(rule.foreign for rule in mix.stream.rules):
                self._discard(MIX)  # patterns see these attributes; they have been compiled as if there were none
                return
            for encoded in self._filled(contents):
                output.write(encoded)
            files.close()
            output.record(state, {item.set: contents[item.set] for item in mix.sets})
        else:
            output.finish()
            files.close()
            output.record(state, contents)

    def _filled(self, contents: Mapping[str, str]) -> Iterator[Encoded]:
        """Yield encoded documents with the digests of attributes filled in."""
        end = self._waiting.tell()
        self._waiting.seek(0)
        while self._waiting.tell() < end:
            encoded: Encoded = pickle.load(self._waiting)  # noqa: S301  # ours
            pieces = encoded.pieces
            for name, placeholder in self._work.digests.items():
                before, after = placeholder.encode(), contents[name].encode()
                pieces = [(label, data.replace(before, after)) for label, data in pieces]
            yield encoded._replace(pieces=pieces)

    def _for_outputs(self, act: Callable[..., None], *arguments: Any) -> None:
        """Call a function with each remaining output."""
        for name, output in [*self._outputs.items()]:
            if name in self._outputs:
                self._try(name, act, name, output, *arguments)

    def _try(self, name: str, act: Callable[..., Any], *arguments: Any) -> None:
        """Call a function; its error becomes the failure of a stage."""
        try:
            act(*arguments)
        except BaseException as error:
            self._fail(name, failure_of(error, self._work.path))

    def _fail(self, name: str, failure: Failure) -> None:
        """Note the failure of a stage; discard its output, and after a failure of tags all outputs."""
        self.failures[name] = failure
        for output in [*self._outputs] if name == TAG else [name]:
            self._discard(output)

    def _discard(self, name: str) -> None:
        """Discard an incomplete output."""
        self._outputs.pop(name, None)
        self._files.pop(name, ExitStack()).__exit__(_Abort, _Abort(), None)


class _Abort(Exception):
    """Raised to discard outputs."""


class _EncodedBlock(NamedTuple):
    """A tagged and encoded block.

    Attributes:
        values: Rows of each set, and more.
        encoded: Output of the mix, or the failure of a document.
        batch: Documents, in their own process.
    """

    values: BatchValues
    encoded: Encoded | Failure | None
    batch: Batch | None


def _batch_of(block: DocumentBatch) -> Batch:
    return Batch([FreshDocument(row.id, row.source, row.line, row.utf8 or b"", row.chars) for row in block.rows])


class _BlockEncoder:
    """Tags and encodes blocks."""

    def __init__(self, work: InputToPass) -> None:
        self._steps = [step for step in build(work.tag.plan) if step.set in work.todo] if work.tag else []
        self._encoder: Encoder | None = None
        self._failure: Failure | None = None
        self._work = work

    def __call__(self, block: DocumentBatch) -> _EncodedBlock:
        batch, work, result = _batch_of(block), self._work, _NOTHING
        if work.tag:
            numbered = list(zip(batch, count(block.number + 1)))
            result = values_of(batch, numbered, self._steps, work.todo, work.path, takedown_of(work.tag.dataset))
        encoded: Encoded | None = None
        if work.mix and not self._failure:
            by_set = {**block.carried, **dict(zip(work.todo, result.rows, strict=True))}
            rows = [by_set[item.set] for item in work.mix.sets]
            try:
                self._encoder = self._encoder or Encoder(work.mix, work.digests)
                encoded = self._encoder.fresh(block.number, batch, rows, result.columns)
            except BaseException as error:
                self._failure = failure_of(error, work.path)
        if work.processes < 2:
            return _EncodedBlock(result, encoded or self._failure, batch)
        return _EncodedBlock(result._replace(columns={}), encoded or self._failure, None)


_NOTHING = BatchValues([], [], {})


def ingest_together(tasks: list[Task[InputToPass]], report: Report) -> list[Result[IngestedInput]]:
    """Run `ingest` for a group of small inputs."""
    return run.in_group(ingest, tasks, [task.payload.input for task in tasks], report)


def ingest(work: InputToPass, report: Report, grouped: BatchedIngest | None = None) -> IngestedInput:
    """Ingest an input, unless done; tag, encode and sign its documents meanwhile.

    Args:
        work: Input.
        report: Function to call with progress.
        grouped: Argument of `toolkit.ingest.run.ingest_input`.

    Raises:
        DataError: of the ingest only.
    """
    passes: dict[str, ShardPass] = {}
    passing = work.on_the_way()

    def follow(shard: str, carried: Sequence[str], group: Group) -> ShardPass:
        passes[shard] = ShardPass(passing.of(shard), group)
        return passes[shard]

    follows = follow if passing.tag or passing.mix or passing.sign else None
    result = run.ingest_input(work.input, report, follows, grouped, threads_for(work.processes))
    return replace(
        result,
        tagged=[shard for shard, item in passes.items() if item.tagged],
        failures={(name, shard): why for shard, item in passes.items() for name, why in item.failures.items()},
    )


def pass_input(work: InputToPass, report: Report) -> IngestedInput:
    """Ingest, tag and mix an input, unless done; delete its documents and attributes.

    Raises:
        DataError: of any of the three; what has been made stays, and is not made again.
    """
    record = inputs.finished_record(work.input)
    if record and in_mix(work, record) is not None:
        forget_data(work, record)  # an attempt may have been killed before it could
        report(record.rows, 0)
        return run.outcome_of(record, skipped=True)
    result = ingest(work, report)
    failed = {}
    for shard in result.shards:
        if tag := work.tagged(shard):
            tagging.tag_shard(tag, _report_nothing)
        mixed = work.mixed(shard)
        try:
            intermediates.mix_shard(mixed, _report_nothing)
        except ToolkitError as error:
            if mixed.settings.on_failed_shard == "stop":
                raise
            failed[mixed.key] = str(error)
    record = inputs.record_with_settings(work.input)
    if record is None or (not failed and in_mix(work, record) is None):
        raise DataError(
            "expected the record of the input, and its part of the mix, which this run has just made, got none; run "
            "again",
            path=work.key,
        )
    if not failed:
        forget_data(work, record)
    return replace(result, skipped=False, omitted=failed)


def _report_nothing(documents: int, size: int) -> None:
    """Report nothing: documents are counted once, when they are ingested."""


def in_mix(
    work: InputToPass, record: ingested.InputRecord, published: publication.Published | None = None
) -> dict[str, bool] | None:
    """Return True for each published shard of an input, by key; None if a part is missing."""
    result = {}
    for shard, output in record.shards.items():
        mixed = work.mixed(shard)
        digests = attributes_by_record(mixed, output.content)
        result[mixed.key] = bool(published and digests is not None and published.has(mixed, (output.content, digests)))
        if not result[mixed.key] and intermediates.made_from(mixed, output.content, digests) is None:
            return None
    return result


def attributes_by_record(work: ShardToMix, documents: str) -> dict[str, str] | None:
    """Return the content digests of a shard's attributes by records; the files may be gone. Same as
    `toolkit.mix.join.inputs_of`.

    Args:
        work: Mix of the shard.
        documents: Content digest of its documents.

    Returns:
        None if a set is not there, or was made of something else.
    """
    digests = {}
    for joined in work.sets:
        record = sets.load_record(work.dataset, joined.set, work.shard)
        read = {name: sets.load_record(work.dataset, name, work.shard) for name in (record.reads if record else ())}
        inputs = [("", documents), *((name, item.output.content if item else None) for name, item in read.items())]
        if record is None or not state(record, inputs).is_done:
            return None
        digests[joined.set] = record.output.content
    return digests


def forget_data(work: InputToPass, record: ingested.InputRecord) -> None:
    """Delete the documents of an input with their row indexes and attributes."""
    dataset = work.input.dataset
    inputs.note_deletion(work.input, record)
    names = [*(work.tag.plan.sets if work.tag else ()), *work.input.entry.reader().attribute_sets()]
    names += [joined.set for joined in work.mixed("").sets]
    for shard in record.shards:
        remove_with_folders(dataset.shard_path(shard), dataset.documents)
        for name in dict.fromkeys(names):
            remove_with_folders(dataset.attribute_path(name, shard), dataset.attributes)
    row_index.forget(dataset, record.shards)
