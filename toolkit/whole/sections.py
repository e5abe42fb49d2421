"""Files of numbered sections, by which tasks hand work to one another: each writes one, others read their part of all.

A file is sealed; it begins with where each section begins, and where the last ends: int64 (sections + 1). Sections
hold arrays, each behind its type and its length.
"""

import tempfile
from collections.abc import Iterable, Sequence
from typing import Self

from toolkit.text.kernels.signatures import Array
from toolkit.whole.sealed import Sealed, SealedOutput

_BLOCK = 1 << 20


def bounds_of(sizes: Array) -> Array:
    """Return where things of these sizes begin that stand one behind the other, and the end of all; int64."""
    import numpy as np

    found = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


def packed(arrays: Sequence[Array]) -> bytes:
    """Return arrays as bytes; `unpacked` gives them back, if it is told their types."""
    import numpy as np

    lengths = np.array([len(each) for each in arrays], dtype="<i8")
    return b"".join([lengths.tobytes(), *(np.ascontiguousarray(each).tobytes() for each in arrays)])


def unpacked(data: bytes, types: Sequence[object]) -> list[Array]:
    """Return the arrays of a section, read-only; empty ones if it has no bytes."""
    import numpy as np

    if not data:
        return [np.empty(0, dtype=each) for each in types]  # type: ignore[call-overload]
    lengths = np.frombuffer(data, dtype="<i8", count=len(types)).tolist()
    found, at = [], 8 * len(types)
    for type_, length in zip(map(np.dtype, types), lengths, strict=True):  # type: ignore[arg-type]
        found.append(np.frombuffer(data, dtype=type_, count=length, offset=at))
        at += length * type_.itemsize
    return found


def starts_of(sizes: Sequence[int] | Array) -> bytes:
    """Return what a file of sections of so many bytes begins with."""
    import numpy as np

    return np.cumsum([8 * (len(sizes) + 1), *sizes], dtype="<i8").tobytes()


def write_sections(path: str, sections: Iterable[bytes]) -> None:
    """Write a file, whole or not at all; of what it is made one section is in memory at a time."""
    with tempfile.TemporaryFile() as held, SealedOutput(path) as out:
        sizes = [held.write(section) for section in sections]
        out.write(starts_of(sizes))
        held.seek(0)
        while block := held.read(_BLOCK):
            out.write(block)


class Sections:
    """Reads sections of a file. A context manager.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        self._file = Sealed(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.__exit__(*_)

    def read(self, first: int, behind: int | None = None) -> bytes:
        """Return a section, or those up to another one, together."""
        import numpy as np

        last = first + 1 if behind is None else behind
        begin, end = (int(np.frombuffer(self._file.at(8 * each, 8), dtype="<i8")[0]) for each in (first, last))
        return self._file.at(begin, end - begin) if end > begin else b""
