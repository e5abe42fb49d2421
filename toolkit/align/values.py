"""Step 1, per input: its values on disk, and its ids, hashed and sorted.

``inputs/N.rows``      a line a row: ``["id",{values}]`` or ``["source","id",{values}]``, not compressed
``inputs/N.R.keys``    about `RUN` records of `KEY`, sorted by hash
``inputs/N.json``      an `InputRead`: written last
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import xxhash

from toolkit.align.rows import value_struct
from toolkit.align.section import Entry
from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import explain_bad_row
from toolkit.data.schema import from_json
from toolkit.errors import DataError
from toolkit.ingest.reader import Draft, Input
from toolkit.ingest.reading.input_bytes import InputBytes
from toolkit.runs.executors import Report
from toolkit.storage import json_files
from toolkit.storage.artifact import Artifact, FileRecord, state
from toolkit.storage.json_files import json_digest
from toolkit.storage.outputs import Output, write_file
from toolkit.storage.paths import join, lacking, stat

RUN = 1 << 20
"""Ids that are sorted at a time."""

KEY = np.dtype([("hi", "<u8"), ("lo", "<u8"), ("at", "<u8"), ("row", "<u8"), ("size", "<u4"), ("input", "<u4")])
"""An id's hash, and where its values are: offset and length of the line, row and number of its input."""

_BLOCK = 1 << 20
_ENCODER = msgspec.json.Encoder()


class InputToRead(ConfigStruct):
    """An input whose values are read.

    Attributes:
        entry: of the section.
        types: of the values, in the form of `toolkit.data.schema`.
        path: of the input.
        number: of the input among all.
        folder: for what is written.
        limit: bytes of a row, at most.
    """

    entry: Entry
    types: dict[str, Any]
    path: str
    number: int
    folder: str
    limit: int

    @property
    def stem(self) -> str:
        return join(self.folder, "inputs", f"{self.number:06d}")


class InputRead(Artifact, frozen=True, kw_only=True):
    """The record of an input whose values have been read.

    Attributes:
        made_of: digest of the settings and the types.
        size, stamp, content: of the input, as stored.
        rows: in it.
        runs: of ids.
        counts: of what the rows say, by name, if the format counts that.
    """

    path: str
    made_of: str
    size: int
    stamp: str
    content: str
    rows: int
    runs: int
    counts: dict[str, int] = {}

    @property
    def lineage(self) -> dict[str, str]:
        return {self.path: self.made_of}


def hash_of(source: str | None, id: str, shard: str | None = None) -> bytes:
    """Return what an id is found by: xxh3-128 of it, with its source where that counts, and its shard likewise."""
    name = id if source is None else f"{source}\0{id}"
    return xxhash.xxh3_128_digest((name if shard is None else f"{name}\0\0{shard}").encode())


def read_input(work: InputToRead, report: Report) -> InputRead:
    """Write the values of an input, and its ids, unless that has been done.

    Raises:
        DataError: if the input is damaged, or has a row without id, or with values of another type.
    """
    found = stat(work.path)
    if found is None:
        raise DataError(f"expected a file with values, got {lacking(work.path)}", path=work.path)
    made_of = json_digest((work.entry.recorded(), work.types))
    done = json_files.load(work.stem + ".json", InputRead)
    if (
        done
        and state(
            done, [(work.path, made_of)], files=lambda read: [FileRecord(work.path, read.size, read.stamp)]
        ).is_done
    ):
        report(0, found.size)
        return done
    stored = InputBytes(work.path, found)
    source = Input(work.path, None, work.limit, None, stored.open)
    with Output(work.stem + ".rows") as out:
        runs = _Runs(work, out)
        before = 0
        for batch in _batches(work.entry, source):
            for draft in batch:
                runs.add(draft, draft.id or "", draft.extra)
            report(0, stored.stored() - before)
            before = stored.stored()
        runs.flush()
    made = InputRead(
        path=work.path,
        made_of=made_of,
        size=found.size,
        stamp=found.stamp,
        content=stored.content(),
        rows=runs.rows,
        runs=runs.count,
        counts={name: count for name, count in source.counts.items() if count},
    )
    if stored.can_change and stat(work.path) != found:
        raise DataError(
            "expected a file that does not change while it is read, got one that has changed; run "
            "again when no program writes to it",
            path=work.path,
        )
    json_files.save(work.stem + ".json", made)
    return made


def _batches(entry: Entry, source: Input) -> Iterator[Sequence[Draft]]:
    """Yield what a reader gives; of a bad row it is told what to do."""
    try:
        yield from entry.reader().read_batches(source)
    except DataError as error:
        if error.line is None:
            raise
        message = f"{error.message}; correct the file, or restore it"
        raise DataError(message, path=error.path, line=error.line, id=error.id) from None


class _Runs:
    """Writes rows, and the runs of their ids."""

    def __init__(self, work: InputToRead, out: Output) -> None:
        types = {name: from_json(value) for name, value in work.types.items()}
        self._decode = msgspec.json.Decoder(value_struct(types)).decode
        self._work, self._out = work, out
        self._names = list(types)
        self._lines: list[bytes] = []
        self._held = self._at = 0
        self._hashes = bytearray()
        self._places: list[tuple[int, int, int]] = []
        self.rows = self.count = 0

    def add(self, draft: Draft, id: str, values: dict[str, Any]) -> None:
        source, number = draft.source, draft.number
        text = _ENCODER.encode(values)
        try:
            checked = self._decode(text)
        except msgspec.ValidationError as error:
            told = explain_bad_row(text, error).replace("- at $.", "- at ")
            hint = "its type is that of the first rows, or the columns of all files: name it under `typed:`"
            raise DataError(f"{told}; {hint}", path=self._work.path, line=number, id=id) from None
        line = _ENCODER.encode([id, checked] if source is None else [source, id, checked])
        self._hashes += hash_of(source, id, draft.shard)
        self._places.append((self._at, number, len(line)))
        self._lines.append(line)
        self._at += len(line) + 1
        self._held += len(line) + 1
        self.rows += 1
        if self._held >= _BLOCK:
            self._write()
        if len(self._places) == RUN:
            self.flush()

    def _write(self) -> None:
        self._out.write(b"".join(line + b"\n" for line in self._lines))
        self._lines, self._held = [], 0

    def flush(self) -> None:
        """Write what is held."""
        if self._lines:
            self._write()
        if not self._places:
            return
        keys = np.empty(len(self._places), dtype=KEY)
        halves = np.frombuffer(bytes(self._hashes), dtype=">u8").reshape(-1, 2)
        keys["hi"], keys["lo"] = halves[:, 0], halves[:, 1]
        keys["at"], keys["row"], keys["size"] = np.array(self._places, dtype="<u8").T
        keys["input"] = self._work.number
        keys = keys[np.lexsort((keys["row"], keys["lo"], keys["hi"]))]
        write_file(f"{self._work.stem}.{self.count:04d}.keys", keys.tobytes())
        self._hashes, self._places = bytearray(), []
        self.count += 1
