"""The preparation of a mix: its shards, with the sets, types and rules of each stream, checked; its budget."""

import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import msgspec

from toolkit import partials
from toolkit.commands import _sections as sections
from toolkit.data import row_index
from toolkit.data.alignment import is_of_experiment
from toolkit.data.dataset import SHARD_SUFFIXES, Dataset
from toolkit.data.excerpts import escaped
from toolkit.data.places import Place, check_apart, check_dataset, is_within, normal, of_dataset
from toolkit.data.row_index import ShardState
from toolkit.errors import ConfigError, DataError, ToolkitError, choices, did_you_mean, quoted
from toolkit.exchange import thresholds
from toolkit.execution.executors import Report, Task
from toolkit.execution.grouped import shard_tasks, tasks_of
from toolkit.ingest import own_types
from toolkit.mix import bindings, joined_sets, publish
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.budget import BudgetSettings, bounds, drawing
from toolkit.mix.budget.bounds import GroupBudget
from toolkit.mix.effects import preview
from toolkit.mix.effects.counts import GroupCount, Totals
from toolkit.mix.joined_sets import JoinedSet
from toolkit.mix.publish import BudgetFound, unchanged_manifest
from toolkit.mix.settings import MixSettings, Stream
from toolkit.records import sets as records
from toolkit.rules import filters
from toolkit.rules.rule import UnknownAttribute
from toolkit.source import external_sets, resolve_sets
from toolkit.stages.context import Context, all_values, failures, table
from toolkit.stages.disk_quota import DOCUMENT, FILES
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import check_writable, exists, join, strip_suffix, unlike_data, work_folder
from toolkit.storage.stores.local.scratch import scratch
from toolkit.storage.threads import for_each

SLIP = 0.8
"""Similarity of two names (see difflib) from which one is taken for a slip of the other."""


def check_patterns(
    context: Context,
    settings: MixSettings,
    stream: Stream,
    works: list[ShardToMix],
    joined: list[JoinedSet],
    *,
    complete: bool,
) -> None:
    """Check the patterns of a stream; warn of what they may not mean, and tell which run compiled.

    Args:
        context: Context of the configuration.
        settings: Settings of the mix.
        stream: with the patterns.
        works: its shards.
        joined: its sets.
        complete: True if all attributes that there are are known; if not, patterns are not held against them.

    Raises:
        ConfigError: for an attribute that no row has.
    """
    results = _index(context, works)
    if complete:
        in_part = context.only_per_shard
        context.warn(_faults(stream, joined, _inline_keys(works, results), in_part=in_part))
    _tell_compiled(context, settings, stream, joined)


def _index(context: Context, works: list[ShardToMix]) -> dict[str, ShardState | None]:
    """Read the shards that have no row index yet; return what that tells of each, by the path of its work."""
    todo = [work for work in works if row_index.current(work.dataset, work.shard) is None]
    if not todo:
        return {}
    results = context.run(
        "making row indexes", index_shard, shard_tasks(todo)
    )  # what is wrong is said where a shard is mixed
    return {work.path: result.value for work, result in zip(todo, results, strict=True)}


def _inline_keys(works: list[ShardToMix], made: Mapping[str, ShardState | None]) -> set[str] | None:
    """Return the names of the attributes that documents have of their own; None if they are not known.

    Args:
        works: the shards.
        made: by the paths of some, the states that they have been found in just now: a dry run keeps none.
    """
    results: set[str] = set()

    def state_of(work: ShardToMix) -> ShardState | None:
        return made[work.path] if work.path in made else row_index.current(work.dataset, work.shard)

    for state in for_each(state_of, works):
        if state is None or state.inline_keys is None:
            return None
        results.update(state.inline_keys)
    return results


def index_shard(work: ShardToMix, report: Any) -> ShardState:
    """Make the row index of a shard; return its state."""
    return row_index.ensure(work.dataset, work.shard, work.max_document_bytes)


