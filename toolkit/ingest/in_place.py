"""Documents in place: ``documents: {format: …, path: …}`` of a configuration, whose files are read, and never ingested.

The reader of the format, and what an ingest does to its documents (`toolkit.ingest.input_rows.rows`), make the rows
that `toolkit.data.dataset` asks for: the same ones that an ingest would write.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import msgspec

from toolkit.config import settings as config
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data.dataset import START, Begin, Dataset, Sieve, is_within, normal_path, open_dataset as open_places
from toolkit.data.document_fields import OwnTypes
from toolkit.errors import ConfigError, DataError, ToolkitError
from toolkit.ingest import inputs
from toolkit.ingest.ingest_config import Common, Entry, settings_of
from toolkit.ingest.plan import InputFile
from toolkit.ingest.reader import READERS, Input, Reader
from toolkit.session import cached
from toolkit.storage import json_files, store_of
from toolkit.storage.json_files import decode
from toolkit.storage.paths import fixed_part, is_folder, is_glob, join, missing_reason, stat

EVERY = 64
"""Documents from one place to the next at which reading can begin, where each is a member."""

_LONGEST = 1 << 30
"""Bytes of a row, at most, where types are told by rows; documents have their own limit."""

_PLACES = ("path", "include", "exclude")
_TAKEN = ("format", "source", "trim", "ids", "null_text")
"""Options of all formats that change documents, and so are options of documents in place."""

_WHY_NOT = {
    "from": "the files are at `path:`",
    "crawl": "ingest reads crawls; or give its files on disk as `path:`",
    "on_error": "a bad item is always an error, because row n must stay row n; ingest skips bad items, and "
    "`null_text: skip` leaves out items without a text",
    "max_rejected": "no item is skipped in place; ingest skips bad items",
    "pack": "each file is a shard; ingest packs small files",
    "shard_size": "each file is a shard; ingest cuts large files",
}
"""Options of an ingest that documents in place cannot have."""


class FilesInPlace(ConfigStruct):
    """External files as documents, with their reader (a `toolkit.data.dataset.InPlace`).

    Attributes:
        pattern: the path, glob or folder that names the files.
        names: Names of the files below the root, where the store cannot list them; else none.
        is_folder: True if the pattern is a folder.
        entry: Entry of an ingest that would make the same documents, as JSON, so that this can be hashed.
        types: Types of the documents' own fields, as JSON; empty if they are not known.
    """

    pattern: str
    names: tuple[str, ...]
    entry: str
    is_folder: bool = False
    types: str = ""

    @property
    def is_flat(self) -> bool:
        inside = self.pattern[len(fixed_part(self.pattern)) :].lstrip("/")
        return not self.is_folder and "/" not in inside and "**" not in inside

    def files(self) -> Mapping[str, int | None]:
        if self.names:
            return dict.fromkeys(self.names)
        listed = _read(self.entry)[1].inputs(self.pattern)
        return {relative: stat.size if stat else None for _, relative, stat in listed}

    def read(
        self,
        path: str,
        relative: str,
        max_bytes: int,
        begin: Begin,
        sieve: Sieve | None = None,
        *,
        indexes: bool = False,
    ) -> "RowsInPlace":
        rows = RowsInPlace(_read(self.entry)[0], path, relative, max_bytes, begin, self.own_types())
        rows.source_file.sieve, rows.source_file.indexes = sieve, indexes
        return rows

    def tables(self, path: str, relative: str, fields: Collection[str]) -> Iterator[dict[str, Any]] | None:
        return RowsInPlace(_read(self.entry)[0], path, relative, _LONGEST, START, None).documents.tables(fields)

    def own_types(self) -> OwnTypes | None:
        return decode(self.types.encode(), OwnTypes) if self.types else None

    def settings(self) -> dict[str, Any]:
        return {name: value for name, value in settings_of(_read(self.entry)[0]).items() if name != "shard_size"}


@cached(64)
def _read(entry: str) -> tuple[Entry, Reader]:
    result = decode(entry.encode(), Entry)
    return result, result.reader()


class RowsInPlace:
    """The rows of an external file (a `toolkit.data.dataset.MadeRows`)."""

    def __init__(
        self, entry: Entry, path: str, relative: str, max_bytes: int, begin: Begin, types: OwnTypes | None
    ) -> None:
        from toolkit.ingest.input_rows.input_bytes import InputBytes, Members  # which most commands do not need
        from toolkit.ingest.input_rows.rows import InputRows

        result = stat(path)
        if result is None:
            raise DataError(
                f"expected a readable file, got {missing_reason(path)}; put it back, or exclude it", path=path
            )
        common = entry.settings()
        self._bytes = InputBytes(path, result)
        reader = entry.reader()
        self._members = Members() if reader.MEMBERS and begin == START else None
        watch = self._members.feed if self._members else None
        opened = partial(self._bytes.open, begin.place if reader.MEMBERS else 0, watch)
        self.source_file = Input(path, common.source, max_bytes, None, opened, begin)
        self.documents = InputRows(self.source_file, common, reader, relative, types)
        self.counts: Mapping[str, int] = self.source_file.counts
        self.begins: Sequence[Begin] = ()
        self.source = ""

    def rows(self) -> Iterator[bytes]:
        result, parts, last, sources = list[Begin](), self.source_file.parts, 0, dict[str, None]()
        with closing(self.documents.rows()) as rows:
            for row, output in enumerate(rows):
                if len(sources) < 2:
                    sources[output.source] = None
                if len(parts) > last:
                    result.append(Begin(row, *parts[-1]))
                    last = len(parts)
                elif self._members and not row % EVERY:
                    result.append(Begin(row, output.number - 1))
                yield output.line
        if self._members:
            starts = self._members.starts
            whole = not result or len(starts) > result[-1].number  # else items are no members
            result = [begin._replace(place=starts[begin.number]) for begin in result] if whole else []
        self.begins = result
        self.source = next(iter(sources)) if len(sources) == 1 else ""

    def stored(self) -> int:
        return self._bytes.stored()

    def close(self) -> None:
        self._bytes.close()


def open_dataset(
    config_node: ConfigNode,
    dataset: str | None,
    documents: str | dict[str, Any] | None,
    attributes: str | None,
    notes: str = "",
) -> Dataset:
    """Return the dataset of a part of a configuration.

    Args:
        config_node: the mapping that has the key `documents`, for messages.
        dataset: Root of the dataset, as in `toolkit.data.dataset.open_dataset`; the others likewise.
        documents: its places, beside a `format` if external files are the documents.
        attributes: root of the attributes.
        notes: another place for our records.

    Raises:
        ConfigError: with the place in the file.
    """
    files: FilesInPlace | None = None
    if isinstance(documents, dict) and "format" in documents:
        section = config_node.at("documents")
        places, _ = config.divide(section, _PLACES)
        root, files = _files(section)
        documents = {**places.value, "path": root}
    with config_node.errors_at():
        result = open_places(dataset, documents, attributes, notes, files)
    if files and files.is_folder and is_within(normal_path(result.attributes), normal_path(result.documents)):
        raise config_node.error(
            ("documents", "path"),
            f"expected a folder of documents that does not contain the attributes, got "
            f"{result.documents}, which contains {result.attributes}; give a glob, or another "
            f"`dataset:` or `attributes:`",
        )
    return _with_types(result, files) if files else result


def _with_types(dataset: Dataset, files: FilesInPlace) -> Dataset:
    """Return the dataset with its own types, and store these."""
    entry, _ = _read(files.entry)
    try:
        files_of = map(dataset.file_of, dataset.shards())
        listed = [InputFile(path=join(dataset.documents, file), relative=file, key=file) for file in files_of]
    except ToolkitError:
        return dataset  # what is wrong with the files is told where they are read
    path = join(dataset.bookkeeping, "types", "in-place.json")
    stored_types = inputs.of_files(entry, listed, _LONGEST, path)
    if stored_types is None or stored_types.types is None:
        return dataset
    with suppress(ToolkitError, OSError):  # one may look at what one may not write
        if json_files.load(path, inputs.StoredTypes) != stored_types:
            json_files.save(path, stored_types)
    types = msgspec.json.encode(stored_types.types).decode()
    return msgspec.structs.replace(dataset, in_place=msgspec.structs.replace(files, types=types))


def _files(section: ConfigNode) -> tuple[str, FilesInPlace]:
    """Return the documents root, and the files below it."""
    entry = _entry(section)
    path = section.value.get("path")
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise section.error(("path",), f"expected the path of a file or a folder, or a glob, got {path!r}")
    whole = False
    if not store_of(path).can_list:
        root, names = _on_the_web(section, path)
    elif whole := not is_glob(path) and is_folder(path):
        root, names = path.rstrip("/") or "/", ()
    else:
        root, names = fixed_part(path) or ".", ()
    encoded = msgspec.json.encode(entry, order="sorted").decode()
    return root, FilesInPlace(pattern=path, names=names, entry=encoded, is_folder=whole)


def _on_the_web(section: ConfigNode, path: str) -> tuple[str, tuple[str, ...]]:
    """Return the root and the names of files on the web: one, or those of ``include:`` below the path."""
    if "?" in path:
        raise section.error(("path",), f"expected an address without a query, got {path}; ingest reads it")
    if not (names := section.value.get("include")):
        root, _, name = path.rpartition("/")
        return root, (name,)
    listed: Sequence[Any] = [names] if isinstance(names, str) else names
    if not isinstance(listed, list) or not all(isinstance(item, str) and not set("*?[{") & {*item} for item in listed):
        raise section.error(
            ("include",),
            f"expected names of files without globs, because folders on the web cannot be listed, got {names!r}",
        )
    return path.rstrip("/"), tuple(item.lstrip("/") for item in listed)


def _entry(section: ConfigNode) -> Entry:
    """Return the entry of an ingest with the same documents."""
    value = section.value
    for key, why in _WHY_NOT.items():
        if key in value:
            raise section.error((key,), f"expected no `{key}` with documents in place: {why}")
    common, _ = config.divide(section, _TAKEN)
    settings = config.convert(common, Common)
    with section.errors_at("format"):
        class_ = READERS.find(settings.format)
    if not class_.IN_PLACE:
        can = ", ".join(name for name in READERS.names() if _can_be_in_place(name))
        raise section.error(
            ("format",), f"expected a format that can be read in place ({can}), got {settings.format!r}; ingest it"
        )
    keys = (*_TAKEN, *_PLACES)
    config.refuse_unknown(section, class_, keys, f"documents in place of the format {settings.format}")
    _, options = config.divide(section, keys)
    config.convert(options, class_, f"format {settings.format}")
    return Entry(common=common.value, options=options.value)


def _can_be_in_place(name: str) -> bool:
    try:
        return READERS.find(name).IN_PLACE
    except ConfigError:
        return False


def refuse_ingest(dataset: Dataset, config_node: ConfigNode) -> None:
    """Raise ConfigError if an ingest would write documents in place."""
    if dataset.in_place:
        raise config_node.error(
            ("documents", "format"),
            "expected documents that an ingest writes, got documents in place, which need none: run the other "
            "commands, without `ingest:`; or move the format and its options there, and the path to its `from:`",
        )
