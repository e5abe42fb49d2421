"""Values of others by id in a bucket: documents, values and set there are those of a disk."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.test_align import documents_of, values_of
from tests.recipes import tree
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_the_set_is_that_on_disk(tmp_path: Path, bucket: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies between inputs and set is in `TMPDIR`, and is deleted; a changed object makes the set stale."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    documents_of(tmp_path)
    found = []
    for root in (str(tmp_path), join(bucket, "corpus")):
        for shard in "ab":
            path = f"data/documents/{shard}.jsonl"
            write_file(join(root, path), (tmp_path / path).read_bytes())
        for part in range(2):
            rows = "".join(json.dumps(row) + "\n" for row in values_of()[part::2])
            write_file(join(root, f"values/{part}.jsonl"), rows.encode())
        config = tmp_path / "own.yaml"
        config.write_text(
            json.dumps(
                {
                    "dataset": join(root, "data"),
                    "processes": 2,
                    "align": {"v-0": {"from": join(root, "values/*.jsonl"), "id": "key.id", "values": ["quality"]}},
                    "mix": {
                        "attributes": ["v-0"],
                        "rules": [{"keep": "quality is not None and quality > 1"}],
                        "output": {"format": "dolma", "path": join(root, "out")},
                    },
                }
            )
        )
        for command in ("align", "mix", "validate", "align"):
            ran = run(command, "-c", config, "--json").succeeds()
        assert ran.json["sets"]["v-0"]["written"] == 0
        found.append(tree(join(root, "data/attributes")) | tree(join(root, "out/documents")))
    assert found[0] == found[1] != {}
    assert list((tmp_path / "tmp").iterdir()) == []
    write_file(join(bucket, "corpus/values/0.jsonl"), b'{"key": {"id": 1}, "quality": 9.0}\n')
    run("mix", "-c", config).fails(1, "run `toolkit align`")
