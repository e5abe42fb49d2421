"""Budgets: how much a mix takes, of the whole or by group.

This module has the section ``budget:``. `drawing` writes, for each shard, the hash and the amount of each copy that the
rules leave. `bounds` finds in these, for each group, the greatest hash that is taken; the rule
`toolkit.rules.kinds.repeat` then takes what is up to it.
"""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from toolkit.config import settings as config
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data.excerpts import escaped
from toolkit.data.schema import is_number
from toolkit.errors import ConfigError, amount
from toolkit.rules.kinds.repeat import Budget, Unit, group_text
from toolkit.storage_options import Size

UNITS: tuple[Unit, ...] = ("documents", "bytes", "characters", "words", "tokens")

DEFAULT = "default"
"""Stands among targets and shares for all groups that are not named."""

Draw = Literal["copies", "documents"]

_ALL = math.inf
_FACTORS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9, "T": 10**12}
_AMOUNT = "an amount, or {GROUP: AMOUNT}"

Amount = Annotated[Any, msgspec.Meta(title=_AMOUNT)]


class BudgetForm(ConfigStruct, kw_only=True):
    """The section in YAML: one of the units with its amount, and how that is divided.

    Attributes:
        documents: number of documents to take, copies included
        bytes: bytes of texts in UTF-8 to take, from row indexes
        characters: code points of texts to take, from row indexes
        words: number of words to take; `of` gives those of a document
        tokens: number of tokens to take; `of` gives those of a document
        of: an expression: the words or tokens of a document (`tokens` by default)
        by: `label` or another expression: the groups that have targets of their own
        shares: {GROUP: SHARE} of the amount, in proportion; `default` is that of each other group
        temperature: τ: shares in proportion to p^τ, p being a group's part of what there is
        seed: another seed takes other documents
        draw: the unit that is drawn: `copies`, each by itself; or `documents`, each with all the copies that rules make
            of it
        short: a group that is too small: report the missing amount, or redistribute it to the other groups
    """

    documents: Amount = None
    bytes: Amount = None
    characters: Amount = None
    words: Amount = None
    tokens: Amount = None
    of: str | None = None
    by: str | None = None
    shares: dict[Any, Any] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    seed: str | int = ""
    draw: Draw = "copies"
    short: Literal["report", "redistribute"] = "report"


