"""Near duplicates, beside datatrove's four MinHash stages with the same bands; datatrove does not verify pairs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks import datasets, edited
from tests.benchmarks.cases.exact import NEW, new_of_all, seen
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Input, Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run, faster

SHARES = (0.01, 0.05, 0.25)
"""The shares of documents that share a bucket."""


def ours(name: str, given: Input, *more: str, **options: object) -> Contender:
    """The command `dedup` with one set of near duplicates."""

    def command(folder: Path) -> Command:
        lent = datasets.lend(given.path, folder / "data")
        path = edited.dedup(folder, lent, {"kind": "near", **options}, "near-0")
        return toolkit("dedup", "-c", path, "--quiet", "--json", *more)

    def counts(folder: Path, usage: Usage) -> Counts:
        told = usage.told.get("sets", {}).get("near-0")
        if told is None:  # a share has signatures alone
            return {"files": sum(path.is_file() for path in folder.rglob("signatures/**/*"))}
        counted = {name: told["counts"][name] for name in ("candidates", "duplicates") if name in told["counts"]}
        return {"documents": told["documents"], **counted}

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
        ),
        *(verification(inputs, share) for share in SHARES),
        added(inputs),
    ]


def verification(inputs: Inputs, share: float) -> Benchmark:
    """What verification takes beside signatures, where a share of the documents shares a bucket."""
    given = inputs.made(f"copies-{share}", lambda folder: edited.copies(inputs.dataset.path, folder, share))
    signatures = ours("signatures alone", given, "--shard", "0/1", preset="fineweb")
    unverified = ours("verify: false", given, preset="fineweb", verify=False)
    verified = ours("verified", given, preset="fineweb")

    def value(runs: Mapping[str, Run]) -> float:
        return (runs[verified.name].cpu - runs[unverified.name].cpu) / runs[signatures.name].cpu

    names = (signatures.name, unverified.name, verified.name)
    return Benchmark(
        f"Verification, {share:.0%} of the documents share a bucket",
        f"{given.facts['documents']:,} documents, those of the common dataset that share a bucket with none, and "
        f"copies with up to {edited.CHANGED:.0%} other words; one process.",
        (signatures, unverified, verified),
        (Figure("verification / signatures", names, value),),
    )


def added(inputs: Inputs) -> Benchmark:
    """What new shards take."""
    shards, size = edited.SHARDS[inputs.scale.name]
    given = inputs.made(
        f"edited-{shards}-{size}", lambda folder: edited.pages(inputs.dataset.path, folder, shards, size)
    )
    entry: dict[str, object] = {"kind": "near", "preset": "fineweb"}
    whole, new = seen("all shards, near", given, entry), seen("new shards, near", given, entry, NEW)
    return Benchmark(
        "Near duplicates of new shards",
        f"Pages that come again and again, with every fifth line another one; {shards} shards of {size // 10**6} MB of "
        "text, one process.",
        (whole, new),
        (new_of_all(new, whole),),
    )
