"""Join documents and attributes under rules, and write an output format."""

from typing import Annotated

from toolkit.commands.command_line.options import Configured, Flag, Stage
from toolkit.commands.mixing import preparation, previews, publishing
from toolkit.commands.mixing.preparation import PreparedMix
from toolkit.commands.steps import dolma, shards
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome, failures
from toolkit.errors import ConfigError, amount
from toolkit.mix import publish, stage, unchanged
from toolkit.mix.settings import work_folder
from toolkit.records.failures import FailureRecords


class Options(Configured, Stage, frozen=True, kw_only=True):
    """Options of ``toolkit mix``."""

    explain: Annotated[
        str | None, Flag("why the rules keep or drop this document, or N documents a rule", metavar="ID|N")
    ] = None
    compare: Annotated[str | None, Flag("what would change with the mix of another configuration", metavar="FILE")] = (
        None
    )
    count: Annotated[int, Flag("documents shown for each change (3)", "-n", metavar="N")] = 3

    @property
    def only_shows(self) -> bool:
        return self.dry_run or self.explain is not None or self.compare is not None


def run(context: Context, options: Options) -> Outcome:
    """Mix: stage 1 per shard, plan, stage 2 per part, publication."""
    if context.is_dolma:
        if options.compare:
            raise ConfigError("--compare takes configurations of our own form, this one is of Dolma's")
        return dolma.mix(context, options, run)
    settings = preparation.settings_of(context, writes=not options.only_shows)
    output = settings.output.path
    preparation.check_output(settings)
    prepared = preparation.prepare(context, settings)
    if context.share and not (prepared.works or prepared.unreadable):
        data = {"output": output, "published": False, "shards": 0, "failed": []}
        return Outcome(text=context.share.nothing(), data=data)
    if options.compare is not None:
        return previews.compare(context, prepared, options.compare, options.count)
    if options.explain is not None:
        return previews.explain(context, prepared, options.explain)
    if options.dry_run:
        return shards.told(context, previews.dry_run(context, prepared))
    if options.shard:
        with context.claimed_output(output, settings.stage_digest()):
            return _first_stage(context, prepared)
    publishing.check_limit(context, output, len(prepared.works) + len(prepared.unreadable), prepared.known)
    if prepared.unreadable and settings.on_failed_shard == "stop":
        return publishing.failed(output, list(prepared.unreadable.values()))
    with context.claimed_output(output):
        outcome = _mix(context, prepared)
    outcome.text += prepared.notes
    return outcome


def _mix(context: Context, prepared: PreparedMix) -> Outcome:
    settings, listed = prepared.settings, prepared.works
    output = settings.output.path
    context.sweep(output, *{stream.dataset.bookkeeping: None for stream in settings.streams})
    publish.finish_interrupted(output)
    manifest = unchanged.whole(listed) if listed and not prepared.unreadable else None
    if manifest:
        return publishing.already(context, settings, manifest)
    noted = FailureRecords(work_folder(output), "mix")
    tasks = stage.shard_tasks(listed)
    needs = context.disk.of_mixes(tasks)
    results = context.run("mix", stage.mix_shard, tasks, spreads=True, failed=noted, needs=needs)
    noted.keep_only([*(work.key for work in listed), *prepared.unreadable])
    omitted = dict(prepared.unreadable)
    if broken := failures(results):
        if settings.on_failed_shard == "stop":
            return publishing.failed(output, broken)
        omitted |= {w.key: r.failure.message for w, r in zip(listed, results, strict=True) if r.failure}
    return publishing.finish(context, prepared, omitted)


def _first_stage(context: Context, prepared: PreparedMix) -> Outcome:
    """Do what array jobs do: their shards' part of the work. The mix without ``--shard`` finishes it."""
    settings, listed = prepared.settings, prepared.works
    output = settings.output.path
    context.sweep(output, *{stream.dataset.bookkeeping: None for stream in settings.streams})
    todo = [] if unchanged.among(listed) else listed
    noted = FailureRecords(work_folder(output), "mix")
    tasks = stage.shard_tasks(todo)
    needs = context.disk.of_mixes(tasks)
    results = context.run("mix", stage.mix_shard, tasks, spreads=True, failed=noted, needs=needs)
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
