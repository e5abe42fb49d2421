"""Contamination: documents, and spans of them, that have n-grams of evaluation items.

Source: T. Brown et al., Language Models are Few-Shot Learners, 2020, appendix C: 13-grams of words in lower case
without punctuation; found over the whole document, so that no line break hides one.

What was found of the items of evaluations: by shard, then of all, by benchmark and item.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.alignment import MAX_ROW
from toolkit.data.documents import Document, Span
from toolkit.errors import ConfigError, DataError, amount
from toolkit.exchange.checksummed import read_sealed
from toolkit.execution.executors import Report, Task
from toolkit.lazy_numpy import np
from toolkit.session import cached
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import join
from toolkit.storage.reading import Lines
from toolkit.text.batch import Batch
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.kind import Decisions, Files, Kind, ResolveJob, Signer, TextBlock, configured
from toolkit.whole_corpus.kinds.contamination.items import Index, Normalised, digest_of, files_of, items_of
from toolkit.whole_corpus.records import NumberedShards, SignedShard

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


class IndexMatches:
    """Matches of an index in a shard, in bounded memory.

    Args:
        items: number of items of the index.
        grams: number of its n-grams.
    """

    def __init__(self, items: int, grams: int) -> None:
        self._grams = np.zeros(grams, dtype=bool)
        self._documents = np.zeros(items, dtype=np.int64)
        self._shares = np.zeros(items)
        self._rows: dict[int, list[tuple[int, float]]] = {}

    def add(self, row: int, items: Array, shares: Array, grams: Array) -> None:
        """Add a document: its row, numbers of items, the share of each, numbers of n-grams."""
        self._grams[grams] = True
        fresh = items[self._documents[items] < WHERE]
        by_item = dict(zip(items.tolist(), shares.tolist(), strict=True))
        for item in fresh.tolist():
            self._rows.setdefault(item, []).append((row, round(by_item[item], 4)))
        self._documents[items] += 1
        self._shares[items] = np.maximum(self._shares[items], shares)

    def grams(self) -> bytes:
        """Return the numbers of the n-grams."""
        return np.flatnonzero(self._grams).astype("<i8").tobytes()

    def items(self) -> Iterator[tuple[int, int, float, list[tuple[int, float]]]]:
        """Yield the fields of a `SeenItem` for each item, in order."""
        for item in sorted(self._rows):
            yield item, int(self._documents[item]), round(float(self._shares[item]), 4), self._rows[item]


class Place(msgspec.Struct):
    """A document: shard, row from 1, and the share of the item that it has."""

    shard: str
    row: int
    share: float


class ItemFound(msgspec.Struct):
    """A benchmark item with n-grams in the documents.

    Attributes:
        benchmark, item: Names of the benchmark and the item.
        words: Words of its texts.
        ngrams: Distinct n-grams of its texts.
        found: Distinct n-grams in any document.
        share: Largest share of them in one document.
        documents: Documents with at least one.
        where: First of these documents.
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
        folder: Folder of the fates.
    """

    kind: dict[str, Any]
    shards: NumberedShards
    folder: str


def _make_report(work: ToReport, report: Report) -> tuple[dict[str, int], list[str]]:
    """Write the report; return counts and sentences for people.

    Raises:
        DataError: if the items have changed since shards were held against them.
    """
    kind: Any = configured("contamination", work.kind)
    digest = kind.digest()
    contaminated = 0
    for signed in work.shards.load():
        contaminated += signed.record.counts["contaminated"]
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
    for signed in work.shards.load():
        grams[np.frombuffer(read_sealed(signed.path(GRAMS)), dtype="<i8")] = True
        with Lines(signed.path(ITEMS), MAX_ROW) as lines:
            for line in lines:
                seen_item = msgspec.json.decode(line, type=SeenItem)
                listed = where.setdefault(seen_item.item, [])
                listed += [Place(signed.shard, *row) for row in seen_item.rows[: WHERE - len(listed)]]
                documents[seen_item.item] += seen_item.documents
                shares[seen_item.item] = max(shares[seen_item.item], seen_item.share)
    result = np.bincount(index.items[np.repeat(grams, np.diff(index.postings))], minlength=len(index.names))
    path = join(work.folder, REPORT)
    with RowOutput(path) as output:
        for item in sorted(where):
            benchmark, name = index.names[item]
            row = ItemFound(
                benchmark=benchmark,
                item=name,
                words=int(index.words[item]),
                ngrams=int(index.sizes[item]),
                found=int(result[item]),
                share=float(shares[item]),
                documents=int(documents[item]),
                where=where[item],
            )
            output.write_row(msgspec.json.encode(row))
    notes = [_note(index, name, result, shares) for name in dict.fromkeys(benchmark for benchmark, _ in index.names)]
    return {"contaminated": contaminated, "items": len(where)}, [*notes, f"by item, and where: {path}"]


def _note(index: Any, benchmark: str, counts: Array, shares: Array) -> str:
    """Return a sentence about the matches of a benchmark."""
    mine = np.array([name == benchmark for name, _ in index.names])
    sizes, had = index.sizes[mine], counts[mine]
    whole, half = int((shares[mine] >= 1).sum()), int((shares[mine] >= 0.5).sum())
    text = f"{benchmark}: {int((had > 0).sum()):,} of {amount(len(sizes), 'item')} found"
    text += f" ({half:,} by half or more in one document, {whole:,} whole)"
    if len(sizes) and sizes.sum():
        text += f", {100 * had.sum() / sizes.sum():.1f} % of their n-grams"
    if short := int((sizes == 0).sum()):
        text += f"; {amount(short, 'item')} not looked for, with fewer words than `min_words`"
    return text


__all__ = ["GRAMS", "ITEMS", "REPORT", "IndexMatches", "SeenItem", "ToReport", "make", "task"]


LISTED = 100
"""Items that are listed of a document; `found` counts all."""

VALUES = "values.jsonl.gz"

_ENCODER = msgspec.json.Encoder()


class FoundItem(msgspec.Struct, frozen=True):
    """A benchmark item with n-grams in a document.

    Attributes:
        benchmark: Name of the benchmark's file or folder.
        item: Name of the item there.
        share: Share of the item's distinct n-grams in the document.
    """

    benchmark: str
    item: str
    share: float


class Contaminated(msgspec.Struct, frozen=True):
    """The n-grams of evaluation items in a document.

    Attributes:
        contaminated: True if there are any.
        share: Largest share of an item's n-grams in the document; 0 without any.
        chars: Code points of the spans.
        found: Number of items with n-grams in the document.
        items: These items, the largest share first, at most 100.
        spans: Stretches of n-grams that overlap; the score is the largest share of their items.
    """

    contaminated: bool
    share: float
    chars: int
    found: int
    items: list[FoundItem]
    spans: list[Span]


_NONE = Contaminated(contaminated=False, share=0.0, chars=0, found=0, items=[], spans=[])
_NOTHING = _ENCODER.encode(_NONE)


class Contamination(Kind, kw_only=True):
    """Documents with n-grams of evaluation items.

    Attributes:
        against: files of items (JSONL, Parquet), globs, or folders of texts
        ngram: words of an n-gram
        fields: the fields of an item with its texts, or lists of texts; dotted paths (text)
        id: the field that names an item; by default its row
        min_words: a text shorter than an n-gram is looked for as a whole if it has at least this many words
    """

    NEUTRAL: ClassVar[frozenset[str]] = frozenset({"against"})

    against: list[str]
    ngram: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 13
    fields: list[str] = msgspec.field(default_factory=lambda: ["text"])
    id: str | None = None
    min_words: Annotated[int, msgspec.Meta(ge=1)] = 4

    def check(self) -> None:
        if not self.against or not self.fields:
            raise ConfigError(f"expected at least one of {'fields' if self.against else 'against'}, got none")
        files_of(self.against)

    def value_type(self) -> Any:
        return Contaminated

    def facts(self) -> dict[str, Any]:
        return {"items": self.digest()}

    def digest(self) -> str:
        """Return a digest of the items as they are now."""
        return digest_of(files_of(self.against))

    def index(self) -> Index:
        """Return the n-grams of the items; made once a process, the same in all of them."""
        return _index(self.digest(), tuple(self.against), tuple(self.fields), self.id, self.ngram, self.min_words)

    def signer(self, files: Files) -> Signer:
        return _ItemSigner(self, files)

    def resolve(self, work: ResolveJob) -> Decisions:
        result = ToReport(kind=msgspec.to_builtins(self), shards=work.all(), folder=work.folder)
        (output,) = work.run("writing the report of what was found", _make_report, [Task("report", result)])
        counts, notes = output
        return Decisions({shard.shard: shard.record.files[VALUES].sha256 for shard in work.shards}, counts, notes)

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        with Lines(signed.path(VALUES), MAX_ROW) as lines:
            yield from map(msgspec.Raw, lines)


@cached(2)
def _index(
    digest: str, against: tuple[str, ...], fields: tuple[str, ...], id_field: str | None, ngram: int, min_words: int
) -> Index:
    return Index(items_of(files_of(against), fields, id_field), ngram, min_words)


class _ItemSigner(Signer):
    """Writes the values of documents, and the matches of items."""

    kind: Contamination

    def __init__(self, kind: Contamination, files: Files) -> None:
        super().__init__(kind, files)
        self._index = kind.index()
        self._digest = kind.digest()
        self._out = RowOutput(files.path(VALUES))
        files.add(VALUES, self._out)
        self._matches = IndexMatches(len(self._index.sizes), len(self._index.lengths))
        self._documents = 0

    def add(self, block: TextBlock) -> None:
        compared = [i for i, competes in enumerate(block.competes) if competes]
        results = dict(zip(compared, _find_items(self._index, [block.documents[i] for i in compared]), strict=True))
        for i in range(len(block.documents)):
            one = results.get(i)
            if one is None:
                self._out.write_row(_NOTHING)
                continue
            self._documents += 1
            self._out.write_row(_ENCODER.encode(one.value))
            self._matches.add(block.first + i + 1, one.items, one.shares, one.grams)

    def finish(self) -> tuple[dict[str, int], Any]:
        self.files.open(GRAMS).write(self._matches.grams())
        listed = RowOutput(self.files.path(ITEMS))
        self.files.add(ITEMS, listed)
        listed.write_rows(_ENCODER.encode(SeenItem(*item)) for item in self._matches.items())
        return {"contaminated": self._documents}, self._digest


class _DocumentMatches:
    """The result of one document: its value, and by number items, their shares, and n-grams."""

    def __init__(self, index: Index, document: Document, words: Array, places: Array, grams: Array) -> None:
        self.grams = np.unique(grams)
        listed_items, begins = index.of_grams(self.grams)
        self.items, places_of, counts = np.unique(listed_items, return_inverse=True, return_counts=True)
        self.shares = counts / index.sizes[self.items]
        best = np.maximum.reduceat(self.shares[places_of], begins)[np.searchsorted(self.grams, grams)]
        order = np.lexsort((self.items, -self.shares))[:LISTED]
        listed = [
            FoundItem(index.names[item][0], index.names[item][1], round(share, 4))
            for item, share in zip(self.items[order].tolist(), self.shares[order].tolist(), strict=True)
        ]
        spans = _spans(document, words, places.tolist(), index.lengths[grams].tolist(), best.tolist())
        self.value = Contaminated(
            contaminated=True,
            share=round(float(self.shares.max()), 4),
            chars=sum(span.end - span.start for span in spans),
            found=len(self.items),
            items=listed,
            spans=spans,
        )


def _find_items(index: Index, documents: Sequence[Document]) -> list["_DocumentMatches | None"]:
    """Return the matches of each document, None if there are none."""
    normal = Normalised.of(Batch.of(documents).utf8)
    hits = index.hits(normal)
    results: list[_DocumentMatches | None] = [None] * len(documents)
    words = normal.words
    of = np.searchsorted(words.bounds, hits.places, side="right") - 1
    for i in np.unique(of).tolist():
        mine, first = of == i, int(words.bounds[i])
        begin = int(words.lines.starts[words.lines.bounds[i]])
        last = int(words.bounds[i + 1])
        spans = np.stack([words.starts[first:last], words.ends[first:last]], axis=1) - begin
        results[i] = _DocumentMatches(index, documents[i], spans, hits.places[mine] - first, hits.grams[mine])
    return results


def _spans(
    document: Document, words: Array, places: Sequence[int], lengths: Sequence[int], shares: Sequence[float]
) -> list[Span]:
    """Return spans of overlapping n-grams, in code points.

    Args:
        document: Document that has them.
        words: int64 (words, 2), offsets in UTF-8.
        places: Places of the n-grams, their first words, in order.
        lengths: their words.
        shares: their scores.
    """
    runs: list[list[float]] = []
    for place, length, share in zip(places, lengths, shares, strict=True):
        if runs and place < runs[-1][1]:
            runs[-1][1] = max(runs[-1][1], place + length)
            runs[-1][2] = max(runs[-1][2], share)
        else:
            runs.append([place, place + length, share])
    begins = np.frombuffer(document.utf8, dtype=np.int8) >= -64  # of code points
    before = np.append(0, np.cumsum(begins))
    return [
        Span(int(before[words[int(a), 0]]), int(before[words[int(b) - 1, 1]]), round(share, 4)) for a, b, share in runs
    ]
