"""What is fuzzed: a module a target, with ``SEEDS`` (small inputs that get far) and ``check`` (of an input).

`check` returns where all is well: what reads the bytes has accepted them, and rightly, or refused them by an error of
ours. It raises whatever else happens. A new target is one more module; there is no list to edit.
"""

import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

CRASHERS = Path(__file__).parent.parent / "crashers"
"""Inputs that were once found to break something, by target: ``crashers/TARGET/NAME``."""


class Target(Protocol):
    """A module of this folder."""

    SEEDS: Sequence[bytes]

    def check(self, data: bytes) -> None: ...


def names() -> list[str]:
    """Return the names of all targets."""
    return sorted(each.name for each in pkgutil.iter_modules(__path__) if not each.name.startswith("_"))


def find(name: str) -> Target:
    """Return a target."""
    return cast("Target", importlib.import_module(f"{__name__}.{name}"))


def crashers(name: str) -> list[bytes]:
    """Return the inputs that once broke a target."""
    folder = CRASHERS / name
    return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.is_dir() else []
