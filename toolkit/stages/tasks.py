"""Runs tasks on the executor, and merges record logs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from toolkit.command_options import Options
from toolkit.config.settings import Config, ConfigNode
from toolkit.errors import ConfigError, indented
from toolkit.execution import grouped, leases, workers
from toolkit.execution.executors import Executor, Failure, P, R, Report, Result, Task, TaskOutcome, always_start
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.grouped import W
from toolkit.execution.progress import Progress
from toolkit.interrupts import pause
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.session import InSession, Session, current
from toolkit.stages.disk_quota import DiskQuota, EstimateOf
from toolkit.storage import ephemeral, paths, record_log, threads

OutcomeT = TypeVar("OutcomeT", bound=TaskOutcome)


def merge(log: record_log.RecordLog, leases_folder: str, *, forgive: bool = False) -> None:
    """Merge the segments of a record log into one file.

    Commands that end at once do so one after the other; a command without segments writes nothing.

    Args:
        log: Log of the command.
        leases_folder: Folder of the leases of the dataset, or output. The next command that leases something there
            deletes the lease of one that was killed.
        forgive: Argument of `RecordLog.merge`.

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


def skip_finished(
    works: Iterable[W],
    outcome_of: Callable[[W], OutcomeT | None],
    failed: FailureRecords,
    size_of: Callable[[W], int | None],
    note: Callable[[W, OutcomeT], object] = lambda work, outcome: None,
    quick: Callable[[W], OutcomeT | None] = lambda work: None,
) -> tuple[list[W], grouped.Finished]:
    """Return the unfinished works of a step; count the others, and forget their failures.

    Args:
        works: Works of the step.
        outcome_of: Function that returns the outcome of finished work, else None.
        failed: Record of failures.
        size_of: Function that returns the stored bytes of an input.
        note: Function to call with finished work and its outcome.
        quick: Argument of `toolkit.storage.threads.batches_of`.
    """
    former, rest, finished, mended = failed.keys(), list[W](), grouped.Finished(), list[str]()
    for work, outcome in threads.results_of(outcome_of, works, quick):
        if outcome is None:
            rest.append(work)
            continue
        note(work, outcome)
        finished.add(outcome.documents, size_of(work))
        if work.key in former:
            mended.append(work.key)
    failed.forget(*mended)  # at the end, because what is derived from the records holds until some are written
    return rest, finished


class _Stage(msgspec.Struct):
    """A running stage: the keys of its tasks, and groups, by name; the started ones."""

    keys: dict[str, list[str]]
    doing: set[str] = set()


