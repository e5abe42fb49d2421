"""Stage 1 of a mix: one shard becomes labelled, compressed members in one intermediate file, with a small index."""

import time
from contextlib import ExitStack

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError
from toolkit.mix.effects.before_after import SizesByLabel
from toolkit.mix.effects.counts import Counted, RuleCount, Totals, finish
from toolkit.mix.encode import Encoder
from toolkit.mix.join import ShardToMix, inputs_of, joint_blocks
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
    """

    version: int = 1
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
    seconds: float


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
    if record is None or (record.documents, record.attributes) != (documents, attributes):
        return None
    found = stat(stage_path(work.settings.output.path, record.settings, work.key))
    return record if found is not None and found.size == record.size else None


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
    start = time.perf_counter()
    digest = work.settings.stage_digest()
    path = stage_path(work.settings.output.path, digest, work.key)
    state, inputs = inputs_of(work, learn=True)
    if made := made_from(work, state.content, inputs):
        report(made.totals.rows, 0)
        return ShardMixed(shard=work.shard, skipped=True, rows=made.totals.rows)
    remove(path + ".json")
    rules = work.compile_rules()
    counted = Counted.none(len(rules.rules))
    counted.matched = {i: set() for i in rules.blocklists}
    with ExitStack() as stack:
        output = stack.enter_context(Output(path))
        members = _Members(stack.enter_context(Compressing(output, threads_for(work.processes))), work.settings)
        for encoded in in_order(Encoder, work, joint_blocks(work, stack), work.processes, work.path):
            for label, data in encoded.pieces:
                members.add(label, data)
            counted.add(encoded.counted)
            report(encoded.counted.totals.rows, encoded.stored)
        members.flush()
    if counted.totals.rows != state.rows:
        raise DataError(f"expected {state.rows} rows as indexed, got {counted.totals.rows}", path=work.path)
    finish(counted.rules, rules.rules, counted.totals)
    found = stat(path)
    assert found
    record = StageRecord(
        settings=digest,
        documents=state.content,
        attributes=inputs,
        totals=counted.totals,
        rules=counted.rules,
        matched={str(i): sorted(entries) for i, entries in counted.matched.items()},
        counts={name: n for name, n in sorted(counted.left_out.items()) if n},
        statistics={label: counted.statistics[label] for label in sorted(counted.statistics)},
        unlike_dolma=counted.unlike_dolma,
        members={label: members.index[label] for label in sorted(members.index)},
        size=found.size,
        stamp=found.stamp,
        seconds=round(time.perf_counter() - start, 3),
    )
    json_files.save(path + ".json", record)
    return ShardMixed(shard=work.shard, skipped=False, rows=counted.totals.rows)


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
