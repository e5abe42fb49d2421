"""The command line: options and results of commands, which are Structs, and the parser that is made from the options.

A command has a class `Options` of its own, made of those below and of fields of its own. The parser, `--help` and the
page of the commands are made from it. A field is on the command line where its type is annotated with `Flag` or
`Words`; others are there for code that several commands share, and have their defaults. ``--json`` prints a result as
it is.
"""

import argparse
import functools
import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Protocol, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from toolkit.config.docstrings import attributes_of
from toolkit.config.settings import ConfigNode
from toolkit.errors import ConfigError, did_you_mean
from toolkit.storage.addresses import redact_text

AnyOptions = TypeVar("AnyOptions", bound="Options")


class Flag:
    """Describes a field as an option.

    The type of the field determines its value: nothing (bool), a number above 0 (int), one of some words (Literal), a
    text, or several of them, each after the option (tuple).

    Attributes:
        names: Spellings; by default two hyphens and the field's name.
        metavar: Name of its value.
        parse: Function that parses a value of another type.
        alone: Value of the option without one; None if it must have one.
    """

    def __init__(
        self,
        *names: str,
        metavar: str | None = None,
        parse: Callable[[str], Any] | None = None,
        alone: str | None = None,
    ) -> None:
        self.names, self.metavar, self.parse, self.alone = names, metavar, parse, alone


class Words:
    """Describes the positional words; one field of a command may have it.

    On `overrides`, all must be ``KEY=VALUE``. On `targets`, words of another form are allowed, too.
    """

    def __init__(self, metavar: str = "PATH | KEY=VALUE") -> None:
        self.metavar = metavar


