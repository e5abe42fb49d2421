"""Rows in blocks, and what processes make of them: in order, not far ahead, errors in their place, nothing left."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.execution.functions import ACTS, MADE, Tell, act, act_late, cannot_be_made, dies_once, meet
from tests.execution.tasks import is_alive
from tests.waiting import PATIENCE, wait_until
from toolkit.errors import AlignmentError, DataError, ToolkitError
from toolkit.execution import blocks
from toolkit.execution.blocks import Block, in_blocks, in_order, next_block, threads_for
from toolkit.execution.pool import AHEAD

ROOT = Path(__file__).parent.parent.parent


def broken(lines: list[bytes], error: Exception) -> Iterator[bytes]:
    yield from lines
    raise error


# --- cutting ----------------------------------------------------------------------------------------------------------


def rows(n: int, size: int = 3) -> list[bytes]:
    return [b"%d" % i + b"x" * size for i in range(n)]


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 9, 400])
def test_blocks_have_all_lines_in_order_and_no_more_than_so_many(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 4)
    found = list(in_blocks(iter(rows(n))))
    assert [line for block in found for line in block] == rows(n)
    assert [len(block.lines) for block in found] == [4] * (n // 4) + [n % 4] * (n % 4 > 0)


def test_a_block_ends_behind_the_line_that_makes_it_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 10)
    lines = [b"1234", b"56789", b"", b"0", b"x" * 100, b"1234567890", b"", b"", b"last"]
    assert [block.lines for block in in_blocks(iter(lines))] == [lines[:4], lines[4:5], lines[5:6], lines[6:]]


@pytest.mark.parametrize("n", range(10))
def test_what_keeps_a_file_from_being_read_comes_behind_its_last_line(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 4)
    fault = DataError("truncated", path="a", line=n + 1)
    found = list(in_blocks(broken(rows(n), fault)))
    assert [len(block.lines) for block in found] == [4] * (n // 4) + [n % 4], "the last has the fault, and may be empty"
    assert [block.fault for block in found] == [None] * (n // 4) + [fault]
    got: list[bytes] = []
    with pytest.raises(DataError) as raised:
        got.extend(line for block in found for line in block)
    assert raised.value is fault
    assert [line for block in found for line in block.lines] == rows(n)


def test_the_same_rows_of_another_file_may_be_fewer_or_end_in_a_fault() -> None:
    lines = iter(rows(5))
    assert [next_block(lines, n).lines for n in (2, 0, 2, 2, 2)] == [rows(5)[:2], [], rows(5)[2:4], rows(5)[4:], []]
    fault = DataError("damaged")
    damaged = broken(rows(3), fault)
    assert next_block(damaged, 3) == Block(rows(3)), "it is not read further than asked"
    assert next_block(damaged, 3) == Block([], fault)
    assert next_block(damaged, 3) == Block()


def test_nothing_compresses_in_threads_where_one_process_does_it_all() -> None:
    assert [threads_for(n) for n in range(4)] == [0, 0, 2, 3]


# --- helpers ----------------------------------------------------------------------------------------------------------


def children(of: int | None = None) -> set[int]:
    """Processes of which this (or another) is the parent; not what `multiprocessing` keeps for itself."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            command = path.with_name("cmdline").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == (of or os.getpid()) and command and "resource_tracker" not in command:
            found.add(int(path.parent.name))
    return found


