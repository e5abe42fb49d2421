"""Models, as a user trains them: counted, trained, loaded by a tagger, never half there; the same for all processes."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.conftest import Run
from tests.pipeline.conftest import Project, document, tree, write_rows
from toolkit.errors import Failed

SMALL = {"buckets": 1 << 12, "minimum": 3}
GOOD, BAD = ["river", "mountain", "lesson", "science", "history"], ["click", "buy", "cheap", "casino", "now"]


def text(chance: random.Random, share: float) -> str:
    """Words of which about that share are good."""
    return " ".join(chance.choice(GOOD if chance.random() < share else BAD) for _ in range(25))


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Three shards of documents with a score, a class, labels and a grade, some without."""
    found = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "processes": 1})
    prepare(found)
    return found


def prepare(project: Project) -> None:
    chance = random.Random(3)
    for name in ("a", "b", "c"):
        rows = []
        for i in range(60):
            share = chance.random()
            metadata: dict[str, Any] = {
                "score": round(share * 5, 2) if i % 20 else None,
                "scores": [round(share * 5), round(share * 5), None],
                "genre": "good" if share > 0.5 else "bad",
                "labels": [label for label, there in (("rich", share > 0.4), ("poor", share < 0.7)) if there],
                "host": f"h{i % 7}",
                "part": ("train", "train", "valid", "test", None)[i % 5],
            }
            rows.append(document(f"{name}-{i}", text(chance, share), metadata=metadata))
        write_rows(project.documents / f"{name}.jsonl.gz", rows)
    project.config["train"] = {
        "score-1": {"labels": "metadata.score", "task": "regression", **SMALL},
        "class-1": {"labels": "metadata.genre", "task": "classes", **SMALL},
        "labels-1": {"labels": "metadata.labels", "task": "multilabel", "alpha": [0.1, 1], **SMALL},
        "grade-1": {"labels": "metadata.scores", "task": "ordinal", **SMALL, "minimum": 1},
    }


def models(project: Project) -> dict[str, str]:
    return tree(project.data / "models")


def card(project: Project, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.data / "models" / name / "card.json").read_bytes())
    return found


@pytest.mark.slow
def test_all_tasks_are_trained_and_learn_something(project: Project) -> None:
    said = project.ok("train", "--json").json
    assert said["failed"] == []
    assert card(project, "score-1")["metrics"]["test"]["spearman"] > 0.8
    assert card(project, "score-1")["left_out"] == {"without a label": 9}
    assert card(project, "class-1")["metrics"]["test"]["macro_f1"] > 0.8
    assert card(project, "class-1")["labels"] == ["bad", "good"]
    assert set(card(project, "labels-1")["chosen"]["tried"]) == {"0.1", "1"}
    grades = card(project, "grade-1")
    assert grades["labels"] == ["0", "1", "2", "3", "4", "5"]
    assert grades["metrics"]["test"]["mae"] < grades["metrics"]["test"]["baseline"]["mae"]
    assert not (project.data / ".toolkit/dedup/score-1").exists()
    made = models(project)
    again = project.ok("train").out
    assert again.count("up to date") == 4
    assert models(project) == made

    project.config["processes"] = 2
    project.ok("train", "--overwrite", "train.score-1.minimum=4", "train.grade-1.licence=CC0-1.0")
    assert card(project, "grade-1")["licence"] == "CC0-1.0"
    now = models(project)
    weights = [path for path in made if path.endswith("safetensors")]
    assert {path: now[path] for path in weights} == {path: made[path] for path in weights}


def test_a_dry_run_counts_and_writes_nothing(project: Project) -> None:
    project.ok("tag", *_tagged(project))
    before = tree(project.root, bookkeeping=True)
    ran = project.ok("train", "--dry-run", "--json", "train.score-1.minimum=9999")
    assert tree(project.root, bookkeeping=True) == before
    found = ran.json["models"]["class-1"]["documents"]
    assert {name for split in found.values() for name in split} == {"bad", "good"}
    assert sum(count for split in found.values() for count in split.values()) == 180
    shown = project.ok("train", "--dry-run", "train.score-1.minimum=9999").out
    assert "it cannot be trained: expected at least 9,999 documents with a label in train" in shown
    assert "left out: 9 without a label" in shown


