"""Bands of signatures: how probable it is that two documents are compared, by how similar they are.

Source: Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, 3.4. A signature has `bands` bands of `rows` hash
functions. Two documents with Jaccard similarity s agree in one band with probability s^rows, and are compared if they
agree in some band: 1 - (1 - s^rows)^bands.
"""

import math
from typing import NamedTuple

from toolkit.errors import ConfigError

MOST_HASHES = 256
"""Hash functions of a signature whose bands are computed, at most."""

ENOUGH = 0.99
"""The probability that two documents are compared whose similarity is the threshold, at least."""


class Bands(NamedTuple):
    """How a signature is cut into bands.

    Attributes:
        bands: how many.
        rows: hash functions of each.
    """

    bands: int
    rows: int

    @property
    def hashes(self) -> int:
        """Return how many hash functions a signature has."""
        return self.bands * self.rows

    def probability(self, jaccard: float) -> float:
        """Return how probable it is that two documents of this similarity are compared."""
        return float(-math.expm1(self.bands * math.log1p(-(jaccard**self.rows)))) if jaccard < 1 else 1.0

    @classmethod
    def computed(cls, jaccard: float) -> "Bands":
        """Return the steepest of those that give a pair at the threshold `ENOUGH` of a chance.

        That is the most rows a band that `MOST_HASHES` allow: fewer documents below the threshold are compared.

        Raises:
            ConfigError: if none does.
        """
        found = None
        for rows in range(1, MOST_HASHES + 1):
            agree = jaccard**rows
            bands = -math.log1p(-ENOUGH) / -math.log1p(-agree) if 0 < agree < 1 else 1 / agree if agree else math.inf
            if bands <= MOST_HASHES and math.ceil(bands) * rows <= MOST_HASHES:
                found = cls(math.ceil(bands), rows)
        if found is None:
            least = math.ceil(1000 * -math.expm1(math.log1p(-ENOUGH) / MOST_HASHES)) / 1000
            raise ConfigError(f"jaccard: expected at least {least}, below which too little is compared, got {jaccard}")
        return found


class Preset(NamedTuple):
    """What somebody has published.

    Attributes:
        bands: of signatures.
        ngram: words of a shingle.
    """

    bands: Bands
    ngram: int


PRESETS = {
    "fineweb": Preset(Bands(14, 8), 5),
    "dolma3": Preset(Bands(26, 11), 5),
}
"""``fineweb``: FineWeb and FineWeb-2 (datatrove's ``MinhashConfig``); ``dolma3``: OLMo 3's corpus."""

_POINTS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def curve(bands: Bands) -> str:
    """Return a line with how probable it is that two documents are compared, by similarity."""
    points = (f"{bands.probability(point):.3f} at {point:.2f}" for point in _POINTS)
    shown = ", ".join(points)
    return f"{bands.bands} bands of {bands.rows} hashes; probability that a pair is compared, by similarity: {shown}"
