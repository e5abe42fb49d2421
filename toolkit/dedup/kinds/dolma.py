"""Exact duplicates in the attribute form of Dolma's deduper: a list of spans, empty where nothing is a duplicate."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from toolkit.data.documents import Span
from toolkit.dedup.exact.pieces import PIECES
from toolkit.dedup.kind import Block, Files, Signer
from toolkit.dedup.kinds.exact import TEXT, Copies, Exact, Seen
from toolkit.dedup.records import SignedShard
from toolkit.storage.outputs import Output
from toolkit.storage.reading import open_stored

SIZES = "sizes.bin"
"""int64: code points of what is compared of each document; of lines or paragraphs those before the first, then those
from the start of each to that of the next."""


class Dolma(Exact, kw_only=True):
    """Exact duplicates, as spans.

    A document that is a duplicate has one span, as long as what is compared; otherwise each line, or paragraph, that is
    a repeat has one, with its line end. The score is 1.
    """

    def value_type(self) -> Any:
        """Return the type of the values."""
        return list[Span]

    def signer(self, files: Files) -> Signer:
        """Return what writes the hashes of a shard, and the sizes of what was compared."""
        return _Sized(self, files, super().signer(files))

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the spans of each document."""
        found = super().values(signed, fates)
        with open_stored(signed.path(SIZES)) as stream:
            for value in found:
                yield _of_document(value, stream.read) if self.unit == "document" else _of_pieces(value, stream.read)


_COPIES, _SEEN = msgspec.json.Decoder(Copies), msgspec.json.Decoder(Seen)


def _of_document(value: Any, read: Any) -> list[Span]:
    (size,) = _sizes(read, 1)
    return [Span(0, size)] if _COPIES.decode(value).duplicate_of else []


def _of_pieces(value: Any, read: Any) -> list[Span]:
    seen = _SEEN.decode(value).seen
    places = np.cumsum(_sizes(read, len(seen) + 1)).tolist()
    return [Span(*places[i : i + 2]) for i, repeated in enumerate(seen) if repeated]


def _sizes(read: Any, number: int) -> list[int]:
    data = read(8 * number)
    while len(data) < 8 * number and (more := read(8 * number - len(data))):
        data += more
    found: list[int] = np.frombuffer(data, dtype="<i8").tolist()
    return found


class _Sized(Signer):
    """Writes what another signer writes, and how long each piece is."""

    def __init__(self, kind: Dolma, files: Files, inner: Signer) -> None:
        super().__init__(kind, files)
        self._inner = inner
        self._out: Output = files.open(SIZES)
        self._exact = kind

    def add(self, block: Block) -> None:
        """Take the next documents."""
        self._out.write(np.array(list(self._of(block)), dtype="<i8").tobytes())
        self._inner.add(block)

    def _of(self, block: Block) -> Iterator[int]:
        kind = self._exact
        if kind.unit == "document":
            texts = [d.text for d in block.documents] if kind.of == TEXT else block.values["of"]
            yield from (len(text or "") for text in texts)
            return
        for document in block.documents:
            pieces = PIECES[kind.unit](document, kind.normalize)
            yield pieces.before
            yield from pieces.sizes

    def finish(self) -> tuple[dict[str, int], Any]:
        """Return what the other signer says."""
        return self._inner.finish()
