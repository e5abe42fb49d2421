"""Hashes of the pieces of a buffer: xxh3, compiled, for all of them at once."""

from functools import cache
from typing import NamedTuple

import numpy as np

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Bytes, Int64s


class Texts(NamedTuple):
    """Texts in one buffer.

    Attributes:
        utf8: int8, the buffer; 8 bytes at least are behind each text.
        starts: int64, where each begins.
        ends: int64, exclusive.
        items: how many.
    """

    utf8: Bytes
    starts: Int64s
    ends: Int64s
    items: int


_hashes = Compiled("toolkit.whole.exact.xxh3:hashes", Texts, "int8* uint64*", uses=["toolkit.text.kernels.intrinsics"])

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
"""The default secret of xxh3; a test holds the hashes against the library."""


@cache
def _secret() -> Array:
    return np.frombuffer(_SECRET, dtype=np.int8)


def hashes_128(texts: Texts) -> Array:
    """Return the xxh3 hashes of texts that are not empty; uint64 (texts, 2), the upper half first."""
    found = np.empty((texts.items, 2), dtype=np.uint64)
    _hashes(texts, _secret(), found.reshape(-1))
    return found


def numbers_of(digests: bytes | bytearray, bits: int) -> Array:
    """Return hashes that the library gave, one behind the other, as numbers; uint64 (hashes, bits / 64)."""
    return np.frombuffer(digests, dtype=">u8").reshape(-1, bits // 64).astype(np.uint64)
