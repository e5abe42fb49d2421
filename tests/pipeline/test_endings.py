"""Each command ends by itself, and nothing that it has begun outlives it, though no garbage is ever collected.

What only the collector ends (a process, a thread, a temporary file that an object holds which nobody has left) ends
now and then, or never: Python waits for processes and threads at its end.
"""

import atexit
import gc
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.cells import Bench
from tests.faults.columns import COLUMNS, Column
from tests.faults.driver import bench
from tests.faults.places import Strike
from tests.faults.warm import Signal

UNCOLLECTED = f"{__name__}:collect_nothing"
_SLOW = ("run", "ingest", "tag", "mix-recipe", "dedup", "train", "annotate", "sql", "report", "view")


def collect_nothing() -> None:
    """Collect no garbage; and end as an interpreter does: what is waited for there is waited for here."""
    gc.disable()
    command, leave = os.getpid(), os._exit

    def end(code: int) -> None:
        if os.getpid() == command:
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        leave(code)

    os._exit = end  # type: ignore[assignment]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("endings"), None) as found:
        yield found


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if name in _SLOW else [pytest.mark.slow, pytest.mark.long]


@pytest.mark.parametrize("column", [pytest.param(each, id=each.name, marks=_marks(each.name)) for each in COLUMNS])
def test_a_command_ends_and_leaves_nothing(column: Column, ended: Bench, tmp_path: Path) -> None:
    place = ended.folder
    place.restore(ended.undisturbed(place, column)[0].before)
    more = (*column.more, *((("processes", 4),) if column.configured else ()))
    constants = (*column.constants, ("toolkit.execution.workers.LARGE", 1))  # two processes for each of the two shards
    ended.warm.env["TMPDIR"] = str(tmp_path)
    ended.warm.signal = Signal(0, None)  # none is sent, but what the command has begun is waited for
    try:
        ran = ended.run(place, replace(column, more=more, constants=constants), Strike(), UNCOLLECTED)
    finally:
        del ended.warm.env["TMPDIR"]
    assert ran.code == column.code, ran
    assert "Warning" not in ran.err
    assert not [*tmp_path.iterdir()]
