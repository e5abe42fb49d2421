"""Tagging: one pass over a shard writes the attribute files of all sets that need it.

documents/X ──blocks of rows──> Batch of Documents ──> taggers, in the order of what they read ──> attributes/<set>/X
                                   ^
attributes/<other set>/X ──rows────┘  only for sets that are read and are already there
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import chain
from math import isfinite
from types import TracebackType
from typing import Any, NamedTuple, Self, cast, get_args, get_origin

import msgspec
from msgspec.structs import astuple

from toolkit.data import record_logs, row_index, schema
from toolkit.data.alignment import AttributeRows, attribute_lines, is_of_experiment
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import MetadataField
from toolkit.data.documents import (
    DOCUMENT_DECODER,
    LATE_DECODER,
    Document,
    LateDocument,
    Rows,
    Span,
    fault_of_spans,
    to_document,
)
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, DataError, Unreadable, did_you_mean, in_words
from toolkit.execution.blocks import Block, in_blocks, in_order, next_block, threads_for
from toolkit.execution.executors import Report
from toolkit.execution.grouped import ShardDone, ShardWork, Work, log_of_dataset, run_batch
from toolkit.records import external_sets, sets
from toolkit.records.sets import ShardAttributes
from toolkit.records.takedown import Takedown, empty, takedown_of
from toolkit.session import cached_last
from toolkit.storage.json_files import json_digest
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import stat
from toolkit.storage.reading import Lines, version_read
from toolkit.storage.record_log import Group
from toolkit.storage.threads import for_each
from toolkit.tag.plan import EditedBatch, Numbered, Plan, Selection, Step, build
from toolkit.tag.tagger import Reference
from toolkit.text.batch import Batch, Column
from toolkit.text.json_strings import decoded

LONGEST = 200
"""Characters of a wrong value that a message shows."""

_ENCODER = msgspec.json.Encoder()


class Ran(NamedTuple):
    """The values of a tagger for a batch.

    Attributes:
        step: the tagger.
        values: one for each document; null for those of which it was not asked.
        rows: indexes of the documents of which it was asked; None if they are all.
        seconds: Seconds that it took.
    """

    step: Step
    values: Sequence[Any]
    rows: Sequence[int] | None
    seconds: float


def run_steps(
    batch: Batch, numbered: Sequence[Numbered], steps: Sequence[Step], path: str, cleared: Collection[int] = ()
) -> Iterator[Ran]:
    """Yield the values of each tagger in turn; what later ones read is given to the documents.

    Args:
        batch: Batch of the documents.
        numbered: the same with the number of each in its file.
        steps: each after those that it reads.
        path: Path of the file, for messages.
        cleared: Indexes of documents of which no tagger is asked.

    Raises:
        DataError: for a tagger that fails, or a value that is not of its declared type, with its row.
    """
    values: dict[tuple[str, str], Sequence[Any]] = {}
    pending = [i for i in range(len(batch)) if i not in cleared]
    whole = Selection.some(batch, numbered, pending)
    chosen: dict[tuple[str, tuple[str, ...]], Selection] = {}
    edited: dict[tuple[bytes, int], EditedBatch] = {}
    with_texts: dict[tuple[str, int], Selection] = {}
    for step in steps:
        begin = time.perf_counter()
        selection = whole
        if step.when:
            name = step.when.text, tuple(reference.text for reference in step.when.references)
            if name not in chosen:
                _give(whole, step.when.references, values, steps)
                rows = [pending[i] for i in step.when.rows(whole.numbered, path)]
                chosen[name] = Selection.some(batch, numbered, rows)
            selection = chosen[name]
        result: Sequence[Any] = []
        if selection.numbered:
            _give(selection, step.references, values, steps)
            for field in step.fields:
                selection.batch.give(field.text, _of_metadata(field, step, selection.numbered, path))
        if step.text and selection.numbered:
            chosen_texts = step.text.text, id(selection)
            if chosen_texts not in with_texts:
                with_texts[chosen_texts] = selection.with_texts(step.text.text)
            selection = with_texts[chosen_texts]
        if selection.numbered:
            if not (edits := step.entry.edits):
                result = _run(step, selection.batch, selection.numbered, path)
            else:
                edits_key = _ENCODER.encode(edits), id(selection)
                edited_batch = edited[edits_key] = edited.get(edits_key) or EditedBatch(selection.numbered, edits, path)
                result = _run(step, edited_batch.batch, edited_batch.numbered, path)
                result = edited_batch.in_whole(result, step.type, step.annotation, step.key)
        if selection.rows is not None:
            result = selection.spread(result)
        values[step.set, step.key] = result
        yield Ran(step, result, selection.rows, time.perf_counter() - begin)


def _give(
    selection: Selection,
    references: Sequence[Reference],
    values: Mapping[tuple[str, str], Sequence[Any]],
    steps: Sequence[Step],
) -> None:
    """Give documents the attributes of this pass, as in the file."""
    for reference in references:
        if (produced := values.get((reference.set, reference.key))) is not None:
            result = next(s.stored_annotation for s in steps if (s.set, s.key) == (reference.set, reference.key))
            selection.batch.give(reference.text, _delivered(selection.select(produced), result, reference))


def encodable(values: Sequence[Any]) -> Sequence[Any]:
    """Return values as they are encoded to JSON: those of a `Column` as the texts that it gives."""
    return values.raw() if isinstance(values, Column) else values


def _run(step: Step, batch: Batch, numbered: Sequence[Numbered], path: str) -> Sequence[Any]:
    try:
        values = step.tagger.tag_batch(batch)
    except (ConfigError, Unreadable):
        raise
    except Exception as error:
        raise _blame(step, numbered, path, error) from error
    is_list = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    got = len(values) if is_list else f"{type(values).__name__}; return a list"
    if got != len(batch):
        raise DataError(f"tagger {step.key}: expected {len(batch)} values of tag_batch, got {got}", path=path)
    _check_values(step, values, numbered, path)
    return values


def _check_values(step: Step, values: Sequence[Any], numbered: Sequence[Numbered], path: str) -> None:
    """Compare values with the declared type: all at once, then one by one to find the first wrong one."""
    if values.proves(step.annotation) if isinstance(values, Column) else _are_numbers(step.annotation, values):
        return
    texts = list(encodable(values))
    if _fault(step, texts, values, numbered) is None:
        return
    for i, (text, (document, number)) in enumerate(zip(texts, numbered, strict=True)):
        if (error := _fault(step, [text], values[i : i + 1], numbered[i : i + 1])) is not None:
            got = bytes(text).decode() if isinstance(text, msgspec.Raw) else repr(text)
            raise DataError(
                f"tagger {step.key}: expected a value of its declared type {step.type}, "
                f"got {got if len(got) <= LONGEST else got[:LONGEST] + '…'}: {error}",
                path=path,
                line=number,
                id=document.id,
            )


_NUMBERS: dict[Any, set[type]] = {
    item | none: {*kinds, *none_kinds}
    for item, kinds in ((int, (int,)), (float, (float, int)))
    for none, none_kinds in ((item, ()), (None, (type(None),)))
}
"""The types of the values that JSON has as numbers of a type, or as null."""


def _are_numbers(annotation: Any, values: Sequence[Any]) -> bool:
    """Return True for Structs of numbers with the declared types.

    Lists of numbers count, too.

    It takes half the time of decoding what is encoded.
    """
    if {*map(type, values)} != {annotation} or not issubclass(annotation, msgspec.Struct):
        return False
    types = map(annotation.__annotations__.get, annotation.__struct_fields__)
    for type_, column in zip(types, zip(*map(astuple, values), strict=True), strict=True):
        kinds, numbers = {*map(type, column)}, column
        if get_origin(type_) is list and kinds == {list}:
            (type_,), numbers = get_args(type_), (*chain.from_iterable(column),)
            kinds = {*map(type, numbers)}
        if not kinds <= _NUMBERS.get(type_, set()):
            return False
        if type(None) in kinds:
            numbers = (*filter(None, numbers),)
        if int in kinds and not (min(numbers, default=0) >= -(2**63) and max(numbers, default=0) < 2**63):
            return False
        if float in kinds and not isfinite(sum(numbers)):
            return False
    return True


def _fault(step: Step, texts: list[Any], values: Sequence[Any], numbered: Sequence[Numbered]) -> str | None:
    """Return the fault of values with a wrong type; None without one.

    Spans outside of the text are one.

    Args:
        step: Step with the tagger.
        texts: the values as they are encoded.
        values: the same as objects.
        numbered: their documents.
    """
    try:
        decoded = step.decoder.decode(_ENCODER.encode(texts))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        return str(error).replace("`$[...]", "`$").replace(" - at `$`", "")
    if step.takes_null_for_float and decoded != list(values) and has_no_number(msgspec.to_builtins(list(values))):
        return "NaN and infinity are no numbers of JSON"
    if schema.has_spans(step.type) and not type(step.tagger).__module__.startswith("taggers."):  # tests show these
        for (document, _), value in zip(numbered, decoded, strict=True):
            if fault := fault_of_spans(value, document.chars):
                return fault
    return None


def has_no_number(value: Any) -> bool:
    """Return True if plain data has NaN or infinity.

    They are encoded as null.
    """
    if isinstance(value, float):
        return not math.isfinite(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(map(has_no_number, inner))


def _blame(step: Step, batch: Sequence[Numbered], path: str, error: Exception) -> DataError:
    for document, number in batch:
        try:
            step.tagger.tag_batch([document])
        except Exception as own:
            message = f"tagger {step.key} failed: {type(own).__name__}: {own}"
            return DataError(message, path=path, line=number, id=document.id)
    message = f"tagger {step.key} failed on a batch of {len(batch)} documents: {type(error).__name__}: {error}"
    return DataError(message, path=path, line=batch[0][1])


def _of_metadata(field: MetadataField, step: Step, numbered: Sequence[Numbered], path: str) -> list[Any]:
    """Return the values of a field of the documents' metadata."""
    values = []
    for document, number in numbered:
        try:
            values.append(field.of(document))
        except DataError as error:
            message = f"tagger {step.key}: {error.message}"
            raise DataError(message, path=path, line=number, id=document.id) from None
    return values


