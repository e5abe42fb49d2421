"""Records the items of inputs without documents, and the items of documents.

``.toolkit/left-out/<shard>.jsonl.gz``  a `Lines` for some items of an input; no file if each item became a document

Ids that are UUIDs are kept as bytes and URLs stand together, so that an item takes about 30 bytes. Ids and URLs are
bounded (`LONGEST`), and so is what is held in memory (`ITEMS`). An entry of which too much was rejected is refused
(`Items.too_many`).
"""

import base64
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

import msgspec

from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.documents import BAD_ROW
from toolkit.data.urls import bare_url, has_scheme, url_of
from toolkit.records import ingested
from toolkit.records.ingested import InputRecord
from toolkit.storage.compression import compress_small
from toolkit.storage.outputs import OptionalRows, OutputBatch
from toolkit.storage.paths import exists, join, remove
from toolkit.storage.reading import Lines as StoredLines

LONGEST = 2000
"""Code points that are kept of an id or a URL."""

ITEMS = 4096
"""Items, and jumps of the numbering, of a line."""

_UUID = re.compile(r"<urn:uuid:([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})>")
_LONGEST_LINE = 1 << 30


class Lines(msgspec.Struct, omit_defaults=True):
    """Some items of an input, as columns.

    Attributes:
        input: Key of the input.
        numbers: Ordinals in the input, each as its distance from the one before; the first from 0.
        reasons: Names of the counts in the record of the input.
        ids: Ids: empty for the next of `uuids`, null if unknown; no list if all are such UUIDs.
        uuids: UUIDs, 16 bytes each, in base64.
        urls: URLs: empty if unknown; no list if all are.
        sources: Sources: null for that of the entry; no list if all are.
        jumps: Pairs: documents of the input since the jump before, and the difference of the next number from one more
            than that of the document before it.
    """

    input: str
    numbers: list[int] = []
    reasons: list[str] = []
    ids: list[str | None] = []
    uuids: str = ""
    urls: list[str] = []
    sources: list[str | None] = []
    jumps: list[int] = []


class LeftOut(msgspec.Struct, frozen=True):
    """An item without a document.

    Attributes:
        input: Path of the input.
        number: Ordinal of the item in the input, from 1, as in messages.
        reason: Name of the count in the record of the input: ``trim``, ``rejected.not json``.
        id, url, source: Names of the missing document, as far as they are known.
    """

    input: str
    number: int
    reason: str
    id: str | None
    url: str | None
    source: str | None


class LeftOutOutput(OptionalRows):
    """Writes the file of an input, or pack. A context manager.

    Args:
        path: Path of the file.
        together: Files that appear at the same time.
    """

    def __init__(self, path: str, together: OutputBatch) -> None:
        super().__init__(path, compress_small, together)
        self._lines, self._uuids = Lines(""), b""
        self._number, self._since, self._next = 0, 0, 1

    def begin(self, key: str) -> None:
        """Start the next input."""
        self._flush()
        self._lines, self._number, self._since, self._next = Lines(key), 0, 0, 1

    def document(self, number: int) -> None:
        """Note an item with a document."""
        if number != self._next:
            self._lines.jumps += [self._since, number - self._next]
            self._since = 0
            self._flush_full()
        self._since += 1
        self._next = number + 1

    def add(self, number: int, reason: str, id: str | None, url: str | None, source: str | None) -> None:
        """Note an item without a document."""
        lines = self._lines
        lines.numbers.append(number - self._number)
        lines.reasons.append(reason)
        self._number = number
        match = _UUID.fullmatch(id) if id else None
        if match:
            self._uuids += uuid.UUID(match[1]).bytes
        lines.ids.append("" if match else id[:LONGEST] if id else None)
        lines.urls.append(bare_url(url or "")[:LONGEST])
        lines.sources.append(source)
        self._flush_full()

    def _flush_full(self) -> None:
        if len(self._lines.numbers) + len(self._lines.jumps) >= ITEMS:
            self._flush()

    def _flush(self) -> None:
        lines = self._lines
        if not (lines.numbers or lines.jumps):
            return
        ids = lines.ids if any(id_ != "" for id_ in lines.ids) else []
        urls = lines.urls if any(lines.urls) else []
        sources = lines.sources if any(lines.sources) else []
        uuids = base64.b64encode(self._uuids).decode()
        self.write_row(
            msgspec.json.encode(msgspec.structs.replace(lines, ids=ids, urls=urls, sources=sources, uuids=uuids))
        )
        self._lines, self._uuids, self._number = Lines(lines.input), b"", 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self._flush()
        super().__exit__(kind, error, tb)


