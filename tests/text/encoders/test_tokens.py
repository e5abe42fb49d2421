"""The first tokens of a text are the same whether all of it is cut or a beginning."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.encoders.classifiers import write_tokenizer
from toolkit.errors import ConfigError
from toolkit.text.encoders import tokens
from toolkit.text.encoders.config import ModelConfig
from toolkit.text.encoders.tokens import Tokens, filled_up

pytest.importorskip("tokenizers", reason="the extra tokens is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(made, ["a", "bb", "ccc"])
    return made


def test_a_text_has_at_most_so_many_tokens_with_those_around_it(folder: Path) -> None:
    cut = Tokens(str(folder), 4, ModelConfig())
    assert cut.of(["a bb ccc a", "", "a"]) == [[0, 5, 6, 2], [0, 2], [0, 5, 2]]
    assert cut.pad == 1
    ids, mask = filled_up(cut.of(["a bb", ""]), 1)
    assert ids.tolist() == [[0, 5, 6, 2], [0, 2, 1, 1]]
    assert mask.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    with pytest.raises(ConfigError, match="expected more than the 2 around a text, got 2"):
        Tokens(str(folder), 2, ModelConfig())


@given(words=st.lists(st.sampled_from(["a", "bb", "ccc", " " * 40, "\n", "other"]), max_size=400))
def test_a_beginning_that_has_enough_tokens_has_those_of_the_text(folder: Path, words: list[str]) -> None:
    text = " ".join(words)
    found = Tokens(str(folder), 20, ModelConfig())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tokens, "_MARGIN", 3)
        patched.setattr(tokens, "_CHARACTERS", 1)
        (few,) = found.of([text])
    numbers = {"a": 5, "bb": 6, "ccc": 7}
    assert few == [0, *[numbers.get(word, 3) for word in text.split()][:18], 2]


def test_what_a_model_takes_is_what_its_positions_are() -> None:
    assert ModelConfig(model_type="roberta", max_position_embeddings=514, pad_token_id=1).tokens(None) == 512
    assert ModelConfig(model_type="bert", max_position_embeddings=128).tokens(None) == 128
    assert ModelConfig(max_position_embeddings=8192).tokens(None) == 512
    assert ModelConfig(max_position_embeddings=8192).tokens(8192) == 8192
    with pytest.raises(ConfigError, match="max_tokens: expected at most the 512 that the model takes, got 513"):
        ModelConfig(model_type="roberta", max_position_embeddings=514).tokens(513)
