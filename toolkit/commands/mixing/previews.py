"""Previews of a mix, which write nothing: dry run, explanations, the comparison with another mix."""

from collections.abc import Sequence

import msgspec

from toolkit.commands.mixing import orphans, preparation, publishing, tables
from toolkit.commands.mixing.preparation import PreparedMix
from toolkit.commands.steps.context import Context, open_context
from toolkit.commands.steps.outcome import Outcome, failures
from toolkit.errors import ConfigError
from toolkit.mix import stage
from toolkit.mix.effects import compare as comparing
from toolkit.mix.effects import explain as explaining
from toolkit.mix.effects import preview, unmatched
from toolkit.mix.effects.preview import LabelCount, Preview
from toolkit.mix.join import ShardToMix
from toolkit.runs.executors import Result, Task

UNMATCHED_LISTED = 1000
"""Blocklist entries that matched nothing which ``--json`` lists of each rule."""


def dry_run(context: Context, prepared: PreparedMix) -> Outcome:
    """Show the effects of the rules, without text."""
    settings = prepared.settings
    with orphans.previewing(prepared.works) as previewing:
        results = context.run("dry run", preview.preview_with_fates, previewing.tasks())
        lost = previewing.orphans(results)
    broken = [*prepared.unreadable.values(), *failures(results)]
    found = [(work, result.value) for work, result in zip(prepared.works, results, strict=True) if result.value]
    totals = tables.summed([each.totals for _, each in found])
    effects = tables.effects_of(
        settings, [(work.stream, each.effects) for work, each in found], [each.only for _, each in found]
    )
    if not totals.kept and not broken:
        publishing.empty(context, settings, totals, effects, {})
    lost.refused(context, settings)
    by_stream = {stream.name: _labels(found, stream.name) for stream in settings.streams}
    counts, left = unmatched.matches([(work, each.matched) for work, each in found])
    texts = any(each.texts for _, each in found)
    text = f"{totals.rows:,} documents, {totals.kept:,} would be kept ({tables.share(totals.kept, totals.rows)})"
    text += "; a rule asks for more than attributes, so the documents were read" if texts and effects else ""
    text += "\n\n" + tables.rules_table(totals, effects, preview=True)
    text += lost.text()
    unlike = sum(each.unlike_dolma for _, each in found)
    number = 0
    for stream in settings.streams:
        rules = [(number + i, rule.kind) for i, rule in enumerate(stream.all_rules, 1)]
        number += len(rules)
        if labels := by_stream[stream.name]:
            text += f"\n\n{stream.name}" if stream.name else "\n"
            text += "\n" + tables.labels_table(labels, rules)
    return Outcome(
        text=text + tables.blocklists(counts, left) + tables.unlike_dolma(unlike, totals.rows),
        data={
            "totals": msgspec.to_builtins(totals),
            "rules": msgspec.to_builtins(effects),
            "orphans": msgspec.to_builtins(lost.counts),
            "labels": _labels_data(by_stream),
            "blocklists": msgspec.to_builtins(counts),
            "unlike_dolma": unlike,
            "unmatched": {name: entries[:UNMATCHED_LISTED] for name, entries in left.items()},
            "failed": broken,
        },
        failures=broken,
        exit_code=1 if broken else 0,
    )


def _labels(found: Sequence[tuple[ShardToMix, Preview]], stream: str) -> dict[str, LabelCount]:
    labels: dict[str, LabelCount] = {}
    for work, each in found:
        if work.stream.name == stream:
            for label, count in each.labels.items():
                before = labels.get(label)
                total = tables.summed([before, count] if before else [count])
                dropped = (
                    [a + b for a, b in zip(before.dropped, count.dropped, strict=True)] if before else count.dropped
                )
                labels[label] = LabelCount(**msgspec.structs.asdict(total), dropped=dropped)
    return labels


def _labels_data(by_stream: dict[str, dict[str, LabelCount]]) -> object:
    data = {name: msgspec.to_builtins(dict(sorted(labels.items()))) for name, labels in by_stream.items()}
    return data[""] if list(data) == [""] else data


def explain(context: Context, prepared: PreparedMix, wanted: str) -> Outcome:
    """Explain the document of an id, or (a number) so many samples for each rule."""
    samples = int(wanted) if wanted.isdecimal() else 0
    tasks = [
        Task(task.name, explaining.Target(task.payload, None if samples else wanted, samples))
        for task in stage.shard_tasks(prepared.works)
    ]
    results = context.run("explain", explaining.explain_shard, tasks)
    broken = [*prepared.unreadable.values(), *failures(results)]
    found = _chosen(prepared, results, samples) if samples else [each for r in results for each in r.value or []]
    if not samples and not found and not broken:
        raise ConfigError(f"expected a document with the id {wanted!r}, got none in {len(tasks)} shards")
    return Outcome(
        text="\n\n".join(explaining.show(each) for each in found),
        data={"documents": msgspec.to_builtins(found), "failed": broken},
        failures=broken,
        exit_code=1 if broken else 0,
    )


def _chosen(
    prepared: PreparedMix, results: list[Result[list[explaining.Explanation]]], samples: int
) -> list[explaining.Explanation]:
    """Return the first samples for each rule of each stream, in the order of the rules."""
    chosen = []
    for stream in prepared.settings.streams:
        found = [
            each
            for work, result in zip(prepared.works, results, strict=True)
            if work.stream.name == stream.name
            for each in result.value or []
        ]
        for i in range(len(stream.all_rules)):
            chosen += [each for each in found if each.deciding == i][:samples]
    return chosen


def compare(context: Context, prepared: PreparedMix, path: str, samples: int) -> Outcome:
    """Show what would change with the mix of another configuration."""
    options = msgspec.structs.replace(context.options, config=path, overrides=())
    with open_context(options) as context_of_other:
        other = preparation.prepare(context_of_other, preparation.settings_of(context_of_other, writes=False))
    names = [sorted((w.stream.name, w.path) for w in each.works) for each in (prepared, other)]
    if names[0] != names[1] and not (prepared.unreadable or other.unreadable):
        only = set(names[0]) ^ set(names[1])
        stream, shard = min(only)
        raise ConfigError(
            f"expected two mixes of the same streams and documents, got {len(only)} shards in one of them only, such "
            f"as {shard}" + (f" of the stream {stream!r}" if stream else "")
        )
    others = {(work.stream.name, work.path): work for work in other.works}
    tasks = [
        Task(task.name, comparing.Pair(task.payload, others[task.payload.stream.name, task.payload.path], samples))
        for task in stage.shard_tasks(prepared.works)
        if (task.payload.stream.name, task.payload.path) in others
    ]
    results = context.run("compare", comparing.compare_shard, tasks)
    broken = [*prepared.unreadable.values(), *other.unreadable.values(), *failures(results)]
    total = comparing.Comparison()
    for result in results:
        if result.value:
            total.add(result.value)
    total.keep_samples(samples)
    return Outcome(
        text=tables.comparison(context.options.config or "", path, total),
        data={**msgspec.to_builtins(total), "failed": broken},
        failures=broken,
        exit_code=1 if broken else 0,
    )
