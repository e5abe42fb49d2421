"""Orphans: documents that a mix drops as copies of documents that it does not keep.

A rule drops a document *as a copy* if it mentions ``KEY.duplicate_of`` of a set that tells for each document which one
it is a copy of (``[source, id]``, or null). That is safe as long as the other one stays. `Copies` notes while a shard
is mixed (or previewed) which documents stay and which are dropped as copies; `judge` then tells for the whole mix
which of them nothing stands for.

- A document stands for a copy if no rule drops it, or if it is itself dropped as a copy of one that stands for it: what
  is the same text as a page that is nearly the same as a third has not been lost.
- A copy that another rule drops as well is no orphan: it would not be in the output either.
- Samples, the draws of repeats and budgets, and the weights of streams count for nothing here: they take documents away
  at random, copies or not. An amount of 0 is no draw.

Which copies somebody stands for is found in rounds of joins (see `toolkit.exchange.tables`): first those of documents
that stay, then copies of these, until a round finds nothing. There are as many rounds as the longest chain of copies is
long: the number of sets at most, where each set names documents that it keeps itself.
"""

import contextlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from toolkit.data import schema
from toolkit.data.row_index import row_hash
from toolkit.errors import DataError
from toolkit.exchange.tables import MEMORY, Tables
from toolkit.lazy_numpy import np
from toolkit.mix.join import JoinedSet, names_for_rules
from toolkit.rules.expressions import paths_in
from toolkit.rules.ruleset import Outcome, RuleSet
from toolkit.storage.reading import open_stored

if TYPE_CHECKING:
    from toolkit.mix.join import JoinedShard

FIELD = "duplicate_of"
"""The field of a value that names the document which this one is a copy of: ``[source, id]``, or null.

Where ids are not unique, it is ``[source, id, SHARD:ROW]``.
"""

_COPY_OF = schema.nullable(schema.list_of(schema.STR))

COPY = struct.Struct("<QQIHBB")
"""A copy: hashes of (source, id) of the document and of the other one; its row, from 1; the rule by index; the set by
index; bits `ONLY`, `ELSEWHERE`, `GONE`."""

ONLY, ELSEWHERE, GONE = 1, 2, 4
"""No other rule drops it; the other one may be in another dataset that the set was held against; none of that: just a
document that is dropped."""


class Fates(msgspec.Struct):
    """The outcome of some documents.

    Attributes:
        staying: Hashes (xxh3-64) of (source, id) of documents that stay, 8 bytes each, little-endian.
        copies: Copies of those that are dropped as copies, as `COPY` has it; one for each rule and key. If a set was
            held against other datasets, also of all that are dropped, with `GONE`.
        written: Documents in the output, as `toolkit.records.identity.NOTED` has them, where these are noted.
    """

    staying: bytes = b""
    copies: bytes = b""
    written: bytes = b""


class _CopyRule(NamedTuple):
    """A rule about copies.

    Attributes:
        rule: Index.
        set: Index of a set whose key it mentions.
        key: Name of the key in values.
        elsewhere: `ELSEWHERE` if the set was held against other datasets.
    """

    rule: int
    set: int
    key: str
    elsewhere: int


def keys_of_copies(sets: Sequence[JoinedSet]) -> dict[str, tuple[int, str, int]]:
    """Return the keys with a `duplicate_of` field, by name in the mix. Values are those of `_CopyRule`."""
    results = {}
    for i, joined in enumerate(sets):
        for key in joined.keys:
            declared = key.declared.not_null
            if declared and declared.kind == "object" and declared.get(FIELD) == _COPY_OF and not key.hidden:
                against = bool(key.settings and key.settings.get("against"))
                results[key.name] = i, schema.field_name(key.key), ELSEWHERE * against
    return results


