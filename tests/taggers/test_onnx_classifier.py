"""ONNX models with numbers that are exact: what they say, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.text.encoders.classifiers import write_onnx
from toolkit import Document
from toolkit.config.settings import ConfigNode, convert
from toolkit.errors import ConfigError, MissingModel
from toolkit.tag.tagger import TAGGERS, Tagger, check_models, settings

pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
pytest.importorskip("onnx", reason="the package onnx, which makes tiny models, is not installed")

LABELS = {"0": "bad", "1": "good"}


def tagger(folder: Path | str, **options: Any) -> Tagger:
    made: Tagger = convert(ConfigNode({"model": str(folder), **options}), TAGGERS.find("onnx_classifier"), "tagger")
    return made


def said(made: Tagger, *texts: str) -> list[Any]:
    return list(made.tag_batch([Document(text, id=str(i), source="s") for i, text in enumerate(texts)]))


def test_a_text_alone_among_others_in_pieces_and_cut(tmp_path: Path) -> None:
    made = tagger(write_onnx(tmp_path / "m"))
    alone = [said(made, text)[0].score for text in ("one", "a much longer text", "")]
    assert [each.score for each in said(made, "one", "a much longer text", "")] == alone
    window = {"pieces": ["begin", "end"], "characters": 3, "aggregate": "max"}
    assert said(tagger(tmp_path / "m", window=window), "one and two")[0].score == max(
        said(made, text)[0].score for text in ("one", "two")
    )
    assert said(tagger(tmp_path / "m", max_tokens=5), "one and two") == said(made, "one")


def test_classes_by_the_configuration_beside_it(tmp_path: Path) -> None:
    (found,) = said(tagger(write_onnx(tmp_path / "m", 2, id2label=LABELS)), "text")
    assert found.label in ("bad", "good")
    assert sum(found.scores.values()) == pytest.approx(1)
    assert found.score == found.scores[found.label]


def test_the_digest_is_that_of_all_files(tmp_path: Path) -> None:
    made = tagger(write_onnx(tmp_path / "m"))
    before = settings(made, "onnx_classifier", "x")
    (tmp_path / "m/config.json").write_text('{"id2label": {"0": "other"}}')
    assert settings(made, "onnx_classifier", "x") != before
    assert (
        settings(tagger(tmp_path / "m", device="cpu"), "onnx_classifier", "x")["options"].keys().isdisjoint({"device"})
    )


def refusal(made: Tagger) -> str:
    with pytest.raises(ConfigError) as caught:
        check_models(made)
    return str(caught.value)


def test_what_is_refused(tmp_path: Path) -> None:
    folder = write_onnx(tmp_path / "m", 2, id2label=LABELS)
    check_models(tagger(folder))
    assert "expected 3 numbers of a text, as config.json says, got an output of the shape (1, 2)" in refusal(
        tagger(write_onnx(tmp_path / "three", 2, id2label={"0": "a", "1": "b", "2": "c"}))
    )
    assert "expected other.onnx, got none" in refusal(tagger(folder, file="other.onnx"))
    names = ("input_ids", "attention_mask", "pixels")
    assert "expected the inputs input_ids" in refusal(tagger(write_onnx(tmp_path / "inputs", inputs=names)))
    (folder / "model.onnx").write_bytes((folder / "model.onnx").read_bytes()[:300])
    assert "expected an ONNX model, got" in refusal(tagger(folder))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(MissingModel, match=r"expected tokenizer.json, got none; `AutoTokenizer"):
        said(tagger(folder), "text")
    with pytest.raises(MissingModel, match="expected the folder of a model, got nothing at"):
        said(tagger(tmp_path / "nowhere"), "text")
    with pytest.raises(ConfigError, match="expected the folder of a model on this machine"):
        said(tagger("s3://bucket/model"), "text")
