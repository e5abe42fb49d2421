"""`toolkit run` tells all conflicts of all sections before it reads or writes anything."""

import json
import time
from pathlib import Path

import msgspec
import pytest

from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.recipes import mix_of
from toolkit.execution.leases import Lease
from toolkit.storage.owners import owner


@pytest.fixture
def whole(project: Project) -> Project:
    """A configuration of all sections over one small input; nothing has run."""
    write_rows(project.root / "raw" / "a.jsonl", [document("1", "one two three"), document("2", "four")])
    project.config |= {
        "ingest": [{"format": "jsonl", "from": f"{project.root}/raw/*.jsonl", "source": "s"}],
        "tag": {"shape-0": [{"tagger": "line_shape", "short_chars": 50}]},
        "mix": mix_of(project.out, {"drop": "line_shape.lines > 2", "name": "long"}, attributes=["shape-0"]),
    }
    return project


def refused(project: Project, *arguments: str) -> str:
    """What `run` says of a configuration that it refuses; nothing is written."""
    before = tree(project.root, bookkeeping=True)
    before["config.yaml"] = tree(project.yaml.parent)["config.yaml"]
    ran = project("run", *arguments)
    assert ran.code == 2, ran.out + ran.err
    assert tree(project.root, bookkeeping=True) == before
    return ran.err


def test_a_set_that_was_made_with_other_settings_is_told_before_the_ingest(whole: Project) -> None:
    whole.ok("run")
    write_rows(whole.root / "raw" / "b.jsonl", [document("3", "new")])
    whole.config["tag"]["shape-0"][0]["short_chars"] = 60
    assert (
        "expected the set 'shape-0' as the section `tag:` says, got one that was made with other settings"
        in refused(whole)
    )
    assert "short_chars" in refused(whole, "--per-shard")


def test_all_sections_are_told_at_once(whole: Project) -> None:
    whole.ok("run")
    whole.config["ingest"][0]["ids"] = "content"
    whole.config["tag"]["shape-0"][0]["short_chars"] = 60
    whole.config["mix"]["output"]["path"] = str(whole.documents)
    said = refused(whole)
    assert "was ingested with other settings" in said
    assert "expected the set 'shape-0' as the section" in said
    assert "expected a path separate from" in said


def test_slips_in_three_sections_are_told_at_once(whole: Project) -> None:
    whole.config["ingest"][0]["form"] = 1
    whole.config["tag"]["shape-0"] = "line_shap"
    whole.config["mix"]["rules"] = [{"dropp": "True"}]
    said = refused(whole)
    for place in ("ingest[0].form: ", "tag.shape-0: ", "mix.rules[0]: "):
        assert said.count(f"config.yaml:1: {place}") == 1
    assert "expected an attribute set" not in said, "of which nothing can be known yet"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mix": {"rules": [{"drop": "line_shape.line > 2"}]}}, "expected a field, got 'line'"),
        ({"mix": {"attributes": ["shape-1"]}}, "expected an attribute set"),
        ({"mix": {"rejected": "OUT"}}, "expected a path separate from"),
        ({"ingest": [{"format": "jsonl", "from": "nowhere/*.jsonl"}]}, "expected at least one file"),
        ({"tag": {"x-0": {"tagger": "language", "lines": "lines-0"}}}, "expected an attribute set"),
        ({"tag": {"x-0": {"tagger": "fasttext_label", "model": "no/such.bin"}}}, "no/such.bin"),
        ({"tag": {"shape-0": {"tagger": "line_language", "model": "no/such.bin"}}}, "no/such.bin"),
    ],
)
def test_what_can_be_known_is_known_before_the_ingest(whole: Project, change: dict[str, object], message: str) -> None:
    for section, value in change.items():
        known = whole.config[section]
        whole.config[section] = {**known, **value} if isinstance(value, dict) else value
    if whole.config["mix"].get("rejected"):
        whole.config["mix"]["rejected"] = str(whole.out)
    assert message in refused(whole)


def test_foreign_files_where_the_mix_writes_are_told_before_the_ingest(whole: Project) -> None:
    write_rows(whole.root / "rejected" / "mine.jsonl", [document("1", "x")])
    whole.config["mix"]["rejected"] = str(whole.root / "rejected")
    assert "expected an empty folder for dropped documents" in refused(whole)
    write_rows(whole.out / "mine.jsonl", [document("1", "x")])
    assert "choose another `output.path`" in refused(whole)


def test_a_limit_that_would_replace_more_is_told_before_the_ingest(whole: Project) -> None:
    write_rows(whole.root / "raw" / "b.jsonl", [document("3", "more")])
    whole.ok("run")
    write_rows(whole.root / "raw" / "0.jsonl", [document("4", "new")])
    assert "--limit 1 would replace it by less" in refused(whole, "--limit", "1")


@pytest.mark.parametrize(("folder", "holds"), [("data", "the set shape-0"), ("out", "the output")])
def test_another_run_is_told_before_the_ingest(whole: Project, folder: str, holds: str) -> None:
    """Its lease says what it works on, though the ingest has nothing to do with it."""
    lease = Lease(holds={holds: "other"}, since=time.time(), owner=owner(), run="toolkit tag")
    path = Path(whole.root, folder, ".toolkit", "leases", f"{owner()}.abc.json")
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(lease))
    said = refused(whole)
    assert "expected no other run" in said
    assert holds in said
    path.unlink()
    assert json.loads(whole.ok("run", "--json").out)["mix"]["published"]
