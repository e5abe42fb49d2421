"""Processes that work for this one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.conftest import write_rows
from toolkit.execution.processes import import_no_scripts

PROGRAM = """
import multiprocessing
from tests.execution.test_processes import say
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


@pytest.mark.slow
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


@pytest.mark.slow
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
