"""Which part of a version is due, by what has changed since the last description.

Source: Croissant specification, "Versioning": PATCH, the same data in another form; MINOR, more data, the old still
there; MAJOR, data changed or removed.
"""

from collections.abc import Iterator
from typing import Any, Literal

from toolkit.describing.about import VERSION

Level = Literal["none", "PATCH", "MINOR", "MAJOR"]
_LEVELS: tuple[Level, ...] = ("none", "PATCH", "MINOR", "MAJOR")


def due(old: dict[str, Any], new: dict[str, Any]) -> tuple[Level, list[str]]:
    """What is due, and why, most important first."""
    reasons = list(_reasons(old, new))
    if not reasons:
        ignored = ("version", "datePublished", "dateModified", "@context")
        left, right = ({k: v for k, v in each.items() if k not in ignored} for each in (old, new))
        reasons = [("PATCH", "the description has changed")] if left != right else []
    if not reasons:
        return "none", []
    level = max((level for level, _ in reasons), key=_LEVELS.index)
    return level, [reason for found, reason in sorted(reasons, key=lambda r: -_LEVELS.index(r[0]))]


def is_enough(old: str | None, new: str | None, level: Level) -> bool:
    """Whether the new version is raised as is due."""
    before, after = (VERSION.fullmatch(str(each)) for each in (old, new))
    if level == "none" or before is None:
        return True
    if after is None:
        return False
    left, right = (tuple(map(int, found.groups())) for found in (before, after))
    part = {"MAJOR": 1, "MINOR": 2, "PATCH": 3}[level]
    return right[:part] > left[:part]


def raised(version: str, level: Level) -> str:
    """The version with a part raised."""
    found = VERSION.fullmatch(version)
    assert found
    major, minor, patch = map(int, found.groups())
    if level == "MAJOR":
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if level == "MINOR" else f"{major}.{minor}.{patch + 1}"


def _reasons(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[Level, str]]:
    live = any(each.get("isLiveDataset") is True for each in (old, new))
    before, after = ({}, {}) if live else (_files(old), _files(new))
    moved = set(before.values()) & set(after.values())
    for path, digest in before.items():
        if after.get(path, "") == digest:
            continue
        if digest in moved and path not in after:
            yield "PATCH", f"{path} has another name"
        elif path in after:
            yield "MAJOR", f"{path} has changed; if only its compression has, PATCH is enough"
        else:
            yield "MAJOR", f"{path} is gone"
    for path, digest in after.items():
        if path not in before and digest not in moved:
            yield "MINOR", f"{path} is new"
    if old.get("conformsTo") != new.get("conformsTo"):
        yield "PATCH", "it conforms to another version of the specification"
        return
    left, right = _fields(old), _fields(new)
    for name, type_ in left.items():
        if name not in right:
            yield "MAJOR", f"{name} is not described any more"
        elif right[name] != type_:
            yield "MAJOR", f"{name} has another type"
    for name in right:
        if name not in left:
            yield "MINOR", f"{name} is newly described"


def _files(document: dict[str, Any]) -> dict[str, str]:
    """Checksums of data files by path; those of checksum files follow from them."""
    return {
        str(file.get("contentUrl")): str(file["sha256"])
        for file in document.get("distribution", ())
        if file.get("sha256") and not str(file.get("contentUrl")).endswith("_sha256.txt")
    }


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    """Types of record sets and fields, by id."""
    found: dict[str, Any] = {}

    def add(field: dict[str, Any]) -> None:
        many = bool(field.get("repeated") or field.get("isArray"))
        found[str(field.get("@id"))] = (field.get("dataType"), many)
        for inner in field.get("subField", ()):
            add(inner)

    for record in document.get("recordSet", ()):
        for field in record.get("field", ()):
            add(field)
    return found
