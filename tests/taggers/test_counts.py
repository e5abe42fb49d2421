"""Lengths are Python's own."""

import gzip
import json
import os
import random
import re
import unicodedata
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings as settings_tlsh, settings as settings_word_list, strategies as st

from taggers.length import Length
from taggers.noise import Noise, _noise_up_to
from taggers.random import Random
from taggers.repeated_lines import RepeatedLines
from taggers.repeated_ngrams import RepeatedNgrams
from taggers.tlsh import _LENGTHS, _PEARSON, Tlsh
from taggers.tokens import Tokens
from taggers.url_list import UrlEntries, UrlList
from taggers.word_list import Hits, WordList
from tests.conftest import ROOT
from toolkit import ConfigError, Document, Span
from toolkit.config.settings import convert, parse
from toolkit.rules.rule import sample_hash
from toolkit.tag.tagger import settings
from toolkit.text import split_lines
from toolkit.text.editing import apply, edits_of_spans
from toolkit.text.tokens import tokenizer


@given(st.lists(st.text(st.sampled_from("aé一 \U0001f600\r\n\n.'"), max_size=30), max_size=4))
def test_lengths_are_those_of_the_text(texts: list[str]) -> None:
    documents = [Document(text) for text in texts]
    for text, document, value in zip(texts, documents, Length().tag_batch(documents), strict=True):
        assert (value.chars, value.bytes, value.lines) == (len(text), len(text.encode()), len(split_lines(text)))
        assert value.words == len(document.words)
    for text, value in zip(texts, Length(splitter="white_space").tag_batch(documents), strict=True):
        assert value.words == len(text.split())


# Noise is what Python's own table of categories says, whatever the text.

TEXTS = st.text("aé1 \t\r\n\x00\x85\u0301\u2028日½\U0001f600\U000e0100\U0010ffff")


@given(st.lists(TEXTS, max_size=4))
def test_noise_is_counted_as_python_has_it(texts: list[str]) -> None:
    documents = [Document(id=str(i), text=text, source="s") for i, text in enumerate(texts)]
    joined = ["\n".join(split_lines(text)) for text in texts]
    expected = [(len(text), sum(unicodedata.category(c)[0] not in "LM" for c in text)) for text in joined]
    assert [(found.chars, found.noise) for found in Noise().tag_batch(documents)] == expected


@pytest.mark.parametrize("last", [0x7F, 0x7FF, 0xFFFF, 0x3FFFF, 0x10FFFF])
def test_the_table_says_of_each_code_point_what_python_says(last: int) -> None:
    wanted = [category[0] not in "LM" for category in map(unicodedata.category, map(chr, range(last + 1)))]
    assert _noise_up_to(last).tolist() == wanted


# Counts of tokens are those that the library gives for each text by itself.

FILE = ROOT / "tests" / "taggers" / "files" / "tokenizer.json"
TOKENS_TEXTS = ["", "the cat", "the </s> cat", "das große Haus " * 30, "\U0001f600\n\0", " " * 100, "the hat"]


def test_counts_are_those_of_each_text_in_any_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("tokenizers").Tokenizer.from_file(str(FILE))
    assert len(library.encode(TOKENS_TEXTS[3])) == 8, "the file says to truncate, and to pad"
    library.no_truncation()
    library.no_padding()
    documents = [Document(text) for text in TOKENS_TEXTS]
    for special in (False, True):
        wanted = [len(library.encode(text, add_special_tokens=special).ids) for text in TOKENS_TEXTS]
        tagger = Tokens(tokenizer=str(FILE), add_special_tokens=special)  # compiled code, or the library
        for size in (1, 100, 10**6):
            monkeypatch.setattr(tokenizer, "BATCH", size)
            assert tagger.tag_batch(documents) == wanted
    assert Tokens(tokenizer=str(FILE)).tag(Document("</s>")) == 1


def test_the_tokenizer_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_bytes(FILE.read_bytes())
    known = settings(Tokens(tokenizer=str(FILE)), "tokens", "tokens")
    assert known == settings(Tokens(tokenizer=str(tmp_path / "other.json")), "tokens", "tokens")


@pytest.mark.parametrize("content", ["", "{}", json.dumps({"version": "1.0"})])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(ConfigError, match="expected a file of a tokenizer, got: "):
        Tokens(tokenizer=str(tmp_path / "bad.json")).tag(Document("a"))


# TLSH: the published test vectors, a slow computation, and the library where it is installed.


