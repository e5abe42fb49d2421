"""Stage 1 of a mix: one shard becomes labelled, compressed members in one intermediate file, with a small index."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import msgspec

from toolkit import records, rowindex, schema
from toolkit.config import ConfigStruct
from toolkit.documents import DOCUMENT_DECODER, Document, Rows, to_document
from toolkit.errors import AlignmentError, DataError
from toolkit.mixing.settings import Binding, JoinedSet, MixSettings, compile_rules, work_folder
from toolkit.paths import Dataset, exists, join, remove, stat
from toolkit.streams import COMPRESSORS, Lines, Output
from toolkit.writer import Mixed

Report = Callable[[int, int], None]

HELD = 64 << 20
"""Bytes of all labels together that are held before the largest is written; bounds memory with many labels."""


class Work(ConfigStruct):
    """One shard to mix."""

    dataset: Dataset
    settings: MixSettings
    sets: list[JoinedSet]
    bindings: dict[str, Binding]
    shard: str
    max_document_bytes: int


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


class RuleCount(msgspec.Struct):
    """Effect of a rule: documents that it dropped (or annotated), their code points, and documents that reached it."""

    documents: int = 0
    chars: int = 0
    reached: int = 0


class StageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One shard is encoded.

    Attributes:
        settings: digest of all that determines the intermediate but the inputs.
        documents: content digest of the shard.
        attributes: content digest of the shard in each joined set.
        rows, chars: documents that were read, and their code points.
        kept, kept_chars: documents that no rule dropped.
        rules: effect of each rule, in order.
        counts: what the writer left out, by name.
        members: by label, in the order of the documents.
        size, stamp: of the intermediate.
    """

    version: int = 1
    settings: str
    documents: str
    attributes: dict[str, str]
    rows: int
    chars: int
    kept: int
    kept_chars: int
    rules: list[RuleCount]
    counts: dict[str, int]
    members: dict[str, list[Member]]
    size: int
    stamp: str
    seconds: float


class Done(ConfigStruct):
    """What became of a shard."""

    shard: str
    skipped: bool
    rows: int


def stage_path(output: str, digest: str, shard: str) -> str:
    """Where the intermediate of a shard lies."""
    return join(work_folder(output), "stage", digest, shard)


def load_stage(output: str, digest: str, shard: str) -> StageRecord | None:
    return records.load(stage_path(output, digest, shard) + ".json", StageRecord)


def inputs_of(work: Work) -> tuple[rowindex.ShardState, dict[str, str]]:
    """The state of a shard's documents, and the content digest of its attributes in each joined set.

    Raises:
        DataError: if a file is missing, damaged, not complete, or stale; rows that do not match are named by line.
    """
    dataset, shard = work.dataset, work.shard
    state = rowindex.ensure(dataset, shard, work.max_document_bytes)
    digests = {}
    for joined in work.sets:
        path = dataset.attribute_path(joined.set, shard)
        if not exists(path):
            id = _first_id(work)
            raise AlignmentError(
                f"expected the attributes of {dataset.shard_path(shard)}:1, got no such file; run `toolkit tag`",
                path=path,
                line=1,
                id=id,
            )
        if not joined.ours:
            digests[joined.set] = records.look_at(dataset, joined.set, shard).content
            continue
        record = records.load_record(dataset, joined.set, shard)
        if record is None or not records.is_intact(dataset, joined.set, shard, record):
            _find_fault(work, joined)
            if record is None:
                raise DataError("expected a complete file, got one without its record; run `toolkit tag`", path=path)
            raise DataError("expected the file that its record describes, it was changed; run `toolkit tag`", path=path)
        records.check_lineage(dataset, joined.set, shard, state)
        digests[joined.set] = record.output.content
    return state, digests


def _first_id(work: Work) -> str | None:
    path = work.dataset.shard_path(work.shard)
    with Lines(path, work.max_document_bytes) as lines:
        return next((row.id for row, _ in Rows(lines, DOCUMENT_DECODER, path)), None)


def _find_fault(work: Work, joined: JoinedSet) -> None:
    """Joins one set with the documents, so that the error names the row at which they part."""
    one = Work(
        dataset=work.dataset,
        settings=work.settings,
        sets=[joined],
        bindings={},
        shard=work.shard,
        max_document_bytes=work.max_document_bytes,
    )
    with ExitStack() as stack:
        for _ in _rows(one, stack):
            pass


