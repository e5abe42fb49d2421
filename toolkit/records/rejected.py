"""How much of an entry of ``ingest:`` was rejected, and whether that is too much to go on with.

Bad items are those that fail their shard without ``on_error: skip``; they are counted as ``rejected.<reason>``. What is
left out for another reason is no damage: short texts (``trim``), records that are no documents, pages that an extractor
lost. An entry is judged by all its inputs together, from their records, so that a rerun judges as the first run did.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from toolkit.records.ingested import InputRecord
from toolkit.storage.paths import join

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


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of an input in a run; its fields are those of `InputRecord`."""

    counts: dict[str, int]
    entry: str = ""
    max_rejected: float = 0.1
    rejects: str = ""


Judged = InputRecord | Tally


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of which too much was rejected.

    Attributes:
        entry: its name.
        read: items of all its inputs.
        rejected: of these, the bad ones.
        reasons: how many for each reason.
        max_rejected: the share that it tolerates.
        file: a reject file, that of the input with most bad items; there may be others beside it.
    """

    entry: str
    read: int
    rejected: int
    reasons: dict[str, int]
    max_rejected: float
    file: str

    def __str__(self) -> str:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in self.reasons.items())
        return (
            f"{self.entry}: expected at most {100 * self.max_rejected:g} % of the items to be rejected "
            f"(`max_rejected: {self.max_rejected:g}`), got {self.rejected:,} of {self.read:,} "
            f"({100 * self.rejected / self.read:.1f} %): {reasons}; see {self.file}. Correct the entry and run "
            "`toolkit ingest --overwrite`, or raise its `max_rejected` and run `toolkit ingest` again"
        )


def read_items(counts: Mapping[str, int]) -> int:
    """Return how many items an input had, by the counts of its record."""
    return sum(n for name, n in counts.items() if name not in _NO_ITEMS and (name in _ITEMS or name.startswith(_KINDS)))


def too_many(inputs: Iterable[Judged], bookkeeping: str) -> list[Verdict]:
    """Return a verdict for each entry of which too many items were rejected, sorted by name.

    Args:
        inputs: the records, or the tallies, of all inputs.
        bookkeeping: folder of the records, below which reject files are.
    """
    entries: dict[str, _Items] = {}
    for each in inputs:
        if (items := entries.get(each.entry)) is None:
            items = entries[each.entry] = _Items(each.max_rejected)
        items.add(each)
    return [found for name in sorted(entries) if (found := entries[name].judged(name, bookkeeping))]


class _Items:
    """The items of an entry, counted input by input.

    Args:
        limit: share of them that may be bad, by the first input.
    """

    def __init__(self, limit: float) -> None:
        self.read, self.limit = 0, limit
        self.reasons: Counter[str] = Counter()
        self.worst = (0, "")

    def add(self, each: Judged) -> None:
        reasons = _reasons(each)
        self.read += read_items(each.counts)
        self.limit = min(self.limit, each.max_rejected)
        self.reasons.update(reasons)
        if (bad := sum(reasons.values())) > self.worst[0]:
            self.worst = (bad, each.rejects)

    def judged(self, name: str, bookkeeping: str) -> Verdict | None:
        bad = self.reasons.total()
        if not bad or bad <= self.limit * self.read or (self.read < JUDGED and bad < self.read):
            return None
        return Verdict(
            entry=name or "inputs of an earlier version",
            read=self.read,
            rejected=bad,
            reasons=dict(self.reasons.most_common()),
            max_rejected=self.limit,
            file=join(bookkeeping, self.worst[1] or "rejects"),
        )


def by_reason(inputs: Iterable[Judged]) -> dict[str, int]:
    """Return how many items of some inputs were rejected, by reason, the most first."""
    found: Counter[str] = Counter()
    for each in inputs:
        found.update(_reasons(each))
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _reasons(each: Judged) -> dict[str, int]:
    prefix = "rejected."
    return {name.removeprefix(prefix): n for name, n in each.counts.items() if name.startswith(prefix)}
