"""RedPajama's signals against a slow rendering of their formulas, word by word."""

import gzip
import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from hypothesis import given
from hypothesis import strategies as st

from taggers.redpajama import Redpajama
from toolkit import Document
from toolkit.text import stop_words
from toolkit.text.unicode_table import NUMERALS_SINCE

TERMINAL = (".", "!", "?", "\u201d")
BULLETS = tuple(map(chr, (0x2022, 0x2023, 0x25B6, 0x25C0, 0x25E6, 0x25A0, 0x25A1, 0x25AA, 0x25AB, 0x2013)))


def normal(text: str) -> str:
    kept = "".join(c for c in text if c not in string.punctuation)
    return unicodedata.normalize("NFD", re.sub(r"\s+", " ", kept.lower().strip()))


def grams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def slow(text: str, stopped: frozenset[str]) -> dict[str, Any]:
    """All signals without models and lists, each by its formula."""
    words, raw = normal(text).split(), re.findall(r"\w+|[^\w\s]+", text)
    lines = [match.group() for match in re.finditer(r"[^\n]*\n|[^\n]+$", text)]
    normal_lines = list(map(normal, lines))
    chars = sum(map(len, words))

    def of_words(count: float) -> float | None:
        return round(count / len(words), 8) if words else None

    def of_raw(count: float) -> float | None:
        return round(count / len(raw), 8) if raw else None

    def of_lines(count: float) -> float | None:
        return round(count / len(lines), 8) if lines else None

    def top(n: int) -> float:
        found = Counter(grams(words, n)).most_common(1)
        return round(sum(map(len, found[0][0])) * found[0][1] / chars, 8) if found and found[0][1] > 1 else 0.0

    def dupe(n: int) -> float:
        counts = Counter(grams(words, n))
        marked = {i + j for i, gram in enumerate(grams(words, n)) if counts[gram] > 1 for j in range(n)}
        return round(sum(len(words[i]) for i in marked) / chars, 8) if chars else 0.0

    doc = {
        "curly_bracket": round((text.count("{") + text.count("}")) / len(text), 8) if text else 0.0,
        "frac_all_caps_words": of_raw(sum(word.isupper() for word in raw)),
        "frac_lines_end_with_ellipsis": of_lines(sum(line.rstrip().endswith(("...", "…")) for line in lines)),
        "frac_no_alph_words": None
        if not raw
        else round(1 - sum(bool(re.search("[a-zA-Z]", word)) for word in raw) / len(raw), 8),
        "lorem_ipsum": round(normal(text).count("lorem ipsum") / len(normal(text)), 8) if normal(text) else 0.0,
        "mean_word_length": of_words(chars),
        "stop_word_fraction": (of_raw(sum(word in stopped for word in raw)) if words else 0.0) if stopped else None,
        "symbol_to_word_ratio": of_raw(sum(text.count(symbol) for symbol in ("#", "...", "…"))),
        "frac_unique_words": of_words(len(set(words))),
        "unigram_entropy": round(
            math.fsum(-n / len(words) * math.log(n / len(words)) for n in Counter(words).values()) + 0.0, 8
        )
        if words
        else None,
        "word_count": len(words),
        "num_sentences": len(re.findall(r"\b[^.!?]+[.!?]*", text)),
        **{f"frac_chars_top_{n}gram": top(n) for n in (2, 3, 4)},
        **{f"frac_chars_dupe_{n}grams": dupe(n) for n in range(5, 11)},
    }
    of_each = {
        "ending_with_terminal_punctution_mark": [int(line.rstrip().endswith(TERMINAL)) for line in lines],
        "javascript_counts": [line.split().count("javascript") for line in normal_lines],
        "num_words": [len(line.split()) for line in normal_lines],
        "numerical_chars_fraction": [
            round(sum(c.isnumeric() and c not in NUMERALS_SINCE for c in line) / len(line), 8) if line else 0.0
            for line in normal_lines
        ],
        "start_with_bulletpoint": [int(line.lstrip().startswith(BULLETS)) for line in lines],
        "uppercase_letter_fraction": [round(sum(map(str.isupper, line)) / len(line), 8) for line in lines],
    }
    return {f"rps_doc_{k}": v for k, v in doc.items()} | {f"rps_lines_{k}": v for k, v in of_each.items()}


def differences(texts: Sequence[str], language: str) -> list[tuple[str, str, Any, Any]]:
    found = []
    values = Redpajama(language=language).tag_batch([Document(text) for text in texts])
    for text, value in zip(texts, map(msgspec.to_builtins, values), strict=True):
        for name, expected in slow(text, stop_words(language)).items():
            if value[name] != expected:
                found.append((text, name, expected, value[name]))
    return found


CHARACTERS = st.characters(
    codec="utf-8", exclude_categories=["Cn"], exclude_characters="\u10fc\ua7f2\ua7f3\ua7f4\uab69"
)
MARKS = "aB1_ .!?#{}-–•”…\n\r\t\f\x85\u2028éÉﬁΣσςİſ½一Ⅷ\u0301\u0323\u1fef\u2126"
WORDS = ["the", "THE", "Lorem, ipsum", "javascript", "Java-Script!", "it is what it is ", "a b c d e f g h i j k "]
PIECES = st.sampled_from([*MARKS, *WORDS, "...", "\r\n", "\n\n"])


