"""Checks of the index of a JSON Lines file (see `toolkit.data.line_index`)."""

import zlib
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from typing import IO

from toolkit.data import line_index
from toolkit.errors import DataError, ToolkitError
from toolkit.inspect.validate.one_file import Findings
from toolkit.storage.compression import compression_in, decompress
from toolkit.storage.paths import exists
from toolkit.storage.reading import open_stored

_OF = (".jsonl", ".json", ".gz", ".zst", ".zstd")

_MAGIC_BYTES = 16


def check(path: str, first: int | None, limit: int) -> list[str]:
    """Return what is wrong with an index: it lists other lines than its file has, or is no index.

    Args:
        path: of the index.
        first: only so many lines are looked at; None for all.
        limit: bytes of a line, at most.
    """
    found = Findings()
    base = path.removesuffix(line_index.SUFFIX)
    of = next((base + suffix for suffix in _OF if exists(base + suffix)), None)
    if of is None:
        return [f"{path}: expected the file that it is of beside it ({base}{f' or {base}'.join(_OF)}), got none"]
    pairs = islice(line_index.read(path), first)
    try:
        with open_stored(of) as stream:
            compression = compression_in(stream.read(_MAGIC_BYTES))
            stream.seek(0)
            if compression:
                findings = _of_members(pairs, stream, compression, limit, whole=first is None)
            else:
                findings = _of_lines(pairs, islice(_lines(stream, limit), first))
            for number, finding in findings:
                found.add(f"{path}: line {number} of {of}: {finding}")
    except ToolkitError as error:
        found.add(error)
    return found.listed(path)


def _of_lines(pairs: Iterable[tuple[int, int]], lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
    """Yield what differs, with the number of the line."""
    for number, (pair, line) in enumerate(zip_longest(pairs, lines), 1):
        if line is None:
            yield number, f"expected no entry, because there is no such line, got {pair}"
            continue
        is_ = line[0], len(line[1])
        if pair != is_:
            chars = len(line[1].decode("utf-8", "replace"))
            hint = "; it counts characters, as Modalities did up to 0.3.2; make it again" if _chars(pair, chars) else ""
            yield number, f"expected {is_}, got {pair or 'no entry'}{hint}"


def _chars(pair: tuple[int, int] | None, chars: int) -> bool:
    return pair is not None and pair[1] == chars


def _of_members(
    pairs: Iterable[tuple[int, int]], stream: IO[bytes], compression: str, limit: int, *, whole: bool
) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with the first entry that is; where those behind it are, nothing tells."""
    at, number = 0, 0
    for number, (offset, length) in enumerate(pairs, 1):
        if offset != at:
            yield number, f"expected the offset {at}, where the one before ends, got {offset}"
            return
        if not _is_line(stream.read(min(length, limit)), compression):
            yield number, f"expected {length} bytes at {offset} to be a {compression} member with one line, got others"
            return
        at += length
    if whole and stream.read(1):
        yield number + 1, f"expected an entry for what is at {at}, got none"


def _is_line(member: bytes, compression: str) -> bool:
    try:
        data = decompress(member, compression)
    except (zlib.error, EOFError, ValueError, OSError):
        return False
    return data.find(b"\n") == len(data) - 1


def _lines(stream: IO[bytes], limit: int) -> Iterator[tuple[int, bytes]]:
    """Yield offset and bytes of each line, without its end."""
    offset = 0
    while line := stream.readline(limit + 1):
        if len(line) > limit:
            raise DataError(f"expected lines of at most {limit} bytes, got a longer one at byte {offset}")
        yield offset, line.removesuffix(b"\n")
        offset += len(line)
