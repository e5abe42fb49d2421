"""Previews of a mix: dry run, explanations, comparison with another mix. They write nothing."""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from toolkit import partial_sums
from toolkit.command_options import CommandResult, absent
from toolkit.commands import (
    _mix_finish as publishing,
    _mix_preparation as preparation,
    _mix_tables as tables,
    _sections as sections,
    _tag_sample as using,
    _tracing as tracing,
)
from toolkit.commands._mix_preparation import PreparedMix
from toolkit.config.settings import ConfigNode
from toolkit.data import row_index
from toolkit.data.alignment import MAX_ROW
from toolkit.data.documents import DOCUMENT_DECODER
from toolkit.errors import ConfigError, amount, mismatch
from toolkit.execution.executors import Result, Task
from toolkit.execution.grouped import shard_tasks
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.publication import BlocklistCount, OrphanCount, Unseen
from toolkit.mix.rule_effects import explain as explaining, preview, summary
from toolkit.mix.rule_effects.counts import RuleEffect, Totals, added
from toolkit.mix.writer import not_carried
from toolkit.records.identity import ADVICE_FOR_STREAMS, ChosenDocuments, IndexedDocuments, find_duplicate_ids
from toolkit.records.left_out import LeftOut
from toolkit.stages.context import Context, Outcome, failures
from toolkit.stages.dispatch import opened_apart
from toolkit.storage.threads import for_each

UNMATCHED_LISTED = 1000
"""Blocklist entries that matched nothing which ``--json`` lists of each rule."""


class MixPreview(CommandResult, kw_only=True):
    """The result of `mix` with ``--dry-run``.

    Attributes:
        totals: Documents and code points, read and kept.
        rules: Effect of each rule, in order; `only` counts what no other rule would drop.
        budget: Counts of the groups of a budget, or None.
        orphans: Documents dropped as copies of documents that are not kept.
        labels: Effects by label (by stream and label, where there are several streams), as data.
        blocklists: Number of entries that matched, of each blocklist.
        unseen: Fields of rules that no document has, or no document of a shard, and texts that no document has.
        not_carried: Documents with fields that the output does not carry, by field.
        unlike_dolma: Number of documents that Dolma decides otherwise about.
        unmatched: Entries of blocklists that matched nothing, by rule.
        failed: Messages of shards that failed.
        share: Share of the run, if it is one.
        before_edits: True if rules edit texts: documents that they leave without text count as kept, and a mix drops
            them.
        read_in_place: Counts of items that the readers of files in place left out or changed, by reason.
        sample: The sample that was looked at, if it was.
        editions: Results of the editions, by name.
    """

    totals: Totals
    rules: list[RuleEffect]
    budget: dict[str, Any] | None
    orphans: list[OrphanCount]
    labels: dict[str, Any]
    blocklists: list[BlocklistCount]
    unseen: list[Unseen]
    not_carried: dict[str, int]
    unlike_dolma: int
    unmatched: dict[str, list[str]]
    failed: list[str]
    before_edits: bool = False
    share: dict[str, Any] = absent()
    read_in_place: dict[str, int] = {}
    sample: str | None = None
    editions: dict[str, "MixPreview"] = absent()


class MixExplanation(CommandResult, kw_only=True):
    """The result of `mix` with ``--explain``: documents with the rules they reach, and items that became none."""

    documents: list[dict[str, Any]]
    left_out: list[LeftOut]
    failed: list[str]
    sample: str | None = None


class MixComparison(CommandResult, kw_only=True):
    """The result of `mix` with ``--compare``.

    Attributes:
        rows: Number of documents.
        kept: Number of documents that the first mix keeps.
        gained: Documents that only the second keeps, by the first's rule that drops them.
        lost: Documents that only the first keeps, by the second's rule that drops them.
        relabelled: Documents that both keep, by ``label -> other label``.
        samples: Documents of all three.
        failed: Messages of shards that failed.
        before_edits: True if rules edit texts: documents that they leave without text count as kept, and a mix drops
            them.
        sample: The sample that was looked at, if it was.
    """

    rows: int
    kept: int
    gained: dict[str, int]
    lost: dict[str, int]
    relabelled: dict[str, int]
    samples: list[explaining.ChangedDocument]
    failed: list[str] = []
    before_edits: bool = False
    sample: str | None = None


