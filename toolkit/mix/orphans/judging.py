"""Finds the orphans of a whole mix from what was noted of its shards: out of core, in memory of a bounded size.

What is noted is spread over partitions by hash; each fits in memory, with several on local disk. Which copies somebody
stands for is found in rounds: first those of documents that stay, then copies of these, until a round finds nothing.
There are as many rounds as the longest chain of copies has documents, which is the number of sets at most where each
set names documents that it keeps itself.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.mix.orphans.copies import COPY, ELSEWHERE, GONE, ONLY
from toolkit.storage.reading import open_stored
from toolkit.storage.stores.local.scratch import open_scratch, remove_scratch

if TYPE_CHECKING:
    import numpy as np

MEMORY = 32 << 20
"""Bytes of a partition as noted; what is computed from them takes several times as much beside them."""

_READ = 1 << 16
"""Copies, or documents that stay, that are read at a time."""

EXAMPLES = 3

_KEPT, _GONE, _EDGES, _CANDIDATES = "kept", "gone", "edges", "candidates"
_FOUND, _NEW, _NEXT = "found", "new", "next"


class Noted(NamedTuple):
    """What was noted of a shard: paths of the files, and bytes in both together."""

    kept: str
    copies: str
    size: int


class Orphan(NamedTuple):
    """A document that nothing stands for: shard by index, row from 1, the rule and the set by index."""

    shard: int
    row: int
    rule: int
    set: int


class Found(NamedTuple):
    """The orphans: how many there are by shard, rule and set; and the first of them."""

    counts: Counter[tuple[int, int, int]]
    first: list[Orphan]


def judge(noted: Iterable[Noted | None], memory: int | None = None) -> Found:
    """Return the orphans of a mix.

    Args:
        noted: of each shard, in order; None of one without rules that drop copies.
        memory: bytes of a partition, `MEMORY` by default.
    """
    import numpy as np

    shards = list(noted)
    partitions = 1 + sum(each.size for each in shards if each) // (memory or MEMORY)
    record = np.dtype([("hash", "<u8"), ("of", "<u8"), ("row", "<u4"), ("rule", "<u2"), ("set", "u1"), ("flags", "u1")])
    assert record.itemsize == COPY.size
    candidate = np.dtype([("hash", "<u8"), ("shard", "<u4"), ("row", "<u4"), ("rule", "<u2"), ("set", "u1")])
    edge = np.dtype([("hash", "<u8"), ("of", "<u8"), ("flags", "u1")])
    hashes = np.dtype("<u8")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="toolkit-orphans-")) if partitions > 1 else ""
        held = _Held(partitions, folder)
        for number, each in enumerate(shards):
            if each is None:
                continue
            for kept in _blocks(each.kept, hashes):
                held.add(_KEPT, kept, kept)
            for copies in _blocks(each.copies, record):
                gone = copies["flags"] & GONE != 0
                held.add(_GONE, copies["hash"][gone], copies["hash"][gone])
                copies = copies[~gone]
                held.add(_EDGES, copies[["hash", "of", "flags"]].astype(edge), copies["of"])
                only = copies[copies["flags"] & ONLY != 0]
                rows = np.zeros(len(only), dtype=candidate)
                for name in ("hash", "row", "rule", "set"):
                    rows[name] = only[name]
                rows["shard"] = number
                held.add(_CANDIDATES, rows, rows["hash"])
        _resolve(held, edge, hashes)
        return _left(held, candidate, hashes)


def _resolve(held: "_Held", edge: "np.dtype[Any]", hashes: "np.dtype[Any]") -> None:
    """Note as found each document that is a copy of one that stays, or of one that is found."""
    new = _KEPT
    while True:
        found_some = False
        for part in range(held.partitions):
            edges = held.take(_EDGES, part, edge)
            met = _among(edges["of"], held.read(new, part, hashes))
            if new == _KEPT:
                met |= _elsewhere(edges, held.read(_GONE, part, hashes))
            held.put(_EDGES, part, edges[~met])
            found = edges["hash"][met]
            held.add(_FOUND, found, found)
            held.add(_NEXT, found, found)
            found_some |= bool(len(found))
        if not found_some:
            return
        for part in range(held.partitions):
            held.put(_NEW, part, held.take(_NEXT, part, hashes))
        new = _NEW


def _elsewhere(edges: "np.ndarray[Any, Any]", gone: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return which copies are of documents of other datasets: that are not here, or called as the copy itself."""
    away = (edges["hash"] == edges["of"]) | ~_among(edges["of"], gone)
    found: np.ndarray[Any, Any] = (edges["flags"] & ELSEWHERE != 0) & away
    return found