def mix_shard(work: Work, report: Report) -> Done:
    """Encodes one shard, unless that has been done from the same inputs.

    Raises:
        DataError: if an input is not what it should be, or a rule or the writer cannot use a value; the document is
            named, nothing was written.
    """
    start = time.perf_counter()
    digest = work.settings.stage_digest()
    path = stage_path(work.settings.output.path, digest, work.shard)
    state, inputs = inputs_of(work)
    record = records.load(path + ".json", StageRecord)
    if record and (record.documents, record.attributes) == (state.content, inputs):
        found = stat(path)
        if found and found.size == record.size:
            report(record.rows, 0)
            return Done(shard=work.shard, skipped=True, rows=record.rows)
    remove(path + ".json")
    encoder = _Encoder(work)
    with ExitStack() as stack:
        members = _Members(stack.enter_context(Output(path)), work.settings)
        for document, number, lines, values in _rows(work, stack):
            encoder.encode(document, number, lines, values, members)
            report(1, len(document.row))
        members.flush()
    counted = encoder.record(digest, state.content, inputs, members, stat(path), time.perf_counter() - start)
    if counted.rows != state.rows:
        raise DataError(
            f"expected {state.rows} rows as indexed, got {counted.rows}", path=work.dataset.shard_path(work.shard)
        )
    records.save(path + ".json", counted)
    return Done(shard=work.shard, skipped=False, rows=counted.rows)


# --- joining ----------------------------------------------------------------------------------------------------------


def _row_decoder(joined: JoinedSet, keys: set[str]) -> msgspec.json.Decoder[Any]:
    fields = {key.key: schema.to_python(key.declared) for key in joined.keys if key.name in keys}
    defaults: dict[str, Any] = {
        key.key: [] if key.declared.kind == "list" else None for key in joined.keys if key.default and key.name in keys
    }
    values: Any = schema.struct_of(fields, defaults)
    if not joined.ours:
        values = values | list  # Dolma's deduper writes [] for a document that it skipped
    row = msgspec.defstruct("Row", [("attributes", values), ("id", str | None, None), ("source", str | None, None)])
    return msgspec.json.Decoder(row)


Joint = tuple[Document, int, list[bytes], list[Any]]


def _rows(work: Work, stack: ExitStack) -> Iterator[Joint]:
    """The documents of a shard with, for each set, its line and its values for the rules.

    Raises:
        AlignmentError: if a set's rows are not those of the documents.
    """
    dataset, shard = work.dataset, work.shard
    path = dataset.shard_path(shard)
    used = compile_rules(work.settings, work.sets).used if len(work.sets) == len(work.settings.attributes) else set()
    documents = Rows(stack.enter_context(Lines(path, work.max_document_bytes)), DOCUMENT_DECODER, path)
    others: list[Rows[Any]] = []
    for joined in work.sets:
        other_path = dataset.attribute_path(joined.set, shard)
        lines = stack.enter_context(Lines(other_path, max(work.max_document_bytes, records.MAX_FOREIGN_ROW)))
        others.append(Rows(lines, _row_decoder(joined, used), other_path))
    for row, line in documents:
        document = to_document(row, documents, line)
        other_lines: list[bytes] = []
        values: list[Any] = []
        for other, joined in zip(others, work.sets, strict=True):
            found, other_line = next(other, (None, b""))
            if found is None or found.id != row.id or (found.source != row.source and (found.source or joined.ours)):
                raise _misaligned(found, document, other, documents)
            other_lines.append(other_line)
            values.append(_NO_SPANS if found.attributes == [] else found.attributes)
        yield document, documents.number, other_lines, values
    for other in others:
        found, _ = next(other, (None, b""))
        if found is not None:
            raise AlignmentError(
                f"expected the end of the file after {documents.number} rows, as many as {path} has, got another",
                path=other.path,
                line=other.number,
                id=found.id,
            )


class _NoSpans:
    """What a row means in which Dolma's deduper wrote ``[]``."""

    def __getattr__(self, name: str) -> list[Any]:
        return []


_NO_SPANS = _NoSpans()


def _misaligned(found: Any, document: Document, other: Rows[Any], documents: Rows[Any]) -> AlignmentError:
    about = f"expected the attributes of {documents.path}:{documents.number}, got "
    about += "the end of the file" if found is None else f"those of {found.id!r} from {found.source!r}"
    return AlignmentError(about, path=other.path, line=documents.number, id=document.id)


# --- rules and encoding -----------------------------------------------------------------------------------------------


