"""Tagging: one pass over a shard writes the attribute files of all sets that need it.

documents/X ──blocks of rows──> Batch of Documents ──> taggers, in the order of what they read ──> attributes/<set>/X
                                   ^
attributes/<other set>/X ──rows────┘  only for sets that are read and are already there
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

import msgspec

from toolkit.data import record_logs, row_index, schema
from toolkit.data.alignment import AttributeRows, attribute_lines, is_of_experiment
from toolkit.data.documents import DOCUMENT_DECODER, LATE_DECODER, Document, LateDocument, Rows, Span, to_document
from toolkit.errors import DataError, did_you_mean, in_words
from toolkit.execution.blocks import Block, in_blocks, in_order, next_block, threads_for
from toolkit.execution.executors import Report
from toolkit.execution.grouped import ShardDone, ShardWork, Work, log_of_dataset, run_batch
from toolkit.records import external_sets, sets
from toolkit.records.sets import ShardAttributes
from toolkit.records.takedown import takedown_of
from toolkit.session import cached_last
from toolkit.storage.json_files import json_digest
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import stat
from toolkit.storage.reading import Lines, version_read
from toolkit.storage.record_log import Group
from toolkit.tag.execution import ASKED, Effort, values_of
from toolkit.tag.plan import Plan, Step, build
from toolkit.tag.set_options import EditedBatch, Numbered, Selection
from toolkit.tag.tagger import Reference
from toolkit.text.batch import Batch
from toolkit.text.json_strings import decoded


class ShardToTag(ShardWork, kw_only=True):
    """One shard to tag.

    Attributes:
        settings: Settings of each set of the plan.
        processes: Processes that work on it.
    """

    plan: Plan
    settings: dict[str, dict[str, Any]]
    max_document_bytes: int
    processes: int = 1


def settings_of(schemas: Mapping[str, sets.SetSchema]) -> dict[str, dict[str, Any]]:
    """Return the settings of each set as its completion records hold them."""
    return {name: {key: k.settings for key, k in schema.keys.items()} for name, schema in schemas.items()}


def holds(settings: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return the sets to lease, each with a digest of settings.

    It is for `toolkit.execution.leases`.
    """
    return {f"the set {name}": json_digest(setting) for name, setting in settings.items()}


def outdated(work: ShardToTag, shard: sets.ShardSets, *, quick: bool = False, learn: bool = False) -> list[str]:
    """Return the sets of the plan to make for a shard; `quick` and `learn` as of `ShardAttributes.state`."""
    todo: list[str] = []
    for name, reads in _reads_of(work.plan).items():
        settings = work.settings[name]
        if reads.isdisjoint(todo) and shard.finished(name, settings, reads):
            continue
        if not reads.isdisjoint(todo) or not shard[name].state(settings, reads, quick=quick, learn=learn).is_done:
            todo.append(name)
    return todo


@cached_last
def _reads_of(plan: Plan) -> dict[str, set[str]]:
    """Return the sets read by each set of a plan."""
    reads = dict[str, set[str]]()
    for step in build(plan):
        reads.setdefault(step.set, set()).update({reference.set for reference in step.references} - {step.set})
    return reads


def sets_of(plan: Plan) -> set[str]:
    """Return the sets of a plan, written or read."""
    return {*plan.sets, *(r.set for step in build(plan) for r in step.references)}


def finished_shards(work: ShardToTag) -> Callable[[str], ShardDone | None]:
    """Return a function from a shard to its outcome.

    It returns None unless all sets of the plan are up to date by listings alone, with the settings of this work.
    """
    finished, reads = sets.finished_shards(work.dataset), _reads_of(work.plan)
    items_of = finished.all_of(reads)
    accepted = [finished.numbers(work.settings[name], names) for name, names in reads.items()]

    def outcome(shard: str) -> ShardDone | None:
        items = items_of(shard)
        if items is None or any(item[1] not in numbers for item, numbers in zip(items[1:], accepted, strict=True)):
            return None
        return ShardDone(shard=shard, documents=items[0][1])

    return outcome


def as_it_was(work: ShardToTag) -> ShardDone | None:
    """Return the outcome of an up-to-date shard.

    Known are its records, sizes and stamps; None if that is not enough.

    Nothing is read but these, and nothing written.
    """
    shard_sets = sets.ShardSets.now(work.dataset, work.shard)
    version = shard_sets.version
    if version is None or outdated(work, shard_sets, quick=True):
        return None
    return ShardDone(shard=work.shard, documents=version[1])


