"""Comparison of two attribute sets of the same documents.

Values are compared by their parts that are one number, text or truth value a document (``language.label``); and as a
whole, by whether they are the same.
"""

import heapq
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from toolkit.aggregate.agreement import Agreement, Kind
from toolkit.aggregate.distributions import Leaf, leaves
from toolkit.aggregate.samples import Least
from toolkit.config.settings import ConfigStruct
from toolkit.data.row_index import row_hash
from toolkit.data.schema import Type, field_name, walk
from toolkit.execution.executors import Report
from toolkit.mix.join import RAW_ATTRIBUTES, JoinedKey, JoinedShard, Joint, inputs_of, joint_rows
from toolkit.tag.sample import key_of

TEXT_CHARS = 2000
"""Code points of a document's text that an example has."""

ROWS = 64
"""Documents of a block, whose texts are in memory at a time."""


class Pair(ConfigStruct):
    """A key of the first set, and its counterpart in the second.

    Attributes:
        one, other: Keys.
        path: Path of the only fields of both to compare; empty for all.
    """

    one: JoinedKey
    other: JoinedKey
    path: str = ""


class ShardToCompare(ConfigStruct):
    """A shard in two sets.

    Attributes:
        work: Shard, to which the two sets are joined.
        pairs: Pairs of keys.
        examples: Largest number of examples of each part.
        seed: Seed of the sample of documents whose labels differ.
    """

    work: JoinedShard
    pairs: list[Pair]
    examples: int
    seed: int


class Example(ConfigStruct):
    """A document with two different values of a part.

    Attributes:
        rank: Rank of the document; those of greater rank are shown first.
        one, other: Values.
        text: Beginning of the document's text.
    """

    rank: float
    place: str
    id: str
    source: str
    one: Any
    other: Any
    text: str


class Part(NamedTuple):
    """A part of the values of both sets.

    Attributes:
        pair: Keys.
        kind: Kind of its values.
        path: Path of the part in the value, empty for the value as a whole.
        leaves: Getters of the part in both sets; None for the value as a whole.
    """

    pair: Pair
    kind: Kind
    path: str = ""
    leaves: tuple[Leaf, Leaf] | None = None

    def columns(self, rows: Sequence[Joint]) -> tuple[list[Any], list[Any]]:
        """Return the values of documents in both sets."""
        keys = self.pair.one, self.pair.other
        if self.leaves is None:
            raws = (
                [RAW_ATTRIBUTES.decode(row[2][i]).value(key.key, key.absent) for row in rows]
                for i, key in enumerate(keys)
            )
            return next(raws), next(raws)
        one, other = (
            [leaf.get(getattr(row[3][i], field_name(key.key)))[0] for row in rows]
            for i, (key, leaf) in enumerate(zip(keys, self.leaves, strict=True))
        )
        return one, other


class Comparison(msgspec.Struct):
    """The comparison of two sets: the number of documents; agreement and examples of each part."""

    rows: int = 0
    parts: list[tuple[Agreement, list[Example]]] = []

    def merge(self, other: "Comparison", examples: int) -> None:
        """Add another shard, and keep so many examples: those of greatest rank."""
        self.rows += other.rows
        if not self.parts:
            self.parts = other.parts
            return
        for (agreement, mine), (more, theirs) in zip(self.parts, other.parts, strict=True):
            agreement.merge(more)
            mine[:] = heapq.nsmallest(examples, mine + theirs, key=lambda example: -example.rank)


def parts_of(pairs: Sequence[Pair]) -> list[Part]:
    """Return the comparable parts of values: those of both keys that are of one kind, then the whole."""
    results: list[Part] = []
    for pair in pairs:
        theirs = {leaf.path: leaf for leaf in _leaves(pair.other)}
        for leaf in _leaves(pair.one):
            other = theirs.get(leaf.path)
            if _is_inside(leaf.path, pair.path) and other and (other.kind == "number") == (leaf.kind == "number"):
                kind: Kind = "number" if leaf.kind == "number" else "label"
                results.append(Part(pair, kind, leaf.path.removeprefix("."), (leaf, other)))
        if not pair.path and any(_has_more(key.declared) for key in (pair.one, pair.other)):
            results.append(Part(pair, "whole"))
    return results


def _leaves(key: JoinedKey) -> list[Leaf]:
    return [leaf for leaf in leaves("", key.declared) if "[]" not in leaf.path]


def _has_more(type_: Type) -> bool:
    """Return True if values have contents outside all parts."""
    return any(type_.kind in ("list", "map", "any", "span") for _, type_ in walk(type_))


def _is_inside(path: str, outer: str) -> bool:
    return not outer or path == f".{outer}" or path.startswith(f".{outer}.") or path == f"len(.{outer})"


def compare_shard(job: ShardToCompare, report: Report) -> Comparison:
    """Return the comparison of two sets in a shard.

    Raises:
        DataError: As for a mix of the two.
    """
    work = job.work
    state, _ = inputs_of(work)
    parts = parts_of(job.pairs)
    agreements = [Agreement() for _ in parts]
    least = Least[tuple[float, int, Example]]()
    names = {key.name for joined in work.sets for key in joined.keys}
    rows = joint_rows(work, names, late=True)
    count = 0
    while block := list(islice(rows, ROWS)):
        count += len(block)
        for i, (part, agreement) in enumerate(zip(parts, agreements, strict=True)):
            ones, theirs = part.columns(block)
            for row, one, other, rank in zip(block, ones, theirs, agreement.add(part.kind, ones, theirs), strict=True):
                if rank is None:
                    continue
                document, number = row[:2]
                if part.kind != "number":
                    rank = float(key_of(row_hash(document.source, document.id), job.seed))
                if least.has_room(str(i), job.examples, (-rank, number)):
                    text, place = document.text[:TEXT_CHARS], f"{work.name}:{number}"
                    example = Example(rank, place, document.id, document.source, one, other, text)
                    least.add(str(i), job.examples, [(-rank, number, example)])
    report(state.rows, 0)
    examples = [[example for *_, example in least.items.get(str(i), [])] for i in range(len(parts))]
    return Comparison(count, list(zip(agreements, examples, strict=True)))
