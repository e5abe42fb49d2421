"""Join documents and attributes, apply the rules, and write the output."""

import sys
from typing import Annotated

from toolkit.commands.command_line.options import Flag, natural
from toolkit.commands.mixing import budgets, editions, locks, preparation, previews, publishing
from toolkit.commands.mixing.locks import Locking
from toolkit.commands.mixing.preparation import PreparedMix
from toolkit.commands.sampling import using
from toolkit.commands.steps import dolma, shards
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome, failures
from toolkit.config.settings import Source
from toolkit.errors import ConfigError, amount
from toolkit.mix import publish, stage, unchanged
from toolkit.mix.settings import MixSettings, work_folder
from toolkit.records.failures import FailureRecords
from toolkit.runs.grouped import Work


class Options(Locking, frozen=True, kw_only=True):
    """Options of ``toolkit mix``."""

    explain: Annotated[
        str | None,
        Flag(
            "show why the rules keep or drop the document of this id or URL, or N documents of each rule (-n)",
            metavar="ID|URL|N",
            alone="",
        ),
    ] = None
    compare: Annotated[
        str | None, Flag("show which documents the mix of another configuration would change", metavar="FILE")
    ] = None
    count: Annotated[int, Flag("number of documents shown for each rule or change (3)", "-n", metavar="N")] = 3
    rule: Annotated[str | None, Flag("show documents of this rule only", metavar="NAME")] = None
    seed: Annotated[
        int | None,
        Flag("draw the shown documents from all with this seed, instead of the first ones", parse=natural, metavar="N"),
    ] = None
    sample: Annotated[bool, Flag("look at the sample that `tag --sample` has made, instead of all documents")] = False
    other: Source | None = None
    """The other configuration itself, where it is in no file."""

    def __post_init__(self) -> None:
        Locking.__post_init__(self)
        looks = self.explain is not None or self.compare is not None
        if looks and (self.lock is not None or self.locked is not None):
            raise ConfigError("expected --lock and --locked without --explain and --compare, which write no output")
        for option, given in (("rule", self.rule), ("seed", self.seed)):
            if given is not None and self.explain is None and self.compare is None:
                raise ConfigError(f"expected --{option} only with --explain or --compare")

    @property
    def shown(self) -> previews.Shown:
        """Return which documents are shown."""
        given = int(self.explain) if self.explain and self.explain.isdecimal() and int(self.explain) else self.count
        return previews.Shown(given, self.rule, self.seed)

    @property
    def only_shows(self) -> bool:
        return self.dry_run or self.explain is not None or self.compare is not None


def run(context: Context, options: Options) -> Outcome:
    """Make the mix, then its editions; `--explain` and `--compare` are about the mix alone."""
    outputs = locks.begin(context, options)
    outcome = _run(context, options)
    locks.finish(context, options, outcome, outputs)
    if options.explain is not None or options.compare is not None:
        return outcome
    for name, edition in editions.of(context).items():
        if outcome.exit_code:
            outcome.text += f"\n\nstopped before the edition {name}"
            break
        with edition:
            more = _run(edition, options)
            locks.finish(edition, options, more, outputs, name)
        outcome.text += f"\n\nedition {name}:\n{more.text}"
        outcome.data.setdefault(editions.KEY, {})[name] = more.data
        outcome.failures += more.failures
        outcome.exit_code = max(outcome.exit_code, more.exit_code)
    return outcome


def _run(context: Context, options: Options) -> Outcome:
    """Mix: stage 1 per shard, plan, stage 2 per part, publication."""
    if context.is_dolma:
        if options.compare:
            raise ConfigError("--compare takes configurations of our own form, this one is of Dolma's")
        return dolma.mix(context, options, run)
    settings = preparation.settings_of(context, writes=not options.only_shows)
    output = settings.output.path
    if replaced := preparation.check_output(context, settings):
        print(replaced, file=sys.stderr)
    over = ""
    if options.only_shows:
        settings, over = using.in_mix(context, settings, wanted=options.sample)
    elif options.sample:
        raise ConfigError("expected --sample only with --dry-run, --explain or --compare: a mix takes all documents")
    else:
        using.refuse(context, settings)
    if why := _waits_for(context, settings):
        return _left(context, output, why)
    prepared = budgets.fill(context, preparation.prepare(context, settings))
    settings = prepared.settings
    if context.share and not (prepared.works or prepared.unreadable):
        data = {"output": output, "published": False, "shards": 0, "failed": []}
        return Outcome(text=context.share.nothing(), data=data)
    if options.only_shows:
        return _look(context, options, prepared, over)
    if context.only_per_shard:
        with context.claimed_output(output, settings.stage_digest()):
            return _first_stage(context, prepared)
    publishing.check_limit(context, output, len(prepared.works) + len(prepared.unreadable), prepared.known)
    if prepared.unreadable and settings.on_failed_shard == "stop":
        return publishing.failed(output, list(prepared.unreadable.values()))
    with context.claimed_output(output):
        outcome = _mix(context, prepared)
    outcome.text += prepared.notes
    return outcome


