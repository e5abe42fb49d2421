"""Duplicates, as a user finds them: the command, in a run, in shares; what is stale is refused."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, document, read_rows, strays, tree, write_rows
from tests.pipeline.test_rerun import Calls
from toolkit.execution.grouped import LEAST
from toolkit.storage import outputs

EXACT: dict[str, Any] = {"kind": "exact"}
LINES: dict[str, Any] = {"kind": "exact", "unit": "line", "normalize": "ccnet", "as": "seen_lines"}


def corpus() -> dict[str, list[dict[str, Any]]]:
    """Two shards with copies within and between them, and repeated lines."""
    return {
        "a/0.jsonl.gz": [document("0", "Home\nOne two"), document("1", "home!\nThree"), document("2", "Home\nOne two")],
        "b/1.jsonl.gz": [document("3", "Three\nFour"), document("4", "Home\nOne two"), document("5", "")],
    }


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """A dataset of `corpus`, with two sets of duplicates and a mix that uses both."""
    found = Project(
        tmp_path,
        run,
        {
            "dataset": str(tmp_path / "data"),
            "processes": 1,
            "dedup": {"exact-0": EXACT, "lines-0": LINES},
            "mix": {
                "attributes": ["exact-0", "lines-0"],
                "rules": [
                    {"drop": "exact.duplicate_of is not None", "name": "copies"},
                    {"cut": "seen_lines.spans", "name": "repeated"},
                ],
                "output": {"format": "dolma", "path": str(tmp_path / "out")},
            },
        },
    )
    for name, rows in corpus().items():
        write_rows(found.documents / name, rows)
    return found


def of(project: Project) -> dict[str, Any]:
    """What each document is a copy of."""
    return {
        row["id"]: row["attributes"]["exact"]["duplicate_of"]
        for path in sorted((project.attributes / "exact-0").rglob("*.gz"))
        for row in read_rows(path)
    }


COPIES = {"0": None, "1": None, "2": ["s", "0"], "3": None, "4": ["s", "0"], "5": None}


@pytest.mark.slow
def test_a_card_says_how_duplicates_were_found(project: Project) -> None:
    project.config["dedup"]["exact-0"] = {**EXACT, "when": "document.chars > 0"}
    project.ok("run")
    shown = project.ok("card", "--dry-run").out
    assert "attributes exact-0, exact: exact, version 3 (keep: first" in shown
    assert "when: document.chars > 0); read by rules." in shown
    assert "carried by the input" not in shown


def test_a_mix_drops_copies_and_cuts_lines_that_are_elsewhere(project: Project) -> None:
    shown = project.ok("run").out
    assert of(project) == COPIES
    texts = {row["id"]: row["text"] for row in project.output()}
    assert texts == {"0": "Home\nOne two", "1": "Three", "3": "Four", "5": ""}
    assert "copies" in shown
    assert "exact-0  exact          6         6               2           0  5 documents, 3 distinct, 2 dupl" in shown
    assert project.values("lines-0", "b/1.jsonl.gz")[0] == {
        "seen_lines": {"seen": [True, False], "spans": [[0, 6, 1.0]], "chars_seen": 6}
    }
    project.ok("validate")
    assert project.ok("status").out.endswith("all is done\n")
    again = project.ok("dedup", "--json").json
    assert again["sets"]["lines-0"]["counts"] == {"lines": 10, "distinct": 4, "duplicates": 6}
    assert [each["written"] for each in again["sets"].values()] == [0, 0]
    dry = project.ok("mix", "--dry-run").out
    assert "copies" in dry


@pytest.mark.slow
def test_one_and_two_processes_and_any_memory_write_the_same(project: Project) -> None:
    project.ok("dedup", "processes=1")
    whole = tree(project.data)
    shutil.rmtree(project.attributes)
    shutil.rmtree(project.data / ".toolkit")
    project.ok("dedup", "processes=2", "dedup.exact-0.memory=400", "dedup.lines-0.memory=200")
    assert tree(project.data) == whole
    assert len(list(project.data.glob(".toolkit/dedup/lines-0/decisions-*/part-*.rows"))) > 1
    project.ok("dedup", "processes=1")  # another bound on memory is no other setting
    assert tree(project.data) == whole


def test_shares_make_signatures_and_the_last_run_the_rest(project: Project) -> None:
    for share in ("0/2", "1/2"):
        shown = project.ok("dedup", "--shard", share).out
        assert "What is a duplicate of what depends on all shards" in shown
        assert not project.attributes.exists()
    signed = {path: path.stat().st_mtime_ns for path in project.data.glob(".toolkit/dedup/*/signatures/**/*.bin")}
    assert len(signed) == 4
    project.ok("dedup")
    assert {path: path.stat().st_mtime_ns for path in signed} == signed
    assert of(project) == COPIES


@pytest.mark.slow
def test_shares_of_a_run_leave_what_depends_on_all_shards_to_the_last(project: Project) -> None:
    """A share does not fail for want of what no share can make; when that is made, shares of a rerun mix as well."""
    project.config["dedup"]["again-0"] = {**EXACT, "when": "exact.duplicate_of is None", "as": "again"}
    project.config["sample"] = {
        "one-0": {"documents": 1},
        "some-0": {"documents": 1, "when": "exact.duplicate_of is None", "as": "some"},
    }
    project.config["mix"]["attributes"] += ["one-0", "some-0"]
    for share in ("0/2", "1/2"):
        shown = project.ok("run", "--shard", share)
        assert "the signatures of exact-0, lines-0 are ready" in shown.out
        assert "the signatures of one-0 are ready" in shown.out
        assert "is not begun: it joins exact-0, lines-0, one-0, some-0, made of all shards together" in shown.out
        assert not project.attributes.exists()
        assert not project.out.exists()
    project.ok("run")
    made = tree(project.out)
    assert of(project) == COPIES
    shutil.rmtree(project.out)
    for share in ("0/2", "1/2"):
        assert f"1 shard is ready for {project.out}, 0 failed" in project.ok("run", "--shard", share).out
    project.ok("run")
    assert tree(project.out) == made


@pytest.mark.slow
def test_what_was_resolved_and_is_gone_is_resolved_again(project: Project) -> None:
    """A file of what is known of the whole dataset is missing: a shard without its fates reads as one without finds."""
    project.config["dedup"] |= {"near-0": {"kind": "near", "ngram": 1}, "cut-0": {"kind": "passages", "length": 50}}
    project.config["sample"] = {"some-0": {"documents": 2}}
    ranked = {"score": "len(document.text)"}
    project.config["calibrate"] = {
        "rank-0": {"kind": "rank", **ranked},
        "map-0": {"kind": "map", **ranked, "labels": "len(document.id)", "method": "isotonic", "minimum": 1},
    }
    commands = ("dedup", "sample", "calibrate")
    for command in commands:
        project.ok(command)
    whole = tree(project.attributes)
    folders = sorted(project.data.glob(".toolkit/dedup/*/decisions-*"))
    assert len(folders) == 7
    for folder in folders:
        (command,) = (each for each in commands if folder.parent.name in project.config[each])
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            path.unlink()
            shutil.rmtree(project.attributes / folder.parent.name)
            project.ok(command)
            assert tree(project.attributes) == whole, path
            assert path.exists()


@pytest.mark.slow
def test_duplicates_of_other_shards_than_there_are_are_refused(project: Project) -> None:
    project.ok("run")
    new = write_rows(project.documents / "c.jsonl.gz", [document("6", "Four"), document("7", "")])
    for command in ("mix", "validate"):
        ran = project(command).fails(1)
        assert "without c.jsonl.gz; run `toolkit dedup`" in ran.out + ran.err
    assert "has not been resolved over all shards" in project("status").out
    assert project.ok("dedup", "--json").json["sets"]["exact-0"]["written"] == 1  # nothing is said of old shards anew
    project.ok("mix")
    new.unlink()
    project.ok("clean", "--forget", "c.jsonl.gz")
    assert "with c.jsonl.gz, which no longer exist; run `toolkit dedup`" in project("mix").err
    project.ok("run")
    project.ok("validate")


def test_the_values_of_many_shards_are_recorded_together(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """So new shards with copies of documents in all others cost no sync for the record of each."""
    monkeypatch.setattr("toolkit.execution.grouped.SECONDS", 600.0)  # a group ends by its size, however slow it is
    shards = [f"c/{i}.jsonl.gz" for i in range(LEAST)]
    for shard in shards:
        write_rows(project.documents / shard, [document(shard, "Home\nOne two")])
    del project.config["dedup"]["lines-0"], project.config["mix"]
    project.ok("dedup")
    write_rows(project.documents / "d.jsonl.gz", [document("d", "Home\nOne two")])
    calls = Calls(monkeypatch)
    project.ok("dedup")
    renamed = [path for call, path in calls.all if call == "rename"]
    written = [path for path in renamed if path.startswith(f"{project.attributes}/exact-0/")]
    assert len(written) == len({*written}) == LEAST + 3
    assert len([path for path in renamed if "/segments/" in path]) < LEAST / 2


def test_a_document_that_has_changed_changes_what_is_said_of_others(project: Project) -> None:
    project.ok("run")
    rows = corpus()["a/0.jsonl.gz"]
    write_rows(project.documents / "a/0.jsonl.gz", [document("0", "Another"), *rows[1:]])
    assert "run `toolkit dedup`" in project("mix").err
    project.ok("run")
    assert of(project) == COPIES | {"2": None, "4": ["s", "2"]}


@pytest.mark.slow
def test_attributes_of_an_earlier_resolution_do_not_count(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where writing fails after a new resolution, what is left of the old one is refused."""
    project.ok("run")
    write_rows(project.documents / "a/0.jsonl.gz", [document("9", "Home\nOne two")])

    def fail(self: outputs.RowOutput, row: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(outputs.RowOutput, "write_row", fail)
        ran = project("dedup")
    assert ran.code == 1
    assert "No space left" in ran.err
    project("mix").fails(1, "run `toolkit dedup`")
    project.ok("run")
    assert of(project) == {"9": None, "3": None, "4": ["s", "9"], "5": None}


def test_settings_that_have_changed_are_refused(project: Project) -> None:
    project.ok("run")
    before = tree(project.data)
    for command in ("dedup", "mix", "run"):
        project(command, "dedup.exact-0.normalize=ccnet").fails(
            2, 'exact.settings.options.normalize: "none" -> "ccnet"', "`toolkit dedup --overwrite`"
        )
    assert tree(project.data) == before
    assert project("validate", "dedup.exact-0.normalize=ccnet").code == 1
    project.ok("dedup", "--overwrite", "dedup.exact-0.normalize=ccnet")


def test_conditions_scopes_and_ranks_read_other_sets(project: Project) -> None:
    project.config["tag"] = {"shape-0": "line_shape"}
    project.config["dedup"] = {
        "exact-0": {"kind": "exact", "keep": {"max": "line_shape.lines"}, "scope": "shape-0.line_shape.lines"},
        "second-0": {"kind": "exact", "as": "second", "when": "exact.duplicate_of is None", "of": "document.source"},
    }
    project.config["mix"]["attributes"], project.config["mix"]["rules"] = ["exact-0"], []
    project.ok("run")
    assert of(project) == COPIES
    listed = [row["second"]["duplicate_of"] for row in project.values("second-0", "a/0.jsonl.gz")]
    assert listed == [None, ["s", "0"], None]
    project.ok("validate")
    project.config["tag"]["shape-1"] = {"tagger": "line_shape", "short_chars": 5}
    assert "got it in shape-0, shape-1; say which: `attributes: [SET]`" in project("run").err
    project.config["dedup"]["exact-0"]["attributes"] = ["shape-0"]
    project.ok("run")
    shutil.rmtree(project.data / ".toolkit")
    assert "`toolkit tag` has not made shape-0, shape-1 yet" in project("dedup").err


def test_what_other_datasets_have_goes(project: Project, tmp_path: Path) -> None:
    write_rows(tmp_path / "old/documents/x.jsonl.gz", [document("old", "Home\nOne two"), document("o2", "Four")])
    before = tree(tmp_path / "old", bookkeeping=True)
    project.config["dedup"]["exact-0"] = EXACT | {"against": str(tmp_path / "old")}
    project.ok("run")
    assert of(project) == COPIES | {"0": ["s", "old"], "2": ["s", "old"], "4": ["s", "old"]}
    assert tree(tmp_path / "old", bookkeeping=True) == before
    project.ok("status")
    project.config["dedup"]["exact-0"]["against"] = str(project.data)
    assert "expected another dataset, got this one" in project("dedup").err


def test_a_value_that_cannot_be_used_names_its_document(project: Project) -> None:
    rows = [document("x", "a", metadata={"n": 1}), document("y", "b", metadata={"n": [1]})]
    write_rows(project.documents / "a/0.jsonl.gz", rows)
    project.config["dedup"]["exact-0"] = EXACT | {"keep": {"max": 'get(document.metadata, "n", 0)'}}
    project("dedup").fails(
        1, "a/0.jsonl.gz:2: ", "expected a number that is never null, or a text, got [1] (document 'y')"
    )
    assert strays(project.data) == []


@pytest.mark.parametrize(
    "kind", [EXACT, *slow({"kind": "near", "ngram": 2}, {"kind": "passages", "unit": "word", "length": 5})]
)
def test_keep_takes_texts_by_code_point(kind: dict[str, Any], project: Project, tmp_path: Path) -> None:
    """A document without the text never stays where another has it; runs over shards, and other datasets, agree."""
    text = "one two three four five six seven"
    dates = {"a": "2020-01-01", "b": None, "c": "2024-05-18T01:58:10Z", "d": "2024-05-18T01:58:09Z", "e": "Ω"}
    for id, date in dates.items():
        write_rows(project.documents / f"{id}.jsonl.gz", [document(id, text) | ({"created": date} if date else {})])
    kept = {}
    for best in ("max", "min"):
        project.config["dedup"] = {"x-0": kind | {"keep": {best: "document.created"}, "as": "x"}}
        project.ok("dedup", "--overwrite")
        values = {id: project.values("x-0", f"{id}.jsonl.gz")[0]["x"] for id in dates}
        kept[best] = [id for id, value in values.items() if not (value.get("spans") or value.get("duplicate_of"))]
    assert kept == {"max": ["e"], "min": ["a"]}
    project.config["dedup"]["x-0"]["keep"] = {"max": "document.text"}
    write_rows(project.documents / "e.jsonl.gz", [document("e", "x" * 64)])
    assert "expected a number, or a text of at most 63 bytes, got 'xxx" in project("dedup", "--overwrite").err


def test_only_what_other_datasets_have_is_a_duplicate(project: Project, tmp_path: Path) -> None:
    write_rows(tmp_path / "old/documents/x.jsonl.gz", [document("old", "Home\nOne two")])
    project.config["dedup"]["exact-0"] = EXACT | {"against": str(tmp_path / "old"), "within": False}
    project.ok("dedup")
    assert of(project) == {
        id: ["s", "old"] if other == ["s", "0"] or id == "0" else None for id, other in COPIES.items()
    }


def test_hashes_of_64_bits_say_how_many_collisions_are_expected(project: Project) -> None:
    project.config["dedup"]["exact-0"] = EXACT | {"bits": 64}
    assert "exact-0: 64 bits: 1.6e-19 collisions expected among 3 different hashes" in project.ok("dedup").out


def test_only_some_shards(project: Project) -> None:
    project.ok("dedup", "--limit", "1")
    assert of(project) == {"0": None, "1": None, "2": ["s", "0"]}
    project.ok("dedup")
    project("dedup", "--limit", "1").fails(2, "expected all 2 shards")
    assert of(project) == COPIES


def test_damage_is_found(project: Project) -> None:
    """A signature is made again; what was resolved says what to delete."""
    project.ok("dedup")
    whole = tree(project.data)
    (path,) = project.data.glob(".toolkit/dedup/exact-0/signatures/a/0.jsonl.gz/runs.bin")
    path.write_bytes(path.read_bytes().replace(b"\x01\0\0\0", b"\x02\0\0\0"))
    project.ok("dedup")
    assert tree(project.data) == whole
    (path,) = project.data.glob(".toolkit/dedup/exact-0/decisions-*/*.rows")
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    (project.attributes / "exact-0/b/1.jsonl.gz").unlink()
    project("dedup").fails(1, f"got other bytes, or none: it was damaged; delete {path.parent}")
    shutil.rmtree(path.parent)
    project.ok("dedup", "dedup.exact-0.memory=400")
    assert tree(project.data) == whole


# --- kills ------------------------------------------------------------------------------------------------------------
