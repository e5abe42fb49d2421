"""Memory is bounded by the option, not by the corpus."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE

MB = 1_000_000

PROGRAM = """
import json, random, resource, sys
import numpy, msgspec, xxhash
from pathlib import Path
from tests.whole_corpus.making import dataset_in, make, write_shards
root, lines, entry = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
make(write_shards(root / "small", {"a.jsonl.gz": [{"id": "a", "source": "s", "text": "a\\nb"}]}), {"set-0": entry})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for shard in range(4):
    rows = ({"id": f"{shard}-{i}", "source": "s", "text": "\\n".join(f"{shard + j} {i}" for j in range(1000))}
            for i in range(lines // 4000))
    write_shards(root, {f"{shard}.jsonl.gz": list(rows)})
made = make(dataset_in(root), {"set-0": entry}, values=False)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([after - before, made.resolutions["set-0"].counts]))
"""


LINES = {"lines": 4_000_000, "distinct": 1_003_000, "duplicates": 2_997_000}
PASSAGES = {"bytes": 31_134_000, "repeated bytes": 23_328_330, "spans": 3000, "documents with spans": 3000}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "expected"), [({"kind": "exact", "unit": "line"}, LINES), ({"kind": "passages", "length": 40}, PASSAGES)]
)
def test_a_corpus_of_any_size_takes_no_more_than_the_option_says(
    entry: dict[str, Any], expected: dict[str, int], tmp_path: Path
) -> None:
    """Four million hashes take 250 MB at once; a run of a shard takes 70 MB, whatever is asked for."""
    entry = entry | {"memory": 40 * MB}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(4_000_000), json.dumps(entry)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    grown, counts = json.loads(found.stdout)
    assert counts == expected
    assert grown * 1024 < 130 * MB
