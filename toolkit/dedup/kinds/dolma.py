"""Exact duplicates in the attribute form of Dolma's deduper: a list of spans, empty where nothing is a duplicate."""

from collections.abc import Iterator
from typing import Any

import msgspec

from toolkit.data.documents import Span
from toolkit.dedup.kind import Block, Files, Signer
from toolkit.dedup.kinds.exact import TEXT, Copies, Exact, Seen
from toolkit.dedup.records import SignedShard
from toolkit.storage.outputs import Output
from toolkit.storage.reading import open_stored

SIZES = "sizes.bin"
"""Code points of what is compared of each document: 8 bytes each, little-endian."""


class Dolma(Exact, kw_only=True):
    """Exact duplicates, as spans.

    A document that is a duplicate has one span over what is compared, as many code points; a text has one for lines, or
    paragraphs, next to each other that are repeats. The score is 1.
    """

    def value_type(self) -> Any:
        """Return the type of the values."""
        return list[Span]

    def signer(self, files: Files) -> Signer:
        """Return what writes the hashes of a shard, and the sizes of what was compared."""
        inner = super().signer(files)
        return inner if self.unit != "document" else _Sized(self, files, inner)

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the spans of each document."""
        found = super().values(signed, fates)
        if self.unit != "document":
            decoder = msgspec.json.Decoder(Seen)
            yield from (decoder.decode(value).spans for value in found)
            return
        copies = msgspec.json.Decoder(Copies)
        with open_stored(signed.path(SIZES)) as stream:
            for value in found:
                size = int.from_bytes(stream.read(8), "little")
                yield [Span(0, size)] if copies.decode(value).duplicate_of else []


class _Sized(Signer):
    """Writes what another signer writes, and how long each key is."""

    def __init__(self, kind: Dolma, files: Files, inner: Signer) -> None:
        super().__init__(kind, files)
        self._inner = inner
        self._out: Output = files.open(SIZES)
        self._of = kind.of

    def add(self, block: Block) -> None:
        """Take the next documents."""
        texts = [d.text for d in block.documents] if self._of == TEXT else block.values["of"]
        self._out.write(b"".join(len(text or "").to_bytes(8, "little") for text in texts))
        self._inner.add(block)

    def finish(self) -> tuple[dict[str, int], Any]:
        """Return what the other signer says."""
        return self._inner.finish()
