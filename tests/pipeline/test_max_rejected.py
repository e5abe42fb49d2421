"""Datasets of which too much was rejected, and mixes that keep nothing: told, and not gone on with."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, inputs_of, read_rows, tree, write_rows
from toolkit.records.rejected import Tally, too_many


def entry(project: Project, name: str = "raw", **more: Any) -> dict[str, Any]:
    """An entry of ``ingest:`` over a folder of inputs."""
    found = {"format": "jsonl", "from": f"{project.root}/{name}/*.jsonl", "source": name, "on_error": "skip"}
    return found | more


def inputs(project: Project, *files: tuple[int, int], name: str = "raw") -> None:
    """Inputs of so many good and bad lines each."""
    for number, (good, bad) in enumerate(files):
        rows: list[Any] = [{"id": f"{number}-{i}", "text": "some text"} for i in range(good)]
        write_rows(project.root / name / f"{number}.jsonl", [*rows, *([b"{"] * bad)])


def configured(project: Project, *entries: dict[str, Any]) -> Project:
    project.config |= {
        "ingest": list(entries),
        "tag": {"shape-0": "line_shape"},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": str(project.out)}},
    }
    return project


@pytest.mark.parametrize(
    ("files", "refused"),
    [
        ([(90, 10)], False),
        ([(89, 11)], True),
        ([(45, 5), (44, 6)], True),  # over all inputs
        ([(0, 50), (500, 0)], False),
        ([(49, 50)], False),  # too few to judge
        ([(0, 7)], True),  # unless all of them are bad
        ([(1, 98)], False),
        ([(0, 300)], True),
    ],
)
def test_an_entry_is_judged_by_all_its_inputs(project: Project, files: list[tuple[int, int]], refused: bool) -> None:
    inputs(project, *files)
    configured(project, entry(project))
    for _ in range(2):  # with nothing to do, too
        ran = project("ingest", "--json")
        assert ran.code == int(refused), ran.err
        assert bool(ran.json["rejected"]) == refused
    for command in ("tag", "mix", "run"):
        ran = project(command)
        assert ran.code == int(refused) or command == "mix", ran.err
        assert project.attributes.exists() == (not refused)
        if refused:
            bad, read = sum(bad for _, bad in files), sum(map(sum, files))
            assert f"got {bad:,} of {read:,}" in ran.err
            assert f"{bad:,} invalid JSON" in ran.err
            assert f"{project.data}/.toolkit/rejects/raw/" in ran.err
            assert "raise its `max_rejected`" in ran.err
    assert bool(tree(project.out)) == (not refused)


def test_the_limit_may_be_raised_without_reading_the_inputs_again(project: Project) -> None:
    inputs(project, (50, 50), (50, 50))
    configured(project, entry(project))
    assert project("run").code == 1
    project.config["ingest"][0]["max_rejected"] = 0.5
    ran = project.ok("run")
    assert "2 inputs: 2 done (2 before)" in ran.out
    assert len(project.output()) == 100
    project.config["ingest"][0]["max_rejected"] = 0.49
    assert project("ingest").code == 1
    assert project("mix").code == 1


def test_what_has_too_much_rejected_is_a_finding(project: Project) -> None:
    inputs(project, (50, 50), (50, 50))
    configured(project, entry(project))
    project("ingest")
    ran = project("validate", "--json")
    assert ran.code == 1
    assert [each for each in ran.json["findings"] if "got 100 of 200 (50.0 %): 100 invalid JSON" in each["message"]]
    shared = project("validate", "--shard", "0/2", "--json").json["findings"]
    assert not any("rejected" in finding["message"] for finding in shared)


def test_each_entry_is_judged_by_itself(project: Project) -> None:
    inputs(project, (1000, 0), name="good")
    inputs(project, (10, 100), name="bad")
    configured(project, entry(project, "good"), entry(project, "bad"))
    ran = project("ingest", "--json")
    assert [each["entry"] for each in ran.json["rejected"]] == [f"jsonl {project.root}/bad/*.jsonl (source bad)"]
    assert ran.json["rejected"][0]["reasons"] == {"invalid JSON": 100}
    rejects = read_rows(
        next(path for path in project.data.rglob("*.gz") if str(path) == ran.json["rejected"][0]["file"])
    )
    assert len(rejects) == 100


def test_what_is_trimmed_and_records_that_are_no_documents_are_no_damage(project: Project) -> None:
    inputs(project, (300, 0))
    configured(project, entry(project, trim={"min_chars": 100}))
    assert project.ok("ingest", "--json").json["counts"] == {"trim": 300}
    counts = {
        "record.request": 800,
        "record.warcinfo": 1,
        "documents": 99,
        "rejected.record": 100,
        "charset.guessed": 9,
    }
    record = Tally(counts=counts)
    assert not too_many([record], ".toolkit"), "100 of 1,000 items"
    counts["rejected.record"] = 101
    assert too_many([record], ".toolkit")


def test_a_mapping_that_matches_nothing_is_no_success(project: Project) -> None:
    write_rows(project.root / "raw" / "a.jsonl", [{"id": str(i), "content": "x"} for i in range(300)])
    configured(project, entry(project, fields={"text": "body"}))
    ran = project("run").fails(1, "got 300 of 300 (100.0 %): 300 missing field")
    status = project("status")
    assert (status.code, "ingest: failed: jsonl " in status.out) == (1, True)
    assert "not run: tag, mix" in ran.out
    project.config["ingest"][0]["fields"] = {"text": "content"}
    project.ok("run", "--overwrite")


@pytest.mark.parametrize("part", [["--limit", "1"], ["--shard", "0/1"]])
def test_a_part_of_the_inputs_only_warns(project: Project, part: list[str]) -> None:
    inputs(project, (10, 100))
    configured(project, entry(project))
    for command in ("ingest", "tag", "mix"):
        ran = project.ok(command, *part)
        assert "warning: " in ran.err
        assert "got 100 of 110" in ran.err
    assert project("run").code == 1


def test_per_shard_publishes_nothing_of_it(project: Project) -> None:
    inputs(project, (10, 100), (10, 0))
    configured(project, entry(project))
    for _ in range(2):
        project("run", "--per-shard").fails(1, "got 100 of 120")
        assert not project.output()
    project.config["ingest"][0]["max_rejected"] = 0.9
    project.ok("run", "--per-shard")
    assert len(project.output()) == 20


# --- mixes that keep nothing ------------------------------------------------------------------------------------------


@pytest.fixture
def empty(small: Project) -> Project:
    """A mix whose rules drop all documents."""
    small.config["mix"]["rules"] = [
        {"drop": "line_shape.lines > 1", "name": "long"},
        {"drop": "line_shape.lines < 2", "name": "short"},
    ]
    return small


def test_a_mix_that_keeps_nothing_publishes_nothing(empty: Project) -> None:
    for _ in range(2):
        empty("mix").fails(1, "got 0 of 12 (dropped: 5 by long, 7 by short)")
        assert not (empty.out / ".toolkit" / "manifest.json").exists()
    status = empty("status")
    assert (status.code, "publish: failed" in status.out) == (1, True)
    empty.config["mix"]["allow_empty"] = True
    empty.ok("mix")
    manifest = json.loads((empty.out / ".toolkit" / "manifest.json").read_text())
    assert (manifest["totals"]["rows"], manifest["parts"]) == (12, [])
    empty.config["mix"]["allow_empty"] = False
    assert empty("mix").code == 1, "of what is published already, too"


def test_what_was_published_before_stays(empty: Project) -> None:
    rules = empty.config["mix"].pop("rules")
    empty.ok("mix")
    empty.config["mix"] |= {"rules": rules, "rejected": str(empty.root / "rejected")}
    assert empty("mix").code == 1
    assert len(empty.output()) == 12
    assert not (empty.root / "rejected").exists()


def test_documents_of_which_a_format_makes_nothing_are_none(small: Project) -> None:
    small.config["mix"] |= {"rules": [], "output": {"format": "dolma", "path": str(small.out), "min_text_length": 999}}
    small("mix").fails(1, "12 by documents below min_text_length")


@pytest.mark.parametrize("option", [["--limit", "1"], ["--dry-run"]])
def test_a_part_and_a_dry_run_only_warn(empty: Project, option: list[str]) -> None:
    ran = empty.ok("mix", *option)
    assert "warning: " in ran.err
    assert "expected a mix that keeps documents" in ran.err


def test_a_dataset_without_documents_is_an_empty_mix(project: Project) -> None:
    write_rows(project.documents / "a.jsonl", [])
    project.config["mix"] = {"output": {"format": "dolma", "path": str(project.out)}}
    project("mix").fails(1, "got 0 of 0")


def test_records_name_a_few_of_many_places_and_tell_lists_apart(project: Project) -> None:
    """Each input's record names its entry, so the records of very many listed inputs stay small."""
    here = [str(project.root / f"{number:02d}.jsonl") for number in range(40)]
    for number, path in enumerate(here):
        write_rows(Path(path), [{"id": str(number), "text": "A text."}])
    lists = [here[:20], [*here[:3], *here[23:]]]
    entries = [{"format": "jsonl", "from": listed, "source": "s"} for listed in lists]
    assert project.ingest(*entries).code == 0
    names = {record.entry for record in inputs_of(project).values()}
    assert len(names) == 2
    for name in names:
        assert name.startswith(f"jsonl {', '.join(here[:3])} and 17 more (")
        assert len(name) < sum(map(len, here[:3])) + 60
