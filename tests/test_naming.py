"""Names and docstrings of the code: variables are nouns of the field, docstrings say the subject first."""

import ast
from pathlib import Path

import pytest

from tests.sources import nodes
from tests.test_layers import MODULES, PLUGINS

RIDDLES = {"each", "found", "made"}
"""A loop variable is the singular of what is looped over; a result has the noun of its type."""

SOURCES = sorted({*MODULES.values(), *PLUGINS.values()})


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_variables_are_nouns(path: Path) -> None:
    classes = [node for node in nodes(path) if isinstance(node, ast.ClassDef)]
    fields = {id(line.target) for class_ in classes for line in class_.body if isinstance(line, ast.AnnAssign)}
    names = [node for node in nodes(path) if isinstance(node, ast.Name) and id(node) not in fields]
    stored = [node for node in names if isinstance(node.ctx, ast.Store)]
    lambdas = [argument for node in nodes(path) if isinstance(node, ast.Lambda) for argument in node.args.args]
    assert [f"{path}:{node.lineno}: {node.id}" for node in stored if node.id in RIDDLES] == []
    assert [f"{path}:{argument.lineno}: {argument.arg}" for argument in lambdas if argument.arg in RIDDLES] == []
