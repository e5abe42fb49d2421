"""Stage 1 of a mix: one shard becomes labelled, compressed members in one intermediate file, with a small index."""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import schema
from toolkit.data.dataset import SHARD_SUFFIXES
from toolkit.data.documents import Document
from toolkit.errors import DataError
from toolkit.mix.binding import Binding, metadata_fields, needed, recomputed
from toolkit.mix.join import (
    RAW_ATTRIBUTES,
    Joiner,
    Joint,
    JointBlock,
    Measured,
    Work,
    at_document,
    inputs_of,
    joint_blocks,
    merged,
)
from toolkit.mix.settings import REJECTED, MixSettings, work_folder
from toolkit.mix.shown.effects import Counted, RuleCount, Totals, count, count_edits, finish
from toolkit.mix.shown.statistics import NO_LABEL, Statistics, Tally
from toolkit.mix.splitting import split_of
from toolkit.mix.writer import Mixed, check_folder
from toolkit.records import lineage
from toolkit.runs.blocks import in_order, threads_for
from toolkit.storage import json_files
from toolkit.storage.compression import COMPRESSORS
from toolkit.storage.outputs import Compressing, Output
from toolkit.storage.paths import join, remove, stat, strip_suffix, unlike_data
from toolkit.text.editing import Edited, along

Report = Callable[[int, int], None]

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
    statistics: Statistics
    unlike_dolma: int = 0
    members: dict[str, list[Member]]
    size: int
    stamp: str
    seconds: float


class Done(ConfigStruct):
    """What became of a shard."""

    shard: str
    skipped: bool
    rows: int


def stage_path(output: str, digest: str, key: str) -> str:
    """Where the intermediate of a shard lies, by its key."""
    return join(work_folder(output), "stage", digest, unlike_data(key))


def load_stage(output: str, digest: str, key: str) -> StageRecord | None:
    """The index of a shard that has been encoded."""
    return json_files.load(stage_path(output, digest, key) + ".json", StageRecord)


def made_from(work: Work, documents: str, attributes: dict[str, str] | None) -> StageRecord | None:
    """The index of a shard, if its intermediate is there and was made from these inputs, by content digests."""
    record = load_stage(work.settings.output.path, work.settings.stage_digest(), work.key)
    if record is None or (record.documents, record.attributes) != (documents, attributes):
        return None
    found = stat(stage_path(work.settings.output.path, record.settings, work.key))
    return record if found is not None and found.size == record.size else None


