"""Splits the rows of a shard into blocks for several processes. Blocks are read ahead, computed in processes, and
returned in order.

shard ──Lines──> in_blocks ──> in_order(function) ──results in the order of the blocks──> outputs
                                  │ │ │  processes (or, with one, this one)
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from toolkit.errors import DataError, ToolkitError
from toolkit.interrupts import check

if TYPE_CHECKING:
    from toolkit.execution.pool import Call, Tell

B = TypeVar("B")
R = TypeVar("R")
W = TypeVar("W")

BLOCK_ROWS = 256
BLOCK_BYTES = 1 << 19
"""The most rows of a block, and bytes at which it ends. Both are promised to taggers of models, whose values may change
in the last digit with what is computed at once (`toolkit.text.encoders.tokens`)."""


class Block(msgspec.Struct):
    """A batch of raw lines, with the error after them.

    Attributes:
        lines: Lines without their line ends.
        fault: Error after the last line; iteration raises it.
        stored: Stored bytes that were read for the lines.
    """

    lines: list[bytes] = []
    fault: DataError | None = None
    stored: int = 0

    @property
    def rows_beside(self) -> int:
        """The number of matching rows of another file. With a fault it is one more, which has the document's id."""
        return len(self.lines) + (self.fault is not None)

    def __iter__(self) -> Iterator[bytes]:
        yield from self.lines
        if self.fault:
            raise self.fault


def in_blocks(
    lines: Iterator[bytes], stored: Callable[[], int] = int, rows: int = 0, size_of: Callable[[bytes], int] = len
) -> Iterator[Block]:
    """Yield the rows of a file in blocks. A block has at most so many rows, or about `BLOCK_BYTES` bytes.

    Args:
        lines: Lines of the file.
        stored: Function that returns the bytes of the file read so far.
        rows: Rows of a block; `BLOCK_ROWS` by default.
        size_of: Function that returns the bytes of a line.
    """
    read = 0
    while True:
        block, size = Block(), 0
        try:
            for line in islice(lines, rows or BLOCK_ROWS):
                block.lines.append(line)
                size += size_of(line)
                if size >= BLOCK_BYTES:
                    break
        except DataError as error:
            block.fault = error
        if block.lines or block.fault:
            block.stored, read = stored() - read, stored()
            yield block
        if block.fault or not block.lines:
            return


def next_block(lines: Iterator[bytes], rows: int) -> Block:
    """Return a block of the next rows."""
    block = Block()
    try:
        block.lines.extend(islice(lines, rows))
    except DataError as error:
        block.fault = error
    return block


def in_order(
    make: Callable[[W], Callable[[B], R]], work: W, blocks: Iterable[B], processes: int, name: str = ""
) -> Iterator[R]:
    """Yield the result of a function for each block, in order.

    Errors come in order, too: that of an earlier block before that of reading a later one. If a process dies, its block
    is retried once in a new one.

    Args:
        make: Function that returns the function of a process. A module-level function, or a class.
        work: Argument of `make`; can be pickled, as blocks and results can.
        blocks: Blocks, read a few ahead.
        processes: Number of processes; with one (or none) it is this one.
        name: Name of the file, for messages.

    Raises:
        ToolkitError: if a process dies twice.
    """
    if processes < 2:
        function = make(work)
        for block in blocks:
            try:
                result = function(block)
            except StopIteration as error:  # which would end the stream
                from toolkit.execution.pool import not_the_end

                raise not_the_end(error) from error
            check()
            yield result
        return
    from toolkit.execution.pool import AHEAD, Call, Pool

    pending: deque[Call] = deque()
    source = iter(blocks)
    fault: Exception | None = None
    with Pool(_function, (make, work), processes, ahead=AHEAD) as pool:
        while pending or fault is None:
            while fault is None and len(pending) < AHEAD * processes and pool.has_room:
                try:
                    pending.append(Call(next(source)))
                    pool.give(pending[-1])
                except Exception as error:  # the end among them
                    fault = error
                pool.receive(0)
            while pending and not pending[0].is_done:
                pool.receive()
            if pending:
                yield _result(pending.popleft(), name)
    if not isinstance(fault, StopIteration):
        assert fault
        raise fault


def _function(work: tuple[Callable[[W], Callable[[B], R]], W], tell: "Tell") -> Callable[[B], R]:
    make, of = work
    return make(of)


def _result(call: "Call", name: str) -> Any:
    from toolkit.execution.pool import Died

    try:
        return call.result()
    except Died as died:
        where = f"{name}: " if name else ""
        message = f"{where}a process that worked on a part of it {died}, twice; was the memory exhausted?"
        raise ToolkitError(message) from None


def threads_for(processes: int) -> int:
    """Return the number of compression threads beside some processes: none for one process."""
    return processes if processes > 1 else 0
