"""Tokenizers of a file."""

from pathlib import Path

import pytest

from toolkit.errors import ConfigError
from toolkit.text.tokenizer import load_tokenizer

pytest.importorskip("tokenizers")


def test_what_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tokenizer\.json: expected a file of a tokenizer, got: "):
        load_tokenizer(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ConfigError, match="expected a model file, got nothing"):
        load_tokenizer(str(tmp_path / "none.json"))
