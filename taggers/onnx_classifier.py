"""Predictions of a classifier in an ONNX file: a score, a class, labels, or a grade.

Source: sequence classification as `optimum` exports it (ONNX Runtime developers 2021); the same models as those of
`hf_classifier`.
"""

from typing import Annotated

import msgspec

from taggers._folder_classifiers import FolderClassifier
from toolkit import Example
from toolkit.text import ClassifierAsked

TINY = {"model": "tests/taggers/files/onnx_classifier"}


class OnnxClassifier(FolderClassifier):
    """Predictions of an ONNX model: a score, and for classes and labels their probabilities.

    `model` is a folder with `file`, ``config.json`` and ``tokenizer.json``. The model gets ``input_ids``,
    ``attention_mask`` and ``token_type_ids``, as far as it has these inputs, and gives ``logits``, a row of numbers for
    each text. ``config.json`` says what these numbers are, as for `hf_classifier`: ``id2label`` and ``problem_type``.
    An exported file may compute other values than the original model.
    """

    EXAMPLES = (
        Example("", {"score": 2.5625, "label": None, "scores": {}}, options=TINY),
        Example("The library opens\nat nine.", {"score": 0.97321427, "label": None, "scores": {}}, options=TINY),
        Example("Η βιβλιοθήκη ανοίγει στις εννέα.", {"score": -0.8196721, "label": None, "scores": {}}, options=TINY),
    )

    file: Annotated[str, msgspec.Meta(description="the model in the folder, such as onnx/model_quantized.onnx")] = (
        "model.onnx"
    )

    @property
    def asked(self) -> ClassifierAsked:
        return msgspec.structs.replace(super().asked, file=self.file)
