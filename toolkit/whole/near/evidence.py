"""Step 2d, per shard: the shingles of its documents that share a bucket, in files of their units; and what a unit has
in all of these, put in order. Shingles are those of the text, unless they were stored with the signatures.

Files are sections by unit (see `sections`); a section has, of some documents of the unit, `PLACES`, `SIZES` and
`NAME_SIZES` (one number each), `KEYS` (a row each), `SETS` and `NAMES` (what the sizes say of each).
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import IO, Self

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.runs.executors import Report
from toolkit.storage.paths import join
from toolkit.text.batch import in_blocks
from toolkit.text.kernels.signatures import Array
from toolkit.whole.near.decision import Piece
from toolkit.whole.near.graph import NAME, TEXT, Numbering, members_of
from toolkit.whole.near.shingles import Shingles, Size, distinct
from toolkit.whole.near.signing import ROW, SHINGLES
from toolkit.whole.records import SignedShard
from toolkit.whole.sealed import Sealed, read_sealed
from toolkit.whole.sections import Sections, bounds_of, packed, unpacked, write_sections
from toolkit.whole.sign import documents_of, names_at

EVIDENCE = "evidence"
_ROWS = 1 << 13  # whose keys are read at a time
_GAP = 1 << 17  # bytes between stored shingles that are read with them, rather than to ask again
_PIECE = 1 << 22  # bytes of stored shingles that are read at once
TYPES = PLACES, SIZES, NAME_SIZES, KEYS, SETS, NAMES = ("<u4", "<u4", "<u4", "<u8", "<u8", "u1")


class ToRead(ConfigStruct):
    """A shard whose candidates are read.

    Attributes:
        signed: the shard.
        numbering: of the units.
        bands: of signatures.
        size: of shingles; None if sets are not compared.
        memory: bytes that may be used.
        folder: to read from and to write to.
    """

    signed: SignedShard
    numbering: Numbering
    bands: int
    size: Size | None
    memory: int
    folder: str


class _Held:
    """Documents that have been read and not yet written: of each its unit, place, keys, set and name."""

    def __init__(self) -> None:
        self.units: list[int] = []
        self.places: list[int] = []
        self.keys: list[Array] = []
        self.sets: list[Array] = []
        self.names: list[bytes] = []
        self.bytes = 0

    def add(self, unit: int, place: int, keys: Array, set_: Array, name: bytes) -> None:
        """Add a document."""
        self.units.append(unit)
        self.places.append(place)
        self.keys.append(keys)
        self.sets.append(set_)
        self.names.append(name)
        self.bytes += set_.nbytes + len(name) + keys.nbytes + 400

    def sections(self, units: int) -> Iterator[bytes]:
        """Yield the section of each unit."""
        import numpy as np

        order = np.lexsort((self.places, self.units))
        edges = np.searchsorted(np.array(self.units)[order], np.arange(units + 1)).tolist()
        for begin, end in pairwise(edges):
            mine = order[begin:end].tolist()
            if not mine:
                yield b""
                continue
            names = [self.names[i] for i in mine]
            yield packed([
                np.array([self.places[i] for i in mine], dtype=PLACES),
                np.array([len(self.sets[i]) for i in mine], dtype=SIZES),
                np.array([len(name) for name in names], dtype=NAME_SIZES),
                np.concatenate([self.keys[i] for i in mine]),
                np.concatenate([self.sets[i] for i in mine]),
                np.frombuffer(b"".join(names), dtype=NAMES),
            ])  # fmt: skip


def read_shard(work: ToRead, report: Report) -> int:
    """Write what the candidates of a shard are compared by; return how many files that are.

    Raises:
        DataError: if the documents are others than those that have been signed.
    """
    import numpy as np

    number = work.signed.number
    members = members_of(work.folder, work.numbering, number)
    named, members = (members[members["read"] == what] for what in (NAME, TEXT))
    held, files = _Held(), 0

    def flush() -> None:
        nonlocal held, files
        write_sections(join(work.folder, f"{EVIDENCE}-{number}-{files}"), held.sections(sum(work.numbering.fresh)))
        held, files = _Held(), files + 1

    places = iter(members.tolist())
    keys = _keys(work, members["row"])
    for sets, names in _read(work, members["row"]):
        for set_, name in zip(sets, names, strict=True):
            _, unit, place, _ = next(places)
            held.add(unit, place, next(keys), set_, name)
        if held.bytes > work.memory // 3:
            flush()
    nothing = np.empty(0, dtype=SETS)
    for (_, unit, place, _), name in zip(named.tolist(), _names(work, named["row"]), strict=True):
        held.add(unit, place, np.zeros(work.bands, dtype=KEYS), nothing, name)
        if held.bytes > work.memory // 3:
            flush()
    if held.units:
        flush()
    return files


def _keys(work: ToRead, rows: Array) -> Iterator[Array]:
    """Yield the keys of rows, which ascend."""
    import numpy as np

    width = 8 * work.bands
    edges = np.searchsorted(rows, np.arange(0, work.signed.record.rows + _ROWS, _ROWS)).tolist()
    with Sealed(work.signed.path("keys")) as stream:
        for first, (begin, end) in enumerate(pairwise(edges)):
            found = np.frombuffer(stream.read(_ROWS * width), dtype=KEYS).reshape(-1, work.bands)
            yield from found[rows[begin:end] - first * _ROWS]


def _read(work: ToRead, wanted: Array) -> Iterator[tuple[list[Array], list[bytes]]]:
    """Yield sets and names of the candidates in their order, some at a time."""
    import numpy as np

    if not len(wanted):
        return
    if work.size is None:
        nothing = np.empty(0, dtype=SETS)
        for name in _names(work, wanted):
            yield [nothing], [name]
        return
    if SHINGLES in work.signed.record.files:
        for set_, name in zip(_stored(work.signed, wanted), _names(work, wanted), strict=True):
            yield [set_], [name]
        return
    is_wanted = np.zeros(work.signed.record.rows, dtype=bool)
    is_wanted[wanted] = True
    places = (work.signed.dataset.place_of(work.signed.shard, row + 1) for row in wanted.tolist())
    for block in in_blocks(documents_of(work.signed, is_wanted), lambda row: len(row.text)):
        sets = Shingles.of([row.text for row in block], work.size).sets()
        yield list(sets), [_name(row.source, row.id, next(places)) for row in block]


def _stored(signed: SignedShard, wanted: Array) -> Iterator[Array]:
    """Yield the sets of rows, which ascend, from the shingles that were stored; what lies together is read at once."""
    import numpy as np

    shingles = np.frombuffer(read_sealed(signed.path("rows")), dtype=ROW)["shingles"]
    starts = 8 * bounds_of(shingles.astype(np.int64))
    begins, ends = starts[wanted], starts[wanted + 1]
    cuts = np.flatnonzero((begins[1:] - ends[:-1] > _GAP) | (np.diff(begins // _PIECE) > 0)) + 1
    with Sealed(signed.path(SHINGLES)) as stream:
        for first, last in pairwise([0, *cuts.tolist(), len(wanted)]):
            begin = int(begins[first])
            data = stream.at(begin, int(ends[last - 1]) - begin)
            for at, end in zip(begins[first:last].tolist(), ends[first:last].tolist(), strict=True):
                yield distinct(np.frombuffer(data, dtype=SETS, count=(end - at) // 8, offset=at - begin))


def _names(work: ToRead, wanted: Array) -> Iterator[bytes]:
    """Yield the names of rows, which ascend; no text is read for them."""
    signed = work.signed
    for line, row in zip(names_at(signed.folder, signed.shard, wanted), wanted.tolist(), strict=True):
        found = _ROW_NAME.decode(line)
        yield _name(found["source"], found["id"], signed.dataset.place_of(signed.shard, row + 1))


_ROW_NAME = msgspec.json.Decoder(dict[str, str])


def _name(source: str, id_: str, place: str) -> bytes:
    return msgspec.json.encode([source, id_, place] if place else [source, id_])


class OrderedUnit:
    """The documents of a unit in order on the local disk; a `decision.Unit`. A context manager, which deletes it.

    Args:
        folder: with the evidence.
        files: of each shard that has some: its number, and how many files.
        number: of the unit.
        given: of each document, whether it is of another dataset.
        bands: of signatures.
    """

    def __init__(self, folder: str, files: Sequence[tuple[int, int]], number: int, given: Array, bands: int) -> None:
        self.given, self.bands = given, bands
        self._folder, self._files, self._number = folder, files, number
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        import numpy as np

        n = len(self.given)
        opened = (self._stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))  # noqa: SIM115  # it is
        self._sets, self._keys, self._names = opened
        self.sizes, name_sizes = np.zeros((2, n), dtype=np.int64)
        for places, sizes, lengths, *_ in self._sections():
            self.sizes[places], name_sizes[places] = sizes, lengths
        self._starts, self._name_starts = 8 * bounds_of(self.sizes), bounds_of(name_sizes)
        width = 8 * self.bands
        for places, sizes, lengths, keys, sets, names in self._sections():
            every = np.arange(len(places) + 1)
            _spread(self._keys, places * np.int64(width), every * width, keys.tobytes())
            _spread(self._sets, self._starts[places], 8 * bounds_of(sizes), sets.tobytes())
            _spread(self._names, self._name_starts[places], bounds_of(lengths), names.tobytes())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def piece(self, which: Array) -> Piece:
        """Return documents by their places, which ascend."""
        import numpy as np

        sets = np.frombuffer(_gathered(self._sets, self._starts, which), dtype="<u8")
        return Piece(self.keys(which), sets, bounds_of(self.sizes[which]))

    def keys(self, which: Array) -> Array:
        """Return the keys of documents, uint64 (documents, bands)."""
        import numpy as np

        starts = np.arange(len(self.given) + 1, dtype=np.int64) * 8 * self.bands
        return np.frombuffer(_gathered(self._keys, starts, which), dtype="<u8").reshape(-1, self.bands)

    def name(self, place: int) -> bytes:
        """Return source and id of a document, as JSON."""
        begin, end = self._name_starts[place : place + 2].tolist()
        return os.pread(self._names.fileno(), end - begin, begin)

    def _sections(self) -> Iterator[list[Array]]:
        for shard, files in self._files:
            for i in range(files):
                with Sections(join(self._folder, f"{EVIDENCE}-{shard}-{i}")) as sections:
                    if data := sections.read(self._number):
                        yield unpacked(data, TYPES)


def _spread(file: IO[bytes], targets: Array, bounds: Array, data: bytes) -> None:
    """Write pieces of data, in the order of `bounds`, each to its own place in a file."""
    pairs = zip(targets.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    view = memoryview(data)
    for target, begin, end in pairs:
        if end > begin:
            os.pwrite(file.fileno(), view[begin:end], target)


def _gathered(file: IO[bytes], starts: Array, which: Array) -> bytearray:
    """Return pieces of a file, one behind the other; those that follow one another there are read at once."""
    import numpy as np

    found = bytearray()
    if len(which):
        cuts = np.flatnonzero(np.diff(which) != 1) + 1
        firsts, lasts = which[np.append(0, cuts)], which[np.append(cuts, len(which)) - 1]
        for begin, end in zip(starts[firsts].tolist(), starts[lasts + 1].tolist(), strict=True):
            found += os.pread(file.fileno(), end - begin, begin)
    return found
