r"""C4's rules as Dolma's taggers write them: a span for each line and for each page that they are about.

Source: Dolma 1.2.1, ``taggers/c4.py``, ``c4_v1`` and ``c4_v2``. The same as counts, and C4 as it was made: `c4`.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from toolkit import Batch, Document, Example, Model, Span, Tagger, cached
from toolkit.text import resolve

Type = Literal[
    "lines_with_no_ending_punctuation", "lines_with_too_few_words", "has_naughty_word", "has_javascript",
    "has_lorem_ipsum", "has_curly_brace", "line_count",
]  # fmt: skip
END_MARKS = (".", "?", "!", '"')
MIN_WORDS = 3


class DolmaC4(Tagger):
    r"""The spans of one of Dolma's types; an empty list if the page has nothing of this type.

    - ``lines_with_no_ending_punctuation``: a span over each line, its ``\n`` included, that does not end in one of
      ``. ? ! "``; blank ones, too.
    - ``lines_with_too_few_words``: a span over each line with fewer than three words, the pieces between white space.
    - ``has_naughty_word``: a span over the text, if a word between white space, or a phrase anywhere, is among
      `bad_words`; ``has_lorem_ipsum``, ``has_curly_brace`` (``{``): if there is one.
    - ``has_javascript``: if "javascript" is one of the pieces between white space; in version 2, if it is anywhere.
    - ``line_count``: a span over the text, its score the number of lines between ``\n``: 1 for an empty text.

    All types compare in lower case. In version 2, offsets count in the text in lower case, as in Dolma. This text is
    longer by one code point for each ``İ``, so an offset is too large by the number of ``İ`` before it.

    Attributes:
        type: the type of the spans
        version: the version of Dolma's tagger
        bad_words: a list with a word or phrase on each line
    """

    EXAMPLES = (
        Example("", [[0, 0, 1.0]]),
        Example("One two three.\nfour", [[15, 19, 1.0]], options={"type": "lines_with_no_ending_punctuation"}),
        Example("One two three.\nfour\n", [[15, 20, 1.0], [20, 20, 1.0]], options={"type": "lines_with_too_few_words"}),
        Example("İ\né.", [[0, 2, 1.0]], options={"type": "lines_with_no_ending_punctuation"}),
        Example("İ\né.", [[0, 3, 1.0]], options={"type": "lines_with_no_ending_punctuation", "version": 2}),
        Example("JavaScript: nö", [], options={"type": "has_javascript"}),
        Example("JavaScript: nö", [[0, 14, 1.0]], options={"type": "has_javascript", "version": 2}),
    )

    type: Type = "line_count"
    version: Literal[1, 2] = 1
    bad_words: Model | None = None

    def tag_batch(self, documents: Sequence[Document]) -> list[list[Span]]:
        batch = Batch.of(documents)
        if self.type == "has_naughty_word":
            bad = _entries(self.bad_words) if self.bad_words else _Entries(frozenset(), ())
            return [_page(document.text, _is_bad(document.text.lower(), bad)) for document in batch]
        return [item[self.type] for item in batch.once(_look_at_all, self.version)]


class _Entries(NamedTuple):
    words: frozenset[str]
    phrases: tuple[str, ...]


@cached(4)
def _entries(model: str) -> _Entries:
    with open(resolve(model), encoding="utf-8") as stream:
        listed = stream.read().splitlines()
    return _Entries(
        frozenset(entry for entry in listed if entry and " " not in entry),
        tuple(entry for entry in listed if " " in entry),
    )


def _is_bad(lower: str, bad: _Entries) -> bool:
    return not bad.words.isdisjoint(lower.split()) or any(phrase in lower for phrase in bad.phrases)


def _page(text: str, is_match: bool) -> list[Span]:
    return [Span(0, len(text))] if is_match else []


def _look_at_all(batch: Batch, version: int) -> list[dict[str, list[Span]]]:
    """Return the spans of each document by type, without bad words."""
    return [_look(document.text, version) for document in batch]


def _look(text: str, version: int) -> dict[str, list[Span]]:
    lower = text.lower()
    lines = lower.split("\n")
    sizes = lines if version == 2 else text.split("\n")
    unended, short = [], []
    start = 0
    for i, (line, sized) in enumerate(zip(lines, sizes, strict=True), 1):
        end = start + len(sized) + (i < len(lines))
        stripped = line.strip()
        if not stripped.endswith(END_MARKS):
            unended.append(Span(start, end))
        if len(stripped.split(None, MIN_WORDS)) < MIN_WORDS:
            short.append(Span(start, end))
        start = end
    script = "javascript" in lower and (version == 2 or "javascript" in lower.split())
    return {
        "lines_with_no_ending_punctuation": unended,
        "lines_with_too_few_words": short,
        "has_javascript": _page(text, script),
        "has_lorem_ipsum": _page(text, "lorem ipsum" in lower),
        "has_curly_brace": _page(text, "{" in lower),
        "line_count": [Span(0, len(text), float(len(lines)))],
    }
