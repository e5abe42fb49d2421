"""A tagger with an option."""

from toolkit import Document, Tagger


class Counted(Tagger):
    """How often a letter is in the text."""

    letter: str = "a"

    def tag(self, document: Document) -> int:
        return document.text.count(self.letter)
