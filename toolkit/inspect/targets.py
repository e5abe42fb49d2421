"""What a path is that a command was given, and which of its files have documents; one answer for all commands."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from toolkit.data.dataset import SHARD_SUFFIXES
from toolkit.errors import ConfigError
from toolkit.inspect.recognition import recognised, suffixes
from toolkit.mix import publish
from toolkit.mix.settings import REJECTED
from toolkit.storage.paths import exists, is_folder, join, list_files, not_in

Kind = Literal["dataset", "output", "release", "documents"]

DESCRIPTIONS = ("croissant.json", "README.md")
"""Files that describe a folder, and are none of its data."""

SPLIT = re.compile(r"splits/.+\.split\.gz")
"""Likewise, files that say which split the documents of a part are in."""

_CHECKSUM_FILE = re.compile(r"(_sha256\.txt|checksum\.sha(256|384)|\.sha256|\.sha384)$")
_METADATA = re.compile(r"_meta(_part_\d+)?\.jsonl?(\.\w+)?$")
_TEXT = re.compile(r"\.(txt|text)(\.\w+)?$")

_ASKED = 3
"""Files of a folder whose first lines are looked at, to know what it holds; the first may be damaged."""


@dataclass(frozen=True)
class Target:
    """What a path is.

    Attributes:
        path: as it was given, without a slash at its end.
        kind: ``dataset``, a folder with documents and attributes; ``output`` of a mix, with its manifest;
            ``release``, files of an output format without one; ``documents``, files of documents.
        files: those with documents, sorted, relative to `folder`; without those that a mix dropped. Of a dataset none.
        manifest: of an output.
    """

    path: str
    kind: Kind
    files: list[str]
    manifest: publish.Manifest | None = None
    is_file: bool = False

    @property
    def folder(self) -> str:
        """Return the folder that the files' paths are relative to."""
        return os.path.dirname(self.path) or "." if self.is_file else self.path


def expected(path: str) -> Target:
    """Return what a path is.

    Raises:
        ConfigError: if nothing is there that has documents.
    """
    found = recognise(path)
    if found is None:
        raise ConfigError(f"{path}: expected a dataset, an output or files of documents, got none there{not_in(path)}")
    return found


def recognise(path: str) -> Target | None:
    """Return what a path is; None if nothing is there that has documents.

    Raises:
        DataError: if its manifest cannot be read.
    """
    path = path.rstrip("/") or path
    if (manifest := publish.load_manifest(path)) is not None:
        return Target(path, "output", [part.path for part in manifest.parts if part.label != REJECTED], manifest)
    if is_folder(join(path, "documents")):
        return Target(path, "dataset", [])
    if is_folder(path):
        there = list(list_files(path))
        parts = _parts(there)
        if parts and (any(map(is_checksum_file, there)) or _is_of_a_format(path, parts)):
            return Target(path, "release", parts)
        files = _shards(there)
        if not files:
            return None
        return Target(path, "release" if _is_of_a_format(path, files) else "documents", files)
    if not exists(path):
        return None
    name = os.path.basename(path)
    return Target(path, "documents" if recognised(path) is None else "release", [name], is_file=True)


def _is_of_a_format(folder: str, paths: list[str]) -> bool:
    return any(recognised(join(folder, path)) is not None for path in paths[:_ASKED])


def data_files(folder: str) -> list[str]:
    """Return the parts in an output folder, sorted: those of its manifest, and all that are called as parts are."""
    manifest = publish.load_manifest(folder)
    known = {part.path for part in manifest.parts} if manifest else set()
    return _parts(list(list_files(folder)), known)


def is_checksum_file(path: str) -> bool:
    """Return whether a file has checksums, by its name."""
    return _CHECKSUM_FILE.search(path) is not None


def is_description(path: str) -> bool:
    """Return whether a file below a folder describes what lies there, and has no documents."""
    return path in DESCRIPTIONS or SPLIT.fullmatch(path) is not None


def as_part(path: str) -> re.Match[str] | None:
    """Return the stem, number and suffix of a path that is named as parts of installed formats are.

    What is called just as its folder has no number: ``en_part_1/en_part_1.jsonl.gz`` is of the label ``en_part_1``.
    """
    if is_checksum_file(path) or is_description(path):
        return None
    known = "|".join(map(re.escape, sorted(suffixes())))
    ending = rf"(?P<suffix>(?:{known})(?:\.gz|\.zst|\.zstd)?)"
    folder = re.escape(os.path.basename(os.path.dirname(path)))
    whole = re.fullmatch(rf"(?P<stem>(?:.*/)?{folder})(?P<number>){ending}", path) if folder else None
    return whole or re.fullmatch(rf"(?P<stem>.+?)(?:_part_(?P<number>\d+))?{ending}", path)


def _parts(there: list[str], known: Iterable[str] = ()) -> list[str]:
    """Return files that are called as parts are; without the metadata that lie beside texts in the release 21.09."""
    found = set(known)
    paths = [path for path in there if path in found or as_part(path)]
    texts = {os.path.dirname(path) for path in paths if _TEXT.search(path)}
    return [path for path in paths if not (os.path.dirname(path) in texts and _METADATA.search(path))]


def _shards(there: list[str]) -> list[str]:
    return [path for path in there if path.endswith(SHARD_SUFFIXES) and not is_description(path)]
