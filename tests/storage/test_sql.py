"""Queries and exports in a bucket: the rows and the files are those of a disk."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import document
from tests.recipes import tree
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join

pytestmark = [pytest.mark.s3, pytest.mark.slow]

pytest.importorskip("duckdb", reason="SQL needs DuckDB (extra sql)")

QUERY = (
    'SELECT shard, "row", id, text, noise.chars AS n FROM joined WHERE id NOT IN (SELECT id FROM output) ORDER BY ALL'
)


def test_rows_and_files_are_those_on_disk(tmp_path: Path, bucket: str, run: Run) -> None:
    found = []
    for root in (str(tmp_path), join(bucket, "corpus")):
        for shard in "ab":
            rows = [json.dumps(document(f"{shard}{i}", "x" * i)) + "\n" for i in range(20)]
            write_file(join(root, f"data/documents/{shard}.jsonl"), "".join(rows).encode())
        config = tmp_path / "c.yaml"
        config.write_text(
            json.dumps(
                {
                    "dataset": join(root, "data"),
                    "executor": {"type": "in_process"},
                    "tag": {"noise-0": ["noise"]},
                    "mix": {
                        "attributes": ["noise-0"],
                        "rules": [{"drop": "noise.chars < 5", "name": "short"}],
                        "output": {"format": "dolma", "path": join(root, "out")},
                    },
                }
            )
        )
        for command in ("tag", "mix"):
            assert run(command, "-c", config).code == 0
        asked = run("sql", QUERY, "-c", config, "--json")
        written = run("sql", QUERY, "-c", config, "--output", join(root, "exp/found.parquet"))
        exported = [run("export", "--parquet", join(root, "exp"), "-c", config, "--json") for _ in range(2)]
        assert [each.code for each in (asked, written, *exported)] == [0] * 4, asked.err + written.err
        assert [each.json["written"] for each in exported] == [{"noise-0": 2}, {"noise-0": 0}]
        found.append((asked.json["rows"], tree(join(root, "exp"))))
    assert found[0] == found[1]
    assert len(found[0][0]) == 10
    assert len(found[0][1]) >= 3
