"""One process and two."""

from collections.abc import Sequence

from tests.benchmarks.cases.stages import oscar
from tests.benchmarks.cases.tag import tagging
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.race import Benchmark, both, faster
from tests.benchmarks.scales import MB

TARGET = 1.8


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    count, size = inputs.scale.processes
    return [_benchmark(inputs, count, size), _benchmark(inputs, 1, count * size)]


def _benchmark(inputs: Inputs, count: int, size: int) -> Benchmark:
    found = inputs.repeated(count, size)
    tags = [tagging(f"toolkit tag, {n}", found.path, found.text, n) for n in (1, 2)]
    mixes = [oscar(found.path, found.text, name=f"toolkit mix, {n}", processes=n) for n in (1, 2)]
    shards = f"{count} shards" if count > 1 else "one shard"
    return Benchmark(
        f"Processes, {shards}",
        f"The same with one and with two processes: {shards} of {size // MB} MB, documents repeated under other ids.",
        (*tags, *mixes),
        (
            faster("tag, wall: one process / two", tags[1], tags[0], metrics=both("wall"), at_least=TARGET),
            faster("mix, wall: one process / two", mixes[1], mixes[0], metrics=both("wall"), at_least=TARGET),
        ),
        same=("documents", "kept"),
    )
