"""``keep: E``: the opposite of ``drop: E``, documents for which E is not true go."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from toolkit.config.settings import Description, Source
from toolkit.rules.filters import Syntax
from toolkit.rules.kinds.drop import Drop, patterns_of
from toolkit.rules.rule import Form, Rule


class KeepForm(Form):
    """The entry in YAML."""

    keep: Annotated[
        str | list[str], Description(description="an expression; with `syntax` a pattern, or a list of patterns")
    ]
    syntax: Annotated[Syntax | None, Description(description="the language of the patterns")] = None
    strict: Annotated[bool, Description(description="compare numbers as Dolma does, 1 unequal to 1.0")] = False

    KEY = "keep"

    def rules(self, place: Source, base: str) -> Sequence[Rule]:
        patterns = patterns_of(self.keep, self.syntax, place)
        return [
            Keep(
                name=self.name or f"not ({' or '.join(patterns)})" + (f", when {self.when}" if self.when else ""),
                expression="" if self.syntax else patterns[0],
                patterns=patterns if self.syntax else [],
                syntax=self.syntax or "",
                strict=self.strict,
                when=self.when,
            )
        ]


class Keep(Drop):
    """The rule: as `Drop`, of the documents that the expression or the patterns do not tell."""

    FORM: ClassVar[type[Form]] = KeepForm
    KEEPS = True
