"""Phone numbers in a text.

Source: Dolma, ``pii_regex`` (numbers of ten digits, as North America writes them), here with boundaries, and only with
the separators that tell them from other numbers; ITU-T E.164 (international ones). With a region: Google's
libphonenumber (package phonenumbers, Apache-2.0), which knows the numbers of all countries.
"""

import re
from typing import Annotated

import msgspec

from toolkit import Document, Example, Span, Tagger, require_extra

_INTERNATIONAL = re.compile(
    r"""
    \+ (?<![\w+].) [1-9]
    (?: [ \u00a0./()-]{0,2} [0-9] ){6,14}
    (?! [\w] | [.-][0-9] )
    """,
    re.ASCII | re.VERBOSE,
)
_NORTH_AMERICAN = re.compile(
    r"""
    [(1-9] (?<![\w+.,/-].)
    (?: (?<=1) [ .-]? (?: \([2-9][0-9]{2}\)[ ]? | [2-9][0-9]{2}[ .-] )
      | (?<=\() [2-9][0-9]{2}\)[ ]?
      | (?<=[2-9]) [0-9]{2}[ .-]
    )
    [2-9][0-9]{2} [ .-] [0-9]{4}
    (?! [\w] | [.-][0-9] )
    """,
    re.ASCII | re.VERBOSE,
)


class PhoneNumbers(Tagger):
    """Spans of phone numbers, in order, without the characters around them.

    Without `region`: ``+`` and 7 to 15 digits, with up to two of blank, ``. - / ( )`` between them; and numbers as in
    ``(212) 555-0123``, ``212-555-0123``, ``1 212.555.0123``: area code and exchange begin with 2 to 9, and there is a
    separator between the parts. A number with a digit or letter next to it does not count. National numbers of other
    countries need `region`: then the spans are what libphonenumber finds and takes for a valid number.

    Attributes:
        region: the country (`DE`) to which numbers without `+` belong; they are found by the package phonenumbers
            (extra `phone`)
    """

    PERSONAL = True

    EXAMPLES = (
        Example("", []),
        Example("Call (212) 555-0123, +44 (0)20 7946 0958 or 2125550123.", [[5, 19, 1.0], [21, 40, 1.0]]),
        Example("電話+81 3-1234-5678まで、12-212-555-0123", [[2, 17, 1.0]]),
    )

    region: Annotated[str, msgspec.Meta(pattern="^[A-Z]{2}$")] | None = None

    def check(self) -> None:
        if self.region:
            _valid("", self.region)

    def tag(self, document: Document) -> list[Span]:
        if self.region:
            return _valid(document.text, self.region)
        results = [Span(*match.span()) for match in _INTERNATIONAL.finditer(document.text)]
        results += [Span(*match.span()) for match in _NORTH_AMERICAN.finditer(document.text)]
        results.sort()
        end = 0
        apart = []
        for span in results:
            if span.start >= end:
                apart.append(span)
                end = span.end
        return apart


def _valid(text: str, region: str) -> list[Span]:
    require_extra("phone", "phone numbers of a region", "phonenumbers")
    import phonenumbers

    matcher = phonenumbers.PhoneNumberMatcher(text, region, max_tries=len(text))
    return [Span(match.start, match.end) for match in matcher]
