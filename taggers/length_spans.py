r"""Lengths as Dolma's taggers write them: spans whose score is the length of what they cover.

Source: Dolma 1.2.1, ``taggers/length.py``: ``char_length…``, ``bytes_length_v1``, ``doc_count_v1``,
``whitespace_tokenizer…``, ``uniseg_length…`` and ``olmo_pretokenizer…``. Word boundaries: UAX #29 of Unicode 16, as
uniseg 0.10 has them. Pre-tokens: those of GPT-2, ``'s| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+``, after each
punctuation mark and each digit has been parted with the blank before it.
"""

import functools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, cast

from toolkit import Batch, Document, Example, Span, Tagger
from toolkit.text import BREAKS, CLASSES, PICTURE, SPACE, Array, np, numbers_of_all

Unit = Literal["chars", "stripped", "bytes", "documents", "tokens", "segments", "words", "pretokens"]


class LengthSpans(Tagger):
    r"""One span over the text; with ``per: line`` one over each line that is not blank, its ``\n`` included.

    Offsets are code points, and a score is a number of

    - ``chars``: code points; ``stripped``: those without white space around the text; ``bytes``: of UTF-8,
    - ``documents``: always 1,
    - ``tokens``: matches of ``\w+|[^\w\s]+``, plus 1; letters, marks, digits and joiners are ``\w``,
    - ``segments``: the pieces between word boundaries, also those of white space, but without white space around the
      text,
    - ``words``: segments that are not white space; punctuation marks are words,
    - ``pretokens``: of the pre-tokenizer of OLMo.

    ``per: sum`` is one span over the text whose score is the sum of those of its lines. `negative` gives scores a
    minus, for filters that can only compare by "at least".

    Attributes:
        unit: the unit to count
        per: measure the document, each line, or the sum over lines
        blank: true gives spans to blank lines, too
        negative: true gives scores with a minus
    """

    EXAMPLES = (
        Example("", [[0, 0, 0.0]]),
        Example("one\n\n  two ", [[0, 11, 11.0]]),
        Example("one\n\n  two ", [[0, 4, 4.0], [5, 11, 6.0]], options={"per": "line"}),
        Example("one\n\n  two ", [[0, 4, 4.0], [4, 5, 1.0], [5, 11, 6.0]], options={"per": "line", "blank": True}),
        Example(" né ", [[0, 4, 2.0]], options={"unit": "stripped"}),
        Example("né", [[0, 2, 3.0]], options={"unit": "bytes"}),
        Example("né", [[0, 2, 1.0]], options={"unit": "documents"}),
        Example("Don't, né!", [[0, 10, 7.0]], options={"unit": "tokens"}),
        Example(" Don't, né! ", [[0, 12, 5.0]], options={"unit": "segments"}),
        Example("Don't\nné!", [[0, 6, -1.0], [6, 9, -2.0]], options={"unit": "words", "per": "line", "negative": True}),
        Example("Don't, né!\n24", [[0, 13, 9.0]], options={"unit": "pretokens", "per": "sum"}),
    )

    unit: Unit = "chars"
    per: Literal["document", "line", "sum"] = "document"
    blank: bool = False
    negative: bool = False

    def tag_batch(self, documents: Sequence[Document]) -> list[list[Span]]:
        batch = Batch.of(documents)
        sign = -1 if self.negative else 1
        if self.per == "line":
            return [
                [Span(start, end, float(sign * n)) for start, end, n in lines if n >= 0]
                for lines in batch.once(_per_line, self.unit, self.blank)
            ]
        if self.per == "sum":
            sums = [sum(n for *_, n in lines) for lines in batch.once(_per_line, self.unit, self.blank)]
        else:
            measure = _measure(self.unit)
            sums = [measure(document.text) for document in batch]
        return [[Span(0, document.chars, float(sign * n))] for document, n in zip(batch, sums, strict=True)]


Lines = list[tuple[int, int, int]]


def _per_line(batch: Batch, unit: Unit, blank: bool) -> list[Lines]:
    """Return start, end and length of each line, for each document."""
    measure = _measure(unit)
    return [list(_lines(document.text, measure, blank=blank)) for document in batch]


def _lines(text: str, measure: Callable[[str], int], *, blank: bool) -> Iterable[tuple[int, int, int]]:
    start = 0
    for line in text.split("\n"):
        end = min(start + len(line) + 1, len(text))
        if start < end and (blank or not (line.isspace() or not line)):
            yield start, end, measure(text[start:end])
        start = end


def _measure(unit: Unit) -> Callable[[str], int]:
    match unit:
        case "stripped":
            return lambda text: len(text.strip())
        case "bytes":
            return lambda text: len(text.encode())
        case "documents":
            return lambda text: 1
        case "tokens":
            return lambda text: len(TOKEN.findall(_kinds(text, _token_table()))) + 1
        case "segments":
            return lambda text: len(SEGMENT.findall(_kinds(text.strip(), _segment_table())))
        case "words":
            return _words
        case "pretokens":
            return lambda text: len(PRETOKEN.findall(_kinds(text, _pretoken_table())))
    return len


