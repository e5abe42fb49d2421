"""Processes that work for this one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.runs.processes import import_no_scripts

PROGRAM = """
import multiprocessing
from tests.runs.test_processes import say
from toolkit.runs.child import begin_masked

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
