"""Ingest: one input file, or a pack of small ones, becomes one shard of documents (or several, cut by size).

input ──decompress──> reader ──drafts──> trim ──rows──> documents/<source>/<path>.jsonl.gz + row index
│                              (+ attributes/<set>/… where the format carries attributes)
└── bad items: an error, or counted and kept in a reject file

"""

import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from typing import NamedTuple, Protocol

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.documents import DocumentRow
from toolkit.errors import DataError
from toolkit.ingest.inputs import Attempt, forget_attempt, is_of_these, look_at, note_entry, record_path, still_done
from toolkit.ingest.plan import InputToIngest
from toolkit.ingest.reader import Rejects
from toolkit.ingest.reading import downloads, sources
from toolkit.ingest.reading.rows import ENCODER, Written
from toolkit.ingest.section import settings_of, settings_of_set
from toolkit.ingest.superseded import forget_shards
from toolkit.records import sets
from toolkit.records.ingested import InputRecord
from toolkit.runs.blocks import BLOCK_BYTES, BLOCK_ROWS
from toolkit.runs.executors import Report
from toolkit.runs.progress import Position
from toolkit.storage import Stat, json_files
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import exists, join, lacking, list_files, remove


class FreshBlock(NamedTuple):
    """Some documents of a shard that have just been made.

    Attributes:
        number: of documents before them.
        rows: the documents, decoded; their metadata only stand in the lines.
        texts: of the documents, in UTF-8.
        lines: the same as JSON, without line ends.
        carried: the rows of attributes that the format carries; empty if it carries none.
    """

    number: int
    rows: list[DocumentRow]
    texts: list[bytes]
    lines: list[bytes]
    carried: list[bytes]


class Follower(Protocol):
    """The next stages of a shard, which take its documents while they are made.

    What goes wrong there does not concern the ingest: the documents are written all the same.
    """

    def take(self, blocks: Iterator[FreshBlock]) -> None:
        """Work on the blocks, of which some may be left; only errors of the blocks themselves are raised."""

    def complete(self, state: row_index.ShardState, carried: str) -> None:
        """Make what was written appear; the documents are complete, with the content digest of what they carry."""


Follow = Callable[[str, str | None], AbstractContextManager[Follower]]
"""Gives the follower of a shard, whose format carries a set with this name."""


class IngestedInput(ConfigStruct):
    """The outcome of ingesting an input file; `rejects` as in `InputRecord`."""

    shards: list[str]
    skipped: bool
    documents: int
    counts: dict[str, int]
    rejects: str = ""


def _keep(work: InputToIngest) -> downloads.Keep | None:
    max_disk = work.entry.settings().max_disk
    return downloads.Keep(_downloads(work.dataset), max_disk, work.key) if max_disk else None


def _downloads(dataset: Dataset) -> str:
    return join(dataset.bookkeeping, "downloads")


def sweep_downloads(works: Iterable[InputToIngest], dataset: Dataset) -> None:
    """Delete downloads of inputs that are not among these."""
    downloads.sweep(_downloads(dataset), (keep.name for keep in map(_keep, works) if keep))


