"""Heads: a linear layer, or several with ReLU between them, over the vector of a text; their file, what they say.

``model.safetensors`` has ``0.weight`` (outputs, inputs) and ``0.bias``, of each further layer ``2.weight`` …: the names
that ``torch.nn.Sequential(Linear, ReLU, Linear)`` gives. Metadata: ``about``, what the model predicts (JSON), and
``sha256`` of the arrays. External files have layers of any names, and one output: a number.
"""

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple, cast

import msgspec

from toolkit.errors import ConfigError, DataError, errors_from
from toolkit.lazy_numpy import np
from toolkit.storage import models
from toolkit.storage.models import is_known
from toolkit.text.encoders import tensors
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import LARGEST, Predicts, Said, outcomes, predictions_of

MOST_LAYERS = 4

ABOUT, DIGEST = "about", "sha256"


class Layer(NamedTuple):
    """A linear layer: float32 (inputs, outputs), as it is multiplied, and (outputs)."""

    weight: Array
    bias: Array


class LoadedHead:
    """A loaded head. Not sent between processes; use `load_head` where it is needed.

    Args:
        about: Predictions of the head.
        layers: Layers in order.
    """

    def __init__(self, about: Predicts, layers: Sequence[Layer]) -> None:
        self.about, self._layers = about, layers

    @property
    def inputs(self) -> int:
        """Return how many numbers a vector has."""
        return len(self._layers[0].weight)

    def outputs(self, vector: Array) -> Array:
        """Return the outputs for one vector: float32.

        No other vector has a part in it.
        """
        *first, last = self._layers
        for layer in first:
            vector = np.maximum(vector @ layer.weight + layer.bias, np.float32(0))
        return cast("Array", vector @ last.weight + last.bias)

    def predict(self, vectors: Sequence[Sequence[float]]) -> list[Said]:
        """Return predictions for vectors.

        Raises:
            DataError: if one has another length than those that it was trained on, or a number that is none.
        """
        if not vectors:
            return []
        for vector in vectors:
            if len(vector) != self.inputs:
                raise DataError(
                    f"expected embeddings of {self.inputs:,} numbers, as the head was trained on, got {len(vector):,}; "
                    "both must be of the same encoder"
                )
        result = np.array([self.outputs(np.array(vector, np.float32)) for vector in vectors], np.float64)
        if not np.isfinite(result).all():
            raise DataError("expected a finite prediction, got another; are the embeddings far from those of training?")
        return predictions_of(self.about, outcomes(self.about, result))


# --- files ------------------------------------------------------------------------------------------------------------


def packed(about: Predicts, layers: Sequence[Layer]) -> bytes:
    """Return the content of a head's file."""
    arrays = {}
    for i, layer in enumerate(layers):
        arrays[f"{2 * i}.weight"] = np.ascontiguousarray(layer.weight.T, np.float32)
        arrays[f"{2 * i}.bias"] = layer.bias.astype(np.float32)
    return tensors.packed(arrays, {ABOUT: msgspec.json.encode(about).decode()}, digest=DIGEST)


def read(path: str) -> LoadedHead:
    """Return the head of a file, one of ours or of others.

    Raises:
        ConfigError: if it is none, or not whole.
    """
    arrays, metadata = tensors.read(path, kind_of_file="a head", digest=DIGEST)
    layers = _layers(arrays, path)
    outputs = len(layers[-1].bias)
    if ABOUT in metadata:
        with errors_from(f"{path}: expected a head of `toolkit train`, got", of=(msgspec.DecodeError, ConfigError)):
            about = msgspec.json.decode(metadata[ABOUT], type=Predicts)
            about.check()
        expected = about.outputs
    else:
        about, expected = Predicts(task="regression"), 1
    if outputs != expected:
        raise ConfigError(f"{path}: expected {expected} outputs of a {about.task}, got {outputs}")
    return LoadedHead(about, layers)


def _layers(arrays: dict[str, Array], path: str) -> list[Layer]:
    """Return the layers in the order of their names, numbers as numbers."""
    names = sorted((name for name in arrays if _is_weight(name)), key=_in_order)
    rest = {*arrays} - {*names, *map(_bias_of, names)}
    if not names or rest or len(names) > MOST_LAYERS:
        got = ", ".join(sorted(arrays)[:6]) or "none"
        raise ConfigError(
            f"{path}: expected 1 to {MOST_LAYERS} layers, each with `weight` and `bias`, and nothing else, got {got}; "
            "a model with its encoder is for another tagger"
        )
    results: list[Layer] = []
    for name in names:
        weight, bias = arrays[name], arrays.get(_bias_of(name))
        if bias is None:
            bias = np.zeros(len(weight), np.float32)
        shapes = f"{name} {[*weight.shape]} and {_bias_of(name)} {[*bias.shape]}"
        if len(weight.shape) != 2 or bias.shape != weight.shape[:1] or not weight.size:
            raise ConfigError(f"{path}: expected a matrix and as many numbers as it has rows, got {shapes}")
        if results and len(results[-1].bias) != weight.shape[1]:
            raise ConfigError(f"{path}: expected layers that follow each other, got {shapes}")
        if not (np.abs(weight) <= LARGEST).all() or not (np.abs(bias) <= LARGEST).all():
            raise ConfigError(f"{path}: expected finite numbers, got NaN, infinite or too large ones in {name}")
        results.append(Layer(np.ascontiguousarray(weight.T, np.float32), bias.astype(np.float32)))
    return results


def _is_weight(name: str) -> bool:
    return name.rpartition(".")[2] == "weight"


def _bias_of(name: str) -> str:
    return name.removesuffix("weight") + "bias"


def _in_order(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", name)]


load_head = models.loader(read)
"""Return the head for a configured path; loaded once a process, shared by all taggers that use it."""


def check_head(model: str) -> None:
    """Check the file of a configured path; once for each of its versions.

    Raises:
        ConfigError: if it is not that of a head, whole and consistent.
    """
    load_head(model)


HeadOption = Annotated[str, msgspec.Meta(extra={"model": is_known, "check": check_head})]
"""Type of an option that names a head, or the folder that ``toolkit train`` has made: a `Model` whose file is checked
before anything is written."""
