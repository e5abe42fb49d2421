"""The language of a text as a whole.

Source: fastText ``predict`` on one line, as datatrove's LanguageFilter, FineWeb and Dolma's document taggers use it;
Joulin et al. 2016, arXiv:1607.01759.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from toolkit import Added, Document, Example, Prediction, Tagger
from toolkit.text import FastText, LabelForm, in_form, load_fasttext


class Guess(msgspec.Struct, frozen=True):
    """The best label, and the `k` best for k > 1. It is null for a text without words.

    Attributes:
        label: The most probable language; null for a text without any.
        prob: The probability of that language; 0 if there is none.
        top: The most probable languages, best first; empty if only one is asked for.
    """

    label: str | None
    prob: float
    top: list[Prediction]


class TextLanguage(Tagger):
    r"""The most probable language of the whole text; each ``\n`` is read as a space.

    ``prob`` is float32, may exceed 1 by 1e-4, and is 0 if the label is null. ``top`` has the `k` best labels, best
    first. It is empty for k = 1, because ``label`` and ``prob`` are enough there.

    Attributes:
        model: a fastText model: path, URL or known name
        k: labels to give
        labels: labels of the model, BCP 47 tags, or labels of OSCAR; a label of no language becomes null
    """

    VERSION = "3"

    EXAMPLES = (
        Example("", Guess(None, 0.0, [])),
        Example("The library opens\nat nine.", Guess("en", 0.8747396, [])),
        Example(
            "Η βιβλιοθήκη ανοίγει στις εννέα.",
            Guess("el", 0.98514825, [Prediction("el", 0.98514825), Prediction("en", 0.005759463)]),
            options={"k": 2},
        ),
    )

    model: FastText = "lid.176.ftz"
    k: Annotated[int, msgspec.Meta(ge=1)] = 1

    labels: Annotated[LabelForm, Added] = "model"

    def tag_batch(self, documents: Sequence[Document]) -> list[Guess]:
        texts = [document.text.replace("\n", " ") for document in documents]
        return [self._guess(best) for best in load_fasttext(self.model).predict(texts, k=self.k)]

    def _guess(self, best: list[Prediction]) -> Guess:
        named = [(in_form(prediction.label, self.labels), prediction.prob) for prediction in best]
        if not named or named[0][0] is None:
            return Guess(None, 0.0, [])
        top = [Prediction(label, prob) for label, prob in named if label is not None]
        return Guess(top[0].label, top[0].prob, top if self.k > 1 else [])
