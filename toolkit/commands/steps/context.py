"""The commands, a file each: a function from options to an `Outcome`. The command line is a thin skin over them."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, Self, TypeVar

from toolkit.config import settings as config
from toolkit.config.settings import Config, Source
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.errors import ConfigError, DataError, NothingThere
from toolkit.ingest import plan as ingest_plan
from toolkit.ingest.shares import Share
from toolkit.interop.dolma import is_dolma, pointers
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.runs import claims, workers
from toolkit.runs.executors import P, R, Report, Result, Task
from toolkit.runs.progress import Progress
from toolkit.storage.concurrent import for_each
from toolkit.storage.options import StorageOptions, set_options
from toolkit.storage.paths import join, remove_stale_temporaries, size_of
from toolkit.storage.roots import note_roots


@dataclass(frozen=True)
class Options:
    """What the command line says, for all commands.

    Attributes:
        command: its name.
        config: path of the configuration; None where a command can do without.
        overrides: ``key=value``.
        dry_run: show what would be done.
        overwrite: replace what was made with other settings.
        accept_code: sets whose taggers' code has changed and whose values have not.
        limit: at most so many shards.
        per_shard: whether a run deletes documents and attributes when their part of the mix is there.
        shard: only those of one of several shares, and how many shares there are.
        json: results for machines.
        quiet: no progress.
        debug: tracebacks of failures.
        targets: paths or shards.
        first: at most so many rows of a file.
        count: how many documents to show.
        id: of the document to show.
        explain: id of the document to explain, or how many for each rule.
        compare: another configuration, of which the differences are to be shown.
        sample: text or documents on which taggers are tried.
        lines: whether each line of a text is a document.
        files: with taggers to be listed, too.
        of: whether the dataset or the output is to be described.
        spec: version of a specification.
        check: only say whether it is up to date.
        by: what statistics are grouped by.
        label: expression of the label that they have.
        attributes: whose distributions they have.
        histogram: attribute to draw.
        unicode_words: count these, too.
        mix: what a mix has noted, before and after.
        format: of tables.
        top: so many groups.
        output: file for what is else printed.
        labels: that rows of a release may have.
    """

    command: str = ""
    config: str | None = None
    overrides: tuple[str, ...] = ()
    dry_run: bool = False
    overwrite: bool = False
    accept_code: Sequence[str] = ()
    limit: int | None = None
    per_shard: bool = False
    shard: tuple[int, int] | None = None
    json: bool = False
    quiet: bool = False
    debug: bool = False
    targets: tuple[str, ...] = ()
    first: int | None = None
    count: int = 3
    id: str | None = None
    explain: str | None = None
    compare: str | None = None
    sample: str | None = None
    lines: bool = False
    files: Sequence[str] = ()
    of: str | None = None
    spec: str | None = None
    check: bool = False
    by: Sequence[str] = ()
    label: str | None = None
    attributes: Sequence[str] = ()
    histogram: str | None = None
    unicode_words: bool = False
    mix: bool = False
    format: str | None = None
    top: int | None = None
    output: str | None = None
    labels: Literal["known", "any"] = "known"


@dataclass
class Outcome:
    """What a command did.

    Attributes:
        text: for people.
        data: the same for machines.
        failures: messages; any makes the exit status 1.
        exit_code: of the process.
    """

    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    exit_code: int = 0


@dataclass
class _Stage:
    """What is being worked on: the keys of the tasks by name, and of those that have begun."""

    keys: dict[str, str]
    doing: set[str] = field(default_factory=set)


@dataclass
class Context:
    """A configuration that is being worked on; a context manager that ends the processes which it has begun."""

    options: Options
    config: Config
    source: Source
    _stages: dict[str, _Stage] = field(default_factory=dict)
    _progress: Progress | None = None
    _stage: _Stage = field(default_factory=lambda: _Stage({}))
    _inputs: tuple[list[ingest_plan.InputToIngest], list[NothingThere]] | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError if there is no such executor."""
        chosen = workers.read(self.config.executor, self.source)
        self._workers = workers.Workers(chosen, self.config.processes, self._report, self._begun)

    @property
    def dataset(self) -> Dataset:
        found = self.config
        try:
            return open_dataset(found.dataset, found.documents, found.attributes)
        except ConfigError as error:
            raise self.source.error((), str(error)) from None

    @property
    def folder(self) -> str:
        """Of the configuration, which included files are relative to."""
        return os.path.dirname(self.options.config or "")

    def section(self, name: str) -> Source:
        """A section of the configuration.

        Raises:
            ConfigError: if it is not there.
        """
        if not getattr(self.config, name):
            raise self.source.error((), f"expected a section `{name}:`, got none")
        return self.source.at(name)

    @property
    def is_dolma(self) -> bool:
        """Whether the configuration is one of Dolma's."""
        return is_dolma(self.source)

    @property
    def has_dataset(self) -> bool:
        """Whether the configuration names a dataset of its own; the streams of a mix may name theirs."""
        return self.config.dataset is not None or self.config.documents is not None

    @cached_property
    def entries(self) -> list[ingest_plan.Entry]:
        """The entries of the section ``ingest:``; none if there is no such section."""
        return ingest_plan.read_section(self.section("ingest")) if self.has("ingest") else []

    def has(self, name: str) -> bool:
        return bool(getattr(self.config, name))

    def run(
        self,
        what: str,
        function: Callable[[P, Report], R],
        tasks: Iterable[Task[P]],
        unit: str = "shards",
        *,
        spreads: bool = False,
        at_once: int | None = None,
        failed: FailureRecords | None = None,
    ) -> list[Result[R]]:
        """Runs tasks on the configured executor, with progress; results in the order of the tasks.

        Args:
            what: the stage.
            function: of the tasks.
            tasks: to run.
            unit: what tasks are.
            spreads: whether a task can use several processes; its payload says how many.
            at_once: at most so many tasks, if not as many as there are processes.
            failed: where failures are noted, by the keys of the tasks.
        """
        listed = self._workers.spread(tasks) if spreads else list(tasks)
        self._stage = _Stage({task.name: task.key for task in listed})
        if failed:
            self._stages[failed.stage] = self._stage
        with Progress(what, len(listed), unit, quiet=self.options.quiet) as progress:
            self._progress = progress
            found: dict[str, Result[R]] = {}
            for result in self._workers.executor(len(listed)).run(function, listed, at_once=at_once):
                found[result.name] = result
                progress.advance()
                if failed:
                    self._note(failed, result)
                if result.failure and not self.options.quiet:
                    print(f"failed: {result.failure.message}", file=sys.stderr)
                    if self.options.debug and result.failure.details:
                        print(result.failure.details, file=sys.stderr)
        return [found[task.name] for task in listed]

    def _report(self, documents: int, size: int) -> None:
        if self._progress:
            self._progress.report(documents, size)

    def _begun(self, name: str) -> None:
        self._stage.doing.add(self._stage.keys[name])

    def _note(self, failed: FailureRecords, result: Result[Any]) -> None:
        key = self._stage.keys[result.name]
        self._stage.doing.discard(key)
        if why := result.failure:
            failed.note(key, FailureRecord(task=result.name, message=why.message, details=why.details))
        else:
            failed.forget(key)

    def claimed(self, folder: str, what: str, holds: Mapping[str, str]) -> AbstractContextManager[None]:
        """While a run works on something, no other does with other settings; see `toolkit.runs.claims`.

        Args:
            folder: the bookkeeping folder of a dataset or an output.
            what: is worked on, for messages.
            holds: digests of the settings; empty where no other run may work.
        """
        share = "" if self.options.shard is None else " --shard {}/{}".format(*self.options.shard)
        run = f"toolkit {self.options.command}{share}"

        def doing() -> dict[str, list[str]]:
            return {name: sorted(stage.doing.copy()) for name, stage in self._stages.copy().items()}

        return claims.claimed(join(folder, "claims"), what, holds, run, doing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the processes that worked for it."""
        self._workers.close()

    def inputs(self, *, there: bool = False, asks_web: bool = True) -> list[ingest_plan.InputToIngest]:
        """The inputs of the section ``ingest:``, sorted by shard; they are listed once.

        Args:
            there: leave out what is not there any more, and say nothing of it.
            asks_web: whether the web may be asked; if it must be, and may not, there are none.

        Raises:
            ConfigError: for whatever is wrong with the section, or is not there.
            DataError: if they cannot be listed.
        """
        if self._inputs is None:
            self.section("ingest")  # or else there is none, which is an error
            entries, absent = self.entries, list[NothingThere]()
            if not asks_web and any(map(ingest_plan.is_on_the_web, entries)):
                return []
            limit, overwrite = self.config.max_document_bytes, self.options.overwrite
            planned = ingest_plan.plan(entries, self.dataset, limit, overwrite=overwrite, absent=absent)
            self._inputs = planned, absent
        found, absent = self._inputs
        if absent and not there:
            raise absent[0]
        return found

    @cached_property
    def share(self) -> Share | None:
        """The share of the run; None if the run is not one of several.

        Raises:
            ConfigError: if the inputs cannot be listed, so that nobody knows whose they are.
        """
        if self.options.shard is None:
            return None
        try:
            inputs = self.inputs(there=True) if self.has("ingest") else []
        except DataError as error:
            raise ConfigError(
                f"--shard: the inputs cannot be listed, and they tell what the share owns: {error}; mend that, or use "
                "a configuration without `ingest:`, for which the documents are shared as they are"
            ) from None
        return Share(*self.options.shard, self.dataset if self.has_dataset else None, inputs)

    def is_mine(self, dataset: Dataset, shard: str) -> bool:
        """Whether a shard of a dataset is in this run's share."""
        return self.share is None or self.share.owns(dataset, shard)

    def limited(self, shards: list[str]) -> list[str]:
        """At most so many as asked for."""
        return shards[: self.options.limit]

    @property
    def only_warns(self) -> bool:
        """Whether what a whole run refuses is only told: of some shards, or where nothing is written."""
        options = self.options
        return self.in_part or options.dry_run or options.explain is not None or options.compare is not None

    @staticmethod
    def warn(messages: Iterable[str]) -> None:
        """Tells on standard error what the user should know, and nothing is refused for."""
        for message in messages:
            print(f"warning: {message}", file=sys.stderr)

    @property
    def in_part(self) -> bool:
        """Whether some shards are left to other runs."""
        return self.options.limit is not None or self.options.shard is not None

    def sweep(self, *roots: str) -> None:
        """Deletes temporary files that killed runs left below the roots."""
        count = sum(remove_stale_temporaries(root) for root in roots)
        if count and not self.options.quiet:
            print(f"deleted {count} temporary files of runs that were killed", file=sys.stderr)


def open_context(options: Options) -> Context:
    """Reads the configuration; without one, all settings have their defaults."""
    if options.config is None:
        return Context(options, Config(), Source({}))
    source = config.load_source(options.config, list(options.overrides))
    pointers.check(source)
    if is_dolma(source):
        return Context(options, Config(), source)
    found = config.convert(source, Config)
    set_options(found.storage)
    output = found.mix.get("output")
    places = (found.dataset, found.mix.get("rejected"), output.get("path") if isinstance(output, dict) else None)
    note_roots(place for place in places if isinstance(place, str) and place and "\0" not in place)
    return Context(options, found, source)


Command = Callable[[Context], Outcome]


class _OfShard(Protocol):
    @property
    def shard(self) -> str: ...


W = TypeVar("W", bound=_OfShard)


def shard_tasks(dataset: Dataset, works: Iterable[W]) -> list[Task[W]]:
    """A task for each shard, named by its path, with its size."""
    named = [(dataset.shard_path(work.shard), work) for work in works]
    sizes = for_each(size_of, [path for path, _ in named])
    return [Task(path, work, size, key=work.shard) for (path, work), size in zip(named, sizes, strict=True)]


def failures(results: Iterable[Result[Any]]) -> list[str]:
    """Messages of the failed tasks."""
    return [result.failure.message for result in results if result.failure]


def table(rows: list[list[str]], right: Iterable[int] = ()) -> str:
    """Rows as text in columns, the first row a head; columns in `right` are aligned right."""
    if not rows:
        return ""
    right = set(right)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(line.rstrip() for line in lines)


def show_plan(context: Context, plan: dict[str, Any]) -> Outcome:
    """The outcome of a dry run; of a share, with what it has of all that there is."""
    if context.share:
        plan = {"share": context.share.plan(), **plan}
    resolved = config.plain(context.config)
    return Outcome(
        text=config.dump(
            {
                key: value
                for key, value in resolved.items()
                if value not in (None, [], {}, config.plain(StorageOptions()))
            }
        )
        + "\n# plan\n"
        + config.dump(plan),
        data={"settings": resolved, "plan": plan},
    )
