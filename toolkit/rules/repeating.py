"""How often a document is written: what the rules `repeat` make of it together, and what a budget leaves of that.

The amounts of several rules are multiplied, and one draw by hash decides about the fraction of the product.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from toolkit.errors import ConfigError
from toolkit.rules.rule import CompiledRule, Compiler, Function, Values, document_hash, refused

MOST = 100
"""The largest amount: copies of a document are in memory together."""

SEED = "repeat"
"""The seed where a rule gives none; it is not that of `sample`, so that the two draw independently."""


@dataclass(frozen=True, eq=False)
class Repeats(CompiledRule):
    """A rule that says how often a document is written.

    Attributes:
        amount: the code of the number; 1 where the rule does not apply.
        applies: the code of whether it does.
        seed: of the draw.
        count: gives the copies that all rules together make of a document; known when all are compiled.
    """

    amount: str
    applies: str
    seed: str
    count: Function | None = None

    def times(self, values: Values) -> float:
        """Return how often the rule has a document written."""
        return float(self.run(self._times, values))

    @cached_property
    def _times(self) -> Function:
        return self.function(self.amount)

    def rules_out(self, values: Values) -> bool:
        """Return True if the amount is 0."""
        return self.times(values) == 0

    def verdict(self, values: Values) -> str:
        """Return how often it has the document written, and what all such rules come to."""
        if self.times(values) == 1:
            return "repeats nothing"
        copies = self.run(self.count, values) if self.count else 0
        times = "drops it" if copies == 0 else "it is written once" if copies == 1 else f"it is written {copies} times"
        return f"repeats it x {self.times(values):g}: {times}"


@dataclass(frozen=True, eq=False)
class Takes(CompiledRule):
    """A budget: it takes the copies of documents whose hashes are not above the bound of their group.

    Attributes:
        bound: the code of the bound; that of None while bounds are looked for, and all copies are taken.
        group: the code of the group.
        amount: the code of the amount of one copy; empty if that is told by the size of the text.
        unit: of amounts.
        seed: of the hashes.
        draws_documents: True if it takes all copies of a document or none.
        count: gives the copies that it takes; known when all rules are compiled.
    """

    bound: str
    group: str
    amount: str
    unit: str
    seed: str
    draws_documents: bool
    count: Function | None = None

    def of(self, values: Values, chars: int, size: int) -> tuple[str, float]:
        """Return the group of a document, and the amount of one copy of it.

        Args:
            values: of the document.
            chars: code points of its text before edits.
            size: bytes of that.

        Raises:
            DataError: if an expression cannot use a value.
        """
        group = str(self.run(self._group_of, values))
        if not self.amount:
            return group, {"documents": 1, "bytes": size, "characters": chars}[self.unit]
        amount = self.run(self._amount_of, values)
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 2**53:
            raise self.fault(f"of: expected a number of 0 or more, the {self.unit} of a document, got {amount!r}")
        return group, amount

    @cached_property
    def _group_of(self) -> Function:
        return self.function(self.group)

    @cached_property
    def _amount_of(self) -> Function:
        return self.function(self.amount)

    def verdict(self, values: Values) -> str:
        """Return how many of the copies of the document it takes."""
        copies = self.run(self.count, values) if self.count else 0
        return f"takes it {copies} times" if copies > 1 else "takes it" if copies else "drops it"


def copy_hash(seed: str, document: Any, copy: int) -> int:
    """Return the hash by which a copy, counted from 1, is drawn; that of the first is the document's."""
    return document_hash(seed if copy == 1 else f"{seed}\0{copy}", document)


class Combined(NamedTuple):
    """Rules with the conditions under which those about copies drop a document.

    Attributes:
        compiled: the rules, in order.
        copies: the code of how often a document is written; empty if that is once.
        blamed: for the rule that draws, the code of the index of the one that counts what the draw leaves out.
    """

    compiled: list[CompiledRule]
    copies: str
    blamed: dict[int, str]


