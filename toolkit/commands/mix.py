"""``toolkit mix``: documents and attributes become an output, under rules."""

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit import __version__, records, rowindex
from toolkit.commands import Context, Outcome, failures, shard_tasks, show_plan, table
from toolkit.errors import ConfigError, ToolkitError
from toolkit.executors import Task
from toolkit.mixing import assemble, binding, effects, explain, join, plan, preview, publish, stage
from toolkit.mixing import settings as mix_settings
from toolkit.mixing.effects import RuleCount, RuleEffect, Totals, share
from toolkit.mixing.publish import LabelTotals, Manifest
from toolkit.mixing.settings import JoinedSet, MixSettings
from toolkit.paths import check_writable

LABELS_SHOWN = 20


def check(context: Context, planned: Mapping[str, records.SetSchema]) -> None:
    """Checks the section before what it needs is there.

    Args:
        context: of the configuration.
        planned: the sets that will have been written by then.

    Raises:
        ConfigError: for whatever is wrong.
    """
    settings = mix_settings.read_section(context.section("mix"), context.folder)
    _check_paths(context, settings)
    if not mix_settings.foreign_sets(settings, context.dataset, planned):  # their types are known when they are read
        _prepare(settings, mix_settings.resolve_sets(settings, context.dataset, planned, {}))


def _prepare(settings: MixSettings, sets: list[JoinedSet]) -> dict[str, binding.Binding]:
    return binding.bind_writer(settings, sets, mix_settings.compile_rules(settings, sets))


def run(context: Context) -> Outcome:
    """Mixes: stage 1 per shard, plan, stage 2 per part, publication."""
    dataset, options = context.dataset, context.options
    settings = mix_settings.read_section(context.section("mix"), context.folder)
    output = settings.output.path
    _check_paths(context, settings)
    all_shards = dataset.shards()
    unfinished = context.whole(all_shards)
    shards = context.limited(all_shards)
    publish.check_output(output)
    if settings.rejected is not None:
        publish.check_rejected(output, settings.rejected)
    _check_limit(output, shards, all_shards, context)
    foreign = mix_settings.foreign_sets(settings, dataset, {})
    seen, unreadable = _look_at_foreign(context, foreign, shards)
    if unreadable and settings.on_failed_shard == "stop":
        return _failed(output, list(unreadable.values()))
    sets = mix_settings.resolve_sets(settings, dataset, {}, seen)
    bindings = _prepare(settings, sets)
    works = [
        join.Work(
            dataset=dataset,
            settings=settings,
            sets=sets,
            bindings=bindings,
            shard=shard,
            max_document_bytes=context.config.max_document_bytes,
        )
        for shard in shards
        if shard not in unreadable
    ]
    if options.explain is not None:
        return _explain(context, works, options.explain)
    if options.dry_run:
        return _dry_run(context, settings, works)
    with publish.locked(output):
        outcome = _mix(context, settings, sets, works, unreadable)
    outcome.text += unfinished
    return outcome


def _mix(
    context: Context,
    settings: MixSettings,
    sets: list[JoinedSet],
    works: list[join.Work],
    unreadable: dict[str, str],
) -> Outcome:
    dataset, output = context.dataset, settings.output.path
    context.sweep(output, dataset.bookkeeping)
    publish.finish_interrupted(output)
    manifest = _published(works) if works and not unreadable else None
    if manifest:
        publish.clear_work(output)  # of a mix that failed since
        return _outcome(output, manifest, already=True)
    results = context.run("mix", stage.mix_shard, shard_tasks(dataset, works))
    omitted = dict(unreadable)
    if failed := failures(results):
        if settings.on_failed_shard == "stop":
            return _failed(output, failed)
        omitted |= {w.shard: r.failure.message for w, r in zip(works, results, strict=True) if r.failure}
    stages = {}
    digest = settings.stage_digest()
    for work in works:
        if work.shard not in omitted:
            record = stage.load_stage(output, digest, work.shard)
            if record is None:
                return _failed(
                    output, [f"{work.shard}: expected what was just made of it, it is gone; run the mix again"]
                )
            stages[work.shard] = record
    if not stages:
        return _failed(output, list(omitted.values()))
    return _second_stage(context, settings, sets, stages, omitted)


def _check_paths(context: Context, settings: MixSettings) -> None:
    """No output among what is read, nor around it."""
    dataset = context.dataset
    for path in filter(None, (settings.output.path, settings.rejected)):
        check_writable(path, settings.place)
    for root in (dataset.documents, dataset.attributes, dataset.bookkeeping):
        for path in filter(None, (settings.output.path, settings.rejected)):
            inner, outer = f"{os.path.abspath(path)}/", f"{os.path.abspath(root)}/"
            if inner.startswith(outer) or outer.startswith(inner):
                raise ConfigError(f"{settings.place}: expected a path apart from {root}, got {path}")


