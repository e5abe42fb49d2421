"""Contamination: documents, and spans of them, that have n-grams of evaluation items.

Source: T. Brown et al., Language Models are Few-Shot Learners, 2020, appendix C: 13-grams of words in lower case
without punctuation; found over the whole document, so that no line break hides one.

What was found of the items of evaluations: by shard, then of all, by benchmark and item.

Evaluation items and their n-grams.

The n-grams of items, and which of them texts have: exact, by 128 bits of each n-gram.

A text is taken as its words (see `toolkit.text.words`) from beginning to end, whatever lines it has: in simple case
folding, without punctuation, symbols and format characters, also within words. Two n-grams are the same where two
hashes of 64 bits are equal that share no constant: of n-grams that differ, about one pair in 2^110 is taken for the
same.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data.alignment import MAX_ROW
from toolkit.data.documents import Document, Span, value_at
from toolkit.data.tables.parquet import open_parquet
from toolkit.distribution import require_extra
from toolkit.errors import ConfigError, DataError, ToolkitError, amount, did_you_mean
from toolkit.exchange.checksummed import read_sealed
from toolkit.execution.executors import Report, Task
from toolkit.lazy_numpy import np
from toolkit.session import cached
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import (
    expand,
    is_folder,
    is_glob,
    join,
    list_files,
    missing_reason,
    not_in,
    stat,
    strip_suffix,
)
from toolkit.storage.reading import READ, Decompressed, Lines, stored_digest
from toolkit.text import LineTable, Words, characters
from toolkit.text.batch import Batch
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt64s
from toolkit.text.unicode_table import Characters
from toolkit.whole_corpus.kind import Decisions, Files, Kind, ResolveJob, Signer, TextBlock, configured
from toolkit.whole_corpus.records import NumberedShards, SignedShard

MAX_ITEM = 100_000_000
"""Bytes of an item's row, or text, at most."""

_ROWS = tuple(f".{form}{compressed}" for form in ("jsonl", "json", "ndjson") for compressed in ("", ".gz", ".zst"))
_TEXT_ENDS = (".gz", ".zst", ".txt", ".text", ".md")


class ItemsFile(NamedTuple):
    """A file of items.

    Attributes:
        benchmark: Benchmark that they belong to.
        path: Path of the file.
        form: rows of JSON, a Parquet file, or a text that is one item.
        item: the name of that one.
    """

    benchmark: str
    path: str
    form: Literal["rows", "columns", "text"]
    item: str = ""


class BenchmarkItem(NamedTuple):
    """An item: its benchmark, its name there, its texts."""

    benchmark: str
    name: str
    texts: list[str]


def files_of(against: Sequence[str]) -> list[ItemsFile]:
    """Return the files of paths, globs and folders, in order; those of each sorted.

    The rows of a file belong to a benchmark that is called as the file; texts to one that is called as their folder.

    Raises:
        ConfigError: if there are none for one of them, or two benchmarks have one name.
    """
    results: dict[str, ItemsFile] = {}
    for item in against:
        folder = not is_glob(item) and is_folder(item)
        paths = sorted(join(item, name) for name in list_files(item)) if folder else sorted(p for p, _ in expand(item))
        if not paths:
            raise ConfigError(f"against: expected files of items, got none for {item}")
        for path in paths:
            relative = os.path.relpath(path, item) if folder else os.path.basename(path)
            top = item.rstrip("/") if folder else os.path.dirname(path)
            results.setdefault(path, _file(path, relative, os.path.basename(top)))
    _check_names(list(results.values()))
    return list(results.values())


def _file(path: str, relative: str, folder: str) -> ItemsFile:
    if path.endswith(".parquet"):
        return ItemsFile(strip_suffix(os.path.basename(path), (".parquet",)), path, "columns")
    if path.endswith(_ROWS):
        return ItemsFile(strip_suffix(os.path.basename(path), sorted(_ROWS, key=len, reverse=True)), path, "rows")
    name = relative
    for end in _TEXT_ENDS:
        name = name.removesuffix(end)
    return ItemsFile(folder or "items", path, "text", name)