def _waits_for(context: Context, settings: MixSettings) -> str:
    """Return what of all shards nothing of the mix can be done without, if the run has not all; else nothing."""
    if context.waiting and (  # a mix of many datasets has none of its own
        waits := context.waiting
        & {given.set for stream in settings.streams if stream.dataset == context.dataset for given in stream.attributes}
    ):
        return f"it joins {', '.join(sorted(waits))}, made of all shards together"
    if context.only_per_shard and settings.budget:
        return f"the budget of {settings.budget.unit} depends on all shards"
    if context.is_broken and settings.streams[0].weight is not None:  # a share is refused
        return "the weights of its streams depend on all shards"
    return ""


def _left(context: Context, output: str, why: str) -> Outcome:
    """Return the outcome of a run that has not all shards, on which its mix depends."""
    text = f"{context.named}{output} is not begun: {why}; {context.next_step}"
    return Outcome(text=text, data={"output": output, "published": False, "shards": 0, "failed": []})


def _look(context: Context, options: Options, prepared: PreparedMix, over: str) -> Outcome:
    """Show what the mix would do; `over` says what it is shown of, if that is not all documents."""
    if options.compare is not None:
        outcome = previews.compare(context, prepared, options.compare, options.shown, options.other, sampled=bool(over))
    elif options.explain is not None:
        is_id = bool(options.explain) and not options.explain.isdecimal()
        outcome = previews.explain(context, prepared, options.explain if is_id else None, options.shown)
    else:
        outcome = shards.told(context, previews.dry_run(context, prepared))
    outcome.data["sample"] = over or None
    outcome.text = f"{over}\n{outcome.text}" if over else outcome.text
    return outcome


def _mix(context: Context, prepared: PreparedMix) -> Outcome:
    settings, listed = prepared.settings, prepared.works
    output = settings.output.path
    context.sweep(output, *{stream.dataset.bookkeeping: None for stream in settings.streams})
    publish.finish_interrupted(output)
    with stage.looking(settings):
        manifest = unchanged.whole(listed) if listed and not prepared.unreadable else None
        tasks = [] if manifest else stage.tasks_to_mix(listed)
    if manifest:
        return publishing.already(context, settings, manifest)
    noted = FailureRecords(work_folder(output), "mix")
    needs = context.disk.of_mixes(tasks)
    stage.records_of(output, settings.stage_digest())  # which the end of the command will merge
    results = context.run(
        "mix", Work(stage.mix_shard, stage.mix_together), tasks, spreads=True, failed=noted, needs=needs
    )
    noted.keep_only([*(work.key for work in listed), *prepared.unreadable])
    omitted = dict(prepared.unreadable)
    if broken := failures(results):
        if settings.on_failed_shard == "stop":
            return publishing.failed(output, broken)
        omitted |= {w.key: r.failure.message for w, r in zip(listed, results, strict=True) if r.failure}
    return publishing.finish(context, prepared, omitted)


def _first_stage(context: Context, prepared: PreparedMix) -> Outcome:
    """Do what is per shard, of shards that are not all; a mix of all finishes it."""
    settings, listed = prepared.settings, prepared.works
    output = settings.output.path
    context.sweep(output, *{stream.dataset.bookkeeping: None for stream in settings.streams})
    noted = FailureRecords(work_folder(output), "mix")
    with stage.looking(settings):
        todo = [] if unchanged.among(listed) else listed
        tasks = stage.tasks_to_mix(todo)
    needs = context.disk.of_mixes(tasks)
    stage.records_of(output, settings.stage_digest())  # which the end of the command will merge
    results = context.run(
        "mix", Work(stage.mix_shard, stage.mix_together), tasks, spreads=True, failed=noted, needs=needs
    )
    broken = [*prepared.unreadable.values(), *failures(results)]
    ready = len(listed) - len(failures(results))
    are = f"{amount(ready, 'shard')} {'is' if ready == 1 else 'are'}"
    text = f"{context.named}{are} published in {output}"
    if context.is_broken:
        text = f"{context.named}nothing was published in {output}, for which {are} ready; {context.next_step}"
    elif todo or broken:
        text = f"{context.named}{are} ready for {output}, {len(broken)} failed; {context.next_step}"
    text += prepared.notes
    data = {"output": output, "published": False, "shards": len(listed), "failed": broken}
    return Outcome(text=text, data=data, failures=broken, exit_code=1 if broken else 0)
