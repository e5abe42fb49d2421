"""``cut: repeated``: the text of spans goes."""

from collections.abc import Sequence
from typing import ClassVar

from toolkit.config.settings import Source
from toolkit.rules.filters import Syntax
from toolkit.rules.kinds.replace import Replace
from toolkit.rules.rule import Form, Rule


class CutForm(Form):
    """The entry in YAML.

    Attributes:
        cut: an expression that gives spans; with `syntax` a selector of them.
        min_score: of spans that are cut.
        max_score: below which spans are cut.
        syntax: the language of the selector.
    """

    cut: str
    min_score: int | float | None = None
    max_score: int | float | None = None
    syntax: Syntax | None = None

    KEY = "cut"

    def rules(self, place: Source, base: str) -> Sequence[Rule]:
        return [
            Cut(
                name=self.name or self.cut,
                expression=self.cut,
                syntax=self.syntax or "",
                when=self.when,
                min_score=self.min_score,
                max_score=self.max_score,
            )
        ]


class Cut(Replace):
    """The rule: as `Replace`, by nothing."""

    FORM: ClassVar[type[Form]] = CutForm
