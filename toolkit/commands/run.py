"""Ingest, tag and mix, as far as the configuration has these sections."""

from collections.abc import Callable
from typing import Annotated

from toolkit.commands import ingest, mix, tag
from toolkit.commands.command_line.options import Configured, Flag, Stage
from toolkit.commands.steps import conflicts, per_shard
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome
from toolkit.errors import ConfigError


class Options(Configured, Stage, frozen=True, kw_only=True):
    """Options of ``toolkit run``."""

    per_shard: Annotated[bool, Flag("input by input; documents and attributes are deleted when mixed")] = False


def run(context: Context, options: Options) -> Outcome:
    """Ingest, tag, mix: those that the configuration has. All are checked before the first begins."""
    present = [name for name in ("ingest", "tag", "mix") if context.has(name)]
    if not present:
        raise ConfigError(f"{options.config}: expected one of the sections ingest, tag, mix; got none")
    inputs = conflicts.check(context, shares_output=options.per_shard or options.shard is not None)
    if options.per_shard:
        return per_shard.run(context)
    stages: dict[str, Callable[[], Outcome]] = {
        "ingest": lambda: ingest.run(context, options.as_of(ingest.Options), inputs),
        "tag": lambda: tag.run(context, options.as_of(tag.Options)),
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
        if stage.exit_code:
            skipped = present[present.index(name) + 1 :]
            if skipped:
                texts.append(f"stopped after {name}: {', '.join(skipped)} not run")
            break
    outcome.text = "\n\n".join(dict.fromkeys(texts))  # a share that has nothing says so once
    return outcome
