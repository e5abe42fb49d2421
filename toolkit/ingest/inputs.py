"""Decisions about inputs from what is noted of them: the records of those that are ingested, and attempts at others.

``.toolkit/ingest/<source>/<path of the input>.json``          an `InputRecord` of `toolkit.records.ingested`
``.toolkit/ingest/<source>/<path of the input>.json.started``  an `Attempt`, until there is a record

Those of a pack have the name of its shard.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import xxhash

from toolkit.config.plugin_code import changes
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError
from toolkit.ingest.plan import InputToIngest, makers
from toolkit.ingest.section import DEFAULTS, FIRST_VERSION, Entry, settings_of
from toolkit.records import ingested, sets
from toolkit.records.ingested import InputOfPack, InputRecord
from toolkit.storage import Stat, json_files, store_of
from toolkit.storage.paths import exists, lacking, list_files, remove, stat, stat_each
from toolkit.storage.reading import stored_digest
from toolkit.storage.threads import for_each


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An input whose ingest was begun and has not ended well, with the shards that it may have written.

    Attributes:
        keys: of the inputs, if it is a pack.
    """

    input: str
    shards: list[str]
    keys: list[str] = []


def record_path(work: InputToIngest) -> str:
    return ingested.path_of(work.dataset, work.key)


def check_settings(works: Iterable[InputToIngest], formerly: Iterable[tuple[InputRecord, InputToIngest]] = ()) -> None:
    """Raise ConfigError if an input was ingested with other settings, unless that is to be overwritten.

    Args:
        works: the inputs.
        formerly: what was made of their inputs when they were packed otherwise, by its record, and what is made now.
    """
    own = ((json_files.load(record_path(work), InputRecord), work) for work in works)
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
        entries: of the section.
        inputs: that were ingested.

    Raises:
        ConfigError: if one was ingested with settings that no entry of its source has.
    """
    by_source: dict[str | None, list[dict[str, Any]]] = {}
    for entry in entries:
        ways = [entry] if entry.packs_as_told else [entry, entry.unpacked()]  # as inputs of earlier versions stay
        by_source.setdefault(entry.settings().source, []).extend(map(settings_of, ways))
    for record in inputs:
        wanted = by_source.get(record.settings.get("source"), [])
        if wanted and record.settings not in wanted:
            likest = min(wanted, key=lambda settings: len(_differences(record.settings, settings)))
            raise ConfigError(
                f"expected documents as the section `ingest:` says, got those of {record.input}, ingested "
                f"{_otherwise(record.settings, likest)}\nrun `toolkit ingest`"
            )


def _otherwise(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return how an input was ingested that is ingested otherwise now."""
    versions = [str(settings.get("reader_version", FIRST_VERSION)) for settings in (before, now)]
    by = f"by version {versions[0]} of the format {now.get('format')}, which has version {versions[1]} now"
    if not (found := _differences(before, now)):
        return f"{by} (docs/formats.md says what has changed)"
    return "with other settings" + (f", and {by}" if versions[0] != versions[1] else "") + ":\n  " + "\n  ".join(found)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each setting that differs, beside the version."""
    before, now = {**DEFAULTS, **before}, {**DEFAULTS, **now}
    edited = changes(before.get("code", {}), now.get("code", {}))
    code = [f"the code of the format has changed: {', '.join(edited)}"] if edited else []
    return code + [
        f"{key}: {before.get(key)!r} -> {now.get(key)!r}"
        for key in dict.fromkeys((*before, *now))
        if key != "reader_version" and not (code and key == "code") and before.get(key) != now.get(key)
    ]


def inputs_gone(works: Iterable[InputToIngest], dataset: Dataset) -> list[str]:
    """Return the paths of inputs that were ingested before, and are not among these; their documents are there."""
    known = {record_path(work) for work in works}
    found = [json_files.load(path, InputRecord) for path in ingested.paths(dataset, ".json") if path not in known]
    return sorted(path for record in found if record for path in record.paths)


def look_at(work: InputToIngest) -> list[Stat | None]:
    """Return what there is of each input."""
    return stat_each([file.path for file in work.files])


def still_done(work: InputToIngest, record: InputRecord, found: Sequence[Stat], settings: dict[str, Any]) -> bool:
    """Return whether what was made of an input, or pack, is as it was, and so is the input, and the settings."""
    return record.settings == settings and _is_same(work, record, found) and _is_whole(work, record)


def _is_whole(work: InputToIngest, record: InputRecord) -> bool:
    """Return whether what was made of an input is as it was, and its bad items were treated as is wanted now."""
    rejected = any(name.startswith("rejected.") for name in record.counts)
    if rejected and work.entry.settings().on_error == "error":
        return False
    set_name = work.entry.reader().attribute_set()
    for shard, output in record.shards.items():
        now = stat(work.dataset.shard_path(shard))
        if now is None or now.size != output.size:
            return False
        if set_name:
            made = sets.load_record(work.dataset, set_name, shard)
            if made is None or not sets.is_intact(work.dataset, set_name, shard, made):
                return False
    return True


def is_of_these(work: InputToIngest, record: InputRecord) -> bool:
    """Return whether what was made was made of just these inputs, as they were then."""
    return [each.key for each in _inputs_in(work, record)] == [file.key for file in work.files]


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


def _is_same(work: InputToIngest, record: InputRecord, found: Sequence[Stat]) -> bool:
    """Return whether inputs are those that were ingested; what is on the web is not read for that."""
    if not is_of_these(work, record):
        return False
    each = zip(work.files, _inputs_in(work, record), found, strict=True)
    other = [(file.path, was, now) for file, was, now in each if Stat(was.size, was.stamp) != now]
    if any(not store_of(path).can_list or was.size != now.size for path, was, now in other):
        return False
    return all(was.content == stored_digest(path, xxhash.xxh3_128()) for path, was, _ in other)


def why_not_done(work: InputToIngest) -> str:
    """Return why an input must be ingested; empty if it need not."""
    there = look_at(work)
    if lacks := [file.path for file, found in zip(work.files, there, strict=True) if found is None]:
        return f"there is {lacking(lacks[0])}" + (f" at {lacks[0]}" if work.is_pack else "")
    found = [each for each in there if each]
    record, damaged = json_files.load_told(record_path(work), InputRecord)
    if damaged:
        return "its record is damaged"
    if record is None:
        return "its ingest was interrupted" if exists(record_path(work) + ".started") else "not begun"
    if record.settings != (settings := settings_of(work.entry)):
        return "ingested " + _otherwise(record.settings, settings).partition(":\n")[0]
    if not _is_same(work, record, found):
        return "it has changed since it was ingested" + ("" if is_of_these(work, record) else ": it has other inputs")
    if _is_whole(work, record):
        return ""
    if record.deleted:
        return "its documents were deleted when they had been mixed"
    gone = [shard for shard in record.shards if not exists(work.dataset.shard_path(shard))]
    return f"its documents are gone: {gone[0]}" if gone else "its documents have changed"


def shards_of(works: Iterable[InputToIngest], dataset: Dataset) -> set[str]:
    """Return the shards that these inputs have written, or have begun."""
    paths = [record_path(work) for work in works]
    found = [*for_each(lambda path: json_files.load(path + ".started", Attempt), paths)]
    made = for_each(lambda path: json_files.load(path, InputRecord), paths)
    return {shard for record in (*found, *made) if record for shard in record.shards}


def recorded(work: InputToIngest) -> InputRecord | None:
    """Return the record of an input, if it and the settings are as they were; its documents may be gone."""
    record, there = json_files.load(record_path(work), InputRecord), look_at(work)
    found = [each for each in there if each]
    if record is None or len(found) < len(there) or record.settings != settings_of(work.entry):
        return None
    return record if _is_same(work, record, found) else None


def noted(work: InputToIngest) -> InputRecord | None:
    """Return the record of an input, if the settings are as they were; the input itself is not looked at."""
    record = json_files.load(record_path(work), InputRecord)
    return record if record is not None and record.settings == settings_of(work.entry) else None


def note_entry(work: InputToIngest, record: InputRecord) -> None:
    """Note in the record of an input that is done to which entry it belongs now, and what that tolerates."""
    limit = work.entry.settings().max_rejected
    if (record.entry, record.max_rejected) != (work.entry.name, limit):
        json_files.save(record_path(work), msgspec.structs.replace(record, entry=work.entry.name, max_rejected=limit))


def note_deletion(work: InputToIngest, record: InputRecord) -> None:
    """Note in an input's record that its shards are deleted on purpose; call it before they are."""
    if not record.deleted:
        json_files.save(record_path(work), msgspec.structs.replace(record, deleted=True))


