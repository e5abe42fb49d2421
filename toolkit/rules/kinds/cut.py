"""``cut: repeated`` removes the text of spans."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from toolkit.config.settings import ConfigNode, Description
from toolkit.rules.kinds.replace import Replace, SpansForm
from toolkit.rules.rule import Form, Rule


class CutForm(SpansForm):
    """The entry in YAML."""

    cut: Annotated[str, Description(description="an expression that gives spans; with `syntax`, a selector")]

    KEY = "cut"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        return [self.rule(Cut, self.cut, "")]


class Cut(Replace):
    """The rule: as `Replace`, by nothing."""

    FORM: ClassVar[type[Form]] = CutForm
