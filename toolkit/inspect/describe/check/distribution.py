"""The files of a Croissant file: those that it lists, those that its globs match, those that are there."""

import hashlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from toolkit.inspect import targets, validation
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check.properties import is_ours, kind_of
from toolkit.inspect.describe.facts.common import MEDIA_TYPES, matches, matching, media_type
from toolkit.mix import publish
from toolkit.mix.settings import REJECTED
from toolkit.storage.paths import is_folder, join, list_files
from toolkit.storage.reading import stored_digest

_UNITS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT]?)i?B?|bytes)", re.IGNORECASE)
_MIXED = media_type("")
_HASHES = {"sha256": 64, "md5": 32}


@dataclass
class Distribution:
    """What is listed and what is there.

    Attributes:
        folder: of the Croissant file; all paths are below it.
        ours: whether `toolkit croissant` wrote the file, so that all is known that it says.
        there: all files.
        listed: FileObjects by path.
        sets: paths that each FileSet matches, by its id.
    """

    folder: str
    ours: bool
    live: bool
    there: list[str]
    listed: dict[str, dict[str, Any]] = field(default_factory=dict)
    sets: dict[str, list[str]] = field(default_factory=dict)


def read(path: str, document: dict[str, Any], files: Sequence[dict[str, Any]]) -> tuple[Distribution, list[str]]:
    """The files of a document, and what is wrong with the nodes that list them.

    Args:
        path: of the Croissant file.
        document: its content.
        files: the nodes of its distribution.
    """
    folder = path.rpartition("/")[0] or "."
    there = sorted(list_files(folder, hidden=True)) if is_folder(folder) else []
    found = Distribution(folder, is_ours(document), document.get("isLiveDataset") is True, there)
    faults: list[str] = []
    known = set(there)
    for node in files:
        if kind_of(node) == "FileObject":
            faults += _object(found, node, known)
        elif not node.get("containedIn"):
            faults += _set(found, node)
    faults += _unlisted(found, files)
    return found, [f"{path}: {fault}" for fault in faults]


def bytes_of(node: dict[str, Any]) -> int | None:
    """The size that a FileObject states, if it is in bytes."""
    found = _SIZE.fullmatch(str(node.get("contentSize", "")).strip())
    exact = found and not _UNITS[(found[2] or "").upper()] and "." not in found[1]
    return int(found[1]) if found and exact else None


def stored_hash(path: str, name: str) -> str:
    """The checksum of a file's bytes, by the name of the property."""
    return stored_digest(path, hashlib.new(name))


def path_of(url: str, there: set[str]) -> str:
    """The file that a relative URL leads to, be it quoted as URLs are or not."""
    return unquote(url) if unquote(url) in there else url


def _object(found: Distribution, node: dict[str, Any], known: set[str]) -> Iterator[str]:
    id_, url = node.get("@id"), node.get("contentUrl")
    if not isinstance(node.get("encodingFormat"), str | list):
        yield f"{id_}: expected encodingFormat, got {node.get('encodingFormat')!r}"
    if not isinstance(url, str) or not url:
        if not node.get("containedIn"):
            yield f"{id_}: expected contentUrl, got {url!r}"
        return
    if re.match(r"[a-z][a-z0-9+.-]*://", url) or node.get("containedIn"):
        return
    path = path_of(url, known)
    if posixpath.isabs(path) or posixpath.normpath(path).split("/")[0] == "..":
        yield f"{id_}: expected a file below the folder of the Croissant file, got {url!r}"
        return
    if path in found.listed:
        yield f"{id_}: expected each file once, got {url!r} again"
    found.listed[path] = node
    if path not in known:
        yield f"{id_}: expected the file {url}, got none there"
    for name, length in _HASHES.items():
        if name in node and not re.fullmatch(rf"[0-9a-f]{{{length}}}", str(node[name])):
            yield f"{id_}: expected {name} of {length} hexadecimal digits in lower case, got {node[name]!r:.80}"
    if not found.live and not (node.get("sha256") or node.get("md5")):
        yield f"{id_}: expected sha256, because the dataset is not live, got none"
    yield from _size_faults(found, node)
    kind = media_type(path)
    if found.ours and kind in MEDIA_TYPES.values() and node.get("encodingFormat") != kind:
        yield f"{id_}: expected encodingFormat {kind}, got {node.get('encodingFormat')!r}"


