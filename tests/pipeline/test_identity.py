"""Ids that are not unique: files that number their rows, the pattern that qualifies ids, refusals, and `allow`."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import xxhash

from tests.files_in_place import parquet, wet
from tests.pipeline.conftest import Project, document, read_rows, tree, write_rows
from tests.view.sites import serving
from toolkit.data import row_index
from toolkit.data.dataset import open_dataset
from toolkit.records import identity

FILES, ROWS = ("a", "b", "c"), 200


def numbered(name: str, rows: int = ROWS) -> list[dict[str, Any]]:
    """Rows of a file that numbers them from 0, with texts of its own."""
    return [{"id": str(i), "text": f"text {i} of the file {name}", "source": "s", "file": name} for i in range(rows)]


def data_of(format_: str, rows: list[dict[str, Any]]) -> bytes:
    match format_:
        case "csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, rows[0])
            writer.writeheader()
            writer.writerows(rows)
            return text.getvalue().encode()
        case "parquet":
            return parquet(rows)
        case "wet":
            return gzip.decompress(wet([{"key": row["id"], "body": row["text"]} for row in rows]))
    raise NotImplementedError(format_)


@pytest.mark.parametrize("format_", ["jsonl", "dolma", "csv", "parquet", "wet"])
def test_a_pattern_with_the_own_id_qualifies_it(project: Project, format_: str) -> None:
    folder = project.root / "in" / "more"
    for name in ("a", "b"):
        path, rows = folder / f"{name}.{format_}", numbered(name, 3)
        if format_ in ("jsonl", "dolma"):
            write_rows(path, rows)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data_of(format_, rows))
    entry = {"format": format_, "from": f"{project.root}/in/**/*.{format_}", "source": "s", "ids": "{path}/{id}"}
    assert project.ingest(entry).code == 0
    shards = sorted(project.documents.rglob("*.gz"))
    made = [row["id"] for shard in shards for row in project.shard(str(shard))]
    own = "<urn:{}>" if format_ == "wet" else "{}"
    assert made == [f"more/{name}.{format_}/{own.format(i)}" for name in ("a", "b") for i in range(3)]


def test_in_place_a_pattern_qualifies_ids_as_ingest_does(project: Project) -> None:
    folder = project.root / "in"
    for name in ("a", "b"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(b'{"id": 7, "text": "t"}\n'))
    project.config["documents"] = {"format": "jsonl", "path": f"{folder}/*.gz", "source": "s", "ids": "{path}/{id}"}
    project.config["dataset"] = str(project.data)
    project.config["tag"] = {"length-0": "length"}
    project.ok("tag")
    found = [read_rows(project.attributes / f"length-0/{name}.jsonl.gz.jsonl.gz") for name in ("a", "b")]
    assert [row["id"] for (row,) in found] == ["a.jsonl.gz/7", "b.jsonl.gz/7"]


def test_a_document_without_an_id_of_its_own_has_none_to_qualify(project: Project) -> None:
    path = write_rows(project.root / "r.jsonl", [{"id": "1", "text": "a"}, {"text": "b"}])
    ran = project.ingest({"format": "jsonl", "from": str(path), "source": "s", "ids": "{path}/{id}"})
    assert ran.code == 1
    assert "r.jsonl:2: expected a document with an id, because of `ids: {path}/{id}`, got one without" in ran.err


@pytest.mark.parametrize("format_", ["jsonl", "csv", "parquet"])
def test_init_qualifies_ids_where_files_number_their_rows(project: Project, format_: str) -> None:
    folder, made = project.root / "in", project.root / "made.yaml"
    for name in FILES:
        path, rows = folder / f"{name}.{format_}", numbered(name, 5)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data_of(format_, rows)) if format_ != "jsonl" else write_rows(path, rows)
    assert project.run("init", "--from", folder, "-o", made).code == 0
    text = made.read_text()
    assert 'ids: "{path}/{id}"' in text
    assert text.count('"{path}/{id}"') == 1 + (format_ != "csv"), text  # in the form without a copy, too
    assert project.run("ingest", "-c", made, f"dataset={project.data}").code == 0
    ids = [row["id"] for shard in project.documents.rglob("*.gz") for row in read_rows(shard)]
    assert len({*ids}) == len(ids) == 15
    (folder / f"b.{format_}").unlink()
    (folder / f"c.{format_}").unlink()
    assert project.run("init", "--from", folder, "-o", project.root / "one.yaml").code == 0
    assert "ids:" not in (project.root / "one.yaml").read_text()


# --- refused, and allowed ---------------------------------------------------------------------------------------------


def place_of(row: dict[str, Any]) -> tuple[str, str]:
    return row["file"], row["id"]


@pytest.fixture
def numbering(project: Project, made: Path) -> Project:
    """Three shards that number their rows, in each one document that is a copy of another shard's."""
    project.config |= {
        "tag": {"length-0": "length"},
        "dedup": {"exact-0": {"kind": "exact"}, "near-0": {"kind": "near", "preset": "fineweb"}},
        "sample": {"some-0": {"documents": 100}},
        "calibrate": {"rank-0": {"kind": "rank", "score": "length.chars"}},
        "mix": {"attributes": [], "output": {"format": "dolma", "path": str(project.out)}},
    }

    def make() -> None:
        for name in FILES:
            rows = numbered(name)
            rows[7]["text"] = "the same text in all files"
            write_rows(project.documents / f"{name}.jsonl.gz", rows)
        project.ok("tag")

    project.begin(made / "numbering", make)
    return project


