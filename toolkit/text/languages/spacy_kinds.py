"""Kinds of words by spaCy's attributes of its pipeline ``xx``: URLs, numbers, punctuation and others.

Source: spaCy 3.8 (MIT): ``lang/tokenizer_exceptions.py`` (URLs), ``lang/lex_attrs.py``. Written anew, in linear time.
"""

import functools
import re
import unicodedata
from typing import Literal, NamedTuple

from toolkit.text.languages.spacy_rules import lower_case

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
_TOP_LEVELS = frozenset(_GENERIC.split()) | {each[0] + second for each in _COUNTRIES.split() for second in each[1:]}


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
    """Return whether all of it looks like a URL: perhaps a scheme, a user, then a host, perhaps a port, a path."""
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
    """Return whether a place is a host, up to the end or with a path; what is not the last one needs a path."""
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
