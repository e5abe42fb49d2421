"""The contract suite of extractors."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolkit.ingest.web.extractor import EXTRACTORS, Extracted, Extractor, ExtractorSpec, Page, SentPage, page_reader
from toolkit.testing import plugin

URL = "https://example.org/page"
HEADERS = {"content-type": ["text/html; charset=utf-8"]}


def check_extractor(
    extractor: Extractor | type[Extractor],
    pages: Mapping[str, str],
    options: Mapping[str, Any] | None = None,
    *,
    new_process: bool = True,
) -> None:
    """Check the contract of an extractor.

    It says what it is; it gives the texts that are expected, the same again and in another process; it leaves pages as
    they are; what it gives of any page is an `Extracted` that can be written as JSON, or an exception, which costs the
    page.

    Args:
        extractor: a configured one, or a class.
        pages: the text that is expected of each HTML page.
        options: Options of the class; those without a default must be here.
        new_process: True if pages are also read in a process of its own, which takes a second.

    Raises:
        AssertionError: with what is expected, what was got, and what to do.
        MissingExtra: if a package that it needs is not installed.
    """
    result = plugin.configured(extractor, options, {})
    name = plugin.name_of(result)
    result.check()
    plugin.check_configuration(result, EXTRACTORS)
    plugin.expect(pages, f"{name}: expected at least one page, got none")
    texts = list(pages.values())
    for _ in range(2):
        results = [_extracted(result, html).text for html in pages]
        plugin.expect(
            results == texts,
            f"{name}: expected the texts {_short(texts)}, got {_short(results)}; "
            "keep nothing from one page to the next",
        )
    for html in (*plugin.NASTY.values(), "", "<html>", "<p>" * 5000):
        _check_any(result, html)
    plugin.check_travels(result)
    if new_process:
        elsewhere = plugin.in_new_process(
            texts_of, plugin.reference_of(type(result)), plugin.options_of(result), list(pages)
        )
        plugin.expect(
            elsewhere == texts, f"{name}: expected the same texts in another process, got {_short(elsewhere)}"
        )


def texts_of(reference: str, options: Mapping[str, Any], pages: Sequence[str]) -> list[str]:
    """Return the texts of pages by a configured extractor."""
    read = page_reader(ExtractorSpec(reference, dict(options)))
    return [read(SentPage(html.encode(), "utf-8", is_html=True, url=URL, headers=HEADERS)).text for html in pages]


def _page(html: str) -> Page:
    return Page(html.encode(errors="replace"), URL, copy.deepcopy(HEADERS), html)


def _extracted(extractor: Extractor, html: str) -> Extracted:
    page = _page(html)
    return _checked(extractor, html, page, extractor.extract(page))


def _checked(extractor: Extractor, html: str, page: Page, extracted: Extracted) -> Extracted:
    """Return the result for a page, checked.

    It has its type, and the page is unchanged.
    """
    name = plugin.name_of(extractor)
    plugin.expect(
        isinstance(extracted, Extracted), f"{name}: expected toolkit.Extracted, got {type(extracted).__name__}"
    )
    plugin.expect(page == _page(html), f"{name}: expected a page that stays as it is, got one that was changed")
    try:
        msgspec.convert(msgspec.json.decode(msgspec.json.encode(extracted)), Extracted)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise AssertionError(
            f"{name}: expected a text, a title and metadata that can be written as JSON, got: {error}"
        ) from error
    return extracted


def _check_any(extractor: Extractor, html: str) -> None:
    """Check the result of an unusual page; an exception of the extractor costs the page, and is none of the suite."""
    page = _page(html)
    try:
        result = extractor.extract(page)
    except Exception:  # ingest counts the page as lost
        return
    _checked(extractor, html, page, result)


def _short(texts: Sequence[str]) -> str:
    return ", ".join(repr(text[:60]) for text in texts[:5])
