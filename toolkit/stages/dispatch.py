"""Opens the configuration of a command, and runs it: on the command line and from Python."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import msgspec

from toolkit import command_options
from toolkit.command_options import FailedResult, Looking, Options
from toolkit.config import recipes, root, settings, settings as config
from toolkit.errors import ConfigError, MissingModel, NothingThere, StepFailed, UnknownPlugin
from toolkit.interop import dolma
from toolkit.interrupts import is_signalled
from toolkit.rules.text_edits import name_edits
from toolkit.session import Session, current
from toolkit.stages.context import Context, Outcome
from toolkit.storage import ephemeral
from toolkit.storage.store import note_roots


def open_context(options: Options) -> Context:
    """Read the configuration; without one, settings that the command line does not give have their defaults.

    Raises:
        ConfigError: if it is not what it should be. `status` goes on without what is not (`Context.faults`).
    """
    current().columns = getattr(options, "text_field", None), getattr(options, "id_field", None)
    if options.config is None:
        return _without_file(options)
    source = options.config_node
    if source is None:
        path = recipes.resolved(options.config)
        options = msgspec.structs.replace(options, config=path)
        source = config.load_source(path, list(options.overrides))
    root.apply_root(source, os.path.dirname(source.name))
    name_edits(source)
    dolma.check(source, options.command)
    if dolma.is_dolma(source):
        return Context(options, settings.Config(), source)
    looks = options.command == "status"
    result, faults = _read_what_can_be(source) if looks else (config.convert(source, settings.Config), [])
    current().options = result.storage
    output = result.mix.get("output")
    places = (result.dataset, result.mix.get("rejected"), output.get("path") if isinstance(output, dict) else None)
    note_roots(place for place in places if isinstance(place, str) and place and "\0" not in place)
    try:
        context = Context(options, result, source)
    except ConfigError as error:
        if not looks:
            raise
        faults.append(str(error))
        context = Context(options, msgspec.structs.replace(result, executor={}), source)
    context.faults = faults
    if result.max_disk is not None and options.command in ("run", *config.stages()):
        _ = context.disk  # or what it bounds cannot be bound
    return context


@contextmanager
def opened_apart(options: Options) -> Iterator[Context]:
    """Open the second configuration of a command in its own session. Its section ``storage:`` may be another.

    Raises:
        ConfigError: as `open_context`.
    """
    with Session().bound(), ephemeral.run_scratch(), open_context(options) as context:
        yield context


def _without_file(options: Options) -> Context:
    """Return the context without a configuration; storage options stay, unless they are given."""
    source = settings.ConfigNode({}, "command line")
    for assignment in options.overrides if options.SETTINGS else ():
        config.override(source, assignment)
    result = config.convert(source, settings.Config)
    if "storage" in source.value:
        current().options = result.storage
    return Context(options, result, source)


def _read_what_can_be(source: settings.ConfigNode) -> tuple[settings.Config, list[str]]:
    """Return the valid top settings, and the errors of the others."""
    good, _ = config.divide(source, ())
    faults = []
    for key, value in source.value.items():
        try:
            config.convert(config.divide(source, {key})[0], settings.Config)
        except ConfigError as error:
            faults.append(str(error))
        else:
            good.value[key] = value
    return config.convert(good, settings.Config), faults


def run_command(options: Options, begun: Callable[[], None] = lambda: None) -> Outcome:
    """Run the command of these options in the current session; return its outcome.

    Args:
        options: Options of the command.
        begun: Function to call after the configuration is read, before processes start.

    Raises:
        ToolkitError: for what concerns more than one task.
    """
    try:
        os.getcwd()
    except OSError as error:
        raise ConfigError(f"the working directory is gone ({error.strerror}); change to one that exists") from None
    note_roots(options.targets if isinstance(options, Looking) else ())
    opened = open_context(options)
    begun()
    try:
        with ephemeral.run_scratch(), opened as context:
            try:
                return cast("Outcome", command_options.find(options.command).run(context, options))
            except (NothingThere, MissingModel, UnknownPlugin) as error:
                raise root.with_root(error, context.source.root) from None
    except StepFailed as error:
        if options.debug or is_signalled():
            raise
        return Outcome(data=FailedResult(failed=[*error.messages]), failures=[*error.messages])
