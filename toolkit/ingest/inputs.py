"""Decisions about inputs from their records: the records of those that are ingested, and attempts at others.

``.toolkit/inputs/``  an `InputRecord` of each (`toolkit.records.ingested`); that of a pack has the name of its shard

The types of the own fields of documents, before and after ingest.

``.toolkit/types/<number of the entry>.json``  a `StoredTypes`
"""

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import xxhash

from toolkit.config.plugin_code import changes
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import OwnTypes, is_within, together
from toolkit.data.tables.to_arrow import arrow_schema, to_text
from toolkit.errors import ConfigError, DataError, NoDocuments, errors_from
from toolkit.ingest.ingest_config import DEFAULTS, FIRST_VERSION, Entry, settings_of
from toolkit.ingest.plan import PACK, InputFile, InputToIngest, PlannedInputs, listed_stats, makers
from toolkit.ingest.reader import Input, Reader, Sample
from toolkit.records import ingested, sets
from toolkit.records.ingested import BriefInput, InputExample, InputOfPack, InputRecord, summary
from toolkit.records.sets import ShardAttributes
from toolkit.storage import Stat, freshness, json_files, paths, store_of
from toolkit.storage.freshness import FileRecord, State, files_state, state, stored_xxh3
from toolkit.storage.paths import exists, list_files, listed_stat, missing_reason, stat


def check_settings(
    works: Iterable[InputToIngest], dataset: Dataset, formerly: Iterable[tuple[InputRecord, InputToIngest]]
) -> None:
    """Raise ConfigError if an input was ingested with other settings, unless overwritten.

    Args:
        works: the inputs.
        dataset: Dataset that they become.
        formerly: Records of former packs of the inputs, with the works of today.
    """
    summary = ingested.summary(dataset)
    records = ((summary.inputs.get(work.key), work) for work in works)
    own = ((record.input, summary.examples[record.settings].settings, work) for record, work in records if record)
    for name, before, work in itertools.chain(own, ((was.input, was.settings, work) for was, work in formerly)):
        settings = settings_of(work.entry)
        if not work.overwrite and before != settings:
            change = _settings_change(before, settings)
            raise ConfigError(f"{name} was ingested {change}\nchoose another `source:`, or --overwrite")


def check_documents(entries: Iterable[Entry], inputs: Iterable[InputExample]) -> None:
    """Check the documents' settings against those of the section ``ingest:``.

    Inputs of sources that the section does not have are not compared, nor is it looked at which inputs there are.

    Args:
        entries: Entries of the section.
        inputs: Inputs that were ingested, one of each settings.

    Raises:
        ConfigError: if one was ingested with settings that no entry of its source has.
    """
    by_source: dict[str | None, list[dict[str, Any]]] = {}
    for entry in entries:
        by_source.setdefault(entry.settings().source, []).append(settings_of(entry))
    for record in inputs:
        expected = by_source.get(record.settings.get("source"), [])
        if expected and record.settings not in expected:
            likest = min(expected, key=lambda settings: len(_differences(record.settings, settings)))
            raise ConfigError(
                f"expected documents as the section `ingest:` says, got those of {record.input}, ingested "
                f"{_settings_change(record.settings, likest)}\n"
                "run `toolkit ingest --overwrite`, or choose another `source:`"
            )


def _settings_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the difference between former and present settings of an input."""
    versions = [str(settings.get("reader_version", FIRST_VERSION)) for settings in (before, now)]
    by = f"by version {versions[0]} of the format {now.get('format')}, which has version {versions[1]} now"
    if not (results := _differences(before, now)):
        return f"{by} (docs/formats.md says what has changed)"
    return (
        "with other settings" + (f", and {by}" if versions[0] != versions[1] else "") + ":\n  " + "\n  ".join(results)
    )


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each changed setting, beside the version."""
    before, now = {**DEFAULTS, **before}, {**DEFAULTS, **now}
    edited = changes(before.get("code", {}), now.get("code", {}))
    code = [f"the code of the format has changed: {', '.join(edited)}"] if edited else []
    reported = ("reader_version", "code") if code else ("reader_version",)
    keys = [key for key in dict.fromkeys((*before, *now)) if key not in reported]
    return code + [line for key in keys for line in _changes(key, before.get(key), now.get(key))]


