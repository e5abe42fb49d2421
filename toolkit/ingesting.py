"""Ingest: one input file becomes one shard of documents (or several, cut by size).

    input ──decompress──> reader ──drafts──> trim ──rows──> documents/<source>/<path>.jsonl.gz + row index
                            │                              (+ attributes/<set>/… where the format carries attributes)
                            └── bad items: an error, or counted and kept in a reject file

A shard's completion record lies in ``.toolkit/ingest/<source>/<path of the input>.json``.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Annotated, Any, Literal

import msgspec
import xxhash

from toolkit import arrivals, config, crawls, downloads, inflating, records, rowindex, schema
from toolkit.config import ConfigStruct, Description, Source
from toolkit.documents import NO_ATTRIBUTES, DocumentRow, split_lines
from toolkit.errors import ConfigError, DataError
from toolkit.paths import Dataset, exists, expand, join, remove, stat, strip_suffix
from toolkit.reader import READERS, Draft, Input, Reader, Rejects
from toolkit.stores import Stat, scheme_of
from toolkit.streams import READ, RowOutput, Size, open_stored
from toolkit.waiting import for_each

COMPRESSIONS = tuple(inflating.SUFFIXES)
"""Taken off an input's name before its format's suffix."""

Report = Callable[[int, int], None]


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


class InputRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One input file is ingested.

    Attributes:
        size, stamp, content: of the input as stored: the quick test, and xxh3-128.
        settings: of the entry.
        shards: written, each with its digest.
        counts: by reason.
        deleted: whether the shards were deleted when they had been mixed.
    """

    version: int = 1
    input: str
    size: int
    stamp: str
    content: str
    settings: dict[str, Any]
    shards: dict[str, records.OutputState]
    rows: int
    counts: dict[str, int]
    seconds: float
    deleted: bool = False


class Done(ConfigStruct):
    """What became of an input file."""

    shards: list[str]
    skipped: bool
    documents: int
    counts: dict[str, int]


# --- from the configuration -------------------------------------------------------------------------------------------

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
                key: records.KeySchema(schema.to_json(type_), _set_settings(entry))
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


def _set_settings(entry: Entry) -> dict[str, Any]:
    return {"format": entry.settings().format, "version": "1"}


def inputs_gone(works: Iterable[Work], dataset: Dataset) -> list[str]:
    """Inputs that were ingested before and are not among these."""
    known = {record_path(work) for work in works}
    found = [records.load(path, InputRecord) for path in records.ingest_files(dataset, ".json") if path not in known]
    return sorted(record.input for record in found if record)


def holds(entries: Iterable[Entry]) -> dict[str, str]:
    """What an ingest works on, by source, with a digest of the settings: for `toolkit.claims`."""
    found: dict[str, set[bytes]] = {}
    for entry in entries:
        settings = msgspec.json.encode(_settings(entry), order="sorted")
        found.setdefault(entry.settings().source or "", set()).add(settings)
    return {f"the source {name!r}": xxhash.xxh3_128_hexdigest(b"".join(sorted(s))) for name, s in found.items()}


def check_settings(works: Iterable[Work]) -> None:
    """Raises ConfigError if an input was ingested with other settings, unless that is to be overwritten."""
    for work in works:
        record = records.load(record_path(work), InputRecord)
        settings = _settings(work.entry)
        if record is None or work.overwrite or record.settings == settings:
            continue
        changed = [
            f"{key}: {record.settings.get(key)!r} -> {settings.get(key)!r}"
            for key in dict.fromkeys((*record.settings, *settings))
            if record.settings.get(key) != settings.get(key)
        ]
        raise ConfigError(
            f"{work.path} was ingested with other settings:\n  " + "\n  ".join(changed) + "\nchoose another "
            "`source:`, or --overwrite"
        )


# --- one input --------------------------------------------------------------------------------------------------------


def record_path(work: Work) -> str:
    return join(work.dataset.bookkeeping, "ingest", work.key + ".json")


def _keep(work: Work) -> downloads.Keep | None:
    max_disk = work.entry.settings().max_disk
    return downloads.Keep(_downloads(work.dataset), max_disk, work.key) if max_disk else None


def _downloads(dataset: Dataset) -> str:
    return join(dataset.bookkeeping, "downloads")


