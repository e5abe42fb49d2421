"""The ``config.json`` of a model's folder, and a classifier's outputs.

Read are the configurations of `transformers`, those that ml_filter's `AnnotatorModel` writes, and ours, which are the
first with one key more, ``toolkit`` (`Trained`).
"""

import os
from collections.abc import Sequence
from typing import Self, cast

import msgspec

from toolkit.errors import ConfigError, MissingModel, did_you_mean
from toolkit.lazy_numpy import np
from toolkit.storage import store_of
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import Said, Task, Window, grade_probabilities, grades_of, predictions_of, sigmoid
from toolkit.text.portable_floats import shortest_float32

CONFIG, TOKENIZER = "config.json", "tokenizer.json"

ANNOTATOR = "AnnotatorModel"
"""ml_filter's class, whose folder has the configuration of its heads in place of that of the encoder."""

USUAL_TOKENS = 512
"""Where neither the model nor the user says how many a text may have."""

_FROM_PAD = {
    "camembert", "data2vec-text", "ibert", "longformer", "luke", "mpnet", "roberta", "roberta-prelayernorm",
    "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
"""Kinds of models that count positions from behind the number of the token that fills up."""


class Trained(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The key ``toolkit`` of a model's ``config.json``, as ``toolkit train`` writes it.

    Attributes:
        task: Kind of prediction.
        labels: classes or labels, sorted; grades, rising; nothing for a regression.
        max_tokens: Maximum tokens that it saw of a text, or of a piece of it.
        window: Window that it was trained with.
    """

    task: Task
    labels: list[str] = []
    max_tokens: int
    window: Window | None = None


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of ``config.json``; names are those of `transformers` and ml_filter."""

    model_type: str = ""
    architectures: list[str] | None = None
    auto_map: dict[str, object] | None = None
    problem_type: str | None = None
    id2label: dict[str, str] | None = None
    pad_token_id: int | list[int] | None = None
    max_position_embeddings: int | None = None
    is_regression: bool = True
    num_tasks: int = 0
    num_targets_per_task: list[int] | None = None
    toolkit: Trained | None = None

    @property
    def is_annotator(self) -> bool:
        return ANNOTATOR in (self.architectures or [])

    @property
    def most_tokens(self) -> int | None:
        """Return how many tokens a text may have; None if nothing is said of it."""
        if self.max_position_embeddings is None or self.max_position_embeddings < 1:
            return None
        pad = self.pad_token_id if isinstance(self.pad_token_id, int) else 1
        return self.max_position_embeddings - (pad + 1 if self.model_type in _FROM_PAD else 0)

    def tokens(self, requested: int | None) -> int:
        """Return the number of tokens after truncation.

        Raises:
            ConfigError: if more are wanted than the model takes.
        """
        most = self.most_tokens
        if requested is not None and most is not None and requested > most:
            raise ConfigError(f"max_tokens: expected at most the {most:,} that the model takes, got {requested:,}")
        trained = self.toolkit.max_tokens if self.toolkit else USUAL_TOKENS
        return requested or min(trained, most or trained)


def check_folder(folder: str, *files: str) -> None:
    """Check a local folder for the files of a model.

    Raises:
        ConfigError: saying what is missing, and how it can be had.
    """
    if not store_of(folder).is_local:
        raise ConfigError(f"expected the folder of a model on this machine, got {folder!r}; copy it here")
    if not os.path.isdir(folder):
        raise MissingModel(
            f"expected the folder of a model, got {'a file' if os.path.exists(folder) else 'nothing'} at {folder!r}; "
            "nothing is fetched by a name: save the files of the model in a folder, and give its path"
        )
    for name in files:
        if not os.path.isfile(os.path.join(folder, name)):
            raise MissingModel(f"{folder}: expected {name}, got none{_HOW.get(name, '')}")


_HOW = {
    TOKENIZER: "; `AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)` of transformers makes it from older "
    "files"
}


def read_config(path: str) -> ModelConfig:
    """Return the content of a ``config.json``.

    Raises:
        ConfigError: if it is none, or that of a model whose code is not in `transformers`.
    """
    try:
        with open(path, "rb") as stream:
            model_config = msgspec.json.decode(stream.read(), type=ModelConfig)
        if model_config.toolkit:
            _check(model_config.toolkit)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, ConfigError) as error:
        raise ConfigError(f"{path}: expected the configuration of a model, got: {error}") from None
    if model_config.auto_map:
        raise ConfigError(
            f"{path}: expected a model whose code is in transformers, got one with code of its own (auto_map), which "
            "is not run; export it to ONNX for `onnx_classifier`, or take another model"
        )
    return model_config


def _check(trained: Trained) -> None:
    if (trained.task == "regression") != (not trained.labels) or len({*trained.labels}) != len(trained.labels):
        raise ConfigError(f"labels: expected different labels for {trained.task}, got {trained.labels[:5]}")
    if trained.task == "ordinal":
        grades_of(trained.labels)
    if trained.window:
        trained.window.check()


class Outputs(msgspec.Struct, frozen=True):
    """Meaning of the numbers computed by a classifier.

    Attributes:
        task: Kind of prediction.
        labels: Labels of the task's probabilities; nothing for a regression.
        targets: names of what is predicted side by side; nothing if it is one thing.
        sizes: Sizes of ml_filter's heads, how many classes each target has, or had before they became numbers.
        picked: Picked of the targets, which one is told.
    """

    task: Task
    labels: Sequence[str] = ()
    targets: Sequence[str] = ()
    sizes: Sequence[int] = ()
    picked: int | None = None

    @classmethod
    def of(cls, config: ModelConfig, targets: Sequence[str] | None = None, target: str | None = None) -> Self:
        """Return the outputs of a configuration.

        Args:
            config: Configuration of the model.
            targets: names of ml_filter's targets, whose configuration has none.
            target: the one that is told; None for all of them.

        Raises:
            ConfigError: if it does not say it, or names do not go with it.
        """
        result = cls._annotator(config, targets) if config.is_annotator else cls._usual(config)
        if targets and not config.is_annotator:
            raise ConfigError("targets: expected it only for a model of ml_filter; this one names its labels itself")
        if target is None:
            return result
        if target not in result.targets:
            hint = did_you_mean(target, result.targets)
            raise ConfigError(f"target: expected one of {', '.join(result.targets) or 'none'}, got {target!r}{hint}")
        picked = list(result.targets).index(target)
        labels = [str(i) for i in range(result.sizes[picked])] if result.task == "classes" else []
        return cls(result.task, labels, result.targets, result.sizes, picked)

    @classmethod
    def _usual(cls, config: ModelConfig) -> Self:
        if config.toolkit:
            return cls(config.toolkit.task, config.toolkit.labels)
        by_number = config.id2label if config.id2label is not None else {"0": "LABEL_0", "1": "LABEL_1"}
        labels = [by_number.get(str(i), "") for i in range(len(by_number))]
        if not all(labels) or len({*labels}) != len(labels):
            raise ConfigError(f"id2label: expected different labels of 0 to {len(by_number) - 1}, got {by_number}")
        kind = config.problem_type or ("regression" if len(labels) == 1 else "single_label_classification")
        if kind == "regression":
            return cls("regression", targets=labels if len(labels) > 1 else ())
        tasks: dict[str, Task] = {"single_label_classification": "classes", "multi_label_classification": "multilabel"}
        if kind not in tasks or len(labels) < (2 if kind == "single_label_classification" else 1):
            raise ConfigError(f"problem_type: expected one of transformers for {len(labels)} labels, got {kind!r}")
        return cls(tasks[kind], labels)

    @classmethod
    def _annotator(cls, config: ModelConfig, targets: Sequence[str] | None) -> Self:
        sizes = config.num_targets_per_task or []
        if len(sizes) != config.num_tasks or not sizes or min(sizes) < 2:
            raise ConfigError(
                f"num_targets_per_task: expected {config.num_tasks} numbers of classes of 2 or more, got {sizes}"
            )
        names = list(targets or map(str, range(len(sizes))))
        if len(names) != len(sizes) or len({*names}) != len(names):
            raise ConfigError(f"targets: expected {len(sizes)} different names, got {', '.join(names)}")
        several = names if len(names) > 1 else []
        if config.is_regression:
            return cls("regression", (), several, sizes)
        return cls("classes", () if several else [str(i) for i in range(sizes[0])], several, sizes)

    @property
    def width(self) -> int:
        """Return how many numbers the model computes of a text."""
        if self.task == "regression":
            return max(1, len(self.targets))
        return max(self.sizes) * len(self.sizes) if self.sizes else len(self.labels) - (self.task == "ordinal")

    def outcomes(self, computed: Array) -> Array:
        """Return the number of each selected target, or label probabilities.

        Args:
            computed: float (texts, `width`).

        Returns:
            float64 (texts, outcomes).
        """
        values: Array = computed.astype(np.float64)
        if self.task == "regression":
            if self.sizes:
                values = np.clip(values, 0.0, 1.0) * (np.array(self.sizes) - 1.0)
            return values if self.picked is None else values[:, [self.picked]]
        if self.task == "multilabel":
            return sigmoid(values)
        if self.task == "ordinal":
            return grade_probabilities(sigmoid(values))
        if not self.sizes:
            return softmax(values)
        logits = values.reshape(len(values), max(self.sizes), len(self.sizes))  # ml_filter: classes, then targets
        targets = range(len(self.sizes)) if self.picked is None else [self.picked]
        probs = [softmax(logits[:, : self.sizes[k], k]) for k in targets]
        if len(probs) == 1:
            return probs[0]
        return cast("Array", np.stack([prob @ np.arange(prob.shape[1], dtype=np.float64) for prob in probs], axis=1))

    def predictions(self, values: Array) -> list[Said]:
        """Return the prediction for each text from the result of `outcomes`."""
        if not self.targets or self.picked is not None:
            return predictions_of(self, values)
        flat, width = shortest_float32(values.reshape(-1)), len(self.targets)
        rows = [flat[i : i + width] for i in range(0, len(flat), width)]
        return [Said(row[0], None, dict(zip(self.targets, row, strict=True))) for row in rows]


def softmax(values: Array) -> Array:
    """Return probabilities; each row adds up to 1."""
    result = np.exp(values - values.max(axis=1, keepdims=True))
    return cast("Array", result / result.sum(axis=1, keepdims=True))
