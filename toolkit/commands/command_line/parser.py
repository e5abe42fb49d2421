"""The parser of the command line, made from the commands: a file each, of which only the one that runs is imported."""

import argparse
import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from toolkit.commands import describing, looking, making, releasing
from toolkit.commands.command_line import options as command_options
from toolkit.commands.command_line.options import Argument, Flag, Options, Words
from toolkit.errors import ConfigError, did_you_mean
from toolkit.storage.addresses import cleaned

_GROUPS = {
    "prepare": ("init", "run", "ingest", "align"),
    "compute": ("tag", "dedup", "sample", "annotate", "calibrate", "train"),
    "mix": ("mix", "tokenize", "export"),
    "look": ("status", "view", "head", "stats", "report", "compare", "evaluate", "sql", "validate"),
    "publish": ("croissant", "card", "features", "publish", "fetch"),
    "more": ("taggers", "models", "config", "clean"),
}
"""The commands of each group of the help, in order; others follow by name in the last."""
_FOLDERS = (making, looking, describing, releasing)


class Command(Protocol):
    """A module in a folder of `toolkit.commands`; the first line of its docstring is its help.

    Attributes:
        Options: what it takes.
        run: does it; from a context and options to an outcome.
    """

    Options: type[Options]
    run: Callable[..., Any]


@functools.cache
def _files() -> dict[str, tuple[str, Path]]:
    """Return the package and the file of each command by its name, in the order of the help."""
    found = {
        module.name: (folder.__name__, Path(module.module_finder.path, f"{module.name}.py"))  # type: ignore[union-attr]
        for folder in _FOLDERS
        for module in pkgutil.iter_modules(folder.__path__)
    }
    listed = [name for group in _GROUPS.values() for name in group if name in found]
    return {name: found[name] for name in [*listed, *sorted(found)]}


def names() -> list[str]:
    """Return the names of the commands, in the order of the help."""
    return list(_files())


def about(name: str) -> str:
    """Return what a command does, in a sentence; its module is not imported for that."""
    with _files()[name][1].open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def find(name: str) -> Command:
    """Return the module of a command."""
    module: Any = importlib.import_module(f"{_files()[name][0]}.{name}")
    return module  # type: ignore[no-any-return]


def examples(name: str) -> Sequence[str]:
    """Return command lines that show a command."""
    return find(name).Options.EXAMPLES or (f"toolkit {name} -c configs/quickstart.yaml processes=2",)


class _Parser(argparse.ArgumentParser):
    """Tells errors in a line, without secrets of addresses, as do the parsers of commands, which are of its class."""

    def format_help(self) -> str:
        """Return the help; the commands of the toolkit stand in groups."""
        if self.get_default("groups") is None:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, [])
        formatter.add_text(self.description)
        listed = {name for group in list(_GROUPS.values())[:-1] for name in group}
        for title, group in _GROUPS.items():
            members = group if title != "more" else [name for name in names() if name not in listed]
            formatter.start_section(title)
            formatter.add_arguments(argparse.Action([], name, metavar=name, help=_help(name)) for name in members)
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(action for action in self._actions if action.option_strings)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        said = cleaned(message.removeprefix("argument "))
        self.exit(2, f"error: {said}; `{self.prog} --help` lists the options\n")


def parser(
    prog: str = "toolkit", fill: Callable[[str, argparse.ArgumentParser], None] | None = None
) -> argparse.ArgumentParser:
    """Return a parser that knows the names of the commands; what one takes, `parse` knows.

    Args:
        prog: how it was called, for help and errors.
        fill: gets the name and the parser of each command, to add what it takes.
    """
    top = _Parser(
        prog=prog,
        description="Prepare text corpora for language models: ingest documents, tag them, and mix them by rules.",
        epilog="Exit status: 0 done; 1 done, but with failed shards or findings; 2 bad usage or configuration; "
        "130 interrupted; 143 terminated.",
    )
    top.add_argument("--version", action="store_true", help="print the version")
    top.set_defaults(groups=_GROUPS)
    listed = top.add_subparsers(dest="command", metavar="COMMAND")
    for name in names():
        command = listed.add_parser(name, help=_help(name))
        if fill:
            fill(name, command)
    return top


def _help(name: str) -> str:
    """Return the line of a command in the help."""
    line = about(name).rstrip(".")
    return line[:1].lower() + line[1:]


def parse(name: str, given: Sequence[str], prog: str = "toolkit") -> Options:
    """Return the options of a command.

    Args:
        name: of the command.
        given: the words behind it.
        prog: how the toolkit was called.

    Raises:
        ConfigError: for words that the command takes none of, and options that do not go together.
        SystemExit: for anything else that it does not take, and for ``--help``; both are told.
    """
    class_ = find(name).Options
    listed = command_options.arguments(class_)
    command = _Parser(prog=f"{prog} {name}", description=about(name), epilog="Example: " + ", or ".join(examples(name)))
    command.set_defaults(words=[])
    for each in listed:
        add(command, each)
    takes_words = any(isinstance(each.given, Words) for each in listed)
    lacks = any(each.field == "config" and each.required for each in listed) and not {"-c", "--config"} & {*given}
    if lacks and (file := next((word for word in given if word.endswith((".yaml", ".yml")) and "=" not in word), "")):
        command.error(f"expected -c before the configuration: write {prog} {name} -c {file}")
    parsed, behind = command.parse_known_args(given)  # KEY=VALUE may also stand behind options
    if unknown := [word for word in behind if word.startswith("-") or not takes_words]:
        known = ["--help", *(name for each in listed if isinstance(each.given, Flag) for name in each.names)]
        meant = did_you_mean(unknown[0].partition("=")[0], known) if unknown[0].startswith("--") else ""
        command.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    overrides, targets = command_options.part([*parsed.words, *behind])
    if targets and not any(each.field == "targets" for each in listed):
        raise ConfigError(f"expected KEY=VALUE, got {targets[0]!r}")
    values = {each.field: getattr(parsed, each.field) for each in listed if isinstance(each.given, Flag)}
    values = {field: tuple(value) if isinstance(value, list) else value for field, value in values.items()}
    return class_(**values, overrides=overrides, targets=targets)


def add(command: argparse.ArgumentParser, argument: Argument) -> argparse.Action:
    """Add to the parser of a command what it takes there, and return that."""
    given = argument.given
    if isinstance(given, Words):
        return command.add_argument("words", nargs="*", metavar=given.metavar, help=given.help)
    how: dict[str, Any] = {"dest": argument.field, "help": given.help}
    if argument.required:
        how["required"] = True
    if argument.type is bool:
        how["action"] = "store_true"
    else:
        several = argument.type == tuple[str, ...]
        how |= {"metavar": given.metavar, "default": list(argument.default) if several else argument.default}
        how |= {"action": "append"} if several else {}
        how |= {"nargs": "?", "const": given.alone} if given.alone is not None else {}
        how |= {"choices": argument.choices} if argument.choices else {}
        how |= {"type": given.parse or (command_options.positive if argument.type is int else str)}
    return command.add_argument(*argument.names, **how)
