"""Sets as they are declared on disk: comparison with a section's plan, and declaration."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import xxhash

from toolkit.config.plugin_code import changes
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, short
from toolkit.records import sets as records
from toolkit.storage.paths import list_files


def digest_of(set_schema: records.SetSchema | None) -> str:
    """Return the digest of a set, for sets made from it.

    None is a set of another program.
    """
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(set_schema.of_values() if set_schema else None))


def differences(old: records.SetSchema, new: records.SetSchema) -> list[str]:
    """Return the differences between two schemas, a line each."""
    lines = []
    before, after = msgspec.to_builtins(old.of_values()), msgspec.to_builtins(new.of_values())

    def compare(a: Any, b: Any, path: str) -> None:
        if isinstance(a, dict) and isinstance(b, dict):
            for key in dict.fromkeys((*a, *b)):
                compare(a.get(key, "absent"), b.get(key, "absent"), f"{path}.{key}" if path else str(key))
        elif a != b:
            lines.append(f"{path}: " + " -> ".join(item if item == "absent" else short(item) for item in (a, b)))

    compare(before["keys"], after["keys"], "")
    compare(before["reads"], after["reads"], "made from")
    if not lines and list(before["keys"]) != list(after["keys"]):
        lines.append(f"order of keys: {', '.join(before['keys'])} -> {', '.join(after['keys'])}")
    return lines


def edits(old: records.SetSchema, new: records.SetSchema) -> list[str]:
    """Return the taggers with different code in two schemas, a line each.

    Code that one of them does not know (an earlier version of the toolkit wrote it) is not compared.
    """
    return [
        f"the code of {key} has changed: {', '.join(files)}"
        for key, key_schema in new.keys.items()
        if key in old.keys and (files := changes(old.keys[key].code, key_schema.code))
    ]


def made_otherwise(set_name: str, subject: str, changes: Sequence[str], command: str = "tag") -> ConfigError:
    """Return the error for a set made with other settings or code.

    Args:
        set_name: Set name of it.
        subject: ``settings`` or ``code`` differs.
        changes: Result of `differences` or `edits`.
        command: Command that makes it, as its section is called.
    """
    can_accept = (subject, command) == ("code", "tag")
    accept = f", or `toolkit tag --accept-code {set_name}` if no value has changed" if can_accept else ""
    return ConfigError(
        f"expected the set {set_name!r} as the section `{command}:` says, got one that was made with other "
        f"{subject}:\n  "
        + "\n  ".join(changes)
        + f"\nchoose another set name and run `toolkit {command}` (the old values stay), or `toolkit {command} "
        f"--overwrite`{accept}"
    )


def check_made(dataset: Dataset, names: Iterable[str], planned: Mapping[str, records.SetSchema], command: str) -> None:
    """Check existing sets against the section's plan.

    Sets that are not in it are ignored.

    Raises:
        ConfigError: if one was made otherwise.
    """
    for name in names:
        set_schema = records.load_schema(dataset, name)
        if set_schema and name in planned and (results := differences(set_schema, planned[name])):
            raise made_otherwise(name, "settings", results, command)


def check_ours(dataset: Dataset, set_name: str, command: str) -> None:
    """Check our records of a section's set, if it has files.

    Raises:
        ConfigError: if another program made them, or the records are gone.
    """
    folder = dataset.attribute_path(set_name, "")
    foreign = records.load_schema(dataset, set_name) is None and next(list_files(folder), None) is not None
    if foreign and records.load_schema(dataset, set_name) is None:  # or another share has just declared it
        raise ConfigError(
            f"{folder}: expected a set that this toolkit made, got files without its records; "
            f"choose another set name, `toolkit {command} --overwrite`, or leave it out of the section"
        )


def what_to_declare(
    dataset: Dataset,
    set_name: str,
    new: records.SetSchema,
    *,
    overwrite: bool,
    is_accepted: bool = False,
    command: str = "tag",
) -> Literal["changed", "learned"] | None:
    """Return the kind of change to a set; None if its schema stays.

    ``changed``: values change; ``learned``: only their description does.

    Raises:
        ConfigError: if it was made with other settings or other code, or by another program, and neither `overwrite`
            nor `is_accepted` is given.
    """
    old = records.load_schema(dataset, set_name)
    if old is None:
        if not overwrite:
            check_ours(dataset, set_name, command)
        return "changed"
    if results := differences(old, new):
        if not overwrite and records.recorded_shards(dataset, set_name):
            raise made_otherwise(set_name, "settings", results, command)
        return "changed"
    if results := edits(old, new):
        result = records.recorded_shards(dataset, set_name)
        if result and not overwrite and not is_accepted:
            raise made_otherwise(set_name, "code", results, command)
        return "changed" if overwrite and not is_accepted else "learned"
    return "learned" if old != new else None  # it did not know the code, or what a value is was worded otherwise


def declare_set(dataset: Dataset, set_name: str, new: records.SetSchema, *, forget: bool) -> None:
    """Save the schema of a set, and forget records of other settings."""
    old = records.load_schema(dataset, set_name)
    settings = {key: key_schema.settings for key, key_schema in new.keys.items()}
    edited = old is not None and edits(old, new)  # of which a record says nothing
    made_otherwise = []
    for shard in records.recorded_shards(dataset, set_name) if forget and old != new else ():
        record = records.load_record(dataset, set_name, shard)
        if edited or record is None or record.settings != settings:  # or another share has just written it
            made_otherwise.append(shard)
    records.forget_all(dataset, [set_name], made_otherwise)
    records.save_schema(dataset, set_name, new)
