"""Step 3, per shard, then whole: which row of values each document has; what is missing, surplus, or there twice.

``match/SHARD.places``  an int64 a document: its place in the index, -1 for none
``match/SHARD.json``    a `Matched`: written last
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from toolkit.align.index import SHOWN, Array, Index, IndexMade
from toolkit.align.values import hash_of
from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.documents import Rows
from toolkit.runs.executors import Report
from toolkit.runs.progress import Share
from toolkit.storage import json_files
from toolkit.storage.outputs import Output
from toolkit.storage.paths import join

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
