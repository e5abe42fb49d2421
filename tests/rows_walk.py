"""The walk from a configuration to rows: the modules that lead to each of its stations.

    python -m tests.rows_walk

The stations are: the configuration is opened, the shards are listed, the sets are resolved, and the first block of
documents is read with them. What leads to a station is on the stack when it is reached. The command's own modules lead
to all of them, and what carries tasks out; what is left should be the same modules in all commands.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import toolkit
from tests.pipeline.conftest import attributes, document, write_rows

STATIONS = {
    ("toolkit.stages.dispatch", "open_context"): "configuration",
    ("toolkit.stages.context", "mine"): "shards",
    ("toolkit.source", "resolve_sets"): "sets",
    ("toolkit.mix.join", "joint_blocks"): "rows",
}
CARRIED = (
    "toolkit.execution",
    "toolkit.session",
    "toolkit.stages.tasks",
    "toolkit.storage.record_log",
    "toolkit.api.arguments",
)
"""What carries commands and tasks out, or keeps what is derived from records, whatever these are."""


class Walk:
    """The modules on the stack at each station, outermost first."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.stations: dict[str, dict[str, None]] = {}
        before = sys.getprofile()
        sys.setprofile(self._note)
        try:
            with suppress(toolkit.ToolkitError):
                call()
        finally:
            sys.setprofile(before)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        station = STATIONS.get((frame.f_globals.get("__name__", ""), frame.f_code.co_name))
        if station is None or station in self.stations:
            return
        found: list[str] = []
        above: FrameType | None = frame
        while above:
            found.append(above.f_globals.get("__name__", ""))
            above = above.f_back
        ours = (name for name in reversed(found) if name.startswith("toolkit.") and not name.startswith(CARRIED))
        self.stations[station] = dict.fromkeys(ours)

    @property
    def modules(self) -> dict[str, None]:
        """Return the modules of all stations, each once."""
        return {name: None for stack in self.stations.values() for name in stack}


def walks(root: Path) -> dict[str, Walk]:
    """Return the walks of commands over a dataset of one shard with one set."""
    write_rows(root / "data/documents/a.jsonl.gz", [document(f"a{i}", f"text {i}", "s") for i in range(4)])
    write_rows(root / "data/attributes/ext-0/a.jsonl.gz", [attributes(f"a{i}", {"p": i}) for i in range(4)])
    config: dict[str, Any] = {
        "dataset": str(root / "data"),
        "executor": {"type": "in_process"},
        "dedup": {"exact-0": {"kind": "exact", "when": "p > 0"}},
        "mix": {
            "attributes": ["ext-0"],
            "rules": [{"keep": "p > 0"}],
            "output": {"format": "dolma", "path": str(root / "out")},
        },
    }
    return {
        "mix": Walk(lambda: toolkit.mix(config)),
        "stats": Walk(lambda: toolkit.stats(config, attributes=["p"])),
        "dedup": Walk(lambda: toolkit.dedup(config)),
        "Dataset": Walk(lambda: next(iter(toolkit.Dataset(config).joined("ext-0")))),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = walks(Path(folder))
    shared = set.intersection(*({*walk.modules} for walk in found.values()))
    print(f"in all: {len(shared)}: {', '.join(sorted(shared))}")
    for name, walk in found.items():
        print(f"{name}: {len(walk.modules)}")
        for station, stack in walk.stations.items():
            print(f"  {station}: {' > '.join(stack)}")


if __name__ == "__main__":
    main()
