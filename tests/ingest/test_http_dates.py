"""Dates of HTTP: the three forms of RFC 9110, zones, and what is none."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.ingest.web.http import YEARS, http_date

SAME = "1994-11-06T08:49:37Z"
FIRST, LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (YEARS[0], YEARS[-1] + 1))
MOMENTS = st.integers(FIRST, LAST - 1).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", SAME),
        (" sun, 6 nov 1994 08:49:37 gmt\t", SAME),
        ("06 Nov 1994 08:49:37 UTC", SAME),
        ("Sunday, 06-Nov-94 08:49:37 GMT", SAME),
        ("Sun, 06-Nov-1994 08:49:37 GMT", SAME),
        ("Sun Nov  6 08:49:37 1994", SAME),
        ("Sun Nov  6 08:49:37 GMT 1994", SAME),
        ("Sun, 06 Nov 1994 03:49:37 EST", SAME),
        ("Sun, 06 Nov 1994 10:49:37 +0200", SAME),
        ("Sun, 06 Nov 1994 08:49:37 -0000", SAME),
        ("Thu, 31 Dec 1998 23:59:60 GMT", "1998-12-31T23:59:59Z"),
        ("Thu, 29 Feb 2024 00:00:00 GMT", "2024-02-29T00:00:00Z"),
        ("Mon, 01 Jan 1990 00:00:00 GMT", "1990-01-01T00:00:00Z"),
        ("Mon, 01 Jan 1990 00:00:00 +0001", None),  # in UTC it is 1989
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("Sat, 01 Jan 0000 00:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None),
        ("Fri, 31 Dec 10000 23:59:59 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 CEST", None),  # no zone of RFC 5322
        ("Sun, 06 Nov 1994 08:49:37", None),  # in which zone?
        ("Sun, 06 Nov 1994 08:49:37 +2400", None),
        ("Wed, 29 Feb 2023 00:00:00 GMT", None),
        ("Sun, 06 Nov 1994 24:00:00 GMT", None),
        ("Sun, 06 Nov 1994 08:49:61 GMT", None),
        ("Sun, 06 Now 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT", None),
        ("So, 06 Nov ١٩٩٤ 08:49:37 GMT", None),
        ("2024-05-18T01:58:10Z", None),
        ("784111777", None),
        ("", None),
    ],
)
def test_dates_of_http(value: str, expected: str | None) -> None:
    assert http_date(value) == expected


@pytest.mark.parametrize(
    ("year", "seen", "expected"),
    [
        ("94", "2014-08-20T00:00:00Z", "1994"),
        ("14", "2014-08-20T00:00:00Z", "2014"),
        ("64", "2014-08-20T00:00:00Z", "2064"),
        ("65", "2014-08-20T00:00:00Z", None),  # 1965
        ("98", "2060-01-01T00:00:00Z", "2098"),
        ("94", None, "1994"),
        ("24", "?", "2024"),
    ],
)
def test_years_of_two_digits_are_told_by_when_the_page_was_fetched(
    year: str, seen: str | None, expected: str | None
) -> None:
    found = http_date(f"Sunday, 06-Nov-{year} 08:49:37 GMT", seen)
    assert (found and found[:4]) == expected


@given(moment=MOMENTS)
def test_what_python_writes_is_read(moment: datetime) -> None:
    expected = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert http_date(format_datetime(moment, usegmt=True)) == expected
    assert http_date(moment.ctime()) == expected


@given(value=st.text(alphabet="SunMoJ, 0123456789:-+GMT\t", max_size=40) | st.text(max_size=20))
def test_nothing_is_an_error(value: str) -> None:
    found = http_date(value)
    assert found is None or datetime.fromisoformat(found).tzinfo
