"""Where the CPU time of a command goes: ``python -m tests.benchmarks.profile [--times N] run -c C.yaml processes=1 …``.

The command is run in one process, and ``processes=1`` keeps it there. A timer that counts CPU time, not the clock's,
interrupts it every few milliseconds; the CPU time since the interruption before belongs to the call that has just
returned, and that to the part whose pattern it meets, or the nearest of its callers does. What meets none belongs to
the module of ours that is innermost. Threads are a part of their own. ``{run}`` in an argument is the number of the
run.
"""

import argparse
import contextlib
import io
import json
import linecache
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import NamedTuple

from tests.conftest import ROOT

Parts = dict[str, dict[str, float]]
"""CPU seconds of the places of each part."""

INTERVAL = 0.002
PARTS = {
    "fsync, rename, unlink": r"os\.(fsync|replace|rename|unlink|link)\(|_synced\b|_sync_folder\b|Local\.(remove|move)",
    "inflate": r"^GzipFile\.read|\.inflate|decompress\(|gzip_decompress|inflated\b|libdeflate|storage/inflat",
    "deflate": r"compress_(fast|small)\b|\.compress\(|\.deflate\(|zlib_compress",
    "digests": r"sha256\w*\(|xxh\w+\(|\.update\(|digest\(",
    "JSON, decoding": r"\b_?decode\(line|map\(decode|decoders?\b.*\.decode\(|json\.decode\(|LateDocument\.__getattr__",
    "JSON, encoding": r"(?i:encoder)\.encode(_into|_lines)?\(|json\.encode\(|_ShardsOutput\._row\b|json_text",
    "WET records": r"ingest/(web|formats)/",
    "language identification": r"FastTextModel\.predict|_Compiled\.|fasttext/model",
    "models, loading": r"load_fasttext\b|text/fasttext/|storage/models|kernels/(machine_code|cache)|Compiled\._key\b",
    "line tables": r"text/line_table|split_lines\b|Document\.lines\b|Batch\.lines\b",
    "counting": r"text/counting|mix/rule_effects/",
    "start and imports": r"<frozen importlib|numpy/__init__|/inspect\.py|/dataclasses\.py|/typing\.py",
    "reading rows": r"storage/reading",
}
"""What belongs to a part: patterns for ``CALL | QUALNAME (FILE)``, the call as it stands in the source."""
NEUTRAL = re.compile(r"text/kernels/|/runs/|cli\.py|commands/|importlib|numpy/|functools")
OURS = re.compile(r"\((?!toolkit/text/kernels/compiling)(toolkit|taggers|mixers)/")
TOP = 3


