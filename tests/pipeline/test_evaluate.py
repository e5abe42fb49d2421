"""``toolkit evaluate``: predictions of sets against labels of sets, of files, of documents; and what is refused."""

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.conftest import Run
from tests.pipeline.conftest import Project, attributes, document, write_rows

pytestmark = pytest.mark.slow

SHARDS = {"a.jsonl.gz": 70, "b.jsonl.gz": 50}
HERE = "tests.pipeline.plugins"


@pytest.fixture
def judged(project: Project) -> Project:
    draw = random.Random(7)
    for shard, count in SHARDS.items():
        rows = []
        for i in range(count):
            source = draw.choice(["web", "books"])
            label = draw.choice([0, 1, 2, 3]) + (source == "books")
            metadata = {
                "label": None if draw.random() < 0.1 else label,
                "old": draw.gauss(label, 2),
                "new": None if draw.random() < 0.05 else draw.gauss(label, 0.3),
                "language": draw.choice(["en", "de"]),
            }
            text = f"{shard} {i} " + "word " * draw.choice([3, 30, 300])
            rows.append(document(f"{shard}-{i}", text, source, metadata=metadata))
        write_rows(project.documents / shard, rows)
    project.config |= {
        "dataset": str(project.data),
        "tag": {
            "labels": [{"tagger": f"{HERE}:Field", "as": "score", "name": "label"}],
            "edu-0": [{"tagger": f"{HERE}:Field", "as": "score", "name": "old"}],
            "edu-1": [{"tagger": f"{HERE}:Field", "as": "score", "name": "new"}],
            "language-0": [{"tagger": f"{HERE}:KnownLanguage", "as": "language"}],
        },
        "sample": {"split-0": {"share": 1.0, "splits": {"train": 0.5, "test": 0.5}}},
    }
    project.ok("tag")
    project.ok("sample")
    return project


def rows_of(project: Project) -> list[dict[str, Any]]:
    return [row for shard in SHARDS for row in project.shard(shard)]


def evaluate(project: Project, *arguments: object) -> Any:
    return json.loads(project.ok("evaluate", *arguments, "--rounds", 50, "--json").out)


def test_scores_are_those_of_the_documents(judged: Project) -> None:
    found = evaluate(judged, "edu-1.score", "edu-0.score", "--against", "labels.score")
    rows = [row["metadata"] for row in rows_of(judged)]
    there = [row for row in rows if row["label"] is not None and row["new"] is not None]
    assert (found["documents"], found["looked_at"], found["all"]["documents"]) == (120, 120, len(there))
    without = [sum((row["label"] is None) == a and (row["new"] is None) == b for row in rows)
               for a, b in ((True, False), (False, True), (True, True))]  # fmt: skip
    assert [*found["all"]["nulls"].values()] == without
    least, most = (of(row["label"] for row in there) for of in (min, max))
    for name, key in (("edu-1.score", "new"), ("edu-0.score", "old")):
        mae = sum(abs(min(max(row[key], least), most) - row["label"]) for row in there) / len(there)
        assert found["all"]["scores"][name]["mae"]["value"] == pytest.approx(mae)
    better = next(each for each in found["all"]["differences"] if each["other"] == "edu-0.score")
    assert better["metrics"]["spearman"]["verdict"] == better["metrics"]["mae"]["verdict"] == "better"
    assert [*found["groups"]] == ["source", "language", "length"]
    assert {each["group"] for each in found["groups"]["source"]} == {"web", "books"}
    assert {each["group"] for each in found["groups"]["language"]} == {"en", "de"}
    assert {*found["all"]["scores"]} == {"edu-1.score", "edu-0.score", "majority", "source"}


def test_scores_beyond_the_labels_count_as_the_ends_of_their_scale(judged: Project) -> None:
    """Labels are 0 to 4, and the old score goes from -5 to 9."""
    found = evaluate(judged, "edu-0.score", "--against", "labels.score")
    rows = [row["metadata"] for row in rows_of(judged) if row["metadata"]["label"] is not None]
    pairs = [(row["label"], min(max(math.floor(row["old"] + 0.5), 0), 4)) for row in rows]
    assert min(row["old"] for row in rows) < -1
    assert max(row["old"] for row in rows) > 6
    scores = found["all"]["scores"]["edu-0.score"]
    assert scores["accuracy"]["value"] == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    f1 = [
        2 * sum(a == b == rank for a, b in pairs) / sum((a == rank) + (b == rank) for a, b in pairs)
        for rank in range(5)
    ]
    assert scores["macro_f1"]["value"] == pytest.approx(sum(f1) / 5)
    confusion = found["details"]["edu-0.score"]["confusion"]
    assert {(each["label"], each["prediction"]): each["documents"] for each in confusion} == Counter(pairs)


def test_the_same_for_any_number_of_processes(judged: Project) -> None:
    arguments = ("edu-1.score", "--against", "labels.score", "--rounds", 20)
    texts = {judged.ok("evaluate", *arguments, f"processes={number}").out for number in (1, 2)}
    assert len(texts) == 1
    shown = texts.pop()
    assert "by source" in shown
    assert "source only" in shown
    assert "majority" in shown


