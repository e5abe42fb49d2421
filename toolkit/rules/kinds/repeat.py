"""Rules about how often a document is written: ``repeat``, and what a budget leaves of that."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Annotated, Any, Literal

import msgspec

from toolkit.config import settings
from toolkit.config.settings import ConfigNode, ConfigStruct, Description
from toolkit.data.schema import is_number
from toolkit.errors import ConfigError
from toolkit.rules.rule import CompiledRule, Compiler, Form, Function, Role, Rule, Values, document_hash, refused

MOST = 100
"""The largest amount: copies of a document are in memory together."""

SEED = "repeat"
"""The seed where a rule gives none; it is not that of `sample`, so that the two draw independently."""


class Curve(ConfigStruct):
    """An amount by a score.

    Attributes:
        score: Expression of the score.
        curve: Points [score, amount] with rising scores, with straight lines between them; or what gives them.
    """

    score: str
    curve: list[Any] | dict[str, Any]


class CurveTarget(ConfigStruct):
    """A curve over ranks from 0 to 1 with a given average.

    Source: allenai/dolma3 (``datasets/dolma3_mix/mixes/mixing_utils.py``): the amount is C x^p e^(lambda x), x being
    the rank above what is dropped. Of all curves with this average it is the one with the largest p up to 2, and then
    the largest lambda up to 2, that gives the last step at most the largest amount. A step has the mean of its ranks.

    Attributes:
        average: Mean amount over all ranks: what a topic is to have, divided by what there is of it.
        most: Largest amount, that of the last step.
        drop_below: Rank below which nothing is written; rounded down to a step.
        steps: Number of steps, each of as many ranks.
    """

    average: Annotated[float, msgspec.Meta(gt=0, le=MOST)]
    most: Annotated[float, msgspec.Meta(gt=0, le=MOST)] = 7
    drop_below: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0
    steps: Annotated[int, msgspec.Meta(ge=2, le=1000)] = 20

    def points(self) -> list[list[float]]:
        """Return the points of the curve.

        Raises:
            ConfigError: if no curve has this average.
        """
        edges = [i / self.steps for i in range(self.steps + 1)]
        first = bisect_right(edges, self.drop_below) - 1

        def solved(p: float, rate: float) -> list[float]:
            sums = [_integral(p, rate, edge - edges[first]) for edge in edges[first:]]
            return [self.average / sums[-1] * (b - a) * self.steps for a, b in pairwise(sums)]

        def is_possible(p: float, rate: float) -> bool:
            return solved(p, rate)[-1] <= self.most + 1e-6

        power = max((p for i in range(20) if is_possible(p := 0.01 + 1.99 * i / 19, 0)), default=None)
        if power is None:
            most = self.average * self.most / solved(0.01, 0)[-1]
            raise ConfigError(
                f"average: expected at most {most:.4g}, as nothing below the rank {edges[first]:g} is written, and "
                f"nothing more than {self.most:g} times, got {self.average:g}"
            )
        low, high = 0.0, 2.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if is_possible(power, middle) else (low, middle)
        amounts = [0.0] * first + solved(power, low)
        steps = zip(pairwise(edges), amounts, strict=True)
        return [point for (a, b), y in steps for point in ([a, y], [math.nextafter(b, 0) if b < 1 else 1.0, y])]


def _integral(p: float, rate: float, end: float) -> float:
    """Return the integral of x^p e^(rate x) from 0, by series. Rate and end are small."""
    return math.fsum(rate**n / math.factorial(n) * end ** (p + n + 1) / (p + n + 1) for n in range(30))


class RepeatForm(Form):
    """``repeat: 2.5`` writes a document twice, and half of them a third time: a number, an expression, or a curve.

    Attributes:
        repeat: number of copies of a document: 0 drops it, 0.3 keeps three of ten, 2.5 is twice, and half of them a
            third time; a number, an expression that gives one, or a curve over a score with straight lines between its
            points, or solved from the `average` that is wanted
        seed: another seed draws other documents
    """

    repeat: Annotated[
        int | float | str | dict[str, Any],
        Description(title="a number, an expression, or {score: E, curve: [[SCORE, AMOUNT], …] or {average: NUMBER}}"),
    ]
    seed: str | int = ""

    KEY = "repeat"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        option, seed = self.repeat, str(self.seed) or SEED
        if isinstance(option, dict):
            at = place.at("repeat")
            settings.refuse_unknown(at, Curve, (), "repeat")
            form = settings.convert(at, Curve)
            with at.errors_at("curve"):
                solved = isinstance(form.curve, dict)
                curve = settings.convert(at.at("curve"), CurveTarget).points() if solved else form.curve
                points = check_curve(curve)
            name = self.named(f"repeat by {form.score}")
            return [Repeat(name=name, when=self.when, expression=form.score, curve=points, seed=seed)]
        if isinstance(option, bool) or (isinstance(option, int | float) and not 0 <= option <= MOST):
            raise place.error(("repeat",), f"expected a number between 0 and {MOST}, or an expression, got {option!r}")
        return [Repeat(name=self.named(f"repeat {option}"), when=self.when, expression=str(option), seed=seed)]


class Repeat(Rule):
    """The rule: `expression` gives the amount; with a `curve`, the score that the curve has the amount of.

    Attributes:
        curve: Points (score, amount), with straight lines between them.
        seed: Seed of the draw.
    """

    curve: list[tuple[float, float]] = []
    seed: str = SEED

    FORM = RepeatForm
    ROLE = Role.REPEATS
    DRAWS = True

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        condition = compiler.condition(self, names)
        expression = compiler.value(self, names, self.expression)
        if expression.type.kind not in ("int", "float", "any"):
            null = expression.type.not_null.kind in ("int", "float")
            got = "a value that may be null; test it first" if null else f"a value of type {expression.type}"
            title = "the score" if self.curve else "how often a document is written"
            raise refused(self, f"expected a number, {title}, got {got}")
        xs, ys = [x for x, _ in self.curve], [y for _, y in self.curve]
        code = compiler.called(partial(_amount, xs, ys), expression.code)
        amount = f"({code} if {condition} else 1)" if condition else code
        return Repeats(self, names, compiler.function, "", amount, condition or "True", self.seed)


def _amount(xs: Sequence[float], ys: Sequence[float], document: Any, value: Any) -> float:
    """Return the amount of a value: itself; with a curve that of the point there, and beyond its ends that of these."""
    if not xs:
        if not is_number(value) or not 0 <= value < math.inf:
            raise ValueError(f"expected a number of 0 or more, how often it is written, got {value!r}")
        return value
    if not is_number(value) or math.isnan(value):
        raise ValueError(f"expected a number, the score, got {value!r}")
    i = bisect_right(xs, value)
    if i == 0:
        return ys[0]
    if i == len(xs):
        return ys[-1]
    return ys[i - 1] + (ys[i] - ys[i - 1]) * (value - xs[i - 1]) / (xs[i] - xs[i - 1])


class Repeats(CompiledRule, frozen=True):
    """A rule for the number of copies.

    Attributes:
        amount: Code of the number; 1 where the rule does not apply.
        applies: Code of its condition.
        seed: Seed of the draw.
        count: Function of the copies that all rules together make of a document; known when all are compiled.
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
        """Return the amount of the rule, and the copies of all rules."""
        if self.times(values) == 1:
            return "repeats nothing"
        copies = self.run(self.count, values) if self.count else 0
        times = "drops it" if copies == 0 else "it is written once" if copies == 1 else f"it is written {copies} times"
        return f"repeats it x {self.times(values):g}: {times}"


