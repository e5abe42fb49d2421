"""The preparation of a mix: its shards, with the sets, types and rules of each stream, checked; its budget."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.commands import _sections as sections
from toolkit.data import row_index
from toolkit.data.alignment import is_of_experiment
from toolkit.data.dataset import (
    SHARD_SUFFIXES,
    ConfiguredPath,
    Dataset,
    check_apart,
    check_dataset,
    dataset_folders,
    is_within,
    normal_path,
)
from toolkit.data.row_index import ShardState
from toolkit.data.schema import SPANS
from toolkit.errors import ConfigError, DataError, StepFailed, ToolkitError, choices, did_you_mean, quoted
from toolkit.execution.executors import Report, Task
from toolkit.execution.grouped import shard_tasks, tasks_of
from toolkit.ingest import inputs
from toolkit.mix import publication
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.budget import BudgetSettings, bounds
from toolkit.mix.budget.bounds import GroupBudget
from toolkit.mix.join import JoinedSet
from toolkit.mix.publication import BudgetFound, unchanged_manifest
from toolkit.mix.rule_effects.counts import Totals
from toolkit.mix.settings import MixSettings, Stream
from toolkit.mix.writer import check_folder
from toolkit.records import sets as records
from toolkit.records.external_sets import ExternalContent
from toolkit.rules import filters
from toolkit.source import external_sets, resolve_sets
from toolkit.stages.context import Context, all_values, failures
from toolkit.stages.disk_quota import DOCUMENT, FILES
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import check_writable, escape_path, exists, join, strip_suffix, work_folder
from toolkit.storage.stores.local.scratch import scratch
from toolkit.storage.threads import for_each

if TYPE_CHECKING:
    from toolkit.mix.budget import drawing

SLIP = 0.8
"""Similarity of two names (see difflib) from which one is taken for a slip of the other."""


def _check_patterns(context: Context, template: ShardToMix, works: list[ShardToMix], *, complete: bool) -> None:
    """Check the patterns of a stream; warn of doubtful ones, and print the number that run compiled.

    Args:
        context: Context of the configuration.
        template: A shard of the stream.
        works: Shards of the stream.
        complete: True if all attributes are known; if not, patterns are not held against them.

    Raises:
        ConfigError: for an attribute that no row has.
    """
    states = _index(context, works)
    if complete:
        context.warn(_faults(template.stream, template.sets, _inline_keys(states), in_part=context.only_per_shard))
    if context.options.quiet:
        return
    number = sum(len(rule.foreign.texts) for rule in template.stream.rules if rule.foreign)
    slow = template.compile_rules(translates=True).needs.by_library
    of_stream = f" of the stream {template.stream.name}" if template.stream.name else ""
    print(f"{number - len(slow)} of {number} patterns{of_stream} run compiled", file=sys.stderr)
    for pattern in slow:
        print(f"runs in the library of its language, for each document: {pattern}", file=sys.stderr)


def _index(context: Context, works: list[ShardToMix]) -> list[ShardState | None]:
    """Return the states of shards; read those that have no row index yet."""
    states = for_each(lambda work: row_index.current(work.dataset, work.shard), works)
    todo = [work for work, state in zip(works, states, strict=True) if state is None]
    results = context.run("making row indexes", index_shard, shard_tasks(todo)) if todo else []
    indexed = iter(result.value for result in results)  # the cause of a failure is printed where the shard is mixed
    return [next(indexed) if state is None else state for state in states]


def _inline_keys(states: list[ShardState | None]) -> set[str] | None:
    """Return the names of documents' own attributes; None if unknown."""
    keys = [None if state is None else state.inline_keys for state in states]
    return None if None in keys else {name for names in keys for name in names or ()}


def index_shard(work: ShardToMix, report: Any) -> ShardState:
    """Make the row index of a shard; return its state."""
    return row_index.ensure(work.dataset, work.shard, work.max_document_bytes)


