"""Passwords, keys and tokens in a text.

Source: detect-secrets 1.5 (Yelp, Apache-2.0), whose detectors run line by line, without its filters and without asking
the services whether a key is valid.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from toolkit import ConfigError, Document, Example, Span, Tagger, require_extra

MAX_CHARS = 1000
"""Longer lines are looked at in pieces: the time of some detectors is the square of what they are given, or worse."""

OVERLAP = 200
"""Characters that a piece has of the one before it."""

MIN_GROUP = 6
"""Where a detector's group has fewer characters, it is a token's prefix, and the secret is all that matched."""

MAX_KEYWORDS = 20
"""In a piece with more of these words the detector of key words, whose time is their number cubed, does not run."""

_KEYWORD = re.compile(r"(?i)key|pass|pwd|secret|contrase")
_QUOTE = re.compile("['\"`]")


class SecretSpans(msgspec.Struct, frozen=True):
    """Spans of secrets, in order, and the type of each.

    Attributes:
        spans: Spans of secrets, in order.
        types: The type of each secret, in the words of detect-secrets.
    """

    spans: list[Span]
    types: list[str]


class Secrets(Tagger):
    """Spans of secrets, in order; each span holds only the secret, and has its type as detect-secrets names it.

    If two detectors find a secret, it has two spans. In a line of more than 1,000 characters, a span may have only a
    part of a secret of more than 200 characters.

    Attributes:
        leave_out: types not to look for, as detect-secrets names them
    """

    PERSONAL = True

    EXAMPLES = (
        Example("", SecretSpans([], [])),
        Example(
            "key AKIAIOSFODNN7EXAMPLE\nftp://joe:sesame-1@example.org",
            SecretSpans([Span(4, 24), Span(35, 43)], ["AWS Access Key", "Basic Auth Credentials"]),
        ),
        Example(
            "größe\nghp_abcdefghijklmnopqrstuvwxyz0123456789, password = 'mellon99'",
            SecretSpans([Span(6, 46)], ["GitHub Token"]),
            options={"leave_out": ["Secret Keyword"]},
        ),
    )

    leave_out: tuple[str, ...] = ("Public IP (ipv4)",)

    def check(self) -> None:
        _detectors(self.leave_out)

    def tag(self, document: Document) -> SecretSpans:
        results: set[tuple[int, int, str]] = set()
        for start, line in zip((start for start, _ in document.line_spans), document.lines, strict=True):
            for at in range(0, max(len(line) - OVERLAP, 1), MAX_CHARS - OVERLAP):
                piece = line[at : at + MAX_CHARS]
                if piece and not piece.isspace():
                    results.update((start + at + a, start + at + b, type_) for a, b, type_ in self._find(piece))
        ordered = sorted(results)
        return SecretSpans([Span(a, b) for a, b, _ in ordered], [type_ for _, _, type_ in ordered])

    def _find(self, text: str) -> Iterator[tuple[int, int, str]]:
        for type_, detector in _detectors(self.leave_out):
            for a, b in _places(type_, detector, text):
                yield a, b, type_


def _places(type_: str, detector: Any, text: str) -> Iterator[tuple[int, int]]:
    patterns = getattr(detector, "denylist", None)
    if patterns is not None:
        for pattern in patterns:
            for match in pattern.finditer(text):
                groups = [match.span(i) for i in range(1, pattern.groups + 1) if match[i]]
                whole = not groups or any(b - a < MIN_GROUP for a, b in groups)
                yield from [match.span()] if whole else groups
        return
    if type_ == "Secret Keyword" and not (
        _QUOTE.search(text) and 0 < sum(1 for _ in _KEYWORD.finditer(text)) <= MAX_KEYWORDS
    ):
        return
    limit = getattr(detector, "entropy_limit", 0)
    for secret in set(detector.analyze_string(text)):
        if secret and (not limit or detector.calculate_shannon_entropy(secret) > limit):
            at = text.find(secret)
            while at >= 0:
                yield at, at + len(secret)
                at = text.find(secret, at + len(secret))


@functools.cache
def _detectors(leave_out: tuple[str, ...]) -> list[tuple[str, Any]]:
    require_extra("secrets", "secrets", "detect-secrets", "detect_secrets")
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    classes: dict[str, Any] = get_mapping_from_secret_type_to_class()
    if unknown := [type_ for type_ in leave_out if type_ not in classes]:
        raise ConfigError(f"expected types of {', '.join(sorted(classes))}, got {unknown[0]!r}")
    return [(type_, class_()) for type_, class_ in sorted(classes.items()) if type_ not in leave_out]
