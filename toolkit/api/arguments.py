"""From the arguments of functions, checked, to the options of commands."""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolkit.config import recipes, settings
from toolkit.config.settings import ConfigNode
from toolkit.errors import ConfigError, errors_from

if TYPE_CHECKING:
    from toolkit.command_options import Argument, Options
    from toolkit.execution.progress import Reached

Progress: TypeAlias = "Callable[[Reached], object] | bool"
"""Whether progress is shown, or a function that is told of it."""

Configuration = str | os.PathLike[str] | Mapping[str, Any]
"""A path of a YAML file, ``recipe:NAME``, YAML itself (a text of several lines), or the same as a mapping."""

Overrides = Iterable[str] | Mapping[str, Any]
"""``KEY=VALUE`` as on the command line, or a mapping from such keys to values."""

SUFFIXES = (".yaml", ".yml")
"""Of files that are configurations."""

NAME = "configuration"
"""Name of a configuration that is in no file, in errors."""


def named(configuration: Configuration) -> str:
    """Return the name of a configuration in errors."""
    return NAME if _is_itself(configuration) else os.fspath(configuration)  # type: ignore[arg-type]


def read(configuration: Configuration, overrides: Overrides = (), more: Mapping[str, Any] | None = None) -> ConfigNode:
    """Return a configuration with its overrides.

    Args:
        configuration: Path, YAML or mapping.
        overrides: Overrides of settings at any depth.
        more: Overrides of settings at the top.

    Raises:
        ConfigError: if it is none, or says nothing.
    """
    assignments = [*_assignments(overrides), *_assignments(more or {})]
    if not _is_itself(configuration):
        return settings.load_source(recipes.resolved(os.fspath(configuration)), assignments)  # type: ignore[arg-type]
    if isinstance(configuration, str):
        source = settings.parse(configuration, NAME)
    else:
        source = settings.parse(_json(configuration, NAME), NAME)
        source.lines = {}
    for assignment in assignments:
        settings.override(source, assignment)
    if not isinstance(source.value, dict) or not source.value:
        raise ConfigError(f"{NAME}: expected settings, got {source.value!r}")
    return source


def check(configuration: Any) -> None:
    """Raise ConfigError unless the value is a configuration."""
    if not isinstance(configuration, str | os.PathLike | Mapping):
        got = type(configuration).__name__
        raise ConfigError(f"expected a configuration: a path, YAML or a mapping; got a value of type {got}")


def _is_itself(configuration: Any) -> bool:
    check(configuration)
    if isinstance(configuration, Mapping):
        return True
    return isinstance(configuration, str) and "\n" in configuration


def _assignments(overrides: Overrides) -> list[str]:
    if isinstance(overrides, str):
        raise ConfigError(f"expected overrides in a list or a mapping, got the text {overrides!r}")
    if isinstance(overrides, Mapping):
        return [f"{key}={_json(value, key)}" for key, value in overrides.items()]
    return list(overrides)


def _json(value: Any, name: str) -> str:
    """Return a value as JSON (and YAML); paths as texts, our numbers as they are."""
    try:
        return json.dumps(msgspec.to_builtins(value, enc_hook=_plain, str_keys=True), ensure_ascii=False)
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise ConfigError(f"{name}: expected what YAML can hold, got: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__}")


Target = Configuration | Iterable[str | os.PathLike[str]]
"""A configuration, the path of an output or a dataset, or several paths."""


def is_configuration(value: Any) -> bool:
    """Return True for a configuration, False for a data path. Names and contents tell them apart."""
    if isinstance(value, str | os.PathLike):
        return _is_itself(value) or os.fspath(value).endswith(SUFFIXES) or os.fspath(value).startswith(recipes.PREFIX)
    return isinstance(value, Mapping)


