"""A file of ours as one that writers of Parquet take."""

import io
from typing import Any

from toolkit.storage.outputs import Output

HELD = 8 << 20
"""Bytes that are handed on at a time: stores have a least size of what is sent to them."""


class Sink(io.RawIOBase):
    """Hands what is written to an output, many bytes at a time. A context manager: its end hands on the rest."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output
        self._held: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._output.size + self._size

    def write(self, data: Any, /) -> int:
        result = bytes(data)
        self._held.append(result)
        self._size += len(result)
        if self._size >= HELD:
            self._hand_on()
        return len(result)

    def close(self) -> None:
        if not self.closed and self._held:
            self._hand_on()
        super().close()

    def _hand_on(self) -> None:
        self._output.write(b"".join(self._held))
        self._held, self._size = [], 0
