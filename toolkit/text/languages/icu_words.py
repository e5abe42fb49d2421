"""Words as ICU has them, with its dictionaries for languages that are written without blanks (extra ``icu``)."""

from typing import TYPE_CHECKING

from toolkit.distribution import require_extra
from toolkit.text.kernels.signatures import Array

if TYPE_CHECKING:
    from toolkit.text.line_table import LineTable

_NO_WORD = 100  # UBRK_WORD_NONE_LIMIT: below it are segments without letters and numbers


def check_icu() -> None:
    """Raise MissingExtra without PyICU."""
    require_extra("icu", "words of ICU", "PyICU", "icu")


def boundaries(lines: "LineTable", language: str) -> tuple[Array, Array]:
    """Return where words begin and end in the table's buffer, int64.

    All texts are split in one go: there is always a boundary where a line ends.

    Args:
        lines: the texts.
        language: of all of them; ICU's rules differ little between languages.

    Raises:
        MissingExtra: without PyICU.
    """
    check_icu()
    import icu
    import numpy as np

    iterator = icu.BreakIterator.createWordInstance(icu.Locale(language or "root"))
    text = icu.UnicodeString(lines.utf8.tobytes().decode())
    iterator.setText(text)
    status = iterator.getRuleStatus
    marked = np.fromiter((end if status() >= _NO_WORD else -end for end in iterator), dtype=np.int64)
    ends = np.abs(marked)
    is_word = marked > 0
    starts = np.concatenate([[0], ends[:-1]])
    offsets = _offsets(lines.utf8, len(text))
    return offsets[starts[is_word]], offsets[ends[is_word]]


def _offsets(utf8: Array, units: int) -> Array:
    """Return the offset in UTF-8 of each UTF-16 code unit, which ICU counts in, and of the end."""
    import numpy as np

    if units == len(utf8):
        return np.arange(units + 1)
    firsts = np.flatnonzero(utf8 >= -64)  # bytes that begin a code point
    beyond = utf8[firsts].view(np.uint8) >= 0xF0  # code points that are two units
    return np.append(np.repeat(firsts, np.where(beyond, 2, 1)), len(utf8))
