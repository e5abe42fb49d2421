"""Sizes of what a mix reads and keeps, by label: documents, lines, code points, bytes and words."""

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from toolkit.text.counting import Counts, measure

NO_LABEL = ""
"""Stands for the label of documents that have none, or none that is known before they are encoded."""


class BeforeAfter(msgspec.Struct):
    """The sizes of a label: of what was read, and of what stays, with the texts that it has then."""

    before: Counts = msgspec.field(default_factory=Counts)
    after: Counts = msgspec.field(default_factory=Counts)


SizesByLabel = dict[str, BeforeAfter]
"""Sizes by label."""


def add(mine: SizesByLabel, theirs: Mapping[str, BeforeAfter]) -> None:
    """Add the sizes of other documents."""
    for label, other in theirs.items():
        found = mine.setdefault(label, BeforeAfter())
        found.before.add(other.before)
        found.after.add(other.after)


class Tally:
    """Some documents, whose numbers are added up together.

    Args:
        unicode: whether Unicode's words are counted.
    """

    def __init__(self, *, unicode: bool) -> None:
        self._unicode = unicode
        self._read: dict[str, list[list[int]]] = defaultdict(list)
        self._kept: dict[str, list[list[int]]] = defaultdict(list)
        self._texts: dict[str, list[str | bytes]] = defaultdict(list)

    def read(self, label: str, measured: list[int]) -> None:
        """Note a document that is read, by what `toolkit.text.counting.measure` gives of its text."""
        self._read[label].append(measured)

    def keep(self, label: str, measured: list[int]) -> None:
        """Note a document that stays as it is."""
        self._kept[label].append(measured)

    def keep_text(self, label: str, text: str | bytes) -> None:
        """Note a document that stays with another text; or a piece of one, in UTF-8."""
        self._texts[label].append(text)

    def counted(self) -> SizesByLabel:
        """Return the sizes of all that was noted."""
        found: SizesByLabel = defaultdict(BeforeAfter)
        for label, rows in self._read.items():
            found[label].before.add_rows(rows, unicode=self._unicode)
        for label, rows in self._kept.items():
            found[label].after.add_rows(rows, unicode=self._unicode)
        if self._texts:
            texts = [text for texts in self._texts.values() for text in texts]
            measured = iter(measure(texts, unicode=self._unicode).tolist())
            for label, of_label in self._texts.items():
                found[label].after.add_rows([next(measured) for _ in of_label], unicode=self._unicode)
        return dict(found)
