"""Entries for a document's address in lists of domains, URLs and words.

Source: ungoliant 1.1 (``adult``: UT1's lists, exact host, or host and path) and 2.0 (``categories``: UT1's folders,
with parent domains, through ut1-rs ``blocklist_multi.rs``, where URLs that begin with ``http:`` match none of a
``urls`` file: not so here); RefinedWeb (Penedo et al. 2023, G.1: strict substrings, hard words, soft words) as in
FineWeb (datatrove, ``URLFilter``, which compares words by case); ml_filter, ``num_bad_words_in_url``.
"""

import functools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from toolkit import Batch, ConfigError, Document, Example, Files, Tagger, cached
from toolkit.text import Array, compiled, entries, host_of, np, read_list, split_url, url_of

MAX_HOST = 253

_HOST = re.compile(rf"[^\s#/]{{1,{MAX_HOST}}}")
_NO_WORD = re.compile(r"[\W_]+")
_PORTS = {"http": 80, "https": 443, "ftp": 21}


class UrlEntries(msgspec.Struct, frozen=True):
    """Entries of the lists for a URL.

    Attributes:
        host: The host of the document's URL; null if it has none.
        categories: Categories of the lists that have the URL or its host, sorted.
        domain: True if the host is in the file of domains.
        url: True if the URL is in the file of URLs.
        strict: Entries of the file `strict` that are anywhere in the URL.
        hard: Entries of the file `hard` that are words of the URL.
        soft: Entries of the file `soft` that are words of the URL.
    """

    host: str | None
    categories: list[str]
    domain: bool
    url: bool
    strict: int
    hard: int
    soft: int


class UrlList(Tagger):
    """Lists with the document's URL or host, and words in the URL.

    - ``host``: the host, in lower case, with other scripts as the domain name system writes them. It is null if there
      is no URL with a host; then nothing is found.
    - ``categories``: the sorted names of the folders in `lists` whose file ``domains`` has the host, or whose file
      ``urls`` has host and path. ``domain`` and ``url`` say the same about the files `domains` and `urls`. Scheme,
      query and the usual port of a scheme do not matter; a ``/`` at the end does.
    - ``strict``, ``hard``, ``soft``: how many entries of these files are in the URL: for ``strict`` anywhere, for the
      others as a word. Case does not matter, and percent escapes are decoded. Words are runs of letters and digits; for
      ``strict``, all other characters are left out.

    Attributes:
        lists: a folder with a folder for each category, with the files `domains` and `urls` (UT1)
        categories: the folders to use; by default all
        domains: a file with a domain on each line
        urls: a file with a URL on each line, with or without scheme
        strict: a file of strings, looked for anywhere
        hard: a file of words
        soft: another file of words
        parents: true lets an entry also match the domains below it; a top-level domain never does
        url: the place of the URL in the metadata; by default `warc_headers.warc-target-uri`, or else `url`
    """

    EXAMPLES = (
        Example(
            "",
            {"host": None, "categories": [], "domain": False, "url": False, "strict": 0, "hard": 0, "soft": 0},
            options={"lists": "tests/taggers/files/ut1"},
        ),
        Example(
            "by parent domain, and by path",
            {
                "host": "blog.news.example.com", "categories": ["dating", "press"], "domain": False, "url": False,
                "strict": 0, "hard": 0, "soft": 0,
            },
            options={"lists": "tests/taggers/files/ut1"},
            metadata={"url": "https://blog.news.example.com/Love/?page=2"},
        ),
        Example(
            "größer, in the files of words: hot deals, hot, casino",
            {
                "host": "xn--bcher-kva.example", "categories": [], "domain": False, "url": False,
                "strict": 3, "hard": 2, "soft": 2,
            },
            options={
                "strict": "tests/taggers/files/words.txt", "hard": "tests/taggers/files/words.txt",
                "soft": "tests/taggers/files/words.txt", "url": "source.address",
            },
            metadata={"source": {"address": "http://bücher.example:8080/Hot%20Deals-CASINO#a"}},
        ),
    )  # fmt: skip

    lists: Files | None = None
    categories: tuple[str, ...] = ()
    domains: Files | None = None
    urls: Files | None = None
    strict: Files | None = None
    hard: Files | None = None
    soft: Files | None = None
    parents: bool = True
    url: str | None = None

    def tag_batch(self, documents: Sequence[Document]) -> list[UrlEntries]:
        path = f"metadata.{self.url}" if self.url else ""
        urls = [url_of({"metadata": document.metadata}, path) for document in Batch.of(documents)]
        places = [_place(url) for url in urls]
        names = [list(_domains(place.host, self.parents)) if place else [] for place in places]
        paths = [[place.url] if place else [] for place in places]
        by_domain = [
            _categories_of(_domains_of(files, categories), names) for files, categories in self._sources(self.domains)
        ]
        by_url = [_categories_of(_urls_of(files, categories), paths) for files, categories in self._sources(self.urls)]
        strict, hard, soft = (_words(path) for path in (self.strict, self.hard, self.soft))
        values = []
        for i, (url, place) in enumerate(zip(urls, places, strict=True)):
            text = unquote(url).lower() if place and url else ""
            words, squeezed = set(_NO_WORD.split(text)), _NO_WORD.sub("", text)
            values.append(
                UrlEntries(
                    place.host if place else None,
                    sorted(by_domain[0][i] | by_url[0][i]),
                    bool(by_domain[1][i]),
                    bool(by_url[1][i]),
                    sum(entry in squeezed for entry in strict),
                    len(words & hard),
                    len(words & soft),
                )
            )
        return values

    def _sources(self, file: str | None) -> list[tuple[str | None, tuple[str, ...] | None]]:
        """Return the folder with the wanted categories, and a file."""
        return [(self.lists, self.categories), (file, None)]


