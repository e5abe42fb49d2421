"""Taggers of the tests, in a module that imports no other of them: what one imports is part of its digest."""

import msgspec

from toolkit import Document, Prediction, Span, Tagger


class Even(Tagger):
    """Whether the number is even; null without one."""

    def tag(self, document: Document) -> bool | None:
        number = document.metadata["n"]
        return None if number is None else number % 2 == 0


class Picky(Tagger):
    """Code points of a text that may be asked for."""

    def tag(self, document: Document) -> int:
        if "never" in document.text:
            raise ValueError("asked")
        return len(document.text)


class Guess(msgspec.Struct):
    """What a language is."""

    label: str | None
    prob: float


class Sure(msgspec.Struct):
    """What the language of a line is."""

    label: str
    prob: float


class Language(Tagger):
    """A label, or none."""

    def tag(self, document: Document) -> Guess:
        return Guess("en" if len(document.text) > 10 else None, 0.5)


class Lines(Tagger):
    """A label for each line."""

    def tag(self, document: Document) -> list[Sure | None]:
        return [Sure("en", 0.5) for _ in document.lines]


class Cuts(Tagger):
    """The spans that a document's metadata has."""

    shift: int = 0

    def tag(self, document: Document) -> list[Span]:
        return [Span(start, end + self.shift) for start, end in document.metadata["cuts"]]


class OtherText(msgspec.Struct):
    """Another text of a document.

    Attributes:
        text: The text.
        chars: Its code points.
    """

    text: str
    chars: int


class Other(Tagger):
    """Another text of a document, from its metadata."""

    def tag(self, document: Document) -> OtherText | None:
        text = document.metadata["other"]
        return None if text is None else OtherText(text, len(text))


class Label(Tagger):
    """A label that the metadata have."""

    version: str

    def tag(self, document: Document) -> str | None:
        found: str | None = document.metadata["label"][self.version]
        return found


class Number(Tagger):
    """A number that the metadata have."""

    version: str

    def tag(self, document: Document) -> float | None:
        found: float | None = document.metadata["number"][self.version]
        return found


class Spans(Tagger):
    """The whole text, or nothing."""

    version: str

    def tag(self, document: Document) -> list[Span]:
        return [Span(0, len(document.text))] if document.metadata["label"][self.version] == "toxic" else []


class Field(Tagger):
    """A number or a text that the metadata have."""

    name: str

    def tag(self, document: Document) -> float | None:
        found: float | None = document.metadata[self.name]
        return found


class KnownLanguage(Tagger):
    """A label that the metadata have."""

    def tag(self, document: Document) -> Prediction:
        return Prediction(document.metadata["language"], 1.0)
