"""Completions of words on the command line: commands, options, recipes, taggers, and keys of settings.

The shell asks by `argcomplete`, which is imported only then: no other start takes longer for it.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NoReturn

from toolkit.commands.command_line import options as command_options
from toolkit.commands.command_line import parser
from toolkit.errors import ToolkitError

_ASKED = "_ARGCOMPLETE"

Completer = Callable[..., list[str]]


def is_asked() -> bool:
    """Return whether this process was started by a shell that wants to know how a word can go on."""
    return _ASKED in os.environ


def answer() -> NoReturn:
    """Tell the shell, and end the process."""
    try:
        import argcomplete
    except ImportError:
        sys.exit(1)
    asked = _command(os.environ.get("COMP_LINE", ""))

    def fill(name: str, command: argparse.ArgumentParser) -> None:
        if name == asked:  # the others need not be imported
            for each in command_options.arguments(parser.find(name).Options):
                vars(parser.add(command, each))["completer"] = _completer(each)

    argcomplete.autocomplete(parser.parser(fill=fill))
    sys.exit(1)


def _command(line: str) -> str | None:
    """Return the command of a line; None before there is one."""
    return next((word for word in line.split()[1:2] if word in parser.names()), None)


def _completer(argument: command_options.Argument) -> Completer | None:
    """Return what knows how an argument goes on; None where that are its choices, or files."""
    if argument.field == "config":
        return _configurations
    if isinstance(argument.given, command_options.Words):
        kinds = [_WORDS[kind] for kind in argument.given.metavar.split(" | ") if kind in _WORDS]
        return lambda prefix, **given: [word for kind in kinds for word in kind(prefix, **given)]
    return None


def _configurations(prefix: str, **_: Any) -> list[str]:
    from argcomplete.completers import FilesCompleter

    return [*_recipes(prefix, before="recipe:"), *FilesCompleter(("yaml", "yml", "json"))(prefix)]


def _recipes(prefix: str, before: str = "", **_: Any) -> list[str]:
    from toolkit.config import recipes

    return [f"{before}{name}" for name in recipes.names()]


def _taggers(prefix: str, **_: Any) -> list[str]:
    from toolkit.tag.tagger import TAGGERS

    return TAGGERS.names()


def _paths(prefix: str, **_: Any) -> list[str]:
    from argcomplete.completers import FilesCompleter

    return list(FilesCompleter()(prefix))


def _keys(prefix: str, parsed_args: Any, **_: Any) -> list[str]:
    """Return the keys of settings: those at the top, and those that the configuration has; behind ``=`` paths."""
    import msgspec

    from toolkit.config import recipes, settings

    key, equals, value = prefix.partition("=")
    if equals:
        return [f"{key}={path}" for path in _paths(value)]
    found = dict.fromkeys(field.encode_name for field in msgspec.structs.fields(settings.Config))
    with suppress(ToolkitError):
        if path := getattr(parsed_args, "config", None):
            found |= dict.fromkeys(_leaves(settings.load(recipes.resolved(path)).value))
    return [f"{key}=" for key in found]


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of what is no mapping and holds none, as overrides have them."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    items = [(f"{path}.{key}" if path else str(key), each) for key, each in inside]
    if not items or (isinstance(value, list) and not any(isinstance(each, dict | list) for each in value)):
        yield from (path for _ in (0,) if path)
        return
    for below, each in items:
        yield from _leaves(each, below)


_WORDS: dict[str, Callable[..., list[str]]] = {
    "RECIPE": _recipes,
    "TAGGER": _taggers,
    "KEY=VALUE": _keys,
    "PATH": _paths,
}
"""Completers by what words are called in help."""
