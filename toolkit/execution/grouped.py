"""Runs small tasks in groups; one sync makes a group durable.

    tasks ──small ones, in a row──> groups ──executor──> a result for each task
                                      └──the process died, or the disk refused──> each by itself

A group has so little work that it does not matter who has to do it again.
"""

import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import record_logs
from toolkit.data.dataset import Dataset
from toolkit.execution.executors import P, R, Report, Result, Task, TaskOutcome, run_task
from toolkit.storage.paths import size_of
from toolkit.storage.record_log import Group, RecordLog
from toolkit.storage.threads import for_each

SMALL = 256 << 10
"""Stored bytes of an input below which it is small."""

MOST = 64
"""Tasks of a group."""

LEAST = 16
"""Small tasks from which they are grouped."""

SECONDS = 2.0
"""Work after which what is done of a group becomes durable: a kill costs no more."""

OutputBatch = Callable[[list[Task[P]], Report], list[Result[R]]]
"""Does the tasks of a group; returns a result for each, in their order."""

Run = Callable[["Work[Any, Any]", list[Task[Any]]], Iterator[Result[Any]]]
"""Yields the results of tasks: that of an executor."""


class ShardDone(ConfigStruct):
    """The outcome of a shard.

    Attributes:
        shard: Name of the shard.
        documents: Number of its documents.
        written: Names of what was written of it; none if all was up to date.
        rows: Number of rows that were made, if that is not the number of documents.
    """

    shard: str
    documents: int
    written: list[str] = []
    rows: int = 0


class Finished:
    """Tasks done before a step. Of each, documents and stored bytes are held: there may be millions.

    Attributes:
        documents: Number of documents of each task.
        sizes: Stored bytes of each task; None if unknown.
    """

    def __init__(self) -> None:
        self.documents, self._sizes = array("q"), array("q")

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def sizes(self) -> Iterator[int | None]:
        return (None if size < 0 else size for size in self._sizes)

    def add(self, documents: int, size: int | None) -> None:
        """Add a task."""
        self.documents.append(documents)
        self._sizes.append(-1 if size is None else size)


class ShardWork(ConfigStruct, kw_only=True):
    """Base of the work on a shard of a dataset."""

    dataset: Dataset
    shard: str

    @property
    def path(self) -> str:
        """Return the path of the documents."""
        return self.dataset.shard_path(self.shard)

    @property
    def name(self) -> str:
        return self.path

    @property
    def key(self) -> str:
        return self.shard


