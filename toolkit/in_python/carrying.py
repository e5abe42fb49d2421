"""From the arguments of functions, checked, to the options of commands, and back."""

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

from toolkit.config import settings
from toolkit.config.settings import ConfigNode
from toolkit.errors import ConfigError
from toolkit.session import Session

if TYPE_CHECKING:
    from toolkit.command_line import Options
    from toolkit.commands.steps.outcome import Outcome
    from toolkit.in_python.results import Result
    from toolkit.runs.progress import Reached


Configuration = str | os.PathLike[str] | Mapping[str, Any]
"""A path of a YAML file, YAML itself (a text of several lines), or the same as a mapping."""

Overrides = Iterable[str] | Mapping[str, Any]
"""``KEY=VALUE`` as on the command line, or a mapping from such keys to values."""

SUFFIXES = (".yaml", ".yml")
"""Of files that are configurations."""

RECIPE = "recipe:"
"""What the name of a configuration that ships begins with."""

NAME = "configuration"
"""What errors call a configuration that is in no file."""


def named(configuration: Configuration) -> str:
    """Return what errors call a configuration."""
    return NAME if _is_itself(configuration) else os.fspath(configuration)  # type: ignore[arg-type]


def read(configuration: Configuration, overrides: Overrides = (), more: Mapping[str, Any] | None = None) -> ConfigNode:
    """Return a configuration with its overrides.

    Args:
        configuration: what is read.
        overrides: of settings at any depth.
        more: of settings at the top.

    Raises:
        ConfigError: if it is none, or says nothing.
    """
    assignments = [*_assignments(overrides), *_assignments(more or {})]
    if not _is_itself(configuration):
        return settings.load_source(os.fspath(configuration), assignments)  # type: ignore[arg-type]
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
    """Raise ConfigError for what is no configuration."""
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
    """Return a value as JSON, which is YAML; paths as texts, numbers of ours as they are."""
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


def is_configuration(what: Any) -> bool:
    """Return whether something is a configuration, and no path of data: by its name, or because it is one itself."""
    if isinstance(what, str | os.PathLike):
        return _is_itself(what) or os.fspath(what).endswith(SUFFIXES) or os.fspath(what).startswith(RECIPE)
    return isinstance(what, Mapping)


def shown(value: Any) -> dict[str, Any]:
    """Return the options that show progress, or tell it to a function.

    Raises:
        ConfigError: if it is neither true, false nor a function.
    """
    if not (value is None or isinstance(value, bool) or callable(value)):
        raise ConfigError(f"progress: expected True, False or a function, got {value!r}")
    return {"quiet": value is not True, "watch": value if callable(value) else None}


def share(shard: Any) -> tuple[int, int] | None:
    """Return a share, or None for all.

    Raises:
        ConfigError: if it is neither.
    """
    if shard is None:
        return None
    if not (isinstance(shard, tuple) and len(shard) == 2 and all(isinstance(each, int) for each in shard)):
        raise ConfigError(f"shard: expected (i, n), such as (0, 4), got {shard!r}")
    if not 0 <= shard[0] < shard[1]:
        raise ConfigError(f"shard: expected (i, n) with i from 0 to n - 1, got {shard!r}")
    return shard


def as_text(value: str | Mapping[str, Any]) -> str:
    """Return an argument of the command line: a text as it is, a mapping as YAML."""
    return value if isinstance(value, str) else _json(value, "a mapping")


def positive(name: str, value: Any) -> Any:
    """Return a number above 0, or None.

    Raises:
        ConfigError: if it is neither.
    """
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ConfigError(f"{name}: expected a number above 0, got {value!r}")
    return value


def words(name: str, value: Any) -> tuple[str, ...]:
    """Return texts in a tuple.

    Raises:
        ConfigError: if they are not several texts; one by itself is one letter after the other.
    """
    found = None if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if found is None or not all(isinstance(each, str) for each in found):
        raise ConfigError(f"{name}: expected a list of texts, got {value!r}")
    return found


R = TypeVar("R", bound="Result")
T = TypeVar("T")
Q = ParamSpec("Q")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A path, or several."""


def configured(
    configuration: Configuration,
    overrides: Overrides,
    settings: Mapping[str, Any],
    progress: "Callable[[Reached], object] | bool",
) -> dict[str, Any]:
    """Return the options of a configuration."""
    return {
        "config": named(configuration),
        "given": read(configuration, overrides, settings),
        **shown(progress),
    }


def part(overwrite: bool, limit: int | None, shard: tuple[int, int] | None) -> dict[str, Any]:
    """Return the options of which part is made, and whether it replaces what is there."""
    return {"overwrite": overwrite, "limit": positive("limit", limit), "shard": share(shard)}


def looked_at(
    what: Any, overrides: Overrides, settings: Mapping[str, Any], progress: "Callable[[Reached], object] | bool"
) -> dict[str, Any]:
    """Return the options of a configuration, or those of paths."""
    if is_configuration(what):
        return configured(what, overrides, settings, progress)
    paths = [what] if isinstance(what, str | os.PathLike) else list(what)
    if overrides or settings:
        from toolkit.errors import ConfigError

        raise ConfigError(f"expected overrides and settings with a configuration, got the path {paths[0]}")
    return {"targets": tuple(os.fspath(path) for path in paths), **shown(progress)}


def of_dataset(
    what: Any, overrides: Overrides, settings: Mapping[str, Any], progress: "Callable[[Reached], object] | bool"
) -> dict[str, Any]:
    """Return the options of a configuration, or those of the path of a dataset."""
    options = looked_at(what, overrides, settings, progress)
    if "config" in options:
        return options
    (dataset,) = options.pop("targets")
    return {**options, "dataset": dataset}


def command(function: Callable[Q, T]) -> Callable[Q, T]:
    """Return a function whose calls are commands, each in a session of its own."""

    @functools.wraps(function)
    def call(*arguments: Q.args, **options: Q.kwargs) -> T:
        with Session().bound():
            return function(*arguments, **options)

    return call


def carried_out(options: "Options") -> "Outcome":
    """Run a command."""
    from toolkit.commands.carrying_out import carry_out
    from toolkit.runs.executors import thawed

    with thawed():
        return carry_out(options)


def made(kind: "type[R]", options: "Options") -> "R":
    """Run a command; return its outcome as a result of this kind.

    Raises:
        Failed: with the result, if something has failed.
    """
    from toolkit.in_python import results

    outcome = carried_out(options)
    return results.checked(results.typed(kind, outcome), outcome)
