"""Stage 1 of a mix: one shard becomes labelled, compressed members in one intermediate file, with a small index."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from toolkit.data import record_logs
from toolkit.data.document_fields import DOT, KEYS, SAME
from toolkit.data.row_index import ShardState
from toolkit.errors import DataError
from toolkit.execution.blocks import in_order, threads_for
from toolkit.execution.executors import Report, Result, Task
from toolkit.execution.grouped import ShardDone, Work, run_sequentially
from toolkit.lazy_numpy import np
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.encode import Encoded, Encoder
from toolkit.mix.join import digests_of, inputs_of, joint_blocks
from toolkit.mix.orphans import Copies, ShardNotes
from toolkit.mix.rule_effects.counts import Counted, ShardEffects, finish
from toolkit.mix.settings import MixSettings
from toolkit.mix.shuffle import hash_bytes, hash_of, sizes_of
from toolkit.mix.sieve import TableSieve
from toolkit.mix.writer import not_carried
from toolkit.records.sets import ShardSets, finished_shards
from toolkit.storage.compression import COMPRESSORS
from toolkit.storage.freshness import Artifact, FileRecord, state
from toolkit.storage.outputs import Compressing, Output
from toolkit.storage.packed_rows import PackedRows
from toolkit.storage.paths import escape_path, join, listing_cache, work_folder
from toolkit.storage.record_log import Group, RecordLog

if TYPE_CHECKING:
    from toolkit.records.identity import NotedDocuments

TINY = 256 << 10
"""Members with fewer uncompressed bytes are joined with their like in parts, and so are compressed only there."""

HELD = 32 << 20
"""Bytes of all labels together that are held before the largest is written; bounds memory with many labels."""


RECORD_LOG = "record-log"
"""Folder of the indexes of intermediates, beside these; none of them has a name with a dot."""

_KIND = "stage"


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A piece of an intermediate.

    Attributes:
        offset, length: Place in the intermediate.
        size: Uncompressed bytes.
        documents: Number of documents, or pieces of documents, that the writer gave.
        low, high: Least and greatest hash of these, where the output is shuffled.
    """

    offset: int
    length: int
    size: int
    documents: int
    low: int = 0
    high: int = 0


VERSION = 6
"""Of indexes; a shard with one of another version is encoded anew."""


class StageRecord(ShardEffects, Artifact, frozen=True, kw_only=True):
    """The record of an encoded shard.

    Attributes:
        settings: Digest of all that determines the intermediate but the inputs.
        documents: Content digest of the shard.
        attributes: Content digest of the shard in each joined set.
        own: Top-level fields of the documents that are their own.
        members: Members by label, in the order of the documents.
        sizes: Places of the hashes and sizes of pieces (see `toolkit.mix.shuffle.sizes_of`) in the intermediate, and
            their numbers, for each run of a shuffled output, by label.
        size, stamp: Size and stamp of the intermediate.
        note_sizes: Bytes of each file of notes, by its suffix: documents that stay and copies that do not, with rules
            about such; documents that are written, where their ids are compared.
    """

    version: int = VERSION
    settings: str
    documents: str
    attributes: dict[str, str]
    own: list[str] = []
    members: dict[str, list[Member]]
    sizes: dict[str, list[tuple[int, int]]] = {}
    size: int
    stamp: str
    note_sizes: dict[str, int] = msgspec.field(name="noted", default_factory=dict)
    seconds: float

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.documents, **self.attributes}

    @property
    def made_with(self) -> tuple[int, str]:
        return self.version, self.settings


class StageRecords:
    """The records of encoded shards, packed for the plan of the output.

    A shard may have members of a hundred labels, so members are kept by label.

    Attributes:
        records: Records without members and effects of rules, in the order in which they are added.
        keys: Key of the shard of each.
        members: Members by label: number of the record, and its members.
        stored: Stored bytes of all members.
    """

    def __init__(self) -> None:
        self.records, self.keys = PackedRows(StageRecord), list[str]()
        self.members: dict[str, PackedRows[tuple[int, list[Member]]]] = {}
        self.stored = 0

    def add(self, key: str, record: StageRecord) -> None:
        for label, members in record.members.items():
            if label not in self.members:
                self.members[label] = PackedRows(tuple[int, list[Member]])
            self.members[label].append((len(self.keys), members))
            self.stored += sum(member.length for member in members)
        self.keys.append(key)
        self.records.append(msgspec.structs.replace(record, **_NOT_PLANNED))

    def sorted_records(self) -> Iterator[tuple[str, StageRecord]]:
        """Yield keys and records, sorted by key."""
        numbers = sorted(range(len(self.keys)), key=self.keys.__getitem__)
        return ((self.keys[number], self.records[number]) for number in numbers)


