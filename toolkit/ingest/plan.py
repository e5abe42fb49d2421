"""The plan of an ``ingest:`` section: which inputs there are, and what each of them becomes."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec
import xxhash

from toolkit.config import settings as config
from toolkit.config.plugin_code import recorded_code
from toolkit.config.settings import ConfigStruct, Description, Source
from toolkit.config.sizes import Size
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, NothingThere
from toolkit.ingest import crawls
from toolkit.ingest.reader import READERS, Reader
from toolkit.records import sets
from toolkit.storage import compression, store_of
from toolkit.storage.addresses import learn, whole
from toolkit.storage.paths import fault_of_name, fixed_part, is_glob, is_set_name, join, strip_suffix
from toolkit.storage.roots import note_roots

COMPRESSION = "gzip"
"""Of the shards that are written, if the configuration names none."""

SUFFIXES = {COMPRESSION: ".jsonl.gz", "zstd": ".jsonl.zst"}
"""Of the shards that are written, by their compression."""

_SHARD = re.compile(
    rf"(?P<stem>(?P<cut>.+)\.[0-9]{{5,}}|.+)(?:{'|'.join(map(re.escape, SUFFIXES.values()))})", re.DOTALL
)

_COMPRESSION_KEY = "documents.compression"
"""In settings of inputs; no option of a reader is called so."""

DEFAULTS = {_COMPRESSION_KEY: COMPRESSION}
"""Settings that records do not name."""

COMPRESSIONS = tuple(compression.SUFFIXES)
"""Taken off an input's name before its format's suffix."""


class Trim(ConfigStruct):
    """Drops short lines at both ends of each text, and documents without any other line.

    Source: ungoliant's RemoveShortSentences keeps lines of more than 100 code points: ``min_chars: 101``.
    """

    min_chars: Annotated[
        int, msgspec.Meta(ge=1), Description(description="code points of the first and the last line that stay")
    ] = 101


class Common(ConfigStruct):
    """The options of an entry of ``ingest:`` that all formats share; a format's own stand beside them."""

    format: Annotated[str, Description(description="the input format")]
    from_: Annotated[
        list[str] | str | None, Description(description="paths or globs of input files; or else `crawl:`")
    ] = msgspec.field(name="from", default=None)
    crawl: Annotated[
        str | None, Description(description="instead of `from:`, the name of a crawl of Common Crawl: CC-MAIN-2024-10")
    ] = None
    files: Annotated[
        int | str | list[int | str] | None,
        Description(description="of the crawl: N, A-B (with B), or a list of these, counted from 0; default: all"),
    ] = None
    base_url: Annotated[
        str, Description(description="where the crawl's `crawl-data/` is: on the web, in a bucket, or on disk")
    ] = crawls.BASE
    connections: Annotated[
        int, msgspec.Meta(ge=1), Description(description="files that are read from the web at a time, at most")
    ] = 4
    max_disk: Annotated[
        Size | None,
        Description(description="keep what is read from the web on disk meanwhile, at most so many bytes of all"),
    ] = None
    source: Annotated[
        str | None, Description(description="the documents' `source`, and the folder of their shards")
    ] = None
    trim: Annotated[Trim | None, Description(description="{min_chars: N}: drop short lines at both ends of a text")] = (
        None
    )
    on_error: Annotated[
        Literal["error", "skip"],
        Description(description="bad items: fail the shard, or count them and keep them in a reject file"),
    ] = "error"
    max_rejected: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=1)],
        Description(
            description="with `on_error: skip`: share of the entry's items that may be bad; above it `ingest` ends "
            "with 1, and `tag` and `mix` refuse the documents"
        ),
    ] = 0.1
    ids: Annotated[
        Literal["ordinal", "content"],
        Description(description="ids for input without: `<relative path>:<ordinal>`, or a hash of the text"),
    ] = "ordinal"
    shard_size: Annotated[
        Size | None, Description(description="cut large inputs into shards of about so many uncompressed bytes")
    ] = None


