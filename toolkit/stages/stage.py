"""Stages as their commands declare them: how far each is, what a run has left to do, and whether it can begin."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, NothingThere
from toolkit.execution import leases
from toolkit.records import sets as records
from toolkit.stages.context import Context
from toolkit.stages.disk import Kept
from toolkit.storage.paths import check_writable, work_folder

Kind = Literal["per shard", "whole"]
"""Whether a stage makes something of each shard by itself, or of all shards together."""

State = Literal["done", "running", "failed", "missing"]
STATES: tuple[State, ...] = ("done", "running", "failed", "missing")


class Progress(msgspec.Struct, frozen=True):
    """How far a stage is with one thing that it makes: the inputs, a set, an output.

    Attributes:
        name: Name of the thing, for people.
        work: Name under which leases and failures have its keys.
        causes: Reason why each shard, or input, is not done, by key; empty for one that is done.
        unknown: Reason why that is not known.
        failed: Messages of failures beside those of shards and inputs, by name.
        shards: Shards that inputs become, by key.
        is_one: True for a thing that is made of all shards, and is no shard.
        kind: Kind of what makes it, where that is another than the stage's.
        tables: Figures by column; those with the same columns stand in one table.
        notes: Sentences below the tables, each with a word for what it is about.
        data: Further figures for programs.
    """

    name: str
    work: str = ""
    causes: Mapping[str, str] = {}
    unknown: str = ""
    failed: Mapping[str, str] = {}
    shards: Mapping[str, str] = {}
    is_one: bool = False
    kind: Kind | None = None
    tables: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = ()
    data: Mapping[str, Any] = {}


class Item(msgspec.Struct, frozen=True):
    """A shard, or an input, in a stage: its state, and why it is not done."""

    key: str
    state: State
    cause: str = ""


class Planned(msgspec.Struct, frozen=True):
    """Open work of a stage: shards (or inputs) to do, all of them, and why that is unknown."""

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
    """Yield what a run has to do of each thing, in the order of the run.

    A shard that a stage makes again is done again by all stages after it.

    Args:
        stages: Name and kind of each stage, and how far it is with each thing; nothing where that is not looked at.
        limit: Number of shards that the run works on.
    """
    pending: set[str] = set()
    for name, kind, rows in stages:
        results = set[str]()
        for row in rows or [Progress(name, unknown=f"`toolkit {name} --dry-run` looks at it")]:
            causes = dict(list(row.causes.items())[:limit])
            keys, todo = {*causes, *row.failed}, {*row.failed, *(key for key, cause in causes.items() if cause)}
            if row.is_one:
                todo = keys if pending or todo else set()
            elif row.shards:
                results |= {row.shards[key] for key in todo & row.shards.keys()}
            else:
                keys |= pending
                todo = keys if (row.kind or kind) == "whole" and pending else todo | pending
                results |= todo
            yield ToDo(name, row.kind or kind, row, todo, keys)
        pending |= results


def plan(works: Iterable[ToDo]) -> dict[str, Planned]:
    """Return what a run has to do of each thing, by its name."""
    return {
        row.name: Planned(kind, len(todo), len(keys), "" if keys else row.unknown) for _, kind, row, todo, keys in works
    }


class Faults:
    """Collects what is wrong, section by section.

    Attributes:
        messages: each once: what is wrong with the dataset is met by every section.
    """

    def __init__(self) -> None:
        self.messages: dict[str, None] = {}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note a ConfigError and go on behind the block."""
        try:
            yield
        except ConfigError as error:
            self.messages[str(error)] = None

    def __bool__(self) -> bool:
        return bool(self.messages)

    def tell(self) -> None:
        """Raise ConfigError if anything is wrong, a line (or more) each."""
        if self.messages:
            raise ConfigError("\n".join(self.messages))


