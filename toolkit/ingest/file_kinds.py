"""Recognise a file by its first bytes, for errors about wrong formats."""

import codecs
import re
from typing import NamedTuple

import msgspec

from toolkit.data.documents import BAD_ROW, lone_surrogate
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
_DELIMITERS = {b"\t": ("tsv", ""), b",": ("csv", ""), b";": ("csv", ";"), b"|": ("csv", "|")}
_OF_JSON = ("jsonl", "dolma", "oscar")
"""Formats of lines of JSON: of a line that goes on behind the first bytes nobody knows which one it is."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class FileKind(NamedTuple):
    """The kind of a file.

    Attributes:
        kind: Description in words.
        formats: Formats that read it.
        delimiter: Delimiter that the format must be told.
    """

    kind: str
    formats: tuple[str, ...] = ()
    delimiter: str = ""

    def __str__(self) -> str:
        more = f", delimiter: {self.delimiter}" if self.delimiter else ""
        named = " or ".join(f"`format: {format}{more}`" for format in self.formats)
        return f"{self.kind} ({named})" if named else self.kind


def binary_kind(head: bytes) -> str:
    """Return the description of a file without lines of text; empty if it may have some."""
    return str(result) if (result := _by_magic(head)) else ""


def wrong_format(head: bytes, format: str) -> str:
    """Return the description of a file of another format; empty if that is not known.

    Args:
        head: its first bytes, decompressed.
        format: Format of which it should be.
    """
    result = kind_of(head)
    return "" if result is None or (format in result.formats and not result.delimiter) else str(result)


def kind_of(head: bytes) -> FileKind | None:
    """Return the kind of a file by its first bytes, decompressed; None if they do not tell."""
    if not head:
        return FileKind("an empty file")
    if result := _by_magic(head) or _compressed(head) or _text(head):
        return result
    return FileKind("bytes that are no text") if b"\0" in head and not head.startswith(_UTF16) else None


def _by_magic(head: bytes) -> FileKind | None:
    for pattern, kind, format in _MAGIC:
        if re.match(pattern, head, re.DOTALL):
            return FileKind(kind, (format,) if format else ())
    return None


def _compressed(head: bytes) -> FileKind | None:
    compression = compression_in(head)
    return FileKind(f"{compression} data inside, compressed twice; decompress it once") if compression else None


def _text(head: bytes) -> FileKind | None:
    head = head.removeprefix(codecs.BOM_UTF8)
    if head.startswith(b"WARC/"):
        is_wet = b"WARC-Type: conversion" in head
        return FileKind("a WARC file of texts", ("wet",)) if is_wet else FileKind("a WARC file", ("warc",))
    if _MARKUP.match(head):
        return FileKind("an HTML or XML page")
    if head.startswith(b"__label__"):
        return FileKind("labelled lines of fastText", ("fasttext",))
    lines = head.split(b"\n")
    start = head.lstrip()[:1]
    if start == b"{" and b'"@context"' in head and b"mlcommons.org/croissant" in head:
        return FileKind("a Croissant file", ("croissant",))
    if start == b"{":
        return _json(lines[0]) if len(lines) > 1 else FileKind("JSON", _OF_JSON)
    if start == b"[":
        return FileKind("a JSON array; make it a line for each element: jq -c '.[]'")
    for mark, (format, delimiter) in _DELIMITERS.items():
        counts = [line.count(mark) for line in lines[:3]]
        if len(lines) > 2 and counts[0] and counts[1] >= counts[0]:  # there may be some in quotes
            return FileKind("a table with a line for each row", (format,), delimiter)
    return None


def _json(line: bytes) -> FileKind | None:
    """Return the kind of lines of JSON by the first; None of one that is wrong, and no beginning of an object."""
    try:
        row = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except BAD_ROW as error:
        is_begun = "truncated" in str(error) and not lone_surrogate(line)
        return FileKind("JSON over several lines; make it a line for each document: jq -c .") if is_begun else None
    if {"content", "warc_headers", "metadata"} <= row.keys():
        return FileKind("lines of OSCAR", ("oscar",))
    if {"id", "text", "source"} <= row.keys():
        return FileKind("documents in JSON Lines", ("dolma", "jsonl"))
    return FileKind("JSON Lines", ("jsonl",))
