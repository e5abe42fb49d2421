"""Runs the tasks of a command on the configured executor, names its steps, and merges its record log at the end."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, cast

from toolkit.command_line import Options
from toolkit.config.settings import Config, ConfigNode
from toolkit.errors import ConfigError, indented
from toolkit.execution import grouped, leases, workers
from toolkit.execution.executors import Executor, Failure, P, R, Report, Result, Task, always
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.progress import Progress
from toolkit.execution.room import Needs, Room
from toolkit.interrupts import pause
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.session import InSession, Session, current
from toolkit.storage import apart
from toolkit.storage.paths import work_folder
from toolkit.storage.record_log import RecordLog


def merge(log: RecordLog, leases_folder: str, *, forgive: bool = False) -> None:
    """Put the segments of a record log into one file, which takes up what others have written until then.

    Commands that end at once do so one after the other; who has nothing left to merge writes nothing.

    Args:
        log: Log that the command has asked for.
        leases_folder: folder of the leases of the dataset, or output, that it belongs to. The next command that leases
            something there deletes that of one which was killed.
        forgive: as in `RecordLog.merge`.

    Raises:
        Unreadable: if it is not known what there is.
    """
    waiting = leases.Waiting()
    while log.is_apart(forgive=forgive):
        with ExitStack() as stack:
            try:
                holds = {f"the records in {log.folder}": ""}
                stack.enter_context(leases.hold(leases_folder, log.folder, holds, "merging records"))
            except ConfigError as error:  # another one is at it; its lease ends with it, or by itself if it was killed
                waiting.tell(error)
                pause(leases.POLL_INTERVAL)
                continue
            log.merge(forgive=forgive)


@dataclass
class _Stage:
    """A stage that is being worked on: the keys of its tasks, and groups of them, by name; of those that have begun."""

    keys: dict[str, list[str]]
    doing: set[str] = field(default_factory=set)


@dataclass
class Running:
    """Runs tasks, stage by stage, as the configuration and the options say.

    Attributes:
        options: Options of the command.
        config: the whole configuration.
        source: what was read.
        session: Session of the command.
        stage: which of the stages of a run this is, of how many: ``2 of 3``; empty if it is the only one.
        failures: Failures that one pass met, by stage and key: a stage tells them, and does not begin these tasks.
    """

    options: Options
    config: Config
    source: ConfigNode
    session: Session = field(default_factory=current)
    stage: str = ""
    failures: dict[tuple[str, str], Failure] = field(default_factory=dict)
    _stages: dict[str, _Stage] = field(default_factory=dict)
    _progress: Progress | None = None
    _stage: _Stage = field(default_factory=lambda: _Stage({}))
    _here: Callable[[], list[str]] | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError if there is no such executor."""
        chosen = workers.read(self.config.executor, self.source, self.config.processes)
        self._workers = workers.Workers(chosen, self.config.processes, self._report, self._begun)

    @property
    def room(self) -> Room | None:
        """Return the bound of what is on disk; None if there is none."""
        return None

    def run(
        self,
        what: str,
        function: Callable[[P, Report], R] | grouped.Work[P, R],
        tasks: Iterable[Task[P]],
        unit: str = "shards",
        *,
        spreads: bool = False,
        at_once: int | None = None,
        failed: FailureRecords | None = None,
        needs: Needs | None = None,
    ) -> list[Result[R]]:
        """Run tasks on the configured executor, with progress; return results in the order of the tasks.

        Args:
            what: the step, in words.
            function: Function of the tasks; with what does small ones in groups, which is done where disk is not bound.
            tasks: to run.
            unit: what tasks are.
            spreads: True if a task can use several processes; its payload says how many.
            at_once: at most so many tasks, if not as many as there are processes.
            failed: where failures are noted, by the keys of the tasks.
            needs: what tasks need on disk, where that is bound.

        Raises:
            NoRoom: if that is too much.
        """
        listed = list(tasks)
        told = {
            task.name: why
            for task in listed
            if failed and task.known is None and (why := self.failures.pop((failed.stage, task.key), None))
        }
        left = [task for task in listed if task.known is None and task.name not in told]
        left = self._workers.spread(left) if spreads else left
        room = self.room if needs else None
        work = function if isinstance(function, grouped.Work) else grouped.Work(function)
        left = left if room else work.in_groups(left, self.cores)
        inside = [member for task in left for member in grouped.members(task)]
        named = [*listed, *left, *inside]
        self._stage = _Stage({task.name: [member.key for member in grouped.members(task)] for task in named})
        if failed:
            self._stages[failed.stage] = self._stage
        executor = InProcess(self._report, self._begun) if self._here else self._workers.executor(len(left))
        executor.admits = room.admits if room else always
        if room and needs:
            room.begin(needs)
        sizes = {task.name: task.size for task in listed}
        quiet = self.options.quiet
        title = ": ".join(part for part in (self.stage, what) if part)
        with Progress(title, sizes.values(), unit, quiet=quiet, watch=self.options.watch, more=self._here) as progress:
            self._progress = progress
            output: dict[str, Result[R]] = {}
            for task in listed:
                if task.known is None:
                    continue
                output[task.name] = Result(task.name, cast("R", task.known))
                progress.report(task.known.documents, 0)
                progress.end(task.size, 0)
                if failed:
                    self._note(failed, task.key, output[task.name])

            failures: Iterator[Result[R]] = (Result(name, failure=why) for name, why in told.items())
            for result in chain(failures, work.results(partial(self._results, executor, at_once), left)):
                output[result.name] = result
                if room:
                    room.end(result.name)
                progress.end(sizes[result.name], result.reported)
                if failed:
                    self._note(failed, self._stage.keys[result.name][0], result)
                if result.failure and not quiet:
                    progress.tell(f"failed: {indented(result.failure.message)}")
                    if self.options.debug and result.failure.details:
                        progress.tell(result.failure.details)
        self.session.begin()
        return [output[task.name] for task in listed]

    def _results(
        self, executor: Executor, at_once: int | None, work: grouped.Work[Any, Any], tasks: list[Task[Any]]
    ) -> Iterator[Result[Any]]:
        """Yield the results of tasks, which know the records as they are now, and keep no index if nothing is kept."""
        self.session.begin()
        within: Callable[[Any, Report], Any] = work if self.options.keeps_indexes else partial(apart.looking, work)
        for result in executor.run(InSession(self.session.part(), within), tasks, at_once=at_once):
            if answer := result.value:
                self.session.hosts |= answer.hosts
            yield replace(result, value=answer and answer.value)

    @contextmanager
    def here(self, facts: Callable[[], list[str]]) -> Iterator[None]:
        """Let stages run in this process within the block, their tasks one after the other; `facts` shows how far."""
        self._here = facts
        try:
            yield
        finally:
            self._here = None

    @property
    def cores(self) -> int:
        """Return the number of processes that may work at a time."""
        return self._workers.cores

    def _report(self, documents: int, size: int) -> None:
        if self._progress:
            self._progress.report(documents, size)

    def _begun(self, name: str) -> None:
        self._stage.doing.update(self._stage.keys[name])

    def _note(self, failed: FailureRecords, key: str, result: Result[Any]) -> None:
        self._stage.doing.discard(key)
        if why := result.failure:
            failed.note(key, FailureRecord(task=result.name, message=why.message, details=why.details))
        else:
            failed.forget(key)

    def lease(self, folder: str, what: str, holds: Mapping[str, str]) -> AbstractContextManager[None]:
        """Return a context manager, within which no other run works on something with other settings.

        See `toolkit.execution.leases`.

        Args:
            folder: the bookkeeping folder of a dataset or an output.
            what: is worked on, for messages.
            holds: digests of the settings; empty where no other run may work.
        """
        share = "" if self.options.shard is None else " --shard {}/{}".format(*self.options.shard)
        run = f"toolkit {self.options.command}{share}"

        def doing() -> dict[str, list[str]]:
            return {name: sorted(stage.doing.copy()) for name, stage in self._stages.copy().items()}

        return leases.hold(leases.folder_in(folder), what, holds, run, doing)

    def lease_output(self, output: str, digest: str = "") -> AbstractContextManager[None]:
        """Return a context manager, within which no other run works on the output of a mix.

        With a digest, runs whose settings have the same one may.
        """
        return self.lease(work_folder(output), output, {"the output": digest})
