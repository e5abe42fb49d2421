"""Tagging: one pass over a shard writes the attribute files of all sets that need it.

documents/X ──rows──> Document ──batches──> taggers, in the order of what they read ──rows──> attributes/<set>/X
                                    ^
attributes/<other set>/X ──rows─────┘  only for sets that are read and are already there
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import msgspec

from toolkit import config, records, rowindex, schema, tagger
from toolkit.config import ConfigStruct, Source
from toolkit.documents import DOCUMENT_DECODER, AttributesRow, Document, Rows, to_document
from toolkit.errors import AlignmentError, ConfigError, DataError, did_you_mean
from toolkit.paths import Dataset, exists, list_files, stat
from toolkit.streams import Lines, RowOutput
from toolkit.tagger import TAGGERS, Reference, Tagger

BATCH_DOCUMENTS = 256
BATCH_CHARS = 1 << 19
CHECKED_ROWS = 64  # rows of a shard whose values are checked against the declared type

Report = Callable[[int, int], None]
"""Called with documents and uncompressed bytes done since the last call."""


class Entry(ConfigStruct):
    """A tagger in a configuration, as data.

    Attributes:
        key: the top-level key that it writes.
        reference: by which the class is found.
        options: what the configuration gives.
    """

    key: str
    reference: str
    options: dict[str, Any]


class Plan(ConfigStruct):
    """What a `toolkit tag` does, as data that can be sent to a worker."""

    sets: dict[str, list[Entry]]


@dataclass(frozen=True)
class Step:
    """A configured tagger in its place.

    Attributes:
        set, key: where its value goes.
        tagger: configured.
        references: the attributes that it reads.
        type: declared.
        annotation: of the values, in Python.
    """

    set: str
    key: str
    reference: str
    tagger: Tagger
    references: tuple[Reference, ...]
    type: schema.Type
    annotation: Any


# --- from the configuration -------------------------------------------------------------------------------------------


def read_section(section: Source) -> Plan:
    """The plan that a ``tag:`` section describes; options are checked, nothing is loaded.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict):
        raise section.error((), "expected `SET: TAGGER | [TAGGER, …]`")
    sets: dict[str, list[Entry]] = {}
    for set_name, value in section.value.items():
        if not set_name.replace("-", "").replace("_", "").isalnum() or not set_name.isascii():
            raise section.error((set_name,), "expected a set name of letters, digits, - and _")
        sets[set_name] = []
        listed = value if isinstance(value, list) else [value]
        for i in range(len(listed)):
            place = section.at(set_name, i) if isinstance(value, list) else section.at(set_name)
            entry = _read_entry(place)
            if any(entry.key == other.key for other in sets[set_name]):
                raise place.error((), f"expected each key of a set once, got {entry.key!r} twice; give one an `as:`")
            sets[set_name].append(entry)
        if not sets[set_name]:
            raise section.error((set_name,), "expected at least one tagger, got none")
    return Plan(sets=sets)


def _read_entry(place: Source) -> Entry:
    if isinstance(place.value, str):
        reference, key, options = place.value, None, config.Source({}, place.name)
    else:
        taken, options = config.split(place, {"tagger": None, "as": None})
        reference, key = taken["tagger"], taken["as"]
    if not isinstance(reference, str) or not isinstance(key, str | None):
        raise place.error((), "expected a tagger's name, or {tagger: NAME, as: ALIAS, option: …}")
    try:
        class_ = TAGGERS.find(reference)
    except ConfigError as error:
        raise place.error((), str(error)) from None
    config.convert(options, class_, f"tagger {reference}")
    from toolkit.plugins import default_name

    return Entry(key=key or default_name(reference), reference=reference, options=options.value)


def build(plan: Plan) -> list[Step]:
    """The configured taggers, each after those that it reads.

    Raises:
        ConfigError: if two read each other.
    """
    return list(_build(msgspec.json.encode(plan)))


