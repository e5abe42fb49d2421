r"""The words of a text: one definition, in compiled code, computed once for all taggers.

Source: Unicode 18.0, UAX #29 (default word boundaries). A **segment** is what stands between two boundaries and is not
white space; a **word** is a segment with a letter or a number in it. So ``don't`` and ``3.14`` are one word, ``e-mail``
is two; a Chinese or Japanese ideograph, and a Thai, Lao, Khmer or Burmese letter with its marks, is a word each: for
words of these languages take the splitter ``dictionary`` or ``icu``. White space is never part of a segment; UAX #29
has it in some: the narrow no-break space between digits, and white space with the marks behind it.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec

from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import Compiled, compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt64s
from toolkit.text.line_table import LineTable, sums
from toolkit.text.unicode_table import Characters, characters


def check_splitter(splitter: str) -> None:
    """Raise MissingExtra if a splitter's package is not installed."""
    if splitter == "icu":
        from toolkit.text.languages.words import check_icu

        check_icu()


Splitter = Annotated[
    Literal["unicode", "segments", "white_space", "word_punct", "icu", "dictionary"],
    msgspec.Meta(extra={"check": check_splitter}),
]

HAS_ALPHA, HAS_ALNUM, ALL_ALNUM, ALL_PUNCTUATION, HAS_ASCII_LETTER, IS_UPPER, IS_LOWER, IS_TITLE = (
    1 << bit for bit in range(8)
)
"""Bits of `Words.kinds`, with the meaning of Python's methods: some code point ``isalpha``; some is alphabetic or a
number; all are (``isalnum``); all are punctuation or symbols; some is an ASCII letter; ``isupper``, ``islower``,
``istitle`` of the whole."""

SEED, PRIME = 0xCBF29CE484222325, 0x9E3779B97F4A7C15

_FIND = ("int8* int64 int64", Characters, "int64* int64* int64*")
_unicode_words = Compiled("toolkit.text.kernels.words:unicode_words", *_FIND)
_runs = Compiled("toolkit.text.kernels.words:runs", *_FIND)


