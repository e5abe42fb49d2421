r"""Personal data as Dolma's taggers find it: e-mail addresses, telephone numbers, IP addresses.

Source: Dolma 1.2.1, ``taggers/pii.py``: ``pii_regex_v1``, ``pii_regex_v2``, ``pii_regex_with_counts_v2``, and
``pii_regex_with_counts_fast_v2``. Its patterns for addresses and numbers take time that grows with the square of a run
of blanks or of punctuation, and more; what is here finds the same in time that grows with the text.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from toolkit import Batch, Document, Example, Span, Tagger

Type = Literal["EMAIL_ADDRESS", "PHONE_NUMBER", "IP_ADDRESS", "doc", "doc_count", "doc_frac"]
WINDOW = 100  # code points on each side of a number in which it is told that it is none
QUESTIONS = 10_000  # more question marks are taken for a text without sense

NUMBER = r"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
IP = re.compile(rf"(?:{NUMBER}\.){{3}}{NUMBER}")
PHONE = re.compile(r"(?<=\s)\(?\d{3}\)?[-. ]*+\d{3}[-. ]?\d{4}")
"""Without all of the white space before it, which belongs to it."""

AROUND = "".join(chr(c) for c in range(0x3001) if chr(c).isspace()) + ".@,?!;:)("
DOMAIN = re.compile(r"[^\s@,?!;:)(]++")
BEFORE = re.compile(r"[\s.@,?!;:)(]*+")
LOCAL = re.compile(r"[^\s@]*+")

IN_URL = r"[^\s()<>]"
LAST_OF_URL = r"[^\s`!()\[\]{};:'\".,<>?«»“”‘’]"
BRACKETED = rf"\((?>(?:{IN_URL}++|\({IN_URL}++\))*)\)"
URL = re.compile(
    r"\x08(?:https?://|www\d{0,3}[.]|[a-z0-9.\-]+[.][a-z]{2,4}/)"
    rf"(?:{IN_URL}|{BRACKETED})(?>(?:(?!{LAST_OF_URL}){IN_URL})*)(?:{BRACKETED}|{LAST_OF_URL})",
    re.IGNORECASE,
)
r"""A URL behind a backspace: in Dolma ``\b`` is not a word's boundary. It shows whether there is one, not its end."""


class DolmaPii(Tagger):
    r"""The spans of one type, as Dolma has them: with the blanks and punctuation marks around them.

    With ``per: document`` (``pii_regex_v1``, ``…_v2``, ``…_with_counts_v2``):

    - ``EMAIL_ADDRESS``: ``…@…`` with a full stop in the domain, and white space after it.
    - ``PHONE_NUMBER``: ten digits as in the USA, after white space. ``IP_ADDRESS``: four numbers up to 255. Neither
      counts if "isbn", "doi" or ``#`` is within 100 code points.
    - ``doc``: a span over the text. Its score is the number of all these spans, divided by the number of words (pieces
      between white space); -1 for a text without words.
    - ``doc_count``: their number.

    With ``per: line`` (``pii_regex_with_counts_fast_v2``) no span crosses a line end, "isbn", "doi" and ``#`` do not
    matter, and a text of more than 10,000 question marks has no spans. ``doc_frac`` is 1 plus the share of the text
    that is in spans, as in Dolma; -1 for an empty text. Scores are rounded to 5 places.

    Attributes:
        type: the type of the spans
        per: the text in which spans are searched
    """

    PERSONAL = True

    EXAMPLES = (
        Example("", []),
        Example("Write to a.b@c.example, or call 555-123-4567 #.", [[8, 24, 1.0]]),
        Example("Höre: 555-123-4567 ", [[5, 18, 1.0]], options={"type": "PHONE_NUMBER"}),
        Example("10.0.0.1\n", [[0, 8, 1.0]], options={"type": "IP_ADDRESS", "per": "line"}),
        Example("a@b.example\n 555 123 4567\n", [[0, 26, 0.5]], options={"type": "doc"}),
        Example("", [[0, 0, -1.0]], options={"type": "doc"}),
        Example("a@b.example\n 555 123 4567\n", [[0, 26, 2.0]], options={"type": "doc_count"}),
        Example("a@b.example\nälter", [[0, 17, 1.70588]], options={"type": "doc_frac", "per": "line"}),
    )

    type: Type = "EMAIL_ADDRESS"
    per: Literal["document", "line"] = "document"

    def tag_batch(self, documents: Sequence[Document]) -> list[list[Span]]:
        return [item[self.type] for item in Batch.of(documents).once(_look, self.per)]


Found = dict[str, list[Span]]


def _look(batch: Batch, per: str) -> list[Found]:
    """Return the spans of each document by type."""
    look = _in_text if per == "document" else _in_lines
    return [_with_scores(look(document.text), document.text) for document in batch]


