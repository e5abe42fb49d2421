"""Normalisations: examples, and every character that there is."""

import sys
import unicodedata

import pytest

from toolkit.dedup.exact import normalize
from toolkit.errors import DataError


def test_ccnet_takes_punctuation_accents_and_controls_away_and_nothing_else() -> None:
    for code in (*range(0xD800), *range(0xE000, 0x20000), *range(0x20000, sys.maxunicode + 1, 97)):
        character = chr(code)
        kept = [
            "0" if unicodedata.category(c) == "Nd" else c
            for c in unicodedata.normalize("NFD", character.lower())
            if c == "\n" or not (unicodedata.category(c)[0] == "P" or unicodedata.category(c) in ("Mn", "Cc"))
        ]
        assert normalize.ccnet(character) == "".join(kept), hex(code)


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("none", " A\n", " A\n"),
        ("dolma", " \n ", ""),
        ("dolma", " A ", " A "),
        ("ccnet", " Café, 12:30!\n", "cafe 0000"),
        ("ccnet", "…", ""),
        ("unicode", "  ＡB\n\n ﬁ\tSTRASSE ", "ab fi strasse"),
        ("unicode", "straße", "strasse"),
        ("url", "HTTPS://www.Example.org:443/A/?b=C#d", "example.org/A?b=C"),
        ("url", "http://example.org:8080", "example.org:8080"),
        ("url", "no address", "no address"),
    ],
)
def test_whole_texts(name: normalize.Normalisation, text: str, same: str) -> None:
    assert normalize.whole(name, text) == same


def test_a_broken_address_is_an_error() -> None:
    with pytest.raises(DataError, match="expected an address, got 'http://"):
        normalize.whole("url", "http://[a")
