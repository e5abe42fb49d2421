"""Indexes of raw files for Modalities, in a folder that mirrors theirs; the files are read, not copied.

``FOLDER/2014-41/de/00000.idx``  index of the raw file ``2014-41/de/00000.jsonl`` (`toolkit.data.line_index`)
``FOLDER/.toolkit/exported/``    an `Indexed` of each: forgotten before its index is replaced, written last
"""

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import line_index
from toolkit.errors import DataError
from toolkit.execution.executors import Report
from toolkit.exporting.shard import log_of
from toolkit.storage import Stat
from toolkit.storage.artifact import Artifact, FileRecord, state
from toolkit.storage.compression import compression_in
from toolkit.storage.outputs import Output
from toolkit.storage.paths import join, lacking, stat
from toolkit.storage.reading import open_stored

_BLOCK = 1 << 20


class Indexed(Artifact, frozen=True, kw_only=True):
    """The record that an index is complete: states of the raw file and of the index, and the number of lines."""

    raw: Stat
    index: Stat
    lines: int


class RawFileToIndex(ConfigStruct):
    """A raw file.

    Attributes:
        path: Path of the file.
        name: Place of the index below the folder, without the suffix.
        folder: Folder of all indexes.
        max_document_bytes: Bytes of a line, at most.
    """

    path: str
    name: str
    folder: str
    max_document_bytes: int

    @property
    def index(self) -> str:
        """Return the path of the index."""
        return join(self.folder, self.name + line_index.SUFFIX)

    def is_done(self) -> bool:
        """Return whether the index is there, and its raw file has not changed since."""
        record = log_of(self.folder).load("raw index", self.name, Indexed)
        return state(
            record, files=lambda made: [FileRecord.of(self.path, made.raw), FileRecord.of(self.index, made.index)]
        ).is_done


def index_file(work: RawFileToIndex, report: Report) -> bool:
    """Write the index of a raw file, unless it is there; return whether it was written.

    Raises:
        DataError: if the file is compressed, or a line is no JSON: Modalities reads neither.
    """
    if work.is_done():
        return False
    raw = stat(work.path)
    if raw is None:
        raise DataError(f"expected a raw file, got {lacking(work.path)}", path=work.path)
    lines, number, rest = line_index.LineLengths(), 0, b""
    with open_stored(work.path) as stream:
        while block := stream.read(_BLOCK):
            if not number and not rest and (compression := compression_in(block[:16])):
                message = (
                    f"expected plain lines of JSON, which Modalities reads, got {compression}; decompress the file"
                )
                raise DataError(message, path=work.path)
            lines.add(block)
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                number += 1
                _check(line, number, work.path)
            if len(rest) > work.max_document_bytes:
                message = f"expected a line of at most {work.max_document_bytes:,} bytes, got more"
                raise DataError(f"{message}; raise `max_document_bytes`", path=work.path, line=number + 1)
            report(0, len(block))
    if rest:
        number += 1
        _check(rest, number, work.path)
    if not number:
        raise DataError(
            "expected lines of JSON, got an empty file, for which Modalities makes no index", path=work.path
        )
    log = log_of(work.folder)
    log.forget([("raw index", work.name)])
    with Output(work.index) as output:
        for data in line_index.pickled_pairs(lines.pairs()):
            output.write(data)
    record = Indexed(raw=raw, index=Stat(output.stat.size, output.stat.stamp), lines=number)
    log.save({("raw index", work.name): msgspec.json.encode(record)})
    return True


def _check(line: bytes, number: int, path: str) -> None:
    try:
        msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:
        got = str(error) if line.strip() else "a blank line"
        raise DataError(
            f"expected JSON, which Modalities asks of each line, got {got}", path=path, line=number
        ) from None
