"""All quality signals in one pass, beside a single filter of datatrove and a single tagger of Dolma."""

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import datasets
from tests.benchmarks.cases.documents import datatrove
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, faster

SIGNALS = ("statistics", "gopher_quality", "gopher_repetition", "c4", "fineweb", "redpajama")
SET = "gopher-0"


def tagging(name: str, root: Path, text: int, taggers: Sequence[str]) -> Contender:
    def command(folder: Path) -> Command:
        lent = datasets.lend(root, folder / "data")
        config = {"dataset": str(lent), "processes": 1, "tag": {"signals-0": list(taggers)}}
        return toolkit("tag", "-c", datasets.write_config(folder / "tag.yaml", config), "--quiet", "--json")

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"documents": usage.told["documents"]}

    return Contender(name, command, text, counts, output="data/attributes/signals-0")


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    dataset, slow = inputs.dataset, inputs.slow

    def dolma_command(folder: Path) -> Command:
        documents = datasets.lend(slow.path, folder / "data") / "documents" / "cc" / "*.gz"
        return [inputs.peers.python("dolma"), "-I", HERE / "dolma_run.py", "run", "gopher_v2", documents, SET]

    def dolma_counts(folder: Path, usage: Usage) -> Counts:
        written = (folder / "data" / "attributes" / SET).rglob("*.gz")
        return {"documents": sum(1 for path in written for row in datasets.rows(path) if row.attributes)}

    gopher = datatrove(inputs, "datatrove GopherQualityFilter", "gopher", slow, "smaller input; writes what it keeps")
    dolma = Contender("Dolma gopher_v2", dolma_command, slow.text, dolma_counts, "data/attributes", "smaller input")
    ours = tagging(f"toolkit tag: {len(SIGNALS)} taggers", dataset.path, dataset.text, SIGNALS)
    single = [tagging(f"toolkit tag: {name}", dataset.path, dataset.text, [name]) for name in SIGNALS]
    return [
        Benchmark(
            "Quality signals",
            f"{', '.join(f'`{name}`' for name in SIGNALS)} in one pass over {dataset.facts['documents']:,} documents, "
            f"and each by itself. {dataset.repeats}",
            (gopher, dolma, ours, *single),
            (
                faster("datatrove's Gopher quality filter / all six", ours, gopher, at_least=10.0),
                faster("Dolma gopher_v2 / all six", ours, dolma, at_least=5.0),
            ),
        )
    ]
