"""Contenders of ours, what they did as they tell it, and figures of runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.inputs import Input, lend, rows_of, write_config
from tests.benchmarks.measure import Usage, toolkit
from tests.benchmarks.race import Command, Contender, Counter, Counts, Figure, Run, nothing_counted
from tests.benchmarks.report import core_hours_of

Config = dict[str, Any]


def ours(
    name: str,
    verb: str,
    config: Callable[[Path], Config],
    given: Input,
    counts: Counter = nothing_counted,
    *,
    sets: Sequence[str] | None = (),
    output: str = "out",
    options: Sequence[str] = (),
    program: Path | None = None,
) -> Contender:
    """A command of the toolkit, with one process unless the configuration says otherwise.

    Args:
        name: in tables.
        verb: the command.
        config: for a folder that is new in every round.
        given: what it reads.
        counts: what it did.
        sets: that the dataset has, which is lent; None if the dataset is a new one.
        output: what of its folder is its output.
        options: further arguments.
        program: of another version.
    """

    def command(folder: Path) -> Command:
        root = folder / "data"
        if sets is not None:
            lend(given.path, root, *sets)
        path = write_config(
            folder / f"{verb}.yaml", {"dataset": str(root), "processes": 1, **config(folder)}
        )  # fmt: skip
        return toolkit(verb, "-c", path, "--quiet", "--json", *options, program=program)

    return Contender(name, command, given.text, counts, output)


def wet(folder: Path) -> Config:
    """The entry of `ingest` for WET files in a folder."""
    return {"format": "wet", "from": [f"{folder}/*.warc.wet.gz"], "source": "cc"}


def told(**counts: str) -> Counter:
    """Counts from what the command prints as JSON, by their places; ``*`` stands for the sum over all values."""

    def found(folder: Path, usage: Usage) -> Counts:
        return {name.replace("_", " "): _at(usage.told, place.split(".")) for name, place in counts.items()}

    return found


def _at(value: Any, keys: Sequence[str]) -> Any:
    if not keys:
        return value
    return sum(_at(each, keys[1:]) for each in value.values()) if keys[0] == "*" else _at(value[keys[0]], keys[1:])


def rows_in(*folders: Path) -> int:
    """How many rows the files of an output have."""
    files = (path for folder in folders for path in folder.rglob("*.gz") if ".toolkit" not in path.parts)
    return sum(1 for path in files for _ in rows_of(path))


def figure(
    what: str, value: Callable[..., float], *contenders: Contender, unit: str = "x", **target: float | None
) -> Figure:
    """A number from one run of each of some contenders, in their order."""
    names = tuple(each.name for each in contenders)

    def found(runs: Mapping[str, Run]) -> float:
        return value(*(runs[name] for name in names))

    return Figure(what, names, found, unit=unit, **target)


def core_hours(what: str, text: int, contenders: Iterable[Contender], at_most: float | None = None) -> Figure:
    """What a terabyte of text takes of all these, one after the other."""

    def found(*runs: Run) -> float:
        return core_hours_of(sum(run.cpu for run in runs), text)

    return figure(f"{what} of a TB of text", found, *contenders, unit=" core-hours", at_most=at_most)


def new_of_all(new: Contender, whole: Contender) -> Figure:
    """What new shards take, as a part of a whole run."""
    return figure(f"{new.name} / {whole.name}", lambda a, b: a.cpu / b.cpu, new, whole, at_most=0.15)
