"""Linear models: their file, and what they say of texts.

``model.safetensors``: the length of the header (uint64), the header (JSON), then the arrays, little-endian:
``table`` float32 (buckets, 1 + outputs), of each bucket the inverse document frequency and the weights; ``intercepts``
float64 (outputs). Metadata: ``about``, what the model is (`About`, JSON), and ``sha256`` of the arrays.

Features of linear models: windows of a text, and their n-grams, counted by bucket.

Of each word (see `toolkit.text.words`), without regard to case, there are its n-grams of code points, with a mark
before the first and behind the last one; and there are n-grams of words. Each is hashed to one of the buckets. The
value of a bucket is (1 + log times) x its inverse document frequency, and the vector of a text has length 1.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, NoReturn, Protocol, cast

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError
from toolkit.lazy_numpy import np
from toolkit.storage import models
from toolkit.storage.models import is_known
from toolkit.text.encoders import tensors
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Float32s, Float64s, Int64s, UInt8s, UInt32s, UInt64s
from toolkit.text.line_table import LineTable
from toolkit.text.portable_floats import natural_logs
from toolkit.text.unicode_table import Characters, characters
from toolkit.text.words import Words

Piece = Literal["begin", "middle", "end"]


class Window(ConfigStruct, omit_defaults=True):
    """Window of a text for a model: its lead, or pieces of it.

    Attributes:
        lead: so many code points from its beginning.
        pieces: Places of the pieces, each of `characters`; a text that is not longer is one piece.
        characters: code points of a piece.
        aggregate: Combination of the predictions for the pieces.
    """

    lead: Annotated[int, msgspec.Meta(ge=1)] | None = None
    pieces: list[Piece] = []
    characters: Annotated[int, msgspec.Meta(ge=1)] | None = None
    aggregate: Literal["mean", "max", "min"] = "mean"

    def check(self) -> None:
        """Raise ConfigError for conflicting options."""
        if (self.lead is None) == (not self.pieces):
            raise ConfigError("window: expected {lead: N}, or {pieces: [begin, middle, end], characters: N}")
        if bool(self.pieces) != (self.characters is not None):
            raise ConfigError("window: expected `pieces` and `characters` together, or neither")
        if len({*self.pieces}) != len(self.pieces):
            raise ConfigError("window: expected each piece once")

    def of(self, text: str) -> list[str]:
        """Return the pieces of a text in the window, at least one."""
        if self.lead is not None:
            return [text[: self.lead]]
        size = self.characters or 0
        if len(text) <= size:
            return [text]
        starts = {"begin": 0, "middle": (len(text) - size) // 2, "end": len(text) - size}
        return [text[starts[piece] : starts[piece] + size] for piece in self.pieces]

    def together(self, values: Array, bounds: Array) -> Array:
        """Return one row for each text of the rows of its pieces; `bounds` is the first of each, and the end of all."""
        if self.aggregate == "max":
            return np.maximum.reduceat(values, bounds[:-1])
        if self.aggregate == "min":
            return np.minimum.reduceat(values, bounds[:-1])
        return cast("Array", np.add.reduceat(values, bounds[:-1]) / np.diff(bounds)[:, None])

    def of_rows(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Combine rows of a text's pieces into one, as shortest float32."""
        from toolkit.text.portable_floats import shortest_float32

        return shortest_float32(self.together(np.array(rows), np.array([0, len(rows)]))[0])


WindowOption = Annotated[Window | None, msgspec.Meta(extra={"check": Window.check})]
"""Type of a tagger's option that is checked before anything is written."""

MANY = 255
"""An n-gram that is there more often counts as if it were there so often."""

WORD, BETWEEN, EDGE = 0x8F4F9AB7C1D2E365, 0xA5A5A5A5, 0x110000
"""Where hashes of words begin, what stands between words, and before and behind the code points of a word."""


class Orders(NamedTuple):
    """Lengths of n-grams, and the number of buckets, a power of 2."""

    least_words: int
    most_words: int
    least_characters: int
    most_characters: int
    buckets: int


class NgramCounts(NamedTuple):
    """The n-grams of some texts.

    Attributes:
        buckets: uint32, those that are met, text by text, each once a text, in the order in which they are met.
        times: uint8, how often each is met, at most `MANY`.
        bounds: int64 (texts + 1), where those of each text begin, and the end of all.
    """

    buckets: UInt32s
    times: UInt8s
    bounds: Int64s