class OnShard(Protocol):
    """Work on a shard: its name for messages, its key in records, and the path of its documents."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def path(self) -> str: ...


W = TypeVar("W", bound=OnShard)


def shard_tasks(
    works: Sequence[W],
    outcome_of: Callable[[W], TaskOutcome | None] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> list[Task[W]]:
    """Return a task for each shard.

    Args:
        works: Work on each shard.
        outcome_of: Function that returns the outcome of finished work.
        sizes: Stored bytes by key, if they have been listed.
    """
    return tasks_of(works, works, for_each(outcome_of, works) if outcome_of else repeat(None), sizes)


def tasks_of(
    works: Sequence[OnShard],
    payloads: Iterable[P],
    outcomes: Iterable[TaskOutcome | None] = repeat(None),
    sizes: Mapping[str, int] | None = None,
) -> list[Task[P]]:
    """Return a task for each shard, with payload and known outcome. `sizes` as of `shard_tasks`."""
    results = for_each(size_of, [work.path for work in works]) if sizes is None else [sizes.get(w.key) for w in works]
    return [
        Task(work.name, payload, size, key=work.key, outcome=outcome)
        for work, payload, size, outcome in zip(works, payloads, results, outcomes, strict=False)
    ]


class Work(msgspec.Struct, Generic[P, R], frozen=True):
    """The function of tasks, with one for groups of small tasks.

    Attributes:
        alone: Function of a task.
        together: Function of a group of small ones; None to run each by itself.
        at_once: Largest number of tasks at a time, if not the number of processes.
        small: Stored bytes of an input below which a task is small.
    """

    alone: Callable[[P, Report], R]
    together: OutputBatch[P, R] | None = None
    at_once: int | None = None
    small: int = SMALL

    def in_groups(self, tasks: list[Task[P]], cores: int) -> list[Task[Any]]:
        """Return tasks, small ones grouped, in enough groups for all processes."""
        small = [task for task in tasks if task.size is not None and task.size < self.small and task.processes == 1]
        if self.together is None or len(small) < LEAST:
            return tasks
        size = min(MOST, -(-len(small) // (1 if cores == 1 else 4 * cores)))
        grouped = {task.name for task in small}
        result: list[Task[Any]] = [task for task in tasks if task.name not in grouped]
        for first in range(0, len(small), size):
            group = small[first : first + size]
            name, total = f"{group[0].name} … {group[-1].name}", sum(task.size or 0 for task in group)
            result.append(Task(name, _Group(group), total))
        return result

    def results(self, run: Run, tasks: list[Task[Any]]) -> Iterator[Result[R]]:
        """Yield the results of all tasks, in any order; tasks of a failed group run alone.

        Args:
            run: Function that runs tasks; called again for those of failed groups.
            tasks: Tasks and groups of them.
        """
        groups, again = (
            {task.name: members(task) for task in tasks if isinstance(task.payload, _Group)},
            list[Task[P]](),
        )
        for result in run(self, tasks):
            if result.name not in groups:
                yield result
            elif result.failure:
                again += groups[result.name]
            else:
                yield from result.value or ()
        if again:
            yield from run(self, again)

    def __call__(self, payload: Any, report: Report) -> Any:
        """Return the result of a task, or those of a group; a failed group has reported nothing."""
        if self.together is None or not isinstance(payload, _Group):
            return self.alone(payload, report)
        reported: Counter[str] = Counter()

        def counted(documents: int, size: int) -> None:
            reported.update(documents=documents, size=size)
            report(documents, size)

        try:
            return self.together(payload.tasks, counted)
        except Exception:
            report(-reported["documents"], -reported["size"])
            raise


class _Group(msgspec.Struct, frozen=True):
    """The payload of a group."""

    tasks: list[Task[Any]]


def members(task: Task[Any]) -> list[Task[Any]]:
    """Return the tasks of a group; any other task itself."""
    return task.payload.tasks if isinstance(task.payload, _Group) else [task]


def run_batch(
    function: Callable[..., R], log_of: Callable[[P], RecordLog], tasks: list[Task[P]], report: Report
) -> list[Result[R]]:
    """Return the results of a group of tasks. A `Work.together` by `functools.partial`.

    Args:
        function: Function of the tasks; its argument `group` takes the output.
        log_of: Function that returns the record log of a payload.
        tasks: Tasks to do, in order.
        report: Function to call with progress.
    """
    with Group(log_of(tasks[0].payload)) as group:
        return run_sequentially(partial(function, group=group), tasks, report, group)


def log_of_dataset(work: Any) -> RecordLog:
    """Return the record log of the dataset of a payload."""
    return record_logs.of(work.dataset)


def run_sequentially(
    function: Callable[[P, Report], R], tasks: list[Task[P]], report: Report, group: Group
) -> list[Result[R]]:
    """Return the results of tasks with a common group; failed ones leave nothing in it.

    Args:
        function: Function of the tasks, which adds what it makes to the group.
        tasks: Tasks to do, in order.
        report: Function to call with progress.
        group: Group, committed every few seconds; the caller commits the rest.
    """

    def within(payload: P, report: Report) -> R:
        with group.part():
            return function(payload, report)

    results, since = [], time.monotonic()
    for task in tasks:
        results.append(run_task(within, task, report))
        if time.monotonic() - since > SECONDS:
            group.commit()
            since = time.monotonic()
    return results
