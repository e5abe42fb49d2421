r"""The figures of the ROOTS corpus: repetition of characters and words, special characters, stop and flagged words.

Source: Laurençon et al. 2022 (ROOTS), arXiv:2303.03915, and the code of its OSCAR part (bigscience-workshop/
data-preparation, ``01b_oscar_cleaning_and_filtering/filtering.py``), which data-juicer has, too. Its limits, unless a
language has its own: at most 0.2 ``char_repetition``, 0.3 ``word_repetition``, 0.4 ``special_chars``, 0.1
``flagged_words``; at least 0.1 ``stop_words``; 10 to 100,000 words.
"""

import functools
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

import msgspec

from taggers._options import Label, check_language, words_in
from toolkit import Batch, Document, Example, Files, Tagger, cached, text as measures
from toolkit.text import ALPHA, NUMBER, PICTURE, PUNCTUATION, SPACE, np, number_of, stop_words

FACTOR, MASK = 0x1E3779B97F4A7C15, 0x7FFFFFFFFFFFFFFF
OTHER_SPACE, JOINER = re.compile(r"[^\S \t\n]"), "\u2060"
"""White space that separates no words, and what stands for it: no white space, and nothing else either."""
ZERO_WIDTH_SPACE = 0x200B
"""The only special character of ROOTS' list that Unicode's categories do not tell and that texts often have."""


class Ratios(msgspec.Struct, frozen=True):
    """The value of `Roots`.

    Attributes:
        words: Words of the text.
        char_repetition: Share of the sequences of characters that are occurrences of the most frequent ones.
        word_repetition: Share of the sequences of words that occur at least twice.
        special_chars: Share of the code points that are white space, numbers, punctuation, symbols or pictures.
        stop_words: Share of the words that are stop words; null without a list for the language.
        flagged_words: Share of the words that are in the list of flagged words; null without a list for the language.
    """

    words: int
    char_repetition: float
    word_repetition: float
    special_chars: float
    stop_words: float | None
    flagged_words: float | None


class Roots(Tagger):
    r"""Shares of repeated text, special characters, stop words and flagged words.

    - ``words``: split at Unicode's word boundaries. With ``splitter: white_space`` they are those of ROOTS: the pieces
      between blanks, tabs and line feeds, without special characters around them, if anything is left; in languages
      without blanks they are those of a dictionary, as with ``splitter: dictionary``. (ROOTS uses SentencePiece for
      Chinese, with a model of its own, and blanks elsewhere.)
    - ``char_repetition``: the share of all sequences of `chars` code points that are occurrences of the k most frequent
      sequences. k is the square root of the number of different sequences, rounded down, but at most the number of
      sequences that occur at least twice.
    - ``word_repetition``: the share of all sequences of `sequence_words` words, regardless of case, that occur at least
      twice.
    - ``special_chars``: the share of code points that are white space, numbers, punctuation, symbols and pictures of
      any script, and U+200B. (ROOTS has a list of 1,600, with some letters of Japanese and Hindi; the shares differ
      little.)
    - ``stop_words``, ``flagged_words``: the share of words that are in the list, regardless of case; null if there is
      no list for the language of the document. Entries of several words are never found.

    A share of nothing is 0.

    Attributes:
        chars: the length of a sequence of characters
        sequence_words: the length of a sequence of words
        splitter: the definition of a word: Unicode's, ROOTS's (white space), or Unicode's with dictionaries for
            languages without blanks
        language: the language of the document, for words, stop words and flagged words
        flagged_words: words, one on each line: a file, or a folder of files `en`, `en.txt` …
    """

    EXAMPLES = (
        Example("", Ratios(0, 0.0, 0.0, 0.0, None, None)),
        Example(
            "It is cold. It is cold.\nIt is cold and it is wet!\n",
            Ratios(13, 0.12195121951219512, 0.4444444444444444, 0.32, 0.6923076923076923, None),
            options={"language": "en"},
        ),
        Example(
            "La élite: la élite, la élite №1 😀",
            Ratios(7, 0.3793103448275862, 0.8, 0.36363636363636365, 0.5714285714285714, None),
            options={"language": "es", "chars": 5, "sequence_words": 3},
        ),
    )

    VERSION = "4"

    chars: Annotated[int, msgspec.Meta(ge=1)] = 10
    sequence_words: Annotated[int, msgspec.Meta(ge=1)] = 5
    splitter: Literal["unicode", "white_space", "dictionary"] = "unicode"
    language: Label = None
    flagged_words: Files | None = None

    def check(self) -> None:
        if self.splitter == "dictionary":
            check_language(self.splitter, self.language, self.splitter)

    def tag_batch(self, documents: Sequence[Document]) -> list[Ratios]:
        batch = Batch.of(documents)
        languages = batch.given(self.language)
        if self.splitter == "white_space":
            words = _between_white_space(batch, self.language)
        else:
            words = words_in(batch, self.splitter, self.language)
        repeated = measures.Sequences.of(words, folded=True).repeated(self.sequence_words)
        sizes = np.array([len(document.text) for document in batch], dtype=np.int64)
        frequent, special = _look([document.text for document in batch], sizes, self.chars)
        columns = (
            words.counts,
            frequent / np.maximum(sizes - self.chars + 1, 1),
            repeated.several / np.maximum(repeated.total, 1),
            special / np.maximum(sizes, 1),
        )
        lists = (
            _shares(words, [_stop_list(language) for language in languages]),
            _shares(words, [self._flagged_list(language) for language in languages]),
        )
        return list(map(Ratios, *(column.tolist() for column in columns), *lists))

    def _flagged_list(self, language: str | None) -> measures.Array | None:
        path = measures.for_language(self.flagged_words, language, ("", ".txt")) if self.flagged_words else None
        return _list(path) if path else None


