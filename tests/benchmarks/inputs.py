"""The inputs of all benchmarks: made when first asked for, kept between runs."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from tests.benchmarks import datasets, pages
from tests.benchmarks.files import open_gzip
from tests.benchmarks.pages import WetFile
from tests.benchmarks.peers import HERE, MissingPeer, Peers
from tests.benchmarks.scales import WET_FILE, Scale
from toolkit import __version__
from toolkit.storage import models
from toolkit.text import split_lines

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
            files = pages.cut(self.sources, folder, max(self.scale.wet), WET_FILE)
            (folder / "files.json").write_bytes(msgspec.json.encode(files))
            return _sums(files)

        path = self.made("wet", make).path / "files.json"
        return msgspec.json.decode(path.read_bytes(), type=list[WetFile])

    def large(self, count: int, size: int) -> Input:
        """Large WET files, of a number of bytes of text each."""
        return self.made(f"large-{count}-{size}", lambda folder: _sums(pages.cut(self.sources, folder, count, size)))

    @cached_property
    def single(self) -> Input:
        """WET files of one document each."""
        return self.made("single", lambda folder: _sums(pages.cut(self.sources, folder, self.scale.single, 1)))

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
            return _sums(pages.cut(self.sources, folder, self.scale.shards, self.scale.shard))

        return self.made("crawl", make)

    @cached_property
    def dataset(self) -> Input:
        """The common dataset: documents, the sets that mixes join, and one in Dolma's form."""

        def make(folder: Path) -> tuple[int, dict[str, int]]:
            datasets.ingest(self.crawl.path, folder)
            datasets.tag(folder)
            datasets.write_spans(folder)
            return self.crawl.text, self.crawl.facts

        return self.made("dataset", make)

    @cached_property
    def slow(self) -> Input:
        """The first documents of the common dataset, for what is slower than 1 MB/s."""

        def make(folder: Path) -> tuple[int, dict[str, int]]:
            (folder / "documents" / "cc").mkdir(parents=True)
            text = documents = 0
            with open_gzip(folder / "documents" / "cc" / "00000.jsonl.gz", "wb") as out:
                for shard in datasets.shards(self.dataset.path):
                    for row in datasets.rows(shard):
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
                for shard in datasets.shards(self.dataset.path):
                    for row in datasets.rows(shard):
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
            text = datasets.repeat(self.dataset.path, folder, count, size)
            if tagged:
                datasets.tag(folder)
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
