"""A function in a process of its own: what it does to that process costs one call."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pipeline.conftest import write_rows
from toolkit.errors import DataError, ToolkitError
from toolkit.execution.node import Address, DriverServer, watched_by_driver
from toolkit.execution.pool import Isolated, Lost
from toolkit.execution.processes import import_no_scripts

pytestmark = pytest.mark.slow

Function = Callable[[tuple[str, str]], str]


def act(order: tuple[str, str]) -> str:
    """What the tests ask of a child: by its first word."""
    action, value = order
    if action == "loop":
        while True:
            pass
    if action == "sleep":
        time.sleep(float(value))
    if action == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if action == "die once" and not Path(value).exists():
        Path(value).touch()
        os._exit(3)
    if action == "raise":
        raise BaseException(value)
    if action == "data":
        raise DataError(value)
    return str(os.getpid()) if action == "pid" else value * 2


def make() -> Function:
    return act


def make_nothing() -> Function:
    raise BaseException("no model")


def test_a_call_gives_the_functions_result() -> None:
    with Isolated(make, 5) as call:
        assert call(("echo", "ü" * 500_000)) == "ü" * 1_000_000
        assert call(("pid", "")) == call(("pid", "")) != str(os.getpid())


def test_what_takes_too_long_or_kills_the_process_costs_one_call() -> None:
    with Isolated(make, 0.3) as call:
        for action, reason in (("loop", "timeout"), ("die", "crash"), ("raise", "crash")):
            with pytest.raises(Lost) as lost:
                call((action, "why"))
            assert lost.value.reason == reason
            assert call(("echo", "x")) == "xx"


def test_only_processor_time_counts() -> None:
    with Isolated(make, 0.1) as call:
        assert call(("sleep", "0.5")) == "0.50.5"


def test_a_process_that_was_ended_from_outside_is_tried_again(tmp_path: Path) -> None:
    with Isolated(make, 5) as call:
        assert call(("die once", str(tmp_path / "x"))) == str(tmp_path / "x") * 2


def test_an_error_for_the_user_is_raised_here() -> None:
    with Isolated(make, 5) as call, pytest.raises(DataError, match="bad input"):
        call(("data", "bad input"))


def test_a_function_that_cannot_be_made_is_an_error_and_not_a_lost_call() -> None:
    with Isolated(make_nothing, 5) as call, pytest.raises(ToolkitError, match="no model"):
        call(("echo", "x"))


def test_the_process_ends_with_the_block() -> None:
    with Isolated(make, 5) as call:
        pid = int(call(("pid", "")))
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# Processes that work for this one.

PROGRAM = """
import multiprocessing
from tests.execution.test_isolated import say
from toolkit.execution.forkserver import begin_masked

if __name__ == "__main__":
    for _ in range(2):
        process = multiprocessing.get_context("spawn").Process(target=say)
        begin_masked(process)
        process.join()
        say()
"""


def say() -> None:
    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)


def test_no_process_gets_an_interrupt_meant_for_the_calling_one_nor_does_the_first() -> None:
    """The first start of a process starts another before, which unblocks the signal in the calling process."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"] * 2


@pytest.mark.parametrize("gone", [False, True])
def test_modules_are_not_looked_for_among_scripts_wherever_a_command_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """Relative paths, as an editable install has one, mean nothing where the working directory is gone."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    if gone:
        here.rmdir()
    scripts = os.path.dirname(sys.executable)
    monkeypatch.setattr(sys, "path", [scripts, "", "relative", f"{scripts}/.", "/elsewhere"])
    import_no_scripts()
    assert sys.path == ["", "relative", "/elsewhere"]


METHODS = """
import multiprocessing
import sys

import toolkit

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    toolkit.tag({"dataset": sys.argv[2], "processes": 2, "tag": {"length-0": {"tagger": "length"}}})
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_whatever_way_a_program_starts_processes_ours_work(method: str, tmp_path: Path) -> None:
    """A program may have chosen one, and the default is another one from version to version of Python."""
    for name in "ab":
        write_rows(tmp_path / "documents" / f"{name}.jsonl.gz", [{"id": name, "text": "a", "source": "s"}])
    program = tmp_path / "program.py"
    program.write_text(METHODS)
    ran = subprocess.run([sys.executable, program, method, tmp_path], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert len(list((tmp_path / "attributes" / "length-0").glob("*.gz"))) == 2


# Tasks notice that what wants their results has ended: real processes, one of them killed.

HOST = "127.0.0.1"

DRIVER = """
import resource, sys
from toolkit.execution.node import DriverServer
if sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
with DriverServer("127.0.0.1") as lifeline:
    print(lifeline.address[1], flush=True)
    sys.stdin.readline()
    lifeline.cut()
    sys.stdin.readline()
"""

TASK = """
import sys
from toolkit.interrupts import pause
from toolkit.execution.node import watched_by_driver
try:
    with watched_by_driver(("127.0.0.1", int(sys.argv[1]))):
        print("begun", flush=True)
        pause(600)
except KeyboardInterrupt:
    print("interrupted")
"""


@contextlib.contextmanager
def process(code: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as found:
        try:
            yield found
        finally:
            found.kill()


def line(of: "subprocess.Popen[str]") -> str:
    assert of.stdout
    return of.stdout.readline().strip()


@pytest.mark.parametrize("end", ["killed", pytest.param("cut", marks=pytest.mark.slow)])
def test_the_end_of_the_driver_interrupts_what_runs(end: str) -> None:
    with process(DRIVER) as driver:
        port = line(driver)
        with process(TASK, port) as one, process(TASK, port) as other:
            assert (line(one), line(other)) == ("begun", "begun")
            if end == "killed":
                driver.kill()
            else:
                assert driver.stdin
                driver.stdin.write("\n")
                driver.stdin.flush()
            assert (line(one), line(other)) == ("interrupted", "interrupted")
            if end == "cut":
                with process(TASK, port) as late:
                    assert late.stdout
                    assert "interrupted" in late.stdout.read(), "a task that begins when others have stopped"


def test_what_has_ended_is_not_interrupted() -> None:
    with DriverServer(HOST) as lifeline:
        with watched_by_driver(lifeline.address):
            pass
        lifeline.cut()
    with DriverServer(HOST) as lifeline, watched_by_driver(lifeline.address):
        pass
    for thread in threading.enumerate():  # an interruption by one of them would come before it ends
        if thread.name == "lifeline":
            thread.join()
            assert not thread.is_alive()


def test_where_the_driver_cannot_be_reached_tasks_go_on() -> None:
    with socket.create_server((HOST, 0)) as server:
        address: Address = (HOST, server.getsockname()[1])
    with watched_by_driver(address):
        done = True
    assert done


def test_with_too_few_open_files_tasks_wait_in_the_backlog_and_are_still_interrupted() -> None:
    with process(DRIVER, 16) as driver, contextlib.ExitStack() as ends:
        port = int(line(driver))
        lines = [ends.enter_context(socket.create_connection((HOST, port), 120)) for _ in range(40)]
        lines[0].close()
        assert driver.stdin
        driver.stdin.write("\n")
        driver.stdin.flush()
        assert [one.recv(1) for one in lines[1:]] == [b""] * 39
        assert driver.poll() is None
