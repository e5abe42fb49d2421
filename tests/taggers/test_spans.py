"""E-mail addresses: what is one, where it ends, and how long it takes."""

import ipaddress
import re
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from taggers import pii_presidio, secrets
from taggers._rights import matches, rule_for, site_file, site_of, spellings
from taggers.ai_directives import AiDirectives
from taggers.emails import Emails
from taggers.ip_addresses import IpAddresses
from taggers.license_notice import LicenseNotice
from taggers.license_page import LicensePage
from taggers.phone_numbers import PhoneNumbers
from taggers.pii_presidio import MAX_CHARS, PiiPresidio
from taggers.robots import Robots
from taggers.secrets import Secrets
from taggers.tdm_reservation import TdmReservation
from toolkit import ConfigError, Document, MissingExtra, Tagger
from toolkit.ingest.web.html import stated


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in Emails().tag(Document(text))]


@pytest.mark.parametrize(
    "address",
    [
        "a@b.de",
        "joe.doe+news_2@mail-3.example.co.uk",
        "o'brien@example.org",
        "info@3com.com",
        "x@xn--bcher-kva.example",
        "x@example.xn--p1ai",
        "müller@bücher.de",
        "почта@пример.рф",
        "a--b%c@d-e.org",
        "a" * 64 + "@b.de",
    ],
)
def test_an_address_and_nothing_around_it(address: str) -> None:
    around = ["{}", "<{}>", "({}).", "mailto:{}?subject=x", "'{}'", "联系{}谢谢", "=[{}];", "\n{}\r\n"]
    assert [found(each.format(address)) for each in around] == [[address]] * len(around)


@pytest.mark.parametrize(
    "text",
    ["@name", "a@b", "a @b.de", "a@ b.de", "a@b.c", "a@b.c0m", "a@b..de", "a@-b.de", "a@b-.de", ".@b.de", "a.@b.de",
     "a@1.2.3.4", "a" * 65 + "@b.de", "a@" + "b" * 64 + ".de", "日本@例え.jp"],
)  # fmt: skip
def test_what_only_looks_like_one(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a@b.de, c@d.fr;e@f.it", ["a@b.de", "c@d.fr", "e@f.it"]),
        ("a@b.de@c.org", ["a@b.de"]),
        ("..a@b.de", ["a@b.de"]),
        ("a..b@c.de", ["b@c.de"]),
        ("-a@b.de-", ["a@b.de"]),
        ("a@b.de/c", ["a@b.de"]),
        ("a@mail.ruпочта", ["a@mail.ru"]),
        ("http://host/?mail=a@b.de&x=1", ["a@b.de"]),
    ],
)
def test_where_addresses_begin_and_end(text: str, addresses: list[str]) -> None:
    assert found(text) == addresses


@given(st.text(st.sampled_from("ab1.-_@+' é語"), max_size=30))
def test_all_that_a_simple_pattern_finds_with_nothing_missing(text: str) -> None:
    """The definition at once, as a pattern that is not linear."""
    word = "[A-Za-zÀ-ÖØ-öø-ɏͰ-ϿЀ-ԯ0-9]"
    local = rf"(?:{word}|_)(?:(?:[.'%&+~]|-+)(?:{word}|_)|{word}|_)*(?:-+|[%&+~])?"
    label = rf"{word}(?:(?:{word}|-)*{word})?"
    pattern = rf"(?<!{word})(?<!_){local}@(?:{label}\.)+(?:[A-Za-z]{{2,}}(?![A-Za-z0-9])|[a-zé]{{2,}}(?!{word}))"
    for address in found(text):
        assert re.fullmatch(pattern, address), (text, address)
    assert bool(found(text)) == bool(re.search(pattern, text)), text


# IP addresses: what is one, which are public, and how long it takes.

ALL = IpAddresses(reserved=True)


