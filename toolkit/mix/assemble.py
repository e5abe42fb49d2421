"""Stage 2 of a mix: one part is put together from members of the intermediates."""

import hashlib
import io
from typing import IO, Any, Self, cast

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError
from toolkit.mix.plan import PartPlan
from toolkit.mix.settings import MixSettings, work_folder
from toolkit.mix.stage import stage_path
from toolkit.runs.executors import Report
from toolkit.storage import Pieces, json_files, store_of
from toolkit.storage.compression import COMPRESSORS, decompress
from toolkit.storage.outputs import Output
from toolkit.storage.paths import join, remove, stat, unlike_data


class PartToWrite(ConfigStruct):
    """One part to assemble.

    Attributes:
        digest: of the plan that it belongs to.
    """

    settings: MixSettings
    digest: str
    part: PartPlan


class PartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A part that is complete, not yet published.

    Attributes:
        path: below the output folder.
        size, sha256: of the file.
        content_size, content_sha256: of its uncompressed bytes; of a format that does not concatenate, of the encoded
            documents that the file was made of, which are the same with every version of what made it.
    """

    label: str
    path: str
    documents: int
    size: int
    sha256: str
    content_size: int
    content_sha256: str


def staged_path(output: str, digest: str, path: str) -> str:
    """Return where a part lies before it is published; also one that goes to a folder beside the output."""
    return join(work_folder(output), "parts", digest, unlike_data(path.replace("../", "_up/")))


def assemble_part(work: PartToWrite, report: Report) -> PartRecord:
    """Put a part together, unless that has been done, and return its record.

    Raises:
        DataError: if an intermediate is not what its index says.
    """
    output, part = work.settings.output.path, work.part
    path = staged_path(output, work.digest, part.path)
    done = json_files.load(path + ".json", PartRecord)
    found = stat(path)
    if done and found and found.size == done.size:
        report(done.documents, 0)
        return done
    remove(path + ".json")
    compression = work.settings.compression(part.label)
    content = _Content(compression, report)
    with Output(path) as out, _Intermediates(work) as intermediates:
        pieces = ([intermediates.read(*member) for member in piece.members] for piece in part.pieces)
        if work.settings.concatenates(part.label):
            for stored in pieces:
                joined = content.of(stored)
                out.write(stored[0] if len(stored) == 1 else COMPRESSORS[compression](joined))
        else:
            work.settings.writer().assemble(map(content.of, pieces), cast("IO[bytes]", _Sink(out)))
        if content.size != part.size:
            raise DataError(f"expected {part.size} bytes as planned, got {content.size}", path=path)
    record = PartRecord(
        label=part.label,
        path=part.path,
        documents=part.documents,
        size=out.stat.size,
        sha256=out.sha256,
        content_size=content.size,
        content_sha256=content.sha256.hexdigest(),
    )
    json_files.save(path + ".json", record)
    report(part.documents, 0)
    return record


class _Content:
    """The uncompressed bytes of a part, as they come by.

    Attributes:
        size, sha256: of those that have come.
    """

    def __init__(self, compression: str, report: Report) -> None:
        self.size = 0
        self.sha256 = hashlib.sha256()
        self._compression = compression
        self._report = report

    def of(self, stored: list[bytes]) -> bytes:
        """Return the uncompressed bytes of the next members."""
        joined = b"".join([decompress(data, self._compression) for data in stored])
        self.sha256.update(joined)
        self.size += len(joined)
        self._report(0, sum(map(len, stored)))
        return joined


class _Sink(io.RawIOBase):
    """An output, for libraries that write to a file."""

    def __init__(self, out: Output) -> None:
        super().__init__()
        self._out = out

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._out.size

    def write(self, data: Any) -> int:
        self._out.write(data)
        return len(data)


class _Intermediates:
    """Open intermediates, one at a time: members come sorted by shard."""

    def __init__(self, work: PartToWrite) -> None:
        self._output = work.settings.output.path
        self._digest = work.settings.stage_digest()
        self._shard: str | None = None
        self._file: Pieces | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def read(self, shard: str, offset: int, length: int) -> bytes:
        """Return the stored bytes of a member."""
        path = stage_path(self._output, self._digest, shard)
        if shard != self._shard:
            if self._file:
                self._file.close()
            self._shard, self._file = shard, store_of(path).pieces(path)
        assert self._file
        data = self._file.read(offset, length)
        if len(data) != length:
            raise DataError(f"expected {length} bytes at {offset}, got {len(data)}", path=path)
        return data
