"""Compare a description with the last one, and find the due version.

Source: Croissant specification, "Versioning": PATCH, the same data in another form; MINOR, more data, the old still
there; MAJOR, data changed or removed. A document of another shape than ours raises an error of Python's (`TypeError`,
`KeyError` …), so that nobody takes it for one that may be replaced.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, Literal

import msgspec

from toolkit.describe import about, croissant, record_types

Level = Literal["none", "PATCH", "MINOR", "MAJOR"]
_LEVELS: tuple[Level, ...] = ("none", "PATCH", "MINOR", "MAJOR")


def due(old: dict[str, Any], new: dict[str, Any]) -> tuple[Level, list[str]]:
    """Return the level to raise, and the reasons, most important first."""
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
    """Return the fault of a version, if any. It must not go down, nor stay when data have changed."""
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
    match = about.VERSION.fullmatch(str(version))
    return tuple(map(int, match.groups())) if match else None


_PARTS = {"MAJOR": 1, "MINOR": 2, "PATCH": 3}
"""How many parts of a version a level says something of."""


def is_enough(old: str | None, new: str | None, level: Level) -> bool:
    """Return true if the new version is raised enough."""
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
    """Yield the known changes of the data. Files that grow have unknown changes, and new ones are no news.

    Where the lines of all files of a label are the same as before, the files were only cut or compressed otherwise. A
    file that is gone has another name now only if there are as many as before, and its bytes are under the same label:
    nobody is to miss a file, or find it under another language.
    """
    before, after, old_paths, new_paths = _files(old), _files(new), _paths(old), _paths(new)
    live = any(item.get("isLiveDataset") is True for item in (old, new))
    left, right = _contents(old), _contents(new)
    same = {(id_, label) for id_, lines in left.items() for label, _ in lines.items() & right.get(id_, {}).items()}
    same |= {(id_, "") for id_, lines in left.items() if lines and lines == right.get(id_)}
    places: dict[tuple[str, str], list[str]] = {}
    for path, digest in after.items():
        if path not in old_paths and len(after) == len(before):
            places.setdefault((digest, _label(new, path)), []).append(path)
    renamed: set[str] = set()
    for path, digest in before.items():
        if after.get(path) == digest or (path in new_paths and path not in after):
            continue
        if _place(old, path) in same:
            yield "PATCH", f"{path} has the same content in other parts, or compressed otherwise"
        elif path in after:
            yield "MAJOR", f"{path} has changed"
        elif paths := places.get((digest, _label(old, path))):
            renamed.add(paths.pop(0))
            yield "PATCH", f"{path} has another name"
        else:
            yield "MAJOR", f"{path} is gone"
    for path in after if not live else ():
        if path not in old_paths and path not in renamed and _place(new, path) not in same:
            yield "MINOR", f"{path} is new"


def _contents(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return digests of the lines of file sets, by set and label; see `toolkit.describe.croissant`."""
    return {
        str(node.get("@id")): {str(item.get("name", "")): str(item.get("value")) for item in node["identifier"]}
        for node in document.get("distribution", ())
        if node.get("identifier")
    }


def _place(document: dict[str, Any], path: str) -> tuple[str, str]:
    """Return the file set of a file, and its label."""
    for node in document.get("distribution", ()):
        if node.get("includes") and record_types.matching([path], about.as_list(node["includes"])):
            return str(node.get("@id")), _label(document, path)
    return "", ""


_LABELS = ("language", "label")


def _label(document: dict[str, Any], path: str) -> str:
    """Return a file's label by its path field; empty without one."""
    for record in document.get("recordSet", ()):
        for field in record.get("field", ()):
            source = field.get("source") or {}
            transform = source.get("transform") or {}
            if field.get("name") in _LABELS and "fileProperty" in source.get("extract", {}) and "regex" in transform:
                match = re.match(transform["regex"], croissant.path_part(path, source["extract"]["fileProperty"]))
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
    """Return all files of the list, with or without a checksum."""
    return {str(file.get("contentUrl")) for file in document.get("distribution", ()) if "contentUrl" in file}


def _stored_otherwise(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    """Return file sets with the same content in another format. Readers may take one of them only."""
    formats = [
        {str(n.get("@id")): n.get("encodingFormat") for n in item.get("distribution", ()) if "includes" in n}
        for item in (old, new)
    ]
    after = _contents(new)
    same = (id_ for id_, lines in _contents(old).items() if lines == after.get(id_))
    return {id_ for id_ in same if formats[0].get(id_) != formats[1].get(id_)}


def _fields(document: dict[str, Any], but: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields' types by id, except those of some file sets."""
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
