"""The inputs of all benchmarks: made when first asked for, kept between runs."""

import gzip
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, cast

import msgspec
from isal import igzip

from tests.benchmarks.measure import toolkit
from tests.benchmarks.peers import HERE, MissingPeer, Peers
from toolkit import __version__
from toolkit.storage import models
from toolkit.text import split_lines

# Datasets as the toolkit has them: made with its own commands, repeated, and lent to runs that write beside them.

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


def shards_of(root: Path) -> list[Path]:
    """The documents of a dataset."""
    return sorted((root / "documents").rglob("*.jsonl.gz"))


def rows_of(path: Path) -> Iterator[Row]:
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
    for shard in shards_of(root):
        place = shard.relative_to(root / "documents")
        target = root / "attributes" / SPANS / place
        target.parent.mkdir(parents=True, exist_ok=True)
        joined = zip(
            rows_of(shard),
            rows_of(root / "attributes" / "language-0" / place),
            rows_of(root / "attributes" / "shape-0" / place),
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
        for shard in shards_of(source):
            with open_gzip(shard) as stream:
                for line in stream:
                    found = decoder.decode(line)
                    name = found.id.encode()
                    yield line.replace(name, name + b"#%d" % number, 1), len(found.text.encode())
        number += 1


# Datasets with duplicates: pages again with other lines in them, and documents again with other words.

EDITED_SHARDS = {"small": (3, 3_000_000), "full": (20, 18_000_000), "large": (115, 18_000_000)}
"""How many shards of pages there are at each scale, and bytes of text of each."""
EDITED = 0.2
"""The share of the lines of a page that are others when it comes again."""
CHANGED = 0.02
"""The largest share of the words of a document that are others in its copy: then the Jaccard similarity of their word
5-grams is about 0.82."""
WORDS = 100
"""Words of a document that is copied, at least."""


def edited_pages(source: Path, root: Path, shards: int, size: int) -> tuple[int, dict[str, int]]:
    """Shards of a number of bytes of text each, of pages that come again with some other lines, as they are after
    `ingest`; all their text.
    """
    given = root / "given"
    given.mkdir()
    again, total = _edited_again(source), 0
    for number in range(shards):
        text = 0
        with open_gzip(given / f"{number:05d}.jsonl.gz", "wb") as out:
            while text < size:
                row = next(again)
                out.write(msgspec.json.encode({"id": row.id, "text": row.text}) + b"\n")
                text += len(row.text.encode())
        total += text
    entry = {"format": "jsonl", "from": [f"{given}/*.jsonl.gz"], "source": "cc"}
    path = write_config(root / "config.yaml", {"dataset": str(root), "ingest": [entry]})
    run_command("ingest", path)
    shutil.rmtree(given)
    return total, {}


def _edited_again(source: Path) -> Iterator[Row]:
    chance = random.Random(1)
    for number in count():
        for shard in shards_of(source):
            for row in rows_of(shard):
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
    made = [Row(f"{row.id}#copy", row.source, changed(row.text, chance)) for row in chosen]
    folder = root / "documents" / "cc"
    folder.mkdir(parents=True)
    rows = chance.sample(alone + made, len(alone) + len(made))
    size = -(-len(rows) // 8)
    for number in range(8):
        with open_gzip(folder / f"{number:05d}.jsonl.gz", "wb") as out:
            for row in rows[number * size : (number + 1) * size]:
                out.write(msgspec.json.encode(row) + b"\n")
    return sum(len(row.text.encode()) for row in rows), {"documents": len(rows)}


def _alone(source: Path, root: Path) -> Iterator[Row]:
    """Give the documents that no other shares a bucket with."""
    lent = lend(source, root / "lent")
    entry = {"kind": "near", "preset": "fineweb", "verify": False}
    path = write_config(root / "alone.yaml", {"dataset": str(lent), "dedup": {"near-0": entry}})
    run_command("dedup", path)
    for shard in shards_of(lent):
        values = rows_of(lent / "attributes" / "near-0" / shard.relative_to(lent / "documents"))
        for row, value in zip(rows_of(shard), values, strict=True):
            if value.attributes["near"]["cluster"] is None:
                yield Row(row.id, row.source, row.text)
    shutil.rmtree(lent)


def changed(text: str, chance: random.Random) -> str:
    """A text of which some words are others."""
    words = text.split(" ")
    for at in chance.sample(range(len(words)), round(chance.uniform(0, CHANGED) * len(words))):
        words[at] = f"w{chance.randrange(1 << 30)}"
    return " ".join(words)


def without_notes(given: Path, target: Path) -> Path:
    """The documents of a dataset (hard links) that nobody has looked at yet, to be written beside."""
    for path in shards_of(given):
        there = target / path.relative_to(given)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.hardlink_to(path)
    return target


def dedup_config(folder: Path, root: Path, entry: dict[str, object], name: str = "set-0") -> Path:
    """The configuration of a command that makes one set of duplicates."""
    config = {"dataset": str(root), "processes": 1, "dedup": {name: entry}}
    return write_config(folder / "dedup.yaml", config)


def run_command(command: str, path: Path) -> None:
    """Run a command of ours for what comes after it."""
    done = subprocess.run([*toolkit(command, "-c", path), "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"expected what `toolkit {command}` makes, got exit status {done.returncode}\n{done.stderr}")


# Compressed files of inputs and outputs.

LEVEL = 2
"""As documents and attributes are written."""


def open_gzip(path: Path, mode: Literal["rb", "wb"] = "rb") -> BinaryIO:
    """A gzip file, of lines."""
    return cast("BinaryIO", igzip.open(path, mode, compresslevel=LEVEL))  # type: ignore[no-untyped-call, unused-ignore]


# Records of WET files, and WET files cut from them.

LONG = 100
"""Code points from which a line is long enough for goclassy."""
_ID = re.compile(rb"(WARC-Record-ID: <urn:uuid:)([^>]+)(>)")
_LENGTH = re.compile(rb"Content-Length: *(\d+)", re.IGNORECASE)


class Record(NamedTuple):
    """A page, as it stands in its file."""

    head: bytes
    block: bytes

    def copy(self, number: int) -> "Record":
        """The same page under another id."""

        def other(found: re.Match[bytes]) -> bytes:
            name = uuid.uuid5(uuid.NAMESPACE_URL, f"{found[2].decode()}#{number}")
            return found[1] + str(name).encode() + found[3]

        return Record(_ID.sub(other, self.head, count=1), self.block)


class WetFile(msgspec.Struct):
    """What is in a WET file.

    Attributes:
        text: bytes.
        long_lines: of at least 100 code points.
        repeated: documents that an earlier file has, too.
    """

    name: str
    documents: int = 0
    text: int = 0
    lines: int = 0
    long_lines: int = 0
    repeated: int = 0


def records(paths: Sequence[Path]) -> Iterator[Record]:
    """The pages of WET files."""
    for path in paths:
        with gzip.open(path) as stream:
            while line := stream.readline():
                if not line.startswith(b"WARC/"):
                    continue
                head = [line]
                while (line := stream.readline()).strip():
                    head.append(line)
                found = _LENGTH.search(b"".join(head))
                block = stream.read(int(found[1]) if found else 0)
                if b"conversion" in head[1]:
                    yield Record(b"".join(head), block)


def endless(paths: Sequence[Path]) -> Iterator[tuple[Record, bool]]:
    """The pages of WET files again and again, and whether each has been there before; then its id is another."""
    number = 0
    while True:
        found = False
        for record in records(paths):
            found = True
            yield (record.copy(number) if number else record), bool(number)
        if not found:
            raise SystemExit(f"expected pages in {', '.join(map(str, paths)) or 'WET files'}, got none")
        number += 1


def cut(paths: Sequence[Path], folder: Path, count: int, size: int) -> list[WetFile]:
    """Cuts WET files of a number of bytes of text; each record is a gzip member, as in Common Crawl's."""
    pages, files = endless(paths), []
    for number in range(count):
        file = WetFile(f"{number:05d}.warc.wet.gz")
        with (folder / file.name).open("wb") as out:
            for (head, block), again in pages:
                out.write(gzip.compress(head + b"\r\n" + block + b"\r\n\r\n", 6, mtime=0))
                lines = split_lines(block.decode(errors="replace"))
                file.documents += 1
                file.text += len(block)
                file.lines += len(lines)
                file.long_lines += sum(len(line) >= LONG for line in lines)
                file.repeated += again
                if file.text >= size:
                    break
        files.append(file)
    return files


# How large the inputs are.

MB = 1_000_000


@dataclass(frozen=True)
class Scale:
    """Sizes in bytes of text.

    Attributes:
        shards, shard: how many shards the common dataset has, and of what size.
        lines: for the predictions alone.
        slow: for what is slower than 1 MB/s a core.
        wet: how many WET files (of about 2 MB) goclassy's table has.
        memory: of shards, one after the other.
        processes: shards for the runs with one and two processes, and their size.
        one: of one large WET file.
        single: inputs of one document each.
        texts: text files of one line each.
    """

    name: str
    shards: int
    shard: int
    lines: int
    slow: int
    wet: tuple[int, ...]
    memory: tuple[int, ...]
    processes: tuple[int, int]
    one: int
    single: int
    texts: int


SCALES = {
    "small": Scale(
        "small", 2, 3 * MB, 4 * MB, MB // 4, (2, 4), (10 * MB, 50 * MB), (2, 10 * MB), one=4 * MB, single=100, texts=50
    ),
    "full": Scale(
        "full",
        shards=8,
        shard=12 * MB,
        lines=24 * MB,
        slow=4 * MB,
        wet=(10, 100, 200),
        memory=(10 * MB, 100 * MB, 500 * MB, 1000 * MB, 2000 * MB),
        processes=(4, 100 * MB),
        one=107 * MB,
        single=20_000,
        texts=1_000,
    ),
}
SCALES["large"] = replace(SCALES["full"], name="large")
"""For duplicates, whose inputs have 2 GB then; everything else as it is."""

WET_FILE = 2 * MB


MODEL = "lid.176.ftz"
FORM = 1
"""Raised when inputs are made otherwise, so that old ones are not used."""


class Input(msgspec.Struct):
    """Something to read.

    Attributes:
        path: a file or folder.
        text: bytes, UTF-8, uncompressed.
        facts: further numbers.
    """

    path: Path
    text: int
    facts: dict[str, int] = {}

    @property
    def repeats(self) -> str:
        """A sentence that says what of it is there more than once."""
        if not (repeated := self.facts["repeated"]):
            return "No document is repeated."
        files = self.facts["files_repeating"]
        return f"{repeated:,} documents in {files} of the files repeat others under new ids: there are no more."


class Inputs:
    """Inputs of a scale.

    Args:
        data: a folder with WET files anywhere in it.
        folder: where inputs are kept.
        scale: how large they are.
        peers: one of them labels the lines.
        old: the ``toolkit`` program of an earlier version, to be compared with.
    """

    def __init__(self, data: Path, folder: Path, scale: Scale, peers: Peers, old: Path | None = None) -> None:
        self.scale = scale
        self.old = old
        self.peers = peers
        self._data = data
        self._kept = folder

    @cached_property
    def _folder(self) -> Path:
        """Another one for other data, other sizes, and another version of the toolkit."""
        made_from = [FORM, __version__, repr(self.scale), *((str(path), path.stat().st_size) for path in self.sources)]
        digest = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:8]
        return self._kept / f"{self.scale.name}-{digest}"

    @cached_property
    def sources(self) -> list[Path]:
        """The WET files that all is made from; those of the folder `bench` come first, for their many languages."""
        found = sorted(self._data.rglob("*.warc.wet.gz"), key=lambda path: ("bench" not in path.parts, path))
        if not found:
            raise SystemExit(f"expected WET files (*.warc.wet.gz) below {self._data}, got none; name a folder: --data")
        return found

    @cached_property
    def model(self) -> str:
        """The path of the model that all use."""
        return models.resolve(MODEL)

    def wet(self, count: int) -> Input:
        """WET files of about 2 MB of text, as in goclassy's table; a smaller count has the first of a larger."""

        def make(folder: Path) -> tuple[int, dict[str, int]]:
            files = self._all_wet()
            for file in files[:count]:
                (folder / file.name).hardlink_to(self._folder / "wet" / file.name)
            return _sums(files[:count])

        return self.made(f"wet-{count}", make)

    def _all_wet(self) -> list[WetFile]:
        def make(folder: Path) -> tuple[int, dict[str, int]]:
            files = cut(self.sources, folder, max(self.scale.wet), WET_FILE)
            (folder / "files.json").write_bytes(msgspec.json.encode(files))
            return _sums(files)

        path = self.made("wet", make).path / "files.json"
        return msgspec.json.decode(path.read_bytes(), type=list[WetFile])

    def large(self, count: int, size: int) -> Input:
        """Large WET files, of a number of bytes of text each."""
        return self.made(f"large-{count}-{size}", lambda folder: _sums(cut(self.sources, folder, count, size)))

    @cached_property
    def single(self) -> Input:
        """WET files of one document each."""
        return self.made("single", lambda folder: _sums(cut(self.sources, folder, self.scale.single, 1)))

    @cached_property
    def texts(self) -> Input:
        """Text files of one line each."""

        def make(folder: Path) -> tuple[int, dict[str, int]]:
            count = self.scale.texts
            for number in range(count):
                (folder / f"{number:05d}.txt").write_text(f"This is the only line of file {number}.\n")
            return sum(path.stat().st_size for path in folder.glob("*.txt")), {"files": count, "documents": count}

        return self.made("texts", make)

    @cached_property
    def crawl(self) -> Input:
        """WET files from which the common dataset is made."""

        def make(folder: Path) -> tuple[int, dict[str, int]]:
            return _sums(cut(self.sources, folder, self.scale.shards, self.scale.shard))

        return self.made("crawl", make)

    @cached_property
    def dataset(self) -> Input:
        """The common dataset: documents, the sets that mixes join, and one in Dolma's form."""

        def make(folder: Path) -> tuple[int, dict[str, int]]:
            ingest(self.crawl.path, folder)
            tag(folder)
            write_spans(folder)
            return self.crawl.text, self.crawl.facts

        return self.made("dataset", make)

    @cached_property
    def slow(self) -> Input:
        """The first documents of the common dataset, for what is slower than 1 MB/s."""

        def make(folder: Path) -> tuple[int, dict[str, int]]:
            (folder / "documents" / "cc").mkdir(parents=True)
            text = documents = 0
            with open_gzip(folder / "documents" / "cc" / "00000.jsonl.gz", "wb") as out:
                for shard in shards_of(self.dataset.path):
                    for row in rows_of(shard):
                        if text >= self.scale.slow:
                            return text, {"documents": documents}
                        out.write(msgspec.json.encode({"id": row.id, "text": row.text, "source": row.source}) + b"\n")
                        text += len(row.text.encode())
                        documents += 1
            return text, {"documents": documents}

        return self.made("slow", make)

    def lines(self, size: int | None = None) -> Input:
        """The lines of the common dataset in a text file, one behind the other, up to a number of bytes, or all."""

        def make(folder: Path) -> tuple[int, dict[str, int]]:
            text = lines = 0
            with (folder / "lines.txt").open("w", encoding="utf-8", newline="\n") as out:
                for shard in shards_of(self.dataset.path):
                    for row in rows_of(shard):
                        if size is not None and text >= size:
                            return text, {"lines": lines}
                        found = split_lines(row.text.replace("\0", ""))
                        out.writelines(f"{line}\n" for line in found)
                        text += sum(len(line.encode()) + 1 for line in found)
                        lines += len(found)
            return text, {"lines": lines}

        found = self.made(f"lines-{size or 'all'}", make)
        found.path /= "lines.txt"
        return found

    def labels(self, lines: Path) -> Path | None:
        """fastText's own label of each line of a file; None if it is not installed."""
        path = lines.with_name("labels.txt")
        if not path.is_file():
            try:
                python = self.peers.python("fasttext")
            except MissingPeer:
                return None
            driver = HERE / "fasttext_batch.py"
            new = path.with_name("labels.new")
            subprocess.run([python, "-I", driver, self.model, lines, new], check=True, stdout=subprocess.DEVNULL)
            new.rename(path)
        return path

    def repeated(self, count: int, size: int, *, tagged: bool = True) -> Input:
        """A dataset of some shards of a size, with the documents of the common one under other ids."""

        def make(folder: Path) -> tuple[int, dict[str, int]]:
            text = repeat(self.dataset.path, folder, count, size)
            if tagged:
                tag(folder)
            return text, {}

        return self.made(f"repeated-{count}-{size}", make)

    def made(self, name: str, make: Callable[[Path], tuple[int, dict[str, int]]]) -> Input:
        """An input that is there, or is made now: aside, and then renamed."""
        folder = self._folder / name
        note = folder / "made.json"
        if not note.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            new = self._folder / f"{name}.new"
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            text, facts = make(new)
            (new / "made.json").write_text(json.dumps({"text": text, "facts": facts}))
            new.rename(folder)
        made: dict[str, Any] = json.loads(note.read_text())
        return Input(folder, **made)


def _sums(files: list[WetFile]) -> tuple[int, dict[str, int]]:
    names = ("documents", "lines", "long_lines", "repeated")
    facts = {name: sum(getattr(file, name) for file in files) for name in names}
    repeating = sum(1 for file in files if file.repeated)
    return sum(file.text for file in files), {**facts, "files": len(files), "files_repeating": repeating}
