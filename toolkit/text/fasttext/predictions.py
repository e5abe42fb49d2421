"""Predictions for the lines of documents, as arrays."""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit.data.documents import Prediction
from toolkit.text.batch import Column
from toolkit.text.kernels.compiling import compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s
from toolkit.text.portable_floats import shortest_float32

_CAPITAL = re.compile(rb'("label"[ \t]*:[ \t]*")([A-Z])(?=[a-z-]{1,20}")')

_DIGITS = 16  # of a probability's text, with its point


def without_capitals(line: bytes) -> bytes:
    """Return a line of JSON with its labels in lower case, if they begin with a capital.

    The published schema of OSCAR 22.01 spells labels ``En``, ``Multi``; no file of the release does, but others may.
    """
    return _CAPITAL.sub(lambda match: match[1] + match[2].lower(), line)


class LinePredictions(Column[list[Prediction | None]]):
    """A label with its probability for each line of some texts, or null.

    Args:
        labels: names.
        numbers: int32, of the label of each line; -1 for null.
        probs: float32, of each line.
        bounds: int64 (texts + 1), the first line of each text, and the end of all.
    """

    def __init__(self, labels: Sequence[str], numbers: Array, probs: Array, bounds: Array) -> None:
        self.labels, self.numbers, self.probs, self.bounds = labels, numbers, probs, bounds

    @classmethod
    def of(cls, values: Sequence[Sequence[Prediction | None]]) -> "LinePredictions":
        """Return those of the values of each text; what is one already stays what it is."""
        import numpy as np

        if isinstance(values, cls):
            return values
        lines = [line for value in values for line in value]
        labels = sorted({line.label for line in lines if line})
        number = {label: i for i, label in enumerate(labels)}
        numbers = np.array([number[line.label] if line else -1 for line in lines], dtype=np.int32)
        probs = np.array([getattr(line, "prob", 0.0) for line in lines], dtype=np.float32)
        bounds = np.cumsum([0, *map(len, values)], dtype=np.int64)
        return cls(labels, numbers, probs, bounds)

    def renamed(self, rename: Callable[[str], str | None]) -> "LinePredictions":
        """Return the same with other labels; a line whose label becomes None has no prediction."""
        import numpy as np

        results = [rename(label) for label in self.labels]
        labels = sorted({label for label in results if label is not None})
        places = {label: i for i, label in enumerate(labels)}
        numbers = np.array([*(-1 if label is None else places[label] for label in results), -1], dtype=np.int32)
        return LinePredictions(labels, numbers[self.numbers], self.probs, self.bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def value(self, index: int) -> list[Prediction | None]:
        begin, end = self.bounds[index], self.bounds[index + 1]
        numbers, probs = self.numbers[begin:end], self.probs[begin:end]
        flat = iter(shortest_float32(probs[numbers >= 0]))
        return [Prediction(self.labels[i], next(flat)) if i >= 0 else None for i in numbers.tolist()]

    def proves(self, annotation: Any) -> bool:
        import numpy as np

        return annotation == list[Prediction | None] and bool(np.isfinite(self.probs).all())

    def taken(self, rows: Sequence[int]) -> "LinePredictions":
        import numpy as np

        starts, counts = self.bounds[rows], np.diff(self.bounds)[rows]
        bounds = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(counts, out=bounds[1:])
        places = np.repeat(starts - bounds[:-1], counts) + np.arange(bounds[-1])
        return LinePredictions(self.labels, self.numbers[places], self.probs[places], bounds)

    def raw(self) -> list[msgspec.Raw]:
        import numpy as np

        before = [b'{"label":' + msgspec.json.encode(label) + b',"prob":' for label in self.labels]
        longest = max(map(len, before), default=0)
        ends = np.cumsum([0, *map(len, before)], dtype=np.int64)
        out = np.empty(2 * len(self) + (longest + _DIGITS) * len(self.numbers), dtype=np.uint8)
        places = np.empty(len(self) + 1, dtype=np.int64)
        texts = np.frombuffer(b"".join(before) or b" ", dtype=np.uint8)
        exact = np.empty(1, dtype=np.float32)
        _write(self.numbers, self.probs, self.bounds, len(self), _Labels(texts, ends), exact, out, places)
        data, at = out[: places[-1]].tobytes(), places.tolist()
        return [
            msgspec.Raw(data[begin:end] if end > begin else msgspec.json.encode(self.value(i)))
            for i, (begin, end) in enumerate(itertools.pairwise(at))
        ]


class _Labels(NamedTuple):
    """The texts of labels in JSON, up to where the probability stands, and (labels + 1) the ends of these."""

    texts: UInt8s
    ends: Int64s


@compiled("int32* float32* int64* int64", _Labels, "float32* uint8* int64*")
def _write(numbers: Any, probs: Any, bounds: Any, n: Any, labels: _Labels, exact: Any, out: Any, places: Any) -> None:
    """Write the JSON text of each value, one behind the other; nothing for one with an unusual probability.

    Args:
        numbers: Numbers of the label of each line.
        probs: Probs of each line.
        bounds: the first line of each value, and the end.
        n: values.
        labels: their texts.
        exact: float32 (1), for comparisons.
        out: what is written.
        places: int64 (values + 1), where the values begin in it, and the end.
    """
    at = 0
    places[0] = 0
    for i in range(n):
        begin, usual = at, True
        out[at] = 91  # [
        at += 1
        for line in range(bounds[i], bounds[i + 1]):
            if line > bounds[i]:
                out[at] = 44  # ,
                at += 1
            number, prob = numbers[line], probs[line]
            if number < 0:
                for byte in (110, 117, 108, 108):  # null
                    out[at] = byte
                    at += 1
                continue
            if not 1e-3 <= prob < 9:  # one digit before the point, and no exponent
                usual = False
                break
            for j in range(labels.ends[number], labels.ends[number + 1]):
                out[at] = labels.texts[j]
                at += 1
            # the fewest decimals that read back as this float32, as `shortest_float32` finds them
            decimals, scale = 7, 1e7
            digits = round(float(prob) * scale)
            exact[0] = digits / scale
            while exact[0] != prob:
                decimals, scale = decimals + 1, scale * 10
                digits = round(float(prob) * scale)
                exact[0] = digits / scale
            while decimals > 1:
                fewer = round(float(prob) * (scale / 10))
                exact[0] = fewer / (scale / 10)
                if exact[0] != prob:
                    break
                decimals, scale, digits = decimals - 1, scale / 10, fewer
            for j in range(at + 1 + decimals, at + 1, -1):
                out[j] = 48 + digits % 10
                digits //= 10
            out[at] = 48 + digits
            out[at + 1] = 46  # .
            at += 2 + decimals
            out[at] = 125  # }
            at += 1
        if usual:
            out[at] = 93  # ]
            at += 1
        else:
            at = begin
        places[i + 1] = at