class _Encoder:
    """Applies the rules to joined rows, encodes those that stay, and counts."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.rules = compile_rules(work.settings, work.sets)
        self.writer = work.settings.writer()
        self.takes_all = self.writer.takes_all()
        self.counts: Counter[str] = Counter()
        self.rows = self.chars = self.kept = self.kept_chars = 0
        self.effects = [RuleCount() for _ in self.rules.rules]
        self.wanted = self.writer.wants()
        self.decoders = {i: self._value_decoder(i) for i in {b.set for b in work.bindings.values()}}
        self.merger = msgspec.json.Decoder(_Merged)

    def _value_decoder(self, index: int) -> msgspec.json.Decoder[Any]:
        fields: dict[str, Any] = {}
        for option, binding in self.work.bindings.items():
            if binding.set == index:
                kept = self.wanted[option].type
                for name in reversed(binding.path):
                    kept = schema.struct_of({name: kept})
                fields[binding.key] = kept
        optional = {key.key: None for key in self.work.sets[index].keys if key.default and key.key in fields}
        values = schema.struct_of(fields, optional)
        return msgspec.json.Decoder(msgspec.defstruct("Values", [("attributes", values)]))

    def encode(self, document: Document, number: int, lines: list[bytes], values: list[Any], out: "_Members") -> None:
        """One document, in the shard's order."""
        path = self.work.dataset.shard_path(self.work.shard)
        chars = len(document.text)
        self.rows += 1
        self.chars += chars
        try:
            decision = self.rules.decide(*values, document)
            self._count(decision.dropped, decision.annotations, chars)
            if decision.dropped is not None:
                return
            mixed = Mixed(
                self._values(lines),
                decision.annotations,
                self._merged(lines) if self.takes_all else None,
                self.counts,
            )
            pieces = list(self.writer.encode(document, mixed))
        except DataError as error:
            if error.path:
                raise
            raise DataError(error.message, path=path, line=number, id=document.id) from None
        self.kept += 1
        self.kept_chars += chars
        if not pieces:
            self.counts["documents without output"] += 1
        for label, data in pieces:
            out.add(label, data)

    def _count(self, dropped: int | None, annotations: list[str], chars: int) -> None:
        last = len(self.effects) if dropped is None else dropped + 1
        for i in range(last):
            effect, rule = self.effects[i], self.rules.rules[i]
            effect.reached += 1
            if i == dropped or (rule.kind == "annotate" and dropped is None and rule.annotation in annotations):
                effect.documents += 1
                effect.chars += chars

    def _values(self, lines: list[bytes]) -> dict[str, Any]:
        rows = {}
        for i, decoder in self.decoders.items():
            try:
                rows[i] = decoder.decode(lines[i]).attributes
            except msgspec.DecodeError as error:
                name = self.work.sets[i].set
                raise DataError(f"expected values of {name} that the format can take, got: {error}") from None
        values = {}
        for option, binding in self.work.bindings.items():
            value = getattr(rows[binding.set], schema.field_name(binding.key))
            for name in binding.path:
                value = getattr(value, schema.field_name(name))
            values[option] = value
        return values

    def _merged(self, lines: list[bytes]) -> dict[str, msgspec.Raw]:
        merged: dict[str, msgspec.Raw] = {}
        for joined, line in zip(self.work.sets, lines, strict=True):
            found = self.merger.decode(line).attributes
            if isinstance(found, dict):
                names = {key.key: key.name for key in joined.keys}
                merged.update({names[key]: value for key, value in found.items()})
        return merged

    def record(
        self, digest: str, documents: str, inputs: dict[str, str], members: "_Members", found: Any, seconds: float
    ) -> StageRecord:
        """The record of the finished shard."""
        return StageRecord(
            settings=digest,
            documents=documents,
            attributes=inputs,
            rows=self.rows,
            chars=self.chars,
            kept=self.kept,
            kept_chars=self.kept_chars,
            rules=self.effects,
            counts={name: n for name, n in sorted(self.counts.items()) if n},
            members={label: members.index[label] for label in sorted(members.index)},
            size=found.size,
            stamp=found.stamp,
            seconds=round(seconds, 3),
        )


class _Merged(msgspec.Struct):
    attributes: dict[str, msgspec.Raw] | list[Any]


class _Members:
    """Gathers the bytes of each label and writes them as members of bounded size."""

    def __init__(self, output: Output, settings: MixSettings) -> None:
        self.index: dict[str, list[Member]] = {}
        self._output = output
        self._compress = COMPRESSORS[settings.output.compression]
        self._limit = settings.member_size
        self._pieces: dict[str, list[bytes]] = {}
        self._sizes: dict[str, int] = {}
        self._held = 0

    def add(self, label: str, data: bytes) -> None:
        """Bytes of a label; a member ends before a piece that would take it over its size."""
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

    def _write(self, label: str) -> None:
        pieces, size = self._pieces.pop(label), self._sizes.pop(label)
        self._held -= size
        compressed = self._compress(b"".join(pieces))
        member = Member(self._output.size, len(compressed), size, len(pieces))
        self._output.write(compressed)
        self.index.setdefault(label, []).append(member)
