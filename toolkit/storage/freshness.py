"""Tells the state of an artifact: done, missing, stale or interrupted.

An artifact is a thing on disk with a record in the record log. The record says what it was made of, with which
settings, and which files it has. Only this module compares a record with what there is now: files by size and stamp
and, where only a stamp differs, by digest; inputs by digest; settings by value.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self, TypeVar

import msgspec
import xxhash

from toolkit.errors import DataError
from toolkit.storage import Stat
from toolkit.storage.paths import stat
from toolkit.storage.reading import content_digest, stored_digest


def stored_xxh3(path: str) -> str:
    """Return the xxh3-128 (hex) of the stored bytes of a file."""
    return stored_digest(path, xxhash.xxh3_128())


def stored_sha256(path: str) -> str:
    """Return the sha256 (hex) of the stored bytes of a file."""
    return stored_digest(path, hashlib.sha256())


class FileRecord(NamedTuple):
    """A file as a record describes it.

    Attributes:
        path: Path of the file.
        size: Bytes as stored; None if any will do.
        stamp: Stamp, the quick test; None if the size alone tells.
        digest: Digest of the content; empty if a file with another stamp is another file.
        digest_of: Function that returns the digest of a path; by default, xxh3-128 of the uncompressed bytes.
    """

    path: str
    size: int | None = None
    stamp: str | None = None
    digest: str = ""
    digest_of: Callable[[str], str] = content_digest

    @classmethod
    def of(cls, path: str, version: Stat) -> Self:
        """Return the record of a file from its `Stat`."""
        return cls(path, version.size, version.stamp)


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the records of artifacts."""

    @property
    def lineage(self) -> Mapping[str, str]:
        """Return the digests of the inputs, by name."""
        return {}

    @property
    def made_with(self) -> Any:
        """Return the settings of the artifact; None if the lineage has their digest."""
        return getattr(self, "settings", None)

    @property
    def file(self) -> Any:
        """Return the recorded size, stamp and content of the file."""
        return self


class Derived(Artifact, frozen=True, kw_only=True):
    """Base of the records of artifacts with many inputs; `made_of` is a digest of all of them."""

    made_of: str

    @property
    def lineage(self) -> Mapping[str, str]:
        return {"": self.made_of}


class State(msgspec.Struct, frozen=True):
    """The state of an artifact.

    Attributes:
        name: `done`; `missing`: there is no record, or a file of it is gone or another one; `interrupted`: an attempt
            has begun and not ended; `stale`: an input or the settings have changed; `external`: another program made
            it.
        why: Reason, for people; empty if it is done.
        changed: Name of the input that has changed, or path of the file.
        error: Error that says why, with the next step, if an input is not what it should be itself.
        stamps: Stamps of files, by path, which differ from those of the record while the content does not.
    """

    name: Literal["done", "missing", "interrupted", "stale", "external"]
    why: str = ""
    changed: str = ""
    error: DataError | None = None
    stamps: dict[str, str] = {}

    @property
    def is_done(self) -> bool:
        """Return True if no work is left."""
        return self.name == "done"


DONE = State("done")
MISSING = State("missing", "it has no record")
INTERRUPTED = State("interrupted", "it was interrupted")

R = TypeVar("R", bound=Artifact)


def state(
    record: R | None,
    inputs: Iterable[tuple[str, str | None]] | None = None,
    settings: Any = None,
    files: Callable[[R], Iterable[FileRecord]] | None = None,
    *,
    begun: bool = False,
    quick: bool = False,
) -> State:
    """Return the state of an artifact: the only answer to whether work is done.

    Args:
        record: Record of the artifact; None if there is none.
        inputs: Names and digests of what it would be made of now, asked for one after the other until one differs;
            None if that is not compared.
        settings: Settings that it would be made with now; None if they are not compared.
        files: Function that returns the files of a record.
        begun: True if an attempt has begun and not ended.
        quick: True if nothing is to be read: a file with another stamp counts as another file.
    """
    if record is None:
        return INTERRUPTED if begun else MISSING
    if settings is not None and record.made_with != settings:
        return State("stale", "it was made with other settings")
    current = files_state(files(record) if files else (), quick=quick)
    if not current.is_done or inputs is None:
        return current
    lineage = dict(record.lineage)
    try:
        for name, digest in inputs:
            if digest is None or lineage.pop(name, None) != digest:
                return State("stale", f"{name or 'its input'} has changed", name)
    except DataError as error:
        return State("stale", str(error), error=error)
    return State("stale", f"it was made of {min(lineage)}, too", min(lineage)) if lineage else current


def unchanged(
    records: Iterable[tuple[str, R]], stat: Callable[[str], Stat | None], digest: Callable[[str, str], str | None]
) -> Iterator[tuple[str, R]]:
    """Yield the records of finished artifacts, by listings alone.

    These are done by `state`, too, with `quick` and any settings.

    Args:
        records: Names and records.
        stat: Function that returns the version of the file of a name.
        digest: Function that returns the present digest of an input of a name.
    """
    for name, record in records:
        file = record.file
        if stat(name) == Stat(file.size, file.stamp) and all(
            digest(item, name) == was for item, was in record.lineage.items()
        ):
            yield name, record


def files_state(
    files: Iterable[FileRecord], *, quick: bool = False, stat: Callable[[str], Stat | None] = stat
) -> State:
    """Return the state of recorded files: done, or missing.

    Args:
        files: Files.
        quick: Meaning as in `state`.
        stat: Function that returns what there is of a path.
    """
    stamps = {}
    for file in files:
        result = stat(file.path)
        if result is None or file.size not in (None, result.size):
            return State("missing", f"{file.path} is {'gone' if result is None else 'another file'}", file.path)
        if file.stamp in (None, result.stamp):
            continue
        if quick or not _has_digest(file):
            return State("missing", f"{file.path} is another file", file.path)
        stamps[file.path] = result.stamp
    return State("done", stamps=stamps) if stamps else DONE


def _has_digest(file: FileRecord) -> bool:
    try:
        return bool(file.digest) and file.digest_of(file.path) == file.digest
    except DataError:
        return False
