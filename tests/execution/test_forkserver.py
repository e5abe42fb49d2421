"""The process that forks others."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import recipes
from tests.execution.functions import act
from tests.execution.tasks import is_alive
from tests.execution.test_blocks import ROOT, children, end_group, is_gone
from tests.waiting import PATIENCE, wait_until
from toolkit.command_options import Options
from toolkit.execution import forkserver
from toolkit.execution.blocks import in_order
from toolkit.execution.pool import Call, Died, Pool, Tell
from toolkit.session import Session
from toolkit.stages.dispatch import open_context

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only"),
]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture(name="home")
def _home(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The number of a fork server, which is gone after the test."""
    monkeypatch.setattr(forkserver, "PACKAGES", ())  # other tests have imported modules that begin threads
    before = children()
    with Session().bound(), forkserver.opened():
        assert wait_until(lambda: len(children() - before) == 1)  # a process has no command while it becomes another
        (pid,) = children() - before
        yield pid
    assert wait_until(lambda: children() <= before)


def end(how: str) -> None:
    if how == "exits":
        os._exit(3)
    signal.raise_signal(signal.SIGKILL)


def make(function: Callable[[Any], Any], tell: Tell) -> Callable[[Any], Any]:
    return function


def ask(pool: Pool, argument: object = None) -> Any:
    pool.give(call := Call(argument))
    while not call.is_done:
        pool.receive()
    return call.result()


def own(argument: object) -> tuple[int, int]:
    return os.getpid(), os.getppid()


LEFT: list[Pool] = []


def nested(argument: object) -> tuple[tuple[int, int], tuple[int, int]]:
    """What `own` gives here, and in a process that this one begins, and leaves behind."""
    LEFT.append(Pool(make, own, 1))
    return own(argument), ask(LEFT[0])


def test_processes_are_forked_and_what_they_begin_ends_with_them(home: int) -> None:
    with Pool(make, nested, 1, tidy=True) as pool:
        (pid, its_parent), (second, parent_of_second) = ask(pool)
        assert (its_parent, parent_of_second) == (home, pid)
        assert is_alive(second)
    assert wait_until(lambda: not is_alive(second))


@pytest.mark.parametrize(("how", "said"), [("exits", "exit status 3"), ("killed", "SIGKILL")])
def test_how_a_process_has_ended_is_told(how: str, said: str, home: int) -> None:
    with Pool(make, end, 1) as pool, pytest.raises(Died) as died:
        ask(pool, how)
    assert died.value.cause == said


def test_where_it_is_killed_its_processes_finish_and_others_are_new_interpreters(home: int) -> None:
    results = in_order(act, {}, iter(range(100)), 2)
    first = next(results)
    assert parent(first[1]) == home
    os.kill(home, signal.SIGKILL)
    assert [block for block, _ in (first, *results)] == list(range(100))
    assert wait_until(lambda: not is_alive(first[1]))
    with Pool(make, own, 1) as pool:
        assert ask(pool)[1] == os.getpid()


def test_one_that_has_threads_forks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forkserver, "PACKAGES", (*forkserver.PACKAGES, "tests"))
    monkeypatch.setitem(sys.modules, "tests.execution.threaded", ModuleType("threaded"))  # not imported here
    with forkserver.opened(), Pool(make, own, 1) as pool:
        assert ask(pool)[1] == os.getpid()


SCRIPT = """
import sys
from tests import recipes
from tests.execution.functions import act
from tests.execution.test_forkserver import ask, make, nested
from toolkit.execution import forkserver, processes
from toolkit.execution.blocks import in_order
from toolkit.execution.pool import Pool

processes.is_program = True
with forkserver.opened():
    pool = Pool(make, nested, 1, tidy=True)
    print(ask(pool)[1][0], flush=True)
    for result in in_order(act, {150: "waits"}, iter(range(200)), 2):
        print(result[1], flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_it_and_its_processes_end_when_the_calling_one_is_killed(how: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout
            nested, *pids = [int(line) for line in islice(process.stdout, 5)]
            assert all(parent(pid) in children(process.pid) for pid in (parent(nested), *pids)), "it is the server's"
            process.send_signal(how)
            assert process.wait(PATIENCE) != 0
            assert wait_until(lambda: is_gone(process.pid))
        finally:
            end_group(process.pid)


def test_blocks_of_a_session_share_one(home: int) -> None:
    before = children()
    with forkserver.opened():
        assert children() == before
    assert is_alive(home)
    with Pool(make, own, 1) as pool:
        assert ask(pool)[1] == home


WITHOUT_GARBAGE_COLLECTION = """
import gc, sys
gc.disable()
from toolkit.cli import main
sys.exit(main())
"""


LEFT_OPEN = """
from toolkit.execution import forkserver
left = forkserver.opened()
left.__enter__()
"""


def test_a_program_ends_that_leaves_a_block_open() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("recipe", ["oscar-2019", "goclassy"])
def test_a_run_ends_by_itself_though_nothing_is_collected(recipe: str, tmp_path: Path) -> None:
    """A process that only the collector ends, because who began it has forgotten it, is waited for at the end."""
    given = ["-c", recipes.path_of(recipe), *recipes.places(recipe, str(tmp_path)), "processes=2", "--quiet"]
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_GARBAGE_COLLECTION, "run", *map(str, given)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_configuration_that_is_only_looked_at_begins_no_process(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(f"{{dataset: {tmp_path}, processes: 2}}")
    before = children()
    context = open_context(Options(config=str(tmp_path / "c.yaml")))
    assert children() == before
    with context:
        assert wait_until(lambda: len(children() - before) == 1)  # as above: a spawned one has no command at first
    assert children() == before
