"""`toolkit validate` on Croissant files: what is damaged is named."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, document, read_rows, write_rows
from toolkit.describing import reference

pytestmark = pytest.mark.filterwarnings("ignore")

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def path(described: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Croissant file that is right; mlcroissant is looked at elsewhere."""
    monkeypatch.setattr(reference, "is_installed", lambda: False)
    described.ok("croissant", "--of", "dataset")
    return described.data / "croissant.json"


def records(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in found["recordSet"] if each["@id"] == name)


def test_what_is_right_has_no_findings(described: Project, path: Path) -> None:
    ran = described.run("validate", path)
    assert (ran.code, ran.err) == (0, ran.err)
    assert "0 findings" in ran.out
    assert str(path) in described.ok("validate").out


EDITS: dict[str, tuple[Edit, str]] = {
    "no license": (lambda d: d.pop("license"), "expected license, which Croissant requires"),
    "no version of the format": (lambda d: d.pop("conformsTo"), "expected conformsTo"),
    "a file that is not there": (
        lambda d: d["distribution"][0].update(contentUrl="documents/none.jsonl.gz"),
        "expected the file documents/none.jsonl.gz, got none there",
    ),
    "another size": (
        lambda d: d["distribution"][0].update(contentSize="1 B"),
        "expected 1 bytes by the Croissant file",
    ),
    "another checksum": (lambda d: d["distribution"][0].update(sha256="0" * 64), f"expected sha256 {'0' * 64}"),
    "no checksum": (lambda d: d["distribution"][0].pop("sha256"), "expected sha256, because the dataset is not live"),
    "a glob without match": (
        lambda d: d["distribution"][-1].update(includes="attributes/none/*.jsonl.gz"),
        "expected files that match 'attributes/none/*.jsonl.gz', got none",
    ),
    "an id twice": (
        lambda d: d["recordSet"][1].update({"@id": "documents"}),
        "expected each @id once, got 'documents'",
    ),
    "a key that is no field": (
        lambda d: d["recordSet"][0]["key"][0].update({"@id": "documents/none"}),
        "expected a key",
    ),
    "a source that is nowhere": (
        lambda d: d["recordSet"][0]["field"][2]["source"]["fileSet"].update({"@id": "none"}),
        "expected a source among the distribution",
    ),
    "a column that is nowhere": (
        lambda d: d["recordSet"][0]["field"][2]["source"]["extract"].update(column="identity"),
        "expected the column 'identity' in some row, got none",
    ),
    "another type": (
        lambda d: records(d, "documents")["field"][4].update(dataType="sc:Integer"),
        "expected sc:Integer at documents/text, got 'one",
    ),
    "a list that is none": (
        lambda d: records(d, "documents")["field"][4].update(repeated=True),
        "expected a list at documents/text",
    ),
}


def test_findings_name_what_is_wrong(described: Project, path: Path) -> None:
    right = path.read_bytes()
    for name, (edit, message) in EDITS.items():
        found = json.loads(right)
        edit(found)
        path.write_text(json.dumps(found))
        ran = described("validate", path, "--quiet")
        assert (ran.code, message in ran.out) == (1, True), f"{name}: {ran.out}"


def test_changed_data_are_found(described: Project, path: Path) -> None:
    shard = described.documents / "b.jsonl.gz"
    data = shard.read_bytes()
    shard.write_bytes(data[:4] + b"\1\1\1\1" + data[8:])  # another time in the header of gzip
    assert gzip.decompress(data) == gzip.decompress(shard.read_bytes())
    ran = described.run("validate", path)
    assert ran.code == 1
    assert f"{shard}: expected sha256" in ran.out


def test_what_readers_change_is_a_warning(described: Project) -> None:
    rows = [document("0001", "a", "t", score=1), document("0002", "b", "t", score=2)]
    write_rows(described.documents / "b.jsonl.gz", rows)
    write_rows(described.attributes / "exp" / "b.jsonl.gz", [{**row, "attributes": {}} for row in rows])
    described.ok("tag")
    assert "every `id` is a number" in described.ok("croissant").out
    found = described.ok("validate", "--json").json
    assert [each for each in found["warnings"] if "documents/b.jsonl.gz" in each and "'id'" in each]


def test_no_json_is_no_traceback(described: Project, path: Path) -> None:
    path.write_bytes(b"\xff{")
    ran = described.run("validate", path)
    assert ran.code == 1
    assert f"{path}: expected a Croissant file" in ran.out


def test_an_output_may_have_a_description(released: Project) -> None:
    released.config["about"]["splits"] = {"train": 0.5, "test": 0.5}
    released.ok("croissant")
    released.ok("validate", "--first", 5)
    (released.out / "splits" / "en" / "extra.txt").write_text("x")
    assert "expected only files that the manifest lists" in released("validate").out


def test_mlcroissant_reads_the_records(described: Project) -> None:
    pytest.importorskip("mlcroissant", reason="the extra `croissant` is not installed")
    described.ok("croissant")
    described.ok("validate")
    path = described.data / "croissant.json"
    found = json.loads(path.read_text())
    records(found, "documents")["field"][0]["source"]["transform"]["regex"] = "^documents/(.+)$"
    records(found, "documents")["field"][5]["source"]["transform"] = {"jsonPath": "$.1d"}
    path.write_text(json.dumps(found))
    assert "mlcroissant: documents" in described("validate").out
    assert read_rows(described.documents / "b.jsonl.gz")


@pytest.mark.parametrize("known", ["by the manifest", "by the configuration", "by their rows"])
def test_dropped_documents_inside_the_output_are_no_rows_of_it(released: Project, known: str) -> None:
    released.config["mix"] |= {"rejected": str(released.out / "dropped")}
    del released.config["mix"]["output"]["part_size"]
    released.ok("mix")
    path = released.out / "dropped" / "documents" / "rejected.jsonl.gz"
    rows = read_rows(path)
    assert rows
    if known != "by the manifest":
        (released.out / ".toolkit" / "manifest.json").unlink()
    check = [released.out] if known == "by their rows" else ["-c", released.yaml]
    ran = released.run("validate", *check)
    assert ran.code == 0, ran.out
    rows[1]["rejected"] = {"rule": 1}
    del rows[2]["text"]
    write_rows(path, rows)
    found = released.run("validate", *check).out
    assert f"{path}:2: expected the rule that dropped the document" in found
    assert f"{path}:3: " in found
