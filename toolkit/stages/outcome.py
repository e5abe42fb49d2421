"""The outcome of a command, and the text that it is shown as; of a dry run, settings and plan."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from toolkit.config import settings as config
from toolkit.data.excerpts import escaped
from toolkit.errors import ToolkitError
from toolkit.execution.executors import Result
from toolkit.result import CommandResult, absent
from toolkit.stages.context import Context
from toolkit.storage_options import StorageOptions


class DryRun(CommandResult, kw_only=True):
    """The result of ``--dry-run``: the resolved settings, and what a command would do.

    Attributes:
        settings: Resolved configuration.
        plan: Work to do, by stage.
        selected, first, not_carried, salvaged: Pages to fetch and first documents of each entry of `ingest`, fields
            that the mix will not carry, and remarks on damaged inputs.
    """

    settings: dict[str, Any]
    plan: dict[str, Any] = absent()
    selected: dict[str, Any] = absent()
    first: list[Any] = absent()
    not_carried: dict[str, int] = absent()
    salvaged: list[str] = absent()


@dataclass
class Outcome:
    """The outcome of a command.

    Attributes:
        text: for people.
        data: the same for machines: a Struct of the command.
        failures: messages; any makes the exit status 1.
        exit_code: of the process.
        for_programs: whether the text is read by programs, which get it as it is; a terminal never does.
    """

    text: str = ""
    data: Any = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    exit_code: int = 0
    for_programs: bool = False

    def __post_init__(self) -> None:
        self.exit_code = self.exit_code or int(bool(self.failures))


def failures(results: Iterable[Result[Any]]) -> list[str]:
    """Return the messages of the failed tasks."""
    return [result.failure.message for result in results if result.failure]


class StepFailed(ToolkitError):
    """Some tasks of a step have failed, or it cannot be done: the next one does not begin."""

    def __init__(self, *messages: str) -> None:
        super().__init__(messages[0])
        self.messages = messages


def all_values(results: Iterable[Result[Any]]) -> list[Any]:
    """Return what the tasks of a step gave.

    Raises:
        StepFailed: if any has failed.
    """
    results = list(results)
    if broken := failures(results):
        raise StepFailed(*broken)
    return [result.value for result in results]


def table(rows: list[list[str]], right: Iterable[int] = ()) -> str:
    """Return rows as text in columns, the first row a head; columns in `right` are aligned right."""
    if not rows:
        return ""
    right = set(right)
    rows = [[escaped(cell) for cell in row] for row in rows]  # labels, hosts and keys are texts of others
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(line.rstrip() for line in lines)


def show_plan(context: Context, plan: dict[str, Any]) -> Outcome:
    """Return the outcome of a dry run; of a share, with what it has of all that there is."""
    if context.share:
        plan = {"share": context.share.plan(), **plan}
    shown = show_settings(context)
    shown.text += "\n# plan\n" + config.dump(plan)
    shown.data.plan = plan
    return shown


def show_settings(context: Context) -> Outcome:
    """Return the configuration with overrides, variables of the environment and defaults; in the text without those."""
    resolved = config.plain(context.config)
    given = {
        key: value for key, value in resolved.items() if value not in (None, [], {}, config.plain(StorageOptions()))
    }
    return Outcome(text=config.dump(given), data=DryRun(settings=resolved))


def told(context: Context, outcome: Outcome) -> Outcome:
    """Return an outcome with what the run's share has; that of a run that is no share, as it is."""
    if context.share:
        plan = context.share.plan()
        outcome.text += "\n\n" + config.dump({"share": plan}).rstrip()
        outcome.data.share = plan
    return outcome
