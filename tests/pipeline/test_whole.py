"""What is not there is said: shards that are gone, inputs that failed; and what is there stays usable."""

from pathlib import Path

import pytest

from tests.pipeline.conftest import Project, read_rows, tree, write_rows


@pytest.fixture
def two(project: Project) -> Project:
    """Two inputs, ingested and tagged, and a mix of them."""
    for name in ("a", "b"):
        write_rows(project.root / "in" / f"{name}.jsonl", [{"id": name, "text": "some text"}])
    project.config |= {
        "ingest": [{"format": "jsonl", "from": [f"{project.root}/in/*"], "source": "j"}],
        "tag": {"shape-0": "line_shape"},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": str(project.out)}},
    }
    project.ok("run")
    return project


def test_a_shard_that_was_ingested_and_is_gone_stops_tag_and_mix(two: Project) -> None:
    before = two.output()
    shard = two.documents / "j" / "b.jsonl.gz"
    shard.unlink()
    for command in ("tag", "mix"):
        two(command).fails(1, f"{shard}: expected the documents of {two.root}/in/b.jsonl")
    assert two.output() == before
    assert two("validate").code == 1
    two.ok("run")
    assert two.output() == before


def test_inputs_that_failed_are_named_by_all_that_goes_on_without_them(two: Project) -> None:
    path = two.root / "in" / "c.jsonl"
    path.write_text("{\n")
    assert two("ingest").code == 1
    for command in ("tag", "mix"):
        assert f"1 input is not in this: its ingest failed or was interrupted ({path})" in two.ok(command).out
    ran = two("validate")
    assert ran.code == 1
    assert f"{path}: expected to be ingested" in ran.out
    path.unlink()
    write_rows(path, [{"id": "c", "text": "t"}])
    two.ok("run")
    assert "are not in this" not in two.ok("mix").out


def test_what_was_ingested_without_fault_need_not_be_again_to_skip_the_faults_of_others(two: Project) -> None:
    path = two.root / "in" / "c.jsonl"
    path.write_text('{"id": "c", "text": "t"}\n{\n')
    two.config["ingest"][0]["on_error"] = "skip"
    result = two.ok("ingest", "--json").json
    assert (result["inputs"], result["skipped"]) == (3, 2)
    assert [row["id"] for row in read_rows(two.documents / "j" / "c.jsonl.gz")] == ["c"]
    two.config["ingest"][0]["on_error"] = "error"
    two("ingest").fails(1, f"{path}:2")


def test_an_input_that_is_gone_is_mentioned_and_its_documents_stay(two: Project) -> None:
    (two.root / "in" / "b.jsonl").unlink()
    ran = two.ok("ingest")
    assert "inputs of earlier runs that are not among these: 1 (" in ran.out
    assert sorted(row["id"] for row in two.output()) == ["a", "b"]


def test_settings_may_stand_behind_options(two: Project) -> None:
    two.run(
        "mix", "-c", two.yaml, "--limit", "1", f"mix.output.path={two.root}/other", "--quiet", "processes=1"
    ).succeeds()
    assert Path(two.root, "other", "documents", "documents.jsonl.gz").exists()
    assert two.run("mix", "-c", two.yaml, "--nonsense").code == 2


@pytest.mark.parametrize("place", ["", "documents/x", "attributes", ".toolkit/x", ".."])
def test_an_output_among_what_is_read_is_refused_before_anything_is_done(two: Project, place: str) -> None:
    two.config["mix"]["output"]["path"] = str((two.data / place).resolve())
    two.config["ingest"][0]["source"] = "new"
    two("run").fails(2, "expected a path separate from")
    assert not (two.documents / "new").exists()


def test_a_shard_that_is_replaced_by_its_beginning_is_redone_where_it_is_no_damage(two: Project) -> None:
    rows = [{"id": str(i), "text": "x", "source": "s"} for i in range(4)]
    write_rows(two.documents / "plain.jsonl", rows)
    two.ok("tag")
    write_rows(two.documents / "plain.jsonl", rows[:2])
    two.ok("tag")
    assert len(two.values("shape-0", "plain.jsonl")) == 2


def test_what_a_failed_mix_left_goes_when_the_old_output_is_right_again(two: Project) -> None:
    path = two.attributes / "shape-0" / "j" / "b.jsonl.gz"
    data = path.read_bytes()
    path.unlink()
    assert two("mix").code == 1
    path.write_bytes(data)
    assert "was there already" in two.ok("mix").out
    assert not list((two.out / ".toolkit").glob("stage/*"))


def test_bad_lines_are_counted_by_what_is_wrong(two: Project) -> None:
    path = two.root / "in" / "c.jsonl"
    path.write_bytes(b'{\n\n{"id": "1"}\n{"text": 3}\n{"text": "\xff"}\n{"text": "good"}\n')
    two.config["ingest"][0]["on_error"] = "skip"
    counts = two.ok("ingest", "--json").json["counts"]
    faults = ("blank line", "invalid JSON", "invalid UTF-8", "missing field", "wrong type")
    assert {name: n for name, n in counts.items() if name.startswith("rejected")} == {
        f"rejected.{fault}": 1 for fault in faults
    }


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_done(two: Project) -> None:
    (two.root / "file").write_text("")
    two.config["mix"]["output"]["path"] = str(two.root / "file" / "x")
    two.config["ingest"][0]["source"] = "new"
    two("run").fails(2, "expected a folder, got the file")
    assert not (two.documents / "new").exists()


def test_a_dataset_that_was_moved_goes_on_with_what_was_resolved(two: Project, tmp_path: Path) -> None:
    """Sets over the whole dataset, of which a shard's attributes are gone: nothing names the old place any more."""
    two.config |= {
        "dedup": {"exact-0": {"kind": "exact"}, "again-0": {"kind": "exact", "unit": "line", "as": "again"}},
        "sample": {"pick-0": {"documents": 1}},
        "calibrate": {"rank-0": {"kind": "rank", "score": "line_shape.chars"}},
    }
    two.ok("run")
    made = tree(two.attributes)
    two.data.rename(tmp_path / "moved")
    two.config["dataset"] = str(tmp_path / "moved")
    for name in ("exact-0", "again-0", "pick-0", "rank-0"):
        (tmp_path / "moved" / "attributes" / name / "j" / "b.jsonl.gz").unlink()
    two.ok("run")
    assert tree(tmp_path / "moved" / "attributes") == made