def tag_shard(work: ShardToTag, report: Report, group: Group | None = None) -> ShardDone:
    """Write the missing or outdated attribute files of a shard.

    Args:
        work: the shard.
        report: told of what is done.
        group: Group that makes the files durable; by default they are durable at the end.

    Raises:
        DataError: if the documents, or attributes that are read, are not what they should be; nothing was written.
    """
    dataset, shard = work.dataset, work.shard
    state = row_index.current(dataset, shard)
    if state is None and any(sets.is_recorded(dataset, name, shard) for name in work.plan.sets):
        state = row_index.build(dataset, shard, work.max_document_bytes)
    todo = outdated(work, sets.ShardSets(dataset, shard, state), learn=True)
    if not todo:
        assert state
        report(state.rows, 0)
        return ShardDone(shard=shard, documents=state.rows)
    external = sorted({r.set for step in _steps(work, todo) for r in step.references} - set(todo))
    if external and state is None:
        state = row_index.build(dataset, shard, work.max_document_bytes)
    contents = {name: ShardAttributes(dataset, name, shard, state).content() for name in external}
    sets.forget_all(dataset, todo, [shard])
    with nullcontext(group) if group else Group(record_logs.of(dataset)) as own:
        output, state = _write(work, todo, external, state, report, own)
        output.record(state, contents)
    return ShardDone(shard=shard, documents=state.rows, written=todo)


WORK = Work(tag_shard, partial(run_batch, tag_shard, log_of_dataset))


class AttributesOutput:
    """Writes the attribute files of a shard: some sets, all or none. A context manager, which adds them to a group.

    Args:
        work: the shard.
        todo: the sets, in the order of the rows that are given.
        group: Group that they belong to, and appear with.

    Attributes:
        contents: the content digest of each set, after the block.
    """

    def __init__(self, work: ShardToTag, todo: list[str], group: Group) -> None:
        self._work, self._todo, self._group = work, todo, group
        self._effort = {name: Effort() for name in todo}

    def __enter__(self) -> Self:
        threads = threads_for(self._work.processes)
        with ExitStack() as stack:
            path = partial(self._work.dataset.attribute_path, shard=self._work.shard)
            files = self._group.files
            outputs = {name: RowOutput(path(name), threads, together=files) for name in self._todo}
            self._outputs = {name: stack.enter_context(output) for name, output in outputs.items()}
            self._files = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._files.__exit__(kind, error, tb)

    def write(self, rows: list[list[bytes]], efforts: list["Effort"]) -> None:
        """Write rows of each set, and add their effort."""
        for name, of_set, effort in zip(self._todo, rows, efforts, strict=True):
            self._outputs[name].write_rows(of_set)
            self._effort[name] += effort

    @property
    def contents(self) -> dict[str, str]:
        return {name: output.content for name, output in self._outputs.items()}

    def record(self, state: row_index.ShardState, read: Mapping[str, str]) -> None:
        """Save the completion records, after the block.

        Args:
            state: State of the documents.
            read: content digests of the other sets that were read.
        """
        contents = {**read, **self.contents}
        steps, reads = build(self._work.plan), _reads_of(self._work.plan)
        records = {}
        for name, output in self._outputs.items():
            counts = {"documents": output.rows, **self._effort[name].counts}
            if any(step.is_partial for step in steps if step.set == name):
                counts[ASKED] = self._effort[name].documents
            records[name] = sets.ShardRecord(
                input=state,
                settings=self._work.settings[name],
                reads={other: contents[other] for other in sorted(reads[name])},
                rows=output.rows,
                counts=counts,
                output=sets.output_state(output),
                seconds=round(self._effort[name].seconds, 3),
            )
        sets.save_records(self._work.dataset, self._work.shard, records, self._group)


def _write(
    work: ShardToTag,
    todo: list[str],
    external: list[str],
    state: row_index.ShardState | None,
    report: Report,
    group: Group,
) -> tuple[AttributesOutput, row_index.ShardState]:
    """Write attribute files, and a missing row index; return both.

    Args:
        work: the shard.
        todo: the sets to write.
        external: the sets to read.
        state: State of the shard; None if it is not known, then nothing is read.
        report: told of what is done.
        group: Group that it belongs to.
    """
    dataset, shard = work.dataset, work.shard
    path = dataset.shard_path(shard)
    before = stat(path)
    with ExitStack() as stack:
        ahead = threads_for(work.processes) > 0
        output = stack.enter_context(AttributesOutput(work, todo, group))
        index = None if state else stack.enter_context(row_index.RowIndexOutput(dataset, shard, group=group))
        lines = stack.enter_context(dataset.lines(shard, work.max_document_bytes, digest=True, ahead=ahead))
        set_lines = [stack.enter_context(attribute_lines(dataset.attribute_file(name, shard))) for name in external]
        job = _BlocksToTag(work, todo, external, indexes=index is not None)
        offset = 0
        for tagged in in_order(_Tagging, job, _parts(work, external, lines, set_lines), work.processes, path):
            output.write(tagged.rows, tagged.efforts)
            for entry, size in tagged.entries:
                assert index
                index.add(entry, offset)
                offset += size + 1
            report(tagged.documents, tagged.stored)
    content = lines.content or ""
    read = version_read(path, before, content)
    if index:
        return output, index.finish(read, content, lines)
    assert state
    row_index.check_content(dataset, shard, state, content)
    return output, state


