"""Labels by hand: durable one by one, never lost, read back by `align`."""

import http.client
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import toolkit
from tests.pipeline.conftest import Project
from tests.view.sites import lay_out, serving
from tests.waiting import PATIENCE, wait_until
from toolkit.errors import ConfigError, DataError
from toolkit.storage.stores.local.scratch import append_line
from toolkit.view.labels import LabelFile, LabelQuestion, question_of


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("quality=good,bad", ("good", "bad")),
        ("edu=0..3", (0.0, 1.0, 2.0, 3.0)),
        ("edu=-1,0.5,2", (-1.0, 0.5, 2.0)),
        ("q= a b , c ", ("a b", "c")),
        ("q=1,many", ("1", "many")),
    ],
)
def test_questions(text: str, labels: tuple[object, ...]) -> None:
    assert question_of(text).labels == labels


@pytest.mark.parametrize(
    "text", ["", "q", "q=", "q=one", "q=a,a", "q=1,1.0", "a b=c,d", "q=a,,b", "=a,b", "q=5..2", "q=nan,nan"]
)
def test_what_is_no_question_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--label: expected a question and its labels"):
        question_of(text)


@pytest.mark.slow
def test_align_reads_what_was_labelled_and_another_session_goes_on(tmp_path: Path) -> None:
    config, path = lay_out(tmp_path), tmp_path / "mine.labels.jsonl"
    with serving(config, path) as site:
        for row in range(5):
            assert (
                site.label(at=[1, row], id=f"b-{row}", question="verdict", label="keep" if row % 2 else "drop").status
                == 200
            )
        assert site.label(at=[1, 2], id="b-2", question="edu", label=2).status == 200
        before = path.read_bytes()
    with serving(config, path) as site:
        assert path.read_bytes() == before
        assert site.ok("view")["labels"]["documents"] == 5
        assert site.ok("document", shard=1, row=2)["labels"] == {"verdict": "drop", "edu": 2}
        assert site.label(at=[1, 0], id="b-0", question="verdict", label="keep").status == 200
    config["align"] = {
        "people-0": {"format": "label_studio", "from": str(path), "missing": "null", "source": "data.source"}
    }
    toolkit.align(config)
    values = {row.document.id: row.attributes for row in toolkit.Dataset(config).joined("people-0")}
    assert values["b-0"]["verdict"] == {"label": "keep", "labels": ["keep"], "annotators": ["ann"]}
    assert values["b-2"]["edu"] == {"score": 2.0, "scores": [2.0], "annotators": ["ann"]}
    assert values["b-9"] == {"verdict": None, "edu": None}


def test_the_labels_of_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    asking = LabelQuestion("q", ("a", "b"))
    for who, label in (("ann", "a"), ("bob", "b"), ("ann", "b")):
        with LabelFile(str(path), [asking], who) as labels:
            labels.put("s", "1", "q", label)
    [row] = _rows(path)
    said = {each["completed_by"]: each["result"][0]["value"]["choices"] for each in row["annotations"]}
    assert said == {"ann": ["b"], "bob": ["b"]}


