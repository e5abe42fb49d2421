"""Compares two attribute sets of the same documents, row by row: two versions of a tagger, say.

Values are compared by their parts that are one number, text or truth value a document (``language.label``); and as a
whole, by whether they are the same.
"""

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from toolkit.aggregate.distributions import Distribution, Distributions, Leaf, leaves, together
from toolkit.aggregate.samples import Least
from toolkit.config.settings import ConfigStruct
from toolkit.data.row_index import row_hash
from toolkit.data.schema import Type, field_name, walk
from toolkit.execution.executors import Report
from toolkit.mix.join import RAW_ATTRIBUTES, JoinedShard, inputs_of, joint_rows
from toolkit.mix.joined_sets import Key
from toolkit.tag.sample import key_of

PAIRS = 10_000
"""Different pairs of labels that are counted; others are counted together."""

TEXT_CHARS = 2000
"""Code points of a document's text that an example has."""


class Pair(ConfigStruct):
    """A key of the first set, and the key of the second that it is compared with.

    Attributes:
        one, other: the keys.
        path: fields inside both of which alone is asked; empty for all.
    """

    one: Key
    other: Key
    path: str = ""


class ShardToCompare(ConfigStruct):
    """A shard in two sets.

    Attributes:
        work: joins the two sets.
        pairs: Pairs of keys.
        examples: Examples of each part, at most so many.
        seed: Seed of the documents that are shown where labels differ.
    """

    work: JoinedShard
    pairs: list[Pair]
    examples: int
    seed: int


class Example(ConfigStruct):
    """A document in which a part of the values differs.

    Attributes:
        rank: the greater, the sooner it is shown.
        one, other: the values.
        text: Text of the document, its beginning.
    """

    rank: float
    place: str
    id: str
    source: str
    one: Any
    other: Any
    text: str


class Moments(msgspec.Struct):
    """Means of pairs of numbers, and how they vary about them: exact also where they vary little.

    Source: Welford (1962); shards are put together as by Chan, Golub and LeVeque (1979).

    Attributes:
        count: Count of pairs.
        x, y: the means.
        xx, yy, xy: sums of the products of the differences from the means.
    """

    count: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    yy: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float) -> None:
        """Add a pair."""
        self.count += 1
        dx, dy = x - self.x, y - self.y
        self.x += dx / self.count
        self.y += dy / self.count
        self.xx += dx * (x - self.x)
        self.yy += dy * (y - self.y)
        self.xy += dx * (y - self.y)

    def merge(self, other: "Moments") -> None:
        """Add the pairs of another shard."""
        if not other.count:
            return
        count = self.count + other.count
        dx, dy, weight = other.x - self.x, other.y - self.y, self.count * other.count / count
        self.xx += other.xx + dx * dx * weight
        self.yy += other.yy + dy * dy * weight
        self.xy += other.xy + dx * dy * weight
        self.x += dx * other.count / count
        self.y += dy * other.count / count
        self.count = count

    @property
    def correlation(self) -> float | None:
        """Return Pearson's coefficient; None where one of the two does not vary."""
        spread = math.sqrt(self.xx) * math.sqrt(self.yy)
        return max(-1.0, min(1.0, self.xy / spread)) if spread else None


class Part(msgspec.Struct, kw_only=True):
    """The counts of a part of the values.

    Attributes:
        key: Key of the first set.
        path: Path of the part in the value, empty for the value as a whole.
        kind: ``number``; ``label`` (texts and truth values); ``whole``, of which is only told whether it is the same.
        null_in_both, null_in_one, null_in_other: documents without a value in both sets, in the first alone, in the
            second alone.
        both: documents with a value in both.
        same: of these, documents with the same one.
        pairs: Pairs of labels, how often each is met, as JSON ``[one, other]``; those beyond `PAIRS` under the empty
            text.
        moments: Moments of the numbers in both sets.
        difference, absolute: sums of the differences, of the second from the first, and of their absolute values.
        largest: absolute difference.
        differences: y - x.
        examples: documents in which it differs, those first that differ most; of labels drawn by their hashes.
    """

    key: str
    other_key: str
    path: str
    kind: Literal["number", "label", "whole"]
    null_in_both: int = 0
    null_in_one: int = 0
    null_in_other: int = 0
    both: int = 0
    same: int = 0
    pairs: Counter[str] = msgspec.field(default_factory=Counter)
    moments: Moments = msgspec.field(default_factory=Moments)
    difference: float = 0.0
    absolute: float = 0.0
    largest: float = 0.0
    differences: Distribution | None = None
    examples: list[Example] = []

    @property
    def agreement(self) -> float | None:
        """Return the share of documents with a value in both sets in which it is the same."""
        return self.same / self.both if self.both else None


class Compared(msgspec.Struct):
    """The comparison of two sets: documents, and each part of the values."""

    rows: int = 0
    parts: list[Part] = []

    def add(self, other: "Compared", examples: int) -> None:
        """Add what was found in another shard."""
        self.rows += other.rows
        if not self.parts:
            self.parts = other.parts
            return
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            _add(mine, theirs, examples)


