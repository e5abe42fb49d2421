"""Worker processes on this machine."""

import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Annotated, Any, Self

import msgspec

from toolkit.config.settings import ConfigStruct, Description
from toolkit.config.sizes import Size
from toolkit.errors import ConfigError
from toolkit.runs.child import JOIN_SECONDS, Child, ready, stop
from toolkit.runs.executors import Executor, Failure, P, R, Report, Result, Task, attempt, largest_first, packed
from toolkit.runs.executors.in_process import InProcess
from toolkit.runs.processes import resident_memory

REPORT_SECONDS = 0.2
MEMORY_SECONDS = 0.5
TIDYING_SECONDS = 5.0
"""What a worker that holds too much has to delete its temporary files in, unless it comes to hold twice as much."""


class LocalSettings(ConfigStruct):
    """Options of worker processes on this machine."""

    recycle: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        Description(description="a worker process is replaced after this number of tasks, against memory leaks"),
    ] = None
    memory: Annotated[
        Size | None,
        Description(description="a worker that holds more memory, with its helpers, is ended; its task fails"),
    ] = None


class Local(Executor):
    """Worker processes, each with one task at a time; some tasks have processes of their own.

    A worker that dies (killed for its memory, a crash in native code) costs its task one retry in a new worker, then it
    is a failure that names the task. Workers end when the calling process does, however that ends.

    As a context manager it keeps its workers from one `run` to the next, with the models that they have loaded. A
    worker that holds more than `memory`, with the processes that it has begun, is ended and its task has failed.
    """

    Settings = LocalSettings
    settings: LocalSettings

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._workers: list[_Worker] = []
        self._keeps = False
        self._looked = 0.0

    def __enter__(self) -> Self:
        if self.settings.memory is not None and not os.path.exists("/proc/self/stat"):
            raise ConfigError(
                "executor.memory: expected a system with /proc, which says what processes hold; leave it out"
            )
        self._keeps = True
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def cores(self) -> tuple[int, int]:
        return self.processes, self.processes

    def fitting(self, tasks: int) -> Executor:
        """Return what runs one task, or tasks on one core, in the calling process, unless workers are bounded."""
        bounded = self.settings != LocalSettings()
        return self if bounded or (self.processes > 1 and tasks > 1) else InProcess(self.report, self.begun)

    def run(
        self, function: Callable[[P, Report], R], tasks: Iterable[Task[P]], *, at_once: int | None = None
    ) -> Iterator[Result[R]]:
        room = min(self.processes, at_once or self.processes)
        waiting: deque[tuple[Task[P], int]] = deque((task, 1) for task in largest_first(tasks))
        finished = False
        try:
            while waiting or any(worker.task for worker in self._workers):
                self._give(function, waiting, room)
                for worker in ready(self._workers):
                    yield from worker.receive(self.report)
                    if not worker.process.is_alive():
                        yield from worker.receive(self.report)  # what it has sent since then, before it ended
                        worker.take_back(self.report)
                        self._workers.remove(worker)
                        if failed := worker.failed():
                            yield failed
                        elif worker.task:
                            waiting.append((worker.task, worker.tries + 1))
                if self.settings.memory is not None and time.monotonic() - self._looked > MEMORY_SECONDS:
                    _end_the_large(self._workers, self.settings.memory)
                    self._looked = time.monotonic()
            finished = True
        finally:
            if not (finished and self._keeps):
                self._end()

    def _give(self, function: Callable[..., Any], waiting: deque[tuple[Task[P], int]], room: int) -> None:
        """Give away the tasks for which there is room, to idle workers or new ones."""
        while waiting and (busy := sum(worker.task.processes for worker in self._workers if worker.task)) < room:
            if busy and busy + waiting[0][0].processes > room:
                return
            if not self.admits(waiting[0][0], busy > 0):
                return
            idle = next((worker for worker in self._workers if worker.task is None and not worker.leaves), None)
            if idle is None:
                self._workers.append(idle := _Worker(self.settings.recycle))
            self.begun(waiting[0][0].name)
            idle.give(function, *waiting.popleft())

    def _end(self) -> None:
        busy = [worker for worker in self._workers if worker.task]
        stop([worker for worker in self._workers if not worker.task], busy)
        self._workers.clear()


