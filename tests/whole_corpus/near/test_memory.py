"""Memory is bounded by the option, and not by how many documents share a bucket."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

MAKE = """
import sys
import numpy as np
from toolkit.whole_corpus.near.minhash import row_type
from toolkit.exchange.checksummed import write_sealed
root, shards, rows = sys.argv[1], *map(int, sys.argv[2:])
random = np.random.default_rng(1)
groups = random.permutation(shards * rows).reshape(-1, 5)
numbers = (groups // rows << 32 | groups % rows).astype("<u8")
pairs = np.stack([numbers[:, :-1], numbers[:, 1:]], axis=2).reshape(-1, 2)  # chains of five
random.permutation(pairs).tofile(f"{root}/pairs")
for shard in range(shards):
    write_sealed(f"{root}/{shard}/rows", np.ones(rows, dtype=row_type("")).tobytes())
"""

RESOLVE = """
import json, sys
from types import SimpleNamespace
import numpy as np
from toolkit.whole_corpus.kind import ResolveJob
from toolkit.whole_corpus.near.components import (
    Comparing, ResolutionLayout, ShardPlace, ToPlan, connect, partitions_of, parts_of, plan_units, save_layout,
    scatter_pairs
)

def run(what, function, tasks):
    return [function(task.payload, print) for task in tasks]

def resolve(root, shards, rows, memory):
    parts, partitions = parts_of(shards * rows, memory), partitions_of(shards * rows, memory)
    objects = []
    with open(f"{root}/pairs", "rb") as stream:
        while data := stream.read(1 << 20):
            pairs = np.frombuffer(data, dtype="<u8").reshape(-1, 2)
            objects += scatter_pairs(f"{root}/of-{len(objects)}", pairs, partitions, both=True)
    comparing = Comparing(bands=14, size=None, jaccard=0.8, containment=0.0, descending=False, ranks="", warn=0.5)
    places = [ShardPlace(folder=f"{root}/{i}/", rows=rows) for i in range(shards)]
    save_layout(root, ResolutionLayout(comparing=comparing, memory=memory, shards=places, own=0, fates=root))
    record = SimpleNamespace(rows=rows)
    signed = [SimpleNamespace(number=i, record=record) for i in range(shards)]
    found = connect(ResolveJob(signed, root, root, "", False, memory, run), root, objects, partitions, parts)
    planned = [plan_units(ToPlan(part=part, folder=root), print) for part in range(parts)]
    return sum(found.values()), sum(each.components for each in planned), max(each.largest for each in planned)

def peak():
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmHWM")) * 1024

small, root, shards, rows, memory = *sys.argv[1:3], *map(int, sys.argv[3:])
resolve(small, 1, 10, memory)  # libraries are loaded
before = peak()
found = resolve(root, shards, rows, memory)
print(json.dumps([peak() - before, *found]))
"""


def run(program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a peak of memory so")
def test_two_million_documents_that_share_buckets_take_what_the_option_says(tmp_path: Path) -> None:
    """All at once they would take 200 MB and more."""
    small, root = (tmp_path / name for name in ("small", "large"))
    for folder, shards, rows in ((small, 1, 10), (root, 8, 250_000)):
        folder.mkdir()
        run(MAKE, folder, shards, rows)
    grown, *found = json.loads(run(RESOLVE, small, root, 8, 250_000, 32_000_000))
    assert found == [2_000_000, 400_000, 5]
    assert grown < 40_000_000, grown
