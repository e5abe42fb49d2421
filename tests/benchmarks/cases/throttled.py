"""goclassy's table once more, on a disk as slow as the paper's: 50 MB/s, 10 ms a seek."""

import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tests.benchmarks.cases.goclassy import lines_of_pipeline, lines_of_texts, pipeline_command
from tests.benchmarks.cases.one_pass import recipe
from tests.benchmarks.commands import cores
from tests.benchmarks.inputs import Input, Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, both, faster
from tests.benchmarks.scales import MB
from tests.benchmarks.slow_disk import SlowDisk

RATE, SEEKS = 50 * MB, 100
SIZE = 6000 * MB
SYNCED = 'disk="$0"; "$@" && sync -f "$disk"'
"""What is not on the disk yet when a command ends is written before it counts as done."""


class _Place:
    """The disk, with the input on it; made when the first contender asks."""

    def __init__(self, wet: Input) -> None:
        self._wet = wet

    @cached_property
    def disk(self) -> SlowDisk:
        disk = SlowDisk(SIZE, RATE, SEEKS)
        shutil.copytree(self._wet.path, disk.path / "wet")
        return disk

    def cleared(self) -> Path:
        """Return an empty folder of the disk, which has nothing of its files in memory."""
        work = self.disk.path / "work"
        shutil.rmtree(work, ignore_errors=True)
        (work / "out").mkdir(parents=True)
        self.disk.forget()
        return work


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    return [_benchmark(inputs, count) for count in inputs.scale.wet]


def _benchmark(inputs: Inputs, count: int) -> Benchmark:
    wet = inputs.wet(count)
    place = _Place(wet)

    def synced(command: Command) -> Command:
        return ["sh", "-c", SYNCED, place.disk.path, *command]

    def pipeline(folder: Path) -> Command:
        work = place.cleared()
        return synced(pipeline_command(inputs, place.disk.path / "wet", "long", cores(), work / "out"))

    def kept(folder: Path, usage: Usage) -> Counts:
        return {"lines kept": lines_of_pipeline(place.disk.path / "work")[0]}

    def run(folder: Path) -> Command:
        work, there = place.cleared(), Input(place.disk.path / "wet", wet.text, wet.facts)
        ours = recipe("", "goclassy.yaml", there, "mix.output.compression=none", processes=cores())
        return synced(ours.command(work))

    def lines(folder: Path, usage: Usage) -> Counts:
        return lines_of_texts(place.disk.path / "work", usage)

    shell = Contender("fastText pipeline, same lines", pipeline, wet.text, kept)
    plain = Contender("toolkit run, goclassy.yaml, plain text", run, wet.text, lines)
    return Benchmark(
        f"goclassy's table on a slow disk, {count} files",
        f"{count} WET files, {cores()} processes, to text files, on a file system of its own that reads and writes "
        f"{RATE // MB} MB and {SEEKS} requests a second, until all is on it. {wet.repeats}",
        (shell, plain),
        (
            faster("real: fastText pipeline, same lines / run", plain, shell, metrics=both("wall"), at_least=2.0),
            faster("user: fastText pipeline, same lines / run", plain, shell, metrics=both("user")),
        ),
        same=("lines kept",),
        paper=True,
    )
