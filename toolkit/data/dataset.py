r"""The places of a dataset: its documents, its attribute sets, and our records of both; and what opens a shard.

Documents of external files as rows: the contract of `Dataset.lines` and readers.

documents/X.jsonl.gz ──decompress, split──────────────────────> ShardLines ──rows as JSON──> tag, dedup, mix, stats …
others/X.parquet     ──reader of `ingest`, trim, ids──rows────> MadeLines ──rows as JSON──> the same, which do not know

Nothing here knows how external files are read: what does (`toolkit.ingest.in_place`) is passed in with the dataset.
The rows are those that an ingest would write, byte by byte, and so are their digest, and the row index.
"""

import functools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import compress, islice
from typing import Any, Literal, NamedTuple, Protocol, Self

import msgspec

from toolkit.data.document_fields import OwnTypes
from toolkit.data.documents import FreshDocument
from toolkit.data.tables import TABLE
from toolkit.errors import ConfigError, DataError, NoDocuments, NothingThere, where_looked
from toolkit.storage import paths, store_of
from toolkit.storage.globs import glob_regex
from toolkit.storage.paths import listing_cache
from toolkit.storage.reading import Lines
from toolkit.storage.store import note_roots
from toolkit.storage.threads import for_each

SUFFIX = ".jsonl.gz"
"""Suffix of the attributes of an external file, after its name."""

_ROWS, _BYTES = 256, 1 << 19


class Begin(NamedTuple):
    """A place in an external file to start reading at.

    Attributes:
        row: documents before it.
        number: items of the file before it; more than `row` where some become no document.
        place: Place for its reader: an offset in the stored bytes, or the number of a part of the file.
    """

    row: int = 0
    number: int = 0
    place: int = 0


START = Begin()


class Sieve(Protocol):
    """Choice of rows of a table to make.

    Attributes:
        leaves_gaps: True if made rows are `GappedRow`.
    """

    leaves_gaps: bool

    def __call__(self, number: int, columns: Mapping[str, Any]) -> tuple[Sequence[bool], Callable[[], None]] | None:
        """Return a mask of rows, and a function to call after.

        Return None for all rows. The function is called when rows are made. Rows that are not made are empty bytes.

        Args:
            number: Number of rows before them.
            columns: Their fields as columns of Arrow; `id` and `source` are lists.
        """


class GappedRow(bytes):
    """A row with an empty text.

    Attributes:
        utf8: Text of the document.
    """

    utf8: bytes

    @classmethod
    def of(cls, row: bytes, utf8: bytes) -> Self:
        """Return a row with a text beside it."""
        result = cls(row)
        result.utf8 = utf8
        return result

    def filled(self) -> bytes:
        """Return the row with the text in it."""
        fields = msgspec.json.decode(self, type=dict[str, msgspec.Raw])
        return msgspec.json.encode(fields | {"text": self.utf8.decode()})


class IndexRow(bytes):
    """A row without attributes of its own, made without Python's JSON.

    Attributes:
        document: Document.
        paths: Paths of its fields; None if they are not known.
    """

    document: FreshDocument
    paths: tuple[str, ...] | None

    @classmethod
    def of(cls, document: FreshDocument, paths: tuple[str, ...] | None) -> Self:
        """Return the row of a document."""
        result = cls(document.row)
        result.document, result.paths = document, paths
        return result


class MadeRows(Protocol):
    """The rows made of a file while it is read.

    Attributes:
        counts: Counts by reason, of what became documents and what did not, so far.
        begins: places from which rows can be read, in order, when all have been given; none if nothing tells.
        source: Source of all rows, when all have been given; empty if they have several.
    """

    counts: Mapping[str, int]
    begins: Sequence[Begin]
    source: str

    def rows(self) -> Iterator[bytes]:
        """Yield the documents as JSON, without line ends.

        Raises:
            DataError: as ingest does: if the file is damaged, or an item of it does not fit.
        """

    def stored(self) -> int:
        """Return how many bytes of the file have been read."""

    def close(self) -> None:
        """End the reading."""


