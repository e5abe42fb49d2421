"""JSON strings as texts in UTF-8 are what msgspec makes of them."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.text.json_strings import Decoded, decoded
from toolkit.text.line_table import LineTable


def _texts(found: Decoded) -> list[bytes]:
    return [found.lines.utf8[begin:end].tobytes() for begin, end in found.places.tolist()]


TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\\"\n\t\r\b\f/é€𝒳\u2028\x7f'))


@given(st.lists(st.tuples(TEXT, st.booleans()), max_size=6))
def test_texts_and_their_lines_are_those_of_python(given_: list[tuple[str, bool]]) -> None:
    found = decoded([msgspec.Raw(json.dumps(text, ensure_ascii=ascii_).encode()) for text, ascii_ in given_])
    texts = [text for text, _ in given_]
    assert found
    assert _texts(found) == [text.encode() for text in texts]
    assert [each.tolist() for each in found.lines] == [each.tolist() for each in LineTable.of(texts)]
    assert found.open_ended.tolist() == [text != "" and not text.endswith("\n") for text in texts]


PIECES = [
    *('"', "\\", "\\\\", "\\n", "\\/", "\\u00e9", "\\uD83D", "\\uDE00", "\\u12", "\\ud83dx", "\\x"),
    *("a", "é", "€", "𝒳", "\x1f"),
]
EDGES = (0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF)
BYTES = [*map(str.encode, PIECES), *(bytes([edge]) for edge in EDGES)]


@given(st.lists(st.sampled_from(BYTES), max_size=6))
def test_what_msgspec_does_not_take_is_no_text(pieces: list[bytes]) -> None:
    raw = b'"' + b"".join(pieces) + b'"'
    try:
        expected: Any = msgspec.json.decode(raw, type=str).encode()
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError):
        expected = None
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)  # what is not one string is none of ours to judge
    except msgspec.DecodeError:
        return
    found = decoded([msgspec.Raw(raw)])
    assert (_texts(found)[0] if found else None) == expected


@pytest.mark.parametrize("other", ["1", "null", "[]", '{"a": "b"}', "true"])
def test_other_values_are_no_texts(other: str) -> None:
    assert decoded([msgspec.Raw(b'"a"'), msgspec.Raw(other.encode())]) is None


def test_no_strings() -> None:
    found = decoded([])
    assert found
    assert found.lines.bounds.tolist() == [0]