@lru_cache(maxsize=4)
def _build(encoded: bytes) -> tuple[Step, ...]:
    steps: dict[tuple[str, str], Step] = {}
    for set_name, entries in msgspec.json.decode(encoded, type=Plan).sets.items():
        for entry in entries:
            class_ = TAGGERS.find(entry.reference)
            built = config.convert(Source(entry.options), class_, f"tagger {entry.reference}")
            steps[set_name, entry.key] = Step(
                set_name,
                entry.key,
                entry.reference,
                built,
                tuple(tagger.references(built)),
                tagger.value_type(class_),
                tagger.value_annotation(class_),
            )
    ordered: list[Step] = []
    visiting: list[tuple[str, str]] = []

    def visit(step: Step) -> None:
        name = (step.set, step.key)
        if step in ordered:
            return
        if name in visiting:
            cycle = " -> ".join(".".join(n) for n in [*visiting[visiting.index(name) :], name])
            raise ConfigError(f"tag: expected taggers that do not read each other, got {cycle}")
        visiting.append(name)
        for reference in step.references:
            if (wanted := steps.get((reference.set, reference.key))) is not None:
                visit(wanted)
        visiting.pop()
        ordered.append(step)

    for step in steps.values():
        visit(step)
    return tuple(ordered)


def set_schemas(plan: Plan, dataset: Dataset) -> dict[str, records.SetSchema]:
    """The schema that each set of the plan has on disk; checks what the taggers read against what there is.

    Raises:
        ConfigError: if an attribute that is read is not there, or not of the type that is expected.
    """
    steps = build(plan)
    types = {(step.set, step.key): step.type for step in steps}
    found: dict[str, records.SetSchema] = {}
    reads: dict[str, set[str]] = {set_name: set() for set_name in plan.sets}
    for step in steps:
        for reference in step.references:
            _check_reference(step, reference, types, plan, dataset)
            if reference.set != step.set:
                reads[step.set].add(reference.set)
    for set_name in _set_order(plan, reads):
        keys = {
            step.key: records.KeySchema(
                schema.to_json(step.type), tagger.settings(step.tagger, step.reference, step.key)
            )
            for entry in plan.sets[set_name]
            for step in steps
            if (step.set, step.key) == (set_name, entry.key)
        }
        found[set_name] = records.SetSchema(
            keys=keys,
            reads={
                other: _digest(found.get(other) or records.load_schema(dataset, other))
                for other in sorted(reads[set_name])
            },
        )
    return {set_name: found[set_name] for set_name in plan.sets}


def _set_order(plan: Plan, reads: Mapping[str, set[str]]) -> list[str]:
    ordered: list[str] = []

    def visit(set_name: str, path: tuple[str, ...]) -> None:
        if set_name in path:
            raise ConfigError(f"tag: expected sets that do not read each other, got {' -> '.join((*path, set_name))}")
        if set_name in plan.sets and set_name not in ordered:
            for other in sorted(reads[set_name]):
                visit(other, (*path, set_name))
            ordered.append(set_name)

    for set_name in plan.sets:
        visit(set_name, ())
    return ordered


def _digest(found: records.SetSchema | None) -> str:
    import xxhash

    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(found))


def _check_reference(
    step: Step, reference: Reference, types: Mapping[tuple[str, str], schema.Type], plan: Plan, dataset: Dataset
) -> None:
    where = f"tag.{step.set}: {step.key}: {reference.option}: {reference.text!r}"
    if reference.set in plan.sets:
        keys = {key: t for (set_name, key), t in types.items() if set_name == reference.set}
    elif (on_disk := records.load_schema(dataset, reference.set)) is not None:
        keys = on_disk.types()
    elif reference.set in dataset.sets():
        return  # written by another program: known when it is read
    else:
        known = sorted({*plan.sets, *dataset.sets()})
        hint = did_you_mean(reference.set, known) or f"; there are: {', '.join(known)}"
        raise ConfigError(f"{where}: expected an attribute set, got {reference.set!r}{hint}")
    if reference.key not in keys:
        hint = did_you_mean(reference.key, keys) or f"; there are: {', '.join(keys)}"
        raise ConfigError(f"{where}: expected a key of the set {reference.set}, got {reference.key!r}{hint}")
    type_: schema.Type | None = keys[reference.key]
    for name in reference.path:
        type_ = type_.get(name) if type_ else None
    wanted = schema.from_annotation(reference.type, where)
    if type_ is None or not schema.fits(type_, wanted):
        raise ConfigError(f"{where}: expected a value of type {wanted}, got {type_ or 'no such field'}")