def _faults(stream: Stream, joined: list[JoinedSet], inline: set[str] | None, *, in_part: bool) -> list[str]:
    """Return warnings of patterns that ask for attributes which no row has, or not every row.

    An attribute that no row has is an error: the rule would drop every document, or none. Only where other programs
    leave keys out because they found nothing, it is a warning, unless all documents would be dropped then.

    Args:
        stream: with the patterns.
        joined: its sets.
        inline: the names of the attributes that documents have of their own; None if they are not known.
        in_part: True if only some of the shards were looked at, as by a share: what is missing may be in others.

    Raises:
        ConfigError: for an attribute that is not there.
    """
    known = {key.name for item in joined for key in item.keys} | (inline or set())
    lacked = {key.name for item in joined for key in item.keys if key.default}
    notes = []
    for rule in stream.rules:
        foreign = rule.foreign
        if foreign is None or foreign.strict:
            continue
        of_jq = foreign.syntax == "jq" and foreign.match
        if of_jq and (guarded := {key for text in foreign.texts for key in filters.guarded_keys(text)} & lacked):
            notes.append(
                f"{rule.place}: rule {quoted(rule.name)}: some rows lack {min(guarded)!r}: `?` gives null there, which "
                "compares, where Dolma gives nothing; a rule that tests for it first means the same in both"
            )
        missing = {text: filters.named_keys(text, foreign.syntax) - known for text in foreign.texts}
        asked = sorted({key for keys in missing.values() for key in keys})
        if not asked or inline is None:
            continue
        drops_all = foreign.keeps and all(missing.values())
        fails = drops_all or of_jq
        key = next((key for key in asked if fails or not _may_be_rare(key, joined, inline)), asked[0])
        what = f"{rule.place}: rule {quoted(rule.name)}: expected an attribute that a row has, got {key!r}"
        hint = choices(key, sorted(known))
        if in_part or not (fails or not _may_be_rare(key, joined, inline)):
            notes.append(what + did_you_mean(key, known))
        elif foreign.syntax == "jq":
            raise ConfigError(f"{what}{hint}; if documents may lack it, write `{key}?`")
        else:
            raise ConfigError(f"{what}{hint}" + ("" if drops_all else "; if no document has it, leave the pattern out"))
    return notes


def _may_be_rare(key: str, joined: list[JoinedSet], inline: set[str]) -> bool:
    """Tell whether rows of another program may lack a key because nothing was found.

    Dolma's tagger leaves out ``exp__tagger__label`` where there are no spans of the label, its deduper the only key. A
    key is taken for a slip if it is very like one that there is, and of no experiment that has others.
    """
    foreign = {key.key for result in joined if not result.ours for key in result.keys} | inline
    if any(not result.ours and not result.keys for result in joined):
        return True
    if is_of_experiment(key, foreign):
        return True
    import difflib

    return bool(foreign) and not difflib.get_close_matches(key, foreign, n=1, cutoff=SLIP)


def _tell_compiled(context: Context, settings: MixSettings, stream: Stream, joined: list[JoinedSet]) -> None:
    """Tell which patterns of other languages run as expressions of ours, and which in their library."""
    asked = [text for rule in stream.rules if rule.foreign for text in rule.foreign.texts]
    if context.options.quiet:
        return
    slow = bindings.compile_rules(settings, stream, joined).needs.by_library
    of_stream = f" of the stream {stream.name}" if stream.name else ""
    print(f"{len(asked) - len(slow)} of {len(asked)} patterns{of_stream} run compiled", file=sys.stderr)
    for pattern in slow:
        print(f"runs in the library of its language, for each document: {pattern}", file=sys.stderr)


_NO_SETS: Mapping[str, records.SetSchema] = {}


