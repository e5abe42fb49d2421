"""Words are those of UAX #29, rule by rule; what is known of each is what Python says of the string."""

import functools
import gzip
import importlib.metadata
import json
import random
import re
import sys
import time
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
from hypothesis import example, given, strategies as st

from taggers.gopher_quality import GopherQuality
from taggers.gopher_repetition import GopherRepetition
from taggers.length import Length
from taggers.repeated_ngrams import RepeatedNgrams
from taggers.roots import Roots
from toolkit import Batch, ConfigError, Document, MissingExtra, distribution
from toolkit.text import LineTable, Splitter, Words, hashes_of, is_among, load_fasttext, places_among, split_lines, sums
from toolkit.text.languages.tables import glotlid_label, stop_word_lists, thresholds, tokenizer_of
from toolkit.text.languages.words import _LIBRARIES, _splitter, check_word_language, datatrove_words, dictionary_words
from toolkit.text.line_table import LineTable as LanguageWordsLineTable
from toolkit.text.unicode_table import CLASSES, UNICODE
from toolkit.text.words import (
    ALL_ALNUM,
    ALL_PUNCTUATION,
    HAS_ALNUM,
    HAS_ALPHA,
    HAS_ASCII_LETTER,
    IS_LOWER,
    IS_TITLE,
    IS_UPPER,
    Words as LanguageWordsWords,
    words_of,
)

same_unicode = pytest.mark.skipif(
    f"Unicode {UNICODE}" not in (importlib.metadata.distribution("regex").read_text("METADATA") or ""),
    reason=f"regex is not of Unicode {UNICODE}",
)

# --- texts ------------------------------------------------------------------------------------------------------------


