"""The section ``make:``: stages of authors of plugins, each of which makes an attribute set, or new documents.

documents/X ──blocks──┐
attributes/<set>/X ───┴──> Stage.make ──> attributes/NAME/X, or ROOT/documents/X with its row index
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from toolkit.config import settings as config
from toolkit.config.docstrings import first_line
from toolkit.config.plugin_code import code_of
from toolkit.config.root import recorded_reference
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import record_logs, row_index, schema
from toolkit.data.dataset import ConfiguredPath, Dataset, check_apart
from toolkit.data.documents import DOCUMENT_DECODER, WHOLE_ROW, Document
from toolkit.errors import ConfigError, DataError, MissingExtra, UnknownPlugin, Unreadable, in_words, mismatch
from toolkit.execution.blocks import in_order, threads_for
from toolkit.execution.executors import Report
from toolkit.execution.grouped import ShardDone, ShardWork, Work, run_batch
from toolkit.make.stage import STAGES, Stage, made_of_each
from toolkit.mix.join import RAW_ATTRIBUTES, JoinedShard, Joiner, JointBlock, inputs_of, joint_blocks
from toolkit.plugins import default_name, errors_of
from toolkit.records import sets
from toolkit.records.set_declaration import digest_of
from toolkit.records.sets import ShardAttributes
from toolkit.records.takedown import empty, takedown_of
from toolkit.rules.expressions import A_NAME, is_name
from toolkit.storage.freshness import state as artifact_state
from toolkit.storage.json_files import decoder_of
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import is_set_name, join, remove, remove_with_folders
from toolkit.storage.record_log import Group, RecordLog
from toolkit.tag import tagger
from toolkit.tag.run import has_no_number
from toolkit.tag.tagger import metadata_fields

SECTION = "make"
DOCUMENTS = "documents"
"""The folder of new documents below their root, by which their records know them."""

_COMMON = {"stage": None, "as": None, "dataset": None}


class Entry(ConfigStruct):
    """A stage of the section.

    Attributes:
        name: Name of the entry, and of its attribute set.
        key: Key of the values.
        reference: Reference by which the class is found.
        options: Options of the class.
        root: Root of the new documents; empty if it makes attributes.
        place: Place in the configuration, for messages.
        whole: True if it needs all documents; then it is an entry of `toolkit.whole_corpus.corpus_config`, too.
    """

    name: str
    key: str
    reference: str
    options: dict[str, Any]
    root: str
    place: str
    whole: bool = False

    def stage(self) -> Stage:
        """Return the configured stage."""
        return config.convert(ConfigNode(self.options), STAGES.find(self.reference), f"stage {self.reference}")

    def references(self) -> list[tagger.Reference]:
        """Return references to the read attributes."""
        return tagger.references(self.stage())

    def reads(self) -> list[str]:
        """Return the read sets, each once."""
        return [*dict.fromkeys(reference.set for reference in self.references())]

    def home(self, dataset: Dataset) -> tuple[Dataset, str]:
        """Return the dataset and set of its files and records: the new documents are one."""
        return (home_of(self.root), DOCUMENTS) if self.root else (dataset, self.name)

    def values(self) -> Any:
        """Return the annotation of its values."""
        return made_of_each(STAGES.find(self.reference))


def read_section(section: ConfigNode, dataset: Dataset) -> list[Entry]:
    """Return the stages of a section, in its order; options are checked, nothing is loaded.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict):
        raise section.error((), "expected `NAME: {stage: …, option: …}`")
    return [_read_entry(section.at(name), name, dataset) for name in section.value]


