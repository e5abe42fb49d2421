"""Words as FineWeb-2 has them: split as datatrove 0.10 splits the language, punctuation included.

Splitters that consist of rules are written here exactly, without another package: spaCy's blank pipelines
(`spacy_words`) and the Indic NLP Library's. Splitters with a dictionary or a model need their library, an extra
(`dictionary_words`).
"""

import functools
import re
import string
from collections.abc import Callable, Iterable

from toolkit.errors import ConfigError
from toolkit.text.languages.tables import tokenizer_of

NO_LANGUAGE = ("SpaCy", "xx")
"""The tokenizer of a text whose language is not known, or to which datatrove gives none: spaCy's for all languages."""


def datatrove_words(text: str, language: str | None) -> list[str]:
    """Return the words of a text, without white space at their ends; all in order.

    Args:
        text: Text of any length.
        language: label of lid.176 or GlotLID. None, and one to which datatrove gives no tokenizer (it stops there),
            are split by spaCy's rules for all languages, never by those of another one.

    Raises:
        MissingExtra: if the language needs a library that is not installed; it names the extra and the licence.
    """
    return [word for word in map(str.strip, _splitter(language)(text)) if word]


@functools.cache
def has_no_blanks(language: str | None) -> bool:
    """Return True for a language without blanks between words, which a dictionary splits."""
    kind, code = (tokenizer_of(language) if language else None) or NO_LANGUAGE
    return kind in ("Burmese", "Khmer", "Lao", "Thai", "Tibetan") or code in ("ja", "zh")


@functools.cache
def _splitter(language: str | None) -> Callable[[str], Iterable[str]]:
    from toolkit.text.languages.dictionary_words import dictionary_words
    from toolkit.text.languages.spacy_words import spacy_languages, spacy_words

    kind, code = (tokenizer_of(language) if language else None) or NO_LANGUAGE
    if kind == "Whitespace":
        kind, code = NO_LANGUAGE
    if kind == "SpaCy" and code in spacy_languages():
        return functools.partial(spacy_words, language=code)
    if kind == "IndicNLP":
        return _urdu if code == "ur" else _indic
    return dictionary_words(kind, code)


def check_word_language(language: str | None) -> None:
    """Check that words of a language can be split, before anything is written.

    Args:
        language: option of a tagger: a label, or an attribute that has one, of which nothing is known beforehand.

    Raises:
        ConfigError: if no table has the label, or its library is not installed.
    """
    if language is None or "." in language:
        return
    if tokenizer_of(language) is None:
        raise ConfigError(f"expected a label of lid.176 (`de`) or GlotLID (`deu_Latn`), got {language!r}")
    _splitter(language)


_ASCII = re.escape(string.punctuation.replace("\\", ""))  # all but the backslash
_INDIC = re.compile(rf"([{_ASCII}\u0964\u0965\uaaf0\uaaf1\uabeb-\uabef\u1c7e\u1c7f])")
_URDU = re.compile(rf"([{_ASCII}\u0609\u060a\u060c\u061e\u066a-\u066d\u06d4])")
_NUMBERS = re.compile(r"([0-9]+ [,.:/] )+[0-9]+")


def _indic(text: str) -> list[str]:
    """Return what stands between blanks and punctuation, as the Indic NLP Library 0.92 has it; other white space stays.

    Numbers with marks between them are one word, but not those that begin the text.
    """
    apart = re.sub(" +", " ", _INDIC.sub(r" \1 ", text.replace("\t", " "))).strip(" ")
    return _NUMBERS.sub(lambda match: match[0].replace(" ", "") if match.start() else match[0], apart).split(" ")


def _urdu(text: str) -> list[str]:
    """Return the same of Urdu, with its punctuation and without whole numbers."""
    return re.sub(" +", " ", _URDU.sub(r" \1 ", text.replace("\t", " "))).strip(" ").split(" ")
