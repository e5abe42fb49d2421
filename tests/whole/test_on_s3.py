"""Duplicates of documents on S3 are those of documents on disk, of every kind."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import tree
from tests.pipeline.test_dedup_kills import prepare_every_kind
from tests.recipes import tree as tree_at
from tests.storage.conftest import bucket, seaweed  # noqa: F401  # fixtures
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_the_bytes_are_those_on_disk(tmp_path: Path, bucket: str, run: Run) -> None:  # noqa: F811  # a fixture
    project = prepare_every_kind(tmp_path, run)
    project.ok("dedup")
    expected = tree(project.attributes)
    assert {name.split("/")[0] for name in expected} == {*project.config["dedup"]}
    root = join(bucket, "corpus")
    for path in project.documents.iterdir():
        write_file(join(root, "documents", path.name), path.read_bytes())
    config = tmp_path / "s3.yaml"
    config.write_text(json.dumps(project.config | {"dataset": root, "processes": 2}))  # with one: the fault matrix
    ran = run("dedup", "-c", config, "--quiet")
    assert ran.code == 0, ran.out + ran.err
    assert tree_at(join(root, "attributes")) == expected