class Copies:
    """Finds documents dropped as copies.

    Args:
        rules: Rules of a stream, compiled.
        work: Shard of the stream, with the sets that it joins.

    Attributes:
        rules: Rules that do; if there are none, nothing has to be noted.
    """

    def __init__(self, rules: RuleSet, work: "JoinedShard") -> None:
        sets, self._root = work.sets, work.dataset.documents if work.dataset.duplicate_ids == "allow" else ""
        self._compiled = rules.compiled
        keys, names = keys_of_copies(sets), names_for_rules(sets)
        self.rules = [
            _CopyRule(i, *keys[name])
            for i, compiled_rule in enumerate(rules.compiled)
            if compiled_rule.rule.drops
            for name in sorted(compiled_rule.keys & keys.keys())
            if _mentions(rules, i, name, names)
        ]
        copying = {rule.rule for rule in self.rules}
        self._other_rules = [
            compiled_rule
            for i, compiled_rule in enumerate(rules.compiled)
            if compiled_rule.rule.drops and i not in copying
        ]
        self._notes_gone = any(rule.elsewhere for rule in self.rules)
        for name, (set_, key, _) in keys.items():
            if any((rule.set, rule.key) == (set_, key) for rule in self.rules):
                rules.needs.keys.add(name)
                rules.needs.fields.setdefault(name, set()).add(FIELD)
        rules.needs.source |= bool(self.rules)
        self.start()

    def start(self) -> None:
        """Start with no documents."""
        self._staying: list[int] = []
        self._copies: list[bytes] = []

    def note(self, outcome: Outcome, number: int, values: Sequence[Any]) -> None:
        """Note the outcome of a document.

        Args:
            outcome: Decision on it.
            number: Row, from 1.
            values: Values of each argument of the rules, the document last.

        Raises:
            DataError: if a value names no document.
        """
        document = values[-1]
        hash_ = self._hash(document.source, document.id, getattr(document, "place", ""))
        # sets made where ids were unique, or by others, name no place
        known_by = dict.fromkeys([hash_, self._hash(document.source, document.id)])
        if not isinstance(outcome, int):
            self._staying.extend(known_by)
            return
        results = [
            rule for rule in self.rules if rule.rule >= outcome and self._drops(self._compiled[rule.rule], values)
        ]
        named = [(item, copied) for item in results if (copied := self._copied(item, values)) is not None]
        has_others = {item.rule for item in results} != {
            item.rule for item, _ in named
        }  # which asks for something else, too
        has_others = has_others or any(self._drops(compiled_rule, values) for compiled_rule in self._other_rules)
        for item, name in named:
            for own in known_by:
                flags = item.elsewhere | ONLY * (not has_others and own == hash_)
                self._copies.append(COPY.pack(own, self._hash(*name), number, item.rule, item.set, flags))
        if not (results or has_others):  # a sample alone
            self._staying.extend(known_by)
        elif self._notes_gone:
            self._copies.extend(COPY.pack(own, own, number, 0, 0, GONE) for own in known_by)

    def take(self) -> Fates:
        """Return the outcomes since the last call."""
        fates = Fates(struct.pack(f"<{len(self._staying)}Q", *self._staying), b"".join(self._copies))
        self.start()
        return fates

    def _hash(self, source: str, id: str, place: str = "") -> int:
        """Return the hash of a document; where ids may repeat, that of its place in this dataset, if it has one."""
        return row_hash(source, f"{id}\0{place}\0{self._root}" if place and self._root else id)

    @staticmethod
    def _drops(rule: Any, values: Sequence[Any]) -> bool:
        """Return True if a rule drops a document, drawn or not. A rule that cannot use its values does not."""
        with contextlib.suppress(DataError):
            return bool(rule.rules_out(values))
        return False

    @staticmethod
    def _copied(rule: _CopyRule, values: Sequence[Any]) -> Sequence[str] | None:
        value = getattr(values[rule.set], rule.key)
        copied: Sequence[str] | None = None if value is None else getattr(value, FIELD)
        if copied is not None and len(copied) not in (2, 3):
            raise DataError(f"expected [source, id] as `{FIELD}`, got {list(copied)!r}")
        return copied


def _mentions(rules: RuleSet, i: int, name: str, names: Any) -> bool:
    """Return True if a rule reads the key's original of a copy."""
    rule = rules.rules[i]
    if rule.foreign:
        return any(FIELD in text for text in rule.foreign.texts)
    for text in rule.expressions:
        for path in paths_in(text, names):
            if f"{path}.".startswith(f"{name}.{FIELD}.") or (path == name and FIELD in text):
                return True
    return False


_READ = 1 << 16
"""Copies, or documents that stay, that are read at a time."""

