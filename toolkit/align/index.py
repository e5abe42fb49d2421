"""Step 2, whole: the ids of all inputs, merged by ranges of their hashes into one sorted index; and looking up in it.

``index.hi index.lo index.at index.row index.size index.input``  a column each, sorted by hash
``index.json``                                                   an `IndexMade`: written last
"""

from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np

from toolkit.align.values import KEY, InputRead
from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError
from toolkit.runs.executors import Report
from toolkit.storage import json_files
from toolkit.storage.outputs import Output
from toolkit.storage.paths import join, lacking

MERGED = 1 << 22
"""Ids that are merged at a time, about."""

SHOWN = 5
"""Ids of a kind that are named."""

Array = np.ndarray[Any, np.dtype[Any]]


class IndexToMake(ConfigStruct):
    """The index of all inputs that have been read."""

    folder: str
    inputs: list[InputRead]


class IndexMade(ConfigStruct):
    """The record of an index.

    Attributes:
        made_of: digests of the inputs, in order.
        ids: distinct ones.
        repeated: rows whose id another row before them has.
        examples: some of these, each with both places.
    """

    made_of: list[str]
    ids: int
    repeated: int
    examples: list[str]


def make_index(work: IndexToMake, report: Report) -> IndexMade:
    """Write the index, unless that has been done; of rows with one id the first counts."""
    made_of = [f"{each.content} {each.made_of} {each.rows}" for each in work.inputs]
    done = json_files.load(join(work.folder, "index.json"), IndexMade)
    if done and done.made_of == made_of:
        return done
    runs = [
        _mapped(path)
        for number, each in enumerate(work.inputs)
        for path in (join(work.folder, "inputs", f"{number:06d}.{run:04d}.keys") for run in range(each.runs))
    ]
    ranges = max(1, -(-sum(map(len, runs)) // MERGED))
    width = -(-(1 << 64) // ranges)
    ids = repeated = 0
    examples: list[str] = []
    with ExitStack() as stack:
        columns = {name: stack.enter_context(Output(join(work.folder, f"index.{name}"))) for name in KEY.names or ()}
        for i in range(ranges):
            begin, end = np.uint64(i * width), min((i + 1) * width, 1 << 64)
            pieces = [_between(run, begin, end) for run in runs]
            keys = np.concatenate(pieces) if pieces else np.empty(0, dtype=KEY)
            keys = keys[np.lexsort((keys["row"], keys["input"], keys["lo"], keys["hi"]))]
            again = np.zeros(len(keys), dtype=bool)
            again[1:] = (keys["hi"][1:] == keys["hi"][:-1]) & (keys["lo"][1:] == keys["lo"][:-1])
            for place in np.flatnonzero(again)[: SHOWN - len(examples)]:
                examples.append(_both(work, keys[place - 1], keys[place]))
            repeated += int(again.sum())
            keys = keys[~again]
            ids += len(keys)
            for name, out in columns.items():
                out.write(np.ascontiguousarray(keys[name]).tobytes())
    made = IndexMade(made_of=made_of, ids=ids, repeated=repeated, examples=examples)
    json_files.save(join(work.folder, "index.json"), made)
    return made


def _mapped(path: str) -> Array:
    try:
        return np.memmap(path, dtype=KEY, mode="r")
    except OSError as error:
        got = lacking(path) if isinstance(error, FileNotFoundError) else error.strerror
        message = (
            f"expected the ids that have just been read, got {got}; does another program write in "
            f"this folder? Run again"
        )
        raise DataError(message, path=path) from None


def _between(run: Array, begin: np.uint64, end: int) -> Array:
    hi = run["hi"]
    last = len(run) if end >= 1 << 64 else int(np.searchsorted(hi, np.uint64(end)))
    return np.asarray(run[int(np.searchsorted(hi, begin)) : last])


def _both(work: IndexToMake, first: Any, second: Any) -> str:
    paths = [work.inputs[int(key["input"])].path for key in (first, second)]
    with open(join(work.folder, "inputs", f"{int(second['input']):06d}.rows"), "rb") as rows:
        rows.seek(int(second["at"]))
        *names, _ = msgspec.json.decode(rows.read(int(second["size"])))
    return f"{names[-1]!r} in {paths[0]}:{int(first['row'])} and {paths[1]}:{int(second['row'])}"


class Index:
    """The ids of all inputs.

    Args:
        folder: of the index.
    """

    def __init__(self, folder: str) -> None:
        made = json_files.load_strictly(join(folder, "index.json"), IndexMade)
        assert made is not None
        self._folder, self.ids = folder, made.ids
        types = {name: KEY[name] for name in KEY.names or ()}
        self._columns: dict[str, Array] = {
            name: np.memmap(join(folder, f"index.{name}"), dtype=type_, mode="r") if made.ids else np.empty(0, type_)
            for name, type_ in types.items()
        }
        self._rows: dict[int, Array] = {}

    def find(self, hashes: bytes) -> Array:
        """Return the places in the index of ids, by their hashes of 16 bytes, one behind the other; -1 for none."""
        halves = np.frombuffer(hashes, dtype=">u8").astype("<u8").reshape(-1, 2)
        hi, lo = self._columns["hi"], self._columns["lo"]
        found = np.searchsorted(hi, halves[:, 0])
        places = np.full(len(found), -1, dtype="<i8")
        if len(hi):
            inside = np.minimum(found, len(hi) - 1)
            is_same = (found < len(hi)) & (hi[inside] == halves[:, 0])
            exact = is_same & (lo[inside] == halves[:, 1])
            places[exact] = inside[exact]
            for i in np.flatnonzero(is_same & ~exact):  # half of the hash is that of another id
                others = range(int(inside[i]), int(np.searchsorted(hi, halves[i, 0], side="right")))
                places[i] = next((place for place in others if lo[place] == halves[i, 1]), -1)
        return places

    def rows(self, places: Array) -> list[bytes]:
        """Return the lines of rows at places, in their order; read as they lie on disk."""
        order = np.lexsort((self._columns["at"][places], self._columns["input"][places]))
        found: list[bytes] = [b""] * len(places)
        for i in order:
            place = places[i]
            number, at, size = (int(self._columns[name][place]) for name in ("input", "at", "size"))
            if number not in self._rows:
                path = join(self._folder, "inputs", f"{number:06d}.rows")
                self._rows[number] = np.memmap(path, dtype=np.uint8, mode="r")
            found[i] = self._rows[number][at : at + size].tobytes()
        return found

    def name(self, place: int) -> str:
        """Return an id."""
        *names, _ = msgspec.json.decode(self.rows(np.array([place]))[0])
        return str(names[-1])
