"""The parts of a text that a model sees, as offsets: whoever has the text and the offsets has what the model saw."""

from typing import Annotated, Any, Literal

import msgspec

from toolkit.config.settings import ConfigStruct, Description
from toolkit.errors import ConfigError

Piece = Literal["begin", "middle", "end"]

_CHARS = 16
"""Characters a token of the lead of a text, at most: so much of it is looked at, and not a whole book."""


class Windows(ConfigStruct, omit_defaults=True):
    """The parts of a text that the model sees, each by itself.

    Attributes:
        characters: code points of a part.
        tokens: of a part, as the tokenizer counts them.
        pieces: where parts are taken; a text that is not longer than one is one part.
    """

    characters: Annotated[int, msgspec.Meta(ge=1)] | None = None
    tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    pieces: Annotated[
        Annotated[list[Piece], msgspec.Meta(min_length=1)],
        Description(description="where parts of the text are taken: begin, middle, end"),
    ] = msgspec.field(default_factory=lambda: ["begin"])

    def check(self, tokenizer: str | None) -> None:
        """Raise ConfigError for options that do not go together; `tokenizer` is the file that is given."""
        if (self.characters is None) == (self.tokens is None):
            raise ConfigError("window: expected `characters` or `tokens`, one of them")
        if self.tokens is not None and tokenizer is None:
            raise ConfigError("window: expected `tokenizer: tokenizer.json` beside `window: {tokens: …}`, got none")
        if len({*self.pieces}) != len(self.pieces):
            raise ConfigError("window: expected each piece once")

    def of(self, text: str, tokenizer: Any) -> list[tuple[int, int]]:
        """Return where the parts begin and end, in code points.

        Args:
            text: of the document.
            tokenizer: as `toolkit.text.tokens.load_tokenizer` gives it; None with `characters`.
        """
        if self.tokens is None:
            return _pieces(len(text), self.characters or 0, self.pieces)
        head = text if self.pieces != ["begin"] else text[: self.tokens * _CHARS]
        offsets = tokenizer.encode(head, add_special_tokens=False).offsets
        if len(offsets) <= self.tokens and len(head) == len(text):
            return [(0, len(text))]
        parts = _pieces(len(offsets), self.tokens, self.pieces)
        return [(_begin(offsets, first), _end(offsets, behind, len(head))) for first, behind in parts]


def _pieces(length: int, size: int, pieces: list[Piece]) -> list[tuple[int, int]]:
    if length <= size:
        return [(0, length)]
    starts = {"begin": 0, "middle": (length - size) // 2, "end": length - size}
    return [(starts[piece], starts[piece] + size) for piece in pieces]


def _begin(offsets: list[tuple[int, int]], first: int) -> int:
    return offsets[first][0] if first else 0


def _end(offsets: list[tuple[int, int]], behind: int, length: int) -> int:
    """Return where a part ends; of a character that is several tokens all or nothing is in it."""
    return min(offsets[behind - 1][1], offsets[behind][0]) if behind < len(offsets) else length
