"""Join external scores or labels to documents by id."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.align import align_config, join as joining
from toolkit.align.join import Todo, progress_of, works_to_write
from toolkit.command_options import CommandResult, Configured, Flag, Shared
from toolkit.commands import _sections as sections
from toolkit.data import record_logs
from toolkit.data.dataset import Dataset
from toolkit.errors import StepFailed, ToolkitError, amount
from toolkit.exchange.scatter import ranges, settle
from toolkit.exchange.tables import MEMORY
from toolkit.execution.executors import Report, Task
from toolkit.records import sets
from toolkit.records.failures import FailureRecords
from toolkit.stages.context import Context, Outcome, all_values, show_plan, table
from toolkit.stages.declaration import NOT_BEGUN, Checked, Declaration, Look, Progress
from toolkit.stages.disk_quota import FILES, DiskUse, EstimateOf
from toolkit.storage import json_files
from toolkit.storage.paths import exists, join, list_files, remove_tree, size_of

_COUNTED = ("documents", "ids", "missing", "surplus", "repeated", "shared")


class Alignment(CommandResult, kw_only=True):
    """The result of `align`.

    Attributes:
        attributes: Folder of the sets.
        sets: Numbers of each set: documents and ids, those without a counterpart, shards written.
        failed: Messages of what failed.
    """

    attributes: str
    sets: dict[str, dict[str, Any]]
    failed: list[str]


class Options(Configured, Shared, frozen=True, kw_only=True):
    """Options of ``toolkit align``.

    Attributes:
        dry_run: write nothing; show the sets, the types of their values, and the shards to do
        overwrite: replace what was made with other settings
    """

    WRITES: ClassVar = True
    REMAKES: ClassVar = "sets"
    EXAMPLES: ClassVar = ("toolkit align -c my.yaml", "toolkit align -c my.yaml align.signals-0.missing=null")

    dry_run: Annotated[bool, Flag()] = False
    overwrite: Annotated[bool, Flag()] = False


def run(context: Context, options: Options) -> Outcome:
    """Make the outdated sets of the section ``align:``."""
    entries = align_config.read_section(context.section("align"))
    dataset = context.dataset
    shards, unfinished = context.shards(dataset, judges=True)
    for entry in entries:
        align_config.check_made(dataset, entry, overwrite=options.overwrite)
    todo = {entry.set: progress_of(dataset, entry, shards, context.config.max_document_bytes) for entry in entries}
    if options.dry_run:
        return show_plan(context, {"align": {name: _describe(todo) for name, todo in todo.items()}})
    context.sweep(dataset.attributes, dataset.bookkeeping)
    making = _AlignedSets(context, dataset, shards)
    holds = {
        f"the set {entry.set}": json_files.json_digest(entry.recorded()) if context.share else "" for entry in entries
    }
    with context.lease(dataset.bookkeeping, dataset.attributes, holds):
        for entry in entries:
            making.make(entry, todo[entry.set])
    outcome = making.outcome()
    outcome.text += unfinished
    return outcome


def _describe(todo: Todo) -> dict[str, Any]:
    types = {name: str(type_) for name, type_ in todo.schema.types().items()}
    return {"inputs": todo.inputs, "values": types, "shards to write": todo.shards}


class _AlignedSets:
    """Makes sets, one after the other; one that cannot be made stops no other."""

    def __init__(self, context: Context, dataset: Dataset, shards: list[str]) -> None:
        self.context, self.dataset, self.shards = context, dataset, shards
        self.failed: list[str] = []
        self.rows = [["set", *_COUNTED, "shards written"]]
        self.data: dict[str, Any] = {}
        self.complete: set[str] = set()
        self.annotation_notes: list[str] = []
        self._failures = FailureRecords(dataset, "align")
        self._limit = context.config.max_document_bytes
        self._ready: list[str] = []

    def outcome(self) -> Outcome:
        failed = amount(len(self.failed), "failure")
        text = f"{amount(len(self.complete), 'set')} made, {failed} -> {self.dataset.attributes}\n"
        tables = [table(self.rows, right=range(1, 8))] if self.rows[1:] else []
        text += "\n".join([*tables, *self.annotation_notes])
        if self._ready:
            ready = f"the values and ids of {', '.join(self._ready)} are ready"
            text += f"\n{self.context.named}{ready}. Which belong together depends on all: {self.context.next_step}"
        data = Alignment(attributes=self.dataset.attributes, sets=self.data, failed=self.failed)
        return Outcome(text=text, data=data, failures=self.failed)

    def make(self, entry: align_config.Entry, todo: Todo) -> None:
        if not todo.shards:
            result = sets.load_aligned(self.dataset, entry.set)
            self.complete.add(entry.set)
            self._tell(entry, result.counts if result else {}, 0)
            if not self.context.share:
                self._clear(entry)  # what a run has left that could not delete it
            return
        try:
            is_made = self._make(entry, todo, _folder(self.dataset, entry))
        except StepFailed as error:
            self.failed += error.messages
            return
        if not is_made:
            self.context.waiting.add(entry.set)
            self._ready.append(entry.set)
            return
        self.complete.add(entry.set)
        self._clear(entry)

    def _clear(self, entry: align_config.Entry) -> None:
        remove_tree(_folder(self.dataset, entry))

    def _make(self, entry: align_config.Entry, todo: Todo, folder: str) -> bool:
        """Make a set; a share only scatters its files and shards, and False is returned."""
        types = {name: key.type for name, key in todo.schema.keys.items()}
        sizes = {path: size_of(path) for path in todo.inputs}
        partitions, share = _partitions(sum(size or 0 for size in sizes.values())), self.context.share
        mine = {*(share.owned("file", sizes) if share else sizes)}
        inputs = [
            Task(path, joining.InputToRead(entry=entry, types=types, path=path, number=i, folder=folder,
                                           partitions=partitions, limit=self._limit), size)
            for i, (path, size) in enumerate(sizes.items()) if path in mine
        ]  # fmt: skip
        needs = _needs(self.context, inputs, VALUES)
        read: list[joining.InputRead] = self._run(
            f"reading the values of {entry.set}", joining.read_input, inputs, needs=needs
        )
        paths, stored = [self.dataset.shard_path(shard) for shard in self.shards], self.dataset.sizes()
        to_read = _shards_to_read(self.dataset, entry, self.shards, partitions, self._limit)
        tasks = [Task(path, task, stored.get(task.shard)) for path, task in zip(paths, to_read, strict=True)]
        needs = _needs(self.context, tasks, NAMES)
        shards: list[joining.ShardRead] = self._run(
            "looking up documents by their ids", joining.read_shard, tasks, needs=needs
        )
        if share:
            if sets.load_schema(self.dataset, entry.set) is None:  # later stages of the share read it
                sets.save_schema(self.dataset, entry.set, todo.schema)
            return False
        parts, starts = self._join(folder, todo, read, shards)
        counts, examples = joining.sum_up(parts, starts[-1], todo.inputs, paths)
        self._check(entry, counts, examples, todo.inputs)
        kinds = {name: sum(item.counts.get(name, 0) for item in read) for item in read for name in item.counts}
        result = sets.Aligned(
            inputs=[sets.AlignedInput(item.path, item.size, item.stamp, item.content) for item in read],
            counts=counts | kinds,
        )
        written = self._write(entry, todo, folder, result, shards, starts)
        self._tell(entry, result.counts, written)
        return True

    def _join(
        self, folder: str, todo: Todo, read: list[joining.InputRead], shards: list[joining.ShardRead]
    ) -> tuple[list[joining.JoinMatches], list[int]]:
        """Return the parts of the join, and each shard's row offset."""
        settle(self._run, folder, "values", [path for item in read for path in item.objects])
        settle(self._run, folder, "names", [path for shard in shards for path in shard.objects])
        starts = [0, *accumulate(shard.documents for shard in shards)]
        contents = [[item.content for item in read], [shard.content for shard in shards]]
        made_of = json_files.json_digest([contents, [key.type for key in todo.schema.keys.values()]])
        hashes = [joining.shard_hash(self.dataset.file_of(shard)) for shard in self.shards]
        layout = joining.JoinLayout(made_of=made_of, keys=list(todo.schema.keys), shards=hashes, starts=starts)
        json_files.save(join(folder, joining.LAYOUT), layout)
        tasks = [
            Task(f"part {i}", joining.PartToJoin(folder=folder, number=i, first=first, last=last))
            for i, (first, last) in enumerate(ranges(folder, ["values", "names"]))
        ]
        parts: list[joining.JoinMatches] = self._run("joining values and documents", joining.join_part, tasks)
        settle(self._run, folder, "rows", [path for part in parts for path in part.objects])
        return parts, starts

    def _check(
        self, entry: align_config.Entry, counts: dict[str, int], examples: dict[str, list[str]], inputs: list[str]
    ) -> None:
        """Check the matches of documents and values against the settings.

        Raises:
            StepFailed: if not; nothing has been written.
        """
        common = entry.settings()
        listed = f"{', '.join(inputs[:3])}{', …' if len(inputs) > 3 else ''}"
        reader = entry.reader()
        names = "`shard:`" if reader.source else "`source:` or `shard:`"
        by_shard = reader.shard or getattr(reader, "SHARD", "")
        apart = "" if by_shard else f" ({names} names a field that distinguishes them)"
        none, shares = f"no values in {listed}", f"id with another{apart}"
        faults = {
            "missing": (common.missing, f"document has {none}", f"documents have {none}", "missing: null"),
            "surplus": (common.surplus, "id is of no document", "ids are of no document", "surplus: ignore"),
            "repeated": (common.duplicates, "row repeats an id", "rows repeat an id", "duplicates: first"),
            "shared": (
                *(common.duplicates, f"document shares its {shares}", f"documents share their {shares}"),
                "duplicates: first",
            ),
        }
        results = [
            f"{entry.set}: expected values for each document, and each id once; {count:,} {(one, many)[count > 1]}: "
            f"{', '.join(examples[kind])}{', …' if count > len(examples[kind]) else ''}; correct that, or "
            f"choose `{remedy}`"
            for kind, (setting, one, many, remedy) in faults.items()
            if (count := counts[kind]) and setting == "error"
        ]
        if results:
            self._tell(entry, counts, 0)
            raise StepFailed(*results)

    def _write(
        self,
        entry: align_config.Entry,
        todo: Todo,
        folder: str,
        aligned: sets.Aligned,
        shards: Sequence[joining.ShardRead],
        starts: Sequence[int],
    ) -> int:
        dataset = self.dataset
        before, old = sets.load_aligned(dataset, entry.set), sets.load_schema(dataset, entry.set)
        if before is None or before.contents != aligned.contents or old != todo.schema:
            record_logs.of(dataset).forget([sets.place_of_aligned(entry.set)])
            sets.forget_all(dataset, [entry.set], sets.recorded_shards(dataset, entry.set))
        sets.save_schema(dataset, entry.set, todo.schema)
        record_logs.of(dataset).save({sets.place_of_aligned(entry.set): msgspec.json.encode(aligned)})
        works = [
            msgspec.structs.replace(work, content=shard.content, first=first)
            for work, shard, first in zip(
                works_to_write(dataset, entry, todo.schema, self.shards, folder, self._limit),
                shards,
                starts,
                strict=False,
            )
        ]
        tasks = [
            Task(dataset.attribute_path(entry.set, work.shard), work, key=work.shard)
            for work in works
            if not joining.is_done(work)
        ]
        return len(self._run(f"writing {entry.set}", joining.write_shard, tasks, per_shard=True))

    def _tell(self, entry: align_config.Entry, counts: dict[str, int], written: int) -> None:
        self.rows.append([entry.set, *(f"{counts.get(name, 0):,}" for name in _COUNTED), str(written)])
        matched = {name: count for name, count in counts.items() if name in _COUNTED}
        annotations = {name: count for name, count in counts.items() if name not in _COUNTED}
        if annotations:
            self.annotation_notes.append(
                f"{entry.set}: {', '.join(_counted(count, name) for name, count in annotations.items())}"
            )
        self.data[entry.set] = matched | ({"annotations": annotations} if annotations else {}) | {"written": written}

    def _run(
        self,
        label: str,
        function: Callable[[Any, Report], Any],
        tasks: Sequence[Task[Any]],
        *,
        per_shard: bool = False,
        needs: EstimateOf | None = None,
    ) -> list[Any]:
        unit = "shards" if per_shard else "tasks"
        failed = self._failures if per_shard else None
        return all_values(self.context.run(label, function, tasks, unit, failed=failed, needs=needs))


