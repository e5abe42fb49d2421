"""``{annotate: short, when: E}``: the documents for which E is true get an annotation."""

from collections.abc import Sequence

from toolkit.config.settings import Source
from toolkit.rules.compiled import CompiledRule
from toolkit.rules.compiling import Compiler
from toolkit.rules.rule import Form, Role, Rule


class AnnotateForm(Form):
    """The entry in YAML.

    Attributes:
        annotate: what is added to the annotations of a document.
        when: to which documents.
    """

    annotate: str
    when: str

    KEY = "annotate"

    def rules(self, place: Source, base: str) -> Sequence[Rule]:
        return [Annotate(name=self.name or self.annotate, expression=self.when, annotation=self.annotate)]


class Annotate(Rule):
    """The rule: adds `annotation` where `expression` is true."""

    expression: str
    annotation: str

    FORM = AnnotateForm
    ROLE = Role.ANNOTATES

    @property
    def expressions(self) -> list[str]:
        return [self.expression, *super().expressions]

    def compile(self, compiler: Compiler) -> CompiledRule:
        return compiler.decision(self, self.expression)
