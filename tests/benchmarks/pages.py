"""Records of WET files, and WET files cut from them."""

import gzip
import re
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from toolkit.text import split_lines

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