def forget_attempt(work: InputToIngest) -> None:
    """Forget the attempt at an input that is done: it was killed, or could not delete its note, just before its end."""
    remove(record_path(work) + ".started")


def forget_attempts(works: Iterable[InputToIngest], dataset: Dataset) -> None:
    """Forget failed attempts at inputs that are not wanted any more, where they have left no shard."""
    known = {record_path(work) + ".started" for work in works}
    for path in ingested.paths(dataset, ".started"):
        attempt = json_files.load(path, Attempt)
        if path not in known and attempt and not any(exists(dataset.shard_path(shard)) for shard in attempt.shards):
            remove(path)


def carried_shards(dataset: Dataset, set_name: str) -> set[str] | None:
    """Return the shards of a set that ingest made of what its inputs carry; None for any other set.

    These are the shards of these inputs, by the records of either, whether the files are there or not; and files that
    are there.
    """
    found = sets.load_schema(dataset, set_name)
    formats = {str(key.settings.get("format")) for key in found.keys.values()} if found else set()
    if found is None or any("tagger" in key.settings for key in found.keys.values()):
        return None
    inputs = [json_files.load(path, InputRecord) for path in ingested.paths(dataset, ".json")]
    ours = (
        each
        for each in inputs
        if each and each.settings.get("format") in formats and each.settings.get("set", set_name) == set_name
    )
    return {
        *sets.recorded_shards(dataset, set_name),
        *(shard for each in ours for shard in each.shards),
        *list_files(dataset.attribute_path(set_name, "")),
    }


def unfinished(dataset: Dataset, among: Iterable[InputToIngest] | None = None) -> list[str]:
    """Return the paths of inputs whose ingest failed or was interrupted, and has not been done since.

    Args:
        dataset: whose records are read.
        among: the inputs that matter, if not all do.
    """
    paths = ingested.paths(dataset, ".started")
    if among is not None:
        ours = {record_path(work) + ".started" for work in among}
        paths = [path for path in paths if path in ours]
    attempts = [json_files.load(path, Attempt) for path in paths]
    return sorted(attempt.input for attempt in attempts if attempt)


def not_begun(works: Sequence[InputToIngest], dataset: Dataset, shards: Iterable[str]) -> list[str]:
    """Return the keys of the inputs without a record, an attempt, or a shard of theirs among those that there are."""
    noted = {*ingested.paths(dataset, ".json"), *ingested.paths(dataset, ".started")}
    left = [w for w in works if not {record_path(w), record_path(w) + ".started"} & noted]
    if not left:
        return []
    maker = makers(works)
    made = {work.shard for work in map(maker, shards) if work}
    return [work.key for work in left if work.shard not in made]
