"""The walk from a configuration to rows: in which modules code runs until a command has its first joined row.

    python -m tests.rows_walk

prints, for `mix`, `stats`, `dedup` and a `Dataset`, how many modules of the toolkit that are, and the modules on the
stack when the first row is there: those that hand it up.
"""

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import toolkit
from tests.pipeline.conftest import attributes, document, write_rows


class _Reached(Exception):
    """The first row is there."""


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__", "")
    return name if name.startswith("toolkit.") else ""


class Walk:
    """The modules of a call until the first joined row.

    Attributes:
        modules: Modules in which code has run.
        stack: Modules on the stack when the row was there, outermost first.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self.modules: dict[str, None] = {}
        self.stack: dict[str, None] = {}
        sys.setprofile(self._note)
        try:
            with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(BaseException):
                call()
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or self.stack or not (name := _module(frame)):
            return
        self.modules[name] = None
        if (name, frame.f_code.co_name) == ("toolkit.data.alignment", "take"):
            found: list[str] = []
            above: FrameType | None = frame
            while above:
                found += [_module(above)] if _module(above) else []
                above = above.f_back
            self.stack = dict.fromkeys(reversed(found))


def walks(root: Path) -> dict[str, Walk]:
    """Return the walks of all commands, over a dataset of one shard with one set."""
    write_rows(root / "data/documents/a.jsonl.gz", [document(f"a{i}", f"text {i}", "s") for i in range(4)])
    write_rows(root / "data/attributes/ext-0/a.jsonl.gz", [attributes(f"a{i}", {"p": i}) for i in range(4)])
    config: dict[str, Any] = {
        "dataset": str(root / "data"),
        "executor": {"type": "in_process"},
        "dedup": {"exact-0": {"kind": "exact", "when": "p > 0"}},
        "mix": {
            "attributes": ["ext-0"],
            "rules": [{"keep": "p > 0"}, {"drop": "document.chars < 1"}],
            "output": {"format": "dolma", "path": str(root / "out")},
        },
    }
    calls: dict[str, Callable[[], object]] = {
        "mix": lambda: toolkit.mix(config),
        "stats": lambda: toolkit.stats(config),
        "dedup": lambda: toolkit.dedup(config),
        "Dataset": lambda: next(iter(toolkit.Dataset(config).joined("ext-0"))),
    }
    return {name: Walk(call) for name, call in calls.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, walk in walks(Path(folder)).items():
            print(f"{name}: {len(walk.modules)} modules; on the stack {len(walk.stack)}: {' > '.join(walk.stack)}")
            for module in walk.modules:
                print(f"  {module}")


if __name__ == "__main__":
    main()
