"""Windows: the parts of a text that a model sees, the same when it is trained and when it is asked."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from toolkit.config.settings import ConfigStruct, Description
from toolkit.errors import ConfigError
from toolkit.text.kernels.signatures import Array

Piece = Literal["begin", "middle", "end"]


class Window(ConfigStruct, omit_defaults=True):
    """What a model sees of a text: its lead, or pieces of it, each by itself.

    Attributes:
        lead: so many code points from its beginning.
        pieces: where pieces are taken, each of `characters`; a text that is not longer is one piece.
        characters: code points of a piece.
        aggregate: what becomes of what the model says of the pieces.
    """

    lead: Annotated[int, msgspec.Meta(ge=1)] | None = None
    pieces: list[Piece] = []
    characters: Annotated[int, msgspec.Meta(ge=1)] | None = None
    aggregate: Literal["mean", "max", "min"] = "mean"

    def check(self) -> None:
        """Raise ConfigError for options that do not go together."""
        if (self.lead is None) == (not self.pieces):
            raise ConfigError("window: expected {lead: N}, or {pieces: [begin, middle, end], characters: N}")
        if bool(self.pieces) != (self.characters is not None):
            raise ConfigError("window: expected `pieces` and `characters` together, or neither")
        if len({*self.pieces}) != len(self.pieces):
            raise ConfigError("window: expected each piece once")

    def of(self, text: str) -> list[str]:
        """Return what is seen of a text: one piece, or several."""
        if self.lead is not None:
            return [text[: self.lead]]
        size = self.characters or 0
        if len(text) <= size:
            return [text]
        starts = {"begin": 0, "middle": (len(text) - size) // 2, "end": len(text) - size}
        return [text[starts[piece] : starts[piece] + size] for piece in self.pieces]

    def together(self, values: Array, bounds: Array) -> Array:
        """Return one row for each text of the rows of its pieces; `bounds` is the first of each, and the end of all."""
        import numpy as np

        if self.aggregate == "max":
            return np.maximum.reduceat(values, bounds[:-1])
        if self.aggregate == "min":
            return np.minimum.reduceat(values, bounds[:-1])
        sums: Array = np.add.reduceat(values, bounds[:-1]) / np.diff(bounds)[:, None]
        return sums

    def of_rows(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return one row of those of a text's pieces, as the shortest float32."""
        import numpy as np

        from toolkit.text.portable_floats import shortest_float32

        return shortest_float32(self.together(np.array(rows), np.array([0, len(rows)]))[0])


WindowOption = Annotated[
    Window | None,
    Description(
        description="the part of the text that the model sees: {lead: N} code points, or {pieces: [begin, middle, "
        "end], characters: N, aggregate: mean | max | min}, each by itself; null: all of it"
    ),
]