def path_of(shard: str) -> str:
    """Return the bookkeeping path of an input's file, by its shard."""
    return join("left-out", shard + ".jsonl.gz")


class _Named(msgspec.Struct):
    """The fields of a row with its id or URL."""

    id: Any = None
    url: Any = None
    metadata: Any = None


_NAMED = msgspec.json.Decoder(_Named)


def identity(row: bytes) -> tuple[str | None, str | None]:
    """Return id and URL in a row of JSON, if any."""
    try:
        result = _NAMED.decode(row)
    except (*BAD_ROW, RecursionError):
        return None, None
    url = result.url if isinstance(result.url, str) else url_of({"metadata": result.metadata})
    return (result.id if isinstance(result.id, str) else None), url


def is_called(row: bytes, id: str, name: str) -> bool:
    """Return True if a document has this id or URL.

    Args:
        row: Row of the document, as JSON.
        id: Id of the document.
        name: Id or URL to compare.
    """
    return id == name or (has_scheme(name) and identity(row)[1] == name)


def forget(dataset: Dataset, record: InputRecord) -> None:
    """Delete the file of a forgotten input."""
    if record.left_out:
        remove(join(dataset.bookkeeping, record.left_out))


# --- looking --------------------------------------------------------------------------------------------------------


def find(dataset: Dataset, name: str) -> list[LeftOut]:
    """Return the items without documents, by id or URL."""
    return [
        item
        for record in ingested.load_undamaged(dataset)
        for lines in _lines_of(dataset, record)
        for item in _items(lines, record)
        if name[:LONGEST] in (item.id, item.url)
    ]


def input_of(dataset: Dataset, shard: str, row: int) -> tuple[str, int | None] | None:
    """Return the input path and item ordinal of a document. The ordinal is None if it is unknown.

    Args:
        dataset: Dataset of the shard.
        shard: Shard with the document.
        row: Row of the document, from 1.

    Returns:
        None for shards that are no ingest's.
    """
    record = next(
        (input_record for input_record in ingested.load_undamaged(dataset) if shard in input_record.shards), None
    )
    if record is None:
        return None
    names = list(record.shards)
    states = [row_index.current(dataset, name) for name in names[: names.index(shard)]]
    before = [state.rows for state in states if state]
    key, path, row = "", record.input, row + sum(before)
    for input_ in record.inputs:
        key, path = input_.key, input_.input
        if row <= input_.rows:
            break
        row -= input_.rows
    if len(before) < len(states) or record.left_out is None:
        return path, None
    number = row
    for lines in _lines_of(dataset, record):
        if lines.input == key or not record.inputs:
            for since, jump in zip(lines.jumps[::2], lines.jumps[1::2], strict=True):
                if row <= since:
                    return path, number
                row, number = row - since, number + jump
    return path, number


def _lines_of(dataset: Dataset, record: InputRecord) -> Iterator[Lines]:
    path = join(dataset.bookkeeping, record.left_out or "")
    if record.left_out and exists(path):
        with StoredLines(path, _LONGEST_LINE) as stored:
            for line in stored:
                yield msgspec.json.decode(line, type=Lines)


def _items(lines: Lines, record: InputRecord) -> Iterator[LeftOut]:
    path = next((input_.input for input_ in record.inputs if input_.key == lines.input), record.input)
    uuids, number, at = base64.b64decode(lines.uuids), 0, 0
    for i, (step, reason) in enumerate(zip(lines.numbers, lines.reasons, strict=True)):
        number += step
        id = lines.ids[i] if lines.ids else ""
        if id == "":
            id = f"<urn:uuid:{uuid.UUID(bytes=uuids[at : at + 16])}>"
            at += 16
        url = (lines.urls[i] if lines.urls else "") or None
        yield LeftOut(path, number, reason, id, url, lines.sources[i] if lines.sources else None)


JUDGED = 100
"""Items of an entry from which its share of bad items is judged; of fewer, only if all of them are bad."""

_ITEMS = (
    "documents",
    "trim",
    "null_text",
    "not_http",
    "empty",
    "no_text",
    "binary",
    "too_large",
    "invalid_utf8.drop_document",
)
_KINDS = ("rejected.", "lost.", "record.", "status.", "content_type.", "content_encoding.")
_NO_ITEMS = ("content_type.missing",)
"""Names of counts, each item under one of them; all others say something of items that are counted already."""

LOST = ("lost.crash", "lost.timeout")
_EXTRACTED = ("documents", "trim", "no_text")
"""Names of counts of the pages that an extractor fails on, and of those that it reads."""
MOSTLY = 9
"""An extractor has failed if it loses more than so many pages for one that has a text: some need no extractor."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of an input in a run; its fields are those of `InputRecord`."""

    counts: dict[str, int]
    entry: str = ""
    max_rejected: float = 0.1
    rejects: str = ""


