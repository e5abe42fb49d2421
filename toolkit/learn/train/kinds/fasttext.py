"""Supervised fastText models: trained by the fastText library with one thread, so that bytes are the same again."""

import ctypes
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError, DataError, ToolkitError
from toolkit.exchange.checksummed import read_sealed, write_sealed
from toolkit.execution.executors import Report, Task
from toolkit.learn.train.examples import MAIN, TRAIN, Examples, names_of, on_valid
from toolkit.learn.train.trainer import Fitted, Gatherer, Positive, Trainer, TrainingInput
from toolkit.storage import store_of
from toolkit.storage.outputs import Output
from toolkit.storage.paths import join
from toolkit.storage.reading import READ, open_stored
from toolkit.storage.stores.local.scratch import open_scratch, scratch
from toolkit.text.fasttext.labelled import PREFIX
from toolkit.text.fasttext.model import FastTextModel
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import Task as WhatFor
from toolkit.whole_corpus.kind import Files, Signer

LINES = "lines.bin"
"""The texts of the rows of a shard, a line each."""

_LEAST_KEPT = 256
"""Rows that a matrix must have to be quantised."""

Number = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Quantize(ConfigStruct):
    """How a model is made small.

    Attributes:
        cutoff: so many words and n-grams are kept, at least 256; 0 for all.
        norms: True if their lengths are quantised by themselves.
    """

    cutoff: Annotated[int, msgspec.Meta(ge=0)] = 0
    norms: bool = True


class Hyper(msgspec.Struct, frozen=True):
    """Options of fastText to choose."""

    dim: int
    epochs: int
    lr: float
    word_ngrams: int
    minn: int
    maxn: int


class Fasttext(Trainer, kw_only=True):
    """Options of supervised fastText models.

    Attributes:
        dim: the length of a vector
        epochs: the number of passes over the texts
        lr: learning rate at the start
        word_ngrams: the most words of n-grams of words
        characters: the least and the most code points of n-grams of characters; null for none
        minimum_count: rarer words are left out
        buckets: the number of buckets for hashed n-grams
        lower: texts are put in lower case; then the tagger must do so, too
        autotune: number of choices of options that are tried, the given ones first; the best on valid is kept
        quantize: {cutoff: N, norms: true}: a small model, model.ftz
    """

    TASKS: ClassVar[Sequence[WhatFor]] = ("classes", "multilabel", "ordinal")
    PACKAGES: ClassVar[Sequence[str]] = ("fasttext-numpy2", "numpy")

    dim: Number = 64
    epochs: Number = 25
    lr: Positive = 1.0
    word_ngrams: Annotated[int, msgspec.Meta(ge=1, le=5)] = 2
    characters: tuple[int, int] | None = None
    minimum_count: Number = 1
    buckets: Annotated[int, msgspec.Meta(ge=1 << 12, le=1 << 24)] = 1 << 18
    lower: bool = False
    autotune: Annotated[int, msgspec.Meta(ge=2, le=1000)] | None = None
    quantize: Quantize | None = None

    @property
    def file(self) -> str:
        """Return the name of the model's file."""
        return "model.ftz" if self.quantize else "model.bin"

    def check(self) -> None:
        super().check()
        if self.balance:
            raise ConfigError(
                "balance: expected none: fastText gives all documents the same weight; `kind: linear` has it"
            )
        if self.characters is not None and not 1 <= self.characters[0] <= self.characters[1] <= 10:
            raise ConfigError(f"characters: expected [LEAST, MOST] from 1 to 10, got {[*self.characters]}")
        if self.quantize is not None and 0 < self.quantize.cutoff < _LEAST_KEPT:
            raise ConfigError(f"quantize: expected a cutoff of 0 or at least 256, got {self.quantize.cutoff}")
        if self.autotune is not None and self.split is None and not self.shares[1]:
            raise ConfigError("autotune: expected a share of valid in `splits` for a choice, got none")

    def signer(self, files: Files) -> Signer:
        """Return the writer of the lines of a shard."""
        return _FasttextLines(self, files)

    def hypers(self) -> list[Hyper]:
        """Return the choices to try, the given options first."""
        hypers = [Hyper(self.dim, self.epochs, self.lr, self.word_ngrams, *(self.characters or (0, 0)))]
        for trial in range(1, self.autotune or 1):
            chance = random.Random(f"{self.seed} {trial}")  # noqa: S311  # drawn the same again
            hypers.append(
                Hyper(
                    dim=chance.choice((16, 32, 64, 100)),
                    epochs=round(5 * 10 ** chance.random()),
                    lr=round(0.05 * 20 ** chance.random(), 3),
                    word_ngrams=chance.choice((1, 2, 3)),
                    **dict(zip(("minn", "maxn"), chance.choice(((0, 0), (2, 5), (3, 6))), strict=True)),
                )
            )
        return hypers

    def fit(self, work: TrainingInput) -> Fitted:
        """Train for each choice of options, in tasks of their own; choose by valid."""
        examples = work.examples
        for name in examples.names:
            if not name or len(name.split()) != 1 or name != name.strip() or "\0" in name:
                raise DataError(
                    f"labels: expected labels without white space, which fastText cannot have, got {name!r}"
                )
        evaluated = _write(work, examples)

        def tried(hypers: Sequence[Hyper], *, small: bool) -> list[Array]:
            """Return the predictions of models with these options for all documents; write the models."""
            tasks = [
                Task(
                    f"{work.name}: {hyper}",
                    FasttextTrainTask(kind=msgspec.to_builtins(self), hyper=hyper, small=small, folder=work.folder,
                            name=f"{i}.model", labels=examples.names),
                    key=str(i),
                )
                for i, hyper in enumerate(hypers)
            ]  # fmt: skip
            results = []
            for probs in work.run(f"training {work.name}", train_model, tasks):
                rows = np.full((len(evaluated), len(examples.names)), np.nan)
                rows[evaluated] = np.frombuffer(probs).reshape(-1, len(examples.names))
                results.append(self.window.together(rows, examples.rows_of) if self.window else rows)
            return results

        hypers, chosen = self.hypers(), {}
        if len(hypers) > 1:
            scores = [on_valid(examples, values) for values in tried(hypers, small=False)]
            best = scores.index(max(scores))
            pairs = zip(hypers, scores, strict=True)
            of_all = [{**msgspec.to_builtins(hyper), MAIN[self.task]: score} for hyper, score in pairs]
            chosen = {**msgspec.to_builtins(hypers[best]), "tried": of_all}
            hypers = [hypers[best]]
        (values,) = tried(hypers, small=self.quantize is not None)
        return Fitted(read_sealed(join(work.folder, "0.model")), values, chosen)


