"""The texts, lines and paragraphs of documents, as they are compared, with their places."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import xxhash

from toolkit.data.documents import Document
from toolkit.dedup.exact import normalize
from toolkit.dedup.exact.normalize import Normalisation

Unit = Literal["document", "line", "paragraph"]


class Pieces(NamedTuple):
    """The pieces of a text.

    Attributes:
        compared: what is compared of each, in UTF-8; empty if it is not compared.
        sizes: code points from the start of each to that of the next; the last ends with the text.
        before: code points before the first.
    """

    compared: list[bytes]
    sizes: list[int]
    before: int = 0


def lines_of(document: Document, name: Normalisation) -> Pieces:
    """Return the lines of a document."""
    text = document.text
    if name in ("none", "dolma"):
        raw = document.utf8.split(b"\n")
        compared = [line[:-1] if line.endswith(b"\r") else line for line in raw]
        if name == "dolma":
            compared = [line if _is_seen(line) else b"" for line in compared]
        if not raw[-1]:
            compared.pop()
    else:
        compared = [line.encode() for line in normalize.lines(name, text)]
    sizes = [size + 1 for size in map(len, text.split("\n"))]
    if sizes[-1] == 1:
        sizes.pop()
    else:
        sizes[-1] -= 1
    return Pieces(compared, sizes)


def _is_seen(line: bytes) -> bool:
    """Return whether a line has more than white space."""
    return b"!" <= line[:1] <= b"~" or bool(line.decode().strip())


def paragraphs_of(document: Document, name: Normalisation) -> Pieces:
    """Return the paragraphs of a document: lines between those that are blank, which have white space at most.

    Blank lines belong to the paragraph before them; those before the first to none.
    """
    text = document.text
    raw = text.split("\n")
    same = normalize.lines(name, text)
    compared: list[bytes] = []
    sizes: list[int] = []
    before = 0
    open_: list[str] = []
    for i, line in enumerate(raw):
        size = len(line) + (i + 1 < len(raw))
        if line.strip():
            if not open_:
                sizes.append(0)
            open_.append(same[i])
        elif open_:
            compared.append("\n".join(open_).encode())
            open_ = []
        if sizes:
            sizes[-1] += size
        else:
            before += size
    if open_:
        compared.append("\n".join(open_).encode())
    if name in ("ccnet", "unicode", "dolma"):
        compared = [each if each.strip() else b"" for each in compared]
    return Pieces(compared, sizes, before)


PIECES: dict[Unit, Callable[[Document, Normalisation], Pieces]] = {"line": lines_of, "paragraph": paragraphs_of}


def hasher(bits: int) -> Callable[[bytes, int], bytes]:
    """Return the function that hashes a text: of so many bits, with a seed."""
    return xxhash.xxh3_128_digest if bits == 128 else xxhash.xxh3_64_digest
