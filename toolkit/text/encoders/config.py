"""What the ``config.json`` of a model's folder says: its form, what its numbers mean, and how long texts may be.

Read are the configurations of `transformers`, those that ml_filter's `AnnotatorModel` writes, and ours, which are the
first with one key more, ``toolkit`` (`Trained`).
"""

import os

import msgspec

from toolkit.errors import ConfigError, MissingModel
from toolkit.storage import store_of
from toolkit.text.linear.model import Task, grades_of
from toolkit.text.linear.windows import Window

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
    """What ``toolkit train`` writes into ``config.json`` of a model, under ``toolkit``.

    Attributes:
        task: what is predicted.
        labels: classes or labels, sorted; grades, rising; nothing for a regression.
        max_tokens: that it saw of a text, or of a piece of it.
        window: that it was trained with.
    """

    task: Task
    labels: list[str] = []
    max_tokens: int
    window: Window | None = None


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of ``config.json``; the names are those of `transformers` and ml_filter."""

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

    def tokens(self, wanted: int | None) -> int:
        """Return the number of tokens that a text is cut to.

        Raises:
            ConfigError: if more are wanted than the model takes.
        """
        most = self.most_tokens
        if wanted is not None and most is not None and wanted > most:
            raise ConfigError(f"max_tokens: expected at most the {most:,} that the model takes, got {wanted:,}")
        trained = self.toolkit.max_tokens if self.toolkit else USUAL_TOKENS
        return wanted or min(trained, most or trained)


def check_folder(folder: str, *files: str) -> None:
    """Check that a folder is here, and has files.

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
    """Return what a ``config.json`` says.

    Raises:
        ConfigError: if it is none, or that of a model whose code is not in `transformers`.
    """
    try:
        with open(path, "rb") as stream:
            found = msgspec.json.decode(stream.read(), type=ModelConfig)
        if found.toolkit:
            _check(found.toolkit)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, ConfigError) as error:
        raise ConfigError(f"{path}: expected the configuration of a model, got: {error}") from None
    if found.auto_map:
        raise ConfigError(
            f"{path}: expected a model whose code is in transformers, got one with code of its own (auto_map), which "
            "is not run; export it to ONNX for `onnx_classifier`, or take another model"
        )
    return found


def _check(trained: Trained) -> None:
    if (trained.task == "regression") != (not trained.labels) or len({*trained.labels}) != len(trained.labels):
        raise ConfigError(f"labels: expected different labels for {trained.task}, got {trained.labels[:5]}")
    if trained.task == "ordinal":
        grades_of(trained.labels)
    if trained.window:
        trained.window.check()
