"""Rows in blocks, so that several cores can work on one shard: read ahead, computed in processes, written in order.

shard ──Lines──> in_blocks ──> in_order(function) ──results in the order of the blocks──> outputs
                                  │ │ │  processes (or, with one, this one)
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import wait
from typing import Any, TypeVar

from toolkit.errors import DataError, ToolkitError

B = TypeVar("B")
R = TypeVar("R")
W = TypeVar("W")

BLOCK_ROWS = 256
BLOCK_BYTES = 1 << 19

AHEAD = 3
"""Blocks for each process that are read before the first of them is done."""


@dataclass
class Block:
    """Some rows of a file as bytes, and how the file goes on.

    Attributes:
        lines: without their line ends.
        fault: what keeps the file from being read behind them; raised where they end.
    """

    lines: list[bytes] = field(default_factory=list)
    fault: DataError | None = None

    def __iter__(self) -> Iterator[bytes]:
        yield from self.lines
        if self.fault:
            raise self.fault


def in_blocks(lines: Iterator[bytes]) -> Iterator[Block]:
    """The rows of a file, at most so many or so long together that a block fits everywhere."""
    while True:
        block, size = Block(), 0
        try:
            for line in islice(lines, BLOCK_ROWS):
                block.lines.append(line)
                size += len(line)
                if size >= BLOCK_BYTES:
                    break
        except DataError as error:
            block.fault = error
        if block.lines or block.fault:
            yield block
        if block.fault or not block.lines:
            return


def next_block(lines: Iterator[bytes], rows: int) -> Block:
    """The next so many rows, or those that there are."""
    block = Block()
    try:
        block.lines.extend(islice(lines, rows))
    except DataError as error:
        block.fault = error
    return block


def in_order(make: Callable[[W], Callable[[B], R]], work: W, blocks: Iterable[B], processes: int) -> Iterator[R]:
    """What a function gives for each block, in their order.

    Errors come in their order, too: that of an earlier block before that of reading a later one.

    Args:
        make: gives the function; called once in each process. A module-level function, or a class.
        work: what the function is made of; can be pickled, as blocks and results can.
        blocks: read a few ahead.
        processes: that compute; with one (or none) it is this one.

    Raises:
        ToolkitError: if a process dies.
    """
    if processes < 2:
        yield from map(make(work), blocks)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(make, work))
    pending: deque[Future[R]] = deque()
    source = iter(blocks)
    fault: BaseException | None = None
    try:
        while pending or fault is None:
            while fault is None and len(pending) < AHEAD * processes:
                try:
                    pending.append(pool.submit(_call, next(source)))
                except (StopIteration, ToolkitError) as error:
                    fault = error
            if pending:
                yield pending.popleft().result()
    except BrokenProcessPool:
        raise ToolkitError(
            "a process that worked on a part of the shard was ended; was the memory exhausted?"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
    if isinstance(fault, ToolkitError):
        raise fault


def threads_for(processes: int) -> int:
    """How many threads compress what so many processes compute; none where one process does it all."""
    return processes if processes > 1 else 0


_made: list[Callable[[Any], Any]] = []


def _begin(make: Callable[[Any], Callable[[Any], Any]], work: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the calling process decides
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _made.append(make(work))


def _call(block: Any) -> Any:
    return _made[-1](block)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(OSError):
            wait([parent.sentinel])
        os._exit(1)
