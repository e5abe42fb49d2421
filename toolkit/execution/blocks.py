"""Rows in blocks, so that several cores can work on one shard: read ahead, computed in processes, written in order.

shard ──Lines──> in_blocks ──> in_order(function) ──results in the order of the blocks──> outputs
                                  │ │ │  processes (or, with one, this one)
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

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


@dataclass
class Block:
    """Some rows of a file as bytes, and how the file goes on.

    Attributes:
        lines: without their line ends.
        fault: what keeps the file from being read behind them; raised where they end.
        stored: bytes of the file, as stored, that were read for them.
    """

    lines: list[bytes] = field(default_factory=list)
    fault: DataError | None = None
    stored: int = 0

    @property
    def rows_beside(self) -> int:
        """The number of rows of another file that belong to it: with a fault one more, which has the document's id."""
        return len(self.lines) + (self.fault is not None)

    def __iter__(self) -> Iterator[bytes]:
        yield from self.lines
        if self.fault:
            raise self.fault


def in_blocks(lines: Iterator[bytes], stored: Callable[[], int] = int, rows: int = 0) -> Iterator[Block]:
    """Yield the rows of a file in blocks, each of at most so many rows or about `BLOCK_BYTES` bytes.

    Args:
        lines: Lines of the file.
        stored: returns how many bytes of the file have been read so far.
        rows: Rows of a block; `BLOCK_ROWS` by default.
    """
    read = 0
    while True:
        block, size = Block(), 0
        try:
            for line in islice(lines, rows or BLOCK_ROWS):
                block.lines.append(line)
                size += len(line)
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
    """Return the next so many rows, or those that are left."""
    block = Block()
    try:
        block.lines.extend(islice(lines, rows))
    except DataError as error:
        block.fault = error
    return block


def in_order(
    make: Callable[[W], Callable[[B], R]], work: W, blocks: Iterable[B], processes: int, name: str = ""
) -> Iterator[R]:
    """Yield what a function gives for each block, in the order of the blocks.

    Errors come in their order, too: that of an earlier block before that of reading a later one. A process that dies
    costs its block one retry in a new one.

    Args:
        make: gives the function; called once in each process. A module-level function, or a class.
        work: what the function is made of; can be pickled, as blocks and results can.
        blocks: read a few ahead.
        processes: Processes that compute; with one (or none) it is this one.
        name: Name of what the blocks are of, for messages.

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
            while pending and not pending[0].done:
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
    """Return how many threads compress what so many processes compute: none where one process does it all."""
    return processes if processes > 1 else 0
