"""Near duplicates of documents on S3 are those of documents on disk."""

import json

import pytest

from tests.conftest import Run
from tests.dedup.near.conftest import Near
from tests.dedup.near.test_near import planted
from tests.pipeline.conftest import tree
from tests.recipes import tree as tree_at
from tests.storage.conftest import bucket, seaweed  # noqa: F401  # fixtures
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_the_bytes_are_those_on_disk(near: Near, bucket: str, run: Run) -> None:  # noqa: F811  # a fixture
    near.write(planted(3, 40), shards=4)
    near.near()
    expected = tree(near.attributes)
    root = join(bucket, "corpus")
    for path in (near.documents / "cc").iterdir():
        write_file(join(root, "documents/cc", path.name), path.read_bytes())
    config = near.root / "s3.yaml"
    for processes in (1, 2):
        config.write_text(json.dumps(near.config | {"dataset": root, "processes": processes}))
        ran = run("dedup", "-c", config, "--quiet", "--overwrite")
        assert ran.code == 0, ran.out + ran.err
        assert tree_at(join(root, "attributes")) == expected
