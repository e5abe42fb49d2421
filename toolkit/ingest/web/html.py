"""The text of a web page: by resiliparse, or by trafilatura.

Both are native code that pages can send into minutes of work (resiliparse 2.0: 200,000 attributes of one element, or
as many end tags that close nothing), so the functions that are made here run in a process of their own (`isolated`).
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from toolkit.distribution import missing_extra
from toolkit.errors import MissingExtra
from toolkit.ingest.web.charsets import Decoded, decode_page

Extract = Callable[[str], str]


class HtmlOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options by which the text of a page is taken out of its HTML; those of ``format: warc`` say what each is."""

    extractor: Literal["resiliparse", "trafilatura"]
    main_content: bool
    title: bool
    layout: Literal["lines", "formatted"]
    list_bullets: bool
    alt_texts: bool
    links: bool
    form_fields: bool
    noscript: bool
    comments: bool


class Page(msgspec.Struct):
    """A page as it was sent.

    Attributes:
        body: without HTTP's codings.
        charset: a label by HTTP, or empty.
        html: or plain text, which stays as it is.
    """

    body: bytes
    charset: str
    html: bool


def page_reader(options: HtmlOptions) -> Callable[[Page], Decoded]:
    """Return a function that decodes a page and takes out its text; all that it needs is imported.

    Raises:
        MissingExtra: if the extractor is not installed.
    """
    extract = trafilatura_extractor(options) if options.extractor == "trafilatura" else resiliparse_extractor(options)

    def read(page: Page) -> Decoded:
        decoded = decode_page(page.body, page.charset, declares=page.html)
        if page.html:
            decoded.text = extract(decoded.text)
        return decoded

    read(Page(b"<title>t</title><p>\xfcber", "", html=True))
    return read


def resiliparse_extractor(options: HtmlOptions) -> Extract:
    """All text that a browser shows, or the main content alone."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    def extract(html: str) -> str:
        tree = HTMLTree.parse(html)
        text: str = extract_plain_text(
            tree,
            preserve_formatting=True,
            main_content=options.main_content,
            list_bullets=options.list_bullets,
            alt_texts=options.alt_texts,
            links=options.links,
            form_fields=options.form_fields,
            noscript=options.noscript,
            comments=options.comments,
        )
        if options.layout == "lines":
            text = folded(text)
        title = " ".join((tree.title or "").split()) if options.title else ""
        return f"{title}\n{text}" if title and text else title or text

    return extract


def trafilatura_extractor(options: HtmlOptions) -> Extract:
    """Return the main content, by trafilatura's own rules and those it falls back to."""
    try:
        from trafilatura import extract as trafilatura_extract
    except ImportError:
        raise missing_trafilatura() from None
    import logging

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # a page that it can make nothing of is no news

    def extract(html: str) -> str:
        return (
            trafilatura_extract(
                html,
                include_comments=options.comments,
                include_images=options.alt_texts,
                include_links=options.links,
                include_formatting=False,
            )
            or ""
        )

    return extract


def missing_trafilatura() -> MissingExtra:
    """Return the error where it is wanted and not installed."""
    return missing_extra("trafilatura", "extractor: trafilatura", "trafilatura")


def folded(text: str) -> str:
    r"""Return the lines that are not blank, without white space at their ends, and with one space for any within.

    >>> folded("  a\t b \n\n c\n")
    'a b\nc'
    """
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
