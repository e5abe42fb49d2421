"""Exact duplicates in the attribute form of Dolma's deduper: a list of spans, empty where nothing is a duplicate."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Span
from toolkit.errors import ConfigError
from toolkit.exchange.checksummed import Sealed
from toolkit.text import shortest_float32
from toolkit.text.batch import Batch
from toolkit.whole_corpus.exact.decisions import resolve
from toolkit.whole_corpus.exact.pieces import Pieces, Texts, hasher
from toolkit.whole_corpus.exact.runs import RunsOutput
from toolkit.whole_corpus.kind import Decisions, Files, ResolveJob, Signer, TextBlock
from toolkit.whole_corpus.kinds.exact import TEXT, Copies, Exact, RepeatedUnits
from toolkit.whole_corpus.records import SignedShard

SIZES = "sizes.bin"
"""int64: code points of what is compared of each document; of lines or paragraphs those before the first, then those
from the start of each to that of the next; by n-grams, of each document its lines, then of each line its code points,
how many n-grams it has, and whether it is compared as a whole."""

_GRAM, _WHOLE = b"\0", b"\1"
"""Stand before what is hashed, so that a line of one word is no n-gram."""


class ByNgram(ConfigStruct):
    """Lines are repeats by their n-grams.

    Attributes:
        ngram_length: words of an n-gram: segments between Unicode's word boundaries that are not white space.
        stride: words from one n-gram to the next; 0 as 1.
        overlap_threshold: the part of its n-grams by which a line is a repeat.
        skip_short_paragraphs: True if lines of fewer than two n-grams are not compared as a whole.
    """

    ngram_length: Annotated[int, msgspec.Meta(ge=1)]
    stride: Annotated[int, msgspec.Meta(ge=0)] = 0
    overlap_threshold: float = 1.0
    skip_short_paragraphs: bool = False


class Dolma(Exact, kw_only=True):
    """Exact duplicates, as spans.

    A document that is a duplicate has one span, as long as what is compared; otherwise each line, or paragraph, that is
    a repeat has one, with its line end. The score is 1; by n-grams it is the part of those that have been seen before.

    Attributes:
        by_ngram: compare lines by their n-grams
    """

    VERSION: ClassVar[int] = 4

    by_ngram: ByNgram | None = None

    def check(self) -> None:
        """Refuse conflicting options with a ConfigError."""
        super().check()
        if self.by_ngram and (self.unit, self.keep, self.scope) != ("line", "first", "all"):
            raise ConfigError("expected `by_ngram` only with `unit: line`, `keep: first` and `scope: all`")

    @property
    def disk_share(self) -> float:
        """Return the approximate bytes on disk for a byte of text; of each word an n-gram begins."""
        return 2.5 if self.by_ngram else super().disk_share

    def value_type(self) -> Any:
        """Return the type of the values."""
        return list[Span]

    def pieces(self, documents: Batch) -> Pieces:
        r"""Return the pieces of documents; a ``\r`` before a line feed is a part of Dolma's lines."""
        result = super().pieces(documents)
        utf8, starts, ends, items = result.content
        if self.unit == "line" and self.normalize in ("none", "dolma"):
            ends = ends + (utf8[ends] == ord("\r"))
        return result._replace(content=Texts(utf8, starts, ends, items))

    def signer(self, files: Files) -> Signer:
        """Return a writer of hashes and sizes of a shard."""
        if self.by_ngram:
            return _Grams(self, files, self.by_ngram)
        return _Sized(self, files, super().signer(files))

    def resolve(self, work: ResolveJob) -> Decisions:
        """Resolve the hashes of all shards."""
        return resolve(work, self.layout, "n-grams") if self.by_ngram else super().resolve(work)

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the spans of each document."""
        result = super().values(signed, fates)
        with Sealed(signed.path(SIZES)) as stream:
            for value in result:
                if self.by_ngram:
                    yield _of_lines(value, stream.read, self.by_ngram)
                elif self.unit == "document":
                    yield _of_document(value, stream.read)
                else:
                    yield _of_pieces(value, stream.read)


_COPIES, _SEEN = msgspec.json.Decoder(Copies), msgspec.json.Decoder(RepeatedUnits)


def _of_document(value: Any, read: Any) -> list[Span]:
    (size,) = _sizes(read, 1)
    return [Span(0, size)] if _COPIES.decode(value).duplicate_of else []


def _of_pieces(value: Any, read: Any) -> list[Span]:
    repeats = _SEEN.decode(value).seen
    places = np.cumsum(_sizes(read, len(repeats) + 1)).tolist()
    return [Span(*places[i : i + 2]) for i, repeated in enumerate(repeats) if repeated]


def _of_lines(value: Any, read: Any, by: ByNgram) -> list[Span]:
    repeats = iter(_SEEN.decode(value).seen)
    (lines,) = _sizes(read, 1)
    start = 0
    results = []
    limit = np.float32(by.overlap_threshold)
    listed = _sizes(read, 3 * lines)
    for size, grams, whole in zip(listed[::3], listed[1::3], listed[2::3], strict=True):
        repeated = sum(next(repeats) for _ in range(grams))
        score = np.float32(next(repeats)) if whole else np.float32(repeated) / np.float32(grams) if grams else None
        if score is not None and score >= limit:
            results.append(Span(start, start + size, shortest_float32(np.array([score]))[0]))
        start += size
    return results


def _sizes(read: Any, number: int) -> list[int]:
    results: list[int] = np.frombuffer(read(8 * number), dtype="<i8").tolist()
    return results


class _Sized(Signer):
    """Writes the output of another signer, and the length of each piece."""

    def __init__(self, kind: Dolma, files: Files, inner: Signer) -> None:
        super().__init__(kind, files)
        self._inner = inner
        self._out = files.open(SIZES)
        self._exact = kind

    def add(self, block: TextBlock) -> None:
        """Take the next documents."""
        self._out.write(np.array(list(self._of(block)), dtype="<i8").tobytes())
        self._inner.add(block)

    def _of(self, block: TextBlock) -> Iterator[int]:
        kind = self._exact
        if kind.unit == "document":
            texts = [d.text for d in block.documents] if kind.of == TEXT else block.values["of"]
            yield from (len(text or "") for text in texts)
            return
        pieces = kind.pieces(block.documents)
        sizes = iter(pieces.sizes.tolist())
        for before, count in zip(pieces.before.tolist(), pieces.counts.tolist(), strict=True):
            yield before
            yield from islice(sizes, count)

    def finish(self) -> tuple[dict[str, int], Any]:
        """Return the results of the other signer."""
        return self._inner.finish()


class _Grams(Signer):
    """Writes the hashes of n-grams, and their number in each line."""

    def __init__(self, kind: Dolma, files: Files, by: ByNgram) -> None:
        super().__init__(kind, files)
        self._exact, self._by = kind, by
        self._hash = hasher(kind.bits)
        self._runs = RunsOutput(files, kind.layout)
        self._out = files.open(SIZES)

    def add(self, block: TextBlock) -> None:
        """Take the next documents."""
        words = block.documents.words("segments")
        texts, first = words.strings(), words.of_lines().tolist()
        lines = words.lines.bounds.tolist()
        pieces = self._exact.pieces(block.documents)
        compared, lines_sizes = iter(pieces.texts()), pieces.sizes.tolist()
        is_compared = pieces.compared.tolist()
        for i, competes in enumerate(block.competes):
            sizes = [lines[i + 1] - lines[i]]
            hashes: list[bytes] = []
            for n in range(lines[i], lines[i + 1]):
                text = bytes(next(compared)) if is_compared[n] else b""
                grams = self._grams(texts[first[n] : first[n + 1]]) if competes and text else []
                whole = bool(competes and text and len(grams) < 2 and not self._by.skip_short_paragraphs)
                hashes += [self._hash(_GRAM + "\0".join(gram).encode(), 0) for gram in grams]
                hashes += [self._hash(_WHOLE + text, 0)] if whole else []
                sizes += [lines_sizes[n], len(grams), whole]
            self._runs.add(hashes)
            self._out.write(np.array(sizes, dtype="<i8").tobytes())

    def _grams(self, words: Sequence[str]) -> list[Sequence[str]]:
        """Return the n-grams of a line; as Dolma begins to count strides at the second, so is it here."""
        length, stride = self._by.ngram_length, max(1, self._by.stride)
        starts = range(len(words) - length + 1)
        return [words[i : i + length] for i in starts if i == 0 or (i - 1) % stride == 0]

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the last run."""
        self._runs.flush()
        return {"n-grams": self._runs.items}, self._runs.runs