def _read_entry(place: ConfigNode, name: str, dataset: Dataset) -> Entry:
    if not is_set_name(name):
        raise place.error((), "expected a name of letters, digits, - and _")
    if not isinstance(place.value, dict) or not isinstance(place.value.get("stage"), str):
        raise place.error((), f"expected {{stage: path/file.py:Class, option: …}}, got {place.value!r}")
    common, options = config.split(place, _COMMON)
    reference, alias, root = common["stage"], common["as"], common["dataset"]
    if alias is not None and not (isinstance(alias, str) and is_name(alias)):
        raise place.error(("as",), f"expected {A_NAME}, got {alias!r}")
    if root is not None and not (isinstance(root, str) and root.strip()):
        raise place.error(("dataset",), f"expected the root of the new documents, got {root!r}")
    try:
        class_ = STAGES.find(reference)
    except (UnknownPlugin, MissingExtra) as error:
        raise type(error)(str(place.error(("stage",), str(error)))) from None
    except ConfigError as error:
        raise place.error(("stage",), str(error)) from None
    if reserved := {field.encode_name for field in msgspec.structs.fields(class_)} & _COMMON.keys():
        raise place.error((), f"expected a stage without an option {min(reserved)!r}, which has another meaning here")
    config.convert(options, class_, f"stage {reference}")
    root = root and root.rstrip("/")
    entry = Entry(
        name=name,
        key=alias or default_name(reference),
        reference=reference,
        options=options.value,
        root=root or "",
        place=place.where(()),
        whole=class_.needs_all(),
    )
    if entry.values() is None:
        expected = "expected a `make` whose annotation says what it returns: `Sequence[int]`, or `Sequence[Document]`"
        if entry.whole:
            expected = "expected annotations of what `extract`, `combine` and `finish` return, such as `Sequence[int]`"
        raise place.error(("stage",), f"{expected}; got none")
    _check_root(entry, place, dataset)
    return entry


def _check_root(entry: Entry, place: ConfigNode, dataset: Dataset) -> None:
    """Raise ConfigError unless exactly new documents have a root."""
    makes_documents = entry.values() is Document
    if makes_documents != bool(entry.root):
        expected = (
            "expected `dataset: ROOT`, where its new documents go"
            if makes_documents
            else ("expected no `dataset`: its `make` returns values, which are attributes of the documents there are")
        )
        raise place.error(("dataset",) if entry.root else (), expected)
    if makes_documents:
        if dataset.in_place:
            raise place.error(("stage",), "expected documents that `ingest` has made, got a dataset in place")
        home = ConfiguredPath(entry.root, "the new documents", place.where(()))
        check_apart(
            [home],
            [ConfiguredPath(dataset.documents, "the documents"), ConfiguredPath(dataset.attributes, "the attributes")],
        )


def roots(section: ConfigNode) -> list[str]:
    """Return the roots of the new documents of a section, each once; no stage is loaded."""
    entries = section.value.values() if isinstance(section.value, dict) else ()
    results = [
        entry["dataset"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("dataset"), str)
    ]
    return [*dict.fromkeys(root.rstrip("/") for root in results)]


def home_of(root: str) -> Dataset:
    """Return the new documents below a root, as a dataset."""
    return Dataset(join(root, DOCUMENTS), root)


def schema_of(
    entry: Entry, dataset: Dataset, planned: Mapping[str, sets.SetSchema], *, checks: bool = True
) -> sets.SetSchema:
    """Return the schema of a stage's output; its settings are compared with those on disk by it.

    Args:
        entry: Stage of the section.
        dataset: Dataset whose sets it reads.
        planned: Sets that will have been made by then.
        checks: True if models and other prerequisites of the stage must exist.

    Raises:
        ConfigError: if it reads what is not there, or cannot run here.
    """
    stage = entry.stage()
    try:
        if checks:
            with errors_of(stage):
                stage.check()
        results = tagger.settings(stage, recorded_reference(entry.reference), entry.key)
    except ConfigError as error:
        raise type(error)(f"{entry.place}: {error}") from None
    results["stage"] = results.pop("tagger")
    reads = {}
    for reference in entry.references():
        other = planned.get(reference.set) or sets.load_schema(dataset, reference.set)
        existing = {*planned, *dataset.sets()}
        if other is None and reference.set not in existing:
            raise ConfigError(
                f"{entry.place}: {reference.option}: expected an attribute set, "
                f"{mismatch(reference.set, sorted(existing))}"
            )
        if other is not None and reference.key not in other.keys:
            raise ConfigError(
                f"{entry.place}: {reference.option}: expected a key of the set {reference.set}, "
                f"{mismatch(reference.key, other.keys)}"
            )
        reads[reference.set] = digest_of(other)
    key, type_ = (DOCUMENTS, schema.ANY) if entry.root else (entry.key, value_type(entry))
    settings = results | dataset.lineage
    key_schema = sets.key_schema(type_, settings, code_of(type(stage)), tagger.model_options(stage))
    return sets.SetSchema(keys={key: key_schema}, reads=dict(sorted(reads.items())))


