"""Takedowns: the lists of documents that a dataset must not have, and the record of what was cleared in each shard.

``.toolkit/takedown/SHA256.txt``  a list as it was given: entries of a blocklist (see `toolkit.rules.blocklist`)
``.toolkit/record-log/``          ``takedown`` "": the lists; ``takedown`` SHARD: a `ClearedShard`

Ingest, taggers, stages of the whole dataset and mixes ask `takedown_of` for them.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import record_logs, row_index
from toolkit.data.addresses import url_of
from toolkit.data.alignment import attribute_lines
from toolkit.data.dataset import Dataset
from toolkit.data.documents import DOCUMENT_DECODER, AttributesRow, Document, Rows, to_document
from toolkit.data.metadata_fields import DOCUMENT, METADATA
from toolkit.data.own_types import OwnTypes
from toolkit.data.schema import Type, from_json
from toolkit.errors import DataError
from toolkit.records import sets
from toolkit.records.left_out import identity
from toolkit.records.sets import OutputState, ShardRecord, output_state
from toolkit.session import current
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import exists, join
from toolkit.storage.record_log import Group

KIND = "takedown"
"""Kind of the records in the record log of a dataset."""

_ENCODER = msgspec.json.Encoder()
_ATTRIBUTES = msgspec.json.Decoder(AttributesRow)
_HEADERS = re.compile(rb"(?mi)^WARC-(Record-ID|Target-URI):\s*(\S+)")
_NO_NULL = ("nullable", "any", "null", "never")


class Takedown:
    """The entries of lists, and the documents that they name.

    Args:
        files: Paths of the lists.

    Attributes:
        entries: The entries.
    """

    def __init__(self, files: Sequence[str]) -> None:
        from toolkit.rules.blocklist import Blocklist  # few datasets have such lists

        self.entries = Blocklist(files)

    @property
    def needs_documents(self) -> bool:
        """Return True if ids alone do not tell which documents are listed."""
        return self.entries.needs_url

    def find(self, document: Document) -> list[int]:
        """Return the numbers of the entries that name a document."""
        url = url_of({METADATA: document.metadata}) if self.needs_documents else None
        return self.entries.find(document.id, document.source, url)

    def has(self, document: Document) -> bool:
        """Return True for a document that is listed, or was cleared: then no entry of a URL or a host names it."""
        return bool(self.find(document)) or (self.needs_documents and not document.text)

    def names(self, raw: bytes, source: str) -> bool:
        """Return True for an item of an input (JSON, or a WARC record) whose id or URL is listed."""
        headers = {name.lower(): value.decode(errors="replace") for name, value in _HEADERS.findall(raw)}
        id, url = identity(raw)
        url = url or headers.get(b"target-uri")
        return bool(self.entries.find(id or headers.get(b"record-id", ""), source, url))

    def rows(self, documents: Sequence[Document]) -> list[int]:
        """Return the indexes of the documents that are listed, or were cleared."""
        return [i for i, document in enumerate(documents) if self.has(document)]


class Lists(msgspec.Struct, frozen=True):
    """The lists of a dataset: the number of entries of each, by its sha256."""

    lists: dict[str, int] = {}


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A document: its shard, its row from 1, and its names."""

    shard: str
    row: int
    source: str
    id: str


class ListedDocument(Located, frozen=True, kw_only=True):
    """A document that a list names.

    Attributes:
        sha256: sha256 (hex) of the text in UTF-8.
        chars, bytes: Size of the text in code points, and in UTF-8.
    """

    sha256: str
    chars: int
    bytes: int


class Copy(Located, frozen=True, kw_only=True):
    """A document that is not listed, with the text of one that is, or nearly so.

    Attributes:
        by: `text` if it has the same text; else the set that says so.
    """

    by: str


class Change(msgspec.Struct, frozen=True):
    """A file whose rows were cleared: its set (empty for documents), and xxh3-128 of all rows before and after."""

    set: str
    old: str
    new: str


class ClearedShard(msgspec.Struct, frozen=True, kw_only=True):
    """The record of what was cleared in a shard.

    Attributes:
        documents: Documents whose rows were cleared.
        changes: Files that were rewritten, in order.
        output: Documents as they are now; None of external files, which stay.
        pending: Records of the shard as they were, by kind, until all of it is cleared.
    """

    documents: list[ListedDocument] = []
    changes: list[Change] = []
    output: OutputState | None = None
    pending: dict[str, msgspec.Raw] | None = None


