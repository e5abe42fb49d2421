"""Datasets as the toolkit has them: made with its own commands, repeated, and lent to runs that write beside them."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.benchmarks.commands import toolkit
from tests.benchmarks.files import open_gzip

SPANS = "spans-0"
"""The set in Dolma's form; both mixers read it."""
TAGGED = {"lines-0": "line_language", "language-0": {"tagger": "language", "lines": "lines-0"}, "shape-0": "line_shape"}


class Row(msgspec.Struct):
    """What is needed of a document or its attributes."""

    id: str
    source: str = ""
    text: str = ""
    attributes: dict[str, Any] = {}


def write_config(path: Path, config: dict[str, Any]) -> Path:
    """A configuration; JSON is YAML."""
    path.write_text(json.dumps(config, indent=1))
    return path


def shards(root: Path) -> list[Path]:
    """The documents of a dataset."""
    return sorted((root / "documents").rglob("*.jsonl.gz"))


def rows(path: Path) -> Iterator[Row]:
    """Of documents or attributes."""
    decoder = msgspec.json.Decoder(Row)
    with open_gzip(path) as stream:
        for line in stream:
            yield decoder.decode(line)


def lend(source: Path, target: Path, *sets: str) -> Path:
    """A dataset of the same files (hard links) with these sets alone, to be written beside."""
    notes = Path(".toolkit")
    for part in (
        Path("documents"),
        notes / "ingest",
        notes / "inputs",
        notes / "rows",
        notes / "record-log",
        *(place / name for name in sets for place in (Path("attributes"), notes / "sets")),
    ):
        for folder, _, files in os.walk(source / part):
            there = target / Path(folder).relative_to(source)
            there.mkdir(parents=True, exist_ok=True)
            for name in files:
                os.link(Path(folder) / name, there / name)
    return target


def ingest(wet: Path, root: Path) -> None:
    """Documents of WET files."""
    entry = {"format": "wet", "from": [f"{wet}/*.warc.wet.gz"], "source": "cc"}
    _make("ingest", root, {"ingest": [entry]})


def tag(root: Path) -> None:
    """The sets that mixes join."""
    _make("tag", root, {"tag": TAGGED})


def _make(command: str, root: Path, config: dict[str, Any]) -> None:
    path = write_config(root / "config.yaml", {"dataset": str(root), **config})
    done = subprocess.run([*toolkit(command, "-c", path), "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"expected inputs from `toolkit {command}`, got exit status {done.returncode}\n{done.stderr}")


def write_spans(root: Path) -> None:
    """A set in Dolma's form from ours: spans over the whole text, scores in the place of values."""
    for shard in shards(root):
        place = shard.relative_to(root / "documents")
        target = root / "attributes" / SPANS / place
        target.parent.mkdir(parents=True, exist_ok=True)
        joined = zip(
            rows(shard),
            rows(root / "attributes" / "language-0" / place),
            rows(root / "attributes" / "shape-0" / place),
            strict=True,
        )
        with open_gzip(target, "wb") as out:
            for document, language, shape in joined:
                lines, size = shape.attributes["line_shape"], len(document.text)
                scores = {
                    "bench__language__prob": language.attributes["language"]["prob"],
                    "bench__shape__chars": float(lines["chars"]),
                    "bench__shape__long": lines["long_chars"] / max(1, lines["chars"]),
                }
                attributes = {key: [[0, size, score]] for key, score in scores.items()}
                row = {"id": document.id, "attributes": attributes, "source": document.source}
                out.write(msgspec.json.encode(row) + b"\n")


def repeat(source: Path, root: Path, count: int, size: int) -> int:
    """Shards of a number of bytes of text each, of the documents of another dataset under other ids; all their text."""
    folder = root / "documents" / "cc"
    folder.mkdir(parents=True)
    again, total = _again(source), 0
    for number in range(count):
        text = 0
        with open_gzip(folder / f"{number:05d}.jsonl.gz", "wb") as out:
            while text < size:
                row, length = next(again)
                out.write(row)
                text += length
        total += text
    return total


def _again(source: Path) -> Iterator[tuple[bytes, int]]:
    """Rows of documents without end, and the bytes of their texts."""
    decoder, number = msgspec.json.Decoder(Row), 0
    while True:
        for shard in shards(source):
            with open_gzip(shard) as stream:
                for line in stream:
                    found = decoder.decode(line)
                    name = found.id.encode()
                    yield line.replace(name, name + b"#%d" % number, 1), len(found.text.encode())
        number += 1
