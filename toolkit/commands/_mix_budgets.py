"""The budget of a mix: its bounds are found from all shards, before the first stage; then it is a rule."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any

import msgspec

from toolkit import partials
from toolkit.commands._mix_preparation import PreparedMix, with_streams
from toolkit.data.excerpts import escaped
from toolkit.errors import DataError
from toolkit.exchange import thresholds
from toolkit.execution.executors import Report, Task
from toolkit.execution.grouped import tasks_of
from toolkit.mix import publish
from toolkit.mix.budget import bounds, drawing
from toolkit.mix.budget.bounds import GroupBudget
from toolkit.mix.budget.settings import BudgetSettings
from toolkit.mix.effects.counts import GroupCount
from toolkit.mix.publish import BudgetFound, unchanged_manifest
from toolkit.stages.context import Context
from toolkit.stages.disk import DOCUMENT, FILES
from toolkit.stages.outcome import all_values, table
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import exists, join, unlike_data, work_folder
from toolkit.storage.stores.local.scratch import scratch

SHOWN = 20
"""Groups that tables show."""


def fill(context: Context, prepared: PreparedMix) -> PreparedMix:
    """Return a mix whose budget has bounds; shards that could not be looked at are among its unreadable ones.

    A mix that is published already, of the same shards by the same settings, tells its bounds. Else the copies of all
    shards are drawn, from attributes and row indexes. A mix keeps these in a file for each shard until it is
    published, so that another run goes on with them.

    Raises:
        ConfigError: if a group has no target.
    """
    budget = prepared.settings.budget
    if budget is None or not prepared.works:
        return prepared
    output = prepared.settings.output.path
    if not context.options.only_shows and not prepared.unreadable and (before := as_published(prepared)):
        return before
    with ExitStack() as stack:
        if context.options.only_shows:
            folder = stack.enter_context(scratch())
            paths = [os.path.join(folder, str(i)) for i, _ in zip(count(), prepared.works, strict=False)]
        else:
            stack.enter_context(context.lease_output(output, prepared.settings.stage_digest()))
            folder = join(work_folder(output), "budget", prepared.settings.stage_digest())
            paths = [join(folder, unlike_data(work.key)) for work in prepared.works]
        return _found(context, prepared, budget, paths)


def as_published(prepared: PreparedMix) -> PreparedMix | None:
    """Return a mix with the bounds of its budget as the published output has them; None if that is of another mix."""
    budget = prepared.settings.budget
    published = publish.load_manifest(prepared.settings.output.path) if budget else None
    if budget is None or published is None or published.budget is None:
        return None
    before = _bounded(prepared, budget, published.budget)
    return before if unchanged_manifest(before.works) else None


DRAWN = 16
"""Bytes that a budget keeps of each document until the mix is published."""


def _kept(work: drawing.ShardToDraw, text: float) -> float:
    return 0.0 if exists(work.path) else text * DRAWN / DOCUMENT + FILES


def _found(context: Context, prepared: PreparedMix, budget: BudgetSettings, paths: Sequence[str]) -> PreparedMix:
    works, shared = prepared.works, not context.options.only_shows
    tasks = tasks_of(works, [drawing.ShardToDraw(work, path, shared) for work, path in zip(works, paths, strict=True)])
    needs = (
        context.disk.kept(tasks, _kept) if shared else None
    )  # what only shows writes to the system's temporary folder
    results = context.run("budget", drawing.draw_shard, tasks, needs=needs)
    there: list[str] = []
    copies: list[int] = []
    available: dict[str, float] = {}
    once: dict[str, float] = {}
    for work, path, result in zip(works, paths, results, strict=True):
        if result.value is None:
            prepared.unreadable[work.key] = result.failure.message if result.failure else ""
            continue
        if result.value.data:  # of another machine
            write_file(path, result.value.data)
        there.append(path)
        copies.append(sum(each.copies for each in result.value.groups))
        for each in result.value.groups:
            available[each.group] = available.get(each.group, 0.0) + each.available
            once[each.group] = once.get(each.group, 0.0) + each.once
    prepared.works = [work for work in works if work.key not in prepared.unreadable]
    if shared and (why := context.shared_ids((w.dataset, w.shard) for w in prepared.works)):
        raise DataError(why)
    wanted, goals = budget.goals(available)

    goals |= dict.fromkeys(available.keys() - goals.keys(), 0.0)
    names = sorted(goals)
    sources = [drawing.DrawnKeys(paths=there[first:last], groups=names) for first, last in thresholds.in_groups(copies)]

    def run(what: str, function: Callable[[Any, Report], Any], tasks: list[Task[Any]]) -> list[Any]:
        if shared:
            return all_values(context.run(what, function, tasks, "tasks"))
        return [function(task.payload, lambda documents, size: None) for task in tasks]  # files are on this machine

    listed = bounds.find_bounds(run, "bounds", os.path.dirname(paths[0]), sources, [[goals[group]] for group in names])
    around = {group: found[0] for group, found in zip(names, listed, strict=True)}
    nearest = {group: found[0] for group, found in around.items()}
    chosen = nearest if budget.targets else bounds.settled(around, goals)
    taken = {group: bound.taken for group, bound in chosen.items()}
    groups = [
        GroupBudget(
            group=group,
            available=available.get(group, 0.0),
            once=once.get(group, 0.0),
            target=wanted.get(group, 0.0),
            taken=taken[group],
            missing=max(0.0, wanted.get(group, 0.0) - taken[group]) if taken[group] >= available.get(group, 0) else 0.0,
        )
        for group in sorted(chosen)
    ]
    return _bounded(
        prepared,
        budget,
        BudgetFound(
            unit=budget.unit,
            bounds={group: bound.hash for group, bound in chosen.items()},
            groups=groups,
            redistributed=budget.short == "redistribute",
        ),
    )


def _bounded(prepared: PreparedMix, budget: BudgetSettings, found: BudgetFound) -> PreparedMix:
    streams = [
        msgspec.structs.replace(stream, budget=budget.rule(found.bounds, stream.seed))
        for stream in prepared.settings.streams
    ]
    return with_streams(prepared, streams, found)


def counted(found: BudgetFound | None, counts: Iterable[dict[str, GroupCount]]) -> BudgetFound | None:
    """Return a budget with what was counted of the documents that it takes, of each shard."""
    if found is None:
        return None
    sums = partials.total(dict[str, GroupCount](), counts)
    groups = [
        msgspec.structs.replace(row, **msgspec.structs.asdict(sums.get(row.group, GroupCount())))
        for row in found.groups
    ]
    return msgspec.structs.replace(found, groups=groups)


def told(found: BudgetFound | None, *, written: bool = False) -> str:
    """Return a table of what a budget comes to, and what is missing; with what was written, if that is known."""
    if found is None:
        return ""
    ranked = sorted(found.groups, key=lambda row: (-row.taken, row.group))
    shown = [(row.group, [row]) for row in ranked[:SHOWN]]
    if len(ranked) > SHOWN:
        shown.append((f"{len(ranked) - SHOWN} more", ranked[SHOWN:]))
    if len(ranked) > 1:
        shown.append(("all", ranked))
    wrote = ["written: characters", "bytes"] if written else []
    head = ["available", "target", "taken", "of all", "missing", "documents", "copies", "epochs", *wrote]
    rows = [["budget, " + found.unit, *head]]
    whole = sum(row.taken for row in ranked) or 1.0
    for name, of in shown:
        numbers = {key: sum(getattr(row, key) for row in of) for key in ("available", "target", "taken", "missing")}
        if found.redistributed and of is ranked:
            numbers["missing"] = max(0.0, numbers["target"] - numbers["taken"]) if numbers["missing"] else 0.0
        distinct = sum(row.distinct for row in of)
        cells = [f"{numbers['available']:,.0f}", f"{numbers['target']:,.0f}", f"{numbers['taken']:,.0f}"]
        cells += [f"{100 * numbers['taken'] / whole:.1f} %", f"{numbers['missing']:,.0f}" if numbers["missing"] else ""]
        cells += [f"{sum(row.documents for row in of):,}", f"{sum(row.copies for row in of):,}"]
        cells += [f"{numbers['taken'] / distinct:.2f}" if distinct else "-"]
        cells += [f"{sum(row.chars for row in of):,}", f"{sum(row.bytes for row in of):,}"] if written else []
        rows.append([name or "whole", *cells])
    text = "\n\n" + table(rows, right=range(1, len(rows[0])))
    short = sorted((row for row in found.groups if row.missing), key=lambda row: -row.missing)
    lacks = [
        f"{escaped(row.group) + ' ' if row.group else ''}{row.missing:,.0f} of {row.target:,.0f}"
        for row in short[:SHOWN]
    ]
    more = f" and {len(short) - SHOWN} more" if short[SHOWN:] else ""
    given = "; other groups give what they have" if found.redistributed else ""
    return text + (f"\nmissing, as there is no more: {', '.join(lacks)}{more} {found.unit}{given}" if lacks else "")


def as_data(found: BudgetFound | None) -> dict[str, Any] | None:
    """Return what a budget comes to, for JSON; None if there is none."""
    if found is None:
        return None
    rows = [{**msgspec.to_builtins(row), "epochs": round(row.epochs, 6)} for row in found.groups]
    return {"unit": found.unit, "groups": rows}
