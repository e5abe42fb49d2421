"""Licences named by a page, and the places of their names.

Source: ``rel="license"`` (HTML standard, RFC 8288 in the header ``Link``), Dublin Core's ``rights`` and ``license``
in meta elements; deeds of Creative Commons as `license_notice` finds them. How much a place says is our judgement.
"""

import re
from typing import Literal

import msgspec

from taggers._rights import Statement, links, page, stated
from toolkit import Document, Example, Tagger

_LINK = re.compile(r"""<([^<>]*)>((?:\s*;\s*[\w*-]+\s*=\s*(?:"[^"]*"|[^\s;,"]+))*)""")
_LICENSE = re.compile(r"""\brel\s*=\s*"?[^"]*\blicense\b""", re.IGNORECASE)
_FORMS = {"link rel=license": "link"}
_HIGH = ("link", "header")
_META = ("license", "licence", "copyright", "rights", "dc.rights", "dcterms.rights", "dcterms.license",
         "dc.rights.license")  # fmt: skip


class PageLicense(msgspec.Struct, frozen=True):
    """A licence named by a page.

    Attributes:
        license: Creative Commons licence, such as `by-sa` or `zero`; null for any other.
        version: Its version; null if none is given.
        confidence: `high` where a page says that this is its licence (`header`, `link`), `medium` in `meta`, `low` in
            `text`, where it may be that of something else.
        statement: Address or words, where they stand, by whom and as of when.
    """

    license: str | None
    version: str | None
    confidence: Literal["high", "medium", "low"]
    statement: Statement


class LicensesOfPage(msgspec.Struct, frozen=True):
    """The licences of a page.

    Attributes:
        licenses: Licences, the places that say most first.
        looked_in: Places of the search: `header`, `meta` (with links), `text`; a place that is not listed was not
            captured.
    """

    licenses: list[PageLicense]
    looked_in: list[str]


class LicensePage(Tagger):
    """Licences in a page's header, links, meta elements and text, with confidence.

    A licence that a page names need not be that of the page: nothing here says that anything is permitted. Header and
    elements are known of documents of `format: warc` alone. In the text only addresses of Creative Commons count.
    """

    EXAMPLES = (
        Example("", {"licenses": [], "looked_in": ["text"]}),
        Example("All rights reserved.", {"licenses": [], "looked_in": ["text"]}),
        Example(
            "größer: https://creativecommons.org/licenses/by/4.0/",
            {"looked_in": ["header", "meta", "text"], "licenses": [
                {"license": "by-sa", "version": "3.0", "confidence": "high", "statement": {
                    "line": "https://creativecommons.org/licenses/by-sa/3.0/", "form": "link",
                    "by": "https://a.example/", "as_of": None, "number": None}},
                {"license": "by", "version": "4.0", "confidence": "low", "statement": {
                    "line": "creativecommons.org/licenses/by/4.0/", "form": "text", "by": "https://a.example/",
                    "as_of": None, "number": None}},
            ]},
            metadata={"url": "https://a.example/", "http": {"headers": {}, "meta": {
                "link rel=license": ["https://creativecommons.org/licenses/by-sa/3.0/"]}}},
        ),
    )  # fmt: skip

    def tag(self, document: Document) -> LicensesOfPage:
        statements, forms = stated(document)
        url, date, *_ = page(document)
        page_licenses = [
            page_license for name, statement in statements for page_license in _licenses_in(name, statement)
        ]
        for notice in links(document.text, "text"):
            line = document.text[notice.start : notice.end]
            page_licenses.append(PageLicense(notice.license, notice.version, "low", Statement(line, "text", url, date)))
        order = ("high", "medium", "low")
        page_licenses.sort(key=lambda item: order.index(item.confidence))
        return LicensesOfPage(list(dict.fromkeys(page_licenses)), [*forms, "text"])


def _licenses_in(name: str, statement: Statement) -> list[PageLicense]:
    """Return the licences in a header or an element."""
    if name == "link" and statement.form == "header":
        values = [target for target, rest in _LINK.findall(statement.line) if _LICENSE.search(rest)]
    else:
        values = [statement.line] if name in _FORMS or (name in _META and statement.form == "meta") else []
    results = []
    for value in values:
        notice = next(links(value, "text"), None)
        kind = _FORMS.get(name, statement.form)
        named = msgspec.structs.replace(statement, line=value[:1000], form=kind)
        license, version = (notice.license, notice.version) if notice else (None, None)
        results.append(PageLicense(license, version, "high" if kind in _HIGH else "medium", named))
    return results
