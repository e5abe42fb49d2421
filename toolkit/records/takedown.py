"""Takedowns: the lists of documents that a dataset must not have, and the record of what was cleared in each shard.

``.toolkit/takedown/SHA256.txt``  a list as it was given: entries of a blocklist (see `toolkit.rules.blocklist`)
``.toolkit/record-log/``          ``takedown`` "": the lists; ``takedown`` SHARD: a `ClearedShard`

Ingest, taggers, stages of the whole dataset and mixes ask `takedown_of` for them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from toolkit.data import record_logs
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import DOCUMENT, METADATA, OwnTypes
from toolkit.data.documents import DOCUMENT_DECODER, AttributesRow, Document, Rows, to_document
from toolkit.data.schema import Type, from_json
from toolkit.data.urls import bare_url, url_of_document
from toolkit.errors import DataError
from toolkit.records.left_out import identity
from toolkit.records.sets import OutputState
from toolkit.session import cached, current
from toolkit.storage.freshness import stored_sha256
from toolkit.storage.paths import exists, join, list_files

KIND = "takedown"
"""Kind of the records in the record log of a dataset."""

_ENCODER = msgspec.json.Encoder()
_ATTRIBUTES = msgspec.json.Decoder(AttributesRow)
_HEADERS = re.compile(rb"(?mi)^WARC-(Record-ID|Target-URI):\s*(\S+)")
_NO_NULL = ("nullable", "any", "null", "never")


class Takedown:
    """The entries of takedown lists, and a search for their documents.

    Args:
        files: Paths of the lists.

    Attributes:
        entries: The entries.
    """

    def __init__(self, files: Sequence[str]) -> None:
        from toolkit.rules.blocklist import BlocklistEntries  # few datasets have such lists

        self.entries = BlocklistEntries(files)

    def find(self, document: Document) -> list[int]:
        """Return the numbers of the entries for a document."""
        url = url_of_document(document) if self.entries.needs_url else None
        return self.entries.find(document.id, document.source, url)

    def has(self, document: Document) -> bool:
        """Return True for a listed or cleared document. No entry of a URL or a host names a cleared one."""
        return bool(self.find(document)) or (self.entries.needs_url and not document.text)

    def names(self, raw: bytes, source: str) -> bool:
        """Return True for a listed item of an input. An item is JSON, or a WARC record."""
        headers = {name.lower(): value.decode(errors="replace") for name, value in _HEADERS.findall(raw)}
        id, url = identity(raw)
        url = url or bare_url(headers.get(b"target-uri", ""))
        return bool(self.entries.find(id or headers.get(b"record-id", ""), source, url))

    def rows(self, documents: Sequence[Document]) -> list[int]:
        """Return the indexes of listed or cleared documents."""
        return [i for i, document in enumerate(documents) if self.has(document)]


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A document: its shard, its row from 1, and its names."""

    shard: str
    row: int
    source: str
    id: str


class ListedDocument(Located, frozen=True, kw_only=True):
    """A document of a takedown list.

    Attributes:
        sha256: sha256 (hex) of the text in UTF-8.
        chars, bytes: Size of the text in code points, and in UTF-8.
    """

    sha256: str
    chars: int
    bytes: int


class Copy(Located, frozen=True, kw_only=True):
    """An unlisted document with the text of a listed one. Near copies count, too.

    Attributes:
        by: Reason: `text` for the same text; else the set that relates them.
    """

    by: str


class ChangedFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file with cleared rows.

    Attributes:
        set: Set of the file; empty for documents.
        old, new: xxh3-128 of all rows before and after.
        path: Path of the file, in results alone.
    """

    set: str
    old: str
    new: str
    path: str = ""


class Pending(msgspec.Struct, frozen=True):
    """The open work of a takedown in a shard: rows from 1, and its former records by kind."""

    rows: list[int]
    records: dict[str, msgspec.Raw]


class ClearedShard(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a takedown in a shard.

    Attributes:
        lists: Numbers of the entries that name documents, by the sha256 of each list.
        content: Digest (xxh3-128) of all documents, once nothing is left to do for these and the lists; else empty.
        documents: Documents that were cleared.
        changes: Files that were rewritten, in order.
        output: Documents as they were written last; None of external files, which stay.
        pending: Rows that are not cleared yet.
    """

    lists: dict[str, list[int]] = {}
    content: str = ""
    documents: list[ListedDocument] = []
    changes: list[ChangedFile] = []
    output: OutputState | None = None
    pending: Pending | None = None


