"""A takedown clears listed documents everywhere, makes nothing else stale, and no rerun brings them back."""

import base64
import gzip
import json
import shutil
import signal
import subprocess
import sys
from typing import Any

import pytest

import toolkit
from tests.learn.annotate.server import serving
from tests.pipeline.conftest import Project, document, read_rows, tree, write_rows
from tests.storage.conftest import bucket, seaweed
from toolkit.records import takedown
from toolkit.storage.paths import list_files
from toolkit.storage.reading import open_stored

pytestmark = pytest.mark.slow

__all__ = ["bucket", "seaweed"]

SECRET = "the secret of number {} is that nobody knows the word {}"
LISTED = ("a-1", "a-3", "b-2")
UNDECIDED = {"dedup exact-0", "sample some-0", "calibrate rank-0", "mix", "publish"}
"""Stages that must be done again."""
GONE = ("a-1", "b-2")
"""Those of which there is no copy."""


def _row(id: str, number: int, text: str = "") -> dict[str, Any]:
    url = f"https://{'gone' if number == 2 else 'here'}.example/{id}"
    text = text or SECRET.format(id, "xyzzy" * number) + "\nwrite to someone@example.org"
    return {"id": id, "text": text, "metadata": {"url": url, "score": number}}


@pytest.fixture
def taken(project: Project) -> Project:
    """Two inputs with a copy, taggers of which one reads another set, duplicates, a sample, a mix; and a list."""
    for name in "ab":
        rows = [_row(f"{name}-{i}", i) for i in range(6)]
        rows += [_row("copy", 9, rows[3]["text"])] if name == "a" else []
        bad = {"id": "a-1", "text": 3, "metadata": {"title": SECRET.format("a-1", "bad")}}
        write_rows(project.root / "in" / f"{name}.jsonl.gz", [*rows, *([bad] if name == "a" else [])])
    ingest = {"format": "jsonl", "from": f"{project.root}/in/*", "source": "s", "on_error": "skip", "max_rejected": 0.5}
    mix: dict[str, Any] = {"attributes": ["shape-0", "exact-0", "mail-0"], "rejected": str(project.root / "rejected")}
    mix["rules"] = [
        {"drop": "exact.duplicate_of is not None", "name": "copies"},
        {"drop": "line_shape.lines > 2 or metadata.score == 4", "name": "long"},
        {"replace": "emails", "by": "|||"},
    ]
    mix["output"] = {"format": "dolma", "path": str(project.out)}
    project.config |= {
        "processes": 2,
        "ingest": [{**ingest, "shard_size": "400"}],
        "tag": {"shape-0": ["line_shape"], "mail-0": ["emails"], "late-0": [{"tagger": "length", "when": "emails"}]},
        "dedup": {"exact-0": {"kind": "exact"}},
        "sample": {"some-0": {"documents": 13, "copy": {"path": f"{project.data}/some.jsonl.gz"}}},
        "calibrate": {"rank-0": {"kind": "rank", "score": "line_shape.lines"}},
        "mix": mix,
    }
    project.config["tag"]["late-0"][0]["when"] = "line_shape.lines > 1"
    (project.root / "list.txt").write_text("s\ta-1\na-3\nhttps://gone.example/b-2/\nnobody.example\n")
    project.ok("run")
    return project


def _stored(root: str) -> bytes:
    """All bytes below a folder, decompressed, with what rejects have in base64."""
    found = []
    for relative in sorted({*list_files(root), *list_files(root, hidden=True)}):
        with open_stored(f"{root}/{relative}") as stream:
            data = stream.read()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        found.append(data)
        for line in data.splitlines() if "/rejects/" in f"/{relative}" else ():
            found.append(base64.b64decode(json.loads(line)["base64"]))
    return b"\n".join(found)


def _has_any(root: object) -> list[str]:
    data = _stored(str(root))
    return [id for id in GONE if f"secret of number {id} is".encode() in data]