def lists_of(dataset: Dataset) -> Lists:
    """Return the lists of a dataset."""
    return record_logs.of(dataset).load(KIND, "", Lists) or Lists()


def list_path(dataset: Dataset, sha256: str) -> str:
    """Return the path of a list of a dataset."""
    return join(dataset.bookkeeping, KIND, f"{sha256}.txt")


def paths_of(dataset: Dataset) -> list[str]:
    """Return the paths of the lists of a dataset, sorted."""
    return [list_path(dataset, sha256) for sha256 in sorted(lists_of(dataset).lists)]


def takedown_of(dataset: Dataset) -> Takedown | None:
    """Return the takedown that a dataset applies; None without one. Its lists are read once in a process."""
    return opened(paths_of(dataset))


def opened(files: Sequence[str]) -> Takedown | None:
    """Return the takedown of some lists, read once in a process; None without any."""
    return current().kept((Takedown, *files), lambda: Takedown(files)) if files else None


def load(dataset: Dataset, shard: str) -> ClearedShard | None:
    """Return the record of what was cleared in a shard; None if nothing was."""
    return record_logs.of(dataset).load(KIND, shard, ClearedShard)


def load_all(dataset: Dataset) -> dict[str, ClearedShard]:
    """Return the records of all shards in which something was cleared, sorted."""
    found = ((shard, load(dataset, shard)) for shard in record_logs.of(dataset).keys(KIND) if shard)
    return {shard: cleared for shard, cleared in found if cleared}


# --- what is left of a document ---------------------------------------------------------------------------------------


def empty(type_: Type) -> Any:
    """Return the value of a type that says nothing: null, or the zero of a type without null.

    >>> empty(from_json({"object": {"label": {"nullable": "str"}, "lines": "int"}}))
    {'label': None, 'lines': 0}
    """
    match type_.kind:
        case "bool" | "int" | "float" | "str":
            return {"bool": False, "int": 0, "float": 0.0, "str": ""}[type_.kind]
        case "object":
            return {name: empty(inner) for name, inner in type_.fields}
        case "list":
            return []
        case "map":
            return {}
        case "span":
            return [0, 0, 0.0]
    return None


def without_nulls(values: Iterable[Any], type_: Type) -> Iterator[Any]:
    """Yield Structs; a field that is null, but whose type has no null, has the value of `empty`."""
    zeros = {name: empty(inner) for name, inner in type_.fields if inner.kind not in _NO_NULL}
    for value in values:
        lacking = {name: zero for name, zero in zeros.items() if getattr(value, name, zero) is None}
        yield msgspec.structs.asdict(value) | lacking if lacking else value


def cleared_row(source: str, id: str, types: OwnTypes | None) -> bytes:
    """Return the row of a cleared document; own fields that cannot be null have the zero of their type."""
    fields: dict[str, Any] = {"id": id, "text": "", "source": source}
    for root, own in (types.fields if types else {}).items():
        found = {name: from_json(value) for name, value in own.items()}
        needed = {name: empty(type_) for name, type_ in found.items() if type_.kind not in _NO_NULL}
        fields |= needed if root == DOCUMENT else {METADATA: needed} if needed else {}
    return _ENCODER.encode(fields)


def cleared_attributes(source: str, id: str, types: dict[str, Type]) -> bytes:
    """Return the row of a set for a cleared document."""
    values = {key: empty(type_) for key, type_ in types.items()}
    return _ENCODER.encode({"source": source, "id": id, "attributes": values})


# --- one shard --------------------------------------------------------------------------------------------------------


class ShardToClear(ConfigStruct, kw_only=True):
    """A shard in which listed documents are found, and cleared.

    Attributes:
        dataset: Dataset of the shard.
        shard: Name of the shard.
        files: Paths of the lists.
        sets: Our sets that are made shard by shard.
        copies: Key of each of our sets that says which document another one is a copy of, by set.
        asked: Function that returns the digests of what models are asked about a document.
        ours: True if ingest has made the documents; external ones stay as they are.
        types: Types of the documents' own fields.
        max_document_bytes: Bytes of a row, at most.
        listed: Documents to clear.
    """

    dataset: Dataset
    shard: str
    files: list[str]
    sets: list[str] = []
    copies: dict[str, str] = {}
    asked: Callable[[Document], list[str]]
    ours: bool
    types: OwnTypes | None = None
    max_document_bytes: int
    listed: list[ListedDocument] = []


