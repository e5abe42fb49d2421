"""``toolkit run`` on one large WET file with one process, beside goclassy, fastText's pipeline, an earlier version."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import datasets
from tests.benchmarks.cases.goclassy import lines_of_pipeline, lines_of_texts, pipeline_command
from tests.benchmarks.cases.signals import SIGNALS
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Input, Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run, faster
from tests.benchmarks.report import core_hours_of
from tests.conftest import ROOT

SIGNAL_RULES = [
    {"drop": "gopher_quality.words < 50", "name": "few_words"},
    {"drop": "gopher_repetition.top_2gram_char_share > 0.2", "name": "repeated"},
    {"drop": "fineweb.short_line_ratio > 0.67", "name": "short_lines"},
]


def recipe(
    name: str, config: str, wet: Input, *options: str, program: Path | None = None, processes: int = 1
) -> Contender:
    """Return a ready configuration, from WET files to its output.

    Args:
        name: of the contender.
        config: a file of ``configs``.
        wet: the input.
        options: further arguments.
        program: of another version.
        processes: how many.
    """

    def command(folder: Path) -> Command:
        places = [f"dataset={folder / 'data'}", f"mix.output.path={folder / 'out'}", f"processes={processes}"]
        source = f"ingest.0.from=[{wet.path}/*.warc.wet.gz]"
        return toolkit(
            "run", "-c", ROOT / "configs" / config, source, *places, *options, "--quiet", "--json", program=program
        )

    def counts(folder: Path, usage: Usage) -> Counts:
        if config == "goclassy.yaml":
            return lines_of_texts(folder, usage)
        return {"documents kept": sum(each["documents"] for each in usage.told["mix"]["labels"].values())}

    return Contender(name, command, wet.text, counts)


def goclassy(inputs: Inputs, wet: Input) -> Contender:
    """Return goclassy's own program, with fastText's command line; its own lines."""

    def command(folder: Path) -> Command:
        program, fasttext = inputs.peers.goclassy(), inputs.peers.fasttext_binary()
        for name in ("wet", "data", "tmp", "classified", "fastText"):
            (folder / name).mkdir()
        (folder / "fastText" / "fasttext").symlink_to(fasttext)
        (folder / "fastText" / "lid.176.bin").symlink_to(inputs.model)
        for path in sorted(wet.path.glob("*.warc.wet.gz")):  # it follows no links
            (folder / "wet" / path.name).hardlink_to(path)
        return ["sh", "-c", 'cd "$0" && exec "$1" wet', folder, program]

    def counts(folder: Path, usage: Usage) -> Counts:
        texts = (path.open("rb") for path in sorted((folder / "classified").glob("*.txt")))
        return {"lines of goclassy": sum(bool(line.strip()) for text in texts for line in text)}

    note = "its last lines of pages without a line feed are lost, so it has a few less"
    return Contender("goclassy", command, wet.text, counts, "classified", note)


def pipeline(inputs: Inputs, wet: Input) -> Contender:
    """Return fastText's pipeline on the lines that goclassy classifies, one process."""

    def command(folder: Path) -> Command:
        return pipeline_command(inputs, wet.path, "long", 1, folder / "out")

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"lines kept": lines_of_pipeline(folder)[0]}

    return Contender("fastText pipeline, same lines", command, wet.text, counts)


def signals(name: str, wet: Input, program: Path | None = None) -> Contender:
    """Return six taggers of quality signals, from WET to parts in Dolma's form."""

    def command(folder: Path) -> Command:
        entry = {"format": "wet", "from": [f"{wet.path}/*.warc.wet.gz"], "source": "cc"}
        output = {"format": "dolma", "path": str(folder / "out")}
        config: dict[str, Any] = {"dataset": str(folder / "data"), "processes": 1, "ingest": [entry]}
        config |= {"tag": {"signals-0": [*SIGNALS]}}
        config["mix"] = {"attributes": ["signals-0"], "rules": SIGNAL_RULES, "output": output}
        path = datasets.write_config(folder / "run.yaml", config)
        return toolkit("run", "-c", path, "--quiet", "--json", program=program)

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"documents kept": sum(each["documents"] for each in usage.told["mix"]["labels"].values())}

    return Contender(name, command, wet.text, counts)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    wet = inputs.large(1, inputs.scale.one)
    about = f"One process, one WET file with {wet.facts['documents']:,} documents. {wet.repeats}"
    plain = recipe("toolkit run, goclassy.yaml, plain text", "goclassy.yaml", wet, "mix.output.compression=none")
    oscar = recipe("toolkit run, oscar-22.01.yaml", "oscar-22.01.yaml", wet)
    six = signals("toolkit run, six taggers", wet)
    shell, program = pipeline(inputs, wet), goclassy(inputs, wet)

    def core_hours(runs: Mapping[str, Run]) -> float:
        return core_hours_of(runs[oscar.name].cpu, wet.text)

    before: dict[Contender, Contender] = {}
    if inputs.old:
        none = "mix.output.compression=none"
        before[plain] = recipe("before, goclassy.yaml", "goclassy.yaml", wet, none, program=inputs.old)
        before[oscar] = recipe("before, oscar-22.01.yaml", "oscar-22.01.yaml", wet, program=inputs.old)
        before[six] = signals("before, six taggers", wet, inputs.old)
    return [
        Benchmark(
            "One WET file, goclassy",
            about,
            (shell, program, *([before[plain]] if before else []), plain),
            (
                faster("CPU: fastText pipeline, same lines / run", plain, shell, at_least=4.5),
                faster("CPU: goclassy / run", plain, program, at_least=3.5),
                faster("wall: fastText pipeline, same lines / run", plain, shell, metrics=("wall", "wall")),
                faster("wall: goclassy / run", plain, program, metrics=("wall", "wall")),
                *([faster("CPU: before / run", plain, before[plain])] if before else []),
            ),
            same=("lines kept",),
        ),
        Benchmark(
            "One WET file, OSCAR 22.01",
            about,
            (*([before[oscar]] if before else []), oscar),
            (
                *([faster("CPU: before / run", oscar, before[oscar], at_least=2.2)] if before else []),
                Figure("a TB of text, WET to OSCAR", (oscar.name,), core_hours, at_most=10.0, unit=" core-hours"),
            ),
            same=("documents kept",),
        ),
        Benchmark(
            "One WET file, six taggers of quality signals",
            f"{', '.join(f'`{name}`' for name in SIGNALS)}, three rules, Dolma's format. {about}",
            (*([before[six]] if before else []), six),
            tuple([faster("CPU: before / run", six, before[six], at_least=1.5)] if before else []),
            same=("documents kept",),
        ),
    ]
