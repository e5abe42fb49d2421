"""The lock of an output: by digests, what it was made of and what it holds. It is made of the manifest.

The lock has no path of a machine, and no time: the same mix gives the same lock wherever it is done.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from toolkit.errors import ConfigError, DataError, amount, short
from toolkit.execution.executors import Report
from toolkit.mix import bindings, join, publication
from toolkit.mix.settings import REJECTED
from toolkit.storage import json_files, outputs, paths


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a mix without digests of models, and their digest."""

    digest: str
    settings: dict[str, Any]


class LockedSet(msgspec.Struct, frozen=True, kw_only=True):
    """A joined set.

    Attributes:
        digest: Digest of the rest.
        keys: Keys of each its type, its name in the mix and the settings of its tagger, with the tagger's version;
            those are null in a set of another program.
        reads: Digests of the schemas of the sets it was made from, by name.
    """

    digest: str
    keys: dict[str, dict[str, Any]]
    reads: dict[str, str]


class LockedShard(msgspec.Struct, frozen=True, kw_only=True):
    """A shard: its number of documents, and xxh3-128 (hex) of its uncompressed bytes, and of those of its attributes
    in each joined set.
    """

    documents: int
    digest: str
    attributes: dict[str, str]


class LockedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part.

    Attributes:
        label: Label of its documents.
        documents: Number of documents.
        size, sha256: Size and sha256 of its uncompressed bytes; of a format that does not concatenate, of the encoded
            documents that the file was made of.
        files: Files of such a format, sha256 of the part's files as they are stored, by path; else none.
    """

    label: str
    documents: int
    size: int
    sha256: str
    files: dict[str, str]


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """The origins and the content of an output.

    Attributes:
        toolkit: Version.
        configuration: Configuration of the mix.
        sets: Sets that are joined; with streams under ``stream/set``.
        models: Names of the models of the sets' taggers and of the output format, by sha256.
        documents: Shards; with streams under ``stream/shard``.
        omitted: Shards that failed and were left out on request.
        parts: Parts by path below the output folder.
    """

    version: Literal[1] = 1
    toolkit: str
    configuration: Configuration
    sets: dict[str, LockedSet]
    models: dict[str, str]
    documents: dict[str, LockedShard]
    omitted: list[str]
    parts: dict[str, LockedPart]


def lock_of(manifest: publication.Manifest, *, concatenates: bool) -> Lock:
    """Return the lock of an output.

    Args:
        manifest: Manifest of the output.
        concatenates: True if the files of its format are their documents, one after the other.
    """
    settings = dict(manifest.settings)
    models = {digest: settings["options"][option] for option, digest in settings.pop("models", {}).items()}
    settings["format"] = _named(settings["format"])
    return Lock(
        toolkit=manifest.toolkit,
        configuration=Configuration(digest=json_files.json_digest(settings), settings=settings),
        sets={name: _set(keys, manifest.lineage.get(name, {})) for name, keys in manifest.sets.items()},
        models=manifest.models | models,
        documents={
            entry.key: LockedShard(documents=entry.rows, digest=entry.documents, attributes=entry.attributes)
            for entry in manifest.inputs
        },
        omitted=sorted(manifest.omitted),
        parts={
            part.path: LockedPart(
                label=part.label,
                documents=part.documents,
                size=part.content_size,
                sha256=part.content_sha256,
                files={file.path: file.sha256 for file in part.files if not concatenates and part.label != REJECTED},
            )
            for part in manifest.parts
        },
    )


def contents_of(lock: Lock) -> dict[str, str]:
    """Return the digests of the documents of a lock, by shard."""
    is_named = any(stream["name"] for stream in lock.configuration.settings["streams"])
    return {key.partition("/")[2] if is_named else key: shard.digest for key, shard in lock.documents.items()}


def input_of(work: bindings.ShardToMix, report: Report) -> publication.InputEntry:
    """Return a shard as the manifest of its mix would have it.

    Raises:
        DataError: if an input is not what it should be.
    """
    state, attributes = join.inputs_of(work)
    report(state.rows, 0)
    return publication.InputEntry(
        stream=work.stream.name, shard=work.shard, documents=state.content, attributes=attributes, rows=state.rows
    )


def _set(keys: list[dict[str, Any]], reads: dict[str, str]) -> LockedSet:
    results = {}
    for key in keys:
        settings = key["settings"] and dict(key["settings"])
        if settings and isinstance(settings.get("tagger"), str):
            settings["tagger"] = _named(settings["tagger"])
        results[key["key"]] = {"name": key["name"], "type": key["type"], "settings": settings}
    return LockedSet(digest=_digest_of(results, reads), keys=results, reads=reads)


def _digest_of(keys: dict[str, dict[str, Any]], reads: dict[str, str]) -> str:
    return json_files.json_digest([keys, reads])


def _named(plugin: str) -> str:
    """Return the name of a plugin; of one in a file the file without its folder, which is another elsewhere."""
    return plugin.rpartition("/")[2] if ":" in plugin else plugin


# --- on disk ----------------------------------------------------------------------------------------------------------


def save(output: outputs.NamedOutput, lock: Lock) -> None:
    """Write a lock: JSON, sorted by key, for people to read, too."""
    encoded = msgspec.json.encode(lock, order="sorted")
    output.save(msgspec.json.format(encoded, indent=1) + b"\n")


def load(path: str) -> Lock:
    """Return a lock.

    Raises:
        ConfigError: if there is none, or the file is none.
    """
    remedy = "restore it, or let `toolkit mix -c FILE --lock` write it"
    try:
        lock = json_files.load_strictly(path, Lock, remedy)
    except DataError as error:
        raise ConfigError(str(error).replace("a record of", "a lock of", 1)) from None
    if lock is None:
        raise ConfigError(f"{path}: expected the lock of an output, there is none; {remedy}{paths.not_in(path)}")
    digests = {"configuration": (lock.configuration.digest, json_files.json_digest(lock.configuration.settings))}
    digests |= {f"sets.{name}": (item.digest, _digest_of(item.keys, item.reads)) for name, item in lock.sets.items()}
    for place, (recorded, digest) in digests.items():
        if recorded != digest:
            raise ConfigError(
                f"{path}: {place}.digest: expected {digest}, the digest of what it is about, got "
                f"{recorded}: somebody has changed the lock; {remedy}"
            )
    return lock


# --- differences ------------------------------------------------------------------------------------------------------


def differences(locked: Lock, lock: Lock) -> list[str]:
    """Return the differences of inputs and settings from a lock. There is a line for each version, setting, set, model
    and document; parts are left out.
    """
    lines = [f"toolkit: {_got(locked.toolkit, lock.toolkit)}"] if locked.toolkit != lock.toolkit else []
    lines += _diff("configuration", locked.configuration.settings, lock.configuration.settings)
    for name, before, now in _pairs(locked.sets, lock.sets):
        sets = ({**item.keys, "made from": item.reads} for item in (before, now) if item)
        lines += _diff(f"set {name}", *sets) if before and now else [f"set {name}: {_missing(before)}"]
    lines += _models(locked.models, lock.models)
    for name, shard, other in _pairs(locked.documents, lock.documents):
        lines += _shard(name, shard, other)
    for name in sorted({*locked.omitted} ^ {*lock.omitted}):
        was = name in locked.omitted
        state = "it to be left out, as in the lock" if was else "it, as in the lock, but it was left out"
        lines.append(f"shard {name}: expected {state}")
    return lines


def part_differences(expected: Lock, lock: Lock) -> list[str]:
    """Return the differences of parts from a lock, a line each."""
    lines = []
    for name, before, now in _pairs(expected.parts, lock.parts):
        if before is None or now is None:
            lines.append(f"part {name}: {_missing(before)}")
        elif before.sha256 != now.sha256:
            lines.append(
                f"part {name}: expected {amount(before.documents, 'document')} with the sha256 {before.sha256} "
                f"(uncompressed), got {now.documents} with {now.sha256}"
            )
        else:
            fields = ({**msgspec.structs.asdict(part), "files": [*sorted(part.files)]} for part in (before, now))
            lines += _diff(f"part {name}", *fields)
    return lines


def _pairs(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield unequal values of two mappings by key; None is missing."""
    for name in sorted({*expected, *actual}):
        before, now = expected.get(name), actual.get(name)
        if before != now:
            yield name, before, now


