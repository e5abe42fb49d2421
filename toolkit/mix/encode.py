"""The work of stage 1 on a block of documents: rules decide and edit, the writer encodes what stays, all is counted."""

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit.data import schema
from toolkit.data.dataset import SHARD_SUFFIXES, GappedRow
from toolkit.data.documents import Document
from toolkit.data.row_index import identity_record
from toolkit.errors import DataError, ToolkitError
from toolkit.mix.bindings import Binding, ShardToMix, metadata_fields, needed, recomputed
from toolkit.mix.join import RAW_ATTRIBUTES, Joiner, Joint, JointBlock, Measured, at_document, columns_of, merged
from toolkit.mix.orphans import Copies, Fates
from toolkit.mix.rule_effects import counts
from toolkit.mix.settings import COPY, REJECTED, split_of
from toolkit.mix.shuffle import framed
from toolkit.mix.writer import TEXT_KEY, Mixed, MixedBatch, Pieces, check_folder
from toolkit.records.sets import ShardAttributes
from toolkit.rules.kinds.blocklist import Blocklist
from toolkit.rules.ruleset import Outcome
from toolkit.storage.json_files import decoder_of
from toolkit.storage.paths import strip_suffix
from toolkit.text import json_strings
from toolkit.text.batch import Batch, Column
from toolkit.text.editing import Edited, along


class Encoded(NamedTuple):
    """A block, encoded: pieces of labels, in order; what was counted; the bytes of the block as stored; who stays."""

    pieces: list[tuple[str, bytes]]
    counted: counts.Counted
    stored: int = 0
    fates: Fates = Fates()


class _DocumentToEncode(NamedTuple):
    """A document to encode.

    Attributes:
        joint: Document as read.
        label: Label for the statistics.
        applied: Indexes of the rules that route it or set fields.
        document: Document after edits.
        mixed: Values for the writer.
        measured: Measures of its text; the text itself, if it was edited.
        copies: Number of copies.
        group: Group of a budget.
    """

    joint: Joint
    label: str
    applied: list[int]
    document: Document
    mixed: Mixed
    measured: Measured | str
    copies: int
    group: str | None


class _Fresh(NamedTuple):
    """New documents, the number before them, and columns of the writer's options."""

    number: int
    batch: Batch
    columns: Mapping[str, Column[Any]]


class _LazyValues(Mapping[str, Any]):
    """The values of a document for the writer, decoded on demand."""

    def __init__(self, encoder: "Encoder", document: Document, lines: list[bytes]) -> None:
        self._row = encoder, document, lines
        self._values: dict[str, Any] = {}

    def __getitem__(self, option: str) -> Any:
        if option not in self._values:
            encoder, document, lines = self._row
            self._values[option] = encoder.value(option, document, lines)
        return self._values[option]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row[0].attributes)

    def __len__(self) -> int:
        return len(self._row[0].attributes)


@functools.lru_cache(256)  # each shard asks for it
def _value_decoder(type_: Any, key: str, path: tuple[str, ...], *, absent: bool) -> msgspec.json.Decoder[Any]:
    """Return the decoder of attribute rows with a value at a path. A missing value is null if `absent`."""
    for name in reversed(path):
        type_ = schema.struct_of({name: type_})
    values = schema.struct_of({key: type_}, {key: None} if absent else {})
    return decoder_of(msgspec.defstruct("Values", [("attributes", values)]))


