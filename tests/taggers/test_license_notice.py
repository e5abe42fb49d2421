"""Creative Commons licences: kinds, versions, places, and how long it takes."""

import time

import pytest

from taggers.license_notice import LicenseNotice
from toolkit import Document


def found(text: str) -> list[tuple[str, str | None, str | None]]:
    return [(notice.license, notice.version, notice.language) for notice in LicenseNotice().tag(Document(text))]


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("creativecommons.org/licenses/by/4.0/", ("by", "4.0", None)),
        ("http://creativecommons.org/licenses/by-nc-sa/3.0", ("by-nc-sa", "3.0", None)),
        ("https://www.creativecommons.org/licenses/by-nd/2.5/it/", ("by-nd", "2.5", "it")),
        ("creativecommons.org/licenses/by-sa/3.0/de/deed.en", ("by-sa", "3.0", "en")),
        ("creativecommons.org/licenses/by-sa/4.0/legalcode.fr>", ("by-sa", "4.0", "fr")),
        ("creativecommons.org/licenses/by/3.0/igo/", ("by", "3.0", "igo")),
        ("creativecommons.org/licenses/nc-sa/1.0/.", ("nc-sa", "1.0", None)),
        ("creativecommons.org/licenses/by-nc/", ("by-nc", None, None)),
        ("creativecommons.org/publicdomain/zero/1.0/deed.ja", ("zero", "1.0", "ja")),
        ("creativecommons.org/publicdomain/mark/1.0/", ("mark", "1.0", None)),
        ("creativecommons.org/licenses/publicdomain/", ("publicdomain", None, None)),
        ("CC BY", ("by", None, None)),
        ("(CC BY-NC-ND 4.0)", ("by-nc-nd", "4.0", None)),
        ("CC-BY-SA-3.0,", ("by-sa", "3.0", None)),
        ("ライセンスCC0", ("zero", None, None)),
        ("CC0 1.0.", ("zero", "1.0", None)),
    ],
)
def test_what_is_a_notice(text: str, notice: tuple[str, str | None, str | None]) -> None:
    assert found(text) == [notice]


@pytest.mark.parametrize(
    "text",
    ["creativecommons.org", "creativecommons.org/licenses/", "creativecommons.org/licenses/byte/4.0/", "ACC BY",
     "CC BYE", "cc by 4.0", "CC BY-XX", "CC00", "CC", "BCC 0", "creativecommons.org/licenses/MIT/"],
)  # fmt: skip
def test_what_is_none(text: str) -> None:
    assert found(text) == []


def test_places() -> None:
    link = "creativecommons.org/licenses/by/4.0/"
    metadata = {
        "html": f'<a href="http://{link}">',
        "page": link,
        "warc_headers": {"warc-target-uri": f"http://{link}"},
    }
    notices = LicenseNotice().tag(Document(f"CC0 {link}", metadata=metadata))
    assert [(notice.place, notice.start, notice.end) for notice in notices] == [
        ("text", 0, 3),
        ("text", 4, 4 + len(link)),
        ("html", 16, 16 + len(link)),
        ("url", 7, 7 + len(link)),
    ]
    assert [each.place for each in LicenseNotice(html="page", names=False).tag(Document("CC0", metadata=metadata))] == [
        "html",
        "url",
    ]
    assert LicenseNotice().tag(Document("", metadata={"html": 7, "url": 7, "warc_headers": 7})) == []


@pytest.mark.parametrize("piece", ["CC", "CC BY-", "CC BY-NC", "creativecommons.org/licenses/by", "by-", "/", "CC0 "])
def test_time_is_linear(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    LicenseNotice().tag(Document(text))
    assert time.process_time() - began < 10