def _missing(expected: object) -> str:
    return "the lock has it, but it is missing" if expected is not None else "it is not in the lock"


def _shard(name: str, expected: LockedShard | None, locked_shard: LockedShard | None) -> Iterator[str]:
    if expected is None or locked_shard is None:
        yield f"shard {name}: {_missing(expected)}"
        return
    if (expected.digest, expected.documents) != (locked_shard.digest, locked_shard.documents):
        documents, got = amount(expected.documents, "document"), f"{locked_shard.documents} with {locked_shard.digest}"
        yield f"shard {name}: expected {documents} with the digest {expected.digest}, got {got}"
    for set_name, before, now in _pairs(expected.attributes, locked_shard.attributes):
        if before is None or now is None:
            yield f"shard {name}: the set {set_name}: {_missing(before)}"
        else:
            yield f"shard {name}: expected attributes of the set {set_name} with the digest {before}, got {now}"


def _models(expected: Mapping[str, str], actual: Mapping[str, str]) -> Iterator[str]:
    """Yield the differing models. Another name of the same model is no difference."""
    missing = {digest: expected[digest] for digest in expected.keys() - actual.keys()}
    new = {digest: actual[digest] for digest in actual.keys() - expected.keys()}
    for name in sorted({*missing.values(), *new.values()}):
        digests = (sorted(digest for digest, other in models.items() if other == name) for models in (missing, new))
        before, now = (" and ".join(listed) or "none" for listed in digests)
        yield f"model {name}: expected sha256 {before}, got {now}"


def _diff(place: str, expected: Any, actual: Any) -> Iterator[str]:
    """Yield the places of differences of two values. Lists of named items are compared by name."""
    before, now = _by_name(expected), _by_name(actual)
    if not (isinstance(before, dict) and isinstance(now, dict)):
        if expected != actual:
            yield f"{place}: {_got(expected, actual)}"
        return
    for key in dict.fromkeys((*before, *now)):
        inner = place if key in _UNSAID else f"{place}: {key}"
        yield from _diff(inner, before.get(key), now.get(key))
    if before == now and [*before] != [*now] and isinstance(expected, list):
        yield f"{place}: order: {_got([*before], [*now])}"


_UNSAID = ("streams", "")
"""Keys that say nothing: of a mix without streams, the only one has no name."""


def _by_name(value: Any) -> Any:
    """Return a list of named items (streams, rules, sets) as a mapping. Anything else is unchanged."""
    if not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
        return value
    names = [item.get("name", item.get("set")) for item in value]
    distinct = None not in names and len({*names}) == len(names)
    return dict(zip(names if distinct else map(str, range(len(value))), value, strict=True))


def _got(expected: Any, actual: Any) -> str:
    before, now = ("none" if value is None else short(value, 200) for value in (expected, actual))
    return f"expected {before}, got {now}"
