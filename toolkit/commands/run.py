"""Ingest, tag, find duplicates and mix, as far as the configuration has these sections."""

from collections.abc import Callable
from typing import Annotated

from toolkit.commands import dedup, ingest, mix, tag
from toolkit.commands.command_line.options import Configured, Flag, Stage
from toolkit.commands.steps import conflicts, one_pass, per_shard
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome
from toolkit.errors import ConfigError


class Options(Configured, Stage, frozen=True, kw_only=True):
    """Options of ``toolkit run``."""

    per_shard: Annotated[bool, Flag("input by input; documents and attributes are deleted when mixed")] = False


def run(context: Context, options: Options) -> Outcome:
    """Ingest, tag, dedup, mix: those that the configuration has.

    They are done in one pass over each input as far as they are per shard. What is a duplicate depends on all shards:
    dedup comes behind that pass, and so does a mix that joins what it writes.

    All are checked before the first begins. When inputs fail, the documents of the others are tagged all the same;
    nothing is published.
    """
    present = [name for name in ("ingest", "tag", "dedup", "mix") if context.has(name)]
    if not present:
        raise ConfigError(f"{options.config}: expected one of the sections ingest, tag, dedup, mix; got none")
    inputs = conflicts.check(context, shares_output=options.per_shard or options.shard is not None)
    if options.per_shard:
        return per_shard.run(context)
    ahead = one_pass.plan(context) if context.has("ingest") and not options.dry_run else None
    stages: dict[str, Callable[[], Outcome]] = {
        "ingest": lambda: ingest.run(context, options.as_of(ingest.Options), inputs, ahead),
        "tag": lambda: tag.run(context, options.as_of(tag.Options), ahead.tagged if ahead else ()),
        "dedup": lambda: dedup.run(context, options.as_of(dedup.Options)),
        "mix": lambda: mix.run(context, options.as_of(mix.Options)),
    }
    outcome, texts = Outcome(), list[str]()
    for name in present:
        if options.dry_run and name != present[0]:
            break
        context.stage = f"{present.index(name) + 1} of {len(present)}" if len(present) > 1 else ""
        stage = stages[name]()
        texts.append(stage.text)
        outcome.data[name] = stage.data
        outcome.failures += stage.failures
        outcome.exit_code = max(outcome.exit_code, stage.exit_code)
        left = present[present.index(name) + 1 :]
        if outcome.exit_code and left and not (left[0] == "tag" and _can_go_on(stage)):
            texts.append(f"stopped after {name}: {', '.join(left)} not run")
            break
    outcome.text = "\n\n".join(dict.fromkeys(texts))  # a share that has nothing says so once
    return outcome


def _can_go_on(ingested: Outcome) -> bool:
    """Return whether an ingest that failed leaves documents that can be tagged."""
    return not ingested.data.get("rejected") and ingested.data["done"] > 0
