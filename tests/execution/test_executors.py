"""Executors: every task once, errors as values, workers that die, and nothing left behind."""

import os
import pickle
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.execution.tasks import (
    die_always,
    die_once,
    fail_on_b,
    hold,
    ignore,
    is_alive,
    note_times,
    process,
    shout,
    who,
    with_helpers,
    write_and_wait,
)
from tests.marks import slow
from tests.waiting import wait_until
from toolkit.errors import DataError
from toolkit.execution import grouped, processes, workers
from toolkit.execution.executors import Executor, Report, Result, Task, local, run_task
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.executors.local import Local, LocalSettings
from toolkit.execution.grouped import Work
from toolkit.execution.pool import Died
from toolkit.interrupts import Ended
from toolkit.storage.outputs import write_file
from toolkit.storage.record_log import Group, RecordLog
from toolkit.storage_options import Duration, Size


def collect(
    executor: Executor, function: "Callable[[str, Report], str]", names: Iterable[str]
) -> dict[str, Result[str]]:
    results = list(executor.run(function, [Task(name, name, size=len(name)) for name in names]))
    found = {result.name: result for result in results}
    assert len(found) == len(results), "each once"
    return found


def test_without_a_number_there_are_as_many_processes_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "available_cores", lambda: 3)
    chosen = workers.ExecutorChoice(Local, LocalSettings())
    found = workers.Workers(chosen, None, ignore, lambda name: None).executor(2)
    assert isinstance(found, Local)
    assert found.processes == 3
    assert processes.available_cores() == len(os.sched_getaffinity(0))


@pytest.fixture(params=["in process", "local"])
def executor(request: pytest.FixtureRequest) -> Executor:
    return InProcess(ignore) if request.param == "in process" else Local(ignore, processes=2)


def test_every_task_gives_one_result(executor: Executor) -> None:
    names = [f"task {i}" for i in range(12)]
    found = collect(executor, shout, names)
    assert {name: result.value for name, result in found.items()} == {name: name.upper() for name in names}
    assert all(result.failure is None for result in found.values())


def test_workers_end_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    collect(Local(ignore, processes=2), shout, "ab")
    assert capfd.readouterr() == ("", "")


def test_no_tasks_give_no_results(executor: Executor) -> None:
    assert collect(executor, shout, []) == {}


def test_an_error_is_a_value_and_the_others_go_on(executor: Executor) -> None:
    found = collect(executor, fail_on_b, "abcdefg")
    assert [found[name].value for name in "afg"] == ["A", "F", "G"]
    failures = {name: found[name].failure for name in "bcde"}
    assert all(failures.values())
    messages = {name: failure.message for name, failure in failures.items() if failure}
    assert messages == {
        "b": "b: ValueError: cannot",
        "c": "c.yaml:1: expected a, got b",
        "d": "d: [Errno 2] No such file or directory: '/no/such/file'",
        "e": "e: BaseException: native panic",
    }
    assert failures["b"] is not None
    assert 'raise ValueError("cannot")' in failures["b"].details
    assert failures["c"] is not None
    assert failures["c"].details == ""


@pytest.mark.parametrize("error", [KeyboardInterrupt, Ended, GeneratorExit])
def test_what_ends_a_process_is_no_result(error: type[BaseException]) -> None:
    def end(payload: str, report: Report) -> str:
        raise error

    with pytest.raises(error):
        run_task(end, Task("a", "a"), ignore)


@pytest.mark.parametrize("kind", [InProcess, lambda report: Local(report, processes=2)], ids=["in process", "local"])
def test_reports_add_up(kind: Callable[[Report], Executor]) -> None:
    seen: list[tuple[int, int]] = []
    collect(kind(lambda documents, size: seen.append((documents, size))), shout, ["a", "bb", "ccc"])
    assert (sum(n for n, _ in seen), sum(size for _, size in seen)) == (3, 6)


def test_the_largest_tasks_are_begun_first() -> None:
    tasks = [Task(str(size), str(size), size) for size in (1, 3, 2)]
    assert [result.name for result in Local(ignore, processes=1).run(shout, tasks)] == ["3", "2", "1"]


def test_a_worker_that_is_killed_once_costs_one_retry(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("dies", "a", "b")]
    found = collect(Local(ignore, processes=2), die_once, names)
    assert [found[name].value for name in names] == ["alive"] * 3
    assert (tmp_path / "dies").exists()