REFUSED = (
    "/b.jsonl.gz:{0}: expected each (source, id) once, got that of {1}/data/documents/a.jsonl.gz:{0} again; "
    'give ids that files share the path before them (`ids: "{{path}}/{{id}}"` of ingest, or of documents in place), or '
    "go on with `duplicate_ids: allow` (document '{2}')"
)


def is_refused(project: Project, text: str) -> bool:
    """Whether the id and both places of some document are named."""
    return any(REFUSED.format(i + 1, project.root, i) in text for i in range(ROWS))


def test_ids_that_repeat_are_refused_by_name_and_a_dry_run_warns(numbering: Project) -> None:
    config = numbering.config
    tokenizer = str(Path(__file__).parent.parent / "taggers/files/tokenizer.json")
    before = set(tree(numbering.attributes))
    budget = {**config["mix"], "budget": {"documents": 50}}
    tokenize = {"path": str(numbering.out), "tokenizer": tokenizer, "eod": "</s>", "files": "megatron"}
    apart = {**config["mix"], "output": {"format": "dolma", "path": f"{numbering.out}-mix"}}
    train = {"m-0": {"kind": "fasttext", "labels": "document.file", "task": "classes"}}
    for command, more in (
        *((command, {}) for command in ("dedup", "sample", "calibrate", "mix", "run")),
        ("mix", {"mix": budget}),
        ("tokenize", {"tokenize": tokenize, "mix": apart}),
        ("train", {"train": train}),
    ):
        numbering.config = {**config, **more}
        if not more or command == "train":
            ran = numbering(command, "--dry-run")
            assert (ran.code, is_refused(numbering, ran.err)) == (0 if not more else ran.code, True), ran.err
        ran = numbering(command)
        assert (ran.code, is_refused(numbering, ran.err)) == (1, True), ran.err
        assert set(tree(numbering.attributes)) == before
        assert not tree(numbering.out)
    assert "documents: 380 more findings" in numbering("validate").out


