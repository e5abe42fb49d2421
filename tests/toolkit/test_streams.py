"""Bytes in and out: members that any gzip reads, lines of damaged and sound files, outputs that are whole or absent."""

import gzip
import hashlib
import os
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit import streams
from toolkit.errors import DataError
from toolkit.paths import stat
from toolkit.streams import COMPRESSORS, Lines, Output, RowOutput, Size, content_digest, decompress, write_file

ANY = 10**9
ROWS = [b"row %d " % i + b"x" * (i % 97) for i in range(40_000)]


def lines_of(path: Path, max_bytes: int = ANY) -> list[bytes]:
    with Lines(str(path), max_bytes) as lines:
        return list(lines)


def slow_lines(data: bytes) -> list[bytes]:
    r"""Lines of a file, byte by byte: each ends at ``\n``, the last at the end of the file if anything is left."""
    found, line = [], bytearray()
    for byte in data:
        if byte == 0x0A:
            found.append(bytes(line))
            line.clear()
        else:
            line.append(byte)
    return [*found, bytes(line)] if line else found


def written(path: Path, rows: list[bytes]) -> RowOutput:
    with RowOutput(str(path)) as out:
        for row in rows:
            out.write_row(row)
    return out


# --- compression and members ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("data", [b"", b"a\n", b"abc\n" * 100_000], ids=["empty", "short", "long"])
def test_compressors_give_back_what_they_got_and_always_the_same_bytes(name: str, data: bytes) -> None:
    stored = COMPRESSORS[name](data)
    assert decompress(stored, name) == data
    assert COMPRESSORS[name](data) == stored


@pytest.mark.parametrize("name", ["gzip", "gzip-fast"])
def test_gzip_headers_carry_no_name_and_no_time(name: str) -> None:
    stored = COMPRESSORS[name](b"data\n")
    assert stored[:3] == b"\x1f\x8b\x08"
    assert stored[3] == 0, "no optional header fields, hence no name"
    assert stored[4:8] == b"\0\0\0\0", "no modification time"


@pytest.mark.parametrize("name", ["gzip", "gzip-fast", "none"])
def test_compressed_members_can_be_concatenated(name: str, tmp_path: Path) -> None:
    path = tmp_path / ("a.jsonl" if name == "none" else "a.jsonl.gz")
    path.write_bytes(b"".join(COMPRESSORS[name](part) for part in (b"a\nb", b"", b"c\n", b"d")))
    assert lines_of(path) == [b"a", b"bc", b"d"]


def test_rows_become_members_cut_at_line_ends_that_the_standard_library_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    out = written(path, ROWS)
    expected = b"".join(row + b"\n" for row in ROWS)
    stored = path.read_bytes()
    assert gzip.decompress(stored) == expected
    members = []
    while stored:
        inflater = zlib.decompressobj(31)
        members.append(inflater.decompress(stored))
        stored = inflater.unused_data
    assert len(members) == len(expected) // streams.BLOCK + 1 > 1
    assert all(member.endswith(b"\n") for member in members)
    assert all(len(member) >= streams.BLOCK for member in members[:-1])
    assert (out.rows, out.content_size) == (len(ROWS), len(expected))
    assert out.content == xxhash.xxh3_128_hexdigest(expected) == content_digest(str(path))


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".jsonl"])
def test_rows_give_the_same_bytes_however_they_are_fed(suffix: str, tmp_path: Path) -> None:
    outs = [RowOutput(str(tmp_path / f"{name}{suffix}")) for name in "ab"]
    with outs[0] as a, outs[1] as b:  # two at once, one of them in bursts
        for start in range(0, len(ROWS), 777):
            for row in ROWS[start : start + 777]:
                a.write_row(row)
        for row in ROWS:
            b.write_row(row)
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert outs[0].sha256 == outs[1].sha256


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl"])
def test_an_output_without_rows_is_a_sound_file_without_lines(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    assert written(path, []).content == xxhash.xxh3_128_hexdigest(b"")
    assert lines_of(path) == []


# --- lines ------------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"\r", b"\xff", b"\0", b"long" * 5, b"\xe2\x80\xa8"])).map(b"".join),
    block=st.integers(1, 9),
)
def test_lines_are_those_of_a_slow_reader(data: bytes, block: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "READ", block)  # so that lines cross the borders of blocks
        with Lines(str(path), ANY, digest=True) as lines:
            assert list(lines) == slow_lines(data)
    assert lines.number == len(slow_lines(data))
    assert lines.size == len(data)
    assert lines.content == xxhash.xxh3_128_hexdigest(data)
    assert lines.ended == (not data or data.endswith(b"\n"))


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl"])
def test_a_line_may_span_many_blocks(suffix: str, tmp_path: Path) -> None:
    rows = [b"first", random.Random(0).randbytes(3 * streams.READ + 17).replace(b"\n", b" "), b"", b"last"]
    written(tmp_path / f"a{suffix}", rows)
    assert lines_of(tmp_path / f"a{suffix}") == rows


