"""The script of docs/slurm.md on a real cluster."""

import json
import random
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.pipeline.conftest import Project, strays, tree
from tests.slurm.cluster import Cluster, missing, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

PAGE = (ROOT / "docs" / "slurm.md").read_text(encoding="utf-8")
SCRIPT, SUBMISSION = (
    re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0] for language in ("bash", "sh")
)
TEXT = ["The library opens at nine.\nIt is closed on Sundays.", "La biblioteca abre a las nueve.", "Die Tür ist offen."]
INPUTS = 9
"""Of which each of four shares has one at least."""

TAGGER = '''
import time
from pathlib import Path
from toolkit import Document, Example, Tagger

class Held(Tagger):
    """Code points; waits as long as there is a file ``hold``, and says so."""
    EXAMPLES = (Example("", 0),)
    folder: str

    def tag(self, document: Document) -> int:
        hold = Path(self.folder, "hold")
        while hold.exists():
            Path(self.folder, f"waiting-{document.id}").touch()
            time.sleep(0.05)
        return len(document.text)
'''


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if why := missing():
        pytest.skip(why)
    with Cluster(tmp_path_factory.mktemp("slurm") / "cluster") as found:
        yield found


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Inputs, the whole path over them, and the script."""
    inputs, folder = tmp_path / "in", tmp_path / "folder"
    inputs.mkdir()
    folder.mkdir()
    (tmp_path / "held.py").write_text(TAGGER)
    (tmp_path / "slurm.sh").write_text(SCRIPT)
    chance = random.Random(3)
    for i in range(INPUTS):
        rows = [{"id": f"{i}-{j}", "text": "\n".join(chance.choices(TEXT, k=3))} for j in range(20)]
        (inputs / f"{i}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config: dict[str, Any] = {
        "dataset": str(tmp_path / "data"),
        "ingest": [{"format": "jsonl", "from": f"{inputs}/*.jsonl", "source": "s"}],
        "tag": {
            "held-0": {"tagger": f"{tmp_path}/held.py:Held", "folder": str(folder)},
            "lines-0": "line_language",
            "language-0": {"tagger": "language", "lines": "lines-0"},
        },
        "mix": {
            "attributes": ["held-0", "lines-0", "language-0"],
            "rules": [
                {"drop": "held % 7 == 0", "name": "sevenths"},
                {"drop": "language.label is None", "name": "unidentified"},
            ],
            "output": {"format": "oscar", "path": str(tmp_path / "out"), "part_size": "4 kB"},
        },
    }
    project = Project(tmp_path, run, config)
    (tmp_path / "crawl.yaml").write_text(project.yaml.read_text())
    return project


def submit(cluster: Cluster, project: Project, submission: str = SUBMISSION) -> list[str]:
    """Types what the page says; the numbers of the array and of the last job, and another's if there is one."""
    return typed(cluster, project, f"{submission}\necho $array $last ${{other-}}")


def typed(cluster: Cluster, project: Project, line: str) -> list[str]:
    """What a command line prints, word by word."""
    env = {"PATH": f"{Path(sys.executable).parent}:{cluster.env['PATH']}", "PYTHONPATH": str(ROOT)}
    return cluster.run("bash", "-uc", line, cwd=project.root, env=env).split()


def tasks(array: str, count: int = 4) -> list[str]:
    return [f"{array}_{i}" for i in range(count)]


def submit_held(cluster: Cluster, project: Project) -> tuple[list[str], str]:
    """As `submit`, and all inputs are being worked on until the file ``hold`` is deleted."""
    folder = project.root / "folder"
    (folder / "hold").touch()
    array, last = submit(cluster, project)
    names = tasks(array)

    def all_wait() -> bool:
        assert "error" not in logs(project).lower(), logs(project)
        return len(list(folder.glob("waiting-*"))) == INPUTS

    until(all_wait, "all inputs")
    assert [cluster.state(name) for name in (*names, last)] == ["RUNNING"] * 4 + ["PENDING"]
    return names, last