@pytest.mark.slow
def test_allowed_ids_are_told_apart_by_their_shards(numbering: Project) -> None:
    mix = numbering.config["mix"]
    numbering.config["duplicate_ids"] = "allow"
    for command in ("dedup", "sample", "calibrate"):
        numbering.ok(command)
    mix |= {"attributes": ["some-0"], "rules": [{"keep": "sample.chosen"}]}
    numbering.ok("mix")
    sampled = numbering.output()
    assert len({*map(place_of, sampled)}) == len(sampled) == 100
    assert len({row["id"] for row in sampled}) > 60  # of 200: the three with one id are not drawn together
    assert len({row["file"] for row in sampled}) == 3
    mix |= {"attributes": [], "rules": [{"sample": 0.5}], "budget": {"documents": 50}}
    numbering.ok("mix")
    drawn = numbering.output()
    assert len({*map(place_of, drawn)}) == len(drawn) == 50
    assert len({row["id"] for row in drawn}) > 30
    dry = numbering.ok("mix", "--dry-run", "--json", "mix.output.path=" + str(numbering.root / "none")).json
    assert dry["totals"]["kept"] == 50
    assert numbering("validate").code == 0


@pytest.mark.slow
def test_a_copy_of_a_document_that_is_dropped_is_an_orphan_though_another_has_its_id(numbering: Project) -> None:
    """Rows 8 of b and c are copies of that of a; it is dropped, while other documents with its id stay."""
    write_rows(numbering.documents / "d.jsonl.gz", numbered("d"))
    numbering.config["duplicate_ids"] = "allow"
    numbering.ok("dedup")
    values = [value["exact"] for value in numbering.values("exact-0", "b.jsonl.gz")]
    assert values[7]["duplicate_of"] == ["s", "7", "a.jsonl.gz:8"]
    numbering.config["mix"] |= {
        "attributes": ["exact-0"],
        "rules": [{"drop": "exact.duplicate_of is not None", "name": "copies"}, {"drop": 'document.file == "a"'}],
    }
    numbering("mix").fails(1, "2 documents dropped as copies of documents that are not kept")
    numbering.config["mix"]["rules"][1]["drop"] = 'document.file == "b"'
    numbering.ok("mix")
    assert len(numbering.output()) == 3 * ROWS - 1
    shown = numbering.ok("dedup", "--explain", "7").out
    assert "7 (s, c.jsonl.gz:8) is a duplicate of 7 (s, a.jsonl.gz:8)" in shown


def test_a_number_that_is_an_id_is_explained(numbering: Project) -> None:
    numbering.config |= {"duplicate_ids": "allow", "dedup": {}}
    numbering.config["mix"] |= {"attributes": [], "rules": [{"drop": "document.chars < 0"}]}
    found = numbering.ok("mix", "--explain", "19", "--json").json["documents"]
    assert [each["place"].rpartition("/")[2] for each in found] == [f"{name}.jsonl.gz:20" for name in FILES]
    assert numbering.ok("mix", "--explain", str(ROWS), "--json").json["documents"] == []


def test_equal_hashes_of_different_ids_are_no_duplicates(
    numbering: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def hashed(source: str, id: str) -> int:
        return 1 if id.startswith("x") else xxhash.xxh3_64_intdigest(f"{source}\0{id}".encode())

    monkeypatch.setattr(row_index, "row_hash", hashed)
    for name in ("a", "b"):
        write_rows(tmp_path / f"y/documents/{name}.jsonl.gz", [document(f"x{name}{i}", "t") for i in range(5)])
    numbering.config["dataset"] = str(tmp_path / "y")
    numbering.ok("dedup")
    write_rows(tmp_path / "y/documents/c.jsonl.gz", [document("xb3", "another text")])
    ran = numbering("dedup")
    assert (ran.code, "c.jsonl.gz:1: expected" in ran.err, "b.jsonl.gz:4 again" in ran.err) == (1, True, True), ran.err


def test_copies_that_a_mix_numbered_are_not_equal(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document(str(i), f"text {i}") for i in range(9)])
    project.config["mix"] = {"rules": [{"repeat": 2}], "output": {"format": "dolma", "path": str(project.out)}}
    project.ok("mix")
    project.config |= {"dataset": str(project.out), "dedup": {"exact-0": {"kind": "exact"}}}
    project.ok("dedup")
    rows = project.output()
    write_rows(project.out / "documents" / "more.jsonl.gz", rows[:1])
    assert project("dedup").code == 1


