"""Rules for fields of the metadata and output folders: ``set``, ``route``."""

from collections.abc import Sequence
from typing import Any

import msgspec

from toolkit.config.settings import ConfigNode
from toolkit.data.schema import STR
from toolkit.rules.checker import Name
from toolkit.rules.expressions import paths_in
from toolkit.rules.rule import LABEL, CompiledRule, Compiler, Form, Function, Role, Rule, Values


class SetForm(Form):
    """``{set: quality, to: E}`` sets a field of the metadata to the value of E; ``set: {a: E, b: E}`` sets two.

    Attributes:
        set: a field, with dots for nested ones; or {FIELD: EXPRESSION}
        to: an expression that gives the value, if `set` has one field
    """

    set: str | dict[str, Any]
    to: str | int | float | bool | None = None

    KEY = "set"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        fields = {self.set: self.to} if isinstance(self.set, str) else self.set
        if isinstance(self.set, dict) and self.to is not None:
            raise place.error(("to",), "expected `set: FIELD` beside `to:`, or `set: {FIELD: EXPRESSION}` without")
        if not fields:
            raise place.error(("set",), "expected `set: FIELD` with `to: EXPRESSION`, or `set: {FIELD: EXPRESSION}`")
        rules = []
        for name, expression in fields.items():
            path = name.removeprefix("metadata.")
            text = repr(expression) if isinstance(expression, int | float) else expression
            if not isinstance(text, str) or not all(path.split(".")):
                raise place.error(
                    (),
                    "expected a field of the metadata and an expression (a text has quotes of its own: '\"web\"'), got "
                    f"{name!r}: {text!r}",
                )
            title = self.name if self.name and len(fields) == 1 else f"set {path}"
            rules.append(Set(name=title, field=path, expression=text, when=self.when))
        return rules


class Set(Rule):
    """The rule: `expression` gives the value of `field`, whose name is dotted where it is nested."""

    field: str

    FORM = SetForm
    ROLE = Role.SETS

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        condition = compiler.condition(self, names)
        expression = compiler.value(self, names, self.expression)
        compiler.note_for_fields(expression)
        return Sets(self, names, compiler.function, condition, compiler.function(expression.code))


class Sets(CompiledRule, frozen=True):
    """Gives a field of the metadata its computed value."""

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


class RouteForm(Form):
    """``route: E`` writes a document to the output folder that E gives.

    Attributes:
        route: an expression that gives a folder below the output's folder
    """

    route: str

    KEY = "route"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        return [Route(name=self.name or f"route {self.route}", expression=self.route, when=self.when)]


class Route(Rule):
    """The rule: `expression` gives the folder; ``label`` in it is the label that the format gives."""

    FORM = RouteForm
    ROLE = Role.ROUTES

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        condition = compiler.condition(self, names)
        # the label that the format gives may be another for each piece of a document
        label_names = names if LABEL in compiler.attributes else {**names, LABEL: Name(STR, "given_label")}
        expression = compiler.value(self, label_names, self.expression, STR, "a text, the folder")
        value = compiler.function(expression.code, "given_label")
        takes = label_names is not names and LABEL in paths_in(self.expression, label_names)
        return Routes(self, names, compiler.function, condition, value, takes)


class Routes(CompiledRule, frozen=True):
    """Gives the output folder. `takes` says whether its expression uses the label of the format."""

    value: Function
    takes: bool

    def takes_label(self) -> bool:
        return self.takes

    def folder(self, label: str, values: Values) -> str:
        result = self.run(self.value, (*values, label))
        if not isinstance(result, str):
            raise self.fault(f"expected a text, the folder, got {result!r}")
        return result
