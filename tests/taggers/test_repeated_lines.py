"""Repeated lines against a slow rendering, and cut from the text."""

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taggers.repeated_lines import RepeatedLines
from toolkit import Document, Span
from toolkit.text.editing import apply, edits_of_spans

PUNCTUATION = "，。、„”“«»１」「《》´∶：？！（）；–—．～’…━〈〉【】％►"


def ccnet(line: str) -> str:
    digits = "".join("0" if unicodedata.category(c) == "Nd" else c for c in line.strip().lower())
    return "".join(c for c in digits if c not in PUNCTUATION and unicodedata.category(c) != "Cc")


def slow(text: str, key: Any, min_chars: int) -> list[Span]:
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
    assert found == slow(text, slowly, min_chars)


def test_what_is_left_when_they_are_cut_has_each_line_once() -> None:
    text = "Menu\n\nOne.\nMenu\n\nTwo.\r\nMenu"
    spans = RepeatedLines().tag(Document(text))
    assert apply(text, edits_of_spans(spans, "", text)).text == "Menu\n\nOne.\n\nTwo.\r\n"
    assert RepeatedLines().tag(Document("Menu\nOne.\nTwo.\r\n")) == []
