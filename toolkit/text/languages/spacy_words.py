"""Words, their kinds and sentences of spaCy's blank pipelines, without spaCy.

Source: Unicode's Sentence_Terminal less the newest and the vertical ones, and three signs of Khmer, as datatrove 0.10
has them; spaCy 3.8 (MIT), ``pipeline/sentencizer.pyx``.

The rules by which spaCy's blank pipelines split words, of all languages that have rules (no dictionary, no model).

They come from spaCy 3.8 (MIT, see NOTICE) as a table, made by tests/oracles/tables/spacy_rules.py; spaCy itself is not
needed. A table keeps up with spaCy by being made anew, where 57 rewritten languages would not.

Kinds of words by spaCy's attributes of its pipeline ``xx``: URLs, numbers, punctuation and others.

Source: spaCy 3.8 (MIT): ``lang/tokenizer_exceptions.py`` (URLs), ``lang/lex_attrs.py``. Written anew, in linear time.

Words as spaCy has them in its blank pipelines, ``spacy.blank("de")``, without spaCy.

Source: spaCy 3.8 (MIT), ``tokenizer.pyx``: the algorithm, written anew; `spacy_rules` has the languages.

A text is split at white space; one blank after a word vanishes, all other white space is a word of its own. What stands
between is a known exception, or loses a prefix and a suffix at a time until it is one or neither is found; the rest is
an exception, a URL, or is split at infixes. At last, exceptions that were torn apart this way are put together again.
spaCy needs quadratic time for some texts. This module needs linear time, as far as the patterns of a language allow it,
and keeps the words of chunks that it has seen.
"""

import functools
import gzip
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Literal, NamedTuple

import msgspec

FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "tables", "spacy-3.8.json.gz")


class Rules(NamedTuple):
    """Rules for splitting the words of a language.

    Attributes:
        prefix: Prefix to split off at a match.
        loose: Prefix to split off anywhere in a word, as long as it is; None if there is none.
        suffix: Suffix to split off at an end, as ``search`` finds it.
        window: code points before an end in which ``suffix`` is looked for; 0 for all of them.
        infix: Separator inside the rest; it is a word itself unless it is empty.
        whole: Pattern of words that are not split further; None if there are none.
        exceptions: words that are not split by the rules, with the words that they give.
    """

    prefix: re.Pattern[str]
    loose: re.Pattern[str] | None
    suffix: re.Pattern[str]
    window: int
    infix: re.Pattern[str]
    whole: re.Pattern[str] | None
    exceptions: dict[str, tuple[str, ...]]


@functools.cache
def _table() -> dict[str, Any]:
    with open(FILE, "rb") as file:
        table: dict[str, Any] = msgspec.json.decode(gzip.decompress(file.read()))
    return table


@functools.cache
def spacy_languages() -> frozenset[str]:
    """Return the codes of the languages with rules.

    ``xx`` is spaCy's for all languages.
    """
    return frozenset(_table()["languages"])


def lower_case() -> str:
    """Return spaCy's lower-case letters.

    They have the form of a bracket expression in a regular expression.
    """
    return str(_table()["lower"])


@functools.cache
def rules_of(language: str) -> Rules:
    """Return the rules of a language.

    Args:
        language: one of `spacy_languages`.
    """
    table = _table()
    own = table["languages"][language]
    pattern = {key: own[key] if own[key] is None else _compiled(table["patterns"][own[key]]) for key in _PATTERNS}
    words = [tuple(item) for item in (*table["exceptions"], *own["added"])]
    exceptions = {"".join(word): word for word in words}
    for dropped in set(own["dropped"]) - set(map("".join, own["added"])):
        del exceptions[dropped]
    return Rules(window=own["window"], exceptions=exceptions, **pattern)


_PATTERNS = ("prefix", "loose", "suffix", "infix", "whole")


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


SpacyKind = Literal["space", "word", "punctuation", "number", "url", "email", "other"]


class _Patterns(NamedTuple):
    """Patterns of URLs and addresses."""

    scheme: re.Pattern[str]
    host_end: re.Pattern[str]
    port: re.Pattern[str]
    label: re.Pattern[str]
    top: re.Pattern[str]
    ip: re.Pattern[str]
    email: re.Pattern[str]


