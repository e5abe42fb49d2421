"""The contract of a kind of model: its options, what is kept of each document, and how it is trained."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from toolkit.config.scale import Scale, ScaleOption, check as check_scale
from toolkit.errors import ConfigError, DataError
from toolkit.execution.executors import Report, Task
from toolkit.learn.train import examples as example_sets
from toolkit.plugins import Kind as KindOfPlugin
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import Task as WhatFor, WindowOption
from toolkit.whole_corpus.kind import Files, Kind, Query, Signer, TextBlock
from toolkit.whole_corpus.kinds.sample import split_of

Split = Literal["train", "valid", "test"]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class Trainer(Kind, kw_only=True):
    """Options of all kinds of models.

    Attributes:
        labels: SET.KEY.field or an expression; or a list of such, each an annotation of its own
        task: the prediction: a number, a class, labels, or a grade
        aggregate: the way in which several annotations are combined: mean, median or majority; by default the mean of
            numbers, the median of grades, the majority of classes and labels
        weights: the weight of each of several `labels`
        split: an expression that gives train, valid or test, for example of a sample; other documents are left out
        splits: the shares of the splits, which add up to 1; a hash divides the documents, if there is no `split`
        split_by: an expression: documents with the same value are in the same split; null, and the default, is source
            and id
        seed: another seed makes other splits
        window: the part of the text that the model sees: {lead: N} code points, or {pieces: [begin, middle, end],
            characters: N, aggregate: mean | max | min}, each by itself; null: all of it
        balance: all classes, labels or grades count alike, however many documents they have
        minimum: number of labelled documents that train needs; for classes, labels and grades, of each
        path: the folder of the model; default: models/NAME beside the attributes
        licence: the licence of the model, for its card
    """

    SECTION: ClassVar[str] = "train"
    NEUTRAL: ClassVar[frozenset[str]] = frozenset({"path"})
    PACKAGES: ClassVar[Sequence[str]] = ("numpy",)
    """Distributions whose versions the card names."""
    TASKS: ClassVar[Sequence[WhatFor]] = ("regression", "classes", "multilabel", "ordinal")

    labels: str | list[str]
    task: WhatFor
    aggregate: example_sets.Aggregate | None = None
    scale: ScaleOption = None
    weights: list[Positive] = []
    split: str | None = None
    splits: dict[Split, float] = msgspec.field(default_factory=lambda: {"train": 0.8, "valid": 0.1, "test": 0.1})
    split_by: str | None = None
    seed: str | int = ""
    window: WindowOption = None
    balance: bool = False
    minimum: Annotated[int, msgspec.Meta(ge=1)] = 10
    path: str | None = None
    licence: str | None = None

    def check(self) -> None:
        """Raise ConfigError for conflicting options."""
        if self.task not in self.TASKS:
            raise ConfigError(f"task: expected one of {', '.join(self.TASKS)}, got {self.task}")
        if not self.expressions:
            raise ConfigError("labels: expected an expression, got none")
        if self.weights and len(self.weights) != len(self.expressions):
            raise ConfigError(f"weights: expected {len(self.expressions)}, one of each label, got {len(self.weights)}")
        example_sets.check_aggregate(self.task, self.aggregate)
        check_scale(self.scale, self.task if self.task in ("regression", "ordinal") else "")
        if abs(sum(self.splits.values()) - 1) > 1e-9 or any(share < 0 for share in self.splits.values()):
            raise ConfigError(f"splits: expected shares that add up to 1, got {sum(self.splits.values()):g}")
        if not self.shares[0]:
            raise ConfigError("splits: expected a share of train above 0, got none")
        if self.split is not None and self.split_by is not None:
            raise ConfigError("expected `split` or `split_by`, got both")
        if self.window is not None:
            self.window.check()
        if self.balance and self.task == "regression":
            raise ConfigError("balance: expected classes, labels or grades, got a regression")

    @property
    def file(self) -> str:
        """Return the name of the model's file in its folder."""
        raise NotImplementedError

    @property
    def expressions(self) -> list[str]:
        """Return the expressions of `labels`."""
        return [self.labels] if isinstance(self.labels, str) else self.labels

    def label_expressions(self) -> list[str]:
        """Return the expressions of `labels`."""
        return self.expressions

    @property
    def _labels(self) -> list[str]:
        """Return the names of the expressions of `labels`."""
        return ["labels"] if isinstance(self.labels, str) else [f"labels[{i}]" for i in range(len(self.labels))]

    @property
    def shares(self) -> list[float]:
        """Return the share of each split, in the order of `SPLITS`."""
        shares: dict[str, float] = {str(name): share for name, share in self.splits.items()}
        return [shares.get(name, 0.0) for name in example_sets.SPLITS]

    def queries(self) -> dict[str, Query]:
        """Return the expressions of the options."""
        results = {name: Query(text, "value") for name, text in zip(self._labels, self.expressions, strict=True)}
        for name in ("split", "split_by"):
            if (text := getattr(self, name)) is not None:
                results[name] = Query(text, "value")
        return results

    def value_type(self) -> Any:
        """Return a type without values: what is made is a model."""
        return bool

    def examples(self, block: TextBlock) -> tuple[list[example_sets.Example | None], Counter[str]]:
        """Return the examples of documents: their labels and splits, None of what is not used; and why not.

        Raises:
            DataError: naming the line of a label that is not of the task.
        """
        results: list[example_sets.Example | None] = []
        reasons = Counter[str]()
        bounds = np.cumsum(self.shares)
        for i, document in enumerate(block.documents):
            results.append(None)
            if not block.competes[i]:
                reasons["not asked (when)"] += 1
                continue
            values = [block.values[name][i] for name in self._labels]
            try:
                label = example_sets.label_of(self.task, values, self.weights, self.aggregate)
                if isinstance(self.scale, Scale):
                    example_sets.check_on_scale(self.task, label, self.scale)
                number = self._split(block, i, (document.source, document.id), bounds)
            except DataError as error:
                error.line, error.id = block.first + i + 1, document.id
                raise
            if label is None:
                reasons["without a label"] += 1
            elif number is None:
                reasons["in no split"] += 1
            else:
                results[-1] = example_sets.Example(label, number)
        return results, reasons

    def _split(self, block: TextBlock, i: int, name: tuple[str, str], bounds: Array) -> int | None:
        if self.split is None:
            value = block.values["split_by"][i] if self.split_by is not None else None
            return split_of(str(self.seed), name if value is None else value, bounds)
        value = block.values["split"][i]
        if value is not None and value not in example_sets.SPLITS:
            raise DataError(f"split: expected train, valid, test or null, got {value!r}")
        return None if value is None else example_sets.SPLITS.index(value)

    def weights_of(self, examples: example_sets.Examples) -> Array:
        """Return the weight of each document for each target: nothing out of train; if balanced, both sides the same.

        Returns:
            float64, in the shape of `Examples.targets`.
        """
        targets, train = examples.targets(), examples.of_split(example_sets.TRAIN)
        result = np.repeat(train.astype(np.float64)[:, None], targets.shape[1], axis=1)
        if self.balance:
            for k in range(targets.shape[1]):
                ones = targets[:, k] > 0.5
                for side in (ones, ~ones):
                    result[side, k] *= train.sum() / (2 * max(1, (side & train).sum()))
        return result

    def signer(self, files: Files) -> Signer:
        """Return the writer of the examples of a shard: a `Gatherer`."""
        raise NotImplementedError

    def fit(self, work: "TrainingInput") -> "Fitted":
        """Train; the same bytes for the same examples, or the docs say so."""
        raise NotImplementedError


