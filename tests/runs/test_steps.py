"""Each step of a command is told in words."""

import ast
from collections.abc import Iterator

from tests.conftest import ROOT
from toolkit.commands.command_line import parser
from toolkit.runs.steps import STEPS, in_words

RUN = {"run", "_run", "run_each", "run_inputs"}
AS_IT_IS = {*parser.names(), "dry run", "explain", "evaluate", "documents", "output", "annotate NAME"}
"""Steps that are called like a command, an option, or what is checked."""


def named() -> Iterator[str]:
    """Yield the names of steps that the code has; NAME stands for what depends on the configuration."""
    for path in (ROOT / "toolkit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called not in RUN:
                continue
            for given in node.args[:2]:
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield given.value
                    break
                if isinstance(given, ast.JoinedStr):
                    parts = (each.value if isinstance(each, ast.Constant) else "NAME" for each in given.values)
                    yield "".join(map(str, parts))
                    break


def test_every_step_is_told_in_words() -> None:
    found = {*named(), "sign NAME"}  # which is put together before
    assert found - AS_IT_IS - STEPS.keys() == set()
    assert STEPS.keys() - found == set(), "no word that nobody uses"


def test_names_are_put_in() -> None:
    assert in_words("write near-0") == "writing near-0"
    assert in_words("decide") == "deciding which near duplicates stay"
    assert in_words("tag") == "tag"
    assert in_words("my own step") == "my own step"
