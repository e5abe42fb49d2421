"""Conditions that are asked of documents: also rules of a mix, just as they are written there."""

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from toolkit.config.settings import Source
from toolkit.errors import ConfigError
from toolkit.rules import Rule, asking, read_rules
from toolkit.rules.checker import Name
from toolkit.rules.compiling import LABEL, Compiler
from toolkit.rules.expression_tree import ExpressionError, parse
from toolkit.rules.expressions import check_condition, paths_in

FILTER = "filter"

Parameters = dict[str, dict[str, Any]]
"""Values by name and label, as rules have them."""


@dataclass(frozen=True)
class AsInMix:
    """What a mix adds to the names of conditions.

    Attributes:
        sets: that it joins: they are meant where others have the same keys.
        label: the expression of its label; empty without.
        rules: whose parameters conditions may use.
        names: what it calls keys, by their own names, where that is another name.
    """

    sets: Sequence[str] = ()
    label: str = ""
    rules: Sequence[Rule] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def parameters_of(self, text: str) -> Parameters:
        """Return the parameters that a condition uses: those of the rule that it is, or of the first that has them."""
        mine = sorted(self.rules, key=lambda rule: text.strip() not in map(str.strip, rule.expressions))
        known = {name: values for rule in reversed(mine) for name, values in rule.parameters.items()}
        return {name: known[name] for name in sorted(asking.keys_in(text)) if name in known}

    def names_in(self, text: str) -> set[str]:
        """Return the names of a condition that are no keys: parameters, and that of the label."""
        return {*self.parameters_of(text), *([LABEL] if self.label else [])}

    def asks_label(self, text: str) -> bool:
        """Return whether a condition depends on the label, by its name or by a parameter."""
        try:
            keys, parameters = asking.keys_in(text), self.parameters_of(text)
        except ExpressionError:  # which is told by who reads it
            return False
        return bool(self.label) and (LABEL in keys or any(len(values) > 1 for values in parameters.values()))

    def renamed(self, key: str) -> str:
        """Return the advice for a key that the mix calls by another name; empty for others."""
        return f"; the mix calls it {self.names[key]!r}" if key in self.names else ""


def condition_of(
    text: str,
    names: Mapping[str, Name],
    arguments: tuple[str, ...] = (),
    label: str | None = None,
    parameters: Parameters | None = None,
) -> str:
    """Return a condition, checked; false where a value is null that it would compare.

    A rule counts on the rules before it, which drop documents without such values; here they are not found.

    Args:
        text: the condition.
        names: what it may use.
        arguments: that their code refers to.
        label: the expression of the label, if it may use that.
        parameters: that it may use.

    Raises:
        ConfigError: if it is none.
    """
    if label or parameters:
        compiler = Compiler(names, arguments, translates=False)
        if label:
            compiler.label(label)
        (rule,) = read_rules(Source([{"keep": "True", "name": FILTER}], FILTER))
        names = compiler.names_for(msgspec.structs.replace(rule, parameters=parameters or {}))
    try:
        parts = _untested(text, names)
        check_condition(text, names, frozenset(parts))
    except ExpressionError as error:
        raise ConfigError(f"{FILTER}: {error}") from None
    with suppress(ExpressionError):
        check_condition(text, names)
        return text
    return " and ".join([*(f"{part} is not None" for part in parts), f"({text})"])


def _untested(text: str, names: Mapping[str, Name]) -> list[str]:
    """Return the attributes that a condition mentions, with their parts, but for those that it compares with null."""
    tested = {
        ast.unparse(node.left)
        for node in ast.walk(parse(text))
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
    }
    parts: dict[str, None] = {}
    for path in paths_in(text, names):
        split = path.split(".")
        parts |= dict.fromkeys(".".join(split[: i + 1]) for i in range(len(split)))
    return [part for part in parts if part not in tested]