def value_type(entry: Entry) -> schema.Type:
    """Return the declared type of a stage's values."""
    class_ = STAGES.find(entry.reference)
    type_ = schema.from_annotation(entry.values(), f"stage {class_.__name__}")
    return schema.about(type_, type_.description or first_line(class_).replace("``", "`"))


# --- one shard --------------------------------------------------------------------------------------------------------


_ENCODER = msgspec.json.Encoder()


class ShardToMake(ShardWork, kw_only=True):
    """A shard, for a stage.

    Attributes:
        entry: Stage of the section.
        joined: Shard with the sets that are read.
        settings: Settings of the stage, by key, as its records have them.
        processes: Processes that work on it.
    """

    entry: Entry
    joined: JoinedShard
    settings: dict[str, dict[str, Any]]
    processes: int = 1


def state_of(
    work: ShardToMake, *, quick: bool = False, learn: bool = False
) -> tuple[row_index.ShardState | None, bool]:
    """Return the state of a shard's documents, and its output's freshness.

    Args:
        work: Shard and stage.
        quick: Flag of `toolkit.storage.freshness.state`.
        learn: Flag of `ShardAttributes.state`.
    """
    home, name = work.entry.home(work.dataset)
    documents = row_index.current(work.dataset, work.shard)
    mine = ShardAttributes(home, name, work.shard, documents)
    if not work.entry.root:
        return documents, mine.state(work.settings, work.entry.reads(), quick=quick, learn=learn).is_done
    record = mine.record
    if documents is None or record is None or {*record.reads} != {*work.entry.reads()}:
        return documents, False
    inputs = replace(mine, dataset=work.dataset).inputs(record.reads, quick=quick)
    state = artifact_state(record, inputs, work.settings, mine.files, quick=quick)
    return documents, state.is_done and row_index.current(home, work.shard) is not None


def as_it_was(work: ShardToMake) -> ShardDone | None:
    """Return the cached outcome of an unchanged shard, by records and stamps; None if that is not known.

    Nothing is read but these, and nothing written.
    """
    try:
        documents, is_done = state_of(work, quick=True)
    except DataError:  # told when the shard is worked on
        return None
    return ShardDone(shard=work.shard, documents=documents.rows) if documents and is_done else None


def _log_of(work: ShardToMake) -> RecordLog:
    return record_logs.of(work.entry.home(work.dataset)[0])