def _apply(project: Project, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = project.ok("takedown", project.root / "list.txt", "--apply", "--json", *arguments).json
    return found


def _status(project: Project) -> dict[str, tuple[int, int]]:
    found = project("status", "--json").json["stages"]
    return {each["stage"]: (each["done"], each["missing"]) for each in found}


def test_it_says_what_it_would_touch_and_writes_nothing(taken: Project) -> None:
    before = tree(taken.root, bookkeeping=True)
    found = toolkit.takedown(str(taken.yaml), str(taken.root / "list.txt"))
    assert sorted(each.id for each in found.documents) == [*LISTED]
    assert {(each.id, each.by) for each in found.copies} == {("copy", "text"), ("copy", "exact-0")}
    assert [each.partition(": ")[2] for each in found.unmatched] == ["nobody.example"]
    assert (found.applied, found.files, found.failed) == (False, [], [])
    assert tree(taken.root, bookkeeping=True) == before


def test_of_near_copies_the_one_that_stays_is_named_too(project: Project) -> None:
    """Another document with the id of the listed one has copies of its own."""
    words = [f"word{i}" for i in range(200)]
    for name, text, near in (("a", words, "near"), ("b", [*words[:-1], "y"], "7"), ("c", words[::-1], "near")):
        rows = [("1", text), (near, [*text[:-1], "x"])]
        metadata = {"url": f"https://{name}.example/"}
        write_rows(
            project.documents / f"{name}.jsonl.gz",
            [document(f"{name}-1" if id == "1" else id, " ".join(text), metadata=metadata) for id, text in rows],
        )
    project.config |= {"dedup": {"near-0": {"kind": "near"}}, "duplicate_ids": "allow"}
    project.ok("dedup")
    (project.root / "list.txt").write_text("a.example\n")
    found = project.ok("takedown", project.root / "list.txt", "--json").json
    assert [each["id"] for each in found["documents"]] == ["a-1", "near"]
    assert [each["id"] for each in found["copies"] if each["by"] == "near-0"] == ["b-1", "7"]
    (project.root / "list.txt").write_text("b.example\n")
    found = project.ok("takedown", project.root / "list.txt", "--json").json
    assert [each["id"] for each in found["copies"] if each["by"] == "near-0"] == ["a-1", "near"]


def test_listed_documents_are_cleared_and_nothing_else_becomes_stale(taken: Project) -> None:
    taken.ok("stats")
    taken.ok("tag", "--sample", "10")
    before = {path.name: read_rows(path) for path in (taken.documents / "s").iterdir()}
    found = _apply(taken)
    assert (len(found["documents"]), len(found["lists"])) == (3, 1)
    assert {each.partition(":")[0] for each in found["again"]} >= {"set exact-0", "set some-0", str(taken.out)}
    for name, rows in before.items():
        cleared = [{key: row[key] for key in ("id", "source")} | {"text": ""} for row in rows]
        now = taken.shard(f"s/{name}")
        assert now == [c if r["id"] in LISTED else r for c, r in zip(cleared, rows, strict=True)]
    assert _has_any(taken.data) == []
    status = _status(taken)
    assert {name for name, (_, missing) in status.items() if missing} == UNDECIDED
    values = {row["id"]: row["attributes"] for each in ["shape", "late", "mail"] for row in _rows(taken, f"{each}-0")}
    assert (values["a-1"], values["a-2"]["emails"][0][:2]) == ({"emails": []}, [75, 94])
    taken.ok("run")
    assert [_has_any(taken.root / each) for each in ("data", "out", "rejected")] == [[], [], []]
    kept = {row["id"] for row in taken.output()}
    assert kept == {"copy", *(f"{name}-{i}" for name in "ab" for i in (0, 1, 2, 3, 5))} - {*LISTED}  # the copy stays
    assert "0 findings" in taken.ok("validate").out
    for of in ("dataset", "output"):
        (answer,) = [a for a in toolkit.disclose(str(taken.yaml), of=of, dry_run=True).answers if a.id == "takedowns"]
        assert (answer.totals, [len(row["list"]) for row in answer.rows]) == ({"documents": 3}, [64])
    assert {missing for _, missing in _status(taken).values()} == {0}
    again = tree(taken.root, bookkeeping=True)
    rerun = _apply(taken)
    assert (rerun["documents"], rerun["deleted"], rerun["unmatched"]) == (found["documents"], [], found["unmatched"])
    assert rerun["again"] == []
    taken.ok("run")
    assert tree(taken.root) == {path: again[path] for path in tree(taken.root)}


def test_copies_reports_and_examples_are_cleared_and_made_again(taken: Project) -> None:
    taken.config["about"] = {key: key for key in ("name", "description")}
    taken.config["about"] |= {
        "creator": {"type": "Person", "name": "N"},
        "license": "https://x.example/l",
        "date_published": "2026-01-31",
        "url": "https://x.example/",
    }
    for command in ("croissant", "card --html"):
        taken.ok(*command.split(), "about.examples=20")
    readme, page = taken.out / "README.md", taken.out / "page.html"
    kept = "<!-- toolkit: keep mine -->\nmine\n<!-- toolkit: end mine -->\n"
    readme.write_text(readme.read_text().replace("## Samples\n", f"## Samples\n\n{kept}"))
    page.write_text("<p>Not ours</p>")
    made = [taken.out / "sub" / "report.html", taken.data / "report.json", taken.out / "card.html"]
    made[0].parent.mkdir()
    for path in made[:2]:
        taken.ok("report", "-o", path)
    described = [readme, taken.out / "croissant.json", *made]
    secret = SECRET.format("a-1", "xyzzy").split("xyzzy")[0]
    assert all(secret in path.read_text() for path in described)
    assert _apply(taken)["deleted"] == sorted(map(str, [taken.data / "some.jsonl.gz", *made]))
    assert [path for path in [readme, taken.out / "croissant.json"] if secret in path.read_text()] == []
    assert (kept in readme.read_text(), page.exists(), [path for path in made if path.exists()]) == (True, True, [])
    taken.ok("run")
    taken.ok("card", "about.examples=20")
    assert (secret in readme.read_text(), "the secret" in readme.read_text()) == (False, True)
    assert (_has_any(taken.data), _has_any(taken.out)) == ([], [])


def test_a_row_that_is_another_document_now_stays(project: Project) -> None:
    rows = [{"id": f"a-{i}", "text": f"text {i}"} for i in range(4)]
    write_rows(project.root / "in" / "a.jsonl", rows)
    project.config["ingest"] = [{"format": "jsonl", "from": f"{project.root}/in/*", "source": "s"}]
    for listed in ("a-1", "a-2"):
        project.ok("ingest")
        (project.root / "list.txt").write_text(listed)
        _apply(project)
        write_rows(project.root / "in" / "a.jsonl", [{"id": "new", "text": "new"}, *rows])
    found = {row["id"]: row["text"] for row in project.shard("s/a.jsonl.gz")}
    assert found == {"new": "new", "a-0": "text 0", "a-1": "", "a-2": "", "a-3": "text 3"}


def test_rejected_items_go_though_no_document_does(project: Project) -> None:
    write_rows(project.root / "in" / "a.jsonl", [{"id": "a", "text": "one"}, {"id": "bad", "text": 5, "own": "secret"}])
    entry = {"format": "jsonl", "from": f"{project.root}/in/*", "source": "s", "on_error": "skip", "max_rejected": 1.0}
    project.config["ingest"] = [entry]
    project.ok("ingest")
    assert b"secret" in _stored(str(project.data))
    (project.root / "list.txt").write_text("bad")
    assert _apply(project)["documents"] == []
    assert b"secret" not in _stored(str(project.data))


def test_a_faulty_list_is_refused_before_the_dataset_keeps_it(taken: Project) -> None:
    before = tree(taken.root, bookkeeping=True)
    (taken.root / "faulty.txt").write_text('copy\n{"source": 1, "id": "a"}')
    for options in ([], ["--apply"]):
        refused = taken("takedown", taken.root / "faulty.txt", *options)
        refused.fails(2, "faulty.txt:2: expected a text or null")
    (taken.root / "faulty.txt").unlink()
    assert tree(taken.root, bookkeeping=True) == before
    taken.ok("mix")


def _rows(project: Project, set_name: str) -> list[dict[str, Any]]:
    return [row for path in sorted((project.attributes / set_name / "s").iterdir()) for row in read_rows(path)]


def test_no_rerun_brings_a_document_back(taken: Project) -> None:
    _apply(taken)
    taken.ok("run")
    documents, attributes = tree(taken.documents), tree(taken.attributes)
    for path in [*(taken.documents / "s").iterdir()]:
        path.unlink()
    taken.ok("ingest", "--overwrite")
    assert {missing for _, missing in _status(taken).values()} == {0}
    assert (tree(taken.documents), tree(taken.attributes)) == (documents, attributes)
    (taken.root / "list.txt").write_text("gone.example\n")
    _apply(taken)
    write_rows(taken.root / "in" / "c.jsonl.gz", [_row("c-1", 1), _row("c-2", 2)])
    taken.ok("run", "processes=1")
    assert [row["text"][:10] for row in taken.shard("s/c.00000.jsonl.gz")] == ["the secret", ""]
    assert {row["id"] for row in taken.output()} & {"a-2", "b-2", "c-1", "c-2"} == {"c-1"}
    assert "0 findings" in taken.ok("validate").out
    taken.ok("tag", "--overwrite", "tag.mail-0=[emails, length]")
    assert _has_any(taken.data) == []


def test_values_of_others_do_not_come_back(project: Project) -> None:
    url = {"url": "https://gone.example/a-2"}
    write_rows(
        project.root / "in" / "a.jsonl",
        [{"id": f"a-{i}", "text": f"text {i}", "metadata": url if i == 2 else {}} for i in range(4)],
    )
    project.config["ingest"] = [{"format": "jsonl", "from": f"{project.root}/in/*", "source": "s"}]
    project.config["align"] = {
        "scores-0": {"format": "jsonl", "from": f"{project.root}/scores.jsonl", "values": ["note"]}
    }
    for word in ("first", "second"):
        notes = [{"id": f"a-{i}", "note": f"{word} {i}"} for i in range(4)]
        write_rows(project.root / "scores.jsonl", notes)
        for command in ("ingest", "align"):
            project.ok(command)
        assert [row["attributes"]["note"] for row in _rows(project, "scores-0")] == [
            None if word == "second" and i in (1, 2) else f"{word} {i}" for i in range(4)
        ]
        (project.root / "list.txt").write_text("s\ta-1\ngone.example\n")
        _apply(project)
    assert "0 findings" in project.ok("validate").out


KILLED = """
import os, signal, sys
from toolkit.commands import takedown as command
from toolkit.records import ingested
from toolkit.storage.record_log import Group, RecordLog
from toolkit.cli import main

place, name, number = sys.argv[1:4]
owner = {"RecordLog": RecordLog, "Group": Group, "ingested": ingested, "command": command}[place]
real, calls = getattr(owner, name), iter(range(int(number)))

def killing(*args, **options):
    if next(calls, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **options)

setattr(owner, name, killing)
sys.exit(main(sys.argv[4:]))
"""


@pytest.mark.parametrize(
    "place",
    [
        "RecordLog save 0",  # the list is on disk
        "RecordLog save 2",  # a shard is pending, another one is done
        "Group commit 0",  # signatures are gone
        "RecordLog save 3",  # files are replaced, their records are not there
        "ingested save 0",  # all shards are cleared
        "command remove_tree 0",
        "command remove 0",
        "command _finish 0",
    ],
)
def test_what_was_killed_ends_the_same(taken: Project, place: str) -> None:
    taken.config["processes"] = 1
    arguments = [*place.split(), "takedown", "-c", str(taken.yaml), str(taken.root / "list.txt"), "--apply"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(_apply(taken)["documents"]) == 3
    assert {name for name, (_, missing) in _status(taken).items() if missing} == UNDECIDED
    assert _has_any(taken.data) == []
    assert "0 findings" in taken.ok("run").out + taken.ok("validate").out


def test_a_url_is_found_in_a_field_of_its_own(project: Project) -> None:
    """Tables have their columns so, if another one is the metadata."""
    rows = [document(f"{i}", f"text {i}", url=f"https://a{i}.example/") for i in range(4)]
    write_rows(project.root / "in" / "a.jsonl", rows[:2])
    project.config["ingest"] = [{"format": "dolma", "from": f"{project.root}/in/*"}]
    project.config["mix"] = {"rules": [], "output": {"format": "dolma", "path": str(project.out)}}
    project.ok("run")
    (project.root / "list.txt").write_text("https://a1.example\na2.example\n")
    assert [each["id"] for each in _apply(project)["documents"]] == ["1"]
    write_rows(project.root / "in" / "b.jsonl", rows[2:])
    project.ok("run")
    assert [row["text"] for path in sorted(project.documents.rglob("*.gz")) for row in read_rows(path)] == [
        "text 0", "", "", "text 3",
    ]  # fmt: skip
    assert [row["id"] for row in project.output()] == ["0", "3"]
    (project.root / "more.txt").write_text("0\n")
    shown = project.ok("takedown", project.root / "more.txt").out
    assert shown.splitlines()[0] == "1 document would be cleared:"
    assert "cleared before:\n" in shown
    (project.root / "blocked.txt").write_text("a3.example\n")
    project.config["mix"]["rules"] = [{"drop": "blocklist", "files": [str(project.root / "blocked.txt")]}]
    project.ok("mix")
    assert [row["id"] for row in project.output()] == ["0"]


def test_external_documents_stay_and_no_output_has_them(project: Project) -> None:
    write_rows(project.root / "in" / "a.jsonl", [{**_row(f"a-{i}", i), "source": "s"} for i in range(4)])
    del project.config["dataset"]
    place = {"format": "jsonl", "path": f"{project.root}/in/*.jsonl"}
    project.config |= {"documents": place, "attributes": str(project.attributes), "tag": {"mail-0": ["emails"]}}
    project.config["mix"] = {"rules": [], "output": {"format": "dolma", "path": str(project.out)}}
    project.ok("run")
    (project.root / "list.txt").write_text("a-1\ngone.example\n")
    found = _apply(project)
    assert found["external"] == [f"{project.root}/in/a.jsonl"]
    project.ok("run")
    assert [bool(row["attributes"]["emails"]) for row in _rows_of_mail(project)] == [True, False, False, True]
    assert [row["id"] for row in project.output()] == ["a-0", "a-3"]
    project.ok("tag", "--overwrite", "tag.mail-0=[emails, length]")
    assert [row["attributes"]["length"]["chars"] for row in _rows_of_mail(project)] == [84, 0, 0, 99]


def _rows_of_mail(project: Project) -> list[dict[str, Any]]:
    (path,) = (project.attributes / "mail-0").rglob("*.gz")
    return read_rows(path)


def test_answers_of_models_go_and_no_stream_has_the_documents(project: Project) -> None:
    for i in range(9):
        (project.root / f"n{i}.txt").write_text(f"note {i} is about {'qwzyx'[i % 5] * 9}{i}\n")
    write_rows(
        project.root / "other" / "a.jsonl", [{"id": f"o{i}", "source": "o", "text": f"of others {i}"} for i in (1, 2)]
    )
    project.config["ingest"] = [{"format": "text", "from": f"{project.root}/n*.txt", "source": "notes"}]
    project.config["tag"] = {"mail-0": ["emails"], "length-0": ["length"]}
    place = {
        "documents": {"format": "jsonl", "path": f"{project.root}/other/*.jsonl"},
        "attributes": f"{project.root}/sets",
    }
    project.config["mix"] = {"streams": {"own": {}, "other": {"dataset": place}}, "rules": []}
    project.config["mix"]["output"] = {"format": "dolma", "path": str(project.out)}
    with serving() as server:
        entry = {"endpoint": server.url, "model": "m", "prompt": {"prompt_name": "p", "prompt": "Judge. {{ text }}"}}
        project.config["annotate"] = {
            "edu-0": entry,
            "some-0": {**entry, "when": "length.chars < 30", "model": "n"},
            "cut-0": {**entry, "model": "o", "text": [{"replace": {"regex": "about"}, "by": "on"}]},
        }
        project.ok("run")
        answers = [line for path in project.data.rglob("answers/*/*.jsonl") for line in path.read_text().splitlines()]
        (project.root / "list.txt").write_text("n3.txt:1\nn8.txt:1\no2\n")
        _apply(project)
        left = [line for path in project.data.rglob("answers/*/*.jsonl") for line in path.read_text().splitlines()]
        assert (len(answers), len(left), {*left} - {*answers}) == (27, 21, set())
        asked = len(server.bodies)
        project.ok("run")
        project.ok("annotate", "--overwrite")
        assert server.bodies[asked:] == []
    assert {row["id"] for row in project.output()} == {*(f"n{i}.txt:1" for i in (0, 1, 2, 4, 5, 6, 7)), "o1"}
    (pack,) = (project.documents / "notes").iterdir()
    assert [bool(row["text"]) for row in read_rows(pack)] == [i not in (3, 8) for i in range(9)]
    assert "0 findings" in project.ok("validate").out


@pytest.mark.s3
def test_a_dataset_in_a_bucket(taken: Project, bucket: str) -> None:
    taken.config["dataset"] = f"{bucket}/data"
    taken.config["sample"]["some-0"]["copy"]["path"] = f"{bucket}/data/some.jsonl.gz"
    taken.config["mix"]["output"]["path"] = f"{bucket}/out"
    del taken.config["mix"]["rejected"]
    taken.ok("run")
    assert any(each.startswith("versions of objects") for each in _apply(taken)["unreachable"])
    assert _has_any(f"{bucket}/data") == []
    taken.ok("run")
    assert _has_any(f"{bucket}/out") == []
    assert "0 findings" in taken.ok("validate").out


def test_values_without_a_null_are_zeros() -> None:
    row = takedown.cleared_row("s", "i", toolkit_types({"metadata": {"n": "int", "s": {"nullable": "str"}}}))
    assert json.loads(row) == {"id": "i", "text": "", "source": "s", "metadata": {"n": 0}}


def toolkit_types(fields: dict[str, Any]) -> Any:
    from toolkit.data.document_fields import OwnTypes

    return OwnTypes(fields=fields)


STAGES = '''"""Stages for tests."""

import statistics
from collections.abc import Iterable, Sequence

from toolkit import Document, Stage


class Size(Stage):
    """The length of a text; one that is taken down must not come here."""

    def make(self, documents: Sequence[Document]) -> Sequence[int]:
        return [len(each.metadata["title"]) + len(each.text) for each in documents]


class Long(Stage):
    """Whether a text is longer than the median."""

    def extract(self, documents: Sequence[Document]) -> Sequence[int]:
        return [len(each.metadata["title"]) + len(each.text) for each in documents]

    def combine(self, values: Iterable[int]) -> float:
        return statistics.median(values)

    def finish(self, values: Sequence[int], whole: float) -> Sequence[bool]:
        return [value > whole for value in values]
'''


@pytest.mark.parametrize("in_place", [True, False])
def test_stages_and_duplicates_do_without_listed_documents_wherever_the_documents_are(
    project: Project, in_place: bool
) -> None:
    texts = {"a": ["a very long secret, " * 9, "short"], "b": ["of middle length", "a very long secret, " * 9]}
    for name, own in texts.items():
        rows = [{"id": f"{name}{i}", "text": text, "metadata": {"title": ""}} for i, text in enumerate(own)]
        write_rows(project.root / "in" / f"{name}.jsonl", rows)
    (project.root / "own.py").write_text(STAGES)
    (project.root / "list.txt").write_text("a0\n")
    entry = {"format": "jsonl", "source": "s"}
    where: dict[str, Any] = {"documents": {**entry, "path": f"{project.root}/in/*.jsonl"}}
    project.config |= where if in_place else {"ingest": [{**entry, "from": [f"{project.root}/in/*.jsonl"]}]}
    project.config |= {
        "make": {
            "size-0": {"stage": f"{project.root}/own.py:Size"},
            "long-0": {"stage": f"{project.root}/own.py:Long"},
        },
        "dedup": {"exact-0": {"kind": "exact"}},
    }
    project.mixes({"drop": "exact.duplicate_of is not None"}, attributes=["exact-0", "size-0", "long-0"])
    project.ok("run")
    folder = "" if in_place else "s/"
    names = [f"{folder}{name}.jsonl{'.jsonl' if in_place else ''}.gz" for name in "ab"]
    left = project.data / ".toolkit" / "dedup" / "model-0" / "signatures" / names[0] / "examples"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text("what a killed training has gathered")
    project.ok("takedown", project.root / "list.txt", "--apply")
    assert not left.exists()
    project("mix").fails(1, names[0], "toolkit dedup")

    def values() -> dict[str, list[Any]]:
        sets = ("exact-0", "size-0", "long-0")
        return {name: [value for shard in names for value in project.values(name, shard)] for name in sets}

    project.ok("run")
    found = values()
    lengths = [len(text) for own in texts.values() for text in own]
    assert found == {
        "exact-0": [{"exact": {"duplicate_of": None, "copies": number}} for number in (0, 1, 1, 1)],
        "size-0": [{"size": length} for length in (0, *lengths[1:])],
        "long-0": [{"long": long} for long in (False, False, False, True)],
    }
    assert [row["id"] for row in project.output()] == ["a1", "b0", "b1"]
    project.ok("make", "--overwrite")
    shutil.rmtree(project.attributes)
    project.ok("run")
    assert values() == found


@pytest.mark.parametrize("lost", ["list", "an entry of the list", "record log", "end of the record log"])
def test_a_lost_list_or_record_brings_no_document_back(project: Project, lost: str) -> None:
    write_rows(project.root / "in" / "a.jsonl", [{"id": str(i), "text": f"text {i}"} for i in range(3)])
    project.config["documents"] = {"format": "jsonl", "source": "s", "path": f"{project.root}/in/*.jsonl"}
    project.config["tag"] = {"length-0": "length"}
    project.mixes(attributes=["length-0"])
    project.ok("run")
    (project.root / "list.txt").write_text("1\n")
    project.ok("takedown", project.root / "list.txt", "--apply")
    project.ok("run")
    project.config["mix"]["rules"] = [{"drop": "length.chars > 100"}]
    kept = project.data / ".toolkit" / "takedown"
    (path,) = kept.iterdir()
    log = project.data / ".toolkit" / "record-log"
    if lost.endswith("list"):
        path.unlink() if lost == "list" else path.write_text("2\n")
        for command in ("mix", "run", "status"):
            project(command).fails(1, path.name, "with the sha256 of its name", "`toolkit takedown --apply` again")
        project.ok("takedown", project.root / "list.txt", "--apply")
    elif lost == "record log":
        shutil.rmtree(log)
    else:
        for each in log.rglob("*.gz"):
            each.write_bytes(each.read_bytes()[:60])
    project.ok("run")
    assert [row["id"] for row in project.output()] == ["0", "2"]
    assert [bool(row["length"]["chars"]) for row in project.values("length-0", "a.jsonl.jsonl.gz")] == [
        True,
        False,
        True,
    ]


def test_an_output_is_to_be_made_again_until_each_of_its_streams_has_the_list(project: Project) -> None:
    """A list that was taken down in another dataset before is only among the rules of that stream."""
    other = project.root / "other"
    for root in (project.data, other):
        write_rows(root / "documents" / f"{root.name}.jsonl.gz", [document(f"{root.name}-{i}", "t") for i in range(3)])
    (project.root / "list.txt").write_text("other-1\ndata-1\n")
    own = project.config["dataset"]
    project.config["dataset"] = str(other)
    _apply(project)
    project.config["dataset"] = own
    project.mixes(streams={"own": {}, "other": {"dataset": str(other)}})
    project.ok("mix")
    assert _apply(project)["again"] == [f"{project.out}: toolkit mix"]
    project.ok("mix")
    assert _apply(project)["again"] == []


def test_a_set_is_to_be_made_again_until_it_is_resolved(project: Project) -> None:
    """A share that has signed its shards has not decided yet of which documents there are copies."""
    write_rows(project.documents / "a.jsonl.gz", [document(str(i), "t") for i in range(3)])
    project.config["dedup"] = {"exact-0": {"kind": "exact"}}
    (project.root / "list.txt").write_text("1\n")
    project.ok("dedup")
    for command, again in (("status",), True), (("dedup", "--shard", "0/1"), True), (("dedup",), False):
        project(*command)
        assert _apply(project)["again"] == ["set exact-0: toolkit dedup"] * again