def _changes(name: str, before: Any, now: Any) -> Iterator[str]:
    """Yield a line for each changed setting, below mappings, with both values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*before, *now)):
            yield from _changes(f"{name}.{key}", before.get(key), now.get(key))
    elif before != now:
        yield f"{name}: {before!r} -> {now!r}"


def inputs_gone(works: Iterable[InputToIngest], dataset: Dataset) -> dict[str, str]:
    """Return the inputs of earlier runs beside these: the keys of their records, by path."""
    keys = {file.key for work in works for file in work.files}
    return {
        path: key
        for key, record in ingested.load_others(dataset, lambda key: key in keys and not key.endswith(PACK))
        for name, path in record.paths_by_key(key).items()
        if name not in keys
    }


def input_state(
    work: InputToIngest,
    record: InputRecord | None,
    stats: Sequence[Stat | None],
    *,
    begun: bool = False,
    quick: bool = False,
) -> State:
    """Return the state of the documents of an input, or pack; it is `missing` if only the documents have gone.

    Args:
        work: Input.
        record: Record of it.
        stats: Version of each file; None of a missing one.
        begun: True if there is an attempt that did not end.
        quick: True to compare by versions alone, as in `toolkit.storage.freshness.state`; the web is never read.
    """
    if lacks := [file.path for file, stat_by_path in zip(work.files, stats, strict=True) if stat_by_path is None]:
        return State("stale", f"there is {missing_reason(lacks[0])}" + (f" at {lacks[0]}" if work.is_pack else ""))
    settings = settings_of(work.entry)
    result = state(record, settings=settings, begun=begun)
    if record is None:
        return INTERRUPTED_INPUT if begun else NOT_BEGUN
    if not result.is_done:
        return State("stale", "ingested " + _settings_change(record.settings, settings).partition(":\n")[0])
    if not has_same_inputs(work, record):
        return State("stale", f"{_CHANGED}: it has other inputs")
    stat_by_path = dict(zip((file.path for file in work.files), stats, strict=True))
    of_inputs = files_state(_inputs(work, record), quick=quick, stat=stat_by_path.get)
    if not of_inputs.is_done:
        folder = next((file.path for file in work.files if not file.selected and stat(file.path) is None), "")
        return State(
            "stale",
            f"there is {missing_reason(folder)}" if folder else _OTHER_PAGES if work.files[0].selected else _CHANGED,
        )
    if record.types is not None and work.types is not None and not is_within(record.types, work.types):
        return State("stale", "rules count on types that its documents were not held against")
    if not _tolerates(work, record):
        return State("stale", "its bad items were treated otherwise")
    result = _documents_state(work, record, quick=quick)
    return of_inputs if result.is_done else result


_OTHER_PAGES = "other pages are selected now"
_CHANGED = "it has changed since it was ingested"
NOT_BEGUN = State("missing", "not begun")
INTERRUPTED_INPUT = State("interrupted", "its ingest was interrupted")


def _tolerates(work: InputToIngest, record: InputRecord) -> bool:
    """Return True if an input's bad items and damage are allowed now."""
    rejected = ingested.has_rejected(record)
    on_error = work.entry.settings().on_error if rejected or record.salvaged else ""
    return not (rejected and on_error == "error") and not (record.salvaged and on_error != "salvage")


def _documents_state(work: InputToIngest, record: InputRecord, *, quick: bool) -> State:
    """Return the state of an input's shards and carried attributes: done, or missing."""
    result = files_state(
        FileRecord(work.dataset.shard_path(shard), output.size) for shard, output in record.shards.items()
    )
    if result.is_done:
        pairs = [(name, shard) for name in work.entry.carried_sets() for shard in record.shards]
        states = (
            state(attributes.record, files=attributes.files, quick=quick)
            for attributes in (ShardAttributes(work.dataset, *pair) for pair in pairs)
        )
        result = next((state for state in states if not state.is_done), result)
    if result.is_done:
        return result
    if record.deleted:
        return State("missing", "its documents were deleted when they had been mixed")
    missing = [shard for shard in record.shards if not exists(work.dataset.shard_path(shard))]
    return State("missing", f"its documents are gone: {missing[0]}" if missing else "its documents have changed")


