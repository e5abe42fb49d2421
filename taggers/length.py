"""How long a text is.

Source: none; Dolma's are `length_spans`.
"""

from collections.abc import Sequence

import msgspec

from taggers._options import OwnSplitter, WordLanguage, check_language, words_in
from toolkit import Batch, Document, Example, Tagger


class Lengths(msgspec.Struct, frozen=True):
    """Code points and UTF-8 bytes of the text, line ends included; its words and lines.

    Attributes:
        chars: Code points of the text.
        bytes: Bytes of the text in UTF-8.
        words: Words of the text.
        lines: Lines of the text.
    """

    chars: int
    bytes: int
    words: int
    lines: int


class Length(Tagger):
    r"""Code points, bytes, words and lines of the text.

    A line ends at each ``\n``; text after the last ``\n`` is a line, too. Words are the pieces between Unicode's word
    boundaries that have a letter or a number, or what another `splitter` finds.
    """

    EXAMPLES = (
        Example("", Lengths(0, 0, 0, 0)),
        Example("Don't stop,\r\n\n3.5 times!\n", Lengths(25, 25, 4, 3)),
        Example("Größe: 一二…", Lengths(10, 18, 3, 1)),
        Example("Don't stop!", Lengths(11, 11, 5, 1), options={"splitter": "word_punct"}),
    )

    splitter: OwnSplitter = "unicode"
    language: WordLanguage = None

    def check(self) -> None:
        check_language(self.splitter, self.language, self.splitter)

    def tag_batch(self, documents: Sequence[Document]) -> list[Lengths]:
        batch = Batch.of(documents)
        lines = batch.lines
        counts = (
            words_in(batch, self.splitter, self.language).counts.tolist(),
            (lines.bounds[1:] - lines.bounds[:-1]).tolist(),
        )
        sizes = [(len(text), len(text if text.isascii() else text.encode())) for text in (d.text for d in batch)]
        return [Lengths(*size, *count) for size, *count in zip(sizes, *counts, strict=True)]
