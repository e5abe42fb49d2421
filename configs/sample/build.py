"""Build the sample data set: two small gzip WET files made from ``pages.txt``.

The pages were written for this project, so the data set may be used and passed on with it. It has pages in many
languages and scripts, and one page for each case a corpus pipeline has to decide about. Run it with

    python configs/sample/build.py

It writes ``sample-00000.warc.wet.gz`` and ``sample-00001.warc.wet.gz`` next to itself, laid out as Common Crawl lays
out its WET files: a ``warcinfo`` record, then ``conversion`` records, each record a gzip member of its own. The
records are the same at each run; the compressed bytes are too, for a given version of zlib. Pages take turns: the
first page of ``pages.txt`` goes to the first file, the second to the second, and so on.

Pages whose slug starts with a language code are ordinary pages: a few short lines, at least five long ones. Those
that start with ``spe-`` are there to show something (a long line has at least 101 code points; trimming drops the
shorter lines at the start and at the end of a page):

========================  ===========================================================================================
slug                      what it shows
========================  ===========================================================================================
spe-multi-eng-fra         multilingual: 6 English and 6 French lines, taking turns
spe-multi-deu-ita-spa     multilingual: 4 German, 4 Italian and 4 Spanish lines, in blocks
spe-lowprob-eng-pol-swe   no clear language: 5 English, 4 Polish and 3 Swedish lines, so English has under 60 % of the
                          bytes; not multilingual either, as Swedish has under a third of the lines
spe-unidentified          no language at all: product codes, numbers and hexadecimal digits in long lines
spe-noisy-eng             noisy: English, but more than half of the code points are neither letters nor marks
spe-header-swe            header: a long line, then 8 menu lines, then 13 long lines
spe-footer-eng            footer: 13 long lines, then 8 link lines, then a long line
spe-shortlines-eng        short lines win: under 60 % of the characters are in long lines (a forum index)
spe-only-short            only short lines: trimming leaves nothing
spe-tiny-ind              tiny: two long lines
spe-manyshort-ita         short lines: more than half of the lines are short, but most characters are in long ones
spe-broken-utf8-fra       broken UTF-8: Latin-1 bytes (E9) and multi-byte sequences that stop half-way (E2 82, C3)
spe-crlf-nld              lines that end in CR LF
spe-unicode-por           emoji (one joined by U+200D), astral letters, combining marks, U+2028 inside a line, and
                          no-break spaces
spe-empty                 an empty page: Content-Length 0
========================  ===========================================================================================
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
import uuid
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE_COUNT = 2
FIRST_CAPTURE = datetime.fromisoformat("2024-05-18T01:58:10+00:00")
CAPTURE_STEP = timedelta(hours=3, minutes=17, seconds=41)
WRITTEN = "2024-05-31T01:16:46Z"
ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class Page:
    """One page of ``pages.txt``: its header line, and its body as the bytes of the WET record."""

    slug: str
    url: str
    languages: str
    note: str
    body: bytes


def read_pages(path: Path) -> list[Page]:
    """Parse ``pages.txt``; its first lines say how it is written."""
    pages: list[Page] = []
    header: list[str] = []
    lines: list[str] = []

    def finish() -> None:
        if not header:
            return
        slug, url, languages, note = header
        end = b"\r\n" if note.startswith("[crlf]") else b"\n"
        raw = (ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), line.encode()) for line in lines)
        pages.append(Page(slug, url, languages, note, b"".join(line + end for line in raw)))

    for number, line in enumerate(path.read_bytes().decode("utf-8").split("\n"), start=1):
        if line.startswith("==="):
            finish()
            header, lines = [field.strip() for field in line[3:].split("|", maxsplit=3)], []
            if len(header) != 4:
                raise ValueError(f"{path.name}, line {number}: a header needs 4 fields")
        elif header and line.strip():
            lines.append(line)
    finish()
    slugs = {page.slug for page in pages}
    if len(slugs) != len(pages):
        raise ValueError(f"{path.name}: a slug is used twice")
    return pages


def record_id(name: str) -> str:
    """A record identifier that depends on ``name`` alone."""
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'https://sample.example/{name}')}>"


def record(fields: Iterable[tuple[str, str]], body: bytes) -> bytes:
    """One WARC record: header lines, empty line, body, two line ends."""
    lines = ["WARC/1.0", *(f"{name}: {value}" for name, value in fields), f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body + b"\r\n\r\n"


def info_record(file_name: str) -> bytes:
    """The ``warcinfo`` record that opens a file."""
    info = [
        ("Software-Info", "configs/sample/build.py"),
        ("Extracted-Date", "Fri, 31 May 2024 01:16:46 GMT"),
        ("isPartOf", "SAMPLE-2024-22"),
        ("description", "Sample pages written for testing; nothing in this file was crawled"),
        ("format", "WARC File Format 1.0"),
    ]
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Date", WRITTEN),
        ("WARC-Filename", file_name),
        ("WARC-Record-ID", record_id(file_name)),
        ("Content-Type", "application/warc-fields"),
    ]
    return record(fields, "".join(f"{name}: {value}\r\n" for name, value in info).encode())


def page_record(page: Page, captured: datetime) -> bytes:
    """The ``conversion`` record of a page."""
    digest = hashlib.sha1(page.body, usedforsecurity=False).digest()
    fields = [
        ("WARC-Type", "conversion"),
        ("WARC-Target-URI", page.url),
        ("WARC-Date", captured.strftime("%Y-%m-%dT%H:%M:%SZ")),
        ("WARC-Record-ID", record_id(page.slug)),
        ("WARC-Refers-To", record_id(f"{page.slug}/response")),
        ("WARC-Block-Digest", "sha1:" + base64.b32encode(digest).decode()),
    ]
    if page.languages:
        fields.append(("WARC-Identified-Content-Language", page.languages))
    fields.append(("Content-Type", "text/plain"))
    return record(fields, page.body)


def gzip_member(data: bytes) -> bytes:
    """``data`` as one gzip member whose header has no time, no file name and no operating system."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + packed + struct.pack("<LL", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def main() -> None:
    """Write the files and say how large they are."""
    pages = read_pages(HERE / "pages.txt")
    for part in range(FILE_COUNT):
        name = f"sample-{part:05d}.warc.wet.gz"
        records = [info_record(name)]
        for position in range(part, len(pages), FILE_COUNT):
            records.append(page_record(pages[position], FIRST_CAPTURE + position * CAPTURE_STEP))
        data = b"".join(gzip_member(item) for item in records)
        (HERE / name).write_bytes(data)
        print(f"{name}: {len(records) - 1} pages, {len(data)} bytes")


if __name__ == "__main__":
    main()
