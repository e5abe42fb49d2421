"""Rules: what a mix does with each document.

    rules:
      - {drop: language.label is None, name: unidentified}    # the first rule that drops a document gets the count
      - keep: language.label in ["en", "fr"]                  # drop: not (…)
      - {annotate: short_sentences, when: line_shape.short > line_shape.lines // 2}
      - include: shared.yaml                                  # a list of rules, or a configuration with mix.rules

Rules are evaluated in order, on the document's original values.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from toolkit import config
from toolkit.config import ConfigStruct, Source
from toolkit.errors import ConfigError, DataError, did_you_mean
from toolkit.expressions import Expression, ExpressionError, Facts, Name, check_condition, compile_function

KINDS = ("drop", "keep", "annotate")


class Rule(ConfigStruct):
    """A rule as written.

    Attributes:
        kind: what it does.
        name: under which it is counted and shown.
        expression: when it does it.
        annotation: what an `annotate` rule adds to the document's annotations.
        place: file and line, for messages.
    """

    kind: Literal["drop", "keep", "annotate"]
    name: str
    expression: str
    annotation: str = ""
    place: str = ""


def read_rules(source: Source, base: str = "") -> list[Rule]:
    """The rules of a list in a configuration, with those that it includes.

    Args:
        source: the list.
        base: folder that included paths are relative to.

    Raises:
        ConfigError: if a rule is not of a known form, or a name is used twice.
    """
    rules = _read(source, base, ())
    seen: dict[str, str] = {}
    for rule in rules:
        if rule.name in seen:
            raise ConfigError(
                f"{rule.place}: expected each rule under a name of its own, got {rule.name!r} also at "
                f"{seen[rule.name]}; give it a `name:`"
            )
        seen[rule.name] = rule.place
    return rules


def _read(source: Source, base: str, included: tuple[str, ...]) -> list[Rule]:
    if not isinstance(source.value, list):
        raise source.error((), "expected a list of rules")
    rules: list[Rule] = []
    for i in range(len(source.value)):
        place = source.at(i)
        value: dict[str, Any] = place.value
        if not isinstance(place.value, dict):
            raise place.error((), f"expected a rule such as `drop: EXPRESSION`, got {value!r}")
        kinds = [key for key in value if key in (*KINDS, "include")]
        if len(kinds) != 1:
            unknown = [key for key in value if key not in (*KINDS, "include", "name", "when")]
            hint = did_you_mean(unknown[0], KINDS) if unknown else ""
            raise place.error((), f"expected one of {', '.join(KINDS)}, include in a rule, got {list(value)}{hint}")
        kind = kinds[0]
        allowed = {"include": (), "annotate": ("name", "when")}.get(kind, ("name",))
        for key in value:
            if key not in (kind, *allowed):
                raise place.error((key,), f"unknown option {key!r} of the rule {kind!r}{did_you_mean(key, allowed)}")
        if not all(isinstance(v, str) for v in value.values()):
            raise place.error((), "expected texts; write an expression that YAML reads otherwise between quotes")
        if kind == "include":
            rules += _include(place, value[kind], base, included)
        elif kind == "annotate":
            if "when" not in value:
                raise place.error((), "expected `when: EXPRESSION` beside annotate")
            rules.append(
                Rule(
                    kind="annotate",
                    name=value.get("name", value["annotate"]),
                    expression=value["when"],
                    annotation=value["annotate"],
                    place=place.place(()),
                )
            )
        else:
            expression = value[kind]
            name = value.get("name", expression if kind == "drop" else f"not ({expression})")
            rules.append(
                Rule(kind="drop" if kind == "drop" else "keep", name=name, expression=expression, place=place.place(()))
            )
    return rules


def _include(place: Source, path: str, base: str, included: tuple[str, ...]) -> list[Rule]:
    found = next((p for p in (os.path.join(base, path), path) if os.path.isfile(p)), None)
    if found is None:
        raise place.error((), f"expected a file of rules, got nothing at {os.path.join(base, path)}")
    if os.path.abspath(found) in included:
        raise place.error((), f"expected includes that end, got {path} including itself")
    source = config.load(found)
    if isinstance(source.value, dict) and "mix" in source.value:
        source = source.at("mix")
    if isinstance(source.value, dict):
        if "rules" not in source.value:
            raise place.error((), f"expected rules in {found}, got none")
        source = source.at("rules")
    return _read(source, os.path.dirname(found), (*included, os.path.abspath(found)))


# --- checked and compiled ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """What the rules say of a document.

    Attributes:
        dropped: index of the rule that drops it, None if it stays.
        annotated: indexes of the rules that annotate it, if it stays.
    """

    dropped: int | None
    annotated: list[int]


class RuleSet:
    """Rules, checked and compiled.

    Args:
        rules: in order.
        names: what expressions may use.
        arguments: of the functions: the variables that the names' code refers to.

    Attributes:
        used: the attribute keys that the expressions use.
        known: what is known not to be null of a document that stays.

    Raises:
        ConfigError: naming file and line of a rule that cannot be used.
    """

    def __init__(self, rules: Iterable[Rule], names: Mapping[str, Name], arguments: tuple[str, ...]) -> None:
        self.rules = list(rules)
        self._functions: list[Callable[..., Any]] = []
        known: Facts = frozenset()
        used: set[str] = set()
        for rule in self.rules:
            try:
                found: Expression = check_condition(rule.expression, names, known)
            except ExpressionError as error:
                raise ConfigError(f"{rule.place}: rule {rule.name!r}: {error}") from None
            used.update(found.names)
            if rule.kind == "drop":
                known = found.if_false
            elif rule.kind == "keep":
                known = found.if_true
            code = f"not {found.code}" if rule.kind == "keep" else found.code
            self._functions.append(compile_function(code, arguments))
        self.used = used
        self.known = known

    def decide(self, *values: Any) -> Decision:
        """Applies the rules to the values of a document.

        Raises:
            DataError: if a rule meets a value that it cannot use (a division by zero, a missing element).
        """
        annotated: list[int] = []
        for i, rule in enumerate(self.rules):
            if self._holds(i, values):
                if rule.kind != "annotate":
                    return Decision(i, [])
                annotated.append(i)
        return Decision(None, annotated)

    def only_drop(self, decision: Decision, *values: Any) -> bool:
        """Whether no other rule would drop a document that this decision drops.

        A rule behind it that cannot be evaluated, because it counts on what the decision's rule has ruled out, would
        not.
        """
        for i in range((decision.dropped or 0) + 1, len(self.rules)):
            if self.rules[i].kind != "annotate":
                try:
                    if self._holds(i, values):
                        return False
                except DataError:
                    continue
        return True

    def annotations(self, decision: Decision) -> list[str]:
        """What the `annotate` rules add, each once, in their order."""
        return list(dict.fromkeys(self.rules[i].annotation for i in decision.annotated))

    def _holds(self, i: int, values: Sequence[Any]) -> bool:
        rule = self.rules[i]
        try:
            holds = self._functions[i](*values)
        except Exception as error:
            raise DataError(f"rule {rule.name!r} ({rule.place}) failed: {_describe(error)}") from None
        if holds is not True and holds is not False:
            raise DataError(f"rule {rule.name!r} ({rule.place}): expected true or false, got {holds!r}")
        return holds


def _describe(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"expected the key {error}, got a map without it; use get(map, key, default)"
    if isinstance(error, IndexError):
        return "expected an element, got a list that is too short"
    return f"{type(error).__name__}: {error}"


def settings(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """The rules as they are recorded: without the places where they were written."""
    return [
        {key: value for key, value in msgspec.to_builtins(rule).items() if key != "place" and value} for rule in rules
    ]
