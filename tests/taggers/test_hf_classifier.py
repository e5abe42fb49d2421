"""Models of transformers: what they say is what transformers computes, and what would be drawn at random is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.text.encoders.classifiers import write_encoder
from toolkit import Document
from toolkit.config.settings import ConfigNode, convert
from toolkit.errors import ConfigError, DataError
from toolkit.tag.tagger import TAGGERS, Tagger, check_models

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

TEXTS = ["one", "a much longer text than others " * 4, "", "Ωμέγα"]


def tagger(folder: Path, **options: Any) -> Tagger:
    made: Tagger = convert(ConfigNode({"model": str(folder), **options}), TAGGERS.find("hf_classifier"), "tagger")
    return made


def said(made: Tagger, texts: list[str] = TEXTS) -> list[Any]:
    return list(made.tag_batch([Document(text, id=str(i), source="s") for i, text in enumerate(texts)]))


def numbers(folder: Path) -> np.ndarray:
    """What transformers computes of each text by itself, cut to 64 tokens."""
    from tokenizers import Tokenizer
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    cut = Tokenizer.from_file(str(folder / "tokenizer.json"))
    cut.enable_truncation(64)
    with torch.inference_mode():
        return np.concatenate([model(torch.tensor([cut.encode(text).ids])).logits.numpy() for text in TEXTS])


def test_scores_and_probabilities_are_those_of_transformers(tmp_path: Path) -> None:
    score, classes = write_encoder(tmp_path / "score"), write_encoder(tmp_path / "classes", num_labels=3)
    assert [each.score for each in said(tagger(score))] == pytest.approx(numbers(score)[:, 0], abs=1e-5)
    wanted = torch.softmax(torch.from_numpy(numbers(classes)), dim=1).numpy()
    for found, row in zip(said(tagger(classes, batch={"documents": 2})), wanted, strict=True):
        assert [found.scores[f"LABEL_{i}"] for i in range(3)] == pytest.approx(row, abs=1e-5)
        assert found.label == f"LABEL_{row.argmax()}"


def annotator(folder: Path, like: Path, head: str, **config: Any) -> Path:
    """Write what ml_filter's class saves: names with its prefix, its head, no configuration of the encoder."""
    from safetensors.torch import load_file, save_file

    folder.mkdir()
    shutil.copy(like / "tokenizer.json", folder)
    (folder / "config.json").write_text(json.dumps({"architectures": ["AnnotatorModel"], **config}))
    kept = load_file(like / "model.safetensors")
    renamed = {f"_base_model.{name.replace('out_proj.', 'out_proj.linear.')}": each for name, each in kept.items()}
    save_file(renamed | {f"_base_model.classifier.out_proj.{head}": torch.ones(2)}, folder / "model.safetensors")
    return folder


def test_both_heads_of_ml_filter(tmp_path: Path) -> None:
    """Their formulas: clamp(x, 0, 1) * (classes - 1); softmax of view(-1, classes, targets) under a mask."""
    scores, classes = write_encoder(tmp_path / "s", num_labels=2), write_encoder(tmp_path / "c", num_labels=6)
    about = {"num_tasks": 2, "num_targets_per_task": [3, 2]}
    numbered = annotator(tmp_path / "n", scores, "scaling.scaling_constants", is_regression=True, **about)
    base = {"base": str(scores / "config.json"), "targets": ["edu", "toxic"]}
    wanted = np.clip(numbers(scores), 0, 1) * [2, 1]
    for found, row in zip(said(tagger(numbered, **base)), wanted, strict=True):
        assert [*found.scores.values()] == pytest.approx(row, abs=1e-5)
    labelled = annotator(tmp_path / "l", classes, "logit_mask.raw_logit_mask", is_regression=False, **about)
    logits = torch.from_numpy(numbers(classes)).view(-1, 3, 2)
    wanted = torch.softmax(logits[:, :2, 1], dim=1).numpy()
    for found, row in zip(said(tagger(labelled, target="toxic", **base)), wanted, strict=True):
        assert [found.scores["0"], found.scores["1"]] == pytest.approx(row, abs=1e-5)
    with pytest.raises(ConfigError, match=r"base: expected the config.json of the encoder"):
        check_models(tagger(numbered))


def test_what_is_refused(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "m")
    check_models(tagger(folder))
    with pytest.raises(ConfigError, match=r"expected all weights of a classifier, got none for classifier.dense"):
        check_models(tagger(write_encoder(tmp_path / "encoder", head=False)))
    with pytest.raises(ConfigError, match="max_tokens: expected at most the 64 that the model takes, got 65"):
        check_models(tagger(folder, max_tokens=65))
    with pytest.raises(ConfigError, match="base: expected it only for a model of ml_filter"):
        check_models(tagger(folder, base=str(folder / "config.json")))
    with pytest.raises(ConfigError, match="device: expected one that PyTorch can use here, got cuda:7"):
        said(tagger(folder, device="cuda:7"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "own.Model"}}))
    with pytest.raises(ConfigError, match="expected a model whose code is in transformers"):
        check_models(tagger(folder))
    (folder / "config.json").write_text(json.dumps(config))
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-100])
    with pytest.raises(ConfigError, match="expected a model that transformers can load, got"):
        check_models(tagger(folder))
    (folder / "model.safetensors").write_bytes(whole[:-400] + b"\xff" * 400)
    with pytest.raises(DataError, match="expected finite numbers for each text"):
        check_models(tagger(folder))
