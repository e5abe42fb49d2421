"""``toolkit run``: the sections of a configuration in order."""

from types import ModuleType

from toolkit.commands import ingest, mix, tag
from toolkit.commands.steps import conflicts, per_shard
from toolkit.commands.steps.context import Context, Outcome
from toolkit.errors import ConfigError

SECTIONS: dict[str, ModuleType] = {"ingest": ingest, "tag": tag, "mix": mix}


def run(context: Context) -> Outcome:
    """Ingest, tag, mix: those that the configuration has. All are checked before the first begins."""
    present = [name for name in SECTIONS if context.has(name)]
    if not present:
        raise ConfigError(f"{context.options.config}: expected one of the sections ingest, tag, mix; got none")
    inputs = conflicts.check(context)
    if context.options.per_shard:
        return per_shard.run(context)
    outcome, texts = Outcome(), list[str]()
    for name in present:
        if context.options.dry_run and name != present[0]:
            break
        stage = ingest.run(context, inputs) if name == "ingest" else SECTIONS[name].run(context)
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