def dry_run(context: Context, prepared: PreparedMix) -> Outcome:
    """Show the effects of the rules, without text."""
    settings = prepared.settings
    with publishing.previewing(prepared.works) as previewing:
        results = context.run("dry run", preview.preview_with_fates, previewing.tasks())
        lost = previewing.orphans(results)
    broken = [*prepared.unreadable.values(), *failures(results)]
    previews = [(work, result.value) for work, result in zip(prepared.works, results, strict=True) if result.value]
    effects, labels = summary.MixSummary(settings, prepared.budget), dict[str, dict[str, preview.LabelCount]]()
    for stream in settings.streams:
        labels[stream.name] = {}
    for work, result in previews:
        effects.add(work, result, result.only)
        partial_sums.add(labels, {work.stream.name: result.labels})
    totals = effects.totals
    if not totals.kept and not broken:
        publishing.empty(context, settings, effects)
    context.shared_ids(((work.dataset, work.shard) for work, _ in previews))
    if settings.notes_ids:
        written = [
            ChosenDocuments(work.name, result.stays, IndexedDocuments(work.dataset, work.shard, result.totals.rows))
            for work, result in previews
        ]
        twice = islice(find_duplicate_ids(written), 1)
        context.warn(str(item.error(written, ADVICE_FOR_STREAMS)) for item in twice)
    lost.refusal(context, settings)
    text = (
        f"{amount(totals.rows, 'document')}, {totals.kept:,} would be kept ({tables.share(totals.kept, totals.rows)})"
    )
    if effects.rules and any(result.texts for _, result in previews):
        has_text = any(stream.text for stream in settings.streams)
        why = "`text:` is given" if has_text else "a rule asks for more than attributes"
        text += f"; {why}, so the documents were read with their text"
    text += f"\n{tables.BEFORE_EDITS}" * settings.edits
    text += "\n\n" + tables.rules_table(totals, effects.rules, preview=True)
    text += tables.budget_table(effects.budget) + lost.text
    number = 0
    for stream in settings.streams:
        rules = [(number + i, rule.kind) for i, rule in enumerate(stream.all_rules, 1)]
        number += len(rules)
        if of_stream := labels[stream.name]:
            text += f"\n\n{stream.name}" if stream.name else "\n"
            text += "\n" + tables.labels_table(of_stream, rules)
            by_label = {
                label: (counts.rows, counts.kept, max(counts.dropped, default=0)) for label, counts in of_stream.items()
            }
            context.warn(preview.uneven_losses(by_label))
    unmatched = effects.unmatched()
    by_stream: dict[str, Any] = {
        name: msgspec.to_builtins(dict(sorted(of_stream.items()))) for name, of_stream in labels.items()
    }
    fields = effects.fields() | {"budget": tables.budget_data(effects.budget)}
    return Outcome(
        text=text + tables.remarks(effects, unmatched),
        data=MixPreview(
            **{name: fields[name] for name in fields.keys() & {*MixPreview.__struct_fields__}},
            orphans=lost.counts,
            labels=by_stream[""] if list(by_stream) == [""] else by_stream,
            unmatched={name: entries[:UNMATCHED_LISTED] for name, entries in unmatched.items()},
            failed=broken,
            before_edits=settings.edits,
        ),
        failures=broken,
    )


def planned(context: Context) -> str:
    """Return lines about fields missing in the output. They are known for documents that have been read once."""
    writer = sections.mix(context).writer()
    results = [
        not_carried(writer, state.all_fields)
        for stream in sections.mix(context).streams
        for state in for_each(partial(row_index.current, stream.dataset), stream.dataset.shards())
        if state
    ]
    return "".join(f"\n# {line}".rstrip(" ") for line in tables.not_carried(added(results)).split("\n")[1:])


class SampleChoice(NamedTuple):
    """The selection of samples: number, rule, and seed of a draw."""

    samples: int
    rule: str | None = None
    seed: int | None = None


