"""Bytes in and out: members that any gzip reads, lines of damaged and sound files, outputs that are whole or absent."""

import contextlib
import gzip
import hashlib
import os
import random
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import xxhash
from hypothesis import given, strategies as st

from tests.waiting import PATIENCE
from toolkit.errors import DataError, Unreadable
from toolkit.storage import compression, outputs, reading
from toolkit.storage.compression import COMPRESSORS, decompress
from toolkit.storage.outputs import Compressing, Output, RowOutput, write_file
from toolkit.storage.paths import stat
from toolkit.storage.reading import Lines, content_digest
from toolkit.storage.stores import local
from toolkit.storage_options import Size

ANY = 10**9
ROWS = [b"row %d " % i + b"x" * (i % 97) for i in range(40_000)]


def lines_of(path: Path, max_bytes: int = ANY, *, ahead: bool = False) -> list[bytes]:
    with Lines(str(path), max_bytes, ahead=ahead) as lines:
        return list(lines)


@pytest.fixture
def same_threads() -> Iterator[None]:
    """The threads that there were before are those that there are after."""
    before = threading.enumerate()
    yield
    assert set(threading.enumerate()) <= set(before)


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


def written(path: Path, rows: list[bytes], threads: int = 0) -> RowOutput:
    with RowOutput(str(path), threads) as out:
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


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPRESSORS)
def test_compressors_give_the_same_bytes_wherever_the_stack_lies(name: str) -> None:
    """Threads that live at once have different stacks, as processes have. Short inputs meet the fault soonest."""
    starts = (b"abcdefgh", b"aab", b'{"source":"s","id":"1-0"}\n')
    inputs = [(start * 30)[:size] for size in (1, 8, 9, 16, 17, 24, 33, 70, 200) for start in starts]
    compress, count = COMPRESSORS[name], 200
    gate = threading.Barrier(count)
    found: list[tuple[bytes, ...]] = []

    def work() -> None:
        gate.wait(PATIENCE)  # until all live
        found.append(tuple(map(compress, inputs)))

    before = threading.stack_size(1 << 18)
    try:
        threads = [threading.Thread(target=work) for _ in range(count)]
        for thread in threads:
            thread.start()
    finally:
        threading.stack_size(before)
    for thread in threads:
        thread.join()
    assert len(found) == count
    assert [len(set(members)) for members in zip(*found, strict=True)] == [1] * len(inputs)


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
    assert len(members) == len(expected) // outputs.BLOCK + 1 > 1
    assert all(member.endswith(b"\n") for member in members)
    assert all(len(member) >= outputs.BLOCK for member in members[:-1])
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


@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"\r", b"\xff", b"\0", b"long" * 5, b"\xe2\x80\xa8"])).map(b"".join),
    block=st.integers(1, 9),
)
def test_lines_are_those_of_a_slow_reader(data: bytes, block: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "READ", block)  # so that lines cross the borders of blocks
        with Lines(str(path), ANY, digest=True) as lines:
            assert list(lines) == slow_lines(data)
        for most in (ANY, max([0, *map(len, slow_lines(data))])):
            with Lines(str(path), most) as joined:
                assert [line for part in joined.joined() for line in part.split(b"\n")] == slow_lines(data)
    assert lines.number == len(slow_lines(data))
    assert lines.size == len(data)
    assert lines.content == xxhash.xxh3_128_hexdigest(data)
    assert lines.ended == (not data or data.endswith(b"\n"))


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl"])
def test_a_line_may_span_many_blocks(suffix: str, tmp_path: Path) -> None:
    rows = [b"first", random.Random(0).randbytes(3 * reading.READ + 17).replace(b"\n", b" "), b"", b"last"]
    written(tmp_path / f"a{suffix}", rows)
    assert lines_of(tmp_path / f"a{suffix}") == rows


