"""The part of a version that is due, by what has changed since the last description.

Source: Croissant specification, "Versioning": PATCH, the same data in another form; MINOR, more data, the old still
there; MAJOR, data changed or removed. A document of another shape than ours raises an error of Python's (`TypeError`,
`KeyError` …), so that nobody takes it for one that may be replaced.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, Literal

import msgspec

from toolkit.describe.about import VERSION, listed
from toolkit.describe.croissant import path_part
from toolkit.describe.records import matching

Level = Literal["none", "PATCH", "MINOR", "MAJOR"]
_LEVELS: tuple[Level, ...] = ("none", "PATCH", "MINOR", "MAJOR")


def due(old: dict[str, Any], new: dict[str, Any]) -> tuple[Level, list[str]]:
    """Return what is due, and why, most important first."""
    reasons = list(_reasons(old, new))
    if not reasons:
        ignored = ("version", "datePublished", "dateModified", "@context")
        left, right = ({k: v for k, v in item.items() if k not in ignored} for item in (old, new))
        reasons = [("PATCH", "the description has changed")] if left != right else []
    if not reasons:
        return "none", []
    level = max((level for level, _ in reasons), key=_LEVELS.index)
    return level, [reason for result, reason in sorted(reasons, key=lambda r: -_LEVELS.index(r[0]))]


def fault(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return what is wrong with a new version that goes down, or stays although data have changed; empty if nothing."""
    before, after = old.get("version"), new.get("version")
    left, right = _numbers(before), _numbers(after)
    if left is None:
        return ""
    changed = [reason for level, reason in _file_reasons(old, new) if level != "PATCH"]
    if right is None:
        return f"expected about.version above {before}, got none, though {changed[0]}" if changed else ""
    if right < left:
        return f"expected about.version {before} or more, as it was before, got {after}"
    if changed and right == left:
        level, _ = due(old, new)
        return f"expected about.version {raised(str(before), level)} or more after {before}, got {after}: {changed[0]}"
    return ""


def _numbers(version: object) -> tuple[int, ...] | None:
    """Return MAJOR, MINOR and PATCH; None of what is no version."""
    match = VERSION.fullmatch(str(version))
    return tuple(map(int, match.groups())) if match else None


_PARTS = {"MAJOR": 1, "MINOR": 2, "PATCH": 3}
"""How many parts of a version a level says something of."""


def is_enough(old: str | None, new: str | None, level: Level) -> bool:
    """Return whether the new version is raised as is due."""
    left, right = _numbers(old), _numbers(new)
    if level == "none" or left is None:
        return True
    return right is not None and right[: _PARTS[level]] > left[: _PARTS[level]]


def raised(version: str, level: Level) -> str:
    """Return the version with a part raised, those behind it 0."""
    *before, last = (_numbers(version) or ())[: _PARTS[level]]
    return ".".join(map(str, [*before, last + 1, 0, 0][:3]))


def _reasons(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[Level, str]]:
    yield from _file_reasons(old, new)
    if old.get("conformsTo") != new.get("conformsTo"):
        yield "PATCH", "it conforms to another version of the specification"
        return
    otherwise = _stored_otherwise(old, new)
    left, right = _fields(old, otherwise), _fields(new, otherwise)
    for name, type_ in left.items():
        if name not in right:
            yield "MAJOR", f"{name} is not described any more"
        elif right[name] != type_:
            yield "MAJOR", f"{name} has another type"
    for name in right:
        if name not in left:
            yield "MINOR", f"{name} is newly described"


