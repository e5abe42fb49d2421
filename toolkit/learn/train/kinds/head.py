"""Heads over embeddings: a linear layer, or two with ReLU between them; the same bytes whenever they are trained again.

Source: FineWeb-Edu (arXiv:2406.17557) trains a linear layer over a frozen encoder, JQL (arXiv:2505.22232) one of 1,000
numbers with ReLU and a linear one over it, both with AdamW.

Training of a head by AdamW in small steps; float32, in an order that the seed decides, with one thread.

Source: Loshchilov and Hutter 2019, arXiv:1711.05101. Inputs are trained on with mean 0 and variance 1, numbers that
are predicted too; both are then put into the weights, so that the model takes vectors as they are.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.data.schema import is_number
from toolkit.errors import ConfigError, DataError
from toolkit.exchange.checksummed import read_sealed, write_sealed
from toolkit.execution.executors import Report, Task
from toolkit.learn.train.examples import SPLITS, TRAIN, VALID, Example
from toolkit.learn.train.trainer import Fitted, Gatherer, Positive, Trainer, TrainingInput
from toolkit.storage.paths import join
from toolkit.text.encoders import heads
from toolkit.text.encoders.heads import Layer
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import Predicts, outcomes
from toolkit.whole_corpus.kind import Files, Query, Signer, TextBlock

BETAS = 0.9, 0.999
EPSILON = 1e-8
ROWS = 1024
"""Rows that are looked at together where the loss on valid is computed."""


class TrainingSteps(NamedTuple):
    """How a head is trained: see the options of `toolkit.learn.train.kinds.head.Head`."""

    seed: str
    hidden: int
    epochs: int
    patience: int
    batch: int
    lr: float
    weight_decay: float


class Problem(msgspec.Struct):
    """The learnt parameters.

    Attributes:
        vectors: float32 (examples, inputs).
        targets: float64 (examples, outputs).
        weights: float64 (examples, outputs), what each counts.
        train, valid: bool (examples).
        logistic: True for targets of 0 and 1 and the logistic loss; else it is half the squared error.
    """

    vectors: Array
    targets: Array
    weights: Array
    train: Array
    valid: Array
    logistic: bool


class TrainedLayers(msgspec.Struct):
    """The layers, for vectors as they are; the epoch after which they were best, from 1; the loss on valid then."""

    layers: list[Layer]
    epoch: int
    loss: float


def solve(problem: Problem, steps: TrainingSteps) -> TrainedLayers:
    """Return the solution; the same bytes for the same examples.

    Raises:
        DataError: if the loss is no number any more.
    """
    scales = _Scales.of(problem)
    train, valid = np.flatnonzero(problem.train), np.flatnonzero(problem.valid)
    seed = int.from_bytes(hashlib.sha256(steps.seed.encode()).digest()[:8], "little")
    chance = np.random.Generator(np.random.PCG64(seed))
    network = _Network(problem.vectors.shape[1], problem.targets.shape[1], steps, chance)
    best: tuple[float, int, list[Array]] | None = None
    for epoch in range(1, steps.epochs + 1):
        order = train[chance.permutation(len(train))]
        for first in range(0, len(order), steps.batch):
            rows = order[first : first + steps.batch]
            network.step(*scales.of_rows(problem, rows), logistic=problem.logistic)
        lost, weight = 0.0, 0.0
        for first in range(0, len(valid), ROWS):
            inputs, targets, weights = scales.of_rows(problem, valid[first : first + ROWS], train=False)
            lost += network.loss(inputs, targets, weights, logistic=problem.logistic)
            weight += float(weights.sum(dtype=np.float64))
        loss = lost / max(weight, 1e-12)
        if not np.isfinite(loss):
            raise DataError(f"expected a loss on valid that is a number, got {loss} after epoch {epoch}; lower `lr`")
        if best is None or loss < best[0]:
            best = loss, epoch, [array.copy() for array in network.arrays]
        elif epoch - best[1] >= steps.patience:
            break
    assert best
    return TrainedLayers(scales.unscaled(best[2]), best[1], best[0])


class _Scales(NamedTuple):
    """Mean and deviation of inputs and targets in train; float64."""

    mean: Array
    deviation: Array
    target_mean: Array
    target_deviation: Array

    @classmethod
    def of(cls, problem: Problem) -> "_Scales":
        rows = np.flatnonzero(problem.train)
        total, squares = np.zeros(problem.vectors.shape[1]), np.zeros(problem.vectors.shape[1])
        for first in range(0, len(rows), ROWS):
            some = problem.vectors[rows[first : first + ROWS]].astype(np.float64)
            total += some.sum(axis=0)
            squares += (some * some).sum(axis=0)
        mean = total / len(rows)
        deviation = np.sqrt(np.maximum(squares / len(rows) - mean * mean, 0))
        deviation[deviation < 1e-6 * np.abs(mean) + 1e-12] = 1.0  # what does not vary says nothing
        targets = problem.targets[rows]
        if problem.logistic:
            return cls(mean, deviation, np.zeros(targets.shape[1]), np.ones(targets.shape[1]))
        return cls(mean, deviation, targets.mean(axis=0), np.maximum(targets.std(axis=0), 1e-12))

    def of_rows(self, problem: Problem, rows: Array, *, train: bool = True) -> tuple[Array, Array, Array]:
        """Return inputs, targets and weights of some rows; out of train all count alike. Float32."""
        inputs = (problem.vectors[rows] - self.mean) / self.deviation
        targets = (problem.targets[rows] - self.target_mean) / self.target_deviation
        weights = problem.weights[rows] if train else np.ones_like(targets)
        return inputs.astype(np.float32), targets.astype(np.float32), weights.astype(np.float32)

    def unscaled(self, arrays: Sequence[Array]) -> list[Layer]:
        """Return the layers for vectors and targets as they are."""
        weights, biases = ([array.astype(np.float64) for array in arrays[i::2]] for i in (0, 1))
        weights[0] = weights[0] / self.deviation[:, None]
        biases[0] = biases[0] - (self.mean[:, None] * weights[0]).sum(axis=0)
        weights[-1] = weights[-1] * self.target_deviation
        biases[-1] = biases[-1] * self.target_deviation + self.target_mean
        return [Layer(w.astype(np.float32), b.astype(np.float32)) for w, b in zip(weights, biases, strict=True)]


class _Network:
    """One or two layers, and the state of AdamW.

    Attributes:
        arrays: weights (inputs, outputs) and bias of each layer in turn; float32.
    """

    def __init__(self, inputs: int, outputs: int, steps: TrainingSteps, chance: np.random.Generator) -> None:
        self._steps, self._number = steps, 0
        sizes = [inputs, *([steps.hidden] if steps.hidden else []), outputs]
        self.arrays: list[Array] = []
        for i, (one, other) in enumerate(pairwise(sizes)):
            bound = 1 / np.sqrt(one) if i + 2 < len(sizes) else 0.0  # the last layer says nothing at first
            self.arrays.append(chance.uniform(-bound, bound, (one, other)).astype(np.float32))
            self.arrays.append(np.zeros(other, np.float32))
        self._means = [np.zeros_like(array) for array in self.arrays]
        self._squares = [np.zeros_like(array) for array in self.arrays]

    def _hidden(self, inputs: Array) -> Array:
        result: Array = np.maximum(inputs @ self.arrays[0] + self.arrays[1], np.float32(0))
        return result

    def loss(self, inputs: Array, targets: Array, weights: Array, *, logistic: bool) -> float:
        """Return the sum of the losses of some rows."""
        rows = self._hidden(inputs) if self._steps.hidden else inputs
        outputs = (rows @ self.arrays[-2] + self.arrays[-1]).astype(np.float64)
        lost = np.logaddexp(0.0, outputs) - targets * outputs if logistic else (outputs - targets) ** 2 / 2
        return float((weights * lost).sum())

    def step(self, inputs: Array, targets: Array, weights: Array, *, logistic: bool) -> None:
        """Change the arrays by the gradient of the mean loss."""
        rows = self._hidden(inputs) if self._steps.hidden else inputs
        outputs = rows @ self.arrays[-2] + self.arrays[-1]
        predictions = 1 / (1 + np.exp(-np.clip(outputs, -80, 80))) if logistic else outputs
        error = (weights * (predictions - targets) / np.float32(len(inputs))).astype(np.float32)
        gradients = [rows.T @ error, error.sum(axis=0)]
        if self._steps.hidden:
            inner = (error @ self.arrays[2].T) * (rows > 0)
            gradients = [inputs.T @ inner, inner.sum(axis=0), *gradients]
        self._number += 1
        first, second = (1 - beta**self._number for beta in BETAS)
        for i, gradient in enumerate(gradients):
            self._means[i] += np.float32(1 - BETAS[0]) * (gradient - self._means[i])
            self._squares[i] += np.float32(1 - BETAS[1]) * (gradient * gradient - self._squares[i])
            size = np.sqrt(self._squares[i] / np.float32(second)) + np.float32(EPSILON)
            step = self._means[i] / np.float32(first) / size
            if not i % 2:  # weights; biases do not shrink
                step += np.float32(self._steps.weight_decay) * self.arrays[i]
            self.arrays[i] -= np.float32(self._steps.lr) * step


VECTORS, TARGETS, MODEL = "vectors.bin", "targets.bin", "head.bin"
"""The vectors of the documents of a shard, float32, behind their length; the targets of all, float64; the model."""
_LENGTH = 8
"""Bytes that the length of vectors takes."""

EMBEDDINGS = "embeddings"

Number = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class Head(Trainer, kw_only=True):
    """Options of heads over embeddings.

    Attributes:
        embeddings: SET.KEY: the vectors, such as embed-0.embedding; documents without are left out
        hidden: the width of the layer in between; 0 for one linear layer
        epochs: the largest number of passes over the examples
        patience: training ends after this number of passes without a smaller loss on valid; the best weights stay
        batch: the number of examples of a step
        lr: the size of a step (AdamW)
        weight_decay: amount by which weights shrink in a step, times `lr`
    """

    embeddings: str
    hidden: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    epochs: Number = 200
    patience: Number = 10
    batch: Number = 64
    lr: Positive = 0.0003
    weight_decay: Annotated[float, msgspec.Meta(ge=0)] = 0.1

    @property
    def file(self) -> str:
        """Return the name of the model's file."""
        return "model.safetensors"

    def check(self) -> None:
        super().check()
        if self.window is not None:
            raise ConfigError("window: expected none, because a head reads no text; set it in the tagger `embedding`")
        if self.split is None and not self.shares[1]:
            raise ConfigError("splits: expected a share for valid, got none: the loss on valid says when training ends")

    def queries(self) -> dict[str, Query]:
        """Return the expressions of the options."""
        return super().queries() | {EMBEDDINGS: Query(self.embeddings, "value")}

    def examples(self, block: TextBlock) -> tuple[list[Example | None], Counter[str]]:
        """Return the examples; those without an embedding are left out.

        Raises:
            DataError: as those of all kinds; and for embeddings that are none.
        """
        results, counts = super().examples(block)
        for i, (example, vector) in enumerate(zip(results, block.values[EMBEDDINGS], strict=True)):
            if example and vector is None:
                results[i] = None
                counts["without an embedding"] += 1
            elif example and not (isinstance(vector, list) and vector and all(map(is_number, vector))):
                message = f"{EMBEDDINGS}: expected a list of numbers, or null, got {str(vector)[:60]}"
                raise DataError(message, line=block.first + i + 1, id=block.documents[i].id)
        return results, counts

    def signer(self, files: Files) -> Signer:
        """Return the writer of the vectors of a shard."""
        return _Vectors(self, files)

    def fit(self, work: TrainingInput) -> Fitted:
        """Train in a task of its own; the loss on valid says when it is enough."""
        examples = work.examples
        if not examples.of_split(VALID).any():
            raise DataError("expected labelled documents in valid, got none: the loss on valid says when training ends")
        about = Predicts(task=self.task, labels=examples.names, range=examples.range or msgspec.UNSET)
        targets, weights = examples.targets(), self.weights_of(examples)
        write_sealed(join(work.folder, TARGETS), np.stack([targets, weights]).tobytes())
        payload = HeadFitTask(
            shards=work.shards,
            folder=work.folder,
            about=about,
            splits=examples.splits.tobytes(),
            steps=TrainingSteps(
                str(self.seed), self.hidden, self.epochs, self.patience, self.batch, self.lr, self.weight_decay
            ),
        )
        (chosen,) = work.run(f"fitting {work.name}", fit_head, [Task(f"{work.name}: head", payload, key="head")])
        data = read_sealed(join(work.folder, MODEL))
        size = int.from_bytes(data[:8], "little")
        sums = np.frombuffer(data[8 + size :]).reshape(len(targets), about.outputs)
        return Fitted(data[8 : 8 + size], outcomes(about, sums), chosen)


