"""Fine-tuned encoders: a model of a folder with a head for the task, trained by PyTorch (extra ``torch``).

Source: FineWeb-Edu's classifier (Penedo et al. 2024, arXiv:2406.17557), which trains the head of an encoder that stays
as it is; ml_filter's training of annotators, which trains both. AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101.
Bytes are not promised: sums depend on the device, the number of threads and the versions.
"""

import math
import os
import random
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError, ToolkitError, errors_from
from toolkit.exchange.checksummed import read_sealed, write_sealed
from toolkit.execution.executors import Report, Task
from toolkit.learn.train.examples import MAIN, TRAIN, VALID, Examples, on_valid
from toolkit.learn.train.trainer import Fitted, Gatherer, Positive, Trainer, TrainingInput
from toolkit.storage.models import digest_of_file
from toolkit.storage.paths import join
from toolkit.storage.stores.local.scratch import scratch
from toolkit.text.encoders.config import CONFIG, TOKENIZER, Outputs, Trained, check_folder, read_config
from toolkit.text.encoders.tokens import Batches, BatchOption, Device, TokenCutter, filled_up
from toolkit.text.encoders.torch_models import WEIGHTS, cause_of, device_of, imported
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.kind import Files, Signer

Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Encoder(Trainer, kw_only=True):
    """Fine-tuned encoders.

    Attributes:
        base: the folder of an encoder: config.json, model.safetensors, tokenizer.json
        max_tokens: tokens of a text, or of a piece of it, that the model sees; null: 512, or the most that it takes
        freeze: the encoder stays as it is, and its head alone learns
        epochs: the largest number of passes over the texts
        lr: learning rate; null: 5e-5, or 3e-4 with `freeze`
        weight_decay: the weight decay of AdamW
        schedule: the form in which the learning rate falls to 0
        warmup: the share of all steps in which it rises at first
        dropout: the dropout of layers and head; null: that of the encoder
        patience: training stops after this number of epochs without a better result on valid
        min_delta: the least improvement of a result on valid that counts
        threads: threads of the processor that compute
    """

    PACKAGES: ClassVar[Sequence[str]] = ("numpy", "safetensors", "tokenizers", "torch", "transformers")
    NEUTRAL: ClassVar[frozenset[str]] = Trainer.NEUTRAL | {"base", "device", "threads"}

    base: str
    max_tokens: Count | None = None
    freeze: bool = False
    epochs: Count = 3
    batch: BatchOption = Batches(documents=32)
    lr: Positive | None = None
    weight_decay: Annotated[float, msgspec.Meta(ge=0)] = 0.01
    schedule: Literal["cosine", "linear"] = "cosine"
    warmup: Share = 0.1
    dropout: Share | None = None
    patience: Count = 5
    min_delta: Annotated[float, msgspec.Meta(ge=0)] = 0.001
    device: Device = "auto"
    threads: Count = 1

    @property
    def file(self) -> str:
        """Return the name of the file with the weights."""
        return WEIGHTS

    @property
    def rate(self) -> float:
        """Return the learning rate."""
        return self.lr or (3e-4 if self.freeze else 5e-5)

    def check(self) -> None:
        super().check()
        with errors_from("base", keeps=True):
            check_folder(self.base, CONFIG, TOKENIZER, WEIGHTS)
            self.tokens()
        device_of(self.device)

    def facts(self) -> dict[str, Any]:
        """Return digests of the encoder's input files."""
        return {"base": {name: digest_of_file(os.path.join(self.base, name)) for name in (CONFIG, TOKENIZER, WEIGHTS)}}

    def tokens(self) -> TokenCutter:
        """Return the tokenizer."""
        return TokenCutter(self.base, self.most, read_config(os.path.join(self.base, CONFIG)))

    @property
    def most(self) -> int:
        """Return the largest number of tokens of a text."""
        return read_config(os.path.join(self.base, CONFIG)).tokens(self.max_tokens)

    def signer(self, files: Files) -> Signer:
        """Return the writer of the tokens of a shard."""
        return _Cutting(self, files)

    def fit(self, work: TrainingInput) -> Fitted:
        """Train in one task on the executor's device."""
        examples = work.examples
        outputs = Outputs(self.task, examples.names)
        task = Task(
            f"{work.name}: {self.epochs} epochs",
            EncoderTrainTask(
                kind=msgspec.json.encode(self),
                shards=work.shards,
                folder=work.folder,
                examples=msgspec.json.encode([examples.labels, examples.splits.tolist(), examples.pieces.tolist()]),
                weights=self.weights_of(examples).tobytes(),
            ),
            processes=self.threads,
            key="0",
        )
        (result,) = work.run(f"training {work.name}", train_encoder, [task])
        computed = np.frombuffer(result.values, np.float32).reshape(-1, outputs.width)
        values = np.full((len(computed), len(examples.names) or 1), np.nan)
        evaluated = ~np.isnan(computed).any(axis=1)
        values[evaluated] = outputs.outcomes(computed[evaluated])
        values = self.window.together(values, examples.rows_of) if self.window else values
        files = {name: read_sealed(join(work.folder, name)) for name in result.files}
        return Fitted(files.pop(WEIGHTS), values, result.chosen, files)


