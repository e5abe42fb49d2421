"""The executor on a real Ray cluster of two nodes: the bytes of a local run, and what dies on the way."""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import recipes
from tests.conftest import ROOT, Run
from tests.corpora import of_every_kind, oscar, with_copies
from tests.execution.cluster import Cluster, started
from tests.execution.tasks import is_alive
from tests.pipeline.conftest import Project, document, strays, tree, write_rows
from tests.waiting import PATIENCE, wait_until
from toolkit.config.settings import ConfigNode, convert
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError
from toolkit.execution.executors import Task
from toolkit.execution.executors.ray import Ray, RaySettings
from toolkit.execution.node import DriverState, TaskReply, UnfitNode, driver_state, run_remote, version
from toolkit.ingest import ingest_config
from toolkit.ingest.plan import InputFile, InputToIngest
from toolkit.one_pass import InputToPass
from toolkit.session import InSession, Session, current
from toolkit.storage.addresses import redact_url, reveal_url
from toolkit.storage.retrying import note_answer
from toolkit.storage.store import note_roots
from toolkit.storage_options import StorageOptions

SECRET = "a-secret-that-is-in-no-log"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The head, of one CPU; it lives as long as the tests."""
    yield from started(1)


@pytest.fixture
def second(cluster: Cluster) -> int:
    """Another node, of two CPUs and what is called a GPU, added again after a test has killed it."""
    number = cluster.nodes - 1
    return number if number and cluster.processes(number) else cluster.add_node(cpus=2, gpus=1)


def toolkit(cluster: Cluster, project: Project, command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    project.config["executor"] = {"type": "ray"}
    return cluster.run(sys.executable, "-m", "toolkit.cli", command, "-c", project.yaml, *arguments)


def begin(cluster: Cluster, project: Project, command: str = "run", *arguments: str) -> "subprocess.Popen[bytes]":
    project.config["executor"] = {"type": "ray"}
    with (project.root / "log").open("wb") as log:
        given = [sys.executable, "-m", "toolkit.cli", command, "-c", project.yaml, *arguments]
        return cluster.begin(*given, stdout=log, stderr=log)


def script(cluster: Cluster, code: str, *arguments: object) -> Any:
    """What a driver prints as JSON."""
    ran = cluster.run(sys.executable, "-W", "error::RuntimeWarning", "-c", code, *arguments)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


# --- tasks ------------------------------------------------------------------------------------------------------------

CONTRACT = """
import json, os, sys
from pathlib import Path
from tests.execution.test_ray import address, environment, unsendable
from tests.execution.tasks import die_always, die_once, fail_on_b, shout
from toolkit.errors import ConfigError
from toolkit.execution import node
from toolkit.execution.executors import Task
from toolkit.execution.executors.ray import Ray, RaySettings
from toolkit.session import InSession, Session
from toolkit.storage.addresses import redact_url

folder = Path(sys.argv[1])
os.environ |= {"AWS_SECRET_ACCESS_KEY": sys.argv[2], "TOOLKIT_CACHE": str(folder)}
reports, begun, found, refused = [], [], {}, []
settings = RaySettings(retries=2, give_up=0)
with Ray(lambda *report: reports.append(report), begun.append, settings=settings) as ray:
    for function, names in [
        (shout, ["one", "three", "two"]),
        (fail_on_b, "abcde"),
        (die_once, [str(folder / "dies"), "x"]),
        (die_always, [str(folder / "always" / "dies"), "y"]),
        (unsendable, ["unsendable"]),
        (environment, ["AWS_SECRET_ACCESS_KEY", "TOOLKIT_CACHE", "OMP_NUM_THREADS", "PWD"]),
        (shout, []),
    ]:
        tasks = [Task(name, name, size=len(name)) for name in names]
        (folder / "always").mkdir(exist_ok=True)
        for result in ray.run(function, tasks):
            assert (function.__name__, result.name) not in found
            failure = result.failure and [result.failure.message, result.failure.details]
            found[f"{function.__name__} {result.name}"] = failure or result.value
    session = Session()
    with session.bound():
        shown = [redact_url(f"https://me:{sys.argv[2]}@h/{name}") for name in "xy"]
    for result in ray.run(InSession(session.part(), address), [Task(name, name) for name in shown]):
        found[f"address {result.name}"] = [result.value.value, sorted(result.value.hosts)]
    version = node.version
    for change in ("processes", "version"):
        node.version = (lambda: "0.0.1") if change == "version" else node.version
        try:
            list(ray.run(shout, [Task("x", "x", processes=64 if change == "processes" else 1)]))
        except ConfigError as error:
            refused.append(str(error))