class Takes(CompiledRule, frozen=True):
    """A budget: it takes the copies of documents whose hashes are not above the bound of their group.

    Attributes:
        bound: Code of the bound; that of None while bounds are looked for, and all copies are taken.
        group: Code of the group.
        amount: Code of the amount of one copy; empty if that is told by the size of the text.
        unit: Unit of amounts.
        seed: Seed of the hashes.
        draws_documents: True if it takes all copies of a document or none.
        count: Function of the copies that it takes; known when all rules are compiled.
    """

    bound: str
    group: str
    amount: str
    unit: str
    seed: str
    draws_documents: bool
    count: Function | None = None

    def of(self, values: Values, chars: int, size: int) -> tuple[str, float]:
        """Return the group of a document, and one copy's amount.

        Args:
            values: Values of the document.
            chars: Code points of its text before edits.
            size: Bytes of that.

        Raises:
            DataError: if an expression cannot use a value.
        """
        group = str(self.run(self._functions[0], values))
        if not self.amount:
            return group, {"documents": 1, "bytes": size, "characters": chars}[self.unit]
        amount = self.run(self._functions[1], values)
        if not is_number(amount) or not 0 <= amount < 2**53:
            raise self.fault(f"of: expected a number of 0 or more, the {self.unit} of a document, got {amount!r}")
        return group, amount

    @cached_property
    def _functions(self) -> tuple[Function, Function]:
        return self.function(self.group), self.function(self.amount or "None")

    def verdict(self, values: Values) -> str:
        """Return how many of the copies of the document it takes."""
        copies = self.run(self.count, values) if self.count else 0
        return f"takes it {copies} times" if copies > 1 else "takes it" if copies else "drops it"


def copy_hash(seed: str, document: Any, copy: int) -> int:
    """Return the hash of a copy, counted from 1. That of the first is the document's."""
    return document_hash(seed if copy == 1 else f"{seed}\0{copy}", document)


