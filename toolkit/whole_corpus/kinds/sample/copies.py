"""Copies of samples: a list of ids, or the chosen documents as they are, in one file or in one for each shard.

What is written is noted in ``.toolkit/dedup/SET/copies.json``: it is written again only if something else was chosen,
or a file is not what was written; and files of a sample that is drawn otherwise are deleted.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Literal

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import line_index
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError
from toolkit.execution.executors import Report
from toolkit.storage import Stat, json_files
from toolkit.storage.compression import compression_of, compressor_for
from toolkit.storage.freshness import Artifact, FileRecord
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import exists, is_folder, join, list_files, remove
from toolkit.whole_corpus.kinds.sample import Copy, Sample
from toolkit.whole_corpus.records import SignedShard, set_folder
from toolkit.whole_corpus.sign import names_of

What = Literal["ids", "documents"]

_ENCODER = msgspec.json.Encoder()


class FileToWrite(ConfigStruct):
    """A file of a copy.

    Attributes:
        path: Path of the file.
        content: Kind of its rows.
        kind: options of the sample.
        shards: Shards whose chosen documents are in it, in order.
        fates: the folder of what was chosen.
        index: True if an ``.idx`` is written beside it.
        max_document_bytes: Limit of a row of documents.
    """

    path: str
    content: What
    kind: dict[str, Any]
    shards: list[SignedShard]
    fates: str
    index: bool
    max_document_bytes: int


class CopiedFile(msgspec.Struct, frozen=True):
    """A file of a copy: its path, rows, stored bytes and stamp; and those of its index, if it has one."""

    path: str
    rows: int
    size: int
    stamp: str
    index: Stat | None = None


class Copied(Artifact, frozen=True):
    """The record of a copy: the digest of what it was made from, and its files."""

    made_from: str
    files: list[CopiedFile]

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.made_from}


class CopyRecords(msgspec.Struct, frozen=True):
    """The record of the copies of a set, by content."""

    version: int = 1
    copies: dict[str, Copied] = {}


def record_path(dataset: Dataset, set_name: str) -> str:
    """Return the path of the record of a set's copies."""
    return join(set_folder(dataset, set_name), "copies.json")


def load(dataset: Dataset, set_name: str) -> CopyRecords:
    """Return the record of a set's copies."""
    return json_files.load(record_path(dataset, set_name), CopyRecords) or CopyRecords()


def load_strictly(dataset: Dataset, set_name: str) -> CopyRecords:
    """Return the record of a set's copies, or raise an error; without it nobody knows whose the present files are.

    Raises:
        DataError: if it is damaged.
    """
    remedy = "delete it and the copies, or add --overwrite to write them again"
    return json_files.load_strictly(record_path(dataset, set_name), CopyRecords, remedy) or CopyRecords()


def copies_of(kind: Sample) -> list[tuple[What, Copy]]:
    """Return the copies of a sample."""
    results: list[tuple[What, Copy]] = []
    if kind.ids is not None:
        results.append(("ids", Copy(kind.ids)))
    if kind.copy_ is not None:
        results.append(("documents", kind.copy_))
    return results


def files_of(
    copy: Copy, content: What, kind: Sample, shards: Sequence[SignedShard], fates: str, max_document_bytes: int
) -> list[FileToWrite]:
    """Return the files of a copy: one, or one for each shard of which something was chosen."""
    whole = FileToWrite(
        path=copy.path,
        content=content,
        kind=msgspec.to_builtins(kind),
        shards=list(shards),
        fates=fates,
        index=copy.index,
        max_document_bytes=max_document_bytes,
    )
    if copy.layout == "one":
        return [whole]
    return [
        msgspec.structs.replace(whole, path=join(copy.path, signed.shard), shards=[signed])
        for signed in shards
        if any(item.chosen for item in kind.values(signed, fates))
    ]


def files_in(copied: Copied) -> Iterator[FileRecord]:
    """Yield the files of a copy, and their indexes."""
    for file in copied.files:
        yield FileRecord(file.path, file.size, file.stamp)
        if file.index:
            yield FileRecord.of(line_index.path_of(file.path), file.index)


