"""Completions of words on the command line: commands, options, recipes, taggers, sets, and settings with their values.

The shell asks by `argcomplete`, which is imported only then: no other start takes longer for it.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NoReturn

from toolkit import command_options
from toolkit.errors import ToolkitError

Completer = Callable[..., list[str]]


def answer() -> NoReturn:
    """Tell the shell, and end the process."""
    try:
        import argcomplete
    except ImportError:
        sys.exit(1)
    requested = next(
        (word for word in os.environ.get("COMP_LINE", "").split()[1:2] if word in command_options.names()), None
    )

    def fill(name: str, command: argparse.ArgumentParser) -> None:
        if name == requested:  # the others need not be imported
            for argument in command_options.arguments(command_options.find(name).Options):
                vars(command_options.add(command, argument))["completer"] = _completer(argument)

    argcomplete.autocomplete(command_options.parser(fill=fill))
    sys.exit(1)


def _completer(argument: command_options.Argument) -> Completer | None:
    """Return the completer of an argument; None for choices, or files."""
    if argument.field == "config":
        return _configurations
    if argument.spec.metavar == "SET":
        return _sets
    if isinstance(argument.spec, command_options.Words):
        kinds = [_WORDS[kind] for kind in argument.spec.metavar.split(" | ") if kind in _WORDS]
        return lambda prefix, **options: [word for kind in kinds for word in kind(prefix, **options)]
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


def _sets(prefix: str, parsed_args: Any, **_: Any) -> list[str]:
    """Return the sets of the configuration, and of its dataset."""
    from toolkit.config.settings import stages

    config, root = _configuration(parsed_args), getattr(parsed_args, "dataset", None)
    sections = [config.get(name) for name in stages("sets", "whole")]
    names = dict.fromkeys(name for section in sections if isinstance(section, dict) for name in section)
    with suppress(ToolkitError, OSError):
        from toolkit.data.dataset import open_dataset

        if isinstance(place := root or config.get("dataset"), str):
            names |= dict.fromkeys(open_dataset(place, None, config.get("attributes")).sets())
    return list(names)


def _configuration(parsed_args: Any) -> dict[str, Any]:
    """Return the configuration of the command line, as written; empty if it is unreadable."""
    from toolkit.config import recipes, settings

    with suppress(ToolkitError):
        if path := getattr(parsed_args, "config", None):
            return dict(settings.load(recipes.resolved(path)).value)
    return {}


def _keys(prefix: str, parsed_args: Any, **_: Any) -> list[str]:
    """Return the keys of settings, at the top and in the configuration; after ``=`` the values, or paths."""
    import msgspec

    from toolkit.config import settings

    key, equals, value = prefix.partition("=")
    if equals:
        return [f"{key}={text}" for text in _values(key, parsed_args) or _paths(value)]
    results = dict.fromkeys(field.encode_name for field in msgspec.structs.fields(settings.Config))
    return [f"{key}=" for key in results | dict.fromkeys(_leaves(_configuration(parsed_args)))]


def _values(key: str, parsed_args: Any) -> list[str]:
    """Return the possible values of a setting, if these are few; sets for ``mix.attributes``."""
    from toolkit.validate.yaml_schema import whole

    if key == "mix.attributes":
        return _sets("", parsed_args)
    if key.startswith("tag.") and key.endswith(".tagger"):
        return _taggers("")
    schema = whole()

    def variants(node: Any) -> Iterator[dict[str, Any]]:
        if not isinstance(node, dict):
            return
        if reference := node.get("$ref"):
            yield from variants(schema["$defs"][reference.rpartition("/")[2]])
        yield node
        for inner in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ()), node.get("then")):
            yield from variants(inner)

    nodes = list(variants(schema))
    for part in key.split("."):
        inside = [node.get("items") if part.isdigit() else _property(node, part) for node in nodes]
        nodes = [node for item in inside for node in variants(item)]
    results = [value for node in nodes for value in (*node.get("enum", ()), node.get("const"))]
    results += ["true", "false"] if any(node.get("type") == "boolean" for node in nodes) else []
    return list(dict.fromkeys(value for value in results if isinstance(value, str)))


def _property(node: dict[str, Any], name: str) -> Any:
    return node.get("properties", {}).get(name) or node.get("additionalProperties")


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of scalar values, as overrides have them."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    items = [(f"{path}.{key}" if path else str(key), item) for key, item in inside]
    if not items or (isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)):
        yield from (path for _ in (0,) if path)
        return
    for below, item in items:
        yield from _leaves(item, below)


_WORDS: dict[str, Callable[..., list[str]]] = {
    "RECIPE": _recipes,
    "TAGGER": _taggers,
    "SET": _sets,
    "SET[.KEY[.field]]": _sets,
    "KEY=VALUE": _keys,
    "PATH": _paths,
}
"""Completers by what words are called in help."""