@given(st.lists(st.one_of(st.text(CHARACTERS, max_size=30), st.lists(PIECES, max_size=60).map("".join)), max_size=4))
def test_signals_are_those_of_the_formulas(texts: list[str]) -> None:
    assert differences(texts, "en") == []


def documents(shared: Path, each: int, chars: int = 5000) -> Iterator[tuple[str, list[str]]]:
    """The first documents of each language."""
    bench = shared / "wet" / "bench"
    with gzip.open(bench / "labels.tsv.gz", "rt", encoding="utf-8") as table:
        rows = (line.split("\t") for line in table)
        language_of = {row[0]: row[3] for row in rows}
    found: dict[str, list[str]] = {}
    for path in sorted(bench.glob("*.warc.wet.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.conversion):
                language = language_of.get(record.headers["WARC-Record-ID"], "")
                if len(have := found.setdefault(language, [])) < each:
                    have.append(record.reader.read().decode(errors="replace")[:chars])
    yield from ((language, texts) for language, texts in sorted(found.items()) if language)


@pytest.mark.slow
def test_signals_of_real_documents(shared: Path) -> None:
    for language, texts in documents(shared, 2, 2000):
        assert [found[1:] for found in differences(texts, language)] == []


@pytest.mark.slow
def test_signals_of_many_real_documents(shared: Path) -> None:
    n = 0
    for language, texts in documents(shared, 25):
        assert [found[1:] for found in differences(texts, language)] == []
        n += len(texts)
    assert n >= 800


def signals(text: str, metadata: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    value = Redpajama(**options).tag(Document(text, metadata=metadata))
    return {name.removeprefix("rps_doc_"): v for name, v in msgspec.to_builtins(value).items()}


def test_long_n_grams_are_found_where_only_their_ends_differ() -> None:
    words = list("bcdefghijk")
    text = " ".join([*words, "x", *words[:9], "y", *words[1:], "z", *words])
    assert differences([text, text + " " + text, "a " * 50, "a b " * 50], "en") == []


def test_rounding_is_that_of_python() -> None:
    texts = ["A" * a + "b" * (n - a) for n in (512, 2560, 12800) for a in range(0, 500, 7)]
    assert differences(["\n".join(texts)], "en") == []


def test_lists_of_words_are_of_a_language_or_of_all(tmp_path: Path) -> None:
    by_language, plain = tmp_path / "lists", tmp_path / "plain"
    by_language.mkdir()
    (by_language / "en.txt").write_text("bad\nvery bad\nBad\nso  bad\nit\n")
    (by_language / "fr").write_text("été", encoding="utf-8")
    plain.write_text("bad\nvery bad\n\nbad\n")
    text = "Bad, it's very BAD; été."
    assert signals(text, language="en", ldnoobw=str(by_language))["ldnoobw_words"] == 3
    assert signals(text, ldnoobw=str(plain))["ldnoobw_words"] == 3
    assert signals(text, language="fr", ldnoobw=str(by_language))["ldnoobw_words"] == 0, "the words are decomposed"
    assert signals(text, language="de", ldnoobw=str(by_language))["ldnoobw_words"] is None
    assert signals("", language="en", ldnoobw=str(by_language))["ldnoobw_words"] == 0
    assert signals(text, language="en", stop_words=str(by_language))["stop_word_fraction"] == 0.2
    assert signals("...", language="en", stop_words=str(by_language))["stop_word_fraction"] == 0
    assert signals(text, language="de", stop_words=str(by_language))["stop_word_fraction"] is None
    assert signals(text)["stop_word_fraction"] is None


def test_real_lists_of_bad_words(shared: Path) -> None:
    text = (shared / "lists" / "ldnoobw" / "README.md").read_text(encoding="utf-8")
    for path in map(str, sorted((shared / "lists" / "ldnoobw").glob("??"))):
        entries = {line.strip() for line in Path(path).read_text(encoding="utf-8").split("\n")}
        words = normal(text + " ".join(sorted(entries))).split()
        expected = sum(
            " ".join(gram) in entries for n in {e.count(" ") + 1 for e in entries} for gram in grams(words, n)
        )
        assert signals(text + " ".join(sorted(entries)), ldnoobw=path)["ldnoobw_words"] == expected, path


def test_a_domain_has_its_number(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers.json"
    numbers.write_text('{"example.org": 7}')
    for metadata, number in (
        ({"warc_headers": {"warc-target-uri": "https://example.org/a?b"}}, 7),
        ({"url": "http://example.org"}, 7),
        ({"source_domain": "example.org"}, 7),
        ({"url": "http://www.example.org"}, None),
        ({"url": "http://[example.org"}, None),
        ({"url": 3}, None),
        ({}, None),
    ):
        assert signals("a", metadata, ut1=str(numbers))["ut1_blacklist"] == number


def test_values_of_other_attributes_are_copied() -> None:
    document = Document("a")
    document.give("language-0.language.prob", 0.5)
    value = Redpajama(language_score="language-0.language.prob").tag(document)
    assert (value.ccnet_language_score, value.ccnet_perplexity) == (0.5, None)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 10**6,
        " " * 10**6,
        "a " * 10**6,
        "\n" * 10**6,
        "a\n" * 10**5,
        "@" * 10**6,
        "1." * 10**6,
        "é" * 10**6,
        "a" + "\u0301\u0323" * 10**5,
    ],
    ids=str.split,
)
def test_no_text_takes_more_than_its_length(text: str) -> None:
    assert Redpajama(language="en").tag(Document(text))
