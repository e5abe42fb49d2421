"""Killing a run at any moment costs nothing but time."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests import corpora
from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, strays, tree
from tests.waiting import PATIENCE, group_ended, wait_until
from toolkit.mix import publication
from toolkit.storage import json_files, paths
from toolkit.storage.stores import local

pytestmark = pytest.mark.slow


def start(project: Project, *arguments: str) -> subprocess.Popen[bytes]:
    """``toolkit run``, or another command, in a process group of its own."""
    command = [sys.executable, "-m", "toolkit.cli", *(arguments or ("run",)), "-c", str(project.yaml)]
    with (project.root / "log").open("ab") as log:
        return subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)


def end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Sends a signal to a whole process group, and waits."""
    os.killpg(process.pid, number)
    process.wait(PATIENCE)


def made(project: Project) -> dict[str, str]:
    assert strays(project.data) == strays(project.out) == []
    return tree(project.data) | {f"out/{path}": digest for path, digest in tree(project.out).items()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What an uninterrupted run writes."""
    project = corpora.oscar(tmp_path_factory.mktemp("whole"), lambda *_: pytest.fail("not used"))
    assert start(project).wait(PATIENCE) == 0, (project.root / "log").read_text()
    return made(project)


CODES = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}


@pytest.mark.parametrize(
    ("number", "group", "begun"),
    [
        (signal.SIGINT, True, "data/attributes/lines-0/**/*.gz"),
        (signal.SIGTERM, True, "data/attributes/lines-0/**/*.gz"),
        (signal.SIGTERM, False, "out/.toolkit/leases/*.json"),
    ],
)
def test_a_run_that_is_told_to_stop_says_so_and_leaves_no_process_and_no_lease(
    tmp_path: Path, run: Run, expected: dict[str, str], number: signal.Signals, group: bool, begun: str
) -> None:
    """At a moment when its workers have work; `tests.kills` has all moments and all commands."""
    project, log = corpora.oscar(tmp_path, run), tmp_path / "log"
    process = start(project)
    assert wait_until(lambda: list(tmp_path.glob(begun)) or process.poll() is not None)
    (os.killpg if group else os.kill)(process.pid, number)
    code, said = CODES[number]
    assert process.wait(PATIENCE) == code, log.read_text()
    assert group_ended(process.pid), "processes were still there"
    assert f"{said}; run the same command to resume" in log.read_text()
    assert "Traceback" not in log.read_text()
    assert not list(tmp_path.rglob("*.tmp"))
    assert not list(tmp_path.rglob("leases/*"))
    assert start(project).wait(PATIENCE) == 0
    assert made(project) == expected


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
        (publication, "clear_work", False),
        *slow(
            (paths, "remove", False),
            (local, "move_file", True),
            (publication, "write_file", True),
            (publication, "clear_work", True),
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
        patch.setattr(local, "move_file", DiesAt(local.move_file, 2, after=True))
        with pytest.raises(Killed):
            project("mix")
    findings = project("validate").fails(1)
    assert "unfinished" in findings.out or "finished publication" in findings.out
    project.config["mix"]["rules"].append({"keep": "language.label == 'en'"})
    project.ok("mix")
    assert {Path(path).parts[0] for path in tree(project.out)} == {"en"}
    assert strays(project.out) == []
    project.ok("validate")
