"""Words as spaCy has them: the lists of words below are spaCy 3.8's own."""

import random
import time

import pytest

from toolkit.text import spacy_kind, spacy_languages, spacy_words
from toolkit.text.languages.spacy_words import rules_of

BOTH = {
    "": [],
    " a  b\n c \n": [" ", "a", " ", "b", "\n ", "c", "\n"],
    '("Well...")': ["(", '"', "Well", "...", '"', ")"],
    "e-mail, x--y and 1-2": ["e", "-", "mail", ",", "x", "--", "y", "and", "1", "-", "2"],
    "5km 3.5% 7US$ $8 20°C. A.B. AB. ab.": (
        ["5", "km", "3.5", "%", "7", "US$", "$", "8", "20", "°", "C", ".", "A.B.", "AB", ".", "ab", "."]
    ),
    "well.Then one,two a/b a:b": ["well", ".", "Then", "one", ",", "two", "a", "/", "b", "a", ":", "b"],
    ":-) :-)) ;) x:-) : )": [":-)", ":-))", ";)", "x:-", ")", ":", ")"],
    "see http://a.de/x,y?z=1, www.b.com. c@d.org": (["see", "http://a.de/x,y?z=1", ",", "www.b.com", ".", "c@d.org"]),
    "日本語、です。": ["日本語、です", "。"],
    "C++ C# +1 +a": ["C++", "C", "#", "+1", "+", "a"],
    "😀😀a\u2026\u2026": ["😀", "😀", "a", "\u2026\u2026"],
}
XX = {
    "don't it's 'Tis": ["don't", "it", "'s", "'", "Tis"],
    "Dr. No a.m. 2nd-rate": ["Dr", ".", "No", "a.m", ".", "2nd", "-", "rate"],
}
EN = {
    "don't it's we'll've Cannot": ["do", "n't", "it", "'s", "we", "'ll", "'ve", "Can", "not"],
    "don’t it’s were Dr. No, 8am": ["do", "n’t", "it", "’s", "were", "Dr.", "No", ",", "8", "am"],
    "w/o 10-year x/and/or": ["w/o", "10", "-", "year", "x", "/", "and/or"],
}
KINDS = {
    "word": "don 2014 ²", "space": "", "punctuation": "... — ¿ 、", "number": "1,000 -5 ±.5 1/2 ٣,٤",
    "url": "http:// www.x a.com a.b/ x.y.museum 8.8.8.8:80 a.b.ab:80/c", "email": "a.b+c@d-e.f a@b.c/d",
    "other": "don't $ © 10.0.0.1:80 a.b 1/2/3 a@b www. .com",
}  # fmt: skip


def parts(known: dict[str, list[str]], *languages: str) -> list[tuple[str, str, list[str]]]:
    return [(text, language, words) for language in languages for text, words in known.items()]


@pytest.mark.parametrize(("text", "language", "words"), parts(BOTH, "xx", "en") + parts(XX, "xx") + parts(EN, "en"))
def test_words_are_those_of_spacy(text: str, language: str, words: list[str]) -> None:
    assert spacy_words(text, language) == words


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_those_of_spacy(kind: str) -> None:
    words = KINDS[kind].split() or [" ", "\n\t", "\u3000"]
    assert {word: spacy_kind(word) for word in words} == dict.fromkeys(words, kind)


@pytest.mark.slow
def test_exceptions_give_words_that_are_in_them() -> None:
    """Their numbers are those of spaCy 3.8.18, `len(spacy.blank(code).tokenizer.rules)`."""
    numbers = {"xx": 176, "en": 1347, "de": 417, "fr": 278, "es": 282, "sr": 341, "id": 15963, "tr": 143, "pl": 140}
    assert {code: len(rules_of(code).exceptions) for code in numbers} == numbers
    for code in spacy_languages():
        assert all("".join(words) == known for known, words in rules_of(code).exceptions.items())


OTHERS = {
    "de": {"z.B. Dr. Müllers Haus-Tür, usw.": ["z.B.", "Dr.", "Müllers", "Haus-Tür", ",", "usw."]},
    "fr": {
        "L'aujourd'hui qu'il anti-âge": ["L'", "aujourd'hui", "qu'", "il", "anti-âge"],
        "(porte-monnaie) dis-moi": ["(", "porte-monnaie", ")", "dis", "-moi"],
    },
    "es": {"D.ª Ana, aprox. 5kg a.m.": ["D.ª", "Ana", ",", "aprox.", "5", "kg", "a.m", "."]},
    "hy": {"°f. f. (°C.)": ["°", "f", ".", "f.", "(", "°", "C", ".", ")"]},
    "id": {"anak-anak <a>b": ["anak-anak", "<", "a", ">", "b"]},
}


@pytest.mark.parametrize("language", OTHERS)
def test_words_of_other_languages(language: str) -> None:
    for text, words in OTHERS[language].items():
        assert spacy_words(text, language) == words


PIECES = [
    *"ab8DX()[]:;-_.,'’…\"*+/=<>@#&%$€°²|~!?", " ", " ", "  ", "\n", "\t", "\xa0", "...", "--", "'s", "n't", "12", "km",
    "ä", "Ü", "я", "日", "ー", "😀", "✓", "http://", "www.", ".com", "a@b.co", ":80", "1a.m", "10.1.2.3",
    "¯\\(ツ)/¯", "vs.", "US$", "\u3000", "\u0300", "\u200d", "\u00ad",
]  # fmt: skip


def random_texts(count: int) -> list[str]:
    random_ = random.Random(3)
    return ["".join(random_.choices(PIECES, k=random_.randrange(1, 16))) for _ in range(count)]


@pytest.mark.parametrize("language", ["xx", "en", "fr", "el", "hu", "id"])
def test_only_blanks_are_lost(language: str) -> None:
    for text in random_texts(1000):
        at = 0
        for word in spacy_words(text, language):
            at += not text.startswith(word, at)
            assert text.startswith(word, at)
            at += len(word)
        assert text[at:] in ("", " ")


@pytest.mark.parametrize("language", ["xx", "en"])
def test_words_and_kinds_are_the_same_where_spacy_is_installed(language: str) -> None:
    spacy = pytest.importorskip("spacy")
    tokenizer = spacy.blank(language).tokenizer
    for text in random_texts(20_000):
        tokens = tokenizer(text)
        assert spacy_words(text, language) == [token.text for token in tokens], text
        for token in tokens if language == "xx" else ():
            checks = (
                ("word", token.text.isalnum()), ("space", token.is_space), ("punctuation", token.is_punct),
                ("number", token.like_num), ("url", token.like_url), ("email", token.like_email), ("other", True),
            )  # fmt: skip
            assert spacy_kind(token.text) == next(kind for kind, holds in checks if holds), token.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["a", " ", "a ", "\n", "(", ")", ".", "a.", "...a", ":", "a@", "a.b@", "a:b@c.", "°C.", "-)"]
)
def test_time_is_linear(piece: str) -> None:
    took = []
    for size in (2_500, 40_000):
        text = piece * (size // len(piece))
        start = time.process_time()
        for word in set(spacy_words(text, "en")):
            spacy_kind(word)
        took.append(time.process_time() - start)
    assert took[1] < 100 * took[0] + 0.2, "16 times as long would be linear, 256 times quadratic"
