"""All visible text of a page, or its main content.

Source: resiliparse 2 (Bevendorff et al., ECIR 2018), ``extract_plain_text``.
"""

from typing import Literal

from toolkit.ingest.web.extractor import Extracted, Extractor, Page


class Resiliparse(Extractor):
    """All visible text, or the main content alone; fast, and in the base installation.

    Attributes:
        main_content: leave out navigation, headers and footers, by resiliparse's heuristics
        title: the page's title is the first line
        layout: `lines` removes indentation and blank lines, `formatted` keeps both
        list_bullets: bullets and numbers of list items
        alt_texts: alternative texts of images
        links: targets of links
        form_fields: buttons, and values of form fields
        noscript: text for browsers without JavaScript
        comments: readers' comments belong to the main content
    """

    main_content: bool = False
    title: bool = True
    layout: Literal["lines", "formatted"] = "lines"
    list_bullets: bool = False
    alt_texts: bool = False
    links: bool = False
    form_fields: bool = False
    noscript: bool = False
    comments: bool = True

    def extract(self, page: Page) -> Extracted:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree

        tree = HTMLTree.parse(page.decoded)
        text: str = extract_plain_text(
            tree,
            preserve_formatting=True,
            main_content=self.main_content,
            list_bullets=self.list_bullets,
            alt_texts=self.alt_texts,
            links=self.links,
            form_fields=self.form_fields,
            noscript=self.noscript,
            comments=self.comments,
        )
        if self.layout == "lines":
            text = folded(text)
        title = " ".join((tree.title or "").split()) if self.title else ""
        return Extracted(f"{title}\n{text}" if title and text else title or text)


def folded(text: str) -> str:
    r"""Return the lines, without blank ones, each with single spaces between words.

    >>> folded("  a\t b \n\n c\n")
    'a b\nc'
    """
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
