"""What an ``ingest:`` section says: which inputs there are, and what each of them becomes."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
import xxhash

from toolkit import config, crawls, inflating, records, schema
from toolkit.config import ConfigStruct, Description, Source
from toolkit.errors import ConfigError
from toolkit.paths import Dataset, expand, fixed_part, is_glob, join, strip_suffix
from toolkit.reader import READERS, Reader
from toolkit.stores import scheme_of
from toolkit.stores.roots import note_roots
from toolkit.streams import Size

COMPRESSIONS = tuple(inflating.SUFFIXES)
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
    """

    common: dict[str, Any]
    options: dict[str, Any]
    place: str = ""
    files_place: str = ""

    def settings(self) -> Common:
        return config.convert(Source(self.common), Common)

    def reader(self) -> Reader:
        return config.convert(Source(self.options), READERS.find(self.settings().format))


class Work(ConfigStruct):
    """One input file to ingest.

    Attributes:
        path: of the input.
        relative: below the glob's fixed part, or below the folder of all crawls.
        shard: without suffix.
    """

    dataset: Dataset
    entry: Entry
    path: str
    relative: str
    shard: str
    max_document_bytes: int
    overwrite: bool = False

    @property
    def key(self) -> str:
        """Names the input in records: its path below the glob's fixed part, in the folder of its source."""
        return join(self.entry.settings().source or "", self.relative)


_COMMON_KEYS = tuple(f.encode_name for f in msgspec.structs.fields(Common))

_OF_CRAWLS = ("files", "base_url")

_NOT_SETTINGS = ("from", "crawl", *_OF_CRAWLS, "connections", "max_disk", "on_error")
"""Options that change nothing of what good documents become."""


def read_section(section: Source) -> list[Entry]:
    """The entries of an ``ingest:`` section, checked."""
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
        if settings.trim and reader.attribute_set():
            raise place.error(("trim",), "expected no trim: the attributes that the format carries are one per line")
        where, files = place.where(("from" if settings.crawl is None else "crawl",)), place.where(("files",))
        entries.append(Entry(common=common.value, options=options.value, place=where, files_place=files))
    return entries


def _check_place(place: Source, settings: Common) -> None:
    """Raises ConfigError unless the entry names its files in one way."""
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


def plan(entries: Iterable[Entry], dataset: Dataset, max_document_bytes: int, *, overwrite: bool) -> list[Work]:
    """One piece of work per input file, sorted by shard.

    Raises:
        ConfigError: if a glob matches nothing, or two inputs would become the same shard.
    """
    works: dict[str, Work] = {}
    for entry in entries:
        common, reader = entry.settings(), entry.reader()
        if common.max_disk and scheme_of(dataset.bookkeeping):
            message = f"expected a dataset on disk for `max_disk`, got {dataset.bookkeeping}"
            raise ConfigError(f"{entry.place}: {message}" if entry.place else message)
        for path, relative in _files(entry, common):
            stem = strip_suffix(relative, COMPRESSIONS)
            stem = strip_suffix(stem, reader.SUFFIXES)
            shard = join(common.source or "", stem)
            if shard in works and works[shard].path != path:
                raise ConfigError(
                    f"expected one input for each shard, got {works[shard].path} and {path} for {shard}; "
                    "give their entries a `source:` each, or other globs"
                )
            works[shard] = Work(
                dataset=dataset,
                entry=entry,
                path=path,
                relative=relative,
                shard=shard,
                max_document_bytes=max_document_bytes,
                overwrite=overwrite,
            )
    return [works[shard] for shard in sorted(works)]


def _files(entry: Entry, common: Common) -> list[tuple[str, str]]:
    """The paths of an entry's input files, and what names their shards."""
    place = entry.place
    try:
        if common.crawl is not None:
            paths = crawls.listed(common.crawl, common.format, common.base_url)
            place = entry.files_place
            return [crawls.place_of(path, common.base_url) for path in crawls.choose(paths, common.files)]
        patterns = [common.from_] if isinstance(common.from_, str) else common.from_ or []
        note_roots(fixed_part(pattern) or "." for pattern in patterns if is_glob(pattern))
        return [found for pattern in patterns for found in expand(pattern)]
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}" if place else str(error)) from None


def set_schemas(entries: Iterable[Entry]) -> dict[str, records.SetSchema]:
    """The schemas of the attribute sets that the inputs' formats carry, by set."""
    found = {}
    for entry in entries:
        reader = entry.reader()
        if (set_name := reader.attribute_set()) is not None:
            keys = {
                key: records.KeySchema(schema.to_json(type_), settings_of_set(entry))
                for key, type_ in reader.TYPES.items()
            }
            found[set_name] = records.SetSchema(keys=keys)
    return found


def prepare(entries: Iterable[Entry], dataset: Dataset, *, overwrite: bool) -> None:
    """Declares the attribute sets that the formats carry.

    Raises:
        ConfigError: if one exists that was made otherwise.
    """
    for set_name, made in set_schemas(entries).items():
        old = records.load_schema(dataset, set_name)
        if old is not None and old != made and not overwrite:
            raise ConfigError(
                f"the set {set_name!r} exists and was made otherwise; choose another `set:`, or --overwrite"
            )
        records.save_schema(dataset, set_name, made)


def settings_of_set(entry: Entry) -> dict[str, Any]:
    return {"format": entry.settings().format, "version": "1"}


def holds(entries: Iterable[Entry]) -> dict[str, str]:
    """What an ingest works on, by source, with a digest of the settings: for `toolkit.claims`."""
    found: dict[str, set[bytes]] = {}
    for entry in entries:
        settings = msgspec.json.encode(settings_of(entry), order="sorted")
        found.setdefault(entry.settings().source or "", set()).add(settings)
    return {f"the source {name!r}": xxhash.xxh3_128_hexdigest(b"".join(sorted(s))) for name, s in found.items()}


def settings_of(entry: Entry) -> dict[str, Any]:
    common = config.plain(entry.settings())
    shared = {key: value for key, value in common.items() if key not in _NOT_SETTINGS}
    return {**shared, **config.plain(entry.reader())}
