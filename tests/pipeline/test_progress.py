"""Progress of runs: through a terminal, through a pipe, from the web, and of what was done before."""

import fcntl
import os
import pty
import random
import re
import struct
import subprocess
import sys
import termios
from typing import Any

import pytest
import yaml

from tests.marks import slow
from tests.pipeline.conftest import Project, document, write_rows
from tests.pipeline.test_crawl import entry, write_crawl
from tests.storage.web_server import Behaviour, web
from tests.waiting import PATIENCE
from toolkit.execution import progress
from toolkit.execution.progress import Pace, Progress

pytestmark = pytest.mark.slow

MB = 10**6


@pytest.fixture
def large(project: Project) -> Project:
    """An input whose blocks are many, from ingest to the output."""
    chosen = random.Random(15)
    rows = (document(str(i), chosen.randbytes(1500).hex(" ", 4)) for i in range(2000))
    path = write_rows(project.root / "in" / "a.jsonl.gz", rows)
    project.config |= {
        "executor": {"type": "in_process"},
        "ingest": [{"format": "jsonl", "from": str(path), "source": "s"}],
        "tag": {"shape-0": ["line_shape"]},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": str(project.out)}},
    }
    return project


def test_stages_report_the_stored_bytes_of_their_input_as_they_read_it(
    large: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, list[int]] = {}
    report = Progress.report

    def noted(self: Progress, documents: int, size: int) -> None:
        told.setdefault(self._title, []).append(size)
        report(self, documents, size)

    monkeypatch.setattr(Progress, "report", noted)
    for command in ("ingest", "tag", "mix"):
        large.ok(command)
    shard = next(large.documents.rglob("*.gz"))
    stored = {"ingest": large.root / "in" / "a.jsonl.gz", "tag": shard, "mix": shard}
    for what, path in stored.items():
        assert sum(told[what]) == path.stat().st_size, what
        assert len([size for size in told[what] if size]) > 3, what
    assert set(told) == {*stored, "writing the output"}


def test_every_stage_that_reads_shards_reports_their_bytes(large: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    paces: dict[str, Pace] = {}
    end = Progress.__exit__

    def noted(self: Progress, *error: Any) -> None:
        paces[self._title] = self.pace
        end(self, *error)

    large.config["dedup"] = {"lines-0": {"kind": "exact", "unit": "line"}}
    for command in ("ingest", "tag"):
        large.ok(command)
    monkeypatch.setattr(Progress, "__exit__", noted)
    large.ok("dedup")
    large.config["mix"] |= {
        "attributes": ["shape-0", "lines-0"],
        "rules": [{"drop": "line_shape.chars < 10", "name": "short"}],
        "budget": {"bytes": "1 MB"},
    }
    large.config["mix"]["output"]["shuffle"] = {"seed": 1}
    large.ok("mix", "--dry-run")
    other = large.root / "other.yaml"
    other.write_text(yaml.safe_dump(large.config | {"mix": large.config["mix"] | {"rules": []}}))
    large.ok("mix", "--compare", other)
    large.ok("mix")
    large.config["sample"] = {"some-0": {"documents": 100, "copy": {"path": str(large.root / "some.jsonl.gz")}}}
    large.ok("sample")
    stages = {"computing the signatures of lines-0", "writing lines-0", "counting what the budget takes from"}
    stages |= {"dry run", "compare", "mix", "writing the output", "copying documents of some-0"}
    assert stages <= set(paces)
    for what, pace in paces.items():
        assert pace.total is None or pace._worked == pace.total > 10**5, what


def test_what_is_up_to_date_counts_as_done_and_not_for_the_rate(large: Project) -> None:
    first, again = large.ok("run").err, large.ok("run").err
    for what in ("1 of 3: ingest", "2 of 3: tag"):
        pattern = re.compile(rf"^{what}: 1/1 \S+, 2,000 documents, (\S+) of (\S+ MB), (\S+) MB/s, \S+ s done$", re.M)
        made, kept = pattern.search(first), pattern.search(again)
        assert made
        assert kept
        assert made[2].startswith(made[1])
        assert kept.groups() == (made[1], made[2], "0.0")


def test_what_has_no_listed_size_shows_bytes_and_no_end(project: Project) -> None:
    files = write_crawl(project.root / "www", 2)
    with web(project.root / "www", Behaviour()) as url:
        ran = project.ingest(entry(url))
    assert ran.code == 0
    size = sum(path.stat().st_size for path in files) / MB
    assert re.search(rf"^ingest: 2/2 inputs, 40 documents, {size:.1f} MB, \S+ MB/s, \S+ s done$", ran.err, re.M)


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), *slow((24, 80), (40, 200))])
def test_a_terminal_shows_a_bar_whatever_it_says_of_its_size(large: Project, rows: int, columns: int) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    command = [sys.executable, "-m", "toolkit", "run", "-c", str(large.yaml)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        try:
            while more := os.read(ours, 1 << 16):
                said += more
        except OSError:  # Linux's word for the end
            pass
        assert process.wait(PATIENCE) == 0
    os.close(ours)
    frames = [frame for frame in said.decode().split("\r") if "%|" in frame]
    assert all(len(frame) <= (columns or progress.COLUMNS) for frame in frames)
    last = [frame for frame in frames if "2 of 3: tag: 100 %|" in frame]
    assert last
    assert re.search(r"\| (\S+) of \1 MB, \S+ MB/s(, 0 s left|, 2,000 documents)+", last[-1]), last[-1]
    assert ("1/1 shards" in last[-1]) == (columns == 200)


def test_quiet_shows_nothing(large: Project) -> None:
    assert large.ok("run", "--quiet").err == ""
