"""Defines stages: their declaration, progress, open work, and checks before a run."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, NothingThere
from toolkit.execution import leases
from toolkit.records import sets as records
from toolkit.stages.context import Context
from toolkit.stages.disk_quota import DiskUse
from toolkit.storage.paths import check_writable, exists, work_folder

Kind = Literal["per shard", "whole"]
"""Whether a stage makes something of each shard by itself, or of all shards together."""

State = Literal["done", "running", "failed", "missing"]
STATES: tuple[State, ...] = ("done", "running", "failed", "missing")


class Progress(msgspec.Struct, frozen=True):
    """The progress of a stage with one output: the inputs, a set, an output.

    Attributes:
        name: Name of the output, for people.
        work: Name of its keys in leases and failures.
        causes: Cause for each shard, or input, to be unfinished, by key; empty for a finished one.
        unknown: Reason for unknown progress.
        failed: Messages of failures beside those of shards and inputs, by name.
        shards: Shards of unfinished inputs, by key; None if the keys are shards.
        is_one: True for an output of all shards, which is no shard.
        kind: Kind, if it is not that of the stage.
        tables: Figures by column; those with the same columns stand in one table.
        notes: Sentences below the tables, each with its subject.
        data: Further figures for programs.
    """

    name: str
    work: str = ""
    causes: Mapping[str, str] = {}
    unknown: str = ""
    failed: Mapping[str, str] = {}
    shards: Mapping[str, str] | None = None
    is_one: bool = False
    kind: Kind | None = None
    tables: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = ()
    data: Mapping[str, Any] = {}


class Item(msgspec.Struct, frozen=True):
    """A shard, or an input, in a stage: its state, and the cause."""

    key: str
    state: State
    cause: str = ""


class Planned(msgspec.Struct, frozen=True):
    """Open work of a stage: shards (or inputs) to do, all of them, or the reason why it is unknown."""

    kind: Kind
    to_do: int
    of: int
    unknown: str = ""

    def __str__(self) -> str:
        if self.unknown:
            return self.unknown.partition("\n")[0]
        together = ", all together" if self.kind == "whole" and self.to_do else ""
        return f"{self.to_do:,} of {self.of:,}{together}"


class ToDo(NamedTuple):
    """Open work of a run: a stage, its progress, and the keys of shards (or inputs): to do, and all."""

    stage: str
    kind: Kind
    row: Progress
    to_do: Collection[str]
    keys: Collection[str]


def to_do(stages: Iterable[tuple[str, Kind, Sequence[Progress]]], limit: int | None = None) -> Iterator[ToDo]:
    """Yield the open work for each output, in run order.

    A shard that a stage makes again is done again by all stages after it.

    Args:
        stages: Name, kind and progress of each stage; no progress if it is not inspected.
        limit: Number of shards of the run.
    """
    pending: set[str] = set()
    for name, kind, rows in stages:
        results = set[str]()
        for row in rows or [Progress(name, unknown=f"`toolkit {name} --dry-run` looks at it")]:
            causes = dict(list(row.causes.items())[:limit])
            keys, todo = {*causes, *row.failed}, {*row.failed, *(key for key, cause in causes.items() if cause)}
            if row.is_one:
                todo = keys if pending or todo else set()
            elif row.shards is not None:
                results |= {row.shards[key] for key in todo & row.shards.keys()}
            else:
                keys |= pending
                todo = keys if (row.kind or kind) == "whole" and pending else todo | pending
                results |= todo
            yield ToDo(name, row.kind or kind, row, todo, keys)
        pending |= results


def plan(works: Iterable[ToDo]) -> dict[str, Planned]:
    """Return the open work by name of the output."""
    return {
        row.name: Planned(kind, len(todo), len(keys), "" if keys else row.unknown) for _, kind, row, todo, keys in works
    }


class Faults:
    """Collects errors, section by section.

    Attributes:
        messages: Messages, each once: every section meets the errors of the dataset.
    """

    def __init__(self) -> None:
        self.messages: dict[str, None] = {}

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect a ConfigError of the block, and go on after it."""
        try:
            yield
        except ConfigError as error:
            self.messages[str(error)] = None

    def __bool__(self) -> bool:
        return bool(self.messages)

    def raise_all(self) -> None:
        """Raise ConfigError with all messages, if there are any."""
        if self.messages:
            raise ConfigError("\n".join(self.messages))


class Checked(msgspec.Struct):
    """Result of checking sections, in the order of a run.

    Attributes:
        faults: Faults so far; if there are any, `sets` need not be complete.
        sets: Schemas of the sets that the sections make.
        holds: Parts of the dataset to lease, with digests of the settings, for `toolkit.execution.leases`.
        outputs: Digests of the settings by folder of an output; empty to tolerate no other run.
        roots: Folders in which stages write beside the records of the dataset.
        plans: Plan of each section, by the name of its stage.
        reads: Names of the sets that the sets of each section read, by the name of its stage.
    """

    faults: Faults = msgspec.field(default_factory=Faults)
    sets: dict[str, records.SetSchema] = {}
    holds: dict[str, str] = {}
    outputs: dict[str, str] = {}
    roots: list[str] = []
    plans: dict[str, Any] = {}
    reads: dict[str, set[str]] = {}


