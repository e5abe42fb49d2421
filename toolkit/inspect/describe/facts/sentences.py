"""Fields described in a sentence: as taggers and formats say it, else as their names do."""

from toolkit.config.docstrings import attributes_of
from toolkit.data.documents import Span

SPAN = attributes_of(Span)
"""What the numbers of a span are, in their order."""

_HEADERS = {
    "content-length": "Bytes of the WARC record's block.",
    "content-type": "Media type of the WARC record's block.",
    "warc-block-digest": "Digest of the WARC record's block.",
    "warc-date": "When the WARC record was made, or what it is about was fetched.",
    "warc-identified-content-language": "Languages that the crawler found on the page, by ISO 639-3.",
    "warc-ip-address": "Address of the server that the page was fetched from.",
    "warc-payload-digest": "Digest of the WARC record's payload.",
    "warc-record-id": "Identifies the WARC record.",
    "warc-refers-to": "Identifies the WARC record that this one was made from.",
    "warc-target-uri": "Address of the page.",
    "warc-type": "Type of the WARC record, such as `conversion`.",
    "warc-warcinfo-id": "Identifies the WARC record that describes the file.",
}
"""By their names. Source: WARC format 1.1 (ISO 28500:2017), section 5; Common Crawl for the languages."""


def sentence(text: str) -> str:
    """Return a text as a sentence: it begins with a capital and ends with a full stop; nothing stays nothing."""
    text = " ".join(text.split())
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def by_place(column: str, *keys: str | int) -> str:
    """Return what a value is of which nobody says more than where it lies: a column of rows, and keys in it."""
    if len(keys) and "warc_headers" in (column, *keys[:-1]):
        return _HEADERS.get(str(keys[-1]), f"Header `{keys[-1]}` of the WARC record.")
    if (keys or (column,))[-1] == "warc_headers":
        return "Headers of the WARC record, names in lower case."
    if not keys:
        return f"Column `{column}` of the rows, as it is in the data."
    return f"Key `{keys[-1]}` of `{'.'.join(map(str, (column, *keys[:-1])))}`, as it is in the data."
