"""A file of ours as one that writers of Parquet take."""

import io
from typing import Any

from toolkit.storage.outputs import Output


class Sink(io.RawIOBase):
    """Hands what is written to an output, which appears when it is complete."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._output.size

    def write(self, data: Any, /) -> int:
        found = bytes(data)
        self._output.write(found)
        return len(found)
