"""The second stage of a shuffled output: what a part has of all runs, sorted in ranges that fit into memory."""

from collections.abc import Callable, Iterator

from toolkit.mix.plan import JOINED, PartPlan
from toolkit.mix.shuffle.frames import frames_in
from toolkit.storage.compression import decompress

RANGE = 32 << 20
"""Bytes of pieces that are sorted at a time, about: ranges of hashes are of equal width."""

Read = Callable[[str, int, int], bytes]
"""Gives the stored bytes of a member: of the intermediate of a shard, by its key, from an offset, so many."""


def sorted_chunks(part: PartPlan, read: Read, compression: str) -> Iterator[bytes]:
    """Yield the pieces of a part in the order of their hashes, about a MiB at a time.

    Pieces with one hash stay in the order of their shards and rows.

    Args:
        part: of a shuffled output.
        read: gives members.
        compression: of these.
    """
    held: list[bytes] = []
    size = 0
    for low, high in _ranges(part):
        found: list[tuple[int, bytes]] = []
        for key, offset, length, least, greatest in part.runs:
            if least <= high and greatest >= low:
                frames = frames_in(decompress(read(key, offset, length), compression))
                found += ((hash_, piece) for hash_, piece in frames if low <= hash_ <= high)
        found.sort(key=lambda each: each[0])
        for _, piece in found:
            if held and size + len(piece) > JOINED:
                yield b"".join(held)
                held, size = [], 0
            held.append(piece)
            size += len(piece)
    if held:
        yield b"".join(held)


def _ranges(part: PartPlan) -> Iterator[tuple[int, int]]:
    """Yield the ranges of hashes of a part, of equal width."""
    number = -(-part.size // RANGE) or 1
    width = -(-(part.high - part.low + 1) // number)
    for low in range(part.low, part.high + 1, width):
        yield low, min(low + width - 1, part.high)