def has_same_inputs(work: InputToIngest, record: InputRecord) -> bool:
    """Return True if a record is of just these inputs."""
    return [input_.key for input_ in _recorded_inputs(work, record)] == [file.key for file in work.files]


def _recorded_inputs(work: InputToIngest, record: InputRecord) -> list[InputOfPack]:
    """Return the inputs of a record, by the work of today."""
    one = InputOfPack(
        input=record.input, key=work.key, size=record.size, stamp=record.stamp, content=record.content, rows=record.rows
    )
    return record.inputs or [one]


def _inputs(work: InputToIngest, record: InputRecord) -> list[FileRecord]:
    """Return the files of a record, by the work of today; those on the web are not read."""

    def content(file: InputFile, was: InputOfPack) -> str:
        return was.content if file.selected is None and store_of(file.path).can_list else ""

    files = zip(work.files, _recorded_inputs(work, record), strict=True)
    return [FileRecord(file.path, was.size, was.stamp, content(file, was), stored_xxh3) for file, was in files]


def finished_inputs(dataset: Dataset) -> Callable[[InputToIngest], BriefInput | None]:
    """Return a function from inputs to records of up-to-date ones.

    It decides by records and listings alone. All others must be inspected one by one by `input_state`, which says why:
    packs, those with carried attributes or rejected items, those without a listing, and those that differ in a stamp
    alone.
    """
    summary, listed = ingested.summary(dataset), listed_stat(dataset.documents)
    alike = dict[tuple[int, int, int], tuple[bool, InputToIngest]]()

    def is_alike(work: InputToIngest, example: int) -> bool:
        """Return True for an example's settings and types, without carried sets."""
        place = id(work.entry), id(work.types), example
        if place not in alike:
            _, settings, types = summary.examples[example]
            fits = types is None or work.types is None or is_within(types, work.types)
            fits = fits and settings == settings_of(work.entry) and not work.entry.carried_sets()
            alike[place] = fits, work  # which keeps the identities
        return alike[place][0]

    def finished(work: InputToIngest) -> BriefInput | None:
        file, record = work.files[0], summary.inputs.get(work.files[0].key)
        if record is None or listed is None or work.is_pack or not record.is_plain:
            return None
        now = files_state([FileRecord(file.path, record.size, record.stamp)], quick=True, stat=lambda _: file.stat)
        if not now.is_done or not is_alike(work, record.settings):
            return None
        shards = (FileRecord(shard, output.size) for shard, output in record.shards.items())
        return record if files_state(shards, stat=listed).is_done else None

    return finished


def why_not_done(work: InputToIngest, begun: Container[str]) -> str:
    """Return why an input must be ingested; empty if it need not.

    Args:
        work: the input.
        begun: keys of inputs with an attempt that did not end.
    """
    record, damaged = ingested.load_told(work.dataset, work.key)
    stats = listed_stats(work.files)
    state = input_state(work, record, stats, begun=work.key in begun)
    return "its record is damaged" if damaged and None not in stats else state.why


def finished_record(work: InputToIngest) -> InputRecord | None:
    """Return the record of a finished input, with or without documents."""
    record = ingested.load(work.dataset, work.key)
    return record if input_state(work, record, listed_stats(work.files)).name in ("done", "missing") else None


def record_with_settings(work: InputToIngest) -> InputRecord | None:
    """Return the record of an input with unchanged settings; the input itself is not looked at."""
    record = ingested.load(work.dataset, work.key)
    return record if record is not None and record.settings == settings_of(work.entry) else None