class Workspace(NamedTuple):
    """Scratch arrays for counting.

    Attributes:
        points: uint64, for the code points of the longest word and 2.
        times: uint8, for each bucket; zero before and after.
        met: uint32, for the buckets that a text meets.
    """

    points: UInt64s
    times: UInt8s
    met: UInt32s


class Weights(NamedTuple):
    """The weights of a model.

    Attributes:
        outputs: numbers that it says of a text.
        table: float32 (buckets, 1 + outputs): the inverse document frequency, and the weight in each output.
        tf: float64 (`MANY` + 1), by how often an n-gram is met.
    """

    outputs: int
    table: Float32s
    tf: Float64s


_TEXTS = (Words, "int64", Orders, Characters, Workspace)
_count = Compiled("toolkit.text.linear.linear_kernel:count", *_TEXTS, NgramCounts)
_predict = Compiled("toolkit.text.linear.linear_kernel:predict", *_TEXTS, Weights, "float64*")


def tf_table() -> Array:
    """Return the weights of n-gram counts 0 to `MANY`.

    A weight is 1 + log times.
    """
    return np.concatenate([[0.0], 1.0 + natural_logs(np.arange(1.0, MANY + 1))])


def most_met(words: Words, orders: Orders) -> Array:
    """Return how many buckets each text meets at most."""
    of_words = orders.most_words - orders.least_words + 1
    of_points = max(0, orders.most_characters - orders.least_characters + 1)
    most = words.sums((words.chars + 2) * of_points + of_words)
    return np.minimum(most, orders.buckets)


def room_for(words: Words, orders: Orders, met: int) -> Workspace:
    """Return room to count in."""
    longest = int(words.chars.max(initial=0))
    return Workspace(np.empty(longest + 2, np.uint64), np.zeros(orders.buckets, np.uint8), np.empty(met + 1, np.uint32))


def count(words: Words, orders: Orders) -> NgramCounts:
    """Return the n-grams of some texts."""
    texts = len(words.bounds) - 1
    most = int(most_met(words, orders).sum())
    result = NgramCounts(np.empty(most + 1, np.uint32), np.empty(most, np.uint8), np.empty(texts + 1, np.int64))
    _count(words, texts, orders, characters(), room_for(words, orders, 0), result)
    end = int(result.bounds[-1])
    return NgramCounts(result.buckets[:end], result.times[:end], result.bounds)


def predict(words: Words, orders: Orders, weights: Weights) -> Array:
    """Compute the outputs for texts without intercepts; float64 (texts, outputs)."""
    texts = len(words.bounds) - 1
    sums = np.empty((texts, weights.outputs), np.float64)
    room = room_for(words, orders, int(most_met(words, orders).max(initial=0)))
    _predict(words, texts, orders, characters(), room, weights, sums.reshape(-1))
    return sums


Task = Literal["regression", "classes", "multilabel", "ordinal"]

LONGEST_WORDS, LONGEST_CHARACTERS = 5, 10
"""Of n-grams: the work for each word, and each code point."""
LEAST_BUCKETS, MOST_BUCKETS = 1 << 8, 1 << 24
LARGEST = 1e12
"""Of the numbers in a model, so that no sum overflows."""


class Predicts(ConfigStruct, kw_only=True):
    """The predictions of a model.

    Attributes:
        version: Version of the file.
        task: Meaning of its outputs: a number; the logit of the second of two classes, or of each of several; of each
            of several labels; of each grade but the first, that a text is at least of it.
        labels: classes or labels, sorted; grades, rising; nothing for a regression.
        range: ends of the scale of a regression, to which its numbers are clipped.
    """

    version: Literal[1] = 1
    task: Task
    labels: list[str] = []
    range: tuple[float, float] | msgspec.UnsetType = msgspec.UNSET

    @property
    def outputs(self) -> int:
        """Return how many numbers the model computes of a text."""
        if self.task == "regression":
            return 1
        less = self.task == "ordinal" or (self.task == "classes" and len(self.labels) == 2)
        return len(self.labels) - less

    def check(self) -> None:
        """Raise ConfigError for labels outside the task."""
        if len({*self.labels}) != len(self.labels) or (self.task == "regression") != (not self.labels):
            raise ConfigError(f"labels: expected different labels for {self.task}, got {self.labels[:5]}")
        if self.task in ("classes", "ordinal") and len(self.labels) < 2:
            raise ConfigError(f"labels: expected at least 2 for {self.task}, got {self.labels}")
        if not isinstance(self.range, msgspec.UnsetType) and not -LARGEST <= self.range[0] < self.range[1] <= LARGEST:
            raise ConfigError(f"range: expected a least and a greater number, got {[*self.range]}")
        if self.task == "ordinal":
            grades = grades_of(self.labels)
            if not all(map(math.isfinite, grades)) or grades != sorted(grades):
                raise ConfigError(f"labels: expected rising numbers, got {self.labels[:5]}")


