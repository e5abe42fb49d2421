"""Items of a file of JSON: those of the one list that it is, or a line each; never more than one of them in memory."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from toolkit.errors import DataError
from toolkit.ingest.reader import Input
from toolkit.storage.reading import Decompressed

_BLOCK = 1 << 20
_BLANK = b" \t\r\n"

_TEXT = rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"'

_BETWEEN = re.compile(rb'(?>(?:[^",\[\]{}]++|' + _TEXT + rb")*)[,\[\]{}]", re.DOTALL)
"""All up to the next bracket or comma that is in no text."""

_INSIDE = re.compile(rb'(?>(?:[^"\[\]{}]++|' + _TEXT + rb")*)[\[\]{}]", re.DOTALL)
"""All up to the next bracket."""


def items(source: Input) -> Iterator[tuple[Any, int]]:
    """Yield the items of an input, decoded, each with its number: of a list, from 1; else that of its line.

    Raises:
        DataError: at an item that is no JSON, or is larger than `source.max_bytes`; or at the end of a list that has
            none.
    """
    if not source.head(_BLOCK).removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK).startswith(b"["):
        with source.lines() as lines:
            yield from source.items(lines, lambda line, number: (msgspec.json.decode(line), number))
        return
    for number, raw in enumerate(_of_list(source), 1):
        try:
            yield msgspec.json.decode(raw), number
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"expected an item as JSON, got: {error}", path=source.path, line=number) from None


def _of_list(source: Input) -> Iterator[bytes]:
    """Yield the texts of the items of a list."""
    with source.stream() as stream:
        window, number = _Window(source, stream), 1
        window.next_mark(_BETWEEN, number)
        window.take()
        depth = 1
        while depth:
            mark = window.next_mark(_BETWEEN if depth == 1 else _INSIDE, number)
            depth += (mark in b"{[") - (mark in b"}]")
            if not depth or (depth == 1 and mark == b","):
                item = window.take()
                if item:
                    yield item
                elif depth or number > 1:
                    raise DataError("expected an item of the list, got none", path=source.path, line=number)
                number += 1
        if window.has_more():
            raise DataError("expected nothing after the list, got more", path=source.path, line=number - 1)


class _Window:
    """What is held of a stream: the item that is looked at, and what was read behind it."""

    def __init__(self, source: Input, stream: Decompressed) -> None:
        self._source, self._stream = source, stream
        self._held = b""
        self._begin = self._place = 0  # of the item, and of what is looked at next

    def next_mark(self, pattern: re.Pattern[bytes], number: int) -> bytes:
        """Return the next mark: the last byte of what the pattern matches.

        Raises:
            DataError: if there is none, or the item, which has this number, is too large.
        """
        source = self._source
        while not (found := pattern.match(self._held, self._place)):
            self._held, self._begin, self._place = self._held[self._begin :], 0, self._place - self._begin
            if len(self._held) > source.max_bytes:
                message = f"expected an item of at most {source.max_bytes:,} bytes, got more"
                raise DataError(f"{message}; raise `max_document_bytes`", path=source.path, line=number)
            if not (
                block := self._stream.read(max(_BLOCK, len(self._held)))
            ):  # which is looked at from its start again
                raise DataError("expected `]` at the end of the list, got none", path=source.path, line=number)
            self._held += block
        self._place = found.end()
        return found[0][-1:]

    def take(self) -> bytes:
        """Return what is before the last mark, without white space; it is held no longer."""
        found = self._held[self._begin : self._place - 1].strip(_BLANK)
        self._begin = self._place
        return found

    def has_more(self) -> bool:
        """Return whether there is more than white space behind the last mark."""
        rest = self._held[self._begin :]
        while not rest.strip(_BLANK):
            if not (rest := self._stream.read(_BLOCK)):
                return False
        return True