def make_shard(work: ShardToMake, report: Report, group: Group | None = None) -> ShardDone:
    """Make the missing or outdated output of a shard.

    Args:
        work: Shard and stage.
        report: Function that is told of what is done.
        group: Group with which it becomes durable; without one, it does so at the end.

    Raises:
        DataError: if the documents, or attributes that are read, are not what they should be, or the stage fails.
    """
    start = time.perf_counter()
    state, reads = inputs_of(work.joined, learn=True)
    if state_of(work, learn=True)[1]:
        report(state.rows, 0)
        return ShardDone(shard=work.shard, documents=state.rows)
    home, name = work.entry.home(work.dataset)
    sets.forget(home, name, work.shard)
    if work.entry.root:
        remove(home.shard_path(work.shard))  # or those of other settings would stay where this attempt fails
    with nullcontext(group) if group else Group(record_logs.of(home)) as own:
        with ExitStack() as stack:
            threads = threads_for(work.processes)
            output = stack.enter_context(RowOutput(home.attribute_path(name, work.shard), threads, together=own.files))
            index, offset = None, 0
            if work.entry.root:
                index = stack.enter_context(row_index.RowIndexOutput(home, work.shard, replaced=True, group=own))
            for result in in_order(_RowMaker, work, joint_blocks(work.joined, stack), work.processes, work.joined.path):
                output.write_rows(result.rows)
                for entry, size in result.entries if index else ():
                    index.add(entry, offset)  # type: ignore[union-attr]
                    offset += size + 1
                report(result.documents, result.stored)
        if index:
            index.finish(output.stat, output.content, head=output.head)
        record = sets.ShardRecord(
            input=state,
            settings=work.settings,
            reads=dict(sorted(reads.items())),
            rows=output.rows,
            counts={"documents": state.rows, **({"made": output.rows} if index else {})},
            output=sets.output_state(output),
            seconds=round(time.perf_counter() - start, 3),
        )
        sets.save_records(home, work.shard, {name: record}, own)
    return ShardDone(shard=work.shard, documents=state.rows, written=[name], rows=output.rows)


WORK = Work(make_shard, partial(run_batch, make_shard, _log_of))


def others_in(home: Dataset, shards: Iterable[str]) -> list[str]:
    """Return the shards of new documents without a source shard, sorted."""
    return sorted({*sets.recorded_shards(home, DOCUMENTS)} - {*shards})


def forget_shards(home: Dataset, shards: Sequence[str]) -> None:
    """Delete the new documents of shards, and their records."""
    sets.forget_all(home, [DOCUMENTS], shards)
    for shard in shards:
        remove_with_folders(home.shard_path(shard), home.documents)
    row_index.forget(home, shards)


class _StageOutput(NamedTuple):
    """Output of a stage for a block: rows, their row index entries, documents read, and their stored bytes."""

    rows: list[bytes]
    entries: list[tuple[row_index.Entry, int]]
    documents: int
    stored: int


_Numbered = dict[int, Document]
"""Documents of a block by their number in the file."""