def _check_limit(output: str, shards: list[str], all_shards: list[str], context: Context) -> None:
    """With ``--limit``, a fuller output is not replaced unasked."""
    published = publish.load_manifest(output)
    partial = len(shards) < len(all_shards) and not context.options.overwrite and not context.options.dry_run
    if published and partial and len(published.inputs) > len(shards):
        raise ConfigError(
            f"{output} was made of {len(published.inputs)} shards, and --limit {len(shards)} would replace it by "
            "less; choose another output.path, or --overwrite"
        )


def _second_stage(
    context: Context,
    settings: MixSettings,
    sets: list[JoinedSet],
    stages: dict[str, stage.StageRecord],
    omitted: dict[str, str],
) -> Outcome:
    output = settings.output.path
    parts = plan.plan_parts(stages, settings)
    digest = plan.plan_digest(stages, settings.stage_digest(), settings.output.part_size, list(omitted))
    works = [assemble.Work(settings=settings, digest=digest, part=part) for part in parts]
    results = context.run("write", assemble.assemble_part, [Task(w.part.path, w, w.part.size) for w in works], "parts")
    if broken := failures(results):
        return _failed(output, [*omitted.values(), *broken])
    made = [result.value for result in results if result.value]
    manifest = _manifest(settings, sets, stages, omitted, made, digest)
    publish.publish(output, manifest)
    outcome = _outcome(output, manifest)
    outcome.failures, outcome.exit_code = list(omitted.values()), 1 if omitted else 0
    return outcome


def _look_at_foreign(
    context: Context, sets: list[str], shards: list[str]
) -> tuple[dict[str, list[records.Seen]], dict[str, str]]:
    """What the files of other programs hold, by set; and for each shard that cannot be read, why."""
    if not sets:
        return {}, {}
    tasks = [Task(f"{name}/{shard}", Look(context.dataset, name, shard)) for name in sets for shard in shards]
    results = context.run("look at foreign attributes", look, tasks, "files")
    seen: dict[str, list[records.Seen]] = {name: [] for name in sets}
    unreadable: dict[str, str] = {}
    for task, result in zip(tasks, results, strict=True):
        if result.value:
            seen[task.payload.set].append(result.value)
        elif result.failure:
            unreadable.setdefault(task.payload.shard, result.failure.message)
    return seen, unreadable


class Look(msgspec.Struct, frozen=True):
    """One attribute file of another program."""

    dataset: Any
    set: str
    shard: str


def look(work: Look, report: Any) -> records.Seen:
    """Reads a foreign attribute file."""
    return records.look_at(work.dataset, work.set, work.shard)


def _published(works: list[join.Work]) -> Manifest | None:
    """The manifest, if just this mix of just these inputs is published already."""
    settings = works[0].settings
    output = settings.output.path
    manifest = publish.load_manifest(output)
    if manifest is None or manifest.omitted or [e.shard for e in manifest.inputs] != [w.shard for w in works]:
        return None
    inputs = []
    for work, entry in zip(works, manifest.inputs, strict=True):
        state = rowindex.current(work.dataset, work.shard)
        if state is None or state.content != entry.documents:
            return None
        try:
            _, attributes = join.inputs_of(work)
        except ToolkitError:
            return None
        inputs.append((work.shard, state.content, attributes))
    digest = plan.digest_of(inputs, settings.stage_digest(), settings.output.part_size, [])
    return publish.is_published(output, digest)


def _manifest(
    settings: MixSettings,
    sets: list[JoinedSet],
    stages: dict[str, stage.StageRecord],
    omitted: dict[str, str],
    parts: list[assemble.PartRecord],
    digest: str,
) -> Manifest:
    counts: Counter[str] = Counter()
    for each in stages.values():
        counts.update(each.counts)
    labels: dict[str, LabelTotals] = {}
    for part in parts:
        totals = labels.setdefault(part.label, LabelTotals())
        totals.documents += part.documents
        totals.content_size += part.content_size
        totals.size += part.size
        totals.parts += 1
    return Manifest(
        digest=digest,
        toolkit=__version__,
        settings=recorded_settings(settings),
        sets={joined.set: msgspec.to_builtins(joined.keys) for joined in sets},
        inputs=[
            publish.InputEntry(shard=shard, documents=s.documents, attributes=s.attributes, rows=s.totals.rows)
            for shard, s in sorted(stages.items())
        ],
        omitted=omitted,
        totals=_sum([s.totals for s in stages.values()]),
        rules=_effects(settings, [s.rules for s in stages.values()]),
        counts=dict(sorted(counts.items())),
        rejected=labels.pop(mix_settings.REJECTED, None),
        labels=labels,
        parts=parts,
        files=publish.checksum_files(parts, settings),
    )


def recorded_settings(settings: MixSettings) -> dict[str, Any]:
    """The settings as the manifest holds them."""
    return {**settings.stage_settings(), "part_size": int(settings.output.part_size)}


def _sum(totals: list[Totals]) -> Totals:
    return Totals(
        rows=sum(t.rows for t in totals),
        chars=sum(t.chars for t in totals),
        kept=sum(t.kept for t in totals),
        kept_chars=sum(t.kept_chars for t in totals),
    )


