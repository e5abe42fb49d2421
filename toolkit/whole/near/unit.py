"""A unit put in order on local disk: what its documents are compared by, and their names."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import IO, Self

from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole.near.decision import Piece
from toolkit.whole.near.evidence import EVIDENCE, TYPES
from toolkit.whole.sections import Sections, bounds_of, unpacked


class OrderedUnit:
    """The documents of a unit in their order; a `decision.Unit`. A context manager that deletes what it has written.

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
