"""`max_disk` of a configuration: refused where a run cannot fit, and kept, on a disk that is no larger."""

import gzip
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.pipeline.test_crawl import entry, write_crawl
from tests.storage.web_server import Behaviour, web
from tests.waiting import PATIENCE
from toolkit.execution.executors import Task
from toolkit.stages.disk_quota import DiskQuota, bytes_in

pytestmark = pytest.mark.slow

INPUTS = 6


@pytest.fixture
def project(project: Project) -> Project:
    """Inputs of 0.4 MB each; no rule drops anything, so that an output is as large as its documents."""
    chosen = random.Random(15)
    for number in range(INPUTS):
        rows = (document(f"{number}-{i}", chosen.randbytes(1500).hex(" ", 4)) for i in range(200))
        write_rows(project.root / "in" / f"{number}.jsonl.gz", rows)
    project.config |= {
        "processes": 3,
        "ingest": [{"format": "jsonl", "from": str(project.root / "in" / "*.gz"), "source": "s"}],
        "tag": {"shape-0": ["line_shape"]},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": str(project.out)}},
    }
    return project


def held(project: Project) -> int:
    return bytes_in([str(project.data), str(project.out)])


def bounded(project: Project, megabytes: float) -> None:
    project.config["max_disk"] = round(megabytes * 1e6)


def test_a_run_that_cannot_fit_says_so_and_writes_nothing(project: Project) -> None:
    bounded(project, 3)
    ran = project("run").fails(2)
    said = r"config\.yaml:\d+: max_disk: expected room for about (\S+) MB \((\S+) MB of documents and attributes, "
    assert (found := re.search(said, ran.err)), ran.err
    assert 6 < float(found[1]) < 12
    assert "got 3.0 MB of 3.0 MB (0.0 MB in use); use a larger `max_disk`" in ran.err
    assert not project.data.exists()
    bounded(project, 6.5)
    assert re.search(r"which needs about \S+ MB; or a larger `max_disk`", project("run").err)
    assert project("run", "--dry-run").code == 2
    assert project("ingest").code == 0, "documents alone do"
    assert not project.out.exists()


@pytest.mark.parametrize("command", ["align", "tag", "mix"])
def test_a_stage_that_cannot_fit_is_refused_by_itself(project: Project, command: str) -> None:
    project.ok("ingest")
    if command == "mix":
        project.ok("tag")
    if command == "align":
        rows = ({"id": f"{n}-{i}", "q": i} for n in range(INPUTS) for i in range(200))
        write_rows(project.root / "q.jsonl.gz", rows)
        project.config["align"] = {"q-0": {"format": "jsonl", "from": str(project.root / "q.jsonl.gz")}}
    bounded(project, held(project) / 1e6 + 0.01)
    ran = project(command).fails(2)
    assert re.search(r"max_disk: expected room for about \S+ MB more, got 0\.0 MB of", ran.err)
    del project.config["max_disk"]
    project.ok(command)
    if command == "tag":
        bounded(project, held(project) / 1e6)
        assert "6 shards" in project.ok("tag").out, "what is up to date needs nothing"


def test_signatures_count_before_they_are_made(project: Project) -> None:
    """They are a third of the text for lines: in a run as part of each input, in `dedup` by themselves."""
    del project.config["mix"]
    bounded(project, 6.5)
    project.ok("ingest")
    project.ok("tag")
    project.config["dedup"] = {"lines-0": {"kind": "exact", "unit": "line", "as": "again"}}
    before = held(project)
    bounded(project, before / 1e6 + 0.3)
    ran = project("dedup").fails(2)
    assert re.search(r"max_disk: expected room for about \S+ MB more, got 0\.3 MB of", ran.err)
    assert project("run").code == 1
    assert held(project) < before + 10**5
    assert not (project.data / ".toolkit" / "dedup").exists()
    shutil.rmtree(project.data)
    bounded(project, 4)
    project("run").fails(2, "MB of documents, attributes and signatures; ")
    bounded(project, 12)
    project.ok("run")
    bounded(project, held(project) / 1e6 + 0.1)
    project.ok("run")