def differences(old: records.SetSchema, new: records.SetSchema) -> list[str]:
    """What has changed between two schemas of a set, a line each; empty if nothing."""
    lines = []
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)

    def compare(a: Any, b: Any, path: str) -> None:
        if isinstance(a, dict) and isinstance(b, dict):
            for key in dict.fromkeys((*a, *b)):
                compare(a.get(key, "absent"), b.get(key, "absent"), f"{path}.{key}" if path else str(key))
        elif a != b:
            lines.append(f"{path}: {_short(a)} -> {_short(b)}")

    compare(before["keys"], after["keys"], "")
    compare(before["reads"], after["reads"], "made from")
    if not lines and list(before["keys"]) != list(after["keys"]):
        lines.append(f"order of keys: {', '.join(before['keys'])} -> {', '.join(after['keys'])}")
    return lines


def _short(value: Any) -> str:
    text = value if value == "absent" else msgspec.json.encode(value).decode()
    return text if len(text) < 80 else text[:77] + "..."


def prepare(plan: Plan, dataset: Dataset, *, overwrite: bool, write: bool = True) -> dict[str, records.SetSchema]:
    """Claims the sets of a plan: what is on disk under their names must have been made with the same settings.

    Raises:
        ConfigError: if a set was made with other settings, or by another program, and overwrite is not given.
    """
    schemas = set_schemas(plan, dataset)
    changed: list[str] = []
    for set_name, new in schemas.items():
        old = records.load_schema(dataset, set_name)
        if old is None:
            folder = dataset.attribute_path(set_name, "")
            if next(list_files(folder), None) is not None and not overwrite:
                raise ConfigError(
                    f"{folder}: expected a set that this toolkit made, got files without its records; "
                    "choose another set name, or --overwrite"
                )
            changed.append(set_name)
        elif found := differences(old, new):
            if not overwrite:
                raise ConfigError(
                    f"the set {set_name!r} exists and was made with other settings:\n  "
                    + "\n  ".join(found)
                    + "\nchoose another set name (the old values stay), or --overwrite"
                )
            changed.append(set_name)
    for set_name in changed if write else ():
        for shard in records.recorded_shards(dataset, set_name):
            records.forget(dataset, set_name, shard)
        records.save_schema(dataset, set_name, schemas[set_name])
    return schemas


# --- one shard --------------------------------------------------------------------------------------------------------


class Work(ConfigStruct):
    """One shard to tag."""

    dataset: Dataset
    plan: Plan
    settings: dict[str, dict[str, Any]]
    shard: str
    max_document_bytes: int


class Done(ConfigStruct):
    """What was done to a shard: which sets were written, and how many documents it has."""

    shard: str
    written: list[str]
    documents: int
    seconds: float


def settings_of(schemas: Mapping[str, records.SetSchema]) -> dict[str, dict[str, Any]]:
    """The settings of each set as its completion records hold them."""
    return {name: {key: k.settings for key, k in found.keys.items()} for name, found in schemas.items()}


def outdated(work: Work, state: rowindex.ShardState | None) -> list[str]:
    """The sets of the plan that must be (re)done for a shard."""
    dataset, shard = work.dataset, work.shard
    todo: list[str] = []
    steps = build(work.plan)
    for set_name in dict.fromkeys(step.set for step in steps):
        record = records.load_record(dataset, set_name, shard)
        wanted = {r.set for step in steps if step.set == set_name for r in step.references} - {set_name}
        if (
            record is None
            or state is None
            or record.input.content != state.content
            or record.settings != work.settings[set_name]
            or wanted & set(todo)
            or not records.is_intact(dataset, set_name, shard, record)
            or any(records.content_of(dataset, other, shard) != record.reads.get(other) for other in wanted)
        ):
            todo.append(set_name)
    return todo