class BudgetSettings(ConfigStruct, kw_only=True):
    """A budget.

    Attributes:
        unit: Unit that amounts are in.
        of: Expression of the words or tokens of a document.
        by: Expression of its group; empty for one budget of the whole.
        total: Amount of all groups together; None if each has its own.
        targets: Targets by group, the amount; infinite for all there is.
        shares: Shares by group, of the total, in proportion.
        temperature: Exponent of the shares, which then follow from the available amounts.
        seed: Seed of the hashes.
        draw: Unit of the draw, copies or documents with all their copies.
        short: Treatment of missing amounts.
        place: Place in the file, for messages.
    """

    unit: Unit
    of: str = ""
    by: str = ""
    total: float | None = None
    targets: dict[str, float] = {}
    shares: dict[str, float] = {}
    temperature: float | None = None
    seed: str = ""
    draw: Draw = "copies"
    short: Literal["report", "redistribute"] = "report"
    place: str = ""

    def rule(self, bounds: dict[str, int] | None = None, stream: str = "") -> Budget:
        """Return the rule of the budget, with or without bounds. Without bounds it takes everything.

        Args:
            bounds: Bounds by group.
            stream: Stream that draws by itself, because it may have documents of other streams; empty if none has.
        """
        seed = "\0".join(["budget", *filter(None, (self.seed, stream))])
        return Budget(
            name="budget",
            unit=self.unit,
            of=self.of,
            expression=self.by,
            bounds=bounds,
            seed=seed,
            draws_documents=self.draw == "documents",
            place=self.place,
        )

    def recorded(self) -> dict[str, Any]:
        """Return the settings as they are recorded, without the place; an amount without end as a text."""
        builtins: dict[str, Any] = msgspec.to_builtins(self)
        builtins["targets"] = {group: "all" if n == _ALL else n for group, n in self.targets.items()}
        return {
            key: value for key, value in builtins.items() if key != "place" and value not in ("", None, {}, "copies")
        }

    def targets_of(self, available: Mapping[str, float]) -> dict[str, float]:
        """Return the target of each group. Groups that are named and have nothing are in it.

        Args:
            available: Available amount of each group, copies counted.

        Raises:
            ConfigError: if a group has none.
        """
        if not self.by:
            return {"": self.total or 0.0}
        named = self.targets or self.shares
        groups = sorted({*available, *named} - {DEFAULT})
        if named and DEFAULT not in named and (unnamed := [group for group in groups if group not in named]):
            unit = self.unit.removesuffix("s")
            listed = ", ".join(f"{escaped(group)} ({amount(round(available[group]), unit)})" for group in unnamed[:10])
            raise ConfigError(
                f"{self.place}: expected a {'target' if self.targets else 'share'} for each group, got none for "
                f"{listed}{' …' if unnamed[10:] else ''}; name them, or say what each of the others gets: `default: 0`"
                f"{' or `default: all`' if self.targets else ''}"
            )
        if self.targets:
            results = {group: self.targets.get(group, self.targets.get(DEFAULT, 0.0)) for group in groups}
            return {group: available.get(group, 0.0) if n == _ALL else n for group, n in results.items()}
        weights = {group: self.shares.get(group, self.shares.get(DEFAULT, 0.0)) for group in groups}
        if not self.shares:
            tau, whole = 1.0 if self.temperature is None else self.temperature, sum(available.values())
            weights = {group: (n / whole) ** tau if n else 0.0 for group, n in available.items()}
        together = sum(weights.values()) or 1.0
        return {group: (self.total or 0.0) * weight / together for group, weight in sorted(weights.items())}

    def goals(self, available: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
        """Return the target and the goal of each group. A goal is larger than the target where other groups have too
        little.
        """
        targets = self.targets_of(available)
        if self.short == "report":
            return targets, targets
        goals: dict[str, float] = {}
        rest, remaining = dict(targets), sum(targets.values())
        while rest:
            factor = remaining / (sum(rest.values()) or 1.0)
            full = [group for group, n in rest.items() if n * factor >= available.get(group, 0.0)]
            if not full:
                return targets, goals | {group: n * factor for group, n in rest.items()}
            for group in full:
                goals[group] = available.get(group, 0.0)
                remaining -= goals[group]
                del rest[group]
        return targets, goals


def read_budget(place: ConfigNode) -> BudgetSettings:
    """Return the settings of a section ``budget:``.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(place.value, dict):
        raise place.error((), f"expected a unit with its amount, such as {{tokens: 2 G}}, got {place.value!r}")
    config.refuse_unknown(place, BudgetForm, (), "budget")
    form = config.convert(place, BudgetForm)
    units = [unit for unit in UNITS if place.value.get(unit) is not None]
    if len(units) != 1:
        got = " and ".join(units) or "none"
        raise place.error((), f"expected one of {', '.join(UNITS)} with its amount, got {got}")
    unit, amount = units[0], place.value[units[0]]
    counted = unit in ("words", "tokens")
    if form.of is not None and not counted:
        raise place.error(
            ("of",), f"expected `of` only with words or tokens, got it with {unit}, which the toolkit counts itself"
        )
    if unit == "words" and form.of is None:
        raise place.error(("words",), "expected `of` beside it: an expression that gives the words of a document")
    total, targets = None, dict[str, float]()
    if isinstance(amount, dict):
        targets = {group_text(g): _amount(place, (unit, g), unit, n, ends=False) for g, n in amount.items()}
    else:
        total = _amount(place, (unit,), unit, amount)
    shares = {group_text(g): _share(place, ("shares", g), n) for g, n in (form.shares or {}).items()}
    _check_division(place, form, unit, targets)
    if form.shares is not None and not sum(shares.values()):
        raise place.error(("shares",), "expected shares above 0, got none")
    of = form.of or ("tokens" if unit == "tokens" else "")
    return BudgetSettings(
        unit=unit, of=of, by=form.by or "", total=total, targets=targets, shares=shares, temperature=form.temperature,
        seed=str(form.seed), draw=form.draw, short=form.short, place=place.place(()),
    )  # fmt: skip


def _check_division(place: ConfigNode, form: BudgetForm, unit: str, targets: Mapping[str, float]) -> None:
    """Raise ConfigError for an amount divided in two ways, or in none."""
    divides = [key for key in ("shares", "temperature") if getattr(form, key) is not None]
    if len(divides) == 2:
        raise place.error(("temperature",), "expected `shares` or `temperature`, got both")
    for key in divides if targets else ():
        raise place.error(
            (key,), f"expected one amount for all groups together with `{key}`, got an amount for each group"
        )
    for key in () if form.by else [*divides, *([unit] if targets else [])]:
        raise place.error(
            (key,), "expected `by` beside it, which says what the groups are, such as `by: label`; got none"
        )
    if not form.by and form.short == "redistribute":
        raise place.error(("short",), "expected `by` beside it, got none: without groups, no other group can give more")


def _amount(place: ConfigNode, at: tuple[Any, ...], unit: str, value: Any, *, ends: bool = True) -> float:
    """Return an amount: a number, or a text such as `2 G`; infinite for `all`, where that may be."""
    if value == "all" and not ends:
        return _ALL
    number: float | None = None
    if is_number(value):
        number = float(value)
    elif isinstance(value, str) and unit == "bytes":
        with place.errors_at(*at, of=ValueError):
            number = float(Size.parse(value))
    elif isinstance(value, str) and (
        match := re.fullmatch(r"\s*([0-9][0-9_.]*(?:e\+?[0-9]+)?)\s*([A-Za-z]?)\s*", value)
    ):
        factor = _FACTORS.get(match[2].upper())
        number = float(match[1].replace("_", "")) * factor if factor and match[1].count(".") < 2 else None
    if number is None or not 0 <= number < math.inf:
        raise place.error(at, f"expected an amount such as 1000000, 500 M or 2 G, got {value!r}")
    return number


def _share(place: ConfigNode, at: tuple[Any, ...], value: Any) -> float:
    if not is_number(value) or not 0 <= value < math.inf:
        raise place.error(at, f"expected a share, a number of 0 or more, got {value!r}")
    return float(value)
