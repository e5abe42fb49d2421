"""``--shard I/N``: array jobs that do a share each, in any order and at once, give what one run gives."""

import gzip
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, attributes, document, strays, tree, write_rows
from toolkit.errors import DataError
from toolkit.execution.leases import hold
from toolkit.ingest import plan as ingest_plan
from toolkit.records import sets

pytestmark = pytest.mark.slow

TEXT = ["The library opens at nine.\nIt is closed on Sundays.", "La biblioteca abre a las nueve.", "Die Tür ist offen."]
INPUTS = 11


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Eleven inputs of different sizes, and the whole path."""
    inputs = tmp_path / "in"
    for i in range(INPUTS):
        write_rows(inputs / f"{i:02}.jsonl", [{"id": f"{i}-{j}", "text": f"{TEXT[j % 3]} {i}"} for j in range(i + 4)])
    return Project(
        tmp_path,
        run,
        {
            "dataset": str(tmp_path / "data"),
            "executor": {"type": "in_process"},
            "ingest": [{"format": "jsonl", "from": f"{inputs}/*.jsonl", "source": "s"}],
            "tag": {"lines-0": "line_language", "language-0": {"tagger": "language", "lines": "lines-0"}},
            "mix": {
                "attributes": ["lines-0", "language-0"],
                "rules": [{"drop": "language.label is None", "name": "unidentified"}],
                "output": {"format": "oscar", "path": str(tmp_path / "out"), "part_size": "1 kB"},
            },
        },
    )


@pytest.fixture
def cut(project: Project) -> Project:
    """The same; inputs are cut into shards, of which there are far more."""
    project.config["ingest"][0]["shard_size"] = "400 B"
    return project


def whole(project: Project) -> tuple[dict[str, str], ...]:
    return tree(project.data), tree(project.out)


def assert_as_one_run(project: Project, *options: str) -> None:
    """All files are those of one run over the same inputs."""
    shared = whole(project)
    assert shared[1]
    for path in (project.data, project.out):
        assert strays(path) == []
        assert not list(path.rglob("leases/*"))
        path.rename(f"{path}-{time.monotonic_ns()}")
    project.ok("run", *options)
    assert whole(project) == shared


def begin(project: Project, share: str, command: str = "run") -> subprocess.Popen[str]:
    """A process group that does a share."""
    line = [sys.executable, "-m", "toolkit.cli", command, "-c", str(project.yaml), "--quiet", "--shard", share]
    return subprocess.Popen(line, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def until(holds: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Waits for an event; an error with what the process says, if it ends before."""
    while not holds():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)


@pytest.mark.parametrize(("count", "size"), [(1, "400 B"), (3, None), *slow((20, "400 B"), (1, None), (20, None))])
def test_shares_in_any_order_and_a_last_step_give_what_one_run_gives(
    count: int, size: str | None, project: Project
) -> None:
    project.config["ingest"][0]["shard_size"] = size
    order = list(range(count))
    random.Random(count).shuffle(order)
    for i in order:
        project.ok("run", "--shard", f"{i}/{count}")
        assert project("status", "--shard", f"{i}/{count}").code == 0
        assert not tree(project.out)
    shared = tree(project.data)
    last = project.ok("mix")
    assert "not in this" not in last.out
    assert tree(project.data) == shared, "nothing was left"
    again = json.loads(project.ok("run", "--shard", f"{order[0]}/{count}", "--json").out)
    assert again["mix"]["failed"] == []
    assert tree(project.data) == shared, "a share that is done again changes nothing"
    assert_as_one_run(project)


@pytest.mark.parametrize("size", [pytest.param(None, marks=pytest.mark.slow), "400 B"])
def test_shares_input_by_input(size: str | None, project: Project) -> None:
    project.config["ingest"][0]["shard_size"] = size
    for i in random.Random(1).sample(range(13), 13):
        ran = project.ok("run", "--per-shard", "--shard", f"{i}/13")
        assert ("this share" in ran.out) == (i > 10)
    project.ok("run", "--per-shard")
    shared = tree(project.out)
    assert shared
    assert not tree(project.data)
    project.out.rename(project.root / "shared")
    project.data.rename(project.root / "shared-data")
    project.ok("run")
    assert tree(project.out) == shared


def owned(project: Project, count: int, command: str = "tag") -> list[list[str]]:
    """What each share would do."""
    plans = [project.ok(command, "--shard", f"{i}/{count}", "--dry-run", "--json").json for i in range(count)]
    return [sorted(plan.get("plan", {}).get(command, [])) for plan in plans]


