"""E-mail addresses: what is one, where it ends, and how long it takes."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taggers.emails import Emails
from toolkit import Document


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in Emails().tag(Document(text))]


@pytest.mark.parametrize(
    "address",
    [
        "a@b.de",
        "joe.doe+news_2@mail-3.example.co.uk",
        "o'brien@example.org",
        "info@3com.com",
        "x@xn--bcher-kva.example",
        "x@example.xn--p1ai",
        "müller@bücher.de",
        "почта@пример.рф",
        "a--b%c@d-e.org",
        "a" * 64 + "@b.de",
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "<{}>", "({}).", "mailto:{}?subject=x", "'{}'", "联系{}谢谢", "=[{}];", "\n{}\r\n"]
)
def test_an_address_and_nothing_around_it(address: str, around: str) -> None:
    assert found(around.format(address)) == [address]


@pytest.mark.parametrize(
    "text",
    ["@name", "a@b", "a @b.de", "a@ b.de", "a@b.c", "a@b.c0m", "a@b..de", "a@-b.de", "a@b-.de", ".@b.de", "a.@b.de",
     "a@1.2.3.4", "a" * 65 + "@b.de", "a@" + "b" * 64 + ".de", "日本@例え.jp"],
)  # fmt: skip
def test_what_only_looks_like_one(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a@b.de, c@d.fr;e@f.it", ["a@b.de", "c@d.fr", "e@f.it"]),
        ("a@b.de@c.org", ["a@b.de"]),
        ("..a@b.de", ["a@b.de"]),
        ("a..b@c.de", ["b@c.de"]),
        ("-a@b.de-", ["a@b.de"]),
        ("a@b.de/c", ["a@b.de"]),
        ("a@mail.ruпочта", ["a@mail.ru"]),
        ("http://host/?mail=a@b.de&x=1", ["a@b.de"]),
    ],
)
def test_where_addresses_begin_and_end(text: str, addresses: list[str]) -> None:
    assert found(text) == addresses


@given(st.text(st.sampled_from("ab1.-_@+' é語"), max_size=30))
def test_all_that_a_simple_pattern_finds_with_nothing_missing(text: str) -> None:
    """The definition at once, as a pattern that is not linear."""
    word = "[A-Za-zÀ-ÖØ-öø-ɏͰ-ϿЀ-ԯ0-9]"
    local = rf"(?:{word}|_)(?:(?:[.'%&+~]|-+)(?:{word}|_)|{word}|_)*(?:-+|[%&+~])?"
    label = rf"{word}(?:(?:{word}|-)*{word})?"
    pattern = rf"(?<!{word})(?<!_){local}@(?:{label}\.)+(?:[A-Za-z]{{2,}}(?![A-Za-z0-9])|[a-zé]{{2,}}(?!{word}))"
    for address in found(text):
        assert re.fullmatch(pattern, address), (text, address)
    assert bool(found(text)) == bool(re.search(pattern, text)), text


@pytest.mark.parametrize(
    "piece", ["a", "@", "a@", "a.", "@a.", "a@b.", "a@b.c", "a-", "@a-", "é@", ".@", "+@a", " @ a."]
)
def test_time_is_linear(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    Emails().tag(Document(text))
    assert time.process_time() - began < 10