def _tagged(project: Project) -> list[str]:
    project.config["tag"] = {"length-0": {"tagger": "length"}}
    return []


@pytest.mark.slow
def test_models_are_loaded_by_the_tagger_and_a_second_one_adds_a_set_and_nothing_else(project: Project) -> None:
    project.ok("train")
    folder = str(project.data / "models")
    project.config["tag"] = {
        "quality-1": {"tagger": "linear", "model": f"{folder}/score-1"},
        "class-1": {"tagger": "linear", "as": "kind", "model": f"{folder}/class-1/model.safetensors"},
    }
    del project.config["train"]["class-1"]  # sets and models may have one name, but not in one configuration
    project.ok("tag")
    assert project.values("class-1", "a.jsonl.gz")[0]["kind"]["label"] in ("good", "bad")
    values = [each["linear"]["score"] for each in project.values("quality-1", "a.jsonl.gz")]
    scores = [row["metadata"]["score"] for row in project.shard("a.jsonl.gz")]
    pairs = [(a, b) for a, b in zip(values, scores, strict=True) if b is not None]
    assert sum(abs(a - b) for a, b in pairs) / len(pairs) < 0.6

    judged = ("evaluate", "quality-1.linear.score", "--against", "metadata.score")
    told = "the model score-1 was trained on"
    assert any(told in each for each in project.ok(*judged, "--json").json["warnings"])
    some = project.ok(*judged, "--where", "document.chars > 0", "--json")
    assert not any(told in each for each in some.json["warnings"])

    before = tree(project.data)
    project.config["train"]["score-2"] = {**project.config["train"]["score-1"], "words": [1, 1]}
    project.config["tag"]["quality-2"] = {"tagger": "linear", "model": f"{folder}/score-2"}
    project.ok("train")
    project.ok("tag")
    after = tree(project.data)
    assert {path: after[path] for path in before} == before
    assert {path.rpartition("/")[0] for path in after.keys() - before.keys()} == {
        "models/score-2",
        "attributes/quality-2",
    }

    project("train", "train.score-1.words=[1,1]").fails(
        2, "expected no model, or one made from the same labels with the same settings"
    )
    assert tree(project.data) == after


@pytest.mark.slow
def test_a_damaged_model_is_refused_before_anything_is_written(project: Project) -> None:
    project.ok("train", "--quiet")
    folder = project.data / "models/score-1"
    project.config["tag"] = {"quality-1": {"tagger": "linear", "model": str(folder)}}
    model = folder / "model.safetensors"
    good = model.read_bytes()
    for damaged in (good[:-1], good[:100] + b"\0" + good[101:], b""):
        model.write_bytes(damaged)
        project("tag").fails(2, "expected the file that card.json describes, got another")
        project("tag", f"tag.quality-1.model={model}").fails(2, "expected a linear model, whole, got")
    model.unlink()
    assert "expected a model file, got nothing" in project("tag").err
    assert not project.attributes.exists()
    assert "trained" in project.ok("train").out
    assert model.read_bytes() == good
    (folder / "card.json").unlink()
    project("tag").fails(2, "got a folder")


def test_splits_by_a_value_of_the_documents_and_given_ones(project: Project) -> None:
    entry = project.config["train"]["score-1"]
    project.config["train"] = {"score-1": {**entry, "split_by": "metadata.host"}}
    project.ok("train")
    by_host = card(project, "score-1")["documents"]
    project.config["train"] = {"score-2": {**entry, "split": "metadata.part"}}
    project.ok("train")
    found = card(project, "score-2")
    assert found["left_out"] == {"in no split": 36, "without a label": 9} or found["left_out"]["in no split"] > 20
    assert by_host != found["documents"]
    hosts = {f"h{i}" for i in range(7)}
    counts = {split: sum(each.values()) for split, each in by_host.items()}
    assert sum(counts.values()) == 171
    assert all(count == 0 or count > 20 for count in counts.values()), (hosts, counts)


