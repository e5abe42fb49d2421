"""A plugin of pytest for kernels with checked bounds: their arrays lie between memory that may not be touched.

    python -m pytest -p tests.fuzz.guarded -n0 tests/text tests/taggers                 arrays end where their room ends
    GUARDED=begin python -m pytest -p tests.fuzz.guarded -n0 tests/text tests/taggers   they begin where it begins

A read or write outside ends the process; pytest's fault handler shows the test. (`NUMBA_BOUNDSCHECK` does nothing here:
kernels take pointers, of which numba knows no bounds.) Processes that a test begins are not guarded.
"""

import os

import pytest

from tests.fuzz.guards import Guards

_guards = Guards()


def pytest_configure(config: pytest.Config) -> None:
    """Guard all calls of compiled code of this process."""
    _guards.at_end = os.environ.get("GUARDED") != "begin"
    _guards.install()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell how much was guarded; nothing guarded is no test."""
    where = "end" if _guards.at_end else "begin"
    told = f"{_guards.calls:,} calls of compiled code with {_guards.elements:,} elements, guarded at the {where}"
    terminalreporter.write_line(f"{told}; {_guards.large:,} arrays were too large")