TRAINERS: KindOfPlugin[Trainer] = KindOfPlugin("kind of model", "toolkit.learn.train.kinds", "toolkit.train", Trainer)


class Gatherer(Signer):
    """Writes the examples of a shard: a kind extends it by `take`, or by `take_documents` if it needs no texts."""

    kind: Trainer

    def __init__(self, kind: Trainer, files: Files) -> None:
        super().__init__(kind, files)
        self.counts: Counter[str] = Counter()
        self._examples = files.open(example_sets.EXAMPLES)

    def add(self, block: TextBlock) -> None:
        """Take the next documents."""
        results, reasons = self.kind.examples(block)
        self.counts += reasons
        used = [(i, example) for i, example in enumerate(results) if example]
        if used:
            self.take_documents(block, used)
            self._examples.write(b"".join(msgspec.json.encode(example) + b"\n" for _, example in used))

    def take_documents(self, block: TextBlock, used: Sequence[tuple[int, example_sets.Example]]) -> None:
        """Write the data of some documents of a block: by default, of the pieces of their texts."""
        texts: list[str] = []
        for i, example in used:
            text = block.documents[i].text
            pieces = self.kind.window.of(text) if self.kind.window else [text]
            example.pieces = len(pieces)
            texts += pieces
        self.take(texts)

    def take(self, texts: list[str]) -> None:
        """Write the data of texts."""
        raise NotImplementedError

    def finish(self) -> tuple[dict[str, int], Any]:
        """Return the number of left-out documents, by reason; and nothing."""
        return dict(self.counts), None


class TrainingInput(msgspec.Struct):
    """The input of a training.

    Attributes:
        shards: the folders of what was gathered, in order.
        examples: Examples of all shards, in order.
        folder: Folder of intermediate files; it is deleted.
        name: Name of the model.
        run: runs tasks on the executor, as that of `toolkit.whole_corpus.kind.ResolveJob`.
    """

    shards: list[str]
    examples: example_sets.Examples
    folder: str
    name: str
    run: Callable[[str, Callable[[Any, Report], Any], list[Task[Any]]], list[Any]]


class Fitted(msgspec.Struct):
    """A model.

    Attributes:
        model: the content of its file.
        values: Values of each document, in order, what the model says of it: float64 (documents, outcomes), see
            `toolkit.text.linear.model.outcomes`; NaN in those of train, if it was not asked.
        chosen: settings that were chosen by valid.
        beside: other files of the model, by their names.
    """

    model: bytes
    values: Array
    chosen: dict[str, Any]
    beside: dict[str, bytes] = {}
