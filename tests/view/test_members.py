"""Rows from the middle of files: the right ones, whatever the file is made of, and not all of it read."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.errors import DataError
from toolkit.storage.compression import compress_fast, compress_small, compress_zstd
from toolkit.storage.paths import stat
from toolkit.storage.reading import Lines
from toolkit.view import members
from toolkit.view.members import MemberFile, Pieces

ROWS = 3000
MEMBER = 40
"""Rows of a member."""


def _rows(seed: int = 1) -> list[bytes]:
    lot = random.Random(seed)
    return [
        json.dumps({"id": str(i), "text": lot.randbytes(lot.randrange(10, 400)).hex()}).encode() for i in range(ROWS)
    ]


def _members(rows: list[bytes], compress: Callable[[bytes], bytes]) -> bytes:
    parts = [rows[i : i + MEMBER] for i in range(0, len(rows), MEMBER)]
    return b"".join(compress(b"".join(row + b"\n" for row in part)) for part in parts)


def _cut_anywhere(rows: list[bytes]) -> bytes:
    data = b"".join(row + b"\n" for row in rows)
    return b"".join(gzip.compress(data[i : i + 9999]) for i in range(0, len(data), 9999))


def _one(rows: list[bytes]) -> bytes:
    return gzip.compress(b"".join(row + b"\n" for row in rows))


FILES: dict[str, tuple[str, Callable[[list[bytes]], bytes], bool]] = {
    "ours": (".jsonl.gz", lambda rows: _members(rows, compress_fast), True),
    "small": (".jsonl.gz", lambda rows: _members(rows, compress_small), True),
    "zstd": (".jsonl.zst", lambda rows: _members(rows, compress_zstd), True),
    "plain": (".jsonl", lambda rows: b"\n".join(rows), True),
    "one member": (".jsonl.gz", _one, False),
    "cut anywhere": (".jsonl.gz", _cut_anywhere, False),
}


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes files of some hundred kB large."""
    monkeypatch.setattr(members, "WINDOW", 1 << 13)
    monkeypatch.setattr(members, "WIDEST", 1 << 17)
    monkeypatch.setattr(members, "PIECE", 1 << 12)
    monkeypatch.setattr(members, "Lines", _LinesOfLittle)


class _LinesOfLittle(Lines):
    """Lines of which little is read ahead."""

    def _read(self) -> bytes:
        return self._stream.read(1 << 12)


def _number_of(line: bytes) -> int | None:
    try:
        return int(json.loads(line)["id"])
    except ValueError:
        return None


@pytest.mark.parametrize("kind", FILES)
def test_any_rows_of_any_file(kind: str, tmp_path: Path) -> None:
    suffix, made, jumps = FILES[kind]
    rows, path = _rows(), tmp_path / f"x{suffix}"
    path.write_bytes(made(rows))
    version = stat(str(path))
    assert version
    lot, read = random.Random(2), Pieces()
    file = MemberFile(str(path), version, read, ROWS, _number_of, 1 << 20)
    for _ in range(60):
        first, count = lot.randrange(ROWS), lot.randrange(1, 50)
        assert file.rows(first, count) == rows[first : first + count]
    assert file.rows(ROWS - 2, 10) == rows[-2:]
    assert file.rows(ROWS, 1) == file.rows(ROWS + 5000, 1) == []
    if jumps:
        for first in (ROWS // 2, ROWS - 60):
            alone = Pieces()
            MemberFile(str(path), version, alone, ROWS, _number_of, 1 << 20).rows(first, 20)
            assert alone.bytes < version.size // 5


def test_rows_that_nobody_can_number_are_read_from_the_start(tmp_path: Path) -> None:
    rows, path = _rows(), tmp_path / "x.jsonl.gz"
    path.write_bytes(_members(rows, compress_fast))
    version = stat(str(path))
    assert version
    for count, number_of in ((ROWS, lambda line: None), (None, _number_of)):
        file = MemberFile(str(path), version, Pieces(), count, number_of, 1 << 20)
        assert file.rows(2000, 3) == rows[2000:2003]
        assert file.rows(2003, 3) == rows[2003:2006]
        assert file.rows(7, 1) == rows[7:8]


def test_a_file_that_is_damaged_or_gone_is_told(tmp_path: Path) -> None:
    rows, path = _rows(), tmp_path / "x.jsonl.gz"
    data = _members(rows, compress_fast)
    path.write_bytes(data[: len(data) // 2])
    version = stat(str(path))
    assert version
    file = MemberFile(str(path), version, Pieces(), ROWS, _number_of, 1 << 20)
    assert file.rows(10, 2) == rows[10:12]
    with pytest.raises(DataError, match=r"x\.jsonl\.gz: expected whole compressed data"):
        file.rows(ROWS - 5, 2)
    path.write_bytes(data[:10])
    with pytest.raises(DataError, match="got one that has changed; load the page again"):
        MemberFile(str(path), version, Pieces(), ROWS, _number_of, 1 << 20).rows(0, 1)
    path.unlink()
    with pytest.raises(DataError, match="it was deleted; load the page again"):
        MemberFile(str(path), version, Pieces(), ROWS, _number_of, 1 << 20).rows(0, 1)
