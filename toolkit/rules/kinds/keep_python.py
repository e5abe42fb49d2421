"""``{keep: python, function: "my.py:function"}`` drops the documents for which a function returns False."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from toolkit.config.settings import ConfigNode, Description
from toolkit.rules.kinds.drop_python import DropPython, PythonForm
from toolkit.rules.rule import Form, Rule


class KeepPythonForm(PythonForm, kw_only=True):
    """The entry in YAML."""

    keep: Annotated[str, Description(description="the word `python`")]

    KEY = "keep"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        return [self.rule(KeepPython, place, base)]


class KeepPython(DropPython):
    """The rule: as `DropPython`, of the documents for which the function returns False."""

    FORM: ClassVar[type[Form]] = KeepPythonForm
    KEEPS = True
