"""Compression: which one a file has, its bytes inflated, to the end or an error; and what compresses ours.

A compression's suffix says what a file is, and its first bytes must agree. So must those of a file whose name says that
it is plain. Where the name says nothing, the first bytes do. Whatever the compression, members (frames, streams) that
follow each other are one file, and what is neither a member nor the padding that its format allows is an error: the
standard library's files of bz2 and xz end silently there.
"""

import io
import re
import sys
from collections.abc import Callable
from typing import IO, Any, cast

from toolkit.distribution import missing_extra
from toolkit.errors import DAMAGED, DataError
from toolkit.session import current

SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".xz": "xz"}
"""Compressions by suffix."""

PLAIN = (
    *(".jsonl", ".ndjson", ".json", ".txt", ".text", ".csv", ".tsv", ".warc", ".wet", ".wat"),
    *(".md", ".html", ".htm", ".xml", ".yaml", ".yml"),
)
"""Suffixes of files that are not compressed."""

_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),  # a frame, or one to be skipped
    "bz2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),  # a first block, or none
    "xz": re.compile(rb"\xfd7zXZ\x00"),
}
MAGIC_BYTES = 10
"""Of a file's beginning, which tell its compression."""

APART = 8
"""Bytes that igzip compresses apart; its code for long inputs takes none of up to 16."""

CHUNK = 1 << 17
"""Stored bytes that are inflated at a time."""


class Damaged(Exception):
    """Raised for damaged compressed data, with its fault."""


class WindowTooLarge(Exception):
    """Raised for data with a larger window than `storage.max_window`."""


