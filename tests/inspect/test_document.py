"""What a Croissant file says, without mlcroissant."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.inspect.conftest import ABOUT
from tests.inspect.reading import lines_of
from tests.pipeline.conftest import Project, read_rows, write_rows
from toolkit.describe import scan as data_file
from toolkit.describe.output import output_facts
from toolkit.describe.record_types import DescribeRequest

Nodes = dict[str, dict[str, Any]]


def document(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "croissant.json").read_text())
    return found


def by_id(nodes: list[dict[str, Any]]) -> Nodes:
    return {node["@id"]: node for node in nodes}


def fields(found: dict[str, Any], name: str) -> Nodes:
    return by_id(by_id(found["recordSet"])[name]["field"])


def test_files_are_listed_with_what_is_on_disk(released: Project) -> None:
    released.ok("croissant")
    nodes = by_id(document(released.out)["distribution"])
    listed = {id_: node for id_, node in nodes.items() if node["@type"] == "cr:FileObject"}
    there = {str(path.relative_to(released.out)) for path in released.out.rglob("*.*z")}
    there |= {str(path.relative_to(released.out)) for path in released.out.rglob("*_sha256.txt")}
    assert listed.keys() == there
    for name, node in listed.items():
        data = (released.out / name).read_bytes()
        assert node["contentUrl"] == name
        assert node["contentSize"] == f"{len(data)} B"
        assert node["sha256"] == hashlib.sha256(data).hexdigest()
    assert nodes["documents-files"]["includes"] == "*/*.jsonl.gz"


@pytest.mark.slow
def test_the_dry_run_prints_the_same_bytes_whatever_the_processes(described: Project) -> None:
    described.config["about"]["splits"] = {"train": 0.9, "test": 0.1}
    printed = described.ok("croissant", "--dry-run", "processes=2", "executor={type: local}").out
    assert not (described.data / "croissant.json").exists()
    assert not (described.data / "splits").exists()
    described.ok("croissant")
    assert (described.data / "croissant.json").read_text() == printed
    described.ok("croissant", "--check")


def test_checksums_are_those_of_the_files_also_without_records(released: Project) -> None:
    released.ok("croissant", "--of", "dataset")
    before = document(released.data)["distribution"]
    for path in (released.data / ".toolkit").rglob("*.json"):
        if "ingest" in path.parts:
            path.unlink()
    released.ok("croissant", "--of", "dataset")
    assert document(released.data)["distribution"] == before


def test_a_path_is_described_with_settings_of_the_command_line(released: Project) -> None:
    released.ok("croissant")
    (released.out / "croissant.json").rename(released.root / "with.json")
    settings = [f"about.{key}={json.dumps(value)}" for key, value in ABOUT.items()]
    assert released.run("croissant", released.out, *settings).code == 0
    found, other = document(released.out), json.loads((released.root / "with.json").read_text())
    assert found["recordSet"] == other["recordSet"]
    assert found["distribution"] == other["distribution"]
    assert found["rai:machineAnnotationTools"] == other["rai:machineAnnotationTools"]
    assert "rai:dataCollection" not in found  # what was ingested is not known there


@pytest.mark.slow
def test_a_release_without_manifest_is_recognised(released: Project) -> None:
    released.config["mix"]["output"]["schema"] = "23.01"
    released.ok("mix")
    released.ok("croissant")
    before = document(released.out)
    (released.out / ".toolkit" / "manifest.json").unlink()
    settings = [f"about.{key}={json.dumps(value)}" for key, value in ABOUT.items()]
    assert released.run("croissant", released.out, *settings).code == 0
    found = document(released.out)
    assert by_id(found["distribution"]) == by_id(before["distribution"])
    assert fields(found, "documents") == fields(before, "documents")
    assert "documents/quality_warnings" in fields(found, "documents")


def test_a_users_own_tagger_is_described(described: Project) -> None:
    described.ok("croissant", "--of", "dataset")
    found = fields(document(described.data), "attributes-own-0")
    assert list(found)[4:] == [f"attributes-own-0/{name}" for name in ("mine", "mine.first", "parts")]
    label, prob, words = found["attributes-own-0/mine"]["subField"]
    assert label["dataType"] == ["sc:Text", "cr:Label"]
    assert label["source"]["transform"] == {"jsonPath": "$['mine']['label']"}
    assert (prob["dataType"], words["repeated"]) == ("sc:Float", True)
    assert found["attributes-own-0/parts"]["repeated"]
    description = by_id(document(described.data)["recordSet"])["attributes-own-0"]["description"]
    assert "mine.shares (its keys are not fixed)" in description
    assert "mine.inner (its keys are not fixed)" in description


def test_what_cannot_be_described_is_named(described: Project) -> None:
    described.ok("croissant", "--of", "dataset")
    records = by_id(document(described.data)["recordSet"])
    _, _, listed = records["documents"]["description"].partition("Not described, to be read from the files: ")
    assert dict(each.rstrip(")").split(" (", 1) for each in listed.rstrip(".").split("; ")) == {
        "only_here": "some files have no such key in any row that was looked at",
        "updated_at": "some files have no such key in any row that was looked at",
        "metadata.*": "its key is none of JSON paths",
        "metadata.empty": "it never has a value",
        "metadata.bare": "its objects have no keys",
        "metadata.bares": "its objects have no keys",
        "metadata.matrix": "its lists hold more than values, spans and objects",
    }


def test_examples_are_the_first_rows_cut(released: Project) -> None:
    released.ok("croissant")
    (record,) = [each for each in document(released.out)["recordSet"] if each["@id"] == "documents"]
    first = [row for _, _, row in lines_of(released.out, "*/*.jsonl.gz")][: len(record["examples"])]
    for example, row in zip(record["examples"], first, strict=True):
        content = example["documents/content"]
        assert content == row["content"] or (len(content) == 202 and row["content"].startswith(content[:200]))
        found = row["metadata"]["identification"]
        assert example["documents/identification"] == {f"documents/identification/{k}": v for k, v in found.items()}
    released.ok("croissant", "about.examples=0")
    assert "examples" not in json.dumps(document(released.out)["recordSet"])


def test_examples_are_the_first_three_over_the_files(described: Project) -> None:
    described.ok("croissant", "about.splits={a: 0.5, b: 0.5}")
    found = by_id(document(described.data)["recordSet"])
    for name in ("documents", "attributes-exp", "attributes-own-0", "document-splits"):
        ids = [example[f"{name}/id"] for example in found[name]["examples"]]
        assert ids == ["b-1", "b-2", "a-1"]
        assert [example[f"{name}/file"].partition("/")[0] for example in found[name]["examples"]] == ["b", "b", "cc"]


@pytest.mark.slow
def test_examples_of_parquet_are_its_first_rows(released: Project) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
    released.config["mix"]["output"] = {"format": "parquet", "by": "language", "path": str(released.out / "p")}
    released.ok("mix")
    released.ok("croissant")
    rows = [row for path in sorted((released.out / "p").glob("*/*.parquet")) for row in pq.read_table(path).to_pylist()]
    shown = by_id(document(released.out / "p")["recordSet"])["documents"]["examples"]
    assert [example["documents/id"] for example in shown] == [row["id"] for row in rows[:3]]
    assert [example["documents/prob"] for example in shown] == [row["prob"] for row in rows[:3]]


@pytest.mark.parametrize("format_", ["oscar", "text", "parquet"])
def test_the_first_document_is_a_fact(released: Project, format_: str) -> None:
    if format_ == "parquet":
        pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    released.config["mix"]["output"] = {"format": format_, "path": str(released.root / "o")}
    released.ok("mix")

    def looks(works: list[data_file.ScanJob]) -> list[data_file.FileScan]:
        return [data_file.scan_file(work, lambda rows, size: None) for work in works]

    facts = output_facts(str(released.root / "o"), [], DescribeRequest(looks, lambda *_: None, None, 1, 1 << 24))
    assert facts.example
    assert facts.example[0] == facts.groups[0].paths[0]
    value = facts.example[1]
    text = value if isinstance(value, str) else value.get("content", value.get("text"))
    assert isinstance(text, str)
    assert len(text) > 100
    assert "\n\n" not in text or format_ == "parquet"


def test_a_live_dataset_has_no_checksums(described: Project) -> None:
    described.ok("croissant", "about.live=true")
    found = document(described.data)
    assert found["isLiveDataset"] is True
    assert not any(key in node for node in found["distribution"] for key in ("sha256", "contentSize"))


@pytest.mark.slow
def test_of_live_globs_only_the_files_that_grow_have_no_checksums(described: Project) -> None:
    described.config["about"]["live"] = ["documents/cc/**", "no/*"]
    described.ok("croissant", "--of", "dataset").shows("about.live: 'no/*' matches no file")
    path = described.data / "croissant.json"
    found = json.loads(path.read_text())
    assert found["isLiveDataset"] is True
    files = {each["@id"]: each for each in found["distribution"] if each["@type"] == "cr:FileObject"}
    assert [id_ for id_, each in files.items() if "sha256" not in each] == ["documents/cc/a.jsonl.gz"]
    assert [id_ for id_, each in files.items() if "contentSize" not in each] == ["documents/cc/a.jsonl.gz"]
    described.ok("validate", path)
    rows = read_rows(described.documents / "b.jsonl.gz")
    write_rows(described.documents / "b.jsonl.gz", [rows[0] | {"text": "other"}, *rows[1:]])
    assert "b.jsonl.gz as it is now, got those of an earlier version" in described("validate", path).out
    described.config["about"]["live"] = ["documents/[z-a]"]
    described("croissant", "--of", "dataset").fails(2, "expected a glob")


def test_files_that_are_no_shards_are_not_matched(described: Project) -> None:
    described.config["documents"] = {"exclude": ["notes/**"]}
    write_rows(described.documents / "notes" / "x.jsonl.gz", [{"other": 1}])
    described.ok("croissant")
    sets = by_id(document(described.data)["distribution"])
    assert sets["documents-files"]["includes"] == ["documents/b.jsonl.gz", "documents/cc/a.jsonl.gz"]


def test_rules_and_taggers_are_told_with_their_counts_and_models(released: Project) -> None:
    released.config["about"]["rai"] = {"dataLimitations": ["Few pages."]}
    released.ok("croissant")
    found = document(released.out)
    manifest = json.loads((released.out / ".toolkit" / "manifest.json").read_text())
    steps = found["rai:dataPreprocessingProtocol"]
    for rule in manifest["rules"]:
        (step,) = [each for each in steps if each.startswith(f"rule {rule['name']}: {rule['kind']} ")]
        assert f"{rule['documents']:,} of {rule['reached']:,} documents" in step
    settings = manifest["sets"]["lines-0"][0]["settings"]
    (tool,) = [each for each in found["rai:machineAnnotationTools"] if each.startswith("line_language, ")]
    assert f"model: {{name: lid.176.ftz, sha256: {settings['options']['model']['sha256']}}}" in tool
    assert f"version {settings['version']}" in tool
    assert found["rai:dataLimitations"] == ["Few pages."]
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.0"


def test_a_set_that_lacks_a_shard_is_not_described(described: Project) -> None:
    (described.attributes / "exp" / "b.jsonl.gz").unlink()
    described("croissant").fails(1, "exp/b.jsonl.gz")


@pytest.mark.slow
def test_formats_without_rows_are_listed_as_files(released: Project) -> None:
    released.config["mix"]["output"] = {"format": "text", "path": str(released.root / "text")}
    released.ok("mix")
    assert "lines: described as the specification has it" in released.ok("croissant").out
    found = document(released.root / "text")
    languages, lines = found["recordSet"]
    assert {each["name"]: each["source"]["extract"]["fileProperty"] for each in lines["field"]} == {
        "language": "fullpath",
        "line": "lines",
        "row": "lineNumbers",
    }
    manifest = json.loads((released.root / "text" / ".toolkit" / "manifest.json").read_text())
    counts = {label: totals["documents"] for label, totals in manifest["labels"].items()}
    assert {row["languages/code"]: row["languages/documents"] for row in languages["data"]} == counts
    assert by_id(found["distribution"])["documents-files"]["encodingFormat"] == "text/plain"
    assert "0 findings" in released.ok("validate").out


def test_an_output_names_sets_of_which_something_is_in_its_rows(released: Project) -> None:
    released.config["tag"]["unused-0"] = "length"
    released.config["tag"]["read-0"] = {"tagger": "noise", "as": "loud"}
    released.config["mix"]["attributes"] += ["unused-0", "read-0"]
    released.config["mix"]["rules"].append({"drop": "loud.noise > 10 * loud.chars", "name": "odd"})
    released.ok("tag")
    released.ok("mix")
    released.ok("croissant")
    found = document(released.out)
    assert "unused-0" not in json.dumps(found)
    assert "read-0" not in json.dumps([found["rai:dataAnnotationProtocol"], found["rai:machineAnnotationTools"]])
    assert "language-0" in found["rai:dataAnnotationProtocol"]
    step = next(each for each in found["rai:dataPreprocessingProtocol"] if "read-0" in each)
    assert step.endswith("; read by rules.")


def test_documents_of_an_oscar_output_have_a_key(released: Project) -> None:
    released.ok("croissant")
    (documents,) = [each for each in document(released.out)["recordSet"] if each["name"] == "documents"]
    assert documents["key"] == {"@id": "documents/warc_headers/warc-record-id"}


@pytest.mark.parametrize("labels", [["en", "en_part_1", "en_part_x"], ["de"]])
def test_a_label_may_look_like_a_part(project: Project, labels: list[str]) -> None:
    rows = [
        {"id": f"a{i}", "text": "b " * 300, "source": "s", "metadata": {"l": labels[i % len(labels)]}} for i in range(9)
    ]
    write_rows(project.documents / "a.jsonl.gz", rows)
    output = {"format": "text", "path": str(project.out), "identification": "metadata.l"}
    rules = [{"drop": "get(document.metadata, 'l', None) is None", "name": "unidentified"}]
    project.config["mix"] = {"attributes": [], "rules": rules, "output": output}
    project.config["about"] = dict(ABOUT)
    project.ok("mix")
    for layout in ("flat", "folders"):
        output["layout"] = layout
        project.ok("mix")
        project.ok("croissant")
        ran = project("validate")
        assert (ran.code, "0 findings" in ran.out) == (0, True), ran.out


def test_the_example_of_the_page_is_what_is_made(golden: Project) -> None:
    golden.config["about"]["in_language"] = ["de", "en", "es", "fr", "ru", "zh"]
    golden.ok("run")
    golden.ok("croissant")
    example = ROOT / "docs" / "examples" / "croissant.json"
    made, shown = document(golden.out), json.loads(example.read_text(encoding="utf-8"))
    for node in (*made["distribution"], *shown["distribution"]):  # of compressed bytes, which differ between machines
        node.pop("sha256", None)
        node.pop("contentSize", None)
    assert shown == made


def test_a_users_own_format_is_described(small: Project) -> None:
    (small.root / "own.py").write_text(
        "import msgspec\nfrom toolkit import Writer\n\nclass Pairs(Writer):\n    def encode(self, document, mixed):\n"
        "        row = {'name': document.id, 'size': len(document.text), 'parts': [{'n': 1}]}\n"
        "        return [('all', msgspec.json.encode(row) + b'\\n')]\n"
    )
    small.config["mix"]["output"] = {"format": f"{small.root}/own.py:Pairs", "path": str(small.out)}
    small.config["about"] = dict(ABOUT)
    small.ok("mix")
    small.ok("croissant")
    (record,) = document(small.out)["recordSet"]
    assert "key" not in record
    assert {each["name"]: each.get("dataType") for each in record["field"]} == {
        "name": "sc:Text",
        "size": "sc:Integer",
        "parts": None,
    }
    small.ok("validate")


# --- what is said of where the data come from -------------------------------------------------------------------------


def test_models_are_named_without_their_folders(project: Project) -> None:
    (project.root / "own.py").write_text(
        "from toolkit import Document, Files, Tagger\n\nclass Mine(Tagger):\n    words: Files\n"
        "    other: Files\n\n    def tag(self, document: Document) -> int:\n        return 1\n"
    )
    for name in ("my-words.txt", "others.txt"):
        (project.root / name).write_text(name)
    write_rows(project.documents / "a.jsonl.gz", [{"id": "a", "text": "b", "source": "s"}])
    tagger = {"tagger": f"{project.root}/own.py:Mine"}
    tagger |= {"words": f"{project.root}/my-words.txt", "other": f"{project.root}/others.txt"}
    project.config["tag"] = {"own-0": tagger}
    output = {"format": "dolma", "path": str(project.out), "attributes": True}
    project.config["mix"] = {"attributes": ["own-0"], "output": output}
    project.config["about"] = dict(ABOUT)
    project.ok("tag")
    project.ok("mix")
    digest = hashlib.sha256(b"my-words.txt").hexdigest()
    for of, folder in (("dataset", project.data), ("output", project.out)):
        project.ok("croissant", "--of", of)
        (tool,) = document(folder)["rai:machineAnnotationTools"]
        assert f"words: {{name: my-words.txt, sha256: {digest}}}" in tool
        assert "own.py:Mine" in tool
        assert str(project.root) not in (folder / "croissant.json").read_text()


def test_software_is_named_only_where_it_is_recorded(described: Project) -> None:
    described.ok("croissant")
    found = document(described.data)
    assert found["rai:dataAnnotationProtocol"] == (
        "The attributes own-0 were made by software. How the attributes exp were made is not recorded."
    )
    assert not any("exp" in tool or "another" in tool for tool in found["rai:machineAnnotationTools"])
    assert "attributes exp: how they were made is not recorded." in found["rai:dataPreprocessingProtocol"]


def test_warc_records_are_told_by_source(described: Project) -> None:
    described.ok("croissant")
    found = document(described.data)
    assert found["rai:dataCollectionRawData"] == (
        "WARC records of source s: 1 document, made 2024-05-18T01:58:10Z to 2024-05-18T01:58:10Z; kept of their "
        'headers: warc-date, content-length, it\'s "odd".'
    )
    assert "rai:dataCollectionTimeframe" not in found  # of another source nobody knows, whatever `added` says


def test_documents_that_are_all_of_warc_records_have_their_time(released: Project) -> None:
    released.ok("croissant")
    found = document(released.out)
    dates = [row["warc_headers"]["warc-date"] for _, _, row in lines_of(released.out, "*/*.jsonl.gz")]
    assert found["rai:dataCollectionTimeframe"] == [min(dates), max(dates)]
    assert found["rai:dataCollectionRawData"].startswith("WARC records; kept of their headers: warc-type, ")


def test_crawls_are_told_by_the_metadata_too(described: Project) -> None:
    rows = [
        {"id": "1", "text": "x", "source": "s", "metadata": {"crawl": "CC-MAIN-2021-49"}},
        {"id": "2", "text": "x", "source": "s", "metadata": {"dump": "crawl-data/CC-NEWS-2024-03", "crawl": 1}},
    ]
    described.config["dataset"] = str(described.root / "crawls")
    write_rows(described.root / "crawls" / "documents" / "a.jsonl.gz", rows)
    described.ok("croissant", "--of", "dataset")
    found = document(described.root / "crawls")
    assert found["rai:dataCollection"] == "The metadata of documents name CC-MAIN-2021-49, CC-NEWS-2024-03."
    assert [each["@id"] for each in found["prov:wasDerivedFrom"]] == [
        "https://data.commoncrawl.org/crawl-data/CC-MAIN-2021-49/",
        "https://data.commoncrawl.org/crawl-data/CC-NEWS/2024/03/",
    ]


# --- what readers change, and what cannot be described ----------------------------------------------------------------


def test_what_readers_change_is_noted(described: Project) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "0001", "text": "x", "source": "s", "code": "12345678901234567890", "n": 2**53 + 1, "whole": 2**53 + 1},
        {"id": "0002", "text": "y", "source": "s", "code": None, "n": None, "whole": 1, "metadata": {"n": 2**53 + 1}},
        {"id": "0003", "text": "z", "source": "s", "code": "7", "whole": 2, "metadata": {"n": None, "code": "7"}},
    ]
    root = described.root / "numbers"
    described.config["dataset"] = str(root)
    write_rows(root / "documents" / "odd dir#1" / "100% [x].jsonl.gz", rows)
    write_rows(root / "attributes" / "exp" / "odd dir#1" / "100% [x].jsonl.gz", [r | {"attributes": {}} for r in rows])
    ran = described.ok("croissant", "--of", "dataset").out
    notes = [line.removeprefix("note: ") for line in ran.splitlines() if line.startswith("note: ")]
    place = "documents/odd dir#1/100% [x].jsonl.gz"
    urls = "a URL may not have; Croissant's reader wants it as it is, other programs may not take it"
    changed = "is a number; Croissant's reader changes such texts (0001 becomes 1)"
    assert notes == [
        f"{place}: every `id` {changed}",
        f"{place}: every `code` {changed}",
        f"{place}: `n` has integers beyond 2^53, and rows without one; Croissant's reader rounds such integers",
        f"attributes/exp/odd dir#1/100% [x].jsonl.gz: every `id` {changed}",
        f"{place}: its path has signs that {urls} (and 1 more)",
    ]
    advice = described("validate").out
    assert [line for line in advice.splitlines() if line.startswith("advice: ") and "mlcroissant" not in line] == [
        f"advice: {root}/croissant.json: {note}" for note in notes
    ]


def test_a_file_that_readers_refuse_is_named(described: Project) -> None:
    root = described.root / "mixed"
    described.config["dataset"] = str(root)
    write_rows(root / "documents" / "a.jsonl", [{"id": "1x", "text": "x", "source": "s", "metadata": {"n": 2**64}}])
    assert "documents/a.jsonl:1: an integer of 2^64 or more" in described.ok("croissant", "--of", "dataset").out
    from toolkit.storage.compression import zstd

    data = zstd().compress(b'{"id": "2x", "text": "x", "source": "s"}\n')
    (root / "documents" / "b.jsonl.zst").write_bytes(data)
    ran = described.ok("croissant", "--of", "dataset", "about.version=2.0.0")
    assert "documents: no record set, because Croissant's reader does not take files such as documents/b.js" in ran.out


def test_declared_maps_in_an_output_are_no_fields(described: Project) -> None:
    described.config["mix"] = {
        "attributes": ["own-0"],
        "output": {"format": "dolma", "path": str(described.out), "attributes": True},
    }
    described.ok("mix")
    described.ok("croissant")
    (record,) = document(described.out)["recordSet"]
    assert "attributes.mine.shares (its keys are not fixed)" in record["description"]
    assert "attributes.mine" in {field["name"] for field in record["field"]}
    assert not any("shares" in field["name"] for field in record["field"])


def test_an_output_of_no_document_is_said_to_have_none(small: Project) -> None:
    small.config["about"] = dict(ABOUT)
    small.config["mix"]["rules"] = [{"drop": "line_shape.lines >= 0", "name": "all"}]
    small.config["mix"]["allow_empty"] = True
    small.ok("mix")
    for command in ("croissant", "card"):
        ran = small(command).fails(2, "of 12 the mix has kept none")
        assert "run `toolkit mix`" not in ran.err
