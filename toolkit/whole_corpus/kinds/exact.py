"""Exact duplicates: documents that are equal, or have equal lines, paragraphs or sentences, and which of them stays."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from toolkit.data.documents import Span
from toolkit.errors import ConfigError, DataError
from toolkit.text.batch import Batch
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.exact import pieces as exact_pieces
from toolkit.whole_corpus.exact.decisions import resolve, values_of_documents, values_of_pieces
from toolkit.whole_corpus.exact.runs import KeyLayout, RunsOutput
from toolkit.whole_corpus.kind import Competing, Decisions, Files, Query, ResolveJob, Signer, TextBlock, seed_of
from toolkit.whole_corpus.records import SignedShard

TEXT = "document.text"

_ENCODER = msgspec.json.Encoder()

RATE, LEAST, MOST = 1e-6, 1e-15, 0.1
"""The rate of false positives of Bloom filters, unless another is given; and those that may be."""


class Copies(msgspec.Struct, frozen=True):
    """The exact duplicate kept in place of a document, and their number.

    Attributes:
        duplicate_of: source and id of the equal document that is kept in its place; null if it is that one itself, if
            there is no other, or if it is not compared.
        copies: Number of equal documents, itself among them; 0 if it is not compared.
    """

    duplicate_of: list[str] | None
    copies: int


class RepeatedUnits(msgspec.Struct, frozen=True):
    """Repeated lines, paragraphs or sentences of a document.

    Attributes:
        seen: A value for each line, paragraph or sentence, in order: true for one that is kept elsewhere, or earlier in
            the document; false for one that is not compared.
        spans: Spans of these, with line ends; adjacent ones are merged.
        chars_seen: Code points of the spans.
    """

    seen: list[bool]
    spans: list[Span]
    chars_seen: int


class Exact(Competing, kw_only=True):
    """Exact duplicates.

    Attributes:
        unit: the unit of comparison
        length: sentences that are compared together, with `unit: sentence`; null: 1
        of: an expression: the text that is compared; a document for which it is null is not compared
        normalize: differences that do not count
        bits: the length of the hashes
        approximate: bloom: use Bloom filters, which need less memory
        false_positive_rate: largest share of new lines that may wrongly count as seen (1e-6), with `approximate: bloom`
        within: false: only what `against` has is a duplicate; documents are not compared
    """

    VERSION: ClassVar[int] = 3

    unit: exact_pieces.Unit = "document"
    length: Annotated[int, msgspec.Meta(ge=1)] | None = None
    of: str = TEXT
    normalize: exact_pieces.Normalisation = "none"
    bits: Literal[64, 128] = 128
    approximate: Literal["bloom"] | None = None
    false_positive_rate: float | None = None

    within: bool = True

    def check(self) -> None:
        """Refuse conflicting options with a ConfigError."""
        if not self.within and self.approximate is not None:
            raise ConfigError("expected `within: false` only without `approximate`: a filter is filled in order")
        if self.unit != "document" and self.of != TEXT:
            raise ConfigError(f"expected `of` only with `unit: document`: {self.unit}s are those of the text")
        if self.normalize == "url" and self.unit != "document":
            raise ConfigError("expected `normalize: url` only with `unit: document`")
        if self.normalize == "datatrove" and self.unit not in ("document", "sentence"):
            raise ConfigError(f"expected `normalize: datatrove` with `unit: document` or `sentence`, got {self.unit}")
        if self.length is not None and self.unit != "sentence":
            raise ConfigError("expected `length` only with `unit: sentence`")
        if self.approximate is None and self.false_positive_rate is not None:
            raise ConfigError("expected `false_positive_rate` only with `approximate: bloom`")
        if self.approximate is not None and self.unit == "document":
            raise ConfigError(
                "expected `approximate: bloom` only with `unit: line` or `paragraph`: a filter knows "
                "that it has seen a text, but not in which document"
            )
        if self.approximate is not None and self.keep != "first":
            raise ConfigError("expected `approximate: bloom` only with `keep: first`: a filter is filled in order")
        if not LEAST <= self.rate <= MOST and self.approximate is not None:
            raise ConfigError(
                f"false_positive_rate: expected a number from {LEAST:g} to {MOST:g}, got {self.false_positive_rate}"
            )
        super().check()

    @property
    def disk_share(self) -> float:
        """Return the approximate bytes on disk for a byte of text; many lines are short."""
        return {"document": 0.03, "paragraph": 0.12, "sentence": 0.3, "line": 0.3}[self.unit]

    def value_type(self) -> Any:
        """Return the type of the values."""
        return Copies if self.unit == "document" else RepeatedUnits

    def queries(self) -> dict[str, Query]:
        """Return the expressions of the options."""
        of = {"of": Query(self.of, "text")} if self.of != TEXT else {}
        return of | super().queries()

    def signer(self, files: Files) -> Signer:
        """Return a writer of a shard's hashes."""
        return _HashSigner(self, files)

    def resolve(self, work: ResolveJob) -> Decisions:
        """Resolve the hashes of all shards."""
        return resolve(work, self.layout, f"{self.unit}s")

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the value of each document."""
        if self.unit == "document":
            return values_of_documents(signed, fates)
        return values_of_pieces(signed, fates, self.length or 1)

    def pieces(self, documents: Batch) -> exact_pieces.Pieces:
        """Return the pieces of documents."""
        return exact_pieces.pieces_of(documents, self.unit, self.normalize, self.length or 1)

    @property
    def layout(self) -> KeyLayout:
        """Return the layout of stored hashes."""
        return KeyLayout(self.bits, self.ranks, self.unit == "document", self.rate, within=self.within)

    @property
    def rate(self) -> float:
        """Return the rate of false positives; 0 where all are compared."""
        if self.approximate is None:
            return 0.0
        return RATE if self.false_positive_rate is None else self.false_positive_rate


class _HashSigner(Signer):
    """Writes the hashes of a shard's texts, or of their pieces."""

    def __init__(self, kind: Exact, files: Files) -> None:
        super().__init__(kind, files)
        self._kind = kind
        self._hash = exact_pieces.hasher(kind.bits)
        self._runs = RunsOutput(files, kind.layout)
        self._seeds: dict[str, int] = {}

    def add(self, block: TextBlock) -> None:
        """Hash the next documents."""
        none = [None] * len(block.documents)
        ranks = self._kind.ranked(block.values.get("keep", none))
        seeds = self._seeds_of(block.values.get("scope", none))
        is_whole = self._kind.unit == "document"
        pieces = (
            exact_pieces.documents_of(block.documents, self._texts(block))
            if is_whole
            else self._kind.pieces(block.documents)
        )
        if not all(block.competes):
            pieces = pieces.among(np.repeat(np.array(block.competes, dtype=bool), pieces.counts))
        hashes = self._hashes(pieces, seeds)
        if not is_whole:
            self._runs.add_block(hashes, pieces, ranks)
            return
        named = b"\n".join([*block.names, b""]).replace(b'{"source":"', b'["').replace(b'","id":"', b'","')
        names = named.replace(b'"}\n', b'"]\n').split(b"\n")[:-1]  # no quote in a name is without a backslash
        if block.places:
            names = [b"%b,%b]" % (n[:-1], _ENCODER.encode(p)) for n, p in zip(names, block.places, strict=True)]
        self._runs.add_documents(hashes, pieces.compared, ranks, names)

    def _texts(self, block: TextBlock) -> list[bytes] | None:
        """Return the compared texts, empty for none; None for those of the documents."""
        normal, of = self._kind.normalize, block.values.get("of")
        if of is None and normal == "none":
            return None
        results = []
        for i, (document, mine) in enumerate(zip(block.documents, block.competes, strict=True)):
            try:
                text = (document.text if of is None else of[i]) if mine else None
                results.append(b"" if text is None else exact_pieces.whole(normal, text).encode())
            except DataError as error:
                raise DataError(error.message, line=block.first + i + 1, id=document.id) from None
        return results

    def _hashes(self, pieces: exact_pieces.Pieces, seeds: list[int]) -> Array:
        if self._kind.bits == 128 and self._kind.unit != "document" and not any(seeds):  # which are many and short
            return exact_pieces.hashes_128(pieces.content)
        of_pieces = np.repeat(np.array(seeds, dtype=np.uint64), pieces.counts)[pieces.compared].tolist()
        hashes = map(self._hash, pieces.texts(), of_pieces)
        return exact_pieces.numbers_of(b"".join(hashes), self._kind.bits)

    def _seeds_of(self, scopes: Sequence[Any]) -> list[int]:
        if self._kind.scope == "all":
            return [0] * len(scopes)
        return [seed_of(scope) for scope in scopes]

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the last run."""
        self._runs.flush()
        return {f"{self._kind.unit}s": self._runs.items}, self._runs.runs