def _delivered(values: Sequence[Any], annotation: Any, reference: Reference) -> Sequence[Any]:
    """Return values of this pass as another tagger finds them on disk."""
    target = reference.nullable_type
    if not reference.path and annotation == target:
        return values
    results = []
    for value in values:
        plain = msgspec.json.decode(_ENCODER.encode(value))
        for name in reference.path:
            plain = None if plain is None else plain[name]
        results.append(msgspec.convert(plain, target))
    return results


ASKED = "asked"
"""The count of documents of which the taggers of a set with `when` were asked."""


class Effort(NamedTuple):
    """The work of the taggers of a set.

    Attributes:
        documents: Documents of which at least one was asked.
        seconds: Seconds of all together.
        counts: Counts of values by reasons, as taggers tell them.
    """

    documents: int = 0
    seconds: float = 0.0
    counts: Mapping[str, int] = {}

    def __add__(self, other: tuple[Any, ...]) -> "Effort":
        return Effort(self.documents + other[0], self.seconds + other[1], Counter(self.counts) + Counter(other[2]))


class BatchValues(NamedTuple):
    """The values of some documents.

    Attributes:
        rows: Rows of attributes, for each set.
        efforts: Efforts of each set.
        columns: the values, by set and key, where a tagger has made a `Column`.
    """

    rows: list[list[bytes]]
    efforts: list[Effort]
    columns: dict[tuple[str, str], Column[Any]]


