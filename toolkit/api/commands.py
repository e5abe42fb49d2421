# mypy: disable-error-code="empty-body"
"""The commands as functions.

A function takes what the command takes, and returns the Struct that ``--json`` prints. It declares that alone:
`command` makes options of the arguments, runs the command in a session of its own, and returns its result. Nothing
here is heavy to import: commands are imported when they are called.
"""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast, overload

from toolkit.api import arguments
from toolkit.api.arguments import Configuration, Overrides, Progress, Target
from toolkit.errors import Failed
from toolkit.session import Session

if TYPE_CHECKING:
    from toolkit.commands._mix_finish import MixResult
    from toolkit.commands._mix_previews import MixComparison, MixPreview
    from toolkit.commands.align import Alignment
    from toolkit.commands.annotate import AnnotatedSets
    from toolkit.commands.compare import SetComparison
    from toolkit.commands.dedup import SetsOfWhole
    from toolkit.commands.evaluate import Evaluation
    from toolkit.commands.fetch import Download
    from toolkit.commands.ingest import IngestResult
    from toolkit.commands.publish import Publication
    from toolkit.commands.run import RunResult
    from toolkit.commands.stats import Statistics
    from toolkit.commands.status import PipelineStatus
    from toolkit.commands.tag import Tagging
    from toolkit.commands.takedown import TakenDown
    from toolkit.commands.trace import Trace
    from toolkit.commands.train import TrainResult
    from toolkit.commands.validate import Validation
    from toolkit.describe.disclosure import Disclosure
    from toolkit.report import facts

P = ParamSpec("P")
R = TypeVar("R")


