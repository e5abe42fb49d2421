"""Tasks notice that what wants their results has ended: real processes, one of them killed."""

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from toolkit.execution.node import Address, Lifeline, held

HOST = "127.0.0.1"

DRIVER = """
import resource, sys
from toolkit.execution.node import Lifeline
if sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
with Lifeline("127.0.0.1") as lifeline:
    print(lifeline.address[1], flush=True)
    sys.stdin.readline()
    lifeline.cut()
    sys.stdin.readline()
"""

TASK = """
import sys
from toolkit.interrupts import pause
from toolkit.execution.node import held
try:
    with held(("127.0.0.1", int(sys.argv[1]))):
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
    with Lifeline(HOST) as lifeline:
        with held(lifeline.address):
            pass
        lifeline.cut()
    with Lifeline(HOST) as lifeline, held(lifeline.address):
        pass
    for thread in threading.enumerate():  # an interruption by one of them would come before it ends
        if thread.name == "lifeline":
            thread.join()
            assert not thread.is_alive()


def test_where_the_driver_cannot_be_reached_tasks_go_on() -> None:
    with socket.create_server((HOST, 0)) as server:
        address: Address = (HOST, server.getsockname()[1])
    with held(address):
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
