"""What a tagger is asked of at once is a matter of the rows of a shard, so that a model computes the same batches."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, tree, write_rows

TAGGER = '''
import zlib
from collections.abc import Sequence
from typing import Annotated
from toolkit import Document, Example, Tagger
from toolkit.text import Batches, BatchOption

class Together(Tagger):
    """Of each text how many there are in its batch, and which: what a model's rounding may depend on."""
    EXAMPLES = (Example("", [1, zlib.crc32(b"id")]),)
    batch: BatchOption = Batches(documents=7, tokens=2100)

    def tag_batch(self, documents: Sequence[Document]) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for batch in self.batch.of([len(document.text) for document in documents]):
            ids = ",".join(documents[i].id for i in batch)
            found |= {i: [len(batch), zlib.crc32(ids.encode())] for i in batch}
        return [found[i] for i in range(len(documents))]
'''


def made(root: Path, run: Run, **config: Any) -> Project:
    root.mkdir()
    (root / "together.py").write_text(TAGGER)
    for i in range(2):
        rows = [document(f"{i}-{j}", "word " * (j * 37 % 61), n=j, metadata={"n": j}) for j in range(700)]
        write_rows(root / "in" / f"{i}.jsonl", rows)
    tagger = f"{root}/together.py:Together"
    return Project(
        root,
        run,
        {
            "dataset": str(root / "data"),
            "ingest": [{"format": "jsonl", "from": f"{root}/in/*.jsonl", "source": "s"}],
            "tag": {
                "all-0": {"tagger": tagger, "as": "every"},
                "some-0": {"tagger": tagger, "as": "some", "when": "document.metadata['n'] % 3 == 0"},
            },
            **config,
        },
    )


@pytest.mark.slow
def test_batches_are_the_same_for_any_number_of_processes_in_one_pass_and_in_two_commands(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {"executor": {"type": "in_process"}}
    one, two, passed = (made(tmp_path / name, run, **here) for name in ("one", "two", "passed"))
    one.ok("ingest")
    one.ok("tag")
    passed.ok("run")
    monkeypatch.setattr("toolkit.execution.workers.LARGE", 1)  # so that both processes work on one shard
    two.config |= {"executor": {"type": "local"}, "processes": 2}
    two.ok("ingest")
    two.ok("tag", "--limit", "1")
    two.ok("tag")
    assert tree(one.attributes) == tree(two.attributes) == tree(passed.attributes)

    (shard, *_) = sorted(path.relative_to(one.documents) for path in one.documents.rglob("*.jsonl.gz"))
    rows = one.values("some-0", str(shard))
    assert [i for i, row in enumerate(rows) if row["some"] is None] == [i for i in range(700) if i % 3]
    assert json.dumps([row["some"][0] for row in rows if row["some"]]).count("7") > 100, "only asked rows count"