class _RowMaker:
    """Makes rows of blocks. A stage is not asked about documents of the takedown lists."""

    def __init__(self, work: ShardToMake) -> None:
        self._work, self._entry, self._stage = work, work.entry, work.entry.stage()
        self._references, self._fields = self._entry.references(), metadata_fields(self._stage)
        self._joiner = Joiner(work.joined, set())
        several: Any = list
        self._decoder: msgspec.json.Decoder[Any] = decoder_of(several[self._entry.values()])
        self._takedown = takedown_of(work.dataset)
        self._empty = None if work.entry.root else empty(schema.from_annotation(self._entry.values(), work.entry.key))

    def __call__(self, block: JointBlock) -> _StageOutput:
        joined = list(self._joiner.rows(block))
        listed = {*self._takedown.rows([row[0] for row in joined])} if self._takedown else set[int]()
        documents: _Numbered = {row[1]: row[0] for i, row in enumerate(joined) if i not in listed}
        for document, number, lines, _ in joined:
            if number in documents:
                self._give(document, lines, number)
        results = self._values_of(documents) if documents else []
        rows, entries = [], []
        if self._entry.root:
            for item in results:
                line = self._line(item, documents)
                rows.append(line)
                entries.append((row_index.entry_of(DOCUMENT_DECODER.decode(line), line), len(line)))
        else:
            self._check(results, documents)
            values = dict(zip(documents, results, strict=True))
            rows = [
                _ENCODER.encode(
                    {
                        "source": document.source,
                        "id": document.id,
                        "attributes": {self._entry.key: values.get(number, self._empty)},
                    }
                )
                for document, number, *_ in joined
            ]
        return _StageOutput(rows, entries, len(joined), block.documents.stored)

    def _values_of(self, documents: _Numbered) -> list[Any]:
        try:
            return list(self._stage.make([*documents.values()]))
        except (ConfigError, Unreadable):
            raise
        except Exception as error:
            raise self._blame(error, documents) from error

    def _give(self, document: Document, lines: Sequence[bytes], number: int) -> None:
        """Give a document the attributes of the stage."""
        for field in self._fields:
            try:
                document.give(field.text, field.of(document))
            except DataError as error:
                message, path = f"stage {self._entry.key}: {error.message}", self._work.joined.path
                raise DataError(message, path=path, line=number, id=document.id) from None
        by_set = {joined.set: line for joined, line in zip(self._work.joined.sets, lines, strict=True)}
        for reference in self._references:
            value = RAW_ATTRIBUTES.decode(by_set[reference.set]).value(reference.key)
            for name in reference.path:
                value = None if value is None else value.get(name)
            try:
                document.give(reference.text, msgspec.convert(value, reference.type))
            except msgspec.ValidationError as error:
                raise DataError(
                    f"expected {reference.text} as the stage reads it, got: {in_words(str(error))}",
                    path=self._work.dataset.attribute_file(reference.set, self._work.shard),
                    line=number,
                    id=document.id,
                ) from None

    def _check(self, values: list[Any], documents: _Numbered) -> None:
        """Check the number and type of values."""
        if len(values) != len(documents):
            raise self._error(f"expected {len(documents)} values of `make`, got {len(values)}", documents)
        if (fault := self._fault(values)) is None:
            return
        for (number, document), value in zip(documents.items(), values, strict=True):
            if own := self._fault([value]):
                message = f"stage {self._entry.key}: expected values of its declared type, got {value!r:.200}: {own}"
                raise DataError(message, path=self._work.joined.path, line=number, id=document.id)
        raise self._error(f"expected values of its declared type, got: {fault}", documents)

    def _fault(self, values: list[Any]) -> str | None:
        """Return the reason for values of another type, or None."""
        try:
            decoded = self._decoder.decode(_ENCODER.encode(values))
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            return in_words(str(error))
        if decoded != values and has_no_number(msgspec.to_builtins(values)):
            return "NaN and infinity are no numbers of JSON"
        return None

    def _line(self, document: Any, documents: _Numbered) -> bytes:
        """Return the row of a new document."""
        if not (isinstance(document, Document) and document.id and document.source):
            got = type(document).__name__ if not isinstance(document, Document) else "one without id or source"
            raise self._error(f"expected documents with id, text and source, got {got}", documents)
        row = {"id": document.id, "text": document.text, "source": document.source}
        try:
            line = document.row or _ENCODER.encode(row | ({"metadata": document.metadata} if document.metadata else {}))
            written = WHOLE_ROW.decode(line)
        except (TypeError, ValueError, RecursionError) as error:
            fault = in_words(str(error))
            raise self._error(f"document {document.id!r:.200} cannot be a row: {fault}", documents) from None
        if b"\n" in line or (written.id, written.text, written.source) != (document.id, document.text, document.source):
            message = (
                f"expected the id, text and source of document {document.id!r:.200} in its row, in one line; got others"
            )
            raise self._error(message, documents)
        if document.row:  # `with_text` keeps all other fields
            return line
        if has_no_number(msgspec.to_builtins(document.metadata)):
            message = f"metadata of document {document.id!r:.200}: NaN and infinity are no numbers of JSON"
            raise self._error(message, documents)
        return line

    def _blame(self, error: Exception, documents: _Numbered) -> DataError:
        """Return the error of the first failing document."""
        for number, document in documents.items():
            try:
                list(self._stage.make([document]))
            except Exception as own:
                message = f"stage {self._entry.key} failed: {type(own).__name__}: {own}"
                return DataError(message, path=self._work.joined.path, line=number, id=document.id)
        message = f"failed on {len(documents)} documents together: {type(error).__name__}: {error}"
        return self._error(message, documents)

    def _error(self, message: str, documents: _Numbered) -> DataError:
        """Return an error about a block, at its first document."""
        line, first = next(iter(documents.items()))
        message = f"stage {self._entry.key}: {message}"
        return DataError(message, path=self._work.joined.path, line=line, id=first.id)
