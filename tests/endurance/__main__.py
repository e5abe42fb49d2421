"""Runs over very much generated text, watched: ``python -m tests.endurance crawl --gigabytes 50``.

``crawl`` is a run from WET files of a web server to OSCAR's form, which keeps no documents (``run --per-shard``).
``mix`` is a mix with repeats, a budget and a shuffle over a dataset. The table has a line for each tenth of the work.
Exit status 1: the command failed, or the last tenths needed more memory or open files, or more CPU time for a byte,
than the first ones. The folders are kept if `--work` names one.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import SHARED
from tests.endurance.generated import documents, pool, served
from tests.endurance.watched import Done, Look, watch

CONFIGS = Path(__file__).parents[2] / "configs"
GB, MB = 10**9, 10**6
TENTHS = 10
GROWTH = 1.1
"""What the last three tenths may need at most, of what the three behind the first needed: memory and open files."""
SLOWER = 1.25
"""The same for CPU time for a byte; other work on the machine changes it by some percent."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description=__doc__)
    parser.add_argument("what", choices=["crawl", "mix"])
    parser.add_argument("--gigabytes", type=float, default=50, help="of text")
    parser.add_argument("--file", type=float, default=50, help="MB of text of a file or shard")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--work", type=Path, help="a folder that is not there yet; it is kept")
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    files, size = max(TENTHS, round(given.gigabytes * GB / (given.file * MB))), int(given.file * MB)
    try:
        return (_crawl if given.what == "crawl" else _mix)(work, files, size, given.processes)
    finally:
        if not given.work:
            shutil.rmtree(work, ignore_errors=True)


def _crawl(work: Path, files: int, size: int, processes: int) -> int:
    wets = sorted(SHARED.glob("wet/*.warc.wet.gz")) or sorted(CONFIGS.glob("sample/*.warc.wet.gz"))
    with served(pool(wets), files, size) as address:
        config = yaml.safe_load((CONFIGS / "oscar-22.01.yaml").read_text())
        names = [f"{address}/{number:05d}.warc.wet.gz" for number in range(files)]
        config |= {"dataset": str(work / "data"), "processes": processes}
        config["ingest"][0]["from"] = names
        config["mix"]["rules"].append({"sample": 0.25, "name": "quarter"})
        config["mix"]["output"]["path"] = str(work / "out")
        return _watched(work, "run --per-shard", config, files * size)


def _mix(work: Path, files: int, size: int, processes: int) -> int:
    shards = work / "data" / "documents" / "generated"
    shards.mkdir(parents=True)
    for number in range(files):
        documents(shards, number, size)
    config = {
        "dataset": str(work / "data"),
        "processes": processes,
        "tag": {"length-0": "length"},
        "mix": {
            "attributes": ["length-0"],
            "rules": [{"repeat": {"score": "document.chars", "curve": [[1000, 0.2], [8000, 2]]}, "name": "longer"}],
            "budget": {"bytes": f"{files * size // 2} B"},
            "output": {"format": "dolma", "path": str(work / "out"), "shuffle": {"seed": 1}},
        },
    }
    return max(_watched(work, command, config, files * size) for command in ("tag", "mix"))


def _watched(work: Path, command: str, config: dict[str, Any], text: int) -> int:
    path, log = work / "config.yaml", work / f"{command.split()[0]}.log"
    path.write_text(json.dumps(config, indent=1))
    arguments = [sys.executable, "-m", "toolkit", *command.split(), "-c", str(path)]
    status, looks = watch(arguments, [work / "data", work / "out"], log, lambda: _done(log))
    lines = log.read_text(errors="replace").splitlines()
    looks = [look for look in looks if look.memory]
    print(f"\n`toolkit {command}`, {text / GB:.1f} GB of text, exit status {status}")
    print(f"{looks[-1].seconds / 60:.0f} minutes; {text / MB / looks[-1].cpu:.1f} MB of text for a second of CPU time;")
    print(f"{len(lines):,} lines of messages, the longest has {max(map(len, lines), default=0):,} characters")
    problems = [f"exit status {status}: see {log}"] if status else []
    for stage in dict.fromkeys(look.done.stage for look in looks):
        problems += _table(stage, [look for look in looks if look.done.stage == stage])
    print("".join(f"\nnot flat: {problem}" for problem in problems) or "\nflat", flush=True)
    return int(bool(problems))


def _done(log: Path) -> Done:
    """Return what the last line of progress tells."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 4096))
        found = re.findall(r"(\w+): ([\d,]+)/([\d,]+) (?:shards|inputs|parts)", stream.read().decode(errors="replace"))
    if not found:
        return Done("begin", 0.0)
    stage, done, of = found[-1]
    return Done(stage, int(done.replace(",", "")) / int(of.replace(",", "")))


def _table(stage: str, looks: Sequence[Look]) -> list[str]:
    """Print a line for each tenth of a stage, and return what grew."""
    tenths = [[look for look in looks if n < TENTHS * look.done.share <= n + 1] for n in range(TENTHS)]
    if not all(tenths):
        memory, files = max(look.memory for look in looks), max(look.files for look in looks)
        print(f"\n{stage}: too short for a table; {memory / MB:,.0f} MB of memory, {files} open files at most")
        return []
    print(
        f"\n| {stage} | CPU, s | processes | MB of memory | open files | MB on disk |\n|---|---:|---:|---:|---:|---:|"
    )
    for tenth in tenths:
        end, memory, files = tenth[-1], max(look.memory for look in tenth), max(look.files for look in tenth)
        row = f"| {end.done.share:.0%} | {end.cpu:,.0f} | {end.processes} | {memory / MB:,.0f} | {files}"
        print(f"{row} | {end.disk / MB:,.0f} |")
    before, after = ([look for tenth in tenths[part] for look in tenth] for part in (slice(1, 4), slice(-3, None)))
    problems = []
    for what in ("memory", "files"):
        old, new = (max(getattr(look, what) for look in part) for part in (before, after))
        if new > GROWTH * old:
            problems.append(f"{stage}, {what}: {old:,} at most in the tenths two to four, {new:,} in the last three")
    costs = [(part[-1].cpu - part[0].cpu) / (part[-1].done.share - part[0].done.share) for part in (before, after)]
    if costs[1] > SLOWER * costs[0]:
        problems.append(
            f"{stage}: {costs[0]:,.0f} s of CPU time for all shards at the begin, {costs[1]:,.0f} s at the end"
        )
    return problems


if __name__ == "__main__":
    sys.exit(main())
