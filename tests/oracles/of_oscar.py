"""What the oracles of OSCAR's releases have in common: pages as a WET file, and verdicts from what is written."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from tests.oracles.frame import Oracle, Verdict, rows_of
from tests.oracles.pages import BENCH, WET, Page, of_wet
from tests.oracles.wet import write_wet
from tests.oracles.written_lines import document_pages, sample_pages

TRIMMED = "no long line"
"""The reason of pages that ingest leaves out; no rule is about them."""
CLOSE = 2e-6
"""Probabilities that differ by less are taken for equal."""


class OfOscar(Oracle):
    """Values: all that stands in `metadata`, for the keys that the peer has.

    Attributes:
        VALUES: the keys.
    """

    REASONS: ClassVar = {"short_lines": "short lines"}
    VALUES: ClassVar[tuple[str, ...]]

    def pages(self) -> Iterable[Page]:
        return of_wet((*WET, *BENCH))

    def written(self) -> Iterator[Page]:
        yield from sample_pages()
        yield from document_pages()

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        wet = write_wet(pages, folder / "pages.warc.wet.gz")
        out, rejected = folder / "out", folder / "rejected"
        places = (f"mix.output.path={out}", f"mix.rejected={rejected}", "mix.output.compression=gzip")
        self.run(folder, f"ingest.0.from=['{wet}']", *places)
        judged = {row["id"]: self.reason(row["rejected"]["rule"]) for row in rows_of(rejected)}
        written = {row["warc_headers"]["warc-record-id"]: row for row in rows_of(out)}
        with pages.open("rb") as rows:
            for id in (msgspec.json.decode(row, type=Page).id for row in rows):
                if id in written:
                    yield Verdict(id, text=written[id]["content"], values=self._values(written[id]["metadata"]))
                else:
                    yield Verdict(id, judged.get(id, TRIMMED))

    def same(self, one: Any, other: Any) -> bool:
        """Return True if labels are equal and probabilities differ by a few float32 at most.

        fastText adds up in an order that depends on the processor.
        """
        if isinstance(one, float) and isinstance(other, float):
            return abs(one - other) < CLOSE
        if isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(self.same(one[key], other[key]) for key in one)
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(self.same, one, other))
        return bool(one == other)

    def _values(self, metadata: dict[str, Any]) -> dict[str, Any]:
        return {name: metadata[name] for name in self.VALUES}
