"""Fetching parts of a release into a folder: which ones, each checked as it comes, and their checksum files.

parts of a label ──as many as the size admits──> files ──checked, renamed──> folder ──> its checksum files

A part that is there and right is not fetched again, so a fetch that was interrupted goes on. Checksum files come last:
what one lists is there.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from toolkit.errors import ConfigError, DataError
from toolkit.mix import publication
from toolkit.publish.release import Listing, MinimumPace, Release, ReleaseFile, ReleasePart, listing_of
from toolkit.storage import store_of
from toolkit.storage.outputs import Output, write_file
from toolkit.storage.paths import exists, join, stat
from toolkit.storage.reading import READ, open_stored
from toolkit.storage_options import Size, size_in_words
from toolkit.validate import checksums

ATTEMPTS = 2
"""Times that a file is fetched whose bytes are not those of its checksum."""

MOST_UNANNOUNCED = Size.parse("4 GiB")
"""Bytes of a file whose size nobody announces, at most, unless the user says more."""

FileState = Literal["there", "fetched", "replaced"]
"""The fate of a file: it was there and right, was not there, or was there and other than it should be."""


def first_parts(label: str, parts: Sequence[ReleasePart], most: int | None) -> list[ReleasePart]:
    """Return the first parts of at most so many stored bytes; all by default.

    Parts are taken in the order of their numbers, none is left out: so a folder has the numbers 1 to n.

    Raises:
        ConfigError: if not even the first has so few.
        DataError: if the store does not say how large a part is.
    """
    if most is None:
        return list(parts)
    unknown = next((file.path for part in parts for file in part.files if not file.size), None)
    if unknown:
        raise DataError(
            "expected the size of the file, which --max needs, got none from the server; fetch without --max",
            path=unknown,
        )
    chosen, size = list[ReleasePart](), 0
    for part in parts:
        size += part.size
        if size > most:
            break
        chosen.append(part)
    if not chosen:
        least, first = min(parts, key=lambda part: part.size), parts[0]
        smallest = f"the smallest part of {label} is {least.path}: {_bytes(least.size)}"
        order = f"; parts are fetched in order, and the first one has {_bytes(first.size)}" if least != first else ""
        raise ConfigError(f"--max: expected enough for a part, got {_bytes(most)}; {smallest}{order}")
    return chosen


def _bytes(size: int) -> str:
    return f"{size:,} bytes ({size_in_words(size)})" if size >= 10**5 else f"{size:,} bytes"


class FetchFolder:
    """The target folder of a fetch; it may have parts of an earlier one.

    Raises:
        ConfigError: if it is an output of a mix, whose manifest says what it has.
    """

    def __init__(self, folder: str, release: Release) -> None:
        self.folder, self._release = folder, release
        self._old: dict[str, Listing] = {}
        if publication.load_manifest(folder) is not None:
            raise ConfigError(
                f"{folder}: expected a folder for fetched files, got the output of a mix; choose another --to"
            )

    def with_those_there(self, parts: Sequence[ReleasePart], chosen: int) -> list[ReleasePart]:
        """Return the chosen first parts, and the existing ones after them. A fetch of more parts left those."""
        while chosen < len(parts) and all(self._has(file) for file in parts[chosen].files):
            chosen += 1
        return list(parts[:chosen])

    def _has(self, file: ReleaseFile) -> bool:
        result = stat(self.path(file))
        return result is not None and result.size == file.size

    def path(self, file: ReleaseFile) -> str:
        """Return the target path of a file."""
        return join(self.folder, file.path)

    def was_fetched(self, file: ReleaseFile) -> bool:
        """Return True if a checksum file in the folder lists the file."""
        return file.path in self._listing(file.listed)

    def _listing(self, path: str) -> Listing:
        if path not in self._old:
            address = join(self.folder, path)
            try:
                self._old[path] = listing_of(address, path, store_of(address).read(address))
            except (FileNotFoundError, NotADirectoryError):
                self._old[path] = {}
        return self._old[path]

    def check(self, files: Iterable[ReleaseFile]) -> None:
        """Check the folder for files of another version of the release. Files fetched anew may be there.

        Raises:
            ConfigError: naming a file that would stay of it.
        """
        mine = list(files)
        coming = {file.path for file in mine}
        for listing in dict.fromkeys(file.listed for file in mine):
            for path, digest in self._listing(listing).items():
                is_other = self._release.listings[listing].get(path) != digest
                if path not in coming and is_other and exists(join(self.folder, path)):
                    raise ConfigError(
                        f"{join(self.folder, path)}: expected only files of the present version of "
                        f"{self._release.address}, got one of another version; delete it, or choose another --to"
                    )

    def list_files(self, files: Iterable[ReleaseFile]) -> list[str]:
        """Write the checksum files of existing files; return their paths. Their form is that of sha256sum.

        What others of the folder they listed before, of labels with the same checksum file, stays.
        """
        listings: dict[str, Listing] = {}
        for file in files:
            listings.setdefault(file.listed, {})[file.path] = file.digest
        for path, new in listings.items():
            older = {
                name: digest
                for name, digest in self._listing(path).items()
                if name not in new and self._release.listings[path].get(name) == digest
            }
            present = {name: digest for name, digest in older.items() if exists(join(self.folder, name))}
            base = os.path.dirname(path) or "."
            lines = sorted((os.path.relpath(name, base), digest) for name, digest in (present | new).items())
            write_file(join(self.folder, path), "".join(f"{digest}  {name}\n" for name, digest in lines).encode())
        return sorted(listings)


class FetchJob(msgspec.Struct, frozen=True):
    """A file to be fetched.

    Attributes:
        source, target: where it is, and where it will be.
        file: File of the release.
        may_replace: True if what is in its place was fetched before.
        most: bytes that are taken of it, at most; None for those that are announced.
    """

    source: str
    target: str
    file: ReleaseFile
    may_replace: bool
    most: int | None = None


def fetch(job: FetchJob, report: Callable[[int, int], None]) -> FileState:
    """Fetch a file, unless it is there and right; it appears complete and right, or not at all.

    Raises:
        ConfigError: if another file is in its place that no fetch has written.
        DataError: if its bytes are not those of its checksum, also when it is fetched again.
    """
    result = stat(job.target)
    may_be_right = result and (result.size == job.file.size or not job.file.size)
    if may_be_right and checksums.stored(job.target, job.file.digest) == job.file.digest:
        return "there"
    if result and not job.may_replace:
        raise ConfigError(
            f"{job.target}: expected no file, or one that `toolkit fetch` has written, got a file "
            f"that no checksum file lists; move it away, or choose another --to"
        )
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _copy(job, report)
            break
        except _TooLong:
            raise
        except DataError:
            if attempt == ATTEMPTS:
                raise
    return "replaced" if result else "fetched"


class _TooLong(DataError):
    """A file of more bytes than were announced."""


def _copy(job: FetchJob, report: Callable[[int, int], None]) -> None:
    """Write the bytes of a file, after a check of their checksum."""
    digest, size = hashlib.new(checksums.algorithm(job.file.digest)), 0
    most = job.most or job.file.size or MOST_UNANNOUNCED
    try:
        with open_stored(job.source) as stream, Output(job.target) as out:
            pace = MinimumPace(job.source)
            while block := stream.read1(READ):
                pace.check(len(block))
                if size + len(block) > most:
                    raise _TooLong(
                        f"expected at most {most:,} bytes, as announced or allowed, got more; "
                        "if that is right, say how many: --max-file",
                        path=job.source,
                    )
                digest.update(block)
                out.write(block)
                size += len(block)
                report(0, len(block))
            if digest.hexdigest() != job.file.digest:
                raise DataError(
                    f"expected the checksum {job.file.digest} of {job.file.listed}, got {digest.hexdigest()} "
                    f"({size:,} bytes); run again; if that gives the same, tell the publisher",
                    path=job.source,
                )
    except BaseException:
        report(0, -size)
        raise
