"""A file that a disk has damaged, or a folder has replaced, is told by the command that meets it."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Run
from tests.inspect.conftest import ABOUT
from tests.pipeline.conftest import Project, tree
from toolkit.data.dataset import open_dataset
from toolkit.data.record_logs import ROWS, open_log
from toolkit.data.row_index import ShardState, path_of
from toolkit.errors import Forbidden
from toolkit.mix.publication import intent_path, manifest_path
from toolkit.records import sets
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import check_writable
from toolkit.storage.record_log import UNLIKE_DATA, RecordLog, header
from toolkit.storage.stores import local


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Two inputs from ingest to a mix."""
    for name in "ab":
        path = tmp_path / "in" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps({"id": f"{name}{i}", "text": "Good day."}) + "\n" for i in range(3)))
    config: dict[str, Any] = {
        "dataset": str(tmp_path / "data"),
        "processes": 1,
        "ingest": [{"format": "jsonl", "from": f"{tmp_path}/in/*.jsonl", "source": "s"}],
        "tag": {"noise-0": "noise"},
        "mix": {"attributes": ["noise-0"], "output": {"format": "dolma", "path": str(tmp_path / "out")}},
        "about": dict(ABOUT),
    }
    project = Project(tmp_path, run, config)
    project.ok("run")
    return project


@pytest.fixture
def part(project: Project) -> Path:
    """The only part."""
    return next(project.out.rglob("*.jsonl.gz"))


def replace(path: Path) -> Path:
    """An empty folder in place of a file."""
    path.unlink()
    path.mkdir()
    return path


@pytest.mark.parametrize("command", ["ingest", "run", "status"])
def test_an_input_that_a_folder_has_replaced_is_missed(command: str, project: Project) -> None:
    path = replace(project.root / "in" / "b.jsonl")
    ran = project(command).fails(1)
    assert (str(path) if command != "status" else "there is a folder") in ran.out + ran.err


def test_a_part_that_a_folder_has_replaced_is_not_left_out_of_a_count(project: Project, part: Path) -> None:
    project.run("stats", project.out).succeeds()
    replace(part)
    project.run("stats", project.out).fails(1, f"{part}: expected a file, got a folder")


@pytest.mark.parametrize("damage", [replace, Path.unlink])
def test_attributes_that_were_made_and_are_gone_are_not_left_out_of_a_look(damage: Any, project: Project) -> None:
    path = next(project.attributes.rglob("*.jsonl.gz"))
    damage(path)
    shard = project.documents / path.relative_to(project.attributes / "noise-0")
    project.run("head", shard).fails(1, f"{path}:1: expected the attributes of {shard}:1, got")


@pytest.mark.parametrize("command", ["head --id a1", "trace --id a1", "mix --explain a1"])
def test_a_document_is_not_said_to_be_nowhere_in_a_part_that_cannot_be_read(
    command: str, project: Project, part: Path
) -> None:
    part.write_bytes(part.read_bytes()[:-9])
    assert str(part) in project(*command.split(), "--json").fails(1, "1 failed:").json["failed"][0]


def test_a_faulty_shard_of_a_manifest_is_named_by_its_place(project: Project) -> None:
    """In an intent, which is what a publication leaves that was killed, the place is another one."""
    path, intent = Path(manifest_path(str(project.out))), Path(intent_path(str(project.out)))
    whole = path.read_bytes()
    manifest = json.loads(whole)
    manifest["inputs"][1]["rows"] = "three"
    path.write_text(json.dumps(manifest))
    project("mix").fails(1, f"{path}: expected a record", "at $.inputs[1].rows;")
    path.write_bytes(whole)
    intent.write_text(json.dumps({"manifest": manifest, "datasets": {}, "obsolete": []}))
    project("mix").fails(1, f"{intent}: expected a record", "at $.manifest.inputs[1].rows;")


def test_published_shards_are_found_in_a_manifest_that_was_sorted_otherwise(project: Project) -> None:
    path = Path(manifest_path(str(project.out)))
    manifest = json.loads(path.read_bytes())
    manifest["inputs"].reverse()
    path.write_text(json.dumps(manifest))
    assert "all is done" in project.ok("status").out
    project.ok("mix", "--shard", "0/2")


def test_a_mix_does_without_notes_of_failures_that_cannot_be_read(project: Project) -> None:
    project.config["mix"]["output"]["part_size"] = "1 MB"
    RecordLog(f"{project.out}/.toolkit/record-log", suffix=UNLIKE_DATA).save({("failed mix", "s/a"): b"{}"})
    (segment,) = (project.out / ".toolkit" / "record-log" / "segments").iterdir()
    segment.write_bytes(gzip.compress(header(1).replace(b'"version":1', b'"version":2')))
    assert "version 2" in project("status").err
    project.ok("mix")


def test_only_empty_folders_that_are_called_as_files_are_listed(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.json/c", "v1.0", "d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "b.json" / "x.gz").touch()
    assert list(local.Local().files(str(tmp_path))) == ["a.jsonl.gz", "b.json/x.gz"]


