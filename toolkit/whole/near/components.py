"""Components of a graph that is larger than memory: of each number that a pair has, the least one it is connected with.

Numbers are cut into ranges, so that there is room for a range at a time. Downwards, a range takes the pairs whose
greater number it has, and unites what it can. What is left of it are pairs of lower numbers, at most as many as it was
given, which lower ranges take. Upwards, a range knows all its components, and tells higher ones those that they asked
for. Pairs, questions and answers wait in files on the local disk.

Source: the contraction of vertices in order, as in Chiang et al., External-memory graph algorithms (1995), 5.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

from toolkit.storage.stores.local.scratch import open_scratch, remove_scratch
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s

MOST_RANGES = 256
_BYTES = 300  # of memory a number of a range
_CHUNK = 1 << 16  # pairs that are read at a time

_PAIR = ("<i8", 2)


class United(NamedTuple):
    """What has been united of a range.

    Attributes:
        parents: int64, of each number, from `begin` on, one of its component that is not greater.
        below: int64, of each that is its own parent, a number below the range that it is connected with; -1 if none.
        seen: uint8, 1 for numbers that pairs have.
        begin: of the range.
    """

    parents: Int64s
    below: Int64s
    seen: UInt8s
    begin: int


_contract = Compiled("toolkit.whole.near.kernel:contract", United, "int64* int64 int64* int64*")


class Ranges(NamedTuple):
    """Ranges of numbers, from 0 on.

    Attributes:
        total: numbers.
        size: of a range; the last may be smaller.
    """

    total: int
    size: int

    @classmethod
    def of(cls, total: int, memory: int) -> "Ranges":
        """Return those for which there is room."""
        return cls(total, max(1, memory // _BYTES, -(-total // MOST_RANGES)))

    @property
    def number(self) -> int:
        return -(-self.total // self.size)


class Bins:
    """Rows of one type in files on the local disk, one file a bin. A context manager, which deletes them.

    Args:
        type_: of a row, as numpy has it.
    """

    def __init__(self, type_: Any) -> None:
        import numpy as np

        self._type = np.dtype(type_)

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="toolkit-")  # deleted on leaving
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def add(self, rows: Array, bins: Array) -> None:
        """Add rows, each to its bin."""
        import numpy as np

        if not len(rows):
            return
        order = np.argsort(bins, kind="stable")
        rows, bins = rows[order], bins[order]
        begins = np.flatnonzero(np.append(True, bins[1:] != bins[:-1]))
        for bin_, part in zip(bins[begins].tolist(), np.split(rows, begins[1:]), strict=True):
            with open_scratch(self._path(bin_), "ab") as stream:
                stream.write(np.ascontiguousarray(part).tobytes())

    def take(self, bin_: int, rows: int = _CHUNK) -> Iterator[Array]:
        """Yield the rows of a bin in the order in which they came, some at a time; its file is gone then."""
        import numpy as np

        path = self._path(bin_)
        if not os.path.exists(path):
            return
        with open(path, "rb") as stream:
            while data := stream.read(self._type.itemsize * rows):
                yield np.frombuffer(data, dtype=self._type)
        remove_scratch(path)

    def _path(self, bin_: int) -> str:
        return os.path.join(self._folder.name, str(bin_))


def components(pairs: Iterable[Array], ranges: Ranges) -> Iterator[tuple[Array, Array]]:
    """Yield of each range the numbers that pairs have, ascending, and the least number each is connected with.

    Args:
        pairs: int64 (pairs, 2), some at a time.
        ranges: of the numbers.
    """
    with ExitStack() as stack:
        edges, asked, told = (stack.enter_context(Bins(_PAIR)) for _ in range(3))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="toolkit-"))
        for part in pairs:
            _send(part, edges, ranges)
        for number in reversed(range(ranges.number)):
            _down(number, ranges, edges, asked, os.path.join(folder, str(number)))
        for number in range(ranges.number):
            yield _up(number, ranges, asked, told, os.path.join(folder, str(number)))


def _send(pairs: Array, edges: Bins, ranges: Ranges) -> None:
    """Give pairs to the ranges of their greater numbers."""
    import numpy as np

    pairs = np.sort(pairs, axis=1)[:, ::-1]
    edges.add(pairs, pairs[:, 0] // ranges.size)


def _down(number: int, ranges: Ranges, edges: Bins, asked: Bins, path: str) -> None:
    """Unite what a range has; note the first number of each of its components there, and ask for those below."""
    import numpy as np

    begin = number * ranges.size
    size = min(ranges.total - begin, ranges.size)
    parents, below = np.arange(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    seen = np.zeros(size, dtype=np.uint8)
    for part in edges.take(number):
        left = np.empty((len(part), 2), dtype=np.int64)
        count = np.zeros(1, dtype=np.int64)
        _contract(United(parents, below, seen, begin), np.ascontiguousarray(part), len(part), left, count)
        _send(np.unique(left[: count[0]], axis=0), edges, ranges)
    while not np.array_equal(parents, above := parents[parents]):
        parents = above
    roots = np.flatnonzero((below >= 0) & (parents == np.arange(size)))
    asked.add(np.stack([below[roots], roots + begin], axis=1), below[roots] // ranges.size)
    with open_scratch(path) as stream:
        stream.write(parents.tobytes() + seen.tobytes())


def _up(number: int, ranges: Ranges, asked: Bins, told: Bins, path: str) -> tuple[Array, Array]:
    """Return the numbers of a range, and their components; tell those who asked."""
    import numpy as np

    begin = number * ranges.size
    with open(path, "rb") as stream:
        data = stream.read()
    remove_scratch(path)
    parents = np.frombuffer(data, dtype=np.int64, count=len(data) // 9)
    seen = np.frombuffer(data, dtype=np.uint8, offset=8 * len(parents)).astype(bool)
    labels = np.arange(begin, begin + len(parents))
    for part in told.take(number):
        labels[part[:, 0] - begin] = part[:, 1]
    labels = labels[parents]
    for part in asked.take(number):
        below = part[:, 0] - begin
        seen[below] = True
        told.add(np.stack([part[:, 1], labels[below]], axis=1), part[:, 1] // ranges.size)
    found = np.flatnonzero(seen)
    return found + begin, labels[found]
