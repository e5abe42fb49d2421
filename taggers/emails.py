"""E-mail addresses in a text.

Source: none; what FineWeb (datatrove, ``PIIFormatter``) and Dolma (``pii_regex``) look for, but bounded to the address
and in time linear in the text: around each ``@`` the longest local part and domain that addresses on the web have.
"""

import re

from toolkit import Document, Example, Span, Tagger

LETTERS = "A-Za-zÀ-ÖØ-öø-ɏͰ-ϿЀ-ԯ"
"""Latin, Greek and Cyrillic; in other scripts words stand next to an address without a blank."""

MAX_LOCAL = 64
MAX_DOMAIN = 253

_DOMAIN = re.compile(
    rf"@((?:[{LETTERS}0-9](?:[{LETTERS}0-9-]{{0,61}}[{LETTERS}0-9])?\.)+"
    rf"(?:xn--[A-Za-z0-9-]{{1,59}}(?<!-)|[A-Za-z]{{2,63}}(?![A-Za-z0-9])|[{LETTERS}]{{2,63}}(?![{LETTERS}0-9])))"
)
_LOCAL_BACKWARDS = re.compile(
    rf"(?>(?:[{LETTERS}0-9_]|-++(?=[{LETTERS}0-9_])|(?<!^)[.'](?=[{LETTERS}0-9_])|[%+~&](?=[{LETTERS}0-9_]))+)"
)


class Emails(Tagger):
    """Spans of e-mail addresses, in order, without the characters around them.

    A local part has letters (Latin, Greek, Cyrillic), digits and ``_``, and between these ``. - + % & ~ '``; it has
    at most 64 characters, else there is no address. A domain has at least two labels, the last of at least two
    letters. Quoted local parts and domains that are IP addresses are not found.
    """

    PERSONAL = True

    EXAMPLES = (
        Example("", []),
        Example("Mail <joe.doe+news@mail.example.org>, or a@b.", [[6, 35, 1.0]]),
        Example("連絡先info@example.co.jpまで、müller@exämple.de.", [[3, 21, 1.0], [24, 41, 1.0]]),
        Example("@name, a@b, 5 @ 3.20, user@host.c0m, ..@example.org", []),
    )

    def tag(self, document: Document) -> list[Span]:
        text, results, end = document.text, [], 0
        for match in _DOMAIN.finditer(text) if "@" in text else ():
            at = match.start()
            local = _LOCAL_BACKWARDS.match(text[max(end, at - MAX_LOCAL - 1) : at][::-1])
            if local and local.end() <= MAX_LOCAL and match.end() - at - 1 <= MAX_DOMAIN:
                end = match.end()
                results.append(Span(at - local.end(), end))
        return results