def as_of_now(
    work: InputToIngest, record: InputRecord, stamps: Mapping[str, str] = MappingProxyType({})
) -> InputRecord:
    """Return the record of a finished input with present entry and stamps.

    Args:
        work: Input.
        record: Record of it.
        stamps: Stamps by path, where they are others than in the record.
    """
    entry, limit = work.entry.name, work.entry.settings().max_rejected
    if (record.entry, record.max_rejected) == (entry, limit) and not stamps:
        return record
    inputs = [
        msgspec.structs.replace(was, stamp=stamps.get(file.path, was.stamp))
        for file, was in zip(work.files, record.inputs, strict=False)  # of one file, there are none
    ]
    stamp = stamps.get(work.path, record.stamp) if not inputs else record.stamp
    return msgspec.structs.replace(record, entry=entry, max_rejected=limit, stamp=stamp, inputs=inputs)


def note_deletion(work: InputToIngest, record: InputRecord) -> None:
    """Mark an input's shards as deleted on purpose, in its record; call it before they are."""
    if not record.deleted:
        ingested.save(work.dataset, work.key, msgspec.structs.replace(record, deleted=True))


def carried_shards(dataset: Dataset, set_name: str) -> set[str] | None:
    """Return the shards of a set of carried attributes; None for any other set.

    These are the shards of these inputs, by the records of either, whether the files are there or not; and files that
    are there.
    """
    set_schema = sets.load_schema(dataset, set_name)
    formats = {str(key.settings.get("format")) for key in set_schema.keys.values()} if set_schema else set()
    if set_schema is None or any({"tagger", "kind", "align"} & key.settings.keys() for key in set_schema.keys.values()):
        return None
    extracted = any("extractor" in key.settings for key in set_schema.keys.values())

    def carries(settings: Mapping[str, Any]) -> bool:
        named = set_name in settings.get("extract", ()) if extracted else settings.get("set", set_name) == set_name
        return settings.get("format") in formats and named

    ours = (input_record for input_record in ingested.load_undamaged(dataset) if carries(input_record.settings))
    return {
        *sets.recorded_shards(dataset, set_name),
        *(shard for our in ours for shard in our.shards),
        *list_files(dataset.attribute_path(set_name, "")),
    }


def new_inputs(works: Sequence[InputToIngest], dataset: Dataset, shards: Iterable[str]) -> list[str]:
    """Return the keys of the inputs without record, attempt and shard."""
    begun, inputs = ingested.attempts(dataset), ingested.summary(dataset).inputs
    unknown = (work for work in works if not inputs.get(work.key))
    new = [work for work in unknown if work.key not in begun and not ingested.is_recorded(dataset, work.key)]
    if not new:
        return []
    maker = makers(works)
    results = {work.shard for work in map(maker, shards) if work}
    return [work.key for work in new if work.shard not in results]


class StoredTypes(freshness.Artifact, frozen=True, kw_only=True):
    """The types of an entry of ``ingest:``; the stamp is a digest of its options and the stamps of all inputs."""

    entry: str
    stamp: str
    types: OwnTypes | None

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.stamp}


class InputTypes(msgspec.Struct, frozen=True):
    """The types of inputs' documents.

    Attributes:
        by_entry: Types by the identity of the entry, if they are known.
        stored: Types to store, by path.
    """

    by_entry: dict[int, OwnTypes | None]
    stored: dict[str, StoredTypes]

    def store(self) -> None:
        """Store the types; equal files stay as they are."""
        for path, stored_types in self.stored.items():
            if json_files.load(path, StoredTypes) != stored_types:
                json_files.save(path, stored_types)


def types_of_inputs(works: PlannedInputs, dataset: Dataset) -> InputTypes:
    """Return the types of inputs' documents; nothing is written.

    They are those of an entry: of all its inputs, by the schemas of all or the first rows. Where nobody can list the
    inputs, on the web, they are not known.

    Args:
        works: all inputs of the section.
        dataset: Dataset that they become.

    Raises:
        ConfigError: for a declared type that cannot be.
    """
    result = InputTypes({}, {})
    for number, first in enumerate(works.templates.values()):
        entry = first.entry
        if type(entry.reader()).own_types is Reader.own_types:
            continue
        path = paths.join(dataset.bookkeeping, "types", f"{number}.json")
        of_entry = (file for work in works if work.entry is entry for file in work.files)
        files = sorted(of_entry, key=lambda file: file.relative)
        if stored := of_files(entry, files, first.max_document_bytes, path):
            result.stored[path] = stored
            result.by_entry[id(entry)] = stored.types
    return result


