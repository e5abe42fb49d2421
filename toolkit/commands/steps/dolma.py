"""Dolma's configurations, run by our commands: one after the other, as many as they come to."""

import dataclasses
from typing import Any

from toolkit.commands.steps.context import Command, Context, Outcome
from toolkit.config import settings
from toolkit.config.settings import Config, Source
from toolkit.errors import ConfigError
from toolkit.interop.dolma import read_mixer, read_tagger


def mix(context: Context, command: Command) -> Outcome:
    """Runs a configuration of Dolma's mixer."""
    if "streams" not in context.source.value:
        raise context.source.error((), "expected a configuration of the mixer, with `streams:`")
    found = read_mixer(context.source)
    if context.options.compare:
        raise ConfigError("--compare takes configurations of our own form, this one is of Dolma's")
    return _run(context, command, found.configs, dry_run=found.dry_run)


def tag(context: Context, command: Command) -> Outcome:
    """Runs a configuration of Dolma's tagger."""
    if "taggers" not in context.source.value:
        raise context.source.error((), "expected a configuration of the tagger, with `taggers:`")
    found = read_tagger(context.source)
    return _run(context, command, found.configs, dry_run=found.dry_run, overwrite=found.overwrite)


def _run(
    context: Context, command: Command, configs: list[dict[str, Any]], *, dry_run: bool, overwrite: bool = False
) -> Outcome:
    options = dataclasses.replace(
        context.options,
        dry_run=context.options.dry_run or dry_run,
        overwrite=context.options.overwrite or overwrite,
    )
    name = context.source.name
    outcomes = []
    for each in configs:
        with Context(options, settings.convert(Source(each, name), Config), Source(each, name)) as made:
            outcomes.append(command(made))
    if len(outcomes) == 1:
        return outcomes[0]
    return Outcome(
        text="\n\n".join(outcome.text for outcome in outcomes),
        data={"runs": [outcome.data for outcome in outcomes]},
        failures=[message for outcome in outcomes for message in outcome.failures],
        exit_code=max(outcome.exit_code for outcome in outcomes),
    )