def _end_the_large(workers: list["_Worker"], limit: int) -> None:
    """End workers that hold too much: by SIGTERM, so that temporary files go, and by SIGKILL if that does not help.

    SIGTERM is sent at each look: a signal that comes in native code, just before a call that waits, is not heard until
    that call returns or another signal interrupts it.
    """
    busy = {worker.process.pid or 0: worker for worker in workers if worker.task is not None}
    for pid, held in resident_memory(busy).items():
        worker = busy[pid]
        if worker.excess:
            if held > 2 * limit or time.monotonic() - worker.asked > TIDYING_SECONDS:
                worker.process.kill()
            else:
                worker.process.terminate()
        elif held > limit:
            worker.excess = (
                f"its worker process held {held / 1e6:,.0f} MB of memory, more than the {limit / 1e6:,.0f} MB of "
                "executor.memory, and was ended; raise the limit, with fewer processes if need be, and run again"
            )
            worker.leaves = True  # should the task be done first
            worker.asked = time.monotonic()
            worker.process.terminate()


class _Worker(Child):
    def __init__(self, recycle: int | None = None) -> None:
        super().__init__(_work, tidy=True)
        self.task: Any = None
        self.tries = 0
        self.left = recycle
        self.leaves = False
        self.excess = ""
        self.asked = 0.0
        self._reported = (0, 0)

    def give(self, function: Callable[..., Any], task: Task[Any], tries: int) -> None:
        self.task, self.tries = task, tries
        self._reported = (0, 0)
        self.send((function, task))

    def receive(self, report: Report) -> Iterator[Result[Any]]:
        """Yield the result if it has arrived, which ends the task; pass reports on."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if isinstance(message, bytes):
                    self.task = None
                    self._reported = (0, 0)
                    self._count()
                    yield pickle.loads(message)  # noqa: S301  # from a process of ours
                else:
                    documents, size = message
                    self._reported = (self._reported[0] + documents, self._reported[1] + size)
                    report(documents, size)
        except (EOFError, OSError):  # it died, maybe in the middle of a message
            self.process.join(JOIN_SECONDS)

    def take_back(self, report: Report) -> None:
        """Take back what a worker that has died reported of its task, which is done again, or has failed."""
        documents, size = self._reported
        self._reported = (0, 0)
        if documents or size:
            report(-documents, -size)

    def _count(self) -> None:
        """Count a task that is done; after the last one, tell the worker to leave."""
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                self.leaves = True
                self.send(None)

    def failed(self) -> Result[Any] | None:
        """Return why the task failed with which the worker has died; None if there is none, or it is tried again."""
        if self.task is None or (self.tries == 1 and not self.excess):
            return None
        died = self.death()
        why = f"the worker process {died}, twice" + ("; was the memory exhausted?" if died.cause == "SIGKILL" else "")
        return Result(self.task.name, failure=Failure(f"{self.task.name}: {self.excess or why}"))


def _work(connection: Connection) -> None:
    """Do one task after the other, until told to leave."""
    reporter = _Reporter(connection)
    while (message := connection.recv()) is not None:
        function, task = message
        result = attempt(function, task, reporter)
        reporter.flush()
        connection.send(packed(result))


class _Reporter:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._documents = self._bytes = 0
        self._last = time.monotonic()

    def __call__(self, documents: int, size: int) -> None:
        self._documents += documents
        self._bytes += size
        if time.monotonic() - self._last > REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._connection.send((self._documents, self._bytes))
        self._documents = self._bytes = 0
        self._last = time.monotonic()