def sweep_downloads(works: Iterable[Work], dataset: Dataset) -> None:
    """Deletes downloads of inputs that are not among these."""
    downloads.sweep(_downloads(dataset), (keep.name for keep in map(_keep, works) if keep))


def ingest_input(work: Work, report: Report) -> Done:
    """Makes the documents of one input file, unless that has been done.

    Raises:
        DataError: if the input is damaged, or a shard is there that was not made from it; nothing was written.
    """
    start = time.perf_counter()
    found = stat(work.path)
    if found is None:
        raise DataError("expected an input file, got nothing there", path=work.path)
    settings = _settings(work.entry)
    record = records.load(record_path(work), InputRecord)
    if record is not None:
        done = _still_done(work, record, found, settings)
        if done:
            remove(record_path(work) + ".started")  # of an attempt that was killed just before its end
            arrivals.Arrival(work.path, found, _keep(work)).discard()
            report(done.documents, 0)
            return done
    claims = _Claims(work, record)
    if record:
        remove(record_path(work))
    common = work.entry.settings()
    rejected = join(work.dataset.bookkeeping, "rejects", work.shard + ".jsonl.gz")
    arrival = arrivals.Arrival(work.path, found, _keep(work))
    with arrival, Rejects(rejected, work.path) as rejects:
        kept_aside = rejects if common.on_error == "skip" else None
        source = Input(work.path, common.source, work.max_document_bytes, kept_aside, arrival.open)
        written = _Writer(work, source, claims, report)
        written.run()
        content = arrival.content()
    for shard in claims.shards - written.shards.keys():
        remove(work.dataset.shard_path(shard))
    made = InputRecord(
        input=work.path,
        size=found.size,
        stamp=found.stamp,
        content=content,
        settings=settings,
        shards=written.shards,
        rows=written.rows,
        counts=dict(sorted(source.counts.items())),
        seconds=round(time.perf_counter() - start, 3),
    )
    records.save(record_path(work), made)
    arrival.discard()
    claims.release()
    return Done(shards=sorted(written.shards), skipped=False, documents=written.rows, counts=made.counts)


def _settings(entry: Entry) -> dict[str, Any]:
    common = config.plain(entry.settings())
    shared = {key: value for key, value in common.items() if key not in _NOT_SETTINGS}
    return {**shared, **config.plain(entry.reader())}


def _still_done(work: Work, record: InputRecord, found: Stat, settings: dict[str, Any]) -> Done | None:
    if record.settings != settings or not _is_same(work, record, found):
        return None
    rejected = any(name.startswith("rejected.") for name in record.counts)
    if rejected and work.entry.settings().on_error == "error":
        return None
    set_name = work.entry.reader().attribute_set()
    for shard, output in record.shards.items():
        now = stat(work.dataset.shard_path(shard))
        if now is None or now.size != output.size:
            return None
        if set_name:
            made = records.load_record(work.dataset, set_name, shard)
            if made is None or not records.is_intact(work.dataset, set_name, shard, made):
                return None
    return Done(shards=sorted(record.shards), skipped=True, documents=record.rows, counts=record.counts)


def why_not_done(work: Work) -> str:
    """Why an input must be ingested; empty if it need not."""
    found = stat(work.path)
    if found is None:
        return "there is no such file"
    record = records.load(record_path(work), InputRecord)
    if record is None:
        return "its ingest was interrupted" if exists(record_path(work) + ".started") else "not begun"
    if record.settings != _settings(work.entry):
        return "ingested with other settings"
    if not _is_same(work, record, found):
        return "it has changed since it was ingested"
    if _still_done(work, record, found, record.settings):
        return ""
    if record.deleted:
        return "its documents were deleted when they had been mixed"
    gone = [shard for shard in record.shards if not exists(work.dataset.shard_path(shard))]
    return f"its documents are gone: {gone[0]}" if gone else "its documents have changed"


def shards_of(works: Iterable[Work], dataset: Dataset) -> set[str]:
    """The shards that these inputs have written, or have begun."""
    paths = [record_path(work) for work in works]
    found = [*for_each(lambda path: records.load(path + ".started", Attempt), paths)]
    made = for_each(lambda path: records.load(path, InputRecord), paths)
    return {shard for record in (*found, *made) if record for shard in record.shards}


