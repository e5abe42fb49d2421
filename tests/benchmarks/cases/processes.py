"""One process and two, and two independent runs at once: what these reach is what the machine gives."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks.cases.one_pass import recipe
from tests.benchmarks.cases.stages import oscar
from tests.benchmarks.cases.tag import tagging
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.race import Benchmark, Command, Contender, Figure, Run, both, faster
from tests.benchmarks.scales import MB

TARGET, SHARE = 1.85, 0.95
AT_ONCE = (
    'for name in 0 1; do sh "$0/$name.sh" & jobs="$jobs $!"; done; for job in $jobs; do wait "$job" || exit 1; done'
)
"""Two commands, and the status of each."""


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    count, size = inputs.scale.processes
    return [_runs(inputs, count, size), _benchmark(inputs, count, size), _benchmark(inputs, 1, count * size)]


def at_once(half: Contender) -> Contender:
    """Return two runs of a contender with one process, each on half of the text, begun at once."""

    def command(folder: Path) -> Command:
        for name in ("0", "1"):
            place = folder / name
            (place / "out").mkdir(parents=True)
            words = " ".join(shlex.quote(str(word)) for word in half.command(place))
            (folder / f"{name}.sh").write_text(f"exec {words} > {shlex.quote(str(place / 'stdout'))}\n")
        return ["sh", "-c", AT_ONCE, folder]

    return Contender(f"{half.name}, two at once", command, 2 * half.text, output="0/out")


def gains(what: str, one: Contender, two: Contender, halves: Contender) -> tuple[Figure, ...]:
    """Return by how much two processes are faster, and what part of two independent runs at once they reach."""

    def share(runs: Mapping[str, Run]) -> float:
        return (runs[halves.name].wall / halves.text) / (runs[two.name].wall / two.text)

    return (
        faster(f"{what}, wall: one process / two", two, one, metrics=both("wall"), at_least=TARGET),
        faster(f"{what}, wall: one process / two runs at once", halves, one, metrics=both("wall")),
        Figure(f"{what}: speed of two processes / of two runs at once", (two.name, halves.name), share, at_least=SHARE),
    )


def _runs(inputs: Inputs, count: int, size: int) -> Benchmark:
    wet, part = inputs.large(count, size), inputs.large(count // 2, size)
    one, two = (recipe(f"toolkit run, {n}", "oscar-22.01.yaml", wet, processes=n) for n in (1, 2))
    halves = at_once(recipe("toolkit run", "oscar-22.01.yaml", part))
    return Benchmark(
        f"Processes, {count} WET files",
        f"`oscar-22.01.yaml` with one and with two processes, {count} WET files of {size // MB} MB; and two runs with "
        f"one process at once, each on {count // 2} of them. {wet.repeats}",
        (one, two, halves),
        gains("run", one, two, halves),
        same=("documents kept",),
    )


def _benchmark(inputs: Inputs, count: int, size: int) -> Benchmark:
    found = inputs.repeated(count, size)
    tags = [tagging(f"toolkit tag, {n}", found.path, found.text, n) for n in (1, 2)]
    mixes = [oscar(found.path, found.text, name=f"toolkit mix, {n}", processes=n) for n in (1, 2)]
    halves: tuple[Contender, ...] = ()
    figures = [
        faster("tag, wall: one process / two", tags[1], tags[0], metrics=both("wall"), at_least=TARGET),
        faster("mix, wall: one process / two", mixes[1], mixes[0], metrics=both("wall"), at_least=TARGET),
    ]
    if count > 1:
        half = inputs.repeated(count // 2, size)
        halves = (
            at_once(tagging("toolkit tag", half.path, half.text)),
            at_once(oscar(half.path, half.text, name="toolkit mix")),
        )
        figures = [*gains("tag", tags[0], tags[1], halves[0]), *gains("mix", mixes[0], mixes[1], halves[1])]
    shards = f"{count} shards" if count > 1 else "one shard"
    return Benchmark(
        f"Processes, {shards}",
        f"The same with one and with two processes: {shards} of {size // MB} MB, documents repeated under other ids.",
        (*tags, *mixes, *halves),
        tuple(figures),
        same=("documents", "kept"),
    )