def test_status_names_what_is_damaged_and_what_to_do(project: Project, part: Path) -> None:
    attributes = next(project.attributes.rglob("*.jsonl.gz"))
    sound = attributes.read_bytes()
    attributes.write_bytes(sound[:-9])
    ran = project("status")
    assert (ran.code, "max_document_bytes" in ran.out, "`toolkit run`" in ran.out) == (1, False, True)
    project.ok("tag")
    part.write_bytes(part.read_bytes()[:-1])
    ran = project("status").shows(f"{part}: expected ")
    assert "not begun" not in ran.out
    project.ok("run")
    assert project.ok("status").out.endswith("all is done\n")


def misstate(project: Project) -> str:
    """Change a digest of the documents in the record of a row index; return its path."""
    dataset = open_dataset(str(project.data), None, None)
    found = open_log(dataset)
    shard = found.keys(ROWS)[0]
    state = found.load(ROWS, shard, ShardState)
    assert state
    found.save({(ROWS, shard): msgspec.json.encode(msgspec.structs.replace(state, content="0" * 32))})
    return path_of(dataset, shard)


def test_a_row_index_of_other_documents_is_named_and_made_anew(project: Project) -> None:
    before = tree(project.root)
    index = misstate(project)
    project("tag").fails(1, index)
    project.ok("tag")
    assert tree(project.root) == before
    index = misstate(project)
    ran = project("validate")
    assert (ran.code, index in ran.out) == (1, True)
    project.ok("validate")


def test_damaged_rows_of_an_index_are_named_and_made_anew(project: Project) -> None:
    """Their number is right: only their sums tell. (`validate` reads the documents, and makes the index anew.)"""
    rows = next((project.data / ".toolkit" / "rows").rglob("*.bin"))
    before = tree(project.root)
    damaged = bytearray(rows.read_bytes())
    damaged[8:12] = b"\0" * 4  # the code points of the first row
    rows.write_bytes(damaged)
    project("mix", "--dry-run").fails(1, str(rows))
    assert rows.read_bytes() == damaged, "who only looks deletes nothing"
    rows.unlink()
    project.ok("mix", "--dry-run")
    assert tree(project.root) == before


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["records", "index"])
def test_a_dry_run_writes_nothing_about_what_is_damaged(damage: str, project: Project) -> None:
    """It indexes the documents for itself alone; what it says is the same."""
    whole = project.ok("mix", "--dry-run", "--json").json
    folder = project.data / ".toolkit"
    if damage == "records":
        [merged] = (folder / "record-log").glob("records.*")
        merged.write_bytes(merged.read_bytes()[:-60])
    else:
        next((folder / "rows").rglob("*.bin")).unlink()
    before = tree(project.root, bookkeeping=True)
    for options in (["--dry-run", "--json"], ["--explain", "1"], ["--dry-run", "processes=2"]):
        ran = project("mix", *options)
        if damage == "index":
            assert ran.code == 0, ran.err
        if options[-1] == "--json" and ran.code == 0:
            assert ran.json == whole
    assert tree(project.root, bookkeeping=True) == before


def test_a_record_with_other_settings_than_its_set_is_found(project: Project) -> None:
    dataset = open_dataset(str(project.data), None, None)
    shard, *_ = sets.recorded_shards(dataset, "noise-0")
    record = sets.load_record(dataset, "noise-0", shard)
    assert record
    settings = {key: {**found, "optyons": {}} for key, found in record.settings.items()}
    sets.save_records(dataset, shard, {"noise-0": msgspec.structs.replace(record, settings=settings)})
    ran = project("validate")
    assert (ran.code, "expected the settings of its set" in ran.out) == (1, True)
    project.ok("tag")
    project.ok("validate")


@pytest.mark.parametrize("command", ["card", "croissant"])
def test_nothing_is_described_by_what_is_damaged(command: str, project: Project) -> None:
    record = next((project.data / ".toolkit" / "inputs").rglob("*.gz"))
    checksums = next(project.out.rglob("*_sha256.txt"))
    for path in (record, checksums):
        sound = path.read_bytes()
        path.write_bytes(sound[: len(sound) // 2])
        project(command).fails(1, str(path))
        path.write_bytes(sound)
    project.ok(command)
    checksums.write_bytes(b"\0" * checksums.stat().st_size)
    project(command).fails(1, f"{checksums}: expected the checksums of the manifest")


def test_a_truncated_checksum_file_is_made_again(project: Project) -> None:
    before = tree(project.root)
    checksums = next(project.out.rglob("*_sha256.txt"))
    checksums.write_bytes(b"")
    project.ok("mix")
    assert tree(project.root) == before


def test_what_cannot_be_looked_at_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a temporary file stay where nobody may look."""

    def refused(path: Any, *rest: Any, **options: Any) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", refused)
    with pytest.raises(Forbidden, match="Permission denied"):
        check_writable(str(tmp_path), "mix.output")
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", refused)
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    with pytest.raises(Forbidden):
        write_file(str(tmp_path / "x"), b"x")
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())