@pytest.mark.slow
def test_what_was_checked_is_not_read_again(numbering: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FILES:
        rows = [{**row, "id": f"{name}{row['id']}"} for row in numbered(name)]
        write_rows(numbering.documents / f"{name}.jsonl.gz", rows)
    searched: list[list[str]] = []
    find = identity.find_duplicate_ids

    def noted(shards: Sequence[identity.ShardDocuments], *rest: Any) -> Any:
        searched.append([shard.name.rpartition("/")[2] for shard in shards])
        return find(shards, *rest)

    monkeypatch.setattr(identity, "find_duplicate_ids", noted)
    whole = [f"{name}.jsonl.gz" for name in FILES]
    numbering.ok("run")
    assert [each for each in searched if each] == [whole]  # once, for four stages
    numbering.ok("run")
    numbering.config["sample"]["more-0"] = {"documents": 10, "as": "more"}
    numbering.config["mix"]["output"]["part_size"] = "1 kB"
    numbering.ok("run")
    numbering.ok("mix", "--limit", "2", "--overwrite")
    assert [each for each in searched if each] == [whole]
    write_rows(numbering.documents / "d.jsonl.gz", [document("other", "t")])
    numbering.ok("run")
    assert [each for each in searched if each] == [whole, [*whole, "d.jsonl.gz"]]


@pytest.mark.parametrize("memory", [identity.MEMORY, 100 * 24])
def test_pairs_are_the_same_in_any_memory(numbering: Project, memory: int) -> None:
    dataset = open_dataset(str(numbering.data), None, None)
    shards = [f"{name}.jsonl.gz" for name in FILES]
    for shard in shards:
        row_index.ensure(dataset, shard, 10**6)
    indexed = [identity.IndexedDocuments(dataset, shard, ROWS) for shard in shards]
    found = sorted(identity.find_duplicate_ids(indexed, memory))
    assert found == [((0, row), (shard, row)) for row in range(ROWS) for shard in (1, 2)]


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def twice(project: Project) -> Project:
    """One dataset in two streams."""
    write_rows(project.documents / "a.jsonl.gz", [document(f"a{i}", f"text {i}", n=i) for i in range(9)])
    streams = {"first": {"dataset": str(project.data)}, "second": {"dataset": str(project.data)}}
    project.config["mix"] = {"streams": streams, "output": {"format": "dolma", "path": str(project.out)}}
    return project


def test_a_document_in_two_streams_is_refused_unless_one_alone_writes_it(twice: Project) -> None:
    ran = twice("mix")
    path = twice.documents / "a.jsonl.gz"
    said = "second: {0}:{1}: expected each (source, id) once, got that of first: {0}:{1} again; leave each document"
    (named,) = [i for i in range(9) if said.format(path, i + 1) in ran.err]
    assert (ran.code, f"(document 'a{named}')" in ran.err) == (1, True), ran.err
    assert not tree(twice.out)
    shown = twice.ok("mix", "--dry-run").err
    assert any(f"warning: {said}".format(path, i + 1) in shown for i in range(9))
    first, second = twice.config["mix"]["streams"].values()
    first["rules"], second["rules"] = [{"keep": 'document.id < "a5"'}], [{"keep": 'document.id >= "a4"'}]
    twice("mix").fails(1, f"second: {path}:5: expected")
    assert f"warning: second: {path}:5: expected" in twice.ok("mix", "--dry-run").err
    first["rules"] = [{"keep": 'document.id < "a4"'}]
    assert "expected each (source, id) once" not in twice.ok("mix", "--dry-run").err
    twice.ok("mix")
    assert len(twice.output()) == 9
    first["rules"], twice.config["duplicate_ids"] = [], "allow"
    twice.ok("mix")
    assert len(twice.output()) == 14


def test_per_shard_refuses_ids_that_repeat_though_their_documents_are_gone(project: Project) -> None:
    for name in ("a", "b"):
        write_rows(project.root / f"in/{name}.jsonl", numbered(name, 3))
    project.config |= {
        "ingest": [{"format": "jsonl", "from": f"{project.root}/in/*.jsonl", "source": "s"}],
        "mix": {"output": {"format": "dolma", "path": str(project.out)}},
    }
    ran = project("run", "--per-shard")
    assert (ran.code, "/b.jsonl.gz:" in ran.err, "/a.jsonl.gz:" in ran.err) == (1, True, True), ran.err
    assert not tree(project.out)
    project.config["ingest"][0]["ids"] = "{path}/{id}"
    project.ok("run", "--per-shard", "--overwrite")
    assert len(project.output()) == 6


# --- labels -----------------------------------------------------------------------------------------------------------


def label(config: dict[str, Any], path: Path, given: dict[tuple[str, int], str]) -> dict[tuple[str, int], Any]:
    """Labels documents, by file and row from 0, in the browser's way; the labels that another session shows of all."""
    shown: dict[tuple[str, int], Any] = {}
    for each in (given, {}):
        with serving(config, path) as site:
            shards = [shard["name"] for shard in site.ok("view")["shards"]]
            places = [(i, row) for i in range(len(shards)) for row in range(3)]
            ids = {at: site.ok("document", shard=at[0], row=at[1])["id"] for at in places}
            for (shard, row), word in each.items():
                at = [shards.index(shard), row]
                assert site.label(at=at, id=ids[at[0], row], question="verdict", label=word).status == 200
            for i, row in places:
                found = site.ok("document", shard=i, row=row)
                shown[shards[i], row] = found["labels"].get("verdict")
    return shown


@pytest.mark.parametrize("duplicate_ids", ["allow", "refuse"])
def test_a_label_is_of_one_text_where_ids_repeat(numbering: Project, duplicate_ids: str) -> None:
    numbering.config |= {"duplicate_ids": duplicate_ids, "align": {}}
    path = numbering.root / "mine.labels.jsonl"
    given = {("a.jsonl.gz", 1): "keep", ("b.jsonl.gz", 1): "drop", ("c.jsonl.gz", 2): "keep"}
    shown = label(numbering.config, path, given)
    assert {place: word for place, word in shown.items() if word} == given
    assert [row["data"] for row in read_rows(path)] == [
        {"document_id": str(row), "source": "s", "shard": shard} for shard, row in given
    ]
    numbering.config["align"] = {
        "mine-0": {"from": str(path), "format": "label_studio", "source": "data.source", "missing": "null"}
    }
    numbering.ok("align")
    for name in FILES:
        values = [value["verdict"] for value in numbering.values("mine-0", f"{name}.jsonl.gz")]
        found = {(f"{name}.jsonl.gz", row): value["label"] for row, value in enumerate(values) if value}
        assert found == {place: word for place, word in given.items() if place[0] == f"{name}.jsonl.gz"}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["", ":{row}"])