def check_free(copy: Copy, before: Copied | None) -> None:
    """Refuse files in the way, other than those of an earlier copy.

    Raises:
        ConfigError: if there is.
    """
    ours = {path for file in before.files for path in (file.path, line_index.path_of(file.path))} if before else set()
    if copy.layout == "one":
        existing = [path for path in (copy.path, line_index.path_of(copy.path)) if exists(path)]
    else:
        existing = [join(copy.path, name) for name in list_files(copy.path)] if is_folder(copy.path) else []
    if foreign := [path for path in existing if path not in ours]:
        lacks = "expected a new file, or a copy of this sample, got another file"
        raise ConfigError(f"{foreign[0]}: {lacks}; choose another path, or add --overwrite")


def write_copy(work: FileToWrite, report: Report) -> CopiedFile:
    """Write a file of a copy.

    Raises:
        DataError: if documents are not those that were drawn from.
    """
    kind = msgspec.convert(work.kind, Sample)
    compressed = bool(compression_of(work.path))
    compress, lengths = compressor_for(work.path), list[int]()

    def one_by_one(rows: bytes) -> bytes:
        """Compress each row by itself."""
        members = [compress(row + b"\n") for row in rows.split(b"\n")[:-1]]
        lengths.extend(map(len, members))
        return b"".join(members)

    with RowOutput(work.path, compress=one_by_one if work.index and compressed else None) as output:
        for signed in work.shards:
            before = output.rows
            for row in _rows(work, kind, signed):
                output.write_row(row)
                if work.index and not compressed:
                    lengths.append(len(row))
            report(output.rows - before, signed.record.input.size)
    index = line_index.write(work.path, lengths, between=0 if compressed else 1) if work.index else None
    return CopiedFile(work.path, output.rows, output.stat.size, output.stat.stamp, index)


def _rows(work: FileToWrite, kind: Sample, signed: SignedShard) -> Iterator[bytes]:
    """Yield the rows of a shard's chosen documents."""
    with ExitStack() as stack:
        if work.content == "ids":
            lines: Iterator[bytes] = names_of(signed.folder, signed.shard)
        else:
            lines = iter(stack.enter_context(signed.dataset.lines(signed.shard, work.max_document_bytes)))
        values = kind.values(signed, work.fates)
        for count, value in enumerate(values):
            row = next(lines, None)
            if row is None:
                result = f"expected {signed.record.rows} rows, got {count}; run `toolkit sample`"
                raise DataError(result, path=signed.dataset.shard_path(signed.shard))
            if value.chosen:
                yield _named(row, value) if work.content == "ids" else row


def _named(name: bytes, value: Any) -> bytes:
    """Return a row of a list of ids: source and id, and stratum and split where there are such."""
    more = {key: result for key in ("stratum", "split") if (result := getattr(value, key)) is not None}
    return name[:-1] + b"," + _ENCODER.encode(more)[1:] if more else name


def begin(dataset: Dataset, set_name: str, content: What, files: Sequence[FileToWrite]) -> None:
    """Record the files of a copy before it begins, beside present ones: a killed run leaves them."""
    copies = load(dataset, set_name).copies
    before = copies.get(content)
    files_by_path = {file.path: file for file in before.files} if before else {}
    files_by_path |= {file.path: CopiedFile(file.path, 0, -1, "") for file in files}
    _save(dataset, set_name, copies | {content: Copied("", list(files_by_path.values()))})


def end(dataset: Dataset, set_name: str, content: What, copied: Copied) -> None:
    """Record a copy, and delete files of earlier ones, with indices."""
    copies = load(dataset, set_name).copies
    before = copies.get(content)
    here = {file.path for file in copied.files}
    indexed = {file.path for file in copied.files if file.index}
    for file in before.files if before else ():
        if file.path not in here:
            remove(file.path)
        if file.path not in indexed:
            remove(line_index.path_of(file.path))
    _save(dataset, set_name, copies | {content: copied})


def _save(dataset: Dataset, set_name: str, copies: dict[str, Copied]) -> None:
    json_files.save(record_path(dataset, set_name), CopyRecords(copies=copies))
