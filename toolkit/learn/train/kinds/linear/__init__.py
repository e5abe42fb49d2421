"""Linear models over hashed n-grams: ridge and logistic regression, the same bytes whenever they are trained again."""

from collections.abc import Sequence

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError
from toolkit.exchange.checksummed import read_sealed, write_sealed
from toolkit.execution.executors import Report, Task
from toolkit.learn.train.examples import TRAIN, on_valid
from toolkit.learn.train.kinds.linear.solver import FILES, CountedNgrams, Problem, solve
from toolkit.learn.train.trainer import Fitted, Gatherer, Positive, Trainer, TrainingInput
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.text.line_table import LineTable
from toolkit.text.linear import model
from toolkit.text.linear.model import About, outcomes, packed
from toolkit.text.portable_floats import natural_logs
from toolkit.text.words import Words
from toolkit.whole_corpus.kind import Files, Signer

ALPHA = 0.3


class Linear(Trainer, kw_only=True):
    """Options of linear models.

    Attributes:
        words: the least and the most words of n-grams of words
        characters: the least and the most code points of n-grams within words; null for none
        characters_weigh: the weight of n-grams of characters, relative to those of words
        buckets: the number of buckets for hashed n-grams, a power of 2
        alpha: the strength of the penalty; from a list, the best on valid is taken
    """

    words: tuple[int, int] = (1, 2)
    characters: tuple[int, int] | None = (3, 5)
    characters_weigh: Positive = 0.35
    buckets: int = 1 << 20
    alpha: Positive | list[Positive] = ALPHA

    @property
    def file(self) -> str:
        """Return the name of the model's file."""
        return "model.safetensors"

    @property
    def alphas(self) -> list[float]:
        """Return the penalties to try."""
        return self.alpha if isinstance(self.alpha, list) else [self.alpha]

    def check(self) -> None:
        super().check()
        labels = {"regression": [], "ordinal": ["0", "1"]}.get(self.task, ["a", "b"])
        self.about(labels).check()
        if len(self.alphas) > 1 and self.split is None and not self.shares[1]:
            raise ConfigError("alpha: expected a share of valid in `splits` for a choice, got none")
        if not self.alphas:
            raise ConfigError("alpha: expected a number above 0, or a list of such, got none")

    def about(self, labels: list[str]) -> About:
        """Return the description of the model with these labels."""
        return About(
            task=self.task, labels=labels, words=self.words, characters=self.characters, buckets=self.buckets,
            window=self.window,
        )  # fmt: skip

    def signer(self, files: Files) -> Signer:
        """Return the counter of the n-grams of a shard."""
        return _NgramWriter(self, files)

    def fit(self, work: TrainingInput) -> Fitted:
        """Fit each output for each alpha, in tasks of their own; choose by valid."""
        examples = work.examples
        about = msgspec.structs.replace(self.about(examples.names), range=examples.range or msgspec.UNSET)
        counted = CountedNgrams(work.shards, self.buckets)
        document = np.repeat(np.arange(len(examples.pieces)), examples.pieces)
        share, train = (1.0 / examples.pieces)[document], examples.of_split(TRAIN)[document]
        idf = natural_logs((1.0 + float(train.sum())) / (1.0 + counted.frequencies(train))) + 1.0
        idf[1::2] *= self.characters_weigh
        idf = idf.astype(np.float32).astype(np.float64)  # as the model has them
        lengths, ends = counted.lengths(idf), examples.rows_of
        write_sealed(join(work.folder, _SCALES), idf.tobytes() + lengths.tobytes())
        targets, weights = examples.targets(), self.weights_of(examples)
        tasks = [
            Task(
                f"{work.name}: output {k + 1} of {about.outputs}, alpha {alpha:g}",
                LinearFitTask(
                    shards=work.shards,
                    folder=work.folder,
                    name=f"{a}-{k}.bin",
                    buckets=self.buckets,
                    logistic=self.task != "regression",
                    alpha=alpha,
                    per_row=np.concatenate([targets[document, k], weights[document, k] * share]).tobytes(),
                ),
                counted.bytes,
                key=f"{a}-{k}",
            )
            for a, alpha in enumerate(self.alphas)
            for k in range(about.outputs)
        ]
        intercepts = work.run(f"fitting {work.name}", fit_output, tasks)
        best = None
        tried = {}
        for a, alpha in enumerate(self.alphas):
            results = [_solution(work.folder, f"{a}-{k}.bin", self.buckets) for k in range(about.outputs)]
            sums = np.stack([item[1] for item in results], axis=1)
            values = outcomes(about, sums)
            values = self.window.together(values, ends) if self.window else values
            score = on_valid(examples, values) if len(self.alphas) > 1 else 0.0
            tried[f"{alpha:g}"] = score
            if best is None or score > best[0]:
                table = np.stack([idf, *(item[0] for item in results)], axis=1)
                best = score, alpha, table, values, intercepts[a * about.outputs : (a + 1) * about.outputs]
        assert best
        chosen = {"alpha": best[1], "tried": tried} if len(self.alphas) > 1 else {}
        return Fitted(packed(about, best[2], np.array(best[4])), best[3], chosen)


class _NgramWriter(Gatherer):
    """Writes the n-grams of a shard's rows."""

    kind: Linear

    def __init__(self, kind: Linear, files: Files) -> None:
        super().__init__(kind, files)
        self._outputs = [files.open(name) for name in FILES]
        self._orders = kind.about([]).orders

    def take(self, texts: Sequence[str]) -> None:
        result = model.count(Words.of(LineTable.of(texts), "segments"), self._orders)
        for output, data in zip(
            self._outputs,
            (result.buckets.astype("<u4"), result.times, np.diff(result.bounds).astype("<u4")),
            strict=True,
        ):
            output.write(data.tobytes())


# --- a task for each output -------------------------------------------------------------------------------------------

_SCALES = "scales.bin"


class LinearFitTask(ConfigStruct):
    """An output to fit.

    Attributes:
        shards: the folders of what was gathered.
        folder: Folder of the scales, and for the solution.
        name: Name of the solution's file.
        buckets: Number of buckets.
        logistic, alpha: see `toolkit.learn.train.kinds.linear.solver.Problem`.
        per_row: float64, the target of each row, then what it counts.
        processes: Processes that it may keep busy.
    """

    shards: list[str]
    folder: str
    name: str
    buckets: int
    logistic: bool
    alpha: float
    per_row: bytes
    processes: int = 1


def fit_output(work: LinearFitTask, report: Report) -> float:
    """Write the weights of the buckets and the output of each row; return the intercept."""
    counted = CountedNgrams(work.shards, work.buckets, work.processes)
    scales = np.frombuffer(read_sealed(join(work.folder, _SCALES)))
    target, weights = np.split(np.frombuffer(work.per_row), 2)
    problem = Problem(
        counted, scales[: work.buckets], scales[work.buckets :], weights, target, work.logistic, work.alpha
    )
    solution = solve(problem)
    report(counted.rows, counted.bytes)
    write_sealed(join(work.folder, work.name), solution.weights.tobytes() + solution.sums.tobytes())
    return solution.intercept


def _solution(folder: str, name: str, buckets: int) -> tuple[Array, Array]:
    """Return the weights of the buckets, and the sums of the rows."""
    result = np.frombuffer(read_sealed(join(folder, name)))
    return result[:buckets].astype(np.float32), result[buckets:]
