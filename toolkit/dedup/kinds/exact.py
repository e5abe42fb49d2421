"""Exact duplicates: documents that are equal, or have equal lines or paragraphs, and which of them stays."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from toolkit.config.settings import Description
from toolkit.data.documents import Span
from toolkit.dedup.competing import Competing, seed_of
from toolkit.dedup.exact import resolving, values
from toolkit.dedup.exact.normalize import Normalisation, whole
from toolkit.dedup.exact.pieces import PIECES, Unit, hasher
from toolkit.dedup.exact.runs import Layout, RunsOutput
from toolkit.dedup.kind import Asked, Block, Files, Resolved, Signer, Work
from toolkit.dedup.records import SignedShard
from toolkit.errors import ConfigError, DataError

TEXT = "document.text"


class Copies(msgspec.Struct, frozen=True):
    """What a document is an exact duplicate of.

    Attributes:
        duplicate_of: source and id of the equal document that is kept in its place; null if it is that one itself, if
            there is no other, or if it is not compared.
        copies: documents that are equal, itself among them; 0 if it is not compared.
    """

    duplicate_of: list[str] | None
    copies: int


class Seen(msgspec.Struct, frozen=True):
    """Which lines, or paragraphs, of a document are repeats of one that is kept elsewhere, or earlier in it.

    Attributes:
        seen: of each line or paragraph, in order; false for one that is not compared.
        spans: the same as spans, with the line ends; those next to each other are one.
        chars_seen: code points of the spans.
    """

    seen: list[bool]
    spans: list[Span]
    chars_seen: int


class Exact(Competing, kw_only=True):
    """Exact duplicates."""

    VERSION: ClassVar[int] = 1

    unit: Annotated[Unit, Description(description="what is compared")] = "document"
    of: Annotated[
        str, Description(description="an expression: the text of a document that is compared; null: it is not")
    ] = TEXT
    normalize: Annotated[Normalisation, Description(description="what is made equal before it is compared")] = "none"
    bits: Annotated[Literal[64, 128], Description(description="of the hashes")] = 128

    def check(self) -> None:
        """Raise ConfigError for options that do not go together."""
        if self.unit != "document" and self.of != TEXT:
            raise ConfigError(f"expected `of` only with `unit: document`: {self.unit}s are those of the text")
        if self.normalize == "url" and self.unit != "document":
            raise ConfigError("expected `normalize: url` only with `unit: document`")
        super().check()

    def value_type(self) -> Any:
        """Return the type of the values."""
        return Copies if self.unit == "document" else Seen

    def asked(self) -> dict[str, Asked]:
        """Return the expressions of the options."""
        of = {"of": Asked(self.of, "text")} if self.of != TEXT else {}
        return of | super().asked()

    def signer(self, files: Files) -> Signer:
        """Return what writes the hashes of a shard."""
        return _Signer(self, files)

    def resolve(self, work: Work) -> Resolved:
        """Find what stays."""
        return resolving.resolve(work, self.layout, f"{self.unit}s")

    def is_resolved(self, fates: str) -> bool:
        """Return whether what was found is still there."""
        return resolving.is_resolved(fates)

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield what became of each document."""
        return (values.of_documents if self.unit == "document" else values.of_pieces)(signed, fates)

    @property
    def layout(self) -> Layout:
        """Return what is kept of each hash."""
        return Layout(self.bits, self.keep != "first", self.unit == "document")


class _Signer(Signer):
    """Writes the hashes of a shard's texts, or of their pieces."""

    def __init__(self, kind: Exact, files: Files) -> None:
        super().__init__(kind, files)
        self._kind = kind
        self._hash = hasher(kind.bits)
        self._runs = RunsOutput(files, kind.layout)
        self._seeds: dict[str, int] = {}
        self._sign = -1 if kind.descending else 1

    def add(self, block: Block) -> None:
        """Hash the next documents."""
        none = [None] * len(block.documents)
        ranks, scopes = block.values.get("keep", none), block.values.get("scope", none)
        found = zip(block.documents, block.competes, ranks, self._seeds_of(scopes), strict=True)
        if self._kind.unit != "document":
            self._add_pieces(found)
            return
        texts: Sequence[str | None] = block.values.get("of") or [document.text for document in block.documents]
        for i, ((document, competes, rank, seed), text) in enumerate(zip(found, texts, strict=True)):
            hashes: list[bytes | None] = [None]
            if competes and text is not None:
                try:
                    compared = whole(self._kind.normalize, text).encode()
                except DataError as error:
                    raise DataError(error.message, line=block.first + i + 1, id=document.id) from None
                if compared:
                    hashes = [self._hash(compared, seed)]
            name = msgspec.json.encode((document.source, document.id))
            self._runs.add(hashes, self._rank(rank), name)

    def _add_pieces(self, found: Any) -> None:
        pieces_of, hash_ = PIECES[self._kind.unit], self._hash
        for document, competes, rank, seed in found:
            pieces = pieces_of(document, self._kind.normalize)
            if competes:
                hashes = [hash_(each, seed) if each else None for each in pieces.compared]
            else:
                hashes = [None] * len(pieces.compared)
            self._runs.add(hashes, self._rank(rank), sizes=pieces.sizes, before=pieces.before)

    def _seeds_of(self, scopes: Sequence[Any]) -> list[int]:
        if self._kind.scope == "all":
            return [0] * len(scopes)
        return [seed_of(scope) for scope in scopes]

    def _rank(self, value: float | None) -> float:
        return 0.0 if value is None else self._sign * float(value)

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the last run."""
        self._runs.flush()
        return {f"{self._kind.unit}s": self._runs.items}, self._runs.runs