def _steps(work: ShardToTag, todo: list[str]) -> list[Step]:
    return [step for step in build(work.plan) if step.set in todo]


# --- blocks -----------------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Block of documents, the rows before it, and blocks of sets."""

    number: int
    documents: Block
    set_blocks: list[Block]


def _parts(work: ShardToTag, external: list[str], lines: Lines, set_lines: list[Lines]) -> Iterator[_Part]:
    number = 0
    for block in in_blocks(lines, lines.stored):
        yield _Part(number, block, [next_block(other, block.rows_beside) for other in set_lines])
        number += len(block.lines)
    path = work.dataset.shard_path(work.shard)
    for name, other in zip(external, set_lines, strict=True):
        AttributeRows(work.dataset.attribute_file(name, work.shard), path, block=other, number=number).finish(number)


class _BlocksToTag(NamedTuple):
    """The work on the blocks of a shard.

    Attributes:
        todo: the sets to write.
        external: the sets to read.
        indexes: True if the row index is made on the way.
    """

    work: ShardToTag
    todo: list[str]
    external: list[str]
    indexes: bool


class _Tagged(NamedTuple):
    """A tagged block.

    Attributes:
        rows: Rows of each set.
        efforts: Efforts of each set.
        entries: Entries of each row its index entry and its size.
        documents: Number of documents.
        stored: bytes of the block as stored.
    """

    rows: list[list[bytes]]
    efforts: list[Effort]
    entries: list[tuple[row_index.Entry, int]]
    documents: int
    stored: int


class _Joining:
    """Makes documents of blocks, and gives them attributes."""

    def __init__(self, job: _BlocksToTag) -> None:
        self._job = job
        self.steps = _steps(job.work, job.todo)
        is_partial = all(step.is_partial for step in self.steps)  # most texts may not be needed
        self._decoder: msgspec.json.Decoder[Any] = LATE_DECODER if is_partial and not job.indexes else DOCUMENT_DECODER
        self._at_once = not (is_partial or job.indexes)
        self.path = job.work.dataset.shard_path(job.work.shard)
        self._readers = [_read(job.work, name, self.steps) for name in job.external]

    def __call__(self, part: _Part) -> tuple[Batch, list[Numbered], list[tuple[row_index.Entry, int]]]:
        """Return the documents, also numbered, and the row index entries.

        There are entries if the index is made now.
        """
        if self._at_once:
            try:
                numbered, _ = self._numbered(part, LATE_DECODER)
                documents = [document for document, _ in numbered]
                texts = decoded([cast("LateDocument", document).raw_text for document in documents])
                if texts is not None:
                    return Batch(documents, texts), numbered, []
            except DataError:  # which is told below, of the first row that is wrong
                pass
            except (ImportError, OSError, RuntimeError):  # there is no code for this machine
                self._at_once = False
        numbered, entries = self._numbered(part, self._decoder)
        return Batch([document for document, _ in numbered]), numbered, entries

    def _numbered(
        self, part: _Part, decoder: msgspec.json.Decoder[Any]
    ) -> tuple[list[Numbered], list[tuple[row_index.Entry, int]]]:
        entries = []
        numbered: list[Numbered] = []
        rows = Rows(iter(part.documents), decoder, self.path, part.number)
        set_blocks = [
            _OtherRows(self._job.work, read, block, part.number)
            for read, block in zip(self._readers, part.set_blocks, strict=True)
        ]
        for row, line in rows:
            if self._job.indexes:
                entries.append((row_index.entry_of(row, line), len(line)))
            document = to_document(row, rows, line)
            for other in set_blocks:
                other.give(document, rows.number)
            numbered.append((document, rows.number))
        return numbered, entries