@dataclass
class Checked:
    """Result of checking sections, in the order of a run.

    Attributes:
        faults: Faults so far; if there are any, `sets` need not be complete.
        sets: Schemas of the sets that the sections make.
        holds: What a run works on in the dataset, with digests of the settings, for `toolkit.execution.leases`.
        outputs: Digests of the settings by the folder of an output that a run works on; empty where it does so alone.
        roots: Folders in which stages write beside the records of the dataset.
        plans: What each section comes to, by the name of its stage.
        reads: Names of the sets that those of each section are made from, by the name of its stage.
    """

    faults: Faults = field(default_factory=Faults)
    sets: dict[str, records.SetSchema] = field(default_factory=dict)
    holds: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    plans: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Declaration:
    """A stage, as the module of its command declares it by the name `STAGE`.

    Attributes:
        kind: Kind of the stage.
        progress: Yields how far it is with each thing that it makes; writes nothing.
        check: Compares its section with sections before it and with what is on disk, and adds what it makes of them;
            returns what the section comes to. Raises ConfigError, and writes nothing.
        look: Reads the section; returns the folder of the stage's records, and adds to the `Look` what it needs.
        made: Raises ConfigError for those of some sets that were made otherwise than its section says now.
        kept: Returns what it keeps on disk of a byte of text, by its section.
        goes_on: True if it does what is per shard of it when shards have failed before.
        on_dataset: False if it may work on other datasets than that of the configuration.
    """

    kind: Kind
    progress: Callable[["Look"], Iterable[Progress]]
    check: Callable[[Context, Checked], Any]
    look: Callable[["Look"], str] = attrgetter("context.dataset.bookkeeping")
    made: Callable[[Context, Collection[str]], None] = lambda context, names: None
    kept: Callable[[Context], Kept] = lambda context: Kept()
    goes_on: bool = False
    on_dataset: bool = True


def check(context: Context) -> Checked:
    """Check the sections against each other, what is on disk, and other runs; write nothing.

    Raises:
        ConfigError: with all that is wrong.
    """
    result, is_real = Checked(), not context.options.dry_run
    for name, stage in context.stages.items():
        with result.faults.noted():
            before = {*result.sets}
            result.plans[name] = stage.check(context, result)
            result.reads[name] = {item for output in result.sets.keys() - before for item in result.sets[output].reads}
    if is_real and context.works_on_dataset:
        with result.faults.noted():
            for root in (context.dataset.bookkeeping, *result.roots):
                check_writable(root, context.options.config or "")
    result.faults.tell()
    if is_real and result.holds:
        with result.faults.noted():
            dataset = context.dataset
            leases.check(leases.folder_in(dataset.bookkeeping), dataset.documents, result.holds)
    for output, digest in result.outputs.items() if is_real else ():
        with result.faults.noted():
            leases.check(leases.folder_in(work_folder(output)), output, {"the output": digest})
    result.faults.tell()
    return result


NOT_BEGUN = "not begun"
"""Why a shard is not done that was never made."""


class Look:
    """One look at the places that a configuration writes in.

    Attributes:
        dataset: Dataset of the configuration; None if it has none.
        faults: Messages of what is wrong with the configuration.
        folders: Folder of the records of each stage whose section can be read.
        datasets: Datasets that stages read, beside that of the configuration.
        listings: Context managers, within which the files of stages are looked at by listings.
        published: What a stage has published; its `has_changed` tells whether that was replaced since.
        gone: Shards whose documents were deleted after they were mixed, by key: True if the output has them.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.dataset = context.dataset if context.works_on_dataset else None
        self.datasets = list[Dataset]()
        self.published: Any = None
        self.listings = list[AbstractContextManager[None]]()
        self.faults = list(context.faults)
        self.folders: dict[str, str] = {}
        for name, stage in context.stages.items():
            try:
                self.folders[name] = stage.look(self)
            except ConfigError as error:
                self.faults += [] if str(error) in self.faults else [str(error)]
        self.gone: dict[str, bool] = {}

    @contextmanager
    def from_listings(self) -> Iterator[None]:
        """Look at the files of all stages by listings."""
        with ExitStack() as stack:
            if self.dataset:
                stack.enter_context(self.dataset.looking(self.context.made_sets))
            for listing in self.listings:
                stack.enter_context(listing)
            yield

    def progress(self) -> Iterator[tuple[str, Kind, list[Progress]]]:
        """Yield name and kind of each stage, and how far it is with each thing that it makes."""
        for name, stage in self.context.stages.items():
            unread = [Progress(name, unknown="its section has an error, see below")]
            yield name, stage.kind, [*stage.progress(self)] if name in self.folders else unread

    def shards(self, dataset: Dataset) -> list[str]:
        """Return the shards of the run's share; where documents were mixed and deleted, there may be none."""
        try:
            return self.context.mine(dataset)
        except NothingThere:
            if not self.gone:
                raise
            return []

    def causes(
        self, set_name: str, shards: Iterable[str], todo: Iterable[str], home: Dataset | None = None
    ) -> dict[str, str]:
        """Return why shards are not done in a set, of which some are to be made; it is in another dataset's `home`."""
        dataset, listed = home or self.context.dataset, {*todo}

        def cause(shard: str) -> str:
            if records.is_damaged(dataset, set_name, shard):
                return "its record is damaged"
            is_made = records.is_recorded(dataset, set_name, shard)
            return "made from something that has changed" if is_made else NOT_BEGUN

        return {shard: cause(shard) if shard in listed else "" for shard in shards}
