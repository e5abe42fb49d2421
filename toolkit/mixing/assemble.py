"""Stage 2 of a mix: one part is put together from members of the intermediates."""

import hashlib
from collections.abc import Callable
from typing import IO, Self

import msgspec

from toolkit import records
from toolkit.config import ConfigStruct
from toolkit.errors import DataError
from toolkit.mixing.plan import PartPlan
from toolkit.mixing.settings import MixSettings, work_folder
from toolkit.mixing.stage import stage_path
from toolkit.paths import join, remove, stat
from toolkit.streams import COMPRESSORS, Output, decompress

Report = Callable[[int, int], None]


class Work(ConfigStruct):
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
        content_size, content_sha256: of its uncompressed bytes.
    """

    label: str
    path: str
    documents: int
    size: int
    sha256: str
    content_size: int
    content_sha256: str


def staged_path(output: str, digest: str, path: str) -> str:
    """Where a part lies before it is published; also one that goes to a folder beside the output."""
    return join(work_folder(output), "parts", digest, path.replace("../", "_up/"))


def assemble_part(work: Work, report: Report) -> PartRecord:
    """Puts a part together, unless that has been done.

    Raises:
        DataError: if an intermediate is not what its index says.
    """
    output, part = work.settings.output.path, work.part
    path = staged_path(output, work.digest, part.path)
    done = records.load(path + ".json", PartRecord)
    found = stat(path)
    if done and found and found.size == done.size:
        report(done.documents, 0)
        return done
    remove(path + ".json")
    compress = COMPRESSORS[work.settings.output.compression]
    content = hashlib.sha256()
    size = 0
    with Output(path) as out, _Intermediates(work) as intermediates:
        for piece in part.pieces:
            stored = [intermediates.read(*member) for member in piece.members]
            plain = [decompress(data, work.settings.output.compression) for data in stored]
            joined = b"".join(plain)
            content.update(joined)
            size += len(joined)
            out.write(stored[0] if len(stored) == 1 else compress(joined))
            report(0, len(joined))
    if size != part.size:
        raise DataError(f"expected {part.size} bytes as planned, got {size}", path=path)
    record = PartRecord(
        label=part.label,
        path=part.path,
        documents=part.documents,
        size=out.stat.size,
        sha256=out.sha256,
        content_size=size,
        content_sha256=content.hexdigest(),
    )
    records.save(path + ".json", record)
    report(part.documents, 0)
    return record


class _Intermediates:
    """Open intermediates, one at a time: members come sorted by shard."""

    def __init__(self, work: Work) -> None:
        self._output = work.settings.output.path
        self._digest = work.settings.stage_digest()
        self._shard: str | None = None
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def read(self, shard: str, offset: int, length: int) -> bytes:
        """A member's stored bytes."""
        path = stage_path(self._output, self._digest, shard)
        if shard != self._shard:
            if self._file:
                self._file.close()
            self._shard, self._file = shard, open(path, "rb")  # noqa: SIM115  # closed here and in __exit__
        assert self._file
        self._file.seek(offset)
        data = self._file.read(length)
        if len(data) != length:
            raise DataError(f"expected {length} bytes at {offset}, got {len(data)}", path=path)
        return data