def _line(id: str, label: str | None, who: str = "ann") -> bytes:
    """A line as a colleague, or another session, writes it."""
    result = {"from_name": "q", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    annotation = {"completed_by": who, "result": [result] if label else []}
    return json.dumps({"data": {"document_id": id, "source": "s"}, "annotations": [annotation]}).encode() + b"\n"


def _said(path: Path) -> dict[tuple[str, str], str]:
    """The labels in a file, by document and person."""
    return {
        (row["data"]["document_id"], each["completed_by"]): each["result"][0]["value"]["choices"][0]
        for row in _rows(path)
        for each in row["annotations"]
    }


def test_what_others_write_meanwhile_stays(tmp_path: Path) -> None:
    """A colleague appends, an editor puts another file in place of it, git takes lines away; then a label is given."""
    path = tmp_path / "labels.jsonl"
    with LabelFile(str(path), [LabelQuestion("q", ("a", "b"))], "ann") as labels:
        labels.put("s", "1", "q", "a")
        with path.open("ab") as file:
            file.write(_line("2", "b", "bob"))
        labels.put("s", "3", "q", "a")
        assert _said(path) == {("1", "ann"): "a", ("2", "bob"): "b", ("3", "ann"): "a"}
        assert labels.changes() == ["labels of 1 document are new"]
        (tmp_path / "edited").write_bytes(path.read_bytes().rstrip(b"\n").replace(b'"b"', b'"a"'))
        (tmp_path / "edited").rename(path)
        labels.put("s", "4", "q", "b")
        assert _said(path) == {("1", "ann"): "a", ("2", "bob"): "a", ("3", "ann"): "a", ("4", "ann"): "b"}
        assert labels.changes() == []
        path.write_bytes(_line("1", "a") + _line("4", "b"))
        labels.put("s", "1", "q", None)
        assert _said(path) == {("4", "ann"): "b"}
        assert labels.changes() == ["labels of 2 documents are gone"]
        assert len(labels) == 1


def test_of_two_labels_the_later_one_counts_and_the_change_is_told(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    with LabelFile(str(path), [LabelQuestion("q", ("a", "b"))], "ann") as labels:
        for id in "12":
            labels.put("s", id, "q", "a")
        path.write_bytes(_line("1", "b") + _line("2", "b") + _line("2", "a", "bob"))
        labels.put("s", "2", "q", "a")
        assert _said(path) == {("1", "ann"): "b", ("2", "ann"): "a", ("2", "bob"): "a"}
        assert labels.changes() == ["1: q: b, was a", "2: q: b, was a"]
        assert (labels.of("s", "1"), labels.of("s", "2"), labels.changes()) == ({"q": "b"}, {"q": "a"}, [])


def test_the_first_label_of_a_document_is_appended(tmp_path: Path) -> None:
    """So that nothing is lost that others write at the same moment; also behind a line without an end."""
    path = tmp_path / "labels.jsonl"
    path.write_bytes(_line("0", "b", "bob").rstrip())
    before = path.stat().st_ino
    with LabelFile(str(path), [LabelQuestion("q", ("a", "b"))], "ann") as labels:
        for id in "123":
            labels.put("s", id, "q", "a")
    assert path.stat().st_ino == before
    assert [row["data"]["document_id"] for row in _rows(path)] == ["0", "1", "2", "3"]


def test_a_file_that_vanishes_before_a_label_is_appended_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l.jsonl"

    def vanish(file: str, line: bytes) -> None:
        path.unlink()
        monkeypatch.undo()
        append_line(file, line)

    with LabelFile(str(path), [LabelQuestion("q", ("a", "b"))], "ann") as labels:
        labels.put("s", "1", "q", "a")
        monkeypatch.setattr("toolkit.view.labels.append_line", vanish)
        assert labels.put("s", "2", "q", "b") == {"q": "b"}
        assert labels.changes() == ["labels of 1 document are gone"]
        assert [row["data"]["document_id"] for row in _rows(path)] == ["2"]


def test_lines_of_one_document_that_git_has_merged_become_one(tmp_path: Path) -> None:
    """Of each person the later one counts; `align` takes a document once."""
    path = tmp_path / "labels.jsonl"
    path.write_bytes(_line("1", "a") + _line("2", "a") + _line("1", "b", "bob") + _line("1", "b"))
    with LabelFile(str(path), [LabelQuestion("q", ("a", "b"))], "ann") as labels:
        assert labels.of("s", "1") == {"q": "b"}
    assert [row["data"]["document_id"] for row in _rows(path)] == ["1", "2"]
    assert _said(path) == {("1", "ann"): "b", ("1", "bob"): "b", ("2", "ann"): "a"}


def test_a_conflict_that_git_has_left_is_told_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    with LabelFile(str(path), [LabelQuestion("q", ("a", "b"))], "ann") as labels:
        labels.put("s", "1", "q", "a")
        conflict = _line("1", "a") + b"<<<<<<< HEAD\n" + _line("2", "a")
        path.write_bytes(conflict)
        with pytest.raises(DataError, match=r"labels.jsonl:2: expected labels .*correct the line"):
            labels.put("s", "3", "q", "a")
        assert path.read_bytes() == conflict
        path.write_bytes(_line("1", "a") + _line("2", "a"))
        labels.put("s", "3", "q", "a")
    assert len(_rows(path)) == 3


def test_a_line_that_cannot_be_made_durable_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "labels.jsonl"
    with LabelFile(str(path), [LabelQuestion("q", ("a", "b"))], "ann") as labels:
        labels.put("s", "1", "q", "a")
        before = path.read_bytes()

        def fail(_: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(OSError, match="Input/output"):
                labels.put("s", "2", "q", "b")
        assert path.read_bytes() == before
        assert (labels.of("s", "2"), len(labels)) == ({}, 1)


def test_two_do_not_write_one_file(tmp_path: Path) -> None:
    path = str(tmp_path / "labels.jsonl")
    with LabelFile(path, [LabelQuestion("q", ("a", "b"))], "ann") as labels:
        labels.put("s", "1", "q", "a")
        with pytest.raises(ConfigError, match="another `toolkit view` has open"), LabelFile(path, [], "bob"):
            pass
    assert sorted(os.listdir(tmp_path)) == ["labels.jsonl"]


def test_a_disk_that_refuses_is_not_taken_for_another_viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the file is claimed by another cannot be told, which is not that it is."""
    path, look = tmp_path / "labels.jsonl", os.stat

    def stat(asked: Any, *rest: Any, **options: Any) -> os.stat_result:
        if str(asked).endswith(".lock"):
            raise PermissionError(13, "Permission denied", str(asked))
        return look(asked, *rest, **options)

    monkeypatch.setattr(os, "stat", stat)
    with pytest.raises(PermissionError), LabelFile(str(path), [LabelQuestion("q", ("a", "b"))], "ann"):
        pass
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "content",
    [
        b"{}\n",
        b'{"data": {"document_id": "1"}, "annotations": []',
        b"[1]\n",
        b"\xff\n",
        b'{"data": {"document_id": "1", "text": "kept by another tool"}, "annotations": []}\n',
    ],
    ids=["empty", "torn", "list", "bytes", "more"],
)  # fmt: skip
def test_a_file_of_others_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(content)
    with (
        pytest.raises(DataError, match=r"labels.jsonl:1: expected labels as `toolkit view` writes them"),
        LabelFile(str(path), [], "a"),
    ):
        pass
    assert path.read_bytes() == content


@pytest.mark.parametrize("path", ["s3://bucket/labels.jsonl", "none/labels.jsonl", "."])
def test_labels_are_in_a_file_of_this_machine(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="--labels: expected a file"), LabelFile(path, [], "ann"):
        pass


def test_a_label_that_cannot_be_written_is_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LabelFile(str(tmp_path / "labels.jsonl"), [LabelQuestion("q", ("a", "b"))], "ann") as labels:
        labels.put("s", "1", "q", "a")

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("toolkit.view.labels.write_file", full)
            with pytest.raises(OSError, match="No space"):
                labels.put("s", "1", "q", "b")
        assert labels.of("s", "1") == {"q": "a"}
        labels.put("s", "2", "q", "b")
    assert [row["data"]["document_id"] for row in _rows(tmp_path / "labels.jsonl")] == ["1", "2"]


class _Running:
    """`toolkit view` in a process of its own."""

    def __init__(self, project: Project, *arguments: str) -> None:
        command = [sys.executable, "-m", "toolkit", "view", "-c", str(project.yaml), *arguments]
        self.process = subprocess.Popen(
            command, cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout
        self.url = urlsplit(self.process.stdout.readline().strip())
        self.token = parse_qs(self.url.query)["token"][0]

    def label(self, row: int, label: str) -> int:
        body = json.dumps({"at": [0, row], "id": f"a-{row + 1}", "question": "verdict", "label": label})
        connection = http.client.HTTPConnection(str(self.url.hostname), self.url.port)
        headers = {"X-Token": self.token, "Content-Type": "application/json"}
        try:
            connection.request("POST", "/api/label", body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def end(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


def _label_on(
    running: _Running, chance: random.Random, given: dict[str, str], sent: dict[str, str], acknowledged: list[str]
) -> None:
    """Label one document after the other until nobody answers; note what was sent, and what was acknowledged."""
    for number in itertools.count():
        id, label = f"a-{number % 5 + 1}", chance.choice(["keep", "drop"])
        sent[id] = label
        try:
            assert running.label(number % 5, label) == 200
        except (OSError, http.client.HTTPException):
            return  # it was killed
        given[id] = label
        del sent[id]
        acknowledged.append(id)


@pytest.mark.slow
def test_killed_at_any_moment_what_was_acknowledged_is_there(small: Project) -> None:
    """And a file that is whole: the label that was under way may be in it, or not."""
    path = small.root / "config.labels.jsonl"
    chance = random.Random(3)
    given: dict[str, str] = {}
    for _ in range(4):
        running, sent = _Running(small), dict[str, str]()
        acknowledged, goal = list[str](), chance.randrange(3, 60)
        thread = threading.Thread(target=_label_on, args=(running, chance, given, sent, acknowledged))
        thread.start()
        assert wait_until(lambda done=acknowledged, goal=goal: len(done) >= goal)  # type: ignore[misc]
        assert running.end(signal.SIGKILL)[0] == -signal.SIGKILL
        thread.join()
        rows = _rows(path)
        there = {row["data"]["document_id"]: row["annotations"][0]["result"][0]["value"]["choices"][0] for row in rows}
        assert [id for id in given if there.get(id) not in (given[id], sent.get(id))] == []
        assert {*there} <= {*given, *sent}
        given = there
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        running = _Running(small)
        code, err = running.end(number)
        assert (code, f"labels of {len(given)} documents -> config.labels.jsonl" in err) == (status, True)
        assert "Traceback" not in err
    assert sorted(name for name in os.listdir(small.root) if "labels" in name) == [path.name]


def test_labels_behind_a_link_stay_there_and_are_open_to_no_more_people(tmp_path: Path) -> None:
    target, link = tmp_path / "far" / "real.jsonl", tmp_path / "labels.jsonl"
    target.parent.mkdir()
    target.touch(0o600)
    link.symlink_to(target)
    with LabelFile(str(link), [LabelQuestion("verdict", ("keep", "drop"))], "ann") as labels:
        labels.put("s", "a", "verdict", "keep")
    assert (link.is_symlink(), target.stat().st_mode & 0o777, len(_rows(target))) == (True, 0o600, 1)
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["labels.jsonl"]
