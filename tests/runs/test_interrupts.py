"""SIGTERM, once; neither it nor SIGINT is lost."""

import signal
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.marks import slow
from tests.waiting import PATIENCE

BEGIN = """
import os, signal, time, weakref
from toolkit.interrupts import Terminated, note_sigint, raise_on_sigterm

raise_on_sigterm(Terminated)

class Ends:
    pass

def dropped(number=signal.SIGTERM):
    # Python drops the exception of what is raised in `gone`
    def gone(reference):
        signal.raise_signal(number)
        time.sleep(0)

    one = Ends()
    reference = weakref.ref(one, gone)
    del one

"""

CASES = {
    "a second one does not interrupt what the first one has begun": """
try:
    signal.raise_signal(signal.SIGTERM)
except Terminated:
    signal.raise_signal(signal.SIGTERM)
    print("tidied")
""",
    "one that comes while the first one is dropped is no error": """
from toolkit import interrupts
begin = interrupts._postpone

def interrupted(*number):
    signal.raise_signal(signal.SIGTERM)
    begin(*number)

interrupts._postpone = interrupted
try:
    dropped()
    time.sleep(600)
except Terminated:
    print("tidied")
""",
    "a second one at any moment of the handler does not stop it": """
import sys

def heard(moment):
    def trace(frame, event, argument):
        nonlocal moment
        if frame.f_code.co_name in ("heard", "trace", "<module>", "raise_on_sigterm"):
            return None
        frame.f_trace_opcodes = True
        moment -= event == "opcode"
        if moment == 0:
            signal.raise_signal(signal.SIGTERM)
        return trace

    raise_on_sigterm(Terminated)
    try:
        sys.settrace(trace)
        signal.raise_signal(signal.SIGTERM)
    except Terminated:
        sys.settrace(None)
        return moment > 0  # there was none such
    raise AssertionError

moment = 1
while not heard(moment):
    moment += 1
assert moment > 20
print("tidied")
""",
    "one that comes where a lock is held waits until it is open": """
import sys, threading
from toolkit import interrupts

interrupts.SOON = 0.001
TRACE = '''
def trace(frame, event, argument):
    global moment
    if frame.f_globals["__name__"] != "threading":
        return None
    frame.f_trace_opcodes = True
    moment -= event == "opcode"
    if moment == 0:
        signal.raise_signal(signal.SIGTERM)
    return trace
'''

def is_open(at):
    condition = threading.Condition(threading.Lock())
    interrupts._last.clear()  # what interrupts stands in the same place each time
    there = {"__name__": "threading", "signal": signal, "moment": at}  # it stands for the frame that it interrupts
    exec(TRACE, there)
    raise_on_sigterm(Terminated)
    try:
        sys.settrace(there["trace"])
        with condition:
            condition.notify()
        sys.settrace(None)
        if there["moment"] > 0:
            return False
        time.sleep(600)
    except Terminated:
        sys.settrace(None)
        assert condition.acquire(blocking=False), at
    return True

at = 1
while is_open(at):
    at += 1
assert at > 20
print("tidied")
""",
    "one that comes to what waits for a lock ends the waiting": """
import threading
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
try:
    condition = threading.Condition()
    with condition:
        condition.wait()
except Terminated:
    print("tidied")
""",
    "one that a plugin catches is heard before more is done": """
from toolkit.runs.blocks import in_order

def make(done):
    def work(block):
        try:
            signal.raise_signal(signal.SIGTERM)
        except:
            done.append(block)
    return work

done = []
try:
    list(in_order(make, done, [1, 2, 3], 1))
except Terminated:
    signal.raise_signal(signal.SIGTERM)
    assert done == [1]
    print("tidied")
""",
}

EACH = {
    "one whose exception is dropped comes again": """
try:
    dropped(NUMBER)
    print("goes on")
    time.sleep(600)
except KeyboardInterrupt:
    print("tidied")
""",
    "one whose exception is dropped comes once": """
try:
    dropped(NUMBER)
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(1)
    print("tidied")
""",
    "one that does not wake what waits is sent again": """
import threading
from toolkit import interrupts
send, lost = signal.pthread_kill, [1]
signal.pthread_kill = lambda *number: lost.pop() if lost else send(*number)
threading.Thread(target=interrupts._send, args=(NUMBER,), daemon=True).start()
try:
    time.sleep(600)
except KeyboardInterrupt:
    print("tidied")
""",
    "one that comes to a finalizer lets it end": """
def tidy():
    signal.raise_signal(NUMBER)
    time.sleep(0)
    print("whole")

class Tidies:
    def __del__(self):
        tidy()

try:
    Tidies()
    time.sleep(600)
except KeyboardInterrupt:
    print("tidied")
""",
    "one that comes to a finalizer that waits for long is heard in the end": """
class Waits:
    def __del__(self):
        signal.raise_signal(NUMBER)
        time.sleep(600)

try:
    Waits()
    time.sleep(600)
except KeyboardInterrupt:
    print("tidied")
""",
}


