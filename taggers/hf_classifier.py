"""Predictions of a fine-tuned encoder: a score, a class, labels, or a grade.

Source: sequence classification of `transformers` (Wolf et al. 2020, arXiv:1910.03771), as FineWeb-Edu's classifier
(Penedo et al. 2024, arXiv:2406.17557) and ml_filter's annotators use it.
"""

import msgspec

from taggers._folder_classifiers import FolderClassifier
from toolkit import Example, Model
from toolkit.text import ClassifierAsked, Said

TINY = {"model": "tests/taggers/files/hf_classifier"}


class HfClassifier(FolderClassifier):
    """Predictions of a model of `transformers`: a score, and for classes and labels their probabilities.

    `model` is a folder with ``config.json``, ``model.safetensors`` and ``tokenizer.json``: one that ``toolkit train``
    has made, or any for sequence classification. Values are neither clipped nor rounded, except in regressions of
    ml_filter, whose head clips. If the model has several targets, ``scores`` has a number for each (for classes the
    mean of the classes, weighted by probability), and ``score`` is that of the first. With `target`, the value is about
    this target alone. Numbers are float32.

    Attributes:
        base: the config.json of the encoder, for a model of ml_filter, whose folder lacks it
    """

    EXAMPLES = (
        Example("", Said(1.5574471, None, {}), options=TINY),
        Example("The library opens\nat nine.", Said(-1.4850496, None, {}), options=TINY),
        Example("Η βιβλιοθήκη ανοίγει στις εννέα.", Said(1.5109289, None, {}), options=TINY),
    )

    base: Model | None = None

    @property
    def request(self) -> ClassifierAsked:
        return msgspec.structs.replace(super().request, base=self.base)
