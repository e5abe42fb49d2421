"""Options of commands: Structs whose fields say how they are given on the command line.

A command has a class `Options` of its own, made of those below and of fields of its own. The parser, `--help` and the
page of the commands are made from it. A field is on the command line where its type is annotated with `Flag` or
`Words`; others are there for code that several commands share, and have their defaults.
"""

import argparse
import inspect
import os
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from toolkit.config.settings import ConfigNode
from toolkit.errors import ConfigError

AnyOptions = TypeVar("AnyOptions", bound="Options")


class Flag:
    """Describes a field that is given as an option.

    The type of the field says what it takes: nothing (bool), a number above 0 (int), one of some words (Literal), a
    text, or several of them, each behind the option (tuple).

    Attributes:
        help: what it does.
        names: as on the command line; by default two hyphens and the field's name.
        metavar: what its value is called.
        parse: makes the value of its text, if that is none of the above.
        alone: the value where the option stands without one; None if it must have one.
    """

    def __init__(
        self,
        help: str,
        *names: str,
        metavar: str | None = None,
        parse: Callable[[str], Any] | None = None,
        alone: str | None = None,
    ) -> None:
        self.help, self.names, self.metavar, self.parse, self.alone = help, names, metavar, parse, alone


class Words:
    """Describes the words that belong to no option; one field of a command may have it.

    On `overrides`, all must be ``KEY=VALUE``. On `targets`, words of another form are allowed, too.
    """

    def __init__(self, help: str, metavar: str = "PATH | KEY=VALUE") -> None:
        self.help, self.metavar = help, metavar


