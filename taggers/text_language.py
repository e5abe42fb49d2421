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
    """The best label (null for a text without words), and the `k` best if more than one is asked for.

    Attributes:
        label: The most probable language; null for a text without any.
        prob: The probability of that language; 0 if there is none.
        top: The most probable languages, best first; empty if only one is asked for.
    """

    label: str | None
    prob: float
    top: list[Prediction]


class TextLanguage(Tagger):
    r"""The most probable language of the whole text, its ``\n`` read as spaces.

    ``prob`` is float32, may exceed 1 by 1e-4, and is 0 if the label is null. ``top`` has the `k` best labels, best
    first. It is empty for k = 1, because ``label`` and ``prob`` are enough there.
    """

    VERSION = "3"

    EXAMPLES = (
        Example("", {"label": None, "prob": 0.0, "top": []}),
        Example(
            "The library opens\nat nine.",
            {"label": "en", "prob": 0.8747396, "top": []},
        ),
        Example(
            "Η βιβλιοθήκη ανοίγει στις εννέα.",
            {
                "label": "el",
                "prob": 0.98514825,
                "top": [{"label": "el", "prob": 0.98514825}, {"label": "en", "prob": 0.005759463}],
            },
            options={"k": 2},
        ),
    )

    model: Annotated[FastText, msgspec.Meta(description="a fastText model: path, URL or known name")] = "lid.176.ftz"
    k: Annotated[int, msgspec.Meta(ge=1, description="labels to give")] = 1

    labels: Annotated[
        LabelForm,
        Added,
        msgspec.Meta(
            description="labels of the model, BCP 47 tags, or labels of OSCAR; a label of no language becomes null"
        ),
    ] = "model"

    def tag_batch(self, documents: Sequence[Document]) -> list[Guess]:
        texts = [document.text.replace("\n", " ") for document in documents]
        return [self._guess(best) for best in load_fasttext(self.model).predict(texts, k=self.k)]

    def _guess(self, best: list[Prediction]) -> Guess:
        named = [(in_form(prediction.label, self.labels), prediction.prob) for prediction in best]
        if not named or named[0][0] is None:
            return Guess(None, 0.0, [])
        top = [Prediction(label, prob) for label, prob in named if label is not None]
        return Guess(top[0].label, top[0].prob, top if self.k > 1 else [])
