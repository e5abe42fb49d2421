"""Shuffled outputs: the documents, or lines, of each label in the order of their hashes, out of core.

Stage 1 puts a hash before each piece (8 bytes, big-endian, so that bytes sort as numbers do) and writes runs: as many
pieces as it may hold, sorted, in members that say between which hashes they are, and beside them the hash and size of
each. The plan (`plan`) finds in these the hashes at which parts of equal size end. Stage 2 (`assemble`) reads, for a
part, what of all runs is between two hashes, in ranges that fit into memory, and sorts these.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Literal

import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.lazy_numpy import np

_HEAD = struct.Struct(">QI")

HASH = 8
"""Bytes of the hash, at the beginning."""

HEAD = _HEAD.size


class Shuffle(ConfigStruct, kw_only=True):
    """The option `shuffle` of an output.

    Attributes:
        seed: another seed gives another order
        unit: the unit; lines only for a format whose files are lines of text and nothing else
        equal: the size in which all parts are equal: bytes before compression, or documents
    """

    seed: str | int = ""
    unit: Literal["document", "line"] = "document"
    equal: Literal["bytes", "documents"] = "bytes"


def framed(
    shuffle: Shuffle, source: str, id: str, copy: int, pieces: Iterable[tuple[str, bytes]]
) -> list[tuple[str, bytes]]:
    """Return the pieces of a copy, or their lines, framed."""
    whole = shuffle.unit == "document"
    parts = ((label, part) for label, data in pieces for part in ((data,) if whole else _lines(data)))
    name = f"shuffle\0{shuffle.seed}\0{source}\0{id}\0{copy}\0"
    return [
        (label, _HEAD.pack(xxhash.xxh3_64_intdigest(f"{name}{i}".encode()), len(data)) + data)
        for i, (label, data) in enumerate(parts)
    ]


def _lines(data: bytes) -> list[bytes]:
    """Return the lines of a piece with their ends; what is after the last line feed is one, too."""
    *lines, last = data.split(b"\n")
    return [line + b"\n" for line in lines] + ([last] if last else [])


def hash_of(frame: bytes) -> int:
    """Return the hash of a frame."""
    return int.from_bytes(frame[:HASH], "big")


def hash_bytes(frame: bytes) -> bytes:
    """Return the hash of a frame as bytes, for sorting."""
    return frame[:HASH]


def frames_in(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the hashes of consecutive frames, and the frames. A piece follows `HEAD` bytes."""
    at = 0
    while at < len(data):
        hash_, size = _HEAD.unpack_from(data, at)
        end = at + HEAD + size
        yield hash_, data[at:end]
        at = end


def sizes_of(frames: list[bytes]) -> bytes:
    """Return the hashes of sorted frames, then the sizes of their pieces. They have 8 and 4 bytes, little-endian."""
    hashes = np.frombuffer(b"".join(map(hash_bytes, frames)), dtype=">u8").astype("<u8")
    return hashes.tobytes() + np.array([len(frame) - HEAD for frame in frames], dtype="<u4").tobytes()