@pytest.mark.parametrize("size", [101, 3 * reading.READ])
def test_a_line_beyond_the_limit_is_an_error_that_names_path_and_line(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    written(path, [b"x" * 100, b"", b"x" * size, b"x"])
    with pytest.raises(DataError, match=r"at most 100 bytes.*`max_document_bytes`") as raised:
        lines_of(path, 100)
    assert (raised.value.path, raised.value.line) == (str(path), 3)
    assert str(raised.value).startswith(f"{path}:3: expected ")


@pytest.mark.parametrize("block", [7, 10, 1000])
def test_a_line_of_just_the_limit_is_allowed(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "READ", block)
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
    path.write_bytes(DAMAGE[damage](gzip.compress(b"\n".join(ROWS), 1, mtime=0)))
    with pytest.raises(DataError, match=r"a\.jsonl\.gz:\d+: expected .* compressed data, got"):
        lines_of(path)
    with pytest.raises(DataError, match=r"a\.jsonl\.gz"):
        reading.content_digest(str(path))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl.gz", b"", "an empty file"),
        ("a.jsonl.zst", b"", "an empty file"),
        ("a.jsonl.gz", b'{"id":1}', "begins with"),
        ("a.jsonl.gz", compression.compress_zstd(b"a\n"), "expected gzip data by the suffix, got zstd data; rename"),
        ("a.jsonl.zst", gzip.compress(b"a\n", mtime=0), "expected zstd data by the suffix, got gzip data; rename"),
        ("a.jsonl", gzip.compress(b"a\n", mtime=0), "gzip data; rename it"),
        ("a.jsonl", compression.compress_zstd(b"a\n"), "zstd data; rename it"),
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


# --- lines, read ahead ------------------------------------------------------------------------------------------------


def outcome(path: Path, max_bytes: int, *, ahead: bool) -> tuple[Any, ...]:
    """The lines up to the end or the error, and all that is then known of the file."""
    got: list[bytes] = []
    error = ""
    with Lines(str(path), max_bytes, digest=True, ahead=ahead) as lines:
        try:
            got.extend(lines)
        except DataError as caught:
            error = f"{type(caught).__name__} {caught}"
    return got, error, lines.number, lines.size, lines.content, lines.ended


@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"\r", b"\0", b"long" * 5])).map(b"".join),
    block=st.integers(4, 12),
    max_bytes=st.sampled_from([4, 25, ANY]),
    lost=st.integers(0, 12),
)
def test_reading_ahead_gives_the_same_lines_numbers_and_errors(
    data: bytes, block: int, max_bytes: int, lost: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl.gz"
    stored = gzip.compress(data, mtime=0)
    path.write_bytes(stored[: len(stored) - lost])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "READ", block)
        expected = outcome(path, max_bytes, ahead=False)
        assert outcome(path, max_bytes, ahead=True) == expected
    assert bool(expected[1]) == (lost > 0 or max(map(len, data.split(b"\n"))) > max_bytes)


@pytest.mark.parametrize("damage", ["flipped", "garbage after", "a second member cut"])
def test_damage_ends_the_lines_at_the_same_place_with_and_without_reading_ahead(
    damage: str, tmp_path: Path, same_threads: None
) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(DAMAGE[damage](gzip.compress(b"\n".join(ROWS), 1, mtime=0)))
    got, error, number, *_, content, _ = outcome(path, ANY, ahead=True)
    assert damage == "flipped" or got == ROWS[: len(got)]
    assert error.startswith(f"DataError {path}:{len(got) + 1}: expected ")
    assert (number, content) == (len(got), None)
    assert outcome(path, ANY, ahead=False)[:2] == (got, error)


def test_blocks_that_are_read_ahead_can_be_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "READ", 1000)
    written(tmp_path / "a.jsonl", ROWS[:500])
    with Lines(str(tmp_path / "a.jsonl"), ANY, ahead=True) as lines:
        found: list[bytes] = []
        for number, block in enumerate(lines.blocks()):
            if number == 3:
                lines.give_back(block)
                assert lines.number == len(found)
                break
            found += block
        assert [*found, *lines] == ROWS[:500]
        assert lines.number == 500


