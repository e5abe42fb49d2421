"""Publishing and fetching as functions, like those of `toolkit.in_python.calls`."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolkit.in_python import given
from toolkit.in_python.carrying import carried_out, looked_at
from toolkit.in_python.given import Configuration, Overrides

if TYPE_CHECKING:
    from toolkit.in_python import results
    from toolkit.runs.progress import Reached


def publish(
    what: Configuration,
    to: str | os.PathLike[str],
    *,
    public: bool = False,
    dry_run: bool = False,
    overrides: Overrides = (),
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Published":
    """Publish an output with its card and its Croissant file, after checks, as ``toolkit publish`` does.

    Args:
        what: a configuration, or the path of an output.
        to: a folder on disk or in a bucket, or ``hf://datasets/USER/NAME``.
        public: whether everybody sees a dataset of the Hugging Face Hub that is made.
        dry_run: whether it is only checked and listed.
        overrides: as of `run`.
        progress: as of `run`.
        **settings: as of `run`.

    Raises:
        Failed: with what the checks found, or with the files that could not be published.
        ToolkitError: for whatever else is wrong.
    """
    from toolkit.commands.releasing.publish import Options
    from toolkit.errors import Failed
    from toolkit.in_python import results

    options = looked_at(what, overrides, settings, progress)
    outcome = carried_out(Options(**options, to=os.fspath(to), public=public, dry_run=dry_run))
    result = results.typed(results.Published, outcome)
    if result.findings:
        raise Failed(result.findings, result)
    return results.checked(result, outcome)


def fetch(  # noqa: PLR0913  # each is an option, given by its name
    release: str | os.PathLike[str],
    label: str | Iterable[str],
    *,
    to: str | os.PathLike[str] | None = None,
    most: str | int | None = None,
    max_file: str | int | None = None,
    max_list: str | int = "64 MiB",
    dry_run: bool = False,
    storage: Mapping[str, Any] | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
) -> "results.Fetched":
    """Fetch parts of some labels of a published output, and check them, as ``toolkit fetch`` does.

    Args:
        release: a folder, ``s3://…``, ``http(s)://…`` or ``hf://datasets/USER/NAME``.
        label: a label, such as ``fr``, or several.
        to: the folder; by default it is called as the release.
        most: at most so many stored bytes of each label, such as ``"2GB"``.
        max_file: at most so many of each file; by default those that are announced, or 4 GiB where none are.
        max_list: at most so many of a checksum file or a manifest.
        dry_run: whether the parts are only listed.
        storage: settings of the section ``storage:``, such as ``{"give_up": "10s"}``.
        progress: as of `run`.

    Raises:
        Failed: if files could not be fetched; those that could are there.
        ToolkitError: for whatever else is wrong.
    """
    from toolkit.commands.releasing.fetch import Options
    from toolkit.config.sizes import Size
    from toolkit.errors import ConfigError
    from toolkit.in_python import results

    sizes: dict[str, Size] = {}
    for name, value in (("most", most), ("max_file", max_file), ("max_list", max_list)):
        try:
            if value is not None:
                sizes[name] = Size.parse(value)
        except ValueError as error:
            raise ConfigError(f"{name}: {error}") from None
    outcome = carried_out(
        Options(
            targets=(os.fspath(release),),
            overrides=tuple(f"storage.{key}={value}" for key, value in (storage or {}).items()),
            label=(label,) if isinstance(label, str) else tuple(label),
            most=sizes.get("most"),
            max_file=sizes.get("max_file"),
            max_list=sizes["max_list"],
            to=None if to is None else os.fspath(to),
            dry_run=dry_run,
            **given.progress(progress),
        )
    )
    return results.checked(results.typed(results.Fetched, outcome), outcome)
