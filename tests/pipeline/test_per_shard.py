"""``run --per-shard``: the same output, while no more documents are on disk than are being worked on."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, strays, tree
from toolkit.mix import publication
from toolkit.storage import paths
from toolkit.storage.stores.local.scratch import machine

pytestmark = pytest.mark.slow

TEXT = ["The library opens at nine.\nIt is closed on Sundays.", "La biblioteca abre a las nueve.", "Die Tür ist offen."]

UNIDENTIFIED = {"drop": "language.label is None", "name": "unidentified"}

WATCHING = """
from pathlib import Path
from toolkit import Document, Tagger

class Watch(Tagger):
    '''Notes how many documents and attributes there are while it works.'''
    seen: str
    root: str

    def tag(self, document: Document) -> int:
        found = sorted(str(path) for path in Path(self.root).rglob("*.jsonl.gz") if ".toolkit" not in path.parts)
        with open(self.seen, "a") as stream:
            stream.write(f"{len(found)}\\n")
        return len(document.text)
"""


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Seven inputs, of which one becomes several shards, and the whole path."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    for i in range(7):
        rows = [{"id": f"{i}-{j}", "text": f"{TEXT[j % 3]} {i}"} for j in range(5)]
        (inputs / f"{i:02}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config: dict[str, Any] = {
        "dataset": str(tmp_path / "data"),
        "processes": 1,
        "ingest": [
            {"format": "jsonl", "from": f"{inputs}/0[0-5].jsonl", "source": "s"},
            {"format": "jsonl", "from": f"{inputs}/06.jsonl", "source": "s", "shard_size": "200 B"},
        ],
        "tag": {"lines-0": "line_language", "language-0": {"tagger": "language", "lines": "lines-0"}},
        "mix": {
            "attributes": ["lines-0", "language-0"],
            "rules": [UNIDENTIFIED],
            "output": {"format": "oscar", "path": str(tmp_path / "out"), "part_size": "1 kB"},
        },
    }
    return Project(tmp_path, run, config)


def published(project: Project) -> tuple[dict[str, str], bytes]:
    return tree(project.out), (project.out / ".toolkit" / "manifest.json").read_bytes()


def left(project: Project) -> list[str]:
    """What no finished run leaves; but the intermediates stay, in place of the documents."""
    found = [*strays(project.data), *strays(project.out)]
    return [path for path in found if not path.startswith(".toolkit/stage") or path.endswith(".tmp")]


def expected(project: Project) -> tuple[dict[str, str], bytes]:
    """What the run in three stages gives; leaves nothing."""
    project.ok("run")
    found = published(project)
    assert found[0]
    shutil.rmtree(project.data)
    shutil.rmtree(project.out)
    return found


@pytest.mark.parametrize("stream", ["", "web"])
def test_the_output_is_the_same_and_the_documents_are_gone(stream: str, project: Project) -> None:
    mix = project.config["mix"]
    if stream:
        mix["streams"] = {stream: {key: mix.pop(key) for key in ("attributes", "rules")}}
    once = expected(project)
    first = project.ok("run", "--per-shard")
    assert published(project) == once
    assert tree(project.data) == {}
    assert left(project) == []
    assert "7 inputs: 7 done (0 before), 0 failed" in first.out
    assert "0 findings" in project.ok("validate").out
    before = tree(project.root, bookkeeping=True)
    assert "already" in project.ok("run", "--per-shard").out
    assert json.loads(project.ok("run", "--per-shard", "--shard", "1/3", "--json").out)["already"]
    assert tree(project.root, bookkeeping=True) == before, "what is published is not made again"


def test_other_commands_say_that_the_documents_are_gone(project: Project) -> None:
    project.ok("run", "--per-shard")
    for command in ("tag", "mix"):
        project(command).fails(2, "run `toolkit ingest`")
    (project.root / "in" / "05.jsonl").write_text('{"id": "5-0", "text": "another text"}\n')
    project.ok("ingest", "--limit", "3")
    for command in ("tag", "mix"):
        project(command).fails(1, "`run --per-shard` has deleted them; run `toolkit ingest`")
    project.ok("run")
    assert len(tree(project.documents)) > 7


def test_shares_in_any_order_and_a_last_step(project: Project) -> None:
    once = expected(project)
    for i in (2, 0, 1):
        project.ok("run", "--per-shard", "--shard", f"{i}/3").shows("run the same command without --shard")
        assert tree(project.data) == tree(project.out) == {}
    project.ok("run", "--per-shard").shows("7 done (7 before)")
    assert published(project) == once


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_more_documents_than_are_being_worked_on(processes: int, project: Project) -> None:
    (project.root / "watch.py").write_text(WATCHING)
    seen = project.root / "seen"
    project.config["ingest"][1].pop("shard_size")
    project.config["processes"] = processes
    watch = {"tagger": f"{project.root}/watch.py:Watch", "seen": str(seen), "root": str(project.data)}
    project.config["tag"]["watch-0"] = watch
    project.ok("run", "--per-shard")
    counts = list(map(int, seen.read_text().split()))
    assert len(counts) == 35
    assert max(counts) <= 3 * processes, "the documents and two sets of each input that is worked on"


def test_an_input_that_fails_stops_no_other_and_nothing_is_published(project: Project) -> None:
    once = expected(project)
    bad = project.root / "in" / "03.jsonl"
    good = bad.read_text()
    bad.write_text(good + "no JSON\n")
    ran = project("run", "--per-shard").fails(1)
    assert "03.jsonl:6" in ran.out + ran.err
    assert tree(project.out) == {}
    bad.write_text(good)
    assert "7 done (6 before)" in project.ok("run", "--per-shard").out
    assert published(project) == once


def test_a_shard_that_cannot_be_mixed_may_be_left_out(project: Project) -> None:
    project.config["mix"]["rules"].append({"drop": "1 // (len(document.id) - 4) < 0", "name": "by zero"})
    (project.root / "in" / "02.jsonl").write_text('{"id": "four", "text": "Die Tür ist offen."}\n')
    project.config["mix"] |= {"on_failed_shard": "omit", "allow_empty": True}
    project("run").fails(1)
    once = published(project)
    assert "s/02.jsonl.gz" in json.loads(once[1])["omitted"]
    shutil.rmtree(project.data)
    shutil.rmtree(project.out)
    assert project("run", "--per-shard").code == 1
    assert published(project) == once
    assert list(tree(project.documents)) == ["s/02.jsonl.gz"], "what is not in the output stays"
    again = project("run", "--per-shard")
    assert (again.code, published(project)) == (1, once)
    assert "7 done (6 before)" in again.out
    stages = {each["stage"]: each for each in project("status", "--json").json["stages"]}
    assert [stages["mix"][state] for state in ("done", "failed", "missing")] == [7, 1, 0]
    assert "division" in stages["mix"]["items"][0]["cause"]
    project.config["mix"]["on_failed_shard"] = "stop"
    assert project("run", "--per-shard").code == 1


def test_another_rule_needs_the_documents_again(project: Project) -> None:
    project.ok("run", "--per-shard")
    project.config["mix"]["rules"] = [{"drop": "language.label is None or language.label == 'de'"}]
    assert "7 done (0 before)" in project.ok("run", "--per-shard").out
    assert not any(row["metadata"]["identification"]["label"] == "de" for row in project.output())


def test_another_tagger_needs_leave_and_then_the_documents_again(project: Project) -> None:
    project.ok("run", "--per-shard")
    project.config["tag"]["lines-0"] = {"tagger": "line_language", "min_prob": 0.1}
    project("run", "--per-shard").fails(2, "made with other settings")
    assert "7 done (0 before)" in project.ok("run", "--per-shard", "--overwrite").out
    once = published(project)
    shutil.rmtree(project.data)
    project.ok("run")
    assert published(project) == once


def test_an_input_that_comes_later_and_one_that_changes(project: Project) -> None:
    project.config["ingest"][0]["from"] = f"{project.root}/in/0[0-57].jsonl"
    project.ok("run", "--per-shard", "--limit", "2")
    assert "7 done (2 before)" in project.ok("run", "--per-shard").out
    (project.root / "in" / "07.jsonl").write_text(json.dumps({"id": "one more", "text": TEXT[0]}) + "\n")
    assert "8 done (7 before)" in project.ok("run", "--per-shard").out
    rows = [json.dumps({"id": f"new-{j}", "text": TEXT[j % 3]}) for j in range(4)]
    (project.root / "in" / "05.jsonl").write_text("\n".join(rows) + "\n")
    assert "8 done (7 before)" in project.ok("run", "--per-shard").out
    found = published(project)
    assert expected(project) == found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attributes": ["lines-0", "language-0", "other-0"]}, "expected only sets that this configuration makes"),
        (
            {"rules": [UNIDENTIFIED, {"keep": "$.attributes[?(@.n > 0)]", "syntax": "jsonpath"}]},
            "with --per-shard, expected an expression",
        ),
        ({"streams": {"a": {"dataset": "elsewhere"}}}, "expected a mix of the dataset of this configuration"),
    ],
)
def test_what_cannot_be_done_so_is_refused(change: dict[str, Any], words: str, project: Project) -> None:
    project.ok("ingest")
    for dataset in (str(project.data), str(project.root / "elsewhere")):
        other = {**project.config, "dataset": dataset, "tag": {**project.config["tag"], "other-0": "line_shape"}}
        path = project.root / "other.json"
        path.write_text(json.dumps(other))
        assert project.run("run", "-c", path, f"mix.output.path={dataset}-out").code == 0
    before = tree(project.data)
    if "streams" in change:
        joined = {key: project.config["mix"].pop(key) for key in ("attributes", "rules")}
        change["streams"]["a"] |= {"dataset": str(project.root / "elsewhere"), **joined}
    project.config["mix"] |= change
    project("run", "--per-shard").fails(2, words)
    assert tree(project.data) == before


def test_documents_of_others_are_not_left_out_unseen(project: Project) -> None:
    project.ok("run", "--per-shard")
    (project.root / "in" / "02.jsonl").unlink()
    output = tree(project.out)
    for more in ([], ["--dry-run"]):
        ran = project("run", "--per-shard", *more).fails(1, "the output would be without their documents")
    assert tree(project.out) == output
    (forget,) = re.findall("run `toolkit (clean --forget .*)`", ran.err)
    project.ok(*forget.split())
    project.ok("run", "--per-shard")
    own = project.documents / "s" / "own.jsonl"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('{"id": "own", "text": "x", "source": "s"}\n')
    before = tree(project.root, bookkeeping=True)
    project("run", "--per-shard").fails(2, f"{own}: with --per-shard, expected only documents of the inputs")
    assert tree(project.root, bookkeeping=True) == before
    own.unlink()
    project.config |= {"documents": {"path": str(project.documents), "exclude": ["s/03*"]}}
    project.config["attributes"] = str(project.attributes)
    assert "without `include` and `exclude`" in project("run", "--per-shard").err


def test_a_publication_that_was_killed_is_finished_and_nothing_is_done_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = expected(project)

    remove = paths.remove

    def die(path: str) -> None:
        if path == publication.intent_path(str(project.out)):
            raise KeyboardInterrupt
        remove(path)

    with monkeypatch.context() as patch:
        patch.setattr(paths, "remove", die)
        assert project("run", "--per-shard").code == 130
    assert (project.out / ".toolkit" / "publishing.json").exists()
    assert "already" in project.ok("run", "--per-shard").out
    assert published(project) == once
    assert left(project) == []


def test_what_killed_runs_left_is_deleted(project: Project) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    name = f".x.json.{machine()}.{gone.pid}-1.1.tmp"
    for folder in (project.out / ".toolkit" / "leases", project.data / ".toolkit"):
        folder.mkdir(parents=True)
        (folder / name).write_text("half")
    project.ok("run", "--per-shard")
    assert not list(project.root.rglob("*.tmp"))


def test_what_a_killed_run_left_is_deleted_where_all_is_published(project: Project) -> None:
    project.ok("run", "--per-shard")
    before = tree(project.root, bookkeeping=True)
    left = project.out / f".x.{machine()}.999999-1.0.tmp"
    left.touch()
    project.ok("run", "--per-shard")
    assert tree(project.root, bookkeeping=True) == before
