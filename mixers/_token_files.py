"""Files of tokens of each training program: writing and checking.

Each kind is a class: `write` takes documents one by one, `check` raises an error for a damaged file. Numbers are
little-endian.
"""

import csv
import gzip
import io
import re
import shutil
import struct
import sys
import tempfile
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import IO, Any, ClassVar, NamedTuple

from toolkit import DataError, open_stored
from toolkit.text import Origin, pairs_in, pickled_pairs

HELD = 64 << 20
"""Bytes of tokens in memory, where the size of the data comes before them; more go to a temporary file."""

WIDTHS = {1: "uint8", 2: "uint16", 4: "uint32"}
_BLOCK = 1 << 20
_NPY = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(rb"\{'descr': '([<>|][a-z]\d)', 'fortran_order': (?:False|True), 'shape': \((\d{1,18}),\), \} *\n")


class Entry(NamedTuple):
    """Tokens of a document (or sequence), and their origin.

    For a piece of a document, `before` is the number of its tokens before the piece, `start` their code points.
    """

    tokens: bytes
    id: str = ""
    source: str = ""
    row: int = 0
    origin: Origin | None = None
    before: int = 0
    start: int = 0


class TokenFiles:
    """A kind of files; a subclass is never instantiated.

    Attributes:
        SUFFIX: Suffix of the file of a part.
        BESIDE: Suffixes of the files beside it, in place of the first.
        HOLDS: True if the tokens are in a temporary file until their number is known.
        OFFSET: Bytes before the first token.
    """

    SUFFIX: ClassVar[str]
    BESIDE: ClassVar[Sequence[str]] = ()
    HOLDS: ClassVar[bool] = False
    OFFSET: ClassVar[int] = 0

    @staticmethod
    def width(size: int) -> int:
        """Return the bytes of a token for a vocabulary of this size."""
        return max(2, _smallest(size))

    @staticmethod
    def write(entries: Iterable[Entry], width: int, out: IO[bytes], *beside: IO[bytes]) -> None:
        """Write a file and those beside it.

        Args:
            entries: Entries, in order.
            width: Bytes of a token.
            out: File of the tokens.
            beside: Files beside it.
        """
        raise NotImplementedError

    @staticmethod
    def check(path: str, beside: Sequence[str]) -> int:
        """Return the number of entries of a file.

        Raises:
            DataError: if it is not sound.
        """
        raise NotImplementedError


def _temporary(out: IO[bytes]) -> "tempfile.SpooledTemporaryFile[bytes]":
    """Return a temporary file for the tokens of a part. It is on the disk of the part, if that is on one."""
    return tempfile.SpooledTemporaryFile(HELD, dir=getattr(out, "folder", None))


def _smallest(size: int) -> int:
    return next(width for width in WIDTHS if size <= 1 << (8 * width))


class Pbin(TokenFiles):
    """``.pbin`` of Modalities: bytes of tokens, width, tokens, a pickled list of (offset, length) in bytes.

    Source: Modalities 0.5, ``create_packed_data.py`` and ``dataset.py``.
    """

    SUFFIX = ".pbin"
    HOLDS = True
    OFFSET = 12

    @staticmethod
    def width(size: int) -> int:
        return _smallest(size)

    @staticmethod
    def write(entries: Iterable[Entry], width: int, out: IO[bytes], *beside: IO[bytes]) -> None:
        lengths = array("q")
        with _temporary(out) as file:
            for entry in entries:
                file.write(entry.tokens)
                lengths.append(len(entry.tokens))
            out.write(struct.pack("<QI", sum(lengths), width))
            _copy(file, out)
        for piece in pickled_pairs(zip(_begins(lengths, 1), lengths, strict=True)):
            out.write(piece)

    @staticmethod
    def check(path: str, beside: Sequence[str]) -> int:
        with open_stored(path) as stream:
            size, width = struct.unpack("<QI", _exactly(stream, 12, path))
            if width not in WIDTHS or size % width:
                raise DataError(f"expected tokens of 1, 2 or 4 bytes, got {size:,} bytes of {width} each", path=path)
            _skip(stream, size, path)
            entries = at = 0
            for offset, length in pairs_in(stream, path):
                if offset != at or length % width:
                    message = f"expected an entry of whole tokens at byte {at:,}, got {length:,} bytes at {offset:,}"
                    raise DataError(message, path=path, line=entries + 1)
                at += length
                entries += 1
            if at != size or stream.read(1):
                raise DataError(f"expected an index of {size:,} bytes and nothing behind it, got {at:,}", path=path)
        return entries


