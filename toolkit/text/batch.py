"""Several documents at once: views on all their texts as arrays, and values that are arrays.

`Batch` does for many texts what `Document` does for one, without a Python object for each line.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar, cast, overload

import msgspec

from toolkit.data.documents import Document, is_reference
from toolkit.lazy_numpy import np
from toolkit.text.json_strings import DecodedTexts
from toolkit.text.kernels.signatures import Array
from toolkit.text.line_table import LineTable
from toolkit.text.words import Splitter, Words

T = TypeVar("T")


class Column(Sequence[T], ABC):
    """Values of a batch as arrays; Python objects are made on demand."""

    @abstractmethod
    def raw(self) -> list[msgspec.Raw]:
        """Return the JSON text of each value.

        It is as `msgspec` encodes the object.
        """

    def proves(self, annotation: Any) -> bool:
        """Return True if the arrays can hold only values of a type.

        Otherwise the texts are decoded.

        Args:
            annotation: declared by the tagger.
        """
        return False

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
        """Return one value."""

    def take(self, rows: Sequence[int]) -> Sequence[T]:
        """Return the values of some rows, in this order; as a column where that is possible."""
        return [self.value(i) for i in rows]


BLOCK_ROWS = 256
BLOCK_CHARS = 1 << 19


def in_blocks(items: Iterable[T], chars: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield items in blocks of at most `BLOCK_ROWS` items.

    A block also ends after about `BLOCK_CHARS` characters; `chars` counts those of an item.
    """
    block: list[T] = []
    size = 0
    for item in items:
        block.append(item)
        size += chars(item)
        if size >= BLOCK_CHARS or len(block) >= BLOCK_ROWS:
            yield block
            block, size = [], 0
    if block:
        yield block


class Batch(Sequence[Document]):
    """Documents to tag together; all taggers share views on them, computed once.

    Attributes:
        decoded: Texts of the documents, if they have been decoded from JSON together.

    Args:
        documents: Documents, in order.
        decoded: Texts of the documents, if they have been decoded from JSON together.
    """

    def __init__(self, documents: Sequence[Document], decoded: DecodedTexts | None = None) -> None:
        self._documents = documents
        self.decoded = decoded
        self._columns: dict[str, Column[Any]] = {}
        self._words: dict[tuple[str, str | None], Words] = {}
        self._results: dict[tuple[Any, ...], Any] = {}

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Self:
        """Return the documents as a batch; one that is a batch already stays what it is."""
        return documents if isinstance(documents, cls) else cls(documents)

    @cached_property
    def lines(self) -> LineTable:
        """Return the lines of all texts."""
        return self.decoded.lines if self.decoded else LineTable.of([document.utf8 for document in self._documents])

    @cached_property
    def utf8(self) -> list[bytes]:
        """Return all texts in UTF-8."""
        if self.decoded is None:
            return [document.utf8 for document in self._documents]
        return self.decoded.texts

    @cached_property
    def open_ended(self) -> Array:
        """Return a mask of the texts without a final line feed: bool."""
        if self.decoded:
            return self.decoded.open_ended
        return np.array([document.utf8[-1:] not in (b"", b"\n") for document in self._documents], dtype=bool)

    @property
    def feeds(self) -> Array:
        """Return how many line feeds each text has: int64."""
        return cast("Array", np.diff(self.lines.bounds) - self.open_ended)

    def words(self, splitter: Splitter = "unicode", language: str | None = "") -> Words:
        """Return the words of all texts; computed once for each way to split them (see `Words.of`).

        Args:
            splitter: Way to split them.
            language: Language of all texts, for ``icu``; option of a tagger, for ``dictionary``: a label, or the
                attribute that has each document's.
        """
        result = self._words.get((splitter, language))
        if result is None:
            segments = self._words.get(("segments", language)) if splitter == "unicode" else None
            languages = self.given(language) if splitter == "dictionary" else language or ""
            described = next(iter(self._words.values()), None)
            result = segments.with_alnum() if segments else Words.of(self.lines, splitter, languages, described)
            self._words[splitter, language] = result
        return result

    def datatrove_words(self, language: str | None) -> list[list[str]]:
        """Return the words of all texts as datatrove splits each one's language; split once for all taggers.

        Args:
            language: option of a tagger: a label, or the attribute that has each document's; None is English.
        """
        return self.once(_datatrove_words, language)

    def once(self, compute: Callable[..., T], *arguments: Any) -> T:
        """Return ``compute(batch, *arguments)``, computed once.

        All taggers of the batch share the result.

        Args:
            compute: a function of a module, not one that is made anew for each call.
            arguments: hashable.
        """
        key = compute, *arguments
        if key not in self._results:
            self._results[key] = compute(self, *arguments)
        return cast("T", self._results[key])

    def attribute(self, path: str) -> Sequence[Any]:
        """Return the values of a declared attribute.

        They are a `Column` if the tagger that computed them returned one.
        """
        return self._columns.get(path) or [document.attribute(path) for document in self._documents]

    def given(self, option: str | None) -> Sequence[Any]:
        """Return the value of an option for each document.

        The option names an attribute or is the value itself (see `toolkit.Attribute`).
        """
        if option is not None and is_reference(option):
            return self.attribute(option)
        return [option] * len(self)

    def give(self, path: str, values: Iterable[Any]) -> None:
        """Make values available to `attribute`, here and of each document; the engine calls it."""
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


def _datatrove_words(batch: Batch, language: str | None) -> list[list[str]]:
    from toolkit.text.languages.words import datatrove_words

    labels = batch.given(language) if language is not None else ["en"] * len(batch)
    return list(map(datatrove_words, (document.text for document in batch), labels))
