"""``--shard I/N``: array jobs that do a share each, in any order and at once, give what one run gives."""

import gzip
import json
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, strays, tree
from toolkit.claims import claimed

TEXT = ["The library opens at nine.\nIt is closed on Sundays.", "La biblioteca abre a las nueve.", "Die Tür ist offen."]


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Eleven inputs, and the whole path."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    for i in range(11):
        rows = [{"id": f"{i}-{j}", "text": f"{TEXT[j % 3]} {i}"} for j in range(5)]
        (inputs / f"{i:02}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Project(
        tmp_path,
        run,
        {
            "dataset": str(tmp_path / "data"),
            "processes": 1,
            "ingest": [{"format": "jsonl", "from": f"{inputs}/*.jsonl", "source": "s"}],
            "tag": {"lines-0": "line_language", "language-0": {"tagger": "language", "lines": "lines-0"}},
            "mix": {
                "attributes": ["lines-0", "language-0"],
                "rules": [{"drop": "language.label is None", "name": "unidentified"}],
                "output": {"format": "oscar", "path": str(tmp_path / "out"), "part_size": "1 kB"},
            },
        },
    )


def whole(project: Project) -> tuple[dict[str, str], ...]:
    return tree(project.data), tree(project.out)


@pytest.mark.parametrize("count", [1, 3, 20])
def test_shares_in_any_order_and_a_last_step_give_what_one_run_gives(count: int, project: Project) -> None:
    order = list(range(count))
    random.Random(count).shuffle(order)
    for i in order:
        project.ok("run", "--shard", f"{i}/{count}")
        assert not tree(project.out)
    assert json.loads(project.ok("mix", "--json").out)["totals"]["rows"] == 55
    shared = whole(project)
    assert shared[1]
    for path in (project.data, project.out):
        assert strays(path) == []
    again = json.loads(project.ok("run", "--shard", f"{order[0]}/{count}", "--json").out)
    assert again["mix"]["failed"] == []
    assert whole(project) == shared, "a share that is done again changes nothing"
    subprocess.run(["rm", "-r", str(project.data), str(project.out)], check=True)
    project.ok("run")
    assert whole(project) == shared


def test_shares_at_once(project: Project) -> None:
    command = [sys.executable, "-m", "toolkit.cli", "run", "-c", str(project.yaml), "--quiet", "--shard"]
    ended: list[subprocess.CompletedProcess[str]] = []

    def work(i: int) -> None:
        ended.append(subprocess.run([*command, f"{i}/3"], capture_output=True, text=True, check=False))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(each.returncode, each.stderr) for each in ended] == [(0, "")] * 3
    project.ok("mix")
    shared = whole(project)
    subprocess.run(["rm", "-r", str(project.data), str(project.out)], check=True)
    project.ok("run")
    assert whole(project) == shared


def test_every_shard_is_in_one_share_and_stays_there(project: Project) -> None:
    project.ok("ingest")
    seen: list[dict[str, list[str]]] = []
    for _ in range(2):
        found = {}
        for i in range(4):
            plan = json.loads(project.ok("tag", "--shard", f"{i}/4", "--dry-run", "--json").out)["plan"]["tag"]
            found[str(i)] = sorted(plan)
        seen.append(found)
        (project.root / "in" / "99.jsonl").write_text('{"id": "x", "text": "one"}\n')
        project.ok("ingest")
    assert sorted(shard for shards in seen[0].values() for shard in shards) == sorted(
        str(path.relative_to(project.documents)) for path in project.documents.rglob("*.gz") if "99" not in path.name
    )
    assert all(set(seen[0][i]) <= set(seen[1][i]) for i in seen[0])


def test_a_share_that_fails_says_so_and_nothing_is_published_without_it(project: Project) -> None:
    project.ok("run", "--shard", "0/2")
    bad = project.root / "in" / "00.jsonl"
    text = bad.read_text()
    bad.write_text("no JSON\n")
    codes = [project("run", "--shard", f"{i}/2").code for i in range(2)]
    assert sorted(codes) == [0, 1]
    bad.write_text(text)
    project.ok("run")


def test_runs_with_the_same_settings_share_an_output_and_others_are_told(project: Project) -> None:
    project.ok("ingest")
    project.ok("tag")
    with claimed(f"{project.out}/.toolkit/claims", "it", {"the output": "of other settings"}):
        for arguments, other in ((("--shard", "0/2"), " with other settings"), ((), "")):
            ran = project("mix", *arguments)
            assert ran.code == 2
            assert f"expected no other run{other} on the output, one is working on it" in ran.err
    project.ok("mix", "--shard", "0/2")
    project.ok("mix")


@pytest.mark.parametrize("given", ["2/2", "-1/2", "1", "a/b", "0/0", "/"])
def test_a_share_that_is_none_is_refused(given: str, project: Project) -> None:
    ran = project("tag", f"--shard={given}")
    assert ran.code == 2
    assert "expected I/N with I from 0 to N - 1" in ran.err


def test_weights_need_all_shards(project: Project) -> None:
    project.ok("ingest")
    project.ok("tag")
    mix: dict[str, Any] = project.config["mix"]
    stream = {"dataset": project.config["dataset"], "attributes": mix.pop("attributes")}
    mix["streams"] = {"a": {**stream, "weight": 1}, "b": {**stream, "weight": 2}}
    ran = project("mix", "--shard", "0/2")
    assert ran.code == 2
    assert "weights" in ran.err


def test_shares_of_a_validation_find_what_the_whole_finds(project: Project) -> None:
    project.ok("run")
    rows = gzip.decompress((project.documents / "s" / "03.jsonl.gz").read_bytes())
    (project.documents / "s" / "03.jsonl.gz").write_bytes(gzip.compress(rows + b"{}\n"))
    expected = [finding for finding in project("validate", "--json").json["findings"] if "03.jsonl.gz:6" in finding]
    assert expected
    found = [project("validate", "--json", "--shard", f"{i}/3") for i in range(3)]
    assert sorted(ran.code for ran in found) == [0, 0, 1]
    assert [f for ran in found for f in ran.json["findings"] if "03.jsonl.gz:6" in f] == expected
    assert "left out: documents that are there twice" in project("validate", "--shard", "0/3").out
    assert "left out" not in project("validate").out


def test_the_status_of_shares_is_that_of_the_whole_in_pieces(project: Project) -> None:
    project.ok("run", "--shard", "0/2")
    assert project("status", "--shard", "0/2").code == 0
    whole, *shares = [
        {
            (stage["stage"], state): stage[state]
            for stage in project("status", "--json", *part).json["stages"]
            for state in ("done", "missing")
        }
        for part in ((), ("--shard", "0/2"), ("--shard", "1/2"))
    ]
    assert {key: value for key, value in whole.items() if key[0] != "publish"} == {
        key: shares[0][key] + shares[1][key] for key in shares[0]
    }
