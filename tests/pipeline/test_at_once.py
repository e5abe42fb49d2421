"""What another process does to a file while a command reads it: the same again, or something else."""

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, write_rows
from toolkit.execution import leases
from toolkit.mix import intermediates, publication
from toolkit.storage import paths
from toolkit.storage.reading import Lines

SHARD = "s/a.jsonl.gz"
ROWS = 5


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """A shard that is ingested."""
    write_rows(tmp_path / "in/a.jsonl", [{"id": str(i), "text": f"text {i}"} for i in range(ROWS)])
    config: dict[str, Any] = {
        "dataset": str(tmp_path / "data"),
        "executor": {"type": "in_process"},
        "ingest": [{"format": "jsonl", "from": f"{tmp_path}/in/*.jsonl", "source": "s"}],
        "tag": {"length-0": "length"},
        "dedup": {"exact-0": {"kind": "exact", "as": "exact"}},
    }
    made = Project(tmp_path, run, config)
    made.ok("ingest")
    return made


@pytest.fixture
def meanwhile(project: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Path], None]], None]:
    """Lets something happen to the shard, once, when it has been read as a whole."""
    shard = project.data / "documents" / SHARD

    def happens(what: Callable[[Path], None]) -> None:
        close, todo = Lines.__exit__, [what]

        def closed(lines: Lines, *error: Any) -> None:
            close(lines, *error)
            if lines.path == str(shard) and lines.number == ROWS and todo:
                todo.pop()(shard)

        monkeypatch.setattr(Lines, "__exit__", closed)

    return happens


def written_again(path: Path) -> None:
    """As another process does that ingests the same input."""
    new = path.with_name(".new")
    new.write_bytes(path.read_bytes())
    os.utime(new, ns=(1, 1))
    new.replace(path)


def replaced(path: Path) -> None:
    """By rows that take as many bytes."""
    size = path.stat().st_size
    data = gzip.decompress(path.read_bytes()).replace(b"text ", b"else ")
    made = gzip.compress(data, 1, mtime=0)
    path.write_bytes(made[:size].ljust(size, b"\0"))


@pytest.mark.parametrize("at", [1, *slow(0, 2, 3, 4)])
def test_an_output_that_another_run_publishes_just_now_is_one_of_ours(
    at: int, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Just before each of the questions what is there: then it is not there, later all is."""
    rules = [{"drop": "document.id == '1'", "name": "one"}]
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"rules": rules, "output": output, "rejected": str(project.root / "rejected")}
    project.ok("mix")
    published, aside = [project.out, project.root / "rejected"], project.root / "aside"
    aside.mkdir()
    for path in published:
        path.rename(aside / path.name)
    left = [at]

    def publish_in_time(function: Callable[[str], Any]) -> Callable[[str], Any]:
        def asked(path: str) -> Any:
            if not left[0]:
                for each in published:
                    (aside / each.name).rename(each)
            left[0] -= 1
            return function(path)

        return asked

    for module, name in ((publication, "is_unfinished"), (publication, "load_manifest"), (paths, "list_files")):
        monkeypatch.setattr(module, name, publish_in_time(getattr(module, name)))
    publication.check_output(str(project.out), [], overwrite=True)
    publication.check_rejected(str(project.out), str(project.root / "rejected"))


def test_a_shard_that_another_run_has_just_written_is_no_strangers(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record comes behind it, and its note may be lost; of a run that is alone nothing is to come."""
    records, aside = project.data / ".toolkit/inputs", project.root / "aside"
    records.rename(aside)
    project("ingest").fails(1, "expected no file here yet")
    shutil.rmtree(records)

    def record(seconds: float) -> None:
        if aside.exists():
            shutil.copytree(aside, records, dirs_exist_ok=True)
            shutil.rmtree(aside)

    monkeypatch.setattr("time.sleep", record)
    with leases.hold(leases.folder_in(str(project.data / ".toolkit")), "it", {"the source 'other'": ""}):
        project.ok("ingest")
    project.ok("tag")


def test_a_mix_that_is_published_while_status_looks_is_done(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its shards, that are ready before and published then, none is missing."""
    project.config["mix"] = {"rules": [], "output": {"format": "dolma", "path": str(project.out)}}
    project.ok("tag")
    project.ok("dedup")
    project.ok("mix", "--shard", "0/1")
    ready = project.root / "ready"
    shutil.copytree(project.out, ready)
    project.ok("mix")
    published, made_from = project.root / "published", intermediates.made_from
    project.out.rename(published)
    ready.rename(project.out)

    def publish_first(*arguments: Any) -> Any:
        if published.exists():
            shutil.rmtree(project.out)
            published.rename(project.out)
        return made_from(*arguments)

    monkeypatch.setattr(intermediates, "made_from", publish_first)
    project("status").succeeds()
    assert not published.exists()


COMMANDS = ("tag", "dedup", "stats", "validate")


def _arguments(command: str, project: Project) -> list[str]:
    return ["-c", str(project.yaml)] if command in ("tag", "dedup") else [str(project.data / "documents")]


@pytest.mark.parametrize("forgets", [True, *slow(False)])
@pytest.mark.parametrize("command", COMMANDS)
def test_documents_that_are_written_again_as_they_are_fail_nothing(
    command: str, forgets: bool, project: Project, meanwhile: Callable[[Callable[[Path], None]], None]
) -> None:
    """By an index that is there, and by one that is made anew."""
    if forgets:
        (project.data / ".toolkit/rows" / f"{SHARD}.bin").unlink()
    meanwhile(written_again)
    project.run(command, *_arguments(command, project)).succeeds()
    for each in ("tag", "dedup", "validate"):
        project.ok(each)


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_that_become_others_are_told(
    command: str, project: Project, meanwhile: Callable[[Callable[[Path], None]], None]
) -> None:
    meanwhile(replaced)
    ran = project.run(command, *_arguments(command, project)).fails(1)
    assert f"{SHARD}: expected a file that does not change while it is read" in ran.out + ran.err