@pytest.mark.parametrize("size", [101, 3 * streams.READ])
def test_a_line_beyond_the_limit_is_an_error_that_names_path_and_line(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    written(path, [b"x" * 100, b"", b"x" * size, b"x"])
    with pytest.raises(DataError, match=r"at most 100 bytes.*`max_document_bytes`") as raised:
        lines_of(path, 100)
    assert (raised.value.path, raised.value.line) == (str(path), 3)
    assert str(raised.value).startswith(f"{path}:3: expected ")


@pytest.mark.parametrize("block", [7, 10, 1000])
def test_a_line_of_just_the_limit_is_allowed(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "READ", block)
    written(tmp_path / "a.jsonl", [b"x" * 100, b"y"])
    assert lines_of(tmp_path / "a.jsonl", 100) == [b"x" * 100, b"y"]


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
@pytest.mark.parametrize("kept", [0.02, 0.5, 0.999])
def test_a_truncated_file_is_an_error_that_names_the_line_where_it_ends(
    suffix: str, kept: float, tmp_path: Path
) -> None:
    path = tmp_path / f"a{suffix}"
    written(path, ROWS)
    stored = path.read_bytes()
    path.write_bytes(stored[: int(len(stored) * kept)])
    got: list[bytes] = []
    with pytest.raises(DataError, match="truncated") as raised, Lines(str(path), ANY) as lines:
        got.extend(lines)
    assert got == ROWS[: len(got)], "what was given before is sound"
    assert (raised.value.path, raised.value.line) == (str(path), len(got) + 1)


def _flip_in_the_middle(data: bytes) -> bytes:
    i = len(data) // 2
    return data[:i] + bytes(b ^ 0xFF for b in data[i : i + 8]) + data[i + 8 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "flipped": _flip_in_the_middle,
    "wrong checksum": lambda data: data[:-8] + b"\1\2\3\4" + data[-4:],
    "no trailer": lambda data: data[:-8],
    "one byte short": lambda data: data[:-1],
    "header only": lambda data: data[:10],
    "garbage after": lambda data: data + b"garbage",
    "a second member cut": lambda data: data + data[:100],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_to_gzip_data_is_never_read_as_an_end(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(DAMAGE[damage](gzip.compress(b"\n".join(ROWS), mtime=0)))
    with pytest.raises(DataError, match=r"a\.jsonl\.gz:\d+: expected .* compressed data, got"):
        lines_of(path)
    with pytest.raises(DataError, match=r"a\.jsonl\.gz"):
        streams.content_digest(str(path))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl.gz", b"", "an empty file"),
        ("a.jsonl.zst", b"", "an empty file"),
        ("a.jsonl.gz", b'{"id":1}', "begins with"),
        ("a.jsonl.gz", streams.compress_zstd(b"a\n"), "begins with"),
        ("a.jsonl.zst", gzip.compress(b"a\n"), "begins with"),
        ("a.jsonl", gzip.compress(b"a\n"), "gzip data; rename it"),
        ("a.jsonl", streams.compress_zstd(b"a\n"), "zstd data; rename it"),
    ],
)
def test_a_suffix_that_lies_is_an_error(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message) as raised:
        lines_of(tmp_path / name)
    assert raised.value.path == str(tmp_path / name)


def test_an_empty_plain_file_has_no_lines_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    assert lines_of(tmp_path / "a.jsonl") == []
    with pytest.raises(DataError, match=r"b\.jsonl: expected a readable file, got No such file"):
        lines_of(tmp_path / "b.jsonl")


# --- outputs ----------------------------------------------------------------------------------------------------------


def test_an_output_appears_complete_with_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.bin"
    with Output(str(path)) as out:
        out.write(b"one")
        assert out.size == 3
        out.write(b"two")
        assert not path.exists()
        (aside,) = path.parent.iterdir()
        assert aside.name.startswith(".")
        assert aside.name.endswith(".tmp")
    assert path.read_bytes() == b"onetwo"
    assert list(path.parent.iterdir()) == [path]
    assert out.sha256 == hashlib.sha256(b"onetwo").hexdigest()
    assert out.stat == stat(str(path))
    assert write_file(str(path), b"three").size == 5


class Broken(BaseException):
    """Something that is not even an Exception."""


@pytest.mark.parametrize("kind", [Output, RowOutput])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Broken])
def test_an_output_that_fails_leaves_the_old_file_and_nothing_else(
    kind: type[Output], error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"old")

    def fail() -> None:
        with kind(str(path)) as out:
            out.write(b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_output_that_cannot_be_renamed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="no space left"):
        written(tmp_path / "a.jsonl.gz", ROWS[:3])
    assert list(tmp_path.iterdir()) == []


def test_a_compressor_that_fails_at_the_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: bytes) -> bytes:
        raise MemoryError

    monkeypatch.setattr(streams, "compress_fast", refuse)
    with pytest.raises(MemoryError):
        written(tmp_path / "a.jsonl.gz", ROWS[:3])
    assert list(tmp_path.iterdir()) == []


def test_an_output_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def trace(name: str) -> None:
        function = getattr(os, name)

        def traced(*arguments: Any) -> Any:
            calls.append(name)
            return function(*arguments)

        monkeypatch.setattr(f"os.{name}", traced)

    trace("fsync")
    trace("replace")
    write_file(str(tmp_path / "a.bin"), b"data")
    assert calls == ["fsync", "replace", "fsync"], "the data, its name, the folder"


def test_two_attempts_at_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with Output(str(path)) as first, Output(str(path)) as second:
        first.write(b"same")
        second.write(b"same")
        assert len(list(tmp_path.iterdir())) == 2
    assert path.read_bytes() == b"same"
    assert list(tmp_path.iterdir()) == [path]


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (500, 500),
        ("500", 500),
        ("1_000", 1000),
        ("7 B", 7),
        ("1 kb", 1000),
        ("500MB", 500 * 10**6),
        ("1.5 GB", 1_500_000_000),
        ("64 MiB", 64 << 20),
        ("2 TiB", 2 << 40),
    ],
)
def test_sizes_are_read_with_decimal_and_binary_units(value: object, size: int) -> None:
    assert Size.parse(value) == size


@pytest.mark.parametrize("value", [0, -1, True, 2.5, None, "", "0", "0.1", "-1", "1 XB", "1,000", "MB", "1e3", [1]])
def test_what_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="expected a size such as 1000000, 500 MB or 64 MiB, got"):
        Size.parse(value)
