"""Encoders that are fine-tuned, as a user does it: trained, loaded by a tagger, the same bytes with two processes."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.pipeline.test_train import BAD, GOOD, card, prepare
from tests.text.encoders.classifiers import write_encoder, write_onnx

LEARNS = {"kind": "encoder", "epochs": 8, "lr": 0.005, "dropout": 0.0, "batch": {"documents": 8}, "minimum": 1}


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Three shards of documents with a score, a class, labels and a grade; and an encoder that knows their words."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("transformers", reason="the extra torch is not installed")
    found = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "processes": 1})
    prepare(found)
    folder = str(write_encoder(tmp_path / "base", head=False, hidden=16, words=[*GOOD, *BAD]))
    labels = {name: {k: given[k] for k in ("labels", "task")} for name, given in found.config["train"].items()}
    found.config["train"] = {name: {**LEARNS, "base": folder, **given} for name, given in labels.items()}
    return found


@pytest.mark.slow
def test_all_tasks_are_trained_and_a_tagger_says_what_the_card_says(project: Project) -> None:
    project.config["train"]["class-1"] |= {"balance": True, "schedule": "linear"}
    project.config["train"]["score-1"]["window"] = {"pieces": ["begin", "end"], "characters": 90}
    project.config["train"]["labels-1"]["freeze"] = True
    said = project.ok("train", "--json").json
    assert said["failed"] == []
    measures = {name: found["metrics"]["test"] for name, found in said["models"].items()}
    assert measures["score-1"]["spearman"] > 0.6
    assert measures["class-1"]["macro_f1"] > 0.6
    assert measures["grade-1"]["mae"] < measures["grade-1"]["baseline"]["mae"]
    assert measures["labels-1"]["macro_f1"] > 0
    assert len(card(project, "score-1")["chosen"]["tried"]) >= card(project, "score-1")["chosen"]["epoch"]
    folder = project.data / "models/score-1"
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    assert {"card.json", "config.json", "model.safetensors", "tokenizer.json"} <= {
        each.name for each in folder.iterdir()
    }
    assert project.ok("train").out.count("up to date") == 4

    project.config["sample"] = {"eval-0": {"share": 1.0, "splits": {"train": 0.8, "valid": 0.1, "test": 0.1}}}
    project.config["tag"] = {
        f"{name}-tagged": {
            "tagger": "hf_classifier",
            "as": name.replace("-", "_"),
            "model": str(project.data / "models" / name),
        }
        for name in measures
    }
    project.ok("sample")
    project.ok("tag")
    assert error_on_test(project) == pytest.approx(measures["score-1"]["mae"], abs=1e-4)
    again = project.ok("evaluate", "score-1-tagged.score_1.score", "--against", "metadata.score", "--json").json
    assert any("the model score-1 was trained on" in each for each in again["warnings"])
    first = project.values("class-1-tagged", "a.jsonl.gz")[0]["class_1"]
    assert sorted(first["scores"]) == ["bad", "good"]
    assert sorted(project.values("grade-1-tagged", "a.jsonl.gz")[0]["grade_1"]["scores"]) == [*"012345"]

    before = tree(project.attributes)
    project.ok("tag", "--overwrite", "processes=2", "tag.score-1-tagged.max_tokens=60")
    project.ok("tag", "--overwrite", "processes=2")
    assert tree(project.attributes) == before
    (folder / "tokenizer.json").write_text("{}")
    project("tag", "--overwrite", "tag.score-1-tagged.max_tokens=60").fails(
        2, "tokenizer.json: expected the file that card.json describes, got another"
    )


def error_on_test(project: Project) -> float:
    """The mean error of what is tagged in the documents of the test split that have a score."""
    errors: list[float] = []
    for name in ("a.jsonl.gz", "b.jsonl.gz", "c.jsonl.gz"):
        columns = project.shard(name), project.values("eval-0", name), project.values("score-1-tagged", name)
        for row, sampled, tagged in zip(*columns, strict=True):
            if sampled["sample"]["split"] == "test" and row["metadata"]["score"] is not None:
                errors.append(abs(tagged["score_1"]["score"] - row["metadata"]["score"]))
    return sum(errors) / len(errors)


@pytest.mark.slow
def test_another_encoder_is_another_model_and_what_cannot_be_trained_is_refused(project: Project) -> None:
    project.config["train"] = {"score-1": {**project.config["train"]["score-1"], "epochs": 1}}
    base = Path(project.config["train"]["score-1"]["base"])
    project.ok("train")
    made = tree(project.data / "models")
    moved = base.rename(base.parent / "elsewhere")
    assert "up to date" in project.ok("train", f"train.score-1.base={moved}", "train.score-1.threads=2").out
    write_encoder(base, head=False, hidden=8, words=[*GOOD, *BAD])
    project("train").fails(2, "expected no model, or one made from the same labels with the same settings")
    assert tree(project.data / "models") == made

    for option, told in {
        "base=nowhere": "base: expected the folder of a model, got nothing at 'nowhere'",
        "max_tokens=99": "max_tokens: expected at most the 64 that the model takes, got 99",
        "device=cuda": "device: expected one that PyTorch can use here, got cuda",
        "lr=1e30": "the model computes no numbers any more (NaN, or infinite); lower `lr`",
    }.items():
        ran = project("train", "--overwrite", f"train.score-1.{option}")
        assert ran.code in (1, 2)
        assert told in ran.err
    assert tree(project.data / "models") == made


@pytest.mark.slow
def test_an_onnx_model_says_the_same_with_one_process_and_two(tmp_path: Path, run: Run) -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    pytest.importorskip("onnx", reason="the package onnx, which makes tiny models, is not installed")
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "processes": 1})
    prepare(project)
    model = write_onnx(tmp_path / "m", 2, id2label={"0": "bad", "1": "good"})
    project.config["tag"] = {"q-0": {"tagger": "onnx_classifier", "as": "q", "model": str(model)}}
    project.ok("tag")
    before = tree(project.attributes)
    project.ok("tag", "--overwrite", "processes=2", "tag.q-0.max_tokens=20")
    project.ok("tag", "--overwrite", "processes=2")
    assert tree(project.attributes) == before
    (model / "config.json").write_text(json.dumps({"id2label": {"0": "bad", "1": "fine"}}))
    assert "expected" in project("tag").err


@pytest.mark.slow
def test_labels_stay_with_their_texts_where_a_shard_has_none(project: Project) -> None:
    project.config["train"] = {"score-1": project.config["train"]["score-1"]}
    write_rows(project.documents / "0.jsonl.gz", [document("0-0", GOOD[0], metadata={"score": None})])
    project.ok("train")
    assert card(project, "score-1")["metrics"]["test"]["spearman"] > 0.6
