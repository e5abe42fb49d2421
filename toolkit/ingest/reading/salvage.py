"""The beginning of a damaged compressed file: whole members or frames, and of a truncated one of lines all whole lines.

Of a member that is corrupt nothing is kept: what was inflated before the damage was noticed may be wrong already.
"""

import bz2
import io
import lzma
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, NamedTuple, cast

from toolkit.ingest.reading.input_bytes import Blocks
from toolkit.ingest.section import Entry
from toolkit.storage.compression import (
    CHUNK,
    COMPRESSORS,
    MAGIC_BYTES,
    Damaged,
    Frames,
    Stored,
    compress_fast,
    compression_in,
)

_PIECE = 1 << 20
"""Uncompressed bytes at a time."""

_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    **COMPRESSORS,
    "gzip": compress_fast,
    "bz2": bz2.compress,
    "xz": partial(lzma.compress, preset=0),
}


class Damage(NamedTuple):
    """The damage of a file.

    Attributes:
        compression: Compression of the file.
        byte: Byte of the file as stored, at which it was noticed.
        whole: uncompressed bytes before it that can be kept.
        truncated: True if the file ends too early.
    """

    compression: str
    byte: int
    whole: int
    truncated: bool


def wanted(entry: Entry, open_: Callable[[], IO[bytes]]) -> Damage | None:
    """Return the damage of a compressed file of which something is kept; None of a sound one, and of any other.

    Args:
        entry: Entry of the configuration; says whether anything is kept.
        open_: opens the file as stored; is called twice if there is damage.
    """
    if entry.settings().on_error != "salvage":
        return None
    lines = entry.reader().LINES
    damage = _damage(open_, lines)
    if damage and not damage.truncated:
        damage = _damage(open_, lines, damage.byte - CHUNK)
    return damage if damage and damage.whole else None


def _damage(open_: Callable[[], IO[bytes]], lines: bool, *steps_from: int) -> Damage | None:
    with Stored(open_()) as stored:
        name = compression_in(stored.head(MAGIC_BYTES))
        if not name:
            return None
        frames, line_ends = Frames(stored, name, *steps_from), 0
        try:
            while piece := frames.read(_PIECE):
                if at := piece.rfind(b"\n") + 1:
                    line_ends = frames.size - len(piece) + at
        except EOFError:
            return Damage(name, stored.at, max(frames.whole, line_ends if lines else 0), truncated=True)
        except Damaged:
            return Damage(name, stored.at - 1, frames.whole, truncated=False)
    return None


def opened(open_: Callable[[], IO[bytes]], damage: Damage) -> IO[bytes]:
    """Return what can be kept of a damaged file, as a sound one of the same compression."""
    return cast("IO[bytes]", io.BufferedReader(Blocks(_compressed(open_, damage))))


def _compressed(open_: Callable[[], IO[bytes]], damage: Damage) -> Iterator[bytes]:
    left = damage.whole
    with Stored(open_()) as stored:
        frames = Frames(stored, damage.compression)
        while left:
            piece = frames.read(min(left, _PIECE))
            left -= len(piece)
            yield _COMPRESSORS[damage.compression](piece)
