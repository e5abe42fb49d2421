"""What was found of the items of evaluations: by shard, then of all, by benchmark and item."""

from collections.abc import Iterator
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.alignment import MAX_ROW
from toolkit.errors import DataError, amount
from toolkit.runs.executors import Report, Task
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import join
from toolkit.storage.reading import Lines
from toolkit.text.kernels.signatures import Array
from toolkit.whole.kind import configured
from toolkit.whole.records import SignedShard
from toolkit.whole.sealed import read_sealed

GRAMS, ITEMS = "grams.bin", "items.jsonl.gz"
"""Files of a shard: numbers of the n-grams that are in it, int64, sorted; a `SeenItem` for each item."""

REPORT = "report.jsonl.gz"
"""File of the fates: an `ItemFound` for each item of which something is in the documents."""

WHERE = 5
"""Documents that are listed of an item."""


class SeenItem(msgspec.Struct, array_like=True):
    """An item in a shard: its number, documents that have n-grams of it, the first ones (row from 1, and share)."""

    item: int
    documents: int
    share: float
    rows: list[tuple[int, float]]


class Seen:
    """What was seen of an index in a shard, in memory that depends on the index alone.

    Args:
        items: how many there are.
        grams: likewise.
    """

    def __init__(self, items: int, grams: int) -> None:
        import numpy as np

        self._grams = np.zeros(grams, dtype=bool)
        self._documents = np.zeros(items, dtype=np.int64)
        self._shares = np.zeros(items)
        self._rows: dict[int, list[tuple[int, float]]] = {}

    def add(self, row: int, items: Array, shares: Array, grams: Array) -> None:
        """Add a document: its row, numbers of items, the share of each, numbers of n-grams."""
        import numpy as np

        self._grams[grams] = True
        fresh = items[self._documents[items] < WHERE]
        by_item = dict(zip(items.tolist(), shares.tolist(), strict=True))
        for item in fresh.tolist():
            self._rows.setdefault(item, []).append((row, round(by_item[item], 4)))
        self._documents[items] += 1
        self._shares[items] = np.maximum(self._shares[items], shares)

    def grams(self) -> bytes:
        """Return the numbers of the n-grams."""
        import numpy as np

        return np.flatnonzero(self._grams).astype("<i8").tobytes()

    def items(self) -> Iterator[tuple[int, int, float, list[tuple[int, float]]]]:
        """Yield what `SeenItem` has of each item, in order."""
        for item in sorted(self._rows):
            yield item, int(self._documents[item]), round(float(self._shares[item]), 4), self._rows[item]


class Place(msgspec.Struct):
    """A document: shard, row from 1, and the share of the item that it has."""

    shard: str
    row: int
    share: float


class ItemFound(msgspec.Struct):
    """An item of which there is something in the documents.

    Attributes:
        benchmark, item: its names.
        words: of its texts.
        ngrams: different ones.
        found: of these, those in any document.
        share: the largest part of them in one document.
        documents: that have any.
        where: the first of these.
    """

    benchmark: str
    item: str
    words: int
    ngrams: int
    found: int
    share: float
    documents: int
    where: list[Place]


class ToReport(ConfigStruct):
    """The shards to report on.

    Attributes:
        kind: options of the kind.
        shards: signed.
        folder: of the fates.
    """

    kind: dict[str, Any]
    shards: list[SignedShard]
    folder: str


def task(work: ToReport) -> Task[ToReport]:
    return Task("report", work)


def make(work: ToReport, report: Report) -> tuple[dict[str, int], list[str]]:
    """Write the report; return counts and sentences for people.

    Raises:
        DataError: if the items have changed since shards were held against them.
    """
    import numpy as np

    kind: Any = configured("contamination", work.kind)
    digest = kind.digest()
    for signed in work.shards:
        if signed.record.details != digest:
            raise DataError(
                "expected items that do not change while documents are compared with them, got some "
                "that have changed; run again",
                path=signed.path(ITEMS),
            )
    index = kind.index()
    grams = np.zeros(len(index.lengths), dtype=bool)
    documents = np.zeros(len(index.names), dtype=np.int64)
    shares = np.zeros(len(index.names))
    where: dict[int, list[Place]] = {}
    for signed in work.shards:
        grams[np.frombuffer(read_sealed(signed.path(GRAMS)), dtype="<i8")] = True
        with Lines(signed.path(ITEMS), MAX_ROW) as lines:
            for line in lines:
                seen = msgspec.json.decode(line, type=SeenItem)
                listed = where.setdefault(seen.item, [])
                listed += [Place(signed.shard, *each) for each in seen.rows[: WHERE - len(listed)]]
                documents[seen.item] += seen.documents
                shares[seen.item] = max(shares[seen.item], seen.share)
    found = np.bincount(index.items[np.repeat(grams, np.diff(index.postings))], minlength=len(index.names))
    path = join(work.folder, REPORT)
    with RowOutput(path) as output:
        for item in sorted(where):
            benchmark, name = index.names[item]
            row = ItemFound(
                benchmark=benchmark,
                item=name,
                words=int(index.words[item]),
                ngrams=int(index.sizes[item]),
                found=int(found[item]),
                share=float(shares[item]),
                documents=int(documents[item]),
                where=where[item],
            )
            output.write_row(msgspec.json.encode(row))
    contaminated = sum(signed.record.counts["contaminated"] for signed in work.shards)
    notes = [_note(index, name, found, shares) for name in dict.fromkeys(benchmark for benchmark, _ in index.names)]
    return {"contaminated": contaminated, "items": len(where)}, [*notes, f"by item, and where: {path}"]


def _note(index: Any, benchmark: str, found: Array, shares: Array) -> str:
    """Return what was found of a benchmark."""
    import numpy as np

    mine = np.array([name == benchmark for name, _ in index.names])
    sizes, had = index.sizes[mine], found[mine]
    whole, half = int((shares[mine] >= 1).sum()), int((shares[mine] >= 0.5).sum())
    text = f"{benchmark}: {int((had > 0).sum()):,} of {amount(len(sizes), 'item')} found"
    text += f" ({half:,} by half or more in one document, {whole:,} whole)"
    if len(sizes) and sizes.sum():
        text += f", {100 * had.sum() / sizes.sum():.1f} % of their n-grams"
    if short := int((sizes == 0).sum()):
        text += f"; {amount(short, 'item')} not looked for, with fewer words than `min_words`"
    return text


__all__ = ["GRAMS", "ITEMS", "REPORT", "Seen", "SeenItem", "ToReport", "make", "task"]