def _size_faults(found: Distribution, node: dict[str, Any]) -> Iterator[str]:
    size = node.get("contentSize")
    if found.ours and not re.fullmatch(r"\d+ B", str(size)) and not (found.live and size is None):
        yield f"{node.get('@id')}: expected contentSize in bytes (such as 1128 B), got {size!r}"
    elif size is not None and not _SIZE.fullmatch(str(size).strip()):
        yield f"{node.get('@id')}: expected contentSize as a number of bytes, or with a unit, got {size!r}"


def _set(found: Distribution, node: dict[str, Any]) -> Iterator[str]:
    id_ = str(node.get("@id"))
    globs = [str(glob) for glob in listed(node.get("includes"))]
    if not isinstance(node.get("encodingFormat"), str | list):
        yield f"{id_}: expected encodingFormat, got {node.get('encodingFormat')!r}"
    known = set(found.there)
    for glob in globs or [""]:
        if glob not in known and not any(_includes(each, glob) for each in found.there):
            yield f"{id_}: expected files that match {glob!r}, got none"
    found.sets[id_] = matching(found.there, globs)


def _includes(path: str, glob: str) -> bool:
    """Under either reading of globs: ``**/`` may or may not be no folder at all."""
    return matches(path, glob) or matches(path, glob.replace("**/", ""))


# --- what is there ----------------------------------------------------------------------------------------------------


def _unlisted(found: Distribution, files: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Files that a glob matches and nothing lists, and the reverse; live data have such."""
    if found.live:
        return
    sets: dict[str, list[str]] = {}
    for id_, paths in found.sets.items():
        for path in paths:
            sets.setdefault(path, []).append(id_)
        if found.listed and (found.ours or any(path in found.listed for path in paths)):
            for path in paths:
                if path not in found.listed:
                    yield f"{id_}: expected only files that are listed, its globs match {path}, too"
    if not found.ours:
        return
    kinds = {str(node.get("@id")): node.get("encodingFormat") for node in files if kind_of(node) == "FileSet"}
    wrong: set[str] = set()
    for path, node in found.listed.items():
        kind, id_ = node.get("encodingFormat"), str(node.get("@id"))
        by = sets.get(path, [])
        if len(by) > 1:
            yield f"{id_}: expected one FileSet that matches it, got {' and '.join(by)}"
        if not by and not targets.is_checksum_file(path):
            yield f"{id_}: expected a FileSet that matches it, got none"
        if by and kinds[by[0]] not in (kind, _MIXED) and by[0] not in wrong:
            wrong.add(by[0])
            yield f"{by[0]}: expected encodingFormat {kind}, as that of {path}, got {kinds[by[0]]}"
    for path in _published(found):
        if path not in found.listed:
            yield f"expected {path} among the files, got none"
    yield from _without_documents(found)


def _published(found: Distribution) -> list[str]:
    """The data files of an output: those of its manifest, and those like the listed ones that lie beside them."""
    manifest = publish.load_manifest(found.folder)
    recognised = targets.recognise(found.folder)
    if recognised is None or recognised.kind not in ("output", "release"):
        return []
    parts = {part.path: part.label for part in manifest.parts} if manifest else {}
    suffixes = tuple({_suffix(path) for path in found.sets.get("documents-files", ())})
    others = [path for path in targets.data_files(found.folder) if path not in found.listed and path not in parts]
    others = [
        path for path in others if path.endswith(suffixes) and not validation.is_rejected(join(found.folder, path))
    ]
    ours = [path for path, label in parts.items() if label != REJECTED and not path.startswith("../")]
    return [*ours, *others]


def _suffix(path: str) -> str:
    return "." + posixpath.basename(path).partition(".")[2]


def _without_documents(found: Distribution) -> Iterator[str]:
    """Files of attributes that are those of no documents."""
    documents = {path.partition("/")[2] for path in found.sets.get("documents-files", ())}
    for id_, paths in found.sets.items():
        for path in paths:
            if id_.startswith("attributes-") and (shard := path.split("/", 2)[-1]) not in documents:
                yield f"{id_}: expected the documents of {path} among the files, got no documents/{shard}"
