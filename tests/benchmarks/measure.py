"""What a command takes: time, memory, and the files that it leaves."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.conftest import ROOT

TIMED = Path(__file__).with_name("timed.py")
LAST_LINES = 6


class CommandFailed(Exception):
    """A command ended with a status that is not 0, or did not do its work."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a command took, the processes that it started and waited for included.

    Attributes:
        wall, user, system: seconds.
        peak: bytes; of the largest single process, never the sum of several.
        shown: its standard output.
    """

    wall: float
    user: float
    system: float
    peak: int
    shown: str

    @property
    def told(self) -> dict[str, Any]:
        """The JSON object that is the last line of its standard output; empty if that is none."""
        last = (self.shown.strip().splitlines() or [""])[-1]
        try:
            found = json.loads(last)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def measure(command: Sequence[str | Path], folder: Path) -> Usage:
    """Runs a command from the root of the repository.

    Args:
        command: program and arguments.
        folder: for what it prints: ``stdout``, ``stderr``.

    Raises:
        CommandFailed: with the end of what it printed.
    """
    out, err, result = folder / "stdout", folder / "stderr", folder / "usage"
    line = [sys.executable, "-I", "-S", str(TIMED), str(result), *map(str, command)]
    with out.open("wb") as stdout, err.open("wb") as stderr:
        code = subprocess.run(line, cwd=ROOT, stdout=stdout, stderr=stderr, check=False).returncode
    shown = out.read_text(errors="replace")
    usage = json.loads(result.read_text()) if not code else {"code": code}
    if status := usage.pop("code"):
        end = (err.read_text(errors="replace").strip() or shown.strip()).splitlines()[-LAST_LINES:]
        raise CommandFailed(f"exit status {status}: {' '.join(map(str, command))}\n" + "\n".join(end))
    return Usage(**usage, shown=shown)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(
        (Path(folder) / name).lstat().st_size
        for folder, _, files in os.walk(path)
        if ".toolkit" not in Path(folder).parts
        for name in files
    )


# The command lines of the toolkit.

COMMAND = Path(sys.executable).with_name("toolkit")


def toolkit(*arguments: str | Path, program: Path | None = None) -> list[str]:
    """Of its console script, beside the Python that runs this, or of another version's."""
    if program:
        return [str(program), *map(str, arguments)]
    if not COMMAND.is_file():
        raise SystemExit(f"expected the project to be installed for {sys.executable}, got no {COMMAND}")
    return [str(COMMAND), *map(str, arguments)]


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
