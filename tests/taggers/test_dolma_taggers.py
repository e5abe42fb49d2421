"""Taggers that give what Dolma's give: beside plain readings of its patterns, on random texts and on real ones."""

import gzip
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import pytest
import regex

from taggers import dolma_licenses, dolma_pii, dolma_repetitions
from taggers.dolma_c4 import DolmaC4
from taggers.dolma_gopher import DolmaGopher
from taggers.dolma_license_links import DolmaLicenseLinks
from taggers.dolma_licenses import DolmaLicenses
from taggers.dolma_pii import DolmaPii
from taggers.dolma_repetitions import DolmaRepetitions
from taggers.length_spans import LengthSpans
from taggers.punctuation_lines import PunctuationLines
from toolkit import Document, Span, Tagger
from toolkit.interop.dolma.tagger import meanings
from toolkit.tag.tagger import TAGGERS

PIECES = (
    "a", "b", "Ab", "é", "e\u0301", "日本", "ת", "ア", "1", "23", "٣", "½", "Ⅷ", "Ⓐ", "_", "-", "'", '"', "’", ".",
    "..", ",", "…", "#", "$", "+", "*", "?", "(", ")", "@", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u202f",
    "\x1c", "\x85", "\u2028", "\u200d", "😀", "🇩🇪", "İ", "\0", "{", "the", "lorem ipsum", "JavaScript", "a@b.c ",
    "10.0.0.1", " 555 123 4567", "\b", "www.a.b/c", "isbn", "¸",
)  # fmt: skip
CLOSE = ("a", "a", "b", " ", "\n", "@", ".", "(", ",", "-")


def random_texts(seed: int, n: int, pieces: tuple[str, ...] = PIECES, longest: int = 30) -> Iterator[str]:
    rand = random.Random(seed)
    yield from ("", " ", "\n", "a", "\na\n")
    for _ in range(n):
        yield "".join(rand.choices(pieces, k=rand.randint(1, longest)))


def score(tagger: Tagger, text: str) -> float:
    (span,) = tagger.tag(Document(text))
    assert (span.start, span.end) == (0, len(text))
    return float(span.score)


# --- lengths ----------------------------------------------------------------------------------------------------------


def test_tokens_are_those_of_the_pattern() -> None:
    for text in random_texts(1, 800):
        assert score(LengthSpans(unit="tokens"), text) == len(regex.split(r"\w+|[^\w\s]+", text)), text


def pretokens(text: str) -> list[str]:
    """One step after the other, as the tokenizer has them."""
    parts = [text]
    for apart in (r" ?\p{P}", r" ?\p{Nd}"):
        parts = [piece for part in parts for piece in regex.splititer(f"({apart})", part) if piece]
    rest = r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    return [found for part in parts for found in regex.findall(rest, part)]


def test_pretokens_are_those_of_the_patterns_one_after_the_other() -> None:
    for text in random_texts(2, 800):
        assert score(LengthSpans(unit="pretokens"), text) == len(pretokens(text)), text


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("Don't stop", "Don't| |stop"),
        ("a.b a.1 1.2 1,2 1.b", "a.b| |a|.|1| |1.2| |1,2| |1|.|b"),
        ('צה"ל ג\' א"', 'צה"ל| |ג\'| |א|"'),
        ("אב'1", "אב'|1"),
        ("a_b _ カナ_カ かな a\u202f1", "a_b| |_| |カナ_カ| |か|な| |a\u202f1"),
        ("  a \u0301b", "a| \u0301|b"),
        ("🇩🇪🇫 🇷", "🇩🇪|🇫| |🇷"),
        ("a\u200d😀b\u0308\u200d", "a\u200d😀|b\u0308\u200d"),
        ("x\r\n\n\r y", "x|\r\n|\n|\r| |y"),
        ("a¸b a·b", "a|¸|b| |a·b"),
        ("日本", "日|本"),
    ],
)
def test_segments_stand_between_word_boundaries(text: str, segments: str) -> None:
    found = segments.split("|")
    assert score(LengthSpans(unit="segments"), text) == len(found)
    assert score(LengthSpans(unit="words"), text) == sum(1 for segment in found if segment.strip())


def test_lines_of_punctuation_are_those_of_the_pattern() -> None:
    nothing = regex.compile(r"[[:punct:]\s\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\u2600-\u27bf]+")
    for text in random_texts(3, 800, longest=6):
        lines = [found for found in re.finditer(r"[^\n]*\n|[^\n]+", text) if found.group().strip()]
        spans = [Span(found.start(), found.end()) for found in lines if nothing.fullmatch(found.group())]
        assert PunctuationLines().tag(Document(text)) == (spans or [Span(0, len(text), 0.0)]), text


# --- c4, gopher -------------------------------------------------------------------------------------------------------


