"""The bound on disk: what is counted, who waits, what is corrected, and what cannot fit."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.execution.tasks import ignore, shout
from toolkit.config.settings import ConfigStruct, parse
from toolkit.errors import ConfigError
from toolkit.execution.executors import Executor, Report, Task, ignore_start
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.executors.local import Local, LocalSettings
from toolkit.execution.executors.ray import Ray, RaySettings
from toolkit.execution.workers import ExecutorChoice, Workers, read
from toolkit.stages import disk_quota
from toolkit.stages.disk_quota import NO_DISK, DiskEstimate, DiskQuota, QuotaExceeded, bytes_in
from toolkit.storage_options import Size

MB = 1 << 20


class Folders:
    """Folders whose bytes the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = 0
        monkeypatch.setattr(disk_quota, "bytes_in", lambda folders: self.held)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Folders:
    return Folders(monkeypatch)


def quota_of(limit: int, needs: Mapping[str, DiskEstimate | None], *, shares: int = 1) -> DiskQuota:
    quota = DiskQuota(limit, [], shares)
    quota.begin(lambda task: needs[task.name])
    return quota


def task(name: str) -> Task[str]:
    return Task(name, name)


def test_what_folders_hold_is_counted_as_du_counts_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name, size in (("one", 1), ("a/block", 4096), ("a/b/more", 4097), ("a/empty", 0)):
        (tmp_path / name).write_bytes(b"x" * size)
    os.link(tmp_path / "one", tmp_path / "a" / "same")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "one")
    held = bytes_in([str(tmp_path / "a"), str(tmp_path), str(tmp_path / "a" / "b"), str(tmp_path / "none")])
    assert held == 3 * 4096 + (1 + 1 + 2) * 4096 + 4096
    said = subprocess.run(["du", "-sk", tmp_path], capture_output=True, check=True).stdout
    assert int(said.split()[0]) * 1024 <= held


def test_a_task_waits_until_another_has_ended(disk: Folders) -> None:
    quota = quota_of(100 * MB, {"a": DiskEstimate(60 * MB, 10 * MB), "b": DiskEstimate(60 * MB, 10 * MB)})
    assert quota.can_start(task("a"), running=False)
    disk.held = 30 * MB
    assert not quota.can_start(task("b"), running=True)
    disk.held = 10 * MB  # its documents have gone
    quota.end("a")
    assert quota.can_start(task("b"), running=False)


def test_what_will_be_made_at_the_end_is_kept_free(disk: Folders) -> None:
    quota = quota_of(100 * MB, {name: DiskEstimate(20 * MB, 20 * MB, 20 * MB) for name in "abc"})
    for name in "ab":
        assert quota.can_start(task(name), running=False)
        disk.held += 20 * MB
        quota.end(name)
    with pytest.raises(QuotaExceeded, match=r"max_disk: expected room for about 8\d.\d MB .*, got 62.9 MB of 104.9 MB"):
        quota.can_start(task("c"), running=False)


def test_expectations_are_corrected_by_what_was_measured(disk: Folders) -> None:
    quota = quota_of(100 * MB, {name: DiskEstimate(10 * MB, 10 * MB) for name in "abc"})
    assert quota.can_start(task("a"), running=False)
    disk.held = 40 * MB  # four times as much
    quota.end("a")
    assert quota.can_start(task("b"), running=False)
    disk.held = 80 * MB
    quota.end("b")
    with pytest.raises(QuotaExceeded, match=r"expected room for about 46\.1 MB to begin c, got 21\.0 MB"):
        quota.can_start(task("c"), running=False)


def test_what_running_tasks_have_written_is_no_reason_for_a_correction(disk: Folders) -> None:
    quota = quota_of(1000 * MB, {name: DiskEstimate(100 * MB, 10 * MB) for name in "abc"})
    assert quota.can_start(task("a"), running=False)
    assert quota.can_start(task("b"), running=True)
    disk.held = 10 * MB + 100 * MB
    quota.end("a")
    assert quota.can_start(task("c"), running=True)
    assert quota.can_start(task("b"), running=True), "a task that is begun anew takes the place of its first attempt"


