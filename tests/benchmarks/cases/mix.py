"""``toolkit mix`` with three rules, beside Dolma's mixer."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.benchmarks import datasets
from tests.benchmarks.commands import toolkit
from tests.benchmarks.datasets import SPANS
from tests.benchmarks.files import open_gzip
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, both, faster

LIMITS = {"bench__language__prob": 0.5, "bench__shape__chars": 300.0, "bench__shape__long": 0.2}
OURS = {
    "span": [f"any(span.score < {limit} for span in {key})" for key, limit in LIMITS.items()],
    "own": [
        f"language.prob < {LIMITS['bench__language__prob']}",
        f"line_shape.chars < {LIMITS['bench__shape__chars']}",
        f"line_shape.long_chars < {LIMITS['bench__shape__long']} * line_shape.chars",
    ],
}
SETS = {"span": [SPANS], "own": ["language-0", "shape-0"]}
THERE = {"span": [SPANS], "own": [*datasets.TAGGED]}
"""What a mix of these finds: `language-0` was made from another set, whose records are looked at."""


class _Mixed(msgspec.Struct):
    id: str
    text: str
    source: str
    metadata: Any


def mixed(folder: Path, usage: Usage) -> Counts:
    """How many documents came out, and a digest of them: ids, texts, and all of the metadata."""
    decoder, digests = msgspec.json.Decoder(_Mixed), []
    for path in sorted((folder / "out").rglob("*.json*.gz")):
        if ".toolkit" in path.parts:
            continue
        with open_gzip(path) as stream:
            for line in stream:
                row = msgspec.json.encode(decoder.decode(line), order="deterministic")
                digests.append(hashlib.sha256(row).digest())
    return {"kept": len(digests), "rows": hashlib.sha256(b"".join(sorted(digests))).hexdigest()[:8]}


def native(root: Path, out: Path, sets: str, compression: str, processes: int = 1) -> dict[str, Any]:
    """A configuration of ours; documents get the provenance that Dolma writes."""
    rules = [{"drop": rule} for rule in OURS[sets]]
    output = {
        "format": "dolma",
        "path": str(out),
        "layout": "mixer",
        "name": "mixed",
        "provenance": "line",
        "compression": compression,
    }
    return {
        "dataset": str(root),
        "processes": processes,
        "mix": {"attributes": SETS[sets], "rules": rules, "output": output},
    }


def dolma_config(root: Path, folder: Path) -> dict[str, Any]:
    """The same for Dolma's mixer."""
    exclude = [f"$.attributes[?(@.{key} && @.{key}[0] && @.{key}[0][2] < {limit})]" for key, limit in LIMITS.items()]
    stream = {
        "name": "mixed",
        "documents": [f"{root}/documents/cc/*.gz"],
        "attributes": [SPANS],
        "filter": {"exclude": exclude},
        "output": {"path": str(folder / "out"), "discard_fields": ["attributes"]},
    }
    work = {name: str(folder / f"work-{name}") for name in ("input", "output")}
    return {"streams": [stream], "work_dir": work, "processes": 1}


def mixing(name: str, root: Path, text: int, sets: str, compression: str, processes: int = 1) -> Contender:
    """A mix of ours, which has not seen the dataset before."""

    def command(folder: Path) -> Command:
        lent = datasets.lend(root, folder / "data", *THERE[sets])
        config = native(lent, folder / "out", sets, compression, processes)
        return toolkit("mix", "-c", datasets.write_config(folder / "mix.yaml", config), "--quiet", "--json")

    return Contender(name, command, text, mixed)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    dataset = inputs.dataset
    root, text = dataset.path, dataset.text

    def peer_command(folder: Path) -> Command:
        lent = datasets.lend(root, folder / "data", SPANS)
        config = datasets.write_config(folder / "mix.json", dolma_config(lent, folder))
        return [inputs.peers.python("dolma"), "-I", HERE / "dolma_run.py", "mix", config]

    def as_it_is(folder: Path) -> Command:
        lent = datasets.lend(root, folder / "data", SPANS)
        config = datasets.write_config(folder / "mix.json", dolma_config(lent, folder))
        return toolkit("mix", "-c", config, "--quiet", "--json")

    dolma = Contender("Dolma mix", peer_command, text, mixed)
    fast = mixing("toolkit mix, gzip-fast", root, text, "span", "gzip-fast")
    small = mixing("toolkit mix, gzip", root, text, "span", "gzip")
    own = mixing("toolkit mix, own sets, gzip-fast", root, text, "own", "gzip-fast")
    own_small = mixing("toolkit mix, own sets, gzip", root, text, "own", "gzip")
    theirs = Contender("toolkit mix, Dolma's configuration", as_it_is, text, mixed, note="gzip")
    return [
        Benchmark(
            "Mixing",
            f"Three rules drop documents by numbers that attributes have; {dataset.facts['documents']:,} documents. "
            f"Both mixers join the same set in Dolma's form; `own sets`: the sets that it was made from, as `toolkit "
            f"tag` writes them. `rows` is a digest of all that came out, provenance included. {dataset.repeats}",
            (dolma, fast, small, own, own_small, theirs),
            (
                faster("gzip-fast: Dolma / toolkit", fast, dolma, at_least=4.0),
                faster("gzip: Dolma / toolkit", small, dolma, at_least=2.0),
                faster("own sets, gzip-fast: Dolma / toolkit", own, dolma),
                faster("own sets, gzip: Dolma / toolkit", own_small, dolma),
                faster("Dolma's configuration: Dolma / toolkit", theirs, dolma),
                faster("size, gzip-fast: Dolma / toolkit", fast, dolma, metrics=both("output"), at_least=1 / 1.15),
                faster("size, gzip: Dolma / toolkit", small, dolma, metrics=both("output")),
            ),
            same=("kept", "rows"),
        )
    ]
