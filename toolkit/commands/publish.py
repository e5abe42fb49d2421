"""Publish an output with its card and its Croissant file, after checks: in a folder, or on the Hugging Face Hub."""

from typing import Annotated, Any, ClassVar

from toolkit.command_options import CommandResult, Flag, Looking, Words, absent
from toolkit.commands import _sections as sections, validate
from toolkit.data.dataset import ConfiguredPath as Written, check_apart
from toolkit.distribution import NAME
from toolkit.errors import ConfigError, amount
from toolkit.execution.executors import Task
from toolkit.execution.progress import Progress
from toolkit.publish.fetching import FetchJob, fetch
from toolkit.publish.folder import PublicationFolder, credentials, files_of
from toolkit.publish.hub import BATCH, Repository
from toolkit.publish.release import FORM, ReleaseFile, is_hub, parse
from toolkit.stages.context import Context, Outcome, failures
from toolkit.storage.paths import check_writable, join
from toolkit.storage.store import note_roots
from toolkit.storage_options import size_in_words


class Publication(CommandResult, kw_only=True):
    """The result of `publish`.

    Attributes:
        output, to: The output, and the folder or the dataset of the Hugging Face Hub.
        bytes, files: Size of what is published, and its paths.
        findings: Results of the checks, with which nothing is published.
        became: State of each file: there, fetched (it was not there), replaced; not of a dry run.
        deleted: Paths that only the last publication had.
        private, page: Of a dataset of the Hub: whether it is private, and where people see it.
    """

    output: str
    to: str
    bytes: int
    files: list[str]
    findings: list[str] = absent()
    became: dict[str, str] = absent()
    deleted: list[str] = absent()
    private: bool = absent()
    page: str = absent()


class Options(Looking, frozen=True, kw_only=True):
    """Options of ``toolkit publish``.

    Attributes:
        targets: an output; settings, which override those of the file
        to: the folder to publish in, on disk or s3://…, or a dataset hf://datasets/USER/NAME
        public: let everybody see a dataset that the command creates on the Hub (private)
        dry_run: check, and list the files; write nothing
    """

    EXAMPLES: ClassVar = (
        "toolkit publish -c my/corpus.yaml --to s3://corpora/my-corpus",
        "toolkit publish data/quickstart/oscar --to published --dry-run",
        "toolkit publish -c my/corpus.yaml --to hf://datasets/USER/NAME",
    )

    targets: Annotated[tuple[str, ...], Words()] = ()
    to: Annotated[str, Flag(metavar="FOLDER")]
    public: Annotated[bool, Flag()] = False
    dry_run: Annotated[bool, Flag()] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.public and not is_hub(self.to):
            raise ConfigError(f"--public: expected --to {FORM}, got {self.to}")


def run(context: Context, options: Options) -> Outcome:
    """Check an output, then publish its files; the card is last.

    Raises:
        ConfigError: if the output is not ready to be published, or the place has something else.
    """
    output = _output(context, options)
    files = files_of(output)
    if is_hub(options.to):
        address = parse(options.to, "--to")
        repository: Repository | None = Repository(address, output, files, public=options.public)
    else:
        note_roots([options.to])
        check_apart([Written(options.to, "what is published", "--to")], [Written(output, "the output")])
        check_writable(options.to, "--to")
        place, repository = PublicationFolder(options.to, files), None
    findings = [*credentials(output, files), *_findings(context, options, output)]
    size = sum(file.size for file in files)
    result = Publication(output=output, to=options.to, bytes=size, files=[file.path for file in files])
    if findings:
        result.findings = findings
        message = f"{output}: {amount(len(findings), 'finding')}; nothing is published; correct that, then run again"
        return Outcome("\n".join([*findings, "", message]), result, exit_code=1)
    listed = f"{amount(len(files), 'file')} ({size_in_words(size)})"
    if options.dry_run:
        lines = [f"{file.path}  {file.size:,}" for file in files]
        where = f"{options.to}{_visibility(repository)}"
        return Outcome("\n".join([*lines, "", f"{output}: {listed} would be published in {where}"]), result)
    if repository:
        return _upload(repository, options, files, listed, result)
    context.sweep(options.to)
    data_files, card = files[:-1], files[-1:]
    results = _copy(context, output, place, data_files)
    failed = failures(results) or failures(results := [*results, *_copy(context, output, place, card)])
    became = {result.name: str(result.value) for result in results if result.value}
    result.became = became
    if failed:
        return Outcome("", result, failed)
    result.deleted = place.clear()
    return Outcome(f"{options.to}: {_summary(listed, became, result.deleted)}", result)


def _summary(listed: str, became: dict[str, str], deleted: list[str]) -> str:
    unchanged = sum(state == "there" for state in became.values())
    return f"{listed}; {len(became) - unchanged} written, {unchanged} were there, {len(deleted)} of before deleted"


def _upload(
    repository: Repository, options: Options, files: list[ReleaseFile], listed: str, result: Publication
) -> Outcome:
    """Upload the files missing on the Hub, commit and verify them."""
    missing = repository.missing
    became: dict[str, str] = {file.path: repository.became(file) for file in files}
    repository.create()
    with Progress("publish", [file.size for file in missing], "files", quiet=options.quiet) as progress:
        for at in range(0, len(missing), BATCH):
            batch = missing[at : at + BATCH]
            repository.upload(batch)
            for file in batch:
                progress.end(file.size, 0)
    deleted = repository.commit(f"Publish with {NAME}")
    failed = list(repository.differences())
    address = repository.address
    result.became, result.deleted = became, deleted
    result.private, result.page = repository.private, address.page
    message = f"{address}: {_summary(listed, became, deleted)}{_visibility(repository)}; {address.page}"
    return Outcome("" if failed else message, result, failed)


def _visibility(repository: Repository | None) -> str:
    """Return the visibility of a dataset of the Hub; empty for a folder."""
    if repository is None:
        return ""
    return ", a private dataset" if repository.private else ", a public dataset"


def _copy(context: Context, output: str, place: PublicationFolder, files: list[ReleaseFile]) -> list[Any]:
    """Copy files; return the results."""
    jobs = [
        FetchJob(join(output, file.path), join(place.folder, file.path), file, place.may_replace(file))
        for file in files
    ]
    return context.run("publish", fetch, [Task(job.file.path, job, job.file.size) for job in jobs], "files")


def _output(context: Context, options: Options) -> str:
    """Return the output by the command line or the configuration."""
    if options.config is not None:
        return sections.mix(context).output.path.rstrip("/")
    if len(options.targets) != 1:
        raise ConfigError(f"expected one output, got {', '.join(options.targets)}")
    return options.targets[0].rstrip("/")


def _findings(context: Context, options: Options, output: str) -> list[str]:
    """Return the findings of `toolkit validate` for an output.

    It checks parts, checksums, the card, and the Croissant file.
    """
    validation = validate.Options(targets=(output,), quiet=options.quiet, json=options.json)
    return [finding.message for finding in validate.run(context, validation).data.faults]
