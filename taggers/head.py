"""Predictions of a small model over embeddings: a score, a class, labels, or a grade.

Source: heads that ``toolkit train`` makes, and those of others in the same form: a linear layer over the vectors of a
frozen encoder (FineWeb-Edu, arXiv:2406.17557), or two with ReLU between them (JQL, arXiv:2505.22232).
"""

from collections.abc import Sequence
from typing import Annotated

from toolkit import Attribute, Batch, Document, Example, Tagger
from toolkit.text import HeadOption, Said, load_head

TINY = {"model": "tests/taggers/files/head.safetensors", "embedding": "embed-0"}


class Head(Tagger):
    """Predictions of a head: a score, and for classes, labels and grades their probabilities.

    The tagger does not read the text itself. Numbers are float32.

    Attributes:
        model: the folder of a head, or its file
        embedding: the embeddings, of the encoder that the head was trained on
    """

    EXAMPLES = (
        Example("", Said(2.0, None, {}), options=TINY, attributes={"embedding": [0.0, 0.0, 0.0]}),
        Example(
            "The library opens\nat nine.",
            Said(1.38808, None, {}),
            options=TINY,
            attributes={"embedding": [-0.151, -0.25, 0.05728]},
        ),
        Example(
            "Η βιβλιοθήκη", Said(1.36414, None, {}), options=TINY, attributes={"embedding": [0.09784, -0.462, 0.3098]}
        ),
    )

    model: HeadOption
    embedding: Annotated[str, Attribute("embedding", list[float])]

    def tag_batch(self, documents: Sequence[Document]) -> list[Said]:
        return load_head(self.model).predict(Batch.of(documents).attribute(self.embedding))
