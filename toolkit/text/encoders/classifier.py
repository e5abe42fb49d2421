"""Classifiers of a folder: what they say of texts."""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from toolkit.errors import ConfigError, DataError, errors_from
from toolkit.lazy_numpy import np
from toolkit.storage import models
from toolkit.storage.models import is_known
from toolkit.text.encoders.config import CONFIG, TOKENIZER, ModelConfig, Outputs, check_folder, read_config
from toolkit.text.encoders.tokens import Batches, TokenCutter, filled_up
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import Said, Window

Compute = Callable[[Array, Array], Array]
"""Returns the numbers of texts, float (texts, width), of their tokens and of what is no filling: int64, twice."""

ModelFolder = Annotated[str, msgspec.Meta(extra={"model": is_known})]
"""Type of an option that names the folder of a model on this machine: a digest of its files is recorded."""


class Classifier(msgspec.Struct):
    """A loaded classifier. Not sent between processes; use the functions that load one where it is needed.

    Attributes:
        folder: Folder of the model, for messages.
        outputs: Meaning of the numbers that it computes.
        tokens: cuts texts.
        window: Part of a text that it sees by default.
        compute: the numbers of texts.
    """

    folder: str
    outputs: Outputs
    tokens: TokenCutter
    window: Window | None
    compute: Compute

    def predict(self, texts: Sequence[str], batches: Batches, window: Window | None = None) -> list[Said]:
        """Return the model's predictions for texts.

        Args:
            texts: whole.
            batches: Limits of the texts that are computed at once.
            window: Part of each text that it sees; by default as in training.
        """
        if not texts:
            return []
        window = window or self.window
        pieces = [window.of(text) if window else [text] for text in texts]
        tokens = self.tokens.of([piece for item in pieces for piece in item])
        values = self.outputs.outcomes(self.numbers(tokens, batches))
        if window is not None:
            values = window.together(values, np.cumsum([0, *map(len, pieces)]))
        return self.outputs.predictions(values)

    def numbers(self, tokens: Sequence[Sequence[int]], batches: Batches) -> Array:
        """Compute the numbers of texts from their tokens: float32 (texts, width).

        Raises:
            DataError: if it is no number.
        """
        result = np.zeros((len(tokens), self.outputs.width), np.float32)
        for batch in batches.of([*map(len, tokens)]):
            result[batch] = self.compute(*filled_up([tokens[i] for i in batch], self.tokens.pad))
        if not np.isfinite(result).all():
            raise DataError(f"{self.folder}: expected finite numbers for each text, got NaN or infinite ones")
        return result


class ClassifierAsked(msgspec.Struct, frozen=True, kw_only=True):
    """The classifier in a folder, as taggers ask for it; see the taggers `hf_classifier` and `onnx_classifier`.

    Attributes:
        model: the folder.
        file: the ONNX file in it; None for what transformers loads.
        base: the ``config.json`` of the encoder of a model of ml_filter.
        targets: names of ml_filter's targets.
        target: the one that is told.
        max_tokens: Maximum tokens of a text, or a piece of it.
        device: Device of the computation.
    """

    model: str
    file: str | None = None
    base: str | None = None
    targets: tuple[str, ...] = ()
    target: str | None = None
    max_tokens: int | None = None
    device: str = "auto"


def check_classifier(request: ClassifierAsked) -> None:
    """Check a classifier, on the cpu: its files are there, and compute what they should of a text.

    Raises:
        ConfigError: if they are or do not.
        MissingExtra: if what computes it is not installed.
    """
    load_classifier(msgspec.structs.replace(request, device="cpu")).predict([""], Batches())


def load_classifier(request: ClassifierAsked) -> Classifier:
    """Return a classifier; loaded once a process, shared by all taggers that ask the same of it."""
    device = _device(request)
    check_folder(request.model, CONFIG, TOKENIZER, *([request.file] if request.file else []))
    folder = os.path.realpath(request.model)
    base = request.base and os.path.realpath(models.resolve(request.base))
    return _loaded(
        msgspec.structs.replace(request, model=folder, base=base, device=device),
        models.digest(folder) + (models.digest(base) if base else ""),
    )


def _device(request: ClassifierAsked) -> str:
    if request.file is None:
        from toolkit.text.encoders.torch_models import device_of
    else:
        from toolkit.text.encoders.onnx_models import device_of
    return device_of(request.device)


@functools.lru_cache(maxsize=4)
def _loaded(request: ClassifierAsked, _digest: str) -> Classifier:
    path = os.path.join(request.model, CONFIG)
    config = read_config(path)
    if request.base and not config.is_annotator:
        raise ConfigError("base: expected it only for a model of ml_filter; this one has a config.json of its own")
    encoder: ModelConfig = read_config(request.base) if request.base else config
    with errors_from(path):
        outputs = Outputs.of(config, request.targets, request.target)
        tokens = TokenCutter(request.model, encoder.tokens(request.max_tokens), encoder)
    compute: Compute
    if request.file is None:
        from toolkit.text.encoders.torch_models import TorchClassifier

        compute = TorchClassifier(request.model, config, request.base, outputs.width, request.device)
    else:
        from toolkit.text.encoders.onnx_models import OnnxClassifier

        compute = OnnxClassifier(request.model, request.file, outputs.width, request.device)
    return Classifier(request.model, outputs, tokens, config.toolkit.window if config.toolkit else None, compute)
