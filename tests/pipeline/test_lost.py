"""A shard, or a key of an external set, that was there before and has gone is named, and nothing is made without it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.conftest import Project, document, tree, write_rows

NAMES = ("a", "b", "c")


def _documents(folder: Path, *, suffix: str = ".jsonl.gz") -> None:
    for name in NAMES:
        write_rows(folder / f"{name}{suffix}", [document(f"{name}{i}", f"text {i} of {name}") for i in range(3)])


def _ours(project: Project) -> tuple[Path, str]:
    """Documents that ingest has made, of an input that has gone, too."""
    _documents(project.root / "in", suffix=".jsonl")
    project.config["ingest"] = [{"format": "jsonl", "from": f"{project.root}/in/*.jsonl", "source": "s"}]
    project.ok("ingest")
    (project.root / "in" / "b.jsonl").unlink()
    return project.documents / "s" / "b.jsonl.gz", "s/b.jsonl"


def _others(project: Project) -> tuple[Path, str]:
    """Documents of another program."""
    _documents(project.documents)
    return project.documents / "b.jsonl.gz", "b.jsonl.gz"


def _in_place(project: Project) -> tuple[Path, str]:
    """External files."""
    _documents(project.root / "in", suffix=".jsonl")
    del project.config["dataset"]
    place = {"format": "jsonl", "path": f"{project.root}/in/*.jsonl", "source": "s"}
    project.config |= {"documents": place, "attributes": str(project.attributes)}
    return project.root / "in" / "b.jsonl", "b.jsonl.jsonl.gz"


@pytest.mark.parametrize("made", [_ours, _others, _in_place])
def test_a_lost_shard_is_named_until_it_is_forgotten(
    project: Project, made: Callable[[Project], tuple[Path, str]]
) -> None:
    path, name = made(project)
    project.config["tag"] = {"shape-0": ["line_shape"]}
    project.config["mix"] = {"attributes": ["shape-0"], "output": {"format": "dolma", "path": str(project.out)}}
    for command in ("tag", "mix"):
        project.ok(command)
    before = tree(project.out)
    path.unlink()
    for command in ("run", "mix", "tag", "validate", "status"):
        ran = project(command)
        assert ran.code == 1
        assert f"{path}: expected the documents" in ran.out + ran.err, command
        assert f"`toolkit clean --forget {name}`" in ran.out + ran.err, command
    assert tree(project.out) == before
    shown = project.ok("clean", "--forget", name, "--dry-run")
    assert "1 shard would be deleted" in shown.out
    project.ok("clean", "--forget", name)
    for command in ("run", "status", "validate"):
        project.ok(command)
    assert len(project.output()) == 6


def test_a_shard_that_a_glob_leaves_out_is_not_lost(project: Project) -> None:
    path, _ = _in_place(project)
    project.config["tag"] = {"shape-0": ["line_shape"]}
    project.ok("tag")
    path.unlink()
    project.config["documents"]["path"] = f"{project.root}/in/[ac].jsonl"
    project.ok("tag")
    project.ok("status")
    project.config["documents"]["path"] = f"{project.root}/in/a.jsonl"
    project.ok("tag")
    project.ok("status")


def test_a_key_that_an_external_file_had_is_missed(project: Project) -> None:
    _documents(project.documents)
    ids = {name: [f"{name}{i}" for i in range(3)] for name in NAMES}

    def write(name: str, *keys: str, rare: bool = False) -> None:
        rows = [
            {"source": "s", "id": id_, "attributes": {key: [[0, 3, 1.0]] for key in (*keys, *["rare"] * first)}}
            for id_, first in zip(ids[name], (rare, False, False), strict=True)
        ]
        write_rows(project.attributes / "spans" / f"{name}.jsonl.gz", rows)

    for name in NAMES:
        write(name, "x", "y", rare=True)
    cut = {"cut": "y", "name": "y"}
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["spans"], "rules": [cut], "output": output}
    project.ok("mix")
    write("b", "x", "y")
    project.ok("mix")  # no document of this shard has such a span any more
    write("b", "x")  # an absent key means no spans: the rule would not fire there
    for command in ("mix", "validate"):
        ran = project(command)
        assert ran.code == 1
        assert "expected the keys that the file had before, got none of y" in ran.out + ran.err
    assert project("status").code == 1
    project.ok("clean", "--forget", "spans")
    project.ok("mix")