def test_a_task_of_which_nobody_knows_what_it_needs_is_done_alone(disk: Folders) -> None:
    quota = quota_of(100 * MB, {"a": DiskEstimate(MB, MB), "b": None, "c": DiskEstimate(MB, MB)})
    assert quota.can_start(task("a"), running=False)
    assert not quota.can_start(task("b"), running=True)
    quota.end("a")
    assert quota.can_start(task("b"), running=False)
    assert not quota.can_start(task("c"), running=True)
    quota.end("b")
    assert quota.can_start(task("c"), running=False)


def test_it_is_taken_to_need_what_such_tasks_have_kept_before(disk: Folders) -> None:
    quota = quota_of(100 * MB, dict.fromkeys("abc"))
    for name, kept in (("a", 30 * MB), ("b", 40 * MB)):
        assert quota.can_start(task(name), running=False)
        assert not quota.can_start(task("c"), running=True)
        disk.held += kept
        quota.end(name)
    with pytest.raises(QuotaExceeded, match=r"expected room for about 46\.1 MB to begin c, got 31\.5 MB"):
        quota.can_start(task("c"), running=False)


def test_what_has_nothing_to_do_begins_however_full_it_is(disk: Folders) -> None:
    quota = quota_of(MB, {"a": NO_DISK})
    disk.held = 2 * MB
    assert quota.can_start(task("a"), running=False)
    quota.check([NO_DISK, NO_DISK])
    with pytest.raises(QuotaExceeded):
        quota.check([NO_DISK, DiskEstimate(1, 1)])


def test_each_share_leaves_room_for_the_others(disk: Folders) -> None:
    needs = dict.fromkeys("ab", DiskEstimate(20 * MB, 20 * MB))
    alone, one_of_four = quota_of(100 * MB, needs), quota_of(100 * MB, needs, shares=4)
    for each in (alone, one_of_four):
        assert each.can_start(task("a"), running=False)
    assert alone.can_start(task("b"), running=True)
    assert not one_of_four.can_start(task("b"), running=True)


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
        patch.setattr(disk_quota, "bytes_in", lambda folders: round(sum(held.values())))
        expected = {str(i): DiskEstimate(peak * MB, 0 if goes else peak * MB) for i, (peak, goes) in enumerate(works)}
        quota = quota_of(limit * MB, dict(expected))
        waiting, running = list(expected), list[str]()
        try:
            while waiting or running:
                while waiting and len(running) < slots and quota.can_start(task(waiting[0]), running=bool(running)):
                    running.append(waiting.pop(0))
                for name in running:
                    held[name] = min(held.get(name, 0) + 20 * MB, ratio * expected[name].peak)
                    assert sum(held.values()) <= limit * MB
                done = running.pop(order.randrange(len(running)))
                held[done] = 0 if works[int(done)][1] else ratio * expected[done].peak
                assert sum(held.values()) <= limit * MB
                quota.end(done)
        except QuotaExceeded:
            assert not running


@pytest.mark.parametrize(
    "made",
    [lambda begun: InProcess(ignore, begun), lambda begun: Local(ignore, begun, processes=3)],
    ids=["in", "local"],
)
def test_executors_let_tasks_wait_that_are_not_admitted(made: Callable[[Callable[[str], None]], Executor]) -> None:
    seen: list[str] = []
    executor = made(seen.append)
    executor.can_start = lambda task, running: not running
    for result in executor.run(shout, [Task(name, name) for name in "abc"]):
        seen.append(f"{result.name} ended")
    assert seen == ["a", "a ended", "b", "b ended", "c", "c ended"]

    def refuse(task: Task[str], running: bool) -> bool:
        raise QuotaExceeded("full")

    executor.can_start = refuse
    with pytest.raises(QuotaExceeded, match="full"):
        list(executor.run(shout, [task("a")]))


