"""The counts of ingest, in words for people."""

from collections.abc import Mapping

_WORDS: dict[str, str] = {
    "binary": "page@ left out as no text (a PDF, an image, an archive …)",
    "content_encoding.": "page@ left out for the coding {}",
    "content_type.missing": "page@ whose server named no type",
    "content_type.": "answer@ of the type {} left out",
    "empty": "empty page@ left out",
    "invalid_utf8.drop_document": "document@ left out for bytes that are no UTF-8",
    "lost.crash": "page@ left out because the extractor died",
    "lost.timeout": "page@ left out because the extractor took too long",
    "lost.": "page@ left out because the extractor failed ({})",
    "no_text": "page@ without text left out",
    "not_http": "response@ without HTTP left out",
    "record.": "record@ of the type {} left out",
    "rejected.": "bad item@ kept aside ({})",
    "status.": "answer@ of the status {} left out",
    "too_large": "page@ left out as too large",
    "trim": "document@ without a long line left out",
    "charset.disbelieved": "document@ in another encoding than declared",
    "charset.guessed": "document@ whose encoding was guessed",
    "charset.replaced": "document@ with bytes that are invalid in the encoding, replaced by U+FFFD",
    "http.broken_": "document@ whose {} coding is damaged or cut off",
    "http.not_": "document@ whose header names the coding {}, which the body does not have",
    "invalid_utf8.drop_line": "document@ whose lines that are no UTF-8 were left out",
    "not_finite.": "number@ of {} that JSON does not have (NaN, infinite) and that became null",
    "invalid_utf8.replace": "document@ with bytes that are no UTF-8, replaced by U+FFFD",
    "truncated.": "document@ cut off by the crawler ({})",
}
"""By the name of a count, or what it begins with; ``@`` is an s where there are many."""


def counted(counts: Mapping[str, int]) -> str:
    """Return the counts of ingest beside documents, in words; counts of a user's own reader keep their names."""
    told = [_told(name, number) for name, number in counts.items() if name != "documents" and number]
    return ", ".join(told)


def _told(name: str, number: int) -> str:
    for known in sorted(_WORDS, key=len, reverse=True):
        if name == known or (known[-1] in "._" and name.startswith(known)):
            words = _WORDS[known].replace("@", "s" if number != 1 else "")
            rest = name.removeprefix(known)
            return f"{number:,} {words.replace('{}', rest if known == 'not_finite.' else rest.replace('_', ' '))}"
    return f"{name}: {number:,}"
