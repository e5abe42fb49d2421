"""``toolkit tag`` on documents of WET files, beside fastText's predictions alone and Dolma's tagger of paragraphs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks import datasets
from tests.benchmarks.cases.predict import batch
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run, faster

SET = "dolma-0"


def tagging(name: str, root: Path, text: int, processes: int = 1) -> Contender:
    """The taggers that mixes join, on a dataset without attributes."""

    def command(folder: Path) -> Command:
        lent = datasets.lend(root, folder / "data")
        config = {"dataset": str(lent), "processes": processes, "tag": datasets.TAGGED}
        return toolkit("tag", "-c", datasets.write_config(folder / "tag.yaml", config), "--quiet", "--json")

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"documents": usage.told["documents"]}

    return Contender(name, command, text, counts, output="data/attributes")


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    dataset, slow, lines = inputs.dataset, inputs.slow, inputs.lines()

    def dolma_command(folder: Path) -> Command:
        documents = datasets.lend(slow.path, folder / "data") / "documents" / "cc" / "*.gz"
        driver = HERE / "dolma_run.py"
        return [inputs.peers.python("dolma"), "-I", driver, "tag", inputs.model, documents, SET]

    def dolma_counts(folder: Path, usage: Usage) -> Counts:
        written = (folder / "data" / "attributes").rglob("*.gz")
        return {"documents": sum(1 for path in written for row in datasets.rows(path) if row.attributes)}

    def rate(runs: Mapping[str, Run]) -> float:
        """What more text takes more, so that start-up does not count."""
        more = (runs[ours.name].cpu - runs[little.name].cpu) / (ours.text - little.text)
        return runs[peer.name].get("inner") / peer.text / more

    peer = batch(inputs, lines.path, dataset.text)
    ours = tagging("toolkit tag", dataset.path, dataset.text)
    little = tagging("toolkit tag, Dolma's input", slow.path, slow.text)
    dolma = Contender(
        "Dolma ft_lang_id_paragraph_v1",
        dolma_command,
        slow.text,
        dolma_counts,
        output="data/attributes",
        note=f"smaller input, {slow.facts['documents']:,} documents; gives all labels of a paragraph, not the best",
    )
    return [
        Benchmark(
            "Tagging",
            f"`line_language`, `language` and `line_shape` on {dataset.facts['documents']:,} documents with "
            f"{dataset.facts['lines']:,} lines, beside fastText's predictions of these lines alone. {dataset.repeats}",
            (peer, dolma, little, ours),
            (
                faster("fastText predict alone / toolkit tag", ours, peer, at_least=4.0),
                faster("Dolma / toolkit tag", ours, dolma, at_least=100.0),
                faster("the same input: Dolma / toolkit tag", little, dolma),
                Figure(
                    "fastText predict alone / toolkit tag without start-up", (peer.name, ours.name, little.name), rate
                ),
            ),
            same=("documents",),
        )
    ]
