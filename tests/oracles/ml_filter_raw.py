"""A slow reference of EuroLingua's features, with spaCy's own tokens, beside `statistics`, value by value."""

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tests.oracles.frame import FOLDER, Oracle, Verdict, rows_of
from tests.oracles.languages import with_language
from tests.oracles.pages import Page, read_pages, real_pages
from tests.oracles.written import written_pages

BAD_WORDS = {"en": "The\nday\nold\nwww\ncom", "de": "und\nBrücke", "fr": "pont\nhtml", "es": "que\nblog", "ru": "и"}
"""Common words in place of bad ones, so that the rate is seldom 0."""
LONGEST = 20_000
"""Code points of a page: the reference takes quadratic time."""


class Eurolingua(Oracle):
    """All features but `token_count`, which needs GPT-2's tokenizer."""

    NAME = "ml-filter-raw"
    CONFIG = "ml-filter-raw.yaml"

    def pages(self) -> Iterable[Page]:
        for page in real_pages():
            url = page.metadata.get("its_url")
            found = Page(page.id, page.text[:LONGEST], metadata={"url": url} if url else {})
            yield with_language(found)

    def written(self) -> Iterable[Page]:
        for number, page in enumerate(written_pages(150)):
            url = {"url": f"https://old-{number}.example/the_day/que.html"} if number % 3 else {}
            yield with_language(msgspec.structs.replace(page, metadata=url))

    def peer(self, pages: Path, environment: Path, folder: Path) -> Iterator[Verdict]:
        verdicts, script = folder / "verdicts.jsonl", FOLDER / "peers" / "ml_filter_raw.py"
        line = [environment / "bin" / "python", script, pages, verdicts, _lists(folder)]
        subprocess.run(line, check=True)
        with verdicts.open("rb") as lines:
            yield from (msgspec.json.decode(row, type=Verdict) for row in lines)

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        self.run(folder, f"ingest.0.from=['{pages}']", f"tag.statistics-0.bad_words={_lists(folder)}")
        for page, row in zip(read_pages(pages), rows_of(folder / "dataset/attributes/statistics-0"), strict=True):
            assert page.id == row["id"]
            yield Verdict(page.id, text=page.text, values=row["attributes"]["statistics"])


def _lists(folder: Path) -> Path:
    lists = folder / "lists"
    lists.mkdir(exist_ok=True)
    for language, words in BAD_WORDS.items():
        (lists / language).write_text(words, encoding="utf-8")
    return lists
