"""What a Croissant file says, without mlcroissant."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.describing.conftest import ABOUT
from tests.describing.reading import lines_of
from tests.pipeline.conftest import Project, write_rows
from toolkit.describing.about import About

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


@pytest.mark.parametrize("key", ["name", "description", "license", "url", "creator", "date_published"])
def test_what_is_required_and_not_given_is_named(described: Project, key: str) -> None:
    del described.config["about"][key]
    ran = described("croissant")
    assert ran.code == 2
    assert f"expected about.{key}, which Croissant requires" in ran.err
    assert not (described.data / "croissant.json").exists()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("license", "CC0-1.0", "https://spdx.org/licenses/CC0-1.0.html"),
        ("version", 1.0, "expected MAJOR.MINOR.PATCH (1.0.0), got 1.0"),
        ("version", "2024.01", "expected MAJOR.MINOR.PATCH (1.0.0), got '2024.01'"),
        ("date_published", "yesterday", "expected a date such as 2026-01-31"),
        ("keyword", ["a"], "did you mean 'keywords'?"),
        ("rai", {"dataLimitation": "x"}, "did you mean 'dataLimitations'?"),
        ("splits", {"train": 0.5}, "sum up to 1"),
        ("creator", {"type": "Robot", "name": "R"}, "about.creator.type"),
    ],
)
def test_settings_are_checked(described: Project, key: str, value: Any, message: str) -> None:
    described.config["about"][key] = value
    ran = described("croissant")
    assert ran.code == 2
    assert message in ran.err


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


def test_a_live_dataset_has_no_checksums(described: Project) -> None:
    described.ok("croissant", "about.live=true")
    found = document(described.data)
    assert found["isLiveDataset"] is True
    assert not any(key in node for node in found["distribution"] for key in ("sha256", "contentSize"))


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
    assert settings["options"]["model"]["sha256"] in tool
    assert f"version {settings['version']}" in tool
    assert found["rai:dataLimitations"] == ["Few pages."]
    assert found["conformsTo"][1] == "http://mlcommons.org/croissant/RAI/1.0"


def test_a_set_that_lacks_a_shard_is_not_described(described: Project) -> None:
    (described.attributes / "exp" / "b.jsonl.gz").unlink()
    ran = described("croissant")
    assert ran.code == 1
    assert "exp/b.jsonl.gz" in ran.err


def test_formats_without_rows_are_listed_as_files(released: Project) -> None:
    released.config["mix"]["output"] = {"format": "text", "path": str(released.root / "text")}
    released.ok("mix")
    assert "no record set" in released.ok("croissant").out
    found = document(released.root / "text")
    assert found["recordSet"] == []
    assert by_id(found["distribution"])["documents-files"]["encodingFormat"] == "text/plain"


def test_the_page_describes_every_setting() -> None:
    page = (ROOT / "docs" / "croissant.md").read_text(encoding="utf-8")
    assert [name for name in About.__struct_fields__ if f"`{name}`" not in page] == []


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
