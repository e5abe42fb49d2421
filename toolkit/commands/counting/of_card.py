"""Numbers for a dataset card that no record has: documents are counted as `toolkit stats` counts them."""

import tempfile
from collections.abc import Callable
from dataclasses import replace

import msgspec

from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import failures
from toolkit.commands.steps.stats_files import Counting, prepare, prepare_dataset
from toolkit.errors import ConfigError, MissingExtra, ToolkitError
from toolkit.inspect.describe.about import About
from toolkit.inspect.describe.card import numbers
from toolkit.inspect.describe.card.numbers import Numbers
from toolkit.inspect.describe.facts import Facts
from toolkit.inspect.documents import FileDocuments
from toolkit.inspect.stats.merging import merged_groups, merged_records
from toolkit.inspect.stats.one_file import Settings, count_file
from toolkit.inspect.stats.sketch import Sketch
from toolkit.inspect.stats.tables import Table
from toolkit.inspect.stats.thresholds import compared
from toolkit.runs.executors import Task
from toolkit.storage.paths import join, size_of

_BY = {"label": 1 << 20, "host": 20}
"""What documents are grouped by, and the groups that are shown."""

Prepare = Callable[[Settings, str], Counting]


def counted(context: Context, facts: Facts, about: About, first: int | None, *, keep: bool) -> Numbers:
    """Return what is counted of the documents that are described, and of the attributes that they were made by.

    Args:
        context: of the command.
        facts: about the documents.
        about: settings: of samples, and whether attributes are read.
        first: documents of each file that are read; None for all.
        keep: whether counts are kept, as `toolkit stats` keeps them.

    Raises:
        ToolkitError: naming files that cannot be read.
    """
    settings = Settings(by=list(_BY), lengths=True, samples=about.examples, first=first)
    of_files = not (facts.is_output or context.options.targets)  # else of the dataset of the configuration

    def documents(settings: Settings, temporary: str) -> Counting:
        if of_files:
            return prepare_dataset(context, context.dataset, settings, temporary, keep=keep)
        return prepare(context, [facts.root], settings, temporary, keep=keep)

    if facts.is_output:
        found = _documents(context, documents, settings)
        if not (about.scores and context.has("mix")):
            return found
        return _with_scores(context, facts, found, Settings(by=[], first=first), keep=keep)
    if not about.scores:
        return _documents(context, documents, settings)
    if note := _missing():
        found = _documents(context, documents, settings)
        return replace(found, notes=[*found.notes, note])
    try:
        return _documents(context, documents, msgspec.structs.replace(settings, attributes=["all"]))
    except ConfigError:  # there are no attributes
        return _documents(context, documents, settings)


def _documents(context: Context, prepared: Prepare, settings: Settings) -> Numbers:
    with tempfile.TemporaryDirectory(prefix="toolkit-card-") as temporary:
        try:
            counting = prepared(settings, temporary)
            _check_readable(counting)
        except MissingExtra as error:
            return Numbers(notes=[f"no lengths, hosts and samples: {error}"])
        _count(context, counting)
        merged = merged_records(counting.works)
        labels, hosts = (
            Table.of(by, merged_groups(counting.works, number, join(temporary, by)), most, unicode=False)
            for number, (by, most) in enumerate(_BY.items())
        )
        notes = [line for line in counting.notes.splitlines() if line]
        return Numbers(labels, hosts, merged.lengths, merged.samples, merged.distributions, counting.rules, notes)


def _check_readable(counting: Counting) -> None:
    """Raise MissingExtra if the files need a package that is not there."""
    for work in counting.works[:1]:
        if work.file:
            next(iter(FileDocuments(work.file, work.writer, work.max_document_bytes, {}, work.types)), None)


def _with_scores(context: Context, facts: Facts, found: Numbers, settings: Settings, *, keep: bool) -> Numbers:
    """Return the numbers with the distributions of what rules compare, and of tokens and personal data."""
    rules = [rule for stream in context.mix.streams for rule in stream.rules]
    names = [name for name in compared(rules) if numbers.root(name) in facts.taggers]
    names += [*numbers.tokens_of(facts), *numbers.personal_of(facts)]
    if not names:
        return found
    if note := _missing():
        return replace(found, notes=[*found.notes, note])
    settings = msgspec.structs.replace(settings, attributes=list(dict.fromkeys(names)))
    try:
        with tempfile.TemporaryDirectory(prefix="toolkit-card-") as temporary:
            counting = prepare(context, (), settings, temporary, keep=keep)
            _count(context, counting)
            merged = merged_records(counting.works)
    except ToolkitError as error:
        return replace(found, notes=[*found.notes, f"no scores: {error}"])
    return replace(found, distributions=merged.distributions, rules=counting.rules)


def _missing() -> str:
    """Return a note that scores need a package that is not there; empty if it is."""
    try:
        Sketch()
    except MissingExtra as error:
        return f"no scores: {error}"
    return ""


def _count(context: Context, counting: Counting) -> None:
    context.sweep(*{work.folder: None for work in counting.works})
    tasks = [Task(work.path, work, size_of(work.path)) for work in counting.works]
    if failed := failures(context.run("count", count_file, tasks, counting.unit)):
        raise ToolkitError("\n".join(failed))