def combined(compiled: Sequence[CompiledRule], compiler: Compiler) -> Combined:
    """Return rules that know how often all of them together have a document written.

    An amount of 0 drops where it stands. The draw is where the last rule `repeat` stands, when nothing that the rules
    before it rule out is asked for; what it leaves out is counted by the last of these rules that applies.

    Args:
        compiled: the rules, in order.
        compiler: that compiled them.

    Raises:
        ConfigError: if rules give two seeds for the one draw.
    """
    repeats = [i for i, each in enumerate(compiled) if isinstance(each, Repeats)]
    takes = [i for i, each in enumerate(compiled) if isinstance(each, Takes)]
    found = list(compiled)
    if not repeats and not takes:
        return Combined(found, "", {})
    code, blamed = "1", dict[int, str]()
    if repeats:
        amounts = [each.amount for each in compiled if isinstance(each, Repeats)]
        code = compiler.called(partial(_drawn, _seed(compiled)), *amounts)
        for i in repeats:
            each = compiled[i]
            assert isinstance(each, Repeats)
            condition = f"{code} == 0" if i == repeats[-1] else f"{each.amount} == 0"
            found[i] = dataclasses.replace(each, condition=condition, count=compiler.function(code))
        others = [(i, each.applies) for i, each in enumerate(compiled) if isinstance(each, Repeats)]
        blamed[repeats[-1]] = " else ".join(f"{i} if {applies}" for i, applies in reversed(others)) + " else -1"
    for i in takes:
        each = compiled[i]
        assert isinstance(each, Takes)
        code = compiler.called(partial(_taken, each.seed, each.draws_documents), code, each.bound)
        found[i] = dataclasses.replace(each, condition=f"{code} == 0", count=compiler.function(code))
    compiler.needs.source = True
    return Combined(found, code, blamed)


def _seed(compiled: Sequence[CompiledRule]) -> str:
    repeats = [each for each in compiled if isinstance(each, Repeats)]
    for each in repeats:
        if each.seed != repeats[0].seed:
            got = f"{repeats[0].seed!r} and {each.seed!r}"
            raise refused(each.rule, f"expected one seed for all rules `repeat`, which draw together, got {got}")
    return repeats[0].seed


def checked_amount(value: Any) -> float:
    """Return an amount; a ValueError if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"expected a number of 0 or more, how often it is written, got {value!r}")
    return value


def _drawn(seed: str, document: Any, *amounts: float) -> int:
    """Return the copies of a document: the whole part of the product, and one more if the draw is below the rest."""
    amount = math.prod(amounts)
    if amount > MOST:
        raise ValueError(f"expected an amount of at most {MOST}, got {amount:g}; write `min(…, {MOST})`")
    whole = int(amount)
    if amount == whole:
        return whole
    _check_source(document)
    return whole + (document_hash(seed, document) < (amount - whole) * 2**64)


def _taken(seed: str, all_or_none: bool, document: Any, copies: int, bound: int | None) -> int:
    """Return how many of the copies of a document have hashes up to the bound; all of them, if the first one has."""
    if bound is None:
        return copies
    _check_source(document)
    if all_or_none:
        return copies if copy_hash(seed, document, 1) <= bound else 0
    return sum(copy_hash(seed, document, n) <= bound for n in range(1, copies + 1))


def _check_source(document: Any) -> None:
    if document.source is None:
        raise ValueError(
            "expected a document with a source, because source and id decide how often it is written, got one without"
        )


def check_curve(curve: Any) -> list[tuple[float, float]]:
    """Return the points of a curve, as numbers.

    Raises:
        ConfigError: if they are not pairs of a score and an amount, or the scores do not rise.
    """
    shape = "expected points [score, amount] such as [[0.0, 0], [0.5, 0.4], [1.0, 7]]"
    if not isinstance(curve, list) or not curve:
        raise ConfigError(f"{shape}, got {curve!r}")
    points: list[tuple[float, float]] = []
    for point in curve:
        if not isinstance(point, list) or len(point) != 2 or not all(map(_is_number, point)):
            raise ConfigError(f"{shape}, got {point!r}")
        score, amount = point
        if points and score <= points[-1][0]:
            raise ConfigError(f"expected scores that rise, got {score!r} after {points[-1][0]!r}")
        if not 0 <= amount <= MOST:
            raise ConfigError(f"expected amounts between 0 and {MOST}, got {amount!r}")
        points.append((score, amount))
    return points


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
