"""``toolkit mix``: documents and attributes become an output, under rules."""

from collections import Counter

import msgspec

from toolkit import __version__, rowindex
from toolkit.commands import Context, Outcome, dolma, failures, previews, reports, works
from toolkit.commands.works import Prepared, failed
from toolkit.errors import ConfigError, ToolkitError
from toolkit.executors import Task
from toolkit.mixing import assemble, join, plan, publish, stage, unmatched
from toolkit.mixing import settings as mix_settings
from toolkit.mixing.publish import BlocklistCount, LabelTotals, Manifest

check = works.check


def run(context: Context) -> Outcome:
    """Mixes: stage 1 per shard, plan, stage 2 per part, publication."""
    if context.is_dolma:
        return dolma.mix(context, run)
    options = context.options
    settings = works.read(context)
    output = settings.output.path
    publish.check_output(output)
    if settings.rejected is not None:
        publish.check_rejected(output, settings.rejected)
    prepared = works.prepare(context, settings)
    if options.compare is not None:
        return previews.compare(context, prepared, options.compare)
    if options.explain is not None:
        return previews.explain(context, prepared, options.explain)
    if options.dry_run:
        return previews.dry_run(context, prepared)
    if options.shard:
        with publish.claimed(output, settings.stage_digest()):
            return _first_stage(context, prepared)
    _check_limit(output, prepared, context)
    if prepared.unreadable and settings.on_failed_shard == "stop":
        return failed(output, list(prepared.unreadable.values()))
    with publish.claimed(output):
        outcome = _mix(context, prepared)
    outcome.text += prepared.notes
    return outcome


def _check_limit(output: str, prepared: Prepared, context: Context) -> None:
    """With ``--limit``, a fuller output is not replaced unasked."""
    published = publish.load_manifest(output)
    now = len(prepared.works) + len(prepared.unreadable)
    if published and now < prepared.known and not context.options.overwrite and len(published.inputs) > now:
        raise ConfigError(
            f"{output} was made of {len(published.inputs)} shards, and --limit {context.options.limit} would replace "
            "it by less; choose another output.path, or --overwrite"
        )


def _mix(context: Context, prepared: Prepared) -> Outcome:
    settings, listed = prepared.settings, prepared.works
    output = settings.output.path
    context.sweep(output, *{stream.dataset.bookkeeping: None for stream in settings.streams})
    publish.finish_interrupted(output)
    manifest = _published(listed) if listed and not prepared.unreadable else None
    if manifest:
        publish.clear_work(output)  # of a mix that failed since
        return _outcome(output, manifest, unmatched.load(output), already=True)
    results = context.run("mix", stage.mix_shard, works.tasks(listed), spreads=True)
    omitted = dict(prepared.unreadable)
    if broken := failures(results):
        if settings.on_failed_shard == "stop":
            return failed(output, broken)
        omitted |= {w.key: r.failure.message for w, r in zip(listed, results, strict=True) if r.failure}
    stages = {}
    digest = settings.stage_digest()
    for work in listed:
        if work.key not in omitted:
            record = stage.load_stage(output, digest, work.key)
            if record is None:
                return failed(output, [f"{work.key}: expected what was just made of it, it is gone; run the mix again"])
            stages[work.key] = record
    if not stages:
        return failed(output, list(omitted.values()))
    return _second_stage(context, prepared, stages, omitted)


def _first_stage(context: Context, prepared: Prepared) -> Outcome:
    """What array jobs do: their shards' part of the work. The mix without ``--shard`` finishes it."""
    settings, listed = prepared.settings, prepared.works
    output = settings.output.path
    context.sweep(output, *{stream.dataset.bookkeeping: None for stream in settings.streams})
    todo = [] if _has_published(listed) else listed
    results = context.run("mix", stage.mix_shard, works.tasks(todo), spreads=True)
    broken = [*prepared.unreadable.values(), *failures(results)]
    index, count = context.options.shard or (0, 1)
    text = (
        f"share {index} of {count}: {len(listed) - len(broken)} shards are ready for {output}, {len(broken)} failed; "
        "when all shares are done, run the same command without --shard"
    )
    data = {"output": output, "published": False, "shards": len(listed), "failed": broken}
    return Outcome(text=text, data=data, failures=broken, exit_code=1 if broken else 0)


