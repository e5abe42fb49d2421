"""Noise is what Python's own table of categories says, whatever the text."""

import unicodedata

import hypothesis.strategies as st
import pytest
from hypothesis import given

from taggers.noise import Noise, _noise_up_to
from toolkit import Document
from toolkit.text import split_lines

TEXTS = st.text("aé1 \t\r\n\x00\x85\u0301\u2028日½\U0001f600\U000e0100\U0010ffff")


@given(st.lists(TEXTS, max_size=4))
def test_noise_is_counted_as_python_has_it(texts: list[str]) -> None:
    documents = [Document(id=str(i), text=text, source="s") for i, text in enumerate(texts)]
    joined = ["\n".join(split_lines(text)) for text in texts]
    expected = [(len(text), sum(unicodedata.category(c)[0] not in "LM" for c in text)) for text in joined]
    assert [(found.chars, found.noise) for found in Noise().tag_batch(documents)] == expected


@pytest.mark.parametrize("last", [0x7F, 0x7FF, 0xFFFF, 0x3FFFF, 0x10FFFF])
def test_the_table_says_of_each_code_point_what_python_says(last: int) -> None:
    wanted = [category[0] not in "LM" for category in map(unicodedata.category, map(chr, range(last + 1)))]
    assert _noise_up_to(last).tolist() == wanted
