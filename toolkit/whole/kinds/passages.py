"""Passages: stretches of text that stand somewhere before, byte by byte, wherever they begin."""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

from toolkit.config.settings import Description
from toolkit.errors import ConfigError
from toolkit.whole.competing import Competing, seed_of
from toolkit.whole.exact.pieces import Pieces
from toolkit.whole.exact.runs import Layout, RunsOutput
from toolkit.whole.kind import Block, Files, Resolved, Signer, Work
from toolkit.whole.passages import resolving
from toolkit.whole.passages.asking import PLACES
from toolkit.whole.passages.gathering import Repeats, values_of
from toolkit.whole.passages.stretches import Cut, buffer_of, stretches_of
from toolkit.whole.records import SignedShard

LEAST, MOST = 10, 1_000_000


class Passages(Competing, kw_only=True):
    """Passages that stand at an earlier place, too, byte by byte."""

    length: Annotated[int, Description(description="bytes of a passage, in UTF-8: the shortest repeat")] = 500

    def check(self) -> None:
        """Raise ConfigError for options that do not go together."""
        if not LEAST <= self.length <= MOST:
            raise ConfigError(f"length: expected a number of bytes from {LEAST} to {MOST:,}, got {self.length}")
        super().check()

    def value_type(self) -> Any:
        """Return the type of the values."""
        return Repeats

    def signer(self, files: Files) -> Signer:
        """Return what writes the stretches of a shard."""
        return _Signer(self, files)

    def resolve(self, work: Work) -> Resolved:
        """Find what stands somewhere before."""
        return resolving.resolve(work, self.length, ranks=self.keep != "first")

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the spans of each document."""
        return values_of(resolving.fates_path(fates, signed.number), signed.record.rows)


class _Signer(Signer):
    """Writes the stretches of a shard."""

    def __init__(self, kind: Passages, files: Files) -> None:
        super().__init__(kind, files)
        self._cut = Cut.of(kind.length)
        self._ranked, self._sign = kind.keep != "first", -1 if kind.descending else 1
        self._runs = RunsOutput(files, Layout(128, self._ranked, False))
        self._places = files.open(PLACES)
        self._bytes = self._passages = 0

    def add(self, block: Block) -> None:
        """Take the next documents."""
        pairs = zip(block.documents, block.competes, strict=True)
        texts = [document.utf8 if competes else b"" for document, competes in pairs]
        none = [None] * len(texts)
        seeds = [0 if scope is None else seed_of(scope) for scope in block.values.get("scope", none)]
        found = stretches_of(texts, self._cut, seeds)
        every = np.ones(len(found.passages), dtype=bool)
        pieces = Pieces(buffer_of([]), every, found.passages, found.counts, np.zeros(len(texts), dtype=np.int64))
        ranks = [0.0 if rank is None else self._sign * float(rank) for rank in block.values.get("keep", none)]
        self._places.write(found.places.tobytes())
        self._runs.add_block(found.keys, pieces, np.array(ranks) if self._ranked else None)
        self._bytes += sum(map(len, texts))
        self._passages += int(found.passages.sum(dtype=np.int64))

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the last run."""
        self._runs.flush()
        return {"bytes": self._bytes, "passages": self._passages}, self._runs.runs
