"""Rows of a dataset in Python, joined, beside the dry run of a mix that reads the same."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import datasets
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, both, faster

SCRIPT = HERE.parent / "joined.py"
ATTRIBUTES = ["language.prob < 0.5", "line_shape.chars < 300", "line_shape.long_chars < 0.2 * line_shape.chars"]
DOCUMENTS = "metadata.warc_headers is None"
"""A rule for which a dry run reads the documents."""
HALF = 0.5


def _documents(folder: Path, usage: Usage) -> Counts:
    return {"documents": usage.told["documents"]}


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    dataset = inputs.dataset

    def contender(name: str, how: str, *rules: str) -> Contender:
        def command(folder: Path) -> Command:
            output = {"format": "dolma", "path": str(folder / "out")}
            lent = datasets.lend(dataset.path, folder / "data", *datasets.TAGGED)
            mix = {"attributes": ["language-0", "shape-0"], "rules": [{"drop": rule} for rule in rules]}
            config = {"dataset": str(lent), "processes": 1, "mix": {**mix, "output": output, "allow_empty": True}}
            return [sys.executable, SCRIPT, how, datasets.write_config(folder / "rows.yaml", config)]

        return Contender(name, command, dataset.text, _documents)

    quick = contender("dry run, attributes alone", "dry-run", *ATTRIBUTES)
    whole = contender("dry run that reads documents", "dry-run", *ATTRIBUTES, DOCUMENTS)
    facts = contender("joined(…, text=False)", "no-text", *ATTRIBUTES)
    rows = contender("joined(…)", "text", *ATTRIBUTES)
    arrow = contender("joined(…).to_arrow()", "arrow", *ATTRIBUTES)
    return [
        Benchmark(
            "In Python",
            f"Joined rows of {dataset.facts['documents']:,} documents, two sets, one process, every attribute used; "
            "start-up not counted.",
            (quick, facts, whole, rows, arrow),
            (
                faster("dry run / rows, without texts", facts, quick, metrics=both("inner"), at_least=HALF),
                faster("dry run / rows, with documents", rows, whole, metrics=both("inner"), at_least=HALF),
                faster("dry run / record batches, with documents", arrow, whole, metrics=both("inner")),
            ),
            same=("documents",),
        )
    ]