@functools.cache
def samples() -> dict[str, list[str]]:
    """Some code points of each Word_Break class and many scripts; those that this Python knows."""
    every = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF)
    found = {f"WB={name}": r"\p{WB=" + name.replace("_", "") + "}" for name in CLASSES}
    scripts = (
        "Latin Greek Cyrillic Arabic Hebrew Devanagari Thai Khmer Lao Myanmar Han Hiragana Katakana Hangul Cherokee"
    )
    found |= {name: rf"\p{{{name}}}" for name in scripts.split()}
    found |= {name: rf"\p{{{name}}}" for name in ("Extended_Pictographic", "Lt", "Lm", "No", "P", "S", "Cf", "Zs")}
    picked = {}
    for name, pattern in found.items():
        chars = regex.findall(pattern, every)
        chars = [char for char in chars if unicodedata.category(char) != "Cn"]
        picked[name] = chars[:: max(1, len(chars) // 40)]
    return picked


CHARS = st.deferred(
    lambda: st.sampled_from(sorted(samples())).flatmap(lambda name: st.sampled_from(samples()[name]))
)  # which takes a second, in every process that collects tests
COMMON = st.sampled_from(list("aB1 '\".,:_-\n\r\t\0é\u0301\u200d\xad\u202f\U0001f1e9\U0001f600文אก"))
TEXT = st.lists(COMMON | CHARS, max_size=15).map("".join) | st.text(st.characters(exclude_categories=["Cs", "Cn"]))
TEXTS = st.lists(TEXT, max_size=5)

EDGES = {
    "letter among marks": "!\uff9e \uff9e .\uff9fa",  # U+FF9E is a letter, and extends what stands before it
    "empty": "",
    "no word": " \n\t…!\n",
    "line ends": "one\r\ntwo\r\rthree\n\nfour\r",
    "nuls": "a\0b\0\0 \0",
    "lone marks": "\u0301 \u0301a\u0301\n\u0301\u0301",
    "white space of all kinds": "a\u00a0b\u2003c\u2028d\u2029e\x85f\x1cg\x1fh\u200bi\u3000j\u180ek",
    "apostrophes": "don't 'tis dogs' rock'n'roll l’été a''b ״א״ א'ב' א\"ב",
    "numbers": "3.14 1,000,000.5 1.2.3 .5 5. 1:2 1'000 10\u202f000 x2y 2nd ٣٫١٤ Ⅷ ½",
    "underscores": "snake_case _a_ __ 1_000 _",
    "flags": "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7\U0001f1ec x\U0001f1e9",
    "families": "\U0001f468\u200d\U0001f469\u200d\U0001f467 a\u200d\U0001f600 \u200d\U0001f600",
    "katakana": "カタカナ_カ゛ ｶﾅ゙ ひらがな 漢字かな交じり文",
    "last code points": "\ufffe\uffff\U0010ffff\ue000\U000f0000",
    "ends inside": "a.",
}


def real_texts(shared: Path, step: int) -> Iterator[str]:
    """Of hundreds of languages."""
    with gzip.open(shared / "labelled" / "labelled_subset.jsonl.gz") as stream:
        for line in list(stream)[::step]:
            yield json.loads(line)["text"]


def table(texts: list[str], splitter: Splitter = "unicode") -> Words:
    return Words.of(LineTable.of(texts), splitter)


def by_text(words: Words) -> list[list[str]]:
    strings, bounds = words.strings(), words.bounds.tolist()
    return [strings[a:b] for a, b in pairwise(bounds)]


# --- UAX #29 in plain Python ------------------------------------------------------------------------------------------

_IGNORED, _NEWLINES = {"Extend", "Format", "ZWJ"}, {"CR", "LF", "Newline"}
_AHLETTER, _MIDLETTER, _MIDNUM = (
    {"ALetter", "Hebrew_Letter"},
    {"MidLetter", "MidNumLet", "Single_Quote"},
    {"MidNum", "MidNumLet", "Single_Quote"},
)


@functools.cache
def class_of(char: str) -> str:
    for name in CLASSES[1:]:
        if regex.match(rf"\p{{WB={name.replace('_', '')}}}", char):
            return name
    return "Other"


def official(text: str) -> list[str]:
    """What stands between two word boundaries, by the rules one after the other."""
    classes = [class_of(char) for char in text]
    kept = [i for i, name in enumerate(classes) if name not in _IGNORED or i == 0 or classes[i - 1] in _NEWLINES]  # WB4
    pieces: list[str] = []
    begin = 0
    for i in range(1, len(text)):
        if is_boundary(text, classes, kept, i):
            pieces.append(text[begin:i])
            begin = i
    return [*pieces, text[begin:]] if text else []


def is_boundary(text: str, classes: list[str], kept: list[int], i: int) -> bool:
    left, right = classes[i - 1], classes[i]
    if left == "CR" and right == "LF":  # WB3
        return False
    if left in _NEWLINES or right in _NEWLINES:  # WB3a, WB3b
        return True
    if left == "ZWJ" and regex.match(r"\p{Extended_Pictographic}", text[i]):  # WB3c
        return False
    if left == right == "WSegSpace":  # WB3d
        return False
    if right in _IGNORED:  # WB4
        return False
    place = kept.index(i)
    before = classes[kept[place - 1]]
    second = classes[kept[place - 2]] if place > 1 else ""
    after = classes[kept[place + 1]] if place + 1 < len(kept) else ""
    match (second, before, right, after):
        case (_, b, r, _) if b in _AHLETTER and r in _AHLETTER:  # WB5
            return False
        case (_, b, r, a) if b in _AHLETTER and r in _MIDLETTER and a in _AHLETTER:  # WB6
            return False
        case (s, b, r, _) if s in _AHLETTER and b in _MIDLETTER and r in _AHLETTER:  # WB7
            return False
        case (_, "Hebrew_Letter", "Single_Quote", _):  # WB7a
            return False
        case (_, "Hebrew_Letter", "Double_Quote", "Hebrew_Letter"):  # WB7b
            return False
        case ("Hebrew_Letter", "Double_Quote", "Hebrew_Letter", _):  # WB7c
            return False
        case (_, "Numeric", "Numeric", _):  # WB8
            return False
        case (_, b, "Numeric", _) if b in _AHLETTER:  # WB9
            return False
        case (_, "Numeric", r, _) if r in _AHLETTER:  # WB10
            return False
        case ("Numeric", b, "Numeric", _) if b in _MIDNUM:  # WB11
            return False
        case (_, "Numeric", r, "Numeric") if r in _MIDNUM:  # WB12
            return False
        case (_, "Katakana", "Katakana", _):  # WB13
            return False
        case (_, b, "ExtendNumLet", _) if b in _AHLETTER | {"Numeric", "Katakana", "ExtendNumLet"}:  # WB13a
            return False
        case (_, "ExtendNumLet", r, _) if r in _AHLETTER | {"Numeric", "Katakana"}:  # WB13b
            return False
        case (_, "Regional_Indicator", "Regional_Indicator", _):  # WB15, WB16
            flags = 0
            while place - 1 - flags >= 0 and classes[kept[place - 1 - flags]] == "Regional_Indicator":
                flags += 1
            return flags % 2 == 0
    return True  # WB999


def slow_segments(text: str) -> list[str]:
    return [segment for run in text.split() for segment in official(run)]


def is_word(segment: str) -> bool:
    return bool(regex.search(r"[\p{L}\p{Nt=De}\p{Nt=Di}\p{Nt=Nu}]", segment))


@pytest.mark.slow
@same_unicode
@given(TEXTS)
@example(list(EDGES.values()))
def test_words_are_those_of_the_rules(texts: list[str]) -> None:
    wanted = [slow_segments(text) for text in texts]
    assert by_text(table(texts, "segments")) == wanted
    assert by_text(table(texts)) == [[s for s in segments if is_word(s)] for segments in wanted]


@same_unicode
@given(TEXT.map(lambda text: text.replace("\u202f", "")))
def test_white_space_apart_the_rules_see_the_whole_text(text: str) -> None:
    stripped = (segment.strip() for segment in official(text))
    assert words_of(text, "segments") == [segment for segment in stripped if segment]


@pytest.mark.slow
@same_unicode
def test_words_of_real_text_are_those_of_the_rules(shared: Path) -> None:
    texts = list(real_texts(shared, 5))
    assert len(texts) > 600
    assert by_text(table(texts, "segments")) == [slow_segments(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (EDGES["apostrophes"], ["don't", "tis", "dogs", "rock'n'roll", "l’été", "a", "b", "א", "א'ב'", 'א"ב']),
        (EDGES["underscores"], ["snake_case", "_a_", "1_000"]),
        (EDGES["nuls"], ["a", "b"]),
        ("10\u202f000 m", ["10", "000", "m"]),
        ("3.14 e-mail e\u0301te\u0301 x\xady", ["3.14", "e", "mail", "e\u0301te\u0301", "x\xady"]),
        ("我喜欢 กิน カタカナ", ["我", "喜", "欢", "กิ", "น", "カタカナ"]),
        ("\U0001f1e9\U0001f1ea \U0001f600 ½ Ⅷ", ["½", "Ⅷ"]),
    ],
)
def test_words_of_some_texts(text: str, words: list[str]) -> None:
    assert words_of(text) == words
    assert Document(text).words == words


# --- other splitters --------------------------------------------------------------------------------------------------


@given(TEXTS)
@example(list(EDGES.values()))
def test_white_space_is_that_of_str_split(texts: list[str]) -> None:
    assert by_text(table(texts, "white_space")) == [text.split() for text in texts]


@given(TEXTS)
@example(list(EDGES.values()))
def test_words_and_punctuation_are_those_of_the_expression(texts: list[str]) -> None:
    assert by_text(table(texts, "word_punct")) == [re.findall(r"\w+|[^\w\s]+", text) for text in texts]


@pytest.mark.parametrize("splitter", ["white_space", "word_punct"])
def test_splitters_agree_with_python_on_real_text(splitter: Splitter, shared: Path) -> None:
    texts = list(real_texts(shared, 3))
    wanted = [text.split() if splitter == "white_space" else re.findall(r"\w+|[^\w\s]+", text) for text in texts]
    assert by_text(table(texts, splitter)) == wanted


# --- what is known of a word ------------------------------------------------------------------------------------------


def kinds_of(word: str) -> int:
    facts = {
        HAS_ALPHA: any(map(str.isalpha, word)),
        HAS_ALNUM: any(map(str.isalnum, word)),
        ALL_ALNUM: word.isalnum(),
        ALL_PUNCTUATION: all(unicodedata.category(char)[0] in "PS" for char in word),
        HAS_ASCII_LETTER: any(char.isascii() and char.isalpha() for char in word),
        IS_UPPER: word.isupper(),
        IS_LOWER: word.islower(),
        IS_TITLE: word.istitle(),
    }
    return sum(bit for bit, holds in facts.items() if holds)


CHANGED = set("\u0295\u10fc\ua7f2\ua7f3\ua7f4\uab69两京俩倆拐洞皕秭鈎钩") | {chr(c) for c in range(0x12038, 0x12480)}
"""Of which Unicode said something else before; not a letter of the cuneiform block is looked at."""
LETTERS = CHARS.filter(lambda char: char not in CHANGED and not char.isspace())
CASED = st.sampled_from("aBǅßŉΣςªⅧⓐ1-'\u0301文")


@given(st.lists(st.lists(CASED | LETTERS, min_size=1, max_size=6).map("".join), min_size=1))
@example(["A1", "Ab", "aB", "ABC", "A", "1", "--", "-A", "Ab-Cd", "Ab-cd", "ǅ", "ǅa", "aǅ", "ª", "ßA"])
def test_kinds_are_what_python_says(words: list[str]) -> None:
    found = table([" ".join(words)], "white_space")
    assert found.strings() == words
    assert found.kinds.tolist() == [kinds_of(word) for word in words]
    assert found.chars.tolist() == [len(word) for word in words]


def simple_fold(word: str) -> str:
    """With Python's tables: case folding where that is one code point, else lower case where that is."""
    return "".join(next((c for c in (char.casefold(), char.lower()) if len(c) == 1), char) for char in word)


@pytest.mark.slow
def test_hashes_are_the_same_where_words_are(shared: Path) -> None:
    words = table(list(real_texts(shared, 1)), "segments")
    strings = words.strings()
    assert len(strings) > 300_000
    different = sorted(set(strings))
    assert len(np.unique(words.hashes)) == len(different)
    numbers = dict(zip(different, np.unique(np.array(different), return_inverse=True)[1].tolist(), strict=True))
    firsts: dict[int, int] = {}
    for string, hash_ in zip(strings, words.hashes.tolist(), strict=True):
        assert firsts.setdefault(hash_, numbers[string]) == numbers[string]
    assert len(np.unique(words.folded)) == len({simple_fold(string) for string in different})


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("Größe", "GRÖSSE", False),
        ("Straße", "STRAẞE", True),
        ("ΣΟΦΟΣ", "σοφος", True),
        ("ΣΟΦΟΣ", "σοφός", False),
        ("I", "i", True),
        ("İ", "i", False),
        ("ꭰ", "Ꭰ", True),
        ("\U00010d50", "\U00010d70", True),
        ("ﬅ", "ﬆ", True),
        ("K", "k", True),
        ("ǅ", "ǆ", True),
    ],
)
def test_folded_words_are_the_same_without_regard_to_case(a: str, b: str, same: bool) -> None:
    words = table([f"{a} {b} {a}"], "white_space")
    assert (words.folded[0] == words.folded[1]) == same
    assert words.folded[0] == words.folded[2]
    assert words.hashes[0] != words.hashes[1]


