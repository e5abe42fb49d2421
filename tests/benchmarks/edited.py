"""Datasets with duplicates: pages again with other lines in them, and documents again with other words."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec

from tests.benchmarks import datasets
from tests.benchmarks.commands import toolkit
from tests.benchmarks.files import open_gzip

SHARDS = {"small": (3, 3_000_000), "full": (20, 18_000_000), "large": (115, 18_000_000)}
"""How many shards of pages there are at each scale, and bytes of text of each."""
EDITED = 0.2
"""The share of the lines of a page that are others when it comes again."""
CHANGED = 0.02
"""The largest share of the words of a document that are others in its copy: then the Jaccard similarity of their word
5-grams is about 0.82."""
WORDS = 100
"""Words of a document that is copied, at least."""


def pages(source: Path, root: Path, shards: int, size: int) -> tuple[int, dict[str, int]]:
    """Shards of a number of bytes of text each, of pages that come again with some other lines, as they are after
    `ingest`; all their text.
    """
    given = root / "given"
    given.mkdir()
    again, total = _again(source), 0
    for number in range(shards):
        text = 0
        with open_gzip(given / f"{number:05d}.jsonl.gz", "wb") as out:
            while text < size:
                row = next(again)
                out.write(msgspec.json.encode({"id": row.id, "text": row.text}) + b"\n")
                text += len(row.text.encode())
        total += text
    entry = {"format": "jsonl", "from": [f"{given}/*.jsonl.gz"], "source": "cc"}
    path = datasets.write_config(root / "config.yaml", {"dataset": str(root), "ingest": [entry]})
    run("ingest", path)
    shutil.rmtree(given)
    return total, {}


def _again(source: Path) -> Iterator[datasets.Row]:
    chance = random.Random(1)
    for number in count():
        for shard in datasets.shards(source):
            for row in datasets.rows(shard):
                if number:
                    lines = row.text.split("\n")
                    for i in range(len(lines)):
                        if lines[i] and chance.random() < EDITED:
                            lines[i] += f" {chance.randrange(1 << 30)}"
                    row.id, row.text = f"{row.id}#{number}", "\n".join(lines)
                yield row


def copies(source: Path, root: Path, share: float) -> tuple[int, dict[str, int]]:
    """The documents of a dataset that share no bucket with others, and copies so that a share of all share one.

    Returns:
        All their text; how many documents there are.
    """
    alone = list(_alone(source, root))
    chance = random.Random(2)
    long = [row for row in alone if row.text.count(" ") >= WORDS]
    chosen = chance.sample(long, round(len(alone) * share / (2 - share)))
    made = [datasets.Row(f"{row.id}#copy", row.source, changed(row.text, chance)) for row in chosen]
    folder = root / "documents" / "cc"
    folder.mkdir(parents=True)
    rows = chance.sample(alone + made, len(alone) + len(made))
    size = -(-len(rows) // 8)
    for number in range(8):
        with open_gzip(folder / f"{number:05d}.jsonl.gz", "wb") as out:
            for row in rows[number * size : (number + 1) * size]:
                out.write(msgspec.json.encode(row) + b"\n")
    return sum(len(row.text.encode()) for row in rows), {"documents": len(rows)}


def _alone(source: Path, root: Path) -> Iterator[datasets.Row]:
    """Give the documents that no other shares a bucket with."""
    lent = datasets.lend(source, root / "lent")
    entry = {"kind": "near", "preset": "fineweb", "verify": False}
    path = datasets.write_config(root / "alone.yaml", {"dataset": str(lent), "dedup": {"near-0": entry}})
    run("dedup", path)
    for shard in datasets.shards(lent):
        values = datasets.rows(lent / "attributes" / "near-0" / shard.relative_to(lent / "documents"))
        for row, value in zip(datasets.rows(shard), values, strict=True):
            if value.attributes["near"]["cluster"] is None:
                yield datasets.Row(row.id, row.source, row.text)
    shutil.rmtree(lent)


def changed(text: str, chance: random.Random) -> str:
    """A text of which some words are others."""
    words = text.split(" ")
    for at in chance.sample(range(len(words)), round(chance.uniform(0, CHANGED) * len(words))):
        words[at] = f"w{chance.randrange(1 << 30)}"
    return " ".join(words)


def without_notes(given: Path, target: Path) -> Path:
    """The documents of a dataset (hard links) that nobody has looked at yet, to be written beside."""
    for path in datasets.shards(given):
        there = target / path.relative_to(given)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.hardlink_to(path)
    return target


def dedup(folder: Path, root: Path, entry: dict[str, object], name: str = "set-0") -> Path:
    """The configuration of a command that makes one set of duplicates."""
    config = {"dataset": str(root), "processes": 1, "dedup": {name: entry}}
    return datasets.write_config(folder / "dedup.yaml", config)


def run(command: str, path: Path) -> None:
    """Run a command of ours for what comes after it."""
    done = subprocess.run([*toolkit(command, "-c", path), "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"expected what `toolkit {command}` makes, got exit status {done.returncode}\n{done.stderr}")
