"""``{set: quality, to: E}`` sets a field of the metadata to the value of E; ``set: {a: E, b: E}`` sets two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from toolkit.config.settings import ConfigNode, Description
from toolkit.rules.rule import CompiledRule, Compiler, Form, Function, Role, Rule, Values


class SetForm(Form):
    """The entry in YAML."""

    set: Annotated[
        str | dict[str, Any], Description(description="a field, with dots for nested ones; or {FIELD: EXPRESSION}")
    ]
    to: Annotated[
        str | int | float | bool | None,
        Description(description="an expression that gives the value, if `set` has one field"),
    ] = None

    KEY = "set"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        given = {self.set: self.to} if isinstance(self.set, str) else self.set
        if isinstance(self.set, dict) and self.to is not None:
            raise place.error(("to",), "expected `set: FIELD` beside `to:`, or `set: {FIELD: EXPRESSION}` without")
        if not given:
            raise place.error(("set",), "expected `set: FIELD` with `to: EXPRESSION`, or `set: {FIELD: EXPRESSION}`")
        rules = []
        for name, expression in given.items():
            path = name.removeprefix("metadata.")
            text = repr(expression) if isinstance(expression, int | float) else expression
            if not isinstance(text, str) or not all(path.split(".")):
                raise place.error(
                    (),
                    "expected a field of the metadata and an expression (a text has quotes of its own: '\"web\"'), got "
                    f"{name!r}: {text!r}",
                )
            shown = self.name if self.name and len(given) == 1 else f"set {path}"
            rules.append(Set(name=shown, field=path, expression=text, when=self.when))
        return rules


class Set(Rule):
    """The rule: `expression` gives the value of `field`, whose name is dotted where it is nested."""

    field: str

    FORM = SetForm
    ROLE = Role.SETS

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        condition = compiler.condition(self, names)
        found = compiler.value(self, names, self.expression)
        compiler.note_for_fields(found)
        return Sets(self, names, compiler.function, condition, compiler.function(found.code))


@dataclass(frozen=True, eq=False)
class Sets(CompiledRule):
    """Gives a field of the metadata the value that `value` computes."""

    value: Function

    def set(self, fields: dict[str, Any], values: Values) -> None:
        *path, last = self.rule.field.split(".")
        for key in path:
            fields = fields.setdefault(key, {})
        value = self.run(self.value, values)
        try:
            fields[last] = msgspec.Raw(msgspec.json.encode(value))
        except (TypeError, OverflowError) as error:
            raise self.fault(f"expected a value for JSON, got: {error}") from None

    def verdict(self, values: Values) -> str:
        return f"sets {self.rule.field}" if self.holds(values) else "sets nothing"