@pytest.mark.parametrize("case", CASES)
def test_a_signal_is_heard_once(case: str) -> None:
    run = subprocess.run([sys.executable, "-c", BEGIN + CASES[case]], capture_output=True, text=True, timeout=PATIENCE)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-1] == "tidied"


@pytest.mark.parametrize("number", ["SIGTERM", *slow("SIGINT")])
@pytest.mark.parametrize("case", EACH)
def test_neither_signal_is_lost(case: str, number: str) -> None:
    code = BEGIN + f"note_sigint()\nNUMBER = signal.{number}\n" + EACH[case]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-1] == "tidied"
    assert ("whole" in run.stdout) == ("lets it end" in case)


def test_what_else_is_dropped_is_reported() -> None:
    code = BEGIN + "class Bad:\n    def __del__(self):\n        raise ValueError('lost')\nBad()\nprint('goes on')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert "ValueError: lost" in run.stderr
    assert run.stdout == "goes on\n"


HALF_MADE = """
import os, signal, sys, time
from toolkit.interrupts import Terminated, raise_on_sigterm

class Made:
    def __init__(self, wait):
        if wait:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        self.handle = []

    def __del__(self):
        self.handle.clear()
        raise ValueError("a finalizer has failed")

raise_on_sigterm(Terminated)
Made(False)
print("before", file=sys.stderr, flush=True)
try:
    Made(True)
except Terminated:
    print("ended", file=sys.stderr)
"""


def test_what_a_signal_left_half_made_is_closed_without_a_traceback() -> None:
    ran = subprocess.run([sys.executable, "-c", HALF_MADE], capture_output=True, text=True, timeout=PATIENCE)
    reported, _, after = ran.stderr.partition("before\n")
    assert "a finalizer has failed" in reported
    assert after == "ended\n"


ELSEWHERE = """
import socket, threading
from toolkit.runs.forkserver import begin_masked

beside = threading.Thread(target=time.sleep, args=(600,), daemon=True)  # it blocks no signal
beside.start()

class Started:
    def start(self):
        theirs, ours = socket.socketpair()
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno())
        signal.pthread_kill(beside.ident, signal.{number})
        ours.recv(1)  # the signal has come; Python calls the handler before what follows
        signal.set_wakeup_fd(-1)
        print("started")

{begin}
try:
    begin_masked(Started())
    print("goes on")
except {error}:
    print("ended")
"""


@pytest.mark.parametrize(
    ("number", "error", "begin"),
    [
        ("SIGTERM", "Terminated", ""),
        ("SIGINT", "KeyboardInterrupt", "from toolkit.interrupts import note_sigint\nnote_sigint()"),
    ],
)
def test_a_signal_that_another_thread_gets_does_not_interrupt_the_start_of_a_process(
    number: str, error: str, begin: str
) -> None:
    """A process whose start is interrupted complains that nobody says what it is to do."""
    code = BEGIN + ELSEWHERE.format(number=number, error=error, begin=begin)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "started\nended\n")


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
@pytest.mark.parametrize(("number", "told"), [("SIGINT", "interrupted"), ("SIGTERM", "terminated")])
def test_a_signal_while_the_command_line_is_imported_ends_it_with_a_word(module: str, number: str, told: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTING.format(module=module, number=number), "bin/toolkit"],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        128 + getattr(signal, number), "", f"{told}; nothing had begun\n",
    )  # fmt: skip


@pytest.mark.parametrize("begun", [["-m", "toolkit"], ["-m", "toolkit.reference"], ["-c", "import toolkit"]])
def test_only_the_command_line_takes_signals(begun: list[str]) -> None:
    """A program that imports us has its own."""
    seen = "import sys; sys.orig_argv[1:] = {!r}; sys.argv[0] = {!r}; from toolkit import beginning; import signal; "
    seen += "print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    ran = subprocess.run(
        [sys.executable, "-c", seen.format(begun, begun[0])],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert ran.stdout == f"{begun != ['-m', 'toolkit']}\n"


def test_a_signal_at_the_end_changes_no_status() -> None:
    program = """
import signal, sys
from toolkit.interrupts import keep_status, note_sigint
note_sigint()
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
    """DuckDB, interrupted in a statement, drops what the handler raises for a RuntimeError of its own."""
    script = f"""
import signal, sys
from toolkit import cli

def interrupted(options):
    cli.raise_on_sigterm(cli.Terminated), cli.note_sigint()
    try:
        signal.raise_signal({int(number)})
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted") from None

cli._run = interrupted
sys.exit(cli.main(["init"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (status, 1), done.stderr
    assert "the same command goes on where it stopped" in done.stderr