def of_files(entry: Entry, files: Sequence[InputFile], limit: int, path: str) -> StoredTypes | None:
    """Return the types of the documents of files; stored ones if nothing has changed.

    Args:
        entry: Entry of the files.
        files: all of them, in order.
        limit: bytes of a document, at most.
        path: Path of the stored types.

    Returns:
        None if they cannot be told: of other formats, and where nothing lists files, on the web.

    Raises:
        ConfigError: for a declared type that cannot be.
    """
    reader = entry.reader()
    if type(reader).own_types is Reader.own_types or not all(store_of(file.path).can_list for file in files):
        return None
    digest = xxhash.xxh3_128(msgspec.json.encode((entry.common.get("format"), entry.options), order="sorted"))
    for file, now in zip(files, listed_stats(files), strict=True):
        digest.update(f"{file.key}\0{now}\n".encode())
    stamp = digest.hexdigest()
    stored = json_files.load(path, StoredTypes)
    if stored is not None and freshness.state(stored, [("", stamp)]).is_done:
        return stored
    from toolkit.ingest.input_rows.preview import UnwrittenRejects  # which most commands do not need

    source = entry.settings().source
    sample = Sample()
    inputs = [Input(file.path, source, limit, UnwrittenRejects(), sample=sample) for file in files]
    with errors_from(entry.place, of=DataError):
        types = reader.own_types(inputs)
    if types and types.arrow and entry.settings().qualifies:
        fields = [field for field in arrow_schema(types.arrow) if field.name != "id"]
        types = msgspec.structs.replace(types, arrow=to_text(fields))
    return StoredTypes(entry=entry.name, stamp=stamp, types=types)


def is_stored(dataset: Dataset) -> bool:
    """Return True if the dataset has stored types."""
    return any(paths.list_files(paths.join(dataset.bookkeeping, "types"), hidden=True))


def after_ingest(works: PlannedInputs, types: Mapping[int, OwnTypes | None], dataset: Dataset) -> OwnTypes | None:
    """Return the types of all documents after an ingest of these inputs; None if one's are unknown.

    Args:
        works: all inputs of the section.
        types: Types of their documents, by the identity of the entry.
        dataset: Dataset that may have documents of other inputs, and of earlier ingests of these.
    """
    results = [types.get(entry) for entry in works.templates]
    if not any(results):
        return None
    maker = makers(works)
    existing = set(paths.list_files(dataset.documents))
    result, inputs = set[str](), summary(dataset)
    for input_ in inputs.inputs.values():
        result.update(input_.shards)
        own = inputs.examples[input_.settings].types
        if own in results or existing.isdisjoint(input_.shards):
            continue
        if own is None or not any(map(maker, input_.shards)):
            results.append(own)
    if any(maker(shard) is None for shard in existing - result):
        return None
    return together(results)


def of_documents(dataset: Dataset, shards: Iterable[str]) -> OwnTypes | None:
    """Return the types of existing documents, by the records of their inputs; None if one's are unknown.

    Those of documents in place are told by the files.
    """
    if dataset.in_place:
        return dataset.in_place.own_types()
    if not is_stored(dataset):
        return None
    remaining, results, inputs, examples = set(shards), set[str](), summary(dataset), dict[int, None]()
    for input_ in inputs.inputs.values():
        if not remaining.isdisjoint(input_.shards):
            results.update(input_.shards)
            examples[input_.settings] = None
    return together(inputs.examples[number].types for number in examples) if remaining <= results else None


def of_all(dataset: Dataset) -> OwnTypes | None:
    """Return the types of all existing documents; None if there are none, or one's are unknown."""
    if dataset.in_place or not is_stored(dataset):
        return of_documents(dataset, ())
    try:
        return of_documents(dataset, dataset.shards())
    except NoDocuments:
        return None
