"""Counts of tokens are those that the library gives for each text by itself."""

import json
from pathlib import Path

import pytest

from taggers.tokens import Tokens
from tests.conftest import ROOT
from toolkit import Document
from toolkit.errors import ConfigError
from toolkit.tag.tagger import settings
from toolkit.text.tokens import tokenizer

FILE = ROOT / "tests" / "taggers" / "files" / "tokenizer.json"
TEXTS = ["", "the cat", "the </s> cat", "das große Haus " * 30, "\U0001f600\n\0", " " * 100, "the hat"]


def test_counts_are_those_of_each_text_in_any_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("tokenizers").Tokenizer.from_file(str(FILE))
    assert len(library.encode(TEXTS[3])) == 8, "the file says to truncate, and to pad"
    library.no_truncation()
    library.no_padding()
    documents = [Document(text) for text in TEXTS]
    for special in (False, True):
        wanted = [len(library.encode(text, add_special_tokens=special).ids) for text in TEXTS]
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
