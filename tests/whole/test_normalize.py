"""Normalisations: examples, and every character that there is."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.whole.exact import pieces

SYMBOLS = "´∶～━►"
SIGNS = "，。、„”“«»」「《》：？！（）；–—．’…〈〉【】％" + SYMBOLS
"""What cc_net's own code removes, beside controls (``text_normalizer.py`` of facebookresearch/cc_net)."""


def of_cc_net(line: str) -> str:
    """What cc_net's ``normalize_for_dedup`` makes of a line, in a few words of our own."""
    kept = [c for c in re.sub(r"\d", "0", line.strip().lower()) if c not in SIGNS and unicodedata.category(c) != "Cc"]
    return "".join(kept)


@given(st.text(st.sampled_from("aAéÉ1٣ \t\x0c«»“.,-!´►İΣς…\u0301\u00adǅ가") | st.characters(exclude_characters="\n")))
def test_what_is_equal_for_cc_net_s_code_is_equal_here(line: str) -> None:
    assert pieces.whole("ccnet", of_cc_net(line)) == pieces.whole("ccnet", line)


def test_ccnet_takes_punctuation_accents_and_controls_away_and_nothing_else() -> None:
    for code in (*range(0xD800), *range(0xE000, 0x20000), *range(0x20000, sys.maxunicode + 1, 97)):
        character = chr(code)
        kept = [
            "0" if unicodedata.category(c) == "Nd" else c
            for c in unicodedata.normalize("NFD", character.lower())
            if c == "\n"
            or not (unicodedata.category(c)[0] == "P" or unicodedata.category(c) in ("Mn", "Cc") or c in SYMBOLS)
        ]
        assert pieces.ccnet(character) == "".join(kept), hex(code)


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("none", " A\n", " A\n"),
        ("dolma", " \n ", ""),
        ("dolma", " A ", " A "),
        ("ccnet", " Café, 12:30!\n", "cafe 0000"),
        ("ccnet", "…", ""),
        ("datatrove", " Café—x, 12.30!\n\n3", "cafe x 0 0"),
        ("unicode", "  ＡB\n\n ﬁ\tSTRASSE ", "ab fi strasse"),
        ("unicode", "straße", "strasse"),
        ("url", "HTTPS://www.Example.org:443/A/?b=C#d", "example.org/A?b=C"),
        ("url", "http://example.org:8080", "example.org:8080"),
        ("url", "no address", "no address"),
    ],
)
def test_whole_texts(name: pieces.Normalisation, text: str, same: str) -> None:
    assert pieces.whole(name, text) == same


def test_a_broken_address_is_an_error() -> None:
    with pytest.raises(DataError, match="expected an address, got 'http://"):
        pieces.whole("url", "http://[a")
