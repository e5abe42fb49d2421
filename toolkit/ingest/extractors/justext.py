"""Paragraphs of a page without boilerplate, by jusText.

Source: Pomikálek 2011, "Removing Boilerplate and Duplicate Content from Web Corpora" (Masaryk University).
"""

import functools

from toolkit.distribution import require_extra
from toolkit.errors import ConfigError
from toolkit.ingest.web.extractor import Extracted, Extractor, Page


class Justext(Extractor):
    """Long paragraphs with few links and many stop words, one a line; the extra ``justext``.

    Attributes:
        language: jusText's list of stop words, such as `English`; none: length and links alone decide, for pages of any
            language
        headings: keep short headings before content
    """

    language: str | None = None
    headings: bool = True

    def check(self) -> None:
        require_extra("justext", "extractor: justext", "justext")
        self._stop_words  # noqa: B018  # a list that is not there is an error

    @functools.cached_property
    def _stop_words(self) -> frozenset[str]:
        import justext

        if self.language is None:
            return frozenset()
        if self.language not in justext.get_stoplists():
            names = ", ".join(sorted(justext.get_stoplists()))
            raise ConfigError(f"language: expected one of {names}, got {self.language!r}")
        words: frozenset[str] = justext.get_stoplist(self.language)
        return words

    def extract(self, page: Page) -> Extracted:
        import justext

        independent = {} if self.language else {"stopwords_low": 0, "stopwords_high": 0}
        paragraphs = justext.justext(page.decoded, self._stop_words, no_headings=not self.headings, **independent)
        return Extracted("\n".join(paragraph.text for paragraph in paragraphs if not paragraph.is_boilerplate))