def test_words_are_looked_up_among_known_ones() -> None:
    words = table(["The cat and THE dog", "the", ""])
    known = hashes_of(["the", "dog"])
    assert known.tolist() == sorted(known.tolist())
    assert is_among(words.hashes, known).tolist() == [False, False, False, False, True, True]
    folded = hashes_of(["the", "DOG"], folded=True)
    assert is_among(words.folded, folded).tolist() == [True, False, False, True, True, True]
    assert not is_among(words.hashes, hashes_of([])).any()
    assert is_among(words.hashes[:0], known).tolist() == []


HASHES = st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1), max_size=12)


@given(st.lists(HASHES, max_size=5), st.lists(st.none() | HASHES, min_size=1, max_size=4), st.data())
def test_places_are_those_in_the_list_of_each_text(
    texts: list[list[int]], lists: list[list[int] | None], data: st.DataObject
) -> None:
    known = [None if each is None else np.array(list(dict.fromkeys(each)), dtype=np.uint64) for each in lists]
    chosen = [data.draw(st.sampled_from(known)) for _ in texts]
    hashes = np.array([hash_ for text in texts for hash_ in text], dtype=np.uint64)
    expected = [
        -1 if of is None or hash_ not in of.tolist() else of.tolist().index(hash_)
        for text, of in zip(texts, chosen, strict=True)
        for hash_ in text
    ]
    assert places_among(hashes, np.cumsum([0, *map(len, texts)]), chosen).tolist() == expected