_NOT_PLANNED: dict[str, Any] = {
    **{name: {} for name in ("members", "matched", "counts", "statistics", "not_carried", "groups", "kinds")},
    **{name: [] for name in ("rules", "own")},
}


_KEPT, _COPIES, WRITTEN = ".kept", ".copies", ".written"
"""Suffixes of an intermediate's name for the files that list its documents."""


def stage_path(output: str, digest: str, key: str) -> str:
    """Return the path of the intermediate of a shard, by its key."""
    return join(_folder(output, digest), escape_path(key))


def _folder(output: str, digest: str) -> str:
    return join(work_folder(output), "stage", digest)


def load_stage(output: str, digest: str, key: str) -> StageRecord | None:
    """Return the index of an encoded shard."""
    return records_of(output, digest).load(_KIND, key, StageRecord)


def records_of(output: str, digest: str) -> RecordLog:
    """Return the record log of the intermediates by some settings."""
    folder = _folder(output, digest)
    return record_logs.at(work_folder(output), join(folder, RECORD_LOG))


def made_from(work: ShardToMix, documents: str, attributes: dict[str, str] | None) -> StageRecord | None:
    """Return the index of a shard, if made from these inputs. Inputs are content digests."""
    output, digest = work.settings.output.path, work.settings.stage_digest()
    record, path = load_stage(output, digest, work.key), stage_path(output, digest, work.key)
    if attributes is None or (record and work.settings.notes_ids and WRITTEN not in record.note_sizes):
        return None

    def files(record: StageRecord) -> list[FileRecord]:
        return [FileRecord(path + suffix, size) for suffix, size in {"": record.size, **record.note_sizes}.items()]

    inputs = [("", documents), *attributes.items()]
    return record if state(record, inputs, (VERSION, digest), files).is_done else None


def noted_of(output: str, key: str, record: StageRecord) -> ShardNotes | None:
    """Return the notes about copies in a shard; None if there are none."""
    if _KEPT not in record.note_sizes:
        return None
    path = stage_path(output, record.settings, key)
    return ShardNotes(path + _KEPT, path + _COPIES, record.note_sizes[_KEPT] + record.note_sizes[_COPIES])