class Found(NamedTuple):
    """Documents of a shard that lists name.

    Attributes:
        documents: Documents that have not been cleared.
        entries: Numbers of the entries that name documents.
        originals: Names of the documents that these are copies of.
        asked: Digests of what models were asked about these.
    """

    documents: list[ListedDocument]
    entries: set[int]
    originals: set[tuple[str, str]]
    asked: set[str]


def find(work: ShardToClear) -> Found:
    """Return the listed documents of a shard that have not been cleared."""
    dataset, shard = work.dataset, work.shard
    listed, before = opened(work.files), load(dataset, shard)
    done = {document.row for document in before.documents} if before and not work.ours else set[int]()
    documents, entries, asked = list[ListedDocument](), set[int](), set[str]()
    assert listed
    with dataset.lines(shard, work.max_document_bytes) as lines:
        rows = Rows(lines, DOCUMENT_DECODER, dataset.shard_path(shard))
        for row, line in rows:
            document = to_document(row, rows, line)
            if not (matched := listed.find(document)):
                continue
            entries.update(matched)
            if rows.number in done or (work.ours and line == cleared_row(row.source, row.id, work.types)):
                continue
            text = row.text.encode()
            digest = hashlib.sha256(text).hexdigest()
            place: Any = {"shard": shard, "row": rows.number, "source": row.source, "id": row.id}
            documents.append(ListedDocument(**place, sha256=digest, chars=len(row.text), bytes=len(text)))
            asked.update(work.asked(document))
    numbers = {document.row for document in [*documents, *(before.documents if before else ())]}
    originals = {of for copy, of in _copies(work) if copy.row in numbers}
    return Found(documents, entries, originals, asked)


def _copies(work: ShardToClear) -> Iterator[tuple[Copy, tuple[str, str]]]:
    """Yield the documents that sets call copies, and the names of what they are copies of."""
    for name, key in work.copies.items():
        path = work.dataset.attribute_path(name, work.shard)
        if exists(path):
            with attribute_lines(path) as lines:
                for number, line in enumerate(lines, 1):
                    if b'"duplicate_of":[' in line:
                        row = _ATTRIBUTES.decode(line)
                        source, id, *_ = msgspec.json.decode(row.attributes)[key]["duplicate_of"]
                        place = Copy(shard=work.shard, row=number, source=row.source or "", id=row.id or "", by=name)
                        yield place, (source, id)


def find_copies(listed: Sequence[ListedDocument], originals: set[tuple[str, str]], work: ShardToClear) -> list[Copy]:
    """Return the documents of a shard that are copies of listed ones; texts are read where their size is the same.

    Args:
        listed: All documents that are listed, or were cleared.
        originals: Names of the documents that these are copies of.
        work: Shard to read.
    """
    import numpy as np

    dataset, shard = work.dataset, work.shard
    own = {document.row for document in listed if document.shard == shard}
    names = {(document.source, document.id) for document in listed} | originals
    found = [
        copy for copy, of in _copies(work) if copy.row not in own and (of in names or (copy.source, copy.id) in names)
    ]
    digests = {document.sha256 for document in listed if document.chars}
    sizes = np.array([document.chars << 32 | document.bytes for document in listed if document.chars], "<u8")
    row_index.ensure(dataset, shard, work.max_document_bytes)
    blocks = [block["chars"].astype("<u8") << 32 | block["bytes"] for block in row_index.read(dataset, shard)]
    alike = {*(np.flatnonzero(np.isin(np.concatenate(blocks), sizes)) + 1).tolist()} - own if blocks else set[int]()
    with dataset.lines(shard, work.max_document_bytes) as lines:
        for number, line in enumerate(lines if alike else (), 1):
            if number in alike:
                row = DOCUMENT_DECODER.decode(line)
                if hashlib.sha256(row.text.encode()).hexdigest() in digests:
                    found.append(Copy(shard=shard, row=number, source=row.source, id=row.id, by="text"))
    return sorted({(each.row, each.by): each for each in found}.values(), key=lambda each: (each.row, each.by))


