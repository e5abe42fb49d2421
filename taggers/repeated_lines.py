"""Repeated lines of a document.

Source: the key `ccnet` is that of CCNet (Wenzek et al. 2020, arXiv:1911.00359), ``text_normalizer.py``,
``normalize_for_dedup``, which compares all lines of a shard, blank ones too. Gopher (Rae et al. 2021, arXiv:2112.11446)
knows repeated lines as a share of a document.
"""

import re
from collections import Counter
from typing import Annotated, Literal

import msgspec

from toolkit import Document, Example, Span, Tagger

_DIGIT = re.compile(r"\d")
_DELETED = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f，。、„”“«»１」「《》´∶：？！（）；–—．～’…━〈〉【】％►]")
"""As in CCNet; line feeds are between lines here."""


class RepeatedLines(Tagger):
    r"""Spans of second and later occurrences of lines; with line ends, for the rule `cut`.

    The score of a span is how often the line occurred before: 1 for the second. `key` says when two lines are the same:
    if they are equal as they are (``exact``), without white space around them (``stripped``), or in the form of CCNet
    (``ccnet``). That form is stripped, in lower case, with 0 for each digit, without control characters and without
    some 30 punctuation marks beyond ASCII. A line of which fewer than `min_chars` code points, or only white space, is
    left never counts as repeated.

    Attributes:
        key: the form in which lines are compared
        min_chars: code points that a repeated line has at least
    """

    EXAMPLES = (
        Example("", []),
        Example("Home\n\nText\nHome\n\nhome \nHome", [[11, 16, 1.0], [23, 27, 2.0]]),
        Example("1. Ä…\r\n22\n2. ä\r\n31", [[10, 16, 1.0], [16, 18, 1.0]], options={"key": "ccnet"}),
        Example("No\n no\nNo \nYes\nYes", [[7, 11, 1.0], [15, 18, 1.0]], options={"key": "stripped"}),
        Example("No\nNo\nYes\nYes", [[10, 13, 1.0]], options={"min_chars": 3}),
    )

    key: Literal["exact", "stripped", "ccnet"] = "exact"
    min_chars: Annotated[int, msgspec.Meta(ge=1)] = 1

    def tag(self, document: Document) -> list[Span]:
        keys = self._keys(document)
        earlier = {
            key: 0
            for key, count in Counter(keys).items()
            if count > 1 and len(key) >= self.min_chars and not key.isspace()
        }
        if not earlier:
            return []
        text, spans, start = document.text, [], 0
        for key, line in zip(keys, text.split("\n"), strict=False):  # behind the last \n there is no line
            end = min(start + len(line) + 1, len(text))
            if key in earlier:
                if earlier[key]:
                    spans.append(Span(start, end, float(earlier[key])))
                earlier[key] += 1
            start = end
        return spans

    def _keys(self, document: Document) -> list[str]:
        if self.key == "exact":
            return document.lines
        keys = list(map(str.strip, document.lines))
        if self.key == "ccnet":
            text = _DIGIT.sub("0", "\n".join(keys).lower())
            return _DELETED.sub("", text).split("\n") if keys else []
        return keys