def names(project: Project) -> list[str]:
    return sorted(str(path.relative_to(project.documents)) for path in project.documents.rglob("*.gz"))


def test_shards_that_no_input_makes_belong_to_one_share_each(cut: Project) -> None:
    """Of inputs that are gone, and of another configuration."""
    cut.ok("ingest")
    for i in range(30):
        write_rows(cut.documents / "other" / f"{i}.json.gz", [document(str(i), "text")])
    before = owned(cut, 4)
    assert sorted(shard for shards in before for shard in shards) == names(cut)
    (cut.root / "in" / "07.jsonl").unlink()
    after = owned(cut, 4)
    assert sorted(shard for shards in after for shard in shards) == names(cut)
    other = [[shard for shard in shards if shard.startswith("other")] for shards in before]
    assert [[shard for shard in shards if shard.startswith("other")] for shards in after] == other
    write_rows(cut.documents / "other" / "31.json.gz", [document("31", "text")])
    assert all(set(a) <= set(b) for a, b in zip(after, owned(cut, 4), strict=True)), "others that come move none"
    subprocess.run(["rm", "-r", str(cut.root / "in")], check=True)
    assert sorted(shard for shards in owned(cut, 4) for shard in shards) == names(cut)
    for i in range(4):
        cut.ok("tag", "--shard", f"{i}/4")
        cut.ok("mix", "--shard", f"{i}/4")
    assert '"rows": 0' not in cut.ok("mix", "--json").out
    assert "up to date" in cut.ok("tag").out


def test_inputs_that_change_between_two_shares_are_left_for_the_last_step_at_most(cut: Project) -> None:
    cut.ok("run", "--shard", "0/2")
    first = cut.root / "in" / "00.jsonl"
    first.write_text(
        first.read_text() + "".join(json.dumps({"id": f"more-{i}", "text": TEXT[0]}) + "\n" for i in range(90))
    )
    write_rows(cut.root / "in" / "new.jsonl", [{"id": "new", "text": "one"}])
    cut.ok("run", "--shard", "1/2")
    cut.ok("run")
    assert_as_one_run(cut)


def test_what_no_share_has_ingested_is_named_and_the_last_run_does_it(cut: Project) -> None:
    for command in ("ingest", "tag", "mix"):
        cut.ok(command, "--shard", "0/3")
    later = cut("tag", "--shard", "1/3").fails(2)
    assert re.search(
        r"expected the documents of this share's \d inputs, got none; run `toolkit ingest --shard 1/3` first\?",
        later.err,
    )
    mixed = cut.ok("mix")
    assert re.search(r"\n[78] inputs are not in this: their ingest has not begun \(s/\d+.jsonl, ", mixed.out)
    cut.ok("run")
    assert_as_one_run(cut)


def test_a_share_without_inputs_ends_well_and_says_so(cut: Project) -> None:
    said = "this share (12 of 13) has no input: there are 11 inputs for 13 shares"
    commands = [("ingest",), ("tag",), ("mix",), ("run",), ("run", "--per-shard"), ("status",), ("mix", "--dry-run")]
    for done in (False, True):
        for command in commands:
            ran = cut.ok(*command, "--shard", "12/13")
            assert ran.out.count(said) == 1
            assert "failed" not in ran.out
            assert "published" not in ran.out
        if not done:
            assert not cut.data.exists(), "nothing was written"
            cut.ok("run")
    assert (
        "this share (500 of 501) has no input and no file: there are 11 inputs"
        in cut.ok("validate", "--shard", "500/501").out
    )
    assert cut.ok("mix", "--shard", "12/13", "--json").json["failed"] == []


def test_a_dry_run_shows_what_a_share_has_of_all(project: Project) -> None:
    sizes = {path.name: path.stat().st_size for path in (project.root / "in").iterdir()}
    plans = [project.ok("run", "--dry-run", "--json", "--shard", f"{i}/3").json["ingest"]["plan"] for i in range(3)]
    held = [sum(sizes[Path(path).name] for path in plan["ingest"]) for plan in plans]
    assert max(held) - min(held) <= max(sizes.values())
    assert sorted(Path(path).name for plan in plans for path in plan["ingest"]) == sorted(sizes)
    for i, plan in enumerate(plans):
        assert plan["share"]["share"] == f"{i}/3"
        assert plan["share"]["inputs"] == {"here": len(plan["ingest"]), "all": INPUTS, "least": 3, "most": 4}
        assert plan["share"]["bytes"] == {
            "here": held[i], "all": sum(held), "least": min(held), "most": max(held), "largest": max(sizes.values()),
        }  # fmt: skip