Judged = InputRecord | Tally


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """An entry with too many rejected or lost items.

    Attributes:
        entry: Name of the entry.
        read: Number of items of all its inputs; of pages, if the extractor fails on nearly every page.
        rejected: Number of bad items.
        reasons: Number of bad items for each reason.
        max_rejected: Share that it tolerates.
        file: Path of a reject file, that of the input with most bad items; there may be others beside it.
    """

    entry: str
    read: int
    rejected: int
    reasons: dict[str, int]
    max_rejected: float
    file: str

    def __str__(self) -> str:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in self.reasons.items())
        if any(reason in LOST for reason in self.reasons):
            return (
                f"{self.entry}: expected the texts of {self.read:,} pages, got {self.read - self.rejected:,}: "
                f"{reasons}; `on_error: skip` keeps each error in {self.file}. Correct the extractor and run "
                "`toolkit ingest --overwrite`, or set `max_rejected: 1` and run `toolkit ingest` again"
            )
        return (
            f"{self.entry}: expected at most {100 * self.max_rejected:g} % of the items to be rejected "
            f"(`max_rejected: {self.max_rejected:g}`), got {self.rejected:,} of {self.read:,} "
            f"({100 * self.rejected / self.read:.1f} %): {reasons}; see {self.file}. Correct the entry and run "
            "`toolkit ingest --overwrite`, or raise its `max_rejected` and run `toolkit ingest` again"
        )


def read_items(counts: Mapping[str, int]) -> int:
    """Return the number of items of an input, by its counts."""
    return sum(n for name, n in counts.items() if name not in _NO_ITEMS and (name in _ITEMS or name.startswith(_KINDS)))


class Items:
    """The items of all entries, counted input by input.

    Args:
        inputs: Records, or tallies, of the first inputs.
    """

    def __init__(self, inputs: Iterable[Judged] = ()) -> None:
        self._entries: dict[str, _Items] = {}
        for input_ in inputs:
            self.add(input_)

    def add(self, tally: Judged) -> None:
        """Add an input."""
        if tally.entry not in self._entries:
            self._entries[tally.entry] = _Items(tally.max_rejected)
        self._entries[tally.entry].add(tally)

    def too_many(self, bookkeeping: str) -> list[Verdict]:
        """Return a verdict for each entry with too many rejected items, sorted.

        Args:
            bookkeeping: Folder of the records and reject files.
        """
        entries = sorted(self._entries.items())
        return [verdict for name, items in entries if (verdict := items.judged(name, bookkeeping))]


class _Items:
    """The items of an entry, counted input by input, in any order.

    Args:
        limit: Share of bad items that the first input tolerates.
    """

    def __init__(self, limit: float) -> None:
        self.read, self.limit = 0, limit
        self.reasons: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.extracted = 0
        self.worst = (0, "")

    def add(self, tally: Judged) -> None:
        reasons = _reasons(tally)
        for name, count in tally.counts.items():
            if name in LOST:
                self.lost[name] += count
            elif name in _EXTRACTED:
                self.extracted += count
        self.read += read_items(tally.counts)
        self.limit = min(self.limit, tally.max_rejected)
        if reasons:
            self.reasons.update(reasons)
            self.worst = min(self.worst, (-sum(reasons.values()), tally.rejects))

    def judged(self, name: str, bookkeeping: str) -> Verdict | None:
        bad, read, reasons = self.reasons.total(), self.read, self.reasons
        if not bad or bad <= self.limit * read or (read < JUDGED and bad < read):
            bad, reasons = self.lost.total(), self.lost
            read = bad + self.extracted
            if not bad or bad <= MOSTLY * self.extracted or self.limit >= 1:
                return None
        return Verdict(
            entry=name or "inputs of an earlier version",
            read=read,
            rejected=bad,
            reasons=_ordered(reasons),
            max_rejected=self.limit,
            file=join(bookkeeping, self.worst[1] or "rejects"),
        )


def by_reason(inputs: Iterable[Judged]) -> dict[str, int]:
    """Return the number of rejected items by reason, the most frequent first."""
    result: Counter[str] = Counter()
    for input_ in inputs:
        result.update(_reasons(input_))
    return _ordered(result)


def _ordered(reasons: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent first; of equals, the first by name."""
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def _reasons(tally: Judged) -> dict[str, int]:
    prefix = "rejected."
    return {name.removeprefix(prefix): n for name, n in tally.counts.items() if name.startswith(prefix)}
