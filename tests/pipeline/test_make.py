"""``toolkit make``: a stage of a stranger, written from its page alone, is one of a run's stages."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run
from tests.pipeline.conftest import Project, read_rows, strays, tree
from tests.waiting import wait_until

OWN = """
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
import msgspec
from toolkit import Attribute, Document, Stage

class Length(Stage):
    '''The number of characters.'''
    factor: Annotated[int, msgspec.Meta(description="it is multiplied by")] = 1
    def make(self, documents: Sequence[Document]) -> Sequence[int]:
        if any(each.text == "no" for each in documents):
            raise ValueError("I was told no")
        return [len(each.text) * self.factor for each in documents]

class Bare(Stage):
    '''No annotation.'''
    def make(self, documents):
        return []

class Lines(Stage):
    '''A document for each line, with the length of the text that it was in.'''
    length: Annotated[str, msgspec.Meta(description="the length"), Attribute("length", int)]
    waits: Annotated[str | None, msgspec.Meta(description="a file that it waits for")] = None
    refuses: Annotated[str | None, msgspec.Meta(description="a text with which it fails")] = None
    def make(self, documents: Sequence[Document]) -> Sequence[Document]:
        if any(each.text == self.refuses for each in documents):
            raise ValueError("I was told no")
        while self.waits and any("wait" in each.text for each in documents) and not Path(self.waits).exists():
            time.sleep(0.05)
        return [
            Document(line, id=f"{each.id}/{i}", source=each.source, metadata={"n": each.attribute(self.length)})
            for each in documents
            for i, line in enumerate(each.lines)
        ]
"""


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Three inputs, a stage that makes attributes, one that reads them and makes documents, and a mix."""
    (tmp_path / "in").mkdir()
    for name in "abc":
        write(tmp_path, name, "yes\nno more")
    (tmp_path / "own.py").write_text(OWN)
    stages = {
        "length-0": {"stage": f"{tmp_path}/own.py:Length"},
        "lines": {"stage": f"{tmp_path}/own.py:Lines", "length": "length-0", "dataset": str(tmp_path / "new")},
    }
    mix = {"attributes": ["length-0"], "rules": [{"keep": "length > 2"}], "output": {"format": "dolma"}}
    mix["output"] = {"format": "dolma", "path": str(tmp_path / "out")}
    ingest = [{"format": "jsonl", "from": f"{tmp_path}/in/*.jsonl", "source": "s"}]
    config = {"dataset": str(tmp_path / "data"), "processes": 1, "ingest": ingest, "make": stages, "mix": mix}
    return Project(tmp_path, run, config)


def write(folder: Path, name: str, text: str) -> None:
    (folder / "in" / f"{name}.jsonl").write_text(json.dumps({"id": name, "text": text}) + "\n")


def counts(project: Project) -> dict[str, tuple[int, int, int]]:
    """Done, failed and missing of each stage."""
    found = project("status", "--json").json["stages"]
    return {each["stage"]: (each["done"], each["failed"], each["missing"]) for each in found}


def test_a_run_makes_attributes_and_documents_and_then_has_nothing_to_do(project: Project) -> None:
    plan = project.ok("run", "--dry-run", "--json").json["plan"]
    assert {name: each["to_do"] for name, each in plan.items()} == dict.fromkeys(
        ("ingest", "make length-0", "make lines", "mix"), 3
    )
    project.ok("run")
    assert project.values("length-0", "s/a.jsonl.gz") == [{"length": 11}]
    new = read_rows(project.root / "new" / "documents" / "s" / "a.jsonl.gz")
    assert [(row["id"], row["text"], row["metadata"]) for row in new] == [
        ("a/0", "yes", {"n": 11}),
        ("a/1", "no more", {"n": 11}),
    ]
    before = tree(project.root, bookkeeping=True)
    ran = project.ok("run", "--json").json
    assert {each["written"] for each in ran["make"]["made"].values()} == {0}
    assert tree(project.root, bookkeeping=True) == before
    assert counts(project)["make lines"] == (3, 0, 0)
    assert "0 findings" in project.ok("validate").out
    assert "0 findings" in project.run("validate", project.root / "new").out


