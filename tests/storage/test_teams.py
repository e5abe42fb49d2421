"""Two teams at one dataset in a bucket, each in a folder of its own on its machine, at the same time."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import ROOT
from tests.pipeline.test_machines import HELD
from tests.recipes import tree
from tests.waiting import PATIENCE, wait_until
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files

pytestmark = [pytest.mark.s3, pytest.mark.slow]

SHARDS = 3


class Team(NamedTuple):
    """The folder of a team, and its configuration."""

    folder: Path
    config: dict[str, Any]

    def begin(self, *command: str) -> "subprocess.Popen[str]":
        """Begin a command in the team's folder; the tagger waits as long as there is a file ``hold``."""
        (self.folder / "c.yaml").write_text(json.dumps(self.config))
        return subprocess.Popen(
            [sys.executable, "-m", "toolkit.cli", *command, "-c", "c.yaml", "--quiet"],
            cwd=self.folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def ok(self, *command: str) -> None:
        ended(self.begin(*command))

    @contextmanager
    def held(self, *command: str) -> "Iterator[subprocess.Popen[str]]":
        """Begin a command, and hold it where it tags."""
        (self.folder / "hold").touch()
        process = self.begin(*command)
        assert wait_until(lambda: (self.folder / "waits").exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        yield process
        (self.folder / "hold").unlink()


def ended(process: "subprocess.Popen[str]", code: int = 0) -> str:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, out + err
    assert "Traceback" not in err
    return out + err


def ended_or_told(process: "subprocess.Popen[str]") -> None:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, 2), out + err
    assert process.returncode == 0 or "expected no other run" in err
    assert "Traceback" not in err


def team(folder: Path, root: str, name: str, sets: str) -> Team:
    """Return a team whose sets have this name in theirs, and whose output has its own."""
    folder.mkdir()
    (folder / "held.py").write_text(HELD)
    return Team(
        folder,
        {
            "dataset": join(root, "data"),
            "processes": 1,
            "tag": {f"held-{sets}-0": {"tagger": "held.py:Held", "folder": ".", "as": "held"}},
            "dedup": {f"exact-{sets}-0": {"kind": "exact", "as": "exact"}},
            "mix": {
                "attributes": [f"held-{sets}-0", f"exact-{sets}-0"],
                "rules": [{"drop": "exact.duplicate_of is not None", "name": "copies"}],
                "output": {"format": "dolma", "path": join(root, name)},
            },
        },
    )


def lay_out(root: str) -> None:
    for shard in range(SHARDS):
        rows = [{"id": f"{shard}-{i}", "text": f"{(shard + i) % 7} text", "source": "s"} for i in range(20)]
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        write_file(join(root, f"data/documents/{shard}.jsonl"), data)


def left(root: str) -> list[str]:
    """Return what work has left behind."""
    found = [name for name in list_files(root, hidden=True) if "/stage/" in name or "leases" in name]
    return found + store_of(root).leftovers(root, any_owner=True)


@pytest.fixture
def alone(bucket: str, tmp_path: Path) -> dict[str, str]:
    """What two teams with different sets make one after the other."""
    root = join(bucket, "alone")
    lay_out(root)
    for name in "ab":
        team(tmp_path / f"alone-{name}", root, name, name).ok("run")
    return tree(root)


def test_teams_with_sets_of_their_own_do_not_meet(bucket: str, tmp_path: Path, alone: dict[str, str]) -> None:
    root = join(bucket, "both")
    lay_out(root)
    first, second = (team(tmp_path / name, root, name, name) for name in "ab")
    with first.held("run") as one, second.held("run") as other:
        pass
    ended(one)
    ended(other)
    assert tree(root) == alone
    assert left(root) == []


def test_teams_with_the_same_set_make_it_together(bucket: str, tmp_path: Path, alone: dict[str, str]) -> None:
    """Each with an output of its own; of the set that needs the whole one makes it, and the other may be told."""
    root = join(bucket, "both")
    lay_out(root)
    first, second = (team(tmp_path / name, root, name, "a") for name in "ab")
    with first.held("tag") as one, second.held("tag") as other:
        pass
    ended(one)
    ended(other)
    for process in [each.begin("dedup") for each in (first, second)]:
        ended_or_told(process)
    for process in [each.begin("mix") for each in (first, second)]:
        ended(process)
    made = tree(root)
    assert {n: d for n, d in made.items() if n.startswith("data")} == {
        n: d for n, d in alone.items() if n.startswith("data") and "-b-0/" not in n
    }
    assert {n[2:]: d for n, d in made.items() if n.startswith("a/")} == {
        n[2:]: d for n, d in made.items() if n.startswith("b/")
    }
    assert left(root) == []


def test_a_team_with_other_settings_of_the_same_set_is_told_of_the_other(bucket: str, tmp_path: Path) -> None:
    root = join(bucket, "both")
    lay_out(root)
    first, second = (team(tmp_path / name, root, name, "a") for name in "ab")
    second.config["tag"]["held-a-0"]["as"] = "other"
    second.config["mix"]["rules"] = []
    with first.held("tag") as one:
        told = ended(second.begin("tag"), 2)
        assert "held-a-0" in told
        assert "expected no other run" in told
    ended(one)
    assert "other settings" in ended(second.begin("tag"), 2)
    assert left(root) == []
    first.ok("dedup")
    first.ok("validate")


def test_of_teams_with_the_same_output_each_ends_or_is_told(bucket: str, tmp_path: Path, alone: dict[str, str]) -> None:
    root = join(bucket, "both")
    lay_out(root)
    teams = [team(tmp_path / name, root, "a", "a") for name in "ab"]
    with teams[0].held("run") as one, teams[1].held("run") as other:
        pass
    for process in (one, other):
        ended_or_told(process)
    teams[1].ok("run")
    assert tree(root) == {n: d for n, d in alone.items() if not n.startswith("b/") and "-b-0/" not in n}
    assert left(root) == []
