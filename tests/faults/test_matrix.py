"""The matrix of faults and commands: a sample in a folder at once, more of it as `slow`, all of it as `long`."""

from typing import Any

import pytest

from tests.faults.cells import SAMPLE, Bench, Cell, cells, covering
from tests.faults.columns import COLUMNS, Column
from tests.faults.known import OPEN
from tests.faults.places import Place


def _parameters() -> list[Any]:
    """All cells; each has the markers of the smallest suite that it is in."""
    quick = {cell.id for cell in cells() if cell.id in SAMPLE and cell.row.where != "bucket"}
    slow = {*SAMPLE, *(cell.id for cell in covering(2))} - quick
    found = []
    for cell in cells():
        marks = [] if cell.id in quick else [pytest.mark.slow if cell.id in slow else pytest.mark.long]
        marks += [pytest.mark.s3] if cell.row.where == "bucket" else []
        found.append(pytest.param(cell, id=cell.id, marks=marks))
    return found


@pytest.mark.parametrize("cell", _parameters())
def test_a_fault_is_told_harms_nothing_and_is_healed(cell: Cell, request: pytest.FixtureRequest) -> None:
    bench: Bench = request.getfixturevalue("bucket_bench" if cell.row.where == "bucket" else "folder_bench")
    played = bench.play(cell)
    known = OPEN.get(cell.id, {})
    assert [f"{what}: {each}" for what, wrong in played.wrong.items() if what not in known for each in wrong] == []
    assert [what for what in known if not played.wrong.get(what)] == [], "known to fail, and does not: unlist it"


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@pytest.mark.slow
def test_a_command_asks_for_what_its_column_says(column: Column, folder_bench: Bench) -> None:
    """What it does not say would never be struck."""
    place: Place = folder_bench.folder
    _, requests = folder_bench.undisturbed(place, column)
    assert {kind for _, kind in requests} <= set(column.touches.split())


def test_each_row_column_and_kind_is_in_the_slow_suite() -> None:
    chosen, everything = covering(2), cells()
    for mark in (lambda cell: cell.row.name, lambda cell: cell.column.name, lambda cell: (cell.row.where, cell.kind)):
        for value in {mark(cell) for cell in everything}:
            there = sum(mark(cell) == value for cell in everything)
            assert sum(mark(cell) == value for cell in chosen) >= min(2, there)


def test_the_sample_and_what_is_known_are_of_the_matrix() -> None:
    assert {*SAMPLE, *OPEN} <= {cell.id for cell in cells()}
