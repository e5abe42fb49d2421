"""Helpers: processes that compute blocks for this one, and the memory in which the two hand blocks and results over.

    this process ──block──> SharedFile ──> helper: function(block) ──result──> the same SharedFile ──> this process
                 ──"it has so many bytes"──> pipe ──"so many"──> pipe

A pipe holds less than a block. What is larger is handed over in pieces, and both processes wait for each other in
between, several times for each block. So pipes have only sizes and errors here, which never wait. A helper always has
the next blocks before it has done one, and one thread of this process asks all helpers.
"""

import io
import mmap
import os
import pickle
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import reduction
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from toolkit.errors import ToolkitError
from toolkit.interrupts import check
from toolkit.runs.child import Answer, Child, Died, failed, kill

AHEAD = 3
"""Blocks that a helper has at a time: it works on one, and the others wait for it."""

KEPT = 8 << 20
"""Bytes of memory that stay for the next block when one has been handed over; what is more is given back."""


class SharedFile:
    """A file in memory, without a name, that this process and one that it begins have open.

    It is gone with the last of the two, however they end. The two take turns: what one puts there, the other takes.

    Args:
        number: of the open file; by default it is made.
    """

    def __init__(self, number: int | None = None) -> None:
        self._number = _in_memory() if number is None else number
        self._mapped: mmap.mmap | None = None
        self._pickled = io.BytesIO()

    def __reduce__(self) -> tuple[Callable[[Any], "SharedFile"], tuple[Any]]:
        """Return what gives it to a process that is being begun."""
        return _given, (reduction.DupFd(self._number),)

    def put(self, value: Any) -> int:
        """Write a value that can be pickled, in place of what is there; return its bytes."""
        self._pickled.seek(0)  # what it has held is overwritten: memory that is new costs more than the copy
        pickle.dump(value, self._pickled, pickle.HIGHEST_PROTOCOL)
        size, written = self._pickled.tell(), 0
        with self._pickled.getbuffer() as data:
            while written < size:  # not through the mapping: where there is no room, that ends the process
                written += os.pwrite(self._number, data[written:size], written)
        if size > KEPT:
            self._pickled = io.BytesIO()
        return size

    def take(self, size: int) -> Any:
        """Return the value that the other process has put there.

        Args:
            size: its bytes.
        """
        if self._mapped is None or len(self._mapped) < size:
            self._mapped = mmap.mmap(self._number, size)
        with memoryview(self._mapped) as data:
            value = pickle.loads(data[:size])  # noqa: S301  # from a process of ours
        if size > KEPT:
            os.ftruncate(self._number, 0)
        return value

    def close(self) -> None:
        os.close(self._number)


def _given(number: Any) -> SharedFile:
    return SharedFile(number.detach())


def _in_memory() -> int:
    """Return the number of a new file that has no name, in memory where the system can do that."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return os.memfd_create("toolkit")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Asked:
    """A block that a helper has, and what became of it.

    Attributes:
        done: whether there is a result, or an error.
    """

    def __init__(self, block: Any) -> None:
        self.block = block
        self.deaths = 0
        self.done = False
        self._result: Any = None
        self._error: BaseException | None = None

    def answered(self, result: Any) -> None:
        self._result, self.done, self.block = result, True, None

    def failed(self, error: BaseException) -> None:
        self._error, self.done, self.block = error, True, None

    def result(self) -> Any:
        """Return the result, or raise the error."""
        if self._error:
            raise self._error
        return self._result


class Helpers:
    """Processes that compute blocks. A context manager, which ends them, whatever they do: blocks leave nothing behind.

    A process that dies costs the block that it worked on one retry in a new one.

    Args:
        make: gives the function; called once in each process. A module-level function, or a class.
        work: what the function is made of.
        processes: how many there are.
        name: of what the blocks are of, for messages.
    """

    def __init__(self, make: Callable[[Any], Callable[[Any], Any]], work: Any, processes: int, name: str) -> None:
        self._all = [_Helper(make, work, name) for _ in range(processes)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._all:
            helper.end()

    @property
    def has_room(self) -> bool:
        """Return whether one of them takes another block."""
        return any(len(helper.asked) < AHEAD for helper in self._all)

    def give(self, block: Any) -> Asked:
        """Give a block to the one that has the fewest."""
        asked = Asked(block)
        min(self._all, key=lambda helper: len(helper.asked)).give(asked)
        return asked

    def receive(self, *, waits: bool) -> None:
        """Take what they have answered; wait until there is something, if asked to."""
        busy = {helper.child.connection: helper for helper in self._all if helper.child and helper.asked}
        for connection in wait(list(busy), None if waits else 0):
            busy[connection].receive()  # type: ignore[index]  # typeshed: what is waited for may be a number
        check()


class _Helper:
    """A process, begun with its first block, and again after it has died; and the blocks that it has, in order."""

    def __init__(self, make: Callable[[Any], Callable[[Any], Any]], work: Any, name: str) -> None:
        self._made = (make, work)
        self._name = name
        self._files: deque[SharedFile] = deque()
        self.child: Child | None = None
        self.asked: deque[Asked] = deque()

    def give(self, asked: Asked) -> None:
        if self.child is None:
            self._files.extend(SharedFile() for _ in range(AHEAD))
            self.child = Child(_help, list(self._files), *self._made)
        file = self._files[len(self.asked)]
        try:
            size = file.put(asked.block)
        except Exception as error:  # it cannot be pickled
            asked.failed(error)
            return
        self.asked.append(asked)
        self.child.send(size)

    def receive(self) -> None:
        """Take an answer; or let another process have the blocks of one that has died."""
        assert self.child
        try:
            answer: int | Answer = self.child.connection.recv()
        except (EOFError, OSError):
            self._died(self.child.death())
            return
        file, asked = self._files[0], self.asked.popleft()
        self._files.rotate(-1)
        try:
            asked.answered(answer.value() if isinstance(answer, Answer) else file.take(answer))
        except BaseException as error:  # of the function, or it cannot be unpickled
            asked.failed(error)

    def _died(self, died: Died) -> None:
        self.end()
        first, again = self.asked[0], self.asked
        first.deaths += 1
        if first.deaths > 1:
            where = f"{self._name}: " if self._name else ""
            message = f"{where}a process that worked on a part of it {died}, twice; was the memory exhausted?"
            first.failed(ToolkitError(message))
            again.popleft()
        self.asked = deque()
        for asked in again:
            self.give(asked)

    def end(self) -> None:
        if self.child:
            kill([self.child])
        while self._files:
            self._files.pop().close()
        self.child = None


def _help(
    connection: "Connection[Any, Any]", files: list[SharedFile], make: Callable[[Any], Callable[[Any], Any]], work: Any
) -> None:
    """Call a function with each block that is put into the files, one after the other; put its result there."""
    function: Callable[[Any], Any] | None = None
    while True:
        for file in files:
            size = connection.recv()
            try:
                block = file.take(size)
                function = function or make(work)
                answer: int | Answer = file.put(function(block))
            except BaseException as error:  # native code panics with exceptions that are no Exception
                answer = failed(error)
            connection.send(answer)
