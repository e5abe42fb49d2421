"""Each command by itself, on the same data: what a terabyte costs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import datasets
from tests.benchmarks.cases.tag import tagging
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run, faster
from tests.benchmarks.report import core_hours_of

RULES = [
    {"drop": "language.label is None", "name": "unidentified"},
    {"drop": "language.prob < 0.6 and not language.multilingual", "name": "unsure"},
    {"annotate": "short_sentences", "when": "line_shape.short > line_shape.lines // 2"},
]


def ingesting(wet: Path, text: int) -> Contender:
    """WET files to documents."""

    def command(folder: Path) -> Command:
        entry = {"format": "wet", "from": [f"{wet}/*.warc.wet.gz"], "source": "cc"}
        config = {"dataset": str(folder / "data"), "processes": 1, "ingest": [entry]}
        return toolkit("ingest", "-c", datasets.write_config(folder / "in.yaml", config), "--quiet", "--json")

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"documents": usage.told["counts"]["documents"]}

    return Contender("toolkit ingest", command, text, counts, output="data/documents")


def whole(root: Path | str, entry: Mapping[str, Any], **output: str) -> dict[str, Any]:
    """The configuration of a run with one process, from inputs to an OSCAR corpus."""
    places = {"format": "oscar", "path": f"{root}/out", **output}
    mix = {"attributes": [*datasets.TAGGED], "rules": RULES, "output": places}
    return {"dataset": f"{root}/data", "processes": 1, "ingest": [dict(entry)], "tag": datasets.TAGGED, "mix": mix}


def running(name: str, wet: Path, text: int, program: Path | None = None) -> Contender:
    """Ingest, tag and mix in one command."""

    def command(folder: Path) -> Command:
        entry = {"format": "wet", "from": [f"{wet}/*.warc.wet.gz"], "source": "cc"}
        path = datasets.write_config(folder / "run.yaml", whole(folder, entry))
        return toolkit("run", "-c", path, "--quiet", "--json", program=program)

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"kept": sum(each["documents"] for each in usage.told["mix"]["labels"].values())}

    return Contender(name, command, text, counts)


def oscar(root: Path, text: int, *, name: str = "toolkit mix", processes: int = 1) -> Contender:
    """An OSCAR corpus from a dataset with attributes."""

    def command(folder: Path) -> Command:
        lent = datasets.lend(root, folder / "data", *datasets.TAGGED)
        mix: dict[str, Any] = {"attributes": [*datasets.TAGGED], "rules": RULES}
        mix["output"] = {"format": "oscar", "path": str(folder / "out")}
        config = {"dataset": str(lent), "processes": processes, "mix": mix}
        return toolkit("mix", "-c", datasets.write_config(folder / "mix.yaml", config), "--quiet", "--json")

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"kept": sum(each["documents"] for each in usage.told["labels"].values())}

    return Contender(name, command, text, counts)


def validating(root: Path, text: int) -> Contender:
    """Documents and attributes of a dataset."""

    def command(folder: Path) -> Command:
        config = {"dataset": str(datasets.lend(root, folder / "data", *datasets.TAGGED)), "processes": 1}
        return toolkit("validate", "-c", datasets.write_config(folder / "check.yaml", config), "--quiet", "--json")

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"sets and datasets": len(usage.told["checked"])}

    return Contender("toolkit validate", command, text, counts)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    crawl, dataset = inputs.crawl, inputs.dataset
    text = dataset.text
    ingest = ingesting(crawl.path, text)
    tag = tagging("toolkit tag", dataset.path, text)
    mix = oscar(dataset.path, text)
    validate = validating(dataset.path, text)
    run = running("toolkit run", crawl.path, text)
    before = running("before, run", crawl.path, text, inputs.old)
    compared = bool(inputs.old)

    def core_hours(runs: Mapping[str, Run]) -> float:
        return core_hours_of(sum(each.cpu for each in runs.values()), text)

    def hours(what: str, *names: str, at_most: float | None = None) -> Figure:
        return Figure(f"{what} of a TB of text", names, core_hours, at_most=at_most, unit=" core-hours")

    return [
        Benchmark(
            "Commands",
            f"{crawl.facts['files']} WET files with {crawl.facts['documents']:,} documents to an OSCAR corpus: the "
            f"taggers `line_language`, `language` and `line_shape`, three rules, schema 22.01, `gzip`. {crawl.repeats}",
            (ingest, tag, mix, *([before] if compared else []), run, validate),
            (
                hours("ingest, tag and mix", ingest.name, tag.name, mix.name),
                hours("run", run.name, at_most=10.0),
                *([faster("CPU: before / run", run, before)] if compared else []),
            ),
            same=("documents", "kept"),
        )
    ]
