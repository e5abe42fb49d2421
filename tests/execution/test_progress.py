"""Progress: its arithmetic with a clock of the test's own, what executors report, and what is shown."""

import os
import pickle
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from tests.conftest import ROOT, Run
from tests.execution.tasks import half, shout
from tests.pipeline.conftest import Project, document, write_rows
from tests.waiting import PATIENCE
from toolkit.execution import progress
from toolkit.execution.blocks import BLOCK_ROWS
from toolkit.execution.executors import Executor, Report, Task
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.executors.local import Local
from toolkit.execution.node import TOKEN_BYTES, DriverServer, ProgressUpdate, TaskReply, driver_state, run_remote
from toolkit.execution.processes import ONE_THREAD
from toolkit.execution.progress import Pace, Position, Progress, Share
from toolkit.session import current
from toolkit.storage.threads import for_each
from toolkit.storage_options import size_in_words

MB = 10**6


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# --- arithmetic -------------------------------------------------------------------------------------------------------


def test_what_is_left_is_told_from_bytes_that_were_worked_on() -> None:
    clock = Clock()
    pace = Pace([30 * MB, 10 * MB, 60 * MB], clock)
    assert (pace.total, pace.bytes_done, pace.seconds_left()) == (100 * MB, 0, None)
    pace.end(60 * MB, 0)  # it was up to date
    assert (pace.bytes_done, pace.rate(), pace.seconds_left()) == (60 * MB, 0, None)
    clock.now = 5
    pace.add(100, 10 * MB)
    assert (pace.bytes_done, pace.rate(), pace.seconds_left()) == (70 * MB, 2 * MB, 15)
    pace.add(10, 10 * MB)
    pace.end(30 * MB, 20 * MB)  # its last bytes held no document
    assert (pace.bytes_done, pace.documents, pace.tasks) == (90 * MB, 110, 2)
    assert pace.mean() == 4 * MB


def test_the_rate_is_that_of_the_last_minute() -> None:
    clock = Clock()
    pace = Pace([10_000 * MB], clock)
    for second in range(200):
        clock.now = second
        pace.add(1, MB if second < 100 else 3 * MB)
        pace.look()
    assert pace.rate() == 3 * MB
    assert pace.mean() == pytest.approx(400 / 199 * MB)


@pytest.mark.parametrize("sizes", [[None, 5], [None], [0, 0], []])
def test_without_all_sizes_nothing_is_said_of_what_is_left(sizes: list[int | None]) -> None:
    clock = Clock()
    pace = Pace(sizes, clock)
    pace.add(3, 50)
    clock.now = 10
    assert (pace.total, pace.seconds_left(), pace.bytes_done, pace.rate()) == (None, None, 50, 5)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 150), st.booleans()), min_size=1))
def test_what_is_done_never_shrinks_nor_exceeds_what_there_is(tasks: list[tuple[int, int, bool]]) -> None:
    pace = Pace([size for size, _, _ in tasks], Clock())
    before = 0
    for size, worked, skipped in tasks:
        if not skipped:
            pace.add(1, worked)
            assert pace.total is None or before <= pace.bytes_done <= pace.total
        pace.end(size, 0 if skipped else worked)
        assert pace.total is None or pace.bytes_done <= pace.total
        before = pace.bytes_done
    assert pace.bytes_done == (pace.total or 0)


def test_a_position_reports_what_was_read_since_it_last_did() -> None:
    at, seen = [0], list[tuple[int, int]]()
    position = Position(lambda *report: seen.append(report), lambda: at[0])
    for now, documents in ((7, 2), (7, 1), (20, 5)):
        at[0] = now
        position(documents)
    assert seen == [(2, 7), (1, 0), (5, 13)]


