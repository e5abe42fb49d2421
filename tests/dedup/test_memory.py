"""Memory is bounded by the option, not by the corpus."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

MB = 1_000_000

PROGRAM = """
import json, random, resource, sys
import numpy, msgspec, xxhash
from pathlib import Path
from tests.dedup.making import dataset_in, make, write_shards
root, lines, memory = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
entry = {"kind": "exact", "unit": "line", "memory": memory}
make(write_shards(root / "small", {"a.jsonl.gz": [{"id": "a", "source": "s", "text": "a\\nb"}]}), {"lines-0": entry})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for shard in range(4):
    rows = ({"id": f"{shard}-{i}", "source": "s", "text": "\\n".join(f"{shard + j} {i}" for j in range(1000))}
            for i in range(lines // 4000))
    write_shards(root, {f"{shard}.jsonl.gz": list(rows)})
made = make(dataset_in(root), {"lines-0": entry}, values=False)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([after - before, made.resolutions["lines-0"].counts]))
"""


@pytest.mark.slow
def test_a_corpus_of_any_size_takes_no_more_than_the_option_says(tmp_path: Path) -> None:
    """Four million hashes take 250 MB at once; a run of a shard takes 70 MB, whatever is asked for."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(4_000_000), str(40 * MB)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    grown, counts = json.loads(found.stdout)
    assert counts == {"lines": 4_000_000, "distinct": 1_003_000, "duplicates": 2_997_000}
    assert grown * 1024 < 130 * MB
