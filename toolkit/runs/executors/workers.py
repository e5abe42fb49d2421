"""The executor that a configuration asks for, begun when it is needed and kept from one stage to the next."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace

import msgspec

from toolkit.runs.executors import Begun, Executor, P, Report, Task
from toolkit.runs.executors.local import InProcess, Local, available_cores
from toolkit.runs.executors.ray import Ray
from toolkit.runs.executors.settings import InProcessSettings, LocalSettings, RaySettings, Settings

LARGE = 16 << 20
"""Stored bytes from which several processes work on one shard, if it is a large part of all."""


class Workers:
    """Gives the executor for each stage.

    Args:
        settings: of the executor.
        processes: that may work at a time on this machine; None for as many as there are cores.
        report: gets what tasks report.
        begun: is told of each task that has begun.
    """

    def __init__(self, settings: Settings, processes: int | None, report: Report, begun: Begun) -> None:
        self._settings = settings
        self._processes = processes or available_cores()
        self._report = report
        self._begun = begun
        self._open = ExitStack()
        self._kept: Local | Ray | None = None

    def executor(self, tasks: int) -> Executor:
        """For so many tasks."""
        found = self._settings
        if isinstance(found, RaySettings):
            return self._ray(found)
        if isinstance(found, InProcessSettings):
            return InProcess(self._report, self._begun)
        bounded = found.memory is not None or found.recycle is not None
        if (self._processes == 1 or tasks <= 1) and not bounded:
            return InProcess(self._report, self._begun)
        if self._kept is None:
            options = {"recycle": found.recycle, "memory": found.memory}
            local = Local(self._processes, self._report, self._begun, **options)
            self._kept = self._open.enter_context(local)
        return self._kept

    def spread(self, tasks: Iterable[Task[P]]) -> list[Task[P]]:
        """Gives those tasks several processes that would else be running when all others are done."""
        listed = list(tasks)
        cores, largest = self._cores()
        total = sum(task.size for task in listed)
        spread = []
        for task in listed:
            share = min(cores * task.size // max(total, 1), largest)
            if share > 1 and task.size >= LARGE:
                payload = msgspec.structs.replace(task.payload, processes=share)  # type: ignore[type-var]
                task = replace(task, payload=payload, processes=share)
            spread.append(task)
        return spread

    def close(self) -> None:
        """Ends the processes."""
        self._open.close()

    def _cores(self) -> tuple[int, int]:
        """How many processes may work at a time, and how many of them on one task."""
        match self._settings:
            case RaySettings() as found:
                return self._ray(found).cores
            case LocalSettings():
                return self._processes, self._processes
        return 1, 1

    def _ray(self, found: RaySettings) -> Ray:
        if self._kept is None:
            options = msgspec.structs.asdict(found)
            self._kept = self._open.enter_context(Ray(self._report, self._begun, **options))
        assert isinstance(self._kept, Ray)
        return self._kept
