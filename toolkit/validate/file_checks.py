"""Checks of one file of documents, of attributes, or of an output; none stops at the first finding.

Each check reads one file (or index), and can run in a worker.
"""

import os
from array import array
from collections.abc import Callable, Collection, Iterator
from typing import Any, Literal, NamedTuple

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index, schema
from toolkit.data.alignment import MAX_ROW, AttributeRows, missing_file
from toolkit.data.dataset import Dataset
from toolkit.data.documents import BAD_ROW, DOCUMENT_DECODER, Document, DocumentRow, Rows, Span, to_document
from toolkit.describe.scan import FileScan, RowScanner, ScanJob
from toolkit.errors import AlignmentError, DataError, ToolkitError
from toolkit.execution.executors import Report
from toolkit.execution.progress import Position
from toolkit.ingest.inputs import carried_shards
from toolkit.inspect.documents import label_reader
from toolkit.inspect.targets import Format
from toolkit.lazy_numpy import np
from toolkit.mix.settings import COPY
from toolkit.mix.writer import Writer
from toolkit.records import external_sets, sets
from toolkit.records.sets import ShardAttributes
from toolkit.storage.paths import exists, size_of, stat
from toolkit.storage.reading import Lines, version_read
from toolkit.text.editing import edits_of_spans
from toolkit.text.languages.labels import is_known


class CopyCheck:
    """Looks at the rows of a file; holds 8 bytes for each.

    Args:
        writer: Writer whose format the file has.
    """

    def __init__(self, writer: Writer) -> None:
        self._id = writer.ID
        self._hashes = array("Q")

    def add(self, line: bytes) -> str | None:
        """Take the next row; return what is wrong with its number, or None."""
        self._hashes.append(0)
        try:
            row: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None  # that is told by the check of the row
        metadata = row.get("metadata")
        number = metadata.get(COPY) if isinstance(metadata, dict) else None
        if type(number) is not int or number < 1:
            return f"expected the number of the copy, from 1, at $.metadata.{COPY}, got {number!r}"
        id_: Any = row
        for key in self._id:
            id_ = id_.get(key) if isinstance(id_, dict) else None
        if isinstance(id_, str):
            name = msgspec.json.encode((row.get("source"), id_, number))
            self._hashes[-1] = xxhash.xxh3_64_intdigest(name) or 1
        return None

    def repeated(self) -> Iterator[tuple[int, int]]:
        """Yield rows with a repeated (source, id, copy), and the earlier rows. They count from 1."""
        result = np.frombuffer(self._hashes, dtype=np.uint64)
        order = np.argsort(result, kind="stable")
        ordered = result[order]
        for i in np.flatnonzero((ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)).tolist():
            yield int(order[i + 1]) + 1, int(order[i]) + 1


SHOWN = 20
"""Findings of one file that are shown; the others are counted."""

INDEX_ROWS = 1 << 12
"""Rows of attributes that are compared at a time."""


