"""Properties of each code point: one number, in a table that comes with the package.

Source: Unicode 18.0: Word_Break of UAX #29, general categories as ``str.isalpha`` and its like take them (letters that
are numerals: as in Unicode 15.0), simple case folding. The table is a file, not made from Python's own tables when it
is needed, so that values are the same with every version of Python.

    python -m toolkit.text.unicode_table        makes the file anew, with the Unicode version of the package ``regex``
"""

import functools
import io
import os
import sys
import zipfile
from typing import Any, NamedTuple

from toolkit.lazy_numpy import np
from toolkit.text.kernels.signatures import Array, Int64s, inlined

FILE = os.path.join(os.path.dirname(__file__), "tables", "unicode_table.npz")
UNICODE = "18.0.0"
"""The version that the file is of."""

BREAKS = 31
"""The bits of a number that are the Word_Break class, an index of `CLASSES`."""
CLASSES = (
    "Other", "CR", "LF", "Newline", "WSegSpace", "Extend", "Format", "ZWJ", "ALetter", "Hebrew_Letter", "Numeric",
    "Katakana", "ExtendNumLet", "MidLetter", "MidNum", "MidNumLet", "Single_Quote", "Double_Quote",
    "Regional_Indicator",
)  # fmt: skip
OTHER, CR, LF, NEWLINE, WSEG, EXTEND, FORMAT, ZWJ, ALETTER, HEBREW, NUMERIC, KATAKANA, EXTEND_NUM_LET = range(13)
MID_LETTER, MID_NUM, MID_NUM_LET, SINGLE_QUOTE, DOUBLE_QUOTE, REGIONAL = range(13, 19)

SPACE, ALPHA, NUMBER, UPPER, LOWER, TITLE, PUNCTUATION, PICTURE, UNDERSCORE = (1 << bit for bit in range(5, 14))
"""Bits of a number: ``str.isspace``; ``isalpha``; ``isdecimal``, ``isdigit`` or ``isnumeric``; ``isupper``;
``islower``; title case (Lt); punctuation (P*) or symbol (S*); Extended_Pictographic; the underscore."""

ALNUM, LATIN, CAPITAL, CASED = (1 << bit for bit in range(14, 18))
"""Bits that save those who ask of each letter some work: `ALPHA` or `NUMBER`; an ASCII letter; `UPPER` or `TITLE`;
these or `LOWER`."""

FOLD = 32
"""The bits from here on are a signed number: what is added to a code point to fold its case."""

NUMERALS_SINCE = "两京俩倆拐洞皕秭鈎钩𒀸𒀹𒁹𒈦𒈫𒌋𒌍𒎙"
"""Letters that Unicode counts as numerals since versions 15.1 to 18.0, and `NUMBER` does not: corpora that were counted
with ``str.isnumeric`` of Python up to 3.12 (Unicode 15.0) do not either, and one is in the name of Peking."""

BLOCK = 8
"""Bits of a code point that are its place in a block of the table."""
LAST = 0x10FFFF


class Characters(NamedTuple):
    """The classes of all code points, as a table in two steps: ``classes[blocks[c >> 8] << 8 | c & 255]``.

    Attributes:
        blocks: int64, which block of `classes` 256 code points have.
        classes: int64, a number of each code point of a block: `BREAKS`, the bits, and `FOLD`.
    """

    blocks: Int64s
    classes: Int64s


@inlined
def decoded(utf8: Any, at: Any) -> Any:
    """Return the code point at an offset, and the next offset.

    The bytes are UTF-8 as int8; for compiled code.
    """
    first = int(utf8[at])
    if first >= 0:
        return first, at + 1
    if first < -32:  # 0xC0 to 0xDF
        return ((first & 31) << 6) | (int(utf8[at + 1]) & 63), at + 2
    second = (int(utf8[at + 1]) & 63) << 6
    if first < -16:
        return ((first & 15) << 12) | second | (int(utf8[at + 2]) & 63), at + 3
    third = (int(utf8[at + 2]) & 63) << 6
    return ((first & 7) << 18) | (second << 6) | third | (int(utf8[at + 3]) & 63), at + 4


@inlined
def number_of(table: Characters, point: Any) -> Any:
    """Return the entry of a code point in the table; for compiled code."""
    return table.classes[(table.blocks[point >> 8] << 8) | (point & 255)]


@functools.cache
def characters() -> Characters:
    """Return the table, read once a process; about 1 ms and 0.5 MB."""
    with np.load(FILE, allow_pickle=False) as arrays:
        return Characters(*(arrays[name].astype(np.int64) for name in Characters._fields))


def of_all(values: Array) -> Array:
    """Return values of all code points (1,114,112) for those of `Characters.classes`."""
    return values.reshape(-1, 1 << BLOCK)[characters().blocks].ravel()


def numbers_of_all() -> Array:
    """Return the numbers of all code points, int64 (1,114,112): not kept."""
    return of_all(characters().classes)


def _make() -> Characters:
    import regex
    from regex import _regex  # has simple case folding, with regex's version of Unicode and not with Python's

    every = "".join(chr(c) for c in range(LAST + 1) if not 0xD800 <= c <= 0xDFFF)
    numbers = np.zeros(LAST + 1, dtype=np.int64)

    def mark(pattern: str, bits: int) -> None:
        for match in regex.finditer(f"[{pattern}]+", every, flags=regex.V1):
            points = [ord(c) for c in match.group()]
            numbers[points] |= bits

    for number, name in enumerate(CLASSES[1:], 1):
        mark(rf"\p{{WB={name.replace('_', '')}}}", number)
    mark(r"\p{Zs}\t-\r\x1c-\x1f\x85\u2028\u2029", SPACE)
    mark(r"\p{L}", ALPHA)
    mark(r"\p{Numeric_Type=Decimal}\p{Numeric_Type=Digit}\p{Numeric_Type=Numeric}", NUMBER)
    numbers[[ord(c) for c in NUMERALS_SINCE]] &= 0xFFFF ^ NUMBER
    mark(r"\p{Uppercase}", UPPER)
    mark(r"\p{Lowercase}", LOWER)
    mark(r"\p{Lt}", TITLE)
    mark(r"\p{P}\p{S}", PUNCTUATION)
    mark(r"\p{Extended_Pictographic}", PICTURE)
    mark("_", UNDERSCORE)
    mark("a-zA-Z", LATIN)
    for bit, some in ((ALNUM, ALPHA | NUMBER), (CAPITAL, UPPER | TITLE), (CASED, UPPER | TITLE | LOWER)):
        numbers[numbers & some != 0] |= bit
    folds = np.zeros(LAST + 1, dtype=np.int64)
    for c in regex.findall(r"\p{Cased}|\p{Changes_When_Casefolded}", every):
        folds[ord(c)] = ord(_regex.fold_case(regex.IGNORECASE | regex.UNICODE, c)) - ord(c)
    folds[ord("I")] = ord("i") - ord("I")  # which `regex` leaves alone, for the sake of Turkish
    results: dict[bytes, int] = {}
    rows = (numbers | folds << FOLD).reshape(-1, 1 << BLOCK)
    blocks = np.array([results.setdefault(row.tobytes(), len(results)) for row in rows], dtype=np.uint16)
    return Characters(blocks, np.frombuffer(b"".join(results), dtype=np.int64))


def main() -> None:
    """Write the file; nothing in it depends on when."""
    with zipfile.ZipFile(FILE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in _make()._asdict().items():
            data = io.BytesIO()
            np.save(data, array)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue(), zipfile.ZIP_DEFLATED, 9)
    print(f"{FILE}: {os.path.getsize(FILE):,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
