"""A tagger that is being written, tried on texts."""

from typing import Annotated, Any

import msgspec
import pytest

import toolkit
from toolkit import Attribute, Document, Tagger


class Shouting(Tagger):
    """The share of letters that are capitals."""

    at_least: int = 1

    def tag(self, document: Document) -> float:
        letters = [each for each in document.text if each.isalpha()]
        return sum(map(str.isupper, letters)) / len(letters) if len(letters) >= self.at_least else 0.0


class Lines(Tagger):
    """The lines whose value is above nothing."""

    lines: Annotated[str, Attribute("n", list[float])]

    def tag(self, document: Document) -> int:
        return sum(value > 0 for value in document.attribute(self.lines))


class Wrong(Tagger):
    """A number, it says."""

    def tag(self, document: Document) -> int:
        return document.text  # type: ignore[return-value]


class Broken(Tagger):
    """Fails on some texts."""

    def tag(self, document: Document) -> int:
        return 1 // len(document.text)


def test_a_tagger_is_tried_in_one_line() -> None:
    assert toolkit.try_tagger(Shouting(), ["ABcd", "", "a"]) == [0.5, 0.0, 0.0]
    assert toolkit.try_tagger(Shouting, ["ABcd"], at_least=5) == [0.0]
    assert toolkit.try_tagger("noise", ["abc!"]) == [{"chars": 4, "noise": 1}]
    assert toolkit.try_tagger(Shouting(), []) == []


def test_it_is_given_what_it_reads() -> None:
    given: list[Any] = [Document("a\nb", attributes={"lines-0": [0, 1.5]})]
    assert toolkit.try_tagger(Lines(lines="lines-0"), given) == [1]
    with pytest.raises(toolkit.ConfigError, match=r"texts:1: the tagger Lines reads 'lines-0\.n'"):
        toolkit.try_tagger(Lines(lines="lines-0.n"), ["a\nb"])


@pytest.mark.parametrize(
    ("tagger", "texts", "options", "words"),
    [
        (Wrong(), ["a"], {}, "texts:1: tagger Wrong: expected a value of its declared type int, got 'a'"),
        (Broken(), ["a", ""], {}, "texts:2: tagger Broken failed: ZeroDivisionError"),
        (Shouting(), "one text", {}, r"expected a list of texts, got one by itself: write \[text\]"),
        (Shouting(), [1], {}, "texts:1: expected a text or a Document"),
        (Shouting, ["a"], {"at_lest": 1}, "unknown option 'at_lest' of tagger Shouting; did you mean 'at_least'"),
        (Shouting(), ["a"], {"at_least": 1}, "expected a tagger's class with options"),
        ("noice", ["a"], {}, "noise"),
        (msgspec.Struct, ["a"], {}, "expected a tagger, its class or its name"),
    ],
)
def test_mistakes_are_errors(tagger: Any, texts: Any, options: Any, words: str) -> None:
    with pytest.raises(toolkit.ToolkitError, match=words):
        toolkit.try_tagger(tagger, texts, **options)
