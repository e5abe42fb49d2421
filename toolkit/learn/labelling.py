"""Annotation files of ml_filter and labelling tasks, written from documents and sets.

ml_filter has a file of annotations for each raw file, in the order of its documents (`toolkit.label_files.formats`)::

    EXPERIMENT/generated_annotations/2014-41/de/00055__annotations_meta-llama--Llama-3.1-70B_educational_value_en.jsonl

Tasks are a list that Label Studio or Argilla imports.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.documents import Document
from toolkit.errors import DataError, short
from toolkit.execution.executors import Report
from toolkit.label_files.formats import annotations, argilla, label_studio
from toolkit.label_files.reader import Suggestion
from toolkit.learn.evaluate.predictions import ShardQuestions
from toolkit.records import ingested
from toolkit.storage import json_files
from toolkit.storage.compression import SUFFIXES as COMPRESSIONS
from toolkit.storage.freshness import Derived, FileRecord, state
from toolkit.storage.json_files import json_digest
from toolkit.storage.outputs import NamedOutput, RowOutput
from toolkit.storage.paths import BOOKKEEPING, join, remove, strip_suffix
from toolkit.storage.reading import Lines

_ENCODER = msgspec.json.Encoder()


class RawFile(ConfigStruct):
    """An ingested file.

    Attributes:
        path: Path as ingest got it; of documents that were not ingested here, that of their shard.
        name: its place among all, without suffixes: ``2014-41/de/00055``.
        rows: documents of it; None if those of the shards are all its.
    """

    path: str
    name: str
    rows: int | None = None


class Origin(ConfigStruct):
    """Shards, and the raw files of their documents, both in order.

    Attributes:
        shards: Shards of them.
        selected: Selected shards of them.
        files: Files of which each has some documents, one behind the other.
    """

    shards: list[str]
    selected: list[str]
    files: list[RawFile]


def origins(dataset: Dataset, shards: Sequence[str]) -> list[Origin]:
    """Return the origins of the documents of shards.

    Raises:
        DataError: if records of inputs are damaged.
    """
    remaining = set(shards)
    sources = {record.settings.get("source") or "" for record in ingested.undamaged_summary(dataset).examples}
    below = f"{sources.pop()}/" if len(sources) == 1 else ""  # the folder of the only source says nothing
    origins: list[Origin] = []
    for key, record in ingested.load_all(dataset):
        selected = [shard for shard in sorted(record.shards) if shard in remaining]
        if selected:
            files = [RawFile(input_.input, input_.key.removeprefix(below), input_.rows) for input_ in record.inputs]
            files = files or [RawFile(record.input, key.removeprefix(below))]
            origins.append(Origin(sorted(record.shards) if record.inputs else selected, selected, files))
            remaining -= {*selected}
    for shard in sorted(remaining):
        file = dataset.file_of(shard)
        origins.append(Origin([shard], [shard], [RawFile(dataset.shard_path(shard), file)]))
    return _without_suffixes(origins)


def _without_suffixes(origins: Iterable[Origin]) -> list[Origin]:
    """Return the origins without suffixes in distinct names."""
    listed = list(origins)
    times = Counter(_stem(file.name) for origin in listed for file in origin.files)
    for origin in listed:
        for i, file in enumerate(origin.files):
            stem = _stem(file.name)
            name = stem if times[stem] == 1 else file.name
            origin.files[i] = RawFile(file.path, name, file.rows)
    return listed


def _stem(name: str) -> str:
    """Return a name without the suffix of its compression, and another one.

    >>> _stem("2014-41/de/00055.jsonl.gz"), _stem("a.b/c")
    ('2014-41/de/00055', 'a.b/c')
    """
    folder, slash, name = strip_suffix(name, tuple(COMPRESSIONS)).rpartition("/")
    stem, dot, _ = name.rpartition(".")
    return folder + slash + (stem if dot and stem else name)


MOST = 100
"""Names (of models, prompts, languages) in the values of one raw file: a file is open for each."""


class Names(ConfigStruct):
    """Default names of model, prompt and language.

    Attributes:
        overrides: on the command line, which count in place of what values say.
        model, prompt, language: otherwise.
    """

    overrides: dict[str, str] = msgspec.field(name="given")
    model: str
    prompt: str
    language: str

    def of(self, value: dict[str, Any]) -> tuple[str, str, str]:
        """Return the names of model, prompt and language for a value."""
        usual = {"model_name": self.model, "prompt_name": self.prompt, "prompt_lang": self.language}
        model, prompt, language = (self.overrides.get(key) or value.get(key) or other for key, other in usual.items())
        return str(model), str(prompt), str(language)


class FilesToWrite(ConfigStruct):
    """Annotation files of raw files in the same shards.

    Attributes:
        shards: Shards, in order; those that are not selected are only counted.
        selected: Selected shards of them.
        files: Raw files, in order.
        experiment: the folder.
    """

    shards: list[ShardQuestions]
    selected: list[str]
    files: list[RawFile]
    names: Names
    experiment: str

    @property
    def record(self) -> str:
        """Return the path of the record of the annotation files."""
        return join(self.experiment, BOOKKEEPING, "annotations", f"{self.files[0].name}.json")


class AnnotationFile(msgspec.Struct, frozen=True):
    """An annotation file: its path below the experiment, documents, stored bytes and stamp."""

    path: str
    documents: int
    size: int
    stamp: str


class WrittenFiles(Derived, frozen=True, kw_only=True):
    """The record of annotation files.

    Attributes:
        files: Files that there are.
        without: documents that have no value, and no line.
        written: True if this run has written them.
    """

    files: list[AnnotationFile]
    without: int
    written: bool = True


def write_files(work: FilesToWrite, report: Report) -> WrittenFiles:
    """Write the annotation files of some raw files, unless up to date.

    Raises:
        DataError: if documents or sets are not what they should be, or a value has no scores.
    """
    looked_at = [shard for shard in work.shards if shard.work.shard in work.selected]
    questions = [item.questions for item in looked_at[:1]]
    made_of = json_digest([questions, work.files, work.names, work.selected, [item.lineage() for item in looked_at]])
    before = json_files.load(work.record, WrittenFiles)

    def files(before: WrittenFiles) -> list[FileRecord]:
        return [FileRecord(join(work.experiment, file.path), file.size, file.stamp) for file in before.files]

    if before and state(before, [("", made_of)], files=files).is_done:
        return msgspec.structs.replace(before, written=False)
    with _Writing(work) as writing:
        for file, document_id, value in _values(work, report):
            writing.add(file, document_id, value)
    written_files = WrittenFiles(made_of=made_of, files=writing.files, without=writing.without)
    json_files.save(work.record, written_files)
    for path in {file.path for file in before.files} - {file.path for file in written_files.files} if before else ():
        remove(join(work.experiment, path))
    return written_files


def _values(work: FilesToWrite, report: Report) -> Iterator[tuple[RawFile, str, Any]]:
    """Yield raw file, id and value of each document, in order."""
    files = _Files(work.files)
    for shard in work.shards:
        state = row_index.ensure(shard.work.dataset, shard.work.shard, shard.work.max_document_bytes)
        if shard.work.shard in work.selected:
            for block, (values,) in shard.answers():
                for (document, number, *_), value in zip(block, values, strict=True):
                    yield files.of(number, shard.work.path), document.id, value
        files.end(state.rows)
        report(state.rows, 0)


class _Files:
    """Finds the raw file of rows in order."""

    def __init__(self, files: list[RawFile]) -> None:
        self._files, self._next = files, 1
        self._last = files[0].rows  # row of the shard that is the file's last; None if all are its

    def of(self, number: int, path: str) -> RawFile:
        """Return the file of a row of the shard.

        Raises:
            DataError: if there are more rows than files have.
        """
        while self._last is not None and number > self._last:
            if self._next == len(self._files):
                raise DataError(
                    "expected as many documents as were ingested, got more; run `toolkit ingest`", path=path
                )
            self._last += self._files[self._next].rows or 0
            self._next += 1
        return self._files[self._next - 1]

    def end(self, rows: int) -> None:
        """Go on with the next shard, behind so many rows."""
        if self._last is not None:
            self._last -= rows


class _Writing:
    """Writes lines to the files of their raw files and names; those of a raw file are closed behind its last line."""

    def __init__(self, work: FilesToWrite) -> None:
        self._work = work
        self._file: RawFile | None = None
        self._open = ExitStack()
        self._outputs: dict[str, RowOutput] = {}
        self.files: list[AnnotationFile] = []
        self.without = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._open.__exit__(kind, error, tb)
        if error is None:
            self._note()

    def add(self, file: RawFile, id: str, value: Any) -> None:
        if file is not self._file:
            self._open.close()
            self._note()
            self._file = file
        samples = annotations.samples_of(value, id)
        if samples is None:
            self.without += 1
            return
        names = self._work.names.of(samples)
        path = annotations.path_of(file.name, names)
        if path not in self._outputs:
            if len(self._outputs) == MOST:
                raise DataError(f"expected at most {MOST} models and prompts for a raw file, got more", id=id)
            self._outputs[path] = self._open.enter_context(RowOutput(join(self._work.experiment, path)))
        self._outputs[path].write_row(_ENCODER.encode(annotations.line_of(id, samples, names, file.path)))

    def _note(self) -> None:
        self.files += [
            AnnotationFile(path, output.rows, output.stat.size, output.stat.stamp)
            for path, output in self._outputs.items()
        ]
        self._outputs = {}


# --- tasks for people -------------------------------------------------------------------------------------------------

Form = Literal["label-studio", "argilla"]

MOST_BYTES = 1_000_000_000
"""Of a line of what was written for a shard."""


class TasksToWrite(ConfigStruct):
    """The tasks of a shard.

    Attributes:
        shard: the shard; what is asked, if anything, is what is suggested.
        form: Form of the tasks.
        question: Question that the suggestion answers.
        model: Model whose it is.
        path: Path of what is written, a line a task.
    """

    shard: ShardQuestions
    form: Form
    question: str
    model: str
    path: str


def write_tasks(work: TasksToWrite, report: Report) -> int:
    """Write the tasks of a shard, and return how many there are.

    Raises:
        DataError: if documents or sets are not what they should be, or a value can be no suggestion.
    """
    work.shard.lineage()
    with RowOutput(work.path) as output:
        for block, columns in work.shard.answers():
            values = columns[0] if columns else [None] * len(block)
            for (document, *_), value in zip(block, values, strict=True):
                suggestion = _suggestion(work, document, value)
                output.write_row(_ENCODER.encode(_FORMS[work.form](document, suggestion)))
    report(output.rows, 0)
    return output.rows


def gather(paths: Sequence[str], output: NamedOutput) -> None:
    """Write the tasks of all shards as one list."""
    before = b"[\n"
    with output:
        for path in paths:
            with Lines(path, MOST_BYTES, fixed=True) as lines:
                for line in lines:
                    output.write(before + line)
                    before = b",\n"
        output.write(b"\n]\n")


def _suggestion(work: TasksToWrite, document: Document, value: Any) -> Suggestion | None:
    """Return the suggestion of a value: itself, or its label, labels or score; None of null."""
    if isinstance(value, dict):
        value = next((value[name] for name in ("label", "labels", "score") if value.get(name) is not None), None)
    if value is None:
        return None
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        message = f"expected a number, a label or a list of labels to suggest, got {short(value)}"
        raise DataError(f"{message}; name a field of it: `--from SET.KEY.field`", id=document.id)
    if not isinstance(value, int | float | str | list):
        raise DataError(f"expected a number or labels to suggest, got {short(value)}", id=document.id)
    return Suggestion(work.question, value, work.model)


_FORMS: Mapping[Form, Callable[[Document, Suggestion | None], dict[str, Any]]] = {
    "label-studio": label_studio.task_of,
    "argilla": argilla.record_of,
}
