"""BERT and RoBERTa as encoders: a text's tokens to a vector each, by numpy alone, one text at a time.

Source: Devlin et al. 2018, arXiv:1810.04805; Liu et al. 2019, arXiv:1907.11692; Conneau et al. 2019, arXiv:1911.02116;
names of settings and arrays are those of Hugging Face's ``transformers``. A text is computed by itself, without others
that fill it up, so that its vector depends on nothing else; a text as long as the model takes keeps one core as busy as
several would. With one thread of the library behind numpy the bytes are the same again on one machine.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

import msgspec

from toolkit.errors import ConfigError
from toolkit.lazy_numpy import np
from toolkit.text.kernels.signatures import Array

FAMILIES = ("bert", "camembert", "roberta", "xlm-roberta")
"""Values of ``model_type``."""

_ROWS = 64
"""Rows whose activation is computed together, so that what is between stays in the cache."""


class EncoderConfig(msgspec.Struct, frozen=True):
    """Fields read from ``config.json``."""

    model_type: str
    hidden_size: int = 0
    num_hidden_layers: int = 0
    num_attention_heads: int = 1
    max_position_embeddings: int = 512
    layer_norm_eps: float = 1e-12
    hidden_act: Literal["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"] = "gelu"
    pad_token_id: int = 0
    position_embedding_type: str | None = "absolute"

    @property
    def first_position(self) -> int:
        """Return the position of the first token: RoBERTa counts from behind that of padding."""
        return 0 if self.model_type == "bert" else self.pad_token_id + 1

    @property
    def longest(self) -> int:
        """Return how many tokens the model can take."""
        return self.max_position_embeddings - self.first_position


class _Dense(NamedTuple):
    weight: Array  # (in, out), as it is multiplied
    bias: Array

    def __call__(self, x: Array) -> Array:
        result: Array = x @ self.weight
        result += self.bias
        return result


class _Norm(NamedTuple):
    weight: Array
    bias: Array
    eps: float

    def __call__(self, x: Array) -> Array:
        """Return rows with mean 0 and variance 1, scaled; what is given is changed."""
        x -= x.mean(axis=1, keepdims=True)
        x /= np.sqrt(np.einsum("ij,ij->i", x, x) / np.float32(x.shape[1]) + np.float32(self.eps))[:, None]
        x *= self.weight
        x += self.bias
        return x


class _Layer(NamedTuple):
    query_key_value: _Dense
    attended: _Dense
    attended_norm: _Norm
    wide: _Dense
    narrow: _Dense
    norm: _Norm


class Transformer:
    """A loaded model.

    Args:
        config: Configuration of it.
        arrays: float32, by their names.
        path: Path of the file, for messages.

    Raises:
        ConfigError: if it is of another family, or arrays are missing or of other shapes.
    """

    def __init__(self, config: EncoderConfig, arrays: Mapping[str, Array], path: str) -> None:
        if config.model_type not in FAMILIES or config.position_embedding_type not in (None, "absolute"):
            got = config.model_type
            if got in FAMILIES:
                got += f" with positions that are {config.position_embedding_type}"
            raise ConfigError(f"{path}: expected a model of the kind {', '.join(FAMILIES)}, got {got}")
        if config.hidden_size % config.num_attention_heads or config.hidden_size < 1:
            raise ConfigError(
                f"{path}: expected {config.num_attention_heads} heads that divide hidden_size, got {config.hidden_size}"
            )
        self.config = config
        take = _ArrayTaker(arrays, config.hidden_size, config.layer_norm_eps, path)
        self._words = take.rows("embeddings.word_embeddings.weight")
        positions = take.rows("embeddings.position_embeddings.weight")[config.first_position :]
        self._positions = positions + take.rows("embeddings.token_type_embeddings.weight")[0]
        self._norm = take.norm("embeddings.LayerNorm")
        self._layers = [take.layer(f"encoder.layer.{i}.") for i in range(config.num_hidden_layers)]
        self._activation = {"gelu": _gelu, "relu": _relu}.get(config.hidden_act, _gelu_tanh)

    @property
    def dimension(self) -> int:
        return self.config.hidden_size

    @property
    def vocabulary(self) -> int:
        return len(self._words)

    def vectors(self, tokens: Array) -> Array:
        """Return a vector for each token of a text; float32 (tokens, dimension)."""
        x = self._norm(self._words[tokens] + self._positions[: len(tokens)])
        for layer in self._layers:
            x = self._pass(layer, x)
        return x

    def _pass(self, layer: _Layer, x: Array) -> Array:
        tokens, heads = len(x), self.config.num_attention_heads
        width = self.dimension // heads
        query, key, value = layer.query_key_value(x).reshape(tokens, 3, heads, width).transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1)
        scores *= np.float32(1 / np.sqrt(width))
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        together = (scores @ value).transpose(1, 0, 2).reshape(tokens, self.dimension)
        attended = layer.attended(together)
        attended += x
        x = layer.attended_norm(attended)
        wide = layer.wide(x)
        for first in range(0, tokens, _ROWS):
            self._activation(wide[first : first + _ROWS])
        narrow = layer.narrow(wide)
        narrow += x
        return layer.norm(narrow)


class _ArrayTaker:
    """Takes arrays by name without their common prefix, and checks them."""

    def __init__(self, arrays: Mapping[str, Array], hidden: int, eps: float, path: str) -> None:
        self._path, self._hidden, self._eps = path, hidden, eps
        marker = "embeddings.word_embeddings.weight"
        prefix = next((name.removesuffix(marker) for name in arrays if name.endswith(marker)), "")
        self._arrays = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    def array(self, name: str, *shape: int | None) -> Array:
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        array = self._arrays.get(name, self._arrays.get(old))
        if array is None:
            raise ConfigError(f"{self._path}: expected the array {name}, got none; is it an encoder?")
        if len(array.shape) != len(shape) or any(b not in (None, a) for a, b in zip(array.shape, shape, strict=True)):
            raise ConfigError(f"{self._path}: expected {name} of shape {[*shape]}, got {[*array.shape]}")
        return np.ascontiguousarray(array, np.float32)

    def rows(self, name: str) -> Array:
        return self.array(name, None, self._hidden)

    def norm(self, name: str) -> _Norm:
        return _Norm(self.array(f"{name}.weight", self._hidden), self.array(f"{name}.bias", self._hidden), self._eps)

    def dense(self, name: str, inner: int | None, outer: int | None) -> _Dense:
        weight = self.array(f"{name}.weight", outer, inner)
        return _Dense(np.ascontiguousarray(weight.T), self.array(f"{name}.bias", len(weight)))

    def layer(self, name: str) -> _Layer:
        hidden = self._hidden
        three = [self.dense(f"{name}attention.self.{item}", hidden, hidden) for item in ("query", "key", "value")]
        return _Layer(
            _Dense(np.concatenate([d.weight for d in three], axis=1), np.concatenate([d.bias for d in three])),
            self.dense(f"{name}attention.output.dense", hidden, hidden),
            self.norm(f"{name}attention.output.LayerNorm"),
            self.dense(f"{name}intermediate.dense", hidden, None),
            self.dense(f"{name}output.dense", None, hidden),
            self.norm(f"{name}output.LayerNorm"),
        )


# --- activations, in place --------------------------------------------------------------------------------------------

_ERF_OVER = (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
             -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02)  # fmt: skip
_ERF_UNDER = (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
              -1.42647390514189e-02)  # fmt: skip
"""Of the error function as x P(x²) / Q(x²) in [-4, 4], to 3e-7: the fit that Eigen has for float32."""


def _polynomial(factors: tuple[float, ...], x: Array) -> Array:
    result = x * np.float32(factors[0])
    for factor in factors[1:-1]:
        result += np.float32(factor)
        result *= x
    result += np.float32(factors[-1])
    return cast("Array", result)


def _gelu(x: Array) -> None:
    """Multiply numbers by the normal distribution function of them."""
    scaled = np.clip(x * np.float32(0.5**0.5), np.float32(-4), np.float32(4))
    square = scaled * scaled
    scaled *= _polynomial(_ERF_OVER, square)
    scaled /= _polynomial(_ERF_UNDER, square)
    scaled += np.float32(1)
    x *= scaled
    x *= np.float32(0.5)


def _gelu_tanh(x: Array) -> None:
    """Apply `_gelu` by the approximation of some models."""
    inner = x * x
    inner *= np.float32(0.044715)
    inner += np.float32(1)
    inner *= x
    inner *= np.float32((2 / np.pi) ** 0.5)
    np.tanh(inner, out=inner)
    inner += np.float32(1)
    x *= inner
    x *= np.float32(0.5)


def _relu(x: Array) -> None:
    np.maximum(x, 0, out=x)