class Dolma(TokenFiles):
    """``.npy`` and ``.csv.gz`` of Dolma: bare tokens without a header, and ``start,end,id,src,loc`` of each document.

    Source: Dolma 1.2, ``tokenizer/memmap_writer.py``; start and end count tokens, loc is the row from 1.
    """

    SUFFIX = ".npy"
    BESIDE = (".csv.gz",)

    @staticmethod
    def write(entries: Iterable[Entry], width: int, out: IO[bytes], *beside: IO[bytes]) -> None:
        at = 0
        with gzip.GzipFile("", "wb", 6, beside[0], mtime=0) as packed, io.TextIOWrapper(packed, "utf-8") as text:
            rows = csv.writer(text)
            for entry in entries:
                out.write(entry.tokens)
                behind = at + len(entry.tokens) // width
                rows.writerow((at, behind, entry.id, entry.source, entry.row))
                at = behind

    @staticmethod
    def check(path: str, beside: Sequence[str]) -> int:
        size = _size(path)
        entries = at = 0
        try:
            with open_stored(beside[0]) as stored, gzip.GzipFile(fileobj=stored) as packed:
                for start, behind, _, _, _ in _rows(io.TextIOWrapper(packed, "utf-8", newline="")):
                    entries += 1
                    if int(start) != at or int(behind) < at:
                        message = f"expected tokens from {at:,} on, got {start} to {behind}"
                        raise DataError(message, path=beside[0], line=entries)
                    at = int(behind)
        except (OSError, EOFError, ValueError, csv.Error, zlib.error) as error:
            message = f"expected rows of start,end,id,src,loc, got: {error}"
            raise DataError(message, path=beside[0], line=entries + 1) from None
        if size not in ((2 * at, 4 * at) if at else (0,)):
            raise DataError(
                f"expected {at:,} tokens of 2 or 4 bytes, as {beside[0]} says, got {size:,} bytes", path=path
            )
        return entries


