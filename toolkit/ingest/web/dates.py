"""Dates of HTTP, read as far as they can be trusted.

Source: RFC 9110, section 5.6.7, which has three forms; zones of RFC 5322, section 4.3, which servers send beside them.
"""

import re
from datetime import UTC, datetime, timedelta

YEARS = range(1990, 2262)
"""Years of dates that are believed: before there was no web server, beyond no 64-bit time in nanoseconds."""

_DAY = r"(?:[A-Za-z]+,?[ \t]+)?"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_ZONE = r"(?:[ \t]*(?P<zone>[A-Za-z]+|[+-]\d{4}))"
_FORMS = [
    re.compile(rf"{_DAY}(?P<day>\d\d?)[ ](?P<month>[A-Za-z]{{3}})[ ](?P<year>\d{{4}})[ ]{_TIME}{_ZONE}"),
    re.compile(rf"{_DAY}(?P<day>\d\d?)-(?P<month>[A-Za-z]{{3}})-(?P<year>\d\d(?:\d\d)?)[ ]{_TIME}{_ZONE}"),
    re.compile(rf"[A-Za-z]+[ ](?P<month>[A-Za-z]{{3}})[ ]{{1,2}}(?P<day>\d\d?)[ ]{_TIME}{_ZONE}?[ ](?P<year>\d{{4}})"),
]
"""The forms of RFC 9110, in its order: IMF-fixdate, RFC 850's and asctime's."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HOURS = {"": 0, "gmt": 0, "utc": 0, "ut": 0, "z": 0}
_HOURS |= {"edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7, "pst": -8}
"""By which zones are ahead of UTC. Of other names RFC 5322 says that their meaning is not known."""

_AHEAD = 50
"""Years: a date of two digits that seems further in the future is of the century before (RFC 9110)."""


def http_date(value: str, seen: str | None = None) -> str | None:
    """Return a date of HTTP in UTC, as WARC writes dates; None if it is none, or its year is none of `YEARS`.

    A second 60 (leap seconds) is taken for 59; the day of the week is not looked at.

    Args:
        value: of the header.
        seen: WARC-Date of the record, against which a year of two digits is told.

    >>> http_date("Sun, 06 Nov 1994 08:49:37 GMT")
    '1994-11-06T08:49:37Z'
    >>> http_date("Sunday, 06-Nov-94 08:49:37 GMT", "2024-05-18T01:58:10Z")
    '1994-11-06T08:49:37Z'
    >>> http_date("Sun Nov  6 08:49:37 1994")
    '1994-11-06T08:49:37Z'
    >>> http_date("Mon, 01 Jan 2024 01:30:00 +0200")
    '2023-12-31T23:30:00Z'
    >>> http_date("Thu, 01 Jan 1970 00:00:00 GMT"), http_date("yesterday")
    (None, None)
    """
    if not value.isascii():
        return None
    found = next(filter(None, (form.fullmatch(value.strip()) for form in _FORMS)), None)
    if found is None or (month := found["month"].lower()) not in _MONTHS:
        return None
    if (ahead := _ahead(found["zone"] or "")) is None:
        return None
    year, second = int(found["year"]), int(found["second"])
    if len(found["year"]) == 2:
        year = _whole_year(year, seen)
    try:
        hour, minute, second = int(found["hour"]), int(found["minute"]), 59 if second == 60 else second
        date = datetime(year, _MONTHS.index(month) + 1, int(found["day"]), hour, minute, second, tzinfo=UTC) - ahead
    except (ValueError, OverflowError):  # no day or time of the calendar
        return None
    return date.strftime("%Y-%m-%dT%H:%M:%SZ") if date.year in YEARS else None


def _ahead(zone: str) -> timedelta | None:
    """Return by how much a zone is ahead of UTC; None if that is not known."""
    if zone[:1] in ("+", "-"):
        hours, minutes = int(zone[1:3]), int(zone[3:])
        sign = -1 if zone[0] == "-" else 1
        return sign * timedelta(hours=hours, minutes=minutes) if hours < 24 and minutes < 60 else None
    hours_ahead = _HOURS.get(zone.lower())
    return None if hours_ahead is None else timedelta(hours=hours_ahead)


def _whole_year(year: int, seen: str | None) -> int:
    """Return the year that two digits mean for a server that was seen at a date; 1970 to 2069 without one."""
    now = int(seen[:4]) if seen and re.match(r"\d{4}", seen) else 2019
    year += now - now % 100 + 100
    while year > now + _AHEAD:
        year -= 100
    return year
