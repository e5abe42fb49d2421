"""A command that has succeeded ends at once: what was to be done at the end is done, what it wrote is there."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys, threading
from toolkit import cli

atexit.register(lambda: print("at the end", flush=True))
if "thread" in sys.argv:
    threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
cli.main = lambda prog: print("written") or int(sys.argv[1])
cli.entry()
"""


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["0"], ["written", "at the end"]),
        (["1"], ["written", "at the end"]),
        (["0", "thread"], ["written", "thread", "at the end"]),
    ],
)
def test_what_ends_with_a_command(arguments: list[str], lines: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (int(arguments[0]), lines, "")