@given(st.integers(0, 50), st.integers(0, 10**9), st.lists(st.integers(0, 9)))
def test_a_share_reports_no_more_than_there_is_and_all_of_it_at_the_end(
    whole: int, size: int, steps: list[int]
) -> None:
    seen: list[tuple[int, int]] = []
    share = Share(lambda *report: seen.append(report), whole, size)
    for step in steps:
        share(step)
    assert sum(documents for documents, _ in seen) == sum(steps)
    told = sum(more for _, more in seen)
    assert told == min(size * sum(steps) // max(whole, 1), size)
    assert all(more >= 0 for _, more in seen)


# --- executors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [InProcess, lambda report: Local(report, processes=2)], ids=["in process", "local"])
def test_a_result_says_what_its_task_reported(kind: Callable[[Report], Executor]) -> None:
    results = kind(lambda documents, size: None).run(shout, [Task(name, name) for name in ("a", "bb")])
    assert {result.name: result.reported for result in results} == {"a": 1, "bb": 2}


def test_what_a_worker_did_that_died_is_taken_back(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    executor = Local(lambda *report: seen.append(report), processes=2)
    names = [str(tmp_path / "dies"), str(tmp_path / "lives")]
    assert [result.reported for result in executor.run(half, [Task(name, name) for name in names])] == [5, 5]
    assert [sum(column) for column in zip(*seen, strict=True)] == [2, 10]


def tell_all(payload: int, report: Report) -> int:
    for _ in range(payload):
        report(1, 10)
    return payload


def test_a_node_tells_the_driver_what_it_does_while_it_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.execution.node.NEWS_SECONDS", 0.0)
    token = b"t" * TOKEN_BYTES
    with DriverServer("127.0.0.1") as lifeline:
        given = driver_state(lifeline.address)._replace(token=token)
        returned = pickle.loads(run_remote(given, pickle.dumps((tell_all, Task("a", 3)))))
    assert isinstance(returned, TaskReply)
    assert (returned.documents, returned.bytes) == (3, 30)
    news = list(lifeline.news())  # the server reads on until the connection ends, or is told to stop
    assert set(news) <= {ProgressUpdate(token, 1, 10)}
    assert len(news) <= 3


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_a_step_over_the_whole_dataset_counts_its_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    """It reads neither documents nor bytes of inputs: none are shown."""
    with Progress("resolving", [None], "tasks") as shown:
        shown.end(None, 0)
    assert re.fullmatch(r"resolving: 1/1 tasks, \S+ s done\n", capsys.readouterr().err)


@pytest.mark.parametrize(("columns", "has_tasks"), [(80, False), (200, True)])
def test_facts_leave_room_for_the_bar(monkeypatch: pytest.MonkeyPatch, columns: int, has_tasks: bool) -> None:
    monkeypatch.setattr(progress, "_columns", lambda: columns)
    clock, bar = Clock(), SimpleNamespace(n=0, ncols=0, facts="", refresh=lambda: None)
    shown = Progress("12 of 13: calibrate", [30_000 * MB, 70_000 * MB], clock=clock)
    clock.now = 100
    shown.report(123_456_789, 20_000 * MB)
    shown._draw(bar)
    assert bar.facts.startswith("20.0 of 100.0 GB")
    assert ("0/2 shards" in bar.facts) == has_tasks
    assert len("12 of 13: calibrate:  20 %|| ") + len(bar.facts) <= columns - 10


def test_a_line_every_ten_seconds_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    shown = Progress("2 of 3: tag", [30 * MB, 70 * MB], clock=clock)
    shown.report(1234, 20 * MB)
    clock.now = 9.9
    shown.show()
    assert capfd.readouterr().err == ""
    clock.now = 10.0
    shown.show()
    shown.show()
    line = "2 of 3: tag: 0/2 shards, 1,234 documents, 20.0 of 100.0 MB, 2.0 MB/s, 10 s, about 40 s left\n"
    assert capfd.readouterr().err == line
    clock.now = 20
    shown.report(766, 10 * MB)
    shown.end(30 * MB, 30 * MB)
    shown.show()
    line = "2 of 3: tag: 1/2 shards, 2,000 documents, 30.0 of 100.0 MB, 1.5 MB/s, 20 s, about 47 s left\n"
    assert capfd.readouterr().err == line


def test_the_last_line_has_the_mean(capfd: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Progress("ingest", [None], "inputs", clock=clock) as shown:
        clock.now = 4
        shown.report(1, 10 * MB)
        shown.end(None, 10 * MB)
    assert capfd.readouterr().err == "ingest: 1/1 inputs, 1 document, 10.0 MB, 2.5 MB/s, 4.0 s done\n"
    with pytest.raises(ValueError), Progress("ingest", [1], quiet=True):
        raise ValueError
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [
        (0, 0, "0.0 of 0.0 MB"),
        (1_500_000, None, "1.5 MB"),
        (500 * MB, 2_000 * MB, "0.5 of 2.0 GB"),
        (10**12, 7 * 10**12, "1.0 of 7.0 TB"),
    ],
)
def test_sizes_are_in_the_unit_of_the_larger(done: int, total: int | None, text: str) -> None:
    assert size_in_words(done, total) == text


# Workers are what is parallel: the libraries in them start no threads of their own.

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