def share(shard: Any) -> tuple[int, int] | None:
    """Return a share, or None for all.

    Raises:
        ConfigError: if it is neither.
    """
    if shard is None:
        return None
    if not (isinstance(shard, tuple) and len(shard) == 2 and all(isinstance(item, int) for item in shard)):
        raise ConfigError(f"shard: expected (i, n), such as (0, 4), got {shard!r}")
    if not 0 <= shard[0] < shard[1]:
        raise ConfigError(f"shard: expected (i, n) with i from 0 to n - 1, got {shard!r}")
    return shard


def words(name: str, value: Any) -> tuple[str, ...]:
    """Return texts in a tuple.

    Raises:
        ConfigError: if they are not several texts; one by itself is one letter after the other.
    """
    result = None if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if result is None or not all(isinstance(item, str) for item in result):
        raise ConfigError(f"{name}: expected a list of texts, got {value!r}")
    return result


# --- options ----------------------------------------------------------------------------------------------------------


def options_of(
    class_: "type[Options]", values: dict[str, Any], left_out: Iterable[str], fields: Mapping[str, str]
) -> "Options":
    """Return the options of a command.

    Args:
        class_: Class of the options.
        values: Arguments of its function, by name.
        left_out: Names of arguments that are None: that is their value even if the command line has a default.
        fields: Names of options, by that of an argument with another name, or with one or several texts.

    Raises:
        ConfigError: for what the command line would not take, too.
    """
    from toolkit.command_options import arguments

    options = {"quiet": True, **_place(class_, values)}
    if "progress" in values:
        progress = values.pop("progress")
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise ConfigError(f"progress: expected True, False or a function, got {progress!r}")
        options |= {"quiet": progress is not True, "watch": progress if callable(progress) else None}
    if "compare" in values:
        other = values["compare"]
        options |= {"compare": named(other), "other": read(other) if is_configuration(other) else None}
    by_field = {argument.field: argument for argument in arguments(class_)}
    for name, value in values.items():
        field = fields.get(name, name)
        if name in fields and by_field[field].type == tuple[str, ...]:
            several = [value] if isinstance(value, str | os.PathLike) else value
            options[field] = (*options.get(field, ()), *map(os.fspath, several))
        elif field not in options:
            options[field] = _value(by_field[field], name, value)
    options |= {name: None for name in left_out if name in by_field and by_field[name].default is not None}
    return class_(**options)


def _place(class_: "type[Options]", values: dict[str, Any]) -> dict[str, Any]:
    """Take the configuration or the paths, and settings, out of the arguments; return them as options."""
    overrides, more = values.pop("overrides", ()), values.pop("settings", {})
    name = next((name for name in ("configuration", "target") if name in values), None)
    if name is None:
        return {"overrides": (*_assignments(overrides), *_assignments(more))}
    place = values.pop(name)
    if name == "configuration" or is_configuration(place):
        return {"config": named(place), "config_node": read(place, overrides, more)}
    paths = [place] if isinstance(place, str | os.PathLike) else list(place)
    if overrides or more:
        raise ConfigError(f"expected overrides and settings with a configuration, got the path {paths[0]}")
    if "dataset" in class_.__struct_fields__:
        (dataset,) = paths
        return {"dataset": os.fspath(dataset)}
    return {"targets": tuple(os.fspath(path) for path in paths)}


def _value(argument: "Argument", name: str, value: Any) -> Any:
    """Return the value of an option, checked like on the command line."""
    if argument.field == "shard":
        return share(value)
    if argument.type == tuple[str, ...]:
        return words(name, value)
    if parse := getattr(argument.spec, "parse", None):
        with errors_from(name, of=argparse.ArgumentTypeError):
            return parse(str(value))
    if argument.type is int and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ConfigError(f"{name}: expected a number above 0, got {value!r}")
    if argument.choices and value not in argument.choices:
        raise ConfigError(f"{name}: expected one of {', '.join(argument.choices)}, got {value!r}")
    if isinstance(value, Mapping):
        return _json(value, name)
    return os.fspath(value) if isinstance(value, os.PathLike) else value
