"""Several documents at once: views on all their texts as arrays, and values that are arrays.

What `Document` is for one text, `Batch` is for taggers that look at many in one go: no Python object for each line.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast, overload

import msgspec

from toolkit.compiling import compiled
from toolkit.documents import Document

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

T = TypeVar("T")

PADDING = 16
"""Bytes behind the last line, for code that reads several at once."""


class LineTable(NamedTuple):
    r"""The lines of some texts, as `toolkit.documents.split_lines` has them, in one buffer.

    Attributes:
        utf8: int8; the texts in UTF-8, each line with its ``\n``, one ``\n`` before the first, `PADDING` behind.
        starts: int64, offset of each line.
        ends: int64, exclusive, without the line's end.
        chars: int64, code points of each line.
        bounds: int64 (texts + 1), the first line of each text, and the end of all.
    """

    utf8: "Array"
    starts: "Array"
    ends: "Array"
    chars: "Array"
    bounds: "Array"

    @classmethod
    def of(cls, texts: Sequence[str]) -> "LineTable":
        """Of these texts."""
        import numpy as np

        pieces = [b"\n"]
        lines = []
        for text in texts:  # one by one: what is ASCII is copied, not encoded
            data = text.encode()
            pieces.append(data)
            whole = not data or data.endswith(b"\n")
            if not whole:
                pieces.append(b"\n")
            lines.append(data.count(b"\n") + (not whole))
        pieces.append(b"\n" * PADDING)
        utf8 = np.frombuffer(bytearray().join(pieces), dtype=np.int8)
        bounds = np.zeros(len(lines) + 1, dtype=np.int64)
        np.cumsum(lines, out=bounds[1:])
        starts, ends, chars = np.empty((3, bounds[-1]), dtype=np.int64)
        _find_lines(utf8, len(utf8) - PADDING, starts, ends, chars)
        return cls(utf8, starts, ends, chars, bounds)

    @property
    def bytes(self) -> "Array":
        """UTF-8 length of each line."""
        return cast("Array", self.ends - self.starts)

    def sums(self, values: "Array") -> "Array":
        """Of a value of each line, the sum of each text's lines."""
        import numpy as np

        total = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=total[1:])
        return cast("Array", total[self.bounds[1:]] - total[self.bounds[:-1]])


@compiled("int8* int64 int64* int64* int64*")
def _find_lines(utf8: Any, size: Any, starts: Any, ends: Any, chars: Any) -> None:
    line, start, inside = 0, 1, 0
    for i in range(1, size):
        byte = utf8[i]
        inside += byte < -64  # bytes that continue a code point
        if byte == 10:
            end = i - 1 if i > start and utf8[i - 1] == 13 else i
            starts[line], ends[line], chars[line] = start, end, end - start - inside
            line, start, inside = line + 1, i + 1, 0


class Column(Sequence[T], ABC):
    """Values of a batch that are kept as arrays, and become Python objects only where somebody asks for them."""

    @abstractmethod
    def raw(self) -> list[msgspec.Raw]:
        """The JSON text of each value, as `msgspec` would encode the object."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self.value(i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self.value(index % len(self))

    @abstractmethod
    def value(self, index: int) -> T:
        """One value."""


class Batch(Sequence[Document]):
    """Documents that are tagged together, with views on all of them that are computed once and shared by all taggers.

    Args:
        documents: in order.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._columns: dict[str, Column[Any]] = {}

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Self:
        """The documents as a batch; one that is a batch already stays what it is."""
        return documents if isinstance(documents, cls) else cls(documents)

    @cached_property
    def lines(self) -> LineTable:
        """The lines of all texts."""
        return LineTable.of([document.text for document in self._documents])

    def attribute(self, path: str) -> Sequence[Any]:
        """The values of an attribute that the tagger declared to read; a `Column` where it was made as one."""
        return self._columns.get(path) or [document.attribute(path) for document in self._documents]

    def give(self, path: str, values: Iterable[Any]) -> None:
        """Makes values available to `attribute`, here and of each document; the engine calls it."""
        if isinstance(values, Column):
            self._columns[path] = values
            for i, document in enumerate(self._documents):
                document.give_later(path, values.value, i)
        else:
            for document, value in zip(self._documents, values, strict=True):
                document.give(path, value)

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Document]: ...
    def __getitem__(self, index: int | slice) -> Document | Sequence[Document]:
        return self._documents[index]