def test_a_run_with_nothing_to_do_ends_well_however_full_it_is(project: Project) -> None:
    project.ok("run")
    bounded(project, 0.1)
    project.ok("run")
    project.ok("ingest")


def on_a_disk_of(size: int, folder: Path, command: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command that sees a file system of so many bytes in a folder; copy the output that it leaves there."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    mount = f"mount -t tmpfs -o size={size} none {shlex.quote(str(folder))}"
    probe = ["unshare", *user, "--mount", "sh", "-c", mount]
    folder.mkdir(exist_ok=True)
    try:
        if subprocess.run(probe, capture_output=True).returncode:
            pytest.skip("no file system may be mounted here")
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    script = f"{mount} && {{ {shlex.join(command)}; code=$?; cp -r {folder}/out {folder}-out; exit $code; }}"
    return subprocess.run([*probe[:-1], script], capture_output=True, text=True, timeout=PATIENCE)


def test_a_run_keeps_below_its_bound_on_a_disk_that_is_no_larger(project: Project) -> None:
    project.ok("run", "--per-shard")
    whole = held(project)
    disk = project.root / "disk"
    project.config["dataset"] = str(disk / "data")
    project.config["mix"]["output"]["path"] = str(disk / "out")
    size = round(whole * 1.45)
    project.config |= {"max_disk": size, "executor": {"type": "local"}}
    command = [sys.executable, "-m", "toolkit", "run", "--per-shard", "-c", str(project.yaml)]
    ran = on_a_disk_of(size, disk, command)
    assert ran.returncode == 0, ran.stderr
    assert tree(project.root / "disk-out") == tree(project.out)
    assert "No space left" not in ran.stderr


def test_inputs_wait_until_there_is_room(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.ok("run", "--per-shard")
    expected = tree(project.out)
    project.config |= {"processes": INPUTS, "executor": {"type": "local"}}
    shutil.rmtree(project.data)
    shutil.rmtree(project.out)
    answers: list[bool] = []
    can_start = DiskQuota.can_start

    def noted(self: DiskQuota, task: Task[Any], running: bool) -> bool:
        answers.append(can_start(self, task, running))
        return answers[-1]

    monkeypatch.setattr(DiskQuota, "can_start", noted)
    bounded(project, 6.6)
    project.ok("run", "--per-shard")
    assert tree(project.out) == expected
    assert answers[0]
    assert not all(answers)


def test_a_run_whose_inputs_become_larger_than_expected_stops_and_goes_on(project: Project) -> None:
    """Each input is a thousand times as large as it is stored, of which nothing tells beforehand."""
    for number in range(INPUTS):
        text = " ".join(random.Random(f"{number}{word}").randbytes(4).hex() for word in range(400)) * 60
        rows = [document(f"{number}-{i}", text) for i in range(10)]
        path = write_rows(project.root / "in" / f"{number}.jsonl.gz", rows)
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), 9))
    project.config["mix"]["output"]["compression"] = "none"
    project.ok("run", "--per-shard")
    expected, whole = tree(project.out), held(project)
    shutil.rmtree(project.data)
    shutil.rmtree(project.out)
    bounded(project, 0.6 * whole / 1e6)
    ran = project("run", "--per-shard").fails(1)
    assert re.search(r"max_disk: expected room for about \S+ MB .* to begin .*, got \S+ MB of", ran.err)
    assert 0 < held(project) < project.config["max_disk"]
    bounded(project, 1.5 * whole / 1e6)
    project.ok("run", "--per-shard")
    assert tree(project.out) == expected


