r"""Gopher's figures as Dolma's taggers write them: spans over the text whose score is the figure.

Source: Dolma 1.2.1, ``taggers/gopher.py``, ``gopher_v1`` and ``gopher_v2``. The same in one value, and as Gopher's
paper has them: `gopher_quality`, `gopher_repetition`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, cast

from toolkit import Batch, Document, Example, Span, Tagger
from toolkit.text import HAS_ALPHA, Array, Sequences, hashes_of, is_among, np

Type = Literal[
    "fraction_of_characters_in_most_common_2grams", "fraction_of_characters_in_most_common_3grams",
    "fraction_of_characters_in_most_common_4grams", "fraction_of_characters_in_duplicate_5grams",
    "fraction_of_characters_in_duplicate_6grams", "fraction_of_characters_in_duplicate_7grams",
    "fraction_of_characters_in_duplicate_8grams", "fraction_of_characters_in_duplicate_9grams",
    "fraction_of_characters_in_duplicate_10grams", "character_count", "word_count", "median_word_length",
    "symbol_to_word_ratio", "fraction_of_words_with_alpha_character", "required_word_count",
    "fraction_of_lines_starting_with_bullet_point", "fraction_of_lines_ending_with_ellipsis",
    "fraction_of_duplicate_lines", "fraction_of_characters_in_duplicate_lines",
]  # fmt: skip
MOST_COMMON, DUPLICATE = range(2, 5), range(5, 11)
REQUIRED = ("the", "be", "to", "of", "and", "that", "have", "with")


class DolmaGopher(Tagger):
    r"""A span over the text with a figure of Dolma's; it is rounded to 5 places.

    Words are the pieces between white space, compared as they are. Lines are the pieces between ``\n``, in version 2
    between runs of ``\n``.

    - ``character_count``: code points of the text; ``word_count``; ``median_word_length``; ``required_word_count``: how
      many words are one of "the be to of and that have with".
    - ``symbol_to_word_ratio``: the share of words with ``#`` or ``…``; ``fraction_of_words_with_alpha_character``: the
      share of words with a letter.
    - ``fraction_of_lines_starting_with_bullet_point`` (``*`` or ``-``), ``…_ending_with_ellipsis`` (``…``).
    - ``fraction_of_duplicate_lines``: the share of lines that are equal to another line; the first of them and blank
      lines count, too. ``fraction_of_characters_in_duplicate_lines``: their code points divided by those of all words,
      so it may exceed 1.
    - ``fraction_of_characters_in_most_common_ngrams``: occurrences of the most frequent n-gram times its code points,
      divided by those of all words; if several are equally frequent, the first one counts. It counts also if it occurs
      once.
    - ``fraction_of_characters_in_duplicate_ngrams``: code points of all occurrences of n-grams that occur at least
      twice, divided by those of all n-grams. A text of fewer than n words has no span.

    Attributes:
        type: the figure
        version: the version of Dolma's tagger
    """

    EXAMPLES = (
        Example("", [[0, 0, 0.0]]),
        Example("One two three. #\n- four", [[0, 23, 6.0]]),
        Example("One two three. #\n- four", [[0, 23, 0.16667]], options={"type": "symbol_to_word_ratio"}),
        Example("é ü é ü", [[0, 7, 1.0]], options={"type": "fraction_of_characters_in_most_common_2grams"}),
        Example("é ü é ü", [], options={"type": "fraction_of_characters_in_duplicate_5grams"}),
        Example("a\n\nb\n\nc\nc\n\n", [[0, 11, 0.75]], options={"type": "fraction_of_duplicate_lines"}),
        Example("a\n\nb\n\nc\nc\n\n", [[0, 11, 0.4]], options={"type": "fraction_of_duplicate_lines", "version": 2}),
    )

    type: Type = "word_count"
    version: Literal[1, 2] = 1

    def tag_batch(self, documents: Sequence[Document]) -> list[list[Span]]:
        batch = Batch.of(documents)
        results = batch.once(_figures, "\n" if self.version == 1 else "\n+")
        return [
            [Span(0, document.chars, item[self.type])] if self.type in item else []
            for document, item in zip(batch, results, strict=True)
        ]


def _figures(batch: Batch, apart: str) -> list[dict[str, float]]:
    words = batch.words("white_space")
    figures = {
        "word_count": words.counts,
        "fraction_of_words_with_alpha_character": _share(words.sums(words.kinds & HAS_ALPHA > 0), words.counts),
        "required_word_count": words.sums(is_among(words.hashes, hashes_of(REQUIRED))),
    }
    sequences = Sequences.of(words)
    for n in MOST_COMMON:
        top = sequences.top(n)
        figures[f"fraction_of_characters_in_most_common_{n}grams"] = _share(top.counts * top.sizes, sequences.totals)
    for n in DUPLICATE:
        figures[f"fraction_of_characters_in_duplicate_{n}grams"] = _duplicates(sequences, n)
    columns = [column.tolist() for column in (words.bounds, words.bounds[1:], sequences.totals, *figures.values())]
    results = []
    for document, begin, end, chars, *values in zip(batch, *columns, strict=False):
        figure = dict(zip(figures, values, strict=True))
        figure |= _of_text(document.text, end - begin, chars, apart)
        figure["median_word_length"] = _median(np.sort(words.chars[begin:end]))
        results.append(
            {
                name: round(float(value), 5)
                for name, value in figure.items()
                if "grams" not in name or end - begin >= int(re.sub(r"\D", "", name))
            }
        )
    return results


def _share(part: Array, whole: Array) -> Array:
    return cast("Array", part / np.maximum(whole, 1))


def _median(ordered: Array) -> float:
    size = len(ordered)
    return float(ordered[(size - 1) // 2] + ordered[size // 2]) / 2 if size else 0.0


def _duplicates(words: Sequences, n: int) -> Array:
    """Return the share of repeated n-grams in each text.

    Overlaps count as often as they are.
    """
    grams = words.joined(n)
    return _share(grams.repeated(1).covered, grams.totals)


def _of_text(text: str, words: int, chars: int, apart: str) -> dict[str, float]:
    """Return the figures outside the table of words.

    Args:
        text: Text of a document.
        words: Number of words.
        chars: Code points of its words.
        apart: pattern of what stands between lines.
    """
    lines = re.split(apart, text) if text else []
    several = [(line, count) for line, count in Counter(lines).items() if count > 1]
    symbols = sum(1 for word in text.split() if "#" in word or "…" in word) if "#" in text or "…" in text else 0
    n = max(len(lines), 1)
    return {
        "character_count": len(text),
        "symbol_to_word_ratio": symbols / max(words, 1),
        "fraction_of_lines_starting_with_bullet_point": sum(line.startswith(("*", "-")) for line in lines) / n,
        "fraction_of_lines_ending_with_ellipsis": sum(line.endswith("…") for line in lines) / n,
        "fraction_of_duplicate_lines": sum(count for _, count in several) / n,
        "fraction_of_characters_in_duplicate_lines": sum(len(line) * count for line, count in several) / max(chars, 1),
    }
