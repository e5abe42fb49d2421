"""Killing a run at any moment costs nothing but time."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, oscar_tags, strays, tree, write_rows
from tests.waiting import PATIENCE
from toolkit.mix import publish
from toolkit.storage import json_files, outputs, paths
from toolkit.storage.stores.local import writing

pytestmark = pytest.mark.slow

SIZE = 250
"""Documents of each of the `INPUTS`: enough that every stage takes a moment."""

INPUTS = 4

SOONER = 0.8
"""Times the time until the next kill, after a run that was done before: it went on where another had stopped, or the
machine has less to do than before."""


def prepare(root: Path, run: Run) -> Project:
    """Some inputs, and a pipeline over them with two workers and small parts."""
    text = "the quick brown fox jumps over a lazy dog while der schnelle Fuchs springt und le renard saute"
    words = text.split()
    chance = random.Random(5)
    for number in range(INPUTS):
        rows = [
            {"id": f"{number}-{i}", "text": "\n".join(" ".join(chance.choices(words, k=9)) for _ in range(i % 9))}
            for i in range(SIZE)
        ]
        write_rows(root / "in" / f"{number}.jsonl.gz", rows)
    config: dict[str, Any] = {
        "dataset": str(root / "data"),
        "processes": 2,
        "ingest": [{"format": "jsonl", "from": [f"{root}/in/*"], "source": "j", "shard_size": "40 kB"}],
        "tag": oscar_tags(min_prob=0.1),
        "mix": {
            "attributes": list(oscar_tags()),
            "rules": [
                {"drop": "language.label is None", "name": "unidentified"},
                {"drop": "line_shape.lines < 2", "name": "few"},
            ],
            "output": {"format": "oscar", "path": str(root / "out"), "part_size": "30 kB"},
        },
    }
    return Project(root, run, config)


def start(project: Project, *arguments: str) -> subprocess.Popen[bytes]:
    """``toolkit run``, or another command, in a process group of its own."""
    command = [sys.executable, "-m", "toolkit.cli", *(arguments or ("run",)), "-c", str(project.yaml)]
    with (project.root / "log").open("ab") as log:
        return subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)


def end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Sends a signal to a whole process group, and waits."""
    os.killpg(process.pid, number)
    process.wait(PATIENCE)


def kill_at_random(
    project: Project, arguments: tuple[str, ...], made: tuple[Path, ...], whole: dict[str, str], times: int, seed: int
) -> None:
    """Kill a command at random moments, so many times, and let it go on; each time it is done, what it made is whole.

    Args:
        project: the command is run in.
        arguments: of the command.
        made: folders below which is what it makes; they are deleted when it is done, so that it begins anew.
        whole: what is in the first of them after an undisturbed run.
        times: how often it is killed, at most.
        seed: of the moments.
    """
    log, chance = project.root / "log", random.Random(seed)
    begin = time.monotonic()
    assert start(project, *arguments).wait(PATIENCE) == 0, log.read_text()
    seconds = time.monotonic() - begin
    killed = finished = 0
    while killed < times and finished < 4 * times:
        begin, process = time.monotonic(), start(project, *arguments)
        try:
            assert process.wait(chance.uniform(0.1, 1) * seconds) == 0, log.read_text()
        except subprocess.TimeoutExpired:
            end(process, signal.SIGKILL)
            killed += 1
            continue
        finished, seconds = finished + 1, min(seconds, time.monotonic() - begin)  # it may have been a slow one
        assert tree(made[0]) == whole
        assert strays(project.data) == []
        for folder in made:
            shutil.rmtree(folder)
    assert start(project, *arguments).wait(PATIENCE) == 0, log.read_text()
    assert tree(made[0]) == whole
    assert strays(project.data) == []
    assert killed > times // 2


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], float]:
    """What an uninterrupted run writes, and its seconds."""
    root = tmp_path_factory.mktemp("whole")
    project = prepare(root, lambda *_: pytest.fail("not used"))
    begin = time.monotonic()
    process = start(project)
    assert process.wait(PATIENCE) == 0, (root / "log").read_text()
    seconds = time.monotonic() - begin
    found = tree(root / "data") | {f"out/{path}": digest for path, digest in tree(root / "out").items()}
    assert sum(path.startswith("out/") for path in found) > 10
    return found, seconds