class InPlace(Protocol):
    """How external files are read as documents. It can be hashed, and sent to other processes."""

    @property
    def pattern(self) -> str:
        """Return the path, glob or folder of the files."""

    @property
    def is_flat(self) -> bool:
        """Return True if all files lie in one folder."""

    def files(self) -> Mapping[str, int | None]:
        """Return the files below the documents root, with stored bytes if known.

        Raises:
            NothingThere: if there is none.
        """

    def read(
        self, path: str, relative: str, max_bytes: int, begin: Begin, sieve: Sieve | None, *, indexes: bool = False
    ) -> MadeRows:
        """Return the row maker of a file.

        Args:
            path: Path of the file.
            relative: the same below the documents root, of which ids are made.
            max_bytes: a larger document is an error.
            begin: Place to start at.
            sieve: asked before rows are made, where a file is a table whose columns are fields.
            indexes: True if rows of such a table are `IndexRow`.
        """

    def tables(self, path: str, relative: str, fields: Collection[str]) -> Iterator[dict[str, Any]] | None:
        """Yield fields of documents as columns of Arrow, in batches. Return None if rows must be made.

        Args:
            path: Path of the file.
            relative: Meaning as in `read`.
            fields: Fields of ``id``, ``source``, ``text``, ``added``, ``created``, and ``metadata``, which is JSON.

        Raises:
            DataError: if the file is damaged.
        """

    def own_types(self) -> OwnTypes | None:
        """Return the types of the documents' own fields; None if they are not known."""

    def settings(self) -> dict[str, Any]:
        """Return the settings of the reader, part of the lineage."""


class ShardLines(Lines):
    """The rows of a shard.

    Attributes:
        counts: Counts by reason, of what its file had beside documents; nothing of documents as the toolkit writes
            them.
    """

    counts: Mapping[str, int] = {}  # nobody adds to it

    @property
    def begins(self) -> Sequence[Begin]:
        """The places to start reading at, after all rows were read. Our files have only their start."""
        return ()

    @property
    def source(self) -> str:
        """The source of all rows, after the file was read; empty if several."""
        return ""


class MadeLines(ShardLines):
    """The rows made of an external file.

    Args:
        made: the rows.
        path: Path of the file.
        digest: True to compute `content`: of the rows with line ends, as in a shard.
    """

    def __init__(self, rows: MadeRows, path: str, *, digest: bool) -> None:
        super().__init__(path, 0, digest=digest)
        self._rows = rows
        self.counts = rows.counts

    def __enter__(self) -> Self:
        self._blocks = self._split()
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    def stored(self) -> int:
        return self._rows.stored()

    @property
    def begins(self) -> Sequence[Begin]:
        return self._rows.begins

    @property
    def source(self) -> str:
        return self._rows.source

    def _split(self) -> Iterator[list[bytes]]:
        rows, fault = self._rows.rows(), None
        while fault is None:
            block: list[bytes] = []
            size = 0
            try:
                for row in islice(rows, _ROWS):
                    block.append(row)
                    if (size := size + len(row) + 1) >= _BYTES:
                        break
            except DataError as error:
                fault = error
            if not block:
                break
            self.size += size
            if self._hash:
                self._hash.update(b"\n".join((*block, b"")))
            yield block
        if fault:
            raise fault
        if self._hash:
            self.content = self._hash.hexdigest()


SHARD_SUFFIXES = (".jsonl.gz", ".json.gz", ".gz", ".jsonl", ".json", ".jsonl.zst", ".jsonl.zstd", ".json.zst")
"""Suffixes of a shard of documents, and so of its attributes: the one table; what a suffix says of the compression is
in `toolkit.storage.compression`. Where we choose the name it is ``.jsonl.gz`` or ``.jsonl.zst``."""

_TABLES = (TABLE, ".parq", ".pq")