class Entry(ConfigStruct):
    """An entry of ``ingest:`` as data that can be sent to a worker.

    Attributes:
        common: options of all formats.
        options: of its own.
        place: in the configuration, of `from:` or `crawl:`, for messages.
        files_place: of `files:`.
        compression: of the shards.
    """

    common: dict[str, Any]
    options: dict[str, Any]
    place: str = ""
    files_place: str = ""
    compression: str = COMPRESSION

    def settings(self) -> Common:
        return config.convert(Source(self.common), Common)

    @property
    def name(self) -> str:
        """Return what it is called in records and messages: its format, and where its inputs are."""
        where = self.common.get("from", self.common.get("crawl"))
        listed = ", ".join(map(str, where)) if isinstance(where, list) else str(where)
        source = self.common.get("source")
        return f"{self.common['format']} {listed}" + (f" (source {source})" if source is not None else "")

    def reader(self) -> Reader:
        return config.convert(Source(self.options), READERS.find(self.settings().format))


class InputToIngest(ConfigStruct):
    """One input file to ingest.

    Attributes:
        path: of the input.
        relative: below the glob's fixed part, or below the folder of all crawls.
        shard: without suffix.
        size: stored bytes, as listed; None where nothing lists them: on the web, and in a crawl's list.
        address: what the path is to its store, if that may not be shown.
    """

    dataset: Dataset
    entry: Entry
    path: str
    relative: str
    shard: str
    max_document_bytes: int
    overwrite: bool = False
    size: int | None = None
    address: str = ""

    @property
    def is_cut(self) -> bool:
        """Return whether the input becomes numbered shards; by `shard_size`, however small it is."""
        return self.entry.settings().shard_size is not None

    def shard_name(self, number: int = 0) -> str:
        """Return the path of a shard that the input becomes: its only one, or the one with this number."""
        return (f"{self.shard}.{number:05d}" if self.is_cut else self.shard) + self.suffix

    @property
    def suffix(self) -> str:
        """Return what its shards end in."""
        return SUFFIXES[self.entry.compression]

    def __post_init__(self) -> None:
        """Make the address known where the work is done."""
        if self.address:
            learn(self.path, self.address)

    @property
    def key(self) -> str:
        """Return the input's name in records: its path below the glob's fixed part, in the folder of its source."""
        return join(self.entry.settings().source or "", self.relative)


def makers(works: Iterable[InputToIngest]) -> Callable[[str], InputToIngest | None]:
    """Return what tells from a shard's path which of these inputs makes it; None if none of them does.

    No record is read, so the answer is the same before, while and after the input is ingested. A name that other
    settings gave it (with or without a number, of another compression) counts, too, unless it is that of another input.
    """
    by_stem = {work.shard: work for work in works}

    def maker(shard: str) -> InputToIngest | None:
        named = _SHARD.fullmatch(shard)
        if named is None:
            return None
        cut = by_stem.get(named["cut"])
        return cut if cut and cut.is_cut else by_stem.get(named["stem"], cut)

    return maker


_COMMON_KEYS = tuple(f.encode_name for f in msgspec.structs.fields(Common))

LONGEST_NAME = 230
"""Bytes of an input's name, of the 255 that file systems take: ``.00000.jsonl.gz.json`` comes behind it."""

_OF_CRAWLS = ("files", "base_url")

FIRST_VERSION = "1"
"""Version of a reader, where a record of settings names none."""

_NOT_SETTINGS = ("from", "crawl", *_OF_CRAWLS, "connections", "max_disk", "on_error", "max_rejected")
"""Options that change nothing of what good documents become."""