def ingest_input(work: InputToIngest, report: Report, follow: Follow | None = None) -> IngestedInput:
    """Make the documents of one input file, or pack, unless that has been done.

    Args:
        work: the input.
        report: told of what is done.
        follow: gives what takes the documents of each shard that is made.

    Raises:
        DataError: if the input is damaged, or a shard is there that was not made from it; nothing was written.
    """
    start = time.perf_counter()
    found = _there(work)
    settings = settings_of(work.entry)
    record, damaged = json_files.load_told(record_path(work), InputRecord)
    if record is not None and still_done(work, record, found, settings):
        forget_attempt(work)
        sources.Sources(work, found, _keep(work), None).discard()
        note_entry(work, record)
        report(record.rows, 0)
        return _done(record, skipped=True)
    claims = _Claims(work, record, damaged=damaged)
    if work.is_pack and (damaged or (record and not is_of_these(work, record))):
        for shard in claims.shards:
            remove(work.dataset.shard_path(shard))  # other packs may have its inputs now, and this one may fail
    if record or damaged:
        remove(record_path(work))
    common = work.entry.settings()
    rejected = join("rejects", work.shard + ".jsonl.gz")
    with Rejects(join(work.dataset.bookkeeping, rejected)) as rejects:
        kept_aside = rejects if common.on_error == "skip" else None
        inputs = sources.Sources(work, found, _keep(work), kept_aside)
        written = _ShardsOutput(work, claims, Position(report, inputs.stored), follow)
        with closing(inputs.rows()) as rows:
            written.run(rows)
    forget_shards(work.dataset, sorted(claims.shards - written.shards.keys()))
    made = InputRecord(
        input=work.name,
        size=sum(each.size for each in inputs.read),
        stamp="" if work.is_pack else inputs.read[0].stamp,
        content=inputs.content(),
        settings=settings,
        shards=written.shards,
        rows=written.rows,
        counts=dict(sorted(inputs.counts.items())),
        seconds=round(time.perf_counter() - start, 3),
        entry=work.entry.name,
        max_rejected=common.max_rejected,
        rejects=rejected if rejects.written else "",
        inputs=inputs.read if work.is_pack else [],
    )
    json_files.save(record_path(work), made)
    inputs.discard()
    claims.release()
    return _done(made, skipped=False)


def _there(work: InputToIngest) -> list[Stat]:
    """Return the versions of the inputs that there are.

    Raises:
        DataError: naming those that are not there.
    """
    there = look_at(work)
    lacks = [
        DataError(f"expected an input file, got {lacking(file.path)}; put it back and run again", path=file.path)
        for file, found in zip(work.files, there, strict=True)
        if found is None
    ]
    if lacks:
        raise lacks[0] if len(lacks) == 1 else DataError("\n".join(map(str, lacks)))
    return [found for found in there if found]


def _done(record: InputRecord, *, skipped: bool) -> IngestedInput:
    return IngestedInput(
        shards=sorted(record.shards),
        skipped=skipped,
        documents=record.rows,
        counts=record.counts,
        rejects=record.rejects,
    )


class _Claims:
    """Keeps the shards that are this input's to write: those of its record, and of attempts that did not end.

    They are kept beside the record until there is a new one, so that no attempt takes a file that is somebody else's,
    and none leaves one behind. Two attempts at once take the same files, and write the same into them.
    """

    def __init__(self, work: InputToIngest, record: InputRecord | None, *, damaged: bool) -> None:
        self._work = work
        self._path = record_path(work) + ".started"
        self.shards: set[str] = set(record.shards if record else ())
        old, damaged_too = json_files.load_told(self._path, Attempt)
        if old:
            self.shards |= set(old.shards)
        if damaged or damaged_too:
            self.shards |= _shards_named(work)
        self._write()

    def take(self, shard: str, set_name: str | None) -> None:
        """Claim a shard, and its attributes in a set.

        Raises:
            DataError: if there is a file that is not this input's.
        """
        if shard in self.shards:
            return
        dataset = self._work.dataset
        paths = [dataset.shard_path(shard), *([dataset.attribute_path(set_name, shard)] if set_name else [])]
        for path in paths:
            if exists(path) and not self._work.overwrite and shard not in self._noted():
                raise DataError(
                    f"expected no file here yet, got one that was not made from {self._work.name}; move it, choose "
                    "another `source:` (or `set:`), or --overwrite",
                    path=path,
                )
        self.shards.add(shard)
        self._write()

    def release(self) -> None:
        """Forget the claims: the record has the shards now."""
        remove(self._path)

    def _noted(self) -> set[str]:
        """Return the shards that are noted as this input's now; another attempt may have ended, or be at work."""
        found = json_files.load(self._path, Attempt), json_files.load(record_path(self._work), InputRecord)
        return {shard for noted in found if noted for shard in noted.shards}

    def _write(self) -> None:
        attempt = json_files.load(self._path, Attempt)
        self.shards |= set(attempt.shards if attempt else ())
        keys = [file.key for file in self._work.files] if self._work.is_pack else []
        json_files.save(self._path, Attempt(input=self._work.name, shards=sorted(self.shards), keys=keys))


