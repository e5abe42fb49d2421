"""Shingles of texts, their MinHash signatures, and removal rates.

**Shingles** are n-grams of words. Words are those of taggers (`toolkit.text.words`), case folded; a word without a
letter or a number does not count. A character of a script without spaces (a Chinese or Japanese character, a Thai, Lao,
Khmer or Burmese letter with its marks) is a word of its own. It says less than a word, so it counts less: a shingle is
the fewest words in a row that weigh as much as `ngram` words or `characters` such characters. So texts in which scripts
meet have shingles, too, and no language has to be known.

**Signatures.** Source: Broder, On the resemblance and containment of documents (1997): the probability that two sets
have the same smallest value under a random hash function is their Jaccard similarity. Hash function i of a shingle's
upper 32 bits x is ``y = a[i] * x + b[i]; y ^= y >> 15; y *= 0x2C1B3C6D`` (mod 2^32); a key is a hash of a band's
smallest values. Nothing here depends on a library: the same text has the same keys for ever, or `VERSION` changes.

**Bands.** Source: Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, 3.4. A signature has `bands` bands of `rows`
hash functions. Two documents with Jaccard similarity s agree in one band with probability s^rows, and are compared if
they agree in some band: 1 - (1 - s^rows)^bands.

Step 1 writes for each shard:

``rows``       12 bytes a row: its number of shingles, 0 if it is not compared (uint32); its order (float64, or 64 bytes
               where it may be a text)
``keys``       8 bytes a band and row: the keys, row by row
``shingles``   only if they are to be stored: 8 bytes a shingle of a row that is compared, repeated ones too
``groups…``    source, host and language of each row that is compared

**Removal rates**: a duplicate rule that takes most of a source usually takes more than copies. So the command warns
before anything is dropped.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import msgspec
import numpy as np

from toolkit.data.documents import BAD_ROW, Document
from toolkit.data.urls import host_of
from toolkit.errors import ConfigError
from toolkit.storage.outputs import RowOutput
from toolkit.storage.reading import Lines
from toolkit.text.kernels import compiling, signatures, split_mix
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import Characters, characters
from toolkit.text.words import Words
from toolkit.whole_corpus.kind import NUMBERS, Competing, Files, Signer as KindSigner, TextBlock, seed_of
from toolkit.whole_corpus.records import SignedShard

MOST_HASHES = 256
"""Hash functions of a signature whose bands are computed, at most."""

ENOUGH = 0.99
"""The probability that two documents are compared whose similarity is the threshold, at least."""


class Bands(NamedTuple):
    """How a signature is cut into bands.

    Attributes:
        bands: Number of bands.
        rows: hash functions of each.
    """

    bands: int
    rows: int

    @property
    def hashes(self) -> int:
        """Return how many hash functions a signature has."""
        return self.bands * self.rows

    def probability(self, jaccard: float) -> float:
        """Return the probability of a comparison, given the similarity."""
        return float(-math.expm1(self.bands * math.log1p(-(jaccard**self.rows)))) if jaccard < 1 else 1.0

    @classmethod
    def computed(cls, jaccard: float) -> "Bands":
        """Return the steepest bands with a chance of `ENOUGH` at the threshold.

        That is the most rows a band that `MOST_HASHES` allow: fewer documents below the threshold are compared.

        Raises:
            ConfigError: if none does.
        """
        result = None
        for rows in range(1, MOST_HASHES + 1):
            agree = jaccard**rows
            bands = -math.log1p(-ENOUGH) / -math.log1p(-agree) if 0 < agree < 1 else 1 / agree if agree else math.inf
            if bands <= MOST_HASHES and math.ceil(bands) * rows <= MOST_HASHES:
                result = cls(math.ceil(bands), rows)
        if result is None:
            least = math.ceil(1000 * -math.expm1(math.log1p(-ENOUGH) / MOST_HASHES)) / 1000
            raise ConfigError(f"jaccard: expected at least {least}, below which too little is compared, got {jaccard}")
        return result


class Preset(NamedTuple):
    """A published preset.

    Attributes:
        bands: Bands of signatures.
        ngram: words of a shingle.
    """

    bands: Bands
    ngram: int


PRESETS = {"fineweb": Preset(Bands(14, 8), 5), "dolma3": Preset(Bands(26, 11), 5)}
"""``fineweb``: FineWeb and FineWeb-2 (datatrove's ``MinhashConfig``); ``dolma3``: OLMo 3's corpus."""

_POINTS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def curve(bands: Bands) -> str:
    """Return a line with the probability of a comparison, by similarity."""
    points = (f"{bands.probability(point):.3f} at {point:.2f}" for point in _POINTS)
    listed = ", ".join(points)
    return f"{bands.bands} bands of {bands.rows} hashes; probability that a pair is compared, by similarity: {listed}"


CHARACTERS_OF_A_WORD = 2
"""Characters of a script without spaces that count as much as a word, unless it is said otherwise."""


class Weights(NamedTuple):
    """Weights of a word and a character, and a shingle's least weight."""

    word: int
    character: int
    shingle: int


class Size(NamedTuple):
    """How long a shingle is.

    Attributes:
        ngram: Length in words.
        characters: Length in characters of scripts without spaces.
    """

    ngram: int = 5
    characters: int = 5 * CHARACTERS_OF_A_WORD

    @classmethod
    def of(cls, ngram: int, characters: int | None = None) -> "Size":
        """Return the size of n-grams, with twice as many characters by default."""
        return cls(ngram, characters or ngram * CHARACTERS_OF_A_WORD)


class Shingles(NamedTuple):
    """The shingles of some texts, in order.

    Attributes:
        hashes: uint64; two shingles are taken for the same where these are equal.
        bounds: int64 (texts + 1), the first of each text, and the end of all.
    """

    hashes: signatures.UInt64s
    bounds: signatures.Int64s

    @classmethod
    def of(cls, texts: Sequence[str | bytes], size: Size) -> "Shingles":
        """Return those of texts; bytes are in UTF-8."""
        return cls.of_words(Words.of(LineTable.of(texts)), size)

    @classmethod
    def of_words(cls, words: Words, size: Size) -> "Shingles":
        """Return the shingles of texts split into words."""
        texts = len(words.lines.bounds) - 1
        whole = math.lcm(size.ngram, size.characters)
        room = np.empty(len(words.starts), dtype=np.int64)
        hashes = np.empty(len(words.starts), dtype=np.uint64)
        bounds = np.zeros(texts + 1, dtype=np.int64)
        weights = Weights(whole // size.ngram, whole // size.characters, whole)
        _find_shingles(words, texts, weights, characters(), room, cls(hashes, bounds))
        return cls(hashes[: bounds[-1]], bounds)

    def sets(self) -> Iterator[signatures.Array]:
        """Yield the distinct shingles of each text, uint64, sorted."""
        for begin, end in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True):
            yield distinct(self.hashes[begin:end])


def distinct(hashes: signatures.Array) -> signatures.Array:
    """Return the distinct shingles of a text, sorted."""
    result: signatures.Array = np.sort(hashes)
    is_first = np.ones(len(result), dtype=bool)
    np.not_equal(result[1:], result[:-1], out=is_first[1:])
    return result[is_first]


_find_shingles = compiling.Compiled(
    "toolkit.whole_corpus.near.near_kernel:shingles",
    Words,
    "int64",
    Weights,
    Characters,
    "int64*",
    Shingles,
)


def fewest(size: Size) -> int:
    """Return how many distinct shingles a document must have; one with fewer is never a duplicate."""
    return size.ngram


VERSION = 1
"""Of the values; another one means that signatures that are kept are made anew."""


class Functions(NamedTuple):
    """Hash functions, and how signatures are cut into bands.

    Attributes:
        bands: Bands of a signature.
        rows: hash functions of a band.
        fewest: a text with fewer distinct shingles has no keys.
        factors: uint32 (bands * rows), odd.
        terms: uint32 (bands * rows).
    """

    bands: int
    rows: int
    fewest: int
    factors: signatures.UInt32s
    terms: signatures.UInt32s


class Room(NamedTuple):
    """Room for smallest values (uint32, bands * rows) and shingles (uint64, `Functions.fewest`)."""

    smallest: signatures.UInt32s
    distinct: signatures.UInt64s


_find_signatures = compiling.Compiled(
    "toolkit.whole_corpus.near.near_kernel:band_keys",
    Shingles,
    "int64",
    Functions,
    Room,
    "uint64* uint8*",
)


class Signatures(NamedTuple):
    """The signatures of some documents.

    Attributes:
        keys: uint64 (documents, bands).
        enough: bool, whether the document has enough distinct shingles to be compared; if not, its keys are 0.
        shingles: int64, how many it has, repeated ones too.
        hashes: uint64, those of all.
    """

    keys: signatures.Array
    enough: signatures.Array
    shingles: signatures.Array
    hashes: signatures.Array


class MinHasher:
    """Makes signatures.

    Args:
        bands: Bands of a signature.
        size: Size of shingles.
    """

    def __init__(self, bands: Bands, size: Size) -> None:
        self.bands = bands
        self.size = size
        numbers = split_mix.sequence(bands.hashes)
        factors = np.array([number >> 32 | 1 for number in numbers], dtype=np.uint32)
        terms = np.array([number & 0xFFFFFFFF for number in numbers], dtype=np.uint32)
        self._functions = Functions(*bands, fewest(size), factors, terms)
        self._room = Room(np.empty(bands.hashes, dtype=np.uint32), np.empty(fewest(size), dtype=np.uint64))

    def of(self, texts: Sequence[str | bytes]) -> Signatures:
        """Return those of texts; bytes are in UTF-8."""
        return self._of(Shingles.of(texts, self.size))

    def of_words(self, words: Words) -> Signatures:
        """Return the signatures of texts split into words."""
        return self._of(Shingles.of_words(words, self.size))

    def _of(self, shingles: Shingles) -> Signatures:
        texts = len(shingles.bounds) - 1
        keys = np.zeros((texts, self.bands.bands), dtype=np.uint64)
        enough = np.zeros(texts, dtype=np.uint8)
        _find_signatures(shingles, texts, self._functions, self._room, keys, enough)
        return Signatures(keys, enough.astype(bool), np.diff(shingles.bounds), shingles.hashes)


FILE = "groups.jsonl.gz"
"""Of each row that is compared its groups, the values of `KINDS`; null of others."""

KINDS = ("source", "host", "language")
_MOST = 1000  # groups of each kind of which is asked how many documents they have
_SHOWN = 10
_MAX_ROW = 1 << 20

Group = tuple[str, str]
"""A kind and its value."""


class _UrlHeaders(msgspec.Struct):
    uri: Any = msgspec.field(name="warc-target-uri", default=None)


class _UrlMetadata(msgspec.Struct):
    warc_headers: _UrlHeaders | None = None
    url: Any = None


_METADATA = msgspec.json.Decoder(_UrlMetadata | None)
_ROW = msgspec.json.Decoder(list[str | None] | None)
_ENCODER = msgspec.json.Encoder()


def groups_row(document: Document, language: Any) -> bytes:
    """Return the row of a compared document; `language` is its label, if one is asked for."""
    return _ENCODER.encode([document.source, _host(document), language if isinstance(language, str) else None])


def _host(document: Document) -> str | None:
    try:
        result = _METADATA.decode(document.raw_metadata)
    except BAD_ROW:
        return None
    url = result and ((result.warc_headers and result.warc_headers.uri) or result.url)
    return (host_of(url) or None) if isinstance(url, str) else None


def counted_groups(signed: SignedShard, is_chosen: Iterable[Any] | None = None) -> Counter[Group]:
    """Return how many rows of a shard each group has; those alone for which `is_chosen` is true, if it is given."""
    with Lines(signed.path(FILE), _MAX_ROW) as lines:
        rows = Counter(lines if is_chosen is None else compress(lines, is_chosen))
    result = Counter[Group]()
    for row, count in rows.items():  # most rows are those of others: each is decoded once
        for kind, value in zip(KINDS, _ROW.decode(row) or (), strict=False):
            if value is not None:
                result[kind, value] += count
    return result


def most_removed(signed: SignedShard, rows: Sequence[int]) -> list[tuple[str, str, int]]:
    """Return the groups with the most removed rows, and their numbers."""
    if not rows:
        return []
    is_gone = bytearray(signed.record.rows)
    for row in rows:
        is_gone[row] = 1
    return _most(counted_groups(signed, is_gone))


def _most(counts: Counter[Group]) -> list[tuple[str, str, int]]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(*group, count) for kind in KINDS for group, count in [e for e in ordered if e[0][0] == kind][:_MOST]]


