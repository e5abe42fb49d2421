"""The calling process itself, for one core and for debuggers."""

from collections.abc import Callable, Iterable, Iterator

from toolkit.execution.executors import Executor, P, R, Report, Result, Task, run_task


class InProcess(Executor):
    """Runs tasks one after the other in the calling process."""

    def run(
        self, function: Callable[[P, Report], R], tasks: Iterable[Task[P]], *, at_once: int | None = None
    ) -> Iterator[Result[R]]:
        for task in tasks:
            self.can_start(task, False)
            self.begun(task.name)
            yield run_task(function, task, self.report)