class _Tagging:
    """Tags blocks."""

    def __init__(self, job: _BlocksToTag) -> None:
        self._job = job
        self._joining = _Joining(job)

    def __call__(self, part: _Part) -> _Tagged:
        batch, numbered, entries = self._joining(part)
        takedown = takedown_of(self._job.work.dataset)
        result = values_of(batch, numbered, self._joining.steps, self._job.todo, self._joining.path, takedown)
        return _Tagged(result.rows, result.efforts, entries, len(batch), part.documents.stored)


def selected_documents(work: ShardToTag, *, listed: bool = False) -> Iterator[tuple[list[Numbered], int]]:
    """Yield the documents for a plan's only tagger; nothing is written.

    They come in batches, each with the bytes of the shard, as stored, that were read for it.

    Args:
        work: Shard, and the plan.
        listed: True for documents on takedown lists instead, whatever `when:` says now.

    Raises:
        DataError: if the documents, or attributes that are read, are not what they should be.
    """
    (step,) = build(work.plan)
    dataset, shard = work.dataset, work.shard
    external = sorted({reference.set for reference in step.references})
    if external:
        state = row_index.current(dataset, shard) or row_index.build(dataset, shard, work.max_document_bytes)
        for name in external:
            ShardAttributes(dataset, name, shard, state).content()
    with ExitStack() as stack:
        lines = stack.enter_context(dataset.lines(shard, work.max_document_bytes))
        set_lines = [stack.enter_context(attribute_lines(dataset.attribute_file(name, shard))) for name in external]
        joining = _Joining(_BlocksToTag(work, [step.set], external, indexes=False))
        for part in _parts(work, external, lines, set_lines):
            _, batch, _ = joining(part)
            if takedown := takedown_of(dataset):
                cleared = {*takedown.rows([document for document, _ in batch])}
                batch = [item for i, item in enumerate(batch) if (i in cleared) == listed]
            rows = step.when.rows(batch, joining.path) if step.when and not listed else range(len(batch))
            subset = Selection.some(Batch([document for document, _ in batch]), batch, rows)
            if step.text:
                subset = subset.with_texts(step.text.text)
            edits = step.entry.edits
            yield (
                [*(EditedBatch(subset.numbered, edits, joining.path) if edits else subset).numbered],
                part.documents.stored,
            )


# --- attributes that are read ---------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """References to attributes of an existing file.

    Attributes:
        path: Path of the file.
        references: References of the attributes.
        ours: True if the toolkit wrote it; rows of other programs may lack a key of which they have no spans.
    """

    path: str
    references: list[Reference]
    ours: bool


def _read(work: ShardToTag, set_name: str, steps: list[Step]) -> _Read:
    """Return the references to a set.

    Raises:
        DataError: if another program wrote it, and spans are read that none of its rows has nor can lack.
    """
    references = [r for step in steps for r in step.references if r.set == set_name]
    path = work.dataset.attribute_file(set_name, work.shard)
    ours = sets.load_schema(work.dataset, set_name) is not None
    if not ours:
        keys = external_sets.look_at(work.dataset, set_name, work.shard).types
        for reference in references:
            if (
                reference.type == list[Span]
                and keys
                and reference.key not in keys
                and not is_of_experiment(reference.key, keys)
            ):
                hint = did_you_mean(reference.key, keys) or f"; there are: {', '.join(keys)}"
                raise DataError(
                    f"{reference.option}: {reference.text!r}: expected rows with {reference.key!r}, got none{hint}",
                    path=path,
                )
    return _Read(path, references, ours)


class _OtherRows(AttributeRows):
    """Rows of an attribute file, given to the documents they describe."""

    def __init__(self, work: ShardToTag, read: _Read, block: Block, number: int) -> None:
        documents = work.dataset.shard_path(work.shard)
        super().__init__(read.path, documents, any_source=not read.ours, block=block, number=number)
        self._references, self._ours = read.references, read.ours

    def give(self, document: Document, number: int) -> None:
        """Give the values of the next row to its document."""
        row, _ = self.take(document.id, document.source, number)
        values = msgspec.json.decode(row.attributes)
        for reference in self._references:
            try:
                if self._ours or reference.key in values:
                    value = values[reference.key]
                    for name in reference.path:
                        value = None if value is None else value[name]
                else:  # rows of other programs may lack keys
                    value = [] if reference.type == list[Span] else None
                document.give(reference.text, msgspec.convert(value, reference.nullable_type))
            except (KeyError, TypeError, msgspec.ValidationError) as error:
                expected = schema.from_annotation(reference.type, reference.text)
                raise DataError(
                    f"expected {reference.text} of type {expected}, got: {in_words(str(error))}",
                    path=self.path,
                    line=number,
                    id=document.id,
                ) from None
