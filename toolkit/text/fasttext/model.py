"""Supervised fastText models: what they say of texts and of the lines of documents."""

import functools
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec

from toolkit.data.documents import Prediction
from toolkit.errors import ConfigError, ToolkitError
from toolkit.storage import Stat, models
from toolkit.storage.models import is_known
from toolkit.storage.paths import stat
from toolkit.storage.stores.local.scratch import open_scratch, scratch
from toolkit.text.fasttext.labelled import PREFIX
from toolkit.text.fasttext.predictions import LinePredictions
from toolkit.text.kernels.signatures import Array
from toolkit.text.line_table import PADDING, LineTable
from toolkit.text.portable_floats import shortest_float32

if TYPE_CHECKING:
    from toolkit.text.fasttext.model_file import Contents


class FastTextModel:
    """A loaded model. Not sent between processes; use `load_fasttext` where it is needed.

    Args:
        path: a ``.bin`` or ``.ftz`` file of a supervised model.
        contents: Contents of the file, if it has been read.

    Attributes:
        labels: without ``__label__``, in the order of the model's output.

    Raises:
        ConfigError: if it is none.
    """

    def __init__(self, path: str, contents: "Contents | None" = None) -> None:
        from toolkit.text.fasttext import model_file

        contents = contents or model_file.read(path)
        self.labels = [label.removeprefix(PREFIX) for label in contents.labels]
        result: _Found
        try:
            result = _Compiled(contents)
            result(LineTable.of([""]), k=1, threshold=0.0)
        except ToolkitError:
            raise
        except MemoryError:
            raise ConfigError(f"{path}: expected a fastText model that memory has room for, got a larger one") from None
        except Exception as error:  # numba is missing, or has no code for this machine
            why = f"{type(error).__name__}: {error}"
            print(f"{path}: predicted by the fastText library, several times slower: {why}", file=sys.stderr)
            result = _Library(contents)
        self._found = result

    def predict(self, texts: Sequence[str], *, k: int = 1, threshold: float = 0.0) -> list[list[Prediction]]:
        r"""Return the best labels of each text, without ``__label__``, best first.

        Probabilities are float32, given as the number with the shortest text; they may exceed 1 by 1e-4. A text without
        words has no label.

        Args:
            texts: without ``\n``; NUL characters are left out, as ungoliant does.
            k: at most so many labels a text.
            threshold: only labels with at least this probability.
        """
        lines = LineTable.of(["".join(text + "\n" for text in texts).replace("\0", "")])
        labels, probs = self._found(lines, k=k, threshold=threshold)
        flat = iter(shortest_float32(probs[labels >= 0]))
        return [[Prediction(self.labels[i], next(flat)) for i in row if i >= 0] for row in labels.tolist()]

    def predict_lines(self, lines: LineTable, *, threshold: float = 0.0, min_chars: int = 0) -> LinePredictions:
        """Return the best label of each line of some texts; null for one without, see `predict`.

        Args:
            lines: Lines of the texts; marks are written into their buffer, and taken back.
            threshold: only labels with at least this probability.
            min_chars: lines with fewer code points are null, without being looked at.
        """
        import numpy as np

        chars, bounds = lines.chars, lines.bounds
        if not lines.utf8.all():
            lines = _without_nul(lines)
        if min_chars:
            lines = lines._replace(starts=np.where(chars < min_chars, lines.ends, lines.starts))
        numbers, probs = self._found(lines, k=1, threshold=threshold)
        return LinePredictions(self.labels, numbers[:, 0], probs[:, 0], bounds)


class _Found(Protocol):
    """Labels by number (-1 for none) and probabilities of lines, as arrays (lines, k), best first."""

    def __call__(self, lines: LineTable, *, k: int, threshold: float) -> tuple[Array, Array]: ...


class _Compiled:
    def __init__(self, contents: "Contents") -> None:
        from toolkit.text.fasttext import arrays

        self._contents, self._model = contents, arrays.model_of(contents)

    def __call__(self, lines: LineTable, *, k: int, threshold: float) -> tuple[Array, Array]:
        from toolkit.text.fasttext import arrays

        self._contents.check_unchanged()
        model, n = self._model, len(lines.starts)
        k = min(k, model.labels)
        labels, probs = _none_found(n, k)
        arrays.predict(model, lines, n, arrays.Best(k, threshold, labels, probs), arrays.Room.of(model))
        return labels, probs


class _Library:
    """The fastText library, on a copy of the bytes that were checked: the file itself may have changed since."""

    def __init__(self, contents: "Contents") -> None:
        import fasttext

        with scratch() as folder:
            path = os.path.join(folder, "model.bin")
            try:
                with open_scratch(path) as copy:
                    copy.write(contents.data)
                self._model = fasttext.load_model(path)
            except (OSError, ValueError, MemoryError, RuntimeError) as error:
                message = f"expected a model that the fastText library can load, got {type(error).__name__}: {error}"
                raise ConfigError(f"{contents.path}: {message}") from None
        self._numbers = {label: i for i, label in enumerate(contents.labels)}

    def __call__(self, lines: LineTable, *, k: int, threshold: float) -> tuple[Array, Array]:
        from toolkit.text.fasttext.arrays import SEPARATORS

        k = min(k, len(self._numbers))
        labels, probs = _none_found(len(lines.starts), k)
        utf8 = lines.utf8.tobytes()
        for i, (start, end) in enumerate(zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)):
            if line := utf8[start:end].strip(SEPARATORS):
                result = self._model.f.predict(line.decode() + "\n", k, threshold, "strict")
                for j, (prob, label) in enumerate(result):
                    labels[i, j], probs[i, j] = self._numbers[label], prob
        return labels, probs


def _none_found(lines: int, k: int) -> tuple[Array, Array]:
    import numpy as np

    return np.full((lines, k), -1, dtype=np.int32), np.zeros((lines, k), dtype=np.float32)


def _without_nul(lines: LineTable) -> LineTable:
    """Return the same lines in a buffer without NUL; their code points are not counted anew."""
    text = lines.utf8.tobytes()[1:-PADDING].replace(b"\0", b"").decode()
    return LineTable.of([text])


def check_fasttext(model: str) -> None:
    """Check the file of a configured name or path; once for each of its versions.

    Raises:
        ConfigError: if it is not that of a supervised fastText model, whole and consistent.
    """
    path = os.path.realpath(models.resolve(model))
    _check(path, models.digest_of_file(path))


@functools.lru_cache(maxsize=64)
def _check(path: str, digest: str) -> None:
    _contents(path, stat(path))


@functools.lru_cache(maxsize=1)
def _contents(path: str, version: Stat | None) -> "Contents":
    """Return what a version of a file holds; kept from the check until it is loaded."""
    from toolkit.text.fasttext import model_file

    return model_file.read(path)


FastText = Annotated[str, msgspec.Meta(extra={"model": is_known, "check": check_fasttext})]
"""Type of an option that names a supervised fastText model: a `Model` whose file is checked before anything is
written."""


def load_fasttext(model: str) -> FastTextModel:
    """Return the model for a configured name or path; loaded once a process, shared by all taggers that use it."""
    path = os.path.realpath(models.resolve(model))
    return _load(path, stat(path))


@functools.lru_cache(maxsize=8)
def _load(path: str, version: Stat | None) -> FastTextModel:
    try:
        return FastTextModel(path, _contents(path, version))
    finally:
        _contents.cache_clear()
