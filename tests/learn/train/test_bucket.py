"""`toolkit train` on a dataset in a bucket."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.storage.conftest import bucket, seaweed
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files, remove

__all__ = ["bucket", "seaweed"]


@pytest.mark.s3
@pytest.mark.slow
def test_a_model_in_a_bucket_is_up_to_date_until_a_file_of_it_is_gone(bucket: str, tmp_path: Path, run: Run) -> None:
    rows = [{"id": str(i), "source": "s", "text": f"{'good' if i % 2 else 'bad'} text {i}"} for i in range(40)]
    write_file(join(bucket, "data/documents/a.jsonl"), b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    entry = {"task": "classes", "labels": "1 if document.id > '2' else 0", "buckets": 256, "minimum": 1}
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps({"dataset": join(bucket, "data"), "processes": 1, "train": {"kind-0": entry}}))
    assert run("train", "-c", path).code == 0
    again = run("train", "-c", path)
    assert (again.code, "up to date" in again.out) == (0, True), again.err
    (model,) = [name for name in list_files(join(bucket, "data/models")) if name.endswith(".safetensors")]
    remove(join(bucket, "data/models", model))
    assert "trained" in run("train", "-c", path).out
