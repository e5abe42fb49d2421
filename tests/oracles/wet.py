"""Pages as a WET file, for configurations and programs that read those."""

import json
from pathlib import Path

from toolkit.storage.compression import compressor_for

HEADER = "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {id}\r\nWARC-Date: 2024-05-18T01:58:10Z\r\n"
HOST = "http://oracle.example/"


def bytes_of(page: str | bytes) -> tuple[str, bytes]:
    """Return the id and the text of a row of pages, which ends in a line feed, as those of Common Crawl do.

    A page with ``encoding`` in its metadata has bytes in it that are no UTF-8.
    """
    row = json.loads(page)
    text = row["text"] if row["text"].endswith("\n") else row["text"] + "\n"
    return row["id"], text.encode(row.get("metadata", {}).get("encoding", "utf-8"))


def write_wet(pages: Path, path: Path) -> Path:
    """Write the pages of JSON Lines as a WET file, a gzip member a record; the record ids are those of the pages."""
    compress = compressor_for(str(path))
    with pages.open("rb") as lines, path.open("wb") as out:
        out.write(compress(_record("warcinfo", "info", "", b"format: WARC File Format 1.0\r\n")))
        for number, line in enumerate(lines):
            id, block = bytes_of(line)
            out.write(compress(_record("conversion", id, f"WARC-Target-URI: {HOST}{number}\r\n", block)))
    return path


def _record(kind: str, id: str, more: str, block: bytes) -> bytes:
    head = f"{HEADER.format(kind=kind, id=id)}{more}Content-Type: text/plain\r\nContent-Length: {len(block)}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"
