"""Samples, as a user draws them: the command, in a run, under rules, copied; the same for any number of processes."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, read_rows, tree, write_rows
from tests.recipes import mix_of

SAMPLE: dict[str, Any] = {"documents": 10, "by": "document.source", "splits": {"train": 0.5, "test": 0.5}}


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """A dataset of three shards, with a sample, and a mix of what is in it."""
    found = Project(
        tmp_path,
        run,
        {
            "dataset": str(tmp_path / "data"),
            "processes": 1,
            "sample": {"eval-0": dict(SAMPLE)},
            "mix": mix_of(tmp_path / "out", {"keep": "sample.chosen", "name": "in_the_sample"}, attributes=["eval-0"]),
        },
    )
    for name in ("a.jsonl.gz", "deep/b.jsonl.gz", "c.jsonl"):
        rows = [document(f"{name}-{i}", f"tëxt {i}", "web" if i % 4 else "books") for i in range(20)]
        write_rows(found.documents / name, [*rows, b'{"id": "raw",  "text": "r", "source": "%s"}' % name.encode()])
    return found


def chosen(project: Project, set_name: str = "eval-0") -> list[str]:
    return [
        row["id"]
        for path in sorted((project.attributes / set_name).rglob("*.jsonl*"))
        for row in read_rows(path)
        if row["attributes"]["sample"]["chosen"]
    ]


def test_a_run_draws_a_sample_and_a_mix_keeps_it(project: Project) -> None:
    shown = project.ok("run").out
    assert "eval-0  sample         63        63               3           0  10 chosen, 63 to choose from" in shown
    assert [row["id"] for row in project.output()] == chosen(project)
    assert len(chosen(project)) == 10
    assert project.ok("status").out.endswith("all is done\n")
    project.ok("validate")
    assert project.ok("sample", "--json").json["sets"]["eval-0"]["written"] == 0


def test_two_processes_draw_the_same(project: Project) -> None:
    project.ok("sample")
    before = tree(project.attributes)
    project.ok("sample", "--overwrite", "processes=2", "sample.eval-0.memory=1 kB")
    assert tree(project.attributes) == before


def test_a_new_shard_is_in_the_next_draw_and_a_mix_asks_for_it(project: Project) -> None:
    project.ok("run")
    write_rows(project.documents / "d.jsonl.gz", [document(f"new-{i}", "new", "news") for i in range(30)])
    project("mix").fails(1, "expected a sample of all shards, got one without d.jsonl.gz; run `toolkit sample`")
    project.ok("run")
    assert sum(id_.startswith("new-") for id_ in chosen(project)) > 0


@pytest.mark.slow
def test_copies_are_the_rows_as_they_are_and_follow_the_sample(project: Project) -> None:
    one, ids, folder = (project.root / name for name in ("eval.jsonl", "ids.jsonl.gz", "copies"))
    settings = project.config["sample"]["eval-0"]
    settings |= {"ids": str(ids), "copy": {"path": str(one), "index": True}}
    project.config["sample"]["all-0"] = {
        "documents": 30,
        "as": "every",
        "copy": {"path": str(folder), "layout": "inputs"},
    }
    said = project.ok("sample").out
    assert f"eval-0: 10 ids in one file: {ids}" in said
    assert f"all-0: 30 documents in 3 files: {folder}" in said
    lines = {
        line for path in project.documents.rglob("*.jsonl*") for line in _lines(path)
    }  # as the documents have them, blanks and all
    copied = _lines(one)
    assert set(copied) <= lines
    assert [row["id"] for row in read_rows(one)] == [row["id"] for row in read_rows(ids)] == chosen(project)
    assert {row["split"] for row in read_rows(ids)} == {"train", "test"}
    data = one.read_bytes()
    index = pickle.loads((project.root / "eval.idx").read_bytes())  # of our own
    assert [data[at : at + length] for at, length in index] == copied
    assert sorted(path for path in tree(folder)) == ["a.jsonl.gz", "c.jsonl", "deep/b.jsonl.gz"]
    before = {path: path.stat().st_mtime_ns for path in (one, ids, *folder.rglob("*.jsonl*"))}
    project.ok("sample")
    assert {path: path.stat().st_mtime_ns for path in before} == before

    settings["documents"] = 1
    project.config["sample"]["all-0"] |= {"documents": 1}
    project.ok("sample", "--overwrite")
    assert len(_lines(one)) == 1
    assert len(tree(folder)) == 1
    project.ok("validate", str(project.root / "eval.idx"))

    project.config["sample"]["all-0"]["copy"]["index"] = True
    settings["copy"]["index"] = False
    project.ok("sample", "--overwrite")
    assert not (project.root / "eval.idx").exists()
    (index,) = folder.rglob("*.idx")
    project.ok("validate", str(index))
    whole = index.read_bytes()
    for damage in (index.unlink, lambda: index.write_bytes(whole[:-1])):
        damage()
        project.ok("sample")
        assert index.read_bytes() == whole


def test_foreign_files_are_not_overwritten_and_a_killed_copy_goes_on(project: Project) -> None:
    path = project.root / "eval.jsonl.gz"
    path.write_bytes(b"mine")
    project.config["sample"]["eval-0"]["copy"] = {"path": str(path)}
    project("sample").fails(2, "expected a new file, or a copy of this sample")
    assert path.read_bytes() == b"mine"
    assert tree(project.attributes) == {}
    path.unlink()
    project.ok("sample")
    notes = project.attributes.parent / ".toolkit/dedup/eval-0/copies.json"
    notes.write_text(notes.read_text().replace('"made_from": "', '"made_from": "x'))  # as noted before the end
    project.ok("sample")
    assert [row["id"] for row in read_rows(path)] == chosen(project)


def _lines(path: Path) -> list[bytes]:
    import gzip

    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
