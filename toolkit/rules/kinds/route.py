"""``route: E`` writes a document to the output folder that E gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from toolkit.config.settings import ConfigNode, Description
from toolkit.data.schema import STR
from toolkit.rules.checker import Name
from toolkit.rules.expressions import paths_in
from toolkit.rules.rule import LABEL, CompiledRule, Compiler, Form, Function, Role, Rule, Values


class RouteForm(Form):
    """The entry in YAML."""

    route: Annotated[str, Description(description="an expression that gives a folder below the output's folder")]

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
        given = names if LABEL in compiler.attributes else {**names, LABEL: Name(STR, "given_label")}
        found = compiler.value(self, given, self.expression, STR, "a text, the folder")
        value = compiler.function(found.code, "given_label")
        takes = given is not names and LABEL in paths_in(self.expression, given)
        return Routes(self, names, compiler.function, condition, value, takes)


@dataclass(frozen=True, eq=False)
class Routes(CompiledRule):
    """Gives the output folder, which `value` computes; `takes` says whether it uses the label of the format."""

    value: Function
    takes: bool

    def takes_label(self) -> bool:
        return self.takes

    def folder(self, label: str, values: Values) -> str:
        found = self.run(self.value, (*values, label))
        if not isinstance(found, str):
            raise self.fault(f"expected a text, the folder, got {found!r}")
        return found