def _left(held: "_Held", candidate: "np.dtype[Any]", hashes: "np.dtype[Any]") -> Found:
    """Return the candidates that neither stay nor are found."""
    import numpy as np

    counts: Counter[tuple[int, int, int]] = Counter()
    first: list[Orphan] = []
    for part in range(held.partitions):
        rows = held.read(_CANDIDATES, part, candidate)
        for name in (_KEPT, _FOUND):
            rows = rows[~_among(rows["hash"], held.read(name, part, hashes))]
        rows = rows[
            np.lexsort((rows["row"], rows["shard"]))
        ]  # stable: of several rules that drop one the first is first
        again = (rows["row"][1:] == rows["row"][:-1]) & (rows["shard"][1:] == rows["shard"][:-1])
        rows = rows[~np.append(np.zeros(min(1, len(rows)), dtype=bool), again)]
        counts.update(zip(rows["shard"].tolist(), rows["rule"].tolist(), rows["set"].tolist(), strict=True))
        listed = zip(*(rows[:EXAMPLES][name].tolist() for name in ("shard", "row", "rule", "set")), strict=True)
        first = sorted([*first, *(Orphan(*each) for each in listed)])[:EXAMPLES]
    return Found(counts, first)


def _among(values: "np.ndarray[Any, Any]", known: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return which values are among known ones; `numpy.isin` takes many times as long over millions."""
    import numpy as np

    if not len(known):
        return np.zeros(len(values), dtype=bool)
    ordered = np.sort(known)
    places = np.searchsorted(ordered, values)
    found: np.ndarray[Any, Any] = ordered[np.minimum(places, len(ordered) - 1)] == values
    return found


def _blocks(path: str, kind: "np.dtype[Any]") -> "Iterator[np.ndarray[Any, Any]]":
    """Yield the records of a file, some at a time."""
    import numpy as np

    with open_stored(path) as stream:
        while data := _read(stream.read, _READ * kind.itemsize):
            yield np.frombuffer(data, dtype=kind)


def _read(read: Callable[[int], bytes], size: int) -> bytes:
    """Return so many bytes; fewer at the end alone."""
    data = read(size)
    while data and len(data) < size and (more := read(size - len(data))):
        data += more
    return data


class _Held:
    """Records under names, in partitions by hash: in memory if there is one, else in files of a folder."""

    def __init__(self, partitions: int, folder: str) -> None:
        self.partitions = partitions
        self._folder = folder
        self._memory: dict[str, list[bytes]] = {}

    def add(self, name: str, rows: "np.ndarray[Any, Any]", hashes: "np.ndarray[Any, Any]") -> None:
        """Append rows, each to the partition of its hash."""
        import numpy as np

        if self.partitions == 1:
            self._append(name, 0, rows.tobytes())
            return
        of = (hashes % np.uint64(self.partitions)).astype(np.int64)
        for part in np.unique(of).tolist():
            self._append(name, part, rows[of == part].tobytes())

    def put(self, name: str, part: int, rows: "np.ndarray[Any, Any]") -> None:
        """Make these the rows of a partition."""
        self._clear(name, part)
        self._append(name, part, rows.tobytes())

    def read(self, name: str, part: int, kind: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
        """Return the rows of a partition."""
        import numpy as np

        if not self._folder:
            return np.frombuffer(b"".join(self._memory.get(name, ())), dtype=kind)
        path = self._path(name, part)
        return np.fromfile(path, dtype=kind) if os.path.exists(path) else np.zeros(0, dtype=kind)

    def take(self, name: str, part: int, kind: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
        """Return the rows of a partition, which then has none."""
        rows = self.read(name, part, kind)
        self._clear(name, part)
        return rows

    def _append(self, name: str, part: int, data: bytes) -> None:
        if not self._folder:
            self._memory.setdefault(name, []).append(data)
            return
        with open_scratch(self._path(name, part), "ab") as file:
            file.write(data)

    def _clear(self, name: str, part: int) -> None:
        if not self._folder:
            self._memory.pop(name, None)
        else:
            remove_scratch(self._path(name, part))

    def _path(self, name: str, part: int) -> str:
        return os.path.join(self._folder, f"{name}-{part}")
