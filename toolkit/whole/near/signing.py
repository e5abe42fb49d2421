"""Step 1, per shard: the signatures of documents as they are kept, and what is removed of whom.

``rows``       12 bytes a row: how many shingles it has, 0 if it is not compared (uint32); its order (float64, or 64
               bytes where it may be a text)
``keys``       8 bytes a band and row: the keys, row by row
``sorted-N``   sections (see `sealed`), by the upper bits of the key: 12 bytes a key of a row that is compared, key
               (uint64) and row (uint32); sorted runs of at most `RUN` of them
``shingles``   only if they are to be stored: 8 bytes a shingle of a row that is compared, repeated ones too
``groups…``    see `toolkit.whole.near.signing`

What is removed of whom: of documents of a source, of a host, in a language, how many are duplicates of others.

A duplicate rule that takes most of a source takes more than copies, as a rule: that is told before anything is dropped.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.addresses import host_of
from toolkit.data.documents import BAD_ROW, Document
from toolkit.exchange.sealed import starts_of
from toolkit.execution.executors import Report
from toolkit.storage.outputs import RowOutput
from toolkit.storage.reading import Lines
from toolkit.whole.kind import NUMBERS, Block, Competing, Files, Signer, seed_of
from toolkit.whole.near.signatures import Signer as Signing
from toolkit.whole.records import SignedShard

if TYPE_CHECKING:
    import numpy as np

    from toolkit.text.kernels.signatures import Array

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


def row_type(ranks: str) -> "np.dtype[Any]":
    """Return the type of `rows`, given that of `Competing.ranks`."""
    import numpy as np

    return np.dtype([("shingles", "<u4"), ("order", ranks or NUMBERS)])


KEY = [("key", "<u8"), ("row", "<u4")]

SHINGLES = "shingles"

PREFIXES = 1024
"""Ranges of keys that can be read by themselves."""

RUN = 1 << 20
"""Keys that are held until they are sorted and written."""


class NearSigner(Signer):
    """Writes the signatures of one shard.

    Args:
        kind: configured.
        files: what it writes to.
        signing: makes signatures.
        stores_shingles: whether shingles are kept, too.
    """

    def __init__(self, kind: Competing, files: Files, signing: Signing, *, stores_shingles: bool = False) -> None:
        super().__init__(kind, files)
        self._signing, self._competing = signing, kind
        self._stored = files.open(SHINGLES) if stores_shingles else None
        self._rows, self._keys = files.open("rows"), files.open("keys")
        self._held: list[Array] = []
        self._groups = RowOutput(files.path(FILE))
        files.add(FILE, self._groups)
        self._size = self._runs = self._short = self._shingles = self._compared = 0

    def add(self, block: Block) -> None:
        import numpy as np

        competes = np.array(block.competes, dtype=bool)
        if competes.all():
            found = self._signing.of_words(block.documents.words())
        else:
            pairs = zip(block.documents.utf8, block.competes, strict=True)
            found = self._signing.of([text if asked else b"" for text, asked in pairs])
        rows = np.zeros(len(competes), dtype=row_type(self._competing.ranks))
        rows["shingles"] = np.where(found.enough, found.shingles, 0)
        if "keep" in block.values:
            rows["order"] = self._competing.ranked(block.values["keep"], ascending=False)
        keys = found.keys
        if "scope" in block.values:
            keys ^= np.array([seed_of(value) for value in block.values["scope"]], dtype=np.uint64)[:, None]
            keys[~found.enough] = 0
        self._rows.write(rows.tobytes())
        self._keys.write(keys.astype("<u8").tobytes())
        if self._stored:
            hashes = found.hashes[np.repeat(found.enough, found.shingles)]
            self._stored.write(hashes.astype("<u8", copy=False).tobytes())
        self._short += int((competes & ~found.enough).sum())
        self._shingles += int(found.shingles.sum())
        languages = block.values.get("language") or [None] * len(competes)
        self._groups.write_rows(
            groups_row(document, language) if enough else b"null"
            for document, language, enough in zip(block.documents, languages, found.enough, strict=True)
        )
        self._compared += int(found.enough.sum())
        entries = np.empty((int(found.enough.sum()), keys.shape[1]), dtype=KEY)
        entries["key"] = keys[found.enough]
        entries["row"] = (block.first + np.flatnonzero(found.enough))[:, None]
        self._held.append(entries.reshape(-1))
        self._size += entries.size
        if self._size >= RUN:
            self._sort()

    def _sort(self) -> None:
        import numpy as np

        if not self._held:
            return
        entries = np.concatenate(self._held)
        entries = entries[np.argsort(entries["key"], kind="stable")]
        edges = np.arange(PREFIXES, dtype=np.uint64) << np.uint64(54)
        places = np.append(np.searchsorted(entries["key"], edges), len(entries))
        output = self.files.open(f"sorted-{self._runs}")
        output.write(starts_of(np.diff(places) * entries.itemsize))
        output.write(entries.tobytes())
        self._held, self._size = [], 0
        self._runs += 1

    def finish(self) -> tuple[dict[str, int], Any]:
        self._sort()
        counts = {"compared": self._compared, "short": self._short, "shingles": self._shingles}
        return counts, self._runs
