"""Phone numbers: what is one, where it ends, and how long it takes."""

import time

import pytest

from taggers.phone_numbers import PhoneNumbers
from toolkit import Document


def found(text: str, tagger: PhoneNumbers | None = None) -> list[str]:
    return [text[span.start : span.end] for span in (tagger or PhoneNumbers()).tag(Document(text))]


@pytest.mark.parametrize(
    "number",
    [
        "(212) 555-0123",
        "(212)555-0123",
        "212-555-0123",
        "212.555.0123",
        "212 555 0123",
        "1 (212) 555-0123",
        "1-800-555-0199",
        "+1 212 555 0123",
        "+12125550123",
        "+44 (0)20 7946 0958",
        "+49 30/1234567",
        "+81-3-1234-5678",
    ],
)
@pytest.mark.parametrize("around", ["{}", "({})", "Tel.: {}.", "tel:{}", "電話{}まで", "{}, oder", "{}\n"])
def test_a_number_and_nothing_around_it(number: str, around: str) -> None:
    assert found(around.format(number)) == [number]


@pytest.mark.parametrize(
    "text",
    ["2125550123", "112-555-0123", "212-155-0123", "212-555-01234", "x212-555-0123", "12-212-555-0123", "1.5.2020",
     "212-555-0123x", "212-555-0123-4", "+123456", "+1234567890123456", "x+12125550123", "1+1234567", "212-555.012",
     "978-0-306-40615-7", "2012-2013-2014", "1,212-555-0123"],
)  # fmt: skip
def test_what_only_looks_like_one(text: str) -> None:
    assert found(text) == []


def test_two_patterns_give_one_span() -> None:
    assert found("+1 212-555-0123 or 212-555-0123") == ["+1 212-555-0123", "212-555-0123"]


def test_numbers_of_a_region() -> None:
    pytest.importorskip("phonenumbers", reason="extra `phone`")
    text = "Tel. 030 901820, am 12.03.2024, ISBN 978-3-16-148410-0, +1 212-736-5000"
    assert found(text, PhoneNumbers(region="DE")) == ["030 901820", "+1 212-736-5000"]


@pytest.mark.parametrize(
    "piece", ["1", "+", "+1", "1 ", "(", "(2", "2-", "212-", "+1 ", "212-555-", "1(212)", "+1()", "  "]
)
def test_time_is_linear(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    PhoneNumbers().tag(Document(text))
    assert time.process_time() - began < 10
