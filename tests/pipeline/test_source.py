"""Sets as all commands read them: outdated ones are refused or told of, and those of other programs are read."""

import json
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.conftest import Run
from tests.pipeline.conftest import Project, document, read_rows, write_rows
from tests.rows_walk import walks
from toolkit.data.dataset import Dataset
from toolkit.stages import set_state
from toolkit.stages.set_state import state_of

pytestmark = pytest.mark.slow

COUNT = 12
PATHS = ("a.jsonl.gz", "b.jsonl.gz")


def _scores(path: Path, factor: float) -> None:
    rows = [{"id": f"{name}-{i}", "quality": factor * i} for name in PATHS for i in range(COUNT)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    config = {
        "dataset": str(tmp_path / "data"),
        "align": {"q-0": {"from": str(tmp_path / "scores.jsonl"), "values": ["quality"]}},
        "calibrate": {"rank-0": {"kind": "rank", "score": "q-0.quality"}},
        "mix": {
            "attributes": ["rank-0"],
            "rules": [{"keep": "rank.rank is not None and rank.rank > 0.5", "name": "best"}],
            "output": {"format": "dolma", "path": str(tmp_path / "out")},
        },
    }
    found = Project(tmp_path, run, config)
    for name in PATHS:
        write_rows(found.documents / name, [document(f"{name}-{i}", f"text {i} of {name}", "s") for i in range(COUNT)])
    return found


STALE = "rank-0 was made from q-0, which is out of date: "
CHANGED = "scores.jsonl as it is now, got those of an earlier version; run `toolkit align`"


def test_a_set_is_out_of_date_when_an_input_of_what_it_was_made_from_is(project: Project, tmp_path: Path) -> None:
    """The aligned set itself is joined nowhere; what writes refuses, what only looks says the same."""
    _scores(tmp_path / "scores.jsonl", 1.0)
    project.ok("run")
    output = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    _scores(tmp_path / "scores.jsonl", -1.0)
    for command in (
        ["mix"],
        ["mix", "--dry-run"],
        ["mix", "--explain", f"{PATHS[0]}-1"],
        ["export", "--parquet", str(tmp_path / "parquet"), "--set", "rank-0"],
    ):
        refused = project(*command)
        assert refused.code != 0, command
        assert STALE in refused.err, command
        assert CHANGED in refused.err, command
    assert "would be kept" in project("mix", "--dry-run").out
    project("calibrate").fails(1, CHANGED)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == output
    assert STALE in project("validate").out
    for command in (
        ["stats", "--attribute", "rank.rank"],
        ["sql", "SELECT count(*) FROM joined"],
        ["evaluate", "rank-0.rank.rank", "--against", "q-0.quality"],
        ["compare", "rank-0", "rank-0"],
        ["report", "--output", str(tmp_path / "report.json")],
    ):
        looked = project(*command).succeeds()
        assert f"warning: {STALE}" in looked.err, command
    dataset = toolkit.Dataset(str(project.yaml))
    with pytest.raises(toolkit.StaleError, match="out of date"):
        list(dataset.joined("rank-0"))
    with pytest.raises(toolkit.StaleError, match="run `toolkit align`"):
        list(dataset.joined("q-0"))
    project.ok("run")
    assert project("validate").code == 0
    assert {row["id"] for row in project.output()} == {f"{name}-{i}" for name in PATHS for i in range(COUNT // 2)}


def test_dedup_explains_what_is_out_of_date_with_a_warning(project: Project, tmp_path: Path) -> None:
    _scores(tmp_path / "scores.jsonl", 1.0)
    project.config["dedup"] = {"exact-0": {"kind": "exact", "keep": {"max": "quality if quality is not None else 0"}}}
    project.ok("align")
    project.ok("dedup")
    _scores(tmp_path / "scores.jsonl", -1.0)
    looked = project("dedup", "--explain", f"{PATHS[0]}-1")
    assert (looked.code, "warning: exact-0 was made from q-0, which is out of date" in looked.err) == (0, True)


def test_head_reads_one_shard_and_knows_that_the_others_are_there(project: Project) -> None:
    project.config = {"dataset": str(project.data), "dedup": {"exact-0": {"kind": "exact"}}}
    project.ok("dedup")
    for options in ([], ["--id", f"{PATHS[-1]}-1"]):
        assert "warning" not in project.ok("head", *options).err


def test_a_set_that_was_made_with_other_settings_is_told_of_by_what_looks(project: Project, tmp_path: Path) -> None:
    _scores(tmp_path / "scores.jsonl", 1.0)
    project.ok("run")
    project.config["calibrate"]["rank-0"]["within"] = "document.source"
    assert "made with other settings" in project("mix").err
    for command in (["stats", "--attribute", "rank.rank"], ["sql", "SELECT count(*) FROM joined"]):
        looked = project(*command)
        assert (looked.code, "made with other settings" in looked.err) == (0, True), command


def _external(project: Project, rows: dict[str, list[dict[str, Any]]]) -> None:
    for name, attributes in rows.items():
        listed = [{"id": f"{name}-{i}", "source": "s", "attributes": each} for i, each in enumerate(attributes)]
        write_rows(project.data / "attributes" / "ext-0" / name, listed)


@pytest.mark.parametrize("form", ["key", "reference", "attributes"])
def test_sets_of_other_programs_are_calibrated_sampled_and_decide_what_is_kept(
    project: Project, tmp_path: Path, form: str
) -> None:
    """Spans of Dolma's form whose key some rows lack, and a number that all rows have."""
    rows = [{"p": float(i), **({"bad": [[0, 4, 1.0]]} if i % 2 else {})} for i in range(COUNT)]
    _external(project, dict.fromkeys(PATHS, rows))
    for name in PATHS:  # equal texts: which is kept is decided by the external score
        write_rows(project.documents / name, [document(f"{name}-{i}", f"text {i // 2}", "s") for i in range(COUNT)])
    score = "ext-0.p" if form == "reference" else "p"
    more = {"attributes": ["ext-0"]} if form == "attributes" else {}
    del project.config["align"]
    project.config["calibrate"] = {"rank-0": {"kind": "rank", "score": score, **more}}
    project.config["dedup"] = {"exact-0": {"kind": "exact", "keep": {"max": "p"}, "when": "len(bad) >= 0", **more}}
    project.config["sample"] = {"sample-0": {"documents": 3, "when": "p > 5", **more}}
    project.ok("run")
    ranks = [row["rank"]["rank"] for name in PATHS for row in project.values("rank-0", name)]
    assert ranks == [(i + 0.5) / COUNT for _ in PATHS for i in range(COUNT)]
    kept = {row["id"] for row in _joined(project) if row["exact"]["duplicate_of"] is None}
    assert kept == {f"{PATHS[0]}-{i}" for i in range(1, COUNT, 2)}
    drawn = [int(row["id"].rpartition("-")[2]) for row in _joined(project) if row["sample"]["chosen"]]
    assert len(drawn) == 3
    assert min(drawn) > 5
    project.ok("validate")
    rows[0]["p"] = 99.0
    _external(project, {PATHS[0]: rows})
    assert "run `toolkit calibrate`" in project("mix").err
    project.ok("run")
    assert project.values("rank-0", PATHS[0])[0]["rank"]["rank"] == 1 - 0.5 / (2 * COUNT)


def _joined(project: Project) -> list[dict[str, Any]]:
    return [
        {"id": row["id"], **exact, **sample}
        for name in PATHS
        for row, exact, sample in zip(
            read_rows(project.documents / name),
            project.values("exact-0", name),
            project.values("sample-0", name),
            strict=True,
        )
    ]


def test_a_set_is_out_of_date_when_its_model_is_or_what_the_model_learnt_from(project: Project, tmp_path: Path) -> None:
    """Also where no section names the set any more; inputs that several sets share are looked at once."""
    _scores(tmp_path / "scores.jsonl", 1.0)
    learning = {"labels": "q-0.quality", "task": "regression", "buckets": 1 << 12, "minimum": 1, "path": "model-0"}
    project.config |= {
        "root": str(tmp_path),
        "train": {"model-0": learning},
        "tag": {name: {"tagger": "linear", "model": "model-0"} for name in ("edu-0", "edu-1")},
    }
    project.ok("align")
    project.ok("train")
    project.config["mix"] |= {"attributes": ["edu-0"], "rules": []}
    project.ok("run")
    del project.config["tag"]
    project.ok("validate")
    _scores(tmp_path / "scores.jsonl", -1.0)
    assert "edu-0 was made from q-0, which is out of date: " in project("mix").err
    project.ok("align")
    refused = project("mix")
    learnt = (
        "model-0 learnt from q-0, which has changed since; run `toolkit train --overwrite`, then "
        "run `toolkit tag --overwrite`"
    )
    assert (refused.code != 0, learnt in refused.err) == (True, True), refused.err
    shown = project("status")
    assert (shown.code, learnt in shown.out) == (1, True), shown.out
    _scores(tmp_path / "scores.jsonl", 1.0)
    project.ok("align")
    project.ok("mix")
    write_rows(project.documents / "c.jsonl.gz", [document("c-0", "a text", "s")])
    with (tmp_path / "scores.jsonl").open("a") as scores:
        scores.write('{"id": "c-0", "quality": 9.0}\n')
    project.ok("align")
    dataset = Dataset(str(project.documents), str(project.attributes))
    assert state_of(dataset, "edu-0", dataset.shards(), complete=True).name == "done"  # labels may be added
    (project.documents / "c.jsonl.gz").unlink()
    project.ok("clean", "--forget", "c.jsonl.gz")
    _scores(tmp_path / "scores.jsonl", 1.0)
    project.ok("align")
    learning["buckets"] = 1 << 13
    project.ok("train", "--overwrite")
    told = "model-0 as it is now, got those of an earlier version; run `toolkit tag --overwrite`"
    refused = project("mix")
    assert (refused.code != 0, told in refused.err) == (True, True), refused.err
    assert told in project("validate").out
    looked = project("sql", "SELECT count(*) FROM joined")
    assert (looked.code, told in looked.err) == (0, True)


def test_inputs_that_sets_share_are_looked_at_once(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _scores(tmp_path / "scores.jsonl", 1.0)
    project.config["calibrate"]["rank-1"] = {"kind": "rank", "score": "q-0.quality", "as": "other"}
    project.config["mix"] |= {"attributes": ["rank-0", "rank-1"]}
    project.ok("run")
    names: list[str] = []
    check = set_state._check_files

    def noted(dataset: Any, name: str, *others: Any) -> list[str]:
        names.append(name)
        return check(dataset, name, *others)

    monkeypatch.setattr(set_state, "_check_files", noted)
    project.ok("mix")
    assert sorted(names) == ["q-0", "rank-0", "rank-1"]


def test_commands_come_to_their_rows_by_the_same_few_modules(tmp_path: Path) -> None:
    """What leads to a station, the command's own modules included; see `tests.rows_walk`."""
    ends = {
        "configuration": "toolkit.stages.dispatch",
        "shards": "toolkit.stages.context",
        "sets": "toolkit.source",
        "rows": "toolkit.mix.join",
    }
    for name, walk in walks(tmp_path).items():
        assert {station: [*stack][-1] for station, stack in walk.stations.items()} == ends, name
        assert len(walk.modules) <= 8, (name, walk.modules)
