"""Lengths as Dolma's taggers write them: spans whose score is the length of what they cover.

Source: Dolma 1.2, ``taggers/length.py``: ``char_length_v1``, ``char_length_strip_ws_v1``, ``bytes_length_v1``,
``doc_count_v1``, and ``paragraph`` of ``char_length_with_paragraphs_v1``.
"""

from typing import Annotated, Literal

import msgspec

from toolkit import Document, Example, Span, Tagger


class LengthSpans(Tagger):
    r"""One span over the text; with ``per: line`` one over each line that is not blank, its ``\n`` included.

    Offsets and lengths are code points, with ``bytes`` UTF-8 bytes; ``stripped`` leaves out white space around the
    text; ``documents`` is always 1.
    """

    EXAMPLES = (
        Example("", [[0, 0, 0.0]]),
        Example("one\n\n  two ", [[0, 11, 11.0]]),
        Example("one\n\n  two ", [[0, 4, 4.0], [5, 11, 6.0]], options={"per": "line"}),
        Example(" né ", [[0, 4, 2.0]], options={"unit": "stripped"}),
        Example("né", [[0, 2, 3.0]], options={"unit": "bytes"}),
        Example("né", [[0, 2, 1.0]], options={"unit": "documents"}),
    )

    unit: Annotated[Literal["chars", "stripped", "bytes", "documents"], msgspec.Meta(description="what is counted")] = (
        "chars"
    )
    per: Annotated[Literal["document", "line"], msgspec.Meta(description="what a span covers")] = "document"

    def tag(self, document: Document) -> list[Span]:
        text = document.text
        if self.per == "document":
            return [Span(0, len(text), self._measure(text))]
        spans, start = [], 0
        for line in _lines(text):
            if line.strip():
                spans.append(Span(start, start + len(line), self._measure(line)))
            start += len(line)
        return spans

    def _measure(self, text: str) -> float:
        match self.unit:
            case "stripped":
                return float(len(text.strip()))
            case "bytes":
                return float(len(text.encode()))
            case "documents":
                return 1.0
        return float(len(text))


def _lines(text: str) -> list[str]:
    pieces = [piece + "\n" for piece in text.split("\n")]
    return [*pieces[:-1], pieces[-1][:-1]]