gpu = [Task(name, name) for name in ("CUDA_VISIBLE_DEVICES", "PID", "PID ")]
with Ray(lambda *_: None, settings=RaySettings(resources={"GPU": 1})) as ray:
    node.version = version
    for result in ray.run(environment, gpu):
        found[f"gpu {result.name}"] = result.failure or result.value
with Ray(lambda *_: None, settings=RaySettings(resources={"GPU": 2, "disk": 0.5}, give_up=0)) as ray:
    try:
        list(ray.run(shout, [Task("x", "x")]))
    except ConfigError as error:
        refused.append(str(error))
print(json.dumps({"found": found, "begun": begun, "reports": reports, "refused": refused}))
"""


def environment(payload: str, report: Any) -> str | None:
    if payload.strip() == "PID":
        return str(os.getpid())
    return os.getcwd() if payload == "PWD" else os.environ.get(payload)


def address(payload: str, report: Any) -> list[str]:
    note_answer("a.host")
    return [reveal_url(payload), *(name for name in os.environ if name.strip("_").startswith("TOOLKIT_"))]


def unsendable(payload: str, report: Any) -> Any:
    return lambda: payload


@pytest.mark.ray
@pytest.mark.slow
def test_tasks_on_a_cluster_keep_the_contract_of_executors(cluster: Cluster, second: int, tmp_path: Path) -> None:
    got = script(cluster, CONTRACT, tmp_path, SECRET)
    found = got["found"]
    assert [found[f"shout {name}"] for name in ("one", "two", "three")] == ["ONE", "TWO", "THREE"]
    assert got["begun"][:3] == ["three", "one", "two"], "the largest first"
    assert [sum(column) for column in zip(*got["reports"], strict=True)] == [3, len("onetwothree")]
    assert [found["fail_on_b a"], found["fail_on_b c"]] == ["A", ["c.yaml:1: expected a, got b", ""]]
    assert [found[f"fail_on_b {name}"][0] for name in "be"] == [
        "b: ValueError: cannot",
        "e: BaseException: native panic",
    ]
    assert 'raise ValueError("cannot")' in found["fail_on_b b"][1]
    assert [found[f"die_once {tmp_path}/dies"], found["die_once x"]] == ["alive", "alive"]
    always = f"{tmp_path}/always/dies"
    assert found["die_always y"] == "alive"
    assert found[f"die_always {always}"][0].startswith(f"{always}: the worker process died")
    assert found[f"die_always {always}"][0].endswith("3 times")
    assert Path(always).read_text() == "tried " * 3
    assert got["begun"].count(always) == 3
    assert found["unsendable unsendable"][0].startswith("unsendable: expected a result that can be sent, got ")
    assert found["environment AWS_SECRET_ACCESS_KEY"] == SECRET
    assert found["environment TOOLKIT_CACHE"] == str(tmp_path)
    for name in "xy":
        assert found[f"address https://…@h/{name}"] == [[f"https://me:{SECRET}@h/{name}", "TOOLKIT_CACHE"], ["a.host"]]
    assert found["environment OMP_NUM_THREADS"] == "1"
    assert found["environment PWD"] == os.getcwd()
    assert got["refused"][0].startswith("executor: expected a node that has 64 CPUs, got 2 nodes: ")
    assert found["gpu CUDA_VISIBLE_DEVICES"] == "0", "Ray shows a task the GPU that it has asked for"
    assert found["gpu PID"] == found["gpu PID "], "a process with a GPU keeps its model"
    wanted = "executor: expected a node that has 1 CPU and 2 GPU and 0.5 disk, got 2 nodes: "
    assert got["refused"][2].startswith(wanted)
    assert "and 1 GPU and 0 disk" in got["refused"][2]
    assert got["refused"][1].startswith(f"executor: expected tagmix 0.0.1 on every node, got {version()} on ")
    logs = [path for path in cluster.logs.rglob("*") if path.is_file()]
    assert any(b"OMP_NUM_THREADS" in path.read_bytes() for path in logs), "what Ray is told it logs"
    assert not any(SECRET.encode() in path.read_bytes() for path in logs)


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({"CPU": 2}, "expected no CPU; write cpus:"),
        ({"memory": 2}, "expected no memory; write memory:"),
        ({"GPU": 1.5}, "got 1.5 of GPU"),
    ],
)
def test_resources_that_a_task_cannot_ask_for_are_refused(resources: dict[str, float], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        convert(ConfigNode({"resources": resources}), RaySettings, "executor")


def test_a_node_that_is_not_like_the_driver_says_so(tmp_path: Path) -> None:
    task = pickle.dumps((environment, Task("PWD", "PWD")))
    here = driver_state()
    done = pickle.loads(run_remote(here, task))
    assert isinstance(done, TaskReply)
    assert pickle.loads(done.result).value == os.getcwd()
    other = pickle.loads(run_remote(here._replace(version="0.0.1"), task))
    assert isinstance(other, UnfitNode)
    assert f"expected tagmix 0.0.1 on every node, got {version()} on {socket.gethostname()}" in other.reason
    missing = pickle.loads(run_remote(here._replace(folder=str(tmp_path / "gone")), task))
    assert isinstance(missing, UnfitNode)
    assert f"working directory {tmp_path}/gone on every node" in missing.reason
    unknown = pickle.loads(run_remote(here, task.replace(b"test_ray", b"rest_tay")))
    assert isinstance(unknown, UnfitNode)
    assert "No module named 'tests.execution.rest_tay'" in unknown.reason


def test_the_state_of_a_command_travels_with_its_tasks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLKIT_CACHE", raising=False)
    session = Session(StorageOptions(region="eu"))
    with session.bound():
        shown = redact_url(f"https://me:{SECRET}@h/x")
        note_roots(["/"])
        given, task = driver_state(), pickle.dumps((InSession(session.part(), address), Task(shown, shown)))
    assert SECRET not in f"{session!r} {session.part()!r} {session.__dict__.keys()} {given}"
    for _ in range(2):
        result = pickle.loads(pickle.loads(run_remote(given, task)).result)
        assert result.value.value == [f"https://me:{SECRET}@h/x"]
    assert session.hosts == set()
    assert current().id == session.id, "the process keeps the session for the next task"
    assert current().options == StorageOptions(region="eu")
    assert (current().roots, current().hosts) == ({}, {"a.host"})


def path_of_input(payload: InputToPass, report: Any) -> str:
    return reveal_url(payload.input.path)


def test_the_first_task_in_a_process_has_the_whole_address_of_its_input() -> None:
    with Session().bound():
        address = f"https://me:{SECRET}@h/x"
        shown = redact_url(address, carry=False)
        files = [InputFile(path=shown, relative="x", key="x", address=address)]
        (entry,) = ingest_config.read_section(ConfigNode([{"format": "jsonl", "from": shown, "source": "s"}]))
        input_ = InputToIngest(Dataset("d", "a"), entry, files, shard="x", max_document_bytes=1)
        task = Task(shown, InputToPass(input=input_, tag=None, mix=None))
        given, sent = driver_state(), pickle.dumps((InSession(current().part(), path_of_input), task))
    for _ in range(2):
        assert pickle.loads(pickle.loads(run_remote(given, sent)).result).value.value == address


def test_credentials_of_a_node_are_not_mixed_with_those_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the node")
    task = pickle.dumps((environment, Task("AWS_SESSION_TOKEN", "AWS_SESSION_TOKEN")))
    given = DriverState(version(), os.getcwd(), {})
    assert pickle.loads(pickle.loads(run_remote(given, task)).result).value == "of the node"
    monkeypatch.setenv("AWS_PROFILE", "of the node")  # so that what `work` makes of it is undone
    other = pickle.loads(run_remote(given._replace(environment={"AWS_PROFILE": "x"}), task))
    assert pickle.loads(other.result).value is None
    assert os.environ["AWS_PROFILE"] == "x"


@pytest.mark.ray
@pytest.mark.parametrize("where", ["nothing", "not a port", "a file's"])
def test_without_a_cluster_one_line_says_so(small: Project, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = {"nothing": f"127.0.0.1:{port}", "not a port": "head", "a file's": "ray://head:10001"}[where]
    small.config["executor"] = {"type": "ray", "address": address}
    ran = small("tag", "--overwrite")
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert address in ran.err


def test_the_package_is_named_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Exception, match=r"pip install 'tagmix\[ray\]'"):
        Ray(lambda documents, size: None).__enter__()


# --- commands ---------------------------------------------------------------------------------------------------------

SLOW = """
import os, time
from pathlib import Path
from typing import Annotated
import msgspec
from toolkit import Document, Tagger

