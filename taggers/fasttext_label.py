"""Predictions of a fastText model: quality, toxicity, topic, or whatever it was trained on.

Source: fastText ``predict`` on one line (Joulin et al. 2016, arXiv:1607.01759), as CCNet, DCLM, NeMo Curator,
RedPajama and datatrove use it; they differ in what becomes of line ends. For lines and sentences there are
`line_language`, with another model, and `fasttext_spans`.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import msgspec

from toolkit import Document, Example, Tagger
from toolkit.text import FastText, Window, WindowOption, load_fasttext

LineEnds = Literal["spaces", "all_spaces", "deleted"]
LID = {"model": "lid.176.ftz"}


class Labels(msgspec.Struct, frozen=True):
    """The best label, its probability, and the best labels with theirs.

    Attributes:
        label: The most probable label; null for a text without words, and where no label is probable enough.
        prob: The probability of that label; 0 if there is none.
        scores: The probability of each of the best labels, best first.
    """

    label: str | None
    prob: float
    scores: dict[str, float]


class FasttextLabel(Tagger):
    r"""The labels of a supervised fastText model for the whole text; they are without ``__label__``.

    ``label`` is null and ``prob`` 0 if a text has no words, or if no label has a probability of at least `min_prob`.
    ``scores`` has the `k` best labels with at least this probability, best first; rules use ``get(quality.scores, "hq",
    0)``. Probabilities are float32, and may exceed 1 by 1e-4.

    fastText reads one line, and cuts it into words at ASCII white space. `line_ends` says what happens to line ends.
    With ``spaces``, each ``\n`` becomes a space (Dolma, NeMo Curator). With ``all_spaces``, everything at which
    ``str.splitlines`` splits becomes a space, such as U+2028 (DCLM, RedPajama). With ``deleted``, ``\n`` is left out,
    which glues words together (CCNet, and datatrove by default). NUL characters are left out.

    Attributes:
        model: a supervised fastText model: path, URL or known name
        k: the largest number of labels in `scores`; null: all that the model gives
        min_prob: a less probable label is left out
        line_ends: the treatment of line ends
        window: the part of a text that the model sees; null: all
        lower: true puts the text in lower case
    """

    EXAMPLES = (
        Example("", Labels(None, 0.0, {}), options=LID),
        Example("The library opens\nat nine.", Labels("en", 0.8747396, {"en": 0.8747396}), options=LID | {"k": 1}),
        Example(
            "Η βιβλιοθήκη ανοίγει στις εννέα.",
            Labels("el", 0.98514825, {"el": 0.98514825, "en": 0.005759463}),
            options=LID | {"min_prob": 0.005},
        ),
        Example("The library\nopens.", Labels(None, 0.0, {}), options=LID | {"min_prob": 0.99}),
    )

    model: FastText
    k: Annotated[int, msgspec.Meta(ge=1)] | None = None
    min_prob: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    line_ends: LineEnds = "spaces"
    window: WindowOption = None
    lower: bool = False

    def tag_batch(self, documents: Sequence[Document]) -> list[Labels]:
        model, line = load_fasttext(self.model), _LINES[self.line_ends]
        if self.window is not None:
            return [self._of_pieces(self.window, document.text) for document in documents]
        texts = [line(document.text.lower() if self.lower else document.text) for document in documents]
        return [
            Labels(best[0].label, best[0].prob, {prediction.label: prediction.prob for prediction in best})
            if best
            else Labels(None, 0.0, {})
            for best in model.predict(texts, k=self.k or len(model.labels), threshold=self.min_prob)
        ]

    def _of_pieces(self, window: Window, text: str) -> Labels:
        """Return the model's labels for the pieces of a text, combined.

        Pieces without words do not count.
        """
        model, line = load_fasttext(self.model), _LINES[self.line_ends]
        pieces = [line(piece.lower() if self.lower else piece) for piece in window.of(text)]
        predicted = [predictions for predictions in model.predict(pieces, k=len(model.labels)) if predictions]
        probs = [{one.label: one.prob for one in predictions} for predictions in predicted]
        rows = [[prob.get(label, 0.0) for label in model.labels] for prob in probs]
        if not rows:
            return Labels(None, 0.0, {})
        results = dict(zip(model.labels, window.of_rows(rows), strict=True))
        best = sorted(results.items(), key=lambda item: -item[1])[: self.k]
        scores = {label: prob for label, prob in best if prob >= self.min_prob}
        label, prob = next(iter(scores.items()), (None, 0.0))
        return Labels(label, prob, scores)


_LINES: dict[str, Callable[[str], str]] = {
    "spaces": lambda text: text.replace("\n", " "),
    "all_spaces": lambda text: " ".join(text.splitlines()),
    "deleted": lambda text: text.replace("\n", ""),
}
