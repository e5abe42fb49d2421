"""What is removed of whom: of documents of a source, of a host, in a language, how many are duplicates of others.

A duplicate rule that takes most of a source takes more than copies, as a rule: that is told before anything is dropped.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.addresses import host_of
from toolkit.data.documents import BAD_ROW, Document
from toolkit.runs.executors import Report
from toolkit.storage.reading import Lines
from toolkit.whole.records import SignedShard

FILE = "groups.jsonl.gz"
"""Of each row that is compared its groups, the values of `KINDS`; null of others."""

KINDS = ("source", "host", "language")
_MOST = 1000  # groups of each kind of which is asked how many documents they have
_SHOWN = 10
_MAX_ROW = 1 << 20

Group = tuple[str, str]
"""A kind and its value."""


class _Headers(msgspec.Struct):
    uri: Any = msgspec.field(name="warc-target-uri", default=None)


class _Metadata(msgspec.Struct):
    warc_headers: _Headers | None = None
    url: Any = None


_METADATA = msgspec.json.Decoder(_Metadata | None)
_ROW = msgspec.json.Decoder(list[str | None] | None)
_ENCODER = msgspec.json.Encoder()


def groups_row(document: Document, language: Any) -> bytes:
    """Return the row of a document that is compared; `language` is its label, if one is asked for."""
    return _ENCODER.encode([document.source, _host(document), language if isinstance(language, str) else None])


def _host(document: Document) -> str | None:
    try:
        found = _METADATA.decode(document.raw_metadata)
    except BAD_ROW:
        return None
    url = found and ((found.warc_headers and found.warc_headers.uri) or found.url)
    return (host_of(url) or None) if isinstance(url, str) else None


def _counted(signed: SignedShard, which: Iterable[Any] | None = None) -> Counter[Group]:
    """Return how many rows of a shard each group has; those alone for which `which` is true, if it is given."""
    with Lines(signed.path(FILE), _MAX_ROW) as lines:
        rows = Counter(lines if which is None else compress(lines, which))
    found = Counter[Group]()
    for row, count in rows.items():  # most rows are those of others: each is decoded once
        for kind, value in zip(KINDS, _ROW.decode(row) or (), strict=False):
            if value is not None:
                found[kind, value] += count
    return found


def most_removed(signed: SignedShard, rows: Sequence[int]) -> list[tuple[str, str, int]]:
    """Return the groups that lose most, each with how many rows it loses, of those that are given."""
    if not rows:
        return []
    is_gone = bytearray(signed.record.rows)
    for row in rows:
        is_gone[row] = 1
    return _most(_counted(signed, is_gone))


def _most(found: Counter[Group]) -> list[tuple[str, str, int]]:
    ordered = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return [(*group, count) for kind in KINDS for group, count in [e for e in ordered if e[0][0] == kind][:_MOST]]


class ToCount(ConfigStruct):
    """A shard of which the documents of some groups are counted."""

    signed: SignedShard
    groups: list[Group]


def count_groups(work: ToCount, report: Report) -> list[int]:
    """Return how many documents of each group are compared."""
    found = _counted(work.signed)
    return [found[group] for group in work.groups]


def added_up(shards: Iterable[Sequence[tuple[str, str, int]]]) -> dict[Group, int]:
    """Return the groups that lose most of all, with how many documents they lose."""
    total = Counter[Group]()
    for shard in shards:
        total.update({(kind, value): count for kind, value, count in shard})
    return {(kind, value): count for kind, value, count in _most(total)}


def warnings(removed: dict[Group, int], compared: Sequence[int], share: float) -> list[str]:
    """Return sentences about groups that lose more than a share, at least two documents; those that lose most first."""
    heavy = [
        (count, of, group)
        for (group, count), of in zip(removed.items(), compared, strict=True)
        if count > share * of and count > 1
    ]
    heavy.sort(key=lambda each: (-each[0], each[2]))
    found = [
        f"warning: of {of:,} documents of the {kind} {value}, {count:,} ({count / of:.0%}) are duplicates; look at "
        "some pairs (`--explain ID`) before you drop them"
        for count, of, (kind, value) in heavy[:_SHOWN]
    ]
    if heavy[_SHOWN:]:
        found.append(f"warning: so it is with {len(heavy) - _SHOWN} others")
    return found
