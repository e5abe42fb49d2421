"""Stage 1 of a mix: one shard becomes labelled, compressed members in one intermediate file, with a small index."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from toolkit.data import record_logs, row_index
from toolkit.data.metadata_fields import DOT, SAME
from toolkit.data.own_types import KEYS
from toolkit.data.row_index import ShardState
from toolkit.errors import DataError
from toolkit.execution.blocks import in_order, threads_for
from toolkit.execution.executors import Report, Result, Task
from toolkit.execution.grouped import ShardDone, Work, run_sequentially
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.effects.counts import Counted, GroupCount, RuleCount, SizesByLabel, Totals, finish
from toolkit.mix.encode import Encoded, Encoder
from toolkit.mix.join import inputs_of, joint_blocks
from toolkit.mix.orphans import Copies, Noted
from toolkit.mix.settings import MixSettings
from toolkit.mix.shuffle import hash_bytes, hash_of, sizes_of
from toolkit.mix.sieve import TableSieve
from toolkit.mix.writer import not_carried
from toolkit.storage.artifact import Artifact, FileRecord, state
from toolkit.storage.compression import COMPRESSORS
from toolkit.storage.outputs import Compressing, Output
from toolkit.storage.paths import join, unlike_data, work_folder
from toolkit.storage.paths import looking as looking_at
from toolkit.storage.record_log import Group, RecordLog

if TYPE_CHECKING:
    from toolkit.records.identity import NotedDocuments

P = TypeVar("P")

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
        offset, length: in the intermediate.
        size: uncompressed bytes.
        documents: or pieces of documents, that the writer gave.
        low, high: the least and the greatest hash of these, where the output is shuffled.
    """

    offset: int
    length: int
    size: int
    documents: int
    low: int = 0
    high: int = 0


VERSION = 6
"""Of indexes; a shard with one of another version is encoded anew."""


class StageRecord(Artifact, frozen=True, kw_only=True):
    """One shard is encoded.

    Attributes:
        settings: digest of all that determines the intermediate but the inputs.
        documents: content digest of the shard.
        attributes: content digest of the shard in each joined set.
        totals: documents and code points, read and kept.
        rules: effect of each rule, in order.
        matched: for each blocklist, by index of its rule, the entries that documents matched.
        counts: what the writer left out, by name.
        statistics: Statistics by label, what was read and what stays.
        own: top-level fields of the documents that are their own.
        not_carried: documents that have a field which the output does not carry, by its path.
        unlike_dolma: documents of which Dolma decides otherwise.
        groups: what a budget has taken of each group.
        seen: bits by the text of a place of the rules (see `toolkit.rules.expression_tree`).
        members: Members by label, in the order of the documents.
        sizes: Sizes by label, for each run of a shuffled output where in the intermediate the hashes and sizes of its
            pieces are (see `toolkit.mix.shuffle.sizes_of`), and how many.
        size, stamp: of the intermediate.
        noted: bytes of each file in which documents are noted, by its suffix: those that stay and copies that do not,
            with rules about such; those that are written, where their ids are compared.
    """

    version: int = VERSION
    settings: str
    documents: str
    attributes: dict[str, str]
    totals: Totals
    rules: list[RuleCount]
    matched: dict[str, list[int]] = {}
    counts: dict[str, int]
    statistics: SizesByLabel
    own: list[str] = []
    not_carried: dict[str, int] = {}
    unlike_dolma: int = 0
    groups: dict[str, GroupCount] = {}
    seen: dict[str, int] = {}
    members: dict[str, list[Member]]
    sizes: dict[str, list[tuple[int, int]]] = {}
    size: int
    stamp: str
    noted: dict[str, int] = {}
    seconds: float

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.documents, **self.attributes}

    @property
    def made_with(self) -> tuple[int, str]:
        return self.version, self.settings


_KEPT, _COPIES, WRITTEN = ".kept", ".copies", ".written"
"""Suffixes of an intermediate's name for the files that list its documents."""


def stage_path(output: str, digest: str, key: str) -> str:
    """Return where the intermediate of a shard lies, by its key."""
    return join(_folder(output, digest), unlike_data(key))


def _folder(output: str, digest: str) -> str:
    return join(work_folder(output), "stage", digest)


def load_stage(output: str, digest: str, key: str) -> StageRecord | None:
    """Return the index of a shard that has been encoded."""
    return records_of(output, digest).load(_KIND, key, StageRecord)


def records_of(output: str, digest: str) -> RecordLog:
    """Return the record log of the intermediates by some settings, with which it goes."""
    folder = _folder(output, digest)
    return record_logs.at(work_folder(output), join(folder, RECORD_LOG))


def made_from(work: ShardToMix, documents: str, attributes: dict[str, str] | None) -> StageRecord | None:
    """Return the index of a shard, if its intermediate is there and was made from these inputs, by content digests."""
    output, digest = work.settings.output.path, work.settings.stage_digest()
    record, path = load_stage(output, digest, work.key), stage_path(output, digest, work.key)
    if attributes is None or (record and work.settings.notes_ids and WRITTEN not in record.noted):
        return None

    def files(record: StageRecord) -> list[FileRecord]:
        return [FileRecord(path + suffix, size) for suffix, size in {"": record.size, **record.noted}.items()]

    inputs = [("", documents), *attributes.items()]
    return record if state(record, inputs, (VERSION, digest), files).is_done else None


def noted_of(output: str, key: str, record: StageRecord) -> Noted | None:
    """Return where it was noted which documents of a shard stay, and which are dropped as copies."""
    if _KEPT not in record.noted:
        return None
    path = stage_path(output, record.settings, key)
    return Noted(path + _KEPT, path + _COPIES, record.noted[_KEPT] + record.noted[_COPIES])


