"""The state of an artifact: one function compares what is recorded with what there is now."""

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sources import nodes
from tests.test_layers import MODULES
from toolkit.errors import StaleError
from toolkit.storage.artifact import Artifact, FileRecord, state
from toolkit.storage.paths import stat
from toolkit.storage.reading import content_digest

RECORDED = {"stamp", "lineage", "made_with", "made_of", "made_from"}
"""Fields of records that say what an artifact was made of, and which version of a file there was."""

ELSEWHERE = "toolkit.storage"
"""Stores compare versions of a file that is being read or written."""


class Made(Artifact, frozen=True, kw_only=True):
    settings: dict[str, int]
    of: dict[str, str]
    file: FileRecord

    @property
    def lineage(self) -> dict[str, str]:
        return self.of


@pytest.fixture
def made(tmp_path: Path) -> Made:
    path = tmp_path / "a.txt"
    path.write_text("some text")
    there = stat(str(path))
    assert there
    file = FileRecord(str(path), there.size, there.stamp, content_digest(str(path)))
    return Made(settings={"n": 1}, of={"": "d", "other-0": "o"}, file=file)


def gone() -> Iterator[tuple[str, str]]:
    yield "", "d"
    raise StaleError("expected the other set as it is now")


Change = Callable[[Made], object]


@pytest.mark.parametrize(
    ("change", "quick", "expected"),
    [
        (lambda made: None, True, "done"),
        (lambda made: os.utime(made.file.path, ns=(1, 1)), False, "done"),
        (lambda made: os.utime(made.file.path, ns=(1, 1)), True, "missing"),
        (lambda made: Path(made.file.path).write_text("some tex+"), False, "missing"),
        (lambda made: Path(made.file.path).write_text("some"), False, "missing"),
        (lambda made: Path(made.file.path).unlink(), False, "missing"),
        (lambda made: made.settings.update(n=2), False, "stale"),
        (lambda made: made.of.update({"other-0": "p"}), False, "stale"),
        (lambda made: made.of.update({"third-0": "t"}), False, "stale"),
        (lambda made: made.of.pop("other-0"), False, "stale"),
    ],
)
def test_states(made: Made, change: Change, quick: bool, expected: str) -> None:
    change(made)
    found = state(made, [("", "d"), ("other-0", "o")], {"n": 1}, lambda made: [made.file], quick=quick)
    assert (found.name, bool(found.why)) == (expected, expected != "done")


def test_an_attempt_without_a_record_was_interrupted() -> None:
    assert [state(None, begun=begun).name for begun in (True, False)] == ["interrupted", "missing"]


def test_an_input_that_is_not_what_it_should_be_makes_stale(made: Made) -> None:
    found = state(made, gone(), {"n": 1}, lambda made: [made.file])
    assert (found.name, type(found.error)) == ("stale", StaleError)


def test_nothing_else_compares_records_with_what_there_is_now() -> None:
    places = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        for node in nodes(path)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq)
        if not module.startswith(ELSEWHERE) and any(map(_is_recorded, ast.walk(node)))
    ]
    assert places == []


def _is_recorded(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "Stat"
    return isinstance(node, ast.Attribute) and node.attr in RECORDED