class Dataset(msgspec.Struct, frozen=True):
    """The places of a dataset.

    Attributes:
        documents: root of the documents.
        attributes: root of the attribute sets.
        include, exclude: globs over shard paths.
        notes: Folder of our records, if it is not the usual one (see `bookkeeping`).
        in_place: Reader of external files; None for documents. The name of a shard is then that of its file and
            `SUFFIX`, which is the name of its attributes.
        duplicate_ids: True if several documents may have one (source, id); what tells these apart is their place.
    """

    documents: str
    attributes: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    notes: str = ""
    in_place: InPlace | None = None
    duplicate_ids: Literal["refuse", "allow"] = "refuse"

    @property
    def bookkeeping(self) -> str:
        """The folder of records and row indexes: ``ROOT/.toolkit`` beside ``ROOT/attributes``, else below that root."""
        return self.notes or _bookkeeping(self.attributes)

    def shard_path(self, shard: str) -> str:
        """Return the path of a shard's documents."""
        return paths.join(self.documents, self.file_of(shard))

    def place_of(self, shard: str, number: int) -> str:
        """Return `Document.place` of a row, from 1."""
        return f"{self.file_of(shard)}:{number}" if self.duplicate_ids == "allow" else ""

    def file_of(self, shard: str) -> str:
        """Return the path of a shard's documents below the documents root."""
        return shard.removesuffix(SUFFIX) if self.in_place else shard

    def shard_of(self, file: str) -> str:
        """Return the shard of a file below the documents root; the inverse of `file_of`."""
        return file + SUFFIX if self.in_place else file

    def lines(
        self,
        shard: str,
        max_bytes: int,
        *,
        digest: bool = False,
        ahead: bool = False,
        begin: Begin = START,
        sieve: Sieve | None = None,
    ) -> ShardLines:
        """Return the rows of a shard, as JSON without line ends; use it in a ``with`` block.

        Nothing else opens documents. Row n of the shard is row n here, whether it stands in a file of the toolkit or is
        made of an external file.

        Args:
            shard: its name.
            max_bytes: a longer row is an error.
            digest: True to compute the digest of all rows (`Lines.content`).
            ahead: True if a thread may read the next block meanwhile.
            begin: Place to start at; our documents are read from their start alone.
            sieve: says which rows of a table need not be made.
        """
        path = self.shard_path(shard)
        if self.in_place is None:
            return ShardLines(path, max_bytes, digest=digest, ahead=ahead)
        rows = self.in_place.read(path, self.file_of(shard), max_bytes, begin, sieve, indexes=digest)
        return MadeLines(rows, path, digest=digest)

    def tables(self, shard: str, fields: Collection[str]) -> Iterator[dict[str, Any]] | None:
        """Yield fields of documents in place as columns, without making rows.

        See `toolkit.data.dataset.InPlace.tables`.
        """
        return self.in_place.tables(self.shard_path(shard), self.file_of(shard), fields) if self.in_place else None

    @property
    def written(self) -> list[str]:
        """Return the documents root, if the toolkit writes in it; nothing if the files are those of others."""
        return [] if self.in_place else [self.documents]

    @property
    def is_flat(self) -> bool:
        """Return True for documents in place in a single folder."""
        return self.in_place is not None and self.in_place.is_flat

    @property
    def is_described(self) -> bool:
        """Return True if a description beside the documents may be ours. External files often have their own."""
        return self.in_place is None or os.path.dirname(self.documents) == os.path.dirname(self.attributes)

    @property
    def lineage(self) -> dict[str, Any]:
        """Return the settings added by documents in place; nothing for other documents."""
        return {"documents": self.in_place.settings()} if self.in_place else {}

    def attribute_path(self, set_name: str, shard: str) -> str:
        return paths.join(self.attributes, set_name, shard)

    def attribute_table(self, set_name: str, shard: str) -> str:
        """Return the path of a shard's attributes as Parquet. Another program wrote them."""
        return paths.join(
            self.attributes, set_name, paths.strip_suffix(self.file_of(shard), (*SHARD_SUFFIXES, *_TABLES)) + TABLE
        )

    def attribute_file(self, set_name: str, shard: str) -> str:
        """Return the path of the attributes of a shard to read; that of a table, if the set has tables."""
        path, table = self.attribute_path(set_name, shard), self.attribute_table(set_name, shard)
        if paths.exists(path):
            return path
        has_tables = paths.exists(table) or next(paths.list_files(paths.join(self.attributes, set_name)), "").endswith(
            TABLE
        )
        return table if has_tables else path

    def sets(self) -> list[str]:
        """Return the names of the attribute sets on disk, sorted."""
        names = [name for name in store_of(self.attributes).folders(self.attributes) if not name.startswith(".")]
        has_files = for_each(
            lambda name: paths.is_folder(paths.join(self.attributes, name)), names
        )  # some servers list empty ones
        return list(compress(names, has_files))

    def admits(self, shard: str) -> bool:
        """Return True if the globs admit a path as a shard."""
        if self.include and not any(glob_regex(pattern).match(shard) for pattern in self.include):
            return False
        return not any(glob_regex(pattern).match(shard) for pattern in self.exclude)

    def shards(self) -> list[str]:
        """Return the names of all shards, sorted: their relative paths.

        Raises:
            NoDocuments: if there are none.
            DataError: if a file below the root is no shard and no glob excludes it.
        """
        if self.in_place:
            return sorted(map(self.shard_of, self._files(self.in_place)))
        results: list[str] = []
        for relative in paths.list_files(self.documents):
            if not self.admits(relative):
                continue
            if not relative.endswith(SHARD_SUFFIXES):
                raise DataError(
                    f"expected a file ending in {' '.join(SHARD_SUFFIXES)}; move it, or exclude it with "
                    f"`documents: {{path: {self.documents}, exclude: [{relative!r}]}}`; "
                    "external files are read in place with `documents: {format: …, path: …}`",
                    path=paths.join(self.documents, relative),
                )
            if fault := paths.fault_of_name(relative):
                raise DataError(f"{fault}; rename it, or exclude it", path=paths.join(self.documents, relative))
            results.append(relative)
        paths.check_names(self.documents, results)
        if not results:
            got = "no shard that the globs admit" if self.include or self.exclude else "none"
            more = (
                " There is no such folder: check the path, or mount the disk" if paths.no_folder(self.documents) else ""
            )
            more += where_looked(self.documents)
            raise NoDocuments(f"{self.documents}: expected documents, got {got}; run `toolkit ingest` first?{more}")
        return results

    def listing_cache(self, set_names: Iterable[str] = ()) -> AbstractContextManager[None]:
        """Return a block with cached listings of documents, row indexes and sets.

        See `toolkit.storage.paths.listing_cache`. Documents in place need not be in a folder, and are not listed.
        """
        sets = (paths.join(self.attributes, name) for name in set_names)
        documents = () if self.in_place else (self.documents,)
        return listing_cache(*documents, paths.join(self.bookkeeping, "rows"), *sets)

    def _files(self, in_place: InPlace) -> dict[str, int | None]:
        """Return the admitted files in place, with their stored bytes if known."""
        try:
            results = {file: size for file, size in in_place.files().items() if self.admits(file)}
        except NothingThere as error:
            raise NoDocuments(str(error)) from None
        paths.check_names(self.documents, results)
        ours = self.attributes.rstrip("/") + "/"
        for file in results:
            if paths.join(self.documents, file).startswith(ours):
                raise DataError(
                    "expected external files, got attributes; give a glob that does not match them, or another place "
                    "for the attributes",
                    path=paths.join(self.documents, file),
                )
            if fault := paths.fault_of_name(self.shard_of(file)):
                raise DataError(f"{fault}; rename it, or exclude it", path=paths.join(self.documents, file))
        if not results:
            raise NoDocuments(f"{self.documents}: expected documents in place, got no file that the globs admit")
        return results

    def sizes(self) -> dict[str, int]:
        """Return the stored bytes of each shard, sorted by path; nothing if there are no documents."""
        if self.in_place:
            try:
                files = self._files(self.in_place)
            except NoDocuments:
                return {}
            unsaid = [file for file, size in files.items() if size is None]
            sizes = dict(
                zip(unsaid, for_each(lambda file: paths.size_of(paths.join(self.documents, file)), unsaid), strict=True)
            )
            return {
                self.shard_of(file): size if size is not None else sizes[file] for file, size in sorted(files.items())
            }
        listed = paths.listed_below(self.documents) or paths.list_stats(self.documents, self.admits).below("")
        return {name: stat.size if stat else 0 for name, stat in listed if paths.is_data(name) and self.admits(name)}