def test_c4_by_line(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("lorem\né the\n")
    bad = DolmaC4(type="has_naughty_word", bad_words=str(tmp_path / "bad"))
    for text in random_texts(4, 200):
        lines = text.split("\n")
        stripped = [line.lower().strip() for line in lines]
        starts = [sum(len(line) + 1 for line in lines[:i]) for i in range(len(lines))]
        whole = [Span(a, min(a + len(line) + 1, len(text))) for a, line in zip(starts, lines, strict=True)]
        assert DolmaC4(type="lines_with_no_ending_punctuation").tag(Document(text)) == [
            span for span, line in zip(whole, stripped, strict=True) if line[-1:] not in (".", "?", "!", '"')
        ]
        assert DolmaC4(type="lines_with_too_few_words").tag(Document(text)) == [
            span for span, line in zip(whole, stripped, strict=True) if len(line.split()) < 3
        ]
        assert score(DolmaC4(), text) == len(lines)
        found = any("lorem" in line.split() or "é the" in line for line in stripped)
        assert bad.tag(Document(text)) == [Span(0, len(text))] * found


def gopher(text: str, *, version: int) -> dict[str, float]:
    words, chars = text.split(), len("".join(text.split()))
    found: dict[str, float] = {"word_count": len(words), "median_word_length": median(map(len, words)) if words else 0}
    for n in range(2, 11):
        counts = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        if not counts:
            continue
        sizes = {ngram: len("".join(ngram)) * count for ngram, count in counts.items()}
        if n < 5:
            found[f"fraction_of_characters_in_most_common_{n}grams"] = sizes[counts.most_common(1)[0][0]] / chars
        else:
            several = sum(size for ngram, size in sizes.items() if counts[ngram] > 1)
            found[f"fraction_of_characters_in_duplicate_{n}grams"] = several / sum(sizes.values())
    lines = (text.split("\n") if version == 1 else re.split("\n+", text)) if text else []
    twice = [line for line in lines if lines.count(line) > 1]
    return found | {
        "fraction_of_duplicate_lines": len(twice) / max(len(lines), 1),
        "fraction_of_characters_in_duplicate_lines": len("".join(twice)) / max(chars, 1),
        "required_word_count": words.count("the"),
        "symbol_to_word_ratio": sum("#" in word or "…" in word for word in words) / max(len(words), 1),
    }


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2])
def test_gopher_counted_one_by_one(version: int) -> None:
    few = ("a ", "b ", "a b ", "é\n", "the ", "\n", "#\n", "…")
    for text in [*random_texts(5, 20), *random_texts(6, 20, few, longest=60)]:
        expected = gopher(text, version=version)
        for name, value in expected.items():
            tagger = msgspec.convert({"type": name, "version": version}, DolmaGopher)
            assert score(tagger, text) == round(value, 5), (name, text)
        missing = msgspec.convert({"type": "fraction_of_characters_in_duplicate_10grams"}, DolmaGopher)
        assert bool(missing.tag(Document(text))) == (len(text.split()) >= 10)


# --- patterns that take too long --------------------------------------------------------------------------------------

EMAIL = re.compile(r"[.\s@,?!;:)(]*([^\s@]+@[^\s@,?!;:)(]+?)[.\s@,?!;:)(]?\s")
PHONE = re.compile(r"\s+\(?(\d{3})\)?[-. ]*(\d{3})[-. ]?(\d{4})")
REPETITION = re.compile(r"(.+?)(\s?\1){3,}")
LICENCE = regex.compile(
    r"<(a|A|meta)\s[\w\p{P}\s=]*\n*(href|HREF|content)=('|\"|&quot;)?https*://creativecommons\.org/"
    r"(licenses/(?P<type>by(-nc)?(-nd)?(-sa)?)|(?P<type>publicdomain/(zero|certification|mark)))(?P<version>/\d+\.\d+)?"
    r"((/\w{2})?/((deed|legalcode)\.)?(?P<lang>\w{2}))?.*?('|\"|&quot;).*?>"
)


def test_email_addresses_are_those_of_the_pattern() -> None:
    for text in random_texts(7, 3000, CLOSE, longest=14):
        expected = [(*found.span(), *found[1].split("@")) for found in EMAIL.finditer(text)]
        assert [tuple(found) for found in dolma_pii._emails(text)] == expected, text


def test_telephone_numbers_are_those_of_the_pattern() -> None:
    pieces = ("1", "12", "123", "555 123 4567", "4567", "-", " ", "\n", ".", "(", ")", "x")
    for text in random_texts(8, 3000, pieces, longest=14):
        assert [span[:2] for span in dolma_pii._phones(text)] == [found.span() for found in PHONE.finditer(text)], text


def repeated(text: str, start: int = 0) -> list[Span]:
    return [
        Span(start + found.start(), start + found.end(), float(found[0].count(found[1])))
        for found in REPETITION.finditer(text)
    ]


