"""Worker processes on this machine."""

import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Self

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError
from toolkit.execution import executors
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.pool import Call, Died, Limits, Pool, Tell
from toolkit.storage_options import Duration, Size

REPORT_SECONDS = 0.2
ADMIT_SECONDS = 1.0
"""After which it is asked again whether a task may begin that had to wait."""


class LocalSettings(ConfigStruct):
    """Options of worker processes on this machine.

    Attributes:
        recycle: a worker process is replaced after this number of tasks, against memory leaks
        memory: a process gets no more memory than this; a task that needs more fails
        timeout: a task that takes longer fails; its worker process is replaced
    """

    recycle: Annotated[int, msgspec.Meta(ge=1)] | None = None
    memory: Size | None = None
    timeout: Duration | None = None


class Local(executors.Executor):
    """Worker processes, each with one task at a time; some tasks have processes of their own.

    A worker that dies (killed for its memory, a crash in native code) costs its task one retry in a new worker, then it
    is a failure that names the task. Workers end when the calling process does, however that ends.

    As a context manager it keeps its workers from one `run` to the next, with the models that they have loaded.
    """

    Settings = LocalSettings
    settings: LocalSettings

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._pool: Pool | None = None
        self._keeps = False

    def __enter__(self) -> Self:
        if self.settings.memory is not None and sys.platform != "linux":
            raise ConfigError("executor.memory: expected Linux, which bounds what a process holds; leave it out")
        self._keeps = True
        return self

    def __exit__(self, *_: object) -> None:
        pool, self._pool = self._pool, None
        if pool:
            pool.__exit__()

    @property
    def cores(self) -> tuple[int, int]:
        return self.processes, self.processes

    def fitting(self, tasks: int) -> executors.Executor:
        """Return an in-process executor for few tasks, unless workers are bounded."""
        bounded = self.settings != LocalSettings()
        return self if bounded or (self.processes > 1 and tasks > 1) else InProcess(self.report, self.begun)

    def run(
        self,
        function: Callable[[executors.P, executors.Report], executors.R],
        tasks: Iterable[executors.Task[executors.P]],
        *,
        at_once: int | None = None,
    ) -> Iterator[executors.Result[executors.R]]:
        room = min(self.processes, at_once or self.processes)
        waiting, running = deque(executors.largest_first(tasks)), list[_TaskCall]()
        self._pool = self._pool or Pool(
            _tasks, self.settings.memory, self.processes, tidy=True, recycle=self.settings.recycle,
            limits=Limits(wall=self.settings.timeout or 0, memory=self.settings.memory),
        )  # fmt: skip
        finished = False
        try:
            while waiting or running:
                while waiting and self._may_begin(waiting[0], sum(call.task.processes for call in running), room):
                    running.append(_TaskCall(function, waiting.popleft(), self))
                    self._pool.give(running[-1])
                self._pool.receive(ADMIT_SECONDS)
                ended, running = (
                    [call for call in running if call.is_done],
                    [call for call in running if not call.is_done],
                )
                for call in ended:
                    yield self._result(call)
            finished = True
        finally:
            if not (finished and self._keeps):
                self.__exit__()

    def _may_begin(self, task: executors.Task[Any], busy: int, room: int) -> bool:
        return busy < room and not (busy and busy + task.processes > room) and self.can_start(task, busy > 0)

    def _result(self, call: "_TaskCall") -> executors.Result[Any]:
        name = call.task.name
        try:
            result: executors.Result[Any] = pickle.loads(call.result())  # noqa: S301  # from a process of ours
        except Died as died:
            why = f"the worker process {died}, twice"
            if died.cause == "SIGKILL" or (died.by_signal and self.settings.memory):
                why += "; was the memory exhausted?"
            if died.is_late:
                why = (
                    f"it took longer than the {self.settings.timeout} of executor.timeout, and its worker process was "
                    "ended; raise the limit and run again"
                )
        except Exception as error:  # it cannot be sent
            why = f"{type(error).__name__}: {error}"
        else:
            return result
        return executors.Result(name, failure=executors.Failure(f"{name}: {why}"))


class _TaskCall(Call):
    """A task of a worker, and its reports."""

    def __init__(self, function: Callable[..., Any], task: executors.Task[Any], executor: Local) -> None:
        super().__init__((function, task))
        self.task, self._executor = task, executor
        self._reported = (0, 0)

    def begun(self) -> None:
        self._executor.begun(self.task.name)

    def update(self, news: tuple[int, int]) -> None:
        self._reported = (self._reported[0] + news[0], self._reported[1] + news[1])
        self._executor.report(*news)

    def died(self, died: Died) -> None:
        """Take back the reports: the task is done again, or has failed."""
        documents, size = self._reported
        if documents or size:
            self.update((-documents, -size))
        super().died(died)


def _tasks(memory: int | None, tell: Tell) -> Callable[[Any], bytes]:
    """Return the function of a worker."""

    def call(request: tuple[Callable[[Any, executors.Report], Any], executors.Task[Any]]) -> bytes:
        reporter = executors.Sending(lambda *counts: tell(counts), REPORT_SECONDS)
        result = executors.run_task(*request, reporter, memory=memory)
        reporter.flush()
        return executors.pickle_result(result)

    return call
