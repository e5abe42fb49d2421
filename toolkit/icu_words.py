"""Words as ICU has them, with its dictionaries for languages that are written without blanks (extra ``icu``)."""

from typing import TYPE_CHECKING, Any

from toolkit.errors import MissingExtra

if TYPE_CHECKING:
    import numpy as np

    from toolkit.line_table import LineTable

    Array = np.ndarray[Any, np.dtype[Any]]

_NO_WORD = 100  # UBRK_WORD_NONE_LIMIT: below it are segments without letters and numbers


def boundaries(lines: "LineTable", language: str) -> "tuple[Array, Array]":
    """Where words begin and end in the table's buffer, int64.

    Args:
        lines: the texts; each line is split by itself.
        language: of all of them; ICU's rules differ little between languages.

    Raises:
        MissingExtra: without PyICU.
    """
    try:
        import icu
    except ImportError:
        raise MissingExtra("words of ICU need the package PyICU: pip install 'corpus-toolkit[icu]'") from None
    import numpy as np

    iterator = icu.BreakIterator.createWordInstance(icu.Locale(language or "root"))
    starts, ends = [], []
    utf8 = lines.utf8.tobytes()
    for start, end in zip(lines.starts.tolist(), lines.ends.tolist(), strict=True):
        text = utf8[start:end].decode()
        units = icu.UnicodeString(text)  # offsets are in UTF-16
        at = offset_ = 0
        encoded = text.encode("utf-16-le") if len(units) != len(text) else None
        iterator.setText(units)
        for boundary in iterator:
            piece = text[at:boundary] if encoded is None else encoded[2 * at : 2 * boundary].decode("utf-16-le")
            size = len(piece.encode())
            if iterator.getRuleStatus() >= _NO_WORD:
                starts.append(start + offset_)
                ends.append(start + offset_ + size)
            at, offset_ = boundary, offset_ + size
    return np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)
