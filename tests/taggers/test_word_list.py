"""Words and phrases of lists: against a slow search, by language, as words and as strings."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taggers.word_list import Hits, WordList
from toolkit import ConfigError, Document

TEXTS = st.text(st.sampled_from("abAB .-'\né日&\U0001f600"), max_size=40)


def slow(text: str, entries: list[str], strings: bool) -> Hits:
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


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.lists(st.text("abAB -é日&\U0001f600", max_size=5), max_size=8))
def test_as_a_slow_search_finds(texts: list[str], entries: list[str]) -> None:
    documents = [Document(text) for text in texts]
    for match in ("words", "strings"):
        tagger = WordList(lists=None, words=tuple(entries), match=match)
        assert tagger.tag_batch(documents) == [slow(text, entries, match == "strings") for text in texts]


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
    assert found[:20] == [slow(text, entries, False) for text in texts[:20]]
    pattern = re.compile(r"(?:\W|^)({})(?:\W|$)".format("|".join(map(re.escape, entries))))
    same = [bool(pattern.search(text.lower())) == (each.hits > 0) for text, each in zip(texts, found, strict=True)]
    assert sum(same) >= 0.98 * len(texts)