def has_id(prepared: PreparedMix, id: str) -> bool:
    """Return True if a document has this id, by the row indexes. Its source must be the first of its shard."""

    def is_in(work: ShardToMix) -> bool:
        state = row_index.current(work.dataset, work.shard)
        if not state or not state.rows:
            return False
        with work.dataset.lines(work.shard, MAX_ROW) as lines:
            source = DOCUMENT_DECODER.decode(next(lines.blocks())[0]).source
        return bool(row_index.rows_of(work.dataset, work.shard, source, id))

    return any(for_each(is_in, prepared.works))


def explain(context: Context, prepared: PreparedMix, target: str | None, selection: SampleChoice) -> Outcome:
    """Explain the document of an id, or samples for each rule."""
    if selection.rule is not None:
        _check_rule(selection.rule, [prepared])
    samples = selection.samples if target is None else 0
    tasks = [
        Task(task.name, explaining.ExplainTarget(task.payload, target, samples, selection.rule, selection.seed))
        for task in shard_tasks(prepared.works)
    ]
    results = context.run("explain", explaining.explain_shard, tasks)
    broken = [*prepared.unreadable.values(), *failures(results)]
    explanations = (
        _chosen(prepared, results, samples, drawn=selection.seed is not None)
        if samples
        else [explanation for r in results for explanation in r.value or []]
    )
    items: list[LeftOut] = []
    if target is not None:
        explanations = _with_ways(context, prepared, explanations)
        datasets = {stream.dataset.bookkeeping: stream.dataset for stream in prepared.settings.streams}
        looked_in = amount(len(tasks), "shard")
        items = tracing.items_left_out(datasets.values(), target, looked_in, is_found=bool(explanations or broken))
    nothing = f"the rule {selection.rule!r} does nothing" if selection.rule else "no rule does anything"
    return Outcome(
        text="\n\n".join([*map(_show, explanations), *([tracing.show_left_out(items)] if items else [])]) or nothing,
        data=MixExplanation(
            documents=[
                without(msgspec.to_builtins(explanation), "rank", "way") | explanation.way
                for explanation in explanations
            ],
            left_out=items,
            failed=broken,
        ),
        failures=broken,
    )


def _show(explanation: explaining.Explanation) -> str:
    return "\n".join([explaining.show(explanation), *tracing.show_origin(explanation.way)])


def _with_ways(
    context: Context, prepared: PreparedMix, explanations: list[explaining.Explanation]
) -> list[explaining.Explanation]:
    """Return explanations with origins and places in the output."""
    works = {work.name: work for work in prepared.works}
    stay = [(item.source, item.id) for item in explanations if item.dropped is None]
    places = tracing.in_output(context, stay, prepared.settings.output.path) or {}
    ways = []
    for explanation in explanations:
        name, _, row = explanation.place.rpartition(":")
        way = tracing.origin(works[name].dataset, works[name].shard, int(row))
        lines = places.get((explanation.source, explanation.id)) if explanation.dropped is None else None
        ways.append(way if lines is None else way | {"output": lines})
    return [msgspec.structs.replace(explanation, way=way) for explanation, way in zip(explanations, ways, strict=True)]


