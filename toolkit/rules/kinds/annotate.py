"""``{annotate: short, when: E}``: the documents for which E is true get an annotation."""

from collections.abc import Sequence
from typing import Annotated

from toolkit.config.settings import Description, Source
from toolkit.rules.compiled_rule import CompiledRule
from toolkit.rules.compiling import Compiler
from toolkit.rules.rule import Form, Rule
from toolkit.rules.written import Role


class AnnotateForm(Form):
    """The entry in YAML."""

    annotate: Annotated[str, Description(description="what is added to the annotations of a document")]
    when: Annotated[str, Description(description="to which documents")]

    KEY = "annotate"

    def rules(self, place: Source, base: str) -> Sequence[Rule]:
        return [Annotate(name=self.name or self.annotate, expression=self.when, annotation=self.annotate)]


class Annotate(Rule):
    """The rule: adds `annotation` where `expression` is true."""

    annotation: str

    FORM = AnnotateForm
    ROLE = Role.ANNOTATES

    def compile(self, compiler: Compiler) -> CompiledRule:
        return compiler.decision(self, self.expression)
