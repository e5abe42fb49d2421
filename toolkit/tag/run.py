"""Tagging: one pass over a shard writes the attribute files of all sets that need it.

documents/X ──blocks of rows──> Batch of Documents ──> taggers, in the order of what they read ──> attributes/<set>/X
                                   ^
attributes/<other set>/X ──rows────┘  only for sets that are read and are already there
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index, schema
from toolkit.data.alignment import MAX_ROW, AttributeRows, is_of_experiment
from toolkit.data.dataset import Dataset
from toolkit.data.documents import DOCUMENT_DECODER, Document, Rows, Span, to_document
from toolkit.errors import DataError, did_you_mean
from toolkit.records import foreign, sets
from toolkit.records.outdated import check_lineage, content_of, is_outdated
from toolkit.runs.blocks import Block, in_blocks, in_order, next_block, threads_for
from toolkit.runs.executors import Report
from toolkit.storage import json_files
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import exists, stat
from toolkit.storage.reading import Lines
from toolkit.tag.plan import Plan, Step, build
from toolkit.tag.steps import Numbered, encodable, run_steps
from toolkit.tag.tagger import Reference
from toolkit.text.batch import Batch, Column


class ShardToTag(ConfigStruct):
    """One shard to tag.

    Attributes:
        settings: of each set of the plan.
        processes: that work on it.
    """

    dataset: Dataset
    plan: Plan
    settings: dict[str, dict[str, Any]]
    shard: str
    max_document_bytes: int
    processes: int = 1


class TaggedShard(ConfigStruct):
    """A shard that was tagged: which sets were written, and how many documents it has."""

    shard: str
    written: list[str]
    documents: int
    seconds: float


def settings_of(schemas: Mapping[str, sets.SetSchema]) -> dict[str, dict[str, Any]]:
    """Return the settings of each set as its completion records hold them."""
    return {name: {key: k.settings for key, k in found.keys.items()} for name, found in schemas.items()}


def holds(settings: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return what a tagging works on, by set, with a digest of its settings: for `toolkit.runs.claims`."""
    return {
        f"the set {name}": xxhash.xxh3_128_hexdigest(msgspec.json.encode(found, order="sorted"))
        for name, found in settings.items()
    }


def outdated(work: ShardToTag, state: row_index.ShardState | None, *, learn: bool = False) -> list[str]:
    """Return the sets of the plan that must be (re)done for a shard; `learn` as in `is_outdated`."""
    dataset, shard = work.dataset, work.shard
    todo: list[str] = []
    steps = build(work.plan)
    for set_name in dict.fromkeys(step.set for step in steps):
        wanted = {r.set for step in steps if step.set == set_name for r in step.references} - {set_name}
        settings = work.settings[set_name]
        if wanted & set(todo) or is_outdated(dataset, set_name, shard, state, settings, wanted, learn=learn):
            todo.append(set_name)
    return todo


def tag_shard(work: ShardToTag, report: Report) -> TaggedShard:
    """Write what is missing or outdated of a shard's attribute files.

    Raises:
        DataError: if the documents, or attributes that are read, are not what they should be; nothing was written.
    """
    start = time.perf_counter()
    dataset, shard = work.dataset, work.shard
    state = row_index.current(dataset, shard)
    if state is None and any(exists(sets.record_path(dataset, name, shard)) for name in work.plan.sets):
        state = row_index.build(dataset, shard, work.max_document_bytes)
    todo = outdated(work, state, learn=True)
    if not todo:
        assert state
        report(state.rows, 0)
        return TaggedShard(shard=shard, written=[], documents=state.rows, seconds=time.perf_counter() - start)
    external = sorted({r.set for step in _steps(work, todo) for r in step.references} - set(todo))
    if external and state is None:
        state = row_index.build(dataset, shard, work.max_document_bytes)
    contents = {name: _content_read(dataset, name, shard, state) for name in external}
    for name in todo:
        sets.forget(dataset, name, shard)
    output, state = _write(work, todo, external, state, report)
    output.record(state, contents)
    return TaggedShard(shard=shard, written=todo, documents=state.rows, seconds=time.perf_counter() - start)


def _content_read(dataset: Dataset, name: str, shard: str, state: row_index.ShardState | None) -> str:
    """Return the digest of a set that is read, which must be of the documents that the shard has."""
    assert state
    check_lineage(dataset, name, shard, state)
    return content_of(dataset, name, shard)


