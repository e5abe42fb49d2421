"""A mix with repeats, a budget and a shuffle, beside one of ours that writes as much without."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import datasets
from tests.benchmarks.cases.mix import SETS, THERE
from tests.benchmarks.commands import toolkit
from tests.benchmarks.files import open_gzip
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, faster


def written(folder: Path, usage: Usage) -> Counts:
    """How many rows there are, and MB of them."""
    rows = size = 0
    for path in sorted((folder / "out" / "documents").rglob("*.gz")):
        with open_gzip(path) as stream:
            for line in stream:
                rows += 1
                size += len(line)
    return {"rows": rows, "MB": size // 10**6}


def mixing(name: str, root: Path, text: int, rules: list[dict[str, Any]], mix: Any, output: Any) -> Contender:
    """A mix of ours, which has not seen the dataset before."""

    def command(folder: Path) -> Command:
        lent = datasets.lend(root, folder / "data", *THERE["own"])
        into = {"format": "dolma", "path": str(folder / "out"), **output}
        section = {"attributes": SETS["own"], "label": "language.label", "rules": rules, **mix, "output": into}
        config = {"dataset": str(lent), "processes": 1, "mix": section}
        return toolkit("mix", "-c", datasets.write_config(folder / "mix.yaml", config), "--quiet", "--json")

    return Contender(name, command, text, written)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    dataset = inputs.dataset
    root, text = dataset.path, dataset.text
    kept: dict[str, Any] = {"drop": "document.chars < 1"}
    curve = {"repeat": {"score": "language.prob", "curve": [[0.0, 1.5], [0.8, 2], [1.0, 3]]}}
    budget = {"budget": {"bytes": text, "by": "label"}}
    line, shuffle = {"provenance": "line"}, {"shuffle": {"seed": 1}}
    plain = mixing("one rule", root, text, [kept], {}, {})
    fields = mixing("one rule, provenance: line", root, text, [kept], {}, line)
    both = mixing("repeats and a budget", root, text, [kept, curve], budget, {})
    shuffled = mixing("one rule, shuffled", root, text, [kept], {}, shuffle)
    return [
        Benchmark(
            "Repeats, budgets, shuffles",
            f"Documents are repeated by a score, and a budget of bytes by language takes about as much of them as the "
            f"plain mix writes; {dataset.facts['documents']:,} documents. Rows whose metadata get a field, as the "
            f"number of a copy or `provenance` is, are written anew. {dataset.repeats}",
            (plain, fields, both, shuffled),
            (
                faster("plain / repeats and a budget", both, plain, at_least=1 / 1.15),
                faster("provenance / repeats and a budget", both, fields, at_least=1 / 1.15),
                faster("plain / shuffled", shuffled, plain),
            ),
        )
    ]
