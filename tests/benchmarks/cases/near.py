"""Near duplicates, beside datatrove's four MinHash stages with the same bands; datatrove does not verify pairs."""

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import datasets
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Input, Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, faster


def ours(name: str, given: Input, **options: object) -> Contender:
    """The command `dedup` with one set of near duplicates."""

    def command(folder: Path) -> Command:
        lent = datasets.lend(given.path, folder / "data")
        config = {"dataset": str(lent), "processes": 1, "dedup": {"near-0": {"kind": "near", **options}}}
        return toolkit("dedup", "-c", datasets.write_config(folder / "dedup.yaml", config), "--quiet", "--json")

    def counts(folder: Path, usage: Usage) -> Counts:
        told = usage.told["sets"]["near-0"]
        return {"documents": told["documents"], "duplicates": told["counts"]["duplicates"]}

    return Contender(name, command, given.text, counts, output="data/attributes/near-0")


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    dataset, slow = inputs.dataset, inputs.slow

    def command(folder: Path) -> Command:
        python = inputs.peers.python("datatrove")
        return [python, "-I", HERE / "datatrove_minhash.py", slow.path / "documents", folder / "out"]

    def removed(folder: Path, usage: Usage) -> Counts:
        kept, gone = (
            sum(1 for path in (folder / "out" / name).rglob("*.gz") for _ in datasets.rows(path))
            for name in ("kept", "removed")
        )
        return {"documents": kept + gone, "duplicates": gone}

    theirs = Contender("datatrove MinHash, 4 stages", command, slow.text, removed, "out", "smaller input; not verified")
    verified = ours("toolkit dedup: near", dataset, preset="fineweb")
    unverified = ours("toolkit dedup: near, verify: false", dataset, preset="fineweb", verify=False)
    return [
        Benchmark(
            "Near duplicates",
            f"MinHash with 14 bands of 8 hashes over word 5-grams; {dataset.facts['documents']:,} documents, one "
            f"process. {dataset.repeats}",
            (theirs, verified, unverified),
            (faster("datatrove / toolkit, verified", verified, theirs, at_least=3.0),),
        )
    ]