def kill_and_rerun(
    root: Path,
    run: Run,
    expected: tuple[dict[str, str], float],
    times: int,
    seed: int,
    lay_out: Callable[[Path, Run], Project] = prepare,
) -> None:
    """Kill runs of what is laid out at random moments, so many times; at the end it is what was expected."""
    whole, seconds = expected
    project = lay_out(root, run)
    chance = random.Random(seed)
    killed = 0
    for _ in range(4 * times):
        if killed == times:
            break
        process = start(project)
        try:
            code: int | None = process.wait(chance.uniform(0.15, 0.95) * seconds)
        except subprocess.TimeoutExpired:
            end(process, signal.SIGKILL)
            code, killed = None, killed + 1
        if code is not None:  # it was done before: begin anew with the next
            assert code == 0
            assert_whole(project, whole)
            seconds *= SOONER
            for name in ("data", "out"):
                (root / name).rename(root / f"{name}-{time.monotonic_ns()}")
    process = start(project)
    assert process.wait(PATIENCE) == 0, (root / "log").read_text()[-5000:]
    assert_whole(project, whole)
    assert killed >= times // 2
    project.ok("validate")


def assert_whole(project: Project, whole: dict[str, str]) -> None:
    root = project.root
    assert tree(root / "data") | {f"out/{path}": digest for path, digest in tree(root / "out").items()} == whole
    assert strays(root / "data") == []
    assert strays(root / "out") == []


@pytest.mark.slow
def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(
    tmp_path: Path, run: Run, expected: tuple[dict[str, str], float]
) -> None:
    kill_and_rerun(tmp_path, run, expected, times=6, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.long) for seed in (3, 4))])
def test_a_run_killed_at_twenty_random_moments_ends_with_the_same_bytes(
    tmp_path: Path, run: Run, expected: tuple[dict[str, str], float], seed: int
) -> None:
    kill_and_rerun(tmp_path, run, expected, times=20, seed=seed)


CODES = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}


def wait_for(root: Path, process: subprocess.Popen[bytes], begun: str) -> None:
    while not list(root.glob(begun)):
        assert process.poll() is None, (root / "log").read_text()
        time.sleep(0.002)


def stop(root: Path, process: subprocess.Popen[bytes], number: signal.Signals, *, group: bool) -> int:
    """Tells a run to stop, and looks at what it leaves; its exit status."""
    (os.killpg if group else os.kill)(process.pid, number)
    process.wait(PATIENCE)
    assert_gone(process.pid)
    log = (root / "log").read_text()
    assert "Traceback" not in log
    assert not list(root.rglob("*.tmp"))
    assert not list(root.rglob("leases/*"))
    if process.returncode:  # else it was done just then
        code, said = CODES[number]
        assert process.returncode == code, log
        assert f"{said}; run the same command to resume" in log
    return process.returncode


