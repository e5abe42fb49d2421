"""Steps 2 and 3: one sorted index of the ids of all inputs, and which row of values each document has.

``match/SHARD.places``  an int64 a document: its place in the index, -1 for none
``match/SHARD.json``    a `Matched`: written last

Step 2, whole: the ids of all inputs, merged by ranges of their hashes into one sorted index; and looking up in it.

``index.hi index.lo index.at index.row index.size index.input``  a column each, sorted by hash
``index.json``                                                   an `IndexMade`: written last
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np

from toolkit.align.values import KEY, InputRead, hash_of
from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.documents import Rows
from toolkit.errors import DataError
from toolkit.runs.executors import Report
from toolkit.runs.progress import Share
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


BLOCK = 1 << 14
"""Documents that are looked up at a time."""


class Named(msgspec.Struct):
    """The names of a document; its text is not looked at."""

    id: str
    source: str


NAMED = msgspec.json.Decoder(Named)


class ShardToMatch(ConfigStruct):
    """A shard whose documents are looked up.

    Attributes:
        by_source: whether ids count together with sources.
        by_shard: whether rows of values may name shards, or places in these.
        made_of: digests of the index.
    """

    dataset: Dataset
    shard: str
    folder: str
    by_source: bool
    by_shard: bool
    made_of: list[str]
    limit: int

    @property
    def stem(self) -> str:
        return join(self.folder, "match", self.shard)


class Matched(ConfigStruct):
    """The record of a shard whose documents have been looked up.

    Attributes:
        content: digest of the documents.
        made_of: digests of the index.
        documents: in the shard.
        missing: of them, those without values.
        examples: some of these, with their places.
    """

    shard: str
    content: str
    made_of: list[str]
    documents: int
    missing: int
    examples: list[str]


def named_blocks(dataset: Dataset, shard: str, limit: int) -> Iterator[list[Named]]:
    """Yield the names of a shard's documents, in blocks."""
    path = dataset.shard_path(shard)
    with dataset.lines(shard, limit) as lines:
        block: list[Named] = []
        for row, _ in Rows(lines, NAMED, path):
            block.append(row)
            if len(block) == BLOCK:
                yield block
                block = []
        if block:
            yield block


def match_shard(work: ShardToMatch, report: Report) -> Matched:
    """Look up the documents of a shard, unless that has been done."""
    state = row_index.ensure(work.dataset, work.shard, work.limit)
    done = json_files.load(work.stem + ".json", Matched)
    if done and (done.content, done.made_of) == (state.content, work.made_of):
        report(done.documents, 0)
        return done
    index = Index(work.folder)
    path = work.dataset.shard_path(work.shard)
    documents = missing = 0
    examples: list[str] = []
    told = Share(report, state.rows, state.size)
    with Output(work.stem + ".places") as out:
        for block in named_blocks(work.dataset, work.shard, work.limit):
            places = _find(work, index, block, documents)
            out.write(places.tobytes())
            without = np.flatnonzero(places < 0)
            missing += len(without)
            examples += [f"{block[i].id!r} in {path}:{documents + i + 1}" for i in without[: SHOWN - len(examples)]]
            documents += len(block)
            told(len(block))
    made = Matched(
        shard=work.shard,
        content=state.content,
        made_of=work.made_of,
        documents=documents,
        missing=missing,
        examples=examples,
    )
    json_files.save(work.stem + ".json", made)
    return made


def _find(work: ShardToMatch, index: Index, block: list[Named], before: int) -> Array:
    """Return the places in the index of documents; of rows that name a shard, those of its documents come first."""
    names = [(row.source if work.by_source else None, row.id) for row in block]
    places = index.find(b"".join(hash_of(*name) for name in names))
    shard = work.dataset.file_of(work.shard)
    own = (shard, *(f"{shard}:{row}" for row in range(before + 1, before + len(block) + 1)))
    for shards in ([own[0]] * len(block), own[1:]) if work.by_shard else ():
        found = index.find(b"".join(hash_of(*name, of) for name, of in zip(names, shards, strict=True)))
        places = np.where(found < 0, places, found)
    return places


class Sums(ConfigStruct):
    """What documents and values have of each other, with some examples of each kind.

    Attributes:
        counts: documents, rows of values, missing, surplus, repeated ids among values, shared among documents.
        examples: by kind.
    """

    counts: dict[str, int]
    examples: dict[str, list[str]]


class ToSum(ConfigStruct):
    """All shards that have been matched."""

    folder: str
    index: IndexMade
    matched: list[Matched]


def sum_up(work: ToSum, report: Report) -> Sums:
    """Return what documents and values have of each other, over all shards."""
    index = Index(work.folder)
    seen = _Seen(work.folder, index.ids)
    shared = 0
    of_shared: list[str] = []
    for each in work.matched:
        places = read_places(work.folder, each.shard)
        for start in range(0, len(places), BLOCK):
            found = places[start : start + BLOCK]
            found = found[found >= 0]
            distinct, first = np.unique(found, return_index=True)
            again = np.ones(len(found), dtype=bool)
            again[first] = seen.marked(distinct)
            shared += int(again.sum())
            of_shared += [repr(index.name(int(p))) for p in found[again][: SHOWN - len(of_shared)]]
            seen.mark(distinct)
    surplus, places_of_surplus = seen.unmarked()
    counts = {
        "documents": sum(each.documents for each in work.matched),
        "ids": work.index.ids,
        "missing": sum(each.missing for each in work.matched),
        "surplus": surplus,
        "repeated": work.index.repeated,
        "shared": shared,
    }
    examples = {
        "missing": [name for each in work.matched for name in each.examples][:SHOWN],
        "surplus": [repr(index.name(place)) for place in places_of_surplus],
        "repeated": work.index.examples,
        "shared": list(dict.fromkeys(of_shared)),
    }
    return Sums(counts=counts, examples=examples)


def read_places(folder: str, shard: str) -> Array:
    """Return the places in the index of a shard's documents, not held in memory."""
    path = join(folder, "match", shard + ".places")
    matched = json_files.load_strictly(join(folder, "match", shard + ".json"), Matched)
    return np.memmap(path, dtype="<i8", mode="r") if matched and matched.documents else np.empty(0, dtype="<i8")


class _Seen:
    """Marks of places in the index, a byte each, on disk."""

    def __init__(self, folder: str, ids: int) -> None:
        self._marks: Array = np.empty(0, dtype=bool)
        if ids:
            self._marks = np.memmap(join(folder, "seen"), dtype=bool, mode="w+", shape=(ids,))

    def marked(self, places: Array) -> Array:
        return np.asarray(self._marks[places])

    def mark(self, places: Array) -> None:
        self._marks[places] = True

    def unmarked(self) -> tuple[int, Sequence[int]]:
        """Return how many places have no mark, and the first of them."""
        count = 0
        first: list[int] = []
        for start in range(0, len(self._marks), 1 << 24):
            without = np.flatnonzero(~self._marks[start : start + (1 << 24)])
            count += len(without)
            first += [start + int(place) for place in without[: SHOWN - len(first)]]
        return count, first
