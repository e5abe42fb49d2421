"""Memory against the size of a shard."""

from collections.abc import Sequence

from tests.benchmarks.cases.stages import oscar
from tests.benchmarks.cases.tag import tagging
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.race import Benchmark, both, faster
from tests.benchmarks.scales import MB

ROUNDS = 2
"""Peaks hardly vary."""
TARGET = 0.9


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    sizes = inputs.scale.memory
    shards = {size: inputs.repeated(1, size) for size in sizes}
    tags = {n: tagging(f"toolkit tag, {n // MB} MB", each.path, each.text) for n, each in shards.items()}
    mixes = {n: oscar(each.path, each.text, name=f"toolkit mix, {n // MB} MB") for n, each in shards.items()}
    first, last = sizes[0], sizes[-1]
    what = f"peak: {first // MB} MB / {last // MB} MB"
    return [
        Benchmark(
            "Memory",
            "One process, one shard of the size that is said, documents repeated under other ids.",
            (*tags.values(), *mixes.values()),
            (
                faster(f"tag, {what}", tags[last], tags[first], metrics=both("peak"), at_least=TARGET),
                faster(f"mix, {what}", mixes[last], mixes[first], metrics=both("peak"), at_least=TARGET),
            ),
            rounds=ROUNDS,
        )
    ]