def _folder(dataset: Dataset, entry: align_config.Entry) -> str:
    """Return the folder of a set's intermediate files."""
    return join(dataset.bookkeeping, "align", entry.set)


def _shards_to_read(
    dataset: Dataset, entry: align_config.Entry, shards: Sequence[str], partitions: int, limit: int
) -> list[joining.ShardToRead]:
    reader = entry.reader()
    whole = joining.ShardToRead(
        dataset=dataset, shard="", folder=_folder(dataset, entry), partitions=partitions, limit=limit,
        by_source=reader.source is not None, by_shard=bool(reader.shard or getattr(reader, "SHARD", "")),
    )  # fmt: skip
    return [msgspec.structs.replace(whole, shard=shard) for shard in shards]


VALUES, NAMES = 2.0, 0.06
"""Bytes that are kept of a byte of values, which are written twice, and of documents, until their set is made."""


def _needs(context: Context, tasks: Sequence[Task[Any]], part: float) -> EstimateOf:
    """Return the disk needs of tasks, in proportion to their text: half of it now, and half when joined."""
    return context.disk.estimates(tasks, lambda work, text: text * part / (1 + exists(work.stem + ".json")) + FILES)


def _partitions(size: int) -> int:
    """Return the number of partitions for inputs of a size: 8 to a task, about."""
    return min(1 << 16, max(64, 1 << (512 * size // MEMORY).bit_length()))


def _counted(count: int, name: str) -> str:
    """Return a count in words: the first one says what is counted, in the plural."""
    first, _, rest = name.partition(" ")
    return " ".join(filter(None, (f"{count:,}", first.removesuffix("s") if count == 1 else first, rest)))


# --- as a stage -------------------------------------------------------------------------------------------------------


def _progress(look: Look) -> Iterator[Progress]:
    context = look.context
    for entry in align_config.read_section(context.section("align")):
        name = f"align {entry.set}"
        try:
            shards = look.shards(context.dataset)
            limit = context.config.max_document_bytes
            todo = progress_of(context.dataset, entry, shards, limit)
        except ToolkitError as error:
            yield Progress(name, unknown=str(error))
        else:
            causes = look.causes(entry.set, shards, todo.shards)
            not_begun = [shard for shard, why in causes.items() if why == NOT_BEGUN]
            partitions = _partitions(sum(size_of(path) or 0 for path in todo.inputs))
            existing = {*list_files(_folder(context.dataset, entry))}
            for task in _shards_to_read(context.dataset, entry, not_begun, partitions, limit):
                if existing and joining.is_read(task):
                    causes[task.shard] = "its ids are ready; which values belong to them depends on all shards"
            yield Progress(name, "align", causes)


def _look(look: Look) -> str:
    align_config.read_section(look.context.section("align"))
    return look.context.dataset.bookkeeping


def _check(context: Context, checked: Checked) -> None:
    checked.sets |= sections.aligned(context)


STAGE = Declaration("whole", _progress, _check, _look, disk_use=lambda context: DiskUse(needs_documents=True))
