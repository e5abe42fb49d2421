"""The index of a JSON Lines file: where each line is, so that any can be read without those before it.

``NAME.idx`` beside ``NAME.jsonl`` is a pickled list of pairs (offset, length) in bytes, the line end not counted, as
Modalities 0.5 writes and reads it (``create_index.py``, ``large_file_lines_reader.py``). Of a compressed file in which
each line is a gzip member (or zstd frame) of its own, the pairs are those of the members.
"""

import pickle
import struct
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, pairwise
from typing import IO, cast

from toolkit.errors import DataError
from toolkit.storage import Stat
from toolkit.storage.outputs import write_file
from toolkit.storage.reading import open_stored

SUFFIX = ".idx"

_PROTOCOL = 4  # of the pickles that Modalities writes under Python 3.8 to 3.13
_FRAME, _LEAST = 64 << 10, 4  # bytes behind which a frame of a pickle ends, and of the smallest frame
_TOGETHER = 1000  # entries that a pickle adds to a list at a time

_LONGEST = 256
"""Bytes of an argument at most; a number of 8 bytes has about 20 as text."""

_NUMBERS = {"BININT", "BININT1", "BININT2", "LONG1", "INT", "LONG"}
_KEEPING, _ADDING = {"MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"}, {"APPEND", "APPENDS"}


def path_of(path: str) -> str:
    """Return the path of a file's index: its last suffix is replaced."""
    return path.rpartition(".")[0] + SUFFIX


class LineLengths:
    """Lengths of the lines in a stream of bytes; 8 bytes each."""

    def __init__(self) -> None:
        self._lengths, self._open = array("q"), 0

    def add(self, data: bytes) -> None:
        """Add the next bytes."""
        lengths = [len(part) for part in data.split(b"\n")]
        lengths[0] += self._open
        self._open = lengths.pop()
        self._lengths.extend(lengths)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield offset and length of each line; a last one without a line end is one, too."""
        at = 0
        for length in self._lengths:
            yield at, length
            at += length + 1
        if self._open:
            yield at, self._open


def write(path: str, lengths: Iterable[int], between: int) -> Stat:
    """Write the index of a file; return its `Stat`.

    Args:
        path: Path of the file.
        lengths: Lengths of its lines or members, in order.
        between: bytes from the end of one to the begin of the next.
    """
    listed = list(lengths)
    offsets = accumulate((length + between for length in listed), initial=0)
    return write_file(path_of(path), b"".join(pickled_pairs(zip(offsets, listed, strict=False))))


def pickled_pairs(pairs: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the pickle of a list of pairs of non-negative numbers.

    It is byte for byte that of `pickle.dumps` with protocol 4, which needs the list in memory, some 200 bytes a pair.
    Source: PEP 3154 and ``Modules/_pickle.c`` of CPython.

    Args:
        pairs: Pairs in order; an iterator will do.
    """
    yield struct.pack("<BB", pickle.PROTO[0], _PROTOCOL)
    frame = bytearray()
    for unit in _units(pairs):
        if len(frame) >= _FRAME:
            yield pickle.FRAME + struct.pack("<Q", len(frame)) + bytes(frame)
            frame.clear()
        frame += unit
    yield (pickle.FRAME + struct.pack("<Q", len(frame)) if len(frame) >= _LEAST else b"") + bytes(frame)


