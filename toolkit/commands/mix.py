"""``toolkit mix``: documents and attributes become an output, under rules."""

from toolkit.commands.mixing import previews, publishing, works
from toolkit.commands.mixing.works import Prepared, failed
from toolkit.commands.steps import dolma, shards
from toolkit.commands.steps.context import Context, Outcome, failures
from toolkit.errors import amount
from toolkit.mix import publish, stage, unchanged
from toolkit.mix.settings import work_folder
from toolkit.records.failures import FailureRecords


def run(context: Context) -> Outcome:
    """Mixes: stage 1 per shard, plan, stage 2 per part, publication."""
    if context.is_dolma:
        return dolma.mix(context, run)
    options = context.options
    looks = options.dry_run or options.explain is not None or options.compare is not None
    settings = works.read(context, writes=not looks)
    output = settings.output.path
    publish.check_output(output)
    if settings.rejected is not None:
        publish.check_rejected(output, settings.rejected)
    prepared = works.prepare(context, settings)
    if context.share and not (prepared.works or prepared.unreadable):
        data = {"output": output, "published": False, "shards": 0, "failed": []}
        return Outcome(text=context.share.nothing(), data=data)
    if options.compare is not None:
        return previews.compare(context, prepared, options.compare)
    if options.explain is not None:
        return previews.explain(context, prepared, options.explain)
    if options.dry_run:
        return shards.told(context, previews.dry_run(context, prepared))
    if options.shard:
        with context.claimed(work_folder(output), output, {"the output": settings.stage_digest()}):
            return _first_stage(context, prepared)
    publishing.check_limit(context, output, len(prepared.works) + len(prepared.unreadable), prepared.known)
    if prepared.unreadable and settings.on_failed_shard == "stop":
        return failed(output, list(prepared.unreadable.values()))
    with context.claimed(work_folder(output), output, {"the output": ""}):
        outcome = _mix(context, prepared)
    outcome.text += prepared.notes
    return outcome


def _mix(context: Context, prepared: Prepared) -> Outcome:
    settings, listed = prepared.settings, prepared.works
    output = settings.output.path
    context.sweep(output, *{stream.dataset.bookkeeping: None for stream in settings.streams})
    publish.finish_interrupted(output)
    manifest = unchanged.whole(listed) if listed and not prepared.unreadable else None
    if manifest:
        return publishing.already(context, settings, manifest)
    noted = FailureRecords(work_folder(output), "mix")
    results = context.run("mix", stage.mix_shard, works.tasks(listed), spreads=True, failed=noted)
    noted.keep_only([*(work.key for work in listed), *prepared.unreadable])
    omitted = dict(prepared.unreadable)
    if broken := failures(results):
        if settings.on_failed_shard == "stop":
            return failed(output, broken)
        omitted |= {w.key: r.failure.message for w, r in zip(listed, results, strict=True) if r.failure}
    return publishing.finish(context, prepared, omitted)


def _first_stage(context: Context, prepared: Prepared) -> Outcome:
    """What array jobs do: their shards' part of the work. The mix without ``--shard`` finishes it."""
    settings, listed = prepared.settings, prepared.works
    output = settings.output.path
    context.sweep(output, *{stream.dataset.bookkeeping: None for stream in settings.streams})
    todo = [] if unchanged.among(listed) else listed
    noted = FailureRecords(work_folder(output), "mix")
    results = context.run("mix", stage.mix_shard, works.tasks(todo), spreads=True, failed=noted)
    broken = [*prepared.unreadable.values(), *failures(results)]
    ready = len(listed) - len(failures(results))
    are = f"{amount(ready, 'shard')} {'is' if ready == 1 else 'are'}"
    text = f"share {context.share}: {are} published in {output}"
    if todo or broken:
        text = (
            f"share {context.share}: {are} ready for {output}, {len(broken)} failed; when all shares are done, run the "
            "same command without --shard"
        )
    text += prepared.notes
    data = {"output": output, "published": False, "shards": len(listed), "failed": broken}
    return Outcome(text=text, data=data, failures=broken, exit_code=1 if broken else 0)