def test_a_split_of_a_sample(judged: Project) -> None:
    """Also where the set is called as its key is, and where several sets have the key."""
    found = evaluate(judged, "edu-1.score", "--against", "labels.score", "--where", 'sample.split == "test"')
    test = [row for shard in SHARDS for row in judged.values("split-0", shard) if row["sample"]["split"] == "test"]
    assert found["looked_at"] == len(test) < found["documents"]
    judged.config["sample"]["sample"] = {"documents": 10}
    judged.ok("sample")
    judged("evaluate", "edu-1.score", "--against", "labels.score", "--where", 'sample.split == "test"').fails(
        2, "say which: `--attributes SET`"
    )
    again = ("--where", 'sample.split == "test"', "--attributes", "split-0")
    assert evaluate(judged, "edu-1.score", "--against", "labels.score", *again)["looked_at"] == len(test)
    chosen = evaluate(judged, "edu-1.score", "--against", "labels.score", "--where", "sample.sample.chosen")
    assert chosen["looked_at"] == 10


def test_truth_values_have_a_curve(judged: Project) -> None:
    found = evaluate(
        judged, "edu-1.score", "--against", "score >= 2 if score is not None else None", "--attributes", "labels"
    )
    assert found["task"] == "score"
    assert found["all"]["scores"]["edu-1.score"]["auc"]["value"] > 0.9
    curve = found["details"]["edu-1.score"]["calibration"]
    assert sum(each["documents"] for each in curve) == found["all"]["documents"]
    assert curve[0]["label"]["value"] < 0.1 < 0.9 < curve[-1]["label"]["value"]


def test_labels_in_files_are_found_by_id(judged: Project) -> None:
    rows = [row for row in rows_of(judged) if row["metadata"]["label"] is not None]
    known = evaluate(judged, "edu-1.score", "--against", "labels.score")
    listed = [{"doc": row["id"], "votes": {"mean": row["metadata"]["label"]}} for row in reversed(rows)]
    path = write_rows(judged.root / "labels.jsonl", [*listed, {"doc": "nobody", "votes": {"mean": 1}}])
    found = evaluate(judged, "edu-1.score", "--against", f"{{files: {path}, id: doc, value: votes.mean}}")
    assert found["all"] == known["all"]
    assert found["groups"] == known["groups"]
    assert found["labels_of_no_document"] == 1
    table = judged.root / "labels.csv"
    table.write_text("id,source,label\n" + "".join(f"{r['id']},{r['source']},{r['metadata']['label']}\n" for r in rows))
    assert evaluate(judged, "edu-1.score", "--against", f"{{files: {table}, source: source}}")["all"] == known["all"]


def test_several_labels_of_a_document(judged: Project) -> None:
    ids = [row["id"] for row in rows_of(judged)]
    path = write_rows(judged.root / "twice.jsonl", [{"id": id, "label": i} for i in (1, 2, 2, 5) for id in ids])
    judged("evaluate", "edu-1.score", "--against", f"{{files: {path}}}").fails(2, "got 120 documents with several")
    for how, label in (("first", 1), ("mean", 2.5), ("majority", 2)):
        found = evaluate(judged, "edu-1.score", "--against", f"{{files: {path}, duplicates: {how}, scale: none}}")
        assert found["all"]["scores"]["majority"]["bias"]["value"] == 0
        mean = (
            sum(r["metadata"]["new"] for r in rows_of(judged) if r["metadata"]["new"] is not None)
            / found["all"]["documents"]
        )
        assert found["all"]["scores"]["edu-1.score"]["bias"]["value"] == pytest.approx(mean - label)


def test_labels_of_fasttext_are_found_by_text(judged: Project) -> None:
    """White space is all the same, and what has several labels is a list."""
    lines = [f"__label__{row['metadata']['language']} {row['text'].replace(' ', '  ')}" for row in rows_of(judged)[:80]]
    path = judged.root / "train.txt"
    path.write_text("\n".join(lines) + "\n")
    found = evaluate(judged, "language.label", "--against", f"{{files: {path}, format: fasttext}}")
    assert found["task"] == "classes"
    assert found["all"]["scores"]["language.label"]["accuracy"] == {"value": 1, "low": 1, "high": 1}
    assert found["all"]["nulls"] == {"label": 40, "prediction": 0, "both": 0}
    assert sum(each["documents"] for each in found["details"]["language.label"]["confusion"]) == 80