def test_windows_weights_and_balance(project: Project) -> None:
    entry = project.config["train"]["class-1"]
    window = {"pieces": ["begin", "end"], "characters": 40}
    project.config["train"] = {
        "class-1": {**entry, "window": window, "balance": True, "words": [1, 1], "characters": None},
        "lead-1": {**entry, "window": {"lead": 30}, "labels": ["metadata.genre", "metadata.genre"], "weights": [2, 1]},
    }
    project.ok("train")
    assert card(project, "class-1")["metrics"]["test"]["accuracy"] > 0.6
    project.config["tag"] = {
        "own-1": {"tagger": "linear", "model": str(project.data / "models/class-1")},
        "same-1": {"tagger": "linear", "model": str(project.data / "models/class-1"), "window": window},
        "lead-2": {"tagger": "linear", "model": str(project.data / "models/class-1"), "window": {"lead": 40}},
    }
    project.ok("tag")
    own, same, lead = (project.values(name, "a.jsonl.gz") for name in ("own-1", "same-1", "lead-2"))
    assert own == same
    assert own != lead


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": "metadata.genre"}, "a.jsonl.gz:1: labels: expected a number, or null, for regression, got"),
        ({"split": "metadata.host"}, "split: expected train, valid, test or null, got 'h"),
        ({"minimum": 1000}, "expected at least 1,000 documents with a label in train, got 141 (of 171 in all)"),
        ({"when": "metadata.score > 9 if metadata.score is not None else False"}, "in train, got 0 (of 0 in all)"),
    ],
)
def test_mistakes_are_said_and_nothing_is_written(project: Project, change: dict[str, Any], message: str) -> None:
    """Those that documents show; others are in `tests/errors`."""
    project.config["train"] = {"score-1": {**project.config["train"]["score-1"], **change}}
    ran = project("train")
    assert ran.code in (1, 2)
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert not (project.data / "models").exists()


def test_a_set_that_is_not_made_yet_is_named_with_its_command(project: Project) -> None:
    project.config["sample"] = {"splits-0": {"share": 1.0, "splits": {"train": 0.8, "test": 0.2}, "as": "splits"}}
    project.config["train"] = {"score-1": {**project.config["train"]["score-1"], "split": "splits.split"}}
    project("train").fails(
        2,
        "expected an attribute, got 'splits'",
        "sets of this configuration that are not made yet: splits-0 (`toolkit sample`)",
    )
    project.ok("sample")
    project.ok("train", "--dry-run")


@pytest.mark.slow
def test_a_model_that_cannot_be_trained_stops_no_other(project: Project) -> None:
    project.config["train"]["score-1"]["minimum"] = 1000
    with pytest.raises(Failed) as caught:
        toolkit.train(project.config)
    assert "score-1: expected at least 1,000 documents" in caught.value.failures[0]
    assert set(caught.value.result.models) == {"class-1", "labels-1", "grade-1"}
    assert caught.value.result.models["class-1"].metrics["test"]["macro_f1"] > 0.8
    project.config["train"]["score-1"]["minimum"] = 3
    assert not toolkit.train(project.config).models["score-1"].already
    assert toolkit.train(project.config).models["score-1"].already


@pytest.mark.slow
def test_fasttext_models_are_the_same_again_and_loaded_by_the_tagger(project: Project) -> None:
    small = {"kind": "fasttext", "minimum": 1, "dim": 8, "epochs": 3, "buckets": 4096}
    project.config["train"] = {
        "class-1": {**small, "labels": "metadata.genre", "task": "classes", "autotune": 2, "epochs": 20},
        "labels-1": {**small, "labels": "metadata.labels", "task": "multilabel", "window": {"lead": 100}},
        "grade-1": {**small, "labels": "metadata.scores", "task": "ordinal", "quantize": {"cutoff": 300}},
    }
    project.ok("train")
    made = models(project)
    assert {path for path in made if "model." in path} == {
        "class-1/model.bin", "labels-1/model.bin", "grade-1/model.ftz",
    }  # fmt: skip
    assert card(project, "class-1")["metrics"]["test"]["accuracy"] > 0.7
    assert len(card(project, "class-1")["chosen"]["tried"]) == 2
    project.config["processes"] = 2
    project.ok("train", "--overwrite", *(f"train.{name}.licence=CC0-1.0" for name in project.config["train"]))
    now = models(project)
    assert {path: now[path] for path in made if "model." in path} == {
        path: made[path] for path in made if "model." in path
    }
    folder = str(project.data / "models")
    project.config["tag"] = {
        "quality-0": {"tagger": "fasttext_label", "model": f"{folder}/class-1"},
        "pieces-0": {
            "tagger": "fasttext_label",
            "model": f"{folder}/labels-1",
            "window": {"pieces": ["begin", "end"], "characters": 50},
        },
        "grades-0": {"tagger": "fasttext_label", "model": f"{folder}/grade-1", "k": 2},
    }
    del project.config["train"]
    project.ok("tag")
    assert project.values("quality-0", "a.jsonl.gz")[0]["fasttext_label"]["label"] in ("good", "bad")
    assert set(project.values("pieces-0", "a.jsonl.gz")[0]["fasttext_label"]["scores"]) == {"rich", "poor"}
    assert len(project.values("grades-0", "a.jsonl.gz")[0]["fasttext_label"]["scores"]) == 2


