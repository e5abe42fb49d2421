"""Words of ICU: dictionaries for scripts without blanks, offsets right beyond the Basic Multilingual Plane."""

import random
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import example, given

from tests.text.test_words import EDGES, TEXTS, by_text, real_texts, samples, table
from toolkit import Batch, Document, MissingExtra
from toolkit.text import LineTable, Words

try:
    import icu
except ImportError:
    icu = None

needs_icu = pytest.mark.skipif(icu is None, reason="PyICU is not installed")


def slow_words(text: str) -> list[str]:
    """Line by line and piece by piece, as ICU's own examples do it."""
    iterator = icu.BreakIterator.createWordInstance(icu.Locale("root"))
    found = []
    for line in text.split("\n"):
        units, begin = line.encode("utf-16-le"), 0
        iterator.setText(icu.UnicodeString(line))
        for end in iterator:
            if iterator.getRuleStatus() >= 100:
                found.append(units[2 * begin : 2 * end].decode("utf-16-le"))
            begin = end
    return found


@needs_icu
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ฉันชอบกินข้าว", ["ฉัน", "ชอบ", "กิน", "ข้าว"]),
        ("ខ្ញុំរៀនភាសាខ្មែរ", ["ខ្ញុំ", "រៀន", "ភាសាខ្មែរ"]),
        ("ພາສາລາວ", ["ພາສາ", "ລາວ"]),
        ("စကားကိုလေ့လာသည်", ["စကား", "ကို", "လေ့လာ", "သည်"]),
        ("毎朝コーヒーを", ["毎朝", "コーヒー", "を"]),
        ("我喜欢学习汉语。", ["我", "喜欢", "学习", "汉语"]),
        ("We can't 3.14, e-mail!", ["We", "can't", "3.14", "e", "mail"]),
        ("\U0001f600 a\U0001d4b3b \U00020000\U00020001 x", ["a\U0001d4b3b", "\U00020000", "\U00020001", "x"]),
        ("กิน\r\nกิน\n\n\0กิน", ["กิน", "กิน", "กิน"]),
        ("", []),
    ],
)
def test_words_are_those_of_dictionaries(text: str, words: list[str]) -> None:
    found = table([text, "", text], "icu")
    assert by_text(found) == [words, [], words]
    assert found.chars.tolist() == 2 * [len(word) for word in words]


@needs_icu
@given(TEXTS)
@example([])
@example([""])
@example(list(EDGES.values()))
def test_words_are_those_of_each_line_alone(texts: list[str]) -> None:
    assert by_text(table(texts, "icu")) == [slow_words(text) for text in texts]


@needs_icu
def test_words_of_real_text_are_those_of_each_line_alone(shared: Path) -> None:
    texts = list(real_texts(shared, 7))
    assert by_text(table(texts, "icu")) == [slow_words(text) for text in texts]


@needs_icu
def test_without_dictionaries_segments_are_ours() -> None:
    """ICU follows the same rules; of code points that both know, of no script that has a dictionary there."""
    other = regex.compile(
        r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Line_Break=SA}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]"
        r"|[\u30fc\uff70\uff9e\uff9f\u202f\n]"
    )
    chars = {
        name: [char for char in found if not other.match(char)]
        for name, found in samples().items()
        if name.startswith("WB=") or name == "Extended_Pictographic"
    }
    kinds = [found for found in chars.values() if found]
    iterator = icu.BreakIterator.createWordInstance(icu.Locale("root"))
    chance = random.Random(5)
    for _ in range(5000):
        text = "".join(chance.choice(chance.choice(kinds)) for _ in range(chance.randint(1, 12)))
        iterator.setText(icu.UnicodeString(text))
        bounds = [0, *iterator]
        units = text.encode("utf-16-le")
        pieces = (units[2 * a : 2 * b].decode("utf-16-le").strip() for a, b in pairwise(bounds))
        assert table([text], "segments").strings() == [piece for piece in pieces if piece], ascii(text)


@needs_icu
def test_the_language_chooses_rules() -> None:
    texts = LineTable.of(["example.org a"])
    assert Words.of(texts, "icu", "en").strings() == ["example.org", "a"]
    assert Words.of(texts, "icu", "en-US-posix").strings() == ["example", "org", "a"]
    assert Words.of(texts, "icu", "no such language").strings() == ["example.org", "a"]
    batch = Batch.of([Document("example.org a")])
    assert batch.words("icu", "en") is batch.words("icu", "en")
    assert batch.words("icu", "en") is not batch.words("icu", "th")


@needs_icu
@pytest.mark.parametrize("piece", ["กิน", "我喜欢", "の", "a ", "\u0301", "\U0001f600", "\n", "a"], ids=ascii)
def test_time_grows_with_the_length(piece: str) -> None:
    seconds = []
    for size in (50_000, 400_000):
        lines = LineTable.of([piece * (size // len(piece))])
        begin = time.process_time()
        Words.of(lines, "icu")
        seconds.append(time.process_time() - begin)
    assert seconds[1] < 8 * 3 * seconds[0] + 0.5


def test_without_icu_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icu", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tagmix\[icu\]'"):
        table(["a"], "icu")