# --- tables -----------------------------------------------------------------------------------------------------------


@given(TEXTS)
@example([])
@example([""])
@example(["", "\n", "", "a", ""])
def test_tables_know_texts_and_lines(texts: list[str]) -> None:
    words = table(texts)
    assert words.counts.tolist() == [len(words_of(text)) for text in texts]
    lines = [line for text in texts for line in split_lines(text)]
    begins = words.of_lines().tolist()
    strings = words.strings()
    found = [strings[a:b] for a, b in pairwise(begins)]
    assert found == [words_of(line) for line in lines]
    assert words.sums(words.chars).tolist() == [sum(map(len, words_of(text))) for text in texts]
    short = words.where(words.chars < 3)
    assert by_text(short) == [[word for word in words_of(text) if len(word) < 3] for text in texts]
    assert by_text(short.where(short.chars > 1)) == [[w for w in words_of(text) if len(w) == 2] for text in texts]
    assert words.where(np.zeros(len(strings), bool)).counts.tolist() == [0] * len(texts)


def test_sums_are_whole_numbers_or_not_as_their_values_are() -> None:
    bounds = np.array([0, 2, 2, 3])
    assert sums(np.array([1, 2, 3]), bounds).tolist() == [3, 0, 3]
    assert sums(np.array([True, True, False]), bounds).tolist() == [2, 0, 0]
    assert sums(np.array([0.5, 0.25, 4.0]), bounds).tolist() == [0.75, 0.0, 4.0]
    assert sums(np.array([], dtype=np.int64), np.array([0])).tolist() == []


