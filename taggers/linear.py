"""Predictions of a linear model of your own: a score, a class, labels, or a grade.

Source: models that ``toolkit train`` makes: hashed n-grams of words and of characters, weighted by tf-idf, under ridge
or logistic regression (Wang and Manning 2012; Weinberger et al. 2009, arXiv:0902.2206).
"""

from collections.abc import Sequence

from toolkit import Batch, Document, Example, Tagger
from toolkit.text import Linear as LinearFile, Said, WindowOption, load_linear

TINY = {"model": "tests/taggers/files/linear.safetensors"}


class Linear(Tagger):
    """Predictions of a linear model: a score, and for classes, labels and grades their probabilities.

    `model` is the folder that ``toolkit train`` has made, or the file ``model.safetensors`` in it. A text without words
    gets the prediction for an empty text. Numbers are float32.

    Attributes:
        model: the folder of a linear model, or its file
        window: the part of a text that the model sees; null: the same as in its training
    """

    EXAMPLES = (
        Example("", Said(1.8969857, None, {}), options=TINY),
        Example("The library opens\nat nine.", Said(3.8382738, None, {}), options=TINY),
        Example("Η βιβλιοθήκη ανοίγει στις εννέα.", Said(2.4899416, None, {}), options=TINY),
        Example("Buy cheap watches now!", Said(1.1055679, None, {}), options=TINY),
    )

    model: LinearFile
    window: WindowOption = None

    def tag_batch(self, documents: Sequence[Document]) -> list[Said]:
        model = load_linear(self.model)
        if self.window is None and model.about.window is None:
            return model.of_words(Batch.of(documents).words("segments"))
        return model.predict([document.text for document in documents], self.window)
