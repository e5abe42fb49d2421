"""Words as FineWeb-2 has them: split as datatrove 0.10 splits the language, punctuation included.

Splitters that consist of rules are written here exactly, without another package: spaCy's blank pipelines
(`spacy_words`) and the Indic NLP Library's. Splitters with a dictionary or a model need their library, an extra
(`dictionary_words`).
"""

import functools
import re
import string
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.distribution import missing_extra, require_extra
from toolkit.errors import ConfigError
from toolkit.lazy_numpy import np
from toolkit.text.kernels.signatures import Array
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
    """Return True for a language without blanks between words.

    A dictionary splits it.
    """
    kind, code = (tokenizer_of(language) if language else None) or NO_LANGUAGE
    return kind in ("Burmese", "Khmer", "Lao", "Thai", "Tibetan") or code in ("ja", "zh")


@functools.cache
def _splitter(language: str | None) -> Callable[[str], Iterable[str]]:
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
    """Check support for splitting the words of a language.

    It runs before anything is written.

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
    """Return the pieces between blanks and punctuation.

    They are those of the Indic NLP Library 0.92.

    Other white space stays.

    Numbers with marks between them are one word, but not those that begin the text.
    """
    apart = re.sub(" +", " ", _INDIC.sub(r" \1 ", text.replace("\t", " "))).strip(" ")
    return _NUMBERS.sub(lambda match: match[0].replace(" ", "") if match.start() else match[0], apart).split(" ")


def _urdu(text: str) -> list[str]:
    """Return the same of Urdu, with its punctuation and without whole numbers."""
    return re.sub(" +", " ", _URDU.sub(r" \1 ", text.replace("\t", " "))).strip(" ").split(" ")


if TYPE_CHECKING:
    from toolkit.text.line_table import LineTable

Split = Callable[[str], Iterable[str]]


class Library(NamedTuple):
    """A splitter of words of a language.

    Attributes:
        extra: Extra that brings it.
        package: its name on package indexes.
        licence: Licence of it, and of what it brings.
        load: gives its function; ImportError if it is not installed.
    """

    extra: str
    package: str
    licence: str
    load: Callable[[], Split]


@functools.cache
def dictionary_words(kind: str, code: str) -> Split:
    """Return the function of a tokenizer.

    Args:
        kind: Kind of tokenizer, as `toolkit.text.languages.tables` has it.
        code: Code of the language, as the tokenizer knows it.

    Raises:
        MissingExtra: if its library is not installed; it names the extra and the licence.
    """
    library = _library(kind, code)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old libraries, about themselves
            return library.load()
    except ImportError:
        purpose = f"words of {kind} {code}".rstrip() + f" (licence: {library.licence})"
        raise missing_extra(library.extra, purpose, library.package) from None


def _library(kind: str, code: str) -> Library:
    if kind == "Stanza":
        licence = "Apache-2.0; each model that it fetches has its own"
        return Library("words-stanza", "stanza", licence, functools.partial(_stanza, code))
    return _LIBRARIES[f"{kind} {code}".rstrip()]


def _japanese() -> Split:
    from sudachipy import Dictionary, SplitMode

    tokenizer = Dictionary().create(mode=SplitMode.A)
    return lambda text: (word.surface() for piece in _pieces(text, 40_000) for word in tokenizer.tokenize(piece))


def _pieces(text: str, most: int) -> Iterator[str]:
    """Yield pieces of a text, cut at the same places as datatrove.

    Each has at most so many bytes of UTF-8.
    """
    share = len(text) / max(len(text.encode()), 1)
    guess, step = max(int(most * share - 10), 1), 10
    while text:
        while len(text[:guess].encode()) > most:
            guess = max(guess - step, 1)
        size = guess
        while size < len(text) and len(text[:size].encode()) < most:
            size = min(len(text), size + step)
        if len(text[:size].encode()) > most:
            size -= step
        yield text[:size]
        text = text[size:]


def _chinese() -> Split:
    import logging

    import jieba

    jieba.setLogLevel(logging.WARNING)
    return lambda text: jieba.cut(text, cut_all=False)


_VIETNAMESE = re.compile(
    r"\s+|[A-ZĐ]+\.|Tp\.|Mr\.|Mrs\.|Ms\.|Dr\.|ThS\.|==>|->|\.\.\.|>>|\w+://[^\s]+"
    r"|[a-zA-Z0-9_.+-]+@(?:[a-zA-Z0-9-]+\.)+[a-zA-Z0-9-]+|\d+(?:[\.,_]\d+)+|[^\w\s]|\w+"
)


def _vietnamese() -> Split:
    from pyvi.ViTokenizer import ViTokenizer

    def split(text: str) -> Iterator[str]:
        spans = [match.span() for match in _VIETNAMESE.finditer(text) if not match.group().isspace()]
        syllables = [text[begin:end] for begin, end in spans]
        if not syllables:
            return
        labels = ViTokenizer.model.predict([ViTokenizer.sent2features(syllables, False)])[0]
        start, stop = spans[0]
        for (begin, end), label, word, before in zip(spans[1:], labels[1:], syllables[1:], syllables, strict=False):
            if label == "I_W" and _joins(before, word):
                stop = end
            else:
                yield text[start:stop]
                start, stop = begin, end
        yield text[start:stop]

    return split


def _joins(before: str, word: str) -> bool:
    apart = any(item in string.punctuation or item[0].isdigit() for item in (before, word))
    return not apart and not (word[0].istitle() and not before[0].istitle())


def _thai() -> Split:
    from pythainlp.tokenize import word_tokenize

    return functools.partial(word_tokenize, keep_whitespace=False, engine="newmm-safe")


_LONG_NUMBER = re.compile("[0-9,]{20,}")


def _korean() -> Split:
    from kiwipiepy import Kiwi

    tokenizer = Kiwi(model_type="sbg")

    def split(text: str) -> Iterator[str]:
        """Yield words; places are those in the text without long numbers, and read in the whole one: so datatrove."""
        for word in tokenizer.tokenize(_LONG_NUMBER.sub("", text)):
            yield text[word.start : word.end]

    return split


def _khmer() -> Split:
    from khmernltk import word_tokenize

    return functools.partial(word_tokenize, return_tokens=True)


def _lao() -> Split:
    from laonlp.tokenize import word_tokenize

    return word_tokenize  # type: ignore[no-any-return]


def _burmese() -> Split:
    import pyidaungsu

    return functools.partial(pyidaungsu.tokenize, form="word")


def _tibetan() -> Split:
    from botok import WordTokenizer

    tokenizer = WordTokenizer()

    def split(text: str) -> Iterator[str]:
        try:
            words = tokenizer.tokenize(text, split_affixes=False)
        except Exception:  # whatever botok stumbles over: datatrove tries again without white space
            words = tokenizer.tokenize(re.sub(r"\s+", "", text), split_affixes=False)
        return (word.text for word in words)

    return split


def _stanza(code: str) -> Split:
    import stanza
    from stanza.pipeline.core import DownloadMethod

    pipeline: Any = stanza.Pipeline(code, processors="tokenize", download_method=DownloadMethod.REUSE_RESOURCES)
    return lambda text: (word.text for sentence in pipeline(text).sentences for word in sentence.tokens)


_LIBRARIES = {
    "SpaCy ja": Library("words-ja", "SudachiPy", "Apache-2.0, also of its dictionary", _japanese),
    "SpaCy zh": Library("words-zh", "jieba", "MIT", _chinese),
    "SpaCy vi": Library("words-vi", "pyvi", "MIT", _vietnamese),
    "Thai": Library("words-th", "pythainlp", "Apache-2.0", _thai),
    "Kiwi": Library("words-ko", "kiwipiepy", "LGPL-3.0", _korean),
    "Khmer": Library("words-km", "khmer-nltk", "Apache-2.0", _khmer),
    "Lao": Library("words-lo", "LaoNLP", "Apache-2.0", _lao),
    "Burmese": Library("words-my", "pyidaungsu-numpy2", "MIT", _burmese),
    "Tibetan": Library("words-bo", "botok", "Apache-2.0; the dictionaries that it fetches have their own", _tibetan),
}


_NO_WORD = 100  # UBRK_WORD_NONE_LIMIT: below it are segments without letters and numbers


def check_icu() -> None:
    """Raise MissingExtra without PyICU."""
    require_extra("icu", "words of ICU", "PyICU", "icu")


def boundaries(lines: "LineTable", language: str) -> tuple[Array, Array]:
    """Return the bounds of words in the table's buffer, int64.

    All texts are split in one go: there is always a boundary where a line ends.

    Args:
        lines: the texts.
        language: Language of all of them; ICU's rules differ little between languages.

    Raises:
        MissingExtra: without PyICU.
    """
    check_icu()
    import icu

    iterator = icu.BreakIterator.createWordInstance(icu.Locale(language or "root"))
    text = icu.UnicodeString(lines.utf8.tobytes().decode())
    iterator.setText(text)
    status = iterator.getRuleStatus
    marked = np.fromiter((end if status() >= _NO_WORD else -end for end in iterator), dtype=np.int64)
    ends = np.abs(marked)
    is_word = marked > 0
    starts = np.concatenate([[0], ends[:-1]])
    offsets = _offsets(lines.utf8, len(text))
    return offsets[starts[is_word]], offsets[ends[is_word]]


def _offsets(utf8: Array, units: int) -> Array:
    """Return the UTF-8 offset of each UTF-16 code unit, and the end.

    ICU counts in these units.
    """
    if units == len(utf8):
        return np.arange(units + 1)
    firsts = np.flatnonzero(utf8 >= -64)  # bytes that begin a code point
    beyond = utf8[firsts].view(np.uint8) >= 0xF0  # code points that are two units
    return np.append(np.repeat(firsts, np.where(beyond, 2, 1)), len(utf8))