@pytest.mark.parametrize(
    ("number", "group", "begun"),
    [
        pytest.param(signal.SIGINT, True, "data/attributes/lines-0/**/*.gz", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, True, "data/attributes/lines-0/**/*.gz", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, False, "out/.toolkit/leases/*.json", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_told_to_stop_does_so_quickly_and_leaves_nothing(
    tmp_path: Path,
    run: Run,
    expected: tuple[dict[str, str], float],
    number: signal.Signals,
    group: bool,
    begun: str,
) -> None:
    project = prepare(tmp_path, run)
    process = start(project)
    wait_for(tmp_path, process, begun)
    assert stop(tmp_path, process, number, group=group)
    assert start(project).wait(PATIENCE) == 0
    assert_whole(project, expected[0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_run_that_is_terminated_at_random_moments_leaves_nothing(
    tmp_path: Path, run: Run, expected: tuple[dict[str, str], float], seed: int
) -> None:
    chance = random.Random(seed)
    whole, seconds = expected
    stopped = 0
    for i in range(20):
        if stopped == 5:
            break
        project = prepare(tmp_path / str(i), run)
        process = start(project)
        wait_for(project.root, process, "data")  # before, it does not listen
        time.sleep(chance.uniform(0.0, 0.6) * seconds)
        if stop(project.root, process, signal.SIGTERM, group=chance.random() < 0.5):
            stopped += 1
        else:
            seconds *= SOONER
        assert start(project).wait(PATIENCE) == 0
        assert_whole(project, whole)
    assert stopped >= 2


@pytest.mark.slow
def test_workers_end_when_only_the_calling_process_is_killed(
    tmp_path: Path, run: Run, expected: tuple[dict[str, str], float]
) -> None:
    project = prepare(tmp_path, run)
    process = start(project)
    wait_for(tmp_path, process, "data/attributes/lines-0/**/*.gz")
    process.kill()
    process.wait()
    assert_gone(process.pid)
    assert start(project).wait(PATIENCE) == 0
    assert_whole(project, expected[0])


def assert_gone(group: int) -> None:
    """Waits a little for the last process of a group that was started here; kills what is there after that."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    pytest.fail("processes were still there")


# --- at every step of a publication -----------------------------------------------------------------------------------


class Killed(GeneratorExit):
    """Stands for a SIGKILL: nothing catches it, not even what catches native code that panics."""


class DiesAt:
    """Lets so many calls through, then dies before (or right after) the next.

    The thread of a lease writes whenever a run has taken a while: its calls are none of the steps.
    """

    def __init__(self, function: Any, calls: int, *, after: bool) -> None:
        self.function, self.calls, self.after = function, calls, after

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if threading.current_thread().name == "lease":
            return self.function(*arguments, **options)
        self.calls -= 1
        if self.calls < 0 and not self.after:
            raise Killed
        result = self.function(*arguments, **options)
        if self.calls < 0:
            raise Killed
        return result


@pytest.fixture
def published(pipeline: Project) -> tuple[Project, dict[str, str], dict[str, str]]:
    """A published mix with many parts, and the files of that output and of the one that other rules give."""
    pipeline.config["mix"]["output"]["part_size"] = 3000
    pipeline.config["mix"]["rules"].append({"drop": "language.label not in ['en', 'de']", "name": "other"})
    pipeline.ok("run")
    old = tree(pipeline.out)
    pipeline.config["mix"]["rules"][-1] = {"drop": "language.label not in ['en', 'ru']", "name": "other"}
    pipeline.config["mix"]["output"]["part_size"] = 6000
    pipeline.ok("mix")
    new = tree(pipeline.out)
    assert old.keys() - new.keys()
    assert new.keys() - old.keys()
    assert any(old[name] != new[name] for name in old.keys() & new.keys())
    return pipeline, old, new


@pytest.mark.parametrize(
    ("module", "name", "after"),
    [
        (os, "replace", False),
        (json_files, "save", False),
        (paths, "remove", True),
        (publish, "clear_work", False),
        *slow(
            (paths, "remove", False),
            (writing, "move_file", True),
            (publish, "write_file", True),
            (publish, "clear_work", True),
        ),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_publication_killed_at_any_step_is_finished_by_the_next_run(
    published: tuple[Project, dict[str, str], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    after: bool,
) -> None:
    project, old, new = published
    new_config = project.config["mix"]
    old_rules = [*new_config["rules"][:-1], {"drop": "language.label not in ['en', 'de']", "name": "other"}]
    old_config = new_config | {"rules": old_rules, "output": new_config["output"] | {"part_size": 3000}}
    outputs = [(old_config, old), (new_config, new)]
    calls = 0
    while calls < 60:
        config, expected = outputs[calls % 2]
        project.config["mix"] = config
        died = False
        with monkeypatch.context() as patch:
            patch.setattr(module, name, DiesAt(getattr(module, name), calls, after=after))
            try:
                project("mix")
            except Killed:
                died = True
        if not died:
            break
        project.ok("mix")
        assert tree(project.out) == expected, f"killed at call {calls} of {name}"
        assert strays(project.out) == []
        calls += 1
    assert calls >= 1
    project.ok("validate")


def test_a_publication_that_was_killed_is_finished_before_another_begins(
    published: tuple[Project, dict[str, str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, _, _ = published
    project.config["mix"]["output"]["part_size"] = 3000
    with monkeypatch.context() as patch:
        patch.setattr(writing, "move_file", DiesAt(writing.move_file, 2, after=True))
        with pytest.raises(Killed):
            project("mix")
    findings = project("validate").fails(1)
    assert "unfinished" in findings.out or "finished publication" in findings.out
    project.config["mix"]["rules"].append({"keep": "language.label == 'en'"})
    project.ok("mix")
    assert {Path(path).parts[0] for path in tree(project.out)} == {"en"}
    assert strays(project.out) == []
    project.ok("validate")


def test_a_full_disk_fails_the_shard_and_leaves_nothing(small: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(self: outputs.RowOutput) -> None:
        raise OSError(28, "No space left on device")

    small.config["tag"]["more-0"] = {"tagger": "noise", "as": "more"}
    with monkeypatch.context() as patch:
        patch.setattr(outputs.RowOutput, "_flush", no_space)
        ran = small("tag")
    assert ran.code == 1
    assert "No space left" in ran.err
    assert "3 failed" in ran.err
    assert not list(small.root.rglob("*.tmp"))
    assert tree(small.attributes / "more-0") == {}
    small.ok("tag")
    small.ok("mix")


def test_a_full_disk_outside_a_shard_is_a_message_and_no_traceback(
    small: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    small.config["tag"]["more-0"] = {"tagger": "noise", "as": "more"}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        ran = small("tag")
    assert ran.code == 1
    assert "No space left" in ran.err
    small.ok("tag")
