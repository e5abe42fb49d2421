"""Memory of a training mix against the size of the dataset: repeats, a budget and a shuffle, in files of tokens."""

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import datasets
from tests.benchmarks.cases.tokens import END, made_tokenizer
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Input, Inputs
from tests.benchmarks.race import Benchmark, Command, Contender, faster
from tests.benchmarks.scales import MB

COUNTS = (2, 10, 40)
"""Shards of the datasets."""
ROUNDS = 1
"""Peaks hardly vary."""
TARGET = 0.9


def _mixing(dataset: Input, tokenizer: Path, processes: int) -> Contender:
    """A mix of as many bytes of text as there are, of documents of which some are repeated and some are dropped."""

    def command(folder: Path) -> Command:
        output = {
            "format": "tokens", "path": str(folder / "out"), "tokenizer": str(tokenizer), "eod": END, "files": "pbin",
            "shuffle": {"seed": 1},
        }  # fmt: skip
        mix = {
            "rules": [{"repeat": {"score": "document.chars", "curve": [[0, 0], [1000, 1], [100_000, 3]]}}],
            "budget": {"bytes": dataset.text},
            "output": output,
        }
        lent = datasets.lend(dataset.path, folder / "data")
        config = {"dataset": str(lent), "processes": processes, "mix": mix}
        return toolkit("mix", "-c", datasets.write_config(folder / "mix.yaml", config), "--quiet")

    name = f"{dataset.text // MB:,} MB, {processes} process{'es' * (processes > 1)}"
    return Contender(name, command, dataset.text)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    tokenizer, size = made_tokenizer(inputs), inputs.scale.processes[1]
    made = [inputs.repeated(count, size, tagged=False) for count in COUNTS]
    first, middle, last = (_mixing(each, tokenizer, 1) for each in made)
    two = _mixing(made[1], tokenizer, 2)
    what = f"peak: {first.name} / {last.name}"
    return [
        Benchmark(
            "Training mixes",
            f"Shards of {size // MB} MB of text, documents repeated under other ids; a curve of repeats, a budget of "
            "as many bytes as there are, a shuffle, tokens of a byte-level BPE in `.pbin`.",
            (first, middle, last, two),
            (faster(what, last, first, metrics=("peak", "peak"), at_least=TARGET),),
            rounds=ROUNDS,
            warm=False,
        )
    ]