def _share(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(f"expected I/N with I from 0 to N - 1, got {text!r}")
    return int(index), int(count)


def positive(text: str) -> int:
    """Parse a number above 0.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return int(text)


def natural(text: str) -> int:
    """Parse a number from 0.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number from 0, got {text!r}")
    return int(text)


# --- what several commands take ---------------------------------------------------------------------------------------


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of every command.

    Attributes:
        config: Path of the configuration; None if a command can do without.
        overrides: ``KEY=VALUE``.
        targets: Words of another form: paths, or taggers.
        limit: Number of shards, or inputs, at most.
        shard: Number of this share, and of all shares.
        dry_run: True to write nothing, and show the plan.
        overwrite: True to replace results with other settings.
        config_node: Configuration that is in no file; `config` is then its name in errors.
        watch: Function to call with progress, now and then.
        json: print results as JSON on standard output
        quiet: show no progress on standard error
        debug: show tracebacks of failures
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = ()
    """Command lines, for help."""

    SETTINGS: ClassVar[bool] = True
    """Whether ``KEY=VALUE`` are settings also where there is no configuration."""

    WRITES: ClassVar[bool] = False
    """Whether the command writes records of datasets."""

    REMAKES: ClassVar[Literal["", "sets", "all"]] = ""
    """Losses from damaged records that the command repairs: row indexes and sets, or records of inputs, too.
    """

    config: str | None = None
    overrides: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    limit: int | None = None
    shard: tuple[int, int] | None = None
    dry_run: bool = False
    overwrite: bool = False
    config_node: ConfigNode | None = None
    watch: Callable[[Any], object] | None = None
    json: Annotated[bool, Flag()] = False
    quiet: Annotated[bool, Flag()] = False
    debug: Annotated[bool, Flag()] = False

    @property
    def command(self) -> str:
        """Return the name of the command: that of the module of these options."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def only_shows(self) -> bool:
        """Return True for a preview without work."""
        return self.dry_run

    @property
    def keeps_indexes(self) -> bool:
        """Return True if newly made row indexes are kept for other runs."""
        return not self.only_shows

    @property
    def remakes(self) -> str:
        """Return `REMAKES`, or less for a writer of external files."""
        return self.REMAKES

    def as_of(self, other: type[AnyOptions]) -> AnyOptions:
        """Return the options of another command, with the common values."""
        common = {*self.__struct_fields__} & {*other.__struct_fields__}
        return other(**{name: getattr(self, name) for name in common})


class Limited(Options, frozen=True, kw_only=True):
    """Options of commands for some shards.

    Attributes:
        limit: work on the first N shards (or inputs) only
    """

    limit: Annotated[int | None, Flag(metavar="N")] = None


class Shared(Options, frozen=True, kw_only=True):
    """Options of commands for several parallel runs.

    Attributes:
        shard: do only share I of N, counted from 0, for example in an array job
    """

    shard: Annotated[tuple[int, int] | None, Flag(metavar="I/N", parse=_share)] = None


class Configured(Options, frozen=True, kw_only=True):
    """Options of commands with a configuration.

    Attributes:
        config: the configuration (YAML)
        overrides: settings that override the file's
    """

    config: Annotated[str, Flag("-c", "--config", metavar="FILE")]
    overrides: Annotated[tuple[str, ...], Words("KEY=VALUE")] = ()


class StageOptions(Shared, Limited, frozen=True, kw_only=True):
    """Options of commands with a dataset or an output.

    Attributes:
        dry_run: write no data; print the settings, and the plan or what the rules would do
        overwrite: replace what was made with other settings
    """

    WRITES: ClassVar = True

    dry_run: Annotated[bool, Flag()] = False
    overwrite: Annotated[bool, Flag()] = False


class Looking(Options, frozen=True, kw_only=True):
    """Options of commands with paths, or a configuration.

    Attributes:
        config: the configuration (YAML), if you give no path
        targets: paths; settings, which override those of the file

    Raises:
        ConfigError: if there is neither.
    """

    config: Annotated[str | None, Flag("-c", "--config", metavar="FILE")] = None
    targets: Annotated[tuple[str, ...], Words()] = ()

    def __post_init__(self) -> None:
        if not self.targets and self.config is None:
            raise ConfigError("expected a path, or a configuration (-c FILE)")


class Inspecting(Looking, frozen=True, kw_only=True):
    """Options of commands on rows, also of external files.

    Attributes:
        text_field: text column of external JSON Lines or Parquet files
        id_field: id column of these files, with --text-field

    Raises:
        ConfigError: if they do not go together.
    """

    text_field: Annotated[str | None, Flag(metavar="NAME")] = None
    id_field: Annotated[str | None, Flag(metavar="NAME")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.text_field is not None and not self.targets:
            raise ConfigError("expected a path with --text-field, got none")
        if self.id_field is not None and self.text_field is None:
            raise ConfigError("expected --text-field with --id-field, got none")


# --- results ----------------------------------------------------------------------------------------------------------


def absent(name: str | None = None) -> Any:
    """Return the default of an optional field of a result: false, and not encoded.

    Functions give an empty value of its type instead; see `fill_absent`.

    Args:
        name: Name of the field in JSON, if it is another.
    """
    return msgspec.field(default=msgspec.UNSET, name=name)


class CommandResult(msgspec.Struct, kw_only=True, dict=True):
    """The result of a command; `str` and `print` give what the command line prints."""

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The result for people."""
        return str(vars(self).get("text_for_people", ""))

    @property
    def data(self) -> dict[str, Any]:
        """The result as plain data: what ``--json`` prints."""
        plain: dict[str, Any] = vars(self).get("plain") or msgspec.to_builtins(self)
        return plain

    def for_python(self) -> Any:
        """Return the result of the command's function."""
        return self

    def shown_as(self, text: str) -> None:
        """Set the text for people."""
        vars(self)["text_for_people"] = text


def fill_absent(value: Any) -> None:
    """Give absent fields of a result empty values, recursively; its encoding stays."""
    if isinstance(value, CommandResult):
        vars(value)["plain"] = value.data
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if getattr(value, name) is msgspec.UNSET:
                setattr(value, name, _empty(get_type_hints(type(value))[name]))
            fill_absent(getattr(value, name))
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            fill_absent(item)


def _empty(type_: Any) -> Any:
    """Return the empty value of a type; of a Struct what is false."""
    if NoneType in get_args(type_):
        return None
    result = get_origin(type_) or type_
    return msgspec.UNSET if issubclass(result, msgspec.Struct) else result()


class FailedResult(CommandResult, kw_only=True):
    """The result of a failed command.

    Attributes:
        failed: Messages of what failed.
    """

    failed: list[str]


# --- from fields to a command line ------------------------------------------------------------------------------------


class Argument(msgspec.Struct, frozen=True):
    """A field on the command line.

    Attributes:
        field: Name of the field.
        type: Type of the value, without None.
        spec: Option or words.
        help: Sentence for help, from the docstring of the options.
        required: True if the command needs it.
        default: Default of the field.
    """

    field: str
    type: Any
    spec: Flag | Words
    help: str
    required: bool
    default: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Return the spellings of the option; none for words."""
        if isinstance(self.spec, Words):
            return ()
        return self.spec.names or (f"--{self.field.replace('_', '-')}",)

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def metavar(self) -> str:
        """Return the name of the value; empty for an option without one."""
        if self.type is bool:
            return ""
        return self.spec.metavar or "|".join(self.choices) or self.field.upper()


@functools.cache
def arguments(options: type[Options]) -> tuple[Argument, ...]:
    """Return the arguments: configuration and words, own options, shared ones."""
    hints = get_type_hints(options, include_extras=True)
    fields, texts = {field.name: field for field in msgspec.structs.fields(options)}, attributes_of(options)
    results = [
        _argument(fields[name], spec, hints[name], texts.get(name, ""))
        for name in dict.fromkeys(name for class_ in options.__mro__ for name in inspect.get_annotations(class_))
        for spec in getattr(hints[name], "__metadata__", ())
    ]
    return tuple(sorted(results, key=lambda item: (item.field != "config", not isinstance(item.spec, Words))))


def _argument(field: msgspec.structs.FieldInfo, spec: Flag | Words, hint: Any, text: str) -> Argument:
    type_ = get_args(hint)[0]
    may_lack = NoneType in get_args(type_)
    if may_lack:
        type_ = next(arg for arg in get_args(type_) if arg is not NoneType)
    required = not may_lack and field.default in (None, msgspec.NODEFAULT)  # a default of a base class may stay
    return Argument(field.name, type_, spec, text, required, field.default)


def part(words: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split words into ``KEY=VALUE`` overrides and others. A word that names a file is no override; a key has no
    blanks, as queries do.
    """
    overrides, targets = list[str](), list[str]()
    for word in words:
        key, equals, _ = word.partition("=")
        is_setting = equals and not word.startswith("{") and len(key.split()) < 2 and not os.path.exists(word)
        (overrides if is_setting else targets).append(word)
    return tuple(overrides), tuple(targets)


# --- the parser: a file a command, of which only the one that runs is imported ----------------------------------------

_GROUPS = {
    "prepare": ("init", "run", "ingest", "align"),
    "compute": ("tag", "make", "dedup", "sample", "annotate", "calibrate", "train"),
    "mix": ("mix", "tokenize", "export"),
    "look": ("status", "view", "head", "trace", "stats", "report", "compare", "evaluate", "sql", "validate"),
    "publish": ("croissant", "card", "disclose", "publish", "fetch"),
    "more": ("taggers", "models", "config", "clean", "takedown"),
}
"""The commands of each group of the help, in order; others follow by name in the last."""
_COMMANDS = "toolkit.commands"


class Command(Protocol):
    """A module of `toolkit.commands`; the first line of its docstring is its help.

    Attributes:
        Options: Class of its options.
        run: Function of a context and options that returns an outcome.
    """

    Options: type[Options]
    run: Callable[..., Any]


@functools.cache
def _files() -> dict[str, tuple[str, Path]]:
    """Return module and file of each command by name, in help order."""
    results = {
        module.name: (f"{_COMMANDS}.{module.name}", Path(module.module_finder.path, f"{module.name}.py"))  # type: ignore[union-attr]
        for module in pkgutil.iter_modules(importlib.import_module(_COMMANDS).__path__)
        if not (module.ispkg or module.name.startswith("_"))
    }
    listed = [name for group in _GROUPS.values() for name in group if name in results]
    return {name: results[name] for name in [*listed, *sorted(results)]}


def names() -> list[str]:
    """Return the names of the commands, in the order of the help."""
    return list(_files())


def about(name: str) -> str:
    """Return the help of a command; its module is not imported for that."""
    with _files()[name][1].open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def find(name: str) -> Command:
    """Return the module of a command."""
    module: Any = importlib.import_module(_files()[name][0])
    return module  # type: ignore[no-any-return]


def examples(name: str) -> Sequence[str]:
    """Return example command lines."""
    return find(name).Options.EXAMPLES or (f"toolkit {name} -c configs/quickstart.yaml processes=2",)


class _Parser(argparse.ArgumentParser):
    """A parser with errors of one line, without secrets of addresses."""

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
        text = redact_text(message.removeprefix("argument "))
        self.exit(2, f"error: {text}; `{self.prog} --help` lists the options\n")


def parser(
    prog: str = "toolkit", fill: Callable[[str, argparse.ArgumentParser], None] | None = None
) -> argparse.ArgumentParser:
    """Return a parser of command names; `parse` knows the arguments.

    Args:
        prog: Program name, for help and errors.
        fill: Function of the name and the parser of each command, which adds arguments.
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


def parse(name: str, words: Sequence[str], prog: str = "toolkit") -> Options:
    """Return the options of a command.

    Args:
        name: Name of the command.
        words: Words after the command.
        prog: Program name.

    Raises:
        ConfigError: for words that the command takes none of, and options that do not go together.
        SystemExit: for anything else that it does not take, and for ``--help``; both are told.
    """
    class_ = find(name).Options
    listed = arguments(class_)
    command = _Parser(prog=f"{prog} {name}", description=about(name), epilog="Example: " + ", or ".join(examples(name)))
    command.set_defaults(words=[])
    for argument in listed:
        add(command, argument)
    takes_words = any(isinstance(argument.spec, Words) for argument in listed)
    lacks = any(argument.field == "config" and argument.required for argument in listed) and not {"-c", "--config"} & {
        *words
    }
    if lacks and (file := next((word for word in words if word.endswith((".yaml", ".yml")) and "=" not in word), "")):
        command.error(f"expected -c before the configuration: write {prog} {name} -c {file}")
    parsed, behind = command.parse_known_args(words)  # KEY=VALUE may also stand behind options
    if unknown := [word for word in behind if word.startswith("-") or not takes_words]:
        spellings = [
            "--help",
            *(name for argument in listed if isinstance(argument.spec, Flag) for name in argument.names),
        ]
        hint = did_you_mean(unknown[0].partition("=")[0], spellings) if unknown[0].startswith("--") else ""
        command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    overrides, targets = part([*parsed.words, *behind])
    if targets and not any(argument.field == "targets" for argument in listed):
        raise ConfigError(f"expected KEY=VALUE, got {targets[0]!r}")
    values = {argument.field: getattr(parsed, argument.field) for argument in listed if isinstance(argument.spec, Flag)}
    values = {field: tuple(value) if isinstance(value, list) else value for field, value in values.items()}
    return class_(**values, overrides=overrides, targets=targets)


def add(command: argparse.ArgumentParser, argument: Argument) -> argparse.Action:
    """Add an argument to the parser of a command, and return it."""
    spec = argument.spec
    if isinstance(spec, Words):
        return command.add_argument("words", nargs="*", metavar=spec.metavar, help=argument.help)
    how: dict[str, Any] = {"dest": argument.field, "help": argument.help}
    if argument.required:
        how["required"] = True
    if argument.type is bool:
        how["action"] = "store_true"
    else:
        several = argument.type == tuple[str, ...]
        how |= {"metavar": spec.metavar, "default": list(argument.default) if several else argument.default}
        how |= {"action": "append"} if several else {}
        how |= {"nargs": "?", "const": spec.alone} if spec.alone is not None else {}
        how |= {"choices": argument.choices} if argument.choices else {}
        how |= {"type": spec.parse or (positive if argument.type is int else str)}
    return command.add_argument(*argument.names, **how)
