"""What a dataset of very many shards costs beside its text: plans, status and the last step, in a store that is far.

    python -m tests.benchmarks.shards --shards 100000 --milliseconds 20

A few shards are made by the toolkit. Then their files are linked, and their records copied, under as many names as are
wanted, so that the toolkit finds what a run of all of them leaves just before the last step of its mix. Each command is
a process; all places are in `tests.benchmarks.far`. Members are copied to parts without delay: that is the text.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.storage.record_log import LogEntry, LogFile, _write_entries

MADE = 8
"""Shards that are made by the toolkit."""

LINKS = 50_000
"""Names of a file, at most: file systems have a limit."""

COMMANDS = (
    ("status", "status, before the last step"),
    ("mix", "mix, the last step"),
    ("status", "status"),
    ("ingest", "ingest"),
    ("tag", "tag"),
    ("mix", "mix"),
    ("run", "run"),
)
"""Those that are measured, in this order, with what they are called; the last five have nothing to do."""


def _name(number: int) -> str:
    return f"text-{number:07d}"


def _configuration(root: Path) -> dict[str, Any]:
    far = f"far://{root}"
    return {
        "dataset": f"{far}/data",
        "processes": 1,
        "duplicate_ids": "allow",  # the shards are copies
        "storage": {"stores": {"far": "tests.benchmarks.far:Far"}},
        "ingest": [{"format": "jsonl", "from": [f"{far}/in/*.jsonl"], "source": "s"}],
        "tag": {"shape-0": "line_shape", "noise-0": "noise"},
        "mix": {
            "attributes": ["shape-0", "noise-0"],
            "rules": [{"drop": "line_shape.lines < 1", "name": "empty"}],
            "output": {"format": "dolma", "path": f"{far}/out"},
        },
    }


def _make(root: Path) -> None:
    """Make a few shards, and their part of a mix, which is not published."""
    (root / "in").mkdir(parents=True)
    for number in range(MADE):
        row = {"id": f"{number}", "text": f"This is the text of document {number}.\n" * 5}
        (root / "in" / f"{_name(number)}.jsonl").write_text(json.dumps(row) + "\n")
    (root / "config.yaml").write_text(json.dumps(_configuration(root)))
    for command in (("ingest",), ("tag",), ("mix", "--shard", "0/1")):
        subprocess.run(_toolkit(root, *command), check=True, stdout=subprocess.DEVNULL)


def _toolkit(root: Path, command: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "toolkit", command, "-c", str(root / "config.yaml"), "--quiet", *arguments]


def _multiply(root: Path, shards: int) -> None:
    """Give everything that is about one of the few shards as many names as are wanted."""
    files = [Path(folder, name) for folder, _, names in os.walk(root) for name in names]
    for number in range(MADE):
        for file in (file for file in files if _name(number) in file.name):
            source = file
            for copy, other in enumerate(range(number + MADE, shards, MADE), start=2):
                target = file.with_name(file.name.replace(_name(number), _name(other)))
                if copy % LINKS:
                    os.link(source, target)
                else:
                    source = Path(shutil.copy2(file, target))
    for file in files:
        if file.name.partition(".")[0] == "records":
            entries = [*LogFile(str(file), file.read_bytes())]
            _write_entries(str(file), len(entries) * shards // MADE, _copied(entries, shards))


def _copied(entries: list[LogEntry], shards: int) -> Iterator[LogEntry]:
    """Yield the entries of all shards, sorted; of each kind, those of the few are given."""
    for first in range(0, len(entries), MADE):
        for other in range(shards):
            entry, old, new = entries[first + other % MADE], _name(other % MADE), _name(other)
            record = entry.record.replace(old.encode(), new.encode()) if entry.record else None
            yield LogEntry(entry.kind, entry.key.replace(old, new), entry.n, record)


def _measure(root: Path, command: str, seconds: float) -> tuple[float, float, int, int]:
    """Return seconds by the clock, and of CPU time, the peak of memory in bytes, and the number of requests."""
    log = root / "requests"
    log.unlink(missing_ok=True)
    delays = {"FAR_SECONDS": str(seconds), "FAR_LOG": str(log), "FAR_FREE": "/out/.toolkit/stage/"}
    begin = time.monotonic()
    process = subprocess.Popen(_toolkit(root, command), env=os.environ | delays, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - begin
    assert status == 0 or (command == "status" and os.waitstatus_to_exitcode(status) == 1), status
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, len(log.read_text().splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--milliseconds", type=float, default=20, help="that each request takes")
    parser.add_argument("--keep", type=Path, help="make it here, or take what is here, and leave it")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp())
    root = folder / "far"
    try:
        if not root.exists():
            _make(root)
            _multiply(root, given.shards)
            subprocess.run(_toolkit(root, "ingest"), check=True, stdout=subprocess.DEVNULL)  # stores their types
        print(f"| {given.shards:,} shards, {given.milliseconds:g} ms a request | requests | s | CPU, s | MB |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for command, called in COMMANDS:
            took, cpu, memory, requests = _measure(root, command, given.milliseconds / 1000)
            print(f"| `{called}` | {requests:,} | {took:,.1f} | {cpu:,.1f} | {memory / 1e6:,.0f} |", flush=True)
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
