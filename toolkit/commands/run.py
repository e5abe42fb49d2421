"""Do all steps for which there is a section: ingest, align, tag, dedup, sample, annotate, calibrate, mix and so on."""

import importlib
from typing import Annotated, Any, cast

import msgspec

from toolkit.command_line import Configured, Flag, Stage
from toolkit.commands import _mix_previews as previews
from toolkit.commands import _one_pass as one_pass
from toolkit.commands import _per_shard as per_shard
from toolkit.commands import ingest
from toolkit.commands._mix_preparation import shared_ids
from toolkit.config import settings
from toolkit.errors import ConfigError
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome
from toolkit.stages.sections import STAGES
from toolkit.stages.stage import Look, check, plan


class Options(Configured, Stage, frozen=True, kw_only=True):
    """Options of ``toolkit run``."""

    per_shard: Annotated[
        bool, Flag("finish one input after another, and delete its documents and attributes when it is mixed")
    ] = False


def run(context: Context, options: Options) -> Outcome:
    """Ingest, align, tag, dedup, sample, annotate, calibrate, mix, tokenize: those that the configuration has.

    They are done in one pass over each input as far as they are per shard, signatures too. What is a duplicate, who is
    in a sample, and what the rank of a score is, depends on all shards: that comes behind the pass, and so does a mix
    that joins it.

    All are checked before the first begins. When inputs or shards fail, the others' per-shard work is finished all the
    same; no step over the whole dataset begins, and nothing is published.
    """
    present = [name for name in STAGES if context.has(name)]
    if not present:
        raise ConfigError(f"{options.config}: expected one of the sections {', '.join(STAGES)}; got none")
    if "align" in present and (options.shard is not None or options.limit is not None):
        raise context.section("align").error(
            (), "expected a run of all shards, because `align:` needs all ids, got a part of them; run `toolkit "
            "ingest`, `align` (of all), `tag` and `mix` one by one"
        )  # fmt: skip
    plans = check(context, shares_output=options.per_shard or options.shard is not None).plans
    inputs, ahead = plans.get("ingest"), None
    if options.per_shard:
        return per_shard.run(context, options.as_of(ingest.Options), inputs or ingest.plan(context))
    if inputs and not options.dry_run:
        ahead = one_pass.plan(context, plans)
    known: dict[str, tuple[Any, ...]] = {"ingest": (inputs, ahead), "tag": (ahead.tagged if ahead else (),)}
    outcome, texts, left_out = Outcome(), list[str](), list[str]()
    for name in present:
        if options.dry_run and name != present[0]:
            break
        context.stage = f"{present.index(name) + 1} of {len(present)}" if len(present) > 1 else ""
        stage = _stage(context, options, name, known.get(name, ()), outcome)
        if stage is None:
            context.waiting.update(getattr(context.config, name))
            left_out.append(name)
            continue
        texts.append(stage.text)
        outcome.data[name] = stage.data
        outcome.failures += [each for each in stage.failures if each not in outcome.failures]
        outcome.exit_code = max(outcome.exit_code, stage.exit_code)
        left = present[present.index(name) + 1 :]
        only_salvaged = name == "ingest" and not stage.failures  # what was lost is told, and the rest can be used
        context.is_broken = context.is_broken or (stage.exit_code > 0 and not only_salvaged)
        if context.is_broken and left and not _leaves_some(name, stage, left):
            left_out = left
            break
    if options.dry_run:
        texts[-1] += _notes_of_plan(context, present)
        if present[1:]:
            outcome.data["plan"], text = _plan(context)
            texts.append(text)
    if left_out:
        texts.append(f"not run: {', '.join(left_out)}")
    outcome.text = "\n\n".join(dict.fromkeys(texts))  # a share that has nothing says so once
    return outcome


def _stage(context: Context, options: Options, name: str, known: tuple[Any, ...], outcome: Outcome) -> Outcome | None:
    """Return the outcome of a stage; None if it cannot run, because one before it has failed.

    Raises:
        ConfigError: if the configuration is not what it should be, and no stage has failed.
    """
    command = importlib.import_module(f"toolkit.commands.{name}")  # only of stages that there are
    if context.is_broken and not command.STAGE.goes_on:
        return None
    try:
        return cast("Outcome", command.run(context, options.as_of(command.Options), *known))
    except ConfigError as error:
        if not context.is_broken:
            raise
        outcome.failures.append(str(error))  # of a set that has not been made
        return None


def _plan(context: Context) -> tuple[object, str]:
    """Return what each stage has to do, for programs and for people."""
    look = Look(context)
    with look.from_listings():
        planned = plan(look.progress(), context.options.limit)
    lines = settings.dump({name: str(each) for name, each in planned.items()})
    return msgspec.to_builtins(planned), f"# all stages: what there is to do, of how many\n{lines.rstrip()}"


def _notes_of_plan(context: Context, present: list[str]) -> str:
    """Return what a plan says of a mix that comes later: of the documents there are, and fields that it will not carry.

    Where the first stage does not do so itself, this warns of ids that are not unique.
    """
    if not context.has("mix") or present[0] in ("ingest", "mix"):
        return ""
    if present[0] not in context.sections:
        shared_ids(context, ((context.dataset, shard) for shard in context.dataset.shards()))
    return previews.planned(context)


def _leaves_some(name: str, stage: Outcome, left: list[str]) -> bool:
    """Return whether a stage that failed, or follows one that did, leaves shards with which the others can go on."""
    if name == "ingest":  # sets of `align:` are read by `tag:`, and made of all shards together
        return not stage.data.get("rejected") and stage.data["done"] > 0 and left[0] != "align"
    return name != "tag" or len(stage.data.failed) < stage.data.shards
