"""Hashes that are compiled are those of the library."""

import random

import numpy as np
import xxhash

from toolkit.whole.exact.pieces import Texts, hashes_128, numbers_of


def test_hashes_are_those_of_the_library_for_every_length() -> None:
    chance = random.Random(1)
    texts = [
        chance.randbytes(size)
        for size in [*range(1, 260), *range(1020, 1030), *range(1080, 1095), 2048, 2049, 5000, 100_000]
        for _ in range(4)
    ]
    chance.shuffle(texts)
    ends = np.cumsum([len(text) for text in texts])
    starts = ends - np.array([len(text) for text in texts])
    buffer = np.frombuffer(b"".join(texts) + bytes(16), dtype=np.int8)
    expected = b"".join(map(xxhash.xxh3_128_digest, texts))
    found = hashes_128(Texts(buffer, starts, ends, len(texts)))
    assert found.astype(">u8").tobytes() == expected
    assert np.array_equal(found, numbers_of(expected, 128))
    assert len(hashes_128(Texts(buffer, starts[:0], ends[:0], 0))) == 0
