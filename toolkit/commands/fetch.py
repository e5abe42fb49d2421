"""Fetch parts of some languages of a published output, and check them."""

import argparse
from typing import Annotated, ClassVar

from toolkit.command_options import CommandResult, Flag, Options as Common, Words, absent
from toolkit.data.dataset import ConfiguredPath, check_apart
from toolkit.errors import ConfigError, amount, few
from toolkit.execution.executors import Task
from toolkit.publish.fetching import FetchFolder, FetchJob, fetch, first_parts
from toolkit.publish.release import MOST_LISTED, Release, ReleasePart
from toolkit.stages.context import Context, Outcome, failures, table
from toolkit.storage.paths import check_writable
from toolkit.storage.store import note_roots
from toolkit.storage_options import Size, size_in_words


def _size(text: str) -> Size:
    try:
        return Size.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class Download(CommandResult, kw_only=True):
    """The result of `fetch`.

    Attributes:
        release, folder: Where the files are from, and where they are now.
        bytes: Size of all files, as stored.
        labels: Parts of each label.
        files: State of each file: there, fetched, replaced; not of a dry run.
        checksums: Paths of the checksum files that were written.
    """

    release: str
    folder: str
    bytes: int
    labels: dict[str, list[str]]
    files: dict[str, str] = absent()
    checksums: list[str] = absent()


class Options(Common, frozen=True, kw_only=True):
    """Options of ``toolkit fetch``.

    Attributes:
        targets: a published output: a folder, s3://…, http(s)://… or hf://datasets/USER/NAME; storage.KEY=VALUE
        label: a label to fetch, such as fr; may be repeated
        max: the most stored bytes of each label: 2GB, 500MB; only whole parts are fetched
        max_file: the most stored bytes of each file; by default those that are announced, or 4 GiB where none are
        max_list: the most bytes of a checksum file or manifest
        to: the folder to write in; by default one here, with the name of the release
        dry_run: fetch nothing; list the parts
    """

    EXAMPLES: ClassVar = (
        "toolkit fetch https://example.org/oscar --label fr --max 2GB",
        "toolkit fetch s3://bucket/oscar --label fr --label de --to data/oscar",
        "toolkit fetch hf://datasets/USER/NAME --label fr",
    )

    targets: Annotated[tuple[str, ...], Words("RELEASE")] = ()
    label: Annotated[tuple[str, ...], Flag(metavar="LABEL")] = ()
    max: Annotated[Size | None, Flag(metavar="SIZE", parse=_size)] = None
    max_file: Annotated[Size | None, Flag(metavar="SIZE", parse=_size)] = None
    max_list: Annotated[Size, Flag(metavar="SIZE", parse=_size)] = MOST_LISTED
    to: Annotated[str | None, Flag(metavar="FOLDER")] = None
    dry_run: Annotated[bool, Flag()] = False


def run(context: Context, options: Options) -> Outcome:
    """Fetch the missing parts, check all, and write their checksum files.

    Raises:
        ConfigError: if the release has not what is asked for, or the folder has something else.
    """
    if len(options.targets) != 1:
        raise ConfigError(f"expected one release, got {', '.join(options.targets) or 'none'}")
    note_roots(options.targets)
    release = Release(options.targets[0], options.max_list)
    if not options.label:
        raise ConfigError(f"expected --label, got none; {release.address} has {few(release.labels())}")
    parts = {label: release.parts(label) for label in options.label}
    folder = options.to or release.name
    note_roots([folder])
    check_apart([ConfiguredPath(folder, "what is fetched", "--to")], [ConfiguredPath(release.address, "the release")])
    check_writable(folder, "--to")
    target = FetchFolder(folder, release)
    chosen: dict[str, list[ReleasePart]] = {}
    rows = [["label", "parts", "of", "bytes", "of"]]
    for label, release_parts in parts.items():
        chosen[label] = target.with_those_there(release_parts, len(first_parts(label, release_parts, options.max)))
        sizes = [sum(part.size for part in parts) for parts in (chosen[label], release_parts)]
        rows.append([label, str(len(chosen[label])), str(len(release_parts)), f"{sizes[0]:,}", f"{sizes[1]:,}"])
    files = {file.path: file for parts in chosen.values() for part in parts for file in part.files}
    target.check(files.values())
    for file in files.values():
        if options.max_file is not None and file.size > options.max_file:
            got = f"got {file.size:,} of {file.path}"
            raise ConfigError(f"--max-file: expected files of at most {options.max_file:,} bytes, {got}; raise it")
    summary = table(rows, right=[1, 2, 3, 4])
    result = Download(
        release=release.address,
        folder=folder,
        bytes=sum(file.size for file in files.values()),
        labels={label: [part.path for part in parts] for label, parts in chosen.items()},
    )
    if options.dry_run:
        listed = "\n".join(f"{file.path}  {file.size:,}" for file in files.values())
        return Outcome(f"{listed}\n\n{summary}", result)
    context.sweep(folder)
    jobs = [
        FetchJob(release.at(file.path), target.path(file), file, target.was_fetched(file), options.max_file)
        for file in files.values()
    ]
    tasks = [Task(job.file.path, job, job.file.size or None) for job in jobs]
    results = context.run("fetch", fetch, tasks, "files")
    right = [files[result.name] for result in results if result.value]
    became = {result.name: str(result.value) for result in results if result.value}
    result.files, result.checksums = became, target.list_files(right)
    notes = [
        f"{job.target}: expected the checksum {job.file.digest}, got another file; fetched it again"
        for job in jobs
        if became.get(job.file.path) == "replaced"
    ]
    fetched = [files[name] for name, state in became.items() if state != "there"]
    message = (
        f"{folder}: fetched {amount(len(fetched), 'file')} ({size_in_words(sum(file.size for file in fetched))}), "
    )
    message += f"{len(right) - len(fetched)} were there; all {len(right)} match their checksums"
    failed = failures(results)
    return Outcome("\n".join([summary, "", *notes, message]), result, failed)
