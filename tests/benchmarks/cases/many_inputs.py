"""Many small inputs: what a shard costs beside its text."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import datasets
from tests.benchmarks.cases.stages import whole
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Input, Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run, both, faster


def running(name: str, entry: Mapping[str, Any], found: Input, program: Path | None = None) -> Contender:
    """Return `toolkit run` with one process, from inputs to an OSCAR corpus; counts the files that it leaves."""

    def command(folder: Path) -> Command:
        path = datasets.write_config(folder / "run.yaml", whole(folder, entry))
        return toolkit("run", "-c", path, "--quiet", "--json", program=program)

    def counts(folder: Path, usage: Usage) -> Counts:
        ingested, mixed = usage.told["ingest"]["counts"]["documents"], usage.told["mix"]["labels"].values()
        files = sum(len(files) for place in ("data", "out") for _, _, files in os.walk(folder / place))
        return {"documents": ingested, "documents kept": sum(each["documents"] for each in mixed), "files left": files}

    return Contender(name, command, found.text, counts)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    single, texts = inputs.single, inputs.texts
    shards = single.facts["files"]
    wet = {"format": "wet", "from": [f"{single.path}/*.warc.wet.gz"], "source": "cc"}
    text = {"format": "text", "from": [f"{texts.path}/*.txt"], "source": "texts"}
    ours = running("toolkit run", wet, single)
    before = running("before", wet, single, inputs.old)
    files = running("toolkit run, text files", text, texts)
    files_before = running("before, text files", text, texts, inputs.old)

    def a_shard(name: str) -> Figure:
        def value(runs: Mapping[str, Run]) -> float:
            return runs[name].wall / shards * 1000

        return Figure(f"{name}: wall of a shard", (name,), value, at_most=6.0, unit=" ms")

    def seconds(runs: Mapping[str, Run]) -> float:
        return runs[files.name].wall

    def left(runs: Mapping[str, Run]) -> float:
        return float(runs[files.name].counts["files left"])

    compared = bool(inputs.old)
    return [
        Benchmark(
            "Text files of one line",
            f"{texts.facts['files']:,} of them, one process, to an OSCAR corpus.",
            (*([files_before] if compared else []), files),
            (
                Figure("wall", (files.name,), seconds, at_most=3.0, unit=" s"),
                Figure("files left in dataset and output", (files.name,), left, at_most=60, unit=""),
                *([faster("wall: before / run", files, files_before, metrics=both("wall"))] if compared else []),
            ),
            same=("documents", "documents kept"),
        ),
        Benchmark(
            "Shards of one document",
            f"{shards:,} WET files of one page each, one process, to an OSCAR corpus. {single.repeats}",
            (*([before] if compared else []), ours),
            (
                *([faster("wall: before / run", ours, before, metrics=both("wall"), at_least=4.0)] if compared else []),
                *([faster("CPU: before / run", ours, before)] if compared else []),
                a_shard(ours.name),
            ),
            same=("documents", "documents kept"),
            rounds=1,
            warm=False,
        ),
    ]
