"""The section ``ingest:``: its entries as typed settings, and what of them decides what becomes of an input."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec
import xxhash

from toolkit.config import settings as config
from toolkit.config.plugin_code import recorded_code
from toolkit.config.root import recorded_reference
from toolkit.config.settings import ConfigNode, ConfigStruct, Description
from toolkit.data import schema
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError
from toolkit.ingest import folders
from toolkit.ingest.reader import READERS, Reader
from toolkit.plugins import errors_of
from toolkit.records import sets
from toolkit.session import cached_last, current
from toolkit.storage.json_files import json_digest
from toolkit.storage.paths import fault_of_name, is_set_name
from toolkit.storage_options import Size

SECTION = "ingest"
COMPRESSION = "gzip"
"""Of the shards that are written, if the configuration names none."""

_COMPRESSION_KEY = "documents.compression"
"""In settings of inputs; no option of a reader is called so."""

DEFAULTS = {_COMPRESSION_KEY: COMPRESSION}
"""Settings that records do not name."""


LISTED = 3
"""Places of inputs that the name of an entry has."""

IDS = ("ordinal", "content")
"""Sources of ids, where `ids` is no pattern."""

_IN_IDS = re.compile(r"\{([^{}]*)\}")
_PLACES_IN_IDS = ("path", "number", "index", "id")


class Trim(ConfigStruct):
    """Drops short lines at both ends of texts. Documents without any other line are dropped, too.

    Source: ungoliant's RemoveShortSentences keeps lines of more than 100 code points: ``min_chars: 101``.

    Attributes:
        min_chars: code points of the first and the last line that stay
    """

    min_chars: Annotated[int, msgspec.Meta(ge=1)] = 101


class Common(ConfigStruct):
    """The options of an entry of ``ingest:`` for all formats; a format's own stand beside them.

    Attributes:
        format: the input format
        from_: paths or globs of input files; or use `crawl:`
        crawl: instead of `from:`, the name of a crawl of Common Crawl: CC-MAIN-2024-10
        files: files of the crawl: N, A-B (including B), or a list of these, counted from 0; default: all
        base_url: the place of the crawl's `crawl-data/`: on the web, in a bucket, or on disk
        where: ingest only the pages for which this expression over the columns of the index is true
        urls: file of URLs, hosts or domains, a line each: ingest only their pages
        index: instead of `crawl:`, an index elsewhere: Parquet or CDXJ files, a folder, a glob, or a list that ends in
            `.paths.gz`; the WARC files that it names are below `base_url`
        subset: captures to select: pages (`warc`, the default), others, or those of robots.txt
        distinct: select pages with equal contents once
        max_documents: select at most this many pages
        max_bytes: select pages whose stored records have at most this many bytes in all
        seed: draw the pages by hash with this seed; default: the first of the index
        rate: ranges of WARC files that are asked for in a second, at most; default: no limit
        connections: number of files that are read from the web at a time, at most
        max_disk: keep files from the web on disk while they are read, at most this many bytes in all
        source: the documents' `source`, and the folder of their shards
        trim: {min_chars: N}: drop short lines at both ends of a text
        on_error: bad items: fail the shard, or count them and keep them in a reject file; `salvage` does so, too, and
            keeps what stands before the damage of a compressed file
        null_text: items whose text is null: leave them out and count them (`null_text`), give them an empty text, or
            treat them as bad items; default: `error`, for CSV `empty`
        max_rejected: share of the entry's items that may be bad with `on_error: skip`; above it `ingest` ends with 1,
            and `tag` and `mix` refuse the documents
        ids: ids of documents that have none: `ordinal`, which is `{path}:{number}`; `content`, a hash of the text; or a
            pattern with `{number}` (from 1) or `{index}` (from 0), such as `{path}/{index}`. A pattern with `{id}`,
            such as `{path}/{id}`, makes new ids of the own ones, where files number their rows
        shard_size: cut large inputs into shards of about this many uncompressed bytes
        pack: inputs with fewer stored bytes share shards of at most this size; default: 64 MB for the format text, else
            none; `null`: each input has shards of its own
    """

    format: str
    from_: list[str] | str | None = msgspec.field(name="from", default=None)
    crawl: str | None = None
    files: int | str | list[int | str] | None = None
    base_url: str = folders.BASE
    where: str | None = None
    urls: str | None = None
    index: str | None = None
    subset: Literal["warc", "crawldiagnostics", "robotstxt"] | None = None
    distinct: Literal["content_digest"] | None = None
    max_documents: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_bytes: Size | None = None
    seed: int | None = None
    rate: Annotated[float, msgspec.Meta(gt=0)] | None = None
    connections: Annotated[int, msgspec.Meta(ge=1)] = 4
    max_disk: Size | None = None
    source: str | None = None
    trim: Trim | None = None
    on_error: Literal["error", "skip", "salvage"] = "error"
    null_text: Literal["skip", "empty", "error"] | None = None
    max_rejected: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    ids: Annotated[
        str, Description(extra_json_schema={"pattern": r"^(ordinal|content|.*\{(number|index|id)\}.*)$"})
    ] = "ordinal"
    shard_size: Size | None = None
    pack: Size | None = None

    def __post_init__(self) -> None:
        if self.ids in IDS:
            return
        places = _IN_IDS.findall(self.ids)
        if unknown := [place for place in places if place not in _PLACES_IN_IDS]:
            raise ValueError(f"expected {{path}}, {{number}}, {{index}} or {{id}} in `ids`, got {{{unknown[0]}}}")
        if not {"number", "index", "id"} & {*places}:
            raise ValueError(
                f"expected `ids` to be ordinal, content, or a pattern such as {{path}}/{{index}}, got {self.ids!r}"
            )

    @property
    def crawl_name(self) -> str:
        """Return the crawl in messages: its name, or where its index is."""
        return self.crawl or self.index or ""

    @property
    def patterns(self) -> list[str]:
        """Return the paths and globs of `from:`."""
        return [self.from_] if isinstance(self.from_, str) else self.from_ or []

    @property
    def selects(self) -> bool:
        """Return True if an index selects the pages."""
        return any(getattr(self, name) is not None for name in OF_INDEXES)

    @property
    def skips(self) -> bool:
        """Return True if bad items are kept aside."""
        return self.on_error != "error"

    @property
    def qualifies(self) -> bool:
        """Return True if documents get new ids with their own inside."""
        return "{id}" in self.ids

    def new_id(self, path: str, number: int, id: str = "") -> str:
        """Return the id of an item by place and own id; not of `ids: content`."""
        if self.ids in IDS:
            return f"{path}:{number}"
        values = {"path": path, "number": str(number), "index": str(number - 1), "id": id}
        return _IN_IDS.sub(lambda place: values[place[1]], self.ids)


class Entry(ConfigStruct):
    """An entry of ``ingest:`` as data for a worker.

    Attributes:
        common: options of all formats.
        options: Options of its own.
        place: Place of `from:` or `crawl:` in the configuration, for messages.
        files_place: Place of `files:`, or of `where:`.
        compression: Compression of the shards.
    """

    common: dict[str, Any]
    options: dict[str, Any]
    place: str = ""
    files_place: str = ""
    compression: str = COMPRESSION

    @cached_last
    def settings(self) -> Common:
        return config.convert(ConfigNode(self.common), Common)

    @property
    @cached_last
    def name(self) -> str:
        """Return its name in records and messages: its format, and where its inputs are.

        Each input's record has it, so it is short however many places are listed. A digest tells two lists apart.
        """
        where = self.common.get("from", self.common.get("crawl", self.common.get("index")))
        places = [str(item) for item in where] if isinstance(where, list) else [str(where)]
        listed = ", ".join(places[:LISTED])
        if len(places) > LISTED:
            listed += f" and {len(places) - LISTED:,} more ({json_digest(places)[:8]})"
        source = self.common.get("source")
        return f"{self.common['format']} {listed}" + (f" (source {source})" if source is not None else "")

    def reader(self) -> Reader:
        options = ConfigNode(self.options)
        return config.convert(options, READERS.find(self.settings().format).with_options(options))

    @cached_last
    def carried_sets(self) -> list[str]:
        """Return the names of sets with the attributes in its inputs."""
        return [*self.reader().attribute_sets()]

    @property
    def pack(self) -> int | None:
        """Return the limit of bytes for packs, by entry or format; None if none do."""
        if self.settings().selects:
            return self.settings().pack or SELECTED
        return self.settings().pack if "pack" in self.common else READERS.find(self.settings().format).PACK


SELECTED = 64_000_000
"""Stored bytes of the pages, selected by an index, that share a shard, unless `pack` says so."""

_COMMON_KEYS = tuple(f.encode_name for f in msgspec.structs.fields(Common))

_OF_CRAWLS = ("files", "base_url")
OF_INDEXES = ("where", "urls", "index", "subset", "distinct", "max_documents", "max_bytes", "seed")
SUBSETS = ("warc", "crawldiagnostics", "robotstxt")
"""Subsets of a crawl: pages, other captures, and those of robots.txt."""

_DECIDING = ("where", "urls", "subset", "distinct", "seed")

FIRST_VERSION = "1"
"""Version of a reader, where a record of settings names none."""

_NOT_SETTINGS = (
    *("from", "crawl", *_OF_CRAWLS, *OF_INDEXES, "rate"),
    *("connections", "max_disk", "on_error", "max_rejected", "pack"),
)
"""Options that change nothing of what good documents become; but for `pack`, which is named where inputs are packed."""


def read_section(section: ConfigNode, compression: str = COMPRESSION) -> list[Entry]:
    """Return the entries of an ``ingest:`` section, checked.

    Args:
        section: Section of the configuration.
        compression: Compression of the shards.

    Raises:
        ConfigError: with the place in the file, if one is not what it should be.
    """
    if not isinstance(section.value, list | dict) or not section.value:
        raise section.error((), "expected `{format: …, from: […]}`, or a list of such entries")
    entries = []
    places = [section] if isinstance(section.value, dict) else [section.at(i) for i in range(len(section.value))]
    for place in places:
        if not isinstance(place.value, dict):
            raise place.error((), f"expected {{format: …, from: […]}}, got {place.value!r}")
        common, options = config.divide(place, _COMMON_KEYS)
        settings = config.convert(common, Common)
        with place.errors_at("format"):
            class_ = READERS.find(settings.format)
        class_ = class_.with_options(options)
        label = f"format {settings.format}"
        if class_.PLUGIN and (chosen := options.value.get(class_.PLUGIN[0])):
            label += f" with {class_.PLUGIN[0]} {chosen}"
        config.refuse_unknown(place, class_, _COMMON_KEYS, label)
        reader = config.convert(options, class_, f"format {settings.format}")
        _check(reader, place)
        _check_place(place, settings)
        if settings.on_error == "salvage" and not (class_.LINES or class_.MEMBERS):
            raise place.error(
                ("on_error",),
                f"expected `error` or `skip` for `format: {settings.format}`, got `salvage`: of a damaged file of this "
                "format nothing is kept, because it is no file of lines or of records",
            )
        if settings.source is not None and (fault := fault_of_name(settings.source)):
            raise place.error(("source",), f"{fault}: it is the folder of shards below the documents")
        for set_name in reader.attribute_sets():
            if not is_set_name(set_name):
                raise place.error(("set",), f"expected a set name of letters, digits, - and _, got {set_name!r}")
        if settings.trim and reader.attribute_sets() and any(map(schema.is_per_line, reader.types().values())):
            raise place.error(
                ("trim",),
                "expected no `trim`, because this format brings attributes with a value for each line, "
                "which must fit the text",
            )
        named = next((key for key in ("crawl", "index") if getattr(settings, key) is not None), "from")
        where, files = place.where((named,)), place.where(("where" if settings.where else "files",))
        entry = Entry(common.value, options.value, place=where, files_place=files, compression=compression)
        entries.append(entry)
    _check_sets(places, entries)
    return entries


def _check_sets(places: Sequence[ConfigNode], entries: Sequence[Entry]) -> None:
    """Raise ConfigError if entries write one set with different settings."""
    settings_by_set: dict[str, dict[str, Any]] = {}
    for place, entry in zip(places, entries, strict=True):
        for name in entry.reader().attribute_sets():
            settings = settings_of_set(entry, name)
            if settings_by_set.setdefault(name, settings) != settings:
                message = f"expected the set {name!r} with the settings that it has in the entry before, got others"
                raise place.error((), message)


def _check(reader: Reader, place: ConfigNode) -> None:
    """Raise ConfigError, with its place, if a reader cannot run."""
    with place.errors_at(keeps=True), errors_of(reader):
        reader.check()


def _check_place(place: ConfigNode, settings: Common) -> None:
    """Raise ConfigError unless the entry names its files in one way."""
    if settings.selects:
        _check_selection(place, settings)
        if settings.crawl is None:
            return
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
        folders.check_name(settings.crawl)
        key = "files"
        folders.file_ranges(settings.files)
    except ValueError as error:
        raise place.error((key,), str(error)) from None


def _check_selection(place: ConfigNode, settings: Common) -> None:
    """Raise ConfigError unless an entry can select pages by an index."""
    option = next(key for key in OF_INDEXES if getattr(settings, key) is not None)
    if settings.format != "warc":
        message = "expected `format: warc`: an index knows the records of WARC files, and no offsets in WET files"
        raise place.error(("format",), f"{message}; got {settings.format!r} with `{option}`")
    if (settings.crawl is None) == (settings.index is None):
        got = "neither" if settings.crawl is None else "both"
        raise place.error((option,), f"expected `crawl:` (its name) or `index:` (its files), got {got}")
    if settings.from_ is not None:
        raise place.error(("from",), f"expected no `from` with `{option}`, because the index names the files")
    if settings.files is not None:
        raise place.error(("files",), f"expected no `files` with `{option}`; leave one of them out")
    if settings.where is not None:
        from toolkit.ingest.index.columns import check_form

        with place.errors_at("where"):
            check_form(settings.where)


def set_schemas(entries: Iterable[Entry]) -> dict[str, sets.SetSchema]:
    """Return the schemas of the formats' attribute sets, by set."""
    results = {}
    for entry in entries:
        reader = entry.reader()
        for name in reader.attribute_sets():
            settings = settings_of_set(entry, name)
            keys = {key: sets.key_schema(type_, settings) for key, type_ in reader.types().items()}
            results[name] = sets.SetSchema(keys=keys)
    return results


