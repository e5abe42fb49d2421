"""Heads over embeddings: a linear layer, or two with ReLU between them; the same bytes whenever they are trained again.

Source: FineWeb-Edu (arXiv:2406.17557) trains a linear layer over a frozen encoder, JQL (arXiv:2505.22232) one of 1,000
numbers with ReLU and a linear one over it, both with AdamW.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct, Description
from toolkit.data.schema import is_number
from toolkit.errors import ConfigError, DataError
from toolkit.runs.executors import Report, Task
from toolkit.storage.paths import join
from toolkit.text.encoders import heads
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import Predicts, outcomes
from toolkit.train.examples import SPLITS, TRAIN, VALID, Example
from toolkit.train.kinds.head.solver import Problem, Steps, solve
from toolkit.train.trainer import Fitted, Gatherer, Positive, Trainer, Work
from toolkit.whole.kind import Asked, Block, Files, Signer
from toolkit.whole.sealed import read_sealed, write_sealed

VECTORS, TARGETS, MODEL = "vectors.bin", "targets.bin", "head.bin"
"""The vectors of the documents of a shard, float32, behind their length; the targets of all, float64; the model."""
_LENGTH = 8
"""Bytes that the length of vectors takes."""

EMBEDDINGS = "embeddings"

Number = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class Head(Trainer, kw_only=True):
    """Options of heads over embeddings."""

    embeddings: Annotated[
        str, Description(description="SET.KEY: the vectors, such as embed-0.embedding; documents without are left out")
    ]
    hidden: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=100_000)],
        Description(description="the width of the layer in between; 0 for one linear layer"),
    ] = 0
    epochs: Annotated[Number, Description(description="the largest number of passes over the examples")] = 200
    patience: Annotated[
        Number,
        Description(
            description="training ends after this number of passes without a smaller loss on valid; the best "
            "weights stay"
        ),
    ] = 10
    batch: Annotated[Number, Description(description="the number of examples of a step")] = 64
    lr: Annotated[Positive, Description(description="the size of a step (AdamW)")] = 0.0003
    weight_decay: Annotated[
        Annotated[float, msgspec.Meta(ge=0)], Description(description="how much weights shrink, times `lr`, in a step")
    ] = 0.1

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

    def asked(self) -> dict[str, Asked]:
        """Return the expressions of the options."""
        return super().asked() | {EMBEDDINGS: Asked(self.embeddings, "value")}

    def examples(self, block: Block) -> tuple[list[Example | None], Counter[str]]:
        """Return the examples; those without an embedding are left out.

        Raises:
            DataError: as those of all kinds; and for embeddings that are none.
        """
        found, left = super().examples(block)
        for i, (example, vector) in enumerate(zip(found, block.values[EMBEDDINGS], strict=True)):
            if example and vector is None:
                found[i] = None
                left["without an embedding"] += 1
            elif example and not (isinstance(vector, list) and vector and all(map(is_number, vector))):
                message = f"{EMBEDDINGS}: expected a list of numbers, or null, got {str(vector)[:60]}"
                raise DataError(message, line=block.first + i + 1, id=block.documents[i].id)
        return found, left

    def signer(self, files: Files) -> Signer:
        """Return what writes the vectors of a shard."""
        return _Vectors(self, files)

    def fit(self, work: Work) -> Fitted:
        """Train in a task of its own; the loss on valid says when it is enough."""
        examples = work.examples
        if not examples.of_split(VALID).any():
            raise DataError("expected labelled documents in valid, got none: the loss on valid says when training ends")
        about = Predicts(task=self.task, labels=examples.names)
        targets, weights = examples.targets(), self.weights_of(examples)
        write_sealed(join(work.folder, TARGETS), np.stack([targets, weights]).tobytes())
        payload = ToFit(
            shards=work.shards,
            folder=work.folder,
            about=about,
            splits=examples.splits.tobytes(),
            steps=Steps(
                str(self.seed), self.hidden, self.epochs, self.patience, self.batch, self.lr, self.weight_decay
            ),
        )
        (chosen,) = work.run(f"fit {work.name}", fit_head, [Task(f"{work.name}: head", payload, key="head")])
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

    def take_documents(self, block: Block, used: Sequence[tuple[int, Example]]) -> None:
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


class ToFit(ConfigStruct):
    """A head that is trained.

    Attributes:
        shards: the folders of what was gathered.
        folder: where the targets are, and the model goes.
        about: what it predicts.
        splits: uint8, of each example.
        steps: see `toolkit.train.kinds.head.solver.Steps`.
    """

    shards: list[str]
    folder: str
    about: Predicts
    splits: bytes
    steps: Steps


def fit_head(work: ToFit, report: Report) -> dict[str, Any]:
    """Write the model and what it says of all examples; return the epoch that was chosen, and its loss on valid."""
    splits = np.frombuffer(work.splits, np.uint8)
    vectors = _vectors(work.shards, len(splits))
    targets, weights = np.frombuffer(read_sealed(join(work.folder, TARGETS))).reshape(2, len(splits), -1)
    train, valid = (splits == SPLITS.index(name) for name in (TRAIN, VALID))
    problem = Problem(vectors, targets, weights, train, valid, work.about.task != "regression")
    found = solve(problem, work.steps)
    head = heads.Head(work.about, found.layers)
    sums = np.array([head.outputs(vector) for vector in vectors], np.float64)
    model = heads.packed(work.about, found.layers)
    write_sealed(join(work.folder, MODEL), len(model).to_bytes(8, "little") + model + sums.tobytes())
    report(len(vectors), vectors.nbytes)
    return {"epoch": found.epoch, "loss": round(found.loss, 6)}


def _vectors(shards: Sequence[str], count: int) -> Array:
    """Return the vectors of all shards; float32 (examples, numbers).

    Raises:
        DataError: if they are not of one length.
    """
    found, at = np.empty((0, 0), np.float32), 0
    for shard in shards:
        if data := read_sealed(join(shard, VECTORS)):
            length = int.from_bytes(data[:_LENGTH], "little")
            found = found if found.size else np.empty((count, length), np.float32)
            if length != found.shape[1]:
                raise DataError(
                    f"{EMBEDDINGS}: expected {found.shape[1]:,} numbers in all shards, got {length:,} in one; are they "
                    "of one model?"
                )
            rows = np.frombuffer(data, "<f4", offset=_LENGTH).reshape(-1, length)
            found[at : at + len(rows)] = rows
            at += len(rows)
    if not np.isfinite(found).all():
        raise DataError(f"{EMBEDDINGS}: expected finite numbers of float32, got NaN or infinite ones")
    return found