def _effects(
    settings: MixSettings, found: list[list[RuleCount]], only: list[list[int]] | None = None
) -> list[RuleEffect]:
    return [
        RuleEffect(
            name=rule.name,
            kind=rule.kind,
            documents=sum(each[i].documents for each in found),
            chars=sum(each[i].chars for each in found),
            reached=sum(each[i].reached for each in found),
            spans=sum(each[i].spans for each in found),
            only=sum(each[i] for each in only)
            if only is not None and not rule.edits and rule.kind != "annotate"
            else None,
        )
        for i, rule in enumerate(settings.rules)
    ]


def _dry_run(context: Context, settings: MixSettings, works: list[join.Work]) -> Outcome:
    """The effects of the rules, without text."""
    if settings.rules and not settings.attributes:
        return show_plan(context, {"mix": {"rules": [rule.name for rule in settings.rules], "shards": len(works)}})
    results = context.run("dry run", preview.preview_shard, shard_tasks(context.dataset, works))
    failed = failures(results)
    found = [result.value for result in results if result.value]
    totals = _sum([each.totals for each in found])
    shown = _effects(settings, [each.effects for each in found], [each.only for each in found])
    text = f"{totals.rows:,} documents, {totals.kept:,} would be kept ({share(totals.kept, totals.rows)})\n\n"
    return Outcome(
        text=text + table(effects.report(totals, shown), right=range(2, 8)),
        data={"totals": msgspec.to_builtins(totals), "rules": msgspec.to_builtins(shown), "failed": failed},
        failures=failed,
        exit_code=1 if failed else 0,
    )


def _explain(context: Context, works: list[join.Work], wanted: str) -> Outcome:
    """The document of an id, or (a number) so many samples for each rule."""
    samples = int(wanted) if wanted.isdecimal() else 0
    targets = [explain.Target(work, None if samples else wanted, samples) for work in works]
    tasks = [Task(work.shard, target) for work, target in zip(works, targets, strict=True)]
    results = context.run("explain", explain.explain_shard, tasks)
    failed = failures(results)
    found = [each for result in results for each in result.value or []]
    if samples:
        rules = works[0].settings.rules if works else []
        found = [each for i in range(len(rules)) for each in [f for f in found if f.deciding == i][:samples]]
    elif not found and not failed:
        raise ConfigError(f"expected a document with the id {wanted!r}, got none in {len(works)} shards")
    return Outcome(
        text="\n\n".join(explain.show(each) for each in found),
        data={"documents": msgspec.to_builtins(found), "failed": failed},
        failures=failed,
        exit_code=1 if failed else 0,
    )


def _failed(output: str, failed: list[str]) -> Outcome:
    text = f"nothing was published in {output}: {len(failed)} failed; run the same command again when that is mended"
    return Outcome(
        text=text, data={"output": output, "published": False, "failed": failed}, failures=failed, exit_code=1
    )


def _outcome(output: str, manifest: Manifest, *, already: bool = False) -> Outcome:
    data = msgspec.to_builtins(manifest)
    summary = {key: data[key] for key in ("totals", "rules", "counts", "labels", "omitted")}
    return Outcome(
        text=report(output, manifest, already=already),
        data={"output": output, "published": True, "already": already, "digest": manifest.digest, **summary},
    )


def report(output: str, manifest: Manifest, *, already: bool = False) -> str:
    """The tables at the end of a mix."""
    totals = manifest.totals
    lines = [
        f"{totals.rows:,} documents, {totals.kept:,} kept ({share(totals.kept, totals.rows)}) -> {output}"
        + (" (was there already: nothing has changed)" if already else "")
    ]
    lines += ["", table(effects.report(totals, manifest.rules), right=range(2, 7))]
    for name, count in manifest.counts.items():
        lines.append(f"{name}: {count:,}")
    rows = [["label", "documents", "bytes", "stored", "parts"]]
    ranked = sorted(manifest.labels.items(), key=lambda item: (-item[1].content_size, item[0]))
    for label, found in ranked[:LABELS_SHOWN]:
        rows.append(_label_row(label, [found]))
    if len(ranked) > LABELS_SHOWN:
        rows.append(_label_row(f"{len(ranked) - LABELS_SHOWN} more", [t for _, t in ranked[LABELS_SHOWN:]]))
    lines += ["", table(rows, right=range(1, 5))]
    if manifest.rejected:
        found = manifest.rejected
        lines.append(f"rejected: {found.documents:,} documents, {found.content_size:,} bytes, {found.parts} parts")
    for shard, why in manifest.omitted.items():
        lines.append(f"omitted: {shard}: {why}")
    return "\n".join(lines)


def _label_row(label: str, totals: list[LabelTotals]) -> list[str]:
    return [
        label,
        f"{sum(t.documents for t in totals):,}",
        f"{sum(t.content_size for t in totals):,}",
        f"{sum(t.size for t in totals):,}",
        f"{sum(t.parts for t in totals):,}",
    ]
