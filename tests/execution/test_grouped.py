"""Small tasks in groups: which are, and that each has its result whatever becomes of its group."""

from collections.abc import Iterator
from typing import Any

import pytest

from toolkit.errors import DataError
from toolkit.execution import grouped
from toolkit.execution.executors import Report, Result, Task, attempt
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.grouped import Work
from toolkit.storage.outputs import write_file
from toolkit.storage.record_log import Group, RecordLog


def tasks(*sizes: int | None, processes: int = 1) -> list[Task[int]]:
    return [Task(f"task {i}", i, size, processes, key=str(i)) for i, size in enumerate(sizes)]


def nothing(payload: int, report: Report) -> int:
    return payload


def together(inside: list[Task[int]], report: Report) -> list[Result[int]]:
    return [attempt(nothing, task, report) for task in inside]


def names(listed: list[Task[Any]]) -> list[list[str]]:
    return [[each.key for each in grouped.members(task)] for task in listed]


def test_small_tasks_are_grouped_if_there_are_some() -> None:
    work, few = Work(nothing, together), grouped.LEAST - 1
    assert work.in_groups(tasks(*[1] * few), 1) == tasks(*[1] * few)
    assert [len(group) for group in names(work.in_groups(tasks(*[1] * 100), 1))] == [64, 36]
    assert [len(group) for group in names(work.in_groups(tasks(*[1] * 40), 2))] == [5] * 8
    large, unknown = grouped.SMALL, None
    found = names(work.in_groups(tasks(large, *[1] * 20, unknown), 1))
    assert found == [["0"], ["21"], [str(i) for i in range(1, 21)]]
    assert Work(nothing).in_groups(tasks(*[1] * 100), 1) == tasks(*[1] * 100)


def results(work: Work[int, int], listed: list[Task[int]]) -> dict[str, Result[int]]:
    told: list[tuple[int, int]] = []

    def run(work: Work[Any, Any], tasks: list[Task[Any]]) -> Iterator[Result[Any]]:
        return InProcess(lambda *said: told.append(said)).run(work, tasks)

    found = {each.name: each for each in work.results(run, work.in_groups(listed, 1))}
    assert tuple(map(sum, zip(*told, strict=True))) == (len(listed), 0)
    return found


def test_each_task_has_its_result_also_if_its_group_fails() -> None:
    """A group whose commit fails, say because the disk is full, is done one by one; nothing is reported twice."""
    alone: list[int] = []

    def one(payload: int, report: Report) -> int:
        alone.append(payload)
        report(1, 0)
        if payload == 7:
            raise DataError("seven")
        return payload

    def group(inside: list[Task[int]], report: Report) -> list[Result[int]]:
        found = [attempt(one, task, report) for task in inside]
        if inside[0].payload == 0:
            raise OSError("no room")
        return found

    found = results(Work(one, group), tasks(*[1] * 100))
    assert len(found) == 100
    assert [each.failure.message for each in found.values() if each.failure] == ["seven"]
    assert sorted(alone) == sorted([*range(100), *range(64)])


def test_a_group_is_committed_now_and_then(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """And of a task that fails nothing appears."""
    monkeypatch.setattr(grouped, "SECONDS", -1.0)
    committed: list[int] = []

    def do(payload: int, report: Report) -> int:
        write_file(f"{tmp_path}/{payload}", b"")
        group.save(("kind", str(payload)), b"{}")
        group.then(lambda: committed.append(payload))
        if payload == 1:
            raise DataError("one")
        return payload

    with Group(RecordLog(f"{tmp_path}/record-log")) as group:
        found = grouped.one_by_one(do, tasks(1, 1, 1), lambda documents, size: None, group)
        assert committed == [0, 2]
    assert [bool(each.failure) for each in found] == [False, True, False]
    assert RecordLog(f"{tmp_path}/record-log").keys("kind") == ["0", "2"]
