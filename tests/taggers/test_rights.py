"""Rights as attributes: the examples of RFC 9309, captures and redirects, headers and elements of pages."""

from typing import Any

import msgspec
import pytest

from taggers._rights import matches, rule_for, site_file, spellings
from taggers.ai_directives import AiDirectives
from taggers.license_page import LicensePage
from taggers.robots import Robots
from taggers.tdm_reservation import TdmReservation
from toolkit import ConfigError, Document
from toolkit.ingest.web.html import stated

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