def read_section(section: Source, compression: str = COMPRESSION) -> list[Entry]:
    """Return the entries of an ``ingest:`` section, checked.

    Args:
        section: of the configuration.
        compression: of the shards.

    Raises:
        ConfigError: with the place in the file, if one is not what it should be.
    """
    if not isinstance(section.value, list) or not section.value:
        raise section.error((), "expected a list of `{format: …, from: […]}`")
    entries = []
    for i in range(len(section.value)):
        place = section.at(i)
        if not isinstance(place.value, dict):
            raise place.error((), f"expected {{format: …, from: […]}}, got {place.value!r}")
        common, options = config.divide(place, _COMMON_KEYS)
        settings = config.convert(common, Common)
        try:
            class_ = READERS.find(settings.format)
        except ConfigError as error:
            raise place.error(("format",), str(error)) from None
        config.refuse_unknown(place, class_, _COMMON_KEYS, f"format {settings.format}")
        reader = config.convert(options, class_, f"format {settings.format}")
        _check_place(place, settings)
        if settings.source is not None and (fault := fault_of_name(settings.source)):
            raise place.error(("source",), f"{fault}: it is the folder of shards below the documents")
        if (set_name := reader.attribute_set()) is not None and not is_set_name(set_name):
            raise place.error(("set",), f"expected a set name of letters, digits, - and _, got {set_name!r}")
        if settings.trim and reader.attribute_set():
            raise place.error(("trim",), "expected no trim: the attributes that the format carries are one per line")
        where, files = place.where(("from" if settings.crawl is None else "crawl",)), place.where(("files",))
        found = Entry(common.value, options.value, place=where, files_place=files, compression=compression)
        entries.append(found)
    return entries


def _check_place(place: Source, settings: Common) -> None:
    """Raise ConfigError unless the entry names its files in one way."""
    if settings.crawl is None:
        if settings.from_ is None:
            raise place.error((), "expected `from:` (paths or globs) or `crawl:` (its name), got neither")
        for key in _OF_CRAWLS:
            if key in place.value:
                raise place.error((key,), "expected this beside `crawl:`, got it beside `from:`")
        return
    if settings.from_ is not None:
        raise place.error(("crawl",), "expected `from:` or `crawl:`, got both")
    key = "crawl"
    try:
        crawls.check_name(settings.crawl)
        key = "files"
        crawls.chosen(settings.files)
    except ValueError as error:
        raise place.error((key,), str(error)) from None


def plan(
    entries: Iterable[Entry],
    dataset: Dataset,
    max_document_bytes: int,
    *,
    overwrite: bool,
    absent: list[NothingThere] | None = None,
) -> list[InputToIngest]:
    """Return a piece of work for each input file, sorted by shard.

    Args:
        entries: of the section.
        dataset: that the inputs become.
        max_document_bytes: of the configuration.
        overwrite: whether what was made with other settings is made again.
        absent: takes the errors of what is not there, in place of raising them.

    Raises:
        NothingThere: if a glob matches nothing, or a file is not there.
        ConfigError: if two inputs would become the same shard.
    """
    works: dict[str, InputToIngest] = {}
    for entry in entries:
        common, reader = entry.settings(), entry.reader()
        if common.max_disk and not store_of(dataset.bookkeeping).is_local:
            message = f"expected a dataset on disk for `max_disk`, got {dataset.bookkeeping}"
            raise ConfigError(f"{entry.place}: {message}" if entry.place else message)
        for path, relative, size in _files(entry, common, absent):
            stem = strip_suffix(relative, COMPRESSIONS)
            stem = strip_suffix(stem, reader.SUFFIXES)
            shard = join(common.source or "", stem) if stem else ""
            if fault := fault_of_name(shard):
                raise ConfigError(f"{path}: {fault}, for its shard; rename the input, or give another glob")
            if long := [part for part in join(shard, relative).split("/") if len(os.fsencode(part)) > LONGEST_NAME]:
                raise ConfigError(
                    f"{path}: expected names of at most {LONGEST_NAME} bytes, got {long[0][:40]}…: what is made of it "
                    "has longer names; rename the file"
                )
            if shard in works and works[shard].path != path:
                raise ConfigError(
                    f"expected one input for each shard, got {works[shard].path} and {path} for {shard}; "
                    "give their entries a `source:` each, or other globs"
                )
            works[shard] = InputToIngest(
                dataset=dataset,
                entry=entry,
                path=path,
                relative=relative,
                shard=shard,
                max_document_bytes=max_document_bytes,
                overwrite=overwrite,
                size=size,
                address="" if store_of(path).can_list else whole(path),
            )
    return [works[shard] for shard in sorted(works)]