class Stored(io.RawIOBase):
    """The bytes of a file as stored, counted.

    Attributes:
        at: Number of bytes read so far.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream
        self._head = b""
        self.at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(self._head), len(buffer))
        buffer[:count] = self._head[:count]
        self._head = self._head[count:]
        if count < len(buffer):
            count += cast("Any", self._stream).readinto(memoryview(buffer)[count:])
        self.at += count
        return count

    def head(self, count: int) -> bytes:
        """Return the first bytes without consuming them; fewer if there are no more."""
        while len(self._head) < count and (more := self._stream.read(count - len(self._head))):
            self._head += more
        return self._head

    def close(self) -> None:
        self._stream.close()
        super().close()


def compression_of(path: str) -> str | None:
    """Return the compression by suffix; an empty text for plain data, None for an unknown suffix."""
    for suffix, name in SUFFIXES.items():
        if path.endswith(suffix):
            return name
    return "" if path.endswith(PLAIN) else None


def compression_in(head: bytes) -> str:
    """Return the compression by the first bytes of a file; empty for none."""
    return next((name for name, pattern in _MAGIC.items() if pattern.match(head)), "")


def decompressing_reader(path: str, stored: Stored) -> Callable[[int], bytes]:
    """Return a function to read the uncompressed bytes of a file.

    It takes a number of bytes and gives up to so many, all if the number is negative, none at the end. It raises
    EOFError where the data ends too early, Damaged (or an error of isal) where it is not sound, and WindowTooLarge.

    Raises:
        DataError: if the first bytes are not what the suffix says.
    """
    magic = stored.head(MAGIC_BYTES)
    compression = compression_in(magic)
    expected = compression_of(path)
    if expected and compression != expected:
        got = (
            f"{compression} data; rename it"
            if compression
            else f"data that begins with {magic[:4]!r}"
            if magic
            else None
        )
        raise DataError(f"expected {expected} data by the suffix, got {got or f'an empty file; {DAMAGED}'}", path=path)
    if expected == "" and compression:
        raise DataError(f"expected plain data by the suffix, got {compression} data; rename it", path=path)
    if not compression:
        return lambda size: stored.read(size) or b""
    if compression == "gzip":
        from isal import igzip

        file = igzip.IGzipFile(fileobj=stored, mode="rb")  # type: ignore[no-untyped-call]
        # `read1` gives what could be read before an error; `read` loses it
        return lambda size: file.read1(size) if size >= 0 else file.read()
    return Frames(stored, compression).read


def zstd() -> Any:
    """Return the module for zstd: that of Python, or its twin for older versions."""
    try:
        from compression import zstd as module  # type: ignore[import-not-found,unused-ignore]  # Python 3.14

        return module
    except ImportError:
        try:
            from backports import zstd as backport
        except ImportError:
            raise missing_extra("", "zstd files", "backports.zstd") from None
        return backport


def _decompressor(name: str) -> Any:
    """Return a decompressor of one frame; its memory grows with what it reads, up to the window of the frame."""
    if name == "gzip":
        from isal import igzip_lib

        return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    window = current().options.max_window
    if name == "zstd":
        module = zstd()
        log = max(10, (window - 1).bit_length())  # rounded up to a power of two
        return module.ZstdDecompressor(options={module.DecompressionParameter.window_log_max: log})
    if name == "bz2":
        import bz2

        return bz2.BZ2Decompressor()
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=window)


class Frames:
    """The uncompressed bytes of consecutive frames.

    Args:
        stored: the bytes of the file, from its first.
        name: Name of the compression.
        steps_from: the stored byte from which on each byte is inflated by itself, so that damage is noticed there.

    Attributes:
        size: bytes inflated so far.
        whole: Inflated bytes of complete frames.
    """

    def __init__(self, stored: Stored, name: str, steps_from: int = sys.maxsize) -> None:
        self._stored = stored
        self._name = name
        self._steps_from = steps_from
        self._frame = _decompressor(name)
        self.size = self.whole = 0

    def read(self, size: int) -> bytes:
        if size < 0:
            return b"".join(iter(lambda: self.read(CHUNK), b""))
        while size:
            if self._frame.eof:
                self.whole = self.size
                block = self._between()
                if not block:
                    return b""
                self._frame = _decompressor(self._name)
            else:
                block = self._more() if self._frame.needs_input else b""
                if self._frame.needs_input and not block:
                    raise EOFError
            try:
                result = cast("bytes", self._frame.decompress(block, size))
            except Exception as error:
                raise (WindowTooLarge if "memory" in str(error).lower() else Damaged)(str(error)) from None
            if result:
                self.size += len(result)
                return result
        return b""

    def _more(self) -> bytes:
        return self._stored.read(max(1, min(CHUNK, self._steps_from - self._stored.at))) or b""

    def _between(self) -> bytes:
        """Return the bytes after a frame; none at the end. Zeros may pad gzip files, and xz files, four at a time."""
        block = self._frame.unused_data or self._more()
        zeros = 0
        while self._name in ("gzip", "xz") and block.startswith(b"\0"):
            rest = block.lstrip(b"\0")
            zeros += len(block) - len(rest)
            block = rest or self._more()
        if zeros % 4 and self._name == "xz":
            raise Damaged("padding that is no multiple of four bytes")
        return block


# --- compressing ------------------------------------------------------------------------------------------------------


def compress_fast(data: bytes) -> bytes:
    """Return a gzip member by igzip at level 2, for intermediates: ~10 times as fast as zlib level 6, ~12 % larger.

    The first bytes are compressed apart, by other code of igzip. The code for a long input takes the hash of its third
    byte from a register that it has not set, which holds an address of the stack (isa-l 2.32, ``.write_first_byte`` in
    ``igzip_icf_body_h1_gr_bt.asm``): where that hash meets another, a match is missed, and the bytes are others.
    """
    from isal import isal_zlib

    start, rest = memoryview(data)[:APART], memoryview(data)[APART:]
    compress = isal_zlib.compressobj(2, isal_zlib.DEFLATED, isal_zlib.MAX_WBITS | 16)
    return (
        compress.compress(start) + compress.flush(isal_zlib.Z_SYNC_FLUSH) + compress.compress(rest) + compress.flush()
    )


def compress_small(data: bytes) -> bytes:
    """Return a gzip member by zlib-ng at level 6, for releases: the size of zlib level 6 in less than half its time."""
    from zlib_ng import zlib_ng

    return zlib_ng.compress(data, 6, 31)


def compress_zstd(data: bytes) -> bytes:
    """Return a zstd frame at level 3, with a checksum."""
    module = zstd()
    parameter = module.CompressionParameter
    options = {parameter.compression_level: 3, parameter.checksum_flag: 1}
    return cast("bytes", module.compress(data, options=options))


def compress_not(data: bytes) -> bytes:
    return data


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": compress_small,
    "gzip-fast": compress_fast,
    "zstd": compress_zstd,
    "none": compress_not,
}
"""By the name used in configurations. All give output that can be concatenated."""


def decompress(data: bytes, compression: str) -> bytes:
    """Return the uncompressed bytes of one member by one of `COMPRESSORS`."""
    if compression == "none":
        return data
    if compression == "zstd":
        return cast("bytes", zstd().decompress(data))
    from isal import igzip

    return cast("bytes", igzip.decompress(data))  # type: ignore[no-untyped-call]


def compressor_for(path: str) -> Callable[[bytes], bytes]:
    """Return the compressor for intermediates with this suffix."""
    return {"gzip": compress_fast, "zstd": compress_zstd}.get(compression_of(path) or "", compress_not)