def published(begin: str, size: int) -> str:
    """A text of Trend Micro's tests: letters in order, a NUL at the end."""
    text = "".join(chr(i % 26 + 65) for i in range(size - 1)) + "\0"
    return begin + text[len(begin) :]


ONE = published("This is a test for Lili Diao. This is a string. Hello Hello Hello ", 512)
TWO = published("This is a test for Jon Oliver. This is a string. Hello Hello Hello ", 1024)


@pytest.mark.parametrize(
    ("text", "buckets", "checksum", "digits"),
    [
        (ONE, 128, 1, "09F05A198CC69A5A4F0F9380A9EE93F2B927CF42089EA74276DC5F0BB2D34E68114448"),
        (TWO, 128, 1, "301124198C869A5A4F0F9380A9AE92F2B9278F42089EA34272885F0FB2D34E6911444C"),
        (
            ONE, 256, 3,
            ("096463F055A00114F31B8A069219E18273306B0EC081BBDF9D070C865DC638A0D910D029AE198CC69A5A4F0F9380A9EE93F2BA2BCF42"
            "08AEA74276DC5F0BB2D34E68114848"),
        ),
        (
            TWO, 256, 3,
            ("30AEF1112A600114F35ACA028219F14673306B1EC481BFDF8D070C865AC638A0D910D029EE1A8C869A5A4F0F9380A9AEA2F2BA2B8F82"
            "08AEA34272885F0FB2D34E6912484C"),
        ),
    ],
)  # fmt: skip
def test_published_hashes(text: str, buckets: int, checksum: int, digits: str) -> None:
    assert Tlsh(buckets=buckets, checksum=checksum).tag(Document(text)) == f"tlsh:T1{digits}"  # type: ignore[arg-type]


