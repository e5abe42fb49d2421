"""Stages as their commands declare them: how far each is, what a run has left to do, and whether it can begin."""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, NothingThere
from toolkit.execution import leases
from toolkit.mix import stage as mix_stage
from toolkit.mix.publish import Published
from toolkit.mix.settings import MixSettings, work_folder
from toolkit.records import sets as records
from toolkit.stages.context import Context
from toolkit.stages.sections import STAGES
from toolkit.storage.paths import check_writable

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
    tables: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = ()
    data: Mapping[str, Any] = {}


class Item(msgspec.Struct, frozen=True):
    """A shard, or an input, in a stage: its state, and why it is not done."""

    key: str
    state: State
    cause: str = ""


class Planned(msgspec.Struct, frozen=True):
    """What a run has to do of a thing: shards (or inputs), of all there are, and why that is not known."""

    kind: Kind
    to_do: int
    of: int
    unknown: str = ""

    def __str__(self) -> str:
        if self.unknown:
            return self.unknown.partition("\n")[0]
        together = ", all together" if self.kind == "whole" and self.to_do else ""
        return f"{self.to_do:,} of {self.of:,}{together}"


def plan(stages: Iterable[tuple[str, Kind, Sequence[Progress]]], limit: int | None = None) -> dict[str, Planned]:
    """Return what a run has to do of each thing, in the order of the run, by its name.

    A shard that a stage makes again is done again by all stages after it.

    Args:
        stages: Name and kind of each stage, and how far it is with each thing; nothing where that is not looked at.
        limit: Number of shards that the run works on.
    """
    found: dict[str, Planned] = {}
    pending: set[str] = set()
    for name, kind, rows in stages:
        made = set[str]()
        for row in rows or [Progress(name, unknown=f"`toolkit {name} --dry-run` looks at it")]:
            causes = dict(list(row.causes.items())[:limit])
            keys, todo = {*causes, *row.failed}, {*row.failed, *(key for key, cause in causes.items() if cause)}
            if row.is_one:
                todo = keys if pending or todo else set()
            elif row.shards:
                made |= {row.shards[key] for key in todo & row.shards.keys()}
            else:
                keys |= pending
                todo = keys if kind == "whole" and pending else todo | pending
                made |= todo
            found[row.name] = Planned(kind, len(todo), len(keys), "" if keys else row.unknown)
        pending |= made
    return found


def _records_of_dataset(context: Context) -> str:
    return context.dataset.bookkeeping


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
    """What sections come to, one after the other in the order of a run.

    Attributes:
        faults: Faults so far; if there are any, `sets` need not be complete.
        sets: Schemas of the sets that the sections make.
        holds: What a run works on in the dataset, with digests of the settings, for `toolkit.execution.leases`.
        output: Settings of the mix.
        plans: What each section comes to, by the name of its stage.
    """

    faults: Faults = field(default_factory=Faults)
    sets: dict[str, records.SetSchema] = field(default_factory=dict)
    holds: dict[str, str] = field(default_factory=dict)
    output: MixSettings | None = None
    plans: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Declaration:
    """A stage, as the module of its command declares it by the name `STAGE`.

    Attributes:
        kind: Kind of the stage.
        progress: Yields how far it is with each thing that it makes; writes nothing.
        check: Compares its section with sections before it and with what is on disk, and adds what it makes of them;
            returns what the section comes to. Raises ConfigError, and writes nothing.
        folder: Reads the section; returns the folder of the stage's records.
        goes_on: True if it does what is per shard of it when shards have failed before.
    """

    kind: Kind
    progress: Callable[["Look"], Iterable[Progress]]
    check: Callable[[Context, Checked], Any]
    folder: Callable[[Context], str] = _records_of_dataset
    goes_on: bool = False


def declared(context: Context) -> dict[str, Declaration]:
    """Return the stages for which the configuration has a section, by name, in the order of a run."""
    present = [name for name in STAGES if context.has(name)]
    return {name: importlib.import_module(f"toolkit.commands.{name}").STAGE for name in present}


def check(context: Context, *, shares_output: bool = False) -> Checked:
    """Check the sections against each other, what is on disk, and other runs; write nothing.

    Args:
        context: Context of the configuration.
        shares_output: True if other runs of the same mix may work on the output at the same time.

    Raises:
        ConfigError: with all that is wrong.
    """
    found, stages, is_real = Checked(), declared(context), not context.options.dry_run
    for name, stage in stages.items():
        with found.faults.noted():
            found.plans[name] = stage.check(context, found)
    if is_real and (context.has_dataset or {*stages} - {"mix", "tokenize"}):
        with found.faults.noted():
            dataset = context.dataset
            for root in (dataset.bookkeeping, *([dataset.documents] if context.has("ingest") else [])):
                check_writable(root, context.options.config or "")
    found.faults.tell()
    if is_real and found.holds:
        with found.faults.noted():
            dataset = context.dataset
            leases.check(leases.folder_in(dataset.bookkeeping), dataset.documents, found.holds)
    if is_real and found.output:
        output, digest = found.output.output.path, found.output.stage_digest() if shares_output else ""
        with found.faults.noted():
            leases.check(leases.folder_in(work_folder(output)), output, {"the output": digest})
    found.faults.tell()
    return found


class Look:
    """One look at the places that a configuration writes in.

    Attributes:
        dataset: Dataset of the configuration; None if it has none.
        faults: Messages of what is wrong with the configuration.
        stages: Stages of the configuration, by name, in the order of a run.
        folders: Folder of the records of each stage whose section can be read.
        published: Shards in the output of the mix, if there is a mix.
        gone: Shards whose documents were deleted after they were mixed, by key: True if the output has them.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.dataset = context.dataset if context.has_dataset or not context.has("mix") else None
        self.faults = list(context.faults)
        self.stages = declared(context)
        self.folders: dict[str, str] = {}
        for name, stage in self.stages.items():
            try:
                self.folders[name] = stage.folder(context)
            except ConfigError as error:
                self.faults += [] if str(error) in self.faults else [str(error)]
        self.settings = context.mix if "mix" in self.folders else None
        self.published = Published(self.settings) if self.settings else None
        self.gone: dict[str, bool] = {}

    @contextmanager
    def from_listings(self) -> Iterator[None]:
        """Look at the files of all stages by listings."""
        config = self.context.config
        with ExitStack() as stack:
            if self.dataset:
                stack.enter_context(self.dataset.looking([*config.tag, *config.make, *config.annotate]))
            if self.settings:
                stack.enter_context(mix_stage.looking(self.settings))
            yield

    def progress(self) -> Iterator[tuple[str, Kind, list[Progress]]]:
        """Yield name and kind of each stage, and how far it is with each thing that it makes."""
        for name, stage in self.stages.items():
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
            return "made from something that has changed" if is_made else "not begun"

        return {shard: cause(shard) if shard in listed else "" for shard in shards}