def lists_of(dataset: Dataset) -> list[str]:
    """Return the sha256 of each list of a dataset, sorted. Without a record, which may be lost, they are its files."""
    folder = join(dataset.bookkeeping, KIND)
    recorded = record_logs.of(dataset).load(KIND, "", list[str])
    return recorded or _files_in(folder)


@cached(64)
def _files_in(folder: str) -> list[str]:
    return [name[:64] for name in list_files(folder) if re.fullmatch(r"[0-9a-f]{64}\.txt", name)]


def list_path(dataset: Dataset, sha256: str) -> str:
    """Return the path of a list of a dataset."""
    return join(dataset.bookkeeping, KIND, f"{sha256}.txt")


def paths_of(dataset: Dataset) -> list[str]:
    """Return the paths of the lists of a dataset; their content is compared once a command.

    Raises:
        DataError: for a missing or damaged list: documents that it named would come back.
    """
    paths = {sha256: list_path(dataset, sha256) for sha256 in lists_of(dataset)}
    for sha256, path in paths.items():
        if (got := _sha256_of(path)) != sha256:
            remedy = "restore it, or give the list to `toolkit takedown --apply` again"
            raise DataError(f"expected the takedown list with the sha256 of its name, got {got}; {remedy}", path=path)
    return list(paths.values())


@cached(4096)
def _sha256_of(path: str) -> str:
    return stored_sha256(path) if exists(path) else "no such file"


def takedown_of(dataset: Dataset) -> Takedown | None:
    """Return the takedown of a dataset; None without one."""
    files = paths_of(dataset)
    return opened(files) if files else None


def opened(files: Sequence[str]) -> Takedown:
    """Return the takedown of some lists, read once in a process."""
    return current().get_or_make((Takedown, *files), lambda: Takedown(files))


def listed_rows(dataset: Dataset, shard: str, limit: int) -> set[int]:
    """Return the rows of listed or cleared documents, from 1.

    Args:
        dataset: Dataset of the shard.
        shard: Name of the shard; its documents are read only if the dataset has a takedown.
        limit: Bytes of a row, at most.
    """
    if (listed := takedown_of(dataset)) is None:
        return set()
    with dataset.lines(shard, limit) as lines:
        rows = Rows(lines, DOCUMENT_DECODER, lines.path)
        return {rows.number for row, line in rows if listed.has(to_document(row, rows, line))}


def load(dataset: Dataset, shard: str) -> ClearedShard | None:
    """Return the takedown record of a shard; None if nothing was cleared."""
    return record_logs.of(dataset).load(KIND, shard, ClearedShard)


def load_all(dataset: Dataset) -> dict[str, ClearedShard]:
    """Return the takedown records of all shards, sorted."""
    result = ((shard, load(dataset, shard)) for shard in record_logs.of(dataset).keys(KIND) if shard)
    return {shard: cleared for shard, cleared in result if cleared}


# --- what is left of a document ---------------------------------------------------------------------------------------


def empty(type_: Type) -> Any:
    """Return the empty value of a type: null, or a zero without null.

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
        defaults = {name: zero for name, zero in zeros.items() if getattr(value, name, zero) is None}
        yield msgspec.structs.asdict(value) | defaults if defaults else value


def cleared_row(source: str, id: str, types: OwnTypes | None) -> bytes:
    """Return the row of a cleared document; own fields that cannot be null have the zero of their type."""
    fields: dict[str, Any] = {"id": id, "text": "", "source": source}
    for root, own in (types.fields if types else {}).items():
        results = {name: from_json(value) for name, value in own.items()}
        needed = {name: empty(type_) for name, type_ in results.items() if type_.kind not in _NO_NULL}
        fields |= needed if root == DOCUMENT else {METADATA: needed} if needed else {}
    return _ENCODER.encode(fields)


def cleared_attributes(line: bytes, types: dict[str, Type]) -> bytes:
    """Return a row of a set for a cleared document."""
    row = _ATTRIBUTES.decode(line)
    values = {key: empty(type_) for key, type_ in types.items()}
    return _ENCODER.encode({"source": row.source or "", "id": row.id or "", "attributes": values})
