"""Workers are what is parallel: the libraries in them start no threads of their own."""

import os
import threading
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run
from tests.pipeline.conftest import Project, document, write_rows
from tests.waiting import PATIENCE
from toolkit.execution.blocks import BLOCK_ROWS
from toolkit.execution.processes import ONE_THREAD
from toolkit.session import current
from toolkit.storage.threads import for_each

TAGGER = """
import os
from toolkit import Document, Tagger


class Threads(Tagger):
    '''How many threads there are when the taggers before this one have seen a block.'''

    def tag(self, document: Document) -> int:
        return len(os.listdir("/proc/self/task"))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has one thread in any case")
def test_a_worker_has_two_threads_whatever_the_taggers(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that works, and one that waits for the end of the calling process."""
    pytest.importorskip("tokenizers")
    for name in ONE_THREAD:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # the tagger sets it, in this process too
    monkeypatch.delenv("TOKENIZERS_PARALLELISM")
    (tmp_path / "threads.py").write_text(TAGGER)
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "processes": 2})
    rows = [document(str(i), "the quick brown fox\njumps over it\n" * 9) for i in range(BLOCK_ROWS + 1)]
    for name in "ab":
        write_rows(project.documents / f"{name}.jsonl.gz", rows)
    project.config["tag"] = {
        "heavy-0": [
            "line_language",
            {"tagger": "tokens", "tokenizer": str(ROOT / "tests" / "taggers" / "files" / "tokenizer.json")},
            "statistics",
            "repeated_ngrams",
        ],
        "threads-0": f"{tmp_path}/threads.py:Threads",
    }
    project.ok("tag")
    values = [next(iter(row.values())) for name in "ab" for row in project.values("threads-0", f"{name}.jsonl.gz")]
    assert len(values) == 2 * len(rows)
    assert set(values) == {2}


def test_the_first_error_is_raised_when_those_before_it_have_ended() -> None:
    current().has_remote_stores = True
    ended, others = set[int](), threading.Event()

    def take(number: int) -> int:
        if number == 5:
            others.set()
            raise ValueError(number)
        if number < 5:
            assert others.wait(PATIENCE)
        if number == 7:
            raise ValueError(number)
        ended.add(number)
        return -number

    with pytest.raises(ValueError, match=r"^5$"):
        for_each(take, range(1000))
    assert ended >= {*range(5)}
    assert len(ended) < 900
    assert for_each(lambda number: -number, range(1000)) == [-number for number in range(1000)]