def _second_stage(
    context: Context, prepared: Prepared, stages: dict[str, stage.StageRecord], omitted: dict[str, str]
) -> Outcome:
    settings = prepared.settings
    output = settings.output.path
    parts = plan.plan_parts(stages, settings)
    digest = plan.plan_digest(stages, settings.stage_digest(), settings.output.part_size, list(omitted))
    listed = [assemble.Work(settings=settings, digest=digest, part=part) for part in parts]
    results = context.run("write", assemble.assemble_part, [Task(w.part.path, w, w.part.size) for w in listed], "parts")
    if broken := failures(results):
        return failed(output, [*omitted.values(), *broken])
    made = [result.value for result in results if result.value]
    counts, left = _blocklists(prepared, stages)
    manifest = _manifest(prepared, stages, omitted, made, counts, digest)
    unmatched.save(output, left)
    publish.publish(output, manifest)
    outcome = _outcome(output, manifest, left)
    outcome.failures, outcome.exit_code = list(omitted.values()), 1 if omitted else 0
    return outcome


def _has_published(listed: list[join.Work]) -> bool:
    """Whether what is published was made by these settings, and of these shards, among others, as they are."""
    manifest = publish.load_manifest(listed[0].settings.output.path) if listed else None
    if manifest is None or manifest.settings != listed[0].settings.recorded():
        return not listed
    entries = {(e.stream, e.shard): e for e in manifest.inputs}
    for work in listed:
        entry, state = entries.get((work.stream.name, work.shard)), rowindex.current(work.dataset, work.shard)
        try:
            _, attributes = join.inputs_of(work)
        except ToolkitError:
            return False
        if entry is None or state is None or (entry.documents, entry.attributes) != (state.content, attributes):
            return False
    return publish.is_published(listed[0].settings.output.path, manifest.digest) is not None


def _published(listed: list[join.Work]) -> Manifest | None:
    """The manifest, if just this mix of just these inputs is published already."""
    settings = listed[0].settings
    output = settings.output.path
    manifest = publish.load_manifest(output)
    here = [(w.stream.name, w.shard) for w in listed]
    if manifest is None or manifest.omitted or [(e.stream, e.shard) for e in manifest.inputs] != here:
        return None
    inputs = []
    for work, entry in zip(listed, manifest.inputs, strict=True):
        state = rowindex.current(work.dataset, work.shard)
        if state is None or state.content != entry.documents:
            return None
        try:
            _, attributes = join.inputs_of(work)
        except ToolkitError:
            return None
        inputs.append((work.key, state.content, attributes))
    digest = plan.digest_of(sorted(inputs), settings.stage_digest(), settings.output.part_size, [])
    return publish.is_published(output, digest)


def _manifest(
    prepared: Prepared,
    stages: dict[str, stage.StageRecord],
    omitted: dict[str, str],
    parts: list[assemble.PartRecord],
    blocklists: list[BlocklistCount],
    digest: str,
) -> Manifest:
    settings = prepared.settings
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
    mixed = [work for work in prepared.works if work.key in stages]
    return Manifest(
        digest=digest,
        toolkit=__version__,
        settings=settings.recorded(),
        sets={
            f"{name}/{joined.set}" if name else joined.set: msgspec.to_builtins(joined.keys)
            for name, found in prepared.sets.items()
            for joined in found
        },
        inputs=[
            publish.InputEntry(
                stream=work.stream.name,
                shard=work.shard,
                documents=stages[work.key].documents,
                attributes=stages[work.key].attributes,
                rows=stages[work.key].totals.rows,
            )
            for work in mixed
        ],
        omitted=omitted,
        totals=reports.summed([s.totals for s in stages.values()]),
        rules=reports.effects_of(settings, [(work.stream, stages[work.key].rules) for work in mixed]),
        blocklists=blocklists,
        counts=dict(sorted(counts.items())),
        rejected=labels.pop(mix_settings.REJECTED, None),
        labels=labels,
        parts=parts,
        files=publish.checksum_files(parts, settings),
    )


def _blocklists(
    prepared: Prepared, stages: dict[str, stage.StageRecord]
) -> tuple[list[BlocklistCount], dict[str, list[str]]]:
    found = [
        (work, {int(i): entries for i, entries in stages[work.key].matched.items()})
        for work in prepared.works
        if work.key in stages
    ]
    return unmatched.matches(found)


def _outcome(
    output: str, manifest: Manifest, left: dict[str, list[str]] | None = None, *, already: bool = False
) -> Outcome:
    """The end of a mix; `left` are the blocklist entries that matched nothing, by rule."""
    data = msgspec.to_builtins(manifest)
    summary = {key: data[key] for key in ("totals", "rules", "blocklists", "counts", "labels", "omitted")}
    return Outcome(
        text=reports.published(output, manifest, already=already)
        + reports.blocklists(manifest.blocklists, left or {}, unmatched.path_of(output)),
        data={"output": output, "published": True, "already": already, "digest": manifest.digest, **summary}
        | ({"unmatched": left} if left else {}),
    )