def _shards_named(work: InputToIngest) -> set[str]:
    """Return the shards that there are, by their names, of an input whose record is damaged."""
    number = r"\.\d{5,}" if work.entry.settings().shard_size else ""
    name = re.compile(re.escape(work.shard) + number + re.escape(work.suffix))
    return {shard for shard in list_files(work.dataset.documents) if name.fullmatch(shard)}


class _ShardsOutput:
    """Writes documents to the shards that they become, and their attributes beside them."""

    def __init__(self, work: InputToIngest, claims: _Claims, report: Position, follow: Follow | None) -> None:
        self.work = work
        self.claims = claims
        self.report = report
        self.follow = follow
        self.rows = 0
        self.shards: dict[str, sets.OutputState] = {}
        self.common = work.entry.settings()
        self.reader = work.entry.reader()
        self.set_name = self.reader.attribute_set()

    def run(self, rows: Iterator[Written]) -> None:
        first, number = next(rows, None), 0
        while first is not None or number == 0:
            name = self.work.shard_name(number)
            self._write_shard(name, rows if first is None else itertools.chain((first,), rows))
            first, number = next(rows, None), number + 1

    def _write_shard(self, name: str, drafts: Iterator[Written]) -> None:
        dataset, set_name = self.work.dataset, self.set_name
        self.claims.take(name, set_name)
        if set_name:
            sets.forget(dataset, set_name, name)
        with ExitStack() as following:
            follower = following.enter_context(self.follow(name, set_name)) if self.follow else None
            with ExitStack() as stack:
                index = stack.enter_context(row_index.RowIndexOutput(dataset, name, replaced=True))
                output = stack.enter_context(RowOutput(dataset.shard_path(name)))
                carried = stack.enter_context(RowOutput(dataset.attribute_path(set_name, name))) if set_name else None
                blocks = self._written(drafts, index, output, carried)
                if follower:
                    follower.take(blocks)
                for _ in blocks:
                    pass
            state = index.finish(output.stat, output.content)
            self.shards[name] = sets.output_state(output)
            self.rows += output.rows
            if set_name and carried:
                self._record_carried(name, state, carried)
            if follower:
                follower.complete(state, carried.content if carried else "")

    def _written(
        self, drafts: Iterator[Written], index: row_index.RowIndexOutput, output: RowOutput, carried: RowOutput | None
    ) -> Iterator[FreshBlock]:
        """Write the documents of a shard; yield them in blocks, which end where those of its file will."""
        size, offset = self.common.shard_size, 0
        is_last = False
        while not is_last:
            is_last, begin = True, offset
            block = FreshBlock(output.rows, [], [], [], [])
            for draft, row, line in drafts:
                block.rows.append(row)
                block.lines.append(line)
                block.texts.append(row.text.encode())
                index.add(row_index.entry_of(row, len(block.texts[-1])), offset)
                offset += len(line) + 1
                if carried:
                    found = {"source": row.source, "id": row.id, "attributes": draft.attributes}
                    block.carried.append(ENCODER.encode(found))
                if size and offset >= size:
                    break
                if len(block.lines) == BLOCK_ROWS or offset - begin - len(block.lines) >= BLOCK_BYTES:
                    is_last = False
                    break
            output.write_rows(block.lines)
            if carried:
                carried.write_rows(block.carried)
            if block.lines:
                self.report(len(block.lines))
                yield block

    def _record_carried(self, name: str, state: row_index.ShardState, carried: RowOutput) -> None:
        assert self.set_name
        record = sets.ShardRecord(
            input=state,
            settings={key: settings_of_set(self.work.entry) for key in self.reader.TYPES},
            reads={},
            rows=carried.rows,
            counts={"documents": carried.rows},
            output=sets.output_state(carried),
            seconds=0.0,
        )
        json_files.save(sets.record_path(self.work.dataset, self.set_name, name), record)