def found_ip_addresses(text: str, tagger: IpAddresses = ALL) -> list[str]:
    return [text[span.start : span.end] for span in tagger.tag(Document(text))]


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "255.255.255.255",
        "0.0.0.0",
        "2001:db8::1",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "2001:db8:85a3::8a2e:370:7334",
        "fe80::1",
        "::1",
        "2a00::",
        "::ffff:192.0.2.128",
        "1:2:3:4:5:6:7:8",
    ],
)
def test_an_address_and_nothing_around_it_ip_addresses(address: str) -> None:
    around = ["{}", "[{}]:8080", "({}).", "{}/24", "ip={};", "地址{}的", '"{}"', "von {}, dann"]
    assert [found_ip_addresses(each.format(address)) for each in around] == [[address]] * len(around)


@pytest.mark.parametrize(
    "text",
    ["1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "v1.2.3.4", "1.2.3.4a", "1.2.3.4_", "1234.1.1.1", "1.2.3.1234",
     "1 .2.3.4", "1.2..3.4", "12:30:45", "00:1A:2B:3C:4D:5E", "std::vector", "dead::beef", "1:2:3:4:5:6:7:8:9",
     "a::b::1", "::", "12345::1", "g::1", "x2001:db8::1", "2001:db8::1x", "ab:cd:" * 10 + "ef"],
)  # fmt: skip
def test_what_only_looks_like_one_ip_addresses(text: str) -> None:
    assert found_ip_addresses(text) == []


def test_which_are_wanted() -> None:
    text = "8.8.8.8 10.0.0.1 127.0.0.1 2a00:1450:4001::200e fe80::1 ::ffff:8.8.8.8"
    assert found_ip_addresses(text, IpAddresses()) == ["8.8.8.8", "2a00:1450:4001::200e", "::ffff:8.8.8.8"]
    assert found_ip_addresses(text, IpAddresses(v6=False)) == ["8.8.8.8", "8.8.8.8"]
    assert found_ip_addresses(text, IpAddresses(v4=False)) == ["2a00:1450:4001::200e", "::ffff:8.8.8.8"]
    assert found_ip_addresses("IP:8.8.8.8, 2a00::1: gone") == ["8.8.8.8", "2a00::1"]
    assert found_ip_addresses(text) == text.split()


@given(st.ip_addresses(), st.sampled_from(["{}", "a {} b", "[{}]", "{},"]))
def test_every_address_is_found(address: ipaddress.IPv4Address | ipaddress.IPv6Address, around: str) -> None:
    text = str(address)
    if any(map(str.isdecimal, text)):
        assert found_ip_addresses(around.format(text)) == [text]
        assert found_ip_addresses(text, IpAddresses()) == [text] * address.is_global


@given(st.text(st.sampled_from("0125af:.%x "), max_size=25))
def test_only_addresses_are_found(text: str) -> None:
    assert all(ipaddress.ip_address(address) for address in found_ip_addresses(text))


# Phone numbers: what is one, where it ends, and how long it takes.


def found_phone_numbers(text: str, tagger: PhoneNumbers | None = None) -> list[str]:
    return [text[span.start : span.end] for span in (tagger or PhoneNumbers()).tag(Document(text))]


@pytest.mark.parametrize(
    "number",
    [
        "(212) 555-0123",
        "(212)555-0123",
        "212-555-0123",
        "212.555.0123",
        "212 555 0123",
        "1 (212) 555-0123",
        "1-800-555-0199",
        "+1 212 555 0123",
        "+12125550123",
        "+44 (0)20 7946 0958",
        "+49 30/1234567",
        "+81-3-1234-5678",
    ],
)
def test_a_number_and_nothing_around_it(number: str) -> None:
    around = ["{}", "({})", "Tel.: {}.", "tel:{}", "電話{}まで", "{}, oder", "{}\n"]
    assert [found_phone_numbers(each.format(number)) for each in around] == [[number]] * len(around)


@pytest.mark.parametrize(
    "text",
    ["2125550123", "112-555-0123", "212-155-0123", "212-555-01234", "x212-555-0123", "12-212-555-0123", "1.5.2020",
     "212-555-0123x", "212-555-0123-4", "+123456", "+1234567890123456", "x+12125550123", "1+1234567", "212-555.012",
     "978-0-306-40615-7", "2012-2013-2014", "1,212-555-0123"],
)  # fmt: skip
def test_what_only_looks_like_one_phone_numbers(text: str) -> None:
    assert found_phone_numbers(text) == []