class _FasttextLines(Gatherer):
    """Writes the rows of a shard as lines for fastText."""

    kind: Fasttext

    def __init__(self, kind: Fasttext, files: Files) -> None:
        super().__init__(kind, files)
        self._lines = files.open(LINES)

    def take(self, texts: list[str]) -> None:
        for text in texts:
            line = (text.lower() if self.kind.lower else text).replace("\n", " ").replace("\0", "")
            self._lines.write(line.replace(PREFIX, "label ").encode() + b"\n")  # else it would be a label


def _write(work: TrainingInput, examples: Examples) -> Array:
    """Write the rows of train with their labels, and those to predict; return a mask of the latter."""
    document = np.repeat(np.arange(len(examples.pieces)), examples.pieces)
    train = examples.of_split(TRAIN)[document]
    labels = [" ".join(PREFIX + name for name in names_of(label)) for label in examples.labels]
    row = 0
    with Output(join(work.folder, _TRAIN)) as learnt, Output(join(work.folder, _ASKED)) as queries:
        for shard in work.shards:
            for line in read_sealed(join(shard, LINES)).split(b"\n")[:-1]:
                if train[row]:
                    learnt.write(labels[document[row]].encode() + b" " + line + b"\n")
                else:
                    queries.write(line + b"\n")
                row += 1
    return ~train


# --- a task for each choice of options --------------------------------------------------------------------------------

_TRAIN, _ASKED = "train.txt", "asked.txt"

_TOGETHER = 256

_PERTURB, _ZEROS = -6, 255
"""An option of glibc's ``mallopt``, and its value with which all memory that is given is zeros."""


@contextmanager
def zeroed_memory() -> Iterator[None]:
    """Get zeroed memory from glibc within the ``with`` block.

    With one thread the fastText library gives numbers to a tenth of the vectors alone; the others have whatever memory
    had, which is another thing in each process, and no number at times.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except AttributeError:
        yield
        return
    set_option(_PERTURB, _ZEROS)
    try:
        yield
    finally:
        set_option(_PERTURB, 0)


class FasttextTrainTask(ConfigStruct):
    """A choice of options to train with.

    Attributes:
        kind: the options of the model.
        hyper: Options of this trial.
        small: True if the model is quantised.
        folder: Folder of the texts, and for the model.
        name: Name of the model's file.
        labels: Labels whose probabilities are wanted, in this order.
    """

    kind: dict[str, Any]
    hyper: Hyper
    small: bool
    folder: str
    name: str
    labels: list[str]


def train_model(work: FasttextTrainTask, report: Report) -> bytes:
    """Train a model and write it; return what it says of the rows that it is asked of: float64 (rows, labels)."""
    import fasttext

    kind = msgspec.convert(work.kind, Fasttext)
    with scratch() as folder, zeroed_memory():
        texts, path = os.path.join(folder, _TRAIN), os.path.join(folder, kind.file)
        with open_stored(join(work.folder, _TRAIN)) as stored, open_scratch(texts) as copy:
            while block := stored.read(READ):
                copy.write(block)
        try:
            model = fasttext.train_supervised(
                texts, dim=work.hyper.dim, epoch=work.hyper.epochs, lr=work.hyper.lr, minn=work.hyper.minn,
                maxn=work.hyper.maxn, wordNgrams=work.hyper.word_ngrams, minCount=kind.minimum_count,
                bucket=kind.buckets, loss="ova" if kind.task == "multilabel" else "softmax", thread=1, verbose=0,
            )  # fmt: skip
            if kind.quantize and work.small:
                model.quantize(texts, cutoff=kind.quantize.cutoff, qnorm=kind.quantize.norms)
            model.save_model(path)
        except (RuntimeError, ValueError, MemoryError) as error:
            raise ToolkitError(f"fastText, with {work.hyper}: {error}; try a lower `lr`, or other options") from None
        with open(path, "rb") as result:
            write_sealed(join(work.folder, work.name), result.read())
        output = FastTextModel(path)
    place = {label: i for i, label in enumerate(work.labels)}
    lines = store_of(work.folder).read(join(work.folder, _ASKED)).decode().split("\n")[:-1]
    probs = np.zeros((len(lines), len(place)))
    for first in range(0, len(lines), _TOGETHER):
        answers = output.predict(lines[first : first + _TOGETHER], k=len(place))
        for i, predictions in enumerate(answers, first):
            for prediction in predictions:
                probs[i, place[prediction.label]] = prediction.prob
        report(len(answers), 0)
    return probs.tobytes()
