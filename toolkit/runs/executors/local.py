"""Executors on this machine: worker processes, or the calling process itself."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from toolkit.errors import ConfigError
from toolkit.interrupts import Ended, raise_on_sigterm
from toolkit.runs.executors import Begun, Executor, Failure, P, R, Report, Result, Task, attempt, unheard
from toolkit.runs.processes import begin_masked, die_with_parent, one_thread_each, resident_memory

REPORT_SECONDS = 0.2
MEMORY_SECONDS = 0.5
TIDYING_SECONDS = 5.0
"""What a worker that holds too much has to delete its temporary files in, unless it comes to hold twice as much."""
JOIN_SECONDS = 5
STOP_TRIES = 3
STOP_SECONDS = 1.0


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class InProcess(Executor):
    """Runs tasks one after the other in the calling process: for one core, and for debuggers."""

    def __init__(self, report: Report, begun: Begun = unheard) -> None:
        self._report = report
        self._begun = begun

    def run(
        self, function: Callable[[P, Report], R], tasks: Iterable[Task[P]], *, at_once: int | None = None
    ) -> Iterator[Result[R]]:
        for task in tasks:
            self._begun(task.name)
            yield attempt(function, task, self._report)


class Local(Executor):
    """Worker processes, started by ``spawn``, each with one task at a time; some tasks have processes of their own.

    A worker that dies (killed for its memory, a crash in native code) costs its task one retry in a new worker, then it
    is a failure that names the task. Workers end when the calling process does, however that ends.

    As a context manager it keeps its workers from one `run` to the next, with the models that they have loaded.

    Args:
        processes: that may work at a time.
        report: gets what tasks report.
        begun: is told of each task that is given to a worker.
        recycle: after so many tasks a worker is replaced, with what its libraries have leaked.
        memory: bytes; a worker that holds more, with the processes that it has begun, is ended and its task has failed.
    """

    def __init__(
        self,
        processes: int,
        report: Report,
        begun: Begun = unheard,
        *,
        recycle: int | None = None,
        memory: int | None = None,
    ) -> None:
        if memory is not None and not os.path.exists("/proc/self/stat"):
            raise ConfigError(
                "executor.memory: expected a system with /proc, which says what processes hold; leave it out"
            )
        self._processes = processes
        self._report = report
        self._begun = begun
        self._recycle = recycle
        self._memory = memory
        self._looked = 0.0
        self._keeps = False
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        self._keeps = True
        return self

    def __exit__(self, *_: object) -> None:
        _stop(self._workers)
        self._workers.clear()

    def run(
        self, function: Callable[[P, Report], R], tasks: Iterable[Task[P]], *, at_once: int | None = None
    ) -> Iterator[Result[R]]:
        room = min(self._processes, at_once or self._processes)
        largest_first = sorted(tasks, key=lambda task: -task.size)
        waiting: deque[tuple[Task[P], int]] = deque((task, 1) for task in largest_first)
        workers = self._workers
        finished = False
        try:
            while waiting or any(worker.task for worker in workers):
                while waiting and (busy := sum(w.task.processes for w in workers if w.task)) < room:
                    if busy and busy + waiting[0][0].processes > room:
                        break
                    idle = next((worker for worker in workers if worker.task is None and not worker.leaves), None)
                    if idle is None:
                        workers.append(idle := _Worker(self._recycle))
                    self._begun(waiting[0][0].name)
                    idle.give(function, *waiting.popleft())
                for worker in _ready(workers):
                    yield from worker.receive(self._report)
                    if worker.process.is_alive():
                        continue
                    workers.remove(worker)
                    task, tries = worker.task, worker.tries
                    if task is not None and worker.excess:
                        yield Result(task.name, failure=Failure(f"{task.name}: {worker.excess}"))
                    elif task is not None and tries == 1:
                        waiting.append((task, tries + 1))
                    elif task is not None:
                        yield Result(task.name, failure=Failure(f"{task.name}: {worker.obituary()}"))
                if self._memory is not None and time.monotonic() - self._looked > MEMORY_SECONDS:
                    _end_the_large(workers, self._memory)
                    self._looked = time.monotonic()
            finished = True
        finally:
            if not (finished and self._keeps):
                _stop(workers)
                workers.clear()


def _end_the_large(workers: list["_Worker"], limit: int) -> None:
    """Ends workers that hold too much: asked first, so that temporary files go, and killed when that does not help.

    They are asked at each look: a signal that comes in native code, just before a call that waits, is not heard until
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


class _Worker:
    def __init__(self, recycle: int | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,))  # no daemon: it may have processes of its own
        begin_masked(self.process)
        theirs.close()
        self.task: Any = None
        self.tries = 0
        self.left = recycle
        self.leaves = False
        self.excess = ""
        self.asked = 0.0

    def give(self, function: Callable[..., Any], task: Task[Any], tries: int) -> None:
        self.task, self.tries = task, tries
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died; `run` notices
            self.connection.send((function, task))

    def receive(self, report: Report) -> Iterator[Result[Any]]:
        """What has arrived: reports are passed on, the result ends the task."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if isinstance(message, Result):
                    self.task = None
                    self._count()
                    yield message
                else:
                    report(*message)
        except (EOFError, OSError):  # it died, maybe in the middle of a message
            self.process.join(JOIN_SECONDS)

    def _count(self) -> None:
        """One more task is done; after the last one the worker is told to leave."""
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                self.leaves = True
                with contextlib.suppress(OSError):
                    self.connection.send(None)

    def obituary(self) -> str:
        code = self.process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            why = "; was the memory exhausted?" if name == "SIGKILL" else ""
            return f"the worker process was ended by {name}, twice{why}"
        return f"the worker process ended with status {code}, twice"


def _ready(workers: list[_Worker]) -> list[_Worker]:
    watched: dict[Any, _Worker] = {}
    for worker in workers:
        watched[worker.connection] = worker
        watched[worker.process.sentinel] = worker
    ready = wait(list(watched), timeout=1.0)
    return list({id(watched[thing]): watched[thing] for thing in ready}.values())


def _stop(workers: list[_Worker]) -> None:
    """Ends all workers: the idle by a word, the busy by SIGTERM, so that they delete their temporary files.

    A signal that meets the end of an interpreter makes it complain, so the idle get one only if the word did not help.
    """
    for worker in workers:
        if worker.task is None:
            with contextlib.suppress(OSError):
                worker.connection.send(None)
        else:
            worker.process.terminate()
    _join(workers)
    for _ in range(STOP_TRIES):
        for worker in workers:
            if worker.process.is_alive():
                worker.process.terminate()
        _join(workers)
    for worker in workers:
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.connection.close()


def _join(workers: list[_Worker]) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))


def _work(connection: Connection) -> None:
    """A worker's life: one task after the other, until told to stop or the calling process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the calling process decides
    raise_on_sigterm(Ended)  # unwinds, so that temporary files are deleted
    one_thread_each()
    die_with_parent()
    reporter = _Reporter(connection)
    try:
        while (message := connection.recv()) is not None:
            function, task = message
            result = attempt(function, task, reporter)
            reporter.flush()
            try:
                connection.send(result)
            except (TypeError, AttributeError, pickle.PicklingError) as error:
                failure = Failure(
                    f"{task.name}: expected a result that can be sent, got {type(error).__name__}: {error}"
                )
                connection.send(Result(task.name, failure=failure))
    except (EOFError, OSError):
        pass


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
