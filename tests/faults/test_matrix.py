"""The matrix of faults and commands: a sample in a folder at once, more of it as `slow`, all of it as `long`."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.cells import SAMPLE, Bench, Cell, cells, covering, marks_of
from tests.faults.columns import COLUMNS, Column
from tests.faults.kinds import is_shown, kind_of
from tests.faults.known import OPEN
from tests.faults.places import Place
from tests.faults.rows import Row

QUICK = {cell.id for cell in cells() if cell.id in SAMPLE and cell.row.where != "bucket"}
CHOSEN = {*SAMPLE, *(cell.id for cell in covering(1))}
"""Cells of the default suite and of the slow one; the others are of the long one, by row and column."""


def _marks(row: Row, *marks: pytest.MarkDecorator) -> list[pytest.MarkDecorator]:
    return [*marks, pytest.mark.s3] if row.where == "bucket" else [*marks]


def _chosen() -> Iterator[Any]:
    for cell in cells():
        if cell.id in CHOSEN:
            marks = [] if cell.id in QUICK else [pytest.mark.slow]
            yield pytest.param(cell, id=cell.id, marks=_marks(cell.row, *marks))


def _others() -> Iterator[Any]:
    grouped: dict[str, list[Cell]] = {}
    for cell in cells():
        if cell.id not in CHOSEN:
            grouped.setdefault(f"{cell.column.name}-{cell.row.name}", []).append(cell)
    for name, found in grouped.items():
        yield pytest.param(found, id=name, marks=_marks(found[0].row, pytest.mark.long))


def _wrong(cell: Cell, request: pytest.FixtureRequest) -> list[str]:
    bench: Bench = request.getfixturevalue("bucket_bench" if cell.row.where == "bucket" else "folder_bench")
    played = bench.play(cell)
    known = OPEN.get(cell.id, {})
    told = [f"{what}: {each}" for what, wrong in played.wrong.items() if what not in known for each in wrong]
    return told + [f"{what}: known to fail, and does not: unlist it" for what in known if not played.wrong.get(what)]


@pytest.mark.parametrize("cell", [*_chosen()])
def test_a_fault_is_told_harms_nothing_and_is_healed(cell: Cell, request: pytest.FixtureRequest) -> None:
    assert _wrong(cell, request) == []


@pytest.mark.parametrize("others", [*_others()])
def test_so_is_each_other_of_a_row_and_a_column(others: list[Cell], request: pytest.FixtureRequest) -> None:
    assert {cell.id: wrong for cell in others if (wrong := _wrong(cell, request))} == {}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@pytest.mark.slow
def test_a_command_asks_for_what_its_column_says(column: Column, folder_bench: Bench) -> None:
    """What it does not say would never be struck."""
    place: Place = folder_bench.folder
    _, requests = folder_bench.undisturbed(place, column)
    assert {kind for _, kind in requests} <= set(column.touches.split())


def test_each_row_column_and_kind_is_in_the_slow_suite() -> None:
    """Kinds and columns on a disk; the long suite has them in a bucket."""
    covered, every = (set().union(*map(marks_of, each)) for each in (covering(1), cells()))
    assert covered == every
    assert {cell.kind for cell in cells()} == {cell.kind for cell in covering(1)}


def test_the_sample_and_what_is_known_are_of_the_matrix() -> None:
    assert {*SAMPLE, *OPEN} <= {cell.id for cell in cells()}


@pytest.mark.s3
@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_a_command_makes_in_a_bucket_what_it_makes_in_a_folder(column: Column, bucket_bench: Bench) -> None:
    assert bucket_bench.bucket
    here, there = (visible(bucket_bench, place, column) for place in (bucket_bench.folder, bucket_bench.bucket))
    assert there == here != {}


def visible(bench: Bench, place: Place, column: Column) -> dict[str, bytes]:
    """What is visible after a command, uncompressed; labels lie beside a bucket. The root has one name everywhere."""
    undisturbed, _ = bench.undisturbed(place, column)
    files = {
        name: file.data for name, file in undisturbed.after.items() if is_shown(name) and kind_of(name) != "labels"
    }
    found = {name: gzip.decompress(data) if name.endswith(".gz") else data for name, data in files.items()}
    return {name: data.replace(place.root.encode(), b"ROOT") for name, data in found.items()}
