"""Lengths are Python's own."""

from hypothesis import given
from hypothesis import strategies as st

from taggers.length import Length
from toolkit import Document
from toolkit.text import split_lines


@given(st.lists(st.text(st.sampled_from("aé一 \U0001f600\r\n\n.'"), max_size=30), max_size=4))
def test_lengths_are_those_of_the_text(texts: list[str]) -> None:
    documents = [Document(text) for text in texts]
    for text, document, value in zip(texts, documents, Length().tag_batch(documents), strict=True):
        assert (value.chars, value.bytes, value.lines) == (len(text), len(text.encode()), len(split_lines(text)))
        assert value.words == len(document.words)
    for text, value in zip(texts, Length(splitter="white_space").tag_batch(documents), strict=True):
        assert value.words == len(text.split())
