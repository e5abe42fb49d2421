"""Decisions about inputs from what is noted of them: the records of those that are ingested, and attempts at others.

``.toolkit/inputs/``  an `InputRecord` of each (`toolkit.records.ingested`); that of a pack has the name of its shard

"""

import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.config.plugin_code import changes
from toolkit.data.dataset import Dataset
from toolkit.data.own_types import is_within
from toolkit.errors import ConfigError
from toolkit.ingest.plan import InputFile, InputToIngest, as_listed, makers
from toolkit.ingest.section import DEFAULTS, FIRST_VERSION, Entry, settings_of
from toolkit.records import ingested, sets
from toolkit.records.ingested import InputOfPack, InputRecord
from toolkit.records.sets import ShardAttributes
from toolkit.storage import Stat, store_of
from toolkit.storage.artifact import FileRecord, State, files_state, state, stored_xxh3
from toolkit.storage.paths import exists, lacking, list_files, stat


def check_settings(works: Iterable[InputToIngest], formerly: Iterable[tuple[InputRecord, InputToIngest]] = ()) -> None:
    """Raise ConfigError if an input was ingested with other settings, unless that is to be overwritten.

    Args:
        works: the inputs.
        formerly: what was made of their inputs when they were packed otherwise, by its record, and what is made now.
    """
    own = ((ingested.load(work.dataset, work.key), work) for work in works)
    for record, work in itertools.chain(own, formerly):
        settings = settings_of(work.entry)
        if record is None or work.overwrite or record.settings == settings:
            continue
        raise ConfigError(
            f"{record.input} was ingested {_otherwise(record.settings, settings)}\n"
            "choose another `source:`, or --overwrite"
        )


def check_made(entries: Iterable[Entry], inputs: Iterable[InputRecord]) -> None:
    """Check that documents were made as the section ``ingest:`` says now, before they are used.

    Inputs of sources that the section does not have are not compared, nor is it looked at which inputs there are.

    Args:
        entries: Entries of the section.
        inputs: Inputs that were ingested.

    Raises:
        ConfigError: if one was ingested with settings that no entry of its source has.
    """
    by_source: dict[str | None, list[dict[str, Any]]] = {}
    for entry in entries:
        by_source.setdefault(entry.settings().source, []).append(settings_of(entry))
    for record in inputs:
        wanted = by_source.get(record.settings.get("source"), [])
        if wanted and record.settings not in wanted:
            likest = min(wanted, key=lambda settings: len(_differences(record.settings, settings)))
            raise ConfigError(
                f"expected documents as the section `ingest:` says, got those of {record.input}, ingested "
                f"{_otherwise(record.settings, likest)}\nrun `toolkit ingest --overwrite`, or choose another `source:`"
            )


def _otherwise(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return how an input was ingested that is ingested otherwise now."""
    versions = [str(settings.get("reader_version", FIRST_VERSION)) for settings in (before, now)]
    by = f"by version {versions[0]} of the format {now.get('format')}, which has version {versions[1]} now"
    if not (results := _differences(before, now)):
        return f"{by} (docs/formats.md says what has changed)"
    return (
        "with other settings" + (f", and {by}" if versions[0] != versions[1] else "") + ":\n  " + "\n  ".join(results)
    )


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each setting that differs, beside the version."""
    before, now = {**DEFAULTS, **before}, {**DEFAULTS, **now}
    edited = changes(before.get("code", {}), now.get("code", {}))
    code = [f"the code of the format has changed: {', '.join(edited)}"] if edited else []
    told = {key for key in ("reader_version", "code" if code else "") if key}
    return code + [
        f"{name}: {was!r} -> {is_!r}"
        for key in dict.fromkeys((*before, *now))
        if key not in told
        for name, was, is_ in _unlike(key, before.get(key), now.get(key))
    ]


def _unlike(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each setting that differs, below mappings, with both values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*before, *now)):
            yield from _unlike(f"{name}.{key}", before.get(key), now.get(key))
    elif before != now:
        yield name, before, now


def inputs_gone(works: Iterable[InputToIngest], dataset: Dataset) -> dict[str, str]:
    """Return the inputs that were ingested before, and are not among these: the keys of their records, by path."""
    known = {file.key for work in works for file in work.files}
    inputs, _ = ingested.load_each(dataset)
    listed = {
        key: {input_.key: input_.input for input_ in input_record.inputs} or {key: input_record.input}
        for key, input_record in inputs.items()
    }
    return {path: key for key in sorted(listed) for name, path in listed[key].items() if name not in known}


def input_state(
    work: InputToIngest,
    record: InputRecord | None,
    stats: Sequence[Stat | None],
    *,
    begun: bool = False,
    quick: bool = False,
) -> State:
    """Return the state of what was made of an input, or pack; it is `missing` if only the documents have gone.

    Args:
        work: Input.
        record: Record of it.
        stats: What there is of each file.
        begun: True if there is an attempt that did not end.
        quick: As of `toolkit.storage.artifact.state`; what is on the web is not read in any case.
    """
    if lacks := [file.path for file, there in zip(work.files, stats, strict=True) if there is None]:
        return State("stale", f"there is {lacking(lacks[0])}" + (f" at {lacks[0]}" if work.is_pack else ""))
    settings = settings_of(work.entry)
    result = state(record, settings=settings, begun=begun)
    if record is None:
        return INTERRUPTED_INPUT if begun else NOT_BEGUN
    if not result.is_done:
        return State("stale", "ingested " + _otherwise(record.settings, settings).partition(":\n")[0])
    if not is_of_these(work, record):
        return State("stale", f"{_CHANGED}: it has other inputs")
    there = {file.path: stat for file, stat in zip(work.files, stats, strict=True)}
    if not files_state(_inputs(work, record), quick=quick, stat=there.get).is_done:
        folder = next((file.path for file in work.files if not file.selected and stat(file.path) is None), "")
        return State(
            "stale", f"there is {lacking(folder)}" if folder else _OTHER_PAGES if work.files[0].selected else _CHANGED
        )
    if record.types is not None and work.types is not None and not is_within(record.types, work.types):
        return State("stale", "rules count on types that its documents were not held against")
    if not _tolerates(work, record):
        return State("stale", "its bad items were treated otherwise")
    return _documents_state(work, record, quick=quick)


