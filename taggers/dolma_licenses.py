r"""Links to Creative Commons licences in HTML, by Dolma's ``cc_re``.

Source: Dolma 1.2.1, ``taggers/licenses.py``, after dkpro-c4corpus (Habernal et al. 2016). Its pattern takes time that
grows with the square of an element's or a line's length; what is here finds the same in time that grows with the page.
Letters are those of Unicode as this Python has it.
"""

import functools
import itertools
import re
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from toolkit import Document, Example, Span, Tagger

WHITE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
CIRCLED = "\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189"
"""Symbols that are alphabetic."""

ELEMENT = re.compile(rf"<(?:a|A|meta)[{WHITE}]")
ATTRIBUTE = re.compile("(?:href|HREF|content)=")


class DolmaLicenses(Tagger):
    r"""For each licence, spans over the text: one for each link to it in ``metadata.html``.

    A licence is called ``cc_by``, ``cc_by_nc_sa``, ``cc_publicdomain_zero``; version and language follow, if the link
    has them: ``cc_by_4_0_de``. (Of ``…/4.0/legalcode`` the language is ``le``, as in Dolma.) The tagger reads ``href``
    and ``content`` of the elements ``a`` and ``meta``; if an element has several links, it takes the last one. The n-th
    link of the page has the score 0.5 + 0.5 / n, rounded to 5 places.

    A document without HTML has no spans. (Dolma stops there.)
    """

    EXAMPLES = (
        Example("", {}),
        Example("A page", {}),
        Example(
            "né",
            {"cc_by_sa_4_0_de": [[0, 2, 1.0]], "cc_publicdomain_zero_1_0": [[0, 2, 0.75]]},
            metadata={
                "html": '<a rel="license" href="https://creativecommons.org/licenses/by-sa/4.0/deed.de">Lizenz</a>'
                "<meta content='http://creativecommons.org/publicdomain/zero/1.0/'>"
            },
        ),
    )

    def tag(self, document: Document) -> dict[str, list[Span]]:
        html = document.metadata.get("html")
        results: dict[str, list[Span]] = {}
        by_name: dict[str, str] = {}
        for n, name in enumerate(_links(html), 1) if isinstance(html, str) else ():
            key = "cc_" + re.sub("[^a-zA-Z0-9_]", "_", name)
            if by_name.setdefault(key, name) != name:  # two languages that are not ASCII
                by_name[key], results[key] = name, []
            results.setdefault(key, []).append(Span(0, document.chars, round(0.5 + 0.5 / n, 5)))
        return results


def _links(html: str) -> Iterator[str]:
    """Yield the licences of links, with version and language, in order."""
    if "://creativecommons.org/" not in html:
        return
    patterns = _patterns()
    attributes = [match.start() for match in ATTRIBUTE.finditer(html)]
    quotes = [match.span() for match in re.finditer("['\"]|&quot;", html)]
    closing = [match.start() for match in re.finditer(">", html)]
    line_ends = [match.start() for match in re.finditer("\n", html)]
    end = 0
    for element in ELEMENT.finditer(html):
        if element.start() < end:
            continue
        inside = patterns.inside.match(html, element.end())
        last = inside.end() if inside else element.end()
        first_at, behind = bisect_left(attributes, element.end()), bisect_left(attributes, last + 1)
        for at in reversed(attributes[first_at:behind]):
            link = patterns.link.match(html, at)
            if link is None:
                continue
            line_end = _next(line_ends, link.end(), len(html))
            quote = bisect_left(quotes, (link.end(), 0))
            close = _next(closing, quotes[quote][1], line_end) if quote < len(quotes) else line_end
            if close < line_end:
                version, language = link["version"], link["language"]
                parts = (link["licence"] or link["public"], version and version[1:], language)
                yield "_".join(part for part in parts if part)
                end = close + 1
                break


def _next(places: list[int], at: int, otherwise: int) -> int:
    i = bisect_left(places, at)
    return places[i] if i < len(places) else otherwise


class _Patterns(NamedTuple):
    inside: re.Pattern[str]
    link: re.Pattern[str]


@functools.cache
def _patterns() -> _Patterns:
    """Return two patterns: an element before an attribute, and the attribute."""
    letters, marks = "", ""
    every = map(chr, range(sys.maxunicode + 1))
    for category, points in itertools.groupby(every, unicodedata.category):
        first, *rest = map(ord, points)
        run = f"\\U{first:08x}-\\U{(rest or [first])[-1]:08x}"
        if category[0] in "LM" or category in ("Nd", "Nl", "Pc"):
            letters += run
        elif category[0] == "P":
            marks += run
    word = letters + CIRCLED + "\u200c\u200d"
    return _Patterns(
        re.compile(f"[{word}{marks}{WHITE}=]++"),
        re.compile(
            r"(?:href|HREF|content)=(?:'|\"|&quot;)?https*://creativecommons\.org/"
            r"(?:licenses/(?P<licence>by(?:-nc)?(?:-nd)?(?:-sa)?)|(?P<public>publicdomain/(?:zero|certification|mark)))"
            rf"(?P<version>/\d+\.\d+)?(?:(?:/[{word}]{{2}})?/(?:(?:deed|legalcode)\.)?(?P<language>[{word}]{{2}}))?"
        ),
    )