def test_attributes_of_other_programs(judged: Project) -> None:
    for shard in SHARDS:
        rows = [
            attributes(row["id"], {"theirs__score__doc": [[0, 5, row["metadata"]["old"]]]}, row["source"])
            for row in judged.shard(shard)
        ]
        write_rows(judged.attributes / "theirs" / shard, rows)
    found = evaluate(judged, "theirs__score__doc[0][2]", "--against", "labels.score", "--attributes", "theirs")
    known = evaluate(judged, "edu-0.score", "--against", "labels.score")
    assert found["all"]["documents"] == known["all"]["documents"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("edu-7.score", "--against", "labels.score"), "expected a set, got 'edu-7'; did you mean"),
        (
            ("edu-1.scor", "--against", "labels.score"),
            "expected a key of the set edu-1, got 'scor'; did you mean 'score'?",
        ),
        (("edu-1.score", "--against", "score"), "expected 'score' in one set, got it in edu-0, edu-1, labels"),
        (("edu-1.score", "--against", "language.label"), "labels as texts; say which label is true"),
        (("edu-1.score", "--against", "{files: none.jsonl}"), "none.jsonl"),
        (("edu-1.score", "--against", "{file: x}"), "files"),
        (("edu-1.score", "edu-1.score", "--against", "labels.score"), "two different predictions"),
        (("--against", "labels.score"), "expected one prediction, or two, got 0"),
        (("edu-1.score", "--against", "labels.score", "--where", "false"), "false"),
        (("edu-1.score", "--against", "labels.score", "--where", "document.chars < 0"), "got none of 120"),
        (("edu-1.score", "--against", "labels.score", "--task", "lists"), "expected lists of texts"),
        (("edu-1.score", "--against", "labels.score", "--by", "langage"), "'language'"),
    ],
)
def test_mistakes_are_told(judged: Project, arguments: tuple[str, ...], message: str) -> None:
    ran = judged("evaluate", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_a_damaged_shard_is_told(judged: Project) -> None:
    path = judged.attributes / "edu-1" / "b.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])
    ran = judged("evaluate", "edu-1.score", "--against", "labels.score", "--json").fails(1)
    found = json.loads(ran.out)
    assert len(found["failed"]) == 1
    assert found["documents"] == SHARDS["a.jsonl.gz"]
    path = judged.attributes / "edu-1" / "a.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])
    ran = judged("evaluate", "edu-1.score", "--against", "labels.score", "--json").fails(1, "2 failed:")
    assert len(ran.json["failed"]) == 2


def test_from_python(judged: Project) -> None:
    given: dict[str, Any] = {"against": "labels.score", "rounds": 50, "by": ["document.chars // 100"]}
    found = toolkit.evaluate(judged.yaml, "edu-1.score", **given)
    assert (
        found.data["groups"]
        == evaluate(judged, "edu-1.score", "--against", "labels.score", "--by", given["by"][0])["groups"]
    )
    assert found.groups["source"][0].scores["edu-1.score"]["spearman"].value is not None
    assert toolkit.evaluate(judged.data, ["edu-1.score", "edu-0.score"], **given).all.differences
    labels = judged.root / "l.jsonl"
    write_rows(labels, [{"id": row["id"], "label": 1.5} for row in rows_of(judged)])
    assert toolkit.evaluate(judged.data, "edu-1.score", against={"files": [labels]}).task == "numbers"


def test_pictures(judged: Project) -> None:
    pytest.importorskip("matplotlib")
    folder = judged.root / "pictures"
    found = evaluate(judged, "edu-1.score", "--against", "labels.score", "--plots", folder)
    assert {Path(path).name for path in found["plots"]} == {path.name for path in folder.iterdir()}
    names = {"calibration-1", "confusion-1", "groups-language", "groups-length", "groups-source"}
    assert {path.stem for path in folder.iterdir()} == names
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    evaluate(judged, "edu-1.score", "--against", "labels.score", "--plots", folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# Rules that drop a far larger share of one language than of the rest: the dry run and the report say so.


@pytest.mark.parametrize(("dropped", "others", "warns"), [(60, 20, True), (60, 50, False), (100, 20, False)])
def test_a_label_that_loses_far_more_than_others_is_named(
    dropped: int, others: int, *, warns: bool, tmp_path: Path, run: Run
) -> None:
    """One that a rule drops as a whole is not: a recipe means that."""
    short, long = "short", "long" * 9
    rows = [document(f"km{i}", short if i < dropped else long, metadata={"lang": "km"}) for i in range(100)]
    rows += [document(f"en{i}", short if i < others else long, metadata={"lang": "en"}) for i in range(200)]
    config = {
        "dataset": str(tmp_path / "data"),
        "mix": {
            "label": 'get(metadata, "lang", "none")',
            "rules": [{"drop": "document.chars < 10", "name": "short"}],
            "output": {"format": "dolma", "path": str(tmp_path / "out")},
        },
    }
    project = Project(tmp_path, run, config)
    write_rows(project.documents / "0.jsonl.gz", rows)
    message = f"the rules drop {dropped}% of 100 documents of km, and {others / 2:.1f}% of the others"
    assert (message in project.ok("mix", "--dry-run").err) is warns
    report = tmp_path / "report.json"
    project.ok("report", "--output", report)
    assert any(message in note for note in json.loads(report.read_text())["runs"][0]["notes"]) is warns
