"""Statements of sites about the use of their pages: captured files, rules of robots.txt, patterns of paths.

Source: RFC 9309 (robots.txt). Paths are compared as its section 2.2.2 has it: octets outside ASCII, and blanks,
are percent-encoded, percent-encoded unreserved octets are decoded, ``*`` and ``$`` of a URI are encoded. Its example
encodes reserved characters in a query; so a path matches in that spelling, or as it is. Links to deeds of Creative
Commons as `license_notice` has them.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urljoin

import msgspec

from toolkit import ConfigError, Document, Reader, cached
from toolkit.text import split_url, url_of

_DEED = re.compile(
    r"""
    creativecommons\.org/
    (?: licenses/ (?P<kind> (?:by|nc|nd|sa) (?:-(?:by|nc|nd|sa)){0,3} | publicdomain )
      | publicdomain/ (?P<public> zero|mark|certification )
    ) (?![\w-])
    (?: / (?P<version> [0-9]{1,2}\.[0-9]{1,2} ) (?![\w.-]) )?
    (?: / (?P<country> [a-z]{2}|igo|scotland ) (?![\w-]) )?
    (?: / (?: (?:deed|legalcode)\. (?P<language> [a-z]{2} ) (?![\w-]) )? )?
    """,
    re.ASCII | re.VERBOSE,
)

Answer = Literal["allowed", "disallowed", "unknown"]

LIMIT = 500 << 10
"""Bytes of a robots.txt that are read: what section 2.5 asks for at least."""

_REDIRECTS = 5
_FILES = ("/robots.txt", "/ai.txt", "/.well-known/ai.txt", "/.well-known/tdmrep.json")
_PORTS = {"http": 80, "https": 443}
_LINE = re.compile(r"\r\n|\r|\n")
_ENCODED = re.compile(rb"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_IN_QUERY = re.compile(r"[:/?#\[\]@!'()+,;]")


class Notice(msgspec.Struct, frozen=True):
    """A licence and its place; `start` and `end` are offsets in text, HTML or URL.

    Attributes:
        license: The licence, such as `by-sa` or `zero`.
        version: The version of the licence; null if none is given.
        language: The language of the deed, or the country that the licence is adapted to; null if none is given.
        place: Place of the name: `text`, `html` or `url`.
        start: Offset in that place, in code points, where the name or address begins.
        end: Offset in that place, in code points, behind the name or address.
    """

    license: str
    version: str | None
    language: str | None
    place: str
    start: int
    end: int


class Statement(msgspec.Struct, frozen=True):
    """A statement of a site or a page.

    Attributes:
        line: Text of the statement, unchanged.
        form: Place of the statement: `robots.txt`, `ai.txt`, `tdmrep.json`, `header`, `meta`, `link` or `text`.
        by: Who says it: the site, or the address of the page.
        as_of: When it was captured; null if that is not known.
        number: Number of the line in a file, from 1; null elsewhere.
    """

    line: str
    form: str
    by: str
    as_of: str | None = None
    number: int | None = None


class Site(NamedTuple):
    """Site of a page: scheme, host and port; and its path with the query."""

    origin: str
    path: str


class SiteFile(NamedTuple):
    """A file of a site as it was captured last; after redirects, with the answer at their end."""

    status: int
    date: str
    body: bytes


class Rule(NamedTuple):
    """A line ``allow`` or ``disallow`` of a group of robots.txt."""

    allows: bool
    pattern: str
    line: str
    number: int


def site_of(url: str | None) -> Site | None:
    """Return the site of a URL; None if it has no host, or another scheme than HTTP's."""
    if not url:
        return None
    try:
        parts = split_url(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    suffix = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    query = f"?{parts.query}" if "?" in url.partition("#")[0] else ""  # an empty one is a part of the address, too
    return Site(f"{parts.scheme}://{parts.hostname}{suffix}", (parts.path or "/") + query)


def page(document: Document) -> tuple[str, str | None, Mapping[str, Any], Mapping[str, Any], list[str]]:
    """Return the URL, capture date, headers and meta elements of a page.

    Return also which forms are known: `header`, `meta`.
    """
    metadata = document.metadata
    http, warc = metadata.get("http"), metadata.get("warc_headers")
    http = http if isinstance(http, dict) else {}
    date = warc.get("warc-date") if isinstance(warc, dict) else None
    forms = [form for form, key in (("header", "headers"), ("meta", "meta")) if isinstance(http.get(key), dict)]
    headers, meta = (http[key] if form in forms else {} for form, key in (("header", "headers"), ("meta", "meta")))
    return url_of({"metadata": metadata}) or "", date if isinstance(date, str) else None, headers, meta, forms


def stated(document: Document) -> tuple[list[tuple[str, Statement]], list[str]]:
    """Return the statements in a page's headers and meta elements, by name.

    Return also which forms are known: `header`, `meta`.
    """
    url, date, headers, meta, forms = page(document)
    results = [
        (name, Statement(value, form, url, date))
        for form, fields in (("header", headers), ("meta", meta))
        for name, values in fields.items()
        for value in (values if isinstance(values, list) else [values])
        if isinstance(value, str)
    ]
    return results, forms


# --- captured files ---------------------------------------------------------------------------------------------------


@cached(4)
def _captured(path: str) -> dict[str, tuple[int, str, str, bytes]]:
    """Return the last capture of each file about a site: status, date, where a redirect leads, and the body."""
    results: dict[str, tuple[int, str, str, bytes]] = {}
    for capture in Reader.captures(path, LIMIT):
        site = site_of(capture.url)
        if site is None or not site.path.endswith(_FILES):  # those that redirects lead to are called so, too
            continue
        url, target = site.origin + site.path, [*capture.headers.get("location", ())][-1:]
        if url not in results or capture.date >= results[url][1]:
            leads = urljoin(capture.url, target[0]) if target and 300 <= capture.status < 400 else ""
            results[url] = (capture.status, capture.date, leads, capture.body)
    return results


def site_file(path: str | None, origin: str, name: str) -> SiteFile | None:
    """Return a file of a site; None if it was not captured, or a redirect leads where nothing was.

    After more than five redirects it counts as unavailable (section 2.3.1.2).
    """
    captured = _captured(path) if path else {}
    url, date = origin + name, None
    for _ in range(_REDIRECTS + 1):
        if url not in captured:
            return None
        status, when, leads, body = captured[url]
        date = date or when
        if not leads:
            return SiteFile(status, date, body)
        target = site_of(leads)
        if target is None:
            return None
        url = target.origin + target.path
    return SiteFile(404, date or "", b"")


# --- robots.txt -------------------------------------------------------------------------------------------------------


def lines_of(body: bytes) -> Iterator[tuple[int, str, str, str]]:
    """Yield the records of a file: number of the line, key in lower case, value, and the line."""
    cut = body[:LIMIT]
    text = cut.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    for number, line in enumerate(_LINE.split(text), 1):
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield number, key.strip().lower(), value.strip(), _printable(line.strip())


@functools.lru_cache(4096)
def groups_of(body: bytes) -> dict[str, list[Rule]]:
    """Return the rules of each agent, in lower case; groups of one agent are one (section 2.2.1)."""
    results: dict[str, list[Rule]] = {}
    agents: list[str] = []
    begun = False  # the rules of the group
    for number, key, value, line in lines_of(body):
        if key == "user-agent":
            if begun:
                agents, begun = [], False
            token = _TOKEN.match(value)
            agents.append("*" if value.split()[:1] == ["*"] else token[0].lower() if token else "")
            results.setdefault(agents[-1], [])
        elif key in ("allow", "disallow"):
            begun = True
            for agent in agents:
                if value:
                    results[agent].append(Rule(key == "allow", value, line, number))
    return results


def rule_for(body: bytes, agent: str, path: str) -> Rule | None:
    """Return the rule for a path; None without one.

    Of equally long ones, ``allow`` wins.
    """
    groups = groups_of(body)
    rules = groups.get(agent.lower(), groups.get("*", []))
    if path.partition("?")[0] == "/robots.txt":
        return None
    uri, best, longest = spellings(path, is_uri=True), None, (-1, False)
    for rule in rules:
        pattern = spellings(rule.pattern)
        rank = len(pattern[0]), rule.allows
        if rank > longest and any(map(matches, pattern, uri)):
            best, longest = rule, rank
    return best


@functools.lru_cache(1 << 14)
def spellings(path: str, *, is_uri: bool = False) -> tuple[str, str]:
    """Return a path as it is compared: as it is, and with reserved characters of its query encoded."""
    data = path.encode("utf-8", "surrogateescape")
    data = _ENCODED.sub(lambda match: _decoded(int(match[1], 16)), data)
    text = "".join(chr(byte) if 0x20 < byte < 0x7F else f"%{byte:02X}" for byte in data)
    if is_uri:
        text = text.replace("*", "%2A").replace("$", "%24")
    before, mark, query = text.partition("?")
    return text, before + mark + _IN_QUERY.sub(lambda match: f"%{ord(match[0]):02X}", query)


def _decoded(byte: int) -> bytes:
    return bytes([byte]) if byte in _UNRESERVED else b"%%%02X" % byte


def matches(pattern: str, path: str) -> bool:
    """Return True if a path begins as a pattern.

    ``*`` is anything, ``$`` at its end the end of the path.
    """
    anchored = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    if not parts:
        return not anchored or at == len(path)
    *inner, last = parts
    for part in inner:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if anchored:
        return path.endswith(last) and len(path) - len(last) >= at
    return path.find(last, at) >= 0


def _printable(line: str) -> str:
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")[:1000]


Agents = Annotated[tuple[str, ...], msgspec.Meta(description="names of crawlers (product tokens): `[GPTBot, CCBot]`")]


def check_agents(agents: Sequence[str]) -> None:
    """Check product tokens.

    Raises:
        ConfigError: If there are none, or one has other characters than a token may have.
    """
    if not agents:
        raise ConfigError("agents: expected at least one product token, such as GPTBot, got none")
    for agent in agents:
        if agent != "*" and not _TOKEN.fullmatch(agent):
            raise ConfigError(f"agents: expected a product token of letters, digits, _ and -, got {agent!r}")


# --- licences ---------------------------------------------------------------------------------------------------------


def links(text: str, place: str) -> Iterator[Notice]:
    """Yield the links to deeds of Creative Commons in a text."""
    for match in _DEED.finditer(text) if "creativecommons.org/" in text else ():
        license = match["kind"] or match["public"]
        yield Notice(license, match["version"], match["language"] or match["country"], place, *match.span())