def mix_shard(work: Work, report: Report) -> Done:
    """Encodes one shard, unless that has been done from the same inputs.

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
        return Done(shard=work.shard, skipped=True, rows=made.totals.rows)
    remove(path + ".json")
    rules = work.compile_rules()
    counted = Counted.none(len(rules.rules))
    counted.matched = {i: set() for i in rules.blocklists}
    with ExitStack() as stack:
        output = stack.enter_context(Output(path))
        members = _Members(stack.enter_context(Compressing(output, threads_for(work.processes))), work.settings)
        for encoded in in_order(_Encoder, work, joint_blocks(work, stack), work.processes, work.path):
            for label, data in encoded.pieces:
                members.add(label, data)
            counted.add(encoded.counted)
            report(encoded.counted.totals.rows, encoded.size)
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
    return Done(shard=work.shard, skipped=False, rows=counted.totals.rows)


# --- rules and encoding -----------------------------------------------------------------------------------------------


class _Encoded(NamedTuple):
    """What becomes of a block: pieces of labels, in order, and what was counted."""

    pieces: list[tuple[str, bytes]]
    counted: Counted
    size: int


class _Encoder:
    """Applies the rules to joined rows, encodes those that stay, and counts."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.rules = work.compile_rules()
        needs = self.rules.needs
        self.joiner = Joiner(work, needs.keys, needs.fields, joined=needs.joined, late=True)
        self.writer = work.settings.writer()
        self.takes_all = self.writer.takes_all()
        self.parts = self.writer.parts_documents()
        self.shard = strip_suffix(work.shard, SHARD_SUFFIXES)
        self.provenance = _Provenance(work) if work.settings.output.provenance else None
        self.counted = Counted.none(len(self.rules.rules))
        self.tally = Tally(unicode=work.settings.unicode_words)
        self.wanted = self.writer.wants()
        self.fields = metadata_fields(self.wanted, work.bindings)
        self.decoders = {option: self._value_decoder(option, b) for option, b in work.bindings.items()}
        self.set_types = [
            schema.to_python(key.declared)
            for binding in work.set_bindings
            for key in work.sets[binding.set].keys
            if key.key == binding.key
        ]

    def _value_decoder(self, option: str, binding: Binding) -> msgspec.json.Decoder[Any]:
        value = self.wanted[option].type
        for name in reversed(binding.path):
            value = schema.struct_of({name: value})
        absent = any(key.key == binding.key and key.default for key in self.work.sets[binding.set].keys)
        values = schema.struct_of({binding.key: value}, {binding.key: None} if absent else {})
        return msgspec.json.Decoder(msgspec.defstruct("Values", [("attributes", values)]))

    def __call__(self, block: JointBlock) -> _Encoded:
        """The documents of a block, in their order."""
        self.counted = Counted.none(len(self.rules.rules))
        self.tally = Tally(unicode=self.work.settings.unicode_words)
        self.rules.start_over()
        pieces: list[tuple[str, bytes]] = []
        size = 0
        for joint, measured in self.joiner.measured(block, unicode=self.work.settings.unicode_words):
            pieces += self._encode(joint, measured)
            size += len(joint[0].row)
        self.counted.matched = {i: set(watch.matched) for i, watch in self.rules.blocklists.items()}
        self.counted.statistics = self.tally.counted()
        return _Encoded(pieces, self.counted, size)

    def _encode(self, joint: Joint, measured: Measured) -> list[tuple[str, bytes]]:
        document, number, _, values = joint
        self.counted.totals.rows += 1
        self.counted.totals.chars += document.chars
        try:
            pieces, why = self._pieces(joint, measured)
            if why is not None and self.work.settings.rejected is not None:
                pieces = [(REJECTED, self._rejected(document, why, values))]
        except DataError as error:
            raise at_document(error, self.work, number, document.id) from None
        return pieces

    def _pieces(self, joint: Joint, measured: Measured) -> tuple[list[tuple[str, bytes]], int | str | None]:
        """What the writer makes of a document, and why it makes nothing: the rule that drops it, or a name."""
        document, number, lines, values = joint
        label = self._label(values, document)
        self.tally.read(label, measured)
        outcome = self.rules.decide(*values, document)
        count(self.counted.rules, outcome, document.chars)
        if self.rules.may_differ:
            self.counted.unlike_dolma += self.rules.differs(outcome, *values, document)
        if isinstance(outcome, int):
            return [], outcome
        applied = self.rules.applied(*values, document) if self.rules.applies else []
        for i in applied:
            self.counted.rules[i].documents += 1
            self.counted.rules[i].chars += document.chars
        original, wanted, after_values = document, self._values(document, lines), values
        if self.rules.edits:
            edited, edits = self.rules.edit(document, *values, document, overlaps=self.work.stream.overlaps)
            count_edits(self.counted.rules, edits)
            if edited and not edited.text and not self.work.settings.output.keep_empty:
                return self._nothing("documents empty after edits")
            if edited:
                document = document.with_text(edited.text)
                after = self._values_after(edited, document, wanted, lines)
                if isinstance(after, str):
                    return self._nothing(after)
                wanted = after
                after_values = self._rule_values_after(edited, document, values, lines)
        mixed = Mixed(
            wanted,
            self.rules.annotations(outcome),
            merged(self.work.sets, lines) if self.takes_all and self.work.sets else None,
            self.counted.left_out,
            self._fields(applied, document, number, lines, after_values),
            self.shard,
        )
        pieces = [_checked(*piece) for piece in self.writer.encode(document, mixed)]
        self._keep(label, pieces, measured if document is original else document.text)
        if applied:
            pieces = [(self._routed(applied, label, values, original), data) for label, data in pieces]
        if shares := self.work.settings.splits:
            split = split_of(document.id.encode(), shares)
            pieces = [(f"{split}/{label}", data) for label, data in pieces]
        self.counted.totals.kept += 1
        self.counted.totals.kept_chars += document.chars
        return (pieces, None) if pieces else self._nothing("documents without output")

    def _label(self, values: list[Any], document: Document) -> str:
        """For the statistics; a document whose label cannot be told, which a rule may drop, is among those without."""
        if self.rules.label is None:
            return NO_LABEL
        try:
            return self.rules.label(*values, document) or NO_LABEL
        except DataError:
            return NO_LABEL

    def _keep(self, label: str, pieces: list[tuple[str, bytes]], text: Measured | str) -> None:
        """Counts a document that stays: as measured, or by its other text; or its pieces, where they have labels."""
        if self.parts:
            for of_piece, data in pieces:
                self.tally.keep_text(of_piece, self.writer.text_of(data))
        elif isinstance(text, str):
            self.tally.keep_text(label, text)
        else:
            self.tally.keep(label, text)

    def _routed(self, applied: list[int], label: str, values: list[Any], document: Document) -> str:
        return check_folder(self.rules.route(applied, label, *values, document))

    def _fields(
        self, applied: list[int], document: Document, number: int, lines: list[bytes], values: list[Any]
    ) -> dict[str, Any]:
        fields = self.rules.set_fields(applied, *values, document) if applied else {}
        if self.provenance:
            fields["provenance"] = msgspec.Raw(msgspec.json.encode(self.provenance.of(number)))
        return fields

    def _nothing(self, why: str) -> tuple[list[tuple[str, bytes]], str]:
        self.counted.left_out[why] += 1
        return [], why

    def _rejected(self, document: Document, why: int | str, values: list[Any]) -> bytes:
        """The document as it was, with the rule that dropped it and the values that it saw."""
        rule = why if isinstance(why, str) else self.rules.rules[why].name
        seen = {} if isinstance(why, str) else self.rules.compiled[why].watched((*values, document))
        fields = msgspec.json.decode(document.row, type=dict[str, msgspec.Raw])
        reason = msgspec.Raw(msgspec.json.encode({"rule": rule, "values": seen}))
        return msgspec.json.encode(fields | {"rejected": reason}) + b"\n"

    def _values(self, document: Document, lines: list[bytes]) -> dict[str, Any]:
        values = {option: field.of(document) for option, field in self.fields.items()}
        for option, binding in self.work.bindings.items():
            try:
                value = self.decoders[option].decode(lines[binding.set]).attributes
            except msgspec.DecodeError as error:
                joined = self.work.sets[binding.set]
                keys = [key.name for key in joined.keys if key.key == binding.key]
                message = f"expected values of {joined.set} that the format can take, got: {error}"
                raise DataError(message).about(keys) from None
            for name in (binding.key, *binding.path):
                value = getattr(value, schema.field_name(name))
            values[option] = value
        return values

    def _values_after(
        self, edited: Edited, document: Document, values: dict[str, Any], lines: list[bytes]
    ) -> dict[str, Any] | str:
        """The writer's values for the edited document; a text if it has none that the format can take."""
        after = {option: values[option] for option in self.fields}
        for option, binding in self.work.bindings.items():
            try:
                after[option] = self._value_after(
                    binding, edited, document, values[option], self.wanted[option].type, lines
                )
            except msgspec.ValidationError:
                return f"documents without {option} after edits"
        return after

    def _rule_values_after(
        self, edited: Edited, document: Document, values: list[Any], lines: list[bytes]
    ) -> list[Any]:
        """The values that `set` rules see: of the edited document."""
        after = list(values)
        for binding, type_ in zip(self.work.set_bindings, self.set_types, strict=True):
            name = schema.field_name(binding.key)
            old = getattr(after[binding.set], name)
            new = self._value_after(binding, edited, document, old, type_, lines)
            after[binding.set] = msgspec.structs.replace(after[binding.set], **{name: new})
        return after

    def _value_after(
        self, binding: Binding, edited: Edited, document: Document, value: Any, type_: Any, lines: list[bytes]
    ) -> Any:
        if binding.after_edits == "by line":
            return along(edited, value)
        per_line = {
            (self.work.sets[i].set, key): along(edited, RAW_ATTRIBUTES.decode(lines[i]).value(key))
            for i, key in needed(binding, self.work.sets)
        }
        return recomputed(binding, self.work.sets, document, per_line, type_)