LOADED = {}


class Slow(Tagger):
    '''Takes its time, and notes in which process it has loaded its model, which waits for others to have done so.

    From shard 7 on it waits as long as there is a file ``hold``.
    '''

    folder: str
    seconds: float = 0.05
    meeting: int = 0

    def tag(self, document: Document) -> int:
        if not LOADED:
            LOADED["model"] = True
            with (Path(self.folder) / "loaded").open("a") as file:
                file.write(f"{os.getpid()}\\n")
            while len((Path(self.folder) / "loaded").read_text().split()) < self.meeting:
                time.sleep(0.02)
        if document.text == "fails":
            raise ValueError("cannot")
        while document.id[0] > "6" and (Path(self.folder) / "hold").exists():
            time.sleep(0.02)
        time.sleep(self.seconds)
        return len(document.text)
"""

SHARDS = 10


@pytest.fixture
def slow(tmp_path: Path, run: Run) -> Project:
    """A dataset of shards that take half a second each."""
    return prepare(tmp_path, run)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "dedup"])
def test_duplicates_found_on_a_cluster_are_those_found_locally(
    cluster: Cluster, second: int, tmp_path: Path, run: Run, command: str
) -> None:
    """In partitions, which are tasks of the cluster; sets that read one another; and duplicates of every kind."""
    prepared = with_copies if command == "run" else of_every_kind
    local, remote = prepared(tmp_path / "local", run), prepared(tmp_path / "remote", run)
    local.ok(command)
    ran = toolkit(cluster, remote, command)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert tree(local.attributes)
    assert tree(remote.data) == tree(local.data)
    assert tree(remote.out) == tree(local.out)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The attributes that a local run gives."""
    project = prepare(tmp_path_factory.mktemp("wanted"), lambda *_: pytest.fail("not used"))
    subprocess.run([sys.executable, "-m", "toolkit.cli", "tag", "-c", project.yaml], check=True, capture_output=True)
    return tree(project.attributes)


