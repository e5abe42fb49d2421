"""Ray clusters that grow while a command waits, that never do, and that lose their head."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.execution.cluster import CannotStart, Cluster
from tests.execution.tasks import is_alive
from tests.execution.test_ray import SHARDS, begin, prepare, toolkit
from tests.pipeline.conftest import Project, strays, tree
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture
def empty() -> Iterator[Cluster]:
    """A head that does no tasks."""
    pytest.importorskip("ray", reason="the extra ray is not installed")
    if not Path("/proc/self/environ").exists():
        pytest.skip("nodes are found by /proc, which is not here")
    try:
        with Cluster(1, head_cpus=0) as found:
            yield found
    except CannotStart as error:
        pytest.skip(f"Ray cannot start: {error}")


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    return prepare(tmp_path, run)


def said(project: Project) -> str:
    return (project.root / "log").read_text()


def as_local(project: Project) -> None:
    """The attributes are those that a process here makes, and nothing else is there."""
    made = tree(project.attributes)
    assert len(made) == SHARDS
    assert strays(project.root) == []
    project.config["executor"] = {"type": "in_process"}
    project.ok("tag", "--overwrite")
    assert tree(project.attributes) == made


def test_a_cluster_may_grow_from_nothing(empty: Cluster, project: Project) -> None:
    """Tasks wait for a node that has what they ask for; one that has not is no help."""
    driver = begin(empty, project, "tag", "executor={type: ray, cpus: 2}")
    assert wait_until(lambda: "waiting for a node" in said(project))
    assert "executor: waiting for a node that has 2 CPUs: there are 1 node: 0 CPUs with" in said(project)
    empty.add_node(cpus=1)
    assert driver.poll() is None, said(project)
    assert tree(project.attributes) == {}
    empty.add_node(cpus=2)
    assert driver.wait(PATIENCE) == 0, said(project)
    assert "executor: a node that has 2 CPUs is there" in said(project)
    as_local(project)


def test_a_cluster_that_does_not_grow_ends_the_command(empty: Cluster, project: Project) -> None:
    for seconds, waited in ((0, ", got"), (1, ", got for 1 s")):
        ran = toolkit(empty, project, "tag", f"executor={{type: ray, give_up: {seconds}}}")
        assert ran.returncode == 2, ran.stderr
        assert f"executor: expected a node that has 1 CPU{waited} 1 node: 0 CPUs with" in ran.stderr
        assert "`executor.give_up`" in ran.stderr
        assert not project.attributes.exists()


@pytest.mark.long
def test_a_command_ends_without_the_head_and_goes_on_in_another_cluster(empty: Cluster, project: Project) -> None:
    hold = project.root / "hold"
    hold.touch()
    second = empty.add_node(cpus=2)
    driver: subprocess.Popen[bytes] = begin(empty, project, "tag")
    assert wait_until(lambda: bool(tree(project.attributes)) and bool(empty.workers(second)))
    workers = empty.workers(second)
    empty.kill_node(0)
    assert driver.wait(PATIENCE) == 1, said(project)
    assert "Traceback" not in said(project)
    assert "executor: expected the head of the cluster" in said(project)
    assert wait_until(lambda: not any(map(is_alive, workers))), "tasks end with the driver"
    assert len(tree(project.attributes)) < SHARDS
    hold.unlink()
    empty.begin_anew()
    empty.add_node(cpus=2)
    ran = toolkit(empty, project, "tag")
    assert ran.returncode == 0, ran.stderr
    as_local(project)