def logs(project: Project) -> str:
    return "\n".join(f"{path.name}:\n{path.read_text()}" for path in sorted(project.root.glob("slurm-*.out")))


def finish(cluster: Cluster, project: Project, last: str, state: str = "COMPLETED") -> None:
    ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
    until(lambda: cluster.state(last) in ended, f"the last job; {logs(project)}")
    assert cluster.state(last) == state, logs(project)


def assert_as_local(project: Project) -> None:
    """All files are those of a run on this machine, in this process."""
    shared = tree(project.data).items() | tree(project.out).items()
    assert len(tree(project.out)) > 5
    for path in (project.data, project.out):
        assert strays(path) == []
        assert not list(path.rglob("leases/*"))
    for path in (project.data, project.out):
        path.rename(f"{path}-shared")
    project.ok("run", "executor={type: in_process}")
    different = shared ^ (tree(project.data).items() | tree(project.out).items())
    assert sorted(name for name, _ in different) == []


@pytest.mark.parametrize("size", [None, pytest.param("1500 B", marks=pytest.mark.long)])
def test_an_array_whose_tasks_are_preempted_gives_what_one_run_gives(
    size: str | None, cluster: Cluster, project: Project
) -> None:
    """Of inputs, and of inputs that are cut: all shards of one are the work of one task."""
    project.config["ingest"][0]["shard_size"] = size
    (project.root / "crawl.yaml").write_text(project.yaml.read_text())
    names, last = submit_held(cluster, project)
    more_urgent = cluster.run(
        "sbatch", "--parsable", "-p", "urgent", "-c", "16", "-o", "/dev/null", "--wrap", "sleep 2"
    )
    until(lambda: any(cluster.job(name)["Restarts"] == "1" for name in names), "a preemption")
    others = [name for name in names if cluster.job(name)["Restarts"] == "0"]
    assert len(others) == 3
    cluster.run("scancel", "--signal=USR1", "--batch", others[2])  # whose number is that of the array
    cluster.run("scancel", "--signal=TERM", "--full", others[1])
    until(lambda: [cluster.job(name)["Restarts"] for name in names].count("1") == 3, "jobs that are queued again")
    (project.root / "folder" / "hold").unlink()
    finish(cluster, project, last)
    assert cluster.state(more_urgent) == "COMPLETED"
    assert [cluster.state(name) for name in names] == ["COMPLETED"] * 4, logs(project)
    assert cluster.job(others[0])["Restarts"] == "0"
    assert logs(project).count("terminated; run the same command to resume") == 3, logs(project)
    assert_as_local(project)


def test_more_tasks_than_inputs_leave_nothing_for_the_last_job(cluster: Cluster, project: Project) -> None:
    project.config["ingest"][0]["shard_size"] = "500 B"
    (project.root / "crawl.yaml").write_text(project.yaml.read_text())
    for i in range(3, INPUTS):
        (project.root / "in" / f"{i}.jsonl").unlink()
    array, last = submit(cluster, project)
    finish(cluster, project, last)
    assert [cluster.state(name) for name in tasks(array)] == ["COMPLETED"] * 4, logs(project)
    said = [(project.root / f"slurm-{name}.out").read_text() for name in tasks(array)]
    assert [text.strip() for text in said if "this share" in text] == [
        "this share (3 of 4) has no input: there are 3 inputs for 4 shares"
    ]
    log = (project.root / f"slurm-{last}.out").read_text()
    assert "3 inputs: 3 done (3 before), 0 failed" in log
    written = re.findall(r"^(?:held|lines|language)-0  .*  (\d+)  +(\d+)$", log, re.MULTILINE)
    assert len(written) == 3
    assert {new for new, _ in written} == {"0"}, "nothing was left"
    assert_as_local(project)