def _checked(label: str, data: bytes) -> tuple[str, bytes]:
    """What a writer gave, if it can be written: whatever the writer, no label leads out of the output."""
    if not isinstance(data, bytes) or not data.endswith(b"\n"):
        raise DataError(f"expected bytes of the writer that end in a line feed, got {data[-40:]!r}")
    return check_folder(label), data


class _Provenance:
    """Where a document comes from: the value of ``metadata.provenance``."""

    def __init__(self, work: Work) -> None:
        self._short = work.settings.output.provenance == "line"
        self._shard = os.path.basename(work.shard) if self._short else work.key
        self._sets = {
            joined.set: {
                "digest": lineage.content_of(work.dataset, joined.set, work.shard),
                "versions": {key.name: key.settings["version"] for key in joined.keys if key.settings},
            }
            for joined in work.sets
            if not self._short
        }

    def of(self, number: int) -> Any:
        """Of the document of this row, counted from 1."""
        if self._short:
            return f"{self._shard}:{number}"
        return {"shard": self._shard, "row": number, "sets": self._sets}


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
        self._output.flush()

    def _write(self, label: str) -> None:
        pieces, size = self._pieces.pop(label), self._sizes.pop(label)
        self._held -= size
        compress = COMPRESSORS[self._settings.compression(label)]

        def note(offset: int, length: int) -> None:
            self.index.setdefault(label, []).append(Member(offset, length, size, len(pieces)))

        self._output.write(b"".join(pieces), compress, note)
