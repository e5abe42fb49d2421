"""The first step of a budget: of a shard, the hash and the amount of each copy that the rules leave, by group.

They are in a file for each shard, so that a run that was killed goes on, and no text is read for it:

    offset  bytes  what
    0       8      length of the head, little-endian
    8              the head, as JSON: `DrawHead`
            8 n    hashes, of one group behind the other, sorted within each
            8 n    amounts, as doubles, in the same order
"""

import os
import struct
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError
from toolkit.exchange.thresholds import Keys, KeySource
from toolkit.execution.executors import Report
from toolkit.execution.progress import Share
from toolkit.lazy_numpy import np
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.join import at_document, inputs_of
from toolkit.mix.rule_effects.preview import RuleBlock, blocks
from toolkit.rules.kinds.repeat import copy_hash
from toolkit.rules.ruleset import RuleSet
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import exists

MOST = 10_000
"""Groups of a budget: more are a mistake, as a rule, say an expression over the id."""

_LENGTH = struct.Struct("<Q")


class OfGroup(msgspec.Struct, frozen=True):
    """Draws of a group in a shard: how many, the amount of their documents, each counted once, and that of all."""

    group: str
    copies: int
    once: float
    available: float


class DrawHead(msgspec.Struct, frozen=True):
    """Content digests of the inputs, and groups, in order."""

    documents: str
    attributes: dict[str, str]
    rows: int
    groups: list[OfGroup]


class BudgetDrawTask(ConfigStruct):
    """A shard, and the path of its draws. If the folder is on another machine, they are returned."""

    work: ShardToMix
    path: str
    is_shared: bool


class ShardDrawn(NamedTuple):
    """The groups of a shard; and its file, where that could not be written."""

    groups: list[OfGroup]
    data: bytes = b""


def draw_shard(drawing: BudgetDrawTask, report: Report) -> ShardDrawn:
    """Write the draws of a shard, unless those of its inputs exist.

    Raises:
        DataError: if an input is not what it should be, or an expression cannot use a value; the document is named.
    """
    work = drawing.work
    state, inputs = inputs_of(work)
    here = drawing.is_shared or os.path.isdir(os.path.dirname(drawing.path))
    if here and exists(drawing.path):
        head = head_of(store_of(drawing.path).read(drawing.path))
        if head and (head.documents, head.attributes) == (state.content, inputs):
            report(head.rows, 0)
            return ShardDrawn(head.groups)
    rules = work.compile_rules()
    draws, progress = _Draws(work, rules), Share(report, state.rows, state.size)
    for block in blocks(work, rules):
        draws.add(block)
        progress(len(block.chars))
    groups, arrays = draws.sorted()
    head = DrawHead(state.content, inputs, state.rows, groups)
    packed = msgspec.json.encode(head)
    data = _LENGTH.pack(len(packed)) + packed + arrays
    if here:
        write_file(drawing.path, data)
    return ShardDrawn(groups, b"" if here else data)


class _Draws:
    """The copies of the documents of a shard, in arrays."""

    def __init__(self, work: ShardToMix, rules: RuleSet) -> None:
        assert rules.budget
        self._work, self._rules, self._takes = work, rules, rules.budget
        self._groups: dict[str, int] = {}
        self._once: list[float] = []
        self._hashes, self._amounts, self._numbers = array("Q"), array("d"), array("I")
        self._row = 0

    def add(self, block: RuleBlock) -> None:
        """Take the next documents."""
        rules, takes, seed = self._rules, self._takes, self._takes.seed
        for values, chars, size, outcome in zip(block.values(), block.chars, block.bytes, block.outcomes, strict=True):
            self._row += 1
            if isinstance(outcome, int):
                continue
            document = values[-1]
            try:
                copies = rules.copies(*values)
                group, amount = takes.of(values, chars, size)
                number = self._number(group)
            except DataError as error:
                raise at_document(error, self._work, self._row, document.id) from None
            self._once[number] += amount
            drawn, times = (min(copies, 1), copies) if takes.draws_documents else (copies, 1)
            for copy in range(1, drawn + 1):
                self._hashes.append(copy_hash(seed, document, copy))
                self._amounts.append(amount * times)
                self._numbers.append(number)

    def _number(self, group: str) -> int:
        number = self._groups.setdefault(group, len(self._groups))
        if number == len(self._once):
            if number >= MOST:
                raise self._takes.fault(f"by: expected at most {MOST:,} groups, got more; the last one is {group!r}")
            self._once.append(0.0)
        return number

    def sorted(self) -> tuple[list[OfGroup], bytes]:
        """Return the groups, and the bytes of the arrays."""
        hashes, amounts = np.frombuffer(self._hashes, dtype="<u8"), np.frombuffer(self._amounts, dtype="<f8")
        numbers = np.frombuffer(self._numbers, dtype=np.uint32)
        order = np.lexsort((hashes, numbers))
        counts = np.bincount(numbers, minlength=len(self._groups)).tolist()
        sums = np.bincount(numbers, weights=amounts, minlength=len(self._groups)).tolist()
        groups = [OfGroup(*item) for item in zip(self._groups, counts, self._once, sums, strict=True)]
        return groups, hashes[order].tobytes() + amounts[order].tobytes()


def head_of(data: bytes) -> DrawHead | None:
    """Return the head of a file of draws; None if it is damaged."""
    try:
        (length,) = _LENGTH.unpack_from(data)
        head = msgspec.json.decode(data[8 : 8 + length], type=DrawHead)
    except (struct.error, msgspec.DecodeError):
        return None
    entries = sum(group.copies for group in head.groups)
    return head if len(data) == 8 + length + 16 * entries else None


class DrawnKeys(KeySource):
    """The copies of shards, read from files, by number of the group."""

    paths: list[str]
    groups: list[str]

    def read(self) -> Iterator[Keys]:
        """Yield hashes and amounts of each shard and group.

        Raises:
            DataError: if a file is damaged.
        """
        numbers = {group: i for i, group in enumerate(self.groups)}
        for path in self.paths:
            data = store_of(path).read(path)
            head = head_of(data)
            if head is None:
                raise DataError("expected draws as they were written, they are damaged; run the mix again", path=path)
            entries = sum(group.copies for group in head.groups)
            begin = len(data) - 16 * entries
            hashes = np.frombuffer(data, dtype="<u8", count=entries, offset=begin)
            amounts = np.frombuffer(data, dtype="<f8", count=entries, offset=begin + 8 * entries)
            at = 0
            for group in head.groups:
                yield Keys(numbers[group.group], hashes[at : at + group.copies], amounts[at : at + group.copies])
                at += group.copies