@pytest.fixture(autouse=True)
def _nothing_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves a process or a thread."""
    before, threads = children(), threading.active_count()
    yield
    assert wait_until(lambda: children() <= before), "no process is left"
    assert wait_until(lambda: threading.active_count() <= threads), "no thread is left"


def collected(results: Iterator[Any]) -> tuple[list[Any], BaseException | None]:
    """What came, and the error behind it."""
    found: list[Any] = []
    try:
        found.extend(results)
    except BaseException as error:
        return found, error
    return found, None


def before(work: dict[int, str], processes: int, n: int = 6, make: Any = act) -> tuple[list[int], BaseException | None]:
    """The blocks that came before the error, and the error."""
    found, error = collected(in_order(make, work, iter(range(n)), processes))
    return [block for block, _ in found], error


SLOW = pytest.mark.slow
ONE_AND_TWO = pytest.mark.parametrize("processes", [1, 2])


# --- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [0, 3])
def test_results_come_in_the_order_of_the_blocks_from_functions_made_once_in_each_process(processes: int) -> None:
    MADE.clear()
    found = list(in_order(Tell, "slow first", iter(range(12)), processes))
    assert [(each.block, each.work) for each in found] == [(n, "slow first") for n in range(12)]
    assert {each.made for each in found} == {1}
    pids = {each.pid for each in found}
    for pid in pids:
        calls = [each.called for each in found if each.pid == pid]
        assert sorted(calls) == list(range(1, len(calls) + 1))
    assert 1 <= len(pids) <= max(processes, 1)
    assert (os.getpid() in pids) == (processes < 2)


def test_two_processes_work_on_two_blocks_at_a_time(tmp_path: Path) -> None:
    assert list(in_order(meet, str(tmp_path), iter(range(2)), 2)) == [True, True]


@ONE_AND_TWO
def test_no_blocks_give_no_results_and_start_nothing(processes: int) -> None:
    assert list(in_order(Tell, None, iter([]), processes)) == []
    started = children()
    results = in_order(Tell, None, broken([], DataError("not read")), processes)
    assert children() == started
    assert isinstance(collected(results)[1], DataError)


@pytest.mark.parametrize("processes", [1, 2])
def test_blocks_are_read_a_few_ahead_and_no_more(processes: int) -> None:
    read = 0

    def source() -> Iterator[int]:
        nonlocal read
        while True:
            read += 1
            yield read

    results = in_order(Tell, None, source(), processes)
    assert read == 0, "nothing before the first result is asked for"
    limit = 0 if processes == 1 else AHEAD * processes
    for given, _ in enumerate(islice(results, 30), 1):
        assert given <= read <= given + limit
    time.sleep(0.05)
    assert read <= 30 + limit, "nobody reads on by itself"
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert read <= 30 + limit


# --- errors -----------------------------------------------------------------------------------------------------------


@ONE_AND_TWO
def test_the_first_error_in_order_wins_however_long_its_block_takes(processes: int) -> None:
    found, error = before({2: "data error", 3: "error"}, processes, make=act_late)
    assert found == [0, 1]
    assert type(error) is AlignmentError
    assert (error.message, error.path, error.line, error.id) == ("expected a, got b", "p", 7, "x")
    assert str(error) == "p:7: expected a, got b (document 'x')"


@ONE_AND_TWO
def test_an_error_of_reading_comes_behind_those_of_what_was_read_before(processes: int) -> None:
    fault = DataError("expected sound compressed data", path="a", line=5)

    def source(n: int) -> Iterator[int]:
        yield from range(n)
        raise fault

    for work, number, expected in (({}, 4, repr(fault)), ({2: "error"}, 2, "ValueError('cannot')")):
        found, error = collected(in_order(act, work, source(4), processes))
        assert ([block for block, _ in found], repr(error)) == (list(range(number)), expected)


@ONE_AND_TWO
def test_an_error_of_the_disk_also_comes_in_its_order(processes: int) -> None:
    def source() -> Iterator[int]:
        yield from range(4)
        raise OSError(5, "Input/output error")

    found, error = collected(in_order(act, {2: "data error"}, source(), processes))
    assert [block for block, _ in found] == [0, 1]
    assert isinstance(error, AlignmentError)


@ONE_AND_TWO
@pytest.mark.parametrize(
    "kind", [*(pytest.param(kind, marks=SLOW) for kind in ("bad configuration", "error")), "panic"]
)
def test_errors_of_all_kinds_are_raised_as_they_are(kind: str, processes: int) -> None:
    found, error = before({0: kind}, processes, 1)
    assert found == []
    with pytest.raises(BaseException) as expected:
        ACTS[kind]()
    assert (type(error), str(error)) == (type(expected.value), str(expected.value))


@ONE_AND_TWO
def test_a_function_that_raises_stop_iteration_does_not_end_the_stream(processes: int) -> None:
    found, error = before({1: "stop"}, processes, 4)
    assert found == [0]
    assert error is not None, "three blocks have vanished without a word"
    assert "no element" in f"{error} {error.__cause__}"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("needs two", "NeedsTwo: was not found, code 3"),
        pytest.param("local error", "Local: of a class that nobody finds", marks=SLOW),
        pytest.param("unpicklable", "lambda", marks=SLOW),
        ("cannot be loaded", "nothing to load"),
    ],
)
def test_what_cannot_be_sent_is_an_error_that_says_what_it_was_and_no_hang(kind: str, said: str) -> None:
    """Nor is it taken for the death of a process."""
    found, error = before({0: kind}, 2, 1)
    assert found == []
    assert isinstance(error, Exception)
    assert said in str(error)
    assert "memory" not in str(error)


@ONE_AND_TWO
def test_a_function_that_cannot_be_made_is_the_error_that_it_is(
    processes: int, capfd: pytest.CaptureFixture[str]
) -> None:
    _, error = collected(in_order(cannot_be_made, None, iter(range(1)), processes))
    assert str(error) == "list.txt: expected a readable list, got none"
    assert capfd.readouterr() == ("", "")


# --- ends -------------------------------------------------------------------------------------------------------------


def fail_at_first(results: Iterator[Any]) -> None:
    for result in results:
        raise KeyError(result)


@pytest.mark.parametrize("how", ["closed", "error of the caller", "error of a block"])
def test_all_processes_end_with_the_generator(how: str) -> None:
    results = in_order(act, {7: "error"} if how == "error of a block" else {}, iter(range(12)), 2)
    pids = children() & {pid for _, pid in islice(results, 4)}
    assert all(is_alive(pid) for pid in pids)
    if how == "closed":
        results.close()  # type: ignore[attr-defined]  # it is a generator
    elif how == "error of the caller":
        with pytest.raises(KeyError):
            fail_at_first(results)
        del results
    else:
        assert isinstance(collected(results)[1], ValueError)
    assert not any(is_alive(pid) for pid in pids)


def test_closing_does_not_wait_for_blocks_that_take_long() -> None:
    results = in_order(act, dict.fromkeys(range(1, 10), "waits"), iter(range(10)), 2)
    assert next(results)[0] == 0
    results.close()  # type: ignore[attr-defined]  # it is a generator; a test that lasts as long as a block is ended
    assert next(results, None) is None


@pytest.mark.parametrize(
    ("kind", "how"), [("killed", "was ended by SIGKILL"), pytest.param("exits", "ended with status 3", marks=SLOW)]
)
def test_a_process_that_dies_twice_is_an_error_in_order_and_the_others_end(kind: str, how: str) -> None:
    found, error = collected(in_order(act, {3: kind}, iter(range(40)), 2, "a.jsonl.gz"))
    assert [block for block, _ in found] == [0, 1, 2]
    assert type(error) is ToolkitError
    expected = f"a process that worked on a part of it {how}, twice; was the memory exhausted?"
    assert str(error) == f"a.jsonl.gz: {expected}"


@pytest.mark.slow
def test_a_process_that_dies_costs_its_block_one_retry_and_each_block_has_its_own(tmp_path: Path) -> None:
    found, error = collected(in_order(dies_once, str(tmp_path), iter(range(8)), 2))
    assert error is None
    assert [block for block, _ in found] == list(range(8))
    assert sorted(os.listdir(tmp_path)) == ["1", "2", "7"]
    assert os.getpid() not in {pid for _, pid in found}


def test_a_process_that_is_killed_from_outside_costs_a_retry_too() -> None:
    results = in_order(act, {}, iter(range(300)), 2)
    found = [next(results)]
    killed = found[0][1]
    os.kill(killed, signal.SIGKILL)
    more, error = collected(results)
    assert error is None
    assert [block for block, _ in found + more] == list(range(300))
    assert more[-1][1] != killed
    assert len({pid for _, pid in found + more} - {killed}) == 2, "another one takes its place"


SCRIPT = """
import os, sys
from tests.execution.functions import act
from toolkit.execution.blocks import in_order

