"""The parts of a release by label, and addresses of the Hub."""

import os
import re
import time
import urllib.parse

import msgspec

from toolkit.errors import ConfigError, DataError, ToolkitError, Unreadable, did_you_mean, duration, few
from toolkit.inspect import targets
from toolkit.mix import publication
from toolkit.mix.settings import REJECTED
from toolkit.session import current
from toolkit.storage import compression, store_of
from toolkit.storage.addresses import hub_endpoint
from toolkit.storage.paths import fault_of_name, is_hidden, join, list_files, no_folder, stat_each
from toolkit.storage.reading import READ
from toolkit.storage_options import Size
from toolkit.validate import checksums

SCHEME = "hf://"

_NAME = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)(?:@([^@]+))?/*")
FORM = "hf://datasets/USER/NAME"
"""Of an address, for people."""


class Address(msgspec.Struct, frozen=True):
    """A dataset of the Hub.

    Attributes:
        name: USER/NAME.
        revision: a branch or tag.
    """

    name: str
    revision: str

    def __str__(self) -> str:
        return f"{SCHEME}datasets/{self.name}" + (f"@{self.revision}" if self.revision != "main" else "")

    @property
    def page(self) -> str:
        """Return the page of the dataset."""
        return f"{hub_endpoint()}/datasets/{self.name}"

    @property
    def files(self) -> str:
        """Return the base URL of its files."""
        return f"{self.page}/resolve/{urllib.parse.quote(self.revision, safe='')}"


def is_hub(address: str) -> bool:
    """Return True for an address of the Hub."""
    return address.startswith(SCHEME)


def parse(address: str, option: str = "") -> Address:
    """Return the dataset of an address.

    Args:
        address: ``hf://datasets/USER/NAME``, with ``@REVISION`` behind it or not.
        option: Option that it was given by, for messages.

    Raises:
        ConfigError: if it is none of a dataset.
    """
    match = _NAME.fullmatch(address)
    if not match or not set(match[1].split("/")).isdisjoint({".", ".."}):
        raise ConfigError(f"{option}{': ' if option else ''}expected {FORM}, got {address}")
    return Address(match[1], match[2] or "main")


_NUMBER = re.compile(r"_part_(\d{1,18})(?!\d)")

MOST_LISTED = Size.parse("64 MiB")
"""Bytes of a checksum file or a manifest, at most, unless the user says more."""

SLOWEST = 1024
"""Bytes of a file that must come in a second, on average, once it has taken longer than `storage.give_up`."""


class MinimumPace:
    """Raises for a file with a very slow stream.

    Args:
        path: Path of the file, for messages.
    """

    def __init__(self, path: str) -> None:
        self._path, self._begin, self._size = path, time.monotonic(), 0

    def check(self, size: int) -> None:
        """Count received bytes.

        Raises:
            DataError: if they come too slowly.
        """
        self._size += size
        seconds = time.monotonic() - self._begin
        if seconds > current().options.give_up and self._size < SLOWEST * seconds:
            raise DataError(
                f"expected at least {SLOWEST:,} bytes a second, got {self._size:,} in {duration(seconds)}; run again "
                "later, or raise `storage.give_up`",
                path=self._path,
            )


_BESIDE = (".json", ".jsonl", ".txt", ".csv", ".idx", ".npy", ".arrow")
"""Suffixes of data, beside those of the parts of installed formats."""

_COMPRESSED = "|".join(map(re.escape, compression.SUFFIXES))

_AS_OURS = re.compile(r"(?:.*/)?(?P<label>[^/]+)/(?P=label)(?:_part_\d+)?(?:\.\w+)+")
"""Parts as ours are called, in formats that are not installed, too."""


class ReleaseFile(msgspec.Struct, frozen=True):
    """A file of a release.

    Attributes:
        path: below the release.
        digest: hex, of its bytes as stored: SHA-256 or SHA-384.
        size: stored bytes; 0 if the store cannot say.
        listed: path of the checksum file that lists it, below the release.
    """

    path: str
    digest: str
    size: int
    listed: str


class ReleasePart(msgspec.Struct, frozen=True):
    """A part of a release: its file, and those that belong to it."""

    files: tuple[ReleaseFile, ...]

    @property
    def size(self) -> int:
        """Return its stored bytes."""
        return sum(file.size for file in self.files)

    @property
    def path(self) -> str:
        """Return the path of its file below the release."""
        return self.files[0].path


Listing = dict[str, str]
"""Digests by path below the release; what a checksum file says."""


