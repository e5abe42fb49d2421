"""Vectors as float16: values that are written as the shortest text that gives the same float16 back."""

import functools
from typing import Any

import msgspec

from toolkit.errors import DataError
from toolkit.text.batch import Column
from toolkit.text.kernels.signatures import Array

LARGEST = 65504.0


class Halves(Column[list[float]]):
    """The vectors of some documents, as lists of numbers.

    Args:
        vectors: float32 (documents, numbers); what is beyond float16 becomes the largest or smallest of its numbers.

    Raises:
        DataError: if one is not a number.
    """

    def __init__(self, vectors: Array) -> None:
        import numpy as np

        if not np.isfinite(vectors).all():
            raise DataError(
                "expected finite numbers from the model, got NaN or infinite ones; is the file of the model damaged?"
            )
        halves = np.clip(vectors, -LARGEST, LARGEST).astype(np.float16)
        self._places = halves.view(np.uint16)

    def __len__(self) -> int:
        return len(self._places)

    def value(self, index: int) -> list[float]:
        numbers = _numbers()
        return [numbers[place] for place in self._places[index].tolist()]

    def proves(self, annotation: Any) -> bool:
        return bool(annotation == list[float])

    def raw(self) -> list[msgspec.Raw]:
        texts = _texts()
        return [msgspec.Raw(b"[" + b",".join([texts[place] for place in row]) + b"]") for row in self._places.tolist()]


@functools.cache
def _numbers() -> list[float]:
    """Return each float16, in the order of their bits, as the float64 with the shortest text that gives it."""
    import numpy as np

    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return [float(text) for text in halves.astype(str).tolist()]


@functools.cache
def _texts() -> list[bytes]:
    return [msgspec.json.encode(number) for number in _numbers()]