@functools.cache
def _patterns() -> _Patterns:
    inside = r"a-zA-Z0-9\xa1-\uffff"
    return _Patterns(
        scheme=re.compile(r"[\w+.-]{2,}://"),
        host_end=re.compile(r"[:/?#]"),
        port=re.compile(r":\d{2,5}(?:(?=[/?#])|$)"),
        label=re.compile(rf"[{inside}](?:[{inside}_-]{{0,62}}[{inside}])?"),
        top=re.compile(rf"[{lower_case()}]{{2,63}}"),
        ip=re.compile(
            r"(?!(?:10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.)(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])"
            r"(?:\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])){2}\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4])"
        ),
        email=re.compile(r"[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9.-]"),
    )


_GENERIC = "com org edu gov net mil aero asia biz cat coop info int jobs mobi museum name pro tel travel xyz icu xxx"
_COUNTRIES = (  # a first letter, and all second ones
    "acdefgilmnoqrstuwxz babdefghijmnorstvwyz cacdfghiklmnorsuvxyz ddejkmoz eceghrstu fijkmor gabdefghilmnpqrstuwy "
    "hkmnrtu idelmnoqrst jemop keghimnprwyz labcikrstuvy macdeghklmnopqrstuvwxyz nacefgilopruz om paefghklmnrstwy qa "
    "reosuw sabcdeghijklmnorstuvyz tcdfghjklmnoprtvwz uagksyz vaceginu wfs yet zamw"
)
_TOP_LEVELS = frozenset(_GENERIC.split()) | {part[0] + second for part in _COUNTRIES.split() for second in part[1:]}


def spacy_kind(word: str) -> SpacyKind:
    """Return the kind of a word: the first of spaCy's attributes of ``xx`` that holds.

    ``space``; ``word``: ``str.isalnum``; ``punctuation``: Unicode's; ``number``: digits with a sign, with full stops
    and commas, or a fraction; ``url``: something with a scheme, ``www.`` or a known top-level domain, or what looks
    like one altogether; ``email``.
    """
    if word.isalnum():
        return "word"
    if word.isspace():
        return "space"
    if all(unicodedata.category(c)[0] == "P" for c in word):
        return "punctuation"
    if _is_number(word):
        return "number"
    if _is_like_url(word):
        return "url"
    return "email" if _patterns().email.match(word) else "other"


def _is_number(word: str) -> bool:
    digits = word[word[0] in "+-±~" :].replace(",", "").replace(".", "")
    above, slash, below = digits.partition("/")
    return above.isdigit() and (below.isdigit() or not slash)


def _is_like_url(word: str) -> bool:
    if word.startswith(("http://", "https://")) or (word.startswith("www.") and len(word) > 4):
        return True
    if "." not in word or word[0] == "." or word[-1] == "." or "@" in word:
        return False
    top = word.rpartition(".")[2].partition(":")[0]
    return top.endswith("/") or top in _TOP_LEVELS or is_url(word)


def is_url(chunk: str) -> bool:
    """Return True if all of a chunk looks like a URL.

    It has a host; scheme, user, port and path are optional.
    """
    if "." not in chunk:
        return False
    if (scheme := _patterns().scheme.match(chunk)) and _is_host(chunk[scheme.end() :], last=True):
        return True
    places = chunk.split("@")
    if not places[0] and len(places) > 1:
        places[0] = "@" + places[1]  # a user has a name
        del places[1]
    return any("." in place and _is_host(place, last=i == len(places)) for i, place in enumerate(places, 1))


def _is_host(place: str, *, last: bool) -> bool:
    """Return True if a place is a host, perhaps with a path.

    All but the last place need a path.
    """
    find = _patterns()
    end = find.host_end.search(place)
    host, rest = (place[: end.start()], place[end.start() :]) if end else (place, "")
    if rest[:1] == ":":
        port = find.port.match(rest)
        if not port:
            return False
        rest = rest[port.end() :]
    if not rest and not last:
        return False
    if len(host) <= 15 and find.ip.fullmatch(host):
        return True
    *labels, top = host.split(".")
    return bool(labels and find.top.fullmatch(top)) and all(
        len(label) <= 64 and find.label.fullmatch(label) for label in labels
    )


KEPT, LONGEST_KEPT = 50_000, 40
"""Chunks that are kept with their words, and how long these are at most."""

_CHUNKS = re.compile(r"\S+|\s{2,}|[^\S ]")
_LEADING = re.compile(r"\s+")


def spacy_words(text: str, language: str = "xx") -> list[str]:
    """Return the words of a text, in order, and nothing less.

    White space longer than a blank is a word.

    Args:
        text: Text of any length.
        language: one of `toolkit.spacy_languages`: ``xx`` is for all languages, others know their contractions and
            abbreviations.
    """
    return _tokenizer(language)(text)