def written_of(work: ShardToMix, record: StageRecord) -> "NotedDocuments":
    """Return the noted documents of a shard in the output."""
    from toolkit.records.identity import NOTED, IndexedDocuments, NotedDocuments

    path = stage_path(work.settings.output.path, record.settings, work.key) + WRITTEN
    indexed = IndexedDocuments(work.dataset, work.shard, record.totals.rows)
    return NotedDocuments(work.name, record.note_sizes[WRITTEN] // np.dtype(NOTED).itemsize, path, indexed)


@contextmanager
def looking(settings: MixSettings) -> Iterator[None]:
    """Look up files of streams and intermediates in listings.

    See `toolkit.storage.paths.listing_cache`.
    """
    with listing_cache(_folder(settings.output.path, settings.stage_digest())), ExitStack() as stack:
        for stream in settings.streams:
            stack.enter_context(stream.dataset.listing_cache(joined.set for joined in stream.attributes))
        yield


def inputs_now(work: ShardToMix) -> tuple[str, dict[str, str]] | None:
    """Return the content digests of documents and attributes; None if they are faulty."""
    shard = ShardSets.now(work.dataset, work.shard)
    if shard.version is None:
        return None
    try:
        return shard.version[0], digests_of(work, shard)
    except DataError:
        return None


def listed_inputs() -> Callable[[ShardToMix], tuple[str, dict[str, str]] | None]:
    """Return a function with the result of `inputs_now` by listings alone; None if these do not tell it."""
    by_stream = dict[str, tuple[list[str], Callable[[str], list[tuple[str, int]] | None]]]()

    def inputs(work: ShardToMix) -> tuple[str, dict[str, str]] | None:
        if (name := work.stream.name) not in by_stream:
            names = [joined.set for joined in work.sets]
            by_stream[name] = names, finished_shards(work.dataset).all_of(names)
        names, items_of = by_stream[name]
        if (items := items_of(work.shard)) is None:
            return None
        return items[0][0], {name: item[0] for name, item in zip(names, items[1:], strict=True)}

    return inputs


def as_it_was(work: ShardToMix) -> ShardDone | None:
    """Return the outcome of an encoded shard with unchanged inputs; else None."""
    if load_stage(work.settings.output.path, work.settings.stage_digest(), work.key) is None:
        return None
    now = inputs_now(work)
    stage_record = made_from(work, *now) if now else None
    return ShardDone(shard=work.shard, documents=stage_record.totals.rows) if stage_record else None


def mix_together(tasks: list[Task[ShardToMix]], report: Report) -> list[Result[ShardDone]]:
    """Mix small shards as `mix_shard` does, durable together."""
    with _group(tasks[0].payload) as group:
        return run_sequentially(partial(mix_shard, group=group), tasks, report, group)


def mix_shard(work: ShardToMix, report: Report, group: Group | None = None) -> ShardDone:
    """Encode one shard, unless it is encoded from the same inputs.

    Args:
        work: Shard.
        report: Report of progress.
        group: Group with which the intermediate becomes durable; by default one of its own.

    Raises:
        DataError: if an input is not what it should be, or a rule or the writer cannot use a value; the document is
            named, nothing was written.
    """
    documents, inputs = inputs_of(work, learn=True)
    if stage_record := made_from(work, documents.content, inputs):
        report(stage_record.totals.rows, 0)
        return ShardDone(shard=work.shard, documents=stage_record.totals.rows)
    with nullcontext(group) if group else _group(work) as own:
        with ExitStack() as stack:
            output = stack.enter_context(StageOutput(work, own))
            for encoded in _encoded(work, stack, report):
                output.write(encoded)
        output.record(documents, inputs)
    return ShardDone(shard=work.shard, documents=documents.rows, written=[work.key])


WORK = Work(mix_shard, mix_together)


def check_shard(work: ShardToMix, report: Report) -> None:
    """Encode one shard as `mix_shard` does, and write nothing; errors are the same."""
    inputs_of(work)
    with ExitStack() as stack:
        for _ in _encoded(work, stack, report):
            pass


def _encoded(work: ShardToMix, stack: ExitStack, report: Report) -> Iterator[Encoded]:
    blocks = joint_blocks(work, stack, TableSieve.of(work))
    for encoded in in_order(Encoder, work, blocks, work.processes, work.path):
        yield encoded
        report(encoded.counted.totals.rows, encoded.stored)


def _group(work: ShardToMix) -> Group:
    return Group(records_of(work.settings.output.path, work.settings.stage_digest()))


class StageOutput:
    """Writes the intermediate of a shard. A context manager, which adds it to a group; `record` then makes it valid.

    Args:
        work: Shard.
        group: Group that it appears with.
    """

    def __init__(self, work: ShardToMix, group: Group) -> None:
        self._work = work
        self._group = group
        self._digest = work.settings.stage_digest()
        self._path = stage_path(work.settings.output.path, self._digest, work.key)
        self._start = time.perf_counter()
        self._rules = work.compile_rules()
        self._counted = Counted.none(len(self._rules.rules))
        self._counted.matched = {i: set() for i in self._rules.blocklists}

    def __enter__(self) -> Self:
        records_of(self._work.settings.output.path, self._digest).forget([(_KIND, self._work.key)])
        with ExitStack() as stack:
            self._output = stack.enter_context(Output(self._path, self._group.files, digest=False))
            threads = threads_for(self._work.processes)
            self._members = _Members(stack.enter_context(Compressing(self._output, threads)), self._work.settings)
            notes = [_KEPT, _COPIES] if Copies(self._rules, self._work).rules else []
            notes += [WRITTEN] if self._work.settings.notes_ids else []
            beside = {suffix: Output(self._path + suffix, self._group.files, digest=False) for suffix in notes}
            self._notes = {suffix: stack.enter_context(output) for suffix, output in beside.items()}
            stack.push(self._flush)
            self._files = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._files.__exit__(kind, error, tb)

    def _flush(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._members.flush()

    def write(self, encoded: Encoded) -> None:
        """Write the next encoded documents."""
        for label, data in encoded.pieces:
            self._members.add(label, data)
        self._counted.add(encoded.counted)
        fates = encoded.fates
        for suffix, output in self._notes.items():
            output.write({_KEPT: fates.staying, _COPIES: fates.copies, WRITTEN: fates.written}[suffix])

    def record(self, state: ShardState, inputs: dict[str, str]) -> None:
        """Add the index of the intermediate to the group, after the block.

        Args:
            state: State of the documents.
            inputs: Content digests of the joined sets.

        Raises:
            DataError: if the shard has another number of documents than were written.
        """
        counted, index = self._counted, self._members.index
        if counted.totals.rows != state.rows:
            message = f"expected {state.rows} rows as indexed, got {counted.totals.rows}"
            raise DataError(message, path=self._work.path)
        finish(counted.rules, self._rules.rules, counted.totals)
        record = StageRecord(
            settings=self._digest,
            documents=state.content,
            attributes=inputs,
            totals=counted.totals,
            rules=counted.rules,
            matched={i: sorted(entries) for i, entries in counted.matched.items()},
            counts={name: n for name, n in sorted(counted.left_out.items()) if n},
            statistics={label: counted.statistics[label] for label in sorted(counted.statistics)},
            own=_own_fields(state),
            not_carried=not_carried(self._work.settings.writer(), state.all_fields),
            unlike_dolma=counted.unlike_dolma,
            groups=dict(sorted(counted.groups.items())),
            kinds=dict(sorted(counted.kinds.items())),
            members={label: index[label] for label in sorted(index)},
            sizes=dict(sorted(self._members.sizes.items())),
            size=self._output.stat.size,
            stamp=self._output.stat.stamp,
            note_sizes={suffix: output.size for suffix, output in self._notes.items()},
            seconds=round(time.perf_counter() - self._start, 3),
        )
        records = records_of(self._work.settings.output.path, self._digest)
        self._group.save((_KIND, self._work.key), msgspec.json.encode(record), records)


def _own_fields(state: ShardState) -> list[str]:
    """Return the own top-level fields of a shard's documents, sorted."""
    names = {path.partition(".")[0] for counts in state.all_fields for path in counts if path not in SAME}
    return sorted({name.replace(DOT, ".") for name in names} - {*KEYS})


class _Members:
    """Collects the bytes of each label, and writes members of bounded size."""

    def __init__(self, output: Compressing, settings: MixSettings) -> None:
        self.index: dict[str, list[Member]] = {}
        self.sizes: dict[str, list[tuple[int, int]]] = {}
        self._output = output
        self._settings = settings
        self._limit = settings.member_size
        self._pieces: dict[str, list[bytes]] = {}
        self._sizes: dict[str, int] = {}
        self._buffered = 0

    def add(self, label: str, data: bytes) -> None:
        """Add bytes of a label; a member ends before a piece that would take it over its size."""
        size = self._sizes.get(label, 0)
        if size and size + len(data) > self._limit and not self._settings.shuffles(label):
            self._write(label)
        self._pieces.setdefault(label, []).append(data)
        self._sizes[label] = self._sizes.get(label, 0) + len(data)
        self._buffered += len(data)
        while self._buffered > HELD:
            self._write(max(self._sizes, key=lambda size: (self._sizes[size], size)))

    def flush(self) -> None:
        for label in sorted(self._pieces):
            self._write(label)
        self._output.flush()

    def _write(self, label: str) -> None:
        pieces, size = self._pieces.pop(label), self._sizes.pop(label)
        self._buffered -= size
        if not self._settings.shuffles(label):
            self._write_member(label, pieces)
            return
        pieces.sort(key=hash_bytes)
        begin = size = 0
        for end, piece in enumerate(pieces):
            if end > begin and size + len(piece) > self._limit:
                self._write_member(label, pieces[begin:end])
                begin, size = end, 0
            size += len(piece)
        self._write_member(label, pieces[begin:])
        count = len(pieces)

        def note(offset: int, length: int) -> None:
            self.sizes.setdefault(label, []).append((offset, count))

        self._output.write(sizes_of(pieces), COMPRESSORS["none"], note)

    def _write_member(self, label: str, pieces: list[bytes]) -> None:
        data = b"".join(pieces)
        hashes = (hash_of(pieces[0]), hash_of(pieces[-1])) if self._settings.shuffles(label) else ()

        def note(offset: int, length: int) -> None:
            self.index.setdefault(label, []).append(Member(offset, length, len(data), len(pieces), *hashes))

        staged = self._settings.staged(label)
        self._output.write(data, COMPRESSORS["gzip-fast" if is_draft(staged, len(data)) else staged], note)


def is_draft(compression: str, size: int) -> bool:
    """Return True if a member is compressed fast, and again later."""
    return compression == "gzip" and size < TINY