def _between_white_space(batch: Batch, language: str | None) -> measures.Words:
    """Return the words between white space, without special characters around them; a line for each text."""
    texts = [_around().sub("", OTHER_SPACE.sub(JOINER, document.text).replace("\n", " ")) for document in batch]
    if any(apart := list(map(measures.has_no_blanks, batch.given(language)))):
        words = batch.words("dictionary", language)
        every = words.strings()
        for i, is_one in enumerate(apart):
            if is_one:
                texts[i] = " ".join(every[words.bounds[i] : words.bounds[i + 1]])
    return measures.Words.of(measures.LineTable.of(texts), "white_space")


@functools.cache
def _around() -> re.Pattern[str]:
    """Return a pattern of special characters around words, in linear time."""
    numbers = measures.numbers_of_all()
    special = (numbers & (NUMBER | PUNCTUATION | PICTURE) != 0) & (numbers & (ALPHA | SPACE) == 0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], special, [False]]).astype(np.int8))).tolist()
    ranges = (
        JOINER
        + chr(ZERO_WIDTH_SPACE)
        + "".join(f"\\U{begin:08x}-\\U{end - 1:08x}" for begin, end in zip(edges[::2], edges[1::2], strict=True))
    )
    return re.compile(rf"(?<!\S)[{ranges}]++|(?<![{ranges}])[{ranges}]++(?!\S)")


@functools.lru_cache(maxsize=200)
def _stop_list(language: str | None) -> measures.Array | None:
    """Hashes of the stop words of a language, if there are any."""
    results = [word for word in stop_words(language) if len(word.split()) == 1] if language else []
    return measures.hashes_of(results, folded=True) if results else None


@cached(64)
def _list(path: str) -> measures.Array:
    """Return the hashes of the entries of one word."""
    return measures.hashes_of((entry for entry in measures.entries(path) if len(entry.split()) == 1), folded=True)


def _shares(words: measures.Words, lists: Sequence[measures.Array | None]) -> list[float | None]:
    """Return the share of each text's words in its list."""
    among = words.sums(measures.places_among(words.folded, words.bounds, lists) >= 0)
    shares = (among / np.maximum(words.counts, 1)).tolist()
    return [None if hashes is None else share for hashes, share in zip(lists, shares, strict=True)]


def _look(texts: Sequence[str], sizes: measures.Array, n: int) -> tuple[measures.Array, measures.Array]:
    """Count most frequent sequences of n characters, and special characters, of texts."""
    points = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
    starts, bounds = np.zeros((2, len(sizes) + 1), dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    np.cumsum(np.maximum(sizes - n + 1, 0), out=bounds[1:])
    special, frequent = np.zeros((2, len(sizes)), dtype=np.int64)
    hashes = np.zeros(bounds[-1], dtype=np.int64)
    _hash(points, starts, len(sizes), n, measures.characters(), special, hashes, bounds)
    for begin, end in pairwise(bounds.tolist()):
        hashes[begin:end].sort()
    room = np.zeros(int(np.max(sizes, initial=0)) + 1, dtype=np.int64)
    _count(hashes, bounds, len(sizes), room, frequent)
    return frequent, special


@measures.compiled("uint32* int64* int64 int64", measures.Characters, "int64* int64* int64*")
def _hash(
    points: Any, starts: Any, texts: Any, n: Any, table: measures.Characters, special: Any, hashes: Any, bounds: Any
) -> None:
    """Count special characters of texts, and hash their sequences of code points.

    `hashes` gets those of n code points.
    """
    first = 1  # what the oldest of n + 1 code points is multiplied by
    for _ in range(n):
        first = (first * FACTOR) & MASK
    for text in range(texts):
        start, count, hash_ = starts[text], 0, 0
        for i in range(start, starts[text + 1]):
            point = int(points[i])
            number = number_of(table, point)
            is_special = number & (SPACE | NUMBER | PUNCTUATION | PICTURE) and not number & ALPHA  # or an ideograph
            if is_special or point == ZERO_WIDTH_SPACE:
                count += 1
            hash_ = (hash_ * FACTOR + point + 1) & MASK
            if i >= start + n:
                hash_ = (hash_ - (int(points[i - n]) + 1) * first) & MASK
            if i >= start + n - 1:
                hashes[bounds[text] + i - start - n + 1] = hash_
        special[text] = count


@measures.compiled("int64* int64* int64 int64* int64*")
def _count(hashes: Any, bounds: Any, texts: Any, room: Any, frequent: Any) -> None:
    """Fill `frequent` from sorted hashes; `room` is zeros, one more than the longest text has hashes."""
    for text in range(texts):
        at, end = bounds[text], bounds[text + 1]
        different = several = most = 0
        while at < end:
            same = at + 1
            while same < end and hashes[same] == hashes[at]:
                same += 1
            times = same - at
            room[times] += 1  # how many sequences occur that often
            different += 1
            several += 1 if times > 1 else 0
            most = max(most, times)
            at = same
        k = 0
        while (k + 1) * (k + 1) <= different and k < several:
            k += 1
        for times in range(most, 0, -1):
            used = min(k, room[times])
            frequent[text] += used * times
            k -= used
            room[times] = 0
