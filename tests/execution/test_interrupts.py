"""Signals: noted, looked at between blocks, and the end of what does not look."""

import signal
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.marks import slow
from tests.waiting import PATIENCE

BEGIN = """
import os, signal, sys, threading, time
from toolkit import interrupts
from toolkit.interrupts import Terminated, check, forget, interrupts_deferred, is_ending, note_signals, pause, raising

note_signals(Terminated)
RAISED = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}

def later(seconds=0.2):
    threading.Timer(seconds, os.kill, (os.getpid(), NUMBER)).start()

"""

CASES = {
    "it interrupts nothing, and a check raises, also after a plugin caught it": """
signal.raise_signal(NUMBER)
for _ in range(2):
    try:
        check()
    except RAISED[NUMBER] as error:
        assert type(error) is RAISED[NUMBER]
        signal.raise_signal(signal.SIGTERM)  # one that comes while it is tidied up
""",
    "it ends a pause": """
later()
try:
    pause(600)
except RAISED[NUMBER]:
    pass
""",
    "it is not raised in another thread, which sees that the process ends": """
seen = []
thread = threading.Thread(target=lambda: (pause(600), seen.append(is_ending())))
thread.start()
later()
thread.join()
assert seen == [True]
""",
    "it interrupts at once what waits for a person": """
later()
try:
    with raising():
        time.sleep(600)
except RAISED[NUMBER]:
    forget()
check()
""",
    "no more blocks are done by one process": """
from toolkit.execution.blocks import in_order

def make(done):
    def work(block):
        try:
            signal.raise_signal(NUMBER)
            check()
        except:
            done.append(block)
    return work

done = []
try:
    list(in_order(make, done, [1, 2, 3], 1))
except RAISED[NUMBER]:
    assert done == [1]
""",
}


def ran(code: str, number: str) -> "subprocess.CompletedProcess[str]":
    code = BEGIN.replace("NUMBER", f"signal.{number}") + code.replace("NUMBER", f"signal.{number}")
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("number", ["SIGTERM", *slow("SIGINT")])
@pytest.mark.parametrize("case", CASES)
def test_a_signal_is_noted(case: str, number: str) -> None:
    run = ran(CASES[case] + "\nprint('tidied')", number)
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "tidied\n")


WAITS = {
    "a lock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "a socket": "import socket; socket.create_server(('127.0.0.1', 0)).accept()",
}


@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGTERM", *slow("SIGINT")])
@pytest.mark.parametrize("wait", ["a lock", *slow("a socket")])
def test_what_waits_is_interrupted_after_a_while(wait: str, number: str) -> None:
    run = ran(f"later()\ntry:\n    {WAITS[wait]}\nexcept RAISED[NUMBER]:\n    print('tidied')", number)
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "tidied\n")


@pytest.mark.slow
def test_a_second_ctrl_c_does_not_wait() -> None:
    run = ran("interrupts.LATE = 600\nlater(); later(0.3); later(1.5)\ntime.sleep(600)", "SIGINT")
    assert (run.returncode, run.stderr) == (130, "interrupted; run the same command to resume\n")


FROM_PYTHON = """
signal.signal(signal.SIGINT, signal.default_int_handler)
done = []
later()
if {twice}: later(0.6)
try:
    with interrupts_deferred():
        time.sleep(1)
        done.append(1)
except KeyboardInterrupt:
    assert done == ([] if {twice} else [1])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    check()
    print("goes on")
"""


@pytest.mark.slow
@pytest.mark.parametrize("twice", [False, True])
def test_in_a_process_of_others_the_first_ctrl_c_lets_what_is_done_end_and_the_second_does_not(twice: bool) -> None:
    run = ran(FROM_PYTHON.format(twice=twice), "SIGINT")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "goes on\n")


IMPORTING = """
import signal, sys
sys.argv[0] = sys.orig_argv[-1]

class Sends:
    # sends the signal as soon as a module of ours is looked for
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.{number})

sys.meta_path.insert(0, Sends())
from toolkit.cli import entry
sys.argv[1:] = ["taggers", "--json"]
entry()
"""

MODULES = ("toolkit.config", "toolkit.cli", "toolkit.commands", "toolkit.commands.taggers")
"""Imported before a command has begun: the first of ours, the command line, the command."""


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(("number", "told"), [("SIGINT", "interrupted"), *slow(("SIGTERM", "terminated"))])
def test_a_signal_while_the_command_line_is_imported_ends_it_with_a_word(module: str, number: str, told: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTING.format(module=module, number=number), "bin/toolkit"],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        128 + getattr(signal, number), "", f"{told}; no work had started\n",
    )  # fmt: skip


@pytest.mark.parametrize("begun", [["-m", "toolkit"], ["-m", "toolkit.reference"], ["-c", "import toolkit"]])
def test_only_the_command_line_takes_signals(begun: list[str]) -> None:
    """A program that imports us has its own."""
    seen = "import sys; sys.orig_argv[1:] = {!r}; sys.argv[0] = {!r}; from toolkit import bootstrap; import signal; "
    seen += "print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    ran = subprocess.run(
        [sys.executable, "-c", seen.format(begun, begun[0])],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert ran.stdout == f"{begun != ['-m', 'toolkit']}\n"


def test_a_signal_at_the_end_changes_no_status() -> None:
    program = """
import signal, sys
from toolkit.interrupts import Terminated, keep_status, note_signals
note_signals(Terminated)
keep_status(1)
signal.raise_signal(signal.SIGTERM)
signal.raise_signal(signal.SIGINT)
sys.exit(2)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (1, "")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_an_error_that_native_code_makes_of_a_signal_is_the_interruption(number: signal.Signals, status: int) -> None:
    """What is given up because of it, or asks for it by itself, has an error of its own."""
    script = f"""
import signal, sys
from toolkit import cli, interrupts

def interrupted(options):
    interrupts.note_signals(interrupts.Terminated)
    signal.raise_signal({int(number)})
    raise RuntimeError("Query interrupted")

cli._run = interrupted
sys.exit(cli.main(["init"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (status, 1), done.stderr
    assert "run the same command to resume" in done.stderr