def _check_names(items_files: list[ItemsFile]) -> None:
    rows = Counter(item.benchmark for item in items_files if item.form != "text")
    for name, times in rows.items():
        if times > 1:
            paths = [item.path for item in items_files if item.benchmark == name]
            raise ConfigError(
                f"against: expected a name of its own for each benchmark, got {name!r} for {paths[0]} and {paths[1]}; "
                "rename a file, or give them as two sets"
            )


def digest_of(files: Sequence[ItemsFile]) -> str:
    """Return a digest of names and contents of the files."""
    digest = xxhash.xxh3_128()
    for file in files:
        try:
            content = stored_digest(file.path, xxhash.xxh3_128())
        except (ToolkitError, FileNotFoundError):
            if stat(file.path) is None:
                message = f"against: {file.path}: expected a file of items, got {missing_reason(file.path)}"
                raise ConfigError(message + (not_in(file.path) or "; put it back, or leave it out")) from None
            raise
        digest.update(msgspec.json.encode([file.benchmark, file.item, content]))
    return digest.hexdigest()


def items_of(files: Sequence[ItemsFile], fields: Sequence[str], id_field: str | None) -> Iterator[BenchmarkItem]:
    """Yield the items of files, in order.

    Args:
        files: Files of items.
        fields: Fields whose texts, or lists of texts, are looked for; dotted paths. Null, and an empty list, is
            nothing.
        id_field: Id field that names the item; by default its row, from 1.

    Raises:
        DataError: naming the row in which a field is missing, or no text.
        MissingExtra: for Parquet without its package.
    """
    for file in files:
        if file.form == "text":
            yield BenchmarkItem(file.benchmark, file.item, [_text(file.path)])
            continue
        rows = _rows(file.path) if file.form == "rows" else _parquet(file.path, [*fields, *filter(None, [id_field])])
        for number, row in enumerate(rows, 1):
            texts = [text for field in fields for text in _texts(row, field, file.path, number)]
            name = number if id_field is None else value_at(row, id_field)
            if not isinstance(name, str | int):
                raise DataError(
                    f"expected a text or a number at {id_field!r}, got {name!r}", path=file.path, line=number
                )
            yield BenchmarkItem(file.benchmark, str(name), texts)


def _text(path: str) -> str:
    data = b""
    with Decompressed(path) as stream:
        while block := stream.read(READ):
            data += block
            if len(data) > MAX_ITEM:
                raise DataError(f"expected a text of at most {MAX_ITEM:,} bytes, got a longer one", path=path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"expected a text in UTF-8, got {error}", path=path) from None


def _rows(path: str) -> Iterator[Any]:
    with Lines(path, MAX_ITEM, fixed=True) as lines:
        for line in lines:
            if not line.strip():
                continue
            try:
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(
                    f"expected an item as a JSON object, got {error}", path=path, line=lines.number
                ) from None
            if not isinstance(row, dict):
                got = type(row).__name__
                raise DataError(f"expected an item as a JSON object, got a {got}", path=path, line=lines.number)
            yield row


def _parquet(path: str, fields: Sequence[str]) -> Iterator[Any]:
    require_extra("parquet", "Parquet files", "pyarrow")
    import pyarrow as pa

    try:
        with open_parquet(path) as source:
            names = source.schema_arrow.names
            columns = list(dict.fromkeys(field.partition(".")[0] for field in fields))
            if missing := [name for name in columns if name not in names]:
                raise DataError(_lacks(missing[0], names), path=path)
            for batch in source.iter_batches(columns=columns):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"expected a sound Parquet file, got: {error}", path=path) from None