def test_fasttext_takes_no_labels_with_white_space(project: Project) -> None:
    labels = "'a b' if metadata.score is None else 'c'"
    project.config["train"] = {"class-1": {"kind": "fasttext", "labels": labels, "task": "classes", "minimum": 1}}
    ran = project("train")
    assert (ran.code in (1, 2), "labels: expected labels without white space" in ran.err) == (True, True)


def failing(project: Project, *arguments: str) -> str:
    ran = project(*arguments)
    assert ran.code in (1, 2)
    return ran.err


@pytest.mark.slow
def test_a_declared_scale_is_that_of_all_who_use_the_labels(project: Project, tmp_path: Path) -> None:
    """It is declared where labels are aligned; the model's numbers stay on it, and its card knows its grades."""
    rows = [row for name in ("a", "b", "c") for row in project.shard(f"{name}.jsonl.gz")]
    labels = [
        {"id": row["id"], "grade": round(score)} for row in rows if (score := row["metadata"]["score"]) is not None
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    scale = {"range": [0, 5], "step": 1}
    aligned = {"from": str(tmp_path / "labels.jsonl"), "missing": "null", "scale": scale}
    project.config |= {
        "align": {"gold-0": aligned},
        "train": {"grade-2": {"labels": "gold-0.grade", "task": "regression", "alpha": 0.01, **SMALL}},
        "calibrate": {
            "map-0": {"kind": "map", "method": "isotonic", "score": "document.chars", "labels": "gold-0.grade"}
        },
        "tag": {"edu-2": [{"tagger": "linear", "model": str(tmp_path / "data/models/grade-2"), "as": "edu"}]},
    }
    for command in ("align", "train", "calibrate", "tag"):
        project.ok(command)
    card = json.loads((tmp_path / "data/models/grade-2/card.json").read_text())
    assert card["settings"]["options"]["scale"] == scale
    assert {"accuracy", "macro_f1"} <= card["metrics"]["test"].keys()
    scores = [row["edu"]["score"] for name in ("a", "b", "c") for row in project.values("edu-2", f"{name}.jsonl.gz")]
    assert min(scores) == 0
    assert max(scores) == 5
    found = json.loads(project.ok("evaluate", "edu-2.edu.score", "--against", "gold-0.grade", "--json").out)
    assert found["scale"] == {"range": [0.0, 5.0], "step": 1.0}
    assert [each["grade"] for each in found["details"]["edu-2.edu.score"]["grades"]] == [1, 2, 3, 4, 5]
    none = project.ok("evaluate", "edu-2.edu.score", "--against", "gold-0.grade", "--scale", "none", "--json").out
    assert "accuracy" not in json.loads(none)["all"]["scores"]["edu-2.edu.score"]

    aligned["scale"] = {"range": [0, 3], "step": 1}
    assert "gold-0' exists and was made with other settings" in failing(project, "align")
    project.ok("align", "--overwrite")
    told = failing(project, "train", "--overwrite")
    assert "labels: expected values on the scale from 0 to 3 in steps of 1, got" in told
    assert "labels: expected values on the scale from 0 to 3" in failing(project, "calibrate", "--overwrite")
    aligned["scale"] = {"range": [3, 0]}
    assert "gold-0.scale: range: expected a least and a greater number, got [3.0, 0.0]" in failing(project, "align")