class Encoder:
    """Applies the rules to joined rows, encodes documents, and counts.

    Args:
        work: Shard to mix.
        digests: Content digests of its sets, by name, where provenance names them; by default those of their records.
    """

    def __init__(self, work: ShardToMix, digests: Mapping[str, str] | None = None) -> None:
        self.work = work
        self.rules = work.compile_rules()
        self.copies = Copies(self.rules, work)
        listed = enumerate(self.rules.rules)
        self._cleared = {i for i, rule in listed if isinstance(rule, Blocklist) and rule.cleared}
        needs = self.rules.needs
        self.joiner = Joiner(work, needs.keys, needs.fields, joined=needs.joined, late=True)
        self.writer = work.settings.writer()
        self.takes_all = self.writer.takes_all()
        self.parts = self.writer.parts_documents()
        self.shard = strip_suffix(work.shard, SHARD_SUFFIXES)
        self.provenance = _Provenance(work, digests) if work.settings.output.provenance else None
        self.shuffle = work.settings.output.shuffle
        self.numbers = work.settings.repeats
        self.notes_ids = work.settings.notes_ids
        self.written: list[bytes] = []
        self.counted = counts.Counted.none(len(self.rules.rules))
        self.tally = counts.Tally(unicode=work.settings.unicode_words)
        self.attributes = self.writer.wants()
        self.fields = metadata_fields(self.attributes, work.bindings)
        self.decoders = {option: self._value_decoder(option, b) for option, b in work.bindings.items()}
        self.set_types = [
            schema.to_python(key.declared)
            for binding in work.set_bindings
            for key in work.sets[binding.set].keys
            if key.key == binding.key
        ]

    def _value_decoder(self, option: str, binding: Binding) -> msgspec.json.Decoder[Any]:
        absent = any(key.key == binding.key and key.default for key in self.work.sets[binding.set].keys)
        type_ = str if binding.is_label else self.attributes[option].type
        return _value_decoder(type_, binding.key, tuple(binding.path), absent=absent)

    def __call__(self, block: JointBlock) -> Encoded:
        """Return a block of files, encoded."""
        measured = self.joiner.measured(block, unicode=self.work.settings.unicode_words)
        encoded = self.encode(measured)._replace(stored=block.documents.stored)
        if block.dropped is not None:
            encoded.counted.add(block.dropped)
        return encoded

    def fresh(
        self,
        number: int,
        batch: Batch,
        attribute_rows: Sequence[Sequence[bytes]],
        columns: Mapping[tuple[str, str], Column[Any]],
    ) -> Encoded:
        """Return new documents, encoded.

        Args:
            number: Number of documents before them in their shard.
            batch: Documents, with their rows.
            attribute_rows: New rows of these documents, by set.
            columns: Values in these rows, by set and key, where they are there as columns.
        """
        by_option = {
            option: column
            for option, binding in self.work.bindings.items()
            if not (binding.path or binding.is_label)
            and (column := columns.get((self.work.sets[binding.set].set, binding.key))) is not None
        }
        joined = self.joiner.fresh(number, batch, attribute_rows, unicode=self.work.settings.unicode_words)
        return self.encode(joined, _Fresh(number, batch, by_option))

    def encode(self, joined: Iterable[tuple[Joint, Measured]], fresh: "_Fresh | None" = None) -> Encoded:
        """Decide about documents, then encode the kept ones, in order."""
        self.counted = counts.Counted.none(len(self.rules.rules))
        self.tally = counts.Tally(unicode=self.work.settings.unicode_words)
        self.rules.start_over()
        self.copies.start()
        self.written = []
        rows: list[_DocumentToEncode | list[tuple[str, bytes]]] = []
        fault: DataError | None = None
        rows_read: list[tuple[Joint, Measured]] = []
        try:
            rows_read.extend(joined)
        except DataError as error:  # those before it are there
            fault = error
        columns = columns_of([joint for joint, _ in rows_read])
        try:
            outcomes = self.rules.outcomes(columns)
        except DataError as error:
            wrong = (error.line or 1) - 1
            fault, rows_read = self._at(rows_read[wrong][0], error), rows_read[:wrong]
            columns = columns_of([joint for joint, _ in rows_read])
            outcomes = self.rules.outcomes(columns)
        labels = counts.labels_of(self.rules, columns)
        counts.note(
            self.counted,
            self.tally,
            self.rules,
            columns,
            [item for _, item in rows_read],
            labels=labels,
            outcomes=outcomes,
        )
        for (joint, measured), label, outcome in zip(rows_read, labels, outcomes, strict=True):
            try:
                result = self._decided(joint, measured, label, outcome)
                rows.append(result if isinstance(result, _DocumentToEncode) else self._dropped(joint, result))
            except DataError as error:
                fault = self._at(joint, error)
                break
        encoded = iter(self._encoded([row for row in rows if isinstance(row, _DocumentToEncode)], fresh))
        if fault:  # of a document behind those that could be encoded
            raise fault
        self.counted.totals.rows, self.counted.totals.chars = (
            len(rows),
            sum(item[counts.CHARS] for _, item in rows_read),
        )
        pieces = [piece for row in rows for piece in (next(encoded) if isinstance(row, _DocumentToEncode) else row)]
        self.counted.matched = {i: set(watch.matched) for i, watch in self.rules.blocklists.items()}
        self.counted.statistics = self.tally.counted()
        fates = msgspec.structs.replace(self.copies.take(), written=b"".join(self.written))
        return Encoded(pieces, self.counted, fates=fates)

    def _decided(
        self, joint: Joint, measured: Measured, label: str, outcome: Outcome
    ) -> "_DocumentToEncode | int | str":
        """Return the document as it stays, or why it does not: the rule that drops it, or a name."""
        document, number, lines, values = joint
        rules = self.rules
        if self.copies.rules:
            self.copies.note(outcome, number, (*values, document))
        if rules.may_differ:
            self.counted.unlike_dolma += rules.differs(outcome, *values, document)
        if isinstance(outcome, int):
            return outcome
        applied = rules.applied(*values, document) if rules.applies else []
        for i in applied:
            self.counted.rules[i].documents += 1
            self.counted.rules[i].chars += measured[counts.CHARS]
        original, after_values = document, values
        stretches: Sequence[tuple[int, int, int]] = ()
        attributes: Mapping[str, Any]
        if not rules.edits:
            attributes = _LazyValues(self, document, lines)
        else:
            attributes = before = self.values(document, lines)
            stream = self.work.stream
            edited, edits, clamped = rules.edit(
                document, *values, document, overlaps=stream.overlaps, past_end=stream.past_end
            )
            counts.count_edits(self.counted.rules, edits)
            self.counted.left_out["spans clamped to the end of the text"] += clamped
            if edited and not edited.text and not self.work.settings.output.keep_empty:
                return self._nothing("documents empty after edits")
            if edited:
                document, stretches = document.with_text(edited.text), edited.edits
                after = self._values_after(edited, document, before, lines)
                if isinstance(after, str):
                    return self._nothing(after)
                attributes = after
                after_values = self._rule_values_after(edited, document, values, lines)
        mixed = Mixed(
            attributes,
            rules.annotations(outcome) if outcome else [],
            merged(self.work.sets, map(RAW_ATTRIBUTES.decode, lines)) if self.takes_all and self.work.sets else None,
            self.counted.left_out,
            self._fields(applied, document, number, lines, after_values) if applied or self.provenance else {},
            self.shard,
            number,
            origin=self.work.key,
            edits=stretches,
            path=self.work.path,
        )
        copies = rules.copies(*values, original) if rules.repeats else 1
        if rules.repeats:
            counts.count_repeats(self.counted.rules, rules, copies, (*values, original))
        group = None
        if rules.budget:
            group, amount = rules.budget.of((*values, original), measured[counts.CHARS], measured[counts.BYTES])
            counts.count_group(self.counted.groups, group, amount, copies)
        text = measured if document is original else document.text
        return _DocumentToEncode(joint, label, applied, document, mixed, text, copies, group)

    def _encoded(
        self, documents_kept: list["_DocumentToEncode"], fresh: "_Fresh | None"
    ) -> list[list[tuple[str, bytes]]]:
        """Return the pieces of each document to encode, in order."""
        if not documents_kept:
            return []
        copies = [(item, number) for item in documents_kept for number in range(1, item.copies + 1)]
        mixed = [self._numbered(item.mixed, number) if self.numbers else item.mixed for item, number in copies]
        columns: Mapping[str, Sequence[Any]] = {}
        documents: Sequence[Document] = [item.document for item, _ in copies]
        if fresh and not self.rules.edits:
            rows = [item.joint[1] - fresh.number - 1 for item, _ in copies]
            if rows == [*range(len(fresh.batch))] and self.work.stream.text is None:
                documents, columns = fresh.batch, fresh.columns
            else:
                columns = {option: column.take(rows) for option, column in fresh.columns.items()}
        result = self._of_writer(MixedBatch(documents, mixed, columns), documents_kept)
        if not isinstance(result, Sequence) or len(result) != len(copies):
            got = len(result) if isinstance(result, Sequence) else type(result).__name__
            raise DataError(f"expected {len(copies)} results of encode_batch, got {got}", path=self.work.path)
        gapped = [i for i, document in enumerate(documents) if isinstance(document.row, GappedRow)]
        if gapped:
            result = [self._pairs(item.joint, pieces) for (item, _), pieces in zip(copies, result, strict=True)]
            result = self._filled(documents, result, gapped)
        written: list[list[tuple[str, bytes]]] = []
        for (item, number), pieces in zip(copies, result, strict=True):
            try:
                placed = self._placed(item, pieces, number)
                if number == 1:
                    written.append(placed)
                else:
                    written[-1].extend(placed)
            except DataError as error:
                raise self._at(item.joint, error) from None
        return written

    def _filled(self, documents: Sequence[Document], pieces: Sequence[Pieces], gapped: list[int]) -> list[Pieces]:
        """Return the pieces of documents with the texts of some filled in."""
        result = [[*item] for item in pieces]
        places = [(i, j) for i in gapped for j in range(len(result[i]))]
        utf8, begins, ends = json_strings.placed([documents[i].utf8 for i, _ in places])
        try:
            lines, _ = json_strings.encoded(utf8, begins, ends, [result[i][j][1] for i, j in places], TEXT_KEY)
        except ValueError:
            got = "pieces of a format that copies the text (`copies_text`), got one without it"
            raise DataError(f"expected {TEXT_KEY.decode()!r} in {got}", path=self.work.path) from None
        for (i, j), line in zip(places, lines, strict=True):
            result[i][j] = result[i][j][0], line
        return [*result]

    def _numbered(self, mixed: Mixed, number: int) -> Mixed:
        """Return the writer's values for a copy. Copies count from 1; the first document is one."""
        numbered = {COPY: msgspec.Raw(b"%d" % number)} if self.writer.FIELDS else {}
        return msgspec.structs.replace(mixed, fields={**mixed.fields, **numbered}, copy=number)

    def _of_writer(self, batch: MixedBatch, documents_kept: list["_DocumentToEncode"]) -> Sequence[Pieces]:
        try:
            return self.writer.encode_batch(batch)
        except DataError as error:
            raise self._named(error, documents_kept) from None
        except (ToolkitError, MemoryError):
            raise
        except Exception as error:  # of the writer's own code
            raise self._named(self._failed(error), documents_kept) from error

    def _named(self, error: DataError, documents_kept: list["_DocumentToEncode"]) -> DataError:
        """Return the error of a batch as of its first faulty document."""
        for item in documents_kept:
            try:
                list(self.writer.encode(item.document, item.mixed))
            except DataError as fault:
                return self._at(item.joint, fault)
            except (ToolkitError, MemoryError):
                raise
            except Exception as own:
                return self._at(item.joint, self._failed(own))
        return DataError(error.message, path=error.path or self.work.path)

    def _failed(self, error: Exception) -> DataError:
        return DataError(f"format {type(self.writer).__name__} failed: {type(error).__name__}: {error}")

    def _pairs(self, joint: Joint, encoded: Pieces) -> list[tuple[str, bytes]]:
        """Return the pieces of a document, checked: the writer's own code may have given anything."""
        try:
            return [_checked(*piece) for piece in encoded]
        except DataError as error:
            raise self._at(joint, error) from None
        except (ToolkitError, MemoryError):
            raise
        except Exception as error:
            got = f"got {type(encoded).__name__} ({type(error).__name__}: {error})"
            expected = f"expected pairs of a label and bytes of the format {type(self.writer).__name__}"
            raise self._at(joint, DataError(f"{expected}, {got}")) from error

    def _at(self, joint: Joint, error: DataError) -> DataError:
        return at_document(error, self.work, joint[1], joint[0].id)

    def _placed(self, document: "_DocumentToEncode", encoded: Pieces, number: int) -> list[tuple[str, bytes]]:
        """Return the pieces of a copy with final labels; count it."""
        pieces = self._pairs(document.joint, encoded)
        self._keep(document.label, pieces, document.measured)
        original, _, _, values = document.joint
        if document.applied:
            route = self.rules.route
            pieces = [(check_folder(route(document.applied, label, *values, original)), data) for label, data in pieces]
        if shares := self.work.settings.splits:
            split = split_of(original.id.encode(), shares)
            pieces = [(f"{split}/{label}", data) for label, data in pieces]
        if document.group is not None:
            of_group, text = self.counted.groups[document.group], document.measured
            of_group.chars += document.document.chars
            of_group.bytes += len(text.encode()) if isinstance(text, str) else text[counts.BYTES]
        if pieces and self.shuffle:
            id_ = f"{original.id}\0{original.place}" if original.place else original.id
            pieces = framed(self.shuffle, original.source, id_, number, pieces)
        totals = self.counted.totals
        if number > 1:
            totals.copies += 1
            totals.copy_chars += document.document.chars
            return pieces
        totals.kept += 1
        totals.kept_chars += document.document.chars
        if pieces and self.notes_ids:
            self.written.append(identity_record(document.joint[1], original.source, original.id, original.raw_metadata))
        return pieces or self._dropped(document.joint, self._nothing("documents without output"))

    def _dropped(self, joint: Joint, why: int | str) -> list[tuple[str, bytes]]:
        """Return the pieces of a dropped document, if dropped documents are kept."""
        if self.work.settings.rejected is None or why in self._cleared:
            return []
        return [(REJECTED, self._rejected(joint[0], why, joint[3]))]

    def _keep(self, label: str, pieces: list[tuple[str, bytes]], text: Measured | str) -> None:
        """Count a kept document by measures, new text, or pieces."""
        if self.parts:
            for of_piece, data in pieces:
                self.tally.keep_text(of_piece, self.writer.text_of(data))
        elif isinstance(text, str):
            self.tally.keep_text(label, text)
        else:
            self.tally.keep(label, text)

    def _fields(
        self, applied: list[int], document: Document, number: int, lines: list[bytes], values: list[Any]
    ) -> dict[str, Any]:
        fields = self.rules.set_fields(applied, *values, document) if applied else {}
        if self.provenance:
            fields["provenance"] = msgspec.Raw(msgspec.json.encode(self.provenance.of(number)))
        return fields

    def _nothing(self, why: str) -> str:
        self.counted.left_out[why] += 1
        return why

    def _rejected(self, document: Document, why: int | str, values: list[Any]) -> bytes:
        """Return a dropped document with the rule and the values it read."""
        rule = why if isinstance(why, str) else self.rules.rules[why].name
        values_seen = {} if isinstance(why, str) else self.rules.compiled[why].watched((*values, document))
        fields = msgspec.json.decode(document.row, type=dict[str, msgspec.Raw])
        reason = msgspec.Raw(msgspec.json.encode({"rule": rule, "values": values_seen}))
        return msgspec.json.encode(fields | {"rejected": reason}) + b"\n"

    def values(self, document: Document, lines: list[bytes]) -> dict[str, Any]:
        """Return the values of a document for the writer, by option."""
        return {option: self.value(option, document, lines) for option in self.attributes}

    def value(self, option: str, document: Document, lines: list[bytes]) -> Any:
        """Return the value of a document for an option of the writer."""
        if option in self.fields:
            return self.fields[option].of(document)
        binding = self.work.bindings[option]
        try:
            value = self.decoders[option].decode(lines[binding.set]).attributes
        except msgspec.DecodeError as error:
            joined = self.work.sets[binding.set]
            keys = [key.name for key in joined.keys if key.key == binding.key]
            message = f"expected values of {joined.set} that the format can take, got: {error}"
            raise DataError(message).about(keys) from None
        for name in (binding.key, *binding.path):
            value = getattr(value, schema.field_name(name))
        return msgspec.convert({"label": value}, self.attributes[option].type) if binding.is_label else value

    def _values_after(
        self, edited: Edited, document: Document, values: dict[str, Any], lines: list[bytes]
    ) -> dict[str, Any] | str:
        """Return the writer's values for the edited document; a text if it has none that the format can take."""
        after = {option: values[option] for option in self.fields}
        for option, binding in self.work.bindings.items():
            try:
                after[option] = self._value_after(
                    binding, edited, document, values[option], self.attributes[option].type, lines
                )
            except msgspec.ValidationError:
                return f"documents without {option} after edits"
        return after

    def _rule_values_after(
        self, edited: Edited, document: Document, values: list[Any], lines: list[bytes]
    ) -> list[Any]:
        """Return the values of the edited document for `set` rules."""
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
        if binding.after_edits == "kept" or (binding.after_edits == "by line" and value is None):
            return value
        if binding.after_edits == "by line":
            return along(edited, value)
        per_line = {
            (self.work.sets[i].set, key): along(edited, RAW_ATTRIBUTES.decode(lines[i]).value(key))
            for i, key in needed(binding, self.work.sets)
        }
        return recomputed(binding, self.work.sets, document, per_line, type_)