def _texts(row: Any, field: str, path: str, number: int) -> list[str]:
    if field.partition(".")[0] not in row:
        raise DataError(_lacks(field, row), path=path, line=number)
    value = value_at(row, field)
    results = value if isinstance(value, list) else [value]
    texts = [item for item in results if item is not None]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        message = f"expected a text, or a list of texts, at {field!r}, got {str(wrong[0])[:80]!r}"
        raise DataError(message, path=path, line=number)
    return texts


def _lacks(field: str, names: Any) -> str:
    hint = did_you_mean(field, names) or f"; there are: {', '.join(map(str, names))}"
    return f"expected an item with the field {field!r}, got none{hint}; say which have the texts: `fields: [NAME, …]`"


FIRST, SECOND = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
"""Multipliers of the two hashes."""

_KERNEL = "toolkit.whole_corpus.kinds.contamination.contamination_kernel"
_MARKS = 4
"""Bits of marks for each slot, of which there are at least two for each n-gram: most lookups end there."""


class Table(NamedTuple):
    """The n-grams of an index, for compiled code.

    Attributes:
        number: Number of lengths.
        lengths: int64, words of n-grams that are looked for.
        keys: uint64, the first hash of each n-gram.
        second_keys: uint64, the second.
        slots: int64, a hash table by the lower bits of the first: numbers of n-grams from 1, 0 where none is.
        mask: slots but one.
        marks: uint64, a bit for the upper bits of the first hash.
        shift: Shift of the first hash to these bits.
    """

    number: int
    lengths: Int64s
    keys: UInt64s
    second_keys: UInt64s
    slots: Int64s
    mask: int
    marks: UInt64s
    shift: int


_hash_words = Compiled(f"{_KERNEL}:hash_words", "int8* int64* int64* int64", Characters, "uint64* uint64*")
_hash_grams = Compiled(f"{_KERNEL}:hash_grams", "uint64* uint64* int64 int64 uint64* uint64*")
_find = Compiled(f"{_KERNEL}:find", "uint64* uint64* int64* int64", Table, "int64* int64* int64*")
_fill = Compiled(f"{_KERNEL}:fill", "uint64* int64 int64 int64 int64* uint64*")


class Normalised(NamedTuple):
    """The words of some texts.

    Attributes:
        words: Offsets of the words.
        first, second: uint64, two hashes of each.
    """

    words: Words
    first: UInt64s
    second: UInt64s

    @classmethod
    def of(cls, texts: Sequence[str | bytes]) -> "Normalised":
        """Return the words of texts; those that are bytes are in UTF-8."""
        words = Words.of(LineTable.of(texts))
        first, second = np.empty((2, len(words.starts)), dtype=np.uint64)
        _hash_words(words.lines.utf8, words.starts, words.ends, len(words.starts), characters(), first, second)
        return cls(words, first, second)


class Hits(NamedTuple):
    """Matches of an index in texts: int64 arrays, sorted by place.

    Attributes:
        places: the first word of each.
        grams: its number.
    """

    places: Array
    grams: Array


