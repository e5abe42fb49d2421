"""Joining: the documents of a shard, row by row with their attributes; and whether these may be joined at all."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import msgspec

from toolkit import records, rowindex, schema
from toolkit.alignment import AttributeRows, missing_file
from toolkit.config import ConfigStruct
from toolkit.documents import DOCUMENT_DECODER, Document, Rows, to_document
from toolkit.errors import DataError
from toolkit.mixing.binding import Binding
from toolkit.mixing.settings import JoinedSet, MixSettings, compile_rules
from toolkit.paths import Dataset, exists
from toolkit.streams import Lines


class Work(ConfigStruct):
    """One shard to mix."""

    dataset: Dataset
    settings: MixSettings
    sets: list[JoinedSet]
    bindings: dict[str, Binding]
    shard: str
    max_document_bytes: int


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
            raise missing_file(path, dataset.shard_path(shard))
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
        for _ in joint_rows(one, stack):
            pass


def row_decoder(joined: JoinedSet, keys: set[str]) -> msgspec.json.Decoder[Any]:
    """Decodes rows of a set: ``id``, ``source``, and ``attributes`` with the values of these keys of the mix."""
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


def joint_rows(work: Work, stack: ExitStack) -> Iterator[Joint]:
    """The documents of a shard with, for each set, its line and its values for the rules.

    Raises:
        AlignmentError: if a set's rows are not those of the documents.
    """
    dataset, shard = work.dataset, work.shard
    path = dataset.shard_path(shard)
    used = compile_rules(work.settings, work.sets).used if len(work.sets) == len(work.settings.attributes) else set()
    documents = Rows(stack.enter_context(Lines(path, work.max_document_bytes)), DOCUMENT_DECODER, path)
    others = [
        stack.enter_context(
            AttributeRows(
                dataset.attribute_path(joined.set, shard), path, row_decoder(joined, used), any_source=not joined.ours
            )
        )
        for joined in work.sets
    ]
    for row, line in documents:
        lines: list[bytes] = []
        values: list[Any] = []
        for other in others:
            found, other_line = other.take(row.id, row.source, documents.number)
            lines.append(other_line)
            values.append(_NO_SPANS if found.attributes == [] else found.attributes)
        yield to_document(row, documents, line), documents.number, lines, values
    for other in others:
        other.finish(documents.number)


class _NoSpans:
    """What a row means in which Dolma's deduper wrote ``[]``."""

    def __getattr__(self, name: str) -> list[Any]:
        return []


_NO_SPANS = _NoSpans()