class _Vectors(Gatherer):
    """Writes the vectors of a shard's documents."""

    kind: Head

    def __init__(self, kind: Head, files: Files) -> None:
        super().__init__(kind, files)
        self._vectors = files.open(VECTORS)
        self._length = 0

    def take_documents(self, block: TextBlock, used: Sequence[tuple[int, Example]]) -> None:
        """Write the vectors of some documents.

        Raises:
            DataError: if one has another length than the others of the shard.
        """
        vectors = [block.values[EMBEDDINGS][i] for i, _ in used]
        if not self._length:
            self._length = len(vectors[0])
            self._vectors.write(self._length.to_bytes(_LENGTH, "little"))
        for (i, _), vector in zip(used, vectors, strict=True):
            if len(vector) != self._length:
                message = f"{EMBEDDINGS}: expected {self._length:,} numbers, as before, got {len(vector):,}"
                raise DataError(message, line=block.first + i + 1, id=block.documents[i].id)
        self._vectors.write(np.array(vectors, "<f4").tobytes())


# --- the task ---------------------------------------------------------------------------------------------------------


class HeadFitTask(ConfigStruct):
    """A head to train.

    Attributes:
        shards: the folders of what was gathered.
        folder: Folder of the targets, and for the model.
        about: Description of the predictions.
        splits: uint8, of each example.
        steps: see `toolkit.learn.train.kinds.head.TrainingSteps`.
    """

    shards: list[str]
    folder: str
    about: Predicts
    splits: bytes
    steps: TrainingSteps