@functools.lru_cache(256)
def _bookkeeping(attributes: str) -> str:
    parent, name = os.path.split(attributes)
    return os.path.join(parent if name == "attributes" else attributes, paths.BOOKKEEPING)


def open_dataset(
    dataset: str | None,
    documents: str | dict[str, object] | None,
    attributes: str | None,
    notes: str = "",
    in_place: InPlace | None = None,
) -> Dataset:
    """Return the dataset of a configuration.

    Args:
        dataset: ``ROOT`` of ``ROOT/documents`` and ``ROOT/attributes``.
        documents: another root or glob of the documents, or ``{path, include, exclude}``.
        attributes: another root of the attributes.
        notes: another place for our records.
        in_place: Reader of external files.
    """
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    inside = documents.get("path") if isinstance(documents, dict) else documents
    for key, value in (("dataset", dataset), ("documents", inside), ("attributes", attributes)):
        if isinstance(value, str) and (not value.strip() or "\0" in value):
            raise ConfigError(f"{key}: expected a folder, got {value!r}; `.` is the current one")
    if isinstance(documents, dict):
        options = dict(documents)
        path = options.pop("path", None)
        include = _globs(options.pop("include", ()), "documents.include")
        exclude = _globs(options.pop("exclude", ()), "documents.exclude")
        if options or not isinstance(path, str | None):
            raise ConfigError("documents: expected a path or {path, include, exclude}; `format:`, for external files")
        documents = path
    if documents is not None and paths.is_glob(documents):
        base = paths.fixed_part(documents) or "."
        include = (*include, documents[len(base) :].lstrip("/") if base != "." else documents)
        documents = base
    if documents is None and dataset is None:
        raise ConfigError("expected `dataset: ROOT` or `documents: ROOT`, got neither")
    if attributes is None and dataset is None:
        raise ConfigError("expected `attributes: ROOT` beside `documents:`, or `dataset: ROOT`")
    result = Dataset(
        _folder(documents or os.path.join(dataset or "", "documents")),
        _folder(attributes or os.path.join(dataset or "", "attributes")),
        include,
        exclude,
        notes,
        in_place,
    )
    note_roots((*([dataset] if dataset else []), result.documents, result.attributes, result.bookkeeping))
    return result