def tag_shard(work: Work, report: Report) -> Done:
    """Writes what is missing or outdated of a shard's attribute files.

    Raises:
        DataError: if the documents, or attributes that are read, are not what they should be; nothing was written.
    """
    start = time.perf_counter()
    dataset, shard = work.dataset, work.shard
    state = rowindex.current(dataset, shard)
    if state is None and any(exists(records.record_path(dataset, name, shard)) for name in work.plan.sets):
        state = rowindex.build(dataset, shard, work.max_document_bytes)
    todo = outdated(work, state)
    if not todo:
        assert state
        report(state.rows, 0)
        return Done(shard=shard, written=[], documents=state.rows, seconds=time.perf_counter() - start)
    steps = [step for step in build(work.plan) if step.set in todo]
    external = sorted({r.set for step in steps for r in step.references} - set(todo))
    reads = {name: records.content_of(dataset, name, shard) for name in external}
    for name in todo:
        records.forget(dataset, name, shard)
    path = dataset.shard_path(shard)
    before = stat(path)
    with ExitStack() as stack:
        outputs = {name: stack.enter_context(RowOutput(dataset.attribute_path(name, shard))) for name in todo}
        index = None if state else stack.enter_context(rowindex.RowIndexOutput(dataset, shard))
        lines = stack.enter_context(Lines(path, work.max_document_bytes, digest=True))
        others = [
            stack.enter_context(_Others(dataset, name, shard, steps, work.max_document_bytes)) for name in external
        ]
        documents = _documents(lines, path, index)
        reported = 0
        for batch in _batches(_joined(documents, others, path)):
            _tag_batch(batch, steps, outputs, path)
            report(len(batch), lines.size - reported)
            reported = lines.size
        for other in others:
            other.finish()
    if before is None or stat(path) != before:
        raise DataError("expected the file to stay as it is while it is read, it changed; run again", path=path)
    if index:
        state = index.finish(before, lines.content or "")
    elif state and lines.content != state.content:
        raise DataError("expected the documents as they were indexed, they changed; run again", path=path)
    assert state
    seconds = time.perf_counter() - start
    for name in todo:
        _record(work, name, state, outputs[name], reads, outputs, seconds)
    return Done(shard=shard, written=todo, documents=state.rows, seconds=seconds)


def _record(
    work: Work,
    name: str,
    state: rowindex.ShardState,
    output: RowOutput,
    external: Mapping[str, str],
    outputs: Mapping[str, RowOutput],
    seconds: float,
) -> None:
    read = {r.set for step in build(work.plan) if step.set == name for r in step.references} - {name}
    record = records.ShardRecord(
        input=state,
        settings=work.settings[name],
        reads={other: external[other] if other in external else outputs[other].content for other in sorted(read)},
        rows=output.rows,
        counts={"documents": output.rows},
        output=records.OutputState(
            size=output.stat.size,
            stamp=output.stat.stamp,
            sha256=output.sha256,
            content=output.content,
            content_size=output.content_size,
        ),
        seconds=round(seconds, 3),
    )
    records.save(records.record_path(work.dataset, name, work.shard), record)


Numbered = tuple[Document, int]


def _documents(lines: Lines, path: str, index: rowindex.RowIndexOutput | None) -> Iterator[Numbered]:
    rows = Rows(lines, DOCUMENT_DECODER, path)
    offset = 0
    for row, line in rows:
        if index:
            index.add(row, offset)
            offset += len(line) + 1
        yield to_document(row, rows), rows.number


def _joined(documents: Iterator[Numbered], others: list["_Others"], path: str) -> Iterator[Numbered]:
    for document, number in documents:
        for other in others:
            other.give(document, number, path)
        yield document, number