def test_a_batch_finds_words_once_for_all() -> None:
    documents = [Document("one two"), Document("drei")]
    batch = Batch.of(documents)
    assert batch.words() is batch.words("unicode")
    assert batch.words() is not batch.words("segments")
    assert batch.words().lines is batch.lines
    assert batch.words().counts.tolist() == [2, 1]


@pytest.mark.parametrize("splitter", ["unicode", "segments", "white_space", "word_punct"])
def test_a_word_of_ten_million_letters_is_one(splitter: Splitter) -> None:
    words = table(["x" * 10_000_000], splitter)
    assert (words.counts.tolist(), words.chars.tolist()) == ([1], [10_000_000])


HOSTILE = ["a ", "1.", "a'", 'א"', "@", "\u0301", "\u200d\U0001f600", "\U0001f1e9", "文", "_", "a.\u0301", "\n"]


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
def test_long_texts_take_no_more_than_their_length(piece: str) -> None:
    """What a rule looks ahead for may be far away, but nothing is looked at again and again."""
    text = piece * (2_000_000 // len(piece))
    assert table([text], "segments").counts[0] <= len(text)


def test_marks_between_a_letter_and_its_apostrophe_are_passed_once() -> None:
    marks = "\u0301" * 1_000_000
    assert words_of(f"a{marks}'{marks}b") == [f"a{marks}'{marks}b"]
    assert words_of(f"a'{marks}") == ["a"]
    assert table(["a'" + marks + "'" + marks]).counts.tolist() == [1]


# Words of ICU: dictionaries for scripts without blanks, offsets right beyond the Basic Multilingual Plane.

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


@pytest.mark.slow
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


@pytest.mark.slow
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


# Words by language as datatrove splits them, and the tables that say how.
#
# datatrove_words.json has words as datatrove 0.10.1 gave them (tests/oracles/tables/words.py).

RECORDED = json.loads((Path(__file__).parent / "datatrove_words.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("label", sorted({case["label"] for case in RECORDED}))
def test_words_are_datatroves(label: str) -> None:
    for case in RECORDED:
        if case["label"] == label:
            assert datatrove_words(case["text"], label) == case["words"]


def test_every_language_of_fineweb_2_has_a_tokenizer_thresholds_and_stop_words() -> None:
    table, words = thresholds("fineweb-2-baedee4"), stop_word_lists("fineweb-2-baedee4-stop-words")
    assert len([label for label in table if "_" in label]) == 1927
    assert table.keys() == words.keys()
    assert all(tokenizer_of(label) for label in table)
    assert {len(numbers) for numbers in table.values()} == {16}
    assert (table["deu_Latn"]["dup_line_frac"], table["deu_Latn"]["line_punct_thr"]) == (0.282, 0.143)
    assert "wurde" in words["deu_Latn"]


@pytest.mark.parametrize(
    ("lid", "label"),
    [("de", "deu_Latn"), ("als", "gsw_Latn"), ("sr", "srp_Cyrl"), ("zh", "cmn_Hani"), ("deu_Latn", "deu_Latn")],
)
def test_labels_of_lid_176_lead_to_those_of_glotlid(lid: str, label: str) -> None:
    assert glotlid_label(lid) == label
    assert thresholds("fineweb-2-baedee4")[lid] == thresholds("fineweb-2-baedee4")[label]


def test_all_labels_of_lid_176_but_english_have_thresholds() -> None:
    labels = {label.removeprefix("__label__") for label in load_fasttext("lid.176.ftz").labels}
    assert len(labels) == 176
    assert labels - thresholds("fineweb-2-baedee4").keys() == {"en"}


def test_a_language_without_a_tokenizer_has_that_of_all_languages() -> None:
    assert datatrove_words("z.B. don't", None) == datatrove_words("z.B. don't", "xyz_Abcd") == ["z.", "B.", "don't"]
    assert datatrove_words("z.B. don't", "de") == ["z.B.", "don't"]


def test_a_library_that_is_missing_is_named_with_its_extra_and_licence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    dictionary_words.cache_clear()
    with pytest.raises(MissingExtra, match=r"kiwipiepy.*LGPL-3\.0.*tagmix\[words-ko\]"):
        check_word_language("ko")
    monkeypatch.setitem(sys.modules, "stanza", None)
    with pytest.raises(MissingExtra, match=r"stanza.*Apache-2\.0.*tagmix\[words-stanza\]"):
        datatrove_words("Сәлем", "kaz_Cyrl")


def test_languages_without_blanks_are_split_by_their_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    def pairs(text: str, language: str | None) -> list[str]:
        return [text[i : i + 2] for i in range(0, len(text), 2)]

    monkeypatch.setattr("toolkit.text.languages.words.datatrove_words", pairs)
    texts = ["កខគឃ\u200bងច! ABC d'e\n។ ឆជឈ", "it's ក ខគ", "", "กข"]
    words = LanguageWordsWords.of(LanguageWordsLineTable.of(texts), "dictionary", ["km", "en", None, "tha_Thai"])
    assert words.strings() == ["កខ", "គឃ", "ងច", "ABC", "d'e", "ឆជ", "ឈ", "it's", "ក", "ខ", "គ", "กข"]
    assert words.counts.tolist() == [7, 4, 0, 1]


@pytest.mark.parametrize("tagger", [GopherQuality, GopherRepetition, Length, RepeatedNgrams, Roots])
def test_dictionaries_need_a_language_and_its_library(tagger: type[Length], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="expected the option `language` with `dictionary`"):
        tagger(splitter="dictionary").check()
    monkeypatch.setitem(sys.modules, "khmernltk", None)
    dictionary_words.cache_clear()
    _splitter.cache_clear()
    with pytest.raises(MissingExtra, match=r"tagmix\[words-km\]"):
        tagger(splitter="dictionary", language="km").check()
    assert issubclass(MissingExtra, ConfigError)


def test_extras_of_libraries_are_those_of_the_distribution() -> None:
    for library in _LIBRARIES.values():
        assert library.package.lower() in map(str.lower, distribution.requirements_of(library.extra))


def test_an_unknown_language_is_refused_where_it_is_written() -> None:
    with pytest.raises(ConfigError, match="expected a label of lid"):
        check_word_language("german")
    check_word_language("language-0.language.label")


MODULES: dict[str, Any] = {"ja": "sudachipy", "zh": "jieba", "vi": "pyvi", "th": "pythainlp", "ko": "kiwipiepy"}
SENTENCES = {
    "ja": ("図書館は九時に開きます。", ["図書", "館", "は", "九", "時", "に", "開き", "ます", "。"]),
    "zh": ("图书馆九点开门。", ["图书馆", "九点", "开门", "。"]),
    "th": ("ห้องสมุดเปิดเก้าโมง", ["ห้องสมุด", "เปิด", "เก้า", "โมง"]),
}


@pytest.mark.parametrize("language", SENTENCES)
def test_words_by_dictionaries(language: str) -> None:
    pytest.importorskip(MODULES[language], reason=f"the extra words-{language} is not installed")
    text, words = SENTENCES[language]
    assert datatrove_words(text, language) == words
