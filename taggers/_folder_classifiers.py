"""Shared parts of the taggers of classifiers in folders."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from toolkit import Document, Neutral, Tagger, text as measures


class FolderClassifier(Tagger):
    """Predictions of a model in a folder; `request` says what computes them.

    Attributes:
        model: the folder of a model on this machine
        max_tokens: the largest number of tokens of a text, or of a piece of it, special tokens included; null: as
            trained, or 512
        window: the part of a text that the model sees; null: the same as in its training
        target: the target that the value is about, if the model has several; null: all of them
        targets: names of the targets of a model of ml_filter, in their order
    """

    model: measures.ModelFolder
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    window: measures.WindowOption = None
    target: str | None = None
    targets: list[str] | None = None
    batch: measures.BatchOption = measures.Batches()
    device: Annotated[measures.Device, Neutral] = "auto"

    @property
    def request(self) -> measures.ClassifierAsked:
        """Return the request for the folder's classifier."""
        return measures.ClassifierAsked(
            model=self.model,
            targets=tuple(self.targets or ()),
            target=self.target,
            max_tokens=self.max_tokens,
            device=self.device,
        )

    def check(self) -> None:
        measures.check_classifier(self.request)

    def tag_batch(self, documents: Sequence[Document]) -> list[measures.Said]:
        texts = [document.text for document in documents]
        return measures.load_classifier(self.request).predict(texts, self.batch, self.window)
