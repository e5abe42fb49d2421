"""``cut: repeated``: the text of spans goes."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from toolkit.config.settings import Description, Source
from toolkit.rules.filters import Syntax
from toolkit.rules.kinds.replace import Replace
from toolkit.rules.rule import Form, Rule


class CutForm(Form):
    """The entry in YAML."""

    cut: Annotated[str, Description(description="an expression that gives spans; with `syntax` a selector of them")]
    min_score: Annotated[int | float | None, Description(description="spans with a lower score stay")] = None
    max_score: Annotated[
        int | float | None, Description(description="spans with this score, or a higher one, stay")
    ] = None
    syntax: Annotated[Syntax | None, Description(description="the language of the selector")] = None

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