@functools.cache
def _tokenizer(language: str) -> "_Tokenizer":
    return _Tokenizer(language)


def _chunks(text: str) -> list[str]:
    """Return pieces between white space, and white space.

    White space is a piece if it is more than the blank behind a word, with that.
    """
    leading = _LEADING.match(text)
    if not leading:
        return _CHUNKS.findall(text)
    first = leading.group()
    return [" " * (first[0] == " ") + first, *_CHUNKS.findall(text, leading.end())]


class _Tokenizer(dict[str, tuple[str, ...]]):
    """The tokenizer of a language; a dict of the words that chunks of text gave so far."""

    def __init__(self, language: str) -> None:
        rules = rules_of(language)
        self._exceptions, self._infix, self._whole = rules.exceptions, rules.infix, rules.whole
        self._match_prefix, self._loose = rules.prefix.match, rules.loose
        self._search_suffix, self._window = rules.suffix.search, rules.window
        self._longest = max(map(len, self._exceptions))
        self._torn = dict[str, dict[str, list[tuple[tuple[str, ...], str]]]]()  # by their first and second word
        for exception, gives in self._exceptions.items():
            if " " in exception or self._has_affix(exception):
                words = tuple(chain.from_iterable(self._words_of(chunk, {}) for chunk in _chunks(exception)))
                if len(words) > 1 or words != gives:  # what gives just these words keeps others from overlapping
                    second = words[1] if len(words) > 1 else ""
                    self._torn.setdefault(words[0], {}).setdefault(second, []).append((words, exception))

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        words = self._words_of(chunk, self._exceptions)
        if len(self) >= KEPT:
            self.clear()
        if len(chunk) <= LONGEST_KEPT:
            self[chunk] = words
        return words

    def __call__(self, text: str) -> list[str]:
        chunks = _chunks(text)
        return self._mend(text, list(chain.from_iterable(map(self.__getitem__, chunks))))

    def _words_of(self, chunk: str, exceptions: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
        if chunk[0] == " ":  # of white space behind a word
            return (chunk[1:],)
        return tuple(self._split(chunk, exceptions))

    def _split(self, chunk: str, exceptions: dict[str, tuple[str, ...]]) -> Iterator[str]:
        """Yield the words of a chunk: an exception, or prefixes, what is between, suffixes."""
        begin, end = 0, len(chunk)
        behind = list[str]()
        longest = self._longest if exceptions else -1
        whole, whole_length = self._whole, 0

        while begin < end:
            if whole and whole.match(chunk[begin:end]):
                whole_length = end - begin
                break
            if end - begin <= longest and chunk[begin:end] in exceptions:
                break
            first = self._prefix(chunk, begin, end)
            if first and end - begin - first <= longest and chunk[begin + first : end] in exceptions:
                yield chunk[begin : begin + first]
                begin += first
                break
            last = self._suffix(chunk, begin + first, end)
            if last and end - begin - last <= longest and chunk[begin : end - last] in exceptions:
                behind.append(chunk[end - last : end])
                end -= last
                break
            if not first and not last:
                break
            if first:
                yield chunk[begin : begin + first]
                begin += first
            if last:
                behind.append(chunk[end - last : end])
                end -= last
        if begin < end:
            inside = chunk[begin:end]
            if inside in exceptions:
                yield from exceptions[inside]
            elif end - begin == whole_length or is_url(inside):
                yield inside
            else:
                yield from self._between_infixes(inside)
        yield from reversed(behind)

    def _prefix(self, chunk: str, begin: int, end: int) -> int:
        """Return the length of the prefix to split off."""
        match = self._match_prefix(chunk, begin, end)
        if not match and self._loose:
            match = self._loose.search(chunk, begin, end)
        return match.end() - match.start() if match else 0

    def _suffix(self, chunk: str, begin: int, end: int) -> int:
        """Return the length of the longest suffix to split off."""
        window = self._window or end - begin
        while True:
            start = max(begin, end - window)
            match = self._search_suffix(chunk[start:end])
            if not match:
                return 0
            if match.start() or start == begin:
                return match.end() - match.start()
            window *= 2

    def _between_infixes(self, chunk: str) -> Iterator[str]:
        at = 0
        for infix in self._infix.finditer(chunk):
            begin, end = infix.span()
            if begin:
                if at < begin:
                    yield chunk[at:begin]
                if begin < end:
                    yield chunk[begin:end]
                at = end
        if at < len(chunk):
            yield chunk[at:]

    def _has_affix(self, exception: str) -> bool:
        size = len(exception)
        return bool(
            self._prefix(exception, 0, size) or self._suffix(exception, 0, size) or self._infix.search(exception)
        )

    def _mend(self, text: str, words: list[str]) -> list[str]:
        """Return the words with exceptions put together again.

        They are looked for in the words alone, so that also those are found which have blanks inside; these stay apart,
        yet no other one overlaps them.
        """
        results = list[tuple[int, int, str]]()
        torn = self._torn
        for i in [i for i, word in enumerate(words) if word in torn]:
            follows = torn[words[i]]
            for second in (words[i + 1], "") if i + 1 < len(words) else ("",):
                for parts, exception in follows.get(second, ()):
                    if tuple(words[i : i + len(parts)]) == parts:
                        results.append((len(parts), -i, exception))
        if not results:
            return words
        occupied = set[int]()
        chosen = dict[int, tuple[int, str]]()
        for size, minus, exception in sorted(results, reverse=True):  # the longest, of these the first
            if -minus not in occupied and size - minus - 1 not in occupied:
                chosen[-minus] = size, exception
            occupied.update(range(-minus, size - minus))
        mended = list[str]()
        at = 0
        for i, begin in enumerate(_offsets(text, words)):
            if i in chosen and text.startswith(chosen[i][1], begin):
                size, exception = chosen[i]
                mended += words[at:i]
                mended += self._exceptions[exception]
                at = i + size
        return mended + words[at:]


def _offsets(text: str, words: Iterable[str]) -> Iterator[int]:
    """Yield the offset of each word of a text."""
    at = 0
    for word in words:
        if not text.startswith(word, at):
            at += 1  # a blank
        yield at
        at += len(word)


def characters_in(ranges: str) -> Iterator[str]:
    """Yield the characters of hexadecimal code points and ranges.

    An example is ``21 2e 61d-61f``.
    """
    for part in ranges.split():
        first, _, last = part.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


_MARKS = (
    "21 2e 3f 589 61d-61f 6d4 700-702 7f9 837 839 83d-83e 964-965 104a-104b 1362 1367-1368 166e 1735-1736 17d4-17d6 "
    "17d9-17da 1803 1809 1944-1945 1aa8-1aab 1b5a-1b5b 1b5e-1b5f 1b7d-1b7e 1c3b-1c3c 1c7e-1c7f 203c-203d 2047-2049 "
    "2e2e 2e3c 2e53-2e54 3002 a4ff a60e-a60f a6f3 a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 aa5d-aa5f aaf0-aaf1 abeb "
    "fe52 fe56-fe57 ff01 ff0e ff1f ff61 10a56-10a57 10f55-10f59 10f86-10f89 11047-11048 110be-110c1 11141-11143 "
    "111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 1144b-1144c 115c2-115c3 115c9-115d7 11641-11642 "
    "1173c-1173e 11944 11946 11a42-11a43 11a9b-11a9c 11c41-11c42 11ef7-11ef8 11f43-11f44 16a6e-16a6f 16af5 "
    "16b37-16b38 16b44 16e98 1bc9f 1da88"
)
_NOT_OF_SPACY = (
    "61d-61e 837 839 83d-83e 17d4-17d6 17d9-17da 1b7d-1b7e 2e53-2e54 10f55-10f59 10f86-10f89 11944 11946 "
    "11ef7-11ef8 11f43-11f44 16e98"
)

TERMINALS = frozenset(characters_in(_MARKS))
"""The marks that end a sentence."""

_SPACY = TERMINALS - frozenset(characters_in(_NOT_OF_SPACY))


def _openings(words: Sequence[str]) -> Iterator[int]:
    """Yield the indexes of words at the beginning of sentences.

    These are the first word, and after a mark the next one without punctuation.
    """
    marked = True
    for i, word in enumerate(words):
        if word in _SPACY and i:
            marked = True
        elif marked and not (i and all(unicodedata.category(c)[0] == "P" for c in word)):
            marked = word in _SPACY
            yield i


def spacy_sentences(text: str, language: str = "xx") -> int:
    """Return the number of sentences: after a mark, the next word that is no punctuation begins one."""
    return sum(1 for _ in _openings(spacy_words(text, language)))


def spacy_sentence_ends(text: str, language: str = "xx") -> list[int]:
    """Return the end of each sentence.

    White space belongs to the sentence after it, and may be the last one alone.
    """
    words = spacy_words(text, language)
    places = list(_offsets(text, words))
    lasts = [*(i - 1 for i in islice(_openings(words), 1, None)), *([len(words) - 1] if words else [])]
    return [places[i] + len(words[i]) for i in lasts]
