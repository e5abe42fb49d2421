"""The taggers of the corpus."""

from typing import Annotated

import msgspec

from toolkit import Attribute, Document, Tagger


class Said(msgspec.Struct, frozen=True):
    label: str
    prob: float


class Tongue(Tagger):
    """The language that a document says it is in."""

    def tag(self, document: Document) -> Said:
        return Said(label=document.text[:2], prob=0.5)


class Known(Tagger):
    """Whether the language is one that is known; of another set."""

    of: Annotated[str, Attribute("tongue", Said)]

    def tag(self, document: Document) -> bool:
        return document.attribute(self.of).label in ("en", "de")
