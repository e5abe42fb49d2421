"""Ingest: one input file, or a pack of small ones, becomes one shard of documents (or several, cut by size).

input ──decompress──> reader ──drafts──> trim ──rows──> documents/<source>/<path>.jsonl.gz + row index
│                              (+ attributes/<set>/… where the format carries attributes)
└── bad items: an error, or counted and kept in a reject file

"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from typing import NamedTuple, Protocol

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError
from toolkit.execution.blocks import BLOCK_BYTES, BLOCK_ROWS
from toolkit.execution.executors import Failure, P, R, Report, Result, Task
from toolkit.execution.grouped import run_sequentially
from toolkit.execution.progress import Position
from toolkit.ingest.attempts import BatchedIngest, ShardOwnership, forget_shards
from toolkit.ingest.ingest_config import settings_of, settings_of_set
from toolkit.ingest.input_rows.input_bytes import DownloadCache, InputBytes, sweep
from toolkit.ingest.input_rows.rows import ENCODER, OutputRow, Sources
from toolkit.ingest.inputs import as_of_now, has_same_inputs, input_state
from toolkit.ingest.plan import InputToIngest, listed_stats
from toolkit.ingest.reader import Rejects
from toolkit.records import ingested, left_out, sets, takedown
from toolkit.records.ingested import BriefInput
from toolkit.storage import Stat, store_of
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import join, missing_reason, remove, stat_each
from toolkit.storage.record_log import Group


class DocumentBatch(NamedTuple):
    """Consecutive new documents of a shard.

    Attributes:
        number: Number of documents before them.
        rows: the documents, without drafts.
        carried: the rows of attributes that the format carries, by set.
    """

    number: int
    rows: list[OutputRow]
    carried: dict[str, list[bytes]]


class DownstreamSink(Protocol):
    """The next stages of a shard during its ingest.

    What goes wrong there does not concern the ingest: the documents are written all the same.
    """

    def take(self, blocks: Iterator[DocumentBatch]) -> None:
        """Process some or all of the blocks; only errors of the blocks themselves are raised."""

    def complete(self, state: row_index.ShardState, carried: Mapping[str, str]) -> None:
        """Add the outputs to the group; the documents are complete, and so are the sets, by content digest."""


Downstream = Callable[[str, Sequence[str], Group], AbstractContextManager[DownstreamSink]]
"""Gives the follower of a shard, whose format carries sets with these names, and whose files belong to a group."""


class IngestedInput(ConfigStruct):
    """The outcome of an input; `rejects` and `salvaged` as in `InputRecord`.

    Attributes:
        tagged: Shards whose attributes were written on the way.
        failures: Why stages have failed that follow on the way, by stage and shard.
        omitted: Why shards could not be mixed, by key, where documents are deleted and the mix may omit them.
    """

    shards: list[str]
    skipped: bool
    documents: int
    counts: dict[str, int]
    rejects: str = ""
    salvaged: list[str] = []
    tagged: list[str] = []
    failures: dict[tuple[str, str], Failure] = {}
    omitted: dict[str, str] = {}


def _keep(work: InputToIngest) -> DownloadCache | None:
    max_disk = None if work.files[0].selected else work.entry.settings().max_disk
    return DownloadCache(_downloads(work.dataset), max_disk, work.key) if max_disk else None


def _downloads(dataset: Dataset) -> str:
    return join(dataset.bookkeeping, "downloads")


def sweep_downloads(works: Iterable[InputToIngest], dataset: Dataset) -> None:
    """Delete downloads of other inputs than these."""
    sweep(_downloads(dataset), (keep.name for keep in map(_keep, works) if keep))


def finished_outcome(
    work: InputToIngest, finished: Callable[[InputToIngest], BriefInput | None]
) -> IngestedInput | None:
    """Return the outcome of an input among the finished ones; None for any other."""
    item = finished(work) if _is_listed(work) else None
    if item is None or (item.entry, item.max_rejected) != (work.entry.name, work.entry.settings().max_rejected):
        return None
    return IngestedInput(shards=sorted(item.shards), skipped=True, documents=item.rows, counts=item.counts)


def cached_outcome(work: InputToIngest) -> IngestedInput | None:
    """Return the outcome of an up-to-date input, by record and listings.

    That is none of which an attempt has not ended.
    """
    record = ingested.load(work.dataset, work.key) if _is_listed(work) else None
    if record is None or as_of_now(work, record) is not record:
        return None
    is_done = input_state(work, record, listed_stats(work.files), quick=True).is_done
    return outcome_of(record, skipped=True) if is_done else None


def _is_listed(work: InputToIngest) -> bool:
    return store_of(work.path).can_list and not _keep(work)


def ingest_input(
    work: InputToIngest,
    report: Report,
    follow: Downstream | None = None,
    grouped: BatchedIngest | None = None,
    threads: int = 0,
) -> IngestedInput:
    """Make the documents of an input or pack, unless up to date.

    Args:
        work: the input.
        report: told of what is done.
        follow: gives what takes the documents of each shard that is made.
        grouped: the group with which what is made of the input becomes durable, if it can; else that is so at the end.
        threads: Threads that compress the documents.

    Raises:
        DataError: if the input is damaged, or a shard is there that was not made from it; nothing was written.
    """
    start = time.perf_counter()
    stats = _current_stats(work)
    record, damaged = ingested.load_told(work.dataset, work.key)
    if record is not None and (state := input_state(work, record, stats)).is_done:
        Sources(work, stats, _keep(work), None).discard()
        if (updated := as_of_now(work, record, state.stamps)) is not record:
            ingested.save(work.dataset, work.key, updated)
        report(record.rows, 0)
        return outcome_of(record, skipped=True)
    ownership = ShardOwnership(work, record, grouped.of(work) if grouped else None, damaged=damaged)
    if work.is_pack and (damaged or (record and not has_same_inputs(work, record))):
        for shard in ownership.shards:
            remove(work.dataset.shard_path(shard))  # other packs may have its inputs now, and this one may fail
    common = work.entry.settings()
    rejected = join("rejects", work.shard + ".jsonl.gz")
    aside = left_out.path_of(work.shard)
    with ExitStack() as stack:
        files = stack.enter_context(ownership.group()).files
        listed, source = takedown.takedown_of(work.dataset), work.shard.partition("/")[0]
        is_listed = partial(listed.names, source=source) if listed else lambda raw: False
        rejects = stack.enter_context(Rejects(join(work.dataset.bookkeeping, rejected), is_listed))
        left_out_output = stack.enter_context(left_out.LeftOutOutput(join(work.dataset.bookkeeping, aside), files))
        kept_aside = rejects if common.skips else None
        inputs = Sources(work, stats, _keep(work), kept_aside, left_out_output)
        written = _ShardsOutput(work, ownership, Position(report, inputs.stored), follow, threads, inputs)
        with closing(inputs.rows()) as rows:
            written.run(rows)
    forget_shards(work.dataset, sorted(ownership.shards - written.shards.keys()))
    input_record = ingested.InputRecord(
        input=work.name,
        size=sum(input_.size for input_ in inputs.read),
        stamp="" if work.is_pack else inputs.read[0].stamp,
        content=inputs.content(),
        settings=settings_of(work.entry),
        shards=written.shards,
        rows=written.rows,
        counts=dict(sorted(inputs.counts.items())),
        seconds=round(time.perf_counter() - start, 3),
        entry=work.entry.name,
        max_rejected=common.max_rejected,
        rejects=rejected if rejects.written else "",
        salvaged=inputs.salvaged,
        left_out=aside if left_out_output.written else "",
        inputs=inputs.read if work.is_pack else [],
        types=work.types,
    )
    ownership.save(input_record, inputs.discard)
    return outcome_of(input_record, skipped=False)


def in_group(
    do: Callable[[P, Report, BatchedIngest], R], tasks: list[Task[P]], works: list[InputToIngest], report: Report
) -> list[Result[R]]:
    """Do tasks one by one, durable together; return the results.

    Args:
        do: a task.
        tasks: Tasks to do.
        works: the input of each task.
        report: told of what is done.
    """
    with BatchedIngest(works) as grouped:
        return run_sequentially(lambda payload, report: do(payload, report, grouped), tasks, report, grouped.group)


def _current_stats(work: InputToIngest) -> list[Stat]:
    """Return the current versions of the inputs: they will be read.

    Raises:
        DataError: naming those that are not there.
    """
    if work.files[0].selected:
        return [file.stat for file in work.files if file.stat]
    current = stat_each([file.path for file in work.files])
    lacks = [
        DataError(f"expected an input file, got {missing_reason(file.path)}; put it back and run again", path=file.path)
        for file, stat in zip(work.files, current, strict=True)
        if stat is None
    ]
    if lacks:
        raise lacks[0] if len(lacks) == 1 else DataError("\n".join(map(str, lacks)))
    return [stat for stat in current if stat]


def outcome_of(record: ingested.InputRecord, *, skipped: bool) -> IngestedInput:
    """Return the outcome of a recorded input."""
    return IngestedInput(
        shards=sorted(record.shards),
        skipped=skipped,
        documents=record.rows,
        counts=record.counts,
        rejects=record.rejects,
        salvaged=record.salvaged,
    )


class _ShardsOutput(msgspec.Struct, dict=True):
    """Writes documents to the shards of a work, with their attributes."""

    work: InputToIngest
    ownership: ShardOwnership
    report: Position
    follow: Downstream | None
    threads: int
    inputs: Sources
    rows: int = 0
    shards: dict[str, sets.OutputState] = {}
    records: list[tuple[InputBytes, int]] = []

    def __post_init__(self) -> None:
        self.common = self.work.entry.settings()
        self.reader = self.work.entry.reader()
        self.set_names = self.reader.attribute_sets()

    def run(self, rows: Iterator[OutputRow]) -> None:
        first, number = next(rows, None), 0
        while first is not None or number == 0:
            name = self.work.shard_name(number)
            self._write_shard(name, rows if first is None else itertools.chain((first,), rows))
            first, number = next(rows, None), number + 1

    def _write_shard(self, name: str, drafts: Iterator[OutputRow]) -> None:
        dataset = self.work.dataset
        self.ownership.take(name, self.set_names)
        sets.forget_all(dataset, self.set_names, [name])
        with self.ownership.group() as group, ExitStack() as following:
            follower = following.enter_context(self.follow(name, self.set_names, group)) if self.follow else None
            files = group.files
            with ExitStack() as stack:
                index = stack.enter_context(row_index.RowIndexOutput(dataset, name, replaced=True, group=group))
                output = stack.enter_context(RowOutput(dataset.shard_path(name), self.threads, together=files))
                paths = {set_name: dataset.attribute_path(set_name, name) for set_name in self.set_names}
                carried = {key: stack.enter_context(RowOutput(path, together=files)) for key, path in paths.items()}
                blocks = self._written(drafts, index, output, carried)
                if follower:
                    follower.take(blocks)
                for _ in blocks:
                    pass
            if self.reader.RECORDS:
                places = [opened.place(number) for opened, number in self.records]
                row_index.write_places(dataset, name, places, files)
                self.records = []
            state = index.finish(output.stat, output.content, head=output.head)
            self.shards[name] = sets.output_state(output)
            self.rows += output.rows
            if carried:
                self._record_carried(name, state, carried, group)
            if follower:
                follower.complete(state, {key: output.content for key, output in carried.items()})

    def _written(
        self,
        drafts: Iterator[OutputRow],
        index: row_index.RowIndexOutput,
        output: RowOutput,
        carried: Mapping[str, RowOutput],
    ) -> Iterator[DocumentBatch]:
        """Write the documents of a shard; yield them in blocks, which end where those of its file will."""
        size, offset, cleared = self.common.shard_size, 0, 0
        is_last = False
        while not is_last:
            is_last, begin = True, offset
            block = DocumentBatch(output.rows, [], {name: [] for name in carried})
            for row in drafts:
                block.rows.append(row)
                draft, row.draft = row.draft, None
                if draft:
                    cleared += draft.cleared
                    row.utf8 = draft.text.encode() if row.utf8 is None else row.utf8
                fields = (draft.fields(row.id) if draft else row.paths) or row.line
                if self.reader.RECORDS:
                    self.records.append((self.inputs.current, 0 if draft and draft.cleared else row.number))
                size_of_text, own = len(row.utf8 or b""), () if row.has_own else None
                index.add(row_index.entry(row.source, row.id, row.chars, size_of_text, own, fields), offset)
                offset += len(row.line) + 1
                for name, rows in block.carried.items():
                    attributes = (draft and draft.attributes) or {}
                    if name not in attributes:
                        got = ", ".join(attributes) or "none"
                        message = f"expected attributes by set, {{{name!r}: {{KEY: …}}}}, of each draft, got {got}"
                        message += f"; correct {type(self.reader).__name__}.read"
                        raise DataError(message, path=self.work.path, line=row.number)
                    rows.append(ENCODER.encode({"source": row.source, "id": row.id, "attributes": attributes[name]}))
                if size and offset + cleared >= size:  # so a takedown moves no document to another shard
                    break
                if len(block.rows) == BLOCK_ROWS or offset - begin - len(block.rows) >= BLOCK_BYTES:
                    is_last = False
                    break
            output.write_rows([row.line for row in block.rows])
            for name, rows in block.carried.items():
                carried[name].write_rows(rows)
            if block.rows:
                self.report(len(block.rows))
                yield block

    def _record_carried(
        self, name: str, state: row_index.ShardState, carried: Mapping[str, RowOutput], group: Group
    ) -> None:
        records = {
            set_name: sets.ShardRecord(
                input=state,
                settings=dict.fromkeys(self.reader.TYPES, settings_of_set(self.work.entry, set_name)),
                reads={},
                rows=output.rows,
                counts={"documents": output.rows},
                output=sets.output_state(output),
                seconds=0.0,
            )
            for set_name, output in carried.items()
        }
        sets.save_records(self.work.dataset, name, records, group)