def _faults(stream: Stream, joined: list[JoinedSet], inline: set[str] | None, *, in_part: bool) -> list[str]:
    """Return warnings of patterns with attributes missing in rows.

    An attribute that no row has is an error: the rule would drop every document, or none. Only where other programs
    leave keys out because they found nothing, it is a warning, unless all documents would be dropped then.

    Args:
        stream: Stream with the patterns.
        joined: Sets.
        inline: Names of the attributes that documents have of their own; None if they are not known.
        in_part: True if only some of the shards were looked at, as by a share: what is missing may be in others.

    Raises:
        ConfigError: for an attribute that is not there.
    """
    names = {key.name for item in joined for key in item.keys} | (inline or set())
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
        missing = {text: filters.named_keys(text, foreign.syntax) - names for text in foreign.texts}
        absent = sorted({key for keys in missing.values() for key in keys})
        if foreign.match and foreign.syntax == "jsonpath":
            _check_types(f"{rule.place}: rule {quoted(rule.name)}", foreign.texts, joined, inline)
        if not absent or inline is None:
            continue
        drops_all = foreign.keeps and all(missing.values())
        fails = drops_all or of_jq
        key = next((key for key in absent if fails or not _may_be_rare(key, joined, inline)), absent[0])
        message = f"{rule.place}: rule {quoted(rule.name)}: expected an attribute that a row has, got {key!r}"
        hint = choices(key, sorted(names))
        if in_part or not (fails or not _may_be_rare(key, joined, inline)):
            notes.append(message + did_you_mean(key, names))
        elif foreign.syntax == "jq":
            raise ConfigError(f"{message}{hint}; if documents may lack it, write `{key}?`")
        else:
            raise ConfigError(
                f"{message}{hint}" + ("" if drops_all else "; if no document has it, leave the pattern out")
            )
    return notes


def _check_types(place: str, patterns: Sequence[str], joined: list[JoinedSet], inline: set[str] | None) -> None:
    """Raise ConfigError for a pattern without a possible match in our sets."""
    from toolkit.rules.filters.translation import KeyInfo

    ours = {key.name: key for item in joined if item.ours for key in item.keys if key.name not in (inline or ())}
    types_by_key = {name: KeyInfo(key.present or key.declared, key.default) for name, key in ours.items()}
    for pattern in patterns:
        named = sorted(filters.named_keys(pattern, "jsonpath"))
        if named and ours.keys() >= {*named} and filters.translate(pattern, "jsonpath", types_by_key) == "False":
            types = ", ".join(f"{name}: {ours[name].declared}" for name in named)
            hint = (
                ""
                if all(ours[name].declared == SPANS for name in named)
                else "; `form: dolma` makes `dedup` write spans"
            )
            raise ConfigError(f"{place}: expected a pattern that can match the values ({types}), got {pattern}{hint}")


