"""Sentences against a slow rendering; labels are those of each sentence by itself."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taggers.fasttext_label import FasttextLabel
from taggers.fasttext_spans import FasttextSpans, _lines, _sentences
from toolkit import Document

ENDS, CLOSE = ".!?…", "\"')]’”»"
WIDE_ENDS, WIDE_CLOSE = "。！？｡", "」』）’”"


def slow(text: str) -> list[str]:
    """Sentences, character by character."""
    found, start, at = [], 0, 0
    while at < len(text):
        end = at
        if text[at] in ENDS:
            while end < len(text) and text[end] in ENDS:
                end += 1
            while end < len(text) and text[end] in CLOSE:
                end += 1
            ends = end < len(text) and text[end].isspace()
        elif text[at] in WIDE_ENDS:
            while end < len(text) and text[end] in WIDE_ENDS:
                end += 1
            while end < len(text) and text[end] in WIDE_CLOSE:
                end += 1
            ends = True
        else:
            ends = text[at] == "\n"
            end += 1
        if ends:
            found.append(text[start:end])
            start = end
        at = end
    return [sentence.strip() for sentence in (*found, text[start:]) if sentence.strip()]


@given(st.text(st.sampled_from('ab .!?…"”)。！」\n\r\u2028'), max_size=40))
def test_sentences_end_where_they_are_said_to(text: str) -> None:
    spans = list(_sentences(text))
    assert [text[start:end] for start, end in spans] == slow(text)
    lines = [text[start:end] for start, end in _lines(text)]
    assert lines == [line.strip() for line in text.split("\n") if line.strip()]


def test_labels_are_those_of_each_sentence() -> None:
    text = "The library opens. Das ist ALLES!\n\n Η βιβλιοθήκη 图书馆。真的吗? 12 "
    for unit, cut in (("sentence", _sentences), ("line", _lines)):
        for lower in (False, True):
            found = FasttextSpans(model="lid.176.ftz", unit=unit, k=3, min_prob=0.1, lower=lower).tag(Document(text))  # type: ignore[arg-type]
            alone = FasttextLabel(model="lid.176.ftz", k=3, min_prob=0.1, lower=lower)
            wanted = {span: alone.tag(Document(text[slice(*span)])).scores for span in cut(text)}
            by_span: dict[tuple[int, int], dict[str, float]] = {span: {} for span in wanted}
            for label, spans in found.items():
                assert spans == sorted(spans)
                for span in spans:
                    by_span[span.start, span.end][label] = span.score
            assert by_span == wanted
    only = FasttextSpans(model="lid.176.ftz", labels=("de", "xx")).tag(Document(text))
    assert list(only) == ["de"]


@pytest.mark.parametrize("piece", [".", '."', ". ", "。", " ", "." + '"' * 1000, "!x", "…\n"])
def test_time_grows_with_the_length(piece: str) -> None:
    start = time.process_time()
    assert sum(1 for _ in _sentences(piece * (250_000 // len(piece)))) >= 0
    assert time.process_time() - start < 20
