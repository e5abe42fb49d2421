"""Filters of whole documents, beside datatrove's."""

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import datasets
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Input, Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, faster

THRESHOLD = 0.65
"""datatrove's default."""


def kept(folder: Path, usage: Usage) -> Counts:
    files = [path for path in (folder / "out").rglob("*.jsonl.gz") if ".toolkit" not in path.parts]
    return {"kept": sum(1 for path in files for _ in datasets.rows(path))}


def datatrove(inputs: Inputs, name: str, filter_: str, given: Input, note: str = "") -> Contender:
    """A filter of datatrove between its reader and its writer."""

    def command(folder: Path) -> Command:
        cache = inputs.peers.folder / "datatrove-assets"
        python, documents = inputs.peers.python("datatrove"), given.path / "documents"
        return [python, "-I", HERE / "datatrove_run.py", filter_, documents, folder / "out", inputs.model, cache]

    return Contender(name, command, given.text, kept, note=note)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    dataset = inputs.dataset

    def command(folder: Path) -> Command:
        config = {
            "dataset": str(datasets.lend(dataset.path, folder / "data")),
            "processes": 1,
            "tag": {"text-0": "text_language"},
            "mix": {
                "attributes": ["text-0"],
                "rules": [{"keep": f"text_language.prob > {THRESHOLD}"}],
                "output": {"format": "dolma", "path": str(folder / "out")},
            },
        }
        return toolkit("run", "-c", datasets.write_config(folder / "run.yaml", config), "--quiet", "--json")

    language = datatrove(inputs, "datatrove LanguageFilter", "language", dataset)
    ours = Contender("toolkit run: text_language, keep", command, dataset.text, kept)
    return [
        Benchmark(
            "Documents",
            f"The language of each document as a whole, with the same model; those with a probability above "
            f"{THRESHOLD} are written. {dataset.facts['documents']:,} documents, one process, gzip. {dataset.repeats}",
            (language, ours),
            (faster("LanguageFilter: datatrove / toolkit", ours, language),),
            same=("kept",),
        )
    ]
