"""Every compression: whole to the end, or an error that says where it broke; never short, never by a wrong name."""

import bz2
import functools
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.session import current
from toolkit.storage.compression import compress_zstd, zstd
from toolkit.storage.reading import Decompressed, Lines
from toolkit.storage_options import Size, StorageOptions

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 6, mtime=0),
    "zst": compress_zstd,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
PLACES = r"at byte [\d,]+ \([\d,]+ uncompressed\)"


def read(path: Path, size: int = -1) -> bytes:
    with Decompressed(str(path)) as stream:
        return stream.read() if size < 0 else b"".join(iter(lambda: stream.read(size), b""))


def text(seed: int, size: int) -> bytes:
    """Half of it compresses well."""
    chosen = random.Random(seed)
    return b"".join(
        chosen.randbytes(20) + b"a line of words\n" * chosen.randrange(9) for _ in range(max(1, size // 100))
    )


PARTS = [text(1, 900), b"", text(2, 40), text(3, 300_000), text(4, 700)]


@pytest.mark.parametrize("size", [-1, 1, 1000, 1 << 20])
@pytest.mark.parametrize("suffix", COMPRESS)
def test_files_that_follow_each_other_are_one(suffix: str, size: int, tmp_path: Path) -> None:
    parts = PARTS if size != 1 else [PARTS[0], *PARTS[1:3]]
    for name in (f"a.jsonl.{suffix}", "without_a_suffix", "model.bin"):
        path = tmp_path / name
        path.write_bytes(b"".join(COMPRESS[suffix](part) for part in parts))
        assert read(path, size) == b"".join(parts)


@functools.cache
def compressed(suffix: str) -> list[bytes]:
    return [COMPRESS[suffix](part) for part in PARTS]


@settings(max_examples=80)
@given(suffix=st.sampled_from(list(COMPRESS)), data=st.data())
def test_a_file_cut_anywhere_is_an_error_unless_between_two_that_follow_each_other(
    suffix: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stored = compressed(suffix)
    ends = {sum(map(len, stored[:n])): n for n in range(1, len(stored) + 1)}
    near = [at + by for at in ends for by in range(-12, 13) if 0 < at + by < max(ends)]
    cut = data.draw(st.sampled_from(near) | st.integers(0, max(ends) - 1))
    path = tmp_path_factory.mktemp("cut") / f"a.{suffix}"
    path.write_bytes(b"".join(stored)[:cut])
    if cut in ends:  # which nobody can see
        assert read(path) == b"".join(PARTS[: ends[cut]])
        return
    with pytest.raises(DataError, match=rf"a\.{suffix}: expected .* data") as raised:
        read(path, data.draw(st.sampled_from([1 << 20, 50])))
    if cut > 12:
        assert f"got the end of the file at byte {cut:,} (" in str(raised.value)


@given(suffix=st.sampled_from(list(COMPRESS)), seed=st.integers(0, 1 << 30))
@example(suffix="bz2", seed=0)
def test_a_file_with_a_changed_byte_is_an_error_or_the_same(
    suffix: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chosen = random.Random(seed)
    parts = [PARTS[0], PARTS[4]]
    stored = bytearray(b"".join(COMPRESS[suffix](part) for part in parts))
    stored[chosen.randrange(len(stored))] ^= 1 << chosen.randrange(8)
    path = tmp_path_factory.mktemp("flip") / f"a.{suffix}"
    path.write_bytes(stored)
    try:
        found = read(path)
    except DataError as error:
        assert str(error).startswith(f"{path}: expected ")  # noqa: PT017
    else:
        assert found == b"".join(parts), "a header has bits that mean nothing"


@pytest.mark.parametrize("behind", [b"x", b"garbage behind it", b"\n", b"BZh", b"\xfd7zX", b"\x1f"])
@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_follows_and_is_not_compressed_is_an_error(suffix: str, behind: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(COMPRESS[suffix](PARTS[0]) + behind)
    with pytest.raises(DataError, match=PLACES):
        read(path)


def test_padding_is_what_the_format_allows(tmp_path: Path) -> None:
    for suffix, zeros, allowed in [("gz", 7, True), ("xz", 8, True), ("xz", 6, False), ("bz2", 4, False)]:
        path = tmp_path / f"{zeros}.{suffix}"
        one = COMPRESS[suffix](PARTS[0])
        for data, expected in ((one + bytes(zeros), 1), (one + bytes(zeros) + one, 2)):
            path.write_bytes(data)
            if allowed:
                assert read(path) == PARTS[0] * expected
            else:
                with pytest.raises(DataError, match=PLACES):
                    read(path)


def test_zstd_frames_to_be_skipped_are_skipped(tmp_path: Path) -> None:
    skipped = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    path = tmp_path / "a.zst"
    path.write_bytes(skipped + compress_zstd(b"one") + skipped + compress_zstd(b"two") + skipped)
    assert read(path) == b"onetwo"


@pytest.mark.parametrize("found", ["plain", *COMPRESS])
@pytest.mark.parametrize("said", ["gz", "zst", "zstd", "bz2", "xz", "jsonl", "txt", "warc", "wet", "csv", "tsv"])
def test_a_name_that_lies_is_an_error_that_says_what_it_is(said: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{said}"
    path.write_bytes(b'{"a": 1}\n' if found == "plain" else COMPRESS[found](b"a\n"))
    is_compression = said in ("gz", "zst", "zstd", "bz2", "xz")
    if said.removesuffix("d") == found or (found == "plain" and not is_compression):
        assert read(path)
        return
    names = {"gz": "gzip", "zst": "zstd", "zstd": "zstd", "plain": """data that begins with b'{"a"'"""}
    expected, got = (names.get(said, said) if is_compression else "plain"), names.get(found, found)
    with pytest.raises(DataError, match=f"expected {expected} data by the suffix, got {got}"):
        read(path)


def test_the_line_of_a_cut_file_is_named_too(tmp_path: Path) -> None:
    rows = [b"row %d" % i for i in range(100_000)]
    for suffix, compress in COMPRESS.items():
        path = tmp_path / f"a.{suffix}"
        stored = compress(b"\n".join(rows))
        path.write_bytes(stored[:-9])
        got: list[bytes] = []
        where = f"got the end of the file at byte {len(stored) - 9:,}"
        with pytest.raises(DataError, match=where) as raised, Lines(str(path), 1000) as lines:
            got.extend(lines)
        assert got == rows[: len(got)]
        assert raised.value.line == len(got) + 1


def of_window(log: int, data: bytes) -> bytes:
    """Return a frame of zstd that declares a window of 2 ** log bytes, as ``zstd --long`` does."""
    module = zstd()
    small = module.ZstdCompressor(options={module.CompressionParameter.window_log: 20})
    frame = bytearray(small.compress(data) + small.flush())
    assert frame[4] & 0x20 == 0  # a window follows
    frame[5] = (log - 10) << 3
    return bytes(frame)


@pytest.fixture
def options() -> Callable[..., None]:
    """What sets options of the storage, until the test ends."""

    def change(**changed: Any) -> None:
        current().options = StorageOptions(**changed)

    return change


def test_windows_of_two_gibibytes_are_read_unless_the_option_says_less(
    tmp_path: Path, options: Callable[..., None]
) -> None:
    path = tmp_path / "RC.jsonl.zst"
    path.write_bytes(of_window(20, PARTS[0]) + of_window(31, PARTS[3]))  # also in a frame that is not the first
    assert read(path) == PARTS[0] + PARTS[3]
    options(max_window=Size.parse("1 GiB"))
    with pytest.raises(DataError, match=r"at most 1,073,741,824 bytes, got a larger one.*`storage\.max_window`"):
        read(path)
    path.write_bytes(of_window(30, PARTS[0]))
    assert read(path) == PARTS[0]
    other = tmp_path / "a.jsonl.xz"
    other.write_bytes(lzma.compress(PARTS[0], preset=9))  # a dictionary of 64 MiB
    assert read(other) == PARTS[0]
    options(max_window=Size.parse("32 MiB"))
    for each in (path, other):
        with pytest.raises(DataError, match=r"at most 33,554,432 bytes.*`storage\.max_window`"):
            read(each)
    with pytest.raises(ValueError, match="at most 2 GiB"):
        options(max_window=Size.parse("3 GiB"))
