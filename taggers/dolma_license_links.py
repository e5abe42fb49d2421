r"""Addresses of Creative Commons licences in HTML, by Dolma's ``cc_re_fast``.

Source: Dolma 1.2.1, ``taggers/licenses.py``, after dkpro-c4corpus (Habernal et al. 2016).
"""

import re
from typing import Literal

from toolkit import Document, Example, Span, Tagger

Licence = Literal["by", "by-sa", "by-nd", "by-nc", "by-nc-sa", "by-nc-nd", "publicdomain"]
LINK = re.compile(
    r"https?://creativecommons\.org/licenses/(by|by-sa|by-nd|by-nc|by-nc-sa|by-nc-nd|publicdomain)[\"/ >]"
)


class DolmaLicenseLinks(Tagger):
    """A span over the text for each licence address in ``metadata.html``.

    The score is 0.5 + 0.5 / n for the n-th address of any licence in the page, rounded to 5 places. A document without
    HTML has no spans. (Dolma stops there.) For versions and languages of licences, and for today's marks of the public
    domain, use `dolma_licenses`.

    Attributes:
        license: the licence to look for
    """

    EXAMPLES = (
        Example("", []),
        Example(
            "A page",
            [[0, 6, 1.0], [0, 6, 0.66667]],
            metadata={
                "html": "http://creativecommons.org/licenses/by/4.0, https://creativecommons.org/licenses/by-sa/ "
                '"https://creativecommons.org/licenses/by"'
            },
        ),
        Example(
            "né",
            [[0, 2, 1.0]],
            options={"license": "by-sa"},
            metadata={"html": "<a href=https://creativecommons.org/licenses/by-sa>"},
        ),
    )

    license: Licence = "by"

    def tag(self, document: Document) -> list[Span]:
        html = document.metadata.get("html")
        results = LINK.findall(html) if isinstance(html, str) else ()
        return [
            Span(0, document.chars, round(0.5 + 0.5 / n, 5))
            for n, name in enumerate(results, 1)
            if name == self.license
        ]
