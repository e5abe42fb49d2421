"""The ledger of a set: what all its runs have cost, whatever ended them, and `max_cost` for all of them together."""

import json
import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.learn.annotate.conftest import Annotated
from tests.learn.annotate.server import Server
from tests.waiting import PATIENCE, wait_until
from toolkit.learn.annotate import ledger as ledgers
from toolkit.learn.annotate.ledger import Ledger, RateLimiter, Spending, spending_of

pytestmark = pytest.mark.slow

PRICES = (1e6, 1e6)
"""A token costs one."""

COST = 110
"""What the test server counts for a request."""


def ledger_of(folder: Path, most: float | None = None) -> Ledger:
    return Ledger(str(folder), RateLimiter(None, None), PRICES, most)


def money(project: Annotated, most: float) -> None:
    project.entry |= {
        "prices": {"input": PRICES[0], "output": PRICES[1]},
        "max_cost": most,
        "sampling": {"max_tokens": 10},
    }


def spent(project: Annotated) -> Any:
    """Return what `status` says of the set."""
    (stage,) = project.run("--json", command="status").json["stages"]
    return stage["spent"]


def test_a_ledger_knows_what_runs_of_all_kinds_have_cost(tmp_path: Path) -> None:
    """One that has ended, one that was killed with a request under way and a torn line, and one that goes on."""
    first = ledger_of(tmp_path)
    for answer in (5, 7):
        key = first.begin(20, 10)
        assert key
        first.end(key, 11, answer)
    first.close()
    killed = ledger_of(tmp_path)
    for _ in range(3):
        assert killed.begin(20, 10)
    killed.end(1, 0, 0)
    killed.lose(2)
    killed._file.close()
    (path,) = {*tmp_path.glob("*.jsonl")} - {Path(first._file.path)}
    with path.open("ab") as file:
        file.write(b'{"key":3,"prompt_tok')
    again = ledger_of(tmp_path)
    assert again.begin(100, 0)
    expected = Spending(
        attempts=6, without_reply=3, prompt_tokens=22 + 40 + 100, completion_tokens=12 + 20, cost=34 + 60 + 100
    )
    assert again.spending == spending_of(str(tmp_path)) == expected
    assert len(Path(first._file.path).read_bytes().splitlines()) == 1
    again.close()


def test_its_files_stay_small_and_their_sums_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process reads along while lines are replaced by their sums, and sees what it should at any time."""
    monkeypatch.setattr(ledgers, "_MOST_BYTES", 2000)
    own, other = ledger_of(tmp_path), ledger_of(tmp_path)
    chance, cost, under_way = random.Random(3), 0, list[int]()
    for _ in range(500):
        key = own.begin(20, 10)
        assert key
        under_way.append(key)
        if chance.random() < 0.1:
            own.lose(under_way.pop(0))
            cost += 30
        elif len(under_way) > 4:
            answer = chance.randrange(10)
            own.end(under_way.pop(chance.randrange(5)), 20, answer)
            cost += 20 + answer
        if chance.random() < 0.2:
            assert other.spending.cost == cost + 30 * len(under_way)
    (path,) = tmp_path.glob("*.jsonl")
    assert path.stat().st_size < 3000
    assert spending_of(str(tmp_path)).attempts == 500
    own.close()
    assert spending_of(str(tmp_path)).cost == cost + 30 * len(under_way)
    assert path.stat().st_size < 1000


def test_an_admission_reads_no_file_of_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while two runs alternate: each has what the other has spent."""
    for _ in range(5):
        earlier = ledger_of(tmp_path, 1e9)
        earlier.end(earlier.begin(20, 10) or 0, 20, 10)
        earlier.close()
    one, other = ledger_of(tmp_path, 1e9), ledger_of(tmp_path, 1e9)
    for ledger in (one, other):
        ledger.end(ledger.begin(20, 10) or 0, 20, 10)
    read, reads = ledgers._Sums.read, list[str]()

    def counted(sums: Any) -> Any:
        reads.append(sums.path)
        return read(sums)

    monkeypatch.setattr(ledgers._Sums, "read", counted)
    for _ in range(50):
        for ledger in (one, other):
            ledger.end(ledger.begin(20, 10) or 0, 20, 5)
    assert reads == []
    assert one.spending.cost == 7 * 30 + 100 * 25
    assert {*reads} > {other._file.path}
    one.close()
    other.close()


@pytest.mark.parametrize("seed", range(2))
def test_runs_that_alternate_and_die_never_spend_more(tmp_path: Path, seed: int) -> None:
    """The sum in the lock's file is lost now and then; all money is spent in the end."""
    chance, most = random.Random(seed), 1500
    runs, under_way = [ledger_of(tmp_path, most) for _ in range(3)], dict[Ledger, int]()
    for _ in range(200):
        ledger = chance.choice(runs)
        if ledger in under_way and chance.random() < 0.9:
            key = under_way.pop(ledger)
            ledger.lose(key) if chance.random() < 0.1 else ledger.end(key, 20, chance.randrange(11))
        elif chance.random() < 0.1:
            runs[runs.index(ledger)] = ledger_of(tmp_path, most)
            ledger.close() if under_way.pop(ledger, None) is None else ledger._file.close()
        elif ledger not in under_way and not ledger._limits.stopped.is_set() and (key := ledger.begin(20, 10) or 0):
            under_way[ledger] = key
            assert json.loads((tmp_path / "lock").read_bytes())["cost"] >= spending_of(str(tmp_path)).cost
        if chance.random() < 0.05 and (tmp_path / "lock").exists():
            (tmp_path / "lock").write_bytes(chance.choice([b"", b"\0" * 128, b"torn"]))
        assert spending_of(str(tmp_path)).cost <= most
    runs.append(last := ledger_of(tmp_path, most))
    while key := last.begin(20, 10) or 0:
        last.end(key, 20, 10)
    assert most - 30 < spending_of(str(tmp_path)).cost <= most
    for ledger in runs:
        ledger._file.close()