def combined(compiled: Sequence[CompiledRule], compiler: Compiler) -> tuple[list[CompiledRule], str, dict[int, str]]:
    """Return rules with the copies made by all of them.

    An amount of 0 drops where it stands. The draw is where the last rule `repeat` stands, when nothing that the rules
    before it rule out is asked for; what it leaves out is counted by the last of these rules that applies.

    Args:
        compiled: Rules, in order.
        compiler: Compiler that compiled them.

    Returns:
        The rules with the conditions under which those about copies drop a document; the code of how often a document
        is written, empty if that is once; and, for the rule that draws, the code of the index of the rule that counts
        what the draw leaves out.

    Raises:
        ConfigError: if rules give two seeds for the one draw.
    """
    repeats = {i: compiled_rule for i, compiled_rule in enumerate(compiled) if isinstance(compiled_rule, Repeats)}
    takes = {i: compiled_rule for i, compiled_rule in enumerate(compiled) if isinstance(compiled_rule, Takes)}
    compiled_rules = list(compiled)
    if not repeats and not takes:
        return compiled_rules, "", {}
    code, blamed = "1", dict[int, str]()
    if repeats:
        amounts, last = [repeat.amount for repeat in repeats.values()], max(repeats)
        seed = next(iter(repeats.values())).seed
        for repeat in repeats.values():
            if repeat.seed != seed:
                got = f"{seed!r} and {repeat.seed!r}"
                raise refused(repeat.rule, f"expected one seed for all rules `repeat`, which draw together, got {got}")
        code = compiler.called(partial(_drawn, seed), *amounts)
        for i, repeat in repeats.items():
            condition = f"{code} == 0" if i == last else f"{repeat.amount} == 0"
            compiled_rules[i] = msgspec.structs.replace(repeat, condition=condition, count=compiler.function(code))
        applying = [f"{i} if {repeat.applies}" for i, repeat in reversed(repeats.items())]
        blamed[last] = " else ".join([*applying, "-1"])
    for i, take in takes.items():
        code = compiler.called(partial(_copies_taken, take.seed, take.draws_documents), code, take.bound)
        compiled_rules[i] = msgspec.structs.replace(take, condition=f"{code} == 0", count=compiler.function(code))
    compiler.needs.source = True
    return compiled_rules, code, blamed


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


def _copies_taken(seed: str, all_or_none: bool, document: Any, copies: int, bound: int | None) -> int:
    """Return the number of copies up to the bound. With `all_or_none`, the first one decides about all."""
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
        numbers = [item for item in point if is_number(item) and math.isfinite(item)] if isinstance(point, list) else []
        if len(numbers) != 2 or numbers != point:
            raise ConfigError(f"{shape}, got {point!r}")
        score, amount = point
        if points and score <= points[-1][0]:
            raise ConfigError(f"expected scores that rise, got {score!r} after {points[-1][0]!r}")
        if not 0 <= amount <= MOST:
            raise ConfigError(f"expected amounts between 0 and {MOST}, got {amount!r}")
        points.append((score, amount))
    return points


Unit = Literal["documents", "bytes", "characters", "words", "tokens"]

EVERYTHING = 2**64 - 1
"""The bound with which all copies are taken."""

NO_GROUP = "(none)"
"""The group of documents for which the expression gives null."""


class Budget(Rule):
    """The rule: `expression` gives the group of a document; without one all are in the group "".

    Attributes:
        unit: Unit that amounts are in.
        of: Expression of the words or tokens of a document.
        bounds: Bounds by group, the greatest hash that is taken; -1 for none. None while they are looked for.
        seed: Seed of the hashes.
        draws_documents: True if it takes all copies of a document or none.
    """

    unit: Unit
    of: str = ""
    bounds: dict[str, int] | None = None
    seed: str = "budget"
    draws_documents: bool = False

    FORM = None
    ROLE = Role.DROPS
    DRAWS = True

    @property
    def expressions(self) -> list[str]:
        """Return the texts of expressions."""
        return [text for text in (self.expression, self.of) if text]

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        group = "''"
        if self.expression:
            expression = compiler.value(self, names, self.expression)
            if expression.type.not_null.kind not in ("str", "int", "float", "bool", "any"):
                raise refused(
                    self, f"by: expected a text, a number, true or false, got a value of type {expression.type}"
                )
            group = compiler.called(lambda _, value: group_text(value), expression.code)
        amount = ""
        if self.of:
            expression = compiler.value(self, names, self.of)
            if expression.type.kind not in ("int", "float", "any"):
                null = expression.type.not_null.kind in ("int", "float", "any")
                tested = f"a value that may be null; write `0 if {self.of} is None else {self.of}`"
                got = tested if null else f"a value of type {expression.type}"
                raise refused(self, f"of: expected a number, the {self.unit} of a document, got {got}")
            amount = expression.code
        bound = "None" if self.bounds is None else compiler.called(partial(_bound, self.bounds), group)
        return Takes(
            self, names, compiler.function, "", bound, group, amount, self.unit, self.seed, self.draws_documents
        )


def group_text(value: Any) -> str:
    """Return a group as text; NO_GROUP of null."""
    if value is None:
        return NO_GROUP
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _bound(bounds: Mapping[str, int], document: Any, group: str) -> int:
    if group not in bounds:  # nothing else was met when the bounds were found
        raise ValueError(f"expected one of the groups {', '.join(sorted(bounds))}, got {group!r}")
    return bounds[group]
