"""Dolma's own taggers and mixer beside the recipe of Dolma 1.6: documents, reasons, texts.

The language is CCNet's there, before Dolma begins; both get that of `text_language`.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.oracles.frame import Oracle, Verdict, write_pages
from tests.oracles.languages import with_language
from tests.oracles.mutations import mutated
from tests.oracles.pages import Page, read_pages
from tests.oracles.written import written_pages


class Dolma(Oracle):
    """Documents, reasons and texts."""

    NAME = "dolma-1-6-like"
    CONFIG = "dolma-1.6-like.yaml"

    def written(self) -> Iterator[Page]:
        yield from written_pages(200)
        yield from mutated(islice(written_pages(), 80), "recorded")

    def peer(self, pages: Path, environment: Path, folder: Path) -> Iterator[Verdict]:
        guessed = folder / "guessed.jsonl"
        write_pages(map(with_language, read_pages(pages)), guessed)
        return super().peer(guessed, environment, folder)

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        told = {verdict.id: verdict for verdict in super().ours(pages, folder)}
        for page in read_pages(pages):  # a page whose text is too short then is in no output
            yield told.get(page.id) or Verdict(page.id, "min_text_length")

    def reason(self, rule: str) -> str:
        return rule.rpartition(": ")[2]
