"""Each command by itself, on the same data: what a terabyte costs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import datasets
from tests.benchmarks.cases.tag import tagging
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run

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
    names = (ingest.name, tag.name, mix.name)

    def core_hours(runs: Mapping[str, Run]) -> float:
        return sum(runs[name].cpu for name in names) / text * 1e12 / 3600

    return [
        Benchmark(
            "Commands",
            f"{crawl.facts['files']} WET files with {crawl.facts['documents']:,} documents to an OSCAR corpus: the "
            f"taggers `line_language`, `language` and `line_shape`, three rules, schema 22.01, `gzip`. {crawl.repeats}",
            (ingest, tag, mix, validate),
            (Figure("ingest, tag and mix of a TB of text", names, core_hours, unit=" core-hours"),),
            same=("documents",),
        )
    ]
