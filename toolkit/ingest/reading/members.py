"""Finds where the members of a gzip file begin, in its stored bytes while they pass by."""

import re
from array import array

_HEADER = 10
"""Bytes of a member's header that all have: magic, method, flags, time, extra flags, system."""


class Members:
    """The offsets of members whose headers are, but for the time, those of the first.

    That 10 bytes of compressed data look so by chance happens once in some 10^13 bytes; who reads at an offset looks
    whether it is what was looked for.

    Attributes:
        starts: the offsets, in order.
    """

    def __init__(self) -> None:
        self.starts = array("Q")
        self._pattern: re.Pattern[bytes] | None = None
        self._held = b""
        self._at = 0

    def feed(self, data: bytes) -> None:
        """Look at the next stored bytes."""
        block = self._held + data
        before = self._at - len(self._held)
        self._at += len(data)
        if len(block) < _HEADER:
            self._held = block
            return
        if self._pattern is None:
            head = block[:_HEADER]
            is_gzip = head.startswith(b"\x1f\x8b\x08")
            found = re.escape(head[:4]) + b".{4}" + re.escape(head[8:]) if is_gzip else b"(?!)"  # which is nowhere
            self._pattern = re.compile(found, re.DOTALL)
        self.starts.extend(before + match.start() for match in self._pattern.finditer(block))
        self._held = block[1 - _HEADER :]