@pytest.mark.parametrize("lines_read", [0, 1, 5])
@pytest.mark.parametrize("error", [None, KeyError, KeyboardInterrupt])
def test_the_thread_that_reads_ahead_ends_with_the_reader(
    lines_read: int, error: type[BaseException] | None, tmp_path: Path, same_threads: None
) -> None:
    written(tmp_path / "a.jsonl.gz", ROWS)

    def read() -> None:
        with Lines(str(tmp_path / "a.jsonl.gz"), ANY, ahead=True) as lines:
            assert [next(lines) for _ in range(lines_read)] == ROWS[:lines_read]
            if error:
                raise error

    if error is None:
        read()
    else:
        with pytest.raises(error):
            read()


def test_a_file_that_cannot_be_opened_starts_no_thread(tmp_path: Path, same_threads: None) -> None:
    with pytest.raises(DataError, match="No such file"):
        lines_of(tmp_path / "a.jsonl", ahead=True)
    (tmp_path / "a.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="begins with"):
        lines_of(tmp_path / "a.jsonl.gz", ahead=True)


def test_one_block_is_read_ahead_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "READ", 100)
    written(tmp_path / "a.jsonl", [b"x" * 99] * 50)
    reads = 0

    class Counting(reading.Decompressed):
        def read(self, size: int = -1) -> bytes:
            nonlocal reads
            reads += 1
            return super().read(size)

    monkeypatch.setattr(reading, "Decompressed", Counting)
    with Lines(str(tmp_path / "a.jsonl"), ANY, ahead=True) as lines:
        for given, _ in enumerate(lines, 1):
            assert reads <= given + 1
        assert reads == 51
    assert lines_of(tmp_path / "a.jsonl", ahead=True) == [b"x" * 99] * 50


# --- compression in threads -------------------------------------------------------------------------------------------


class Gathered(Output):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__("")
        self.data: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.data.append(data)
        self.size += len(data)


def slowly(data: bytes) -> bytes:
    """The shorter, the slower."""
    time.sleep(0.005 / len(data))
    return data * 2


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_blocks_are_written_in_order_and_their_places_told(threads: int, same_threads: None) -> None:
    out, told = Gathered(), []
    blocks = [bytes([65 + i]) * (i % 7 + 1) for i in range(26)]
    with Compressing(out, threads) as compressing:
        for i, block in enumerate(blocks):
            compressing.write(block, slowly, lambda offset, length, i=i: told.append((i, offset, length)))  # type: ignore[misc]
        for block in blocks[:3]:
            compressing.write(block, slowly)
        compressing.flush()
        assert out.data == [block * 2 for block in [*blocks, *blocks[:3]]], "all that was written before a flush"
    offsets = [0]
    for block in blocks:
        offsets.append(offsets[-1] + 2 * len(block))
    assert told == [(i, offsets[i], 2 * len(block)) for i, block in enumerate(blocks)]


def test_few_blocks_are_held_before_they_are_written() -> None:
    out, begun = Gathered(), []

    def compress(data: bytes) -> bytes:
        begun.append(data)
        return data

    with Compressing(out, 2) as compressing:
        for i in range(50):
            compressing.write(b"%d" % i, compress)
            assert i + 1 - len(out.data) <= 2 * 2
    assert len(out.data) == len(begun) == 50


class Broken(BaseException):
    """Something that is not even an Exception."""


@pytest.mark.parametrize("error", [ValueError, MemoryError, Broken])
@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("at", [0, 4, 29])
def test_a_block_that_cannot_be_compressed_is_an_error_and_nothing_comes_behind_it(
    error: type[BaseException], threads: int, at: int, same_threads: None
) -> None:
    out, told = Gathered(), []

    def compress(data: bytes) -> bytes:
        if data == b"%d" % at:
            raise error("cannot")
        return data

    def write() -> None:
        with Compressing(out, threads) as compressing:
            for i in range(30):
                compressing.write(b"%d" % i, compress, lambda offset, length: told.append(offset))

    with pytest.raises(error, match="cannot"):
        write()
    assert out.data == [b"%d" % i for i in range(at)][: len(out.data)]
    assert len(told) == len(out.data) <= at