# The section ``executor:``.


def settings(text: str) -> ExecutorChoice:
    source = parse(f"processes: 2\nexecutor:\n{text}" if text else "processes: 2", "c.yaml")
    return read(source.value.get("executor", {}), source, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ExecutorChoice(Local, LocalSettings())),
        ("  recycle: 3", ExecutorChoice(Local, LocalSettings(recycle=3))),
        ("  {type: local, memory: 4 GB}", ExecutorChoice(Local, LocalSettings(memory=Size(4_000_000_000)))),
        ("  type: in_process", ExecutorChoice(InProcess, ConfigStruct())),
        (
            "  type: ray",
            ExecutorChoice(Ray, RaySettings(address="auto", cpus=1, memory=None, retries=3, in_flight=None)),
        ),
        (
            "  {type: ray, address: 'head:6379', cpus: 2, memory: 1 GiB, retries: 0, in_flight: 9, recycle: 5}",
            ExecutorChoice(
                Ray, RaySettings(address="head:6379", cpus=2, memory=Size(1 << 30), retries=0, in_flight=9, recycle=5)
            ),
        ),
    ],
)
def test_what_is_left_out_has_a_default(text: str, expected: ExecutorChoice) -> None:
    assert settings(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  type: rai", "c.yaml:3: executor.type: no executor is called 'rai'; did you mean 'ray'?"),
        ("  type: slurm", "c.yaml:3: executor.type: no executor is called 'slurm'; there are: in_process, local, ray"),
        ("  type: 3", "c.yaml:3: executor.type: expected one of in_process, local, ray, got 3"),
        ("  type: [ray]", "c.yaml:3: executor.type: expected one of in_process, local, ray, got ['ray']"),
        (
            "  type: local\n  recyle: 3",
            "c.yaml:4: executor: unknown option 'recyle' of executor local; did you mean 'recycle'?",
        ),
        ("  recycle: 0", "c.yaml:3: executor.recycle: expected a whole number of at least 1, got 0"),
        ("  memory: 4 XB", "c.yaml:3: executor.memory: expected a size such as 1000000, 500 MB or 64 MiB, got '4 XB'"),
        (
            "  {type: in_process, memory: 4 GB}",
            "c.yaml:3: executor: unknown option 'memory' of executor in_process; there are none",
        ),
        ("  type: ray\n  retries: -1", "c.yaml:4: executor.retries: expected a whole number of at least 0, got -1"),
        ("  type: ray\n  cpus: many", "c.yaml:4: executor.cpus: expected a whole number, got 'many'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(text)
    assert str(raised.value) == message


OWN = """
from toolkit.config.settings import ConfigStruct
from toolkit.execution.executors import Executor, run_task


class TwiceSettings(ConfigStruct):
    times: int = 2


class Twice(Executor):
    Settings = TwiceSettings

    def run(self, function, tasks, *, at_once=None):
        for task in tasks:
            self.begun(task.name)
            yield [run_task(function, task, self.report) for _ in range(self.settings.times)][-1]
"""


def test_an_executor_of_ones_own_is_a_class_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    chosen = settings(f"  type: {file}:Twice\n  times: 3")
    calls: list[str] = []

    def function(payload: str, report: Report) -> str:
        calls.append(payload)
        return payload.upper()

    workers = Workers(chosen, 4, lambda documents, size: None, ignore_start)
    assert [result.value for result in workers.executor(2).run(function, [Task(x, x) for x in "ab"])] == ["A", "B"]
    assert calls == ["a"] * 3 + ["b"] * 3
    with pytest.raises(ConfigError, match=rf"c.yaml:4: executor: unknown option 'tims' of executor {file}:Twice"):
        settings(f"  type: {file}:Twice\n  tims: 3")
    file.write_text("class Twice: pass")
    with pytest.raises(
        ConfigError, match=r"c.yaml:3: .* expected a class that extends toolkit.execution.executors.Executor"
    ):
        settings(f"  type: {file}:Twice")
