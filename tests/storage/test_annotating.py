"""Answers of a language model for documents in a bucket: the ledger lies with the answers, on a disk."""

import json
from pathlib import Path

import pytest
import yaml

from tests.conftest import Run
from tests.learn.annotate.conftest import PROMPT
from tests.learn.annotate.server import serving
from toolkit.storage.outputs import write_file

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_the_cost_limit_of_a_set_in_a_bucket_holds_over_all_runs(bucket: str, run: Run, tmp_path: Path) -> None:
    for shard in "ab":
        rows = [json.dumps({"id": f"{shard}{i}", "text": f"text {shard} {i}", "source": "s"}) for i in range(20)]
        write_file(f"{bucket}/data/documents/{shard}.jsonl", "\n".join([*rows, ""]).encode())
    with serving() as server:
        entry = {
            "endpoint": server.url,
            "model": "m",
            "prompt": PROMPT,
            "concurrency": 4,
            "answers": f"{tmp_path}/kept",
        }
        entry |= {"sampling": {"max_tokens": 10}, "prices": {"input": 1e6, "output": 1e6}}
        for most in (5, 12, 60):
            config = {"dataset": f"{bucket}/data", "annotate": {"edu-0": {**entry, "max_cost": most * 110}}}
            (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
            ran = run("annotate", "-c", tmp_path / "c.yaml", "--json")
            assert (ran.code, "leaves" in ran.err) == (0 if most == 60 else 1, most < 60), ran.err
            assert len(server.bodies) <= most
            (stage,) = run("status", "-c", tmp_path / "c.yaml", "--json").json["stages"]
            assert stage["spent"]["cost"] == 110 * len(server.bodies)
        assert {*server.answered.values()} == {1}
    assert len(server.bodies) == 40