def test_a_server_that_counts_more_than_it_can_is_believed(tmp_path: Path) -> None:
    """A later run knows it from the start."""
    ledger = ledger_of(tmp_path, 1000)
    assert ledger.begin(20, 10) == 1
    ledger.end(1, 290, 10)
    ledger.close()
    later = ledger_of(tmp_path, 1000)
    assert [later.begin(20, 10) for _ in range(2)] == [1, 2]  # at 300 each, with 300 gone
    later.end(1, 290, 10)
    later.end(2, 290, 10)
    assert later.begin(20, 10) is None
    later.close()
    assert later._limits.why.startswith(
        "another request may cost more than `max_cost: 1000` leaves: up to 300, and all"
    )


def test_a_cost_limit_holds_for_all_runs_of_a_set(project: Annotated) -> None:
    money(project, 12 * COST)
    project.write([f"text {i}" for i in range(40)])
    for most in (12, 12, 24):
        project.entry["max_cost"] = most * COST
        ran = project.run("--json").fails(1, f"another request may cost more than `max_cost: {most * COST}` leaves")
        assert most - 2 <= len(project.server.bodies) <= most
        told = ran.json["sets"]["edu-0"]["all_runs"]
        assert told == spent(project)
        assert told == {
            "attempts": len(project.server.bodies),
            "without_reply": 0,
            "prompt_tokens": 100 * len(project.server.bodies),
            "completion_tokens": 10 * len(project.server.bodies),
            "cost": COST * len(project.server.bodies),
        }
    project.entry["max_cost"] = 1e9
    assert project.run().code == 0
    assert set(project.server.answered.values()) == {1}


def test_what_was_not_generated_costs_nothing_and_what_was_lost_the_most(project: Annotated) -> None:
    money(project, 1e9)
    project.entry |= {"retries": 1}
    project.write(["[503 1] busy", "[429 1] busy", "[page 1] a page", "[chunk 1] cut off", "fine"])
    assert project.run().code == 0
    found = spent(project)
    assert (found["attempts"], found["without_reply"]) == (9, 2)
    bodies = [len(json.dumps(body, separators=(",", ":"))) for body in project.server.bodies]
    least, most = 2 * (min(bodies) + 10), 2 * (max(bodies) + 10)
    assert 5 * COST + least <= found["cost"] <= 5 * COST + most


def test_shares_at_once_have_one_limit(project: Annotated) -> None:
    money(project, 60 * COST)
    for shard in "abcd":
        project.write([f"text {shard} {i}" for i in range(40)], shard)
    command = [sys.executable, "-m", "toolkit.cli", "annotate", "-c", str(project.yaml), "--quiet", "--shard"]
    processes = [subprocess.Popen([*command, f"{i}/3"], stderr=subprocess.DEVNULL) for i in (1, 2, 3)]
    codes = [process.wait(PATIENCE) for process in processes]
    assert 1 in codes
    found = spent(project)
    assert (found["attempts"], found["without_reply"]) == (len(project.server.bodies), 0)
    assert found["cost"] == len(project.server.bodies) * COST
    assert 50 * COST <= found["cost"] <= 60 * COST


def _is_far(server: Server, goal: int, process: "subprocess.Popen[bytes]") -> bool:
    return len(server.bodies) >= goal or process.poll() is not None


def killed(project: Annotated, kills: int, seed: int) -> None:
    """Kill runs at any moment; hold the ledger against the requests of the server after each."""
    chance, server = random.Random(seed), project.server
    command = [sys.executable, "-m", "toolkit.cli", "annotate", "-c", str(project.yaml), "--quiet"]
    for _ in range(kills):
        goal = len(server.bodies) + chance.randrange(0, 12)
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
        wait_until(partial(_is_far, server, goal, process))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        assert wait_until(lambda: server.at_once == 0)
        found = spent(project) or {"cost": 0, "without_reply": 0}
        free = sum("[500 1]" in prompt for prompt in server.done)  # the first attempt of each of these
        taken = (len(server.bodies) - free) * COST
        assert taken <= found["cost"], "the server has taken more than the ledger says"
        assert taken <= project.entry["max_cost"]
        assert found["cost"] <= taken + found["without_reply"] * 300
        assert found["without_reply"] <= (kills + 1) * project.entry["concurrency"]


def test_killed_at_any_moment_the_ledger_has_all_that_the_server_took(project: Annotated) -> None:
    money(project, 200 * COST)
    project.write([f"text {i} {'[500 1]' if i % 7 == 0 else ''}" for i in range(400)])
    killed(project, 8, 5)
    project.run().fails(1, "another request may cost more than")
    assert sum(project.server.answered.values()) <= 200


def test_a_killed_run_is_counted_with_what_was_under_way(project: Annotated) -> None:
    """Four requests that the server holds: each counts with its bytes and `max_tokens`."""
    money(project, 1e9)
    project.write([f"text {i}" for i in range(9)])
    project.server.holds_after = 3
    command = [sys.executable, "-m", "toolkit.cli", "annotate", "-c", str(project.yaml), "--quiet"]
    process = subprocess.Popen(command, start_new_session=True)
    assert wait_until(lambda: project.server.held == 4)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
    bodies = [len(json.dumps(body, separators=(",", ":"))) for body in project.server.bodies[3:]]
    found = spent(project)
    assert (found["attempts"], found["without_reply"]) == (7, 4)
    assert found["cost"] == 3 * COST + sum(bodies) + 4 * 10