def test_evaluate_takes_labels_of_ids_that_repeat_by_their_shards(numbering: Project, ending: str) -> None:
    numbering.config |= {"duplicate_ids": "allow"}
    rows = [
        {"id": str(i), "where": f"{name}.jsonl.gz" + ending.format(row=i + 1), "label": len(row["text"])}
        for name in FILES
        for i, row in enumerate(read_rows(numbering.documents / f"{name}.jsonl.gz"))
    ]
    labels = write_rows(numbering.root / "labels.jsonl", rows)
    against = ["length.chars", "--against", "{files: %s, shard: where}" % labels]  # noqa: UP031
    numbering("evaluate", *against[:-1], f"{{files: {labels}}}").fails(2, "(`shard:`)")
    found = numbering.ok("evaluate", *against, "--json").json
    assert (found["looked_at"], found["labels_of_no_document"]) == (600, 0)
    assert found["all"]["scores"]["length.chars"]["mae"]["value"] == 0


@pytest.mark.slow
def test_a_report_and_dedup_explain_show_each_pair_of_documents_whose_ids_repeat(project: Project) -> None:
    text = " ".join(f"word{i} and more of it" for i in range(80))
    rows = [document(id, f"{text} {ending}") for id, ending in (("0", "a"), ("1", "b"), ("1", "c"), ("1", "d"))]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config |= {
        "duplicate_ids": "allow",
        "dedup": {"near-0": {"kind": "near", "preset": "fineweb"}},
        "mix": {"attributes": ["near-0"], "output": {"format": "dolma", "path": str(project.out)}},
    }
    project.ok("dedup")
    pairs = project.ok("dedup", "--explain", "1", "--json").json["pairs"]
    assert sorted(tuple(pair["name"]) for pair in pairs) == [("s", "1", f"a.jsonl.gz:{row}") for row in (2, 3, 4)]
    assert {tuple(pair["kept"]) for pair in pairs} == {("s", "0", "a.jsonl.gz:1")}
    project.ok("report", "--output", project.root / "r.json")
    shown = [pair for each in json.loads((project.root / "r.json").read_text())["runs"] for pair in each["pairs"]]
    assert sorted(pair["other"]["row"] for pair in shown) == [2, 3, 4]