def _add(mine: Part, theirs: Part, examples: int) -> None:
    for name in ("null_in_both", "null_in_one", "null_in_other", "both", "same"):
        setattr(mine, name, getattr(mine, name) + getattr(theirs, name))
    for pair, count in theirs.pairs.items():
        _count(mine.pairs, pair, count)
    mine.moments.merge(theirs.moments)
    mine.difference += theirs.difference
    mine.absolute += theirs.absolute
    mine.largest = max(mine.largest, theirs.largest)
    if differences := [item for item in (mine.differences, theirs.differences) if item]:
        mine.differences = together(differences)
    mine.examples = heapq.nsmallest(examples, mine.examples + theirs.examples, key=lambda example: -example.rank)


def _count(pairs: Counter[str], pair: str, count: int = 1) -> None:
    pairs[pair if pair in pairs or len(pairs) < PAIRS else ""] += count


def parts_of(pairs: Sequence[Pair]) -> list[tuple[Pair, Leaf | None, Leaf | None, Part]]:
    """Return the parts of values that can be compared: those of both keys that are of one kind, then the whole."""
    results: list[tuple[Pair, Leaf | None, Leaf | None, Part]] = []
    for pair in pairs:
        theirs = {leaf.path: leaf for leaf in _leaves(pair.other)}
        own = [leaf for leaf in _leaves(pair.one) if _is_asked(leaf.path, pair.path)]
        for leaf in own:
            other = theirs.get(leaf.path)
            if other and (other.kind == "number") == (leaf.kind == "number"):
                kind: Literal["number", "label"] = "number" if leaf.kind == "number" else "label"
                part = Part(key=pair.one.key, other_key=pair.other.key, path=leaf.path.removeprefix("."), kind=kind)
                results.append((pair, leaf, other, part))
        if not pair.path and any(_has_more(key.declared) for key in (pair.one, pair.other)):
            results.append((pair, None, None, Part(key=pair.one.key, other_key=pair.other.key, path="", kind="whole")))
    return results


def _leaves(key: Key) -> list[Leaf]:
    return [leaf for leaf in leaves("", key.declared) if "[]" not in leaf.path]


def _has_more(type_: Type) -> bool:
    """Return whether values have something in them that is none of the parts."""
    return any(type_.kind in ("list", "map", "any", "span") for _, type_ in walk(type_))


def _is_asked(path: str, wanted: str) -> bool:
    return not wanted or path == f".{wanted}" or path.startswith(f".{wanted}.") or path == f"len(.{wanted})"


def compare_shard(job: ShardToCompare, report: Report) -> Compared:
    """Return the comparison of two sets in a shard.

    Raises:
        DataError: as a mix of the two would.
    """
    work = job.work
    state, _ = inputs_of(work)
    result = Compared()
    parts = parts_of(job.pairs)
    diffs = [Distributions() for _ in parts]
    least = Least[tuple[float, int, Example]]()
    names = {key.name for joined in work.sets for key in joined.keys}
    for document, number, lines, values in joint_rows(work, names, late=True):
        result.rows += 1
        raws = None
        for i, (pair, leaf, other_leaf, part) in enumerate(parts):
            if leaf is None or other_leaf is None:
                raws = raws or [RAW_ATTRIBUTES.decode(line) for line in lines]
                one = raws[0].value(pair.one.key, pair.one.absent)
                other = raws[1].value(pair.other.key, pair.other.absent)
            else:
                one = leaf.get(getattr(values[0], field_name(pair.one.key)))[0]
                other = other_leaf.get(getattr(values[1], field_name(pair.other.key)))[0]
            rank = _note(part, one, other, diffs[i])
            if rank is None:
                continue
            if part.kind != "number":
                rank = float(key_of(row_hash(document.source, document.id), job.seed))
            if least.has_room(str(i), job.examples, (-rank, number)):
                text, place = document.text[:TEXT_CHARS], f"{work.name}:{number}"
                example = Example(rank, place, document.id, document.source, one, other, text)
                least.add(str(i), job.examples, [(-rank, number, example)])
    report(state.rows, 0)
    for i, (_, _, _, part) in enumerate(parts):
        part.examples = [example for *_, example in least.found.get(str(i), [])]
        finished = diffs[i].finished()
        part.differences = finished[0] if finished else None
        result.parts.append(part)
    return result


_DIFFERENCE = Leaf("difference", "number", lambda value: (value,))


def _note(part: Part, one: Any, other: Any, differences: Distributions) -> float | None:
    """Count the values of a document; return by how much they differ, None if they do not."""
    if one is None or other is None:
        name = "null_in_both" if one is None and other is None else "null_in_one" if one is None else "null_in_other"
        setattr(part, name, getattr(part, name) + 1)
        return None
    part.both += 1
    same = one == other
    part.same += same
    if part.kind == "label":
        _count(part.pairs, msgspec.json.encode([one, other]).decode())
    elif part.kind == "number":
        x, y = float(one), float(other)
        difference = y - x
        part.moments.add(x, y)
        part.difference += difference
        part.absolute += abs(difference)
        part.largest = max(part.largest, abs(difference))
        differences.add("", _DIFFERENCE, [difference])
        return abs(difference) if not same else None
    return None if same else 0.0
