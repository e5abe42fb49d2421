"""The prompt: statements, dot commands, and Ctrl-C, in a real terminal."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pyarrow as pa
import pytest

from tests.pipeline.conftest import Project
from tests.waiting import PATIENCE, wait_until
from toolkit.interrupts import Terminated
from toolkit.session import Session
from toolkit.sql.printing import is_complete
from toolkit.sql.session import Database
from toolkit.sql.streams import Faults, ScanStream
from toolkit.sql.views import STREAM, View


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("select 1", False), ("select 1;", True), ("select ';", False), ("select ';';", True), ('select ";"', False),
        ("select 1; -- so", True), ("select 1 -- ;", False), ("/* ; */", False), ("/* ;", False),
        ("select $$;$$", False),
        ("select $a$ ; $$ $a$;", True), ("", False), ("select 'it''s;", False),
    ],
)  # fmt: skip
def test_a_statement_ends_at_a_semicolon_that_is_one(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_statements_by_a_pipe(small: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = [".tables", "SELECT count(*) AS n", "FROM documents;", ".schema shape_0", ".schema shape", "SELECT x;"]
    (tmp_path / "asked").write_text("\n".join([*asked, ".what", "SELECT 7 AS n"]))
    with (tmp_path / "asked").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        ran = small("sql", "--shell")
    assert ran.code == 1
    assert ran.out.splitlines()[:6] == ["documents", "joined", "shape-0", " n", "--", "12"]
    assert "  noise  STRUCT(chars BIGINT, noise BIGINT)" in ran.out
    assert ran.out.rstrip().endswith("7")
    assert [line.partition(":")[2][:20] for line in ran.err.splitlines()] == [
        " expected a view, go", " sql:1:8: Binder Err", " expected .help, .ta"
    ]  # fmt: skip


@pytest.mark.slow
def test_ctrl_c_ends_a_query_and_not_the_shell(small: Project) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "toolkit", "sql", "--shell", "-c", str(small.yaml)]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env={**os.environ, "TERM": "dumb"}
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    said = b""

    def until(text: bytes) -> bool:
        nonlocal said
        try:
            said += os.read(ours, 1 << 16)
        except BlockingIOError:
            pass
        except OSError:  # it has ended
            return True
        return text in said

    try:
        wait_until(lambda: until(b"sql> "))
        said = b""
        os.write(ours, b"SELECT 1 AS half,\n")
        wait_until(lambda: until(b"...> "))
        os.kill(process.pid, signal.SIGINT)
        wait_until(lambda: until(b"sql> "))
        said = b""
        os.write(ours, b"SELECT 'beg' || 'un' AS x; SELECT count(*) FROM range(1000000000000) WHERE hash(range) = 3;\n")
        wait_until(lambda: until(b"= 3;"))
        tasks = Path(f"/proc/{process.pid}/task")
        wait_until(lambda: not tasks.exists() or _is_busy(process.pid))
        os.kill(process.pid, signal.SIGINT)
        wait_until(lambda: until(b"interrupted"))
        said = b""
        os.write(ours, b"SELECT 40 + 2 AS n;\n")
        wait_until(lambda: until(b"42"))
        os.write(ours, b".quit\n")
        wait_until(lambda: until(b"no such text") or process.poll() is not None)
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _is_busy(pid: int) -> bool:
    """Whether a process computes, and does not wait for keys."""
    return "R" in {path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")}


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_a_signal_ends_a_query(number: signal.Signals, status: int, small: Project, tmp_path: Path) -> None:
    (tmp_path / "spill").mkdir()
    sql = "SELECT count(*) FROM range(1000000000000) WHERE hash(range) = 3"
    command = [sys.executable, "-m", "toolkit", "sql", sql, "-c", str(small.yaml)]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path / "spill")}, stderr=subprocess.PIPE)
    try:
        spill = tmp_path / "spill"  # one folder is the command's, the other its database's
        assert wait_until(lambda: len([*spill.iterdir()]) == 2 and _is_busy(process.pid))
        process.send_signal(number)
        said = process.communicate(timeout=PATIENCE)[1]
        assert (process.returncode, b"Traceback" in said) == (status, False)
        assert list((tmp_path / "spill").iterdir()) == []
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_ctrl_c_before_a_query_begins_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with Database({}, Faults(), memory=1 << 30, threads=1) as session:
        begin, submit = Event(), session._thread.submit

        def interrupted(work: Callable[[], Any]) -> Future[Any]:
            done = submit(lambda: (begin.wait(PATIENCE), work())[1])
            signal.raise_signal(signal.SIGINT)
            Timer(0.5, begin.set).start()
            return done

        with monkeypatch.context() as patched:
            patched.setattr(session._thread, "submit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                session.execute("SELECT count(*) FROM range(1000000000000) WHERE hash(range) = 3")
        assert list(session.execute("SELECT 1 AS n").rows()) == [(1,)]


@pytest.mark.parametrize("signalled", [KeyboardInterrupt, Terminated])
def test_a_signal_while_our_reader_works_is_no_error_of_the_query(signalled: type[BaseException]) -> None:
    class Signalled(ScanStream):
        def batches(self, columns: frozenset[str]) -> Iterator[dict[str, Any]]:
            yield {"n": pa.array([1])}
            raise signalled

    faults = Faults()
    stream = Signalled(pa.schema([("n", pa.int64())]), faults, Session())
    views = {"numbers": lambda: View(stream, f"SELECT n FROM {STREAM}")}
    with Database(views, faults, memory=1 << 30, threads=1) as session:
        with pytest.raises(signalled):
            list(session.execute("SELECT n FROM numbers").rows())
        with pytest.raises(signalled):
            list(session.batches("SELECT n FROM numbers"))