_OTHER_PAGES = "other pages are selected now"
_CHANGED = "it has changed since it was ingested"
NOT_BEGUN = State("missing", "not begun")
INTERRUPTED_INPUT = State("interrupted", "its ingest was interrupted")


def _tolerates(work: InputToIngest, record: InputRecord) -> bool:
    """Return whether the bad items and the damage that an input had are allowed now."""
    on_error = work.entry.settings().on_error
    rejected = any(name.startswith("rejected.") for name in record.counts)
    return not (rejected and on_error == "error") and not (record.salvaged and on_error != "salvage")


def _documents_state(work: InputToIngest, record: InputRecord, *, quick: bool) -> State:
    """Return the state of the shards of an input, and of their attributes that it carries: done, or missing."""
    result = files_state(
        FileRecord(work.dataset.shard_path(shard), output.size) for shard, output in record.shards.items()
    )
    if result.is_done:
        pairs = [(name, shard) for shard in record.shards for name in work.entry.reader().attribute_sets()]
        states = (
            state(attributes.record, files=attributes.files, quick=quick)
            for attributes in (ShardAttributes(work.dataset, *pair) for pair in pairs)
        )
        result = next((state for state in states if not state.is_done), result)
    if result.is_done:
        return result
    if record.deleted:
        return State("missing", "its documents were deleted when they had been mixed")
    gone = [shard for shard in record.shards if not exists(work.dataset.shard_path(shard))]
    return State("missing", f"its documents are gone: {gone[0]}" if gone else "its documents have changed")


def is_of_these(work: InputToIngest, record: InputRecord) -> bool:
    """Return whether what was made was made of just these inputs, as they were then."""
    return [input_.key for input_ in _inputs_in(work, record)] == [file.key for file in work.files]


def _inputs_in(work: InputToIngest, record: InputRecord) -> list[InputOfPack]:
    """Return the inputs that a record is about, by the work that has made it."""
    one = InputOfPack(
        input=record.input,
        key=work.key,
        size=record.size,
        stamp=record.stamp,
        content=record.content,
        rows=record.rows,
    )
    return record.inputs or [one]


def _inputs(work: InputToIngest, record: InputRecord) -> list[FileRecord]:
    """Return the files that a record is about, by the work that has made it; those on the web are not read."""
    return [
        FileRecord(file.path, was.size, was.stamp, was.content if _can_be_read(file) else "", stored_xxh3)
        for file, was in zip(work.files, _inputs_in(work, record), strict=True)
    ]


def _can_be_read(file: InputFile) -> bool:
    """Return whether a file with another stamp is compared by its content."""
    return file.selected is None and store_of(file.path).can_list


def why_not_done(work: InputToIngest, begun: Container[str]) -> str:
    """Return why an input must be ingested; empty if it need not.

    Args:
        work: the input.
        begun: keys of inputs with an attempt that did not end.
    """
    record, damaged = ingested.load_told(work.dataset, work.key)
    there = as_listed(work.files)
    state = input_state(work, record, there, begun=work.key in begun)
    return "its record is damaged" if damaged and None not in there else state.why


def recorded(work: InputToIngest) -> InputRecord | None:
    """Return the record of an input that is done, but whose documents may be gone."""
    record = ingested.load(work.dataset, work.key)
    return record if input_state(work, record, as_listed(work.files)).name in ("done", "missing") else None


def noted(work: InputToIngest) -> InputRecord | None:
    """Return the record of an input, if the settings are as they were; the input itself is not looked at."""
    record = ingested.load(work.dataset, work.key)
    return record if record is not None and record.settings == settings_of(work.entry) else None


def of_entry(work: InputToIngest, record: InputRecord) -> InputRecord:
    """Return the record of an input that is done with the entry to which it belongs now, and what that tolerates."""
    entry, limit = work.entry.name, work.entry.settings().max_rejected
    if (record.entry, record.max_rejected) == (entry, limit):
        return record
    return msgspec.structs.replace(record, entry=entry, max_rejected=limit)


def note_deletion(work: InputToIngest, record: InputRecord) -> None:
    """Note in an input's record that its shards are deleted on purpose; call it before they are."""
    if not record.deleted:
        ingested.save(work.dataset, work.key, msgspec.structs.replace(record, deleted=True))


def carried_shards(dataset: Dataset, set_name: str) -> set[str] | None:
    """Return the shards of a set that ingest made of what its inputs carry; None for any other set.

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


def not_begun(works: Sequence[InputToIngest], dataset: Dataset, shards: Iterable[str]) -> list[str]:
    """Return the keys of the inputs without a record, an attempt, or a shard of theirs among those that there are."""
    noted = {*ingested.keys(dataset), *ingested.attempts(dataset)}
    left = [work for work in works if work.key not in noted]
    if not left:
        return []
    maker = makers(works)
    results = {work.shard for work in map(maker, shards) if work}
    return [work.key for work in left if work.shard not in results]
