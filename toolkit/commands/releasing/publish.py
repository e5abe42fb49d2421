"""Publish an output with its card and its Croissant file, after checks."""

from typing import Annotated, Any, ClassVar

from toolkit.commands.command_line.options import Flag, Looking, Words
from toolkit.commands.looking import validate
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.description import settings_given
from toolkit.commands.steps.outcome import Outcome, failures
from toolkit.config.sizes import in_words
from toolkit.data.places import Place as Written
from toolkit.data.places import check_apart
from toolkit.errors import ConfigError, amount
from toolkit.releases.fetching import FetchJob, fetch
from toolkit.releases.publishing import Place, credentials, files_of
from toolkit.releases.release import File
from toolkit.runs.executors import Task
from toolkit.storage.paths import check_writable, join


class Options(Looking, frozen=True, kw_only=True):
    """Options of ``toolkit publish``."""

    EXAMPLES: ClassVar = (
        "toolkit publish -c my/corpus.yaml --to s3://corpora/my-corpus",
        "toolkit publish data/quickstart/oscar --to published --dry-run",
    )

    targets: Annotated[tuple[str, ...], Words("an output; with -c, settings that override the file's")] = ()
    to: Annotated[str, Flag("the folder to publish in, on disk or s3://…", metavar="FOLDER")]
    dry_run: Annotated[bool, Flag("check, and list the files; write nothing")] = False


def run(context: Context, options: Options) -> Outcome:
    """Check an output, then copy what is published of it; the card is last.

    Raises:
        ConfigError: if the output is not ready to be published, or the place has something else.
    """
    output = _output(context, options)
    if options.to.startswith("hf://"):
        raise ConfigError(
            f"--to: expected a folder on disk or s3://…, got {options.to}: publish in a folder, then upload that with "
            "the tool of the Hub, `hf upload`"
        )
    files = files_of(output)
    check_apart([Written(options.to, "what is published", "--to")], [Written(output, "the output")])
    check_writable(options.to, "--to")
    place = Place(options.to, files)
    findings = [*credentials(output, files), *_findings(context, options, output)]
    size = sum(file.size for file in files)
    data: dict[str, Any] = {"output": output, "to": options.to, "bytes": size, "files": [file.path for file in files]}
    if findings:
        told = f"{output}: {amount(len(findings), 'finding')}; nothing is published"
        return Outcome("\n".join([*findings, "", told]), data | {"findings": findings}, exit_code=1)
    listed = f"{amount(len(files), 'file')} ({in_words(size)})"
    if options.dry_run:
        lines = [f"{file.path}  {file.size:,}" for file in files]
        return Outcome("\n".join([*lines, "", f"{output}: {listed} would be published in {options.to}"]), data)
    context.sweep(options.to)
    data_files, card = files[:-1], files[-1:]
    results = _copy(context, output, place, data_files)
    failed = failures(results) or failures(results := [*results, *_copy(context, output, place, card)])
    became = {result.name: str(result.value) for result in results if result.value}
    data |= {"became": became}
    if failed:
        return Outcome("", data, failed, 1)
    gone = place.clear()
    there = sum(what == "there" for what in became.values())
    told = f"{options.to}: {listed}; {len(files) - there} written, {there} were there, {len(gone)} of before deleted"
    return Outcome(told, data | {"deleted": gone})


def _copy(context: Context, output: str, place: Place, files: list[File]) -> list[Any]:
    """Return what became of the copies of files."""
    jobs = [
        FetchJob(join(output, file.path), join(place.folder, file.path), file, place.may_replace(file))
        for file in files
    ]
    return context.run("publish", fetch, [Task(job.file.path, job, job.file.size) for job in jobs], "files")


def _output(context: Context, options: Options) -> str:
    """Return the output that the command line names, or the configuration's."""
    if options.config is not None:
        return context.mix.output.path.rstrip("/")
    settings_given(context)
    if len(options.targets) != 1:
        raise ConfigError(f"expected one output, got {', '.join(options.targets)}")
    return options.targets[0].rstrip("/")


def _findings(context: Context, options: Options, output: str) -> list[str]:
    """Return what `toolkit validate` finds in an output: parts, checksums, the card, the Croissant file."""
    asked = validate.Options(targets=(output,), quiet=options.quiet, json=options.json)
    found: list[str] = validate.run(context, asked).data["findings"]
    return found