class Index:
    """The n-grams of items.

    Args:
        items: Items in order.
        ngram: words of an n-gram.
        min_words: a text shorter than an n-gram is looked for as a whole if it has so many words.

    Attributes:
        names: benchmark and name of each item.
        sizes: int64, how many different n-grams each item has; 0 if nothing of it can be looked for.
        words: int64, the words of each item.
        lengths: int64, words of each n-gram.
        postings, items: int64; the items that have n-gram i are ``items[postings[i]:postings[i + 1]]``.
        table: Table for compiled code.
    """

    def __init__(self, items: Iterable[BenchmarkItem], ngram: int, min_words: int) -> None:
        self.names: list[tuple[str, str]] = []
        words: list[int] = []
        results: list[tuple[Array, Array, Array, Array]] = []
        for some in _together(items):
            number = len(self.names)
            self.names += [(item.benchmark, item.name) for item in some]
            words += _grams(some, number, ngram, min_words, results)
        nothing = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
        keys, second_keys, lengths, of = (
            np.concatenate(column)
            for column in zip((*nothing, *np.zeros((2, 0), dtype=np.int64)), *results, strict=True)
        )
        self.words = np.array(words, dtype=np.int64)
        order = np.lexsort((of, second_keys, keys))
        keys, second_keys, lengths, of = keys[order], second_keys[order], lengths[order], of[order]
        if len(order):
            fresh = np.append(True, (keys[1:] != keys[:-1]) | (second_keys[1:] != second_keys[:-1]))
            once = fresh | np.append(True, of[1:] != of[:-1])  # an n-gram counts once in an item
            keys, second_keys, lengths, of, fresh = keys[once], second_keys[once], lengths[once], of[once], fresh[once]
            firsts = np.flatnonzero(fresh)
        else:
            firsts = np.zeros(0, dtype=np.int64)
        self.items = of
        self.postings = np.append(firsts, len(of))
        self.lengths = lengths[firsts]
        self.sizes = np.bincount(of, minlength=len(self.names)).astype(np.int64)
        self.table = _table(keys[firsts], second_keys[firsts], self.lengths)

    def hits(self, texts: Normalised) -> Hits:
        """Return the matches in texts."""
        bounds, room = texts.words.bounds, 64
        while True:
            places, grams = np.empty((2, room), dtype=np.int64)
            count = np.array([room, 0], dtype=np.int64)
            _find(texts.first, texts.second, bounds, len(bounds) - 1, self.table, places, grams, count)
            if count[1] <= room:
                order = np.lexsort((grams[: count[1]], places[: count[1]]))
                return Hits(places[order], grams[order])
            room = int(count[1])

    def of_grams(self, grams: Array) -> tuple[Array, Array]:
        """Return the items of n-grams, and the start of those of each."""
        begin, end = self.postings[grams], self.postings[grams + 1]
        sizes = end - begin
        before = np.cumsum(sizes) - sizes
        at = np.repeat(begin - before, sizes) + np.arange(int(sizes.sum()))
        return self.items[at], before


_ITEMS = 4096
_CHARS = 1 << 22


def _together(items: Iterable[BenchmarkItem]) -> Iterable[list[BenchmarkItem]]:
    batch: list[BenchmarkItem] = []
    chars = 0
    for item in items:
        batch.append(item)
        chars += sum(map(len, item.texts))
        if len(batch) >= _ITEMS or chars >= _CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _grams(
    items: list[BenchmarkItem], number: int, ngram: int, min_words: int, grams: list[tuple[Array, Array, Array, Array]]
) -> list[int]:
    """Add the n-grams of items, numbered from a number on; return how many words each has."""
    texts = [(number + i, text) for i, item in enumerate(items) for text in item.texts]
    normal = Normalised.of([text for _, text in texts])
    bounds = normal.words.bounds.tolist()
    words = [0] * len(items)
    for (item, _), begin, end in zip(texts, bounds[:-1], bounds[1:], strict=True):
        size = end - begin
        words[item - number] += size
        if size < min(ngram, min_words) or not size:
            continue
        length = min(size, ngram)
        keys, second_keys = np.empty((2, size - length + 1), dtype=np.uint64)
        first, second = normal.first[begin:end], normal.second[begin:end]
        _hash_grams(first, second, size, length, keys, second_keys)
        grams.append((keys, second_keys, np.full(len(keys), length), np.full(len(keys), item)))
    return words


def _table(keys: Array, second_keys: Array, lengths: Array) -> Table:
    bits = (2 * len(keys)).bit_length()
    shift = 64 - (bits + _MARKS.bit_length() - 1)
    slots = np.zeros(1 << bits, dtype=np.int64)
    marks = np.zeros(max(1, (1 << (64 - shift)) >> 6), dtype=np.uint64)
    _fill(keys, len(keys), len(slots) - 1, shift, slots, marks)
    different = np.unique(lengths)
    return Table(len(different), different, keys, second_keys, slots, len(slots) - 1, marks, shift)


__all__: Sequence[Any] = ("Hits", "Index", "Normalised", "Table")


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
