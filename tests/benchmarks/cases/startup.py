"""What a command line takes before it does anything."""

import sys
from collections.abc import Sequence

from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.race import Benchmark, Contender, Figure

ROUNDS = 20
TARGET = 0.15


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    bare = Contender("python -c pass", lambda folder: [sys.executable, "-c", "pass"])
    ours = Contender("toolkit --help", lambda folder: toolkit("--help"))
    figure = Figure(
        "toolkit --help, wall", (ours.name,), lambda runs: runs[ours.name].wall, at_most=TARGET, unit=" s"
    )  # fmt: skip
    about = "Start-up, without any work."
    return [Benchmark("Start-up", about, (bare, ours), (figure,), rounds=ROUNDS)]
