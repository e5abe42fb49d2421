"""URLs on lists: which host and path match which entry, words in them, and real lists."""

import gzip
import os
import random
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from taggers.url_list import Found, UrlList
from toolkit import ConfigError, Document


def found(url: object, tagger: UrlList) -> Found:
    return tagger.tag_batch([Document("", metadata={"url": url})])[0]


@pytest.fixture
def lists(tmp_path: Path) -> str:
    for name, file, text in (
        ("adult", "domains", "# a comment\nbad.example\n  UPPER.example\r\n\nbücher.example\n10.0.0.1\nexample\n"),
        ("adult", "urls", "mixed.example/bad/\nhttp://mixed.example:8080/Worse\nmixed.example\n"),
        ("blog", "domains", "blogs.example\nbad.example"),
        ("empty", "usage", "black"),
    ):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / file).write_text(text)
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "domains.gz").write_bytes(gzip.compress(b"packed.example\n"))
    (tmp_path / "README").write_text("about")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("url", "categories"),
    [
        ("http://bad.example/", ["adult", "blog"]),
        ("https://www.bad.example./x?y#z", ["adult", "blog"]),
        ("bad.example", ["adult", "blog"]),
        ("http://user:word@BAD.example:8080", ["adult", "blog"]),
        ("http://notbad.example/", []),
        ("http://bad.example.org/", []),
        ("http://a.upper.example", ["adult"]),
        ("http://a.xn--bcher-kva.example", ["adult"]),
        ("http://www.bücher.example/ü", ["adult"]),
        ("http://10.0.0.1/", ["adult"]),
        ("http://110.0.0.1/", []),
        ("http://other.example/", []),
        ("http://example/", ["adult"]),
        ("http://mixed.example/bad/?x=1", ["adult"]),
        ("https://mixed.example:443/bad/", ["adult"]),
        ("http://mixed.example/bad", []),
        ("http://mixed.example/BAD/", []),
        ("http://mixed.example:8080/Worse", ["adult"]),
        ("http://mixed.example/Worse", []),
        ("http://mixed.example?x", ["adult"]),
        ("http://www.mixed.example/bad/", []),
        ("http://packed.example/", ["packed"]),
        ("http:///path", []),
        ("http://[::1", []),
        ("http:// /", []),
        ("http://#bad.example", []),
        ("http://" + "a." * 100_000 + "bad.example", []),
        ("", []),
        (None, []),
        (7, []),
    ],
)
def test_categories(lists: str, url: object, categories: list[str]) -> None:
    assert found(url, UrlList(lists=lists)).categories == categories


def test_options(lists: str) -> None:
    assert found("http://www.bad.example/", UrlList(lists=lists, parents=False)).categories == []
    assert found("http://bad.example/", UrlList(lists=lists, categories=("blog",))).categories == ["blog"]
    with pytest.raises(ConfigError, match=r"expected the category 'gambling' in .*, got adult, blog, empty, packed"):
        found("http://bad.example/", UrlList(lists=lists, categories=("gambling",)))
    files = UrlList(domains=f"{lists}/adult/domains", urls=f"{lists}/adult/urls")
    assert found("http://a.bad.example/", files) == Found("a.bad.example", [], True, False, 0, 0, 0)
    assert found("http://mixed.example/bad/", files) == Found("mixed.example", [], False, True, 0, 0, 0)


def test_where_the_url_is(lists: str) -> None:
    both = {"warc_headers": {"warc-target-uri": "http://bad.example"}, "url": "http://blogs.example"}
    for url, host in ((None, "bad.example"), ("url", "blogs.example"), ("warc_headers.url", None), ("url.url", None)):
        assert UrlList(lists=lists, url=url).tag(Document("", metadata=both)).host == host
    assert UrlList().tag(Document("")).host is None


@pytest.mark.parametrize(
    ("url", "strict", "words"),
    [
        ("http://a.example/hot-deals", 2, 1),
        ("http://a.example/HOTdeals/casinos", 3, 1),
        ("http://hot.casino.example/", 2, 2),
        ("http://a.example/?q=hot%20deals_casino&hot", 3, 2),
        ("http://a.example/shotgun", 1, 0),
        ("http://a.example/", 0, 0),
        ("no url at all hot", 0, 0),
    ],
)
def test_words_in_a_url(tmp_path: Path, url: str, strict: int, words: int) -> None:
    path = tmp_path / "words"
    path.write_text("hot deals\nhot\nCasino\n")
    value = found(url, UrlList(strict=str(path), hard=str(path), soft=str(path)))
    assert (value.strict, value.hard, value.soft) == (strict, words, words)


def test_real_lists(shared: Path) -> None:
    """Against a search in sets of strings, on hosts made from the lists' own."""
    folder = shared / "lists" / "ut1"
    sets = {}
    for name in sorted(os.listdir(folder)):
        path = folder / name / "domains"
        sets[name] = set(path.read_text().split()) if path.is_file() else set()
    random_ = random.Random(1)
    hosts = random_.sample(sorted(set().union(*sets.values())), 2000)
    hosts += [f"www.{host}" for host in hosts] + [f"x{host}" for host in hosts]
    values = UrlList(lists=str(folder)).tag_batch([Document("", metadata={"url": f"http://{h}/x"}) for h in hosts])
    for host, value in zip(hosts, values, strict=True):
        parts = host.split(".")
        above = {host, *(".".join(parts[i:]) for i in range(1, len(parts) - 1))}
        assert value.categories == [name for name in sets if sets[name] & above], host
    urls = (folder / "adult" / "urls").read_text().split()
    for url, value in zip(
        urls,
        UrlList(lists=str(folder)).tag_batch([Document("", metadata={"url": f"https://{u}"}) for u in urls]),
        strict=True,
    ):
        assert ("adult" in value.categories) or not urlsplit(f"https://{url}").path, url
