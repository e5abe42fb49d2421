"""Files of fastText as labels: a line is a document, its labels are fields, and a model needs nothing else."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project
from tests.storage.conftest import bucket, seaweed
from toolkit.errors import DataError
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files, remove
from toolkit.text.fasttext.labelled import parted

WORDS = {"good": ["river", "lesson", "science", "history"], "bad": ["click", "buy", "cheap", "casino"]}
SMALL: dict[str, dict[str, Any]] = {
    "linear": {"buckets": 1 << 12, "minimum": 3},
    "fasttext": {"kind": "fasttext", "dim": 8, "epochs": 20, "buckets": 4096, "minimum": 3},
}


@pytest.mark.parametrize(
    ("line", "prefix", "labels", "text"),
    [
        ("__label__good A text.", "__label__", ["good"], "A text."),
        ("__label__a __label__b\tA  text. \r", "__label__", ["a", "b"], "A  text."),
        ("A __label__a text __label__b", "__label__", ["a", "b"], "A text"),
        ("__label__ü-1 x__label__no", "__label__", ["ü-1"], "x__label__no"),
        ("#good #bad ein Text", "#", ["good", "bad"], "ein Text"),
        ("[+*]a text", "[+*]", ["a"], "text"),
    ],
)
def test_a_line_is_labels_and_a_text(line: str, prefix: str, labels: list[str], text: str) -> None:
    assert parted(line.encode(), prefix) == (labels, text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no label", "expected a label, __label__NAME, got none; if labels begin otherwise, give their `prefix`"),
        ("__label__ text", "expected a name directly after __label__, got none"),
        ("__label__a __label__b ", "expected a text after the label 'b', got none"),
    ],
)
def test_a_line_that_is_none(line: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        parted(line.encode())
    assert caught.value.message == message


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """A file of 120 lines, each of which is there twice, with one label or two."""
    chance = random.Random(4)
    lines = []
    for i in range(60):
        label = ("good", "bad")[i % 2]
        text = f"{' '.join(chance.choices(WORDS[label], k=12))} {i}"
        lines += [f"__label__{label}{' __label__long' * (i % 3 == 0)} {text}\n"] * 2
    (tmp_path / "labelled.txt").write_text("".join(lines) + "\n", encoding="utf-8")
    return Project(
        tmp_path,
        run,
        {
            "dataset": str(tmp_path / "data"),
            "documents": {"format": "fasttext", "path": str(tmp_path / "labelled.txt"), "source": "labelled"},
        },
    )


def card(project: Project, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.data / "models" / name / "card.json").read_bytes())
    return found


@pytest.mark.parametrize("kind", SMALL)
def test_a_file_of_labelled_lines_is_all_that_a_model_needs(project: Project, kind: str) -> None:
    """Lines with the same text are in the same split, if that is asked for: what was learnt is not in test."""
    common = {**SMALL[kind], "split_by": "document.text"}
    project.config["train"] = {
        "one-1": {**common, "labels": "document.label", "task": "classes"},
        "all-1": {**common, "labels": "document.labels", "task": "multilabel"},
    }
    project.ok("train")
    one, several = card(project, "one-1"), card(project, "all-1")
    assert (one["labels"], several["labels"]) == (["bad", "good"], ["bad", "good", "long"])
    assert one["left_out"] == {"without a label": 40}
    assert one["metrics"]["test"]["accuracy"] > 0.8
    splits = {split: sum(counts.values()) for split, counts in one["documents"].items()}
    assert sum(splits.values()) == 80
    assert all(count % 2 == 0 and count for count in splits.values()), splits
    made = {path.name: path.read_bytes() for path in (project.data / "models/one-1").iterdir()}
    project.ok("train", "--overwrite", "train.one-1.licence=CC0-1.0", "processes=2")
    model = next(name for name in made if name.startswith("model"))
    assert (project.data / "models/one-1" / model).read_bytes() == made[model]


def test_other_prefixes_and_grades(project: Project, tmp_path: Path) -> None:
    lines = (tmp_path / "labelled.txt").read_text(encoding="utf-8").replace(" __label__long", "")
    lines = lines.replace("__label__good", "grade=3").replace("__label__bad", "grade=0.5")
    (tmp_path / "graded.txt").write_text(lines, encoding="utf-8")
    project.config["documents"] |= {"path": str(tmp_path / "graded.txt"), "prefix": "grade=", "numbers": True}
    project.config["train"] = {
        "grade-1": {**SMALL["fasttext"], "labels": "document.label", "task": "ordinal"},
        "score-1": {**SMALL["linear"], "labels": "document.label", "task": "regression"},
    }
    project.ok("train")
    assert card(project, "grade-1")["labels"] == ["0.5", "3"]
    assert card(project, "score-1")["metrics"]["test"]["spearman"] > 0.5


@pytest.mark.parametrize(
    ("line", "options", "message"),
    [
        ("a line without one", {}, "labelled.txt:4: expected a label, __label__NAME, got none; if labels begin other"),
        ("__label__ a text", {}, "labelled.txt:4: expected a name directly after __label__, got none"),
        ("__label__good", {}, "labelled.txt:4: expected a text after the label 'good', got none"),
        ("__label__x t", {"numbers": True}, "labelled.txt:1: expected a number after __label__, got 'good'; without"),
        ("__label__nan t", {"prefix": "# "}, "prefix"),
        ("__label__a \udcff", {}, "labelled.txt:4: expected UTF-8"),
    ],
)
def test_bad_lines_are_named_and_nothing_is_written(
    project: Project, line: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "labelled.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_bytes("\n".join([*lines[:3], line, *lines[3:]]).encode("utf-8", "surrogateescape"))
    project.config["documents"] |= options
    project.config["train"] = {"one-1": {**SMALL["linear"], "labels": "document.label", "task": "classes"}}
    ran = project("train")
    assert ran.code in (1, 2)
    assert message in ran.err
    assert not (project.data / "models").exists()


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.csv"])
def test_annotations_that_align_has_joined_are_labels(project: Project, name: str, tmp_path: Path) -> None:
    """And a document that nobody has annotated is left out, and counted."""
    rows = [(f"labelled.txt:{i + 1}", [i % 4 < 2, (i % 4 < 2) + 2]) for i in range(100)]
    if name.endswith("jsonl"):
        text = "".join(json.dumps({"document_id": id_, "scores": [*map(float, found)]}) + "\n" for id_, found in rows)
        read: dict[str, Any] = {"format": "jsonl"}
    else:
        text = "document_id,scores\n" + "".join(f"{id_},{int(found[0])}\n" for id_, found in rows)
        read = {"format": "csv", "typed": {"scores": "float"}}
    (tmp_path / name).write_text(text, encoding="utf-8")
    project.config["align"] = {
        "notes-0": {**read, "from": str(tmp_path / name), "id": "document_id", "values": ["scores"], "missing": "null"}
    }
    project.config["train"] = {"score-1": {**SMALL["linear"], "labels": "notes-0.scores", "task": "regression"}}
    project.ok("align")
    project.ok("train")
    found = card(project, "score-1")
    assert found["left_out"] == {"without a label": 20}
    assert {label for split in found["documents"].values() for label in split} == (
        {"1", "2"} if name.endswith("jsonl") else {"0", "1"}
    )


# `toolkit train` on a dataset in a bucket.

__all__ = ["bucket", "seaweed"]


@pytest.mark.s3
@pytest.mark.slow
def test_a_model_in_a_bucket_is_up_to_date_until_a_file_of_it_is_gone(bucket: str, tmp_path: Path, run: Run) -> None:
    rows = [{"id": str(i), "source": "s", "text": f"{'good' if i % 2 else 'bad'} text {i}"} for i in range(40)]
    write_file(join(bucket, "data/documents/a.jsonl"), b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    entry = {"task": "classes", "labels": "1 if document.id > '2' else 0", "buckets": 256, "minimum": 1}
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps({"dataset": join(bucket, "data"), "processes": 1, "train": {"kind-0": entry}}))
    assert run("train", "-c", path).code == 0
    again = run("train", "-c", path)
    assert (again.code, "up to date" in again.out) == (0, True), again.err
    (model,) = [name for name in list_files(join(bucket, "data/models")) if name.endswith(".safetensors")]
    remove(join(bucket, "data/models", model))
    assert "trained" in run("train", "-c", path).out
