"""The contract suite of taggers finds the usual mistakes, and says what to do."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any

import msgspec
import pytest

from toolkit import Document, Example, Span, Tagger
from toolkit.tag.tagger import value_annotation
from toolkit.testing import check_tagger


class Sound(Tagger):
    """How many words the text has."""

    EXAMPLES = (Example("", 0), Example("two words", 2))

    def tag(self, document: Document) -> int:
        return len(document.text.split())


class SoundBatch(Tagger):
    """How many words each text has."""

    EXAMPLES = (Example("", 0), Example("two words", 2))

    def tag_batch(self, documents: Sequence[Document]) -> list[int]:
        return [len(document.text.split()) for document in documents]


class WrongType(Tagger):
    """How many words the text has."""

    def tag(self, document: Document) -> int:
        return "many" if len(document.text) > 1000 else 1  # type: ignore[return-value]  # the mistake


class NotATruth(Tagger):
    """How many words the text has."""

    EXAMPLES = (Example("two words", 3),)

    def tag(self, document: Document) -> int:
        return len(document.text.split())


SEEN: list[str] = []


class Remembers(Tagger):
    """Whether the document before was longer."""

    def tag(self, document: Document) -> bool:
        SEEN.append(document.text)
        return len(SEEN) > 1 and len(SEEN[-2]) > len(document.text)


class OtherBatch(Tagger):
    """How many characters the text has."""

    def tag(self, document: Document) -> int:
        return len(document.text)

    def tag_batch(self, documents: Sequence[Document]) -> list[int]:
        return [len(document.text.strip()) for document in documents]


class ShortBatch(Tagger):
    """How many characters the text has."""

    def tag(self, document: Document) -> int:
        return len(document.text)

    def tag_batch(self, documents: Sequence[Document]) -> list[int]:
        return [*{document.text: len(document.text) for document in documents}.values()]


class Normalises(Tagger):
    """How many lines the text has."""

    def tag(self, document: Document) -> int:
        document.text = document.text.replace("\r", "")
        return len(document.text)


class SortsLines(Tagger):
    """The line that comes first in the alphabet."""

    def tag(self, document: Document) -> str | None:
        document.lines.sort()
        return next(iter(document.lines), None)


class Model:
    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a model")


class HoldsModel(Tagger):
    """How many words the text has."""

    @cached_property
    def _model(self) -> Model:
        return Model()

    def __reduce__(self) -> Any:
        return HoldsModel, (), {"model": self._model}

    def tag(self, document: Document) -> int:
        return 1


class Hashes(Tagger):
    """A bucket of the text."""

    def tag(self, document: Document) -> int:
        return hash(document.text) % 1000


class BeyondTheText(Tagger):
    """Where the first line is."""

    def tag(self, document: Document) -> list[Span]:
        return [Span(0, len(document.text.encode()))]


class LineFeeds(msgspec.Struct):
    """Lines.

    Attributes:
        lengths: The length of each line.
    """

    lengths: list[int]


class OtherLines(Tagger):
    """The lines of the text."""

    PER_LINE = ("lengths",)

    def tag(self, document: Document) -> LineFeeds:
        return LineFeeds([len(line) for line in document.text.splitlines()])


class Breaks(Tagger):
    """The first word."""

    def tag(self, document: Document) -> str:
        return document.text.split()[0]


class SaysNothing(Tagger):
    def tag(self, document: Document) -> int:
        return 1


class Undescribed(Tagger):
    """How many words the text has."""

    min_chars: int = 1

    def tag(self, document: Document) -> int:
        return 1


class NeedsOption(Tagger):
    """How many words the text has."""

    least: Annotated[int, msgspec.Meta(description="a shorter word does not count")]

    def tag(self, document: Document) -> int:
        return sum(len(word) >= self.least for word in document.text.split())


@pytest.mark.parametrize(
    ("tagger", "message"),
    [
        (WrongType, 'expected a value of the type that `tag` declares, int, got "many"'),
        (NotATruth, "expected the value 3 as the example of 'two words' says, got 2; correct the example or"),
        (Remembers, "expected the same values again, in any order; keep nothing of other documents"),
        (OtherBatch, "expected the same values of tag_batch as of tag, in order; for the text"),
        (ShortBatch, "values of tag_batch, got"),
        (Normalises, "expected a document that stays as it is, got another text"),
        (SortsLines, "expected a document that stays as it is, got another text, id, source, metadata or lines"),
        (HoldsModel, "expected a plugin that can be pickled, got TypeError: cannot pickle a model"),
        (Hashes, "expected the same values in another process; sort what comes out of a set, take no hash()"),
        (BeyondTheText, "expected spans of code points of the text"),
        (OtherLines, "expected an element of lengths for each of"),
        (Breaks, "expected a value for every text, got IndexError: list index out of range for '     "),
        (SaysNothing, "expected a docstring that says what it is, got none"),
        (Undescribed, "expected a description of the option min_chars, got none; annotate it"),
        (
            NeedsOption,
            "expected a value of the option least, which has no default: give the check options={'least': …}",
        ),
    ],
)
def test_a_broken_tagger_is_found(tagger: type[Tagger], message: str) -> None:
    with pytest.raises(AssertionError, match=f"^{tagger.__name__}: .*{re.escape(message)}|^{re.escape(message)}"):
        check_tagger(tagger)


@pytest.mark.slow
def test_a_sound_tagger_is_none_of_these() -> None:
    check_tagger(Sound)
    check_tagger(Sound())
    check_tagger(NeedsOption, {"least": 2})
    check_tagger(NeedsOption(least=2), new_process=False)


def test_a_tagger_of_batches_needs_no_other_method() -> None:
    check_tagger(SoundBatch)
    assert value_annotation(SoundBatch) is int
    assert SoundBatch().tag(Document("two words")) == 2
    with pytest.raises(NotImplementedError):
        Tagger().tag(Document(""))


def test_a_class_inside_a_function_cannot_be_sent_to_workers() -> None:
    class Inner(Sound):
        """How many words the text has."""

    with pytest.raises(AssertionError, match=r"can be pickled|expected a class at the top of a module"):
        check_tagger(Inner)
