"""The tagger ``noise``: its table against Python's own."""

import unicodedata

import numpy as np

from taggers import noise


def test_the_table_says_of_each_code_point_what_python_says() -> None:
    wanted = [category[0] not in "LM" for category in map(unicodedata.category, map(chr, range(0x110000)))]
    assert np.array_equal(noise._is_noise(), wanted)
