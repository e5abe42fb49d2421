"""Exact lines and paragraphs, beside Dolma's deduper; and what new shards take."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks import datasets, edited
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Input, Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run, faster

NEW = 0.1
"""The share of the shards that are new."""


def ours(name: str, given: Input, **options: object) -> Contender:
    """The command `dedup` with one set, after `ingest`."""

    def command(folder: Path) -> Command:
        lent = datasets.lend(given.path, folder / "data")
        return toolkit("dedup", "-c", edited.dedup(folder, lent, {"kind": "exact", **options}), "--quiet", "--json")

    return Contender(name, command, given.text, counts, output="data/attributes")


def counts(folder: Path, usage: Usage) -> Counts:
    (told,) = usage.told["sets"].values()
    return {"documents": told["documents"], **told["counts"]}


def seen(name: str, given: Input, entry: dict[str, object], new: float = 1.0) -> Contender:
    """The command where a share of the shards, the last ones, has not been there before."""
    shards = sorted(path.relative_to(given.path) for path in datasets.shards(given.path))
    last = shards[len(shards) - max(1, round(new * len(shards))) :]

    def command(folder: Path) -> Command:
        lent = edited.without_notes(given.path, folder / "data")
        path = edited.dedup(folder, lent, entry)
        if new < 1:
            for shard in last:
                (lent / shard).unlink()
            edited.run("dedup", path)
            for shard in last:
                (lent / shard).hardlink_to(given.path / shard)
        return toolkit("dedup", "-c", path, "--quiet", "--json")

    return Contender(
        name, command, given.text, counts, "data/attributes", f"{len(last)} of {len(shards)} shards are new"
    )


def new_of_all(new: Contender, whole: Contender) -> Figure:
    """What new shards take, as a part of a whole run."""

    def value(runs: Mapping[str, Run]) -> float:
        return runs[new.name].cpu / runs[whole.name].cpu

    return Figure(f"{new.name} / {whole.name}", (new.name, whole.name), value, at_most=0.15)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    shards, size = edited.SHARDS[inputs.scale.name]
    given = inputs.made(
        f"edited-{shards}-{size}",
        lambda folder: edited.pages(inputs.dataset.path, folder, shards, size),
    )

    def command(folder: Path) -> Command:
        lent = datasets.lend(given.path, folder / "data")
        bloom = {
            "file": str(folder / "filter.bin"),
            "read_only": False,
            "estimated_doc_count": given.text // 100,
            "desired_false_positive_rate": 1e-6,
        }
        paragraphs = {"attribute_name": "repeated"}
        config = {
            "documents": [f"{lent}/documents/cc/*.gz"],
            "dedupe": {"name": "repeated", "paragraphs": paragraphs, "skip_empty": True},
            "bloom_filter": bloom,
            "processes": 1,
        }
        path = datasets.write_config(folder / "dedupe.json", config)
        return [inputs.peers.python("dolma"), "-I", HERE / "dolma_run.py", "dedupe", path]

    def spans(folder: Path, usage: Usage) -> Counts:
        found = [row for path in (folder / "data" / "attributes").rglob("*.gz") for row in datasets.rows(path)]
        return {"documents": len(found), "spans": sum(len(row.attributes.get("repeated", [])) for row in found)}

    note = "its paragraphs are lines; a Bloom filter"
    dolma = Contender("Dolma's deduper", command, given.text, spans, "data/attributes", note)
    lines = ours("toolkit dedup: lines", given, unit="line")
    paragraphs = ours("toolkit dedup: paragraphs", given, unit="paragraph")
    entry: dict[str, object] = {"kind": "exact", "unit": "line"}
    whole, more = seen("all shards, lines", given, entry), seen("new shards, lines", given, entry, NEW)
    about = (
        f"Pages that come again and again, each time with every fifth line another one; {shards} shards of "
        f"{size // 10**6} MB of text, one process. Dolma and the first two of ours come after `ingest`; the others "
        "look at the documents for the first time."
    )
    figures = (
        faster("lines: Dolma / toolkit", lines, dolma, at_least=2.0),
        faster("paragraphs: Dolma / toolkit", paragraphs, dolma, at_least=2.0),
        new_of_all(more, whole),
    )
    return [Benchmark("Exact duplicates", about, (dolma, lines, paragraphs, whole, more), figures)]