def without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return fields without some."""
    return {name: value for name, value in fields.items() if name not in names}


def _check_rule(name: str, mixes: Sequence[PreparedMix]) -> None:
    """Raise ConfigError if no stream has a rule of this name."""
    names = [rule.name for mix in mixes for stream in mix.settings.streams for rule in stream.all_rules]
    if name not in names:
        raise ConfigError(f"--rule: expected the name of a rule, {mismatch(name, dict.fromkeys(names))}")


def _chosen(
    prepared: PreparedMix, results: list[Result[list[explaining.Explanation]]], samples: int, *, drawn: bool
) -> list[explaining.Explanation]:
    """Return the samples of each rule; no document twice. They are in the order of streams and rules."""
    chosen: list[explaining.Explanation] = []
    places: set[str] = set()
    for stream in prepared.settings.streams:
        explanations = [
            explanation
            for work, result in zip(prepared.works, results, strict=True)
            if work.stream.name == stream.name
            for explanation in result.value or []
        ]
        if drawn:
            explanations.sort(key=lambda item: item.rank)
        for i in range(len(stream.all_rules)):
            of_rule = {
                place: explanation
                for explanation in explanations
                for place in [explanation.place.removeprefix(f"{stream.name}: ")]
                if explanation.deciding == i and place not in places
            }
            chosen += islice(of_rule.values(), samples)
            places.update(islice(of_rule, samples))
    return chosen


def compare(
    context: Context,
    prepared: PreparedMix,
    path: str,
    selection: SampleChoice,
    source: ConfigNode | None = None,
    *,
    sampled: bool,
) -> Outcome:
    """Show the changes in the mix of another configuration. Both are over the sample, if the first is.

    Args:
        context: Context of the first configuration.
        prepared: Mix.
        path: Path of the other configuration.
        selection: Selection of samples for each change.
        source: Other configuration itself, where it is in no file.
        sampled: True if the first is over a sample.
    """
    options = msgspec.structs.replace(context.options, config=path, overrides=(), config_node=source)
    with opened_apart(options) as context_of_other:
        settings = preparation.settings_of(context_of_other, writes=False)
        if sampled:
            settings = using.in_mix(context_of_other, settings, requested=True)[0]
        other = preparation.fill_budget(context_of_other, preparation.prepare(context_of_other, settings))
    prepared.refused += other.refused
    names = [sorted((w.stream.name, w.path) for w in prepared_mix.works) for prepared_mix in (prepared, other)]
    if names[0] != names[1] and not (prepared.unreadable or other.unreadable):
        only = set(names[0]) ^ set(names[1])
        stream, shard = min(only)
        raise ConfigError(
            f"expected two mixes of the same streams and documents, got {len(only)} shards in one of them only, such "
            f"as {shard}" + (f" of the stream {stream!r}" if stream else "")
        )
    if selection.rule is not None:
        _check_rule(selection.rule, [prepared, other])
    other_works = {(work.stream.name, work.path): work for work in other.works}
    session = context_of_other.session
    mine = context.session
    apart = None if (session.options, session.root) == (mine.options, mine.root) else session
    tasks = [
        Task(
            task.name,
            explaining.Pair(task.payload, other_works[task.payload.stream.name, task.payload.path], *selection, apart),
        )
        for task in shard_tasks(prepared.works)
        if (task.payload.stream.name, task.payload.path) in other_works
    ]
    results = context.run("compare", explaining.compare_shard, tasks)
    broken = [*prepared.unreadable.values(), *other.unreadable.values(), *failures(results)]
    total = explaining.MixChanges()
    for result in results:
        if result.value:
            total.add(result.value)
    total.keep_samples(selection.samples, selection.rule)
    broken += _add_texts(context, prepared, total)
    data = msgspec.convert(total, MixComparison, from_attributes=True)
    data.failed, data.before_edits = broken, prepared.settings.edits or settings.edits
    text = (
        tables.comparison(context.options.config or "", path, total) + f"\n\n{tables.BEFORE_EDITS}" * data.before_edits
    )
    return Outcome(text=text, data=data, failures=broken)


def _add_texts(context: Context, prepared: PreparedMix, comparison: explaining.MixChanges) -> list[str]:
    """Give the samples their texts; return why that was not possible."""
    numbers: dict[str, set[int]] = {}
    for sample in comparison.samples:
        numbers.setdefault(sample.shard, set()).add(sample.number)
    limit = context.config.max_document_bytes
    works = {work.path: work for work in prepared.works}
    tasks = [
        Task(path, explaining.ShownTexts(works[path].dataset, works[path].shard, sorted(rows), limit))
        for path, rows in sorted(numbers.items())
    ]
    if not tasks:
        return []
    results = context.run("reading texts", explaining.read_texts, tasks)
    texts = {
        (task.name, number): text
        for task, result in zip(tasks, results, strict=True)
        for number, text in zip(task.payload.numbers, result.value or (), strict=False)
    }
    comparison.samples = [
        msgspec.structs.replace(sample, text=texts.get((sample.shard, sample.number), ""), rank=0, shard="", number=0)
        for sample in comparison.samples
    ]
    return failures(results)
