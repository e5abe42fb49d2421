"""Where rows come from: the shards of a dataset with the attribute sets that are joined to them.

Commands that read rows resolve their sets here: our sets are checked against the configuration and against what they
were made from, back to its inputs; the files of external sets are read once, to know their types.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Literal

import msgspec

from toolkit.data import schema
from toolkit.data.dataset import Dataset
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, ToolkitError, short
from toolkit.mix import joined_sets
from toolkit.mix.join import JoinedShard
from toolkit.mix.joined_sets import JoinedSet, Key
from toolkit.mix.settings import Stream
from toolkit.records.foreign import Seen, look_at, values_of
from toolkit.runs.executors import Result, Task
from toolkit.stages import state_of
from toolkit.storage.artifact import State
from toolkit.storage.paths import looking

Check = Literal["strict", "warn"]
"""What a set is for that is out of date: `strict` refuses it, for what writes; `warn` says so, for what only looks."""

RunTasks = Callable[[list[Task[Any]]], list[Result[Seen]]]
"""Runs `look` on files of external sets, in any process, and returns the results in the order of the tasks."""


class ExternalFile(msgspec.Struct, frozen=True):
    """One attribute file of another program."""

    dataset: Any
    set: str
    shard: str


def look(work: ExternalFile, report: Any) -> Seen:
    """Read an attribute file of another program."""
    return look_at(work.dataset, work.set, work.shard)


@dataclass
class Resolved:
    """Shards with the sets that are joined to them.

    Attributes:
        stream: Dataset, and sets as they are configured.
        shards: Shards, in order.
        sets: Sets with the types of their keys, in the order of the stream.
        unreadable: Messages of shards whose external attributes cannot be read, by shard.
    """

    stream: Stream
    shards: list[str]
    sets: list[JoinedSet]
    unreadable: dict[str, str] = field(default_factory=dict)

    def of(self, shards: list[str]) -> "Resolved":
        """Return the same of some of the shards, in this order."""
        unreadable = {shard: self.unreadable[shard] for shard in shards if shard in self.unreadable}
        return replace(self, shards=shards, unreadable=unreadable)

    def refuse_unreadable(self) -> "Resolved":
        """Return the same if all shards can be read.

        Raises:
            ToolkitError: naming those that cannot.
        """
        if self.unreadable:
            raise ToolkitError("\n".join(self.unreadable.values()))
        return self

    def place_of(self, check: Callable[[list[JoinedSet]], object]) -> str:
        """Return which row of an external set makes a check of types fail, where other rows pass it; else nothing.

        Args:
            check: Raises ConfigError if sets have keys of types that cannot be used.
        """
        for i, joined in enumerate(self.sets):
            for key in [] if joined.ours else joined.keys:
                passes = cache(partial(self._passes, check, i, key))
                usable = next(filter(passes, (key.declared.not_null, schema.SPANS)), None)
                for shard in self.shards if usable else ():  # or else another key is to blame
                    for number, values in values_of(self.stream.dataset, joined.set, shard):
                        if not passes(_type_in(values, key.key, usable or key.declared)):
                            value = short(values[key.key]) if key.key in values else "no value"
                            file = self.stream.dataset.attribute_file(joined.set, shard)
                            return f"; {file}:{number} has {value} as {key.key}"
        return ""

    def _passes(self, check: Callable[[list[JoinedSet]], object], i: int, key: Key, type_: Type) -> bool:
        """Tell whether a check passes if a key of a set has a type in all rows."""
        retyped = msgspec.structs.replace(key, type=schema.to_json(type_), default=False, present_type=None)
        keys = [retyped if each is key else each for each in self.sets[i].keys]
        try:
            check([*self.sets[:i], msgspec.structs.replace(self.sets[i], keys=keys), *self.sets[i + 1 :]])
        except ConfigError:
            return False
        return True

    def joined(self, max_document_bytes: int) -> list[JoinedShard]:
        """Return the shards that can be read, with all sets."""
        return [
            JoinedShard(stream=self.stream, sets=self.sets, shard=shard, max_document_bytes=max_document_bytes)
            for shard in self.shards
            if shard not in self.unreadable
        ]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The rows of a dataset, as a command may read them.

    Attributes:
        dataset: Dataset of the rows.
        shards: Shards that are read.
        complete: True if these are all shards of the dataset.
        others: Shards of other shares, whose files count for the types of external sets, too.
        run: Runs tasks of the command.
        check_settings: Raises ConfigError if sets of the dataset were made with other settings than are configured.
        warn: Prints warnings.
    """

    dataset: Dataset
    shards: list[str]
    complete: bool
    others: list[str]
    run: RunTasks
    check_settings: Callable[[Dataset, Collection[str]], None]
    warn: Callable[[Iterable[str]], None]

    def resolve(self, stream: Stream, *, check: Check) -> Resolved:
        """Return the shards with the sets that a stream joins.

        Raises:
            ConfigError: if there is no such set, two have the same key, or (strict) one was made with other settings.
            StaleError: if (strict) a set, or a set that it was made from, is out of date.
        """
        self.check([joining.set for joining in stream.attributes], check)
        return self.typed(stream)

    def typed(self, stream: Stream) -> Resolved:
        """Return the shards with the sets that a stream joins, whether or not these are out of date; as `resolve`."""
        with looking():
            seen, unreadable = self.external(joined_sets.foreign_sets(stream, {}))
            return Resolved(stream, self.shards, joined_sets.resolve_sets(stream, {}, seen), unreadable)

    def resolve_each(self, names: Sequence[str], place: str, *, check: Check) -> Resolved:
        """Return the shards with sets that may have keys in common: each is resolved by itself; errors as `resolve`.

        Raises:
            ToolkitError: if no file of an external set can be read.
        """
        self.check(names, check)
        together = Stream.over(self.dataset, dict.fromkeys(names), place)
        resolved = Resolved(Stream.over(self.dataset), self.shards, [])
        seen, resolved.unreadable = self.external(joined_sets.foreign_sets(together, {}))
        if not all(seen.values()):
            resolved.refuse_unreadable()
        for name in names:
            resolved.sets += joined_sets.resolve_sets(Stream.over(self.dataset, [name], place), {}, seen)
        return resolved

    def check(self, names: Sequence[str], check: Check) -> None:
        """Check sets, and all that they were made from, against the configuration and their inputs; as `resolve`."""
        faults = self.faults(names)
        if check == "strict" and faults:
            raise faults[0]
        self.warn(str(fault) for fault in faults)

    def faults(self, names: Sequence[str]) -> list[ToolkitError]:
        """Return what is wrong with sets, or with what they were made from; what writes refuses the first of it."""
        faults: list[ToolkitError] = []
        known: dict[str, State] = {}
        with looking():
            for name in names:
                state = state_of(self.dataset, name, self.shards, complete=self.complete, known=known)
                faults += [state.error] if state.error else []
            try:
                self.check_settings(self.dataset, known)
            except ConfigError as error:
                faults.insert(0, error)
        return faults

    def external(self, names: Sequence[str]) -> tuple[Mapping[str, list[Seen]], dict[str, str]]:
        """Return what the files of external sets hold, by set; and the messages of shards that cannot be read.

        Files of other shares come last: by then these shares have noted what is in them.
        """
        listed = [
            Task(f"{name}/{shard}", ExternalFile(self.dataset, name, shard))
            for shard in (*self.shards, *self.others)
            for name in names
        ]
        seen: dict[str, list[Seen]] = {name: [] for name in names}
        unreadable: dict[str, str] = {}
        mine = set(self.shards)
        for task, result in zip(listed, self.run(listed) if listed else (), strict=True):
            if result.value:
                seen[task.payload.set].append(result.value)
            elif result.failure and task.payload.shard in mine:
                unreadable.setdefault(task.payload.shard, result.failure.message)
        return seen, unreadable


def _type_in(values: Mapping[str, Any], key: str, usable: Type) -> Type:
    """Return the type of a value in a row, if a usable one is of a type; spans may be absent."""
    if values.get(key) is not None:
        found = schema.infer(values[key])
        return usable if found == schema.list_of(schema.NEVER) else found
    return usable if usable == schema.SPANS and key not in values else schema.nullable(usable)
