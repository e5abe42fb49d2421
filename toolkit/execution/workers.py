"""Reads the section ``executor:``, and starts its executor on demand."""

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from toolkit.config.settings import ConfigNode, ConfigStruct, convert, divide
from toolkit.execution.executors import Begun, Executor, P, Report, Task
from toolkit.execution.processes import available_cores
from toolkit.plugins import Kind

EXECUTORS: Kind[Executor] = Kind(
    "executor", "toolkit.execution.executors", "toolkit.executors", Executor, home="toolkit.execution.executors"
)

DEFAULT = "local"

LARGE = 8 << 20
"""Stored bytes from which several processes work on one shard, if it is a large part of all."""


class ExecutorChoice(NamedTuple):
    """The executor of a configuration, and its settings."""

    kind: type[Executor]
    settings: ConfigStruct


def read(executor: dict[str, Any], source: ConfigNode, processes: int | None) -> ExecutorChoice:
    """Return the executor of the section; by default `DEFAULT`, or this process alone.

    Args:
        executor: Value of the section.
        source: Node of the configuration, for messages.
        processes: Number of processes at a time on this machine, if configured.

    Raises:
        ConfigError: with the line of what is unknown or wrong.
    """
    part = source.at("executor") if "executor" in (source.value or {}) else ConfigNode(executor)
    _, options = divide(part, ["type"])
    name = executor.get("type", DEFAULT if executor or processes != 1 else "in_process")
    if not isinstance(name, str):
        raise part.error(("type",), f"expected one of {', '.join(EXECUTORS.names())}, got {name!r}")
    with part.errors_at("type"):
        kind = EXECUTORS.find(name)
    return ExecutorChoice(kind, convert(options, kind.Settings, f"executor {name}"))


class Workers:
    """Provides the executor for each stage, and keeps it between stages.

    Args:
        chosen: Executor and settings.
        processes: Number of processes at a time on this machine; None for as many as there are cores.
        report: Function that receives the reports of tasks.
        begun: Function to call with each started task.
    """

    def __init__(self, chosen: ExecutorChoice, processes: int | None, report: Report, begun: Begun) -> None:
        self._executor = chosen.kind(report, begun, processes=processes or available_cores(), settings=chosen.settings)
        self._open = ExitStack()
        self._active: Executor | None = None

    def check(self) -> None:
        """Raise MissingExtra if a package of the executor is missing."""
        self._executor.check()

    def begin(self) -> None:
        """Start the fork server, if there may be several processes; to be followed by `close`."""
        if self._executor.processes > 1:
            from toolkit.execution import forkserver

            self._open.enter_context(forkserver.opened())

    def executor(self, tasks: int) -> Executor:
        """Return the executor for so many tasks."""
        return self._begun().fitting(tasks)

    @property
    def cores(self) -> int:
        """Return the number of processes at a time."""
        return self._begun().cores[0]

    def spread(self, tasks: Iterable[Task[P]]) -> list[Task[P]]:
        """Return the tasks, with several processes for the largest ones."""
        listed = list(tasks)
        cores, largest = self._begun().cores
        total = sum(task.size or 0 for task in listed)
        spread = []
        for task in listed:
            size = task.size or 0
            share = min(cores * size // max(total, 1), largest)
            if share > 1 and size >= LARGE:
                payload = msgspec.structs.replace(task.payload, processes=share)  # type: ignore[type-var]
                task = replace(task, payload=payload, processes=share)
            spread.append(task)
        return spread

    def close(self) -> None:
        """End the processes."""
        self._open.close()

    def _begun(self) -> Executor:
        if self._active is None:
            self._active = self._open.enter_context(self._executor)
        return self._active
