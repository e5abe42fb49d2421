"""Shared parts of the taggers of classifiers in folders."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from toolkit import Document, Neutral, Tagger
from toolkit.text import (
    Batches,
    BatchOption,
    ClassifierAsked,
    Device,
    ModelFolder,
    Said,
    WindowOption,
    check_classifier,
    load_classifier,
)


class FolderClassifier(Tagger):
    """Predictions of a model in a folder; `asked` says what computes them."""

    model: Annotated[ModelFolder, msgspec.Meta(description="the folder of a model on this machine")]
    max_tokens: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        msgspec.Meta(
            description="the largest number of tokens of a text, or of a piece of it, special tokens included; "
            "null: as trained, or 512"
        ),
    ] = None
    window: Annotated[
        WindowOption, msgspec.Meta(description="which part of a text the model sees; null: the same as in its training")
    ] = None
    target: Annotated[
        str | None,
        msgspec.Meta(
            description="if the model has several targets: the one that the value is about; null: all of them"
        ),
    ] = None
    targets: Annotated[
        list[str] | None, msgspec.Meta(description="names of the targets of a model of ml_filter, in their order")
    ] = None
    batch: BatchOption = Batches()
    device: Annotated[Device, Neutral] = "auto"

    @property
    def asked(self) -> ClassifierAsked:
        """Return what is asked of the folder."""
        return ClassifierAsked(
            model=self.model,
            targets=tuple(self.targets or ()),
            target=self.target,
            max_tokens=self.max_tokens,
            device=self.device,
        )

    def check(self) -> None:
        if self.window is not None:
            self.window.check()
        check_classifier(self.asked)

    def tag_batch(self, documents: Sequence[Document]) -> list[Said]:
        texts = [document.text for document in documents]
        return load_classifier(self.asked).predict(texts, self.batch, self.window)
