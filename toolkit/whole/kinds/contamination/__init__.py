"""Contamination: documents, and spans of them, that have n-grams of evaluation items.

Source: T. Brown et al., Language Models are Few-Shot Learners, 2020, appendix C: 13-grams of words in lower case
without punctuation; found over the whole document, so that no line break hides one.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.config.settings import Description
from toolkit.data.alignment import MAX_ROW
from toolkit.data.documents import Document, Span
from toolkit.errors import ConfigError
from toolkit.storage.outputs import RowOutput
from toolkit.storage.reading import Lines
from toolkit.text.kernels.signatures import Array
from toolkit.whole.kind import Block, Files, Kind, Resolved, Signer, Work
from toolkit.whole.kinds.contamination import report
from toolkit.whole.kinds.contamination.index import Index, Normalised
from toolkit.whole.kinds.contamination.items import digest_of, files_of, items_of
from toolkit.whole.kinds.contamination.report import GRAMS, ITEMS, Seen, SeenItem
from toolkit.whole.records import SignedShard

LISTED = 100
"""Items that are listed of a document; `found` counts all."""

VALUES = "values.jsonl.gz"

_ENCODER = msgspec.json.Encoder()


class FoundItem(msgspec.Struct, frozen=True):
    """An item of which a document has n-grams.

    Attributes:
        benchmark: The benchmark that the item is of: the name of its file, or folder.
        item: The name of the item there.
        share: The part of the item's different n-grams that are in the document.
    """

    benchmark: str
    item: str
    share: float


class Contaminated(msgspec.Struct, frozen=True):
    """The n-grams of evaluation items in a document.

    Attributes:
        contaminated: Whether there are any.
        share: The largest part of an item's n-grams that are in the document; 0 without any.
        chars: Code points of the spans.
        found: Items of which there are n-grams.
        items: These items, those with the largest share first, at most 100.
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
    """Documents that have n-grams of evaluation items."""

    NEUTRAL: ClassVar[frozenset[str]] = frozenset({"against"})

    against: Annotated[
        list[str], Description(description="files of items (JSONL, Parquet), globs, or folders of texts")
    ]
    ngram: Annotated[int, msgspec.Meta(ge=1, le=1000), Description(description="words of an n-gram")] = 13
    fields: Annotated[
        list[str], Description(description="the fields of an item with its texts, or lists of texts; dotted paths")
    ] = msgspec.field(default_factory=lambda: ["text"])
    id: Annotated[str | None, Description(description="the field that names an item; by default its row")] = None
    min_words: Annotated[
        int,
        msgspec.Meta(ge=1),
        Description(
            description="a text shorter than an n-gram is looked for as a whole if it has at least this many words"
        ),
    ] = 4

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
        return _Finder(self, files)

    def resolve(self, work: Work) -> Resolved:
        made = report.ToReport(kind=msgspec.to_builtins(self), shards=work.shards, folder=work.folder)
        (found,) = work.run("report", report.make, [report.task(made)])
        counts, notes = found
        return Resolved({each.shard: each.record.files[VALUES].sha256 for each in work.shards}, counts, notes)

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        with Lines(signed.path(VALUES), MAX_ROW) as lines:
            yield from map(msgspec.Raw, lines)


@functools.lru_cache(maxsize=2)
def _index(
    digest: str, against: tuple[str, ...], fields: tuple[str, ...], id_field: str | None, ngram: int, min_words: int
) -> Index:
    return Index(items_of(files_of(against), fields, id_field), ngram, min_words)


class _Finder(Signer):
    """Writes the values of documents, and what was seen of the items."""

    kind: Contamination

    def __init__(self, kind: Contamination, files: Files) -> None:
        super().__init__(kind, files)
        self._index = kind.index()
        self._digest = kind.digest()
        self._out = RowOutput(files.path(VALUES))
        files.add(VALUES, self._out)
        self._seen = Seen(len(self._index.sizes), len(self._index.lengths))
        self._documents = 0

    def add(self, block: Block) -> None:
        compared = [i for i, competes in enumerate(block.competes) if competes]
        found = dict(zip(compared, _found(self._index, [block.documents[i] for i in compared]), strict=True))
        for i in range(len(block.documents)):
            one = found.get(i)
            if one is None:
                self._out.write_row(_NOTHING)
                continue
            self._documents += 1
            self._out.write_row(_ENCODER.encode(one.value))
            self._seen.add(block.first + i + 1, one.items, one.shares, one.grams)

    def finish(self) -> tuple[dict[str, int], Any]:
        self.files.open(GRAMS).write(self._seen.grams())
        listed = RowOutput(self.files.path(ITEMS))
        self.files.add(ITEMS, listed)
        listed.write_rows(_ENCODER.encode(SeenItem(*each)) for each in self._seen.items())
        return {"contaminated": self._documents}, self._digest


class _Found:
    """What one document has: its value, and by number items, their shares, and n-grams."""

    def __init__(self, index: Index, document: Document, words: Array, places: Array, grams: Array) -> None:
        import numpy as np

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


def _found(index: Index, documents: Sequence[Document]) -> list["_Found | None"]:
    """Return what each document has of the items, None where that is nothing."""
    import numpy as np

    normal = Normalised.of([document.utf8 for document in documents])
    hits = index.hits(normal)
    found: list[_Found | None] = [None] * len(documents)
    words = normal.words
    of = np.searchsorted(words.bounds, hits.places, side="right") - 1
    for i in np.unique(of).tolist():
        mine, first = of == i, int(words.bounds[i])
        begin = int(words.lines.starts[words.lines.bounds[i]])
        last = int(words.bounds[i + 1])
        spans = np.stack([words.starts[first:last], words.ends[first:last]], axis=1) - begin
        found[i] = _Found(index, documents[i], spans, hits.places[mine] - first, hits.grams[mine])
    return found


def _spans(
    document: Document, words: Array, places: Sequence[int], lengths: Sequence[int], shares: Sequence[float]
) -> list[Span]:
    """Return the stretches that n-grams cover which overlap, in code points.

    Args:
        document: that has them.
        words: int64 (words, 2), offsets in UTF-8.
        places: of the n-grams, their first words, in order.
        lengths: their words.
        shares: their scores.
    """
    import numpy as np

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
