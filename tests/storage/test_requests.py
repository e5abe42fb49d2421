"""What a bucket is asked for where nothing is to be done: as much for nine shards as for three."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.storage.conftest import bucket, seaweed, use  # noqa: F401  # fixtures
from tests.storage.servers import Faults, Seaweed, proxy
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join

pytestmark = [pytest.mark.s3, pytest.mark.slow]

SMALL, LARGE = 3, 9
TOKENIZER = Path(__file__).parent.parent / "taggers/files/tokenizer.json"
COMMANDS = ("tag", "dedup", "calibrate", "sample", "mix", "tokenize", "run", "status", "dedup --dry-run", "clean")
"""Behind a run; the others of its stages."""


def configured(root: str) -> dict[str, object]:
    return {
        "dataset": root,
        "processes": 1,
        "tag": {"shape-0": "line_shape", "noise-0": "noise"},
        "dedup": {
            "exact-0": {"kind": "exact", "unit": "document", "keep": {"max": "document.chars"}},
            "near-0": {"kind": "near", "preset": "fineweb", "when": "exact.duplicate_of is None"},
            "lines-0": {"kind": "exact", "unit": "line", "as": "again"},
        },
        "calibrate": {"rank-0": {"kind": "rank", "score": "noise.noise"}},
        "sample": {"some-0": {"documents": 5}},
        "tokenize": {"path": f"{root}-tokens", "tokenizer": str(TOKENIZER), "eod": "</s>", "files": "megatron"},
        "mix": {
            "attributes": ["exact-0", "near-0", "lines-0"],
            "orphans": "allow",
            "rules": [
                {"drop": "exact.duplicate_of is not None", "name": "exact_copies"},
                {"drop": "near.duplicate_of is not None", "name": "near_copies"},
            ],
            "output": {"format": "dolma", "path": f"{root}-out"},
        },
    }


def prepare(root: str, shards: int, config: Path) -> None:
    for i in range(shards):
        rows = [{"id": f"{i}-{k}", "text": f"line {k}\nshard {i} {'word ' * k}", "source": "x"} for k in range(4)]
        write_file(join(root, "documents", f"{i}.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    config.write_text(json.dumps(configured(root)))


def test_it_is_asked_for_nothing_of_each_shard(
    tmp_path: Path,
    bucket: str,  # noqa: F811  # a fixture
    seaweed: Seaweed,  # noqa: F811  # a fixture
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, list[Counter[str]]] = {}
    requests = Faults()
    with proxy(lambda: seaweed.port, requests) as url:
        use(monkeypatch, url)
        for shards in (SMALL, LARGE):
            config = tmp_path / f"{shards}.yaml"
            prepare(join(bucket, f"n{shards}"), shards, config)
            assert run("run", "-c", config, "--quiet").code == 0
            for command in COMMANDS:
                before = len(requests.log)
                name, *options = command.split()
                run(name, "-c", config, *options, *([] if name == "status" else ["--quiet"])).succeeds()
                asked.setdefault(command, []).append(Counter(each.split("?")[0] for each in requests.log[before:]))
    more = {command: large.total() - small.total() for command, (small, large) in asked.items()}
    assert {command: few for command, few in more.items() if few >= LARGE - SMALL} == {}, asked