def test_shares_and_limits_do_their_part_and_changes_are_made_again(project: Project) -> None:
    project.ok("run", "--shard", "0/2")
    project.ok("run", "--shard", "1/2")
    assert counts(project)["make lines"] == (3, 0, 0)
    write(project.root, "b", "another\ntext\nhere")
    project.ok("ingest")
    assert counts(project)["make length-0"] == counts(project)["make lines"] == (2, 0, 1)
    made = project.ok("make", "--limit", "2", "--json").json["made"]
    assert [made[name]["written"] for name in ("length-0", "lines")] == [1, 1]
    assert len(read_rows(project.root / "new" / "documents" / "s" / "b.jsonl.gz")) == 3
    (project.root / "in" / "c.jsonl").unlink()
    tagged = Project(project.root / "new", project.run, {"dataset": f"{project.root}/new", "processes": 1})
    tagged.config["tag"] = {"length-1": [{"tagger": "length"}]}
    tagged.ok("tag")
    made_of_c = project.root / "new" / "documents" / "s" / "c.jsonl.gz"
    assert str(made_of_c) in project.ok("clean", "--forget", "s/c.jsonl").out
    assert not list((project.root / "new").rglob("*c.jsonl.gz*"))
    tagged.ok("tag")
    assert "not in the dataset" not in project.ok("make").out


def test_other_settings_and_other_code_are_refused(project: Project) -> None:
    project.ok("run")
    project.config["make"]["length-0"]["factor"] = 2
    for command in ("run", "make"):
        project(command).fails(2, "made with other settings", "factor: 1 -> 2")
    assert "`toolkit make --overwrite`" in project("status").out
    project.ok("run", "--overwrite")
    assert project.values("length-0", "s/a.jsonl.gz") == [{"length": 22}]
    own = project.root / "own.py"
    own.write_text(own.read_text().replace("{i}", "{i + 1}"))
    refused = project("make").fails(2)
    assert "the code of lines has changed: own.py" in refused.err or "made with other code" in refused.err


def test_a_shard_that_fails_leaves_no_documents_of_other_settings(project: Project) -> None:
    write(project.root, "b", "maybe")
    project.ok("run")
    project.config["make"]["lines"]["refuses"] = "maybe"
    project("make", "--overwrite").fails(1, "I was told no")
    new = project.root / "new" / "documents" / "s"
    assert sorted(path.name for path in new.iterdir()) == ["a.jsonl.gz", "c.jsonl.gz"]
    assert counts(project)["make lines"] == (2, 1, 0)


def test_a_mix_notices_a_changed_section_as_that_of_taggers(project: Project) -> None:
    project.ok("run")
    project.config["make"]["length-0"]["factor"] = 2
    project("mix").fails(2, "expected the set 'length-0' as the section `make:` says", "factor: 1 -> 2")
    project.config["make"]["length-0"]["factor"] = 1
    own = project.root / "own.py"
    own.write_text(own.read_text().replace("* self.factor", "+ self.factor"))
    project("mix").fails(2, "the code of length has changed: own.py")


def test_new_documents_of_shards_that_are_left_out_stay_and_are_named(project: Project) -> None:
    project.ok("run")
    left_out = project.root / "new" / "documents" / "s" / "b.jsonl.gz"
    del project.config["ingest"], project.config["dataset"], project.config["mix"]
    data = project.root / "data"
    project.config["documents"] = {"path": f"{data}/documents", "exclude": ["s/b*"]}
    project.config["attributes"] = f"{data}/attributes"
    project.ok("make").shows(
        "new documents of shards that are not in the dataset: 1 (s/b.jsonl.gz); `toolkit make --overwrite`"
    )
    assert left_out.exists()
    assert "1 (s/b.jsonl.gz)" in project.ok("status").out
    strangers = left_out.with_name("strangers.jsonl.gz")
    strangers.write_bytes(left_out.read_bytes())
    project.config["make"]["length-0"]["factor"] = 2
    assert "1 (s/b.jsonl.gz); they were deleted" in project.ok("make", "--overwrite").out
    assert strangers.exists()
    assert not left_out.exists()
    assert "not in the dataset" not in project.ok("make").out


