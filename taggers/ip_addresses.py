"""IP addresses in a text.

Source: none; what FineWeb (datatrove, ``PIIFormatter``: only public ones) and Dolma (``pii_regex``) look for, with
boundaries, and IPv6 as well.
"""

import ipaddress
import re

from toolkit import Document, Example, Span, Tagger

_V4 = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![0-9A-Za-z_]|\.[0-9])")
_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_REST = re.compile(r"[0-9A-Fa-f:]*+(?:(?<=[0-9])(?:\.[0-9]{1,3}){3})?")
_GROUP_BACKWARDS = re.compile(r"[0-9A-Fa-f]{0,4}")
_AFTER = re.compile(r"[0-9A-Za-z_]|\.[0-9]")
_BEFORE = re.compile(r"[0-9A-Za-z_.]")

MAX_V6 = 45


class IpAddresses(Tagger):
    """Spans of IPv4 and IPv6 addresses, in order; without port and prefix length.

    An IPv4 address has four decimal numbers up to 255 without leading zeros, and neither a letter, a digit nor a dot
    with a digit next to it (so ``v1.2.3.4`` and ``1.2.3.4.5`` have none). An IPv6 address is what RFC 4291 takes, with
    a digit in it (so ``dead::beef`` is none).

    Attributes:
        v4: true finds IPv4 addresses
        v6: true finds IPv6 addresses
        reserved: also addresses that are not public (private, loopback …; `ipaddress.is_global`)
    """

    PERSONAL = True

    EXAMPLES = (
        Example("", []),
        Example("8.8.8.8:53, 10.0.0.1, 1.2.3.4.5, v1.2.3.4, 1.2.3.256", [[0, 7, 1.0]]),
        Example("8.8.8.8:53, 10.0.0.1", [[0, 7, 1.0], [12, 20, 1.0]], options={"reserved": True}),
        Example("Größe [2a00:1450:4001::200e]/64 um 12:30:45, ::1", [[7, 27, 1.0]]),
    )

    v4: bool = True
    v6: bool = True
    reserved: bool = False

    def tag(self, document: Document) -> list[Span]:
        text = document.text
        results = self._v6(text) if self.v6 else []
        if self.v4:
            ends = {span.end for span in results}  # of ``::ffff:8.8.8.8``
            results += [span for span in self._v4(text) if span.end not in ends]
        return sorted(results)

    def _v4(self, text: str) -> list[Span]:
        results = []
        for match in _V4.finditer(text):
            start, end = match.span()
            if not (start and _BEFORE.match(text, start - 1)) and self._is_address(match[0]):
                results.append(Span(start, end))
        return results

    def _v6(self, text: str) -> list[Span]:
        results, end = [], 0
        match = _COLONS.search(text)
        while match:
            colon = match.start()
            group = _GROUP_BACKWARDS.match(text[max(end, colon - 4) : colon][::-1])
            start = colon - (group.end() if group else 0)
            rest = _REST.match(text, colon)
            end = rest.end() if rest else match.end()
            stop = end - (text[end - 1] == ":" and text[end - 2] != ":")
            alone = not (start and _BEFORE.match(text, start - 1)) and not _AFTER.match(text, end)
            if alone and stop - start <= MAX_V6 and self._is_address(text[start:stop]):
                results.append(Span(start, stop))
            match = _COLONS.search(text, end)
        return results

    def _is_address(self, candidate: str) -> bool:
        try:
            address = ipaddress.ip_address(candidate)
        except ValueError:
            return False
        return (self.reserved or address.is_global) and any(map(str.isdecimal, candidate))