class AttributesOutput:
    """Writes the attribute files of a shard: some sets, all or none. A context manager, which makes them appear.

    Args:
        work: the shard.
        todo: the sets, in the order of the rows that are given.

    Attributes:
        contents: the content digest of each set, after the block.
    """

    def __init__(self, work: ShardToTag, todo: list[str]) -> None:
        self._work, self._todo = work, todo
        self._start = time.perf_counter()

    def __enter__(self) -> Self:
        threads = threads_for(self._work.processes)
        with ExitStack() as stack:
            path = partial(self._work.dataset.attribute_path, shard=self._work.shard)
            self._outputs = {name: stack.enter_context(RowOutput(path(name), threads)) for name in self._todo}
            self._files = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._files.__exit__(kind, error, tb)

    def write(self, rows: list[list[bytes]]) -> None:
        """Write rows of each set."""
        for name, of_set in zip(self._todo, rows, strict=True):
            self._outputs[name].write_rows(of_set)

    @property
    def contents(self) -> dict[str, str]:
        return {name: output.content for name, output in self._outputs.items()}

    def record(self, state: row_index.ShardState, read: Mapping[str, str]) -> None:
        """Save the completion records, after the block.

        Args:
            state: of the documents.
            read: content digests of the other sets that were read.
        """
        seconds = round(time.perf_counter() - self._start, 3)
        contents = {**read, **self.contents}
        steps = build(self._work.plan)
        for name, output in self._outputs.items():
            reads = {r.set for step in steps if step.set == name for r in step.references} - {name}
            record = sets.ShardRecord(
                input=state,
                settings=self._work.settings[name],
                reads={other: contents[other] for other in sorted(reads)},
                rows=output.rows,
                counts={"documents": output.rows},
                output=sets.output_state(output),
                seconds=seconds,
            )
            json_files.save(sets.record_path(self._work.dataset, name, self._work.shard), record)


def _write(
    work: ShardToTag, todo: list[str], external: list[str], state: row_index.ShardState | None, report: Report
) -> tuple[AttributesOutput, row_index.ShardState]:
    """Write the attribute files of some sets, and the row index if there is none; return what was written.

    Args:
        work: the shard.
        todo: the sets to write.
        external: the sets to read.
        state: of the shard; None if it is not known, then nothing is read.
        report: told of what is done.
    """
    dataset, shard = work.dataset, work.shard
    path = dataset.shard_path(shard)
    before = stat(path)
    with ExitStack() as stack:
        ahead = threads_for(work.processes) > 0
        output = stack.enter_context(AttributesOutput(work, todo))
        index = None if state else stack.enter_context(row_index.RowIndexOutput(dataset, shard))
        lines = stack.enter_context(Lines(path, work.max_document_bytes, digest=True, ahead=ahead))
        others = [stack.enter_context(Lines(dataset.attribute_path(name, shard), MAX_ROW)) for name in external]
        job = _BlocksToTag(work, todo, external, indexes=index is not None)
        offset = 0
        for tagged in in_order(_Tagging, job, _parts(work, external, lines, others), work.processes, path):
            output.write(tagged.rows)
            for entry, size in tagged.entries:
                assert index
                index.add(entry, offset)
                offset += size + 1
            report(tagged.documents, tagged.stored)
    if before is None or stat(path) != before:
        raise DataError("expected the file to stay as it is while it is read, it changed; run again", path=path)
    if index:
        return output, index.finish(before, lines.content or "")
    assert state
    if lines.content != state.content:
        row_index.forget(dataset, shard)  # else the next run would believe it, too
        message = (
            f"expected the documents that {row_index.path_of(dataset, shard)}.json describes, got others of the same "
            "size and time: one of the two was damaged. Look after the documents; run again, which indexes them anew"
        )
        raise DataError(message, path=path)
    return output, state


def _steps(work: ShardToTag, todo: list[str]) -> list[Step]:
    return [step for step in build(work.plan) if step.set in todo]


# --- blocks -----------------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A block of documents, the rows before it, and the same rows of the sets that are read."""

    number: int
    documents: Block
    others: list[Block]


