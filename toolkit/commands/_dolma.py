"""Dolma's configurations, run by our commands: one after the other, as many as they come to."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from toolkit.command_line import Options
from toolkit.config import settings
from toolkit.config.settings import Config, ConfigNode
from toolkit.interop.dolma.dedupe import read_deduper
from toolkit.interop.dolma.mixer import read_mixer
from toolkit.interop.dolma.tagger import read_tagger
from toolkit.result import CommandResult
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome

AnyOptions = TypeVar("AnyOptions", bound=Options)
Run = Callable[[Context, AnyOptions], Outcome]


class DolmaRuns(CommandResult, kw_only=True):
    """The results of the commands that a configuration of Dolma comes to."""

    runs: list[Any]


def mix(context: Context, options: AnyOptions, run: Run[AnyOptions]) -> Outcome:
    """Run a configuration of Dolma's mixer."""
    if "streams" not in context.source.value:
        raise context.source.error((), "expected a configuration of the mixer, with `streams:`")
    found = read_mixer(context.source)
    return _run(context, options, run, found.configs, dry_run=found.dry_run)


def tag(context: Context, options: AnyOptions, run: Run[AnyOptions]) -> Outcome:
    """Run a configuration of Dolma's tagger."""
    if "taggers" not in context.source.value:
        raise context.source.error((), "expected a configuration of the tagger, with `taggers:`")
    found = read_tagger(context.source)
    return _run(context, options, run, found.configs, dry_run=found.dry_run, overwrite=found.overwrite)


def dedup(context: Context, options: AnyOptions, run: Run[AnyOptions]) -> Outcome:
    """Run a configuration of Dolma's deduper."""
    if "dedupe" not in context.source.value:
        raise context.source.error((), "expected a configuration of the deduper, with `dedupe:`")
    found = read_deduper(context.source)
    return _run(context, options, run, found.configs, dry_run=found.dry_run)


def _run(
    context: Context,
    options: AnyOptions,
    run: Run[AnyOptions],
    configs: list[dict[str, Any]],
    *,
    dry_run: bool,
    overwrite: bool = False,
) -> Outcome:
    options = msgspec.structs.replace(
        options, dry_run=options.dry_run or dry_run, overwrite=options.overwrite or overwrite
    )
    name = context.source.name
    outcomes = []
    for each in ({**config, "duplicate_ids": "allow"} for config in configs):  # to Dolma, a document is a row
        with Context(options, settings.convert(ConfigNode(each, name), Config), ConfigNode(each, name)) as made:
            outcomes.append(run(made, options))
    if len(outcomes) == 1:
        return outcomes[0]
    return Outcome(
        text="\n\n".join(outcome.text for outcome in outcomes),
        data=DolmaRuns(runs=[outcome.data for outcome in outcomes]),
        failures=[message for outcome in outcomes for message in outcome.failures],
        exit_code=max(outcome.exit_code for outcome in outcomes),
    )
