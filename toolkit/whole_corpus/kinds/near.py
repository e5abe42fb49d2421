"""Near duplicates: documents that have most of their shingles in common."""

from collections.abc import Iterator
from typing import Any, ClassVar

from toolkit.errors import ConfigError, amount
from toolkit.storage.paths import join
from toolkit.whole_corpus.kind import Competing, Decisions, Files, Query, ResolveJob, Signer
from toolkit.whole_corpus.near.components import Comparing
from toolkit.whole_corpus.near.decisions import FATES, NearCopies, resolve, values_of
from toolkit.whole_corpus.near.minhash import (
    ENOUGH,
    PRESETS,
    VERSION,
    Bands,
    MinHasher as Signing,
    NearSigner,
    Size,
    curve,
)
from toolkit.whole_corpus.records import SignedShard

_NGRAM = 5


class Near(Competing, kw_only=True):
    """Near duplicates: documents whose sets of shingles are similar; each pair is verified.

    Attributes:
        preset: published bands and shingles: fineweb or dolma3
        jaccard: least similarity of two documents
        containment: the least share of a duplicate's shingles that the kept document must have, too
        ngram: words of a shingle (5)
        characters: characters of a shingle in scripts without spaces (twice `ngram`)
        bands: bands of a signature; default: computed
        rows: hash functions of a band; default: computed
        verify: the texts are compared; false: sharing a band is enough
        store_shingles: shingles are kept on disk, so that pairs are verified without reading texts
        language: SET.KEY.field with a label, for `warn`
        warn: a share: the command warns if a source, host or language loses more
    """

    VERSION: ClassVar[int] = VERSION
    NEUTRAL: ClassVar[frozenset[str]] = frozenset({"warn", "store_shingles"})

    preset: str | None = None
    jaccard: float = 0.8
    containment: float | None = None
    ngram: int | None = None
    characters: int | None = None
    bands: int | None = None
    rows: int | None = None
    verify: bool = True
    store_shingles: bool = False
    language: str | None = None
    warn: float = 0.5

    def check(self) -> None:
        """Refuse conflicting options with a ConfigError."""
        if self.preset is not None and self.preset not in PRESETS:
            raise ConfigError(f"preset: expected one of {', '.join(PRESETS)}, got {self.preset!r}")
        if self.preset is not None and (self.bands or self.rows):
            raise ConfigError(f"preset: expected no `bands` and `rows` beside it, because {self.preset} sets both")
        if (self.bands is None) != (self.rows is None):
            raise ConfigError("bands: expected both `bands` and `rows`, or neither, got one of them")
        for name, least, most in (("ngram", 1, 100), ("characters", 1, 1000), ("bands", 1, 1000), ("rows", 1, 1000)):
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ConfigError(f"{name}: expected a number from {least} to {most}, got {value}")
        if not 0 <= self.warn <= 1:
            raise ConfigError(f"warn: expected a share from 0 to 1, got {self.warn}")
        if not 0 < self.jaccard <= 1:
            raise ConfigError(f"jaccard: expected a number above 0 and up to 1, got {self.jaccard}")
        if self.containment is not None and not self.jaccard < self.containment <= 1:
            raise ConfigError(
                f"containment: expected a number above jaccard ({self.jaccard}) and up to 1, got {self.containment}: "
                "the containment is never less than the Jaccard similarity, so a lower limit has no effect"
            )
        if self.containment is not None and not self.verify:
            raise ConfigError("containment: expected it only with `verify: true`, because only then texts are compared")
        super().check()
        self.cut()

    def cut(self) -> Bands:
        """Return the bands of signatures."""
        if self.preset is not None:
            return PRESETS[self.preset].bands
        if self.bands is not None and self.rows is not None:
            return Bands(self.bands, self.rows)
        return Bands.computed(self.jaccard)

    def size(self) -> Size:
        """Return the size of shingles."""
        ngram = self.ngram or (PRESETS[self.preset].ngram if self.preset is not None else _NGRAM)
        return Size.of(ngram, self.characters)

    @property
    def disk_share(self) -> float:
        """Return the approximate bytes on disk for a byte of text."""
        return 0.28

    def value_type(self) -> Any:
        """Return the type of the values."""
        return NearCopies

    def queries(self) -> dict[str, Query]:
        """Return the expressions of the options."""
        language = {"language": Query(self.language, "value")} if self.language is not None else {}
        return super().queries() | language

    def facts(self) -> dict[str, Any]:
        """Return a maker of signatures."""
        return {"signatures": {**self.cut()._asdict(), **self.size()._asdict()}}

    def signer(self, files: Files) -> Signer:
        """Return a writer of a shard's signatures."""
        stores_shingles = self.store_shingles and self.verify
        return NearSigner(self, files, Signing(self.cut(), self.size()), stores_shingles=stores_shingles)

    def resolve(self, work: ResolveJob) -> Decisions:
        """Find the near duplicates."""
        comparing = Comparing(
            bands=self.cut().bands,
            size=self.size() if self.verify else None,
            jaccard=self.jaccard,
            containment=self.containment or 0.0,
            warn=self.warn,
            descending=self.descending,
            ranks=self.ranks,
        )
        result = resolve(work, comparing)
        result.notes.insert(0, curve(self.cut()))
        chance = self.cut().probability(self.jaccard)
        if chance < ENOUGH:
            result.notes.insert(
                1,
                f"of pairs whose similarity is just the threshold ({self.jaccard}), {1 - chance:.1%} "
                f"are not compared, and so are missed; without `preset`, `bands` and `rows` the toolkit "
                f"chooses bands that miss less than 1%",
            )
        if not self.verify:
            unverified = result.counts["unverified"]
            result.notes.insert(
                1,
                f"{amount(unverified, 'document')} count as duplicates although their texts were not "
                f"compared (`verify: false`)",
            )
        return result

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the value of each document."""
        return values_of(join(fates, f"{FATES}-{signed.number}"), signed.record.rows)