def test_a_grace_time_is_not_used_up(cluster: Cluster, project: Project) -> None:
    cluster.env["SBATCH_PARTITION"] = "patient"
    names, last = submit_held(cluster, project)
    del cluster.env["SBATCH_PARTITION"]
    cluster.run("sbatch", "-p", "urgent", "-c", "16", "-o", "/dev/null", "--wrap", "true")
    until(lambda: any(cluster.job(name)["Restarts"] == "1" for name in names), "a preemption")
    assert logs(project).count("terminated; run the same command to resume") == 1
    cluster.run("scancel", last, *names)


@pytest.mark.long
def test_what_a_job_has_not_done_at_its_time_limit_or_when_it_is_killed_is_done_by_the_next(
    cluster: Cluster, project: Project
) -> None:
    """A job without the page's script, whose limit is a minute: Slurm sends it SIGTERM then."""
    folder, line = project.root / "folder", "sbatch --parsable -c 2 -t 1 --wrap 'exec toolkit run -c crawl.yaml'"
    (folder / "hold").touch()
    [late] = typed(cluster, project, line)
    until(lambda: bool(list(folder.glob("waiting-*"))), "an input")
    until(lambda: cluster.state(late) == "TIMEOUT", f"the time limit; {logs(project)}")
    until(lambda: "terminated; run the same command to resume" in logs(project), "the end")
    assert not list(project.root.rglob("*.tmp"))
    assert not list(project.root.rglob("leases/*"))
    for path in folder.glob("waiting-*"):
        path.unlink()
    [killed] = typed(cluster, project, line)
    until(lambda: bool(list(folder.glob("waiting-*"))), "an input")
    cluster.run("scancel", "--signal=KILL", "--full", killed)
    until(lambda: cluster.state(killed) in ("FAILED", "CANCELLED"), "the end")
    (folder / "hold").unlink()
    [last] = typed(cluster, project, line)
    finish(cluster, project, last)
    assert_as_local(project)


def test_a_job_that_is_cancelled_is_not_queued_again(cluster: Cluster, project: Project) -> None:
    names, last = submit_held(cluster, project)
    cluster.run("scancel", last, *names)
    until(lambda: [cluster.state(name) for name in (*names, last)] == ["CANCELLED"] * 5, "the end")
    until(lambda: logs(project).count("terminated; run the same command to resume") == 4, "the end of all")
    assert not list(project.root.rglob("*.tmp"))
    assert not list(project.root.rglob("leases/*"))
    assert [cluster.job(name)["Restarts"] for name in names] == ["0"] * 4


def test_a_share_that_fails_stops_no_other_and_the_last_job_says_which(cluster: Cluster, project: Project) -> None:
    bad = project.root / "in" / "5.jsonl"
    text = bad.read_text()
    bad.write_text("no JSON\n")
    submission = SUBMISSION.replace("0-3", "0-1")
    other = submission.splitlines()[-1].replace("last=", "other=").replace("afterany", "afterok")
    array, last, never = submit(cluster, project, submission + other)
    finish(cluster, project, last, "FAILED")
    assert sorted(cluster.state(name) for name in tasks(array, 2)) == ["COMPLETED", "FAILED"]
    log = (project.root / f"slurm-{last}.out").read_text()
    assert "1 failed" in log
    assert f"{bad}:1: expected" in log
    assert not tree(project.out)
    until(lambda: cluster.job(never)["Reason"] == "DependencyNeverSatisfied", "the last job to be given up")
    assert cluster.state(never) == "PENDING"
    cluster.run("scancel", never)
    bad.write_text(text)
    _, last = submit(cluster, project, submission)
    finish(cluster, project, last)
    assert_as_local(project)


@pytest.mark.long  # Ray ends where its head needs longer than a minute to start, which a busy machine does
def test_a_job_of_two_nodes_is_a_cluster_of_ray(cluster: Cluster, project: Project) -> None:
    if shutil.which("ray") is None:
        pytest.skip("the extra ray is not installed")
    [job] = typed(cluster, project, "sbatch --parsable --nodes=2 --cpus-per-task=2 slurm.sh crawl.yaml")
    finish(cluster, project, job)
    assert (project.root / f"ray-{job}.out").read_text().count("Ray runtime started") == 2
    assert_as_local(project)