class About(Predicts, kw_only=True):
    """A linear model.

    Attributes:
        words, characters: the least and the most of n-grams; characters may be none: ``[]``.
        buckets: a power of 2.
        window: Window that it was trained with.
    """

    words: tuple[int, int]
    characters: tuple[int, int] | None = None
    buckets: int
    window: Window | None = None

    @property
    def orders(self) -> Orders:
        return Orders(*self.words, *(self.characters or (1, 0)), self.buckets)

    def check(self) -> None:
        """Raise ConfigError for limits of compiled code, and for wrong labels."""
        for option, orders, most in (
            ("words", self.words, LONGEST_WORDS),
            ("characters", self.characters, LONGEST_CHARACTERS),
        ):
            if orders is not None and not 1 <= orders[0] <= orders[1] <= most:
                raise ConfigError(f"{option}: expected [LEAST, MOST] from 1 to {most}, got {[*orders]}")
        if not LEAST_BUCKETS <= self.buckets <= MOST_BUCKETS or self.buckets & (self.buckets - 1):
            raise ConfigError(
                f"buckets: expected a power of 2 from {LEAST_BUCKETS} to {MOST_BUCKETS}, got {self.buckets}"
            )
        super().check()
        if self.window:
            self.window.check()


def grades_of(labels: Sequence[str]) -> list[float]:
    """Return labels as numbers.

    Raises:
        ConfigError: if one is none.
    """
    try:
        return [float(label) for label in labels]
    except ValueError as error:
        raise ConfigError(f"labels: expected numbers, got {error}") from None


class Said(msgspec.Struct, frozen=True):
    """The prediction of a model for a text.

    Attributes:
        score: The number that a regression predicts, the mean of grades by their probability, or the probability of
            the label.
        label: The most probable class, label or grade; null for a regression.
        scores: The probability of each class, label or grade, best first; empty for a regression.
    """

    score: float
    label: str | None
    scores: dict[str, float]


class LinearModel:
    """A loaded model. Not sent between processes; use `load_linear` where it is needed.

    Args:
        about: Description of the model.
        table: float32 (buckets, 1 + outputs).
        intercepts: float64 (outputs).
    """

    def __init__(self, about: About, table: Array, intercepts: Array) -> None:
        self.about, self._intercepts = about, intercepts
        self._weights = Weights(about.outputs, table.reshape(-1), tf_table())

    def predict(self, texts: Sequence[str | bytes], window: Window | None = None) -> list[Said]:
        """Return predictions for texts.

        Args:
            texts: whole; bytes are UTF-8.
            window: Part of each text that it sees; by default as in training.
        """
        window = window or self.about.window
        if window is None:
            return self.of_words(Words.of(LineTable.of(texts), "segments"))
        pieces = [window.of(text if isinstance(text, str) else text.decode()) for text in texts]
        return self.of_words(
            Words.of(LineTable.of([piece for item in pieces for piece in item]), "segments"),
            window,
            [*map(len, pieces)],
        )

    def of_words(self, words: Words, window: Window | None = None, pieces: Sequence[int] = ()) -> list[Said]:
        """Return predictions for texts from their segments.

        With a window, `pieces` has the number of pieces of each text.
        """
        if len(words.bounds) == 1:
            return []
        result = predict(words, self.about.orders, self._weights) + self._intercepts
        values = outcomes(self.about, result)
        if window is not None:
            values = window.together(values, np.concatenate([[0], np.cumsum(pieces)]))
        return predictions_of(self.about, values)


def outcomes(about: Predicts, sums: Array) -> Array:
    """Return a number or label probabilities from the outputs of texts.

    A regression gives a number.

    Args:
        about: the model.
        sums: float64 (texts, outputs), with intercepts.
    """
    if about.task == "regression":
        return sums if isinstance(about.range, msgspec.UnsetType) else np.clip(sums, *about.range)
    ones = sigmoid(sums)
    if about.task == "multilabel":
        return ones
    if about.task == "ordinal":
        return grade_probabilities(ones)
    if len(about.labels) == 2:
        return np.hstack([1.0 - ones, ones])
    return cast("Array", ones / np.maximum(ones.sum(axis=1, keepdims=True), 1e-300))


