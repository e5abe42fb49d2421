"""The language of a document, from those of its lines.

Source: ungoliant 1.1 to 2.0 (OSCAR 22.01, 23.01), ``pipelines/oscardoc/pipeline.rs`` (the vote by bytes) and
``identifiers/multilingual.rs`` (``StrictMultilingual``). OSCAR breaks ties by the order of a hash map; here the
alphabetically first label wins.
"""

from typing import Annotated

import msgspec
import numpy as np

from toolkit import Attribute, Document, Example, Prediction, Tagger, shortest_float32


class Share(msgspec.Struct, frozen=True):
    """What a language has of a document: lines, bytes without line ends, bytes x probability / all bytes."""

    lines: int
    bytes: int
    prob: float


class Vote(msgspec.Struct, frozen=True):
    """The value of `Language`; `shares` is by label, the label with most bytes first."""

    label: str | None
    prob: float
    multilingual: bool
    shares: dict[str, Share]


EN, FR = {"label": "en", "prob": 0.9}, {"label": "fr", "prob": 1.0}


class Language(Tagger):
    r"""The language with most bytes of lines, and how sure that is.

    - ``label``: ``multi`` for a multilingual document, else the language with most UTF-8 bytes (the alphabetically
      first of several), null if the lines without language have more bytes than any.
    - ``prob``: 0.5 for ``multi``, else f32(sum of f32(bytes) x f32(prob)) / f32(all bytes) over the winner's lines, in
      their order; a line without language counts with probability 1 for the null label. 0 for a text without bytes.
    - ``multilingual``: with n lines in k languages (lines without language count as one more key, if there are any):
      n >= `min_lines`; more than `min_share` of the lines have a probability of at least `min_prob`;
      2 <= k <= `max_languages`; every language has at least t = floor(n / keys) lines, the lines without language are
      at most t.
    """

    EXAMPLES = (
        Example("", {"label": None, "prob": 0.0, "multilingual": False, "shares": {}}, attributes={"lines": []}),
        Example(
            "one line\nanother\nune",
            {
                "label": "en",
                "prob": 0.75,
                "multilingual": False,
                "shares": {
                    "en": {"lines": 2, "bytes": 15, "prob": 0.75},
                    "fr": {"lines": 1, "bytes": 3, "prob": 0.16666667},
                },
            },
            attributes={"lines": [EN, EN, FR]},
        ),
        Example(
            "été\n???",
            {
                "label": "fr",
                "prob": 0.625,
                "multilingual": False,
                "shares": {"fr": {"lines": 1, "bytes": 5, "prob": 0.625}},
            },
            attributes={"lines": [FR, None]},
        ),
        Example(
            "a\n" * 10,
            {
                "label": "multi",
                "prob": 0.5,
                "multilingual": True,
                "shares": {"en": {"lines": 5, "bytes": 5, "prob": 0.45}, "fr": {"lines": 5, "bytes": 5, "prob": 0.5}},
            },
            attributes={"lines": [EN] * 5 + [FR] * 5},
        ),
    )

    lines: Annotated[
        str,
        Attribute("line_language", list[Prediction | None]),
        msgspec.Meta(description="the set whose `line_language` is read"),
    ]
    min_lines: Annotated[int, msgspec.Meta(ge=1, description="of a multilingual document")] = 10
    min_share: Annotated[float, msgspec.Meta(description="of sure lines, exceeded in a multilingual document")] = 0.8
    min_prob: Annotated[float, msgspec.Meta(description="from which a line counts as sure")] = 0.8
    max_languages: Annotated[int, msgspec.Meta(ge=2, description="of a multilingual document")] = 5

    def tag(self, document: Document) -> Vote:
        found: list[Prediction | None] = document.attribute(self.lines)
        if len(found) != len(document.lines):
            raise ValueError(f"expected a value for each of {len(document.lines)} lines, got {len(found)}")
        rows: dict[str | None, list[tuple[int, float]]] = {}
        for size, line in zip(document.line_bytes, found, strict=True):
            rows.setdefault(line.label if line else None, []).append((size, line.prob if line else 1.0))
        total = sum(document.line_bytes)
        shares = {label: _share(lines, total) for label, lines in rows.items()}
        winner = min(shares, key=lambda label: (-shares[label].bytes, label is None, label or ""), default=None)
        languages = {label: share for label, share in shares.items() if label is not None}
        ranked = dict(sorted(languages.items(), key=lambda item: (-item[1].bytes, item[0])))
        if self._multilingual(found, rows):
            return Vote("multi", 0.5, True, ranked)
        return Vote(winner, shares[winner].prob if shares else 0.0, False, ranked)

    def _multilingual(self, found: list[Prediction | None], rows: dict[str | None, list[tuple[int, float]]]) -> bool:
        n, languages = len(found), len(rows) - (None in rows)
        if n < self.min_lines or not 2 <= languages <= self.max_languages:
            return False
        if sum(1 for line in found if line and line.prob >= self.min_prob) / n <= self.min_share:
            return False
        t = n // len(rows)
        return all(len(lines) <= t if label is None else len(lines) >= t for label, lines in rows.items())


def _share(lines: list[tuple[int, float]], total: int) -> Share:
    size = sum(bytes_ for bytes_, _ in lines)
    if not total:
        return Share(len(lines), size, 0.0)
    table = np.array(lines, dtype=np.float32)
    # accumulate adds one after the other, in float32, as the original does; np.sum adds pairwise
    weighted = np.add.accumulate(table[:, 0] * table[:, 1], dtype=np.float32)[-1]
    return Share(len(lines), size, shortest_float32([weighted / np.float32(total)])[0])
