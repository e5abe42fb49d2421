"""What a stage is: to who writes one, and to commands, which know how far it is and so what a run has left to do."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args, get_type_hints

import msgspec

from toolkit.config.settings import FROZEN
from toolkit.data.documents import Document
from toolkit.plugins import Kind as PluginKind

Kind = Literal["per shard", "whole"]
"""Whether a stage makes something of each shard by itself, or of all shards together."""

State = Literal["done", "running", "failed", "missing"]
STATES: tuple[State, ...] = ("done", "running", "failed", "missing")


class Progress(msgspec.Struct, frozen=True):
    """How far a stage is with one thing that it makes: the inputs, a set, an output.

    Attributes:
        name: Name of the thing, for people.
        work: Name under which claims and failures have its keys.
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


class Stage(msgspec.Struct, dict=True, **FROZEN):
    """A stage of a run: extend it by ``make``, and annotate the result.

    A stage is its configuration: the fields are its options. ``make`` gets some documents of a shard, in order, and
    returns either a value for each of them, which become an attribute set, or new documents, which become a dataset of
    their own; its annotation says which: ``Sequence[int]``, or ``Sequence[Document]``.
    """

    VERSION: ClassVar[str] = "1"
    """Part of the recorded settings; change it whenever results change."""

    def check(self) -> None:
        """Raise ConfigError if it cannot run here with these options; called before anything is written."""

    def make(self, documents: Sequence[Document]) -> Sequence[Any]:
        """Return a value for each document, or new documents, however many.

        Args:
            documents: At most 256 documents of a shard, in order. What it returns may depend on nothing else.
        """
        raise NotImplementedError(type(self).__name__)


def made_of_each(stage: type[Stage]) -> Any:
    """Return the annotation of what a stage makes of a document; None if `make` declares nothing."""
    hint = get_type_hints(stage.make, include_extras=True).get("return")
    return next(iter(get_args(hint)), None)


STAGES: PluginKind[Stage] = PluginKind("stage", "toolkit.make.stages", "toolkit.stages", Stage)