class _Cutting(Gatherer):
    """Writes the tokens of a shard's rows."""

    kind: Encoder

    def __init__(self, kind: Encoder, files: Files) -> None:
        super().__init__(kind, files)
        self._tokens = kind.tokens()
        self._numbers, self._rows = files.open(TOKENS), files.open(ROWS)

    def take(self, texts: list[str]) -> None:
        results = self._tokens.of(texts)
        numbers: Array = np.array([number for item in results for number in item], "<u4")
        self._numbers.write(numbers.tobytes())
        self._rows.write(np.array([*map(len, results)], "<u4").tobytes())


TOKENS, ROWS = "tokens.bin", "rows.bin"
"""Of a shard: the tokens of its rows, and how many each has; uint32."""

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")

_NEAR = 16
"""Batches that are drawn together, and divided by the lengths of their texts: less is filled up."""

_NORM = 1.0
"""Of the gradient, at most."""


class EncoderTrainTask(ConfigStruct):
    """A model to train.

    Attributes:
        kind: the options, as JSON.
        shards: the folders of what was gathered.
        folder: Folder for the files of the model.
        examples: labels, splits and rows of the documents, as JSON.
        weights: float64 (documents, targets), what each counts for each of `Examples.targets`.
    """

    kind: bytes
    shards: list[str]
    folder: str
    examples: bytes
    weights: bytes


class TrainedEncoder(ConfigStruct):
    """The result of a training.

    Attributes:
        files: Files of the model, by name, in the folder of the work.
        values: float32 (rows, numbers of the model), what it computes of valid and test; NaN in train.
        chosen: the epoch that was best on valid, and the measure of each.
    """

    files: list[str]
    values: bytes
    chosen: dict[str, Any]


def train_encoder(work: EncoderTrainTask, report: Report) -> TrainedEncoder:
    """Train; write the files of the best epoch."""
    kind = msgspec.json.decode(work.kind, type=Encoder)
    labels, splits, pieces = msgspec.json.decode(work.examples)
    examples = Examples(kind.task, labels, np.array(splits, np.uint8), np.array(pieces, np.int64))
    training = Training(kind, examples, _rows(work.shards), np.frombuffer(work.weights), report)
    torch, _ = imported()
    torch.set_num_threads(kind.threads)
    try:
        chosen = training.run()
        return TrainedEncoder(files=training.save(work.folder), values=training.values().tobytes(), chosen=chosen)
    finally:
        torch.set_num_threads(1)


def _rows(shards: Sequence[str]) -> list[Sequence[int]]:
    """Return the tokens of each row."""
    results: list[Any] = []
    for shard in shards:
        counts = np.frombuffer(read_sealed(join(shard, ROWS)), "<u4").astype(np.int64)
        parts = np.split(np.frombuffer(read_sealed(join(shard, TOKENS)), "<u4"), np.cumsum(counts))
        results += parts[:-1]  # the last one is what follows the last row: nothing, in a shard without rows, too
    return results