def _file_reasons(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[Level, str]]:
    """Yield what has changed of the data, as far as it is known: for files that grow, it is not, nor are new ones news.

    Where the lines of all files of a label are the same as before, the files were only cut or compressed otherwise. A
    file that is gone has another name now only if there are as many as before, and its bytes are under the same label:
    nobody is to miss a file, or find it under another language.
    """
    before, after, known, there = _files(old), _files(new), _paths(old), _paths(new)
    live = any(item.get("isLiveDataset") is True for item in (old, new))
    contents = _contents(old), _contents(new)
    kept = {place for place, _ in contents[0].items() & contents[1].items()}
    kept |= {(id_, "") for id_, _ in kept if all(p in kept for content in contents for p in content if p[0] == id_)}
    places: dict[tuple[str, str], list[str]] = {}
    for path, digest in after.items():
        if path not in known and len(after) == len(before):
            places.setdefault((digest, _label(new, path)), []).append(path)
    renamed: set[str] = set()
    for path, digest in before.items():
        if after.get(path) == digest or (path in there and path not in after):
            continue
        if _place(old, path) in kept:
            yield "PATCH", f"{path} has the same content in other parts, or compressed otherwise"
        elif path in after:
            yield "MAJOR", f"{path} has changed"
        elif others := places.get((digest, _label(old, path))):
            renamed.add(others.pop(0))
            yield "PATCH", f"{path} has another name"
        else:
            yield "MAJOR", f"{path} is gone"
    for path in after if not live else ():
        if path not in known and path not in renamed and _place(new, path) not in kept:
            yield "MINOR", f"{path} is new"


def _contents(document: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Return digests of the lines of file sets, by set and label; see `toolkit.describe.croissant`."""
    return {
        (str(node.get("@id")), str(item.get("name", ""))): str(item.get("value"))
        for node in document.get("distribution", ())
        for item in node.get("identifier") or ()
    }


def _place(document: dict[str, Any], path: str) -> tuple[str, str]:
    """Return the file set that a file belongs to, and its label."""
    for node in document.get("distribution", ()):
        if node.get("includes") and matching([path], listed(node["includes"])):
            return str(node.get("@id")), _label(document, path)
    return "", ""


_LABELS = ("language", "label")


def _label(document: dict[str, Any], path: str) -> str:
    """Return the label of a file, as the field reads it that is read from paths; empty if none does."""
    for record in document.get("recordSet", ()):
        for field in record.get("field", ()):
            source = field.get("source") or {}
            transform = source.get("transform") or {}
            if field.get("name") in _LABELS and "fileProperty" in source.get("extract", {}) and "regex" in transform:
                match = re.match(transform["regex"], path_part(path, source["extract"]["fileProperty"]))
                return match[1] if match else ""
    return ""


def _files(document: dict[str, Any]) -> dict[str, str]:
    """Return the checksums of data files by path; those of checksum files follow from them."""
    return {
        str(file.get("contentUrl")): str(file["sha256"])
        for file in document.get("distribution", ())
        if file.get("sha256") and not str(file.get("contentUrl")).endswith("_sha256.txt")
    }


def _paths(document: dict[str, Any]) -> set[str]:
    """Return all files that are listed, with a checksum or without."""
    return {str(file.get("contentUrl")) for file in document.get("distribution", ()) if "contentUrl" in file}


def _stored_otherwise(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    """Return file sets of the same content in another format, which alone may be why readers take them, or not."""
    formats = [
        {str(n.get("@id")): n.get("encodingFormat") for n in item.get("distribution", ()) if "includes" in n}
        for item in (old, new)
    ]
    contents = [
        {id_: {place: value for place, value in _contents(item).items() if place[0] == id_} for id_ in formats[0]}
        for item in (old, new)
    ]
    return {
        id_
        for id_, format_ in formats[0].items()
        if contents[0][id_] and contents[0][id_] == contents[1][id_] and format_ != formats[1].get(id_)
    }


def _fields(document: dict[str, Any], but: Collection[str] = ()) -> dict[str, Any]:
    """Return the types of the fields of record sets, by id, but not of those that are read from some file sets."""
    results: dict[str, Any] = {}

    def add(field: dict[str, Any]) -> None:
        many = bool(field.get("repeated") or field.get("isArray"))
        results[str(field.get("@id"))] = (field.get("dataType"), many)
        for inner in field.get("subField", ()):
            add(inner)

    for record in document.get("recordSet", ()):
        if not any(f'"@id":"{id_}"' in msgspec.json.encode(record.get("field")).decode() for id_ in but):
            for field in record.get("field", ()):
                add(field)
    return results