class Findings:
    """Findings about one file; the first ones are kept."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, finding: object) -> None:
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(str(finding))

    def as_list(self, path: str) -> list[str]:
        """Return the first findings and the number of others."""
        more = self.count - len(self.first)
        return [*self.first, f"{path}: {more:,} more findings"] if more else self.first


class ValidateJob(ConfigStruct):
    """One file to check.

    Attributes:
        kind: ``documents``, ``attributes``, ``output`` or ``rejected`` (documents that a mix dropped).
        path: relative to the dataset's root of that kind, or (output, rejected) the file.
        set: Set of attributes.
        format: Format of an output.
        fields: Fields that its rules have added to the metadata.
        documents: Documents that the output should have, if that is known.
        label: Label that rows of the output should have, if that is known; compared without regard to case.
        labels: Choice of labels: ``any``, or only ``known`` ones.
        first: at most so many rows; then nothing is said about what comes after them.
        scan_job: Scan of the rows for a description, so that they are read once.
        judges_spans: True if spans of an external set must lie in the text, because no mix says what becomes of others.
    """

    kind: str
    path: str
    max_document_bytes: int
    dataset: Dataset | None = None
    set: str = ""
    format: Format | None = None
    fields: list[str] = []
    documents: int | None = None
    label: str | None = None
    labels: Literal["known", "any"] = "any"
    first: int | None = None
    judges_spans: bool = False
    scan_job: ScanJob | None = None

    @property
    def file(self) -> str:
        """Return the path of the file."""
        if self.dataset is None:
            return self.path
        if self.kind == "attributes":
            return self.dataset.attribute_path(self.set, self.path)
        return self.dataset.shard_path(self.path)


class CheckResult(NamedTuple):
    """The findings of a check, and the scan of a sound file."""

    findings: list[str]
    scan: FileScan | None = None


def check_file(work: ValidateJob, report: Report) -> CheckResult:
    """Return the findings about one file, and its scan."""
    findings = Findings()
    scanner = RowScanner(work.scan_job, FileScan(size_of(work.scan_job.path))) if work.scan_job else None
    whole = None
    try:
        whole = _CHECKS[work.kind](work, findings, report, scanner)
    except ToolkitError as error:
        findings.add(error)
    scan = scanner.finish() if scanner and whole and not findings.count else None
    return CheckResult(findings.as_list(work.path), scan)


def check_aligned(work: ValidateJob, report: Report) -> bool:
    """Check an attribute file; it fits, or this raises.

    Raises:
        ToolkitError: with what `toolkit validate` says of the file.
    """
    if results := check_file(work, report).findings:
        raise ToolkitError("\n".join(results))
    if work.first is not None and work.dataset:  # what is recorded counts in place of the rows that are not read
        findings, dataset = Findings(), work.dataset
        path, documents = dataset.attribute_file(work.set, work.path), row_index.current(dataset, work.path)
        if sets.load_schema(dataset, work.set) is None:
            rows = external_sets.look_at(dataset, work.set, work.path).rows
        else:
            record = _check_record(work, dataset, path, findings, documents)
            rows = record.rows if record else 0
        if findings.count:
            raise ToolkitError("\n".join(findings.first))
        if documents and documents.rows != rows:
            expected = f"{documents.rows:,} rows, as many as {dataset.shard_path(work.path)} has"
            raise DataError(f"expected {expected}, got {rows:,}", path=path)
    return True


# --- documents and attributes -----------------------------------------------------------------------------------------


def _check_documents(work: ValidateJob, findings: Findings, report: Report, scanner: RowScanner | None) -> bool:
    """Check types and mandatory fields of each row; a shard without findings is indexed on the way."""
    dataset, shard = work.dataset, work.path
    assert dataset
    path = dataset.shard_path(shard)
    if work.first is not None:
        for _ in _documents(dataset, work, findings):
            report(1, 0)
        return False
    before_state, before = row_index.current(dataset, shard), stat(path)
    try:
        with (
            row_index.RowIndexOutput(dataset, shard) as index,
            dataset.lines(shard, work.max_document_bytes, digest=True) as lines,
        ):
            offset, position = 0, Position(report, lines.stored)
            for row, _, line in _rows(lines, path, findings):
                try:
                    index.add(row_index.entry_of(row, line), offset)
                except DataError as error:
                    findings.add(DataError(error.message, path=path, line=lines.number, id=error.id))
                if scanner:
                    scanner.add(line, lines.number)
                offset += len(line) + 1
                position(1)
            if findings.count:
                raise _Unindexed
    except _Unindexed:
        return False
    content = lines.content or ""
    try:
        read = version_read(path, before, content)
    except DataError as error:
        findings.add(error)
        return False
    state = index.finish(read, content, lines)
    if before_state and before_state.content != state.content:
        message = (
            f"expected the content that {row_index.path_of(dataset, shard)} describes, got other "
            f"content with the same size and time: the documents or this index were damaged. Check "
            f"the documents; the index has been made again"
        )
        findings.add(DataError(message, path=path))
    return True


class _Unindexed(Exception):  # no error: what was found is no index
    """The rows have findings."""


def _documents(dataset: Dataset, work: ValidateJob, findings: Findings) -> Iterator[tuple[Document, int]]:
    path = dataset.shard_path(work.path)
    with dataset.lines(work.path, work.max_document_bytes) as lines:
        for _, document, _ in _rows(lines, path, findings, work.first):
            yield document, lines.number


def _rows(
    lines: Lines, path: str, findings: Findings, first: int | None = None
) -> Iterator[tuple[DocumentRow, Document, bytes]]:
    """Yield the good rows of a shard with their lines; the bad ones become findings."""
    rows = Rows(lines, DOCUMENT_DECODER, path)
    while first is None or rows.number < first:
        try:
            row, line = next(rows)
            yield row, to_document(row, rows), line
        except StopIteration:
            return
        except DataError as error:
            findings.add(error)
            if error.line != rows.number:  # the file itself is damaged
                return


def _check_attributes(work: ValidateJob, findings: Findings, report: Report, scanner: RowScanner | None) -> None:
    dataset, shard = work.dataset, work.path
    assert dataset
    path, documents_path = dataset.attribute_file(work.set, shard), dataset.shard_path(shard)
    if not exists(documents_path):
        findings.add(DataError(f"expected the attributes of a shard, there is no {documents_path}", path=path))
        return
    if not exists(path):
        carried = carried_shards(dataset, work.set) is not None
        error = missing_file(path, dataset, shard, "ingest") if carried else None
        findings.add(error or sets.missing_attributes(dataset, work.set, shard))
        return
    ours = sets.load_schema(dataset, work.set)
    judges_spans = work.judges_spans and not ours
    if not ours and work.first is None:
        external_sets.look_at(dataset, work.set, shard)
    if ours and work.first is None and _fits_index(dataset, work, ours, report):
        _check_record(work, dataset, path, findings)
        return
    rows = AttributeRows(path, documents_path, msgspec.json.Decoder(_row_type(ours)), any_source=not ours)
    bad_documents = Findings()  # they are reported where the documents are checked
    number = 0
    with rows:
        position = Position(report, rows.stored)
        for document, number in _documents(dataset, work, bad_documents):
            try:
                row, _ = rows.take(document.id, document.source, number)
                if judges_spans:
                    _check_spans(msgspec.json.decode(row.attributes), document, path, number)
            except AlignmentError as error:
                findings.add(error)
                return  # all rows behind it are shifted
            except DataError as error:
                findings.add(error)
                if not rows.can_go_on(error):
                    return
            position(1)
        if work.first is None and not bad_documents.count:
            rows.finish(number)
    if work.first is None and ours and not findings.count:
        _check_record(work, dataset, path, findings)


def _check_spans(values: Any, document: Document, path: str, number: int) -> None:
    """Raise DataError for spans outside the text."""
    for key, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, list) and value and schema.infer(value) == schema.SPANS:
            try:
                edits_of_spans([Span(*span) for span in value], "", document.text)
            except DataError as error:
                raise DataError(f"{key}: {error.message}", path=path, line=number, id=document.id) from None


def _fits_index(dataset: Dataset, work: ValidateJob, ours: sets.SetSchema, report: Report) -> bool:
    """Return true if all rows are sound and match the row index. If not, a closer look gives the reason."""
    if row_index.current(dataset, work.path) is None:
        return False
    path = dataset.attribute_path(work.set, work.path)
    blocks = (block["hash"].tolist() for block in row_index.read(dataset, work.path, INDEX_ROWS))
    try:
        with AttributeRows(path, dataset.shard_path(work.path), msgspec.json.Decoder(_row_type(ours))) as rows:
            position = Position(report, rows.stored)
            for block in rows.indexed(blocks):
                position(len(block))
    except DataError:
        return False
    return True


def _check_record(
    work: ValidateJob, dataset: Dataset, path: str, findings: Findings, documents: row_index.ShardState | None = None
) -> sets.ShardRecord | None:
    """Check the record of a file; return it if the file is its own. Without state the documents are indexed."""
    record = sets.load_record(dataset, work.set, work.path)
    carried = carried_shards(dataset, work.set) is not None
    command = "ingest" if carried else sets.command_of(dataset, work.set)
    if record is None:
        got = "one that is damaged" if sets.is_damaged(dataset, work.set, work.path) else "none"
        findings.add(DataError(f"expected a completion record, got {got}; run `toolkit {command}`", path=path))
        return None
    set_schema = None if carried or work.first is not None else sets.load_schema(dataset, work.set)
    if set_schema and record.settings != {key: key_schema.settings for key, key_schema in set_schema.keys.items()}:
        message = f"expected the settings of its set, its record has others; run `toolkit {command}`"
        findings.add(DataError(message, path=path))
    if work.first is None:
        documents = row_index.ensure(dataset, work.path, work.max_document_bytes)
    try:
        ShardAttributes(dataset, work.set, work.path, documents).content()
    except DataError as error:
        findings.add(error)
    return record


def _row_type(ours: sets.SetSchema | None) -> Any:
    values: Any = msgspec.Raw
    if ours:
        values = schema.struct_of({key: schema.to_python(t) for key, t in ours.types().items()})
    fields: list[Any] = [("attributes", values), ("id", str)]
    return msgspec.defstruct("Row", [*fields, ("source", str) if ours else ("source", str | None, None)])


# --- outputs ----------------------------------------------------------------------------------------------------------


def _check_output(work: ValidateJob, findings: Findings, report: Report, scanner: RowScanner | None) -> bool:
    assert work.format
    writer = work.format.writer()
    if not writer.CONCATENATES:
        for row, fault in writer.check_file(work.path, work.documents, work.first):
            findings.add(DataError(fault, path=work.path, line=row))
        report(work.documents or 0, 0)
        return False
    labels = _LabelCheck(work, writer, findings)
    copies = CopyCheck(writer) if COPY in work.fields and writer.has_json_lines() else None
    with Lines(work.path, work.max_document_bytes * 2) as lines:
        position = Position(report, lines.stored)
        for line in lines:
            if (wrong := writer.check(_without(line, work.fields) if work.fields else line)) is not None:
                findings.add(DataError(wrong, path=work.path, line=lines.number))
            if copies and (wrong := copies.add(line)) is not None:
                findings.add(DataError(wrong, path=work.path, line=lines.number))
            labels.check(line, lines.number)
            if scanner and not findings.count:
                scanner.add(line, lines.number)
            position(1)
            if work.first is not None and lines.number >= work.first:
                return False
        if not lines.ended:
            findings.add(DataError("expected a line feed at the end of the file", path=work.path, line=lines.number))
        for number, before in copies.repeated() if copies else ():
            again = f"expected each (source, id, copy) once, got that of {work.path}:{before} again"
            findings.add(DataError(again, path=work.path, line=number))
    return True


class _LabelCheck:
    """A check of the labels of rows: that each is the one of the folder, and that it is known."""

    def __init__(self, work: ValidateJob, writer: Writer, findings: Findings) -> None:
        self._labels: set[str] = set()
        self._work = work
        self._findings = findings
        self._place = f"$.{writer.READING.values}.{writer.READING.label}"
        self._reader = label_reader(writer.READING) if writer.has_json_lines() else None
        self._is_language = writer.READING.is_language

    def check(self, line: bytes, number: int) -> None:
        """Check the label of a row; the number is that of its line."""
        label = self._reader(line) if self._reader else None
        if not label:
            return
        work, label_of_path = self._work, self._work.label
        is_new = label not in self._labels
        self._labels.add(label)
        if not self._is_language:
            return
        if label_of_path is not None and label.lower() != label_of_path.lower():
            wrong = f"expected the label {label_of_path!r}, as the path says it, got {label!r} - at {self._place}"
        elif work.labels == "known" and is_new and not is_known(label):
            wrong = (
                f"expected a label of lid.176, or `multi`, got {label!r} - at {self._place}; --labels any allows others"
            )
        else:
            return
        self._findings.add(DataError(wrong, path=work.path, line=number))


def _without(line: bytes, fields: Collection[str]) -> bytes:
    """Return the line without these fields of its metadata; as it is, if it is not of that form."""
    try:
        keys = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        metadata = msgspec.json.decode(keys["metadata"], type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
        return line
    rest = {name: value for name, value in metadata.items() if name not in fields}
    return msgspec.json.encode({**keys, "metadata": rest})


class _Rejection(msgspec.Struct):
    rule: str
    values: dict[str, Any]


class _RejectionRow(msgspec.Struct):
    rejected: _Rejection


_REJECTED = msgspec.json.Decoder(_RejectionRow)


def _check_rejected(work: ValidateJob, findings: Findings, report: Report, scanner: RowScanner | None) -> None:
    """Check dropped documents of a mix: unchanged rows, each with its rule."""
    with Lines(work.path, work.max_document_bytes * 2) as lines:
        position = Position(report, lines.stored)
        for row, _, line in _rows(lines, work.path, findings, work.first):
            try:
                _REJECTED.decode(line)
            except msgspec.DecodeError as error:
                message = f"expected the rule that dropped the document and the values that it saw, got: {error}"
                findings.add(DataError(message, path=work.path, line=lines.number, id=row.id))
            position(1)


def is_rejected(path: str) -> bool:
    """Return true for a mix's dropped documents, by the first row."""
    if ".jsonl" not in os.path.basename(path):
        return False
    try:
        with Lines(path, MAX_ROW, fixed=True) as lines:
            line = next(lines, b"")
        for decoder in (_REJECTED, DOCUMENT_DECODER):
            decoder.decode(line)
    except (*BAD_ROW, DataError):
        return False
    return True


_CHECKS: dict[str, Callable[[ValidateJob, Findings, Report, RowScanner | None], bool | None]] = {
    "documents": _check_documents,
    "attributes": _check_attributes,
    "output": _check_output,
    "rejected": _check_rejected,
}
