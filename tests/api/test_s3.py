"""A dataset in a bucket, read as one on disk."""

from typing import Any

import pytest

import toolkit
from tests.pipeline.conftest import Project
from tests.storage.conftest import bucket, seaweed
from toolkit.storage.outputs import write_file

pytestmark = [pytest.mark.s3, pytest.mark.slow]

__all__ = ["bucket", "seaweed"]


def _read(root: str) -> list[Any]:
    rows = toolkit.Dataset(root).joined("shape-0", where="line_shape.lines > 1")
    return [(row.document.id, row.document.text, row.attributes) for row in rows]


def test_rows_of_a_bucket_are_those_on_disk(small: Project, bucket: str) -> None:
    for path in small.documents.rglob("*.gz"):
        write_file(f"{bucket}/data/documents/{path.relative_to(small.documents)}", path.read_bytes())
    config = {**small.config, "dataset": f"{bucket}/data"}
    del config["mix"]
    assert toolkit.tag(config).documents == 12
    assert _read(f"{bucket}/data") == _read(str(small.data)) != []
    store = toolkit.Dataset(f"{bucket}/data")
    with pytest.raises(toolkit.ConfigError, match="expected an attribute set in s3://"):
        store.joined("none-0")