@pytest.mark.parametrize("threads", [0, 2])
def test_nothing_more_is_written_where_the_writer_of_blocks_fails(threads: int, same_threads: None) -> None:
    out = Gathered()

    def write() -> None:
        with Compressing(out, threads) as compressing:
            for i in range(30):
                compressing.write(b"%d" % i, compress)
            raise KeyError

    def compress(data: bytes) -> bytes:
        time.sleep(0.001)
        return data

    with pytest.raises(KeyError):
        write()
    written_by_then = len(out.data)
    assert out.data == [b"%d" % i for i in range(written_by_then)]
    time.sleep(0.02)
    assert len(out.data) == written_by_then


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".jsonl"])
@pytest.mark.parametrize("rows", [[], [b""], ROWS[:10], ROWS], ids=["none", "an empty one", "a few", "many"])
def test_threads_change_nothing_of_an_output(
    suffix: str, rows: list[bytes], tmp_path: Path, same_threads: None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs, "BLOCK", 1 << 15)  # some 70 of them
        outs = [written(tmp_path / f"{threads}{suffix}", rows, threads) for threads in (0, 1, 2)]
    facts = [
        (Path(o.path).read_bytes(), o.sha256, o.size, o.stat.size, o.content, o.content_sha256, o.content_size, o.rows)
        for o in outs
    ]
    assert facts[0] == facts[1] == facts[2]
    data = b"".join(row + b"\n" for row in rows)
    assert facts[0][4:] == (xxhash.xxh3_128_hexdigest(data), hashlib.sha256(data).hexdigest(), len(data), len(rows))
    assert lines_of(tmp_path / f"2{suffix}") == rows


@pytest.mark.parametrize(
    ("at", "threads"),  # of ten blocks; the last write, on leaving, takes the sixth of those that threads compress
    [*((at, threads) for at in (1, 5, 7, 10) for threads in (0, 2)), (6, 2)],
)
def test_a_compressor_that_fails_on_the_way_leaves_neither_file_nor_thread(
    at: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(data: bytes) -> bytes:
        if data.startswith(b"%d " % at):
            raise MemoryError
        return data

    monkeypatch.setattr(outputs, "BLOCK", 100)
    monkeypatch.setattr(compression, "compress_fast", refuse)
    before = threading.active_count()
    with pytest.raises(MemoryError) as raised:
        written(tmp_path / "a.jsonl.gz", [b"%d " % i + b"x" * 97 for i in range(1, 10)] + [b"10 "], threads)
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == before, raised


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


@pytest.mark.parametrize("make", [Output, RowOutput, partial(RowOutput, threads=2)], ids=["bytes", "rows", "threads"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Broken])
def test_an_output_that_fails_leaves_the_old_file_and_nothing_else(
    make: Callable[[str], Output], error: type[BaseException], tmp_path: Path, same_threads: None
) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(b"old")

    def fail() -> None:
        with make(str(path)) as out:
            out.write_rows(ROWS) if isinstance(out, RowOutput) else out.write(b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_output_that_cannot_be_renamed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(Unreadable, match=r"a\.jsonl\.gz: expected a file that can be written, got: no space left"):
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


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_signal_that_comes_when_a_file_has_just_been_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    made: list[Path] = []

    def interrupted(path: str, mode: str, **_: object) -> None:
        made.append(Path(path))
        made[0].touch()
        raise error

    monkeypatch.setattr(local, "open", interrupted, raising=False)
    with contextlib.suppress(error), outputs.Output(str(tmp_path / "a")):
        pytest.fail("the file could not be made")
    assert made
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_another_attempt_deletes_at_once_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def replaced_and_gone(source: str, target: str) -> None:
        replace(source, target)
        Path(target).unlink()

    monkeypatch.setattr(os, "replace", replaced_and_gone)
    assert outputs.write_file(str(tmp_path / "a"), b"12345").size == 5


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


def test_what_replaces_a_file_is_open_to_no_more_people(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch(0o600)
    write_file(str(path), b"1")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o444)
    write_file(str(path), b"2")
    assert (path.read_bytes(), path.stat().st_mode & 0o700) == (b"2", 0o600)
