"""The picture of a card: how much text there is of each language, and how long its documents are."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import xxhash

from toolkit.aggregate import drawing
from toolkit.aggregate.histogram import Histogram, merged
from toolkit.aggregate.tables import NONE, shown, size
from toolkit.inspect.describe.card.counted import Numbers, by_size, lengths_of
from toolkit.inspect.describe.facts import Facts
from toolkit.text.languages.tables import language

NAME = "card.png"
"""Of the file, beside the card."""

_VERSION = 2
"""Of how it is drawn; a picture of another version is drawn again."""

_NAMED = 5
"""Languages that the text in place of the picture names."""


@dataclass(frozen=True)
class Picture:
    """What is drawn.

    Attributes:
        rows: titles of labels and bytes of their texts, the largest first; none if there is but one label.
        lengths: of the same labels; without rows, of all documents.
        what: labels are, for people.
    """

    rows: Sequence[tuple[str, int]]
    lengths: Sequence[Histogram]
    what: str

    @property
    def digest(self) -> str:
        """Return a digest of all that is drawn, which the file has in it."""
        lengths = [sorted(each.cells.items()) for each in self.lengths]
        return xxhash.xxh3_128_hexdigest(msgspec.json.encode((_VERSION, self.rows, lengths)))

    def is_drawn_in(self, data: bytes) -> bool:
        """Return whether a file has this picture, by whichever version of matplotlib."""
        return self.digest.encode() in data

    def drawn(self) -> bytes:
        """Return the picture as PNG.

        Raises:
            MissingExtra: without matplotlib.
        """
        if self.rows:
            return drawing.sizes_and_lengths(self.rows, self.lengths, "png", note=self.digest)
        return drawing.lengths_of_all(self.lengths[0], "png", note=self.digest)

    def alternative(self) -> str:
        """Return what stands in place of the picture where it is not seen."""
        if not self.rows:
            return "How long documents are; the table of lengths has the numbers."
        largest = ", ".join(f"{title} {size(number)}" for title, number in self.rows[:_NAMED])
        more = len(self.rows) - _NAMED
        told = largest + (f", {more:,} more" if more > 0 else "")
        return f"Size of the text and length of documents by {self.what}: {told}. The tables below have the numbers."

    def markdown(self) -> str:
        """Return the picture as it stands in the card."""
        return f"![{_plain(self.alternative())}]({NAME})"


def picture_of(found: Numbers, facts: Facts) -> Picture | None:
    """Return the picture of what was counted; None if there is nothing to draw."""
    sizes = by_size(found)
    if not found.lengths:
        return None
    if len(sizes) < 2:
        return Picture([], [merged(found.lengths.values())], facts.label_name)
    is_language = facts.label_name == "language"
    rows = [
        (NONE if label is None else language(label).title if is_language else shown(label), number)
        for label, number in sizes
    ]
    return Picture(rows, lengths_of(found, [label for label, _ in sizes]), facts.label_name)


def _plain(text: str) -> str:
    """Return a text without the signs that would end it in Markdown."""
    return "".join(each if each.isalnum() or each in " .,:()’-" else " " for each in text)