def _folder(path: str) -> str:
    return path.rstrip("/") or "/"


def _globs(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise ConfigError(f"{where}: expected a list of globs, got {value!r}")


class ConfiguredPath(msgspec.Struct, frozen=True):
    """A folder (or a file) of a configuration.

    Attributes:
        path: Path as written.
        role: Role of the folder, for messages: ``the output``.
        where: it is written, for messages: file, line, keys.
        is_flat: True if only what lies in the folder itself counts, not what lies in folders below.
    """

    path: str
    role: str
    where: str = ""
    is_flat: bool = False


def normal_path(path: str) -> str:
    """Return the canonical form of a path: absolute, without trailing slash.

    Local paths are followed through symbolic links.
    """
    return store_of(path).normal(path)


def is_within(inner: str, outer: str) -> bool:
    """Return True if a path is another one or below it. Both are as `normal_path` gives them."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def check_folder(place: ConfiguredPath) -> None:
    """Raise ConfigError for an empty path or one with NUL."""
    if not place.path.strip() or "\0" in place.path:
        raise ConfigError(f"{_at(place)}expected a folder for {place.role}, got {place.path!r}")


def check_apart(written: Iterable[ConfiguredPath], read: Iterable[ConfiguredPath] = ()) -> None:
    """Check the written places for overlaps, also with the others.

    Args:
        written: each is held against all places before it, and all others.
        read: Other places, which may overlap each other.

    Raises:
        ConfigError: if a path is empty, or one is, holds or lies in another.
    """
    places = [(place, normal_path(place.path)) for place in read]
    for place in written:
        check_folder(place)
        path = normal_path(place.path)
        for other, result in places:
            below = is_within(path, result) and not (other.is_flat and path != result)
            if below or is_within(result, path):
                raise ConfigError(
                    f"{_at(place)}expected a path separate from {other.path} ({other.role}), got "
                    f"{place.path} for {place.role}; choose folders of which none is inside of the other"
                )
        places.append((place, path))


class Inside:
    """Folders without inputs; many files are looked up."""

    def __init__(self, places: Iterable[ConfiguredPath]) -> None:
        self._places = [(place, normal_path(place.path)) for place in places]
        self._cache: dict[str, ConfiguredPath | None] = {}

    def of(self, path: str) -> ConfiguredPath | None:
        """Return the place of a file; None if it is in no place."""
        folder = os.path.dirname(path)
        if folder not in self._cache:
            result = normal_path(folder or ".")
            self._cache[folder] = next((place for place, root in self._places if is_within(result, root)), None)
        return self._cache[folder]


def _at(place: ConfiguredPath) -> str:
    return f"{place.where}: " if place.where else ""


def dataset_folders(dataset: Dataset, name: str = "") -> list[ConfiguredPath]:
    """Return the folders of a dataset: its documents, its attributes, and the records that lie outside both.

    Records that a stream keeps in the work folder of the output are part of that.
    """
    suffix = f" of the stream {name}" if name else ""
    documents = ConfiguredPath(dataset.documents, f"the documents{suffix}", is_flat=dataset.is_flat)
    places = [documents, ConfiguredPath(dataset.attributes, f"the attributes{suffix}")]
    return places if dataset.notes else [*places, ConfiguredPath(dataset.bookkeeping, f"the records{suffix}")]


def check_dataset(dataset: Dataset, where: str) -> None:
    """Check documents and attributes for overlaps.

    Attributes may lie below documents where globs say which files are documents, or these are in place and lie flat.

    Raises:
        ConfigError: if one would be taken for the other.
    """
    documents, attributes = normal_path(dataset.documents), normal_path(dataset.attributes)
    chosen = bool(dataset.include or dataset.exclude or dataset.is_flat) and documents != attributes
    if is_within(documents, attributes) or (is_within(attributes, documents) and not chosen):
        raise ConfigError(
            f"{where}: expected separate folders for attributes and documents, got "
            f"{dataset.attributes} and {dataset.documents}"
        )