def command(*, looks: bool = False, **fields: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of declarations: a call runs the command.

    Args:
        looks: True if findings, or open work, are a result and no error.
        **fields: Names of options, by that of an argument with another name, or with one or several texts.
    """

    def declared(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*positional: P.args, **named: P.kwargs) -> R:
            from toolkit import command_options
            from toolkit.command_options import CommandResult, FailedResult, fill_absent
            from toolkit.execution.executors import gc_unfrozen
            from toolkit.interrupts import interrupts_deferred
            from toolkit.stages.dispatch import run_command

            bound = signature.bind(*positional, **named)
            bound.apply_defaults()
            values, left_out = dict[str, Any](), list[str]()
            for name, value in bound.arguments.items():
                if value is None and signature.parameters[name].default is None:
                    left_out.append(name)
                else:
                    values[name] = value
            with Session().bound():
                class_ = command_options.find(function.__name__).Options
                options = arguments.options_of(class_, values, left_out, fields)
                with gc_unfrozen(), interrupts_deferred():
                    outcome = run_command(options)
                outcome.data.shown_as(outcome.text)
                result = outcome.data.for_python()
                if isinstance(result, CommandResult):  # not the facts of a report, which have all their fields
                    fill_absent(result)
                if outcome.exit_code and (not looks or isinstance(result, FailedResult)):
                    raise Failed(outcome.failures or getattr(result, "findings", None) or [outcome.text], result)
            return cast("R", result)

        return call

    return declared


def like(other: Callable[P, Any]) -> Callable[[Callable[[], R]], Callable[P, R]]:
    """Return a decorator like `command`, with another function's signature."""

    def declared(function: Callable[[], R]) -> Callable[P, R]:
        returns = inspect.signature(function).return_annotation
        vars(function)["__signature__"] = inspect.signature(other).replace(return_annotation=returns)
        return command()(function)  # type: ignore[arg-type]  # it has that signature now

    return declared


# --- commands that make something -------------------------------------------------------------------------------------


@command()
def run(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    per_shard: bool = False,
    progress: Progress = False,
    **settings: Any,
) -> "RunResult":
    """Run the sections of a configuration in order, as ``toolkit run`` does.

    Args:
        configuration: Path of a YAML file, YAML itself (a text of several lines), or the same as a mapping.
        overrides: ``["tag.lines-0.model=…"]``, or a mapping from such keys to values.
        overwrite: True to replace results with other settings.
        limit: Number of shards, or inputs, to process.
        shard: Share ``(i, n)``: only the share i of n, counted from 0.
        per_shard: True to finish input by input; documents and attributes are deleted after they are mixed.
        progress: True shows it on standard error, as the command line does; a function is told how far a stage is, a
            few times a second and at the end. If it raises an error, that ends the call.
        **settings: Settings at the top of the configuration, which override it: ``processes=4``.

    Raises:
        Failed: if something has failed; what has not is done, and is in `Failed.result`.
        ToolkitError: for whatever else is wrong.
    """


def _per_shard(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: Progress = False,
    **settings: Any,
) -> None: ...


@like(_per_shard)
def ingest() -> "IngestResult":
    """Make documents from external files, as ``toolkit ingest`` does. Arguments and errors as of `run`."""


@command()
def align(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    shard: tuple[int, int] | None = None,
    progress: Progress = False,
    **settings: Any,
) -> "Alignment":
    """Join external values to documents by id, as ``toolkit align`` does. Arguments and errors as of `run`."""


@command()
def tag(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    accept_code: Iterable[str] = (),
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: Progress = False,
    **settings: Any,
) -> "Tagging":
    """Compute attributes of documents, as ``toolkit tag`` does.

    Arguments and errors as of `run`; `accept_code` names sets whose taggers were edited and give the same values: what
    was made is kept.
    """


@like(_per_shard)
def dedup() -> "SetsOfWhole":
    """Find duplicates, as ``toolkit dedup`` does. Arguments and errors as of `run`."""


@like(_per_shard)
def sample() -> "SetsOfWhole":
    """Draw samples with an exact number of documents, as ``toolkit sample`` does. Arguments and errors as of `run`."""


@command()
def annotate(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    retry_failed: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: Progress = False,
    **settings: Any,
) -> "AnnotatedSets":
    """Let language models score or label documents, as ``toolkit annotate`` does.

    Arguments and errors as of `run`; with `retry_failed` what was refused, or could not be read, is asked again, too.
    """


@command()
def calibrate(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    refit: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    progress: Progress = False,
    **settings: Any,
) -> "SetsOfWhole":
    """Make ranks and maps of scores, as ``toolkit calibrate`` does.

    Arguments and errors as of `run`; with `refit` maps are fitted anew, which otherwise stay as they were fitted first.
    """


@command()
def train(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    progress: Progress = False,
    **settings: Any,
) -> "TrainResult":
    """Train models on labels in attributes, as ``toolkit train`` does. Arguments and errors as of `run`."""


@command()
def tokenize(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    lock: str | os.PathLike[str] | None = None,
    locked: str | os.PathLike[str] | None = None,
    progress: Progress = False,
    **settings: Any,
) -> "MixResult":
    """Write the tokens of documents, as ``toolkit tokenize`` does. These are the documents that the mix keeps, or all.

    `lock` and `locked` are paths of locks: one that is written, and one by which the output is made. Other arguments,
    and errors, as of `run`.
    """


@overload
def mix(
    configuration: Configuration,
    *,
    dry_run: Literal[True],
    overrides: Overrides = (),
    limit: int | None = None,
    progress: Progress = False,
    **settings: Any,
) -> "MixPreview": ...


@overload
def mix(
    configuration: Configuration,
    *,
    compare: Configuration,
    samples: int = 3,
    overrides: Overrides = (),
    limit: int | None = None,
    progress: Progress = False,
    **settings: Any,
) -> "MixComparison": ...


@overload
def mix(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    lock: str | os.PathLike[str] | None = None,
    locked: str | os.PathLike[str] | None = None,
    progress: Progress = False,
    **settings: Any,
) -> "MixResult": ...


@command(samples="count")
def mix(  # noqa: PLR0913  # each is an option, given by its name
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    overwrite: bool = False,
    limit: int | None = None,
    shard: tuple[int, int] | None = None,
    lock: str | os.PathLike[str] | None = None,
    locked: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    compare: Configuration | None = None,
    samples: int = 3,
    progress: Progress = False,
    **settings: Any,
) -> Any:
    """Join documents and attributes, apply rules, and write an output (``toolkit mix``).

    Args:
        configuration: Argument of `run`; `overrides`, `overwrite`, `limit`, `shard`, `progress` and settings, too.
        overrides: Overrides of the configuration.
        overwrite: True if an output of other settings is replaced.
        limit: Number of shards to process.
        shard: Share of the shards.
        lock: Path of a lock to write.
        locked: Path of a lock to reproduce.
        dry_run: True to write nothing, and return the effect of the rules.
        compare: Another configuration, to which changes are returned; nothing is written, and overrides and settings do
            not change it.
        samples: Number of documents to show for each kind of change.
        progress: True if it is shown.
        **settings: Settings at the top of the configuration.

    Raises:
        Failed: as `run`.
        ToolkitError: for whatever else is wrong.
    """


@command()
def publish(
    target: Target,
    to: str | os.PathLike[str],
    *,
    public: bool = False,
    dry_run: bool = False,
    overrides: Overrides = (),
    progress: Progress = False,
    **settings: Any,
) -> "Publication":
    """Publish an output with card and Croissant file, as ``toolkit publish`` does.

    Args:
        target: A configuration, or the path of an output.
        to: a folder on disk or in a bucket, or ``hf://datasets/USER/NAME``.
        public: True to make a new dataset of the Hugging Face Hub public.
        dry_run: True to check and list only.
        overrides: Argument of `run`.
        progress: Argument of `run`.
        **settings: Arguments of `run`.

    Raises:
        Failed: with what the checks found, or with the files that could not be published.
        ToolkitError: for whatever else is wrong.
    """


@command(release="targets", label="label")
def fetch(
    release: str | os.PathLike[str],
    label: str | Iterable[str],
    *,
    to: str | os.PathLike[str] | None = None,
    max: str | int | None = None,
    max_file: str | int | None = None,
    max_list: str | int = "64 MiB",
    dry_run: bool = False,
    progress: Progress = False,
    **settings: Any,
) -> "Download":
    """Fetch and check parts of a published output, as ``toolkit fetch`` does.

    Args:
        release: a folder, ``s3://…``, ``http(s)://…`` or ``hf://datasets/USER/NAME``.
        label: a label, such as ``fr``, or several.
        to: Folder; by default it has the name of the release.
        max: Largest number of stored bytes of each label, such as ``"2GB"``.
        max_file: Largest size of a file; by default the announced one, or 4 GiB.
        max_list: Largest size of a checksum file or a manifest.
        dry_run: True to list the parts only.
        progress: Argument of `run`.
        **settings: ``storage={"give_up": "10s"}``.

    Raises:
        Failed: if files could not be fetched; those that could are there.
        ToolkitError: for whatever else is wrong.
    """


@command()
def disclose(
    target: Target,
    *,
    of: Literal["dataset", "output"] | None = None,
    form: str | os.PathLike[str] = "eu-ai-act",
    domains: int = 1000,
    dry_run: bool = False,
    overwrite: bool = False,
    overrides: Overrides = (),
    progress: Progress = False,
    **settings: Any,
) -> "Disclosure":
    """Return a public summary of training content, as ``toolkit disclose`` writes it.

    Args:
        target: a configuration, or the path of an output or a dataset.
        of: Kind of `target`; by default the output, if there is a mix.
        form: Name of a form that ships, or path of a YAML file.
        domains: Number of registered domains to list, those with most words.
        dry_run: True to write nothing.
        overwrite: True to replace the disclosure of another dataset.
        overrides: Argument of `run`.
        progress: Argument of `run`.
        **settings: Arguments of `run`.

    Raises:
        ToolkitError: if files cannot be read, or the form is not what it should be.
    """


@command(files="targets")
def takedown(
    configuration: Configuration,
    files: str | Iterable[str],
    *,
    apply: bool = False,
    overrides: Overrides = (),
    progress: Progress = False,
    **settings: Any,
) -> "TakenDown":
    """Find listed documents and their copies; clear them with `apply`, like ``toolkit takedown``.

    Args:
        configuration: Argument of `run`.
        files: a list of ids, hosts and URLs, one a line, or several lists.
        apply: True to clear the documents, and keep the lists in the dataset.
        overrides: Argument of `run`.
        progress: Argument of `run`.
        **settings: Arguments of `run`.

    Raises:
        Failed: if shards could not be read, or cleared; the others are.
        ToolkitError: for whatever else is wrong.
    """


# --- commands that only look ------------------------------------------------------------------------------------------


@command(looks=True)
def status(configuration: Configuration, *, overrides: Overrides = (), **settings: Any) -> "PipelineStatus":
    """Return the state of a configuration's work, as ``toolkit status`` does.

    Arguments as of `run`. Open work is no error: see `PipelineStatus.done`.

    Raises:
        ToolkitError: if that cannot be told.
    """


@command()
def stats(
    target: Target,
    *,
    by: Iterable[str] = (),
    attributes: Iterable[str] = (),
    label: str | None = None,
    unicode_words: bool = False,
    first: int | None = None,
    overrides: Overrides = (),
    progress: Progress = False,
    **settings: Any,
) -> "Statistics":
    """Return counts of documents, lines, characters, bytes and words (``toolkit stats``).

    `target` as of `validate`. There is a table for each of `by`: label, source, crawl, host, or an expression as rules
    have it. `attributes` are those whose distributions are wanted, or values in them (``language.prob``). `label` is
    the expression of the label, if not that of the mix or the output. `unicode_words` counts words by Unicode's
    boundaries, too, and `first` limits the rows of each file that are read. Other arguments as of `run`.

    Raises:
        Failed: if files cannot be read.
        ToolkitError: for whatever else is wrong.
    """


@command(one="targets", other="targets", samples="count")
def compare(  # noqa: PLR0913  # each is an option, given by its name
    target: Configuration,
    one: str,
    other: str,
    *,
    sample: bool = False,
    samples: int = 3,
    seed: int = 0,
    limit: int | None = None,
    overrides: Overrides = (),
    progress: Progress = False,
    **settings: Any,
) -> "SetComparison":
    """Return the differences of two attribute sets, as ``toolkit compare`` shows them.

    `target` is a configuration, or a dataset's path. `one` and `other` are sets, or ``SET.KEY``, ``SET.KEY.field``.
    `sample` compares in the sample that ``toolkit tag --sample`` has made. `samples` documents are shown of each
    difference, drawn by `seed` where labels differ. Other arguments and errors as of `run`.
    """


@command(predictions="targets")
def evaluate(  # noqa: PLR0913  # each is an option, given by its name
    target: Configuration,
    predictions: str | Iterable[str],
    *,
    against: str | Mapping[str, Any],
    where: str | None = None,
    by: Iterable[str] = (),
    language: str | None = None,
    attributes: Iterable[str] = (),
    task: Literal["numbers", "score", "classes", "lists"] | None = None,
    scale: str | Mapping[str, Any] | None = None,
    rounds: int = 1000,
    seed: int = 0,
    top: int = 30,
    plots: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    overrides: Overrides = (),
    progress: Progress = False,
    **settings: Any,
) -> "Evaluation":
    """Return the agreement of predictions with labels, as ``toolkit evaluate`` shows it.

    Args:
        target: a configuration, or the path of a dataset.
        predictions: one expression, or two that are compared.
        against: Labels: an expression, or a mapping ``{"files": …, "id": …, "value": …}``.
        where: An expression, to select documents.
        by: Groups beside source, language and length.
        language: an expression for the language of documents.
        attributes: Sets to search for keys that several sets have.
        task: Kind of prediction, if values do not tell it.
        scale: Scale of the labels: ``{"range": [0, 5], "step": 1}``, ``{"values": […]}`` or ``"none"``.
        rounds: Rounds of the bootstrap.
        seed: Seed of its random numbers.
        top: Number of groups of each kind, the largest.
        plots: a folder for pictures.
        limit: Number of shards to process.
        overrides: Argument of `run`; `progress` and `settings`, too.
        progress: True to show progress.
        **settings: Settings at the top of the configuration.

    Raises:
        Failed: if some shards cannot be read; what the others give is in `Failed.result`.
        ToolkitError: for whatever else is wrong.
    """


@command()
def trace(
    configuration: Configuration | None = None,
    *,
    tokens: str | None = None,
    text: str | None = None,
    id: str | None = None,
    step: int | None = None,
    of: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    overrides: Overrides = (),
    progress: Progress = False,
    **settings: Any,
) -> "Trace":
    """Trace tokens to documents, or a document to its tokens (``toolkit trace``).

    Args:
        configuration: Argument of `run`; needed for `text` and `id`, and for facts about documents.
        tokens: ``FILE:A-B``: tokens of a file, counted from 0, B exclusive.
        text: Exact text to search for.
        id: an id or a URL.
        step: a step of training, from 1.
        of: Settings of the training program: a path of YAML, or the same as a mapping.
        overrides: Argument of `run`.
        progress: Argument of `run`.
        **settings: Arguments of `run`.

    Raises:
        ToolkitError: if there is no trace of the file, no document of the id, or no such step.
    """


@command(looks=True)
def validate(
    target: Target,
    *,
    overrides: Overrides = (),
    first: int | None = None,
    labels: Literal["known", "any"] = "known",
    lock: str | os.PathLike[str] | None = None,
    data: bool = False,
    progress: Progress = False,
    **settings: Any,
) -> "Validation":
    """Return problems of documents, attribute sets and outputs, as ``toolkit validate`` does.

    Findings are no error: the result is true if there are none. `target` is a configuration (a path that ends in .yaml
    or .yml, YAML, or a mapping), the path of a dataset, an output or a file, or several paths. `first` limits the rows
    of each file that are looked at, `labels` says which labels rows of an OSCAR release may have, `lock` is the path of
    a lock that the output is checked by, too. `data` asks for the files of external Croissant files, also from the web;
    other arguments as of `run`.

    Raises:
        ToolkitError: if something cannot be looked at.
    """


@command()
def report(
    target: Target,
    *,
    compare: Configuration | None = None,
    output: str | os.PathLike[str] | None = None,
    title: str | None = None,
    overwrite: bool = False,
    overrides: Overrides = (),
    limit: int | None = None,
    progress: Progress = False,
    **settings: Any,
) -> "facts.Report":
    """Return the facts of a report, as ``toolkit report`` writes them; write the page, too, if there is an `output`.

    `target` is a configuration, or the path of an output, or two. `compare` is another configuration, or the path of an
    output, that stands beside the first. `output` ends in ``.html``, or in ``.json``. `title` is that of the page.
    With `overwrite` it may replace another file, or the report on another dataset.
    Other arguments as of `run`.

    Raises:
        Failed: if shards cannot be read; or if the output is damaged, with the report in `Failed.result`.
        ToolkitError: for whatever else is wrong.
    """