def sigmoid(values: Array) -> Array:
    """Return 1 / (1 + e^-x)."""
    return cast("Array", 1.0 / (1.0 + np.exp(-np.clip(values, -700, 700))))


def grade_probabilities(at_least: Array) -> Array:
    """Return the probability of each grade.

    Given are those of all grades but the first, that a text is at least of it; none is below 0.
    """
    least = np.minimum.accumulate(np.hstack([np.ones((len(at_least), 1)), at_least]), axis=1)
    return cast("Array", least - np.hstack([least[:, 1:], np.zeros((len(at_least), 1))]))


def scores_of(task: Task, labels: Sequence[str], values: Array) -> Array:
    """Return the score of each text: float64 (texts).

    `values` are the result of `outcomes`.
    """
    if task == "regression":
        return cast("Array", values[:, 0])
    if task == "ordinal":
        return cast(
            "Array", (values / np.maximum(values.sum(axis=1, keepdims=True), 1e-300)) @ np.array(grades_of(labels))
        )
    return cast("Array", values.max(axis=1))


class Labelled(Protocol):
    """The prediction target of a model: its task, and the labels of its probabilities."""

    @property
    def task(self) -> Task: ...

    @property
    def labels(self) -> Sequence[str]: ...


def predictions_of(about: Labelled, values: Array) -> list[Said]:
    """Return the prediction for each text from the result of `outcomes`."""
    from toolkit.text.portable_floats import shortest_float32

    scores = shortest_float32(scores_of(about.task, about.labels, values))
    if about.task == "regression":
        return [Said(score, None, {}) for score in scores]
    order = (-values).argsort(axis=1, kind="stable")
    flat = shortest_float32(values[_rows(values), order].reshape(-1))
    width, results = len(about.labels), []
    for i, (score, best) in enumerate(zip(scores, order.tolist(), strict=True)):
        probs = flat[i * width : (i + 1) * width]
        results.append(
            Said(score, about.labels[best[0]], dict(zip([about.labels[k] for k in best], probs, strict=True)))
        )
    return results


def _rows(values: Array) -> Array:
    return np.arange(len(values))[:, None]


# --- files ------------------------------------------------------------------------------------------------------------


def packed(about: About, table: Array, intercepts: Array) -> bytes:
    """Return the content of a model's file."""
    tables: dict[str, Array] = {"table": table.astype(np.float32), "intercepts": intercepts.astype(np.float64)}
    return tensors.packed(tables, {"about": msgspec.json.encode(about).decode()}, digest="sha256")


def read(path: str) -> LinearModel:
    """Return the model of a file.

    Raises:
        ConfigError: if it is not one that `packed` has written, whole.
    """

    def wrong(got: object) -> NoReturn:
        raise ConfigError(f"{path}: expected a linear model, whole, got {got}; train or copy it again")

    arrays, metadata = tensors.read(path, kind_of_file="a linear model", digest="sha256")
    try:
        about = msgspec.json.decode(metadata["about"], type=About)
        about.check()
    except (msgspec.DecodeError, KeyError, ConfigError) as error:
        wrong(error)
    shapes = {"table": (about.buckets, 1 + about.outputs), "intercepts": (about.outputs,)}
    if {name: array.shape for name, array in arrays.items()} != shapes:
        wrong(f"arrays of other shapes than {about.task} with {len(about.labels)} labels has")
    table, intercepts = arrays["table"].reshape(-1), arrays["intercepts"]
    if not (np.abs(table) <= LARGEST).all() or not (np.abs(intercepts) <= LARGEST).all():
        wrong("numbers that are NaN, infinite or too large")
    return LinearModel(about, table, intercepts)


load_linear = models.loader(read)
"""Return the model for a configured path; loaded once a process, shared by all taggers that use it."""


def check_linear(model: str) -> None:
    """Check the file of a configured path; once for each of its versions.

    Raises:
        ConfigError: if it is not that of a linear model, whole and consistent.
    """
    load_linear(model)


Linear = Annotated[str, msgspec.Meta(extra={"model": is_known, "check": check_linear})]
"""Type of an option that names a linear model, or the folder that ``toolkit train`` has made: a `Model` whose file is
checked before anything is written."""
