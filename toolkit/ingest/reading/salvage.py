"""The beginning of a damaged gzip file: whole members, and of a truncated one of lines all whole lines.

Of a member that is corrupt nothing is kept: what was inflated before the damage was noticed may be wrong already.
"""

import io
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple, cast

from toolkit.storage.compression import MAGIC_BYTES, compress_fast, compression_in

_PIECE = 1 << 16


class Damage(NamedTuple):
    """The damage of a file.

    Attributes:
        byte: of the file as stored, at which it was noticed.
        whole: uncompressed bytes before it that can be kept.
        truncated: whether the file ends too early.
    """

    byte: int
    whole: int
    truncated: bool


def damage_of(path: str, *, lines: bool) -> Damage | None:
    """Return the damage of a local gzip file; None of a sound file, and of any other.

    Args:
        path: of the file.
        lines: whether each line of it is an item.
    """
    with open(path, "rb") as stored:
        if compression_in(stored.read(MAGIC_BYTES)) != "gzip":
            return None
    whole = size = last_line = 0
    for piece in _pieces(path):
        if isinstance(piece, Damage):
            ends = last_line if lines and piece.truncated else 0
            return piece._replace(whole=max(whole, ends))
        if piece is None:
            whole = size
            continue
        at = piece.rfind(b"\n")
        last_line = size + at + 1 if at >= 0 else last_line
        size += len(piece)
    return None


def opened(path: str, whole: int) -> IO[bytes]:
    """Return the first bytes of a damaged gzip file, as a sound one."""
    return cast("IO[bytes]", io.BufferedReader(_Members(path, whole)))


class _Members(io.RawIOBase):
    """The first uncompressed bytes of a file, compressed anew."""

    def __init__(self, path: str, whole: int) -> None:
        super().__init__()
        self._blocks, self._block = _compressed(path, whole), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            self._block = next(self._blocks, b"")
        count = min(len(self._block), len(buffer))
        buffer[:count], self._block = self._block[:count], self._block[count:]
        return count


def _compressed(path: str, whole: int) -> Iterator[bytes]:
    for piece in _pieces(path):
        if isinstance(piece, Damage) or not whole:
            return
        if piece:
            yield compress_fast(piece[:whole])
            whole -= min(whole, len(piece))


def _pieces(path: str) -> Iterator[bytes | Damage | None]:
    """Yield the uncompressed bytes of a gzip file, None at the end of each member, and at last the damage, if any."""
    with open(path, "rb") as stored:
        member, begun, at = zlib.decompressobj(31), False, 0
        while data := stored.read(_PIECE):
            end = at + len(data)
            while data := data if begun else data.lstrip(b"\0"):  # which tapes and blocks of disks leave behind members
                before = member.copy()
                try:
                    piece = member.decompress(data)
                except zlib.error:
                    yield Damage(_noticed(before, data, end - len(data)), 0, truncated=False)
                    return
                begun = True
                if piece:
                    yield piece
                data = member.unused_data
                if member.eof:
                    yield None
                    member, begun = zlib.decompressobj(31), False
            at = end
        if begun:
            yield Damage(at, 0, truncated=True)


def _noticed(member: Any, data: bytes, at: int) -> int:
    """Return the byte of the file at which a decompressor finds damage, by giving it one byte after the other."""
    for i in range(len(data)):
        try:
            member.decompress(data[i : i + 1])
        except zlib.error:
            return at + i
    return at + len(data)
