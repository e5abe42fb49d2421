"""What a step gave, in a form that two checkouts can be compared in: exit status, output, uncompressed contents."""

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

BOOKKEEPING = ".toolkit"
"""Folders of this name may change freely."""
MOST = 8_000_000
"""Bytes of a content of which more than the digest is kept."""

MASKS = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"(?<![\d.])[\d,]+(\.\d+)? (ms|s|min|h)\b"), "N s"),
    (re.compile(r"(?<![\d.])[\d.,]+ (\w+ )?(\w+)(/s| a second| per second)"), r"N \1\2\3"),
    (re.compile(r"\b[\d.]+ ns a character"), "N ns a character"),
    (re.compile(r"\(\d+ attempts\)"), "(N attempts)"),
    (re.compile(r"\b(process|pid) \d+"), r"\1 N"),
    (re.compile(r"\b20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00| UTC)?"), "TIME"),
    (re.compile(r'"(seconds|contentSize)": ?("[^"]*"|[\d.e-]+)'), r'"\1": N'),
    (re.compile(r'("datasets": ?)\{("[^"]+": ?"[0-9a-f]{32}",? ?)+\}'), r"\1{DIGESTS OF PLACES}"),
    (re.compile(r'"[^" ]*/\.duckdb/extensions/[^" ]*"'), '"EXTENSIONS OF DUCKDB"'),
)
"""Texts that differ each time, or with the compression. Contents of data are not masked, except paths."""
STAMPS = re.compile(r'"time_stamps":\[[\d,]*\]|"seconds":[\d.e-]+')
"""When a language model answered, and how long that took, in data."""
TIMED = re.compile(
    r"(^|_)(seconds|age|since|per_second|started|created_at|time_stamps|mb_per_s|mb_s|ns_per_char|wall)($|_)"
)
"""Keys of JSON whose numbers differ each time: of these, that it is a number counts."""


class Step(msgspec.Struct):
    """What a step gave.

    Attributes:
        step: Command line, or file that was saved.
        status: Exit status; None for a file that was saved.
        output: Standard output: a text, or JSON as it was printed.
        error: Standard error, if the status is not 0.
        files: Digests of the contents of new and changed files; None for a deleted file.
    """

    step: str
    status: int | None = None
    output: Any = ""
    error: str = ""
    files: dict[str, str | None] = {}


class Recording(msgspec.Struct):
    """What all steps of all cases gave, by the name of the case."""

    cases: dict[str, list[Step]] = {}


class Contents:
    """Contents by digest, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, content: bytes) -> str:
        """Keep a content; return its digest."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.folder / digest
        if len(content) <= MOST and not path.exists():
            path.with_suffix(f".{id(content)}").write_bytes(zlib.compress(content, 1))
            path.with_suffix(f".{id(content)}").rename(path)
        return digest

    def get(self, digest: str) -> bytes | None:
        """Return a content; None for one that was too large to be kept."""
        path = self.folder / digest
        return zlib.decompress(path.read_bytes()) if path.exists() else None


def write(recording: Recording, path: Path) -> None:
    """Write a recording, whole or not at all."""
    path.with_suffix(".part").write_bytes(zlib.compress(msgspec.json.encode(recording), 1))
    path.with_suffix(".part").rename(path)


def read(path: Path) -> Recording:
    """Return a recording."""
    return msgspec.json.decode(zlib.decompress(path.read_bytes()), type=Recording)


class Mask:
    """What differs each time is replaced by names.

    Attributes:
        places: Names of places that paths lead to.
        digests: Names of files, by the sha256 of their compressed bytes.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self.places = dict(sorted(places.items(), key=lambda pair: -len(pair[0])))
        self.digests: dict[str, str] = {}

    def paths(self, text: str) -> str:
        """Return a text without paths of places."""
        for place, name in self.places.items():
            text = text.replace(place, name)
        return text

    def text(self, text: str) -> str:
        """Return a text without paths, times and digests of compressed files."""
        text = self.paths(text)
        for pattern, instead in MASKS:
            text = pattern.sub(instead, text)
        text = STAMPS.sub("", text)
        return re.sub(r"\b[0-9a-f]{64}\b", lambda match: self.digests.get(match[0], match[0]), text)

    def printed(self, text: str) -> Any:
        """Return what a command printed: JSON as values, anything else as a text."""
        try:
            return self._values(json.loads(text))
        except ValueError:
            return self.text(text)

    def _values(self, value: Any, *, is_timed: bool = False) -> Any:
        if isinstance(value, dict):
            return {
                self.text(key): self._values(each, is_timed=is_timed or bool(TIMED.search(key)))
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self._values(each, is_timed=is_timed) for each in value]
        if is_timed and isinstance(value, int | float):
            return 0
        return self.text(value) if isinstance(value, str) else value

    def content(self, name: str, data: bytes) -> bytes:
        """Return the content of a file as it is compared: uncompressed; of what is no data, without times."""
        try:
            bare, data = uncompressed(name, data)
            if bare.endswith(".parquet"):
                return rows_of_parquet(data)
            text = data.decode()
        except (ValueError, OSError, zlib.error):  # a damaged file, or no text: it is compared as it is
            return data
        is_data = bare.endswith((".jsonl", ".txt", ".csv")) and "sha256" not in bare
        return (STAMPS.sub("", self.paths(text)) if is_data else self.text(text)).encode()


def uncompressed(name: str, data: bytes) -> tuple[str, bytes]:
    """Return the name of a file without the ending of its compression, and its uncompressed content."""
    if name.endswith(".gz"):
        return name.removesuffix(".gz"), b"".join(_members(data))
    if name.endswith((".zst", ".zstd")):
        from backports import zstd

        return name.rpartition(".")[0], zstd.decompress(data)
    return name, data


def _members(data: bytes) -> list[bytes]:
    found = []
    while data:
        member = zlib.decompressobj(wbits=31)
        found.append(member.decompress(data))
        data = member.unused_data
    return found


def rows_of_parquet(data: bytes) -> bytes:
    """Return the schema and the rows of a Parquet file, a line each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(data))
    rows = (json.dumps(row, ensure_ascii=False, default=repr) for row in table.to_pylist())
    return "\n".join([json.dumps(str(table.schema)), *rows, ""]).encode()


def changes(
    before: Mapping[str, str],
    after: Mapping[str, str],
    read_file: Callable[[str], bytes],
    mask: Mask,
    contents: Contents,
) -> dict[str, str | None]:
    """Return the digests of contents that are new, and None for files that are gone.

    Args:
        before: Stamps of the files, by path.
        after: Stamps of the files, by path.
        read_file: Function that reads a file.
        mask: Mask of contents, which learns the digests of files.
        contents: Store of all contents.
    """
    found: dict[str, str | None] = dict.fromkeys(before.keys() - after.keys())
    data = {name: read_file(name) for name in sorted(after) if before.get(name) != after[name]}
    mask.digests |= {hashlib.sha256(each).hexdigest(): f"sha256({name})" for name, each in data.items()}
    return found | {name: contents.add(mask.content(name, each)) for name, each in data.items()}