def _parts(work: ShardToTag, external: list[str], lines: Lines, others: list[Lines]) -> Iterator[_Part]:
    number = 0
    for block in in_blocks(lines, lines.stored):
        yield _Part(number, block, [next_block(other, block.rows_beside) for other in others])
        number += len(block.lines)
    path = work.dataset.shard_path(work.shard)
    for name, other in zip(external, others, strict=True):
        AttributeRows(work.dataset.attribute_path(name, work.shard), path, block=other, number=number).finish(number)


class _BlocksToTag(NamedTuple):
    """The work on the blocks of a shard.

    Attributes:
        todo: the sets to write.
        external: the sets to read.
        indexes: whether the row index is made on the way.
    """

    work: ShardToTag
    todo: list[str]
    external: list[str]
    indexes: bool


class _Tagged(NamedTuple):
    """A tagged block: rows of each set; of each row its index entry and its size; the bytes of the block as stored."""

    rows: list[list[bytes]]
    entries: list[tuple[row_index.Entry, int]]
    documents: int
    stored: int


class _Tagging:
    """Tags blocks."""

    def __init__(self, job: _BlocksToTag) -> None:
        self._job = job
        self._steps = _steps(job.work, job.todo)
        dataset = job.work.dataset
        self._path = dataset.shard_path(job.work.shard)
        self._others = [_read(job.work, name, self._steps) for name in job.external]

    def __call__(self, part: _Part) -> _Tagged:
        entries = []
        batch: list[Numbered] = []
        rows = Rows(iter(part.documents), DOCUMENT_DECODER, self._path, part.number)
        others = [
            _Others(self._job.work, read, block, part.number)
            for read, block in zip(self._others, part.others, strict=True)
        ]
        for row, line in rows:
            if self._job.indexes:
                entries.append((row_index.entry_of(row), len(line)))
            document = to_document(row, rows, line)
            for other in others:
                other.give(document, rows.number)
            batch.append((document, rows.number))
        documents = Batch([document for document, _ in batch])
        found = values_of(documents, batch, self._steps, self._job.todo, self._path)
        return _Tagged(found.rows, entries, len(batch), part.documents.stored)


_ENCODER = msgspec.json.Encoder()


class Values(NamedTuple):
    """The values of some documents.

    Attributes:
        rows: of attributes, for each set.
        columns: the values, by set and key, where a tagger has made a `Column`.
    """

    rows: list[list[bytes]]
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
    values = {(step.set, step.key): found for step, found in run_steps(batch, numbered, steps, path)}
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
    return Values(found, {name: column for name, column in values.items() if isinstance(column, Column)})


# --- attributes that are read ---------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """The attributes that are read of an existing file.

    Attributes:
        path: of the file.
        references: of the attributes.
        ours: whether the toolkit wrote it; rows of other programs may lack a key of which they have no spans.
    """

    path: str
    references: list[Reference]
    ours: bool


def _read(work: ShardToTag, set_name: str, steps: list[Step]) -> _Read:
    """Return what is read of a set.

    Raises:
        DataError: if another program wrote it, and spans are read that none of its rows has nor can lack.
    """
    references = [r for step in steps for r in step.references if r.set == set_name]
    path = work.dataset.attribute_path(set_name, work.shard)
    ours = sets.load_schema(work.dataset, set_name) is not None
    if not ours:
        keys = foreign.look_at(work.dataset, set_name, work.shard).types
        for each in references:
            if each.type == list[Span] and keys and each.key not in keys and not is_of_experiment(each.key, keys):
                hint = did_you_mean(each.key, keys) or f"; there are: {', '.join(keys)}"
                raise DataError(
                    f"{each.option}: {each.text!r}: expected rows with {each.key!r}, got none{hint}", path=path
                )
    return _Read(path, references, ours)


class _Others(AttributeRows):
    """The rows of an existing attribute file, given to the documents that they describe."""

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
                if not self._ours and reference.type == list[Span] and reference.key not in values:
                    document.give(reference.text, [])
                    continue
                value = values[reference.key]
                for name in reference.path:
                    value = None if value is None else value[name]
                document.give(reference.text, msgspec.convert(value, reference.type))
            except (KeyError, TypeError, msgspec.ValidationError) as error:
                wanted = schema.from_annotation(reference.type, reference.text)
                raise DataError(
                    f"expected {reference.text} of type {wanted}, got: {error}",
                    path=self.path,
                    line=number,
                    id=document.id,
                ) from None
