"""``keep: E`` drops the documents for which E is not true, the opposite of ``drop: E``."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from toolkit.config.settings import ConfigNode, Description
from toolkit.rules.kinds.drop import Drop, PatternForm
from toolkit.rules.rule import Form, Rule


class KeepForm(PatternForm):
    """The entry in YAML."""

    keep: Annotated[
        str | list[str], Description(description="an expression; with `syntax` a pattern, or a list of patterns")
    ]

    KEY = "keep"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        return [self.rule(Keep, self.keep, place)]


class Keep(Drop):
    """The rule: as `Drop`, of the documents that the expression or the patterns do not tell."""

    FORM: ClassVar[type[Form]] = KeepForm
    KEEPS = True