def test_a_takedown_names_new_documents_and_the_next_run_makes_them_without_it(project: Project) -> None:
    project.ok("run")
    (project.root / "list.txt").write_text("a\n")
    new = project.root / "new"
    taken = project.ok("takedown", project.root / "list.txt", "--apply", "--json").json
    assert f"{new}: toolkit make" in taken["again"]
    project.ok("run")
    assert {row["id"][0] for path in (new / "documents").rglob("*.gz") for row in read_rows(path)} == {"b", "c"}


def test_ingested_documents_are_never_replaced_by_new_ones(project: Project) -> None:
    project.ok("run")
    other = project.root / "other"
    project.ok("ingest", f"dataset={other}")
    project.config["make"]["lines"]["dataset"] = str(other)
    project("make", "--overwrite").fails(2, "which has ingested documents")


def test_clean_looks_at_the_new_documents_too(project: Project) -> None:
    project.ok("run")
    left = project.root / "new" / "documents" / "s" / ".b.jsonl.gz.elsewhere-0.1-1.1.tmp"
    left.touch()
    assert str(left) in project.ok("clean").out
    assert not left.exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("[0.5, float('nan'), 1.0]", "got nan: NaN and infinity are no numbers of JSON (document 'b')"),
        ("[0.5, 'x', 1.0]", "got 'x': expected a number or null"),
        ("[0.5, 1.0]", "expected 3 values of `make`, got 2"),
        ("None", "TypeError: 'NoneType' object is not iterable (document 'a')"),
        ("(1 / 0 for each in documents)", "ZeroDivisionError: division by zero (document 'a')"),
        ("[Document(None, id='x', source='s')]", "document 'x' cannot be a row: expected a text, got null - at $.text"),
        ("[Document('x', id=5, source='s')]", "document 5 cannot be a row: expected a text, got a whole number"),
        (
            "[Document(d.text + '!', id=d.id, source='s', row=d.row) for d in documents]",
            "in its row, in one line; got others",
        ),
        ("[Document('x', id='x', source='s', metadata=[1])]", "expected an object or null, got a list - at $.metadata"),
    ],
)
def test_wrong_values_fail_their_shard(tmp_path: Path, run: Run, values: str, message: str) -> None:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"id": id, "text": id}) + "\n" for id in "abc"))
    item, new = ("Document", {"dataset": f"{tmp_path}/new"}) if "Document(" in values else ("float | None", {})
    (tmp_path / "own.py").write_text(
        "from collections.abc import Sequence\nfrom toolkit import Document, Stage\nclass Score(Stage):\n"
        f'    "A score."\n    def make(self, documents: Sequence[Document]) -> Sequence[{item}]:\n'
        f"        return {values}\n"
    )
    config = {
        "dataset": str(tmp_path / "data"),
        "processes": 1,
        "ingest": [{"format": "jsonl", "from": f"{tmp_path}/in.jsonl", "source": "s"}],
        "make": {"score-0": {"stage": f"{tmp_path}/own.py:Score", **new}},
    }
    Project(tmp_path, run, config)("run").fails(1, message)
    assert not [*tmp_path.glob("data/attributes/**/*.gz"), *tmp_path.glob("new/documents/**/*.gz")]


def test_a_failed_shard_stops_no_other(project: Project) -> None:
    write(project.root, "b", "no")
    project("run").fails(1, "s/b.jsonl.gz:1: stage length failed: ValueError: I was told no (document 'b')")
    found = counts(project)
    assert found["make length-0"] == (2, 1, 0)
    assert found["make lines"] == (2, 0, 1)
    assert project.output() == []
    write(project.root, "b", "yes")
    project.ok("run")
    assert set(counts(project).values()) == {(3, 0, 0), (1, 0, 0)}


