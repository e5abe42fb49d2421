"""Packs of small objects: read some at a time, in their order, into the bytes that files on disk become."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.recipes import tree
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, remove

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def lay_out(root: str, **more: Any) -> str:
    """Write small inputs and a configuration below a root; return the configuration's path."""
    for i in range(60):
        write_file(
            join(root, f"in/{i % 7}/{i:03d}.txt"), f"text {i} has words\n\n{'and lines' * (i % 5)}\n".encode() * i
        )
    config = {
        "dataset": join(root, "data"),
        "ingest": [{"format": "text", "from": join(root, "in/**/*.txt"), "source": "n", "pack": "30 kB"}],
        "tag": {"shape-0": "line_shape"},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": join(root, "out")}},
        **more,
    }
    write_file(join(root, "c.yaml"), json.dumps(config).encode())
    return join(root, "c.yaml")


def made(root: str) -> dict[str, str]:
    return {name: digest for name, digest in tree(root).items() if name.startswith(("data/", "out/"))}


@pytest.mark.parametrize("processes", [1, 2])
def test_packs_of_objects_are_those_of_files(processes: int, bucket: str, tmp_path: Path, run: Run) -> None:
    roots = str(tmp_path / "local"), join(bucket, "corpus")
    for root in roots:
        path = lay_out(root, processes=processes)
        for command in ("run", "validate"):
            run(command, "-c", path).succeeds()
    local, remote = map(made, roots)
    assert remote == local
    assert 1 < sum(name.startswith("data/documents/n/") for name in local) < 20
    for root in roots:
        remove(join(root, "in/0/000.txt"))
        write_file(join(root, "in/3/more.txt"), b"one more\n")
        ran = run("run", "-c", join(root, "c.yaml"), "--json").succeeds()
        told = json.loads(ran.out)["ingest"]
        assert told["lost"] == [join(root, "in/0/000.txt")]
        assert 0 < told["skipped"] < 59
    local, remote = map(made, roots)
    assert remote == local
    assert store_of(bucket).leftovers(bucket, others=True) == []
