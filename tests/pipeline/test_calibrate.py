"""Calibrations, as a user makes them: the command, in a run, under rules; the same for any number of processes."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.conftest import Run
from tests.pipeline.conftest import Project, document, read_rows, tree, write_rows
from tests.storage.conftest import bucket, seaweed
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file

__all__ = ["bucket", "seaweed"]

SCORE = "document.metadata['score']"
SECTION: dict[str, Any] = {
    "quality-0": {"kind": "rank", "score": SCORE, "within": "document.source"},
    "edu-cal-0": {
        "kind": "map",
        "method": "isotonic",
        "score": SCORE,
        "labels": "document.metadata['label']",
        "as": "edu",
    },
    "alike-0": {"kind": "map", "method": "quantile", "to": "corpus", "score": SCORE, "within": "document.source"},
    "both-0": {"kind": "rank", "score": ["quality.rank", "edu.score"], "combine": "mean"},
}


def rows_of(name: str, count: int) -> list[dict[str, Any]]:
    """Documents of two sources, the scores of one of which are ten times those of the other; few have labels."""
    drawn = random.Random(name)
    rows = []
    for i in range(count):
        source, score = drawn.choice(["web", "books"]), drawn.random()
        more = {"score": score * (10 if source == "books" else 1), "label": round(score * 4) if i % 3 == 0 else None}
        rows.append(document(f"{name}-{i}", "text", source, metadata=more))
    return rows


def prepare(root: Path, run: Run, processes: int, count: int = 60) -> Project:
    config = {
        "dataset": str(root / "data"),
        "processes": processes,
        "calibrate": {name: dict(entry) for name, entry in SECTION.items()},
        "mix": {
            "attributes": ["quality-0"],
            "rules": [{"keep": "quality.rank is not None and quality.rank >= 0.9", "name": "best"}],
            "output": {"format": "dolma", "path": str(root / "out")},
        },
    }
    found = Project(root, run, config)
    for name in ("a.jsonl.gz", "deep/b.jsonl.gz", "c.jsonl"):
        write_rows(found.documents / name, rows_of(name, count))
    return found


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    return prepare(tmp_path, run, 1)


def test_a_run_ranks_and_a_mix_keeps_the_best_of_each_source(project: Project) -> None:
    shown = project.ok("run").out
    assert re.search(r"quality-0 +rank +180 +180 +3 +0  180 with a score, 2 groups", shown)
    assert "edu-cal-0, curve" in shown
    sources = [row["source"] for path in project.documents.rglob("*.jsonl*") for row in read_rows(path)]
    kept = [row["source"] for row in project.output()]
    for source in ("web", "books"):
        assert kept.count(source) == pytest.approx(sources.count(source) / 10, abs=0.5)
    assert project.ok("status").out.endswith("all is done\n")
    project.ok("validate")
    again = project.ok("calibrate", "--json").json["sets"]
    assert {each["written"] for each in again.values()} == {0}
    assert "edu-cal-0: {}" in project.ok("calibrate", "--dry-run").out


@pytest.mark.slow
def test_two_processes_and_little_memory_give_the_same(project: Project, tmp_path: Path, run: Run) -> None:
    project.ok("calibrate")
    other = prepare(tmp_path / "other", run, 2)
    other.config["calibrate"]["both-0"]["memory"] = "4 kB"
    other.ok("calibrate")
    assert tree(other.attributes) == tree(project.attributes)
    maps = [each.data / ".toolkit/dedup/edu-cal-0/map.json" for each in (project, other)]
    assert maps[0].read_bytes() == maps[1].read_bytes()


@pytest.mark.slow
def test_new_shards_are_ranked_with_all_and_mapped_as_before(project: Project) -> None:
    project.ok("run")
    before = tree(project.attributes / "edu-cal-0")
    write_rows(project.documents / "d.jsonl.gz", rows_of("d", 50))
    project("mix").fails(1, "expected a calibration of all shards, got one without d.jsonl.gz; run `toolkit calibrate`")
    project.ok("calibrate").shows("edu-cal-0: the map stays as fitted, on 60 documents of 3 shards; there are 4 now")
    assert before.items() < tree(project.attributes / "edu-cal-0").items()
    assert "edu-cal-0: {}" not in project.ok("calibrate", "--refit", "--dry-run").out
    done = toolkit.calibrate(str(project.yaml), refit=True)
    found = done.sets["edu-cal-0"]
    assert found.model
    assert found.groups[0]["documents"] == 77
    project.config["mix"]["attributes"].append("edu-cal-0")
    project.ok("mix")
    assert found.model.digest in (project.out / ".toolkit/manifest.json").read_text()


def test_a_score_that_no_float_holds_is_named(project: Project) -> None:
    write_rows(project.documents / "big.jsonl", [document("b", "text", "web", metadata={"score": 10**400})])
    project("calibrate").fails(
        1, "big.jsonl:1: ", "expected a number that fits into a 64-bit float, got an integer of 1,329 bits"
    )
    assert tree(project.attributes) == {}


@pytest.mark.slow
def test_shares_prepare_and_one_run_ends(project: Project, tmp_path: Path, run: Run) -> None:
    for i in range(2):
        said = project.ok("calibrate", "--shard", f"{i}/2").out
    assert "What a score comes to depends on all shards" in said
    project.ok("calibrate")
    whole = prepare(tmp_path / "whole", run, 1)
    whole.ok("calibrate")
    assert tree(project.attributes) == tree(whole.attributes)


@pytest.mark.slow
@pytest.mark.s3
def test_on_s3(project: Project, bucket: str) -> None:
    project.ok("calibrate")
    for path in project.documents.rglob("*.jsonl*"):
        write_file(f"{bucket}/data/documents/{path.relative_to(project.documents)}", path.read_bytes())
    project.config["dataset"] = f"{bucket}/data"
    project.ok("run")
    for path in (each for each in project.attributes.rglob("*") if each.is_file()):
        found = store_of(bucket).read(f"{bucket}/data/attributes/{path.relative_to(project.attributes)}")
        assert found == path.read_bytes()
    assert project.ok("status").out.endswith("all is done\n")
    project.ok("calibrate", "--refit")