def clear(forget_derived: Callable[[Dataset, str], None], work: ShardToClear) -> ClearedShard | None:
    """Clear the listed documents of a shard, in its file and in our sets; return the record, None if there is nothing.

    The record with what is pending is durable before anything is replaced. What is written depends on the rows alone,
    so the same call after a kill does the rest.

    Args:
        forget_derived: Function that deletes what was derived from the texts of a shard, and is made again.
        work: Shard to clear.

    Raises:
        DataError: if the shard, or a set, is not what its record describes.
    """
    dataset, shard, log = work.dataset, work.shard, record_logs.of(work.dataset)
    before = load(dataset, shard) or ClearedShard()
    if not work.listed and before.pending is None:
        return None
    known = {document.row for document in before.documents}
    documents = [*before.documents, *(each for each in work.listed if each.row not in known)]
    pending = before.pending
    if pending is None:
        row_index.ensure(dataset, shard, work.max_document_bytes)
        places = [(record_logs.ROWS, shard), *(record_logs.place_in_set(name, shard) for name in work.sets)]
        pending = {kind: msgspec.Raw(record) for kind, key in places if (record := log.get(kind, key))}
    begun = msgspec.structs.replace(before, documents=documents, pending=pending)
    log.save({(KIND, shard): msgspec.json.encode(begun)})
    forget_derived(dataset, shard)
    with Group(log) as group:
        clearing = _Clearing(work, {document.row for document in documents}, pending, group)
        done = msgspec.structs.replace(
            begun,
            changes=[*begun.changes, *clearing.changes],
            output=clearing.output or begun.output,
            pending=None,
        )
        group.save((KIND, shard), msgspec.json.encode(done))
    return done


class _Clearing:
    """Writes the files of a shard anew, and their records with other digests, in a group."""

    def __init__(self, work: ShardToClear, rows: set[int], pending: dict[str, msgspec.Raw], group: Group) -> None:
        self._work, self._rows, self._group = work, rows, group
        self.changes: list[Change] = []
        self.output: OutputState | None = None
        old = msgspec.json.decode(pending[record_logs.ROWS], type=row_index.ShardState)
        state = self._documents(old) if work.ours else old
        records: dict[str, tuple[ShardRecord, OutputState]] = {}
        for name in work.sets:
            kind = record_logs.place_in_set(name, "")[0]
            if kind in pending and exists(work.dataset.attribute_path(name, work.shard)):
                record = msgspec.json.decode(pending[kind], type=ShardRecord)
                records[name] = record, self._attributes(name, record)
        new = {(name, record.output.content): output.content for name, (record, output) in records.items()}
        sets.save_records(
            work.dataset,
            work.shard,
            {
                name: msgspec.structs.replace(
                    record,
                    input=state if record.input.content == old.content else record.input,
                    reads={other: new.get((other, digest), digest) for other, digest in record.reads.items()},
                    output=output,
                )
                for name, (record, output) in records.items()
            },
            group,
        )

    def _documents(self, old: row_index.ShardState) -> row_index.ShardState:
        work, path = self._work, self._work.dataset.shard_path(self._work.shard)
        files, offset = self._group.files, 0
        with (
            work.dataset.lines(work.shard, work.max_document_bytes, digest=True) as lines,
            row_index.RowIndexOutput(work.dataset, work.shard, replaced=True, group=self._group) as index,
            RowOutput(path, together=files) as output,
        ):
            rows = Rows(lines, DOCUMENT_DECODER, path)
            for row, line in rows:
                if rows.number in self._rows:
                    line = cleared_row(row.source, row.id, work.types)
                    row = DOCUMENT_DECODER.decode(line)
                index.add(row_index.entry_of(row, line), offset)
                offset += len(line) + 1
                output.write_row(line)
        self._changed("", path, lines.content, old.content, output)
        row_index.clear_places(work.dataset, work.shard, self._rows, files)
        self.output = output_state(output)
        return index.finish(output.stat, output.content, head=output.head)

    def _attributes(self, name: str, record: ShardRecord) -> OutputState:
        work = self._work
        path, schema = work.dataset.attribute_path(name, work.shard), sets.load_schema(work.dataset, name)
        types = schema.types() if schema else {}
        self._group.forget(record_logs.place_in_set(name, work.shard))
        with attribute_lines(path, digest=True) as lines, RowOutput(path, together=self._group.files) as output:
            for number, line in enumerate(lines, 1):
                if number in self._rows:
                    row = _ATTRIBUTES.decode(line)
                    line = cleared_attributes(row.source or "", row.id or "", types)
                output.write_row(line)
        self._changed(name, path, lines.content, record.output.content, output)
        return output_state(output)

    def _changed(self, name: str, path: str, content: str | None, old: str, output: RowOutput) -> None:
        """Note a change; what was read must be as it was, or have been cleared by an attempt that was killed."""
        if content not in (old, output.content):
            raise DataError("expected the file that its record describes, got one that was changed later", path=path)
        self.changes.append(Change(name, old, output.content))
