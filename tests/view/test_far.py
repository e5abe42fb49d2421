"""A dataset in a bucket is browsed without its shards being read whole."""

import random
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.pipeline.conftest import document, write_rows
from tests.storage.conftest import use
from tests.storage.servers import Faults, Seaweed, proxy
from tests.view.sites import serving

pytestmark = [pytest.mark.s3, pytest.mark.slow]

ROWS = 6000


@pytest.fixture
def config(tmp_path: Path, bucket: str) -> dict[str, Any]:
    """A dataset of one shard of some 10 MB, ingested and tagged in a bucket."""
    lot = random.Random(5)
    texts = (lot.randbytes(lot.randrange(100, 3000)).hex() + f"\n{i}" for i in range(ROWS))
    write_rows(tmp_path / "in.jsonl.gz", (document(f"d-{i}", text) for i, text in enumerate(texts)))
    found: dict[str, Any] = {
        "dataset": f"{bucket}/data",
        "executor": {"type": "in_process"},
        "ingest": [{"format": "jsonl", "from": [str(tmp_path / "in.jsonl.gz")], "source": "s"}],
        "tag": {"shape-0": ["line_shape"], "noise-0": ["noise"]},
    }
    toolkit.ingest(found)
    toolkit.tag(found)
    return found


def test_pages_jumps_and_documents_need_few_requests_and_bytes(
    config: dict[str, Any], seaweed: Seaweed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults()
    with proxy(lambda: seaweed.port, faults) as url:
        use(monkeypatch, url)
        with serving(config, tmp_path / "l.jsonl") as site:
            read = site.server.answers._corpus.pieces  # type: ignore[attr-defined]
            with toolkit.Dataset(config)._context() as context:
                size = context.dataset.sizes()["s/in.jsonl.gz"]

            def cost(work: Any) -> tuple[Any, list[str], int]:
                faults.log.clear()
                before = read.bytes
                found = work()
                return found, list(faults.log), read.bytes - before

            found, asked, got = cost(lambda: site.ids(first=0))
            assert found == [f"d-{i}" for i in range(20)]
            assert len(asked) <= 5  # two of them once, for the hashes that say whether ids repeat
            assert got < size / 4
            found, asked, got = cost(lambda: site.ids(first=4000))
            assert found == [f"d-{i}" for i in range(4000, 4020)]
            assert len(asked) <= 8
            assert got < size / 4
            found, asked, got = cost(lambda: site.ids(first=4020))
            assert found == [f"d-{i}" for i in range(4020, 4040)]
            assert len(asked) <= 2
            found, asked, got = cost(lambda: site.ok("find", id="d-2500"))
            assert found["places"] == [[0, 2500]]
            assert got < size / 4
            found, asked, got = cost(lambda: site.ok("document", shard=0, row=2500))
            assert found["id"] == "d-2500"
            assert {each["set"] for each in found["values"]} == {"shape-0", "noise-0"}
            assert got < size / 4
            found, asked, got = cost(lambda: site.ids(where="line_shape.lines == 2", sort="document.chars", count=5))
            assert len(found) == 5
            assert len(asked) <= 5 * 4 + 8
            assert got < size