def _share(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(f"expected I/N with I from 0 to N - 1, got {text!r}")
    return int(index), int(count)


def positive(text: str) -> int:
    """Return the number above 0 that a text is.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return int(text)


def natural(text: str) -> int:
    """Return the number from 0 that a text is.

    Raises:
        argparse.ArgumentTypeError: if it is none.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number from 0, got {text!r}")
    return int(text)


# --- what several commands take ---------------------------------------------------------------------------------------


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options that every command has.

    Attributes:
        config: path of the configuration; None where a command can do without.
        overrides: ``KEY=VALUE``.
        targets: words of another form: paths, or taggers.
        limit: at most so many shards, or inputs.
        shard: number of the share that is worked on, and how many shares there are.
        dry_run: write nothing, show what would be done.
        overwrite: replace what was made with other settings.
        given: the configuration itself, where it is in no file; `config` is then what errors call it.
        watch: is told how far a stage is, now and then.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = ()
    """Command lines, for help."""

    SETTINGS: ClassVar[bool] = True
    """Whether ``KEY=VALUE`` are settings also where there is no configuration."""

    config: str | None = None
    overrides: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    limit: int | None = None
    shard: tuple[int, int] | None = None
    dry_run: bool = False
    overwrite: bool = False
    given: ConfigNode | None = None
    watch: Callable[[Any], object] | None = None
    json: Annotated[bool, Flag("print results as JSON on standard output")] = False
    quiet: Annotated[bool, Flag("show no progress on standard error")] = False
    debug: Annotated[bool, Flag("show tracebacks of failures")] = False

    @property
    def command(self) -> str:
        """Return the name of the command: that of the module that these options are defined in."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def only_shows(self) -> bool:
        """Return whether the command shows what would be done, and does not do it."""
        return self.dry_run

    @property
    def keeps_indexes(self) -> bool:
        """Return whether row indexes that are missing, and so made on the way, are kept for others."""
        return not self.only_shows

    @property
    def remakes(self) -> bool:
        """Return whether the command makes sets anew, if commands of its name do; it may only write files of others."""
        return True

    def as_of(self, other: type[AnyOptions]) -> AnyOptions:
        """Return the options of another command, with the values that both have."""
        common = {*self.__struct_fields__} & {*other.__struct_fields__}
        return other(**{name: getattr(self, name) for name in common})


class Limited(Options, frozen=True, kw_only=True):
    """Options of commands that can work on some shards."""

    limit: Annotated[int | None, Flag("work on the first N shards (or inputs) only", metavar="N")] = None


class Shared(Options, frozen=True, kw_only=True):
    """Options of commands whose work several runs can share."""

    shard: Annotated[
        tuple[int, int] | None,
        Flag("do only share I of N, counted from 0, for example in an array job", metavar="I/N", parse=_share),
    ] = None


class Configured(Options, frozen=True, kw_only=True):
    """Options of commands that need a configuration."""

    config: Annotated[str, Flag("the configuration (YAML)", "-c", "--config", metavar="FILE")]
    overrides: Annotated[tuple[str, ...], Words("settings that override the file's", "KEY=VALUE")] = ()


class Stage(Shared, Limited, frozen=True, kw_only=True):
    """Options of commands that write a dataset or an output."""

    dry_run: Annotated[bool, Flag("write no data; print the settings, and the plan or what the rules would do")] = False
    overwrite: Annotated[bool, Flag("replace what was made with other settings")] = False


class Looking(Options, frozen=True, kw_only=True):
    """Options of commands that take paths, or a configuration.

    Raises:
        ConfigError: if there is neither.
    """

    config: Annotated[
        str | None, Flag("the configuration (YAML), if you give no path", "-c", "--config", metavar="FILE")
    ] = None
    targets: Annotated[tuple[str, ...], Words("paths; settings, which override those of the file")] = ()
    text_field: Annotated[
        str | None, Flag("for files of others (JSON Lines, Parquet): the key or column of the text", metavar="NAME")
    ] = None
    id_field: Annotated[str | None, Flag("with --text-field: the key or column of the id", metavar="NAME")] = None

    def __post_init__(self) -> None:
        if not self.targets and self.config is None:
            raise ConfigError("expected a path, or a configuration (-c FILE)")
        if self.text_field is not None and not self.targets:
            raise ConfigError("expected a path with --text-field, got none")
        if self.id_field is not None and self.text_field is None:
            raise ConfigError("expected --text-field with --id-field, got none")


# --- from fields to a command line ------------------------------------------------------------------------------------


class Argument(msgspec.Struct, frozen=True):
    """A field that is on the command line.

    Attributes:
        field: its name.
        type: what it holds, without None.
        given: how it is given.
        required: whether the command needs it.
        default: of the field.
    """

    field: str
    type: Any
    given: Flag | Words
    required: bool
    default: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Return how the option is spelt; nothing for words that belong to no option."""
        if isinstance(self.given, Words):
            return ()
        return self.given.names or (f"--{self.field.replace('_', '-')}",)

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def metavar(self) -> str:
        """Return what the value is called; empty for an option without one."""
        if self.type is bool:
            return ""
        return self.given.metavar or "|".join(self.choices) or self.field.upper()


def arguments(options: type[Options]) -> list[Argument]:
    """Return what is on the command line: the configuration and words, the command's own options, then shared ones."""
    hints = get_type_hints(options, include_extras=True)
    fields = {field.name: field for field in msgspec.structs.fields(options)}
    found = [
        _argument(fields[name], given, hints[name])
        for name in dict.fromkeys(name for class_ in options.__mro__ for name in inspect.get_annotations(class_))
        for given in getattr(hints[name], "__metadata__", ())
    ]
    return sorted(found, key=lambda each: (each.field != "config", not isinstance(each.given, Words)))


def _argument(field: msgspec.structs.FieldInfo, given: Flag | Words, hint: Any) -> Argument:
    type_ = get_args(hint)[0]
    may_lack = NoneType in get_args(type_)
    if may_lack:
        type_ = next(each for each in get_args(type_) if each is not NoneType)
    required = not may_lack and field.default in (None, msgspec.NODEFAULT)  # a default of a base class may stay
    return Argument(field.name, type_, given, required, field.default)


def part(words: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that are ``KEY=VALUE`` and name no file, and the others; a key has no blanks, as queries do."""
    overrides, others = list[str](), list[str]()
    for word in words:
        key, equals, _ = word.partition("=")
        is_setting = equals and not word.startswith("{") and len(key.split()) < 2 and not os.path.exists(word)
        (overrides if is_setting else others).append(word)
    return tuple(overrides), tuple(others)