class Running(msgspec.Struct, eq=False, dict=True):
    """Runs tasks, stage by stage, as the configuration and the options say.

    Attributes:
        options: Options of the command.
        config: Configuration.
        source: YAML node of the configuration.
        session: Session of the command.
        stage: Position among the stages of a run: ``2 of 3``; empty if it is the only one.
        failures: Failures of the one pass, by stage and key: a stage reports them, and does not start these tasks.
    """

    options: Options
    config: Config
    source: ConfigNode
    session: Session = msgspec.field(default_factory=current)
    stage: str = ""
    failures: dict[tuple[str, str], Failure] = {}
    _stages: dict[str, _Stage] = {}
    _progress: Progress | None = None
    _stage: _Stage = msgspec.field(default_factory=lambda: _Stage({}))
    _here: Callable[[], list[str]] | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError if there is no such executor."""
        chosen = workers.read(self.config.executor, self.source, self.config.processes)
        self._workers = workers.Workers(chosen, self.config.processes, self._report, self._begun)

    @property
    def quota(self) -> DiskQuota | None:
        """Return the bound on disk; None if there is none."""
        return None

    def run(
        self,
        step: str,
        function: Callable[[P, Report], R] | grouped.Work[P, R],
        tasks: Iterable[Task[P]],
        unit: str = "shards",
        *,
        spreads: bool = False,
        failed: FailureRecords | None = None,
        needs: EstimateOf | None = None,
        finished: grouped.Finished | None = None,
    ) -> list[Result[R]]:
        """Run tasks on the configured executor, with progress; return results in the order of the tasks.

        Args:
            step: Step, in words.
            function: Function of the tasks; with a function for groups of small ones, which is used if disk is not
                bound.
            tasks: Tasks to run.
            unit: Noun for tasks.
            spreads: True if a task can use several processes; its payload gives the number.
            failed: Record of failures, by the keys of the tasks.
            needs: Estimates of the tasks on disk, with a bound.
            finished: Tasks of the step that were done before, for progress.

        Raises:
            QuotaExceeded: if that is too much.
        """
        listed = list(tasks)
        early_failures = {
            task.name: why
            for task in listed
            if failed and task.outcome is None and (why := self.failures.pop((failed.stage, task.key), None))
        }
        pending = [task for task in listed if task.outcome is None and task.name not in early_failures]
        pending = self._workers.spread(pending) if spreads else pending
        quota = self.quota if needs else None
        work = function if isinstance(function, grouped.Work) else grouped.Work(function)
        pending = pending if quota else work.in_groups(pending, self.cores)
        inside = [member for task in pending for member in grouped.members(task)]
        named = [*listed, *pending, *inside]
        self._stage = _Stage({task.name: [member.key for member in grouped.members(task)] for task in named})
        if failed:
            self._stages[failed.stage] = self._stage
        executor = InProcess(self._report, self._begun) if self._here else self._workers.executor(len(pending))
        executor.can_start = quota.can_start if quota else always_start
        if quota and needs:
            quota.begin(needs)
        sizes = {task.name: task.size for task in listed}
        quiet = self.options.quiet
        title = ": ".join(part for part in (self.stage, step) if part)
        finished = finished or grouped.Finished()
        all_sizes = chain(sizes.values(), finished.sizes)
        with Progress(title, all_sizes, unit, quiet=quiet, watch=self.options.watch, more=self._here) as progress:
            self._progress = progress
            for documents, size in zip(finished.documents, finished.sizes, strict=True):
                progress.report(documents, 0)
                progress.end(size, 0)
            output: dict[str, Result[R]] = {}
            for task in listed:
                if task.outcome is None:
                    continue
                output[task.name] = Result(task.name, cast("R", task.outcome))
                progress.report(task.outcome.documents, 0)
                progress.end(task.size, 0)
                if failed:
                    self._note(failed, task.key, output[task.name])

            failures: Iterator[Result[R]] = (Result(name, failure=why) for name, why in early_failures.items())
            for result in chain(failures, work.results(partial(self._results, executor), pending)):
                output[result.name] = result
                if quota:
                    quota.end(result.name)
                progress.end(sizes[result.name], result.reported)
                if failed:
                    self._note(failed, self._stage.keys[result.name][0], result)
                if result.failure and not quiet:
                    progress.tell(f"failed: {indented(result.failure.message)}")
                    if self.options.debug and result.failure.details:
                        progress.tell(result.failure.details)
        return [output[task.name] for task in listed]

    def _results(
        self, executor: Executor, work: grouped.Work[Any, Any], tasks: list[Task[Any]]
    ) -> Iterator[Result[Any]]:
        """Yield the results of tasks; keep no index if nothing is kept.

        Records are read anew for the tasks, and after them; without tasks, those that were read still hold.
        """
        if not tasks:
            return
        self.session.begin()
        within: Callable[[Any, Report], Any] = (
            work if self.options.keeps_indexes else partial(ephemeral.with_ephemeral_records, work)
        )
        for result in executor.run(InSession(self.session.part(), within), tasks, at_once=work.at_once):
            if answer := result.value:
                self.session.hosts |= answer.hosts
            yield replace(result, value=answer and answer.value)
        self.session.begin()

    @contextmanager
    def here(self, facts: Callable[[], list[str]]) -> Iterator[None]:
        """Run stages in this process, one task at a time. Function `facts` shows progress in the block."""
        self._here = facts
        try:
            yield
        finally:
            self._here = None

    @property
    def cores(self) -> int:
        """Return the number of processes at a time."""
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

    def lease(self, folder: str, subject: str, holds: Mapping[str, str]) -> AbstractContextManager[None]:
        """Hold a lease in the block, against runs with other settings.

        See `toolkit.execution.leases`.

        Args:
            folder: Bookkeeping folder of a dataset or an output.
            subject: Name of the leased data, for messages.
            holds: Digests of the settings; empty to tolerate no other run.
        """
        share = "" if self.options.shard is None else " --shard {}/{}".format(*self.options.shard)
        run = f"toolkit {self.options.command}{share}"

        def doing() -> dict[str, list[str]]:
            return {name: sorted(stage.doing.copy()) for name, stage in self._stages.copy().items()}

        return leases.hold(leases.folder_in(folder), subject, holds, run, doing)

    def lease_output(self, output: str, digest: str = "") -> AbstractContextManager[None]:
        """Lease the output of a mix; runs with the same digest share it.

        With a digest, runs whose settings have the same one may.
        """
        return self.lease(paths.work_folder(output), output, {"the output": digest})
