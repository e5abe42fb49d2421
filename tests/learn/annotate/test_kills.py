"""Killing `toolkit annotate` at any moment: what was answered is never asked again, and nothing is lost."""

import json
import os
import random
import signal
import subprocess
import sys
from functools import partial

import pytest

from tests.learn.annotate.conftest import Annotated
from tests.learn.annotate.server import Server, prompt_of
from tests.waiting import PATIENCE, wait_until

DOCUMENTS = 240
KILLS = 6


def _stored(project: Annotated) -> set[str]:
    """Return the digests of the answers on disk; a torn line is none."""
    found = set()
    for path in (project.root / "data/.toolkit/answers").rglob("*.jsonl"):
        found |= {json.loads(line)["key"] for line in path.read_bytes().splitlines(keepends=True) if line[-1:] == b"\n"}
    return found


def _has_answered(server: Server, goal: int, asked: int) -> bool:
    return sum(server.answered.values()) >= goal and len(server.bodies) > asked


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_lost_and_nothing_asked_twice(project: Annotated) -> None:
    """But what was under way when the signal came: at most as many requests as there are at a time."""
    chance = random.Random(19)
    project.entry |= {"samples": 2, "retries": 1000}
    project.write([f"text {i} {'[500 1]' if i % 7 == 0 else ''}" for i in range(DOCUMENTS // 2)], "a")
    project.write([f"text {i} {'[drop 1]' if i % 9 == 0 else ''}" for i in range(DOCUMENTS // 2, DOCUMENTS)], "b")
    server, path = project.server, project.yaml
    command = [sys.executable, "-m", "toolkit.cli", "annotate", "-c", str(path), "--quiet"]
    for kill in range(KILLS):
        before = sum(server.answered.values())
        goal = before + chance.randrange(0, DOCUMENTS * 2 // (KILLS + 1))
        process = subprocess.Popen(command, start_new_session=True)
        asked = len(server.bodies)
        assert wait_until(partial(_has_answered, server, goal, asked))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        assert wait_until(lambda: server.at_once == 0)
        stored = _stored(project)
        assert len(stored) >= sum(server.answered.values()) - project.entry["concurrency"] * (kill + 1)
    project.run().succeeds()
    assert sorted(row["status"] for shard in "ab" for row in project.rows(shard)) == ["success"] * DOCUMENTS
    again = sum(server.answered.values()) - DOCUMENTS * 2
    assert 0 <= again <= KILLS * project.entry["concurrency"]
    assert len(_stored(project)) == DOCUMENTS * 2
    asked = len(server.bodies)
    assert project.run().code == 0
    assert len(server.bodies) == asked


@pytest.mark.slow
def test_interrupted_it_ends_at_once_and_goes_on_in_the_middle_of_a_shard(project: Annotated) -> None:
    """A signal that can be heard: exit status 130; half of the answers are there, and only the others are asked for."""
    server = project.server
    project.write([f"text {i}" for i in range(40)])
    server.holds_after = 20
    command = [sys.executable, "-m", "toolkit.cli", "annotate", "-c", str(project.yaml), "--quiet"]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: len(_stored(project)) == 20 and server.held == project.entry["concurrency"])
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in err
    server.holds_after = sys.maxsize
    server.release.set()
    first = {prompt_of(body) for body in server.bodies[:20]}
    asked = len(server.bodies)
    assert project.run().code == 0
    later = [prompt_of(body) for body in server.bodies[asked:]]
    assert len(later) == 20
    assert first.isdisjoint(later)