@pytest.mark.slow
def test_a_worker_that_always_dies_is_a_failure_with_a_name(tmp_path: Path) -> None:
    dies, exits = str(tmp_path / "dies"), str(tmp_path / "exits")
    found = collect(Local(ignore, processes=2), die_always, ["a", dies, exits, "b"])
    assert [found[name].value for name in "ab"] == ["alive"] * 2
    failures = [found[name].failure for name in (dies, exits)]
    assert [failure.message for failure in failures if failure] == [
        f"{dies}: the worker process was ended by SIGKILL, twice; was the memory exhausted?",
        f"{exits}: the worker process ended with status 7, twice",
    ]
    assert [Path(name).read_text() for name in (dies, exits)] == ["tried tried "] * 2


def test_closing_early_leaves_no_process_and_no_temporary_file(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("slow.bin", "quick")]
    results = Local(ignore, processes=2).run(write_and_wait, [Task(name, name) for name in names])
    first = next(results)
    assert (first.name, first.value) == (names[1], "True")
    pid = int((tmp_path / "slow.bin.pid").read_text())
    assert is_alive(pid)
    assert len(list(tmp_path.glob(".*.tmp"))) == 1
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert not is_alive(pid)
    assert [path.name for path in tmp_path.iterdir()] == ["slow.bin.pid"]


# --- workers that are kept --------------------------------------------------------------------------------------------


def workers_of(executor: Executor, folder: Path) -> set[int]:
    """The processes in which two tasks run at a time."""
    (folder / "2").mkdir(parents=True)
    found = collect(executor, who, [str(folder / "2" / name) for name in "ab"])
    assert all(result.value for result in found.values()), found
    return {int(result.value) for result in found.values() if result.value}


@pytest.mark.slow
def test_workers_are_kept_from_one_run_to_the_next_and_end_with_the_executor(tmp_path: Path) -> None:
    with Local(ignore, processes=2) as executor:
        first = workers_of(executor, tmp_path / "first")
        assert len(first) == 2
        assert workers_of(executor, tmp_path / "second") == first
        failed = collect(executor, fail_on_b, "abc")
        assert [name for name in "abc" if failed[name].failure] == ["b", "c"]
        assert workers_of(executor, tmp_path / "third") == first, "errors are values"
        killed = min(first)
        os.kill(killed, signal.SIGKILL)
        assert wait_until(lambda: not is_alive(killed))
        fourth = workers_of(executor, tmp_path / "fourth")
        assert len(fourth) == 2
        assert killed not in fourth
        results = executor.run(shout, [Task(name, name) for name in "abcdef"])
        next(results)
        results.close()  # type: ignore[attr-defined]  # it is a generator
        assert not any(map(is_alive, fourth)), "none is kept in the middle of a task"
        last = workers_of(executor, tmp_path / "fifth")
        assert not last & fourth
    assert not any(map(is_alive, last))


def test_workers_that_nobody_keeps_end_with_the_run(tmp_path: Path) -> None:
    assert not any(map(is_alive, workers_of(Local(ignore, processes=2), tmp_path)))


# --- workers that are replaced or ended -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True])
def test_a_worker_is_replaced_after_so_many_tasks(kept: bool) -> None:
    executor = Local(ignore, processes=2, settings=LocalSettings(recycle=3))
    if kept:
        executor.__enter__()
    runs = [collect(executor, process, [f"{i} {j}" for j in range(8)]) for i in range(1 + kept)]
    executor.__exit__()
    done = Counter(result.value for found in runs for result in found.values())
    assert sum(done.values()) == 8 * (1 + kept)
    assert max(done.values()) == 3, "and not fewer, unless there are no more"
    assert None not in done