class Declaration(msgspec.Struct, frozen=True):
    """A stage, declared as `STAGE` by the module of its command.

    Attributes:
        kind: Kind of the stage.
        progress: Function that yields the progress of each output; it writes nothing.
        check: Function that compares its section with sections before it and with the disk, adds its sets, and returns
            the plan of the section. Raises ConfigError, and writes nothing.
        look: Function that reads the section; returns the folder of the stage's records, and adds to the `Look`.
        check_settings: Function that raises ConfigError for sets with other settings than its section has now.
        disk_use: Function that returns the stage's need on disk by its section.
        continues_after_failure: True if it does its work per shard after shards have failed.
        on_dataset: False if it may work on other datasets than that of the configuration.
    """

    kind: Kind
    progress: Callable[["Look"], Iterable[Progress]]
    check: Callable[[Context, Checked], Any]
    look: Callable[["Look"], str] = attrgetter("context.dataset.bookkeeping")
    check_settings: Callable[[Context, Collection[str]], None] = lambda context, names: None
    disk_use: Callable[[Context], DiskUse] = lambda context: DiskUse()
    continues_after_failure: bool = False
    on_dataset: bool = True


def check(context: Context) -> Checked:
    """Check sections against each other, the disk, and other runs; write nothing.

    Raises:
        ConfigError: with all that is wrong.
    """
    result, is_real = Checked(), not context.options.dry_run
    for name, stage in context.stages.items():
        with result.faults.collected():
            before = {*result.sets}
            result.plans[name] = stage.check(context, result)
            result.reads[name] = {item for output in result.sets.keys() - before for item in result.sets[output].reads}
    if is_real and context.works_on_dataset:
        with result.faults.collected():
            for root in (context.dataset.bookkeeping, *result.roots):
                check_writable(root, context.options.config or "")
    result.faults.raise_all()
    if is_real and result.holds:
        with result.faults.collected():
            dataset = context.dataset
            leases.check(leases.folder_in(dataset.bookkeeping), dataset.documents, result.holds)
    for output, digest in result.outputs.items() if is_real else ():
        with result.faults.collected():
            leases.check(leases.folder_in(work_folder(output)), output, {"the output": digest})
    result.faults.raise_all()
    return result


NOT_BEGUN = "not begun"
"""Why a shard is not done that was never made."""


class Look:
    """An inspection of the places of a configuration.

    Attributes:
        dataset: Dataset of the configuration; None if it has none.
        faults: Messages of errors in the configuration.
        folders: Folder of the records of each stage with a readable section.
        datasets: Datasets that stages read, beside that of the configuration.
        listings: Context managers that list the files of stages.
        published: Manifest of each stage with an output; its `has_changed` detects a later one.
        deleted: Shards whose documents were deleted after the mix, by key: True if the output has them.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.dataset = context.dataset if context.works_on_dataset else None
        self.datasets = list[Dataset]()
        self.published: dict[str, Any] = {}
        self.listings = list[AbstractContextManager[None]]()
        self.faults = list(context.faults)
        self.folders: dict[str, str] = {}
        for name, stage in context.stages.items():
            try:
                self.folders[name] = stage.look(self)
            except ConfigError as error:
                self.faults += [] if str(error) in self.faults else [str(error)]
        self.deleted: dict[str, bool] = {}
        self._shards: dict[Dataset, list[str]] = {}

    @contextmanager
    def from_listings(self) -> Iterator[None]:
        """Inspect the files of all stages by listings."""
        with ExitStack() as stack:
            if self.dataset:
                stack.enter_context(self.dataset.listing_cache(self.context.made_sets))
            for listing in self.listings:
                stack.enter_context(listing)
            yield

    def progress(self) -> Iterator[tuple[str, Kind, list[Progress]]]:
        """Yield name, kind and progress of each stage."""
        for name, stage in self.context.stages.items():
            broken = Progress(name, unknown="its section has an error, see below")
            yield name, stage.kind, [*stage.progress(self)] if name in self.folders else [broken]

    def shards(self, dataset: Dataset) -> list[str]:
        """Return the shards of the run's share; none if all were mixed and deleted."""
        try:
            if dataset not in self._shards:
                self._shards[dataset] = self.context.mine(dataset)
            return self._shards[dataset]
        except NothingThere:
            if not self.deleted:
                raise
            return []

    def causes(
        self, set_name: str, shards: Iterable[str], todo: Iterable[str], home: Dataset | None = None
    ) -> dict[str, str]:
        """Return the cause for each shard of a set to be unfinished; empty for finished ones. The set is in another
        dataset's `home`, if that is given.
        """
        dataset, listed = home or self.context.dataset, {*todo}

        def cause(shard: str) -> str:
            if records.is_damaged(dataset, set_name, shard):
                return "its record is damaged"
            if not records.is_recorded(dataset, set_name, shard):
                return NOT_BEGUN
            is_gone = not exists(dataset.attribute_path(set_name, shard))
            return "its attribute file is gone" if is_gone else "made from something that has changed"

        return {shard: cause(shard) if shard in listed else "" for shard in shards}
