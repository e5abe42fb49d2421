"""What the numbers mean that a classifier computes of a text, by its configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from toolkit.errors import ConfigError, did_you_mean
from toolkit.text.encoders.config import ModelConfig
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import Said, Task, grade_probabilities, said, sigmoid
from toolkit.text.portable_floats import shortest_float32


@dataclass(frozen=True)
class Outputs:
    """The numbers that a classifier computes of a text.

    Attributes:
        task: what they are for.
        labels: of the task's probabilities; nothing for a regression.
        targets: names of what is predicted side by side; nothing if it is one thing.
        sizes: of ml_filter's heads, how many classes each target has, or had before they became numbers.
        picked: of the targets, which one is told.
    """

    task: Task
    labels: Sequence[str] = ()
    targets: Sequence[str] = ()
    sizes: Sequence[int] = ()
    picked: int | None = None

    @classmethod
    def of(cls, config: ModelConfig, targets: Sequence[str] | None = None, target: str | None = None) -> Self:
        """Return what a configuration says.

        Args:
            config: of the model.
            targets: names of ml_filter's targets, whose configuration has none.
            target: the one that is told; None for all of them.

        Raises:
            ConfigError: if it does not say it, or names do not go with it.
        """
        found = cls._annotator(config, targets) if config.is_annotator else cls._usual(config)
        if targets and not config.is_annotator:
            raise ConfigError("targets: expected it only for a model of ml_filter; this one names its labels itself")
        if target is None:
            return found
        if target not in found.targets:
            hint = did_you_mean(target, found.targets)
            raise ConfigError(f"target: expected one of {', '.join(found.targets) or 'none'}, got {target!r}{hint}")
        picked = list(found.targets).index(target)
        labels = [str(i) for i in range(found.sizes[picked])] if found.task == "classes" else []
        return cls(found.task, labels, found.targets, found.sizes, picked)

    @classmethod
    def _usual(cls, config: ModelConfig) -> Self:
        if config.toolkit:
            return cls(config.toolkit.task, config.toolkit.labels)
        given = config.id2label if config.id2label is not None else {"0": "LABEL_0", "1": "LABEL_1"}
        labels = [given.get(str(i), "") for i in range(len(given))]
        if not all(labels) or len({*labels}) != len(labels):
            raise ConfigError(f"id2label: expected different labels of 0 to {len(given) - 1}, got {given}")
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
        """Return the number of each target that is told, or the probability of each label.

        Args:
            computed: float (texts, `width`).

        Returns:
            float64 (texts, outcomes).
        """
        import numpy as np

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
        told = range(len(self.sizes)) if self.picked is None else [self.picked]
        probs = [softmax(logits[:, : self.sizes[k], k]) for k in told]
        if len(probs) == 1:
            return probs[0]
        means: Array = np.stack([each @ np.arange(each.shape[1], dtype=np.float64) for each in probs], axis=1)
        return means

    def said(self, values: Array) -> list[Said]:
        """Return what is said of each text, of what `outcomes` gives."""
        if not self.targets or self.picked is not None:
            return said(self, values)
        flat, width = shortest_float32(values.reshape(-1)), len(self.targets)
        rows = [flat[i : i + width] for i in range(0, len(flat), width)]
        return [Said(row[0], None, dict(zip(self.targets, row, strict=True))) for row in rows]


def softmax(values: Array) -> Array:
    """Return probabilities that add up to 1 in each row."""
    import numpy as np

    found = np.exp(values - values.max(axis=1, keepdims=True))
    total: Array = found / found.sum(axis=1, keepdims=True)
    return total