def _may_be_rare(key: str, joined: list[JoinedSet], inline: set[str]) -> bool:
    """Return True if rows of another program may lack a key. They do so where nothing was found.

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


class PreparedMix(msgspec.Struct):
    """A mix ready to start.

    Attributes:
        settings: Settings with the shares of weighted streams.
        works: Shards, sorted by stream and path.
        sets: Sets that each stream joins, by its name.
        unreadable: Reasons of shards with unreadable external attributes, by key.
        shards: Number of shards beside those that `--limit` lets in.
        notes: Notes about inputs that are left out.
        refused: Faults of its sets, for which the mix is refused; empty but for what only looks.
        budget: Result of the budget, if there is one.
    """

    settings: MixSettings
    works: list[ShardToMix] = []
    sets: dict[str, list[JoinedSet]] = {}
    unreadable: dict[str, str] = {}
    shards: int = 0
    notes: str = ""
    refused: list[ToolkitError] = []
    budget: BudgetFound | None = None


def _check_places(context: Context, settings: MixSettings) -> None:
    """Check the places of output and dropped documents, against all datasets.

    Raises:
        ConfigError: naming both places.
    """
    output, rejected = settings.output.path, settings.rejected
    written = [ConfiguredPath(output, "the output", settings.place)]
    if rejected is not None:
        written.append(ConfiguredPath(rejected, "`rejected`", settings.place))
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
    check_apart(written, [place for dataset, name in datasets for place in dataset_folders(dataset, name)])


def _check_notes(dataset: Dataset, settings: MixSettings) -> None:
    """Raise ConfigError for records of a stream among parts. The work folder of the output has a place for them."""
    if is_within(normal_path(dataset.notes), normal_path(f"{work_folder(settings.output.path)}/inputs")):
        return
    check_apart(
        [ConfiguredPath(dataset.notes, "`bookkeeping`", settings.place)],
        [ConfiguredPath(settings.output.path, "the output"), ConfiguredPath(dataset.documents, "the documents")],
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
    """Check the folders of output and dropped documents. They are empty, or have what a mix of these datasets made.

    Return what is replaced that was made from other datasets.

    Raises:
        ConfigError: if something else is there.
    """
    datasets = [stream.dataset for stream in settings.streams]
    replaced = publication.check_output(settings.output.path, datasets, overwrite=context.options.overwrite)
    if settings.rejected is not None:
        publication.check_rejected(settings.output.path, settings.rejected)
    return replaced


def check(context: Context, settings: MixSettings, planned: Mapping[str, records.SetSchema]) -> None:
    """Check the section before its inputs exist.

    Args:
        context: Context of the configuration.
        settings: Settings of the mix.
        planned: Sets of its own dataset that will have been written by then.

    Raises:
        ConfigError: for whatever is wrong.
    """
    for stream in settings.streams:
        is_own = context.has_dataset and stream.dataset == context.dataset
        will_be = planned if is_own else {}
        external = external_sets(stream, will_be)
        if external and (context.share or (is_own and context.has("ingest"))):
            continue  # files to come may have other keys; a share would read those of all others, too
        contents: Mapping[str, list[ExternalContent]] = {}
        if external:
            contents, unreadable = context.source_of(stream.dataset, stream.dataset.shards()).external(external)
            if unreadable:
                continue  # the mix says what it cannot read
        to_be(context, settings, stream, will_be, contents)


def to_be(
    context: Context,
    settings: MixSettings,
    stream: Stream,
    planned: Mapping[str, records.SetSchema],
    contents: Mapping[str, list[ExternalContent]] = MappingProxyType({}),
) -> ShardToMix:
    """Return how each shard of a stream will be mixed; its name is empty. Arguments and errors as of `check`."""
    is_own = context.has_dataset and stream.dataset == context.dataset
    stream = msgspec.structs.replace(stream, own=context.own_types_to_be() if is_own else None)
    return unbound(context, settings, stream, resolve_sets(stream, planned, contents)).bound(planned)


def unbound(context: Context, settings: MixSettings, stream: Stream, sets: list[JoinedSet]) -> ShardToMix:
    """Return a shard of a stream without its name and bindings."""
    limit = context.config.max_document_bytes
    return ShardToMix(settings=settings, stream=stream, sets=sets, shard="", max_document_bytes=limit)


def prepare(context: Context, settings: MixSettings) -> PreparedMix:
    """Return the shards of all streams, with their joined sets.

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
    listed = context.checked_shards(stream.dataset).names
    prepared.shards += len(listed)
    if notes not in prepared.notes:  # of another stream of the same dataset
        prepared.notes += notes
    if context.share and not shards:
        return  # the sets need not be there yet
    if stream.own is None:  # or else it is over a sample, whose documents are of other shards
        stream = msgspec.structs.replace(stream, own=inputs.of_documents(stream.dataset, listed))
    source = context.source_of(stream.dataset, shards)
    if refused := source.faults([attribute.set for attribute in stream.attributes]):
        if not context.options.only_shows:
            raise refused[0]
        prepared.refused += refused
        context.warn(map(str, refused))
    resolved = source.typed(stream)
    joined, unreadable = resolved.sets, resolved.unreadable
    prepared.sets[stream.name] = joined
    template = unbound(context, prepared.settings, stream, joined)
    try:
        bound = template.bound()
    except ConfigError as error:
        if unreadable:  # what rules lack may be in there
            raise StepFailed(*unreadable.values()) from None
        place = resolved.place_of(lambda sets: msgspec.structs.replace(template, sets=sets).bound())
        raise ConfigError(f"{error}{place}") from None
    for shard in shards:
        work = msgspec.structs.replace(bound, shard=shard)
        if shard in unreadable:
            prepared.unreadable[work.key] = unreadable[shard]
        else:
            prepared.works.append(work)
    if any(rule.foreign for rule in stream.rules):
        works = [work for work in prepared.works if work.stream is stream]
        _check_patterns(context, bound, works, complete=not unreadable)


def _check_names(prepared: PreparedMix) -> None:
    """Raise ConfigError if shards' outputs have shared or invalid names."""
    shards: dict[str, str] = {}
    for work in prepared.works:
        name = strip_suffix(work.shard, SHARD_SUFFIXES)
        try:
            check_folder(name)
        except DataError as error:
            raise ConfigError(f"{prepared.settings.place}: `layout: inputs`: {work.name}: {error}") from None
        if (other := shards.setdefault(name, work.name)) != work.name:
            raise ConfigError(
                f"{prepared.settings.place}: expected a name of its own for each shard with `layout: inputs`, got "
                f"{name!r} for {other} and {work.name}; make an output of each by itself, or leave `layout` out"
            )


# --- weights ----------------------------------------------------------------------------------------------------------


def _weigh(context: Context, prepared: PreparedMix) -> PreparedMix:
    """Return the mix with each stream's share of documents by weight.

    The stream that is shortest for its weight gives all it has; nothing is repeated.

    Raises:
        StepFailed: if the characters of a shard cannot be counted.
    """
    from toolkit.mix.rule_effects.preview import preview_shard  # which few mixes need

    results = context.run("counting the characters of each stream", preview_shard, shard_tasks(prepared.works))
    if broken := failures(results):
        raise StepFailed(*broken)
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
    """Return a mix with changed shares and budget of its streams.

    Args:
        prepared: Mix.
        streams: Streams, changed in these alone.
        budget: Result of the budget.
    """
    settings = msgspec.structs.replace(prepared.settings, streams=list(streams))
    by_name = {stream.name: {"share": stream.share, "budget": stream.budget} for stream in streams}
    works = [
        msgspec.structs.replace(
            work, settings=settings, stream=msgspec.structs.replace(work.stream, **by_name[work.stream.name])
        )
        for work in prepared.works
    ]
    return msgspec.structs.replace(prepared, settings=settings, works=works, budget=budget)