class Place(NamedTuple):
    """A line of a stack: a call in a function."""

    code: CodeType
    at: int

    def __str__(self) -> str:
        """Return ``CALL | QUALNAME (FILE)``."""
        name = self.code.co_filename.removeprefix(f"{ROOT}/")
        return f"{self._call()} | {self.code.co_qualname} ({name})"

    def _call(self) -> str:
        row, last, column, end = list(self.code.co_positions())[self.at // 2]
        if row is None or row != last:
            return linecache.getline(self.code.co_filename, row).strip() if row else ""
        return linecache.getline(self.code.co_filename, row).encode()[column:end].decode(errors="replace")


class Sampler:
    """CPU seconds by stack.

    Attributes:
        seconds: of the main thread, by stack, innermost first.
        threads: of all others.
        waited: wall seconds in fsync.
    """

    def __init__(self) -> None:
        self.seconds: dict[tuple[Place, ...], float] = defaultdict(float)
        self.threads = self.waited = self._last = 0.0

    @contextlib.contextmanager
    def sampling(self) -> Iterator[None]:
        """Sample what is done inside."""
        fsync = os.fsync

        def timed(file: int) -> None:
            began = time.perf_counter()
            fsync(file)
            self.waited += time.perf_counter() - began

        before = signal.signal(signal.SIGPROF, self._sample)
        os.fsync = timed  # type: ignore[assignment]
        process, main = time.process_time(), time.thread_time()
        self._last = main
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
            os.fsync = fsync
            self.threads = (time.process_time() - process) - (time.thread_time() - main)

    def _sample(self, number: int, frame: FrameType | None) -> None:
        stack, now = [], time.thread_time()
        while frame is not None:
            stack.append(Place(frame.f_code, frame.f_lasti))
            frame = frame.f_back
        self.seconds[tuple(stack)] += now - self._last
        self._last = time.thread_time()


def part_of(stack: Sequence[str]) -> str:
    """Return the part that a stack belongs to, innermost first."""
    for place in stack:
        for part, known in PARTS.items():
            if re.search(known, place):
                return part
    for place in stack:
        found = re.search(r"\((?:\S*/)?((?:toolkit|taggers|mixers)/\S+)\.py\)$", place)
        if found and not NEUTRAL.search(place):
            return f"other: {found[1].rpartition('/')[0]}/"
    return "start and imports"


def by_part(sampler: Sampler) -> Parts:
    """Return CPU seconds of each part, by its places."""
    parts: Parts = defaultdict(lambda: defaultdict(float))
    for stack, seconds in sampler.seconds.items():
        shown = [str(place) for place in stack]
        ours = next((place for place in shown if OURS.search(place)), shown[-1])
        parts[part_of(shown)][ours] += seconds
    parts["threads"][""] += sampler.threads
    return parts


def table(runs: Sequence[Parts]) -> str:
    """Return a table in Markdown, the largest part first, with the places where most of its time went."""
    parts: Parts = defaultdict(lambda: defaultdict(float))
    for run in runs:
        for part, places in run.items():
            for place, seconds in places.items():
                parts[part][place] += seconds / len(runs)
    total = sum(sum(places.values()) for places in parts.values())
    rows = ["| part | CPU s | share | mostly |", "| --- | ---: | ---: | --- |"]
    for part, places in sorted(parts.items(), key=lambda item: -sum(item[1].values())):
        most = sorted(places.items(), key=lambda item: -item[1])[:TOP]
        shown = "; ".join(f"`{place.replace('|', 'in')}` {100 * one / total:.1f}" for place, one in most if place)
        seconds = sum(places.values())
        rows.append(f"| {part} | {seconds:.2f} | {100 * seconds / total:.1f} % | {shown} |")
    return "\n".join([*rows, f"| all | {total:.2f} | | |"])


def main() -> int:
    """Run the command as often as asked for, and print what all of its runs took."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.profile", description=__doc__)
    parser.add_argument("--times", type=int, default=3, metavar="N", help="runs (3), each in a process of its own")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="of the toolkit, with arguments")
    given = parser.parse_args()
    runs, waited = list[Parts](), list[float]()
    for number in range(given.times):
        parts, seconds = _child([argument.replace("{run}", str(number)) for argument in given.command])
        runs.append(parts)
        waited.append(seconds)
    print(table(runs))
    print(f"\nfsync: {statistics.mean(waited):.2f} s by the clock; load {os.getloadavg()[0]:.1f}")
    return 0


def _child(command: Sequence[str]) -> tuple[Parts, float]:
    """Run the command in a new process, so that start-up counts each time."""
    line = [sys.executable, "-c", f"from tests.benchmarks import profile; profile.sampled({list(command)!r})"]
    done = subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"expected the command to succeed, got exit status {done.returncode}")
    told = json.loads(done.stdout)
    return told["parts"], told["waited"]


def sampled(command: Sequence[str]) -> None:
    """Run a command of the toolkit in this process, and write to standard output what it took, as JSON."""
    sampler, shown = Sampler(), io.StringIO()
    with sampler.sampling(), contextlib.redirect_stdout(shown):
        from toolkit import cli

        code = cli.main(command)
    if code:
        raise SystemExit(f"exit status {code}: {shown.getvalue()[-500:]}")
    print(json.dumps({"parts": by_part(sampler), "waited": sampler.waited}))


if __name__ == "__main__":
    sys.exit(main())