class Megatron(TokenFiles):
    """``.bin`` and ``.idx`` of Megatron: bare tokens; an index with the length and offset of each sequence.

    uint16 below 65,500 tokens, else int32, as Megatron has it; each document is one sequence.
    Source: Megatron-LM, ``megatron/core/datasets/indexed_dataset.py``.
    """

    SUFFIX = ".bin"
    BESIDE = (".idx",)
    _MAGIC = b"MMIDIDX\0\0"
    _CODES: ClassVar[dict[int, int]] = {2: 8, 4: 4}  # uint16, int32

    @staticmethod
    def width(size: int) -> int:
        return 2 if size < 65_500 else 4

    @staticmethod
    def write(entries: Iterable[Entry], width: int, out: IO[bytes], *beside: IO[bytes]) -> None:
        lengths = array("i")
        for entry in entries:
            out.write(entry.tokens)
            lengths.append(len(entry.tokens) // width)
        sequences = len(lengths)
        index = beside[0]
        index.write(Megatron._MAGIC + struct.pack("<QBQQ", 1, Megatron._CODES[width], sequences, sequences + 1))
        index.write(_little(lengths).tobytes())
        index.write(_little(array("q", _begins(lengths, width))).tobytes())
        index.write(_little(array("q", range(sequences + 1))).tobytes())

    @staticmethod
    def check(path: str, beside: Sequence[str]) -> int:
        size = _size(path)
        index = beside[0]
        with open_stored(index) as stream:
            if _exactly(stream, 9, index) != Megatron._MAGIC:
                raise DataError("expected an index of Megatron, got another file", path=index)
            version, code, sequences, documents = struct.unpack("<QBQQ", _exactly(stream, 25, index))
            widths = {code: width for width, code in Megatron._CODES.items()}
            if version != 1 or code not in widths or not documents:
                message = f"expected version 1 and tokens of uint16 or int32, got version {version}, code {code}"
                raise DataError(message, path=index)
            lengths = _array(stream, "i", sequences, index)
            begins, ends = _array(stream, "q", sequences, index), _array(stream, "q", documents, index)
            if stream.read(1):
                raise DataError("expected nothing behind the index, got more", path=index)
        is_whole = sum(lengths) * widths[code] == size and min(lengths, default=0) >= 0
        if not is_whole or begins != array("q", _begins(lengths, widths[code])):
            raise DataError(f"expected the tokens that {index} describes, got {size:,} bytes", path=path)
        if ends[0] != 0 or ends[-1] != sequences or _falls(ends):
            message = (
                f"expected documents that end at 0 and on, up to sequence {sequences:,}, got {ends[0]} to {ends[-1]}"
            )
            raise DataError(message, path=index)
        return int(documents) - 1


class Numpy(TokenFiles):
    """``.npy`` for ``numpy.load(…, mmap_mode="r")``, and ``.index.npy``. The index has the beginning of each entry, and
    the end.

    Source: NumPy's format 1.0, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
    """

    SUFFIX = ".npy"
    BESIDE = (".index.npy",)
    HOLDS = True
    OFFSET = 128  # see `npy_header`

    @staticmethod
    def write(entries: Iterable[Entry], width: int, out: IO[bytes], *beside: IO[bytes]) -> None:
        bounds = array("q", [0])
        with _temporary(out) as file:
            for entry in entries:
                file.write(entry.tokens)
                bounds.append(bounds[-1] + len(entry.tokens) // width)
            out.write(npy_header(f"<u{width}", bounds[-1]))
            _copy(file, out)
        write_offsets(bounds, beside[0])

    @staticmethod
    def check(path: str, beside: Sequence[str]) -> int:
        with open_stored(path) as stream:
            (kind, tokens), bounds = _read_header(stream, path), read_offsets(beside[0])
            if kind not in ("<u2", "<u4"):
                raise DataError(f"expected tokens of <u2 or <u4, got {kind}", path=path)
            _skip(stream, tokens * int(kind[-1]), path)
            if stream.read(1):
                raise DataError(f"expected {tokens:,} tokens as its header says, got more", path=path)
        if bounds[-1] != tokens:
            raise DataError(f"expected {bounds[-1]:,} tokens as {beside[0]} says, got {tokens:,}", path=path)
        return len(bounds) - 1


KINDS: dict[str, type[TokenFiles]] = {"pbin": Pbin, "dolma": Dolma, "megatron": Megatron, "numpy": Numpy}


# --- NumPy's arrays ---------------------------------------------------------------------------------------------------


def npy_header(kind: str, items: int) -> bytes:
    """Return the header of a one-dimensional NumPy file, padded to 64 bytes."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({items},), }}"
    padded = text + " " * (-(10 + len(text) + 1) % 64) + "\n"
    return _NPY + struct.pack("<H", len(padded)) + padded.encode()


def write_offsets(bounds: "array[int]", out: IO[bytes]) -> None:
    """Write numbers as a NumPy file of int64."""
    out.write(npy_header("<i8", len(bounds)))
    out.write(_little(bounds).tobytes())


def read_offsets(path: str) -> "array[int]":
    """Return the numbers of a NumPy file of int64: from 0, never falling.

    Raises:
        DataError: if it is not sound.
    """
    with open_stored(path) as stream:
        kind, items = _read_header(stream, path)
        if kind != "<i8" or not items:
            raise DataError(f"expected offsets of <i8, got {items} of {kind}", path=path)
        result = _array(stream, "q", items, path)
        if stream.read(1):
            raise DataError(f"expected {items:,} offsets as its header says, got more", path=path)
    if result[0] != 0 or _falls(result):
        raise DataError("expected offsets that begin with 0 and do not fall, got others", path=path)
    return result


def _read_header(stream: IO[bytes], path: str) -> tuple[str, int]:
    """Return type and number of items of a one-dimensional NumPy file.

    Its header is a Python expression, which NumPy evaluates; here only the form is taken in which NumPy writes it.
    """
    begin = _exactly(stream, 10, path)
    if begin[:8] != _NPY:
        raise DataError("expected a NumPy file of version 1.0, got another file", path=path)
    header = _exactly(stream, int.from_bytes(begin[8:], "little"), path)
    match = _HEADER.fullmatch(header)
    if not match:
        raise DataError(f"expected the header of a NumPy file with one dimension, got {header[:100]!r}", path=path)
    return match[1].decode(), int(match[2])


# --- bytes ------------------------------------------------------------------------------------------------------------


def _rows(text: IO[str]) -> Iterator[list[str]]:
    """Yield the rows of CSV; a ValueError for one that is so long that it would fill the memory."""
    size = 0

    def lines() -> Iterator[str]:
        nonlocal size
        while line := text.readline(_BLOCK + 1):
            size += len(line)
            if size > _BLOCK:
                raise ValueError(f"a row of more than {_BLOCK:,} characters")
            yield line

    for row in csv.reader(lines()):
        size = 0
        yield row


def _falls(numbers: "array[int]") -> bool:
    return any(b < a for a, b in pairwise(numbers))


def _begins(lengths: Sequence[int], width: int) -> Iterator[int]:
    return accumulate((length * width for length in lengths[:-1]), initial=0) if lengths else iter(())


def _little(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers


def _copy(file: Any, out: IO[bytes]) -> None:
    file.seek(0)
    shutil.copyfileobj(file, out, _BLOCK)


def _exactly(stream: IO[bytes], size: int, path: str) -> bytes:
    result = stream.read(size)
    while len(result) < size and (more := stream.read(size - len(result))):
        result += more
    if len(result) < size:
        raise DataError(f"expected {size:,} bytes, got {len(result):,}: the file ends too early", path=path)
    return result


def _skip(stream: IO[bytes], size: int, path: str) -> None:
    while size:
        size -= len(_exactly(stream, min(size, _BLOCK), path))


def _array(stream: IO[bytes], code: str, items: int, path: str) -> "array[int]":
    result: array[int] = array(code)
    while len(result) < items:
        some = min(items - len(result), _BLOCK)
        result.frombytes(_exactly(stream, some * result.itemsize, path))
    return _little(result)


def _size(path: str) -> int:
    size = 0
    with open_stored(path) as stream:
        while block := stream.read(_BLOCK):
            size += len(block)
    return size
