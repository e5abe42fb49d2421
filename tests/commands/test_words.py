"""Each step of a command is told in words."""

import re
from collections.abc import Iterator

from tests.conftest import ROOT
from toolkit import command_line
from toolkit.stages.running import STEPS, in_words

RUN = re.compile(r'(?<!tables\.)\b_?run(?:_each|_inputs)?\(\s*(?:context, )?f?"([^"]+)"')
AS_IT_IS = {*command_line.names(), "dry run", "explain", "evaluate", "documents", "output", "annotate NAME"}
"""Steps that are called like a command, an option, or what is checked."""


def named() -> Iterator[str]:
    """Yield the names of steps that the code has; NAME stands for what depends on the configuration."""
    for path in (ROOT / "toolkit").rglob("*.py"):
        for name in RUN.findall(path.read_text(encoding="utf-8")) if path.name != "tables.py" else ():  # it runs SQL
            yield re.sub("{.+}", "NAME", name)


def test_every_step_is_told_in_words() -> None:
    found = {*named(), "sign NAME", "choose", "bounds"}  # which others hand over
    assert found - AS_IT_IS - STEPS.keys() == set()
    assert STEPS.keys() - found == set(), "no word that nobody uses"


def test_names_are_put_in() -> None:
    assert in_words("write near-0") == "writing near-0"
    assert in_words("decide") == "deciding which near duplicates stay"
    assert in_words("tag") == "tag"
    assert in_words("my own step") == "my own step"
