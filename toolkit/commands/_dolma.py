"""Dolma's configurations, run by our commands: one after the other, as many as they come to."""

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from toolkit.command_options import CommandResult, Options
from toolkit.config import settings
from toolkit.config.settings import Config, ConfigNode
from toolkit.stages.context import Context, Outcome

AnyOptions = TypeVar("AnyOptions", bound=Options)
Run = Callable[[Context, AnyOptions], Outcome]


class DolmaRuns(CommandResult, kw_only=True):
    """The results of the commands for a configuration of Dolma."""

    runs: list[Any]


_PROGRAMS = {"mix": ("mixer", "streams"), "tag": ("tagger", "taggers"), "dedup": ("deduper", "dedupe")}
"""The program of Dolma's, and the key of its configurations, by the command that runs these."""


def run(context: Context, options: AnyOptions, run: Run[AnyOptions]) -> Outcome:
    """Run a configuration of the corresponding program of Dolma.

    Raises:
        ConfigError: if it is one of another program.
    """
    program, key = _PROGRAMS[options.command]
    if key not in context.source.value:
        raise context.source.error((), f"expected a configuration of the {program}, with `{key}:`")
    module = importlib.import_module(f"toolkit.interop.dolma.{program.replace('deduper', 'dedupe')}")
    configs, dry_run, overwrite = getattr(module, f"read_{program}")(context.source)
    options = msgspec.structs.replace(
        options, dry_run=options.dry_run or dry_run, overwrite=options.overwrite or overwrite
    )
    name = context.source.name
    outcomes = []
    for item in ({**config, "duplicate_ids": "allow"} for config in configs):  # to Dolma, a document is a row
        with Context(options, settings.convert(ConfigNode(item, name), Config), ConfigNode(item, name)) as output:
            outcomes.append(run(output, options))
    if len(outcomes) == 1:
        return outcomes[0]
    return Outcome(
        text="\n\n".join(outcome.text for outcome in outcomes),
        data=DolmaRuns(runs=[outcome.data for outcome in outcomes]),
        failures=[message for outcome in outcomes for message in outcome.failures],
        exit_code=max(outcome.exit_code for outcome in outcomes),
    )
