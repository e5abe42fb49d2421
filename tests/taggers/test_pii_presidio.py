"""Personal data by Presidio: spans in pieces of a long text, languages, models."""

import sys
from pathlib import Path

import pytest

from taggers import pii_presidio
from taggers.pii_presidio import MAX_CHARS, PiiPresidio
from toolkit import ConfigError, Document, MissingExtra


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
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
