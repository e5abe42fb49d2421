"""The journal of a dataset: it takes over what earlier versions wrote, and asks a store for little."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, tree
from toolkit.commands.merging import merge
from toolkit.data import journals, row_index
from toolkit.data.dataset import open_dataset
from toolkit.data.journals import INGEST, ROWS, open_journal, place_in_set, place_of_failure
from toolkit.data.row_index import ShardState
from toolkit.records import sets
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.records.ingested import InputRecord, load_all
from toolkit.runs import claims
from toolkit.storage import store_of
from toolkit.storage.json_files import save
from toolkit.storage.paths import join, list_files
from toolkit.storage.stores.s3 import S3

SHARDS = 300

FOLDERS = ("sets", "rows", "ingest", "failed")
"""Of all earlier records."""


def test_what_earlier_versions_wrote_is_taken_over(tmp_path: Path, run: Run) -> None:
    project = Project(tmp_path, run)
    (tmp_path / "in").mkdir()
    for name in ("a.b=c.txt", "d.txt"):
        (tmp_path / "in" / name).write_text(f"The text of {name} is short.\n")
    project.config = {
        "dataset": str(project.data),
        "ingest": [{"format": "text", "from": [f"{tmp_path}/in/*.txt"], "source": "x", "pack": None}],
        "tag": {"shape-0": "line_shape", "noise-0": "noise"},
    }
    project.ok("ingest")
    project.ok("tag")
    dataset = open_dataset(str(project.data), None, None)
    failed = FailureRecord(task="x", message="no")
    FailureRecords(dataset.bookkeeping, "tag").note("x/a.b=c.txt.jsonl.gz", failed)
    expected: dict[Any, Any] = {place_of_failure("tag", "x/a.b=c.txt.jsonl.gz"): failed}
    for shard in dataset.shards():
        indexed = expected[ROWS, shard] = row_index.current(dataset, shard)
        assert indexed
        save(join(dataset.bookkeeping, "rows", shard + ".json"), indexed)
        for name in ("shape-0", "noise-0"):
            made = expected[place_in_set(name, shard)] = sets.load_record(dataset, name, shard)
            assert made
            save(join(dataset.bookkeeping, "sets", name, "shards", shard + ".json"), made)
    for key, record in load_all(dataset).items():
        expected[INGEST, key] = record
        save(join(dataset.bookkeeping, "ingest", key + ".json"), record)
    types = {ROWS: ShardState, INGEST: InputRecord, "failed tag": FailureRecord}

    def known() -> dict[Any, Any]:
        found = open_journal(dataset, FOLDERS)
        kinds = ("rows", "ingest", "failed tag", "set shape-0", "set noise-0")
        places = [(kind, key) for kind in kinds for key in found.keys(kind)]
        return {place: found.load(*place, types.get(place[0], sets.ShardRecord)) for place in places}

    for name in ("journal", "inputs"):
        store_of(dataset.bookkeeping).remove_tree(join(dataset.bookkeeping, name))
    assert len(expected) == 9
    assert None not in expected.values()
    assert known() == expected
    merge(open_journal(dataset, FOLDERS), claims.folder_in(dataset.bookkeeping))
    assert known() == expected
    left = [name for name in list_files(dataset.bookkeeping, hidden=True) if not name.endswith((".bin", "models.json"))]
    assert sorted(left) == ["journal/records.jsonl.gz", "sets/noise-0/schema.json", "sets/shape-0/schema.json"]


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_was_tagged_before_there_were_journals_is_not_tagged_again(
    tmp_path: Path, run: Run, processes: int
) -> None:
    """And one of these records that is damaged costs its shard."""
    project = Project(tmp_path, run)
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "in" / f"{name}.txt").write_text(f"The text of {name} is short.\n")
    project.config = {
        "dataset": str(project.data),
        "processes": processes,
        "ingest": [{"format": "text", "from": [f"{tmp_path}/in/*.txt"], "source": "x"}],
        "tag": {"shape-0": "line_shape"},
    }
    project.ok("run")
    dataset = open_dataset(str(project.data), None, None)
    shards = dataset.shards()
    before = tree(project.data)
    for shard in shards:
        made, indexed = sets.load_record(dataset, "shape-0", shard), row_index.current(dataset, shard)
        assert made
        assert indexed
        save(join(dataset.bookkeeping, "rows", shard + ".json"), indexed)
        save(join(dataset.bookkeeping, "sets/shape-0/shards", shard + ".json"), made)
    bookkeeping = project.data / ".toolkit"
    shutil.rmtree(bookkeeping / "journal")
    assert project.ok("status").out.rstrip().endswith("all is done")
    assert not (bookkeeping / "journal").exists()
    damaged = bookkeeping / "sets" / "shape-0" / "shards" / f"{shards[0]}.json"
    damaged.write_bytes(b"{")
    ran = project("status")
    assert (ran.code, ran.err.count(f"warning: {damaged}: expected ")) == (1, 1)
    ran = project.ok("tag", "--json")
    assert ran.json["written"] == {"shape-0": 1}
    assert project.ok("tag", "--json").json["written"] == {"shape-0": 0}
    assert tree(project.data) == before
    assert [path.name for path in (bookkeeping / "journal").rglob("*") if path.is_file()] == ["records.jsonl.gz"]
    assert not [path for path in bookkeeping.rglob("shards/**/*") if path.is_file()]


def test_a_command_sees_what_others_have_written_since(tmp_path: Path) -> None:
    dataset = open_dataset(str(tmp_path), None, None)
    journals.begin("a command")
    try:
        first = journals.of(dataset)
        open_journal(dataset).save({(ROWS, "x"): b"{}"})
        assert journals.of(dataset) is first
        assert first.get(ROWS, "x") is None
        journals.begin("its next stage")
        assert journals.of(dataset).get(ROWS, "x") == b"{}"
        journals.begin("its next stage")
        open_journal(dataset).forget([(ROWS, "x")])
        assert journals.of(dataset).get(ROWS, "x") == b"{}"
    finally:
        journals.begin("")
    assert journals.of(dataset).get(ROWS, "x") is None


@pytest.mark.s3
def test_records_cost_a_listing_and_one_request(bucket: str) -> None:
    """However many shards there are; the files of earlier versions were read one by one."""
    dataset = open_dataset(join(bucket, "data"), None, None)
    state = ShardState(size=1, stamp="etag x", content="0" * 32, rows=1, chars=1, bytes=1, head="0" * 16)
    for number in range(20):
        save(join(dataset.bookkeeping, "rows", f"{number}.jsonl.gz.json"), state)
    merge(open_journal(dataset, FOLDERS), claims.folder_in(dataset.bookkeeping))
    journal = open_journal(dataset, FOLDERS)
    journal.save({(ROWS, f"{number}.jsonl.gz"): msgspec.json.encode(state) for number in range(SHARDS)})
    merge(journal, claims.folder_in(dataset.bookkeeping))
    store = store_of(bucket)
    assert isinstance(store, S3)
    asked: Counter[str] = Counter()
    store.client.meta.events.register("before-call.s3", lambda model, **_: asked.update([model.name]))
    found = open_journal(dataset, FOLDERS)
    assert len(found.keys(ROWS)) == SHARDS
    assert found.load(ROWS, "7.jsonl.gz", ShardState) == state
    assert dict(asked) == {"ListObjectsV2": 1, "GetObject": 1}
    merge(found, claims.folder_in(dataset.bookkeeping))
    assert dict(asked) == {"ListObjectsV2": 2, "GetObject": 1}


@pytest.fixture
def three(tmp_path: Path, run: Run) -> Project:
    """Three inputs, ingested and tagged."""
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "in" / f"{name}.txt").write_text(f"The text of {name} is short.\n")
    config = {
        "dataset": str(tmp_path / "data"),
        "ingest": [{"format": "text", "from": [f"{tmp_path}/in/*.txt"], "source": "x", "pack": None}],
        "tag": {"shape-0": "line_shape"},
    }
    project = Project(tmp_path, run, config)
    project.ok("run")
    return project


def test_lost_records_of_inputs_are_made_again_by_an_ingest_of_all_of_them(three: Project) -> None:
    before, inputs = tree(three.data), three.data / ".toolkit" / "inputs"
    file = inputs / "records.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-30])
    for part in ((), ("--limit", "1"), ("--shard", "0/2")):
        if part:
            assert three("ingest", *part).code == 0
        ran = three("tag")
        assert (ran.code, "run `toolkit ingest`, which makes again what is lost" in ran.err) == (1, True)
    three.ok("ingest")
    three.ok("tag")
    assert tree(three.data) == before
    assert [path.name for path in inputs.rglob("*") if path.is_file()] == ["records.jsonl.gz"]
    assert sorted(load_all(open_dataset(str(three.data), None, None))) == ["x/a.txt", "x/b.txt", "x/c.txt"]


def test_what_is_forgotten_is_made_again_if_it_is_still_there(three: Project) -> None:
    before = tree(three.data)
    ran = three.ok("clean", "--forget", "x/b.txt", "--dry-run")
    assert "1 input: 1 shard would be deleted" in ran.out
    assert tree(three.data) == before
    three.ok("clean", "--forget", "x/b.txt")
    gone = {"documents/x/b.jsonl.gz", "attributes/shape-0/x/b.jsonl.gz"}
    assert before.keys() - tree(three.data).keys() == gone
    ran = three("clean", "--forget", "x/b.txt")
    assert (ran.code, "expected an input that was ingested" in ran.err) == (2, True)
    assert three.ok("run", "--json").json["ingest"]["skipped"] == 2
    assert tree(three.data) == before