def test_inputs_that_cannot_be_listed_are_no_reason_to_guess(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.ok("ingest")

    def fails(*_: object, **__: object) -> None:
        raise DataError("got 503", path="https://example.org/list")

    monkeypatch.setattr(ingest_plan, "plan", fails)
    project("tag", "--shard", "0/2").fails(
        2, "expected inputs that can be listed, because shares divide them, got: https://example.org/list: got 503"
    )
    project.ok("tag")  # which need not know


@pytest.mark.parametrize("format", ["dolma", "parquet"])
def test_shares_of_attributes_that_another_program_made(format: str, project: Project) -> None:
    """Their types are those of all shards, whichever a share has; a rule may name what its shards lack."""
    if format == "parquet":
        pytest.importorskip("pyarrow")
    values: list[dict[str, Any]] = [{"x": 1}, {"x": 2.5, "only": "a"}, {"x": 3}, {}]
    for i, value in enumerate(values):
        write_rows(project.documents / f"{i}.jsonl.gz", [document(f"{i}-{j}", "text") for j in range(i + 2)])
        write_rows(project.attributes / "exp" / f"{i}.jsonl.gz", [attributes(f"{i}-{j}", value) for j in range(i + 2)])
    del project.config["ingest"], project.config["tag"]
    project.config["mix"] = {
        "attributes": ["exp"],
        "rules": [{"drop": "x is not None and x > 2.7", "name": "large"}, {"drop": "only is None", "name": "none"}][:1],
        "output": {"format": format, "path": str(project.out)} | ({"attributes": True} if format == "dolma" else {}),
    }
    for i in range(6):
        ran = project.ok("mix", "--shard", f"{i}/6")
        assert ("this share" in ran.out) == (i > 3)
    project.ok("mix")
    shared = tree(project.out)
    assert shared
    project.out.rename(project.root / "shared")
    subprocess.run(["rm", "-r", str(project.data / ".toolkit")], check=True)
    project.ok("mix")
    assert tree(project.out) == shared


def test_a_share_that_makes_a_set_anew_keeps_what_another_has_made_anew_meanwhile(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.ok("run")
    project.config["tag"]["lines-0"] = {"tagger": "line_language", "min_prob": 0.5}
    other = [sys.executable, "-m", "toolkit.cli", "tag", "--overwrite", "-c", str(project.yaml), "--shard", "1/2"]
    listed = sets.recorded_shards

    def late(*of: Any) -> list[str]:
        monkeypatch.setattr(sets, "recorded_shards", listed)
        subprocess.run(other, check=True, capture_output=True)
        return listed(*of)

    monkeypatch.setattr(sets, "recorded_shards", late)
    project.ok("tag", "--overwrite", "--shard", "0/2")
    assert [project("status", "--shard", f"{i}/2", "--json").json["stages"][1]["missing"] for i in range(2)] == [0, 0]


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
    with hold(f"{project.out}/.toolkit/leases", "it", {"the output": "of other settings"}):
        for arguments, other in ((("--shard", "0/2"), " with other settings"), ((), "")):
            project("mix", *arguments).fails(
                2, f"expected no other run{other} on the output, got one that works on it now"
            )
    project.ok("mix", "--shard", "0/2")
    project.ok("mix")


def test_weights_need_all_shards(project: Project) -> None:
    project.ok("ingest")
    project.ok("tag")
    mix: dict[str, Any] = project.config["mix"]
    stream = {"dataset": project.config["dataset"], "attributes": mix.pop("attributes")}
    mix["streams"] = {"a": {**stream, "weight": 1}, "b": {**stream, "weight": 2}}
    project("mix", "--shard", "0/2").fails(2, "weights")


def test_shares_of_a_validation_find_what_the_whole_finds(project: Project) -> None:
    project.ok("run")
    rows = gzip.decompress((project.documents / "s" / "03.jsonl.gz").read_bytes())
    (project.documents / "s" / "03.jsonl.gz").write_bytes(gzip.compress(rows + b"{}\n"))
    expected = [each for each in project("validate", "--json").json["findings"] if "03.jsonl.gz:8" in each["message"]]
    assert expected
    found = [project("validate", "--json", "--shard", f"{i}/3") for i in range(3)]
    assert sorted(ran.code for ran in found) == [0, 0, 1]
    assert [f for ran in found for f in ran.json["findings"] if "03.jsonl.gz:8" in f["message"]] == expected
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
