"""The main content of a page by trafilatura.

Source: Barbaresi 2021, "Trafilatura: A Web Scraping Library and Command-Line Tool for Text Discovery and Extraction".
"""

import logging
from typing import Any, Literal

from toolkit.distribution import require_extra
from toolkit.ingest.web.extractor import Extracted, Extractor, Page

_FACTS = ("author", "date", "sitename", "description", "categories", "tags", "license", "language")


class Trafilatura(Extractor):
    """The main content, by trafilatura's rules and those it falls back to; the extra ``trafilatura``.

    Attributes:
        alt_texts: alternative texts of images
        links: targets of links
        comments: readers' comments are main content
        favor: less text of which more is content (`precision`), or more text (`recall`)
        metadata: title, author, date and other facts of the page, as `metadata.page`
    """

    alt_texts: bool = False
    links: bool = False
    comments: bool = True
    favor: Literal["balanced", "precision", "recall"] = "balanced"
    metadata: bool = False

    def check(self) -> None:
        require_extra("trafilatura", "extractor: trafilatura", "trafilatura")

    def extract(self, page: Page) -> Extracted:
        import trafilatura

        logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # pages without content are no news
        options: dict[str, Any] = {
            "url": page.url,
            "include_comments": self.comments,
            "include_images": self.alt_texts,
            "include_links": self.links,
            "include_formatting": False,
            "favor_precision": self.favor == "precision",
            "favor_recall": self.favor == "recall",
        }
        if not self.metadata:
            del options["url"]
        text = trafilatura.extract(page.decoded, **options) or ""
        if not self.metadata:
            return Extracted(text)
        document = trafilatura.extract_metadata(page.decoded, default_url=page.url)
        facts = {name: getattr(document, name, None) for name in _FACTS}
        return Extracted(text, getattr(document, "title", None), {name: fact for name, fact in facts.items() if fact})
