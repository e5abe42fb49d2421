"""Embeddings, as a user has them: tagged, read as arrays, a head trained on them, which tags without the text."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toolkit
from tests.conftest import Run
from tests.pipeline.conftest import Project, document, strays, tree, write_rows
from tests.pipeline.test_train import card, text
from tests.text.encoders import models
from toolkit.errors import DataError
from toolkit.text.encoders import heads, tensors

HEAD = {"kind": "head", "embeddings": "embed-0.embedding", "minimum": 3, "lr": 0.01}

TWO = ("executor.type=local", "processes=2")


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Two shards of documents with labels, and a tiny encoder."""
    pytest.importorskip("tokenizers", reason="the extra tokens")
    models.bert(tmp_path / "encoder", modules=("Transformer", "Pooling"))
    found = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "executor": {"type": "in_process"}})
    chance = random.Random(3)
    for name in ("a", "b"):
        rows = []
        for i in range(150):
            share = chance.random()
            metadata: dict[str, Any] = {
                "score": round(share * 5, 2) if i % 20 else None,
                "grade": round(share * 2),
                "genre": "good" if share > 0.5 else "bad",
                "labels": [label for label, there in (("rich", share > 0.4), ("poor", share < 0.7)) if there],
            }
            rows.append(document(f"{name}-{i}", text(chance, share), metadata=metadata))
        write_rows(found.documents / f"{name}.jsonl.gz", rows)
    found.config["tag"] = {"embed-0": {"tagger": "embedding", "model": str(tmp_path / "encoder")}}
    found.config["train"] = {
        "score-1": {"labels": "metadata.score", "task": "regression", **HEAD},
        "class-1": {"labels": "metadata.genre", "task": "classes", "hidden": 8, "balance": True, **HEAD},
        "labels-1": {"labels": "metadata.labels", "task": "multilabel", **HEAD},
        "grade-1": {"labels": "metadata.grade", "task": "ordinal", **HEAD},
    }
    return found


@pytest.mark.slow
def test_heads_are_trained_tag_without_the_text_and_are_the_same_again(project: Project) -> None:
    project.ok("tag")
    assert project.ok("train", "--json").json["failed"] == []
    scores = card(project, "score-1")
    assert scores["metrics"]["test"]["spearman"] > 0.5
    assert scores["left_out"] == {"without a label": 16}
    assert 1 <= scores["chosen"]["epoch"] <= 200
    for name in ("class-1", "labels-1"):
        measures = card(project, name)["metrics"]["test"]
        assert measures["macro_f1"] > measures["baseline"]["macro_f1"] + 0.1
    arrays, _ = tensors.read(str(project.data / "models/class-1/model.safetensors"))
    assert {name: array.shape for name, array in arrays.items()} == {
        "0.weight": (8, 8), "0.bias": (8,), "2.weight": (1, 8), "2.bias": (1,),
    }  # fmt: skip

    made = tree(project.data / "models")
    project.ok("train", "--overwrite", *TWO, "train.score-1.minimum=4")
    now = tree(project.data / "models")
    weights = [path for path in made if path.endswith("safetensors")]
    assert {path: now[path] for path in weights} == {path: made[path] for path in weights}

    config = project.config
    for name in ("score", "class", "labels", "grade"):
        entry = {"tagger": "head", "model": str(project.data / f"models/{name}-1"), "embedding": "embed-0"}
        config["tag"][f"{name}s-0"] = {**entry, "as": f"{name}_said"}
    project.ok("tag")
    one = tree(project.attributes)
    config["tag"]["embed-0"]["max_tokens"] = models.LONGEST  # what the folder says
    project.ok("tag", *TWO, "--overwrite")
    again = tree(project.attributes)
    assert again == one
    for row in project.values("scores-0", "a.jsonl.gz"):
        assert row["score_said"]["label"] is None
        assert isinstance(row["score_said"]["score"], float)
    for row in project.values("grades-0", "a.jsonl.gz"):
        assert set(row["grade_said"]["scores"]) == {"0", "1", "2"}
    assert not strays(project.root)

    found = toolkit.Dataset(str(project.yaml)).array("embed-0.embedding")
    assert found.values.dtype == np.float16
    assert found.values.shape == (300, 8)
    assert found.ids[150] == "b-0"
    rows = [row["embedding"] for name in ("a", "b") for row in project.values("embed-0", f"{name}.jsonl.gz")]
    assert np.array_equal(found.values, np.array(rows, np.float16))
    head = heads.load_head(str(project.data / "models/score-1"))
    said = head.predict(found.values[:1].tolist())[0].score
    assert said == pytest.approx(project.values("scores-0", "a.jsonl.gz")[0]["score_said"]["score"], rel=1e-4)


def test_some_documents_are_asked_and_others_left_out(project: Project) -> None:
    project.config["tag"]["embed-0"]["when"] = 'metadata.genre == "good"'
    project.ok("tag")
    ran = project.ok("train", "--dry-run", "--json", "train.score-1.minimum=3")
    assert ran.json["models"]["score-1"]["left_out"]["without an embedding"] > 100
    dataset = toolkit.Dataset(str(project.yaml))
    with pytest.raises(DataError, match=r"expected .* numbers, got null; leave out documents without by `where`"):
        dataset.array("embed-0.embedding")
    found = dataset.array("embed-0.embedding", where="embedding is not None")
    assert 100 < len(found.ids) == len(found.values) < 200


