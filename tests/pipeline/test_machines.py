"""Several machines at one dataset: clocks ten minutes apart, and a machine that is gone with its lease."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.pipeline.conftest import Project, strays, tree
from tests.waiting import PATIENCE, wait_until
from toolkit.execution.leases import EXPIRES_AFTER

pytestmark = pytest.mark.slow

HELD = '''
import time
from pathlib import Path
from toolkit import Document, Example, Tagger

class Held(Tagger):
    """Code points; waits as long as there is a file ``hold``, and says so."""
    EXAMPLES = (Example("", 0),)
    folder: str

    def tag(self, document: Document) -> int:
        while Path(self.folder, "hold").exists():
            Path(self.folder, "waits").touch()
            time.sleep(0.02)
        return len(document.text)
'''


CLOCK = """
import time

seconds, nanoseconds = time.time, time.time_ns
time.time = lambda: seconds() + {ahead}
time.time_ns = lambda: nanoseconds() + {ahead} * 10**9
"""
"""Which each process of a command imports first. (libfaketime would lengthen what threads wait, too.)"""


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Some inputs, and all that is made of them."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    (tmp_path / "held.py").write_text(HELD)
    for number in range(6):
        rows = [{"id": f"{number}-{i}", "text": f"Text {number} {i}. " * (i + 1)} for i in range(20)]
        (inputs / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config: dict[str, Any] = {
        "dataset": str(tmp_path / "data"),
        "processes": 1,
        "ingest": [{"format": "jsonl", "from": f"{inputs}/*.jsonl", "source": "s"}],
        "tag": {"held-0": {"tagger": f"{tmp_path}/held.py:Held", "folder": str(tmp_path)}},
        "mix": {
            "attributes": ["held-0"],
            "rules": [{"drop": "held > 200", "name": "long"}],
            "output": {"format": "dolma", "path": str(tmp_path / "out"), "part_size": "2 kB"},
        },
    }
    return Project(tmp_path, run, config)


def begin(project: Project, *arguments: str, ahead: int = 0, elsewhere: bool = False) -> "subprocess.Popen[str]":
    """A command on a machine whose clock is so many seconds ahead; the times of files are those of a server's clock.

    Elsewhere, there are other processes than here, as on another machine.
    """
    prefix = []
    if elsewhere:
        prefix += ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
            pytest.skip("namespaces are not permitted here")
    folder = project.root / f"clock{ahead}"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(CLOCK.format(ahead=ahead))
    env = os.environ | {"PYTHONPATH": f"{folder}:{ROOT}"}
    command = [*prefix, sys.executable, "-m", "toolkit.cli", *arguments, "-c", str(project.yaml), "--quiet"]
    return subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Its status, and what it said."""
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err, err
    return process.returncode, out + err


def begin_held(project: Project, *arguments: str, ahead: int = 0, elsewhere: bool = False) -> "subprocess.Popen[str]":
    """A command that has leased what it works on, and waits for the file ``hold`` to be deleted."""
    (project.root / "hold").touch()
    process = begin(project, *arguments, ahead=ahead, elsewhere=elsewhere)
    assert wait_until(lambda: (project.root / "waits").exists() or process.poll() is not None)
    assert process.poll() is None, end(process)
    return process


def leases(project: Project) -> list[Path]:
    return list(project.root.rglob("leases/*.json"))


def as_local(project: Project) -> None:
    """All that is there is what a command makes alone."""
    made = tree(project.data), tree(project.out)
    assert made[1]
    assert strays(project.root) == []
    assert not list(project.root.rglob("leases/*"))
    for path in (project.data, project.out):
        shutil.rmtree(path)
    project.ok("run")
    assert (tree(project.data), tree(project.out)) == made


@pytest.mark.parametrize("ahead", [600, -600])
def test_shares_whose_clocks_are_minutes_apart_make_what_one_run_makes(ahead: int, project: Project) -> None:
    shares = [begin(project, "run", "--shard", f"{i}/2", ahead=clock) for i, clock in enumerate((ahead, 0))]
    assert [end(each)[0] for each in shares] == [0, 0]
    code, said = end(begin(project, "run", ahead=ahead))
    assert code == 0, said
    code, said = end(begin(project, "run"))
    assert code == 0, said
    as_local(project)


@pytest.mark.parametrize("ahead", [600, -600])
def test_a_run_whose_clock_is_minutes_apart_is_seen(ahead: int, project: Project) -> None:
    """By a run that would work on the same otherwise; its lease ends with it, not by the clock of the other."""
    project.ok("ingest")
    first = begin_held(project, "tag", ahead=ahead)
    code, said = end(begin(project, "tag", "--overwrite", "tag.held-0.folder=other"))
    assert (code, "expected no other run" in said) == (2, True), said
    (project.root / "hold").unlink()
    code, said = end(first)
    assert code == 0, said
    project.ok("run")
    as_local(project)


@pytest.mark.parametrize("ahead", [0, 600, -600])
def test_the_lease_of_a_machine_that_is_gone_ends(ahead: int, project: Project) -> None:
    """Nobody here can know that it is gone, but by its lease, which is not renewed any more."""
    project.ok("ingest")
    gone = begin_held(project, "tag", ahead=ahead, elsewhere=True)
    # one that had only begun would be waited for by a run that comes after it, by the random names of the two
    assert wait_until(lambda: all('"waits":false' in lease.read_text() for lease in leases(project)))
    other = ["tag", "--overwrite", "tag.held-0={tagger: length}"]
    code, said = end(begin(project, *other))
    assert (code, "expected no other run" in said) == (2, True), said
    gone.send_signal(signal.SIGKILL)
    gone.communicate()
    (project.root / "hold").unlink()
    code, said = end(begin(project, *other))
    assert (code, "expected no other run" in said) == (2, True), "it may just be slow"
    for lease in leases(project):
        os.utime(lease, (time.time() - EXPIRES_AFTER - 1,) * 2)
    code, said = end(begin(project, "run"))
    assert code == 0, said
    project.ok("clean", project.root)
    as_local(project)
