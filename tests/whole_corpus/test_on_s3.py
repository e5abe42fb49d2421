"""Duplicates of documents on S3 are those of documents on disk, of every kind."""

import json
import signal
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.corpora import of_every_kind
from tests.pipeline.conftest import Project, tree
from tests.pipeline.test_kill import end, start
from tests.recipes import tree as tree_at
from tests.storage.conftest import bucket, seaweed  # noqa: F401  # fixtures
from tests.waiting import wait_until
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files
from toolkit.whole_corpus.near.minhash import SHINGLES

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_the_bytes_are_those_on_disk(tmp_path: Path, bucket: str, run: Run) -> None:  # noqa: F811  # a fixture
    project = of_every_kind(tmp_path, run)
    project.ok("dedup")
    expected = tree(project.attributes)
    assert {name.split("/")[0] for name in expected} == {*project.config["dedup"]}
    root = join(bucket, "corpus")
    for path in project.documents.iterdir():
        write_file(join(root, "documents", path.name), path.read_bytes())
    config = tmp_path / "s3.yaml"
    config.write_text(json.dumps(project.config | {"dataset": root, "processes": 2}))  # with one: the fault matrix
    run("dedup", "-c", config, "--quiet").succeeds()
    assert tree_at(join(root, "attributes")) == expected


@pytest.mark.parametrize("processes", [1, 2])
def test_stored_shingles_are_those_on_disk_after_a_kill_and_with_a_new_shard(
    tmp_path: Path,
    bucket: str,  # noqa: F811  # a fixture
    run: Run,
    processes: int,
) -> None:
    project = of_every_kind(tmp_path, run)
    near = {"kind": "near", "jaccard": 0.7, "memory": 200_000}
    project.config["dedup"] = {"near-0": near}
    project.ok("dedup")  # reads texts again
    expected = tree(project.attributes)
    root = join(bucket, "corpus")
    config = project.config | {"dataset": root, "processes": processes}
    there = Project(tmp_path / "there", run, config | {"dedup": {"near-0": near | {"store_shingles": True}}})
    there.root.mkdir()
    *old, new = sorted(project.documents.iterdir())
    for path in old:
        write_file(join(root, "documents", path.name), path.read_bytes())
    process = start(there, "dedup")
    signatures = join(root, ".toolkit/dedup/near-0/signatures")
    assert wait_until(lambda: process.poll() is not None or _stored(signatures))
    if process.poll() is None:
        end(process, signal.SIGKILL)
    there.ok("dedup")
    write_file(join(root, "documents", new.name), new.read_bytes())
    there.ok("dedup")
    assert len(_stored(signatures)) == len(old) + 1
    assert tree_at(join(root, "attributes")) == expected


def _stored(folder: str) -> list[str]:
    """The files of stored shingles."""
    return [name for name in list_files(folder) if name.endswith(f"/{SHINGLES}")]