@pytest.mark.slow
def test_repetitions_are_those_of_the_pattern() -> None:
    rand = random.Random(9)
    texts = list(random_texts(10, 800, ("a", "a", "b", " ", "\n", "\t", "ab "), longest=40))
    for _ in range(300):  # a unit, with blanks and faults in between
        unit = "".join(rand.choices("abc \n" if rand.random() < 0.8 else "abcd", k=rand.randint(1, 60)))
        copies = [rand.choice(("", "", " ", "x")) + unit[: rand.choice((60, 60, 60, -1))] for _ in range(8)]
        texts.append(unit[-3:] + "".join(copies) + unit[:2])
    for text in texts:
        assert DolmaRepetitions().tag(Document(text)) == repeated(text), text
        lines = [span for line in re.finditer(r"[^\n]*\n|[^\n]+", text) for span in repeated(line[0], line.start())]
        assert DolmaRepetitions(per="line").tag(Document(text)) == lines, text


def test_repetitions_where_nothing_can_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    plain: Any = dolma_repetitions._find_units
    monkeypatch.setattr(dolma_repetitions, "_find_units", plain.__wrapped__)
    for text in random_texts(11, 50, ("a", "b", " ", "abcabc", "\n"), longest=40):
        assert DolmaRepetitions().tag(Document(text)) == repeated(text), text


def test_licences_are_those_of_the_pattern() -> None:
    pieces = (
        "<a ", "<meta\n", "<b ", ">", "\n", '"', "'", "&quot;", "href=", 'href="', "content='", "é", "$", "x", "/",
        "https://creativecommons.org/licenses/by", "-nc", "/4.0", "/deed.de", "/us/", "rel=",
        'href="http://creativecommons.org/licenses/by-sa/3.0/"', '<a href="https://creativecommons.org/licenses/by/4.0/',
        "content='http://creativecommons.org/publicdomain/zero/1.0/deed.fr'",
    )  # fmt: skip
    for html in random_texts(12, 1500, pieces, longest=20):
        expected = [
            "_".join(part.strip("/") for part in (found["type"], found["version"], found["lang"]) if part)
            for found in LICENCE.finditer(html)
        ]
        assert list(dolma_licenses._links(html)) == expected, html


def test_two_languages_that_become_one_key_and_html_that_is_none() -> None:
    link = '<a href="http://creativecommons.org/licenses/by/2.5/{}">'
    html = link.format("éé") + link.format("éé") + link.format("àà")
    assert DolmaLicenses().tag(Document("x", metadata={"html": html})) == {"cc_by_2_5___": [Span(0, 1, 0.66667)]}
    for metadata in ({}, {"html": None}, {"html": 3}):
        assert DolmaLicenses().tag(Document("x", metadata=metadata)) == {}
        assert DolmaLicenseLinks().tag(Document("x", metadata=metadata)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "first"),
    [(each, "") for each in ("a", " ", "a ", "\n", "a\n", "@", "1.", ".@. ", "(", "  123-", "\bwww.(", "aaaaab", "'")]
    + [("-", "\n123"), ("ab" * 50 + "c", "")],
)
def test_no_text_takes_long(unit: str, first: str) -> None:
    text = first + unit * (40_000 // len(unit))
    begin = time.process_time()
    for per in ("document", "line"):
        msgspec.convert({"per": per}, DolmaPii).tag(Document(text))
        msgspec.convert({"per": per}, DolmaRepetitions).tag(Document(text))
    for count in ("tokens", "words", "pretokens"):
        msgspec.convert({"unit": count}, LengthSpans).tag(Document(text))
    html = "<a href=http://creativecommons.org/licenses/by/4.0/ " + text
    DolmaLicenses().tag(Document(text, metadata={"html": html}))
    assert time.process_time() - begin < 4, "the patterns would take hours"


# --- real documents ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_real_documents(shared: Path) -> None:
    with gzip.open(shared / "quality" / "fineweb2_spa_Latn_sampled_500k_0_to_600.jsonl.gz") as stream:
        texts = [json.loads(line)["text"][:2000] for line, _ in zip(stream, range(25), strict=False)]
    for text in texts:
        assert score(LengthSpans(unit="tokens"), text) == len(regex.split(r"\w+|[^\w\s]+", text))
        assert score(LengthSpans(unit="pretokens"), text) == len(pretokens(text))
        assert [found[:2] for found in dolma_pii._emails(text)] == [found.span() for found in EMAIL.finditer(text)]
        assert DolmaRepetitions(per="line").tag(Document(text)) == [
            span for line in re.finditer(r"[^\n]*\n|[^\n]+", text) for span in repeated(line[0], line.start())
        ]


def test_every_meaning_is_a_tagger_with_these_options() -> None:
    for meaning in meanings().values():
        for entry in meaning.values():
            options = {name: value for name, value in entry.items() if name != "tagger"}
            assert msgspec.convert(options, TAGGERS.find(entry["tagger"]))