class Training:
    """A training.

    Args:
        kind: its options.
        examples: the documents.
        rows: tokens of each row of them.
        weights: Weights of `EncoderTrainTask`.
        report: is told of each document of each epoch.
    """

    def __init__(
        self, kind: Encoder, examples: Examples, rows: list[Sequence[int]], weights: Array, report: Report
    ) -> None:
        self._torch, self._transformers = imported()
        self._kind, self._examples, self._tokens, self._report = kind, examples, rows, report
        self._outputs = Outputs(kind.task, examples.names)
        self._document = np.repeat(np.arange(len(examples.pieces)), examples.pieces)
        self._learns = examples.of_split(TRAIN)[self._document]
        targets = examples.targets()
        share = (1.0 / examples.pieces)[self._document, None]
        self._weights = weights.reshape(targets.shape)[self._document] * share
        if kind.task == "classes":
            numbers = examples.numbers().astype(np.int64)[self._document]
            self._weights = self._weights[np.arange(len(numbers)), np.minimum(numbers, targets.shape[1] - 1)]
            self._targets: Array = numbers
        else:
            self._targets = targets[self._document].astype(np.float32)
        self._device = device_of(kind.device)
        self._chance = random.Random(f"{kind.seed}")  # noqa: S311  # drawn the same again
        self._torch.manual_seed(self._chance.getrandbits(63))
        self._model = self._new_model().to(self._device)
        self._pad = kind.tokens().pad

    # --- the model ----------------------------------------------------------------------------------------------------

    def _new_model(self) -> Any:
        """Return the encoder with a new head."""
        kind, width = self._kind, self._outputs.width
        labels = self._examples.names or ["score"]
        if kind.task == "ordinal":
            labels = [f"at least {grade}" for grade in labels[1:]]
        problem = {"regression": "regression", "classes": "single_label_classification"}
        try:
            config = self._transformers.AutoConfig.from_pretrained(kind.base, local_files_only=True, num_labels=width)
            config.id2label = dict(enumerate(labels))
            config.label2id = {label: i for i, label in enumerate(labels)}
            config.problem_type = problem.get(kind.task, "multi_label_classification")
            about = Trained(task=kind.task, labels=self._examples.names, max_tokens=kind.most, window=kind.window)
            config.toolkit = msgspec.to_builtins(about)
            if kind.dropout is not None:
                for name in ("hidden_dropout_prob", "classifier_dropout", "dropout", "mlp_dropout"):
                    if hasattr(config, name):
                        setattr(config, name, kind.dropout)
            model, result = self._transformers.AutoModelForSequenceClassification.from_pretrained(
                kind.base, config=config, local_files_only=True, use_safetensors=True, dtype=self._torch.float32,
                ignore_mismatched_sizes=True, output_loading_info=True,
            )  # fmt: skip
        except Exception as error:  # whatever its libraries raise
            cause = cause_of(error)
            raise ConfigError(
                f"base: {kind.base}: expected an encoder that transformers can load, got: {cause}"
            ) from error
        encoder = f"{model.base_model_prefix}."
        lost = [name for name in result["missing_keys"] if name.startswith(encoder) and "pooler" not in name]
        if lost:
            raise ConfigError(f"base: {kind.base}: expected the weights of an encoder, got none for {sorted(lost)[0]}")
        if kind.freeze:
            for name, weight in model.base_model.named_parameters():
                weight.requires_grad = "pooler" in name
        if kind.task == "regression":
            last = [module for module in model.modules() if getattr(module, "out_features", None) == width][-1]
            if last.bias is not None:  # it begins with the mean, which else would be learnt first
                last.bias.data.fill_(
                    float(np.average(self._targets[self._learns], weights=self._weights[self._learns]))
                )
        return model

    def save(self, folder: str) -> list[str]:
        """Write the files of the model to a folder of the work; return their names."""
        with scratch() as own:
            self._model.save_pretrained(own, max_shard_size="1000GB")
            paths = {name: os.path.join(own, name) for name in os.listdir(own)}
            base = {name: os.path.join(self._kind.base, name) for name in _TOKENIZER_FILES}
            paths |= {name: path for name, path in base.items() if os.path.isfile(path)}
            for name, path in paths.items():
                with open(path, "rb") as stream:
                    write_sealed(join(folder, name), stream.read())
        return sorted(paths)

    # --- epochs -------------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """Go through the epochs; the model is then that of the best one. Return how each did on valid."""
        learnt = np.flatnonzero(self._learns)
        steps = math.ceil(len(learnt) / self._kind.batch.documents) * self._kind.epochs
        optimizer, schedule = self._optimizer(steps)
        measured: list[float] = []
        best: dict[str, Any] = {}
        best_epoch = 0
        for epoch in range(1, self._kind.epochs + 1):
            self._model.train()
            for batch in self._batches(learnt):
                self._step(batch, optimizer)
                schedule.step()
                self._report(len(batch), 0)
            if not self._examples.of_split(VALID).any():
                continue
            measured.append(self._on_valid())
            if not best or measured[-1] > measured[best_epoch - 1] + self._kind.min_delta:
                best_epoch = epoch
                best = {name: value.detach().cpu().clone() for name, value in self._model.state_dict().items()}
            elif epoch - best_epoch >= self._kind.patience:
                break
        if best:
            self._model.load_state_dict(best)
        if not measured:
            return {"epoch": self._kind.epochs}
        return {"epoch": best_epoch, "tried": [{MAIN[self._kind.task]: item} for item in measured]}

    def _optimizer(self, steps: int) -> tuple[Any, Any]:
        """Return AdamW and the schedule of its rate. Norms and biases have no weight decay."""
        torch = self._torch
        weights = [parameter for parameter in self._model.parameters() if parameter.requires_grad]
        groups = [
            {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": self._kind.weight_decay},
            {"params": [weight for weight in weights if weight.ndim <= 1], "weight_decay": 0.0},
        ]
        rising = int(self._kind.warmup * steps)

        def factor(step: int) -> float:
            if step < rising:
                return (step + 1) / (rising + 1)
            progress = min(1.0, (step - rising) / max(1, steps - rising))
            return 0.5 * (1 + math.cos(math.pi * progress)) if self._kind.schedule == "cosine" else 1 - progress

        optimizer = torch.optim.AdamW(groups, lr=self._kind.rate)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)

    def _batches(self, rows: Array) -> Iterator[list[int]]:
        """Yield the batches of an epoch: in an order that is drawn, texts of about the same length together."""
        drawn = rows.tolist()
        self._chance.shuffle(drawn)
        size = self._kind.batch.documents
        for first in range(0, len(drawn), _NEAR * size):
            some = sorted(drawn[first : first + _NEAR * size], key=lambda row: len(self._tokens[row]))
            results = [some[i : i + size] for i in range(0, len(some), size)]
            self._chance.shuffle(results)
            yield from results

    def _step(self, batch: list[int], optimizer: Any) -> None:
        """Learn from a batch, in parts of limited numbers of tokens."""
        torch = self._torch
        optimizer.zero_grad()
        total = max(float(self._weights[batch].sum()), 1e-12)
        for part in self._kind.batch.of([len(self._tokens[row]) for row in batch]):
            rows = [batch[i] for i in part]
            target = torch.from_numpy(self._targets[rows]).to(self._device)
            weights = torch.from_numpy(self._weights[rows].astype(np.float32)).to(self._device)
            loss = (self._losses(self._logits(rows), target) * weights).sum() / total
            if not torch.isfinite(loss):
                raise ToolkitError("the model computes no numbers any more (NaN, or infinite); lower `lr`")
            loss.backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), _NORM)
        optimizer.step()

    def _losses(self, logits: Any, target: Any) -> Any:
        """Return the loss of each row: (rows), or of each of its targets."""
        functions = self._torch.nn.functional
        if self._kind.task == "regression":
            return functions.mse_loss(logits, target, reduction="none")
        if self._kind.task == "classes":
            return functions.cross_entropy(logits, target, reduction="none")
        return functions.binary_cross_entropy_with_logits(logits, target, reduction="none")

    def _logits(self, rows: Array | Sequence[int]) -> Any:
        ids, mask = filled_up([self._tokens[row] for row in rows], self._pad)
        tensors = [self._torch.from_numpy(item).to(self._device) for item in (ids, mask)]
        return self._model(input_ids=tensors[0], attention_mask=tensors[1]).logits

    # --- what it says -------------------------------------------------------------------------------------------------

    def values(self) -> Array:
        """Return the outputs for the rows of valid and test: float32; NaN in train."""
        return self._computed(~self._learns)

    def _computed(self, selected: Array) -> Array:
        result = np.full((len(self._tokens), self._outputs.width), np.nan, np.float32)
        numbers = np.flatnonzero(selected)
        self._model.eval()
        with self._torch.inference_mode():
            for part in Batches(tokens=self._kind.batch.tokens).of([len(self._tokens[row]) for row in numbers]):
                rows = numbers[part].tolist()
                result[rows] = self._logits(rows).float().cpu().numpy()
        return result

    def _on_valid(self) -> float:
        """Return the measure for choosing epochs."""
        documents = self._examples.of_split(VALID)
        values = np.zeros((len(self._tokens), len(self._examples.names) or 1))
        rows = documents[self._document]
        values[rows] = self._outputs.outcomes(self._computed(rows)[rows])
        if self._kind.window:
            values = self._kind.window.together(values, self._examples.rows_of)
        return on_valid(self._examples, values)
