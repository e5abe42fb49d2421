"""A server that is away in the middle of a command: it is waited for, no shard fails, the bytes are the same."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.storage.faults import COMMAND, Corpus, lay_out, tree, wet
from tests.storage.servers import Seaweed
from tests.waiting import PATIENCE, wait_until
from toolkit.storage import store_of
from toolkit.storage.paths import join, list_files

pytestmark = [pytest.mark.s3, pytest.mark.slow]

INPUTS = 24
MISSED = "waiting for 127.0.0.1"
BEGUN = {"tag": ("data/attributes/lines-0/", 3), "mix": ("out/.toolkit/stage/", 3)}
"""Where each command writes, and how many files there are when it is in the middle."""


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.of({f"{i:02d}.warc.wet.gz": wet(i, 20, 1_000) for i in range(INPUTS)})


def take_away(server: Seaweed, how: str, seconds: float, is_missed: Callable[[], bool]) -> None:
    """Stop the server so that it hangs, or kill it so that connections are refused; then there is one again.

    So many seconds later; a server that refuses is not there before it is missed.
    """
    if how == "hangs":
        server.signal(signal.SIGSTOP)
        time.sleep(seconds)
        server.signal(signal.SIGCONT)
    else:
        server.kill()
        time.sleep(seconds)
        wait_until(is_missed)
        server.start()


def long(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("command", "how", "seconds"),
    [
        ("tag", "hangs", 8),
        ("mix", "is gone", 8),
        long("tag", "is gone", 8),
        long("mix", "hangs", 8),
        *(long(command, how, 30) for command in BEGUN for how in ("hangs", "is gone")),
    ],
)
def test_a_server_that_is_away_is_waited_for(
    command: str, how: str, seconds: float, bucket: str, seaweed: Seaweed, corpus: Corpus, tmp_path: Path
) -> None:
    root = join(bucket, "corpus")
    path = lay_out(root, corpus.inputs, processes=2)
    for before in ("ingest", "tag", "mix")[: 1 if command == "tag" else 2]:
        subprocess.run([*COMMAND, before, "-c", path, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    folder, count = BEGUN[command]
    log = tmp_path / "log"
    with log.open("wb") as stream:
        run = subprocess.Popen([*COMMAND, command, "-c", path, "--quiet"], stdout=stream, stderr=stream)
    try:
        while run.poll() is None and sum(folder in name for name in list_files(root, hidden=True)) < count:
            pass
        assert run.poll() is None, "it is in the middle"
        take_away(seaweed, how, seconds, lambda: MISSED in log.read_text() or run.poll() is not None)
        assert run.poll() is None, "it waits"
        back = time.monotonic()
        run.wait(PATIENCE)
        done = time.monotonic() - back
    finally:
        run.kill()
        run.wait()
        said = log.read_text()
    assert run.returncode == 0, said
    assert MISSED in said or how == "hangs", said
    if command == "tag":
        subprocess.run([*COMMAND, "mix", "-c", path, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    assert tree(root) == corpus.expected
    assert store_of(bucket).leftovers(bucket, any_owner=True) == []
    assert not [name for name in list_files(root, hidden=True) if "/stage/" in name or "/leases/" in name]
    print(f"{command}, the server {how} for {seconds} s: done {done:.1f} s after it is back\n{said}")