def fit_head(work: HeadFitTask, report: Report) -> dict[str, Any]:
    """Write the model and its outputs for all examples; return the epoch that was chosen, and its loss on valid."""
    splits = np.frombuffer(work.splits, np.uint8)
    vectors = _vectors(work.shards, len(splits))
    targets, weights = np.frombuffer(read_sealed(join(work.folder, TARGETS))).reshape(2, len(splits), -1)
    train, valid = (splits == SPLITS.index(name) for name in (TRAIN, VALID))
    problem = Problem(vectors, targets, weights, train, valid, work.about.task != "regression")
    solution = solve(problem, work.steps)
    head = heads.LoadedHead(work.about, solution.layers)
    sums = np.array([head.outputs(vector) for vector in vectors], np.float64)
    model = heads.packed(work.about, solution.layers)
    write_sealed(join(work.folder, MODEL), len(model).to_bytes(8, "little") + model + sums.tobytes())
    report(len(vectors), vectors.nbytes)
    return {"epoch": solution.epoch, "loss": round(solution.loss, 6)}


def _vectors(shards: Sequence[str], count: int) -> Array:
    """Return the vectors of all shards; float32 (examples, numbers).

    Raises:
        DataError: if they are not of one length.
    """
    result, at = np.empty((0, 0), np.float32), 0
    for shard in shards:
        if data := read_sealed(join(shard, VECTORS)):
            length = int.from_bytes(data[:_LENGTH], "little")
            result = result if result.size else np.empty((count, length), np.float32)
            if length != result.shape[1]:
                raise DataError(
                    f"{EMBEDDINGS}: expected {result.shape[1]:,} numbers in all shards, got {length:,} in one; are "
                    "they of one model?"
                )
            rows = np.frombuffer(data, "<f4", offset=_LENGTH).reshape(-1, length)
            result[at : at + len(rows)] = rows
            at += len(rows)
    if not np.isfinite(result).all():
        raise DataError(f"{EMBEDDINGS}: expected finite numbers of float32, got NaN or infinite ones")
    return result