def slow(text: str, buckets: int, checksum: int, filled: float) -> str | None:
    data = "\n".join(Document(text).lines).encode()
    table = _PEARSON.tolist()

    def pearson(*values: int) -> int:
        hashed = 0
        for value in values:
            hashed = table[hashed ^ value]
        return hashed

    counts, checks = [0] * 256, [0, 0, 0]
    for i in range(4, len(data)):
        a, b, c, d, e = data[i - 4 : i + 1][::-1]
        for k in range(3):
            checks[k] = pearson(checks[k - 1] if k else 0, a, b, checks[k])
        for salted in ((2, a, b, c), (3, a, b, d), (5, a, c, d), (7, a, c, e), (11, a, b, e), (13, a, d, e)):
            counts[pearson(*salted)] += 1
    counts = counts[:buckets]
    q1, q2, q3 = (sorted(counts)[buckets // 4 * k - 1] for k in (1, 2, 3))
    if len(data) < 50 or not q3 or sum(map(bool, counts)) <= filled * buckets:
        return None
    codes = [
        sum(((n > q1) + (n > q2) + (n > q3)) << 2 * j for j, n in enumerate(counts[i : i + 4]))
        for i in range(0, buckets, 4)
    ]
    length = next(i for i, top in enumerate(_LENGTHS) if len(data) <= top)
    head = "".join(f"{byte:02X}"[::-1] for byte in [*checks[:checksum], length])
    return f"tlsh:T1{head}{q1 * 100 // q3 % 16:X}{q2 * 100 // q3 % 16:X}" + bytes(codes[::-1]).hex().upper()


@settings_tlsh(deadline=None, max_examples=60)
@given(
    st.lists(st.text(st.sampled_from("abcdefghijklmno éß日\r\n"), max_size=200), max_size=4),
    st.sampled_from([128, 256]),
    st.sampled_from([1, 3]),
    st.sampled_from([0.0, 0.3, 0.5]),
)
def test_as_computed_slowly(texts: list[str], buckets: int, checksum: int, filled: float) -> None:
    tagger = Tlsh(buckets=buckets, checksum=checksum, filled=filled)  # type: ignore[arg-type]
    texts = [text * 3 for text in texts]
    assert tagger.tag_batch([Document(t) for t in texts]) == [slow(t, buckets, checksum, filled) for t in texts]


def test_as_the_library_computes() -> None:
    library = pytest.importorskip("tlsh", reason="the package py-tlsh")
    tagger = Tlsh(buckets=128, checksum=1, filled=0.5)
    for text in (ONE, TWO, "a" * 60, "short", "".join(map(chr, range(0x400, 0x480))), ONE[:50], ONE[:49]):
        expected = library.hash(text.encode())
        assert tagger.tag(Document(text)) == (None if expected in ("", "TNULL") else f"tlsh:{expected}")


# Random numbers are those of the rule `sample`, and of the document alone.


def test_numbers_below_a_share_are_those_of_its_sample() -> None:
    numbers = []
    for i in range(2000):
        number = Random(seed="7").tag(Document("", id=f"é{i}", source="web"))
        drawn = sample_hash("7", "web", f"é{i}")
        assert all((number < share) == (drawn < share * 2**64) for share in (0.0, 0.001, 0.1, 0.5, 0.9, 1.0, number))
        numbers.append(number)
    assert 0.45 < sum(numbers) / len(numbers) < 0.55
    assert len(set(numbers)) == len(numbers)


def test_numbers_are_of_seed_source_and_id() -> None:
    known = Random().tag(Document("a", id="1", source="s"))
    assert known == Random().tag(Document("b", id="1", source="s", metadata={"a": 1}))
    others = [Random(seed="x").tag(Document("a", id="1", source="s"))]
    others += [Random().tag(Document("a", id=id, source=source)) for id, source in (("2", "s"), ("1", "t"), ("", "s1"))]
    assert len({known, *others}) == 5


# Repeated lines against a slow rendering, and cut from the text.

PUNCTUATION = "，。、„”“«»１」「《》´∶：？！（）；–—．～’…━〈〉【】％►"


def ccnet(line: str) -> str:
    digits = "".join("0" if unicodedata.category(c) == "Nd" else c for c in line.strip().lower())
    return "".join(c for c in digits if c not in PUNCTUATION and unicodedata.category(c) != "Cc")


def slow_repeated_lines(text: str, key: Any, min_chars: int) -> list[Span]:
    seen: list[str] = []
    spans = []
    for match in re.finditer(r"[^\n]*\n|[^\n]+$", text):
        line = key(re.sub(r"\r?\n\Z|\r\Z", "", match.group()))
        if len(line) >= min_chars and line.strip():
            if line in seen:
                spans.append(Span(match.start(), match.end(), float(seen.count(line))))
            seen.append(line)
    return spans


@pytest.mark.parametrize(("key", "slowly"), [("exact", str), ("stripped", str.strip), ("ccnet", ccnet)])
@given(text=st.text("aAéΣσ١7 \t\r\n\n…»,\x85\x1d", max_size=60), min_chars=st.integers(1, 3))
def test_repeated_lines_are_those_that_were_seen_before(key: Any, slowly: Any, text: str, min_chars: int) -> None:
    found = RepeatedLines(key=key, min_chars=min_chars).tag(Document(text))
    assert found == slow_repeated_lines(text, slowly, min_chars)


def test_what_is_left_when_they_are_cut_has_each_line_once() -> None:
    text = "Menu\n\nOne.\nMenu\n\nTwo.\r\nMenu"
    spans = RepeatedLines().tag(Document(text))
    assert apply(text, edits_of_spans(spans, "", text)).text == "Menu\n\nOne.\n\nTwo.\r\n"
    assert RepeatedLines().tag(Document("Menu\nOne.\nTwo.\r\n")) == []


# What repeated n-grams cover, against a slow rendering.


def slow_repeated_ngrams(words: list[str], n: int) -> tuple[float, float]:
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    counts = Counter(grams)
    every = {i + j for i, gram in enumerate(grams) if counts[gram] > 1 for j in range(n)}
    again = {i + j for i, gram in enumerate(grams) if gram in grams[:i] for j in range(n)}
    return tuple(float(Fraction(len(which), len(words) or 1)) for which in (every, again))  # type: ignore[return-value]


@given(st.lists(st.lists(st.sampled_from(["a", "B", "b", "é"]), max_size=40), max_size=3))
def test_shares_are_those_of_marked_words(texts: list[list[str]]) -> None:
    documents = [Document(" ".join(words)) for words in texts]
    for words, value in zip(texts, RepeatedNgrams(n=(1, 2, 3, 7), case=True).tag_batch(documents), strict=True):
        assert value.words == len(words)
        for n in (1, 2, 3, 7):
            assert (value.covered[str(n)], value.again[str(n)]) == slow_repeated_ngrams(words, n)
    for words, value in zip(texts, RepeatedNgrams(n=(2,)).tag_batch(documents), strict=True):
        assert (value.covered["2"], value.again["2"]) == slow_repeated_ngrams([word.lower() for word in words], 2)


@pytest.mark.parametrize("n", [[], [0], [101], 3])
def test_n_is_a_list_of_numbers(n: object) -> None:
    with pytest.raises(ConfigError):
        convert(parse(f'{{"n": {n}}}'), RepeatedNgrams, "tagger repeated_ngrams")


# URLs on lists: which host and path match which entry, words in them, and real lists.


def found(url: object, tagger: UrlList) -> UrlEntries:
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
    assert found("http://a.bad.example/", files) == UrlEntries("a.bad.example", [], True, False, 0, 0, 0)
    assert found("http://mixed.example/bad/", files) == UrlEntries("mixed.example", [], False, True, 0, 0, 0)


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


@pytest.mark.slow
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


# Words and phrases of lists: against a slow search, by language, as words and as strings.

WORD_LIST_TEXTS = st.text(st.sampled_from("abAB .-'\né日&\U0001f600"), max_size=40)


def slow_word_list(text: str, entries: list[str], strings: bool) -> Hits:
    """What the docstring says, word by word."""
    words = [word.lower() for word in Document(text).words]
    entries = list(dict.fromkeys(entry.lower() for entry in entries if entry.strip()))
    hits = []
    for entry in entries:
        wanted = [word.lower() for word in Document(entry).words]
        if strings or not wanted or "&" in entry or "\U0001f600" in entry:
            letter = r"[^\0-\x7f]|[a-z0-9]"
            flanked = rf"(?<={letter})(?={letter})" if wanted and not strings else "(?!)"
            pattern = rf"(?=(?!{flanked}){re.escape(entry)}(?!{flanked}))"
            hits += [entry for _ in re.finditer(pattern, text.lower())]
        else:
            hits += [entry for i in range(len(words)) if words[i : i + len(wanted)] == wanted]
    return Hits(len(entries), len(hits), len(set(hits)), 1000 * len(hits) / len(words) if words else None)


@settings_word_list(deadline=None)
@given(
    st.lists(WORD_LIST_TEXTS, min_size=1, max_size=4), st.lists(st.text("abAB -é日&\U0001f600", max_size=5), max_size=8)
)
def test_as_a_slow_search_finds(texts: list[str], entries: list[str]) -> None:
    documents = [Document(text) for text in texts]
    for match in ("words", "strings"):
        tagger = WordList(lists=None, words=tuple(entries), match=match)
        assert tagger.tag_batch(documents) == [slow_word_list(text, entries, match == "strings") for text in texts]


def test_the_list_of_each_document_s_language(tmp_path: Path) -> None:
    (tmp_path / "en").write_text("\ufeff# a comment\nRude word\n\nBad\n")
    (tmp_path / "de.txt").write_text("böse\n")
    (tmp_path / "ja").write_text("悪\n")
    tagger = WordList(lists=str(tmp_path), language="language-0.language.label")
    documents = []
    for language, text in (("en", "Bad rude words; rude WORD"), ("de", "BÖSE bad"), ("ja", "最悪です"), (None, "bad")):
        documents.append(Document(text))
        documents[-1].give("language-0.language.label", language)
    found = tagger.tag_batch(documents)
    assert [(each.entries, each.hits) for each in found] == [(2, 2), (1, 1), (1, 1), (0, 0)]


def test_one_list_for_all_and_none_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("bad")
    assert WordList(lists=str(tmp_path / "list")).tag(Document("bad")).hits == 1
    with pytest.raises(ConfigError, match="got nothing at"):
        WordList(lists=str(tmp_path / "other")).tag(Document("bad"))


def test_stop_words_of_a_language() -> None:
    found = WordList(language="en").tag(Document("This is the end of THE road, and don't stop."))
    assert found.hits >= 6
    assert found.entries > 100
    assert WordList(language="xx").tag(Document("the")) == Hits(0, 0, 0, 0.0)


@pytest.mark.slow
def test_on_real_documents_and_lists(shared: Path) -> None:
    """As the slow search, and nearly as C4's pattern, which takes an underscore or an apostrophe for other things."""
    with gzip.open(shared / "quality" / "dclm_majority_data.jsonl.gz", "rt") as rows:
        texts = [json.loads(row)["text"] for row in rows][:150]
    tagger = WordList(lists=str(shared / "lists" / "ldnoobw"), language="en")
    entries = (shared / "lists" / "ldnoobw" / "en").read_text().split("\n")[:-1]
    found = tagger.tag_batch([Document(text) for text in texts])
    assert found[:20] == [slow_word_list(text, entries, False) for text in texts[:20]]
    pattern = re.compile(r"(?:\W|^)({})(?:\W|$)".format("|".join(map(re.escape, entries))))
    same = [bool(pattern.search(text.lower())) == (each.hits > 0) for text, each in zip(texts, found, strict=True)]
    assert sum(same) >= 0.98 * len(texts)