def _batches(documents: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    batch: list[Numbered] = []
    chars = 0
    for item in documents:
        batch.append(item)
        chars += len(item[0].text)
        if len(batch) >= BATCH_DOCUMENTS or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


_ENCODER = msgspec.json.Encoder()


def _tag_batch(batch: list[Numbered], steps: list[Step], outputs: Mapping[str, RowOutput], path: str) -> None:
    documents = [document for document, _ in batch]
    values: dict[tuple[str, str], list[Any]] = {}
    for step in steps:
        for reference in step.references:
            if (produced := values.get((reference.set, reference.key))) is not None:
                annotation = next(s.annotation for s in steps if (s.set, s.key) == (reference.set, reference.key))
                for document, value in zip(documents, produced, strict=True):
                    document.give(reference.text, _delivered(value, annotation, reference))
        values[step.set, step.key] = _run(step, batch, documents, path)
    for set_name, output in outputs.items():
        keys = [step.key for step in steps if step.set == set_name]
        columns = [values[set_name, key] for key in keys]
        for document, *row in zip(documents, *columns, strict=True):
            attributes = dict(zip(keys, row, strict=True))
            output.write_row(_ENCODER.encode({"source": document.source, "id": document.id, "attributes": attributes}))


def _run(step: Step, batch: list[Numbered], documents: list[Document], path: str) -> list[Any]:
    try:
        values = step.tagger.tag_batch(documents)
    except ConfigError:
        raise
    except Exception as error:
        raise _blame(step, batch, path, error) from error
    if len(values) != len(documents):
        raise DataError(
            f"tagger {step.key}: expected {len(documents)} values of tag_batch, got {len(values)}", path=path
        )
    if batch[0][1] <= CHECKED_ROWS:
        for value, (document, number) in zip(values, batch, strict=True):
            try:
                msgspec.json.decode(_ENCODER.encode(value), type=step.annotation)
            except (msgspec.MsgspecError, TypeError, ValueError) as error:
                raise DataError(
                    f"tagger {step.key}: expected a value of its declared type {step.type}, got {value!r}: {error}",
                    path=path,
                    line=number,
                    id=document.id,
                ) from None
    return values


def _blame(step: Step, batch: list[Numbered], path: str, error: Exception) -> DataError:
    for document, number in batch:
        try:
            step.tagger.tag_batch([document])
        except Exception as own:
            message = f"tagger {step.key} failed: {type(own).__name__}: {own}"
            return DataError(message, path=path, line=number, id=document.id)
    message = f"tagger {step.key} failed on a batch of {len(batch)} documents: {type(error).__name__}: {error}"
    return DataError(message, path=path, line=batch[0][1])


def _delivered(value: Any, annotation: Any, reference: Reference) -> Any:
    """A value made in this pass, as the tagger that reads it would find it in the file."""
    if not reference.path and annotation == reference.type:
        return value
    plain = msgspec.json.decode(_ENCODER.encode(value))
    for name in reference.path:
        plain = None if plain is None else plain[name]
    return msgspec.convert(plain, reference.type)


class _Others:
    """The rows of an existing attribute file, given to the documents that they describe."""

    def __init__(self, dataset: Dataset, set_name: str, shard: str, steps: list[Step], max_bytes: int) -> None:
        self._path = dataset.attribute_path(set_name, shard)
        self._lines = Lines(self._path, max(max_bytes, records.MAX_FOREIGN_ROW))
        self._references = [r for step in steps for r in step.references if r.set == set_name]

    def __enter__(self) -> Self:
        self._lines.__enter__()
        self._rows = Rows(self._lines, msgspec.json.Decoder(AttributesRow), self._path)
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.__exit__(*error)

    def give(self, document: Document, number: int, path: str) -> None:
        """The next row, to its document."""
        row, _ = next(self._rows, (None, b""))
        if row is None:
            message = f"expected the attributes of {path}:{number}, got the end of the file"
            raise AlignmentError(message, path=self._path, line=number, id=document.id)
        if row.id != document.id or row.source not in (None, document.source):
            raise AlignmentError(
                f"expected the attributes of {path}:{number}, got those of {row.id!r} from {row.source!r}",
                path=self._path,
                line=number,
                id=document.id,
            )
        values = msgspec.json.decode(row.attributes)
        for reference in self._references:
            try:
                value = values[reference.key]
                for name in reference.path:
                    value = None if value is None else value[name]
                document.give(reference.text, msgspec.convert(value, reference.type))
            except (KeyError, TypeError, msgspec.ValidationError) as error:
                raise DataError(
                    f"expected {reference.text} of type {schema.from_annotation(reference.type, reference.text)}, "
                    f"got: {error}",
                    path=self._path,
                    line=number,
                    id=document.id,
                ) from None

    def finish(self) -> None:
        """Raises AlignmentError if there are more rows than documents."""
        row, _ = next(self._rows, (None, b""))
        if row is not None:
            raise AlignmentError(
                "expected no more rows than there are documents, got another",
                path=self._path,
                line=self._rows.number,
                id=row.id,
            )