@dataclass
class PreparedMix:
    """A mix that is ready to begin.

    Attributes:
        settings: with what the weights of streams come to.
        works: its shards, sorted by stream and path.
        sets: Sets that each stream joins, by its name.
        unreadable: for shards whose foreign attributes cannot be read, why, by key.
        known: how many shards there are beside those that `--limit` lets in.
        notes: what is to be said of inputs that are not in it.
        refused: Faults of its sets, for which the mix is refused; empty but for what only looks.
        budget: what that comes to, if there is one.
    """

    settings: MixSettings
    works: list[ShardToMix] = field(default_factory=list)
    sets: dict[str, list[JoinedSet]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    known: int = 0
    notes: str = ""
    refused: list[ToolkitError] = field(default_factory=list)
    budget: BudgetFound | None = None


def _check_places(context: Context, settings: MixSettings) -> None:
    """Check where a mix writes: output and dropped documents, against each other and all datasets.

    Raises:
        ConfigError: naming both places.
    """
    output, rejected = settings.output.path, settings.rejected
    written = [Place(output, "the output", settings.place)]
    if rejected is not None:
        written.append(Place(rejected, "`rejected`", settings.place))
        check_apart([written[1]])
        if store_of(rejected).volume(rejected) != store_of(output).volume(output):
            raise ConfigError(
                f"{settings.place}: expected `rejected` in the same store (and bucket) as the output {output}, got "
                f"{rejected}"
            )
    datasets = [(stream.dataset, stream.name) for stream in settings.streams]
    if context.has_dataset and context.dataset not in [dataset for dataset, _ in datasets]:
        datasets.append((context.dataset, ""))
    for dataset, _ in datasets:
        if dataset.notes:
            _check_notes(dataset, settings)
        else:
            check_dataset(dataset, settings.place)
    check_apart(written, [place for dataset, name in datasets for place in of_dataset(dataset, name)])


def _check_notes(dataset: Dataset, settings: MixSettings) -> None:
    """Raise ConfigError for records of a stream that would lie among parts; its work folder has a place for them."""
    if is_within(normal(dataset.notes), normal(f"{work_folder(settings.output.path)}/inputs")):
        return
    check_apart(
        [Place(dataset.notes, "`bookkeeping`", settings.place)],
        [Place(settings.output.path, "the output"), Place(dataset.documents, "the documents")],
    )


def settings_of(context: Context, *, writes: bool = True) -> MixSettings:
    """Return the settings of a configuration's mix, its paths checked.

    Args:
        context: Context of the configuration.
        writes: True if the output will be written; on S3, whether it can be is found out by an upload.
    """
    settings = sections.mix(context)
    settings.writer().check_installed()
    _check_places(context, settings)
    for path in filter(None, (settings.output.path, settings.rejected) if writes else ()):
        check_writable(path, settings.place)
    return settings


def check_output(context: Context, settings: MixSettings) -> str:
    """Check that output and dropped documents go where nothing else is, or what a mix of these datasets has made.

    Return what is replaced that was made from other datasets.

    Raises:
        ConfigError: if something else is there.
    """
    datasets = [stream.dataset for stream in settings.streams]
    replaced = publish.check_output(settings.output.path, datasets, overwrite=context.options.overwrite)
    if settings.rejected is not None:
        publish.check_rejected(settings.output.path, settings.rejected)
    return replaced


def check(context: Context, settings: MixSettings, planned: Mapping[str, records.SetSchema]) -> None:
    """Check the section before what it needs is there.

    Args:
        context: Context of the configuration.
        settings: Settings of the mix.
        planned: the sets of its own dataset that will have been written by then.

    Raises:
        ConfigError: for whatever is wrong.
    """
    for stream in settings.streams:
        is_own = context.has_dataset and stream.dataset == context.dataset
        will_be = planned if is_own else {}
        if not external_sets(stream, will_be):  # their types are known when they are read
            to_be(context, settings, stream, will_be)


def to_be(
    context: Context, settings: MixSettings, stream: Stream, planned: Mapping[str, records.SetSchema]
) -> ShardToMix:
    """Return how each shard of a stream will be mixed; its name is empty. Arguments and errors as of `check`."""
    is_own = context.has_dataset and stream.dataset == context.dataset
    stream = msgspec.structs.replace(stream, own=context.own_types_to_be() if is_own else None)
    return _to_mix(context, settings, stream, resolve_sets(stream, planned, {}), planned)


def _to_mix(
    context: Context,
    settings: MixSettings,
    stream: Stream,
    joined: list[JoinedSet],
    planned: Mapping[str, records.SetSchema] = _NO_SETS,
) -> ShardToMix:
    bindings, set_bindings = bound(settings, stream, joined, planned)
    return ShardToMix(
        settings=settings,
        stream=stream,
        sets=joined,
        bindings=bindings,
        set_bindings=set_bindings,
        shard="",
        max_document_bytes=context.config.max_document_bytes,
    )


def bound(
    settings: MixSettings, stream: Stream, joined: list[JoinedSet], planned: Mapping[str, records.SetSchema] = _NO_SETS
) -> tuple[dict[str, bindings.Binding], list[bindings.Binding]]:
    """Return the attributes of the writer, and those of rules that set fields; check all that they need.

    Args:
        settings: Settings of the mix.
        stream: Stream to check.
        joined: Sets that the stream joins.
        planned: Sets that will have been written by then.

    Raises:
        ConfigError: for a rule or an option that cannot be used.
    """
    try:
        rules = bindings.compile_rules(settings, stream, joined)
    except UnknownAttribute as error:
        hint = joined_sets.set_hint(error.name, stream, joined, planned)
        raise ConfigError(f"{error.message}{hint}" if hint else str(error)) from None
    of_writer = bindings.bind_writer(settings, joined, rules, stream.text)
    of_rules = bindings.bind_rules(settings, joined, rules, stream.text)
    named = {(of_rule.set, of_rule.key) for of_rule in (*of_writer.values(), *of_rules)}
    wanted = [key.name for i, result in enumerate(joined) for key in result.keys if (i, key.key) in named]
    bindings.check_texts(settings, stream, joined, wanted)
    return of_writer, of_rules


def prepare(context: Context, settings: MixSettings) -> PreparedMix:
    """Return the shards of all streams, with what is joined to them.

    Raises:
        ConfigError: for whatever is wrong with sets and rules.
        DataError: if shards that are known are gone.
    """
    prepared = PreparedMix(settings)
    if settings.streams[0].weight is not None and context.options.shard:
        raise ConfigError(f"{settings.place}: expected a mix without weights for --shard: they depend on all shards")
    for stream in settings.streams:
        _add_stream(context, prepared, stream)
    if settings.writer().is_per_shard():
        _check_names(prepared)
    fails = prepared.unreadable and settings.on_failed_shard == "stop"
    if settings.streams[0].weight is not None and not fails:
        return _weigh(context, prepared)
    return prepared


def _add_stream(context: Context, prepared: PreparedMix, stream: Stream) -> None:
    shards, notes = context.shards(stream.dataset, judges=True)
    known = context.mine(stream.dataset)
    prepared.known += len(known)
    prepared.notes += notes
    if context.share and not shards:
        return  # the sets need not be there yet
    if stream.own is None:  # or else it is over a sample, whose documents are of other shards
        stream = msgspec.structs.replace(stream, own=own_types.of_documents(stream.dataset, known))
    source = context.source_of(stream.dataset, shards)
    if refused := source.faults([attribute.set for attribute in stream.attributes]):
        if not context.options.only_shows:
            raise refused[0]
        prepared.refused += refused
        context.warn(map(str, refused))
    resolved = source.typed(stream)
    joined, unreadable = resolved.sets, resolved.unreadable
    prepared.sets[stream.name] = joined
    try:
        of_each = _to_mix(context, prepared.settings, stream, joined)
    except ConfigError as error:
        if unreadable:  # what rules lack may be in there
            raise ToolkitError("\n".join(unreadable.values())) from None
        place = resolved.place_of(partial(bound, prepared.settings, stream))
        raise ConfigError(f"{error}{place}") from None
    for shard in shards:
        work = msgspec.structs.replace(of_each, shard=shard)
        if shard in unreadable:
            prepared.unreadable[work.key] = unreadable[shard]
        else:
            prepared.works.append(work)
    if any(rule.foreign for rule in stream.rules):
        works = [work for work in prepared.works if work.stream is stream]
        check_patterns(context, prepared.settings, stream, works, joined, complete=not unreadable)


def _check_names(prepared: PreparedMix) -> None:
    """Raise ConfigError if two shards, each of which has an output of its own, have one name."""
    shards: dict[str, str] = {}
    for work in prepared.works:
        name = strip_suffix(work.shard, SHARD_SUFFIXES)
        if (other := shards.setdefault(name, work.name)) != work.name:
            raise ConfigError(
                f"{prepared.settings.place}: expected a name of its own for each shard with `layout: inputs`, got "
                f"{name!r} for {other} and {work.name}; make an output of each by itself, or leave `layout` out"
            )


# --- weights ----------------------------------------------------------------------------------------------------------


def _weigh(context: Context, prepared: PreparedMix) -> PreparedMix:
    """Return the mix with the share of each stream's documents that brings the kept characters to the weights.

    The stream that is shortest for its weight gives all it has; nothing is repeated.
    """
    results = context.run("counting the characters of each stream", preview.preview_shard, shard_tasks(prepared.works))
    if broken := failures(results):
        raise ConfigError("weights need the characters of each stream, which cannot be counted:\n" + "\n".join(broken))
    chars = {stream.name: 0 for stream in prepared.settings.streams}
    for work, result in zip(prepared.works, results, strict=True):
        totals = result.value.totals if result.value else Totals()
        chars[work.stream.name] += totals.kept_chars + totals.copy_chars
    weights = {stream.name: stream.weight or 0.0 for stream in prepared.settings.streams}
    if empty := [name for name, n in chars.items() if not n]:
        raise ConfigError(
            f"{prepared.settings.place}: the stream {empty[0]!r} keeps nothing, so weights have no meaning"
        )
    unit = min(chars[name] / weight for name, weight in weights.items())
    shares = {name: min(1.0, unit * weight / chars[name]) for name, weight in weights.items()}
    streams = [msgspec.structs.replace(stream, share=shares[stream.name]) for stream in prepared.settings.streams]
    return with_streams(prepared, streams)


def with_streams(prepared: PreparedMix, streams: Sequence[Stream], budget: BudgetFound | None = None) -> PreparedMix:
    """Return a mix with the shares and the budget that its streams, in their order, have now.

    Args:
        prepared: the mix.
        streams: changed in these alone.
        budget: what it came to.
    """
    settings = msgspec.structs.replace(prepared.settings, streams=list(streams))
    by_name = {stream.name: {"share": stream.share, "budget": stream.budget} for stream in streams}
    works = [
        msgspec.structs.replace(
            work, settings=settings, stream=msgspec.structs.replace(work.stream, **by_name[work.stream.name])
        )
        for work in prepared.works
    ]
    return dataclasses.replace(prepared, settings=settings, works=works, budget=budget)


# --- the budget: its bounds are found from all shards, before the first stage; then it is a rule ----------------------


SHOWN = 20
"""Groups that tables show."""


def fill_budget(context: Context, prepared: PreparedMix) -> PreparedMix:
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
        return _find_budget(context, prepared, budget, paths)


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


def _find_budget(context: Context, prepared: PreparedMix, budget: BudgetSettings, paths: Sequence[str]) -> PreparedMix:
    works, shared = prepared.works, not context.options.only_shows
    tasks = tasks_of(works, [drawing.ShardToDraw(work, path, shared) for work, path in zip(works, paths, strict=True)])
    needs = (
        context.disk.estimates(tasks, _kept) if shared else None
    )  # what only shows writes to the system's temporary folder
    results = context.run("counting what the budget takes from", drawing.draw_shard, tasks, needs=needs)
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
        copies.append(sum(group.copies for group in result.value.groups))
        for group in result.value.groups:
            available[group.group] = available.get(group.group, 0.0) + group.available
            once[group.group] = once.get(group.group, 0.0) + group.once
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

    listed = bounds.find_bounds(
        run, "finding where the budget ends", os.path.dirname(paths[0]), sources, [[goals[group]] for group in names]
    )
    around = {group: results[0] for group, results in zip(names, listed, strict=True)}
    nearest = {group: results[0] for group, results in around.items()}
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


def counted_budget(found: BudgetFound | None, counts: Iterable[dict[str, GroupCount]]) -> BudgetFound | None:
    """Return a budget with what was counted of the documents that it takes, of each shard."""
    if found is None:
        return None
    sums = partials.total(dict[str, GroupCount](), counts)
    groups = [
        msgspec.structs.replace(row, **msgspec.structs.asdict(sums.get(row.group, GroupCount())))
        for row in found.groups
    ]
    return msgspec.structs.replace(found, groups=groups)


def budget_table(found: BudgetFound | None, *, written: bool = False) -> str:
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


def budget_data(found: BudgetFound | None) -> dict[str, Any] | None:
    """Return what a budget comes to, for JSON; None if there is none."""
    if found is None:
        return None
    rows = [{**msgspec.to_builtins(row), "epochs": round(row.epochs, 6)} for row in found.groups]
    return {"unit": found.unit, "groups": rows}
