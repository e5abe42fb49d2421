"""Contenders take turns: what each took in every round, and the figures that follow."""

import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.benchmarks.measure import CommandFailed, Usage, measure, size_of
from tests.benchmarks.peers import MissingPeer

Metric = Literal["cpu", "user", "wall", "peak", "output", "inner"]
Metrics = tuple[Metric, Metric]
"""Of ours and of the peer."""
Counts = Mapping[str, int | str]
Counter = Callable[[Path, Usage], Counts]
Command = Sequence[str | Path]


def nothing_counted(folder: Path, usage: Usage) -> Counts:
    return {}


@dataclass(frozen=True)
class Contender:
    """A command line that does the work of a benchmark.

    Attributes:
        name: in tables.
        command: for a folder that is new in every round; what is done to find it is not measured.
        text: bytes of text that it goes through, uncompressed, UTF-8.
        counts: what it did, from its folder and what it printed; the first must not be 0.
        output: what of its folder is its output.
        note: what a reader of the table should know.
    """

    name: str
    command: Callable[[Path], Command]
    text: int = 0
    counts: Counter = nothing_counted
    output: str = "out"
    note: str = ""


@dataclass(frozen=True)
class Run:
    """What a contender took in one round.

    Attributes:
        inner: CPU seconds of its inner part, without start-up, if it says so.
        output: bytes.
    """

    user: float
    system: float
    wall: float
    peak: int
    output: int
    inner: float | None
    counts: Counts

    @property
    def cpu(self) -> float:
        return self.user + self.system

    def get(self, metric: Metric) -> float:
        """A metric; of contenders without inner part that is all they took."""
        if metric == "inner":
            return self.cpu if self.inner is None else self.inner
        return float(getattr(self, metric))


@dataclass(frozen=True)
class Figure:
    """A number that each round gives, with what it should be.

    Attributes:
        what: it says.
        of: the contenders that it needs.
        value: from their runs in one round.
        at_least, at_most: what it should be, if there is a target.
        unit: behind the number.
    """

    what: str
    of: tuple[str, ...]
    value: Callable[[Mapping[str, Run]], float]
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "x"

    def holds(self, values: Sequence[float]) -> bool | None:
        """Whether the median is as it should be; None without target."""
        if self.at_least is None and self.at_most is None:
            return None
        found = statistics.median(values)
        return (self.at_least is None or found >= self.at_least) and (self.at_most is None or found <= self.at_most)


@dataclass(frozen=True)
class Benchmark:
    """Contenders for one kind of work.

    Attributes:
        title: of its section.
        about: what is done, and on what.
        figures: what is compared.
        same: names of counts that should be equal in contenders that have them and go through the same text.
        rounds: instead of the number that was asked for.
        paper: whether to print real, user and sys as goclassy's paper does.
        warm: whether there is a round that does not count.
    """

    title: str
    about: str
    contenders: tuple[Contender, ...]
    figures: tuple[Figure, ...] = ()
    same: tuple[str, ...] = ()
    rounds: int | None = None
    paper: bool = False
    warm: bool = True


@dataclass
class Raced:
    """What a benchmark gave.

    Attributes:
        runs: of each contender, in the order of the rounds; the warm-up is not there.
        left_out: contenders that could not run, and why.
    """

    benchmark: Benchmark
    runs: dict[str, list[Run]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def values(self, figure: Figure) -> list[float] | None:
        """A figure in each round; None if a contender that it needs is not there."""
        if not all(name in self.runs for name in figure.of):
            return None
        rounds = zip(*(self.runs[name] for name in figure.of), strict=True)
        return [figure.value(dict(zip(figure.of, runs, strict=True))) for runs in rounds]


def race(benchmark: Benchmark, rounds: int, folder: Path) -> Raced:
    """A round to warm up, then the rounds that count; in each, one contender after the other.

    A contender that fails once is left out altogether.

    Args:
        benchmark: to run.
        rounds: that count, unless the benchmark has a number of its own.
        folder: for the contenders' files; each is emptied before its run and deleted after.
    """
    raced = Raced(benchmark)
    total = benchmark.rounds or rounds
    for number in range(not benchmark.warm, total + 1):
        for i, contender in enumerate(benchmark.contenders):
            if contender.name in raced.left_out:
                continue
            _say(f"{benchmark.title}, round {number or 'to warm up'}{f' of {total}' * bool(number)}: {contender.name}")
            try:
                run = _run(contender, folder / str(i))
            except (CommandFailed, MissingPeer) as error:
                _say(f"left out: {contender.name}: {error}")
                raced.left_out[contender.name] = str(error)
                raced.runs.pop(contender.name, None)
                continue
            if number:
                raced.runs.setdefault(contender.name, []).append(run)
    return raced


def _run(contender: Contender, folder: Path) -> Run:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    usage = measure(contender.command(folder), folder)
    try:
        counts = contender.counts(folder, usage)
    except (KeyError, ValueError, OSError) as error:
        raise CommandFailed(f"expected to see what it did, got {type(error).__name__}: {error}") from None
    for name, count in list(counts.items())[:1]:
        if not count:
            raise CommandFailed(f"expected that it does its work, got no {name}")
    seconds = usage.told.get("seconds")
    run = Run(
        user=usage.user,
        system=usage.system,
        wall=usage.wall,
        peak=usage.peak,
        output=size_of(folder / contender.output),
        inner=float(seconds) if isinstance(seconds, int | float) else None,
        counts=counts,
    )
    shutil.rmtree(folder)
    return run


def faster(
    what: str, ours: Contender, peer: Contender, *, metrics: Metrics = ("cpu", "inner"),
    at_least: float | None = None,
) -> Figure:  # fmt: skip
    """How many times as much text a second ours gets through, or of another metric, how much less it takes.

    Args:
        what: is said of it.
        ours: what should take less.
        peer: what should take more.
        metrics: what is compared, of ours and of the peer. Of a peer that is by default what it takes without its
            start-up, if it tells that, of ours everything.
        at_least: the target.
    """

    def value(runs: Mapping[str, Run]) -> float:
        mine, theirs = runs[ours.name].get(metrics[0]), runs[peer.name].get(metrics[1])
        if metrics[0] != "peak":
            mine, theirs = mine / ours.text, theirs / peer.text
        return theirs / mine

    return Figure(what, (ours.name, peer.name), value, at_least=at_least)


def both(metric: Metric) -> Metrics:
    """The same of ours and of the peer."""
    return metric, metric


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