def _files(entry: Entry, common: Common, absent: list[NothingThere] | None) -> Iterator[tuple[str, str, int | None]]:
    """Yield the paths of an entry's input files, what names their shards, and their sizes."""
    patterns = [common.from_] if isinstance(common.from_, str) else common.from_ or []
    note_roots(fixed_part(pattern) or "." for pattern in patterns if is_glob(pattern))
    for pattern in patterns if common.crawl is None else [None]:
        place = entry.place
        try:
            if pattern is not None:
                yield from entry.reader().inputs(pattern)
            else:
                paths = crawls.listed(common.crawl or "", common.format, common.base_url)
                place = entry.files_place
                for path in crawls.choose(paths, common.files):
                    yield *crawls.place_of(path, common.base_url), None
        except ConfigError as error:
            placed = type(error)(f"{place}: {error}" if place else str(error))
            if absent is None or not isinstance(placed, NothingThere):
                raise placed from None
            absent.append(placed)


def is_on_the_web(entry: Entry) -> bool:
    """Return whether a server that cannot list must be asked which inputs there are."""
    common = entry.settings()
    patterns = [common.from_] if isinstance(common.from_, str) else common.from_ or []
    return any(not store_of(path).can_list for path in ([common.base_url] if common.crawl is not None else patterns))


def set_schemas(entries: Iterable[Entry]) -> dict[str, sets.SetSchema]:
    """Return the schemas of the attribute sets that the inputs' formats carry, by set."""
    found = {}
    for entry in entries:
        reader = entry.reader()
        if (set_name := reader.attribute_set()) is not None:
            keys = {key: sets.key_schema(type_, settings_of_set(entry)) for key, type_ in reader.types().items()}
            found[set_name] = sets.SetSchema(keys=keys)
    return found


def prepare(entries: Iterable[Entry], dataset: Dataset, *, overwrite: bool, write: bool = True) -> None:
    """Declare the attribute sets that the formats carry.

    Args:
        entries: of the section.
        dataset: where the sets are.
        overwrite: whether what was made otherwise is to be made again.
        write: whether anything is written.

    Raises:
        ConfigError: if one exists that was made otherwise.
    """
    for set_name, made in set_schemas(entries).items():
        old = sets.load_schema(dataset, set_name)
        if old is not None and old.of_values() != made.of_values() and not overwrite:
            raise ConfigError(
                f"the set {set_name!r} exists and was made otherwise; choose another `set:`, or --overwrite"
            )
        if write:
            sets.save_schema(dataset, set_name, made)


def settings_of_set(entry: Entry) -> dict[str, Any]:
    return {"format": entry.settings().format, "version": "1"}


def holds(entries: Iterable[Entry]) -> dict[str, str]:
    """Return what an ingest works on, by source, with a digest of the settings (see `toolkit.runs.claims`)."""
    found: dict[str, set[bytes]] = {}
    for entry in entries:
        settings = msgspec.json.encode(settings_of(entry), order="sorted")
        found.setdefault(entry.settings().source or "", set()).add(settings)
    return {f"the source {name!r}": xxhash.xxh3_128_hexdigest(b"".join(sorted(s))) for name, s in found.items()}


def settings_of(entry: Entry) -> dict[str, Any]:
    """Return all that decides what becomes of an input.

    The first version of a reader is not named, nor is gzip: records from before there was another stay as they are.
    """
    common = config.plain(entry.settings())
    shared = {key: value for key, value in common.items() if key not in _NOT_SETTINGS}
    reader = entry.reader()
    version = {} if reader.VERSION == FIRST_VERSION else {"reader_version": reader.VERSION}
    written = {} if entry.compression == COMPRESSION else {_COMPRESSION_KEY: entry.compression}
    return {**shared, **version, **written, **recorded_code(type(reader)), **reader.settings()}
