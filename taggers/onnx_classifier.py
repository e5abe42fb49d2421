"""Predictions of a classifier in an ONNX file: a score, a class, labels, or a grade.

Source: sequence classification as `optimum` exports it (ONNX Runtime developers 2021); the same models as those of
`hf_classifier`.
"""

import msgspec

from taggers._folder_classifiers import FolderClassifier
from toolkit import Example
from toolkit.text import ClassifierAsked, Said

TINY = {"model": "tests/taggers/files/onnx_classifier"}


class OnnxClassifier(FolderClassifier):
    """Predictions of an ONNX model: a score, and for classes and labels their probabilities.

    `model` is a folder with `file`, ``config.json`` and ``tokenizer.json``. The model gets ``input_ids``,
    ``attention_mask`` and ``token_type_ids``, as far as it has these inputs, and gives ``logits``, a row of numbers for
    each text. ``config.json`` says what these numbers are, as for `hf_classifier`: ``id2label`` and ``problem_type``.
    An exported file may compute other values than the original model.

    Attributes:
        file: the model in the folder, such as onnx/model_quantized.onnx
    """

    EXAMPLES = (
        Example("", Said(2.5625, None, {}), options=TINY),
        Example("The library opens\nat nine.", Said(0.97321427, None, {}), options=TINY),
        Example("Η βιβλιοθήκη ανοίγει στις εννέα.", Said(-0.8196721, None, {}), options=TINY),
    )

    file: str = "model.onnx"

    @property
    def request(self) -> ClassifierAsked:
        return msgspec.structs.replace(super().request, file=self.file)
