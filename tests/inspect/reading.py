"""Records as mlcroissant reads them beside the raw lines: the normalisation that docs/croissant.md describes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.pipeline.conftest import JsonRows, read_rows


def load(path: Path) -> Any:
    """The dataset, without an error or a warning."""
    import mlcroissant

    found = mlcroissant.Dataset(str(path))
    assert found.metadata.ctx.issues.errors == set()
    assert found.metadata.ctx.issues.warnings == set()
    return found


def record_sets(path: Path) -> dict[str, dict[str, Any]]:
    """The record sets that are read from files, by id."""
    return {each["@id"]: each for each in json.loads(path.read_text())["recordSet"] if "data" not in each}


def lines_of(folder: Path, pattern: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """All rows of the files that match, in the order of their paths: path, row, value."""
    for path in sorted(folder.glob(pattern)):
        for number, row in enumerate(read_rows(path)):
            yield str(path.relative_to(folder)), number, row


def same(read: Any, raw: Any) -> bool:
    """Whether a value that was read is the raw one, in what is described of it."""
    if raw is None:
        return read is None or _is_empty(read) or (isinstance(read, list) and len(read) == 1 and _is_empty(read[0]))
    if isinstance(raw, dict):
        return isinstance(read, dict) and all(same(value, raw.get(_name(id_))) for id_, value in read.items())
    if isinstance(raw, list):
        if isinstance(read, dict):
            raw_span = dict(zip(("start", "end", "score"), raw, strict=True))
            return same(read, raw_span)
        return isinstance(read, list) and len(read) == len(raw) and all(map(same, read, raw))
    if isinstance(raw, str):
        return read in (raw, raw.encode()) or (not isinstance(read, bytes) and _same_typed(read, raw))
    if isinstance(raw, bool) or isinstance(read, bool):
        return read is raw
    return isinstance(read, int | float) and (read == raw or abs(read - raw) <= 1e-15 + 1e-12 * abs(raw))


def _is_empty(read: Any) -> bool:
    return isinstance(read, dict) and all(value is None or _is_empty(value) for value in read.values())


def _name(id_: str) -> str:
    return unquote(id_.rpartition("/")[2])


def _same_typed(read: Any, raw: str) -> bool:
    import pandas as pd

    if isinstance(read, pd.Timestamp):
        return bool(read == pd.Timestamp(raw))
    return isinstance(read, int) and str(read) == raw


def value_at(row: dict[str, Any], name: str, opened: str | None) -> Any:
    """What a field of a record stands for: a key of the row, of an opened object in it, or dotted keys."""
    inside = row.get(opened) if opened else None
    for place in (row, inside):
        if isinstance(place, dict):
            found = _at(place, name)
            if found is not None:
                return found
    return None


def _at(value: Any, name: str) -> Any:
    """By the whole name, or by the keys that it is put together from; a key may have dots itself."""
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    parts = name.split(".")
    found = (_at(value.get(".".join(parts[:i])), ".".join(parts[i:])) for i in range(1, len(parts)))
    return next((each for each in found if each is not None), None)


def differences(
    read: list[dict[str, Any]], raw: JsonRows, opened: str | None, places: tuple[str, ...] = ()
) -> list[str]:
    """What is not as in the raw rows; fields of `places` are left to the caller."""
    found = [] if len(read) == len(raw) else [f"{len(read)} records of {len(raw)} rows"]
    for number, (record, row) in enumerate(zip(read, raw, strict=False)):
        for id_, value in record.items():
            name = unquote(id_.partition("/")[2])
            if opened and row[opened] == [] and value == []:  # a document that Dolma's deduper skipped
                continue
            if name not in places and not same(value, value_at(row, name, opened)):
                found.append(f"row {number}: {id_}: {value!r:.100} for {value_at(row, name, opened)!r:.100}")
    return found


def leaves(value: Any, name: str = "") -> Iterator[str]:
    """Dotted names of all that a row has."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and all(isinstance(each, dict | None) for each in value):
        for each in value:
            yield from leaves(each, name)
    elif value is not None:
        yield name


def described(record: dict[str, Any]) -> set[str]:
    """Dotted names of all that a record set describes."""
    found = set()
    for field in record["field"]:
        found |= {f"{field['name']}.{inner['name']}" for inner in field.get("subField", ())} or {field["name"]}
        if field.get("subField") and {inner["name"] for inner in field["subField"]} == {"start", "end", "score"}:
            found.add(field["name"])
    return found


def left_out(record: dict[str, Any], raw: JsonRows, opened: str | None) -> set[str]:
    """What rows have and the record set neither describes nor names as not described."""
    there = {name for row in raw for name in leaves(row)}
    if opened:
        there = {name.removeprefix(f"{opened}.") if name.startswith(f"{opened}.") else name for name in there}
    named = record["description"].partition("Not described")[2]
    refused = {each.strip().partition(" (")[0] for each in named.partition(":")[2].split(";")} - {""}
    known = described(record)
    return {
        name
        for name in there
        if name not in known and not any(name == each or name.startswith(f"{each}.") for each in refused)
    }
