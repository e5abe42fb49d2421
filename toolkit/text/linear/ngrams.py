"""Features of linear models: windows of a text, and their n-grams, counted by bucket.

Of each word (see `toolkit.text.words`), without regard to case, there are its n-grams of code points, with a mark
before the first and behind the last one; and there are n-grams of words. Each is hashed to one of the buckets. The
value of a bucket is (1 + log times) x its inverse document frequency, and the vector of a text has length 1.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, cast

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError
from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Float32s, Float64s, Int64s, UInt8s, UInt32s, UInt64s
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