def added_up(shards: Iterable[Sequence[tuple[str, str, int]]]) -> dict[Group, int]:
    """Return the groups with the most removed documents of all."""
    total = Counter[Group]()
    for shard in shards:
        total.update({(kind, value): count for kind, value, count in shard})
    return {(kind, value): count for kind, value, count in _most(total)}


def warnings(removed: dict[Group, int], compared: Sequence[int], share: float) -> list[str]:
    """Return warnings about groups above a removal rate, from two documents on; those that lose most first."""
    heavy = [
        (count, of, group)
        for (group, count), of in zip(removed.items(), compared, strict=True)
        if count > share * of and count > 1
    ]
    heavy.sort(key=lambda item: (-item[0], item[2]))
    results = [
        f"warning: of {of:,} documents of the {kind} {value}, {count:,} ({count / of:.0%}) are duplicates; look at "
        "some pairs (`--explain ID`) before you drop them"
        for count, of, (kind, value) in heavy[:_SHOWN]
    ]
    if heavy[_SHOWN:]:
        results.append(f"warning: so it is with {len(heavy) - _SHOWN} others")
    return results


def row_type(ranks: str) -> np.dtype[Any]:
    """Return the type of `rows` for a type of `Competing.ranks`."""
    return np.dtype([("shingles", "<u4"), ("order", ranks or NUMBERS)])


