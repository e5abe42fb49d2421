"""How much of a document repeated n-grams of words cover.

Source: Rae et al. 2021 (Gopher), arXiv:2112.11446, table A1, measures characters, see `gopher_repetition`; here it is
words. Implementations differ in whether the first occurrence counts, so both are given.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from taggers._options import OwnSplitter, WordLanguage, check_language, words_in
from toolkit import Batch, Document, Example, Tagger
from toolkit.text import Sequences, np


class Repetition(msgspec.Struct, frozen=True):
    """The value of `RepeatedNgrams`; keys of the maps are the `n`, as text.

    Attributes:
        words: Words of the text.
        covered: Share of the words that are in n-grams which occur at least twice, for each n.
        again: Share of the words that are in the second and later occurrences of n-grams, for each n.
    """

    words: int
    covered: dict[str, float]
    again: dict[str, float]


class RepeatedNgrams(Tagger):
    """The share of words in repeated n-grams, for each n; these occur at least twice in the document.

    ``covered`` counts the words of all occurrences, ``again`` those of the second and later occurrences. Occurrences
    may overlap; a word counts once. ``words`` is the number of words; in a text without words all shares are 0. n-grams
    may cross line ends. Rules use ``get(repeated_ngrams.again, "5", 0)``.

    Attributes:
        n: the number of words of an n-gram, 1 to 100; one or more such numbers
        case: true distinguishes words in upper and lower case
    """

    EXAMPLES = (
        Example("", Repetition(0, {"3": 0.0}, {"3": 0.0}), options={"n": [3]}),
        Example(
            "No, it is not. Yes it is not, it\nis.",
            Repetition(10, {"1": 0.8, "2": 0.8, "5": 0.0}, {"1": 0.5, "2": 0.5, "5": 0.0}),
            options={"n": [1, 2, 5]},
        ),
        Example("été ÉTÉ été", Repetition(3, {"2": 1.0}, {"2": 0.6666666666666666}), options={"n": [2]}),
        Example("été ÉTÉ été", Repetition(3, {"2": 0.0}, {"2": 0.0}), options={"n": [2], "case": True}),
    )

    n: Annotated[tuple[Annotated[int, msgspec.Meta(ge=1, le=100)], ...], msgspec.Meta(min_length=1)] = (3, 5, 10)
    case: bool = False
    splitter: OwnSplitter = "unicode"
    language: WordLanguage = None

    def check(self) -> None:
        check_language(self.splitter, self.language, self.splitter)

    def tag_batch(self, documents: Sequence[Document]) -> list[Repetition]:
        words = words_in(Batch.of(documents), self.splitter, self.language)
        sequences = Sequences.of(words, folded=not self.case)._replace(sizes=np.ones_like(words.chars))
        counts = words.counts
        results = [sequences.repeated(n) for n in self.n]
        names = list(map(str, self.n))
        shares = [
            zip(*((column / np.maximum(counts, 1)).tolist() for column in columns), strict=True)
            for columns in ([item.covered for item in results], [item.again for item in results])
        ]
        return [
            Repetition(count, *(dict(zip(names, item, strict=True)) for item in row))
            for count, *row in zip(counts.tolist(), *shares, strict=True)
        ]
