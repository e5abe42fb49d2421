"""Supervised fastText models: what they say of texts and of the lines of documents."""

import functools
import itertools
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from toolkit.data.documents import Prediction
from toolkit.errors import ConfigError, ToolkitError
from toolkit.lazy_numpy import np
from toolkit.storage import Stat, models
from toolkit.storage.models import is_known
from toolkit.storage.paths import stat
from toolkit.text.batch import Column
from toolkit.text.fasttext.labelled import PREFIX
from toolkit.text.kernels.compiling import compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s
from toolkit.text.line_table import PADDING, LineTable
from toolkit.text.portable_floats import shortest_float32

_CAPITAL = re.compile(rb'("label"[ \t]*:[ \t]*")([A-Z])(?=[a-z-]{1,20}")')

_DIGITS = 16  # of a probability's text, with its point


def without_capitals(line: bytes) -> bytes:
    """Return a line of JSON with capitalised labels in lower case.

    The published schema of OSCAR 22.01 spells labels ``En``, ``Multi``; no file of the release does, but others may.
    """
    return _CAPITAL.sub(lambda match: match[1] + match[2].lower(), line)


class LinePredictions(Column[list[Prediction | None]]):
    """A label and its probability, or null, for each line of texts.

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
        return annotation == list[Prediction | None] and bool(np.isfinite(self.probs).all())

    def take(self, rows: Sequence[int]) -> "LinePredictions":
        starts, counts = self.bounds[rows], np.diff(self.bounds)[rows]
        bounds = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(counts, out=bounds[1:])
        places = np.repeat(starts - bounds[:-1], counts) + np.arange(bounds[-1])
        return LinePredictions(self.labels, self.numbers[places], self.probs[places], bounds)

    def raw(self) -> list[msgspec.Raw]:
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
    """Labels in JSON up to the probability, and their ends.

    The ends are (labels + 1).
    """

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
        out: Output buffer.
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
        try:
            self._predict = _Compiled(contents)
            self._predict(LineTable.of([""]), k=1, threshold=0.0)
        except ToolkitError:
            raise
        except MemoryError:
            raise ConfigError(f"{path}: expected a fastText model that memory has room for, got a larger one") from None
        except Exception as error:  # numba is missing, or has no code for this machine
            raise ConfigError(
                f"{path}: expected predictions that numba compiles, got {type(error).__name__}: {error}; try "
                "`pip install --force-reinstall numba`. The fastText library is no substitute: its last digits differ"
            ) from None

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
        labels, probs = self._predict(lines, k=k, threshold=threshold)
        flat = iter(shortest_float32(probs[labels >= 0]))
        return [[Prediction(self.labels[i], next(flat)) for i in row if i >= 0] for row in labels.tolist()]

    def predict_lines(self, lines: LineTable, *, threshold: float = 0.0, min_chars: int = 0) -> LinePredictions:
        """Return the best label of each line of some texts; null for one without, see `predict`.

        Args:
            lines: Lines of the texts; marks are written into their buffer, and taken back.
            threshold: only labels with at least this probability.
            min_chars: lines with fewer code points are null, without being looked at.
        """
        chars, bounds = lines.chars, lines.bounds
        if not lines.utf8.all():
            lines = _without_nul(lines)
        if min_chars:
            lines = lines._replace(starts=np.where(chars < min_chars, lines.ends, lines.starts))
        numbers, probs = self._predict(lines, k=1, threshold=threshold)
        return LinePredictions(self.labels, numbers[:, 0], probs[:, 0], bounds)


class _Compiled:
    """Predicts labels of lines, best first: numbers (-1 for none) and probabilities, (lines, k)."""

    def __init__(self, contents: "Contents") -> None:
        from toolkit.text.fasttext import arrays

        self._contents, self._model = contents, arrays.model_of(contents)

    def __call__(self, lines: LineTable, *, k: int, threshold: float) -> tuple[Array, Array]:
        from toolkit.text.fasttext import arrays

        self._contents.check_unchanged()
        model, n = self._model, len(lines.starts)
        k = min(k, model.labels)
        labels, probs = np.full((n, k), -1, dtype=np.int32), np.zeros((n, k), dtype=np.float32)
        arrays.predict(model, lines, n, arrays.Best(k, threshold, labels, probs), arrays.Scratch.of(model))
        return labels, probs


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
    digest = models.digest_of_file(path)
    if not any(spec.labels and spec.sha256 == digest for spec in models.KNOWN.values()):
        _check(path, digest)


@functools.lru_cache(maxsize=64)
def _check(path: str, digest: str) -> None:
    _contents(path, stat(path))


@functools.lru_cache(maxsize=1)
def _contents(path: str, version: Stat | None) -> "Contents":
    """Return the content of a version of a file.

    It is cached from the check until the model is loaded.
    """
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
