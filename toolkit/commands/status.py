"""Show the state of all work: done, running, failed or missing, and why."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import msgspec

from toolkit.command_options import CommandResult, Configured, Shared, absent
from toolkit.config import settings
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, NothingThere, ToolkitError
from toolkit.execution import leases
from toolkit.records import ingested, sets as records
from toolkit.records.failures import FailureRecords
from toolkit.records.ingested import lost_shards
from toolkit.session import current
from toolkit.stages.context import Context, Outcome, table, with_share
from toolkit.stages.declaration import STATES, Item, Look, Progress, State

LOOKS = 3
"""Times that all is looked at if what is published changes meanwhile."""

SHOWN, NAMED = 10, 3
"""Causes of what has failed, or is missing, in a stage that are told to people; and what is named for each."""


class Options(Configured, Shared, frozen=True, kw_only=True):
    """Options of ``toolkit status``."""

    EXAMPLES: ClassVar = ("toolkit status -c configs/quickstart.yaml",)


class StageStatus(msgspec.Struct, kw_only=True):
    """How far a stage is.

    Attributes:
        stage: Name of the stage: ``ingest``, ``tag SET``, …
        done, running, failed, missing: Number of its inputs or shards in this state.
        of: Number of all.
        unknown: Reason why that is not known; empty if it is.
        worked: Documents asked, documents and seconds of a set of `tag`.
        spent: Requests, tokens and cost of all runs of a set of `annotate`.
        salvaged: Remarks on damaged inputs of `ingest`.
        items: Inputs or shards that are not done, with their causes.
    """

    stage: str
    done: int
    running: int
    failed: int
    missing: int
    of: int
    unknown: str
    worked: dict[str, Any] | None = None
    spent: dict[str, Any] | None = None
    salvaged: list[str] = absent()
    items: list[Item]


class PipelineStatus(CommandResult, kw_only=True):
    """The result of `status`.

    Attributes:
        done: True if all is done.
        stages: Stages in order.
        runs: Runs at work now.
        faults: Errors in the configuration.
        there: Number of shards of the documents and of each set, where there are faults.
        share: Share of the run, if it is one.
    """

    done: bool
    stages: list[StageStatus]
    runs: list[dict[str, Any]]
    faults: list[str]
    there: dict[str, int]
    share: dict[str, Any] = absent()


class StatusRow(msgspec.Struct, frozen=True):
    """The state of a stage, or of one of its outputs.

    Attributes:
        progress: Progress of the stage, without causes.
        done_count: Number of finished items.
        items: All other items.
    """

    progress: Progress
    done_count: int
    items: list[Item]

    def of(self, state: State) -> list[Item]:
        return [item for item in self.items if item.state == state]

    def count(self, state: State) -> int:
        return self.done_count if state == "done" else len(self.of(state))

    @property
    def size(self) -> int:
        return self.done_count + len(self.items)

    @property
    def is_done(self) -> bool:
        return not self.progress.unknown and not self.items


def run(context: Context, options: Options) -> Outcome:
    """Read the records of the configuration's outputs; status 0 if all is done.

    Errors in the configuration affect only their stages (status 2).
    """
    if context.is_dolma or not context.stages:
        none = f"{options.config}: expected one of the sections {', '.join(settings.stages())}; got none"
        raise ConfigError("\n".join([*context.faults, none]))
    context.options = msgspec.structs.replace(options, quiet=True)
    for _ in range(LOOKS):
        look = Look(context)
        folders = [*dict.fromkeys([*([look.dataset.bookkeeping] if look.dataset else []), *look.folders.values()])]
        active = (one for folder in folders for one in leases.active(leases.folder_in(folder)))
        runs = list({(one.lease.owner, one.lease.run): one for one in active}.values())
        with look.from_listings():
            owners = [
                look.dataset if look.dataset and folder == look.dataset.bookkeeping else folder for folder in folders
            ]
            of_stages = (item for _, _, progress in look.progress() for item in progress)
            rows = [_row(progress, runs, owners) for progress in chain(of_stages, _lost(look))]
            counts = _shard_counts(look.dataset) if look.faults else {}
        is_done = not look.faults and all(one.is_done for one in rows)
        if is_done or not any(one.has_changed() for one in look.published.values()):
            break
        current().begin()
    text = _text(rows, runs, is_done) + _faulty(look.faults, counts)
    data = PipelineStatus(
        done=is_done,
        stages=[
            StageStatus(
                stage=row.progress.name,
                **{str(state): row.count(state) for state in STATES},  # type: ignore[arg-type]
                of=row.size,
                unknown=row.progress.unknown,
                items=row.items,
                **row.progress.data,
            )
            for row in rows
        ],
        runs=[msgspec.to_builtins(active.lease) | {"age": round(active.age, 1)} for active in runs],
        faults=look.faults,
        there=counts,
    )
    outcome = Outcome(text=text, data=data, exit_code=2 if look.faults else int(not is_done))
    if context.share and not any(one.size or one.progress.unknown for one in rows):
        outcome.text = context.share.nothing()
    return with_share(context, outcome)


def _shard_counts(dataset: Dataset | None) -> dict[str, int]:
    """Return the number of shards of the documents, and of each set."""
    if dataset is None:
        return {}
    results = {name: len(records.recorded_shards(dataset, name)) for name in dataset.sets()}
    with suppress(NothingThere):
        return {"documents": len(dataset.shards()), **results}
    return results


def _lost(look: Look) -> Iterator[Progress]:
    """Yield lost documents without an input to make them again."""
    context, lost = look.context, dict[str, str]()
    datasets = [*([look.dataset] if look.dataset else []), *look.datasets]
    for dataset in dict.fromkeys(datasets):
        inputs = ingested.summary(dataset).inputs
        with suppress(NothingThere):
            if result := lost_shards(dataset, dataset.shards(), inputs.items(), partial(context.is_mine, dataset)):
                output = set[str]()
                with suppress(ToolkitError):
                    output = {work.key for work in context.inputs(skip_missing=True, asks_web=False)}
                again = {
                    shard
                    for key, input_ in inputs.items()
                    if input_.deleted or key in output
                    for shard in input_.shards
                }
                lost |= {shard: why for shard, why in result.items() if shard not in again}
    if lost:
        yield Progress("documents", causes=dict(sorted(lost.items())))


def _row(progress: Progress, runs: Sequence[leases.ActiveLease], owners: Sequence[Dataset | str]) -> StatusRow:
    records = (FailureRecords(owner, progress.work).load() for owner in owners if progress.work)
    failed = {key: record.message for loaded in records for key, record in loaded.items()}
    items = [*_items(progress, runs, failed)]
    done_count = len(progress.causes) + len(progress.failed) - len(items)
    return StatusRow(msgspec.structs.replace(progress, causes={}, shards=None), done_count, items)


def _items(progress: Progress, runs: Sequence[leases.ActiveLease], failed: Mapping[str, str]) -> Iterator[Item]:
    """Yield the state of unfinished shards, or inputs, and other failures."""
    running = {key for active in runs for key in active.lease.doing.get(progress.work, ())}
    for key, cause in progress.causes.items():
        if not cause:
            continue
        if key in running:
            yield Item(key, "running")
        else:
            yield Item(key, "failed", failed[key]) if key in failed else Item(key, "missing", cause)
    yield from (Item(key, "failed", message) for key, message in progress.failed.items())


# --- for people and for machines --------------------------------------------------------------------------------------


def _text(stages: Sequence[StatusRow], runs: Sequence[leases.ActiveLease], is_done: bool) -> str:
    rows = [["stage", *STATES, "of"]]
    for one in stages:
        counts = [*map(one.count, STATES), one.size]
        rows.append([one.progress.name, *(("?" if one.progress.unknown else str(count)) for count in counts)])
    text = table(rows, right=range(1, len(rows[0]))) + "\n"
    tables: dict[tuple[str, ...], list[list[str]]] = {}
    for one in stages:
        for figures in one.progress.tables:
            tables.setdefault((*figures,), []).append([one.progress.name, *figures.values()])
    for columns, rows in tables.items():
        text += "\n" + table([["stage", *columns], *rows], right=range(1, len(columns) + 1)) + "\n"
    for active in runs:
        doing = [f"{name} {', '.join(keys)}" for name, keys in active.lease.doing.items()]
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(active.lease.since))
        text += f"\n{active.lease.run} by {active.lease.owner} since {since}, {active.age:.0f} s ago at: "
        text += ("; ".join(doing) or "nothing") + "\n"
    for why in dict.fromkeys(one.progress.unknown for one in stages if one.progress.unknown):
        lines = why.split("\n")
        more = f"\n{len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        names = ", ".join(one.progress.name for one in stages if one.progress.unknown == why)
        text += f"\n{names}: " + "\n".join(lines[:SHOWN]) + f"{more}\n"
    for one in stages:
        for state in ("failed", "missing"):
            by_cause: dict[str, list[str]] = {}
            for item in one.of(state):
                by_cause.setdefault(item.cause, []).append(item.key)
            listed = [f"{_first_keys(keys)}: {cause}" for cause, keys in by_cause.items()]
            omitted = sum(map(len, list(by_cause.values())[SHOWN:]))
            listed[SHOWN:] = [f"{omitted:,} more; --json has all"] if omitted else []
            text += "".join(f"\n{one.progress.name}: {state}: {line}" for line in listed)
    text += "".join(f"\n{note}" for one in stages for note in one.progress.notes)
    if is_done:
        return text.rstrip() + "\n\nall is done"
    left = any(one.of("failed") or one.of("missing") for one in stages)
    return text.rstrip() + ("\n\n`toolkit run` does what is missing or has failed" if left else "")


def _first_keys(keys: Sequence[str]) -> str:
    """Return the first of several keys, and how many others there are."""
    return ", ".join(keys[:NAMED]) + (f" and {len(keys) - NAMED:,} more" if len(keys) > NAMED else "")


def _faulty(faults: Sequence[str], counts: dict[str, int]) -> str:
    """Return the list of configuration errors; empty if there are none."""
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    lines = ["\n\nerrors in the configuration:", *faults] if faults else []
    return "\n  ".join(lines) + (f"\nshards on disk: {listed}" if listed else "")