class Words(NamedTuple):
    """The words of some texts, in order.

    Attributes:
        lines: the table whose `utf8` they are in.
        starts: int64, offset of each word in `utf8`.
        ends: int64, exclusive.
        chars: int64, code points of each word.
        kinds: int64, bits: `HAS_ALPHA` and the others.
        hashes: uint64 of each word; two words are taken for the same where these are equal.
        folded: uint64 of each word without regard to case (simple case folding).
        bounds: int64 (texts + 1), the first word of each text, and the end of all.
    """

    lines: LineTable
    starts: Int64s
    ends: Int64s
    chars: Int64s
    kinds: Int64s
    hashes: UInt64s
    folded: UInt64s
    bounds: Int64s

    @classmethod
    def of(
        cls,
        lines: LineTable,
        splitter: Splitter = "unicode",
        languages: str | Sequence[str | None] = "",
        other: "Words | None" = None,
    ) -> "Words":
        r"""Return the words of the texts of a table.

        Args:
            lines: the texts.
            splitter: ``unicode``: segments with a letter or a number; ``segments``: all of them; ``white_space``: as
                ``str.split`` splits; ``word_punct``: ``\w+|[^\w\s]+``; ``icu``: as ICU has words, with dictionaries for
                Chinese, Japanese, Thai, Lao, Khmer and Burmese (extra ``icu``); ``dictionary``: as ``unicode``, but
                texts in languages without blanks as datatrove has their words (`datatrove_words`), which have a letter
                or a number.
            languages: Label of each text, for ``dictionary``; a language, for ``icu``.
            other: Words of the same table, split otherwise: what both have is not described again.

        Raises:
            MissingExtra: If a text is in a language whose library is not installed; it names the extra.

        Memory: 56 bytes a word, and 16 a byte of text while they are looked for.
        """
        if splitter == "icu":
            from toolkit.text.languages.words import boundaries

            starts, ends = boundaries(lines, languages if isinstance(languages, str) else "")
        else:
            starts, ends = find_words(lines.utf8, int(lines.ends[-1]) if len(lines.ends) else 1, splitter)
        if splitter == "dictionary":
            starts, ends = _by_dictionary(lines, languages, starts, ends)
        chars, kinds = np.empty((2, len(starts)), dtype=np.int64)
        hashes, folded = np.empty((2, len(starts)), dtype=np.uint64)
        bounds = np.searchsorted(starts, _text_starts(lines))
        words = cls(lines, starts, ends, chars, kinds, hashes, folded, bounds)
        _describe(words, len(starts), characters(), other or words, len(other.starts) if other else 0)
        return words.with_alnum() if splitter == "dictionary" else words

    def where(self, mask: Array) -> "Words":
        """Return some of the words."""
        rows = np.flatnonzero(mask)
        columns = (column.take(rows) for column in self[1:-1])
        return Words._make([self.lines, *columns, np.searchsorted(rows, self.bounds)])

    def with_alnum(self) -> "Words":
        """Return those with a letter or a number: of segments, the words."""
        return self.where(self.kinds & HAS_ALNUM != 0)

    def sums(self, values: Array) -> Array:
        """Return the sum of word values for each text."""
        return sums(values, self.bounds)

    @property
    def counts(self) -> Array:
        """Return how many words each text has."""
        return cast("Array", self.bounds[1:] - self.bounds[:-1])

    def of_lines(self) -> Array:
        """Return the first word of each line, and the end of all; int64 (lines + 1)."""
        return np.append(np.searchsorted(self.starts, self.lines.starts), len(self.starts))

    def strings(self) -> list[str]:
        """Return each word."""
        utf8 = self.lines.utf8.tobytes()
        return [utf8[a:b].decode() for a, b in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]


_describe = Compiled("toolkit.text.kernels.words:describe", Words, "int64", Characters, Words, "int64")


def hashes_of(words: Iterable[str], *, folded: bool = False) -> Array:
    """Return sorted hashes of given words.

    They are for look-ups in `Words.hashes` or `Words.folded`; see `is_among`.
    """
    table = Words.of(LineTable.of(list(words)), "white_space")
    hashes = table.folded if folded else table.hashes
    return np.array(sorted({*hashes.tolist()}), dtype=np.uint64)  # `np.unique` imports numpy.ma: 20 ms


def is_among(hashes: Array, entries: Array) -> Array:
    """Return a mask of the hashes among the entries."""
    return cast("Array", places_among(hashes, np.array([0, len(hashes)]), [entries]) >= 0)


def places_among(hashes: Array, bounds: Array, lists: Sequence[Array | None]) -> Array:
    """Return each hash's place in the list of its text; -1 where it is not in it.

    Args:
        hashes: uint64.
        bounds: int64 (texts + 1), the first hash of each text, and the end of all.
        lists: Lists of each text known hashes, if it has any; the same list may be that of many texts.
    """
    different = {id(entries): entries for entries in lists if entries is not None}
    number = dict(zip(different, range(len(different)), strict=True))
    of_texts = np.array([number.get(id(entries), -1) for entries in lists], dtype=np.int64)
    sizes = [len(entries) for entries in different.values()]
    ends = np.cumsum([0, *sizes])
    slot_ends = np.cumsum([0, *(1 << (2 * size).bit_length() for size in sizes)])
    result = np.full(len(hashes), -1, dtype=np.int64)
    hashes_of_lists = np.concatenate([np.empty(0, dtype=np.uint64), *different.values()])
    tables = _Lists(len(sizes), hashes_of_lists, ends, np.zeros(slot_ends[-1], dtype=np.int64), slot_ends)
    _look_up(np.ascontiguousarray(hashes), bounds, len(of_texts), of_texts, tables, result)
    return result


