"""Provides the rows of a dataset: its shards, with joined attribute sets.

Commands that read rows resolve their sets here: our sets are checked against the configuration and against what they
were made from, back to its inputs; the files of external sets are read once, to know their types.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from toolkit.config.settings import ConfigNode
from toolkit.data import row_index, schema
from toolkit.data.alignment import AttributeRows, attribute_lines
from toolkit.data.dataset import START, Dataset
from toolkit.data.documents import DOCUMENT_DECODER, DocumentRow, Rows
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, StepFailed, ToolkitError, mismatch, short
from toolkit.execution.executors import Result, Task
from toolkit.execution.grouped import Work, log_of_dataset, run_batch
from toolkit.mix.join import Joined, JoinedDataset, JoinedKey, JoinedSet, JoinedShard
from toolkit.records import sets as records
from toolkit.records.external_sets import External, ExternalContent, look_at, types_of, values_of
from toolkit.rules.expressions import sets_read
from toolkit.storage import freshness, paths, record_log, threads

Check = Literal["strict", "warn"]
"""Treatment of sets that are out of date: `strict` refuses them (writing), `warn` reports them (reading)."""

RunTasks = Callable[[list[Task[Any]]], list[Result[ExternalContent]]]
"""Runs `look` on files of external sets, in any process, and returns the results in the order of the tasks."""


StateOf = Callable[[Dataset, str, dict[str, freshness.State]], freshness.State]
"""Says what a set is over the shards, and adds that to what is known of sets (`toolkit.stages.set_state.state_of`)."""


def values_beside(
    document: DocumentRow, joined: JoinedSet, work: JoinedShard, row: int, lines: Iterable[bytes]
) -> dict[str, Any]:
    """Return the values of a set beside a document. Keys have their names in the shard.

    Args:
        document: Document.
        joined: Set.
        work: Shard of the document.
        row: Number of the row, from 0.
        lines: Row of the set; nothing where its file ends before.

    Raises:
        AlignmentError: if the row is that of another document, or not there.
    """
    path = work.attributes_of(joined)
    rows = AttributeRows(path, work.path, any_source=not joined.ours, block=lines, number=row)
    values = msgspec.json.decode(rows.take(document.id, document.source, row + 1)[0].attributes)
    names: dict[str, str] = {key.key: key.name for key in joined.keys}
    return {names.get(str(key), str(key)): value for key, value in values.items()} if isinstance(values, dict) else {}


class ExternalFile(msgspec.Struct, frozen=True):
    """One attribute file of another program."""

    dataset: Any
    set: str
    shard: str


def look(work: ExternalFile, report: Any, group: record_log.Group | None = None) -> ExternalContent:
    """Read an attribute file of another program."""
    return look_at(work.dataset, work.set, work.shard, group)


LOOK = Work(look, partial(run_batch, look, log_of_dataset))


class Resolved(msgspec.Struct):
    """Shards with their joined sets.

    Attributes:
        stream: Dataset, and sets as they are configured.
        shards: Shards, in order.
        sets: Sets with the types of their keys, in the order of the stream.
        unreadable: Messages of shards whose external attributes cannot be read, by shard.
    """

    stream: JoinedDataset
    shards: list[str]
    sets: list[JoinedSet]
    unreadable: dict[str, str] = {}

    def of(self, shards: list[str]) -> "Resolved":
        """Return the same for some of the shards, in this order."""
        unreadable = {shard: self.unreadable[shard] for shard in shards if shard in self.unreadable}
        return replace(self, shards=shards, unreadable=unreadable)

    def refuse_unreadable(self) -> "Resolved":
        """Return the same if all shards can be read.

        Raises:
            StepFailed: naming those that cannot.
        """
        if self.unreadable:
            raise StepFailed(*self.unreadable.values())
        return self

    def place_of(self, check: Callable[[list[JoinedSet]], object]) -> str:
        """Return the row with the wrong type in an external set. Other rows pass the check; if none does, the result is
        empty.

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

    def _passes(self, check: Callable[[list[JoinedSet]], object], i: int, key: JoinedKey, type_: Type) -> bool:
        """Return True if a check passes with another type."""
        retyped = msgspec.structs.replace(key, type=schema.to_json(type_), default=False, present_type=None)
        keys = [retyped if item is key else item for item in self.sets[i].keys]
        try:
            check([*self.sets[:i], msgspec.structs.replace(self.sets[i], keys=keys), *self.sets[i + 1 :]])
        except ConfigError:
            return False
        return True

    def joined(self, max_document_bytes: int) -> list[JoinedShard]:
        """Return the readable shards, with all sets."""
        return [self.joined_to(shard, max_document_bytes) for shard in self.shards if shard not in self.unreadable]

    def joined_to(self, shard: str, max_document_bytes: int = 1) -> JoinedShard:
        """Return a shard with all sets; without a bound, only for the paths of its files."""
        return JoinedShard(stream=self.stream, sets=self.sets, shard=shard, max_document_bytes=max_document_bytes)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a dataset, as a command may read them.

    Attributes:
        dataset: Dataset of the rows.
        shards: Shards that are read.
        other_shards: Shards of other shares, whose files count for the types of external sets, too.
        run: Runs tasks of the command.
        state_of: Says what a set is by its records.
        check_settings: Raises ConfigError if sets of the dataset were made with other settings than are configured.
        warn: Prints warnings.
    """

    dataset: Dataset
    shards: list[str]
    other_shards: list[str]
    run: RunTasks
    state_of: StateOf
    check_settings: Callable[[Dataset, Collection[str]], None]
    warn: Callable[[Iterable[str]], None]

    def resolve(self, stream: JoinedDataset, *, check: Check) -> Resolved:
        """Return the shards with the joined sets of a stream.

        Raises:
            ConfigError: if there is no such set, two have the same key, or (strict) one was made with other settings.
            StaleError: if (strict) a set, or a set that it was made from, is out of date.
        """
        self.check([joining.set for joining in stream.attributes], check)
        return self.typed(stream)

    def typed(self, stream: JoinedDataset) -> Resolved:
        """Return the shards with the joined sets, also out of date. Errors as of `resolve`."""
        with paths.listing_cache():
            contents, unreadable = self.external(external_sets(stream, {}))
            return Resolved(stream, self.shards, resolve_sets(stream, {}, contents), unreadable)

    def resolve_each(self, names: Sequence[str], place: str, *, check: Check) -> Resolved:
        """Return the shards with sets of possibly equal keys. Each is resolved by itself; errors as of `resolve`.

        Raises:
            ToolkitError: if no file of an external set can be read.
        """
        self.check(names, check)
        together = JoinedDataset.over(self.dataset, dict.fromkeys(names), place)
        resolved = Resolved(JoinedDataset.over(self.dataset), self.shards, [])
        contents, resolved.unreadable = self.external(external_sets(together, {}))
        if not all(contents.values()):
            resolved.refuse_unreadable()
        for name in names:
            resolved.sets += resolve_sets(JoinedDataset.over(self.dataset, [name], place), {}, contents)
        return resolved

    def check(self, names: Sequence[str], check: Check) -> None:
        """Check sets and their lineage against configuration and inputs; errors as of `resolve`."""
        faults = self.faults(names)
        if check == "strict" and faults:
            raise faults[0]
        self.warn(str(fault) for fault in faults)

    def faults(self, names: Sequence[str]) -> list[ToolkitError]:
        """Return the errors of sets and their lineage. A command that writes refuses the first of them."""
        faults: list[ToolkitError] = []
        states: dict[str, freshness.State] = {}
        with paths.listing_cache():
            for name in names:
                state = self.state_of(self.dataset, name, states)
                faults += [state.error] if state.error else []
            try:
                self.check_settings(self.dataset, states)
            except ConfigError as error:
                faults.insert(0, error)
        return faults

    def raw_rows(
        self, shard: str, max_document_bytes: int, first: int = 0
    ) -> Generator[tuple[DocumentRow, bytes, dict[str, msgspec.Raw], int], None, None]:
        """Yield documents from a row on: each with its line, its attributes as they are, by set, and its number from 1.

        Raises:
            AlignmentError: if a file is not there that was made, or a row is of another document.
        """
        dataset, path = self.dataset, self.dataset.shard_path(shard)
        begin = row_index.begin_of(dataset, shard, first) if first else START
        attributes: dict[str, AttributeRows] = {}
        with ExitStack() as stack:
            for name in dataset.sets() if dataset.attributes else ():
                file = dataset.attribute_file(name, shard)
                if paths.exists(file):
                    block = islice(stack.enter_context(attribute_lines(file)), first, None)
                    any_source = records.load_schema(dataset, name) is None
                    attributes[name] = AttributeRows(file, path, any_source=any_source, block=block, number=first)
                elif paths.is_folder(file) or records.load_record(dataset, name, shard):
                    raise records.missing_attributes(dataset, name, shard)
            lines = stack.enter_context(dataset.lines(shard, max_document_bytes, begin=begin))
            rows = Rows(islice(lines, first - begin.row, None), DOCUMENT_DECODER, path, first)
            for row, line in rows:
                attribute_rows = {
                    name: other.take(row.id, row.source, rows.number)[0] for name, other in attributes.items()
                }
                yield row, line, {name: item.attributes for name, item in attribute_rows.items()}, rows.number

    def external(self, names: Sequence[str]) -> tuple[Mapping[str, list[ExternalContent]], dict[str, str]]:
        """Return the contents of external sets, and messages of unreadable shards.

        Files of other shares come last: by then these shares have recorded them.
        """
        files = [
            ExternalFile(self.dataset, name, shard) for shard in (*self.shards, *self.other_shards) for name in names
        ]
        sizes = threads.for_each(lambda file: paths.size_of(self.dataset.attribute_file(file.set, file.shard)), files)
        listed = [Task(f"{file.set}/{file.shard}", file, size) for file, size in zip(files, sizes, strict=True)]
        contents: dict[str, list[ExternalContent]] = {name: [] for name in names}
        unreadable: dict[str, str] = {}
        mine = set(self.shards)
        for task, result in zip(listed, self.run(listed) if listed else (), strict=True):
            if result.value:
                contents[task.payload.set].append(result.value)
            elif result.failure and task.payload.shard in mine:
                unreadable.setdefault(task.payload.shard, result.failure.message)
        return contents, unreadable


def resolve_sets(
    stream: JoinedDataset, planned: Mapping[str, records.SetSchema], contents: Mapping[str, Iterable[ExternalContent]]
) -> list[JoinedSet]:
    """Return the joined sets with the types of their keys.

    Args:
        stream: Stream that joins them.
        planned: Sets that are made before the mix, and may not be on disk yet.
        contents: Contents of the files of each external set.

    Raises:
        ConfigError: if a set does not exist, or two have the same key.
    """
    dataset = stream.dataset
    result: list[JoinedSet] = []
    names: dict[str, str] = {}
    twice: set[str] = set()
    for joined in stream.attributes:
        declared = planned.get(joined.set) or records.load_schema(dataset, joined.set)
        keys: dict[str, tuple[Type, Type | None]]
        if declared is not None:
            keys, ours = {key: (t, None) for key, t in declared.types().items()}, True
            results = dict(declared.keys)
        elif joined.set in contents:
            keys, ours, results = types_of(contents[joined.set]), False, {}
        else:
            candidates = sorted({*dataset.sets(), *planned})
            name = mismatch(joined.set, candidates)
            remedy = "" if "did you mean" in name else "; `toolkit run` makes the sets that the configuration has"
            raise ConfigError(f"{joined.place}: expected an attribute set in {dataset.attributes}, {name}{remedy}")
        if unknown := next((key for key in joined.as_ if key not in keys), None):
            raise ConfigError(
                f"{joined.place}: {joined.set}: expected a key of the set under `as:`, {mismatch(unknown, keys)}"
            )
        listed = []
        for key, (type_, present) in keys.items():
            name = joined.as_.get(key, key)
            if name in names and stream.same_keys == "later":
                twice.add(name)
            elif name in names:
                raise ConfigError(
                    f"{joined.place}: expected each key once, got {name!r} in {names[name]} and {joined.set}; "
                    f"rename one: {{set: {joined.set}, as: {{{key}: NEW_NAME}}}}"
                )
            names[name] = joined.set
            output = JoinedKey(
                key, name, schema.to_json(type_), present is not None, present and schema.to_json(present)
            )
            if of := results.get(key):
                output = msgspec.structs.replace(
                    output, settings=of.settings, code=of.code, descriptions=of.descriptions, models=of.models
                )
            listed.append(output)
        result.append(JoinedSet(joined.set, listed, ours, declared.reads if declared else {}))
    for joined_set in result if twice else ():
        joined_set.keys[:] = [msgspec.structs.replace(key, hidden=key.name in twice) for key in joined_set.keys]
    return result


def external_sets(stream: JoinedDataset, planned: Mapping[str, records.SetSchema]) -> list[str]:
    """Return the names of the external sets among the joined ones."""
    existing = stream.dataset.sets()
    return [
        joined.set
        for joined in stream.attributes
        if joined.set in existing
        and joined.set not in planned
        and records.load_schema(stream.dataset, joined.set) is None
    ]


class AvailableSets(msgspec.Struct, frozen=True):
    """The sets for expressions: of the configuration, then on disk, ours and external.

    Attributes:
        dataset: Dataset of the sets.
        planned: Schemas of the sets that are made before the entry.
        remade: Names of sets that are made anew, whatever is on disk under them.
        external: Function that returns the contents of the files of an external set.
    """

    dataset: Dataset
    planned: Mapping[str, records.SetSchema]
    remade: Collection[str]
    external: External

    def schema(self, name: str) -> records.SetSchema | None:
        """Return the schema of a set; None for an external set."""
        return self.planned.get(name) or records.load_schema(self.dataset, name)

    def joined(self, texts: Iterable[str], selected: list[Joined], place: ConfigNode) -> list[JoinedSet]:
        """Return the sets of expressions: the given ones, else those with the keys.

        A set of the configuration is taken before one that is only on disk.
        """
        chosen = {joined.set: joined for joined in selected}
        here = {name: list(schema.keys) for name, schema in self.planned.items()}
        on_disk = self.dataset.sets() if self.dataset.attributes else []
        for name in chosen:
            if name not in self.planned and name not in on_disk:
                listed = ", ".join(dict.fromkeys([*self.planned, *on_disk]))
                raise place.error(
                    ("attributes",), f"expected an attribute set, got {name!r}; there are: {listed or 'none'}"
                )
        named = {joined.set: (*joined.as_.values(), *self._keys(joined.set)) for joined in selected}

        @cache
        def keys_on_disk() -> dict[str, list[str]]:
            return {name: self._keys(name) for name in on_disk if name not in self.planned and name not in self.remade}

        for text in texts:
            for name in sets_read(text, named, here, keys_on_disk):
                chosen.setdefault(name, Joined(set=name, place=place.where(())))
        contents = {name: self.external(name) for name in chosen if self.schema(name) is None}
        stream = JoinedDataset(name="", dataset=self.dataset, attributes=list(chosen.values()))
        return resolve_sets(stream, self.planned, contents)

    def _keys(self, name: str) -> list[str]:
        if schema := self.schema(name):
            return list(schema.keys)
        return list(dict.fromkeys(key for file in self.external(name) for key in file.types))


def _type_in(values: Mapping[str, Any], key: str, usable: Type) -> Type:
    """Return the type of a value, by a usable type. Spans may be absent."""
    if values.get(key) is not None:
        type_ = schema.infer(values[key])
        return usable if type_ == schema.list_of(schema.NEVER) else type_
    return usable if usable == schema.SPANS and key not in values else schema.nullable(usable)
