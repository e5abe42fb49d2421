"""Passages: stretches of text that stand somewhere before, byte by byte or word by word, wherever they begin."""

import itertools
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Span
from toolkit.errors import ConfigError
from toolkit.storage import models
from toolkit.whole_corpus.exact.pieces import Pieces
from toolkit.whole_corpus.exact.runs import KeyLayout, RunsOutput
from toolkit.whole_corpus.kind import Competing, Decisions, Files, ResolveJob, Signer, TextBlock, seed_of
from toolkit.whole_corpus.passages.chunks import Cut, LengthUnit, Unit, buffer_of, stretches_of
from toolkit.whole_corpus.passages.comparison import PLACES, Repeats, fates_path, resolve, values_of
from toolkit.whole_corpus.records import SignedShard


class _Lengths(NamedTuple):
    least: int
    most: int
    usual: int


LENGTHS: dict[Unit, _Lengths] = {
    "byte": _Lengths(10, 1_000_000, 500),
    "word": _Lengths(5, 100_000, 50),
    "token": _Lengths(5, 100_000, 50),
}


class Merging(ConfigStruct):
    """Rules to merge repeats to passages.

    Attributes:
        gap: Code points between two repeats, at most, that become part of a passage with both.
        length: Code points of a passage, at least; shorter ones are left out.
    """

    gap: Annotated[int, msgspec.Meta(ge=0)] = 0
    length: Annotated[int, msgspec.Meta(ge=0)] = 0

    def of(self, value: Repeats) -> Repeats:
        """Return the value of a document with its spans merged; its bytes are those of the repeats in them."""
        spans: list[Span] = []
        for span in value.spans:
            if spans and span.start - spans[-1].end <= self.gap:
                span = Span(spans.pop().start, span.end)
            spans.append(span)
        spans = [span for span in spans if span.end - span.start >= self.length]
        return Repeats(spans, sum(span.end - span.start for span in spans), value.bytes if spans else 0)


class Passages(Competing, kw_only=True):
    """Repeats of earlier passages.

    Attributes:
        length: the shortest repeat, of 10 to 1,000,000 bytes (500), or 5 to 100,000 words or tokens (50)
        unit: the unit of `length`: bytes in UTF-8; words, between which white space is; or tokens
        merge: {gap: N, length: M}: repeats at most N characters apart are one span, of at least M
        tokenizer: a file `tokenizer.json`: path, URL, or a known name, with `unit: token`
    """

    NEUTRAL: ClassVar[frozenset[str]] = frozenset({"tokenizer"})  # the digest of its file is among the facts

    length: int | None = None
    unit: Unit = "byte"
    merge: Merging | None = None
    tokenizer: models.Model | None = None

    def check(self) -> None:
        """Refuse conflicting options with a ConfigError."""
        least, most, _ = LENGTHS[self.unit]
        if self.length is not None and not least <= self.length <= most:
            raise ConfigError(f"length: expected a number of {self.unit}s from {least} to {most:,}, got {self.length}")
        if self.unit == "token" and self.tokenizer is None:
            raise ConfigError("tokenizer: expected a file `tokenizer.json` with `unit: token`, got none")
        if self.unit != "token" and self.tokenizer is not None:
            raise ConfigError(f"tokenizer: expected it only with `unit: token`, got `unit: {self.unit}`")
        super().check()
        if self.tokenizer is not None:
            models.resolve(self.tokenizer)

    def facts(self) -> dict[str, Any]:
        """Return the digest of the tokenizer."""
        return {} if self.tokenizer is None else {"tokenizer": {"sha256": models.digest(self.tokenizer)}}

    @property
    def size(self) -> int:
        """Return the bytes of a passage, as it is looked at."""
        return self.counted.size_of(self.length or LENGTHS[self.unit].usual)

    @property
    def counted(self) -> LengthUnit:
        """Return the unit of its length."""
        return LengthUnit(unit=self.unit, tokenizer=self.tokenizer or "")

    @property
    def disk_share(self) -> float:
        """Return the approximate bytes on disk for a byte of text."""
        return 0.42

    def value_type(self) -> Any:
        """Return the type of the values."""
        return Repeats

    def signer(self, files: Files) -> Signer:
        """Return a writer of a shard's stretches."""
        return _StretchSigner(self, files)

    def resolve(self, work: ResolveJob) -> Decisions:
        """Find the repeats of earlier passages."""
        return resolve(work, self.size, self.counted, ranks=self.ranks)

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the spans of each document."""
        repeats = values_of(fates_path(fates, signed.number), signed.record.rows)
        return repeats if self.merge is None else map(self.merge.of, repeats)


class _StretchSigner(Signer):
    """Writes the stretches of a shard."""

    def __init__(self, kind: Passages, files: Files) -> None:
        super().__init__(kind, files)
        self._cut, self._counted = Cut.of(kind.size), kind.counted
        self._kind = kind
        self._runs = RunsOutput(files, KeyLayout(128, kind.ranks, False))
        self._places = files.open(PLACES)
        self._bytes = self._passages = 0

    def add(self, block: TextBlock) -> None:
        """Take the next documents."""
        pairs = zip(self._counted.texts_of(block.documents), block.competes, strict=True)
        texts = [text if competes else b"" for text, competes in pairs]
        none = [None] * len(texts)
        seeds = [0 if scope is None else seed_of(scope) for scope in block.values.get("scope", none)]
        stretches = stretches_of(texts, self._cut, seeds)
        every = np.ones(len(stretches.passages), dtype=bool)
        pieces = Pieces(
            buffer_of([]), every, stretches.passages, stretches.counts, np.zeros(len(texts), dtype=np.int64)
        )
        self._places.write(stretches.places.tobytes())
        self._runs.add_block(stretches.keys, pieces, self._kind.ranked(block.values.get("keep", none)))
        self._bytes += sum(map(len, itertools.compress(block.documents.utf8, block.competes)))
        self._passages += int(stretches.passages.sum(dtype=np.int64))

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the last run."""
        self._runs.flush()
        return {"bytes": self._bytes, "passages": self._passages}, self._runs.runs
