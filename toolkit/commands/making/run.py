"""Do all steps for which there is a section: ingest, align, tag, dedup, sample, annotate, calibrate, mix and so on."""

import importlib
from typing import Annotated, Any

from toolkit.commands.command_line.options import Configured, Flag, Stage
from toolkit.commands.stages import STAGES
from toolkit.commands.steps import conflicts, one_pass, per_shard
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome
from toolkit.errors import ConfigError


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

    All are checked before the first begins. When inputs fail, the documents of the others are tagged all the same;
    nothing is published.
    """
    present = [name for name in STAGES if context.has(name)]
    if not present:
        raise ConfigError(f"{options.config}: expected one of the sections {', '.join(STAGES)}; got none")
    if "align" in present and (options.shard is not None or options.limit is not None):
        raise context.section("align").error(
            (), "expected a run of all shards, because `align:` needs all ids, got a part of them; run `toolkit "
            "ingest`, `align` (of all), `tag` and `mix` one by one"
        )  # fmt: skip
    checked = conflicts.check(context, shares_output=options.per_shard or options.shard is not None)
    if options.per_shard:
        return per_shard.run(context)
    ahead = None
    if context.has("ingest") and not options.dry_run:
        ahead = one_pass.plan(context, checked.tagged, checked.wholes)
    known: dict[str, tuple[Any, ...]] = {"ingest": (checked.inputs, ahead), "tag": (ahead.tagged if ahead else (),)}
    outcome, texts = Outcome(), list[str]()
    for name in present:
        if options.dry_run and name != present[0]:
            break
        context.stage = f"{present.index(name) + 1} of {len(present)}" if len(present) > 1 else ""
        command = importlib.import_module(f"toolkit.commands.making.{name}")  # only of stages that there are
        stage: Outcome = command.run(context, options.as_of(command.Options), *known.get(name, ()))
        texts.append(stage.text)
        outcome.data[name] = stage.data
        outcome.failures += stage.failures
        outcome.exit_code = max(outcome.exit_code, stage.exit_code)
        left = present[present.index(name) + 1 :]
        if outcome.exit_code and left and not ((name, left[0]) == ("ingest", "tag") and _can_go_on(stage)):
            texts.append(f"stopped after {name}: {', '.join(left)} not run")
            break
    outcome.text = "\n\n".join(dict.fromkeys(texts))  # a share that has nothing says so once
    return outcome


def _can_go_on(ingested: Outcome) -> bool:
    """Return whether an ingest that failed leaves documents that can be tagged."""
    return not ingested.data.get("rejected") and ingested.data["done"] > 0
