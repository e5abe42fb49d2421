"""What a file is, by its first bytes: for errors about one that is not of the format that it should be."""

import codecs
import re

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.storage.compression import compression_in

LOOKED_AT = 1 << 16
"""Bytes of a file's beginning that are looked at."""

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (rb"PAR1|PARE", "a Parquet file", "parquet"),
    (rb"ARROW1\0\0", "an Arrow file", "arrow"),
    (rb"\xff\xff\xff\xff..\0\0", "an Arrow stream", "arrow"),
    (rb"ORC[\x00-\x1f]", "an ORC file", ""),
    (rb"Obj\x01", "an Avro file", ""),
    (rb"PK\x03\x04|PK\x05\x06", "a zip archive (or an Excel file)", ""),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", ""),
    (rb".{257}ustar", "a tar archive", ""),
    (rb"%PDF-", "a PDF file", ""),
    (rb"SQLite format 3\0", "an SQLite database", ""),
    (rb"\x89HDF\r\n", "an HDF5 file", ""),
    (rb"\x93NUMPY", "a NumPy array", ""),
    (rb"\x80[\x02-\x05].{0,10}[\x8c\x95cX]", "a Python pickle", ""),
)
"""Files that no lines of text are in: the pattern of their beginning, what they are, the format that reads them."""

_MARKUP = re.compile(rb"\s*<(?:!doctype html|html|\?xml)\b", re.IGNORECASE)
_DELIMITERS = {b"\t": "tsv", b",": "csv", b";": "csv, delimiter: ;"}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def not_lines(head: bytes) -> str:
    """Return what a file is that has no lines of text, and the format that reads it; empty if it may have some."""
    for pattern, what, format in _MAGIC:
        if re.match(pattern, head, re.DOTALL):
            return _told(what, format)
    return ""


def recognised(head: bytes, format: str) -> str:
    """Return what a file is that is not of a format, and the format that reads it; empty if that is not known.

    Args:
        head: its first bytes, decompressed.
        format: of which it should be.
    """
    if not head:
        return "an empty file"
    if found := not_lines(head) or _compressed(head) or _text(head):
        return "" if f"`format: {format}`" in found else found
    return "bytes that are no text" if b"\0" in head and not head.startswith(_UTF16) else ""


def _told(what: str, *formats: str) -> str:
    named = " or ".join(f"`format: {format}`" for format in formats if format)
    return f"{what} ({named})" if named else what


def _compressed(head: bytes) -> str:
    found = compression_in(head)
    return f"{found} data inside, compressed twice; decompress it once" if found else ""


def _text(head: bytes) -> str:
    head = head.removeprefix(codecs.BOM_UTF8)
    if head.startswith(b"WARC/"):
        is_wet = b"WARC-Type: conversion" in head
        return _told("a WARC file of texts" if is_wet else "a WARC file", "wet" if is_wet else "warc")
    if _MARKUP.match(head):
        return "an HTML or XML page"
    lines = head.split(b"\n")
    start = head.lstrip()[:1]
    if start == b"{":
        return _json(lines[0]) if len(lines) > 1 else "JSON"
    if start == b"[":
        return "a JSON array; make it a line for each element: jq -c '.[]'"
    for delimiter, format in _DELIMITERS.items():
        counts = [line.count(delimiter) for line in lines[:3]]
        if len(lines) > 2 and counts[0] and counts[1] >= counts[0]:  # there may be some in quotes
            return _told("a table with a line for each row", format)
    return ""


def _json(line: bytes) -> str:
    try:
        row = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except BAD_ROW:
        return "JSON over several lines; make it a line for each document: jq -c ."
    if {"content", "warc_headers", "metadata"} <= row.keys():
        return _told("lines of OSCAR", "oscar")
    if {"id", "text", "source"} <= row.keys():
        return _told("documents in JSON Lines", "dolma", "jsonl")
    return _told("JSON Lines", "jsonl")