def values_of(
    batch: Batch,
    numbered: Sequence[Numbered],
    steps: Sequence[Step],
    todo: Sequence[str],
    path: str,
    takedown: Takedown | None = None,
) -> BatchValues:
    """Return the taggers' values of some documents.

    Args:
        batch: Batch of the documents.
        numbered: the same, with the number of each in its file.
        steps: the taggers, each after those that it reads.
        todo: the sets.
        path: Path of the file, for messages.
        takedown: Lists of the dataset; of the documents that they name, no tagger is asked.
    """
    values = {}
    cleared = takedown.rows([document for document, _ in numbered]) if takedown else []
    rows_of: dict[str, set[int]] = {name: set() for name in todo}
    seconds = dict.fromkeys(todo, 0.0)
    counts: dict[str, Counter[str]] = {name: Counter() for name in todo}
    for ran in run_steps(batch, numbered, steps, path, {*cleared}):
        name = ran.step.set
        values[name, ran.step.key] = ran.values
        rows_of[name].update(range(len(batch)) if ran.rows is None else ran.rows)
        seconds[name] += ran.seconds
        counts[name].update(ran.step.tagger.tallied(ran.values))
    results = []
    for set_name in todo:
        keys = [step.key for step in steps if step.set == set_name]
        columns = [encodable(values[set_name, key]) for key in keys]
        if cleared:
            types = [step.stored for step in steps if step.set == set_name]
            columns = [_with_empty(column, cleared, type_) for column, type_ in zip(columns, types, strict=True)]
        results.append(
            [
                _ENCODER.encode(
                    {"source": document.source, "id": document.id, "attributes": dict(zip(keys, row, strict=True))}
                )
                for document, *row in zip(batch, *columns, strict=True)
            ]
        )
    efforts = [Effort(len(rows_of[name]), seconds[name], counts[name]) for name in todo]
    return BatchValues(
        results, efforts, {name: column for name, column in values.items() if isinstance(column, Column)}
    )


def _with_empty(values: Sequence[Any], rows: Sequence[int], type_: Type) -> list[Any]:
    results = list(values)
    for i in rows:
        results[i] = empty(type_)
    return results


# --- of whole sets ----------------------------------------------------------------------------------------------------


class Worked(NamedTuple):
    """Work of a set's taggers in some shards: documents, documents that were tagged, and seconds."""

    documents: int = 0
    selected: int = 0
    seconds: float = 0.0


def work_done(plan: Plan, dataset: Dataset, shards: Sequence[str], *, always: bool = False) -> dict[str, Worked]:
    """Return the work of a plan's sets in shards, by their records.

    Args:
        plan: Plan of the sets.
        dataset: Dataset of the shards.
        shards: those that have no record are left out.
        always: True if it is told of plans in which no set has `when`, too.
    """
    if not always and not any(entry.when or entry.text for entries in plan.sets.values() for entry in entries):
        return {}
    results = {}
    for name in plan.sets:
        shard_records = [
            shard_record for shard_record in for_each(partial(sets.load_record, dataset, name), shards) if shard_record
        ]
        results[name] = Worked(
            sum(shard_record.rows for shard_record in shard_records),
            sum(shard_record.counts.get(ASKED, shard_record.rows) for shard_record in shard_records),
            round(sum(shard_record.seconds for shard_record in shard_records), 3),
        )
    return results


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
                try:
                    entries.append((row_index.entry_of(row, line), len(line)))
                except DataError as error:
                    raise DataError(error.message, path=self.path, line=rows.number, id=row.id) from None
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