def _words(text: str) -> int:
    segments = SEGMENT.findall(_kinds(text.strip(), _segment_table()))
    return sum(1 for segment in segments if segment.strip(WHITE_KINDS))


# --- kinds ------------------------------------------------------------------------------------------------------------
# A letter for each code point says of what kind it is, and patterns are of these: with the classes themselves, which
# are hundreds of ranges, they would be many times slower.

WHITE = (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
"""``White_Space`` of Unicode; Python's has U+001C to U+001F, too."""
CIRCLED = (*range(0x24B6, 0x24EA), *range(0x1F130, 0x1F14A), *range(0x1F150, 0x1F16A), *range(0x1F170, 0x1F18A))
"""Symbols that are alphabetic."""
JOINERS = (0x200C, 0x200D)
CEDILLA = 0xB8  # a letter for word boundaries in newer versions than 16

TOKEN = re.compile(b"w+|o+")
PRETOKEN = re.compile(rb" ?p| ?l+| ?n+| ?o+|[ s]++(?:\Z|(?<! )(?=p))|[ s]+(?=[ s])|[ s]")

KINDS = {
    "Other": "o", "CR": "r", "LF": "n", "Newline": "v", "WSegSpace": " ", "Extend": "x", "Format": "x", "ZWJ": "z",
    "ALetter": "a", "Hebrew_Letter": "h", "Numeric": "1", "Katakana": "k", "ExtendNumLet": "_", "MidLetter": ":",
    "MidNum": ",", "MidNumLet": ".", "Single_Quote": "'", "Double_Quote": '"', "Regional_Indicator": "f",
}  # fmt: skip
"""Also: ``p`` and ``b``, pictographs among ``o`` and ``a``; ``t`` and ``~``, white space among ``o`` and ``_``."""
WHITE_KINDS = b" rnvt~"


def _pattern() -> re.Pattern[bytes]:
    """Return the pattern of a segment between word boundaries.

    The rules of UAX #29 are in brackets.
    """
    x = "[xz]*+"  # [WB4]
    in_word, in_number = f"[:.']{x}(?=[abh])", f"[,.']{x}(?=1)"
    letter = f"[ab]{x}(?>(?:{in_word})?)"  # [WB5 to WB7]
    number = f"1{x}(?>(?:{in_number})?)"  # [WB8 to WB12]
    hebrew = f"h{x}(?:{in_word}|\"{x}(?=h)|(?!'))"  # [WB7b, WB7c]
    last = f"h{x}'{x}"  # [WB7a]
    run, kana, low = f"(?>(?:{letter}|{number}|{hebrew})+)", f"(?>(?:k{x})+)", f"(?>(?:[_~]{x})+)"
    before, end = f"(?>(?:(?>(?:{run}|{kana})?){low})*)", f"(?>(?:{run}(?>(?:{last})?)|{last}|{kana})?)"
    word = f"(?=[abh1k_~]){before}{end}"  # [WB13 to WB13b]
    first = f"{word}|rn|[rnv]| ++{x}|f{x}(?>(?:f{x})?)|.{x}"  # [WB3 to WB3b, WB3d, WB15, WB16, WB999]
    return re.compile(f"(?:{first})(?>(?:(?<=z)(?:p{x}|(?=b){word}))*)".encode())  # [WB3c]


SEGMENT = _pattern()


def _kinds(text: str, table: Array) -> bytes:
    if text.isascii():
        return text.encode().translate(table[:256].tobytes())
    return table[np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)].tobytes()


def _table(default: str) -> Array:
    return np.full(sys.maxunicode + 1, ord(default), dtype=np.uint8)


@functools.cache
def _categories() -> Array:
    """Of each code point, Unicode as this Python has it."""
    return np.array([unicodedata.category(chr(point)) for point in range(sys.maxunicode + 1)])


@functools.cache
def _token_table() -> Array:
    table, categories = _table("o"), _categories()
    table[np.isin(categories, ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"))] = ord("w")
    table[[*CIRCLED, *JOINERS]] = ord("w")
    table[[*WHITE]] = ord(" ")
    return table


@functools.cache
def _pretoken_table() -> Array:
    table, categories = _table("o"), _categories()
    table[np.char.startswith(categories, "L")] = ord("l")
    table[np.char.startswith(categories, "N")] = ord("n")
    table[np.char.startswith(categories, "P") | (categories == "Nd")] = ord("p")
    table[[*WHITE]] = ord("s")
    table[ord(" ")] = ord(" ")
    return table


@functools.cache
def _segment_table() -> Array:
    numbers = numbers_of_all()
    table = np.array([ord(KINDS[name]) for name in CLASSES], dtype=np.uint8)[numbers & BREAKS]
    table[CEDILLA] = ord("o")
    for bit, kind, special in ((PICTURE, b"o", b"p"), (PICTURE, b"a", b"b"), (SPACE, b"o", b"t"), (SPACE, b"_", b"~")):
        table[(numbers & bit > 0) & (table == ord(kind))] = ord(special)
    return cast("Array", table)