def _with_scores(spans_by_type: Found, text: str) -> Found:
    size, words = len(text), len(text.split())
    spans = [span for item in spans_by_type.values() for span in item]
    covered = sum(span.end - span.start for span in spans) + size
    scores = {
        "doc": len(spans) / words if words else -1.0,
        "doc_count": float(len(spans)),
        "doc_frac": covered / size if size else -1.0,
    }
    return spans_by_type | {name: [Span(0, size, round(score, 5))] for name, score in scores.items()}


def _in_text(text: str) -> Found:
    phones = [span for span in _phones(text) if not _is_other_number(text, span)]
    if phones and "\b" in text and URL.search(text):
        phones = []
    emails = []
    for email in _emails(text):
        name, domain = text[email.start : email.end].split("@")[:2]
        if name.strip() != "(" and "." in domain:
            emails.append(Span(email.start, email.end))
    return {
        "EMAIL_ADDRESS": emails,
        "PHONE_NUMBER": phones,
        "IP_ADDRESS": [span for span in _ips(text) if not _is_other_number(text, span)],
    }


def _is_other_number(text: str, span: Span) -> bool:
    context = text[max(0, span.start - WINDOW) : span.end + WINDOW]
    return "isbn" in context or "doi" in context or "#" in context


def _in_lines(text: str) -> Found:
    results: Found = {"EMAIL_ADDRESS": [], "PHONE_NUMBER": [], "IP_ADDRESS": []}
    start = 0
    for line in text.split("\n") if text.count("?") <= QUESTIONS else ():
        end = min(start + len(line) + 1, len(text))
        line = text[start:end]
        if "@" in line:
            emails = (email for email in _emails(line) if email.local != "(" and "." in email.domain)
            results["EMAIL_ADDRESS"] += [Span(start + email.start, start + email.end) for email in emails]
        results["PHONE_NUMBER"] += [Span(start + a, start + b) for a, b, _ in _phones(line)]
        results["IP_ADDRESS"] += [Span(start + a, start + b) for a, b, _ in _ips(line)]
        start = end
    return results


def _ips(text: str) -> Iterator[Span]:
    for match in IP.finditer(text) if "." in text else ():
        yield Span(match.start(), match.end())


def _phones(text: str) -> Iterator[Span]:
    end = 0
    for match in PHONE.finditer(text):
        blank = len(text[end : match.start()].rstrip())
        yield Span(end + blank, match.end())
        end = match.end()


class _Email(NamedTuple):
    start: int
    end: int
    local: str
    domain: str


def _emails(text: str) -> Iterator[_Email]:
    r"""Yield matches of ``[.\s@,?!;:)(]*([^\s@]+@[^\s@,?!;:)(]+?)[.\s@,?!;:)(]?\s`` in order.

    A match begins with all the blanks and marks before a name. Where marks alone are a name, as in ``(@b.example ``, a
    run of blanks and marks may go on beyond it, before another name: then the last name counts.
    """
    end = 0
    at = text.find("@")
    while at >= 0:
        last = _domain(text, at)
        if last is None or at <= end or text[at - 1] == "@" or text[at - 1].isspace():
            at = text.find("@", at + 1)
            continue
        name = text[end:at].rpartition("@")[2].split()[-1]
        start = end + len(text[end : at - len(name)].rstrip(AROUND))
        begin = _end_of(BEFORE, text, start)
        if begin > at:  # the name is of marks
            other = _end_of(LOCAL, text, begin)
            if other > begin and text.startswith("@", other) and (result := _domain(text, other)):
                at, last = other, result
            else:
                at, last = _last_of_marks(text, at, begin) or (at, last)
                begin = at - 1
        yield _Email(start, last[1], text[begin:at], text[at + 1 : last[0]])
        end = last[1]
        at = text.find("@", end)


def _last_of_marks(text: str, first: int, end: int) -> tuple[int, tuple[int, int]] | None:
    """Return the last ``@`` in a run of marks, and its end.

    A mark is before it, and a domain behind it.
    """
    at = text.rfind("@", first + 1, end)
    while at >= 0:
        if text[at - 1] != "@" and not text[at - 1].isspace() and (result := _domain(text, at)):
            return at, result
        at = text.rfind("@", first + 1, at)
    return None


def _domain(text: str, at: int) -> tuple[int, int] | None:
    """Return the ends of the domain behind an ``@`` and the match.

    None without one, or without white space behind.
    """
    end = _end_of(DOMAIN, text, at + 1)
    if end == at + 1 or end == len(text):
        return None
    if text[end - 1] == "." and end > at + 2 and text[end].isspace():
        return end - 1, end + 1
    if text[end + 1 : end + 2].isspace():
        return end, end + 2
    return (end, end + 1) if text[end].isspace() else None


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