def prepare(entries: Iterable[Entry], dataset: Dataset, *, overwrite: bool, write: bool = True) -> None:
    """Declare the attribute sets of the formats.

    Args:
        entries: Entries of the section.
        dataset: Dataset of the sets.
        overwrite: True if what was made otherwise is to be made again.
        write: True if anything is written.

    Raises:
        ConfigError: if one exists that was made otherwise.
    """
    for set_name, set_schema in set_schemas(entries).items():
        old = sets.load_schema(dataset, set_name)
        if old is not None and old.of_values() != set_schema.of_values() and not overwrite:
            raise ConfigError(
                f"the set {set_name!r} exists and was made with other settings; choose another `set:`, or --overwrite"
            )
        if write:
            sets.save_schema(dataset, set_name, set_schema)


def settings_of_set(entry: Entry, name: str) -> dict[str, Any]:
    """Return the recorded settings of a set of an entry."""
    return {"format": recorded_reference(entry.settings().format), **entry.reader().set_settings(name)}


def holds(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the sources of an ingest, with digests of their settings."""
    results: dict[str, set[bytes]] = {}
    for entry in entries:
        settings = msgspec.json.encode(settings_of(entry), order="sorted")
        results.setdefault(entry.settings().source or "", set()).add(settings)
    return {f"the source {name!r}": xxhash.xxh3_128_hexdigest(b"".join(sorted(s))) for name, s in results.items()}


def settings_of(entry: Entry) -> dict[str, Any]:
    """Return the settings for the documents of an input.

    The first version of a reader is not named, nor is gzip, nor that inputs are not packed: records from before there
    was anything else stay as they are.
    """
    last = current().get_or_make(settings_of, dict[int, tuple[Entry, dict[str, Any]]])  # 100,000 inputs of an entry ask
    if id(entry) not in last:
        last[id(entry)] = entry, _settings_of(entry)
    return last[id(entry)][1]


def _settings_of(entry: Entry) -> dict[str, Any]:
    common = config.plain(entry.settings())
    shared = {key: value for key, value in common.items() if key not in _NOT_SETTINGS}
    shared["format"] = recorded_reference(shared["format"])
    if shared["null_text"] is None:
        del shared["null_text"]
    reader = entry.reader()
    version = {} if reader.VERSION == FIRST_VERSION else {"reader_version": reader.VERSION}
    written = {} if entry.compression == COMPRESSION else {_COMPRESSION_KEY: entry.compression}
    packed = {"pack": int(entry.pack)} if entry.pack else {}
    packed |= {key: common[key] for key in _DECIDING if common[key] is not None}
    return {**shared, **version, **packed, **written, **recorded_code(type(reader)), **reader.settings()}