def test_mistakes_are_said_and_nothing_is_trained(project: Project) -> None:
    project.ok("tag")
    changes: list[tuple[dict[str, Any], str]] = [
        ({"embeddings": "embed-0.vector"}, "embeddings: expected a key of the set embed-0, got 'vector'"),
        ({"window": {"lead": 100}}, "window: expected none, because a head reads no text"),
        ({"splits": {"train": 0.8, "test": 0.2}}, "splits: expected a share for valid, got none: the loss on valid"),
        ({"embeddings": "metadata.genre"}, "embeddings: expected a list of numbers, or null, got"),
        ({"hidden": -1}, "hidden"),
    ]
    for change, message in changes:
        project.config["train"] = {"score-1": {"labels": "metadata.score", "task": "regression", **HEAD, **change}}
        ran = project("train")
        assert (ran.code in (1, 2), message in ran.err + ran.out) == (True, True), (message, ran.err)
        assert not (project.data / "models").exists()


def test_a_head_of_another_encoder_is_refused(project: Project) -> None:
    entry = {"tagger": "head", "model": "tests/taggers/files/head.safetensors", "embedding": "embed-0"}
    project.config["tag"]["score-0"] = entry
    project("tag").fails(
        1, "a.jsonl.gz:1: tagger head failed", "expected embeddings of 3 numbers, as the head was trained on, got 8"
    )


@pytest.mark.slow
def test_duckdb_reads_embeddings(project: Project) -> None:
    duckdb = pytest.importorskip("duckdb")
    project.ok("tag")
    path = project.attributes / "embed-0" / "a.jsonl.gz"
    rows = duckdb.sql(f"SELECT attributes.embedding::FLOAT[8] FROM read_json('{path}')").fetchall()
    assert np.array_equal(
        np.array([row[0] for row in rows], np.float16),
        np.array([row["embedding"] for row in project.values("embed-0", "a.jsonl.gz")], np.float16),
    )


def test_a_window_sees_pieces_of_a_long_text(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="the extra tokens")
    model = str(models.bert(tmp_path))
    whole = "the beginning of a text" + " in between" * 30 + " and its end"
    begin, end = toolkit.try_tagger("embedding", [whole[:20], whole[-20:]], model=model)
    window = {"pieces": ["begin", "end"], "characters": 20}
    (both,) = toolkit.try_tagger("embedding", [whole], model=model, window=window)
    mean = np.mean([begin, end], axis=0)
    assert np.allclose(both, mean / np.linalg.norm(mean), atol=2e-3)
    assert toolkit.try_tagger("embedding", [whole[:20]], model=model, window=window) == [begin]
    (cut,) = toolkit.try_tagger("embedding", [whole], model=model, window={"lead": 20})
    assert cut == begin


def test_vectors_of_several_lengths_are_told(project: Project) -> None:
    for name, lengths in (("a", [2, 3]), ("b", [2, 2])):
        rows = [document(f"{name}-{i}", "x", metadata={"v": [0.5] * lengths[i % 2], "n": i}) for i in range(40)]
        write_rows(project.documents / f"{name}.jsonl.gz", rows)
    entry = {"kind": "head", "labels": "metadata.n", "embeddings": "metadata.v", "task": "regression"}
    project.config["train"] = {"n-1": entry}
    del project.config["tag"]
    assert "a.jsonl.gz:2: embeddings: expected 2 numbers, as before, got 3" in project("train").err
    rows = [document(f"a-{i}", "x", metadata={"v": [0.5] * 3, "n": i}) for i in range(40)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    assert "embeddings: expected 3 numbers in all shards, got 2 in one" in project("train").err


@pytest.mark.slow
def test_one_pass_makes_what_single_commands_make(project: Project, tmp_path: Path) -> None:
    """Some documents are asked, pieces of texts are seen, and a head reads what was made in the same pass."""
    asked = 'metadata.genre == "good"'
    head = {"tagger": "head", "model": str(models.EXAMPLE.parent / "head.safetensors"), "embedding": "few-0"}
    project.config["tag"] |= {
        "pieces-0": {**project.config["tag"]["embed-0"], "window": {"pieces": ["begin", "end"], "characters": 40}},
        "few-0": {"tagger": "embedding", "model": str(models.EXAMPLE), "when": asked},
        "scores-0": {**head, "when": asked},
    }
    project.config["ingest"] = [{"format": "jsonl", "from": f"{tmp_path}/in/*.jsonl.gz", "source": "s"}]
    del project.config["train"]
    (tmp_path / "in").mkdir()
    for path in project.documents.glob("*.gz"):
        path.rename(tmp_path / "in" / path.name)
    project.ok("ingest")
    project.ok("tag")
    single = tree(project.attributes)
    assert len(single) == 8
    project.config["dataset"] = str(tmp_path / "other")
    project.ok("run")
    assert tree(tmp_path / "other/attributes") == single