def test_shares_leave_room_for_each_other(project: Project) -> None:
    project.config["max_disk"] = 8_000_000
    for share in range(2):
        project.ok("run", "--per-shard", "--shard", f"{share}/2")
    project.ok("run", "--per-shard")
    bounded(project, 4)
    assert project("run", "--per-shard", "--shard", "0/2", "--overwrite").code == 2


def test_inputs_on_the_web_are_asked_for_their_sizes_when_their_turn_comes(project: Project) -> None:
    write_crawl(project.root / "www", 3)
    del project.config["tag"], project.config["mix"]
    for behaviour in (Behaviour(), Behaviour(length="chunked", head=False)):
        project.config |= {"dataset": str(project.root / behaviour.length), "max_disk": 1_000_000}
        with web(project.root / "www", behaviour) as url:
            assert project.ingest(entry(url)).code == 0
            project.config["max_disk"] = 50_000
            project.config["dataset"] = str(project.root / "small")
            ran = project.ingest(entry(url))
            assert (ran.code, "max_disk: expected room" in ran.err) == (1, True)


def _recipe(project: Project) -> None:
    """A mix with a budget and a shuffle, and its tokens."""
    pytest.importorskip("tokenizers")
    project.config["mix"]["budget"] = {"documents": 1000}
    project.config["mix"]["output"]["shuffle"] = {"seed": "s"}
    tokens = {"path": str(project.root / "tokens"), "tokenizer": str(ROOT / "tests/taggers/files/tokenizer.json")}
    project.config["tokenize"] = {**tokens, "eod": "</s>", "files": "numpy"}


def test_what_a_budget_keeps_and_the_output_of_tokens_count(project: Project) -> None:
    """Each command is refused with the disk as full as the one before left it."""
    _recipe(project)
    project.ok("ingest")
    project.ok("tag")
    for command, folders in (("mix", [project.data]), ("tokenize", [project.data, project.out])):
        bounded(project, bytes_in(map(str, folders)) / 1e6 + 0.01)
        project(command).fails(2, "max_disk: expected room for about")
        assert not [path for path in (project.root / "tokens").rglob("*") if path.is_file()]
        assert command == "tokenize" or not [path for path in project.out.rglob("*") if path.is_file()]
        del project.config["max_disk"]
        project.ok(command)


def test_tokens_count_before_a_run(project: Project) -> None:
    """What the run would keep is more than without them."""

    def needed() -> float:
        bounded(project, 0.1)
        ran = project("run").fails(2)
        found = re.search(r"expected room for about (\S+) MB", ran.err)
        assert found, ran.err
        return float(found[1])

    without = needed()
    _recipe(project)
    assert needed() > without + 2


def test_tokens_in_temporary_files_stay_below_the_bound_on_a_disk_that_is_no_larger(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound below what the files and their temporary ones need is refused; one above it is enough."""
    _recipe(project)
    monkeypatch.setattr("mixers._token_files.HELD", 1000)
    monkeypatch.setattr("mixers.tokens.HELD", 1000)
    project.config |= {"processes": 1, "executor": {"type": "in_process"}}
    del project.config["mix"]["budget"]
    del project.config["mix"]["output"]["shuffle"]
    most = [0]
    make = tempfile.SpooledTemporaryFile

    def noted(*given: Any, **named: Any) -> Any:
        assert str(named["dir"]).startswith(str(project.root / "tokens"))
        most[0] += 1
        return make(*given, **named)

    monkeypatch.setattr("mixers._token_files.tempfile.SpooledTemporaryFile", noted)
    project.ok("run")
    assert most[0]
    folders = [str(path) for path in (project.data, project.out, project.root / "tokens")]
    whole = bytes_in(folders)
    shutil.rmtree(project.root / "tokens")
    part = whole - bytes_in(folders)
    bounded(project, (whole - 0.2 * part) / 1e6)
    assert "max_disk" in project("tokenize").err
    bounded(project, (whole + 3 * part) / 1e6)
    project.ok("tokenize")
