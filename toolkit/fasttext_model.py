"""Supervised fastText models: the one place that knows the fastText library."""

import functools
import os
from collections.abc import Sequence

from toolkit import models
from toolkit.documents import Prediction
from toolkit.errors import ConfigError
from toolkit.numbers import shortest_float32

PREFIX = "__label__"
_SPACE = " \t\n\r\v\f"  # what fastText splits words at


class FastTextModel:
    """A loaded model. Not sent between processes; use `load_fasttext` where it is needed.

    Args:
        path: a ``.bin`` or ``.ftz`` file of a supervised model.
    """

    def __init__(self, path: str) -> None:
        import fasttext

        try:
            self._model = fasttext.load_model(path).f
        except (ValueError, RuntimeError) as error:
            raise ConfigError(f"{path}: expected a fastText model, got: {error}") from None
        if not self._model.isQuant() and self._model.getArgs().model.name != "supervised":
            raise ConfigError(f"{path}: expected a supervised fastText model, got one of word vectors")

    def predict(self, texts: Sequence[str], *, k: int = 1, threshold: float = 0.0) -> list[list[Prediction]]:
        r"""The best labels of each text, without ``__label__``, best first.

        Probabilities are float32, given as the number with the shortest text; they may exceed 1 by 1e-4. A text without
        words has no label.

        Args:
            texts: without ``\n``; NUL characters are left out, as ungoliant does.
            k: at most so many labels a text.
            threshold: only labels with at least this probability.
        """
        lines = [text.replace("\0", "") + "\n" if "\0" in text else text + "\n" for text in texts]
        labels, probabilities = self._model.multilinePredict(lines, k, threshold, "strict")
        flat = iter(shortest_float32([p for row in probabilities for p in row]))
        found = [[Prediction(label[len(PREFIX) :], next(flat)) for label in row] for row in labels]
        # fastText predicts from its end-of-line token alone where there is no word.
        return [row if line.strip(_SPACE) else [] for row, line in zip(found, lines, strict=True)]


def load_fasttext(model: str) -> FastTextModel:
    """The model for a configured name or path; loaded once a process, shared by all taggers that use it."""
    return _load(os.path.realpath(models.resolve(model)))


@functools.lru_cache(maxsize=8)
def _load(path: str) -> FastTextModel:
    return FastTextModel(path)
