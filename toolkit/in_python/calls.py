"""The commands that make something as functions; what only looks is in `looks`.

They take a configuration, return what ``--json`` prints, typed, and raise `ToolkitError`. Nothing here is heavy to
import: commands are imported when they are called.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolkit.in_python import carrying
from toolkit.in_python.carrying import Configuration, Overrides, carried_out, command, configured, looked_at, made, part

if TYPE_CHECKING:
    from toolkit.in_python import results
    from toolkit.runs.progress import Reached


@command
def run(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    per_shard: bool = False,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Ran":
    """Ingest, align, tag, dedup, sample and mix, as far as the configuration has the sections, as ``toolkit run`` does.

    Args:
        configuration: path of a YAML file, YAML itself (a text of several lines), or the same as a mapping.
        overrides: ``["tag.lines-0.model=…"]``, or a mapping from such keys to values.
        overwrite: replace what was made with other settings.
        limit: only the first so many shards, or inputs.
        shard: ``(i, n)``: only the share i of n, counted from 0.
        per_shard: input by input; documents and attributes are deleted when they are mixed.
        progress: True shows it on standard error, as the command line does; a function is told how far a stage is, a
            few times a second and at the end. If it raises an error, that ends the call.
        **settings: at the top of the configuration, in place of what it says: ``processes=4``.

    Raises:
        Failed: if something has failed; what has not is done, and is in `Failed.result`.
        ToolkitError: for whatever else is wrong.
    """
    from toolkit.commands.making.run import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress) | part(overwrite, limit, shard)
    outcome = carried_out(Options(**how, per_shard=per_shard))
    return results.checked(results.ran(outcome, per_shard=per_shard), outcome)


@command
def ingest(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Ingested":
    """Make documents from the files of others, as ``toolkit ingest`` does. Arguments and errors as of `run`."""
    from toolkit.commands.making.ingest import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress) | part(overwrite, limit, shard)
    return made(results.Ingested, Options(**how))


@command
def align(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Aligned":
    """Make attribute sets from values of other programs, found by id, as ``toolkit align`` does.

    Arguments and errors as of `run`.
    """
    from toolkit.commands.making.align import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress)
    return made(results.Aligned, Options(**how, overwrite=overwrite))


@command
def tag(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    accept_code: Iterable[str] = (),
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Tagged":
    """Compute attributes of documents, as ``toolkit tag`` does.

    Arguments and errors as of `run`; `accept_code` names sets whose taggers were edited and give the same values: what
    was made is kept.
    """
    from toolkit.commands.making.tag import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress) | part(overwrite, limit, shard)
    return made(results.Tagged, Options(**how, accept_code=tuple(accept_code)))


@command
def dedup(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Resolved":
    """Find duplicates, as ``toolkit dedup`` does. Arguments and errors as of `run`."""
    from toolkit.commands.making.dedup import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress) | part(overwrite, limit, shard)
    return made(results.Resolved, Options(**how))


@command
def sample(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Resolved":
    """Draw samples with an exact number of documents, as ``toolkit sample`` does. Arguments and errors as of `run`."""
    from toolkit.commands.making.sample import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress) | part(overwrite, limit, shard)
    return made(results.Resolved, Options(**how))


@command
def annotate(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    retry_failed: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Annotated":
    """Let language models score or label documents, as ``toolkit annotate`` does.

    Arguments and errors as of `run`; with `retry_failed` what was refused, or could not be read, is asked again, too.
    """
    from toolkit.commands.making.annotate import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress) | part(overwrite, limit, shard)
    return made(results.Annotated, Options(**how, retry_failed=retry_failed))


@command
def calibrate(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    refit: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Resolved":
    """Make ranks and maps of scores, as ``toolkit calibrate`` does.

    Arguments and errors as of `run`; with `refit` maps are fitted anew, which otherwise stay as they were fitted first.
    """
    from toolkit.commands.making.calibrate import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress) | part(overwrite, limit, shard)
    return made(results.Resolved, Options(**how, refit=refit))


@command
def train(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Trained":
    """Train models on labels that attributes have, as ``toolkit train`` does. Arguments and errors as of `run`."""
    from toolkit.commands.making.train import Options
    from toolkit.in_python import results

    return made(
        results.Trained, Options(**configured(configuration, overrides, settings, progress), overwrite=overwrite)
    )


@command
def mix(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    lock: str | None = None,
    locked: str | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Mixed":
    """Join documents and attributes under rules, and write an output, as ``toolkit mix`` does.

    `lock` and `locked` are paths of locks: one that is written, and one by which the output is made. Other arguments,
    and errors, as of `run`.
    """
    from toolkit.commands.making.mix import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress) | part(overwrite, limit, shard)
    return made(results.Mixed, Options(**how, lock=lock, locked=locked))


@command
def tokenize(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    lock: str | None = None,
    locked: str | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Mixed":
    """Write the tokens of the documents that the mix keeps, or of all, as ``toolkit tokenize`` does.

    `lock` and `locked` are paths of locks: one that is written, and one by which the output is made. Other arguments,
    and errors, as of `run`.
    """
    from toolkit.commands.making.tokenize import Options
    from toolkit.in_python import results

    how = configured(configuration, overrides, settings, progress) | part(overwrite, limit, shard)
    return made(results.Mixed, Options(**how, lock=lock, locked=locked))


@command
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
    from toolkit.commands.publish import Options
    from toolkit.errors import Failed
    from toolkit.in_python import results

    options = looked_at(what, overrides, settings, progress)
    outcome = carried_out(Options(**options, to=os.fspath(to), public=public, dry_run=dry_run))
    result = results.typed(results.Published, outcome)
    if result.findings:
        raise Failed(result.findings, result)
    return results.checked(result, outcome)


@command
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
    from toolkit.commands.fetch import Options
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
            **carrying.shown(progress),
        )
    )
    return results.checked(results.typed(results.Fetched, outcome), outcome)
