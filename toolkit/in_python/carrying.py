"""From the arguments of functions to the options of commands, and back."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.in_python import given
from toolkit.in_python.given import Configuration, Overrides

if TYPE_CHECKING:
    from toolkit.commands.command_line.options import Options
    from toolkit.commands.steps.outcome import Outcome
    from toolkit.in_python.results.result import Result
    from toolkit.runs.progress import Reached

R = TypeVar("R", bound="Result")

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
        "config": given.named(configuration),
        "given": given.read(configuration, overrides, settings),
        **given.progress(progress),
    }


def part(overwrite: bool, limit: int | None, shard: tuple[int, int] | None) -> dict[str, Any]:
    """Return the options of which part is made, and whether it replaces what is there."""
    return {"overwrite": overwrite, "limit": given.positive("limit", limit), "shard": given.share(shard)}


def looked_at(
    what: Any, overrides: Overrides, settings: Mapping[str, Any], progress: "Callable[[Reached], object] | bool"
) -> dict[str, Any]:
    """Return the options of a configuration, or those of paths."""
    if given.is_configuration(what):
        return configured(what, overrides, settings, progress)
    paths = [what] if isinstance(what, str | os.PathLike) else list(what)
    if overrides or settings:
        from toolkit.errors import ConfigError

        raise ConfigError(f"expected overrides and settings with a configuration, got the path {paths[0]}")
    return {"targets": tuple(os.fspath(path) for path in paths), **given.progress(progress)}


def of_dataset(
    what: Any, overrides: Overrides, settings: Mapping[str, Any], progress: "Callable[[Reached], object] | bool"
) -> dict[str, Any]:
    """Return the options of a configuration, or those of the path of a dataset."""
    options = looked_at(what, overrides, settings, progress)
    if "config" in options:
        return options
    (dataset,) = options.pop("targets")
    return {**options, "dataset": dataset}


def carried_out(options: "Options") -> "Outcome":
    """Run a command; leave nothing behind in this process that the next one, or the caller, would meet."""
    from toolkit.commands.carrying_out import carry_out

    with _as_before():
        return carry_out(options)


def made(kind: "type[R]", options: "Options") -> "R":
    """Run a command; return its outcome as a result of this kind.

    Raises:
        Failed: with the result, if something has failed.
    """
    from toolkit.in_python import results

    outcome = carried_out(options)
    return results.checked(results.typed(kind, outcome), outcome)


@contextmanager
def _as_before() -> Iterator[None]:
    """Put back what a command sets for the whole process."""
    from toolkit.runs.executors import thawed
    from toolkit.storage.options import options as storage_options
    from toolkit.storage.options import set_options
    from toolkit.storage.retrying import forget_hosts
    from toolkit.storage.roots import forget_roots

    before = storage_options()
    try:
        with thawed():
            yield
    finally:
        set_options(before)
        forget_hosts()
        forget_roots()
