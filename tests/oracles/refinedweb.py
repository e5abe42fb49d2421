"""RefinedWeb's filters, as DCLM's own code has them, beside the recipe.

Both take the language of lid.176.ftz; lists of URLs are left out on both sides. Nothing is recorded: DCLM takes a
tenth of a second a page. DCLM strips what is left of a text that has lost a line, so texts are compared without white
space at their ends. It removes addresses only from pages that begin with letters of a top level (`re.match`), which is
a slip: its function is run as it is meant, on each page.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import ClassVar

import msgspec

from tests.oracles.frame import Oracle, Verdict
from tests.oracles.pages import Page, real_pages


class Refinedweb(Oracle):
    """Decisions, DCLM's functions as reasons, and texts without white space at their ends."""

    NAME = "refinedweb"
    CONFIG = "refinedweb.yaml"
    CHECKOUT = "mlfoundations/dclm"
    REASONS: ClassVar = {
        "not_english": "language_filter",
        "unsure": "language_filter",
        "quality: few_words": "page_length_filter",
        "quality: many_words": "page_length_filter",
        "quality: word_length": "word_length_filter",
        "quality: symbols": "symbol_ratio_filter",
        "quality: bullets": "bullet_count_filter",
        "quality: ellipsis_lines": "ellipsis_count_filter",
        "quality: alphabetic": "alphabetic_word_ratio_filter",
        "quality: stop_words": "stop_word_filter",
        "repetition": "massive_web_repetition_filters",
        "removed": "word_removal_ratio_filter",
    }

    def pages(self) -> Iterable[Page]:
        return islice((page for page in real_pages() if len(page.text) < 20_000), 3_000)  # DCLM: 10 pages a second

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        for verdict in super().ours(pages, folder):
            yield msgspec.structs.replace(verdict, text=verdict.text and verdict.text.strip())