_RECORD = {"hash": "<u8", "of": "<u8", "row": "<u4", "rule": "<u2", "set": "u1", "flags": "u1"}
"""The fields of `COPY`."""

_FIRST = """
INSERT INTO stand SELECT hash, 0 FROM copies
WHERE NOT gone AND elsewhere AND (hash = of OR of NOT IN (SELECT hash FROM copies WHERE gone))
"""
"""Copies of documents of other datasets stand: of those that are not here, or called as the copy itself."""

_ROUND = """
INSERT INTO stand SELECT DISTINCT hash, (SELECT max(round) + 1 FROM stand) FROM copies
WHERE NOT gone AND of IN (SELECT hash FROM stand WHERE round = (SELECT max(round) FROM stand))
AND hash NOT IN (SELECT hash FROM stand)
"""

_LEFT = """
CREATE TABLE orphans AS SELECT shard, row, rule, set FROM copies WHERE sole AND hash NOT IN (SELECT hash FROM stand)
QUALIFY row_number() OVER (PARTITION BY shard, row ORDER BY n) = 1
"""
"""Documents that nothing stands for; of several rules that drop one, the first."""


class ShardNotes(NamedTuple):
    """The notes of a shard: paths of the files, and bytes in both together."""

    staying: str
    copies: str
    size: int


class Orphan(NamedTuple):
    """A document without a kept original: shard by index, row from 1, the rule and the set by index."""

    shard: int
    row: int
    rule: int
    set: int


class OrphanCounts(NamedTuple):
    """The orphans: how many there are by shard, rule and set; and the first of them."""

    counts: Counter[tuple[int, int, int]]
    first: list[Orphan]


def judge(notes: Iterable[ShardNotes | None], memory: int = MEMORY) -> OrphanCounts:
    """Return the orphans of a mix.

    Args:
        notes: Notes of each shard, in order; None for a shard without rules that drop copies.
        memory: Bytes of memory; what does not fit is on local disk.
    """
    shards = [(number, item) for number, item in enumerate(notes) if item]
    if not any(item.size for _, item in shards):
        return OrphanCounts(Counter(), [])
    record, rows = np.dtype([*_RECORD.items()]), 0
    with Tables(memory) as tables:
        for number, item in [(0, None), *shards]:
            for hashes in _blocks(item.staying, np.dtype("<u8")) if item else [np.zeros(0, dtype="<u8")]:
                tables.append("stand", hash=hashes, round=np.zeros(len(hashes), dtype=np.int64))
            for copies in _blocks(item.copies, record) if item else [np.zeros(0, dtype=record)]:
                columns = {name: np.ascontiguousarray(copies[name]) for name in _RECORD}
                flags = {"sole": ONLY, "elsewhere": ELSEWHERE, "gone": GONE}
                columns |= {name: copies["flags"] & bit != 0 for name, bit in flags.items()}
                columns |= {"shard": np.full(len(copies), number), "n": np.arange(rows, rows + len(copies))}
                tables.append("copies", **columns)
                rows += len(copies)
        tables.query(_FIRST)
        while tables.query(_ROUND)["Count"][0]:
            pass
        tables.query(_LEFT)
        counts = tables.query("SELECT shard, rule, set, count(*) AS n FROM orphans GROUP BY ALL")
        first = tables.query("SELECT shard, row, rule, set FROM orphans ORDER BY shard, row LIMIT 3")
    *keys, documents = (column.tolist() for column in counts.values())
    examples = zip(*(column.tolist() for column in first.values()), strict=True)
    return OrphanCounts(
        Counter(dict(zip(zip(*keys, strict=True), documents, strict=True))), [Orphan(*example) for example in examples]
    )


def _blocks(path: str, kind: "np.dtype[Any]") -> "Iterator[np.ndarray[Any, Any]]":
    """Yield the records of a file, some at a time."""
    with open_stored(path) as stream:
        while data := _read(stream.read, _READ * kind.itemsize):
            yield np.frombuffer(data, dtype=kind)


def _read(read: Callable[[int], bytes], size: int) -> bytes:
    """Return so many bytes; fewer at the end alone."""
    data = read(size)
    while data and len(data) < size and (more := read(size - len(data))):
        data += more
    return data