@pytest.mark.slow
def test_a_kill_costs_the_shard_in_flight(project: Project) -> None:
    write(project.root, "b", "wait")
    gate = project.root / "gate"
    project.config["make"]["lines"]["waits"] = str(gate)
    project.ok("ingest")
    command = [sys.executable, "-m", "toolkit.cli", "run", "-c", str(project.yaml), "--quiet"]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        wait_until(lambda: (project.root / "new" / "documents" / "s" / "a.jsonl.gz").exists())
        os.killpg(process.pid, signal.SIGKILL)
    assert not (project.root / "new" / "documents" / "s" / "b.jsonl.gz").exists()
    gate.touch()
    project.ok("run")
    assert strays(project.root) == []
    assert set(counts(project).values()) == {(3, 0, 0), (1, 0, 0)}
    assert "0 findings" in project.run("validate", project.root / "new").out


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"stage": "own.py"}, "expected a class of the file too"),
        ({"stage": "own.py:Length", "factr": 1}, "unknown option 'factr'"),
        ({"stage": "own.py:Length", "dataset": "new"}, "expected no `dataset`"),
        ({"stage": "own.py:Lines", "length": "length-0"}, "expected `dataset: ROOT`"),
        (
            {"stage": "own.py:Lines", "length": "lengths-0", "dataset": "more"},
            "expected an attribute set, got 'lengths-0'",
        ),
        ({"stage": "own.py:Bare"}, "expected a `make` whose annotation says what it returns"),
        ({"tagger": "noise"}, "expected {stage: path/file.py:Class"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(project: Project, entry: dict[str, object], message: str) -> None:
    ours = {key: f"{project.root}/{value}" if key in ("stage", "dataset") else value for key, value in entry.items()}
    project.config["make"]["other"] = ours
    project.ok("ingest")
    project("make").fails(2, message, "make.other")


WHOLE = """
import statistics
from collections.abc import Iterable, Sequence
from typing import Annotated
import msgspec
from toolkit import Attribute, Document, Stage

class Long(Stage):
    '''Whether a text is longer than the median.'''
    length: Annotated[str, msgspec.Meta(description="the length"), Attribute("length", int)]
    fails: Annotated[bool, msgspec.Meta(description="whether it fails")] = False
    def extract(self, documents: Sequence[Document]) -> Sequence[int]:
        return [each.attribute(self.length) for each in documents]
    def combine(self, values: Iterable[int]) -> float:
        if self.fails:
            raise ValueError("I was told no")
        return statistics.median(values)
    def finish(self, values: Sequence[int], whole: float) -> Sequence[bool]:
        return [value > whole for value in values]
"""


@pytest.mark.slow
def test_a_stage_that_needs_all_documents_waits_for_all_shares(project: Project) -> None:
    (project.root / "whole.py").write_text(WHOLE)
    write(project.root, "c", "long" * 9)
    entry: dict[str, object] = {"stage": f"{project.root}/whole.py:Long", "length": "length-0"}
    project.config["make"] = {"length-0": project.config["make"]["length-0"], "long-0": entry}
    project.config["mix"] |= {"attributes": ["long-0"], "rules": [{"keep": "long"}]}
    assert project.ok("run", "--dry-run", "--json").json["plan"]["make long-0"]["kind"] == "whole"
    for share in ("0/2", "1/2"):
        assert "depends on all shards" in project.ok("run", "--shard", share).out
    assert counts(project)["make long-0"] == (0, 0, 3)
    project.ok("run")
    assert [project.values("long-0", f"s/{name}.jsonl.gz") for name in "abc"] == [
        [{"long": False}],
        [{"long": False}],
        [{"long": True}],
    ]
    assert counts(project)["make long-0"] == (3, 0, 0)
    assert project.ok("make", "--json").json["made"]["long-0"]["written"] == 0
    write(project.root, "a", "longest" * 9)
    project.ok("run")
    assert project.values("long-0", "s/c.jsonl.gz") == [{"long": False}]
    entry["fails"] = True
    assert "made with other settings" in project("make").err
    failed = project("make", "--overwrite")
    assert (failed.code, "`combine` failed: ValueError: I was told no" in failed.err + failed.out) == (1, True)