def prepare(tmp_path: Path, run: Run) -> Project:
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data")})
    for number in range(SHARDS):
        rows = [document(f"{number}-{i}", f"text {number} {i}") for i in range(10)]
        write_rows(project.documents / f"{number:02}.jsonl", rows)
    (tmp_path / "slow.py").write_text(SLOW)
    project.config["tag"] = {"slow-0": {"tagger": f"{tmp_path}/slow.py:Slow", "folder": str(tmp_path)}}
    return project


SPREAD = """
import sys
from toolkit.cli import main
from toolkit.execution import workers

workers.LARGE = 1
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.ray
@pytest.mark.slow
def test_a_large_shard_has_several_processes_of_one_node(cluster: Cluster, second: int, slow: Project) -> None:
    for path in list(slow.documents.glob("*"))[1:]:
        path.unlink()
    [shard] = slow.documents.glob("*")
    write_rows(shard, [document(str(i), f"text {i}") for i in range(600)])
    slow.config["tag"]["slow-0"]["seconds"] = 0
    slow.config["executor"] = {"type": "in_process"}
    slow.ok("tag")
    wanted = tree(slow.attributes)
    (slow.root / "loaded").unlink()
    slow.config["executor"] = {"type": "ray"}
    ran = cluster.run(sys.executable, "-c", SPREAD, "tag", "-c", slow.yaml, "--overwrite", "tag.slow-0.meeting=2")
    assert ran.returncode == 0, ran.stderr
    assert tree(slow.attributes) == wanted
    assert len((slow.root / "loaded").read_text().split()) == 2, "as many as the larger node has CPUs"


@pytest.mark.ray
@pytest.mark.slow
def test_a_pipeline_on_a_cluster_gives_the_bytes_of_a_local_one(
    cluster: Cluster, second: int, tmp_path: Path, run: Run
) -> None:
    local = oscar(tmp_path / "local", run)
    local.config["executor"] = {"type": "local"}
    local.ok("run")
    there = oscar(tmp_path / "ray", run)
    options = ["executor.memory=100 MB", "executor.recycle=12", "executor.in_flight=2"]
    ran = toolkit(cluster, there, "run", "--json", *options)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout), "results alone are on standard output"
    assert tree(there.data) == tree(local.data)
    assert tree(there.out) == tree(local.out)
    assert strays(there.root) == []


@pytest.mark.ray
@pytest.mark.slow
def test_a_model_is_loaded_once_in_a_process_and_an_error_is_one_shard_s(
    cluster: Cluster, second: int, slow: Project
) -> None:
    write_rows(slow.documents / "05.jsonl", [document("x", "fails")])
    slow.config["tag"]["slow-0"]["meeting"] = 2
    ran = toolkit(cluster, slow, "tag")
    assert ran.returncode == 1, ran.stderr
    assert ran.stderr.count("ValueError: cannot") == 2, "when it happens, and at the end"
    assert len(tree(slow.attributes)) == SHARDS - 1
    pids = (slow.root / "loaded").read_text().split()
    assert len(set(pids)) == len(pids) <= 4, "one for each CPU, perhaps one more while another ends"
    assert len(pids) >= 2


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("victim", ["worker and node", "driver", "interrupt", "terminate"])
def test_what_dies_costs_a_rerun_at_most(
    cluster: Cluster, second: int, slow: Project, wanted: dict[str, str], victim: str
) -> None:
    hold = slow.root / "hold"
    hold.touch()
    driver = begin(cluster, slow, "tag")
    assert wait_until(lambda: bool(tree(slow.attributes)) and bool(cluster.workers(second)))
    workers = cluster.workers(0) + cluster.workers(second)
    match victim:
        case "worker and node":
            killed = cluster.workers(second)[0]
            os.kill(killed, signal.SIGKILL)
            assert wait_until(lambda: not is_alive(killed) and bool(cluster.workers(second)))
            cluster.kill_node(second)
            hold.unlink()
        case "driver":
            driver.kill()
        case "interrupt":
            driver.send_signal(signal.SIGINT)
        case "terminate":
            driver.send_signal(signal.SIGTERM)
    code, log = driver.wait(PATIENCE), (slow.root / "log").read_text()
    assert "Traceback" not in log, log
    if victim == "worker and node":
        assert code == 0, log
        assert {path: digest for path, digest in tree(slow.attributes).items() if path in wanted} == wanted
    else:
        assert code == {"driver": -signal.SIGKILL, "interrupt": 130, "terminate": 143}[victim], log
        assert wait_until(lambda: not any(map(is_alive, workers))), "the driver's workers end"
        assert len(tree(slow.attributes)) < SHARDS
        if victim != "driver":
            assert not list(slow.root.rglob("*.tmp"))
        hold.unlink()
    if victim == "driver":
        ran = toolkit(cluster, slow, "tag")
        assert ran.returncode == 0, ran.stderr
    slow.config["executor"] = {"type": "in_process"}
    slow.ok("tag")  # the temporary files of what was killed are deleted
    assert tree(slow.attributes) == wanted
    assert strays(slow.root) == []


@pytest.fixture
def small(tmp_path: Path, run: Run) -> Project:
    """One shard, and a tagger."""
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "tag": {"shape-0": "line_shape"}})
    write_rows(project.documents / "a.jsonl", [document("a", "text")])
    return project


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes.EVERYWHERE)
def test_a_recipe_gives_the_same_bytes_in_one_pass_on_nodes(
    cluster: Cluster, second: int, tmp_path: Path, run: Run, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    expected = recipes.made(run, recipe, str(tmp_path / "singly"), *recipes.commands(recipe))
    root = str(tmp_path / "nodes")
    given = ["-c", recipes.path_of(recipe), *recipes.places(recipe, root), "executor.type=ray"]
    ran = cluster.run(sys.executable, "-m", "toolkit.cli", "run", *given)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert recipes.tree(root) == expected
