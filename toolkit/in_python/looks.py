"""The commands that only look as functions, like those of `toolkit.in_python.calls`."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from toolkit.in_python import carrying
from toolkit.in_python.carrying import (
    Configuration,
    Overrides,
    carried_out,
    command,
    configured,
    looked_at,
    made,
    of_dataset,
)

if TYPE_CHECKING:
    from toolkit.in_python import results
    from toolkit.report import facts
    from toolkit.runs.progress import Reached


@command
def dry_run(
    configuration: Configuration,
    *,
    overrides: Overrides = (),
    limit: int | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Previewed":
    """Return what the rules of a mix would do, as ``toolkit mix --dry-run`` shows it; no output is written.

    Arguments and errors as of `run`.
    """
    from toolkit.commands.making.mix import Options
    from toolkit.in_python import results

    options = Options(
        **configured(configuration, overrides, settings, progress),
        limit=carrying.positive("limit", limit),
        dry_run=True,
    )
    return made(results.Previewed, options)


@command
def compare(
    configuration: Configuration,
    other: Configuration,
    *,
    overrides: Overrides = (),
    samples: int = 3,
    limit: int | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Compared":
    """Return what changes from the mix of a configuration to that of another, as ``toolkit mix --compare`` shows it.

    No output is written. Arguments and errors as of `run`; `other` is the second configuration, which overrides and
    settings do not change, and `samples` says how many documents are shown for each kind of change.
    """
    from toolkit.commands.making.mix import Options
    from toolkit.in_python import results

    options = Options(
        **configured(configuration, overrides, settings, progress),
        limit=carrying.positive("limit", limit),
        compare=carrying.named(other),
        other=carrying.read(other),
        count=carrying.positive("samples", samples),
    )
    return made(results.Compared, options)


@command
def evaluate(  # noqa: PLR0913  # each is an option, given by its name
    what: Configuration,
    predictions: str | Iterable[str],
    *,
    against: str | Mapping[str, Any],
    where: str | None = None,
    by: Iterable[str] = (),
    language: str | None = None,
    attributes: Iterable[str] = (),
    task: Literal["numbers", "score", "classes", "lists"] | None = None,
    scale: "str | Mapping[str, Any] | None" = None,
    rounds: int = 1000,
    seed: int = 0,
    top: int = 30,
    plots: str | os.PathLike[str] | None = None,
    overrides: Overrides = (),
    limit: int | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Evaluated":
    """Return how well predictions agree with labels, as ``toolkit evaluate`` shows it.

    Args:
        what: a configuration, or the path of a dataset.
        predictions: one expression, or two that are compared.
        against: the labels: an expression, or a mapping ``{"files": …, "id": …, "value": …}``.
        where: an expression: only documents for which it is true.
        by: more groups than source, language and length.
        language: an expression for the language of documents.
        attributes: sets whose keys are meant where several have one.
        task: what is predicted, if values do not tell it.
        scale: of the labels: ``{"range": [0, 5], "step": 1}``, ``{"values": […]}`` or ``"none"``.
        rounds: of the bootstrap.
        seed: of its random numbers.
        top: groups of each kind, the largest.
        plots: a folder for pictures.
        overrides: as of `run`; `limit`, `progress` and `settings`, too.
        limit: only the first so many shards.
        progress: whether it is shown.
        **settings: at the top of the configuration.

    Raises:
        Failed: if some shards cannot be read; what the others give is in `Failed.result`.
        ToolkitError: for whatever else is wrong.
    """
    from toolkit.commands.evaluate import Options
    from toolkit.in_python import results

    options = Options(
        **of_dataset(what, overrides, settings, progress),
        targets=(predictions,) if isinstance(predictions, str) else tuple(predictions),
        against=carrying.as_text(against),
        where=where,
        by=tuple(by),
        language=language,
        attributes=tuple(attributes),
        task=task,
        scale=None if scale is None else carrying.as_text(scale),
        rounds=carrying.positive("rounds", rounds) or 0,
        seed=seed,
        top=carrying.positive("top", top) or 0,
        plots=None if plots is None else os.fspath(plots),
        limit=carrying.positive("limit", limit),
    )
    return made(results.Evaluated, options)


@command
def compare_sets(
    what: Configuration,
    one: str,
    other: str,
    *,
    sample: bool = False,
    samples: int = 3,
    seed: int = 0,
    overrides: Overrides = (),
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.ComparedSets":
    """Return how two attribute sets of the same documents differ, as ``toolkit compare`` shows it.

    `what` is a configuration, or the path of a dataset. `one` and `other` are sets, or ``SET.KEY``, ``SET.KEY.field``.
    `sample` compares in the sample that ``toolkit tag --sample`` has made. `samples` documents are shown of each
    difference, drawn by `seed` where labels differ. Other arguments and errors as of `run`.
    """
    from toolkit.commands.compare import Options
    from toolkit.in_python import results

    options = Options(
        **of_dataset(what, overrides, settings, progress),
        targets=(one, other),
        sample=sample,
        count=carrying.positive("samples", samples),
        seed=seed,
    )
    return made(results.ComparedSets, options)


@command
def validate(
    what: Configuration | Iterable[str | os.PathLike[str]],
    *,
    overrides: Overrides = (),
    first: int | None = None,
    labels: Literal["known", "any"] = "known",
    lock: str | None = None,
    data: bool = False,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Validated":
    """Return what is wrong with documents, attribute sets and outputs, as ``toolkit validate`` does.

    Findings are no error: the result is true if there are none. `what` is a configuration (a path that ends in .yaml or
    .yml, YAML, or a mapping), the path of a dataset, an output or a file, or several paths. `first` limits the rows of
    each file that are looked at, `labels` says which labels rows of an OSCAR release may have, `lock` is the path of
    a lock that the output is checked by, too. `data` asks for the files of external Croissant files, also from the web;
    other arguments as of `run`.

    Raises:
        ToolkitError: if something cannot be looked at.
    """
    from toolkit.commands.validate import Options
    from toolkit.in_python import results

    options = Options(
        **looked_at(what, overrides, settings, progress),
        first=carrying.positive("first", first),
        labels=labels,
        lock=lock,
        data=data,
    )
    return results.typed(results.Validated, carried_out(options))


@command
def stats(
    what: Configuration | Iterable[str | os.PathLike[str]],
    *,
    by: Iterable[str] = (),
    attributes: Iterable[str] = (),
    label: str | None = None,
    unicode_words: bool = False,
    first: int | None = None,
    overrides: Overrides = (),
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "results.Counted":
    """Return counts of documents, lines, characters, bytes and words, as ``toolkit stats`` does.

    `what` as of `validate`. There is a table for each of `by`: label, source, crawl, host, or an expression as rules
    have it. `attributes` are those whose distributions are wanted, or values in them (``language.prob``). `label` is
    the expression of the label, if not that of the mix or the output. `unicode_words` counts words by Unicode's
    boundaries, too, and `first` limits the rows of each file that are read. Other arguments as of `run`.

    Raises:
        Failed: if files cannot be read.
        ToolkitError: for whatever else is wrong.
    """
    from toolkit.commands.stats import Options
    from toolkit.in_python import results

    options = Options(
        **looked_at(what, overrides, settings, progress),
        by=carrying.words("by", by),
        attributes=carrying.words("attributes", attributes),
        label=label,
        unicode_words=unicode_words,
        first=carrying.positive("first", first),
    )
    return made(results.Counted, options)


@command
def status(configuration: Configuration, *, overrides: Overrides = (), **settings: Any) -> "results.Status":
    """Return which work of a configuration is done, has failed or is running, as ``toolkit status`` does.

    Arguments as of `run`. What is not done is no error: `Status.done` says it.

    Raises:
        ToolkitError: if that cannot be told.
    """
    from toolkit.commands.looking.status import Options
    from toolkit.in_python import results

    options = Options(**configured(configuration, overrides, settings, progress=False))
    return results.typed(results.Status, carried_out(options))


@command
def report(
    what: Configuration | Iterable[str | os.PathLike[str]],
    *,
    compare: Configuration | None = None,
    output: str | os.PathLike[str] | None = None,
    title: str | None = None,
    overwrite: bool = False,
    overrides: Overrides = (),
    limit: int | None = None,
    progress: "Callable[[Reached], object] | bool" = False,
    **settings: Any,
) -> "facts.Report":
    """Return the facts of a report, as ``toolkit report`` writes them; write the page, too, if there is an `output`.

    `what` is a configuration, or the path of an output, or two. `compare` is another configuration, or the path of an
    output, that stands beside the first. `output` ends in ``.html``, or in ``.json``. `title` is that of the page.
    With `overwrite` it may replace another file, or the report on another dataset.
    Other arguments as of `run`.

    Raises:
        Failed: if shards cannot be read; or if the output is damaged, with the report in `Failed.result`.
        ToolkitError: for whatever else is wrong.
    """
    import tempfile

    import msgspec

    from toolkit.commands.report import Options
    from toolkit.errors import Failed
    from toolkit.report import facts

    with tempfile.TemporaryDirectory(prefix="toolkit-report-") as temporary:
        path = os.path.join(temporary, "report.json")
        options = Options(
            **looked_at(what, overrides, settings, progress),
            compare=None if compare is None else carrying.named(compare),
            other=carrying.read(compare) if compare is not None and carrying.is_configuration(compare) else None,
            title=title,
            overwrite=overwrite,
            limit=carrying.positive("limit", limit),
            output=path,
            page=None if output is None else os.fspath(output),
        )
        outcome = carried_out(options)
        found = None
        if os.path.exists(path):
            with open(path, "rb") as file:
                found = msgspec.json.decode(file.read(), type=facts.Report)
        if found is None or outcome.exit_code:
            raise Failed(outcome.failures or [outcome.text], found)
        return found
