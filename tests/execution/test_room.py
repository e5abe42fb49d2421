"""Room below a bound: what is counted, who waits, what is corrected, and what cannot fit."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.execution.tasks import ignore, shout
from toolkit.execution import room as rooms
from toolkit.execution.executors import Executor, Task
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.executors.local import Local
from toolkit.execution.room import NOTHING, Need, NoRoom, Room, bytes_below

MB = 1 << 20


class Disk:
    """Folders whose bytes the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = 0
        monkeypatch.setattr(rooms, "bytes_below", lambda folders: self.held)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def room_of(limit: int, needs: Mapping[str, Need | None], *, shares: int = 1) -> Room:
    room = Room(limit, [], shares)
    room.begin(lambda task: needs[task.name])
    return room


def task(name: str) -> Task[str]:
    return Task(name, name)


def test_what_folders_hold_is_counted_as_du_counts_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name, size in (("one", 1), ("a/block", 4096), ("a/b/more", 4097), ("a/empty", 0)):
        (tmp_path / name).write_bytes(b"x" * size)
    os.link(tmp_path / "one", tmp_path / "a" / "same")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "one")
    held = bytes_below([str(tmp_path / "a"), str(tmp_path), str(tmp_path / "a" / "b"), str(tmp_path / "none")])
    assert held == 3 * 4096 + (1 + 1 + 2) * 4096 + 4096
    said = subprocess.run(["du", "-sk", tmp_path], capture_output=True, check=True).stdout
    assert int(said.split()[0]) * 1024 <= held


def test_a_task_waits_until_another_has_ended(disk: Disk) -> None:
    room = room_of(100 * MB, {"a": Need(60 * MB, 10 * MB), "b": Need(60 * MB, 10 * MB)})
    assert room.admits(task("a"), running=False)
    disk.held = 30 * MB
    assert not room.admits(task("b"), running=True)
    disk.held = 10 * MB  # its documents have gone
    room.end("a")
    assert room.admits(task("b"), running=False)


def test_what_will_be_made_at_the_end_is_kept_free(disk: Disk) -> None:
    room = room_of(100 * MB, {name: Need(20 * MB, 20 * MB, 20 * MB) for name in "abc"})
    for name in "ab":
        assert room.admits(task(name), running=False)
        disk.held += 20 * MB
        room.end(name)
    with pytest.raises(NoRoom, match=r"max_disk: expected room for about 8\d.\d MB .*, got 62.9 MB of 104.9 MB"):
        room.admits(task("c"), running=False)


def test_expectations_are_corrected_by_what_was_measured(disk: Disk) -> None:
    room = room_of(100 * MB, {name: Need(10 * MB, 10 * MB) for name in "abc"})
    assert room.admits(task("a"), running=False)
    disk.held = 40 * MB  # four times as much
    room.end("a")
    assert room.admits(task("b"), running=False)
    disk.held = 80 * MB
    room.end("b")
    with pytest.raises(NoRoom, match=r"expected room for about 46\.1 MB to begin c, got 21\.0 MB"):
        room.admits(task("c"), running=False)


def test_what_running_tasks_have_written_is_no_reason_for_a_correction(disk: Disk) -> None:
    room = room_of(1000 * MB, {name: Need(100 * MB, 10 * MB) for name in "abc"})
    assert room.admits(task("a"), running=False)
    assert room.admits(task("b"), running=True)
    disk.held = 10 * MB + 100 * MB
    room.end("a")
    assert room.admits(task("c"), running=True)
    assert room.admits(task("b"), running=True), "a task that is begun anew takes the place of its first attempt"


def test_a_task_of_which_nobody_knows_what_it_needs_is_done_alone(disk: Disk) -> None:
    room = room_of(100 * MB, {"a": Need(MB, MB), "b": None, "c": Need(MB, MB)})
    assert room.admits(task("a"), running=False)
    assert not room.admits(task("b"), running=True)
    room.end("a")
    assert room.admits(task("b"), running=False)
    assert not room.admits(task("c"), running=True)
    room.end("b")
    assert room.admits(task("c"), running=False)


def test_it_is_taken_to_need_what_such_tasks_have_kept_before(disk: Disk) -> None:
    room = room_of(100 * MB, dict.fromkeys("abc"))
    for name, kept in (("a", 30 * MB), ("b", 40 * MB)):
        assert room.admits(task(name), running=False)
        assert not room.admits(task("c"), running=True)
        disk.held += kept
        room.end(name)
    with pytest.raises(NoRoom, match=r"expected room for about 46\.1 MB to begin c, got 31\.5 MB"):
        room.admits(task("c"), running=False)


def test_what_has_nothing_to_do_begins_however_full_it_is(disk: Disk) -> None:
    room = room_of(MB, {"a": NOTHING})
    disk.held = 2 * MB
    assert room.admits(task("a"), running=False)
    room.check([NOTHING, NOTHING])
    with pytest.raises(NoRoom):
        room.check([NOTHING, Need(1, 1)])


def test_each_share_leaves_room_for_the_others(disk: Disk) -> None:
    needs = dict.fromkeys("ab", Need(20 * MB, 20 * MB))
    alone, one_of_four = room_of(100 * MB, needs), room_of(100 * MB, needs, shares=4)
    for each in (alone, one_of_four):
        assert each.admits(task("a"), running=False)
    assert alone.admits(task("b"), running=True)
    assert not one_of_four.admits(task("b"), running=True)


@given(
    limit=st.integers(50, 400),
    works=st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=12),
    ratio=st.floats(0.5, 1),
    slots=st.integers(1, 4),
    order=st.randoms(use_true_random=False),
)
def test_the_bound_is_kept_while_no_task_needs_more_than_expected(
    limit: int, works: list[tuple[int, bool]], ratio: float, slots: int, order: Any
) -> None:
    """Tasks write step by step, end in any order, and some delete what they wrote."""
    held: dict[str, float] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rooms, "bytes_below", lambda folders: round(sum(held.values())))
        expected = {str(i): Need(peak * MB, 0 if goes else peak * MB) for i, (peak, goes) in enumerate(works)}
        room = room_of(limit * MB, dict(expected))
        waiting, running = list(expected), list[str]()
        try:
            while waiting or running:
                while waiting and len(running) < slots and room.admits(task(waiting[0]), running=bool(running)):
                    running.append(waiting.pop(0))
                for name in running:
                    held[name] = min(held.get(name, 0) + 20 * MB, ratio * expected[name].peak)
                    assert sum(held.values()) <= limit * MB
                done = running.pop(order.randrange(len(running)))
                held[done] = 0 if works[int(done)][1] else ratio * expected[done].peak
                assert sum(held.values()) <= limit * MB
                room.end(done)
        except NoRoom:
            assert not running


@pytest.mark.parametrize(
    "made",
    [lambda begun: InProcess(ignore, begun), lambda begun: Local(ignore, begun, processes=3)],
    ids=["in", "local"],
)
def test_executors_let_tasks_wait_that_are_not_admitted(made: Callable[[Callable[[str], None]], Executor]) -> None:
    seen: list[str] = []
    executor = made(seen.append)
    executor.admits = lambda task, running: not running
    for result in executor.run(shout, [Task(name, name) for name in "abc"]):
        seen.append(f"{result.name} ended")
    assert seen == ["a", "a ended", "b", "b ended", "c", "c ended"]

    def refuse(task: Task[str], running: bool) -> bool:
        raise NoRoom("full")

    executor.admits = refuse
    with pytest.raises(NoRoom, match="full"):
        list(executor.run(shout, [task("a")]))