# --- the budget: its bounds are found from all shards, before the first stage; then it is a rule ----------------------


def fill_budget(context: Context, prepared: PreparedMix) -> PreparedMix:
    """Return a mix with the bounds of its budget. Shards that cannot be read are among its unreadable ones.

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
            paths = [join(folder, escape_path(work.key)) for work in prepared.works]
        return _find_budget(context, prepared, budget, paths)


def as_published(prepared: PreparedMix) -> PreparedMix | None:
    """Return a mix with published bounds; None for another mix."""
    budget = prepared.settings.budget
    published = publication.load_manifest(prepared.settings.output.path) if budget else None
    if budget is None or published is None or published.budget is None:
        return None
    before = _bounded(prepared, budget, published.budget)
    return before if unchanged_manifest(before.works) else None


DRAWN = 16
"""Bytes that a budget keeps of each document until the mix is published."""


def _draws_size(work: "drawing.BudgetDrawTask", text: float) -> float:
    return 0.0 if exists(work.path) else text * DRAWN / DOCUMENT + FILES


def _find_budget(context: Context, prepared: PreparedMix, budget: BudgetSettings, paths: Sequence[str]) -> PreparedMix:
    from toolkit.exchange import thresholds  # which few mixes need
    from toolkit.mix.budget import drawing

    works, shared = prepared.works, not context.options.only_shows
    tasks = tasks_of(
        works, [drawing.BudgetDrawTask(work, path, shared) for work, path in zip(works, paths, strict=True)]
    )
    needs = context.disk.estimates(tasks, _draws_size) if shared else None  # others write to scratch
    results = context.run("counting what the budget takes from", drawing.draw_shard, tasks, needs=needs)
    existing: list[str] = []
    copies: list[int] = []
    totals: dict[str, GroupBudget] = {}
    for work, path, result in zip(works, paths, results, strict=True):
        if result.value is None:
            prepared.unreadable[work.key] = result.failure.message if result.failure else ""
            continue
        if result.value.data:  # of another machine
            write_file(path, result.value.data)
        existing.append(path)
        copies.append(sum(group.copies for group in result.value.groups))
        for draws in result.value.groups:
            total = totals.setdefault(draws.group, GroupBudget(group=draws.group))
            total.available += draws.available
            total.once += draws.once
    prepared.works = [work for work in works if work.key not in prepared.unreadable]
    if shared and (why := context.shared_ids((w.dataset, w.shard) for w in prepared.works)):
        raise DataError(why)
    targets, goals = budget.goals({group: total.available for group, total in totals.items()})
    goals |= dict.fromkeys(totals.keys() - goals.keys(), 0.0)
    names = sorted(goals)
    sources = [
        drawing.DrawnKeys(paths=existing[first:last], groups=names) for first, last in thresholds.in_groups(copies)
    ]

    def run(label: str, function: Callable[[Any, Report], Any], tasks: list[Task[Any]]) -> list[Any]:
        if shared:
            return all_values(context.run(label, function, tasks, "tasks"))
        return [function(task.payload, lambda documents, size: None) for task in tasks]  # files are on this machine

    listed = bounds.find_bounds(
        run, "finding where the budget ends", os.path.dirname(paths[0]), sources, [[goals[group]] for group in names]
    )
    around = {group: results[0] for group, results in zip(names, listed, strict=True)}
    nearest = {group: results[0] for group, results in around.items()}
    chosen = nearest if budget.targets else bounds.settled(around, goals)
    for group, bound in chosen.items():
        total = totals.setdefault(group, GroupBudget(group=group))
        total.target, total.amount = targets.get(group, 0.0), bound.amount
        total.missing = max(0.0, total.target - total.amount) if total.amount >= total.available else 0.0
    bounded = BudgetFound(
        unit=budget.unit,
        bounds={group: bound.hash for group, bound in chosen.items()},
        groups=[totals[group] for group in sorted(chosen)],
        redistributed=budget.short == "redistribute",
    )
    return _bounded(prepared, budget, bounded)


def _bounded(prepared: PreparedMix, budget: BudgetSettings, result: BudgetFound) -> PreparedMix:
    streams = [
        msgspec.structs.replace(stream, budget=budget.rule(result.bounds, stream.seed))
        for stream in prepared.settings.streams
    ]
    return with_streams(prepared, streams, result)