def test_a_label_of_an_id_that_is_twice_in_a_shard_names_the_row(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document(id, f"text {i}") for i, id in enumerate("0121")])
    project.config |= {"duplicate_ids": "allow", "tag": {"length-0": "length"}}
    project.ok("tag")
    path = project.root / "mine.labels.jsonl"
    shown = label(project.config, path, {("a.jsonl.gz", 1): "keep", ("a.jsonl.gz", 2): "drop"})
    assert shown["a.jsonl.gz", 1] == "keep"
    assert [row["data"].get("shard") for row in read_rows(path)] == ["a.jsonl.gz:2", None]
    project.config["align"] = {"m-0": {"from": str(path), "format": "label_studio", "missing": "null"}}
    project.ok("align")
    values = [value["verdict"] for value in project.values("m-0", "a.jsonl.gz")]
    assert [value and value["label"] for value in values] == [None, "keep", "drop", None]


@pytest.mark.parametrize("form", ["label-studio", "argilla"])
def test_tasks_name_the_shard_where_ids_repeat_and_align_finds_it(numbering: Project, form: str) -> None:
    path = numbering.root / "tasks.json"
    numbering.config["duplicate_ids"] = "allow"
    where = ["--where", 'document.id == "1"']
    numbering.ok("annotate", "--to", form, "--output", path, "--question", "q=good,bad", *where)
    tasks = json.loads(path.read_text())
    for task, answer in zip(tasks, ("a", "b", "c"), strict=True):
        if form == "label-studio":
            result = {"from_name": "q", "to_name": "text", "type": "choices", "value": {"choices": [answer]}}
            task["annotations"] = [{"completed_by": "p", "result": [result]}]
        else:
            task["responses"] = {"q": [{"value": answer, "user_id": "p"}]}
    path.write_text(json.dumps(tasks))
    format_ = form.replace("-", "_")
    numbering.config["align"] = {"q-0": {"from": str(path), "format": format_, "missing": "null"}}
    numbering.ok("align")
    for name in FILES:
        values = [value["q"] for value in numbering.values("q-0", f"{name}.jsonl.gz")]
        assert [(i, value["label"]) for i, value in enumerate(values) if value] == [(1, name)]
