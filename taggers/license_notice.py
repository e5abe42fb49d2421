"""Creative Commons licences named by a page.

Source: Dolma, ``cc_re`` (after DKPro C4CorpusTools): links to deeds in ``metadata.html``, in an ``a`` or ``meta``
element; of a deed's address the kind, the version and the last two letters that name a country or a language. Here
links count wherever they are, in the text and the document's own URL as well, and the short names (``CC BY-SA 4.0``)
in the text.
"""

import re

from taggers._rights import Notice, links
from toolkit import Document, Example, Tagger
from toolkit.text import url_of

_NAME = re.compile(
    r"""
    CC (?<!\wCC)
    (?: [ \u00a0-] (?P<kind> BY (?:-(?:NC|ND|SA)){0,2} ) | (?P<zero> 0 ) )
    (?: [ \u00a0-] (?P<version> [1-4]\.[0-9] ) )?
    (?! \w | [.-][0-9A-Za-z] )
    """,
    re.ASCII | re.VERBOSE,
)


class LicenseNotice(Tagger):
    """The Creative Commons licences named in a document, by place, in order.

    - ``license``: ``by``, ``by-sa``, ``by-nc-nd`` …; ``zero``, ``mark``, ``certification`` and ``publicdomain``.
    - ``version``: ``4.0``; null if none is given. ``language``: the code of the language of the deed, or else of the
      country to which the licence is adapted (two letters, but also ``igo`` and ``scotland``); null if there is none.
    - ``place``: ``text``, ``html`` (the metadata's `html`), ``url`` (that of the document).
    - ``start``, ``end``: where the name stands, or the address from ``creativecommons.org`` on.

    Attributes:
        names: true counts short names in the text: `CC BY 4.0`, `CC0`
        html: key of the page's HTML in the metadata, if it is there
    """

    EXAMPLES = (
        Example("", []),
        Example(
            "Licensed https://creativecommons.org/licenses/by-sa/3.0/de/deed.en (CC BY-SA 3.0).",
            [Notice("by-sa", "3.0", "en", "text", 17, 66), Notice("by-sa", "3.0", None, "text", 68, 80)],
        ),
        Example(
            "Größe: CC-BY, CC0, CCBY, NCC BY",
            [Notice("zero", "1.0", None, "html", 24, 66)],
            options={"names": False},
            metadata={"html": '<link href="https://www.creativecommons.org/publicdomain/zero/1.0/">'},
        ),
    )

    names: bool = True
    html: str = "html"

    def tag(self, document: Document) -> list[Notice]:
        notices = list(links(document.text, "text"))
        if self.names and "CC" in document.text:
            for match in _NAME.finditer(document.text):
                license = "zero" if match["zero"] else match["kind"].lower()
                notices.append(Notice(license, match["version"], None, "text", *match.span()))
            notices.sort(key=lambda notice: notice.start)
        metadata = document.metadata
        html = metadata.get(self.html)
        notices += links(html if isinstance(html, str) else "", "html")
        notices += links(url_of({"metadata": metadata}) or "", "url")
        return notices
