"""Supervised fastText models: what they say of texts and of the lines of documents."""

import fcntl
import functools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from toolkit import models
from toolkit.documents import Prediction, split_lines
from toolkit.numbers import shortest_float32

if TYPE_CHECKING:
    import numpy as np

PREFIX = "__label__"
_PADDING = b"\n" * 16  # the compiled code reads words of 8 bytes, and marks the ends of words in place
_SLOW = 1.0  # seconds after which the log says what compiling took


class FastTextModel:
    """A loaded model. Not sent between processes; use `load_fasttext` where it is needed.

    Args:
        path: a ``.bin`` or ``.ftz`` file of a supervised model.

    Attributes:
        labels: without ``__label__``, in the order of the model's output.

    Raises:
        ConfigError: if it is none.
    """

    def __init__(self, path: str) -> None:
        with _compiled_once():
            from toolkit import fasttext_file, fasttext_kernel

            self._model, labels = fasttext_file.read(path)
            self._predict = fasttext_kernel.predict
            self.labels = [label.removeprefix(PREFIX) for label in labels]
            self._found(_buffer("\n"), k=1, threshold=0.0)

    def predict(self, texts: Sequence[str], *, k: int = 1, threshold: float = 0.0) -> list[list[Prediction]]:
        r"""The best labels of each text, without ``__label__``, best first.

        Probabilities are float32, given as the number with the shortest text; they may exceed 1 by 1e-4. A text without
        words has no label.

        Args:
            texts: without ``\n``; NUL characters are left out, as ungoliant does.
            k: at most so many labels a text.
            threshold: only labels with at least this probability.
        """
        labels, probs = self._found(_buffer("".join(text + "\n" for text in texts)), k=k, threshold=threshold)
        flat = iter(shortest_float32(probs[labels >= 0]))
        return [[Prediction(self.labels[i], next(flat)) for i in row if i >= 0] for row in labels.tolist()]

    def predict_lines(
        self, texts: Sequence[str], *, threshold: float = 0.0, min_chars: int = 0
    ) -> list[list[Prediction | None]]:
        r"""For each text the best label of each of its lines; null for one without, see `predict`.

        Args:
            texts: of documents; lines as `Document.lines` has them.
            threshold: only labels with at least this probability.
            min_chars: lines with fewer code points are null, without being looked at.
        """
        joined = "".join(text if text.endswith("\n") or not text else text + "\n" for text in texts)
        if min_chars and "\0" in joined:  # which count as characters, and are not looked at
            lines = split_lines(joined)
            joined, min_chars = "".join(line * (len(line) >= min_chars) + "\n" for line in lines), 0
        labels, probs = self._found(_buffer(joined), k=1, threshold=threshold, min_chars=min_chars)
        numbers = labels[:, 0]
        flat = iter(shortest_float32(probs[:, 0][numbers >= 0]))
        names = self.labels
        found = [Prediction(names[i], next(flat)) if i >= 0 else None for i in numbers.tolist()]
        result, at = [], 0
        for text in texts:
            end = at + text.count("\n") + (bool(text) and not text.endswith("\n"))
            result.append(found[at:end])
            at = end
        return result

    def _found(
        self, buffer: "np.ndarray[Any, Any]", *, k: int, threshold: float, min_chars: int = 0
    ) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
        """Labels by number (-1 for none) and probabilities of each line of a buffer, as arrays (lines, k)."""
        import numpy as np

        ends = np.flatnonzero(buffer[: len(buffer) - len(_PADDING)] == 10)
        starts, ends = ends[:-1] + 1, ends[1:]
        if min_chars:
            chars = np.cumsum((buffer & -64) != -128)  # bytes that begin a code point
            sizes = chars[ends] - chars[starts] + ((buffer[starts] & -64) != -128) - 1
            sizes -= (ends > starts) & (buffer[ends - 1] == 13)
            starts = np.where(sizes < min_chars, ends, starts)
        k = min(k, len(self.labels))
        labels = np.full((len(starts), k), -1, dtype=np.int32)
        probs = np.zeros((len(starts), k), dtype=np.float32)
        self._predict(self._model, buffer, starts, ends, np.float32(threshold), labels, probs)
        return labels, probs


def _buffer(lines: str) -> "np.ndarray[Any, Any]":
    r"""UTF-8 of lines that each end in ``\n``, with one before the first; NUL characters left out."""
    import numpy as np

    data = bytearray(b"\n" + lines.replace("\0", "").encode() + _PADDING)
    return np.frombuffer(data, dtype=np.int8)


@contextmanager
def _compiled_once() -> Iterator[None]:
    """Lets one process of a machine compile while the others wait for what it keeps on disk."""
    with ExitStack() as stack:
        with suppress(OSError):  # without a folder that can be written in, each compiles for itself
            os.makedirs(models.cache_folder(), exist_ok=True)
            stream = stack.enter_context(open(os.path.join(models.cache_folder(), "compiling"), "w"))
            fcntl.flock(stream, fcntl.LOCK_EX)
        start = time.perf_counter()
        yield
    seconds = time.perf_counter() - start
    if seconds > _SLOW and not _compiled_here:
        print(f"compiled the predictions of fastText models: {seconds:.0f} s, kept for the next time", file=sys.stderr)
    _compiled_here.append(True)


_compiled_here: list[bool] = []


def load_fasttext(model: str) -> FastTextModel:
    """The model for a configured name or path; loaded once a process, shared by all taggers that use it."""
    return _load(os.path.realpath(models.resolve(model)))


@functools.lru_cache(maxsize=8)
def _load(path: str) -> FastTextModel:
    return FastTextModel(path)