if __name__ == "__main__":
    work = eval(sys.argv[1])
    try:
        for result in in_order(act, work, iter(range(200)), 2):
            print(*result if isinstance(result, tuple) else "?", flush=True)
    except Exception as error:
        print(error, flush=True)
"""


def start(tmp_path: Path, work: dict[int, str]) -> subprocess.Popen[str]:
    """A process of its own, in a group of its own, that calls `act` for some blocks."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(script), repr(work)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def is_gone(group: int) -> bool:
    """Whether no process of a group runs any more."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its = path.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its) == group and state != "Z":
            return False
    return True


def end_group(group: int) -> None:
    """Kills what is left of a group that was started here."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGTERM, signal.SIGINT))]
)
def test_processes_end_when_their_parent_is_killed(how: signal.Signals, tmp_path: Path) -> None:
    with start(tmp_path, {150: "waits"}) as parent:
        try:
            assert parent.stdout
            pids = {int(line.split()[1]) for line in islice(parent.stdout, 5)}
            assert all(is_alive(pid) for pid in pids)
            parent.send_signal(how)
            parent.stdout.read()
            assert parent.wait(PATIENCE) != 0
            assert wait_until(partial(is_gone, parent.pid))
        finally:
            end_group(parent.pid)


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_sends_does_not_stop_the_run(tmp_path: Path) -> None:
    """Half an answer is none: the block is retried."""
    with start(tmp_path, {9: "half sent"}) as parent:
        try:
            out, errors = parent.communicate(timeout=PATIENCE)
            assert [line.split()[0] for line in out.splitlines()[:9]] == [str(n) for n in range(9)], out
            assert "was ended by SIGKILL, twice" in out.splitlines()[9]
            assert (len(out.splitlines()), errors) == (10, "")
        finally:
            end_group(parent.pid)