class Release:
    """A published output.

    Args:
        address: a folder on disk, in a bucket or on the web, or ``hf://datasets/USER/NAME``.
        most_listed: bytes of a checksum file or a manifest, at most.

    Attributes:
        address: Address of the folder.
        name: Name of the release: the last part of what was given.
        listings: Content of each checksum file read, by its path.

    Raises:
        ConfigError: if the address is none of a folder, or a mix is just being published there.
    """

    def __init__(self, address: str, most_listed: int = MOST_LISTED) -> None:
        self.address = address.rstrip("/")
        self._most_listed = most_listed
        self.name = self.address.rpartition("/")[2]
        if is_hub(address):
            result = parse(address)
            self.address, self.name = result.files, result.name.rpartition("/")[2]
        self.listings: dict[str, Listing] = {}
        self._store = store_of(self.address)
        if not self._store.can_list and "?" in self.address:
            raise ConfigError(f"{self.address}: expected the address of a folder, got one with a query; leave it out")
        self._manifest = self._load_manifest()
        for path, text in self._manifest.files.items() if self._manifest else ():
            if ".." not in path.split("/"):  # dropped documents beside the output, which are none of its own
                fault = fault_of_name(path) or _fault_of_public_name(path)
                if not fault and not targets.is_checksum_file(path):
                    fault = f"expected checksum files, got {path!r}"
                if fault:
                    raise DataError(f"{fault}; its manifest lists it", path=self.address)
                self.listings[path] = listing_of(join(self.address, path), path, text.encode())

    def at(self, path: str) -> str:
        """Return the address of a file."""
        return join(self.address, self._store.quoted(path))

    def parts(self, label: str) -> list[ReleasePart]:
        """Return the parts of a label, in the order of their numbers.

        Raises:
            ConfigError: if the release has no such label.
            DataError: if its checksum file has other lines, or lists a file that is not there.
        """
        if fault := fault_of_name(label):
            raise ConfigError(f"--label: {fault}")
        return self._recorded(label) if self._manifest else self._listed(label)

    def labels(self) -> list[str]:
        """Return all labels, sorted; none without listings and a manifest."""
        if self._manifest:
            return sorted({part.label for part in self._manifest.parts} - {REJECTED, ""})
        if not self._store.can_list:
            return []
        result = filter(targets.is_checksum_file, list_files(self.address))
        return sorted(
            {os.path.dirname(path).removesuffix("_meta") or path.rpartition("_")[0] for path in result} - {""}
        )

    def _load_manifest(self) -> publication.Manifest | None:
        """Return the manifest; None if there is none.

        On the web, where a server may answer anything about a hidden file, what gives no manifest is none.
        """
        if self._store.can_list:
            if publication.is_unfinished(self.address):
                raise ConfigError(f"{self.address}: expected a finished publication; run `toolkit mix` there first")
            return publication.load_manifest(self.address, self._read)
        try:
            return publication.load_manifest(self.address, self._read)
        except ToolkitError:
            return None

    def _read(self, path: str) -> bytes:
        data, pace = b"", MinimumPace(path)
        with self._store.open(path) as stream:
            while piece := stream.read1(READ):
                data += piece
                pace.check(len(piece))
                if len(data) > self._most_listed:
                    message = f"expected a checksum file or manifest of at most {self._most_listed:,} bytes, got more"
                    raise DataError(f"{message}; raise --max-list if this one is right", path=path)
        return data

    def _recorded(self, label: str) -> list[ReleasePart]:
        """Return the parts of a label by the manifest."""
        manifest = self._manifest
        assert manifest
        listed = {path: listing for listing, paths in self.listings.items() for path in paths}
        part_records = [
            part
            for part in manifest.parts
            if part.label != REJECTED and label in (part.label, manifest.label_of_rows(part.label))
        ]
        if not part_records:
            raise self._no_such(label, "none in its manifest")
        if unlisted := next(
            (file.path for part in part_records for file in part.files if file.path not in listed), None
        ):
            raise DataError("expected a checksum file that lists it, got none in the manifest", path=self.at(unlisted))
        files = [
            [ReleaseFile(file.path, file.sha256, file.size, listed[file.path]) for file in part.files]
            for part in part_records
        ]
        return _in_order([ReleasePart(tuple(file)) for file in files])

    def _listed(self, label: str) -> list[ReleasePart]:
        """Return the parts of a label by its first checksum file."""
        candidates, failure = _candidates(label), None
        for path in candidates:
            try:
                data = self._read(self.at(path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except Unreadable as error:  # of a file that is not there, some servers say that nobody may read it
                failure = failure or error
                continue
            self.listings[path] = listing_of(self.at(path), path, data, label)
            return self._looked_at(path)
        raise failure or self._no_such(label, f"no {candidates[0]} there")

    def _looked_at(self, listing: str) -> list[ReleasePart]:
        """Return the parts in a checksum file, with stored sizes."""
        digests = self.listings[listing]
        parts: dict[str, list[ReleaseFile]] = {}
        for (path, digest), stat in zip(digests.items(), stat_each([*map(self.at, digests)]), strict=True):
            if stat is None:
                raise DataError(f"expected the file that {listing} lists, got nothing there", path=self.at(path))
            folder, name = os.path.split(path)
            stem = join(folder, name.partition(".")[0])  # of a file, and of an index beside it
            parts.setdefault(stem, []).append(ReleaseFile(path, digest, stat.size, listing))
        if not parts:
            raise DataError("expected files with their checksums, got none", path=self.at(listing))
        return _in_order([ReleasePart(tuple(files)) for files in parts.values()])

    def _no_such(self, label: str, got: str) -> ConfigError:
        labels = self.labels()
        listing = f"; there are {few(labels)}" if labels else ""
        more = did_you_mean(label, labels) + listing + no_folder(self.address)
        return ConfigError(f"{self.address}: expected the label {label!r}, got {got}{more}")


def _candidates(label: str) -> list[str]:
    """Return the possible paths of a label's checksum file.

    First come those of our outputs, then those of releases of OSCAR.
    """
    name = label.rpartition("/")[2]
    return [
        f"{label}/{name}_sha256.txt",
        f"{label}_sha256.txt",
        f"{label}_meta/{name}_meta_sha256.txt",
        f"{label}_meta/{name}_sha256.txt",
        *(f"{folder}/checksum.{digest}" for folder in (f"{label}_meta", label) for digest in ("sha256", "sha384")),
    ]


def listing_of(address: str, path: str, data: bytes, label: str | None = None) -> Listing:
    """Return the content of a checksum file.

    Args:
        address: Address of the file, for messages.
        path: Path of it, below the release.
        data: its bytes.
        label: Label whose files it lists alone.

    Raises:
        DataError: if a line is none with a checksum, or names no data file in the folder of the checksum file; of a
            label, if it names a file of another one.
    """
    results: Listing = {}
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        parsed_line = checksums.parsed(line)
        if parsed_line is None:
            raise DataError(f"expected a checksum and a file name, got {line[:80]!r}", path=address, line=number)
        digest, name = parsed_line
        name = name.removeprefix("./")
        listed = join(os.path.dirname(path), name)
        if fault := fault_of_name(name) or _fault_of_public_name(name) or _fault_of_data(listed, label):
            raise DataError(fault, path=address, line=number)
        results[listed] = digest
    return results


def _fault_of_public_name(name: str) -> str | None:
    """Return the fault of an external file name; None if it has none."""
    if is_hidden(name) or not name.isprintable():
        return f"expected a path without hidden parts and control characters, got {name!r}"
    return None


def _fault_of_data(path: str, label: str | None) -> str | None:
    """Return the fault of a path of a data file; None without one.

    Args:
        path: below the release.
        label: Label that it must be of, by its folder, or by its name if it has no folder of the label.
    """
    name = os.path.basename(path)
    endings = "|".join(map(re.escape, sorted({*_BESIDE, *targets.suffixes()})))
    is_data = re.fullmatch(rf".+(?:{endings})(?:{_COMPRESSED})?", name) or _AS_OURS.fullmatch(path)
    if not is_data or name in targets.DESCRIPTIONS or targets.is_checksum_file(name):
        return f"expected data files, such as fr_part_1.jsonl.gz, got {path!r}"
    if label is not None and not re.match(rf"(?:documents/)?{re.escape(label)}(?:_meta)?(?:/|[._-][^/]*$)", path):
        return f"expected files of the label {label}, in its folder, got {path!r}"
    return None


def _in_order(parts: list[ReleasePart]) -> list[ReleasePart]:
    """Return parts sorted by folder, then by number."""

    def place(part: ReleasePart) -> tuple[str, int, str]:
        folder, name = os.path.split(part.path)
        return folder, int(results[-1]) if (results := _NUMBER.findall(name)) else 0, name

    return sorted(parts, key=place)