@pytest.mark.skipif(sys.platform != "linux", reason="bounds memory on Linux only")
@pytest.mark.parametrize("kind", ["itself", *slow("helper")])
def test_a_task_that_needs_too_much_memory_fails_and_no_other(kind: str, tmp_path: Path) -> None:
    large = f"{kind} {tmp_path}/large"
    names = [large, *(f"small {i}" for i in range(4))]
    found = collect(Local(ignore, processes=2, settings=LocalSettings(memory=Size(250_000_000))), hold, names)
    assert all(found[name].value for name in names[1:])
    failure = found[large].failure
    assert failure
    assert failure.message == (
        f"{large}: it needs more than the 250 MB of executor.memory; raise the limit, with fewer processes if need be, "
        "and run again"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["large"], "no temporary file"
    assert (tmp_path / "large").read_text() == "tried ", "once"


@pytest.mark.slow
def test_a_task_that_takes_too_long_fails_once_and_no_other(tmp_path: Path) -> None:
    late, quick = str(tmp_path / "late.bin"), str(tmp_path / "quick")
    with Local(ignore, processes=2, settings=LocalSettings(timeout=Duration(1))) as executor:
        found = collect(executor, write_and_wait, [late, quick])
        assert found[quick].value == "True"
        assert collect(executor, shout, "a")["a"].value == "A"
    failure = found[late].failure
    assert failure
    assert failure.message == (
        f"{late}: it took longer than the 1 s of executor.timeout, and its worker process was ended; raise the limit "
        "and run again"
    )
    assert not Path(late).exists()


@pytest.mark.slow
def test_tasks_that_begin_are_told(tmp_path: Path) -> None:
    begun: list[str] = []
    for executor in (InProcess(ignore, begun.append), Local(ignore, begun.append, processes=1)):
        results = executor.run(shout, [Task("b", "b", 1), Task("a", "a", 2)])
        next(results)
        assert begun.count("a") + begun.count("b") in (1, 3), "not before there is room"
        list(results)
        begun.append("end")
    dies = str(tmp_path / "dies")
    collect(Local(ignore, begun.append, processes=1), die_once, [dies])
    assert begun == ["b", "a", "end", "a", "b", "end", dies, dies], "in their order, and again when they are retried"


# --- tasks that keep several processes ----------------------------------------------------------------------------


class Kernel:
    """Stands for `Pool`: lets some calls end, and some of their processes die, and watches over what runs at a time."""

    def __init__(self, seed: int, limit: int, tasks: Sequence[Task[str]], deaths: float) -> None:
        self.chance = random.Random(seed)
        self.limit, self.deaths = limit, deaths
        self.waiting = {task.name: task for task in tasks}
        self.running: list[Any] = []
        self.begun: Counter[str] = Counter()

    def __exit__(self) -> None:
        assert not self.running

    def give(self, call: Any) -> None:
        del self.waiting[call.task.name]
        self.begun[call.task.name] += 1
        self.running.append(call)
        together = sum(each.task.processes for each in self.running)
        assert together <= self.limit or len(self.running) == 1, self.running

    def receive(self, seconds: float) -> None:
        """End some of them; all that could be begun has been."""
        together = sum(call.task.processes for call in self.running)
        assert self.running, "nothing runs, nothing will ever be ready"
        if self.waiting and together < self.limit:
            largest = max(task.processes for task in self.waiting.values())
            assert together + largest > self.limit, "cores are idle that a task waits for"
        for call in self.chance.sample(self.running, self.chance.randint(1, len(self.running))):
            if self.chance.random() < self.deaths:
                call.died(Died(-signal.SIGSEGV, True))
            else:
                call.answered(pickle.dumps(Result(call.task.name, value=call.task.payload.upper())))
            self.running = [each for each in self.running if not each.is_done]


@pytest.mark.parametrize("deaths", [0, 0.3])
def test_any_tasks_run_once_and_never_keep_more_processes_than_there_are(
    deaths: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(200):
        run_random_tasks(seed, deaths, monkeypatch)


def run_random_tasks(seed: int, deaths: float, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    limit = chance.randint(1, 9)
    tasks = [
        Task(f"t{i}", f"t{i}", chance.randint(0, 5), chance.choice([1, 1, 1, 2, 3, chance.randint(1, 12)]))
        for i in range(chance.randint(0, 25))
    ]
    kernel = Kernel(seed, limit, tasks, deaths)
    monkeypatch.setattr(local, "Pool", lambda *given, **options: kernel)
    results = list(Local(ignore, processes=limit).run(shout, tasks))
    assert Counter(result.name for result in results) == Counter(task.name for task in tasks)
    for result in results:
        if result.failure:
            assert result.failure.message == f"{result.name}: the worker process was ended by SIGSEGV, twice"
        else:
            assert result.value == result.name.upper()
    assert deaths or not any(result.failure for result in results)
    assert not kernel.waiting


@pytest.mark.slow
def test_real_tasks_run_beside_each_other_as_far_as_there_are_processes() -> None:
    kept = [3, 1, 5, 1, 2, 1, 2]
    tasks = [Task(str(i), "0.05", size=i, processes=n) for i, n in enumerate(kept)]
    moments: list[tuple[float, int]] = []
    for result in Local(ignore, processes=3).run(note_times, tasks):
        begin, end = map(float, str(result.value).split())
        moments += [(begin, kept[int(result.name)]), (end, -kept[int(result.name)])]
    assert len(moments) == 2 * len(kept)
    together = [0]
    for _, change in sorted(moments):
        together.append(together[-1] + change)
    assert set(together) <= {0, 1, 2, 3, 5}
    assert all({a, b} == {0, 5} for a, b in pairwise(together) if 5 in (a, b)), "too large a task runs alone"


@pytest.mark.slow
def test_a_task_that_keeps_several_processes_is_retried_when_its_worker_dies(tmp_path: Path) -> None:
    dies = str(tmp_path / "dies")
    (tmp_path / "begun.pid").touch()
    tasks = [Task(dies, dies, 9, 2), Task("a", str(tmp_path / "quick"), 1)]
    found = {result.name: result for result in Local(ignore, processes=2).run(with_helpers, tasks)}
    assert found[dies].failure is None
    assert found[dies].value == "30 True"
    assert (tmp_path / "dies.bin").read_bytes() == b"half"
    assert wait_until(lambda: not any(is_alive(int(path.stem)) for path in (tmp_path / "dies").iterdir()))
    assert len(list((tmp_path / "dies").iterdir())) >= 2, "helpers of two workers"


@pytest.mark.slow
def test_closing_early_also_ends_the_processes_of_tasks(tmp_path: Path) -> None:
    waits = str(tmp_path / "waits")
    tasks = [Task(waits, waits, 9, 2), Task("b", str(tmp_path / "quick"))]
    results = Local(ignore, processes=3).run(with_helpers, tasks)
    assert next(results).value == "True"
    pids = [int(path.stem) for path in (tmp_path / "waits").iterdir()]
    assert pids
    assert len(list(tmp_path.glob(".*.tmp"))) == 1
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert wait_until(lambda: not any(map(is_alive, pids)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun.pid", "waits"]


# --- parents that are killed ------------------------------------------------------------------------------------------

PARENT = """
import sys
from tests.execution.tasks import ignore, write_and_wait
from toolkit.execution.executors import Task
from toolkit.execution.executors.local import Local

if __name__ == "__main__":
    tasks = [Task(name, name) for name in sys.argv[1:]]
    list(Local(ignore, processes=2).run(write_and_wait, tasks))
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_workers_end_when_their_parent_is_killed(how: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = str(Path(__file__).parent.parent.parent)
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "a.bin"), str(tmp_path / "b.bin")],
        env={**os.environ, "PYTHONPATH": root},
        stderr=subprocess.DEVNULL,
    )
    try:
        assert wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
        pids = [int(path.read_text()) for path in tmp_path.glob("*.pid")]
        assert all(is_alive(pid) for pid in pids)
    finally:
        parent.send_signal(how)
        parent.wait()
    assert wait_until(lambda: not any(is_alive(pid) for pid in pids))
    assert not (tmp_path / "a.bin").exists(), "nothing half-written has the final name"


# Small tasks in groups: which are, and that each has its result whatever becomes of its group.


def tasks(*sizes: int | None, processes: int = 1) -> list[Task[int]]:
    return [Task(f"task {i}", i, size, processes, key=str(i)) for i, size in enumerate(sizes)]


def nothing(payload: int, report: Report) -> int:
    return payload


def together(inside: list[Task[int]], report: Report) -> list[Result[int]]:
    return [run_task(nothing, task, report) for task in inside]


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
        found = [run_task(one, task, report) for task in inside]
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
        found = grouped.run_sequentially(do, tasks(1, 1, 1), lambda documents, size: None, group)
        assert committed == [0, 2]
    assert [bool(each.failure) for each in found] == [False, True, False]
    assert RecordLog(f"{tmp_path}/record-log").keys("kind") == ["0", "2"]
