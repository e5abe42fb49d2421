"""Stage 1 of a mix: one shard becomes labelled, compressed members in one intermediate file, with a small index."""

import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.row_index import ShardState
from toolkit.errors import DataError
from toolkit.mix.effects.before_after import SizesByLabel
from toolkit.mix.effects.counts import Counted, RuleCount, Totals, finish
from toolkit.mix.encode import Encoded, Encoder
from toolkit.mix.join import ShardToMix, inputs_of, joint_blocks
from toolkit.mix.orphans.copies import Copies
from toolkit.mix.orphans.judging import Noted
from toolkit.mix.settings import MixSettings, work_folder
from toolkit.runs.blocks import in_order, threads_for
from toolkit.runs.executors import Report, Task
from toolkit.storage import json_files
from toolkit.storage.compression import COMPRESSORS
from toolkit.storage.outputs import Compressing, Output
from toolkit.storage.paths import join, remove, size_of, stat, unlike_data
from toolkit.storage.threads import for_each

HELD = 32 << 20
"""Bytes of all labels together that are held before the largest is written; bounds memory with many labels."""


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A piece of an intermediate.

    Attributes:
        offset, length: in the intermediate.
        size: uncompressed bytes.
        documents: or pieces of documents, that the writer gave.
    """

    offset: int
    length: int
    size: int
    documents: int


VERSION = 2
"""Of indexes; a shard with one of another version, which notes no copies, is encoded anew."""


class StageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One shard is encoded.

    Attributes:
        settings: digest of all that determines the intermediate but the inputs.
        documents: content digest of the shard.
        attributes: content digest of the shard in each joined set.
        totals: documents and code points, read and kept.
        rules: effect of each rule, in order.
        matched: for each blocklist, by index of its rule, the entries that documents matched.
        counts: what the writer left out, by name.
        statistics: by label, what was read and what stays.
        unlike_dolma: documents of which Dolma decides otherwise.
        members: by label, in the order of the documents.
        size, stamp: of the intermediate.
        noted: bytes of what is noted of documents that stay, and of copies that do not; None without rules about such.
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
    unlike_dolma: int = 0
    members: dict[str, list[Member]]
    size: int
    stamp: str
    noted: tuple[int, int] | None = None
    seconds: float


_NOTES = (".kept", ".copies")
"""What is behind the name of an intermediate in those of the files that its documents are noted in."""


class ShardMixed(ConfigStruct):
    """The outcome of a shard."""

    shard: str
    skipped: bool
    rows: int


def stage_path(output: str, digest: str, key: str) -> str:
    """Return where the intermediate of a shard lies, by its key."""
    return join(work_folder(output), "stage", digest, unlike_data(key))


def load_stage(output: str, digest: str, key: str) -> StageRecord | None:
    """Return the index of a shard that has been encoded."""
    return json_files.load(stage_path(output, digest, key) + ".json", StageRecord)


def made_from(work: ShardToMix, documents: str, attributes: dict[str, str] | None) -> StageRecord | None:
    """Return the index of a shard, if its intermediate is there and was made from these inputs, by content digests."""
    record = load_stage(work.settings.output.path, work.settings.stage_digest(), work.key)
    if record is None or (record.version, record.documents, record.attributes) != (VERSION, documents, attributes):
        return None
    path = stage_path(work.settings.output.path, record.settings, work.key)
    sizes = {"": record.size} | dict(zip(_NOTES, record.noted or (), strict=False))
    found = {suffix: stat(path + suffix) for suffix in sizes}
    return record if {suffix: each.size for suffix, each in found.items() if each} == sizes else None


def noted_of(output: str, key: str, record: StageRecord) -> Noted | None:
    """Return where it was noted which documents of a shard stay, and which are dropped as copies."""
    if record.noted is None:
        return None
    path = stage_path(output, record.settings, key)
    kept, copies = _NOTES
    return Noted(path + kept, path + copies, sum(record.noted))


def shard_tasks(works: list[ShardToMix]) -> list[Task[ShardToMix]]:
    """Return a task for each shard, named by its path (streams may share one), with its size."""
    sizes = for_each(size_of, [work.path for work in works])
    return [Task(work.name, work, size, key=work.key) for work, size in zip(works, sizes, strict=True)]


def mix_shard(work: ShardToMix, report: Report) -> ShardMixed:
    """Encode one shard, unless that has been done from the same inputs.

    Raises:
        DataError: if an input is not what it should be, or a rule or the writer cannot use a value; the document is
            named, nothing was written.
    """
    state, inputs = inputs_of(work, learn=True)
    if made := made_from(work, state.content, inputs):
        report(made.totals.rows, 0)
        return ShardMixed(shard=work.shard, skipped=True, rows=made.totals.rows)
    with ExitStack() as stack:
        output = stack.enter_context(StageOutput(work))
        for encoded in in_order(Encoder, work, joint_blocks(work, stack), work.processes, work.path):
            output.write(encoded)
            report(encoded.counted.totals.rows, encoded.stored)
    output.record(state, inputs)
    return ShardMixed(shard=work.shard, skipped=False, rows=state.rows)


class StageOutput:
    """Writes the intermediate of a shard. A context manager, which makes it appear; `record` then makes it valid.

    Args:
        work: the shard.
    """

    def __init__(self, work: ShardToMix) -> None:
        self._work = work
        self._digest = work.settings.stage_digest()
        self._path = stage_path(work.settings.output.path, self._digest, work.key)
        self._start = time.perf_counter()
        self._rules = work.compile_rules()
        self._counted = Counted.none(len(self._rules.rules))
        self._counted.matched = {i: set() for i in self._rules.blocklists}

    def __enter__(self) -> Self:
        remove(self._path + ".json")  # first: where nothing may be deleted, no temporary file would be, either
        with ExitStack() as stack:
            output = stack.enter_context(Output(self._path))
            threads = threads_for(self._work.processes)
            self._members = _Members(stack.enter_context(Compressing(output, threads)), self._work.settings)
            notes = _NOTES if Copies(self._rules, self._work.sets).rules else ()
            self._notes = [stack.enter_context(Output(self._path + suffix)) for suffix in notes]
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
        for output, data in zip(self._notes, (encoded.fates.kept, encoded.fates.copies), strict=False):
            output.write(data)

    def record(self, state: ShardState, inputs: dict[str, str]) -> None:
        """Save the index of the intermediate, after the block.

        Args:
            state: of the documents.
            inputs: content digests of the joined sets.

        Raises:
            DataError: if the shard has another number of documents than were written.
        """
        counted, index = self._counted, self._members.index
        if counted.totals.rows != state.rows:
            message = f"expected {state.rows} rows as indexed, got {counted.totals.rows}"
            raise DataError(message, path=self._work.path)
        finish(counted.rules, self._rules.rules, counted.totals)
        found = stat(self._path)
        assert found
        record = StageRecord(
            settings=self._digest,
            documents=state.content,
            attributes=inputs,
            totals=counted.totals,
            rules=counted.rules,
            matched={str(i): sorted(entries) for i, entries in counted.matched.items()},
            counts={name: n for name, n in sorted(counted.left_out.items()) if n},
            statistics={label: counted.statistics[label] for label in sorted(counted.statistics)},
            unlike_dolma=counted.unlike_dolma,
            members={label: index[label] for label in sorted(index)},
            size=found.size,
            stamp=found.stamp,
            noted=(self._notes[0].size, self._notes[1].size) if self._notes else None,
            seconds=round(time.perf_counter() - self._start, 3),
        )
        json_files.save(self._path + ".json", record)


class _Members:
    """Gathers the bytes of each label and writes them as members of bounded size."""

    def __init__(self, output: Compressing, settings: MixSettings) -> None:
        self.index: dict[str, list[Member]] = {}
        self._output = output
        self._settings = settings
        self._limit = settings.member_size
        self._pieces: dict[str, list[bytes]] = {}
        self._sizes: dict[str, int] = {}
        self._held = 0

    def add(self, label: str, data: bytes) -> None:
        """Add bytes of a label; a member ends before a piece that would take it over its size."""
        size = self._sizes.get(label, 0)
        if size and size + len(data) > self._limit:
            self._write(label)
        self._pieces.setdefault(label, []).append(data)
        self._sizes[label] = self._sizes.get(label, 0) + len(data)
        self._held += len(data)
        while self._held > HELD:
            self._write(max(self._sizes, key=lambda each: (self._sizes[each], each)))

    def flush(self) -> None:
        for label in sorted(self._pieces):
            self._write(label)
        self._output.flush()

    def _write(self, label: str) -> None:
        pieces, size = self._pieces.pop(label), self._sizes.pop(label)
        self._held -= size
        compress = COMPRESSORS[self._settings.compression(label)]

        def note(offset: int, length: int) -> None:
            self.index.setdefault(label, []).append(Member(offset, length, size, len(pieces)))

        self._output.write(b"".join(pieces), compress, note)
