"""The record log of a dataset: when it is read, and what a store is asked for."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, tree
from toolkit.data import record_logs
from toolkit.data.dataset import open_dataset
from toolkit.data.record_logs import ROWS, open_log
from toolkit.data.row_index import ShardState
from toolkit.execution import leases
from toolkit.records.ingested import load_all
from toolkit.session import current
from toolkit.stages.running import merge
from toolkit.storage import store_of
from toolkit.storage.paths import join
from toolkit.storage.stores.s3 import S3

SHARDS = 300


def test_a_command_sees_what_others_have_written_since(tmp_path: Path) -> None:
    dataset = open_dataset(str(tmp_path), None, None)
    session = current()
    session.begin()
    try:
        first = record_logs.of(dataset)
        open_log(dataset).save({(ROWS, "x"): b"{}"})
        assert record_logs.of(dataset) is first
        assert first.get(ROWS, "x") is None
        stage = session.begin() and session.stage
        assert record_logs.of(dataset).get(ROWS, "x") == b"{}"
        session.begin(stage)
        open_log(dataset).forget([(ROWS, "x")])
        assert record_logs.of(dataset).get(ROWS, "x") == b"{}"
    finally:
        session.begin("")
    assert record_logs.of(dataset).get(ROWS, "x") is None


@pytest.mark.s3
def test_records_cost_a_listing_and_one_request(bucket: str) -> None:
    """However many shards there are."""
    dataset = open_dataset(join(bucket, "data"), None, None)
    state = ShardState(size=1, stamp="etag x", content="0" * 32, rows=1, chars=1, bytes=1, head="0" * 16)
    record_log = open_log(dataset)
    record_log.save({(ROWS, f"{number}.jsonl.gz"): msgspec.json.encode(state) for number in range(SHARDS)})
    merge(record_log, leases.folder_in(dataset.bookkeeping))
    store = store_of(bucket)
    assert isinstance(store, S3)
    asked: Counter[str] = Counter()
    store.client.meta.events.register("before-call.s3", lambda model, **_: asked.update([model.name]))
    found = open_log(dataset)
    assert len(found.keys(ROWS)) == SHARDS
    assert found.load(ROWS, "7.jsonl.gz", ShardState) == state
    assert dict(asked) == {"ListObjectsV2": 1, "GetObject": 1}
    merge(found, leases.folder_in(dataset.bookkeeping))
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
        three("tag").fails(1, "run `toolkit ingest`, which makes again what is lost")
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
    three("clean", "--forget", "x/b.txt").fails(2, "expected an input that was ingested")
    assert three.ok("run", "--json").json["ingest"]["skipped"] == 2
    assert tree(three.data) == before
