"""Runs the taggers of a plan over a batch, in order."""

import math
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec.structs import astuple

from toolkit.data.dataset import Dataset
from toolkit.data.metadata_fields import MetadataField
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, DataError, Unreadable
from toolkit.records import sets as records
from toolkit.records.takedown import Takedown, empty
from toolkit.storage.threads import for_each
from toolkit.tag.plan import Plan, Step
from toolkit.tag.set_options import EditedBatch, Numbered, Selection
from toolkit.tag.tagger import Reference
from toolkit.text.batch import Batch, Column

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
    if len(values) != len(batch):
        raise DataError(f"tagger {step.key}: expected {len(batch)} values of tag_batch, got {len(values)}", path=path)
    _check_values(step, values, numbered, path)
    return values


def _check_values(step: Step, values: Sequence[Any], numbered: Sequence[Numbered], path: str) -> None:
    """Compare values with the declared type: all at once, then one by one to find the first wrong one."""
    if values.proves(step.annotation) if isinstance(values, Column) else _are_numbers(step.annotation, values):
        return
    texts = list(encodable(values))
    if _fault(step, texts, values) is None:
        return
    for i, (text, (document, number)) in enumerate(zip(texts, numbered, strict=True)):
        if (error := _fault(step, [text], values[i : i + 1])) is not None:
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


def _fault(step: Step, texts: list[Any], values: Sequence[Any]) -> str | None:
    """Return the fault of values with a wrong type; None without one.

    Args:
        step: Step with the tagger.
        texts: the values as they are encoded.
        values: the same as objects.
    """
    try:
        decoded = step.decoder.decode(_ENCODER.encode(texts))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        return str(error).replace("`$[...]", "`$").replace(" - at `$`", "")
    if step.takes_null_for_float and decoded != list(values) and has_no_number(msgspec.to_builtins(list(values))):
        return "NaN and infinity are no numbers of JSON"
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
            shard_record
            for shard_record in for_each(partial(records.load_record, dataset, name), shards)
            if shard_record
        ]
        results[name] = Worked(
            sum(shard_record.rows for shard_record in shard_records),
            sum(shard_record.counts.get(ASKED, shard_record.rows) for shard_record in shard_records),
            round(sum(shard_record.seconds for shard_record in shard_records), 3),
        )
    return results
