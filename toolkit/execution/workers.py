"""The section ``executor:`` of a configuration, and the executor that it asks for, begun when it is needed."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigNode, ConfigStruct, convert, divide
from toolkit.errors import ConfigError
from toolkit.execution.executors import Begun, Executor, P, Report, Task
from toolkit.execution.processes import available_cores
from toolkit.plugins import Kind

EXECUTORS: Kind[Executor] = Kind(
    "executor", "toolkit.execution.executors", "toolkit.executors", Executor, home="toolkit.execution.executors"
)

DEFAULT = "local"

LARGE = 8 << 20
"""Stored bytes from which several processes work on one shard, if it is a large part of all."""


class Chosen(NamedTuple):
    """An executor that a configuration names, and its settings."""

    kind: type[Executor]
    settings: ConfigStruct


def read(executor: dict[str, Any], source: ConfigNode, processes: int | None) -> Chosen:
    """Return the executor that the section names; by default `DEFAULT`, which one process does without.

    Args:
        executor: what the section says.
        source: the whole configuration, for messages.
        processes: Processes that may work at a time on this machine, if the configuration says so.

    Raises:
        ConfigError: with the line of what is unknown or wrong.
    """
    part = source.at("executor") if "executor" in (source.value or {}) else ConfigNode(executor)
    _, options = divide(part, ["type"])
    name = executor.get("type", DEFAULT if executor or processes != 1 else "in_process")
    if not isinstance(name, str):
        raise part.error(("type",), f"expected one of {', '.join(EXECUTORS.names())}, got {name!r}")
    try:
        kind = EXECUTORS.find(name)
    except ConfigError as error:
        raise part.error(("type",), str(error)) from None
    return Chosen(kind, convert(options, kind.Settings, f"executor {name}"))


class Workers:
    """Gives the executor for each stage, and keeps it from one stage to the next.

    Args:
        chosen: the executor.
        processes: Processes that may work at a time on this machine; None for as many as there are cores.
        report: gets what tasks report.
        begun: is told of each task that has begun.
    """

    def __init__(self, chosen: Chosen, processes: int | None, report: Report, begun: Begun) -> None:
        self._made = chosen.kind(report, begun, processes=processes or available_cores(), settings=chosen.settings)
        self._open = ExitStack()
        self._kept: Executor | None = None

    def check(self) -> None:
        """Raise MissingExtra if the executor needs a package that is not installed."""
        self._made.check()

    def begin(self) -> None:
        """Begin what processes are forked from, if there may be several; to be followed by `close`."""
        if self._made.processes > 1:
            from toolkit.execution import forkserver

            self._open.enter_context(forkserver.opened())

    def executor(self, tasks: int) -> Executor:
        """Return the executor for so many tasks."""
        return self._begun().fitting(tasks)

    @property
    def cores(self) -> int:
        """Return the number of processes that may work at a time."""
        return self._begun().cores[0]

    def spread(self, tasks: Iterable[Task[P]]) -> list[Task[P]]:
        """Return the tasks, with several processes for those that would else be running when all others are done."""
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
        if self._kept is None:
            self._kept = self._open.enter_context(self._made)
        return self._kept
