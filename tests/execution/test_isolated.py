"""A function in a process of its own: what it does to that process costs one call."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.errors import DataError, ToolkitError
from toolkit.execution.pool import Isolated, Lost

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