def test_two_patterns_give_one_span() -> None:
    assert found_phone_numbers("+1 212-555-0123 or 212-555-0123") == ["+1 212-555-0123", "212-555-0123"]


def test_numbers_of_a_region() -> None:
    pytest.importorskip("phonenumbers", reason="extra `phone`")
    text = "Tel. 030 901820, am 12.03.2024, ISBN 978-3-16-148410-0, +1 212-736-5000"
    assert found_phone_numbers(text, PhoneNumbers(region="DE")) == ["030 901820", "+1 212-736-5000"]


# Creative Commons licences: kinds, versions, places, and how long it takes.


def found_license_notice(text: str) -> list[tuple[str, str | None, str | None]]:
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
    assert found_license_notice(text) == [notice]


@pytest.mark.parametrize(
    "text",
    ["creativecommons.org", "creativecommons.org/licenses/", "creativecommons.org/licenses/byte/4.0/", "ACC BY",
     "CC BYE", "cc by 4.0", "CC BY-XX", "CC00", "CC", "BCC 0", "creativecommons.org/licenses/MIT/"],
)  # fmt: skip
def test_what_is_none(text: str) -> None:
    assert found_license_notice(text) == []


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


LINEAR: dict[type[Tagger], list[str]] = {
    Emails: ["a", "@", "a@", "a.", "@a.", "a@b.", "a@b.c", "a-", "@a-", "é@", ".@", "+@a", " @ a."],
    IpAddresses: ["1", ":", "1.", "1.1.1.1", "::", "1:", "a:", ":1:", "ffff:", "1.1.1.1.", "::1 ", "::1.1"],
    PhoneNumbers: ["1", "+", "+1", "1 ", "(", "(2", "2-", "212-", "+1 ", "212-555-", "1(212)", "+1()", "  "],
    LicenseNotice: ["CC", "CC BY-", "CC BY-NC", "creativecommons.org/licenses/by", "by-", "/", "CC0 "],
}
"""Pieces of texts that a pattern could look at again and again."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tagger", "piece"), [(tagger, piece) for tagger, pieces in LINEAR.items() for piece in pieces]
)
def test_time_is_linear(tagger: type[Tagger], piece: str) -> None:
    text = piece * ((100_000 if tagger is IpAddresses else 250_000) // len(piece))
    began = time.process_time()
    tagger().tag(Document(text))
    assert time.process_time() - began < 5


# Secrets: where they stand, in long lines too, and how long it takes.


@pytest.fixture
def _extra() -> None:
    pytest.importorskip("detect_secrets", reason="extra `secrets`")


def found_secrets(text: str) -> list[tuple[str, str]]:
    value = Secrets().tag(Document(text))
    return [(type_, text[a:b]) for (a, b, _), type_ in zip(value.spans, value.types, strict=True)]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets._detectors.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "detect_secrets"] or ["detect_secrets"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"detect-secrets .*: pip install 'tagmix\[secrets\]'"):
        Secrets().tag(Document("a"))


@pytest.mark.usefixtures("_extra")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AKIAIOSFODNN7EXAMPLE", ("AWS Access Key", "AKIAIOSFODNN7EXAMPLE")),
        ("x ghp_" + "a1B2" * 9 + " y", ("GitHub Token", "ghp_" + "a1B2" * 9)),
        ("https://joe:sesame-1@example.org", ("Basic Auth Credentials", "sesame-1")),
        ("password = 'open sesame'", ("Secret Keyword", "open sesame")),
        ("-----BEGIN RSA PRIVATE KEY-----", ("Private Key", "BEGIN RSA PRIVATE KEY")),
        ("'0f3a9c81b7d2e64f5a0c1b9d8e7f6a32'", ("Hex High Entropy String", "0f3a9c81b7d2e64f5a0c1b9d8e7f6a32")),
    ],
)
@pytest.mark.parametrize("before", ["", "größe\r\n\n", "x " * 400, "x " * 5000])
def test_a_secret_wherever_it_stands(before: str, text: str, expected: tuple[str, str]) -> None:
    assert expected in found_secrets(before + text + "\nend")


@pytest.mark.usefixtures("_extra")
def test_prose_has_none() -> None:
    assert found_secrets("The secret of the password is that nobody knows it. 127.0.0.1, a@b.de, key: see below") == []


@pytest.mark.usefixtures("_extra")
@pytest.mark.parametrize(
    "piece", ["a", " ", "/", "password", "eyJ", "'a", "://a:", "key=", "-----BEGIN ", "0123456789abcdef"]
)
def test_time_is_linear_secrets(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    began = time.process_time()
    Secrets().tag(Document(text))
    assert time.process_time() - began < 5


@pytest.mark.usefixtures("_extra")
def test_unknown_types_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected types of AWS Access Key, .*, got 'IP'"):
        Secrets(leave_out=("IP",)).tag(Document("a"))


# Personal data by Presidio: spans in pieces of a long text, languages, models.


def test_what_is_missing_is_named_pii_presidio(monkeypatch: pytest.MonkeyPatch) -> None:
    pii_presidio._analyzer.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtra, match=r"presidio-analyzer .*: pip install 'tagmix\[presidio\]'"):
        PiiPresidio().tag(Document("a"))


@pytest.mark.parametrize("gap", [" ", "\n", "x"])
def test_pieces_are_the_text(gap: str) -> None:
    text = ("word" + gap) * (MAX_CHARS // 2)
    pieces = list(pii_presidio._pieces(text))
    assert "".join(piece for _, piece in pieces) == text
    assert [start for start, _ in pieces] == [sum(len(p) for _, p in pieces[:i]) for i in range(len(pieces))]
    assert max(len(piece) for _, piece in pieces) <= MAX_CHARS
    assert list(pii_presidio._pieces("")) == []


def test_spans_in_a_long_text() -> None:
    pytest.importorskip("presidio_analyzer", reason="extra `presidio`")
    text = "joe.doe@example.com, 8.8.8.8\n" + "и так далее. " * (MAX_CHARS // 12) + "jane@example.org"
    found = PiiPresidio(entities=("EMAIL_ADDRESS",)).tag(Document(text))
    assert [text[a:b] for a, b, _ in found.spans] == ["joe.doe@example.com", "jane@example.org"]


def test_recognisers_of_a_language() -> None:
    pytest.importorskip("presidio_analyzer", reason="extra `presidio`")
    found = PiiPresidio(entities=("IBAN_CODE", "ES_NIF"), language="es").tag(Document("NIF 55555555K"))
    assert found.types == ["ES_NIF"]


def test_names_by_a_model(tmp_path: Path) -> None:
    pytest.importorskip("presidio_analyzer", reason="extra `presidio`")
    spacy = pytest.importorskip("spacy", reason="extra `presidio`")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Joe Doe"}])
    pipeline.to_disk(tmp_path)
    found = PiiPresidio(entities=("PERSON",), model=str(tmp_path)).tag(Document("by Joe Doe,"))
    assert (found.spans, found.types) == ([(3, 10, 0.85)], ["PERSON"])


def test_what_cannot_be_found_is_refused() -> None:
    pytest.importorskip("presidio_analyzer", reason="extra `presidio`")
    with pytest.raises(ConfigError, match=r"expected entities of .*IBAN_CODE.*, got 'PERSON'; it needs `model`"):
        PiiPresidio(entities=("PERSON",)).tag(Document("a"))
    with pytest.raises(ConfigError, match=r"got 'EMAIL'$"):
        PiiPresidio(entities=("EMAIL",)).tag(Document("a"))


# Rights as attributes: the examples of RFC 9309, captures and redirects, headers and elements of pages.

CAPTURES = "tests/taggers/files/robots.warc"
RFC = b"""User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot

