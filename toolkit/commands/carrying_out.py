"""Carrying out a command: on the command line, and from Python."""

import os
from collections.abc import Callable
from typing import cast

from toolkit.commands.command_line import parser
from toolkit.commands.command_line.options import Looking, Options
from toolkit.commands.opening import open_context
from toolkit.commands.steps.outcome import Outcome
from toolkit.config.root import with_root
from toolkit.errors import ConfigError, MissingModel, NothingThere, UnknownPlugin
from toolkit.storage.journal import apart
from toolkit.storage.retrying import forget_hosts
from toolkit.storage.roots import forget_roots, note_roots


def carry_out(options: Options, begun: Callable[[], None] = lambda: None) -> Outcome:
    """Run the command of these options; return its outcome.

    Args:
        options: of the command.
        begun: called when the configuration has been read, before anything is begun that would have to be ended.

    Raises:
        ToolkitError: for what concerns more than one task.
    """
    forget_hosts()
    forget_roots()
    try:
        os.getcwd()
    except OSError as error:
        raise ConfigError(f"the working directory is gone ({error.strerror}); change to one that exists") from None
    note_roots(options.targets if isinstance(options, Looking) else ())
    opened = open_context(options)
    begun()
    with apart.for_run(), opened as context:
        try:
            return cast("Outcome", parser.find(options.command).run(context, options))
        except (NothingThere, MissingModel, UnknownPlugin) as error:
            raise with_root(error, context.source.root) from None
