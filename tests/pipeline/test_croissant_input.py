"""`format: croissant`: the records of an external Croissant file become documents."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, read_rows, write_rows
from tests.storage.web_server import Behaviour, web
from toolkit.describe import croissant

pytest.importorskip("mlcroissant", reason="the extra `croissant` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # pandas and rdflib have many

ROWS = [
    {"key": "a", "body": "one\ntwo", "about": {"url": "https://example.org/1", "year": 2019}, "tags": ["x", "y"]},
    {"key": "b", "body": "Größe 日本", "about": {"url": None, "year": 2020}, "tags": []},
    {"key": "c", "body": "three", "about": {"url": "https://example.org/3", "year": 2021}, "tags": ["z"]},
]
ENTRY = {"format": "croissant", "source": "theirs", "fields": {"id": "key", "text": "body", "metadata": "about"}}


def field(id_: str, path: str = "", **more: Any) -> dict[str, Any]:
    column = id_.split("/")[1]
    source: dict[str, Any] = {"fileSet": {"@id": "files"}, "extract": {"column": column}}
    if path:
        source["transform"] = {"jsonPath": path}
    return {"@type": "cr:Field", "@id": id_, "name": id_.rpartition("/")[2], "source": source, **more}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Two files of rows with a description, as somebody else publishes them."""
    folder = tmp_path / "theirs"
    write_rows(folder / "1.jsonl", ROWS[:2])
    write_rows(folder / "2.jsonl", ROWS[2:])
    inner = [field("rows/about/url", "$['url']", dataType="sc:Text")]
    inner.append(field("rows/about/year", "$['year']", dataType="sc:Integer"))
    fields = [field("rows/key", dataType="sc:Text"), field("rows/body", dataType="sc:Text")]
    fields.append({"@type": "cr:Field", "@id": "rows/about", "name": "about", "subField": inner})
    fields.append(field("rows/tags", dataType="sc:Text", repeated=True))
    files: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": name,
            "name": name,
            "contentUrl": name,
            "encodingFormat": "application/jsonlines",
            "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
        }
        for name in ("1.jsonl", "2.jsonl")
    ]
    files.append({"@type": "cr:FileSet", "@id": "files", "name": "files", "includes": "*.jsonl"})
    files[-1]["encodingFormat"] = "application/jsonlines"
    record = {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}
    about = {"@type": "sc:Dataset", "name": "theirs", "conformsTo": f"{croissant.BASE}1.0"}
    document = {"@context": croissant.context("1.0"), **about, "distribution": files, "recordSet": [record]}
    (folder / "metadata.json").write_text(json.dumps(document))
    return folder


def test_records_are_documents(project: Project, theirs: Path) -> None:
    project.config["ingest"] = [ENTRY | {"from": str(theirs / "metadata.json")}]
    project.ok("ingest")
    (shard,) = project.documents.rglob("*.jsonl.gz")
    rows = read_rows(shard)
    assert [(row["id"], row["text"], row["metadata"], row["tags"]) for row in rows] == [
        (row["key"], row["body"], row["about"], row["tags"]) for row in ROWS
    ]


def test_checksums_are_verified_and_mistakes_are_told(project: Project, theirs: Path) -> None:
    path = theirs / "metadata.json"
    project.config["ingest"] = [ENTRY | {"from": str(path), "record_set": "row"}]
    assert "expected the record set 'row', got none; did you mean 'rows'?" in project("ingest").err
    project.config["ingest"] = [ENTRY | {"from": str(path), "record_set": "rows"}]
    write_rows(theirs / "2.jsonl", [ROWS[2] | {"body": "other"}])
    project("ingest").fails(1, f"{theirs / '2.jsonl'}: expected sha256 ")
    project.config["ingest"] = [ENTRY | {"from": str(path), "format": "jsonl"}]
    assert "the file is a Croissant file (`format: croissant`)" in project("ingest").err
    project.config["ingest"] = [ENTRY | {"from": str(path), "record_set": "rows"}]
    path.write_text("{}")
    assert f"{path}: expected the record set 'rows', got none; there are: none" in project("ingest").err


def test_a_description_of_the_web_has_its_files_there(
    project: Project, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlcroissant._src.core import constants

    monkeypatch.setattr(constants, "DOWNLOAD_PATH", constants.epath.Path(project.root / "downloads"))
    text = (theirs / "metadata.json").read_text()
    text = text.replace('"fileSet": {"@id": "files"}', '"fileObject": {"@id": "1.jsonl"}')
    document = json.loads(text)
    document["distribution"] = document["distribution"][:1]
    (theirs / "metadata.json").write_text(json.dumps(document))
    with web(theirs, Behaviour()) as url:
        project.config["ingest"] = [ENTRY | {"from": f"{url}metadata.json"}]
        project.ok("ingest")
    assert [row["id"] for path in project.documents.rglob("*.jsonl.gz") for row in read_rows(path)] == ["a", "b"]