class _Lists(NamedTuple):
    """Lists of hashes, and room for a hash table of each.

    The ends begin with 0.
    """

    number: int
    entries: UInt64s
    ends: Int64s
    slots: Int64s
    slot_ends: Int64s


@compiled("uint64* int64* int64 int64*", _Lists, "int64*")
def _look_up(hashes: Any, bounds: Any, texts: Any, of_texts: Any, lists: _Lists, places: Any) -> None:
    """Fill the slots of the lists, zeros, and `places`."""
    entries, ends, slots, slot_ends = lists.entries, lists.ends, lists.slots, lists.slot_ends
    for i in range(lists.number):
        begin, mask = slot_ends[i], slot_ends[i + 1] - slot_ends[i] - 1
        for j in range(ends[i], ends[i + 1]):
            slot = entries[j] & mask
            while slots[begin + slot]:
                slot = (slot + 1) & mask
            slots[begin + slot] = j + 1
    for text in range(texts):
        i = of_texts[text]
        if i < 0:
            continue
        begin, mask = slot_ends[i], slot_ends[i + 1] - slot_ends[i] - 1
        for j in range(bounds[text], bounds[text + 1]):
            slot = hashes[j] & mask
            while slots[begin + slot] and entries[slots[begin + slot] - 1] != hashes[j]:
                slot = (slot + 1) & mask
            if slots[begin + slot]:
                places[j] = slots[begin + slot] - 1 - ends[i]


def find_words(utf8: Array, size: int, splitter: Splitter) -> tuple[Array, Array]:
    """Return the bounds of the words in a buffer's first bytes; int64."""
    starts, ends = np.empty((2, size), dtype=np.int64)
    count = np.zeros(1, dtype=np.int64)
    find = _unicode_words if splitter in ("unicode", "segments", "dictionary") else _runs
    find(utf8, size, splitter not in ("segments", "white_space"), characters(), starts, ends, count)
    return starts[: count[0]].copy(), ends[: count[0]].copy()


_PIECES = re.compile(rb"\S+")


def _by_dictionary(
    lines: LineTable, languages: Sequence[str | None], starts: Array, ends: Array
) -> tuple[Array, Array]:
    """Return places of words; those of texts in languages without blanks are their dictionaries'."""
    from toolkit.text.languages.words import datatrove_words, has_no_blanks

    data, places = lines.utf8.tobytes(), _text_starts(lines)
    results: list[Any] = [np.empty((0, 2), dtype=np.int64)]

    def keep(begin: int, end: int) -> None:
        first, last = np.searchsorted(starts, (begin, end))
        results.append(np.stack([starts[first:last], ends[first:last]], axis=1))

    for (begin, end), language in zip(itertools.pairwise(places.tolist()), languages, strict=True):
        if not has_no_blanks(language):
            keep(begin, end)
            continue
        text = data[begin:end].replace("\u200b".encode(), b"   ")  # which ends a word in Khmer
        for piece in _PIECES.finditer(text):  # some libraries join words over white space
            at, stop = piece.span()
            if piece[0].isascii():
                keep(begin + at, begin + stop)
                continue
            for word in map(str.encode, datatrove_words(piece[0].decode(), language)):
                if (place := text.find(word, at, stop)) >= 0:  # some change a text before they split it
                    at = place + len(word)
                    results.append([[begin + place, begin + at]])
    found_at = np.concatenate(results)
    return np.ascontiguousarray(found_at[:, 0]), np.ascontiguousarray(found_at[:, 1])


def _text_starts(lines: LineTable) -> Array:
    """Return the offset of each text in the buffer, and the end."""
    return np.append(lines.starts, len(lines.utf8))[lines.bounds]


def words_of(text: str, splitter: Splitter = "unicode") -> list[str]:
    """Return the words of one text."""
    return Words.of(LineTable.of([text]), splitter).strings()


__all__: Sequence[str] = ("Splitter", "Words", "hashes_of", "is_among", "places_among", "words_of")
