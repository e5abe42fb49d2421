"""Scales of labels, scores and grades: their values, order and range.

The option ``scale:`` declares one, and the schema of the set keeps it for whatever uses the labels:

    scale: {range: [0, 5], step: 1}      grades from 0 to 5
    scale: {range: [0, 1]}               any number from 0 to 1
    scale: {values: [bad, fair, good]}   these labels, in this order
    scale: none                          no scale: nothing is rounded or clipped
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from toolkit.config import settings as config
from toolkit.config.settings import ConfigNode, ConfigStruct, Description
from toolkit.errors import ConfigError, short
from toolkit.lazy_numpy import np

if TYPE_CHECKING:
    from numpy import dtype, ndarray

    Array = ndarray[Any, dtype[Any]]

Grade = int | float | str

OPTION = "scale"
MOST_GRADES = 1000


class Scale(ConfigStruct, omit_defaults=True):
    """Values of a label, score or grade.

    Attributes:
        values: all values in their order: numbers that rise, or texts
        range: the least and the greatest number
        step: the distance between grades within `range`; without it any number is a value
    """

    values: list[Grade] | None = None
    range: tuple[float, float] | None = None
    step: Annotated[float, msgspec.Meta(gt=0)] | None = None

    def check(self) -> None:
        """Raise ConfigError for incompatible options."""
        if (self.values is None) == (self.range is None):
            raise ConfigError("scale: expected {values: […]}, {range: [LEAST, GREATEST], step: …} or none")
        if self.range is None:
            values = self.values or []
            if self.step is not None:
                raise ConfigError("scale: expected `step` only with `range`")
            if len({*values}) != len(values) or not 2 <= len(values) <= MOST_GRADES:
                raise ConfigError(f"scale: expected 2 to {MOST_GRADES:,} different values, got {short(values)}")
            if not all(isinstance(value, str) for value in values) and not _rise(values):
                raise ConfigError(f"scale: expected numbers that rise, or texts, got {short(values)}")
            return
        least, greatest = self.range
        if not _rise([least, greatest]):
            raise ConfigError(f"scale: range: expected a least and a greater number, got {[least, greatest]}")
        if self.step is not None:
            steps = (greatest - least) / self.step
            if abs(steps - round(steps)) > 1e-9 * max(1.0, steps) or not 1 <= round(steps) < MOST_GRADES:
                raise ConfigError(
                    f"scale: step: expected a part of the range from {least:g} to {greatest:g}, at least 1 and fewer "
                    f"than {MOST_GRADES:,} of which fill it, got {self.step:g}"
                )

    @property
    def is_text(self) -> bool:
        """Return True if the values are texts."""
        return self.values is not None and isinstance(self.values[0], str)

    @property
    def grades(self) -> list[Grade]:
        """Return all values in order; nothing if any number in the range is one."""
        if self.values is not None:
            return self.values
        if self.range is None or self.step is None:
            return []
        least, greatest = self.range
        count = round((greatest - least) / self.step)
        return [_plain(least + (greatest - least) * i / count) for i in range(count + 1)]

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the least and the greatest number; of texts, no bounds."""
        if self.range is not None:
            return self.range
        grades = self.grades
        return (-math.inf, math.inf) if self.is_text else (float(grades[0]), float(grades[-1]))

    def has(self, value: Grade, *, exactly: bool = True) -> bool:
        """Return True for a label on the scale; if not `exactly`, between two grades."""
        if self.is_text or isinstance(value, str):
            return value in self.grades
        least, greatest = self.bounds
        grades = [float(grade) for grade in self.grades] if exactly else []
        return least <= value <= greatest and (not grades or min(abs(grade - value) for grade in grades) < 1e-9)

    def __str__(self) -> str:
        if self.range is None:
            values = [str(value) for value in self.values or []]
            return f"the scale {', '.join(values[:10])}{', …' if len(values) > 10 else ''}"
        step = "" if self.step is None else f" in steps of {self.step:g}"
        return f"the scale from {self.range[0]:g} to {self.range[1]:g}{step}"


Declared = Scale | Literal["none"] | None
"""The option ``scale:``; None if nothing is declared."""

ScaleOption = Annotated[
    Declared,
    Description(
        description="the scale of the labels: {values: […]}, {range: [0, 5], step: 1} or none; default: the scale that "
        "their set declares, or else their own values"
    ),
]


def check(declared: Declared, numbers_for: str = "") -> None:
    """Raise ConfigError for incompatible options, or texts instead of required numbers."""
    if isinstance(declared, Scale):
        declared.check()
        if numbers_for and declared.is_text:
            raise ConfigError(f"scale: expected numbers for {numbers_for}, got texts")


def parse(source: ConfigNode) -> Declared:
    """Return the option ``scale:``, checked.

    Raises:
        ConfigError: if it is no scale.
    """
    result: Declared = config.convert(source, Declared, "a scale")  # type: ignore[arg-type]
    check(result)
    return result


def declared_in(settings: Mapping[str, Any]) -> Declared:
    """Return the scale declared in the settings of a key."""
    options = settings.get("align") or settings.get("options") or {}
    prompt = settings.get(OPTION) or options.get(OPTION)
    if prompt is None and isinstance(options.get("prompt"), dict):
        prompt = _of_prompt({**options["prompt"], **{name: options[name] for name in _FORMS if options.get(name)}})
    if prompt is None and options.get("format") == "annotations" and len(labels := options.get("labels", ())) > 1:
        prompt = {"values": sorted(labels)}
    declared: Declared = msgspec.convert(prompt, Scale) if isinstance(prompt, dict) else prompt
    return declared


_FORMS = ("score", "label")


def _of_prompt(prompt: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the scale of a prompt's answers."""
    label, score = prompt.get("label") or {}, prompt.get("score") or {}
    if len(labels := label.get("labels", ())) > 1:
        return {"values": labels}
    least, greatest = score.get("min"), score.get("max")
    return {"range": [least, greatest]} if least is not None and greatest is not None and least < greatest else None


def common(declared: Sequence[Declared]) -> Declared:
    """Return the common scale of several sets of labels; None without one.

    Raises:
        ConfigError: if they have different ones.
    """
    results = [item for i, item in enumerate(declared) if item is not None and item not in declared[:i]]
    if len(results) > 1:
        raise ConfigError(
            f"expected labels on one scale, got {results[0]} and {results[1]}; say which one counts: `scale:`"
        )
    return results[0] if results else None


def nearest(numbers: "Array", grades: "Array") -> "Array":
    """Return the nearest grade of each number, of two the higher one. `grades` rise."""
    middles = (grades[1:] + grades[:-1]) / 2
    result: Array = grades[np.searchsorted(middles, numbers, side="right")]
    return result


def _rise(values: Sequence[Any]) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values)
    return numbers and all(one < other for one, other in itertools.pairwise(values))


def _plain(number: float) -> int | float:
    rounded = round(number, 12)
    return int(rounded) if rounded == int(rounded) else rounded