def _checked(label: str, data: bytes) -> tuple[str, bytes]:
    """Return a piece of the writer with a safe label and bytes. No label leads out of the output."""
    if not isinstance(data, bytes) or not data.endswith(b"\n"):
        raise DataError(f"expected bytes of the writer that end in a line feed, got {data[-40:]!r}")
    if not isinstance(label, str):
        raise DataError(f"expected a text of the writer as the label, got {label!r}")
    return check_folder(label), data


class _Provenance:
    """Makes the values of ``metadata.provenance``."""

    def __init__(self, work: ShardToMix, digests: Mapping[str, str] | None) -> None:
        self._short = work.settings.output.provenance == "line"
        self._shard = os.path.basename(work.shard) if self._short else work.key
        self._sets = {
            joined.set: {
                "digest": digests[joined.set]
                if digests
                else ShardAttributes(work.dataset, joined.set, work.shard).content(),
                # Sets that `align` made come from no tagger, which would have a version.
                "versions": {
                    key.name: settings["version"]
                    for key in joined.keys
                    if "version" in (settings := key.settings or {})
                },
            }
            for joined in work.sets
            if not self._short
        }

    def of(self, number: int) -> Any:
        """Return the value for a row, counted from 1."""
        if self._short:
            return f"{self._shard}:{number}"
        return {"shard": self._shard, "row": number, "sets": self._sets}