"""


def allows(robots: bytes, agent: str, path: str) -> bool:
    rule = rule_for(robots, agent, path)
    return rule is None or rule.allows


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("FooBot", "/publications/", False),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/a.gif", True),
        ("quxbot", "/example/", True),
        ("other", "/publications/", True),
        ("other", "/publications/a.gif", True),  # "Allow: /publications/" is longer
        ("other", "/a.gif", False),
        ("other", "/a.gif?b", True),
        ("other", "/example/robots.txt", False),
        ("foobot", "/robots.txt", True),
    ],
)
def test_section_5_1_of_the_rfc(agent: str, path: str, allowed: bool) -> None:
    assert allows(RFC, agent, path) is allowed


def test_section_5_2_of_the_rfc() -> None:
    robots = b"User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    assert not allows(robots, "foobot", "/example/page/disallowed.gif")
    assert allows(robots, "foobot", "/example/page/other.gif")


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar", True),  # the table of section 2.2.2
        ("/foo/bar/\u30c4", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%e3%83%84", "/foo/bar/\u30c4", True),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),  # that of section 2.2.3
        ("/path/foo-%24", "/path/foo-$", True),
        ("/this/path/exactly$", "/this/path/exactly/", False),
        ("/this/*/exactly", "/this/a/b/exactly?c", True),
        ("/a%2Fb", "/a/b", False),
        ("*a*a*a*a*a*a*a*a*a*b$", "/" + "a" * 20_000, False),
    ],
)
def test_paths_and_special_characters(pattern: str, path: str, found: bool) -> None:
    assert any(map(matches, spellings(pattern), spellings(path, is_uri=True))) is found


def test_groups_of_one_agent_are_one_and_other_records_end_none() -> None:
    robots = b"\xef\xbb\xbfUser-agent: a/1.0\rSitemap: x\rUser-agent: B bot\r\n\nDisallow: /1 # no\n\n"
    robots += b"User-agent: A\nDisallow: /2\nAllow: /2\n"
    assert not allows(robots, "a", "/1")
    assert allows(robots, "a", "/2"), "of equally long rules, allow"
    assert not allows(robots, "b", "/1")
    assert rule_for(robots, "b", "/1x") == (False, "/1", "Disallow: /1 # no", 5)
    assert allows(b"Disallow: /\n", "a", "/")


@pytest.mark.parametrize(
    ("robots", "agent", "path", "allowed"),
    [
        (b"User-agent: a\nCrawl-delay: 9\nUser-agent: b\nDisallow: /\n", "a", "/", False),  # 2.2.4: ends no group
        (b"User-agent: a\nUser-agent: b\nDisallow: /\nUser-agent: a\nAllow: /\n", "b", "/", False),  # 2.2.1: of a only
        (b"User-agent: Sogou web spider\nDisallow: /\n", "sogou", "/", False),  # 2.2.1: up to what no token has
        (b"User-agent: Foo\nDisallow: /\n", "Foobot", "/", True),  # 2.2.1: the whole token
        (b"User-agent: *\nDisallow: /*/a\n", "x", "//a", False),  # 2.2.2: octets as they are
        (b"User-agent: *\nDisallow: /*/a\n", "x", "/%2F/a", False),  # 2.2.2: reserved ones stay encoded
        (b"User-agent: *\nDisallow: https://a.example/a\n", "x", "/a", True),  # 2.2.2: from the first octet of the path
        (b"User-agent: *\nDisallow: /*/o?*$\n", "x", "/x/order/y", True),  # 2.2.3: `?` is none of the special ones
        (b"User-agent: *\rDisallow: /a\r\rDisallow: /b\r", "x", "/b", False),  # 2.2: CR ends a line
        (b"user-agent x\ndisallow /\n", "x", "/", True),  # 2.2: no colon, no record (Google takes it)
    ],
)
def test_clauses_in_which_other_parsers_differ_on_real_files(
    robots: bytes, agent: str, path: str, allowed: bool
) -> None:
    """Protego 0.7.0 and robotspy 0.13.0 on 10,000 files, and the tests of google/robotstxt."""
    assert allows(robots, agent, path) is allowed


def test_an_empty_query_is_a_part_of_the_address() -> None:
    found = [site_of(f"https://a.example{path}") for path in ("/?", "?#b?", "/#b?")]
    assert [site and site.path for site in found] == ["/?", "/?", "/"]


def answers(url: str | None, **options: Any) -> dict[str, Any]:
    value = Robots(captures=CAPTURES, **options).tag(Document("", metadata={"url": url} if url else {}))
    found: dict[str, Any] = msgspec.to_builtins(value)
    return found


def test_what_was_not_captured_is_unknown_4xx_allows_and_5xx_disallows() -> None:
    for url, answer, status in (
        (None, "unknown", None),
        ("https://other.example/", "unknown", None),
        ("http://a.example/p/a", "unknown", None),  # another scheme is another site
        ("https://none.example/a", "allowed", 404),
        ("https://broken.example/a", "disallowed", 503),
        ("http://moved.example/p/a", "disallowed", 200),
        ("http://r2.example/", "disallowed", 200),
        ("http://r0.example/", "allowed", 404),  # more than five redirects
    ):
        found = answers(url)
        assert (found["agents"]["*"]["answer"], found["status"]) == (answer, status), url
    file = site_file(CAPTURES, "https://a.example", "/robots.txt")
    assert file is not None
    assert file.date == "2026-01-02T00:00:00Z", "the last capture"
    assert answers("https://a.example/p/a", agents=("GPTBot", "x"))["agents"]["x"]["line"] == "Disallow: /p/"
    for agents in ((), ("Mozilla/5.0",)):
        with pytest.raises(ConfigError, match="expected a"):
            Robots(agents=agents).check()


def page(headers: dict[str, Any] | None = None, html: str = "", url: str = "https://a.example/p/a.html") -> Document:
    http = {} if headers is None else {"http": {"headers": headers, "meta": stated(html)}}
    return Document("", metadata={"url": url, **http, "warc_headers": {"warc-date": "2026-02-02T00:00:00Z"}})


def test_later_forms_of_tdmrep_supersede_earlier_ones() -> None:
    tagger = TdmReservation(captures=CAPTURES)
    assert tagger.tag(page()).answer == "allowed", "the first rule that matches"
    site = tagger.tag(page(url="https://a.example/q"))
    assert (site.answer, site.policy) == ("disallowed", "https://a.example/policy")
    assert tagger.tag(page({"tdm-reservation": ["1"]})).answer == "disallowed"
    html = '<!-- <meta name="tdm-reservation" content="1"> --><META content=0 name="TDM-Reservation">'
    assert tagger.tag(page({"tdm-reservation": ["1"]}, html)).answer == "allowed"
    assert tagger.tag(page({"tdm-reservation": ["yes"]}, url="https://b.example/")).answer == "unknown"
    assert TdmReservation().tag(page()).looked_in == []


def test_noai_is_an_answer_and_drafts_are_lines() -> None:
    tagger = AiDirectives(captures=CAPTURES, agents=("GPTBot", "CCBot"))
    found = tagger.tag(page({"x-robots-tag": ["noindex", "ccbot: noai"]}, '<meta name="robots" content="noimageai">'))
    assert found.agents == {"GPTBot": "unknown", "CCBot": "disallowed"}
    assert [(each.name, each.answer) for each in found.directives] == [
        ("content-signal", None),
        ("ai.txt", None),
        ("ai.txt", None),
        ("x-robots-tag", "disallowed"),
        ("robots", None),
    ]
    assert found.directives[0].statement.line == "Content-Signal: search=yes, ai-train=no"
    assert found.directives[-1].statement.as_of == "2026-02-02T00:00:00Z"
    assert tagger.tag(page({}, '<meta name="robots" content="index, noai">')).agents["GPTBot"] == "disallowed"
    assert tagger.tag(page()).looked_in == ["robots.txt", "ai.txt"], "WET has neither headers nor HTML"


def test_licences_have_a_place_and_a_confidence() -> None:
    link = '<https://a.example/l>; rel="license"; title="x, y", <https://a.example/n>; rel=next'
    html = '<meta name="dc.rights" content="CC"><a rel="license noopener" href="https://creativecommons.org/licenses/by/4.0/">'
    found = LicensePage().tag(page({"link": [link]}, html))
    assert [(each.license, each.confidence, each.statement.line) for each in found.licenses] == [
        (None, "high", "https://a.example/l"),
        ("by", "high", "https://creativecommons.org/licenses/by/4.0/"),
        (None, "medium", "CC"),
    ]
    assert LicensePage().tag(page()).looked_in == ["text"]
