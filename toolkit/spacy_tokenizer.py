r"""Words as spaCy has them in ``spacy.blank("xx")`` and ``spacy.blank("en")``, without spaCy.

Source: spaCy 3.8 (MIT): ``tokenizer.pyx`` (the algorithm), ``lang/char_classes.py``, ``lang/punctuation.py``,
``lang/tokenizer_exceptions.py``, ``lang/lex_attrs.py``, ``lang/en``. Written anew; the token lists are the same.

A text is split at white space; one blank after a word vanishes, all other white space is a word of its own. What stands
between is a known exception, or loses a prefix and a suffix at a time until it is one or neither is found; the rest is
an exception, a URL, or is split at infixes. At last, exceptions that were torn apart this way are put together again.
What spaCy does in quadratic time is done in linear time here; what a chunk of text gives is kept.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal, NamedTuple

SpacyLanguage = Literal["xx", "en"]
SpacyKind = Literal["space", "word", "punctuation", "number", "url", "email", "other"]

KEPT, LONGEST_KEPT = 50_000, 40
"""Chunks that are kept with their words, and how long these are at most."""


def spacy_words(text: str, language: SpacyLanguage = "xx") -> list[str]:
    """The words of a text, white space that is more than a blank among them; all in order, nothing else left out.

    Args:
        text: of any length; time is linear in it.
        language: ``xx``: for all languages; ``en``: with English contractions and abbreviations.
    """
    return _tokenizer(language)(text)


@functools.cache
def _tokenizer(language: SpacyLanguage) -> "_Tokenizer":
    return _Tokenizer(language)


# --- characters -------------------------------------------------------------------------------------------------------


def _points(ranges: str) -> Iterator[str]:
    """The characters of hexadecimal code points and ranges of them."""
    for each in ranges.split():
        first, _, last = each.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


def _class(ranges: str) -> str:
    """Such ranges as they stand in the brackets of a regular expression."""
    return re.sub("[0-9a-f]+", lambda point: rf"\U{point.group():0>8}", ranges).replace(" ", "")


def _listed(characters: Iterable[str]) -> str:
    """Characters as they stand in the brackets of a regular expression."""
    return "".join(map(re.escape, sorted(characters)))


_CASED = (
    "41-5a 61-7a c0-d6 d8-f6 f8-1bf 1c4-2af 386 388-38a 38c 38e-38f 391-3a9 3ac-3af 3b1-3c9 3cc-3ce 400-401 403-40a "
    "40c-40d 410-451 453-45a 45c-45d 490-491 496-497 4a2-4a3 4ae-4af 4ba-4bb 4d8-4d9 4e8-4e9 1d00-1d25 1d6b-1d77 "
    "1d79-1d9a 1e00-1eff 2c60-2c7b 2c7e-2c7f a722-a76f a771-a787 a78b-a78e a790-a7b9 a7fa ab30-ab5a ab60-ab64 "
    "ff21-ff3a ff41-ff5a"
)
_UNCASED = (
    "591-5f4 620-64a 66e-6d5 6e5-6ff 750-77f 8a0-8bd 900-9ff b80-cff d80-dff 1100-137f 2e80-2fdf 2ff0-30ff 31c0-31ef "
    "3200-4dbf 4e00-9fff ac00-d7af f900-faff fb1d-fbb1 fbd3-fd3d fd50-fdc7 fdf0-fdfb fe30-fe4f fe70-fefc 1ee00-1eebb "
    "1f200-1f2ff 20000-2a6df 2a700-2ebef 2f800-2fa1f"
)
_ICONS = (  # the symbols (So) of Unicode 11
    "a6 a9 ae b0 482 58d-58e 60e-60f 6de 6e9 6fd-6fe 7f6 9fa b70 bf3-bf8 bfa c7f d4f d79 f01-f03 f13 f15-f17 f1a-f1f "
    "f34 f36 f38 fbe-fc5 fc7-fcc fce-fcf fd5-fd8 109e-109f 1390-1399 1940 19de-19ff 1b61-1b6a 1b74-1b7c 2100-2101 "
    "2103-2106 2108-2109 2114 2116-2117 211e-2123 2125 2127 2129 212e 213a-213b 214a 214c-214d 214f 218a-218b "
    "2195-2199 219c-219f 21a1-21a2 21a4-21a5 21a7-21ad 21af-21cd 21d0-21d1 21d3 21d5-21f3 2300-2307 230c-231f "
    "2322-2328 232b-237b 237d-239a 23b4-23db 23e2-2426 2440-244a 249c-24e9 2500-25b6 25b8-25c0 25c2-25f7 2600-266e "
    "2670-2767 2794-27bf 2800-28ff 2b00-2b2f 2b45-2b46 2b4d-2b73 2b76-2b95 2b98-2bc8 2bca-2bfe 2ce5-2cea 2e80-2e99 "
    "2e9b-2ef3 2f00-2fd5 2ff0-2ffb 3004 3012-3013 3020 3036-3037 303e-303f 3190-3191 3196-319f 31c0-31e3 3200-321e "
    "322a-3247 3250 3260-327f 328a-32b0 32c0-32fe 3300-33ff 4dc0-4dff a490-a4c6 a828-a82b a836-a837 a839 aa77-aa79 "
    "fdfd ffe4 ffe8 ffed-ffee fffc-fffd 10137-1013f 10179-10189 1018c-1018e 10190-1019b 101a0 101d0-101fc 10877-10878 "
    "10ac8 1173f 16b3c-16b3f 16b45 1bc9c 1d000-1d0f5 1d100-1d126 1d129-1d164 1d16a-1d16c 1d183-1d184 1d18c-1d1a9 "
    "1d1ae-1d1e8 1d200-1d241 1d245 1d300-1d356 1d800-1d9ff 1da37-1da3a 1da6d-1da74 1da76-1da83 1da85-1da86 1ecac "
    "1f000-1f02b 1f030-1f093 1f0a0-1f0ae 1f0b1-1f0bf 1f0c1-1f0cf 1f0d1-1f0f5 1f110-1f16b 1f170-1f1ac 1f1e6-1f202 "
    "1f210-1f23b 1f240-1f248 1f250-1f251 1f260-1f265 1f300-1f3fa 1f400-1f6d4 1f6e0-1f6ec 1f6f0-1f6f9 1f700-1f773 "
    "1f780-1f7d8 1f800-1f80b 1f810-1f847 1f850-1f859 1f860-1f887 1f890-1f8ad 1f900-1f90b 1f910-1f93e 1f940-1f970 "
    "1f973-1f976 1f97a 1f97c-1f9a2 1f9b0-1f9b9 1f9c0-1f9c2 1f9d0-1f9ff 1fa60-1fa6d"
)
_PUNCTUATION = frozenset(
    "\u2026,:;!?\xbf\u061f\xa1()[]{}<>_#*&\u3002\uff1f\uff01\uff0c\u3001\uff1b\uff1a\uff5e\xb7"
) | (frozenset("\u0964\u060c\u06d4\u061b\u066a"))
_QUOTES = frozenset("'\"\u201d\u201c`\u2018\xb4\u2019\u201a,\u201e\xbb\xab\uff08\uff09\u27e6\u27e7") | (
    frozenset(_points("3008-3011 3014-3015 2329-232a"))
)
_CURRENCY = frozenset(_points("24 a3 a5 e3f 20a0-20bf fdfc"))
_DIGITS = frozenset("0123456789")
_DOLLARS = ("US$", "C$", "A$")
_LENGTHS = "km m dm cm mm км м дм см мм كم م سم مم"
_OTHER_UNITS = (
    "ha µm nm yd in ft kg g mg µg t lb oz m/s km/h kmh mph hPa Pa mbar mb MB kb KB gb GB tb TB T G M K % нм кг г мг "
    "м/с км/ч кПа Па мбар Кб КБ кб Мб МБ мб Гб ГБ гб Тб ТБ тбكم غرام جرام جم كغ ملغ كوب اكواب"
)
_UNITS = (  # suffixes after a digit
    _CURRENCY.union(_DOLLARS, _OTHER_UNITS.split())
    | {each + power for each in _LENGTHS.split() for power in ("", *"²³")}
)
_UNIT_SIZES = sorted({len(unit) for unit in _UNITS}, reverse=True)
_UNIT_ENDS = frozenset(unit[-1] for unit in _UNITS)


class _Characters(NamedTuple):
    """Sets of characters, and what stands in the brackets of a regular expression for larger ones."""

    prefixes: frozenset[str]
    suffixes: frozenset[str]
    icons: str
    quotes: str
    alpha: str
    lower: str
    upper: str


@functools.cache
def _characters() -> _Characters:
    """What takes too long to be made when the module is imported."""
    cased, uncased = frozenset(_points(_CASED)), _class(_UNCASED)
    lower = {c for c in cased if unicodedata.category(c) == "Ll"} | {"\u0294"}
    upper = {c for c in cased if unicodedata.category(c) == "Lu"} | {"\u03a2"}
    both = _PUNCTUATION | _QUOTES | frozenset(_points(_ICONS)) | {"\u2013", "\u2014"}
    return _Characters(
        prefixes=both | _CURRENCY | frozenset("\xa7%="),
        suffixes=both,
        icons=_class(_ICONS),
        quotes=_listed(_QUOTES),
        alpha=_class(_CASED) + uncased,
        lower=_listed(lower) + uncased,
        upper=_listed(upper) + uncased,
    )


# --- exceptions -------------------------------------------------------------------------------------------------------

_EMOTICONS = r"""
:) :-) :)) :-)) :))) :-))) (: (-: =) (= :] :-] [: [-: [= =] :o) (o: :} :-} 8) 8-) (-8 ;) ;-) (; (-; :( :-( :(( :-((
:((( :-((( ): )-: =( >:( :') :'-) :'( :'-( :/ :-/ =/ =| :| :-| ]= =[ :1 :P :-P :p :-p :O :-O :o :-o :0 :-0 :() >:o
:* :-* :3 :-3 =3 :> :-> :X :-X :x :-x :D :-D ;D ;-D =D xD XD xDD XDD 8D 8-D ^_^ ^__^ ^___^ >.< >.> <.< ._. ;_; -_-
-__- v.v V.V v_v V_V o_o o_O O_o O_O 0_o o_0 0_0 o.O O.o O.O o.o 0.0 o.0 0.o @_@ <3 <33 <333 </3 (^_^) (-_-) (._.)
(>_<) (*_*) (¬_¬) ಠ_ಠ ಠ︵ಠ (ಠ_ಠ) ¯\(ツ)/¯ (╯°□°）╯︵┻━┻ ><(((*>
"""

_WHOLE = (
    "'S 's \u2018S \u2018s 're 'd and/or w/o 'Cause 'cause 'cos 'Cos 'coz 'Coz 'cuz 'Cuz 'bout ma'am Ma'am o'clock "
    "O'clock lovin' Lovin' lovin Lovin havin' Havin' havin Havin em 'em ll 'll nuff 'nuff Mt. Ak. Ala. Apr. Ariz. Ark. "
    "Aug. Calif. Colo. Conn. Dec. Del. Feb. Fla. Ga. Ia. Id. Ill. Ind. Jan. Jul. Jun. Kan. Kans. Ky. La. Mar. Mass. "
    "Mich. Minn. Miss. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Nev. Nov. Oct. Okla. Ore. Pa. S.C. Sep. Sept. Tenn. "
    "Va. Wash. Wis. a.m. Adm. Bros. co. Co. Corp. D.C. Dr. e.g. E.g. E.G. Gen. Gov. i.e. I.e. I.E. Inc. Jr. Ltd. Md. "
    "Messrs. Mo. Mont. Mr. Mrs. Ms. p.m. Ph.D. Prof. Rep. Rev. Sen. St. vs. v.s."
)
_PARTS = "y'+all y+all how+'d+'y How+'d+'y c'm+on C'm+on let+'s Let+'s"
_CONTRACTIONS = (  # with the apostrophe and without, in lower case and as titles; parts of endings after a plus
    ("i you he she it we they", "'ll 'll+'ve 'd 'd+'ve"),
    ("i", "'m 'm+a"),
    ("i you we they", "'ve"),
    ("you we they", "'re"),
    ("he she it", "'s"),
    ("who what when where why how there that this these those", "'ll 'll+'ve 'd 'd+'ve"),
    ("who what when where why how there that this", "'s"),
    ("who what when where why how there these those", "'re 've"),
    ("ca could do does did had may might must need ought sha should wo would", "n't n't+'ve"),
    ("could might must should would", "'ve"),
    ("ai are is was were have has dare", "n't"),
    ("not", "'ve"),
)
_TORN = "can+not gon+na got+ta"
_CLIPPED = "doin goin nothin nuthin ol somethin"
_NO_CONTRACTIONS = "ill its hell shell shed were well whore"


def _exceptions(language: SpacyLanguage) -> dict[str, tuple[str, ...]]:
    """What is not split by the rules, and the words it gives."""
    whole = [*_EMOTICONS.split(), " ", "\t", "\\t", "\n", "\\n", "\u2014", "\xa0", "'", '\\")', "<space>", "''", "C++"]
    whole += [letter + "." for letter in "abcdefghijklmnopqrstuvwxyzäöü"]
    parts: list[tuple[str, ...]] = [(each,) for each in whole]
    parts += [("°", letter, ".") for letter in "cfkCFK"]
    if language == "en":
        parts += _english()
    found = {"".join(each): each for each in parts}
    if language == "en":  # all of them with the other apostrophe, too
        found |= {
            known.replace("'", "’"): tuple(word.replace("'", "’") for word in words) for known, words in found.items()
        }
    return found


def _english() -> list[tuple[str, ...]]:
    found = list[tuple[str, ...]]()
    for words, endings in _CONTRACTIONS:
        for word in words.split():
            for ending in endings.split():
                for each in (word, word.capitalize()):
                    found.append((each, *ending.split("+")))
                    found.append((each, *ending.replace("'", "").split("+")))
    dropped = {each for word in _NO_CONTRACTIONS.split() for each in (word, word.capitalize())}
    found = [parts for parts in found if "".join(parts) not in dropped]
    for word in _TORN.split():
        found += [tuple(each.split("+")) for each in (word, word.capitalize())]
    for word in _CLIPPED.split():
        found += [(each + end,) for each in (word, word.capitalize()) for end in ("", "'")]
    found += [(str(hour), half) for hour in range(1, 13) for half in ("a.m.", "am", "p.m.", "pm")]
    found += [tuple(each.split("+")) for each in _PARTS.split()]
    return found + [(each,) for each in _WHOLE.split()]


# --- the algorithm ----------------------------------------------------------------------------------------------------

_CHUNKS = re.compile(r"\S+|\s{2,}|[^\S ]")
_LEADING = re.compile(r"\s+")


class _Tokenizer(dict[str, tuple[str, ...]]):
    """The tokenizer of a language; itself the words that chunks of text gave so far."""

    def __init__(self, language: SpacyLanguage) -> None:
        self._exceptions = _exceptions(language)
        self._longest = max(map(len, self._exceptions))
        of = _characters()
        a, quotes, before = of.alpha, of.quotes, "0-9" if language == "en" else ""
        self._infix = re.compile(
            rf"\.\.+|[…{of.icons}]|(?<=[0-9])[+\-*^](?=[0-9-])|(?<=[{of.lower}{quotes}])\.(?=[{of.upper}{quotes}])"
            rf"|(?<=[{a}]),(?=[{a}])|(?<=[{a}{before}])(?:-{{1,3}}|–|——?|~)(?=[{a}])|(?<=[{a}0-9])[:<>=/](?=[{a}])"
        )
        self._prefixes, self._suffixes = of.prefixes, of.suffixes
        self._before_stop = re.compile(rf"[0-9{of.lower}{_listed(_PUNCTUATION)}{quotes}%²\-+|]")
        self._two_before_stop = re.compile(rf"[{of.upper}]{{2}}|°[CFK]")
        self._torn = dict[str, dict[str, list[tuple[tuple[str, ...], str]]]]()  # by their first and second word
        for known in self._exceptions:
            if self._has_affix(known):
                words = tuple(self._split(known, {}))
                if len(words) > 1:
                    self._torn.setdefault(words[0], {}).setdefault(words[1], []).append((words, known))

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        if chunk[0] == " ":  # of white space behind a word
            words: tuple[str, ...] = (chunk[1:],)
        else:
            words = tuple(self._split(chunk, self._exceptions))
        if len(self) >= KEPT:
            self.clear()
        if len(chunk) <= LONGEST_KEPT:
            self[chunk] = words
        return words

    def __call__(self, text: str) -> list[str]:
        leading = _LEADING.match(text)
        chunks = _CHUNKS.findall(text, leading.end() if leading else 0)
        words = list(chain.from_iterable(map(self.__getitem__, chunks)))
        if leading:
            words.insert(0, leading.group())
        return self._mend(text, words)

    def _split(self, chunk: str, known: dict[str, tuple[str, ...]]) -> Iterator[str]:
        """The words of a chunk: an exception, or prefixes, what is between, suffixes."""
        begin, end = 0, len(chunk)
        behind = list[str]()
        longest = self._longest if known else -1

        while begin < end:
            if end - begin <= longest and chunk[begin:end] in known:
                break
            first = self._prefix(chunk, begin, end)
            if first and end - begin - first <= longest and chunk[begin + first : end] in known:
                yield chunk[begin : begin + first]
                begin += first
                break
            last = self._suffix(chunk, begin + first, end)
            if last and end - begin - last <= longest and chunk[begin : end - last] in known:
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
            if inside in known:
                yield from known[inside]
            elif _is_url(inside):
                yield inside
            else:
                yield from self._between_infixes(inside)
        yield from reversed(behind)

    def _prefix(self, chunk: str, begin: int, end: int) -> int:
        """The length of what is split off at the beginning."""
        first = chunk[begin]
        if first in self._prefixes:
            return 1
        if first == ".":
            at = begin + 1
            while at < end and chunk[at] == ".":
                at += 1
            return at - begin if at - begin > 1 else 0
        if first == "+":
            return begin + 1 == end or chunk[begin + 1] not in _DIGITS
        if first in "UCA":
            for each in _DOLLARS:
                if chunk.startswith(each, begin, end):
                    return len(each)
        return 0

    def _suffix(self, chunk: str, begin: int, end: int) -> int:
        """The length of what is split off at the end, the longest."""
        if begin >= end:
            return 0
        last, before = chunk[end - 1], chunk[end - 2] if end - begin > 1 else ""
        if last in self._suffixes:
            return 2 if last == before == "…" else 1
        if last == ".":
            at = end - 1
            while at > begin and chunk[at - 1] == ".":
                at -= 1
            if end - at > 1:
                return end - at
            if not before:
                return 0
            stop = end - 1
            return bool(
                self._before_stop.match(chunk, stop - 1)
                or (stop - begin > 1 and self._two_before_stop.match(chunk, stop - 2))
            )
        if last in "sS" and before and before in "'’":
            return 2
        if last == "+":
            return before != "" and before in _DIGITS
        if last in _UNIT_ENDS:
            for size in _UNIT_SIZES:
                if end - begin > size and chunk[end - size - 1] in _DIGITS and chunk[end - size : end] in _UNITS:
                    return size
        return 0

    def _between_infixes(self, chunk: str) -> Iterator[str]:
        at = 0
        for infix in self._infix.finditer(chunk):
            begin, end = infix.span()
            if begin:
                if at < begin:
                    yield chunk[at:begin]
                yield chunk[begin:end]
                at = end
        if at < len(chunk):
            yield chunk[at:]

    def _has_affix(self, known: str) -> bool:
        size = len(known)
        return bool(self._prefix(known, 0, size) or self._suffix(known, 0, size) or self._infix.search(known))

    def _mend(self, text: str, words: list[str]) -> list[str]:
        """Puts exceptions together again.

        They are looked for in the words alone, so that also those are found which have blanks inside; these stay apart,
        yet no other one overlaps them.
        """
        found = list[tuple[int, int, str]]()
        torn = self._torn
        for i in [i for i, word in enumerate(words[:-1]) if word in torn and words[i + 1] in torn[word]]:
            for parts, known in torn[words[i]][words[i + 1]]:
                if tuple(words[i : i + len(parts)]) == parts:
                    found.append((len(parts), -i, known))
        taken = set[int]()
        chosen = dict[int, tuple[int, str]]()
        for size, minus, known in sorted(found, reverse=True):  # the longest, of these the first
            if -minus not in taken and size - minus - 1 not in taken:
                chosen[-minus] = size, known
            taken.update(range(-minus, size - minus))
        if not chosen:
            return words
        mended = list[str]()
        at = 0
        for i, begin in enumerate(_offsets(text, words)):
            if i in chosen and text.startswith(chosen[i][1], begin):
                size, known = chosen[i]
                mended += words[at:i]
                mended += self._exceptions[known]
                at = i + size
        return mended + words[at:]


def _offsets(text: str, words: Iterable[str]) -> Iterator[int]:
    """Where each of all words of a text is in it."""
    at = 0
    for word in words:
        if not text.startswith(word, at):
            at += 1  # a blank
        yield at
        at += len(word)


# --- kinds ------------------------------------------------------------------------------------------------------------


class _Patterns(NamedTuple):
    """Of URLs and addresses."""

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
        top=re.compile(rf"[{_characters().lower}]{{2,63}}"),
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
    """What a word is, by spaCy's attributes of ``xx``; the first of these that holds.

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
    return top.endswith("/") or top in _TOP_LEVELS or _is_url(word)


def _is_url(chunk: str) -> bool:
    """Whether all of it looks like a URL: perhaps a scheme, a user, then a host, perhaps a port, a path."""
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
    """Whether a place is a host, up to the end or with a path; what is not the last one needs a path."""
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
