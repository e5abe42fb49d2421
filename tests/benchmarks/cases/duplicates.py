"""Exact and near duplicates, beside Dolma's deduper and datatrove's four MinHash stages; what new shards take."""

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.cases.ours import Config, figure, new_of_all, ours, rows_in
from tests.benchmarks.inputs import (
    CHANGED,
    EDITED_SHARDS,
    Input,
    Inputs,
    copies,
    dedup_config,
    edited_pages,
    lend,
    rows_of,
    run_command,
    shards_of,
    without_notes,
    write_config,
)
from tests.benchmarks.measure import Usage, toolkit
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, faster

NEW = 0.1
"""The share of the shards that are new."""
SHARES = (0.01, 0.05, 0.25)
"""The shares of documents that share a bucket."""
LINES: Config = {"kind": "exact", "unit": "line"}
NEAR: Config = {"kind": "near", "preset": "fineweb"}


def counts(folder: Path, usage: Usage) -> Counts:
    (told,) = usage.told.get("sets", {}).values() or [None]
    if told is None:  # a share has signatures alone
        return {"files": sum(path.is_file() for path in folder.rglob("signatures/**/*"))}
    return {"documents": told["documents"], **told["counts"]}


def dedup(name: str, given: Input, entry: Config, *options: str) -> Contender:
    """The command `dedup` with one set, after `ingest`."""
    return ours(
        name,
        "dedup",
        lambda folder: {"dedup": {"set-0": entry}},
        given,
        counts,
        output="data/attributes",
        options=options,
    )


def pages(inputs: Inputs) -> tuple[Input, str]:
    """Pages that come again with other lines, and what is said of them."""
    shards, size = EDITED_SHARDS[inputs.scale.name]
    name, source = f"edited-{shards}-{size}", inputs.dataset.path
    given = inputs.made(name, lambda folder: edited_pages(source, folder, shards, size))
    about = "Pages that come again and again, each time with every fifth line another one"
    return given, f"{about}; {shards} shards of {size // 10**6} MB of text, one process."


def seen(name: str, given: Input, entry: Config, new: float = 1.0) -> Contender:
    """The command where a share of the shards, the last ones, has not been there before."""
    shards = sorted(path.relative_to(given.path) for path in shards_of(given.path))
    last = shards[len(shards) - max(1, round(new * len(shards))) :]

    def command(folder: Path) -> Command:
        lent = without_notes(given.path, folder / "data")
        path = dedup_config(folder, lent, entry)
        if new < 1:
            for shard in last:
                (lent / shard).unlink()
            run_command("dedup", path)
            for shard in last:
                (lent / shard).hardlink_to(given.path / shard)
        return toolkit("dedup", "-c", path, "--quiet", "--json")

    note = f"{len(last)} of {len(shards)} shards are new"
    return Contender(name, command, given.text, counts, "data/attributes", note)


def exact(inputs: Inputs) -> Sequence[Benchmark]:
    """Exact lines and paragraphs, beside Dolma's deduper; and what new shards take."""
    given, about = pages(inputs)

    def command(folder: Path) -> Command:
        lent = lend(given.path, folder / "data")
        bloom = {
            "file": str(folder / "filter.bin"),
            "read_only": False,
            "estimated_doc_count": given.text // 100,
            "desired_false_positive_rate": 1e-6,
        }
        repeated = {"name": "repeated", "paragraphs": {"attribute_name": "repeated"}, "skip_empty": True}
        documents = [f"{lent}/documents/cc/*.gz"]
        config = {"documents": documents, "dedupe": repeated, "bloom_filter": bloom, "processes": 1}
        path = write_config(folder / "dedupe.json", config)
        return [inputs.peers.python("dolma"), "-I", HERE / "dolma_run.py", "dedupe", path]

    def spans(folder: Path, usage: Usage) -> Counts:
        found = [row for path in (folder / "data" / "attributes").rglob("*.gz") for row in rows_of(path)]
        return {"documents": len(found), "spans": sum(len(row.attributes.get("repeated", [])) for row in found)}

    note = "its paragraphs are lines; a Bloom filter"
    dolma = Contender("Dolma's deduper", command, given.text, spans, "data/attributes", note)
    lines = dedup("toolkit dedup: lines", given, LINES)
    paragraphs = dedup("toolkit dedup: paragraphs", given, {"kind": "exact", "unit": "paragraph"})
    whole, more = seen("all shards, lines", given, LINES), seen("new shards, lines", given, LINES, NEW)
    about += " Dolma and the first two of ours come after `ingest`; the others see the documents for the first time."
    figures = (
        faster("lines: Dolma / toolkit", lines, dolma, at_least=2.0),
        faster("paragraphs: Dolma / toolkit", paragraphs, dolma, at_least=2.0),
        new_of_all(more, whole),
    )
    return [Benchmark("Exact duplicates", about, (dolma, lines, paragraphs, whole, more), figures)]


def near(inputs: Inputs) -> Sequence[Benchmark]:
    """Near duplicates, beside datatrove's stages with the same bands; datatrove does not verify pairs."""
    dataset, slow = inputs.dataset, inputs.slow

    def command(folder: Path) -> Command:
        python = inputs.peers.python("datatrove")
        return [python, "-I", HERE / "datatrove_minhash.py", slow.path / "documents", folder / "out"]

    def removed(folder: Path, usage: Usage) -> Counts:
        kept, gone = (rows_in(folder / "out" / name) for name in ("kept", "removed"))
        return {"documents": kept + gone, "duplicates": gone}

    theirs = Contender("datatrove MinHash, 4 stages", command, slow.text, removed, "out", "smaller input; not verified")
    verified = dedup("toolkit dedup: near", dataset, NEAR)
    unverified = dedup("toolkit dedup: near, verify: false", dataset, {**NEAR, "verify": False})
    given, about = pages(inputs)
    whole, new = seen("all shards, near", given, NEAR), seen("new shards, near", given, NEAR, NEW)
    return [
        Benchmark(
            "Near duplicates",
            f"MinHash with 14 bands of 8 hashes over word 5-grams; {dataset.facts['documents']:,} documents, one "
            f"process. {dataset.repeats}",
            (theirs, verified, unverified),
            (faster("datatrove / toolkit, verified", verified, theirs, at_least=3.0),),
        ),
        *(_verification(inputs, share) for share in SHARES),
        Benchmark("Near duplicates of new shards", about, (whole, new), (new_of_all(new, whole),)),
    ]


def _verification(inputs: Inputs, share: float) -> Benchmark:
    """What verification takes beside signatures, where a share of the documents shares a bucket."""
    given = inputs.made(f"copies-{share}", lambda folder: copies(inputs.dataset.path, folder, share))
    signatures = dedup("signatures alone", given, NEAR, "--shard", "0/1")
    unverified = dedup("verify: false", given, {**NEAR, "verify": False})
    verified = dedup("verified", given, NEAR)
    contenders = (signatures, unverified, verified)
    return Benchmark(
        f"Verification, {share:.0%} of the documents share a bucket",
        f"{given.facts['documents']:,} documents, those of the common dataset that share a bucket with none, and "
        f"copies with up to {CHANGED:.0%} other words; one process.",
        contenders,
        (figure("verification / signatures", lambda a, b, c: (c.cpu - b.cpu) / a.cpu, *contenders),),
    )