def written_of(work: ShardToMix, record: StageRecord) -> "NotedDocuments":
    """Return the documents of a shard that are in the output, where these are noted."""
    from toolkit.records.identity import NOTED, IndexedDocuments, NotedDocuments

    path = stage_path(work.settings.output.path, record.settings, work.key) + WRITTEN
    indexed = IndexedDocuments(work.dataset, work.shard, record.totals.rows)
    return NotedDocuments(work.name, record.noted[WRITTEN] // NOTED.itemsize, path, indexed)


@contextmanager
def looking(settings: MixSettings) -> Iterator[None]:
    """Look at the files of all streams, and at intermediates, by listings, in a block that decides.

    See `toolkit.storage.paths.looking`.
    """
    with looking_at(_folder(settings.output.path, settings.stage_digest())), ExitStack() as stack:
        for stream in settings.streams:
            stack.enter_context(stream.dataset.looking(given.set for given in stream.attributes))
        yield


def inputs_now(work: ShardToMix) -> tuple[str, dict[str, str]] | None:
    """Return the content digests of a shard's documents, and of its attributes by set; None if they are not right."""
    documents = row_index.current(work.dataset, work.shard)
    if documents is None:
        return None
    try:
        return documents.content, inputs_of(work)[1]
    except DataError:
        return None


def as_it_was(work: ShardToMix) -> ShardDone | None:
    """Return the outcome of a shard that has been encoded, from inputs that are as they were; else None."""
    if load_stage(work.settings.output.path, work.settings.stage_digest(), work.key) is None:
        return None
    now = inputs_now(work)
    stage_record = made_from(work, *now) if now else None
    return ShardDone(shard=work.shard, documents=stage_record.totals.rows) if stage_record else None


def mix_together(tasks: list[Task[ShardToMix]], report: Report) -> list[Result[ShardDone]]:
    """Do what `mix_shard` does for small shards, which become durable together."""
    with _group(tasks[0].payload) as group:
        return run_sequentially(partial(mix_shard, group=group), tasks, report, group)


def mix_shard(work: ShardToMix, report: Report, group: Group | None = None) -> ShardDone:
    """Encode one shard, unless that has been done from the same inputs.

    Args:
        work: the shard.
        report: told of what is done.
        group: with which the intermediate becomes durable; else that is so at the end.

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
        work: the shard.
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
            self._files = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            try:
                self._members.flush()
            except BaseException as failure:
                self._files.__exit__(type(failure), failure, failure.__traceback__)
                raise
        self._files.__exit__(kind, error, tb)

    def write(self, encoded: Encoded) -> None:
        """Write what was encoded of the next documents."""
        for label, data in encoded.pieces:
            self._members.add(label, data)
        self._counted.add(encoded.counted)
        fates = encoded.fates
        for suffix, output in self._notes.items():
            output.write({_KEPT: fates.kept, _COPIES: fates.copies, WRITTEN: fates.written}[suffix])

    def record(self, state: ShardState, inputs: dict[str, str]) -> None:
        """Add the index of the intermediate to the group, after the block.

        Args:
            state: State of the documents.
            inputs: content digests of the joined sets.

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
            matched={str(i): sorted(entries) for i, entries in counted.matched.items()},
            counts={name: n for name, n in sorted(counted.left_out.items()) if n},
            statistics={label: counted.statistics[label] for label in sorted(counted.statistics)},
            own=_own_fields(state),
            not_carried=not_carried(self._work.settings.writer(), state.all_fields),
            unlike_dolma=counted.unlike_dolma,
            groups=dict(sorted(counted.groups.items())),
            seen=dict(sorted(counted.seen.items())),
            members={label: index[label] for label in sorted(index)},
            sizes=dict(sorted(self._members.sizes.items())),
            size=self._output.stat.size,
            stamp=self._output.stat.stamp,
            noted={suffix: output.size for suffix, output in self._notes.items()},
            seconds=round(time.perf_counter() - self._start, 3),
        )
        records = records_of(self._work.settings.output.path, self._digest)
        self._group.save((_KIND, self._work.key), msgspec.json.encode(record), records)


def _own_fields(state: ShardState) -> list[str]:
    """Return the top-level fields of a shard's documents that are their own, sorted."""
    names = {path.partition(".")[0] for counts in state.all_fields for path in counts if path not in SAME}
    return sorted({name.replace(DOT, ".") for name in names} - {*KEYS})


class _Members:
    """Gathers the bytes of each label and writes them as members of bounded size."""

    def __init__(self, output: Compressing, settings: MixSettings) -> None:
        self.index: dict[str, list[Member]] = {}
        self.sizes: dict[str, list[tuple[int, int]]] = {}
        self._output = output
        self._settings = settings
        self._limit = settings.member_size
        self._pieces: dict[str, list[bytes]] = {}
        self._sizes: dict[str, int] = {}
        self._held = 0

    def add(self, label: str, data: bytes) -> None:
        """Add bytes of a label; a member ends before a piece that would take it over its size."""
        size = self._sizes.get(label, 0)
        if size and size + len(data) > self._limit and not self._settings.shuffles(label):
            self._write(label)
        self._pieces.setdefault(label, []).append(data)
        self._sizes[label] = self._sizes.get(label, 0) + len(data)
        self._held += len(data)
        while self._held > HELD:
            self._write(max(self._sizes, key=lambda size: (self._sizes[size], size)))

    def flush(self) -> None:
        for label in sorted(self._pieces):
            self._write(label)
        self._output.flush()

    def _write(self, label: str) -> None:
        pieces, size = self._pieces.pop(label), self._sizes.pop(label)
        self._held -= size
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
    """Return whether a member, by its uncompressed bytes, is compressed fast in an intermediate, and anew in a part."""
    return compression == "gzip" and size < TINY
