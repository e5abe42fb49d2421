"""The command lines of the toolkit."""

import os
import sys
from pathlib import Path

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
