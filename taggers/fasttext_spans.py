r"""Predictions of a fastText model for sentences or lines.

Source: Dolma 1.2, ``taggers/jigsaw.py`` (``jigsaw_hatespeech_sentence_v2``, ``jigsaw_nsfw_sencence_v2``): spans of
sentences by label, whose score is the probability. What a sentence is, is our own.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec

from toolkit import Document, Example, Span, Tagger
from toolkit.text import FastText, load_fasttext

ENDS = re.compile(r"(?<![.!?…])[.!?…]++[\"')\]’”»]*+(?=\s)|[。！？｡]++[」』）’”]*+|\n")
"""Where a sentence ends. Each position is looked at once: runs are not given back, and are not begun inside."""

LID = {"model": "lid.176.ftz"}


class FasttextSpans(Tagger):
    r"""Spans of sentences or lines by fastText label, with probabilities as scores.

    Labels are without ``__label__``. The value does not have labels that no sentence has, so rules use ``get(toxicity,
    "toxic", [])``.

    A sentence ends at a line end, and after one or more of ``. ! ? …`` (with closing quotes and brackets) if white
    space follows. After the full-width marks of Chinese and Japanese anything may follow. So an abbreviation ends a
    sentence, too. With `unit` ``line``, each line is a span. Spans have no white space at their ends, and white space
    alone has no span.

    `k` and `min_prob` choose which labels a sentence has; by default the best one. A sentence without words has no
    label. Probabilities are float32, and may exceed 1 by 1e-4.

    Attributes:
        model: a supervised fastText model: path, URL or known name
        unit: the unit of a span: each sentence or each line
        labels: labels to give; none: all of them
        k: the number of labels of a sentence, best first
        min_prob: labels with a lower probability are left out
        lower: true puts the text in lower case
    """

    EXAMPLES = (
        Example("", {}, options=LID),
        Example(
            'The library opens at nine. "Really?"\nDas ist alles!',
            {"en": [[0, 26, 0.8747396], [27, 36, 0.5767989]], "de": [[37, 51, 1.00004]]},
            options=LID,
        ),
        Example("图书馆九点开门。真的吗？", {"zh": [[0, 8, 0.91986835], [8, 12, 0.86250967]]}, options=LID),
        Example("图书馆九点开门。真的吗？ ", {"zh": [[0, 12, 0.9819038]]}, options=LID | {"unit": "line"}),
        Example(
            "Das ist alles! Really?", {"en": [[15, 22, 0.81164575]]}, options=LID | {"labels": ["en"], "min_prob": 0.2}
        ),
    )

    model: FastText
    unit: Literal["sentence", "line"] = "sentence"
    labels: tuple[str, ...] = ()
    k: Annotated[int, msgspec.Meta(ge=1)] = 1
    min_prob: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    lower: bool = False

    def tag_batch(self, documents: Sequence[Document]) -> list[dict[str, list[Span]]]:
        cut = _sentences if self.unit == "sentence" else _lines
        places = [(i, *span) for i, document in enumerate(documents) for span in cut(document.text)]
        texts = [documents[i].text[start:end] for i, start, end in places]
        if self.lower:
            texts = list(map(str.lower, texts))
        values: list[dict[str, list[Span]]] = [{} for _ in documents]
        selected = set(self.labels)
        predictions = load_fasttext(self.model).predict(texts, k=self.k, threshold=self.min_prob)
        for (i, start, end), best in zip(places, predictions, strict=True):
            for label, prob in ((prediction.label, prediction.prob) for prediction in best):
                if not selected or label in selected:
                    values[i].setdefault(label, []).append(Span(start, end, prob))
        return values


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in ENDS.finditer(text):
        yield from _stripped(text, start, end.end())
        start = end.end()
    yield from _stripped(text, start, len(text))


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.split("\n"):
        yield from _stripped(text, start, start + len(line))
        start += len(line) + 1


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    if inner := piece.strip():
        start += len(piece) - len(piece.lstrip())
        yield start, start + len(inner)