SHINGLES = "shingles"


class NearSigner(KindSigner):
    """Writes the signatures of one shard.

    Args:
        kind: configured.
        files: Files to write.
        signing: makes signatures.
        stores_shingles: True if shingles are kept, too.
    """

    def __init__(self, kind: Competing, files: Files, signing: MinHasher, *, stores_shingles: bool = False) -> None:
        super().__init__(kind, files)
        self._signing, self._competing = signing, kind
        self._stored = files.open(SHINGLES) if stores_shingles else None
        self._rows, self._keys = files.open("rows"), files.open("keys")
        self._groups = RowOutput(files.path(FILE))
        files.add(FILE, self._groups)
        self._short = self._shingles = self._compared = 0

    def add(self, block: TextBlock) -> None:
        competes = np.array(block.competes, dtype=bool)
        if competes.all():
            words = self._signing.of_words(block.documents.words())
        else:
            pairs = zip(block.documents.utf8, block.competes, strict=True)
            words = self._signing.of([text if competes_ else b"" for text, competes_ in pairs])
        rows = np.zeros(len(competes), dtype=row_type(self._competing.ranks))
        rows["shingles"] = np.where(words.enough, words.shingles, 0)
        if "keep" in block.values:
            rows["order"] = self._competing.ranked(block.values["keep"], ascending=False)
        keys = words.keys
        if "scope" in block.values:
            keys ^= np.array([seed_of(value) for value in block.values["scope"]], dtype=np.uint64)[:, None]
            keys[~words.enough] = 0
        self._rows.write(rows.tobytes())
        self._keys.write(keys.astype("<u8").tobytes())
        if self._stored:
            hashes = words.hashes[np.repeat(words.enough, words.shingles)]
            self._stored.write(hashes.astype("<u8", copy=False).tobytes())
        self._short += int((competes & ~words.enough).sum())
        self._shingles += int(words.shingles.sum())
        languages = block.values.get("language") or [None] * len(competes)
        self._groups.write_rows(
            groups_row(document, language) if enough else b"null"
            for document, language, enough in zip(block.documents, languages, words.enough, strict=True)
        )
        self._compared += int(words.enough.sum())

    def finish(self) -> tuple[dict[str, int], Any]:
        counts = {"compared": self._compared, "short": self._short, "shingles": self._shingles}
        return counts, None
