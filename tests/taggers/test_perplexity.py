"""Perplexity: a model made by hand, one for each language, and CCNet's normalisation."""

import shutil
import sys
from pathlib import Path

import pytest

from taggers.perplexity import Perplexity, _normal
from toolkit import ConfigError, Document, MissingExtra

TINY = str(Path(__file__).parent / "files" / "tiny.arpa")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(MissingExtra, match=r"kenlm .*: pip install 'tagmix\[kenlm\]'"):
        Perplexity(model=str(shutil.copy(TINY, tmp_path))).tag(Document("a"))
    with pytest.raises(ConfigError, match=r"got nothing at 'none\.arpa'"):
        Perplexity(model="none.arpa").tag(Document("a"))
    assert Perplexity(model="none.arpa").tag(Document("")) is None


@pytest.mark.parametrize(
    ("text", "logs"),
    [
        ("a", [-0.1, -0.2 - 0.5]),
        ("a b\na", [-0.1, -0.2, -0.2 - 0.5, -0.2 - 0.5]),
        ("b", [-0.3 - 0.7, -0.2 - 0.5]),
        ("\u00a0été\t", [-0.3 - 2.0, -0.5]),
        (" \n\u3000", None),
    ],
)
def test_by_hand(text: str, logs: list[float] | None) -> None:
    pytest.importorskip("kenlm", reason="extra `kenlm`")
    found = Perplexity(model=TINY).tag(Document(text))
    if logs is None:
        assert found is None
    else:
        assert found == pytest.approx(10 ** (-sum(logs) / len(logs)), rel=1e-6)


def test_one_model_for_each_language(tmp_path: Path) -> None:
    pytest.importorskip("kenlm", reason="extra `kenlm`")
    shutil.copy(TINY, tmp_path / "en.arpa")
    shutil.copy(TINY, tmp_path / "fr.arpa.bin")
    expected = Perplexity(model=TINY).tag(Document("a"))
    for language, value in (("en", expected), ("fr", expected), ("de", None), (None, None)):
        assert Perplexity(model=str(tmp_path), language=language).tag(Document("a")) == value


def test_pieces_as_in_ccnet(tmp_path: Path) -> None:
    pytest.importorskip("kenlm", reason="extra `kenlm`")
    sentencepiece = pytest.importorskip("sentencepiece", reason="extra `kenlm`")
    lines = iter(["a b ab ba aab abb", "b a bb aa", "ab ab a b"] * 50)
    with (tmp_path / "en.sp.model").open("wb") as out:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines, model_writer=out, vocab_size=10, minloglevel=2, hard_vocab_limit=False
        )
    tagger = Perplexity(model=TINY, sentencepiece=str(tmp_path), language="en")
    found = tagger.tag(Document("Ä b\nab"))
    assert found is not None
    assert found == round(found, 1)
    assert found == tagger.tag(Document("a bab")), "lines are stuck together"
    assert tagger.tag(Document(" \n")) is None


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Été 2024, „Größe“\n", 'ete 0000, "große"'),
        ("a\tb\r\nc\x7f\x85d", "abcd"),
        ("（１）—…％。", "(0) - ...%."),
        ("», 12！", '", 00!'),
    ],
)
def test_normalised_as_in_ccnet(text: str, normal: str) -> None:
    assert _normal(text) == normal
