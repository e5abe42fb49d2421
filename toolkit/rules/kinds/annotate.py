"""``{annotate: short, when: E}`` adds an annotation to the documents for which E is true."""

from collections.abc import Sequence
from typing import Annotated

from toolkit.config.settings import ConfigNode, Description
from toolkit.rules.rule import CompiledRule, Compiler, Form, Role, Rule


class AnnotateForm(Form):
    """The entry in YAML."""

    annotate: Annotated[str, Description(description="the annotation to add")]
    when: Annotated[str, Description(description="an expression: which documents get the annotation")]

    KEY = "annotate"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        return [Annotate(name=self.name or self.annotate, expression=self.when, annotation=self.annotate)]


class Annotate(Rule):
    """The rule: adds `annotation` where `expression` is true."""

    annotation: str

    FORM = AnnotateForm
    ROLE = Role.ANNOTATES

    def compile(self, compiler: Compiler) -> CompiledRule:
        return compiler.decision(self, self.expression)