def _units(pairs: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the indivisible parts of a list of pairs. A thousand are added at a time, or the only one."""
    begin, added = pickle.EMPTY_LIST + pickle.MEMOIZE, 0
    for pair, following in pairwise(chain(pairs, [None])):
        assert pair
        if not added:
            alone = following is None
            yield begin if alone else begin + pickle.MARK
        added += 1
        ends = pickle.APPEND if alone else pickle.APPENDS if following is None or added % _TOGETHER == 0 else b""
        more = pickle.STOP if following is None else pickle.MARK if ends else b""
        yield _number(pair[0])
        yield _number(pair[1]) + pickle.TUPLE2 + pickle.MEMOIZE + ends + more
    if not added:
        yield begin + pickle.STOP


def _number(number: int) -> bytes:
    if number < 1 << 8:
        return pickle.BININT1 + number.to_bytes(1, "little")
    if number < 1 << 16:
        return pickle.BININT2 + number.to_bytes(2, "little")
    if number < 1 << 31:
        return pickle.BININT + number.to_bytes(4, "little")
    size = number.bit_length() // 8 + 1
    return pickle.LONG1 + size.to_bytes(1, "little") + number.to_bytes(size, "little")


def read(path: str) -> Iterator[tuple[int, int]]:
    """Yield the pairs of an index by any program; errors as of `pairs_in`."""
    with open_stored(path) as stream:
        yield from pairs_in(stream, path)


def pairs_in(stream: IO[bytes], path: str) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a pickled list, one by one.

    Nothing is unpickled, because that can run code: of the instructions of a pickle only those are followed that make
    a list of pairs of numbers.

    Args:
        stream: at the beginning of the pickle; it is read to the end of that.
        path: Path of the file, for errors.

    Raises:
        DataError: if there are others, or it is damaged; the pairs before that have been given.
    """
    import pickletools  # a hundredth of the start of each command

    expected = "expected a pickled list of pairs of numbers, as Modalities writes it, got"
    stack, frame = _Stack(), 0
    try:
        for instruction, argument, place in pickletools.genops(cast("IO[bytes]", _Short(stream))):
            name, at, number = instruction.name, place or 0, argument if type(argument) is int else -1
            if name == "PROTO" and number > pickle.HIGHEST_PROTOCOL:
                raise ValueError(f"protocol {number}")
            if name in ("FRAME", "STOP") and at + (name == "STOP") < frame:
                raise ValueError(f"a frame up to byte {frame:,}, which {name} at byte {at:,} ends")
            if name == "FRAME":
                frame = at + 9 + number
            elif not stack.takes(name, number):
                raise DataError(f"{expected} {name} at byte {place}; it was not executed", path=path)
            elif name == "TUPLE2":
                yield stack.pair
            elif name == "STOP":
                return
    except (ValueError, UnicodeDecodeError, IndexError) as error:
        raise DataError(f"{expected} damaged data ({error})", path=path) from None


class _Stack:
    """The stack while a list of pairs of numbers is unpickled: the list, pairs to be added, numbers.

    Attributes:
        pair: Pair that was made last.
    """

    def __init__(self) -> None:
        self.pair = (0, 0)
        self._began = self._marked = False
        self._pairs = 0
        self._numbers: list[int] = []

    def takes(self, name: str, number: int) -> bool:
        """Do an instruction; return whether it can be done here, in a list of pairs of numbers."""
        between = self._began and not self._numbers
        if name in _NUMBERS:
            self._numbers.append(number)
            return number >= 0 and self._began and len(self._numbers) <= 3 and (self._marked or not self._pairs)
        if name == "TUPLE2" and len(self._numbers) == 2:
            self.pair = (self._numbers[0], self._numbers[1])
            self._numbers.clear()
            self._pairs += 1
            return True
        if name == "EMPTY_LIST" and not self._began:
            self._began = True
            return True
        if name == "MARK" and between and not self._marked and not self._pairs:
            self._marked = True
            return True
        if name in _ADDING and between and self._marked is (name == "APPENDS") and (self._marked or self._pairs):
            self._marked, self._pairs = False, 0
            return True
        if name in _KEEPING:  # on the top, which is no mark
            return self._began and bool(self._numbers or self._pairs or not self._marked)
        return name == "PROTO" or (name == "STOP" and between and not self._marked and not self._pairs)


class _Short:
    """A pickle with bounded arguments: a claim of gigabytes is not read into memory.

    Args:
        stream: the bytes.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.tell = stream.tell

    def read(self, size: int) -> bytes:
        """Return so many bytes; a ValueError if they are more than a number can have."""
        if size > _LONGEST:
            raise ValueError(f"an argument of {size:,} bytes")
        return self._stream.read(size)

    def readline(self) -> bytes:
        """Return a line, cut at the length of a number."""
        return self._stream.readline(_LONGEST)