class _Place(NamedTuple):
    host: str
    url: str


def _place(url: str | None) -> _Place | None:
    """Return the host of a URL, and host, port and path.

    The scheme may be absent; None without a host.
    """
    if not url or not _HOST.fullmatch(host := host_of(url)):
        return None
    try:
        parts = split_url(url)
        port = "" if parts.port in (None, _PORTS.get(parts.scheme or "http")) else f":{parts.port}"
    except ValueError:
        return None
    return _Place(host, f"{host}{port}{parts.path or '/'}")


def _domains(host: str, parents: bool) -> Iterator[str]:
    yield host
    if parents and not host[-1].isdigit() and ":" not in host:
        at = host.find(".")
        while 0 <= at < host.rfind("."):
            yield host[at + 1 :]
            at = host.find(".", at + 1)


class _Index(NamedTuple):
    """Hashes of entries, sorted, and the category of each."""

    hashes: Array
    numbers: Array
    categories: list[str]


def _categories_of(index: _Index, keys: Sequence[Sequence[str]]) -> list[set[str]]:
    """Return the categories of some keys, for each sequence of such."""
    results: list[set[str]] = [set() for _ in keys]
    owners = [i for i, of_one in enumerate(keys) for _ in of_one]
    if len(index.hashes) and owners:
        hashes = _hashes("\n".join(key for of_one in keys for key in of_one).encode())
        begin, end = np.searchsorted(index.hashes, hashes), np.searchsorted(index.hashes, hashes, "right")
        for k in np.flatnonzero(end > begin).tolist():
            results[owners[k]].update(index.categories[n] for n in index.numbers[begin[k] : end[k]].tolist())
    return results


@functools.lru_cache(maxsize=8)
def _domains_of(files: str | None, names: tuple[str, ...] | None) -> _Index:
    return _index(files, names, "domains", lambda data: data.lower() if data.isascii() else _normal(data, "host"))


@functools.lru_cache(maxsize=8)
def _urls_of(files: str | None, names: tuple[str, ...] | None) -> _Index:
    return _index(files, names, "urls", lambda data: _normal(data, "url"))


def _normal(data: bytes, field: str) -> bytes:
    lines = map(str.strip, data.decode().split("\n"))
    places = (_place(line) for line in lines if not line.startswith("#"))
    return "\n".join(getattr(place, field) for place in places if place).encode()


def _index(files: str | None, categories: tuple[str, ...] | None, name: str, normal: Any) -> _Index:
    paths = [("", files)] if files else []
    if files and categories is not None:
        if not os.path.isdir(files):
            raise ConfigError(f"expected a folder of lists, got nothing of that kind at {files!r}")
        folders = sorted(item for item in os.listdir(files) if os.path.isdir(os.path.join(files, item)))
        if missing := sorted(set(categories) - set(folders)):
            raise ConfigError(f"expected the category {missing[0]!r} in {files}, got {', '.join(folders) or 'none'}")
        tried = (
            (folder, os.path.join(files, folder, name + suffix))
            for folder in categories or folders
            for suffix in ("", ".gz")
        )
        paths = [(item, path) for item, path in tried if os.path.isfile(path)]
    hashes = [_hashes(normal(read_list(path))) for _, path in paths]
    numbers = [np.full(len(hash_), i, dtype=np.uint16) for i, hash_ in enumerate(hashes)]
    whole = np.concatenate([np.zeros(0, dtype=np.int64), *hashes])
    order = np.argsort(whole)
    return _Index(whole[order], np.concatenate([np.zeros(0, np.uint16), *numbers])[order], [item for item, _ in paths])


@cached(8)
def _words(path: str | None) -> frozenset[str]:
    return frozenset(_NO_WORD.sub("", entry.lower()) for entry in entries(path)) - {""} if path else frozenset()


def _hashes(data: bytes) -> Array:
    """Return a hash of each line with an entry (see `toolkit.text.entries`)."""
    result = np.zeros(data.count(b"\n") + 1, dtype=np.int64)
    count = np.zeros(1, dtype=np.int64)
    _hash_lines(np.frombuffer(data + b"\n", dtype=np.int8), len(data) + 1, result, count)
    return result[: count[0]]


@compiled("int8* int64 int64* int64*")
def _hash_lines(utf8: Any, size: Any, hashes: Any, count: Any) -> None:
    start = 0
    for i in range(size):
        if utf8[i] != 10:
            continue
        end = i
        while start < end and 0 <= utf8[end - 1] <= 32:
            end -= 1
        while start < end and 0 <= utf8[start] <= 32:
            start += 1
        if start < end and utf8[start] != 35:
            hash_ = 0
            for j in range(start, end):
                hash_ = (hash_ ^ utf8[j]) * 0x5851F42D4C957F2D
                hash_ ^= hash_ >> 32
            hashes[count[0]] = hash_
            count[0] += 1
        start = i + 1
