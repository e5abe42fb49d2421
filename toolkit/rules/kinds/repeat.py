"""``repeat: 2.5`` writes a document twice, and half of them a third time; by a number, an expression, or a curve."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from toolkit.config import settings
from toolkit.config.settings import ConfigNode, ConfigStruct, Description
from toolkit.errors import ConfigError
from toolkit.rules.repeating import MOST, SEED, Repeats, check_curve, checked_amount
from toolkit.rules.rule import CompiledRule, Compiler, Form, Role, Rule, refused


class Curve(ConfigStruct):
    """An amount by a score.

    Attributes:
        score: an expression.
        curve: points [score, amount] with rising scores, with straight lines between them.
    """

    score: str
    curve: list[Any]


class RepeatForm(Form):
    """The entry in YAML."""

    repeat: Annotated[
        int | float | str | dict[str, Any],
        Description(
            title="a number, an expression, or {score: E, curve: [[SCORE, AMOUNT], …]}",
            description="how often a document is written: 0 drops it, 0.3 keeps three of ten, 2.5 is twice, and half "
            "of them a third time; a number, an expression that gives one, or a curve over a score with straight lines "
            "between its points",
        ),
    ]
    seed: Annotated[str | int, Description(description="another seed draws other documents")] = ""

    KEY = "repeat"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        given, seed = self.repeat, str(self.seed) or SEED
        if isinstance(given, dict):
            at = place.at("repeat")
            settings.refuse_unknown(at, Curve, (), "repeat")
            form = settings.convert(at, Curve)
            try:
                points = check_curve(form.curve)
            except ConfigError as error:
                raise at.error(("curve",), str(error)) from None
            name = self.name or f"repeat by {form.score}" + (f", when {self.when}" if self.when else "")
            return [Repeat(name=name, when=self.when, expression=form.score, curve=points, seed=seed)]
        if isinstance(given, bool) or (isinstance(given, int | float) and not 0 <= given <= MOST):
            raise place.error(("repeat",), f"expected a number between 0 and {MOST}, or an expression, got {given!r}")
        name = self.name or f"repeat {given}" + (f", when {self.when}" if self.when else "")
        return [Repeat(name=name, when=self.when, expression=str(given), seed=seed)]


class Repeat(Rule):
    """The rule: `expression` gives the amount; with a `curve`, the score that the curve has the amount of.

    Attributes:
        curve: points (score, amount), with straight lines between them.
        seed: of the draw.
    """

    curve: list[tuple[float, float]] = []
    seed: str = SEED

    FORM = RepeatForm
    ROLE = Role.REPEATS
    DRAWS = True

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        condition = compiler.condition(self, names)
        found = compiler.value(self, names, self.expression)
        if found.type.kind not in ("int", "float", "any"):
            null = found.type.not_null.kind in ("int", "float")
            got = "a value that may be null; test it first" if null else f"a value of type {found.type}"
            what = "the score" if self.curve else "how often a document is written"
            raise refused(self, f"expected a number, {what}, got {got}")
        xs, ys = [x for x, _ in self.curve], [y for _, y in self.curve]
        code = compiler.called(partial(_amount, xs, ys), found.code)
        amount = f"({code} if {condition} else 1)" if condition else code
        return Repeats(self, names, compiler.function, "", amount, condition or "True", self.seed)


def _amount(xs: Sequence[float], ys: Sequence[float], document: Any, value: Any) -> float:
    """Return the amount of a value: itself; with a curve that of the point there, and beyond its ends that of these."""
    if not xs:
        return checked_amount(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"expected a number, the score, got {value!r}")
    i = bisect_right(xs, value)
    if i == 0:
        return ys[0]
    if i == len(xs):
        return ys[-1]
    return ys[i - 1] + (ys[i] - ys[i - 1]) * (value - xs[i - 1]) / (xs[i] - xs[i - 1])