def recorded(work: Work) -> InputRecord | None:
    """The record of an input that is as it was and was ingested with these settings; its documents may be gone."""
    record, found = records.load(record_path(work), InputRecord), stat(work.path)
    if record is None or found is None or record.settings != _settings(work.entry):
        return None
    return record if _is_same(work, record, found) else None


def _is_same(work: Work, record: InputRecord, found: Stat) -> bool:
    """Whether an input is the one that was ingested; what is on the web is not read for that."""
    if Stat(record.size, record.stamp) == found:
        return True
    if arrivals.is_web(work.path) or record.size != found.size:
        return False
    return record.content == _stored_digest(work.path)


def note_deletion(work: Work, record: InputRecord) -> None:
    """Says in an input's record that its shards are deleted on purpose; before they are."""
    if not record.deleted:
        records.save(record_path(work), msgspec.structs.replace(record, deleted=True))


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An input whose ingest was begun and has not ended well: the shards that it may have written."""

    input: str
    shards: list[str]


def forget_attempts(works: Iterable[Work], dataset: Dataset) -> None:
    """Forgets failed attempts at inputs that are not wanted any more, where they have left no shard."""
    known = {record_path(work) + ".started" for work in works}
    for path in records.ingest_files(dataset, ".started"):
        attempt = records.load(path, Attempt)
        if path not in known and attempt and not any(exists(dataset.shard_path(shard)) for shard in attempt.shards):
            remove(path)


def unfinished(dataset: Dataset) -> list[str]:
    """Inputs whose ingest failed or was interrupted, and has not been done since."""
    attempts = [records.load(path, Attempt) for path in records.ingest_files(dataset, ".started")]
    return sorted(attempt.input for attempt in attempts if attempt)


class _Claims:
    """The shards that are this input's to write: those of its record, and of attempts that did not end.

    They are kept beside the record until there is a new one, so that no attempt takes a file that is somebody else's,
    and none leaves one behind.
    """

    def __init__(self, work: Work, record: InputRecord | None) -> None:
        self._work = work
        self._path = record_path(work) + ".started"
        self.shards: set[str] = set(record.shards if record else ())
        if old := records.load(self._path, Attempt):
            self.shards |= set(old.shards)
        self._write()

    def take(self, shard: str, set_name: str | None) -> None:
        """Claims a shard, and its attributes in a set.

        Raises:
            DataError: if there is a file that is not this input's.
        """
        if shard in self.shards:
            return
        dataset = self._work.dataset
        paths = [dataset.shard_path(shard), *([dataset.attribute_path(set_name, shard)] if set_name else [])]
        for path in paths:
            if exists(path) and not self._work.overwrite:
                raise DataError(
                    f"expected no file here yet, got one that was not made from {self._work.path}; move it, choose "
                    "another `source:` (or `set:`), or --overwrite",
                    path=path,
                )
        self.shards.add(shard)
        self._write()

    def release(self) -> None:
        """The record says it now."""
        remove(self._path)

    def _write(self) -> None:
        records.save(self._path, Attempt(input=self._work.path, shards=sorted(self.shards)))


def _stored_digest(path: str) -> str:
    digest = xxhash.xxh3_128()
    with open_stored(path) as stream:
        while block := stream.read(READ):
            digest.update(block)
    return digest.hexdigest()


_ENCODER = msgspec.json.Encoder()


def _with_text(row: bytes | None, text: str) -> bytes | None:
    """A row that already is a document, with another text."""
    if row is None:
        return None
    return _ENCODER.encode(msgspec.json.decode(row, type=dict[str, msgspec.Raw]) | {"text": text})


class _Writer:
    """Writes the drafts of an input to its shards, and their attributes beside them."""

    def __init__(self, work: Work, source: Input, claims: _Claims, report: Report) -> None:
        self.work = work
        self.claims = claims
        self.source = source
        self.report = report
        self.rows = 0
        self.shards: dict[str, records.OutputState] = {}
        self.common = work.entry.settings()
        self.reader = work.entry.reader()

    def run(self) -> None:
        drafts = self._kept(self.reader.read(self.source))
        size = self.common.shard_size
        first, number = next(drafts, None), 0
        while first is not None or number == 0:
            name = f"{self.work.shard}.{number:05d}.jsonl.gz" if size else f"{self.work.shard}.jsonl.gz"
            shard = drafts if first is None else itertools.chain((first,), drafts)
            self._write_shard(name, shard, size)
            first, number = next(drafts, None), number + 1

    def _write_shard(self, name: str, drafts: Iterator[Draft], size: int | None) -> None:
        dataset, set_name = self.work.dataset, self.reader.attribute_set()
        self.claims.take(name, set_name)
        if set_name:
            records.forget(dataset, set_name, name)
        with ExitStack() as stack:
            index = stack.enter_context(rowindex.RowIndexOutput(dataset, name, replaced=True))
            output = stack.enter_context(RowOutput(dataset.shard_path(name)))
            attributes = stack.enter_context(RowOutput(dataset.attribute_path(set_name, name))) if set_name else None
            offset = 0
            for draft in drafts:
                row, line = self._row(draft)
                output.write_row(line)
                index.add(rowindex.entry_of(row), offset)
                offset += len(line) + 1
                if attributes:
                    attributes.write_row(
                        _ENCODER.encode({"source": row.source, "id": row.id, "attributes": draft.attributes})
                    )
                self.report(1, len(line))
                if size and offset >= size:
                    break
        state = index.finish(output.stat, output.content)
        self.shards[name] = records.output_state(output)
        self.rows += output.rows
        if set_name and attributes:
            record = records.ShardRecord(
                input=state,
                settings={key: _set_settings(self.work.entry) for key in self.reader.TYPES},
                reads={},
                rows=attributes.rows,
                counts={"documents": attributes.rows},
                output=records.output_state(attributes),
                seconds=0.0,
            )
            records.save(records.record_path(dataset, set_name, name), record)

    def _kept(self, drafts: Iterator[Draft]) -> Iterator[Draft]:
        counts = self.source.counts
        for draft in drafts:
            if self.common.trim:
                trimmed = trim(draft.text, self.common.trim.min_chars)
                if trimmed is None:
                    counts["trim"] += 1
                    continue
                if trimmed != draft.text:
                    draft.text, draft.raw = trimmed, _with_text(draft.raw, trimmed)
            counts["documents"] += 1
            yield draft

    def _row(self, draft: Draft) -> tuple[DocumentRow, bytes]:
        source = draft.source if draft.source is not None else self.common.source
        if source is None:
            raise DataError(
                "expected field source, got none in the input; give the entry `source: NAME`",
                path=self.source.path,
                line=draft.number,
                id=draft.id,
            )
        id = draft.id if draft.id is not None else self._new_id(draft)
        if draft.raw is not None:
            line = draft.raw
        else:
            fields: dict[str, Any] = {"id": id, "text": draft.text, "source": source}
            if draft.added is not None:
                fields["added"] = draft.added
            if draft.created is not None:
                fields["created"] = draft.created
            if draft.metadata is not None:
                fields["metadata"] = draft.metadata
            line = _ENCODER.encode(fields | draft.extra)
        if len(line) > self.work.max_document_bytes:
            raise DataError(
                f"expected a document of at most {self.work.max_document_bytes:,} bytes, got {len(line):,}; "
                "raise `max_document_bytes`",
                path=self.source.path,
                line=draft.number,
                id=id,
            )
        own = msgspec.Raw(b"{}") if b'"attributes"' in line else NO_ATTRIBUTES  # or so; more is not asked
        return DocumentRow(id=id, text=draft.text, source=source, attributes=own), line

    def _new_id(self, draft: Draft) -> str:
        if self.common.ids == "content":
            return xxhash.xxh3_128_hexdigest(draft.text.encode())
        return f"{self.work.relative}:{draft.number}"


def trim(text: str, min_chars: int) -> str | None:
    r"""The text without its leading and trailing lines of fewer than `min_chars` code points, None if none is left.

    Inner short lines stay; lines are joined by ``\n``.

    >>> trim("menu\na long line\nx\nanother one\n", 8)
    'a long line\nx\nanother one'
    """
    lines = split_lines(text)
    kept = [i for i, line in enumerate(lines) if len(line) >= min_chars]
    return "\n".join(lines[kept[0] : kept[-1] + 1]) if kept else None
