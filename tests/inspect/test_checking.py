"""`toolkit validate` on Croissant files: what is damaged is named."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, read_rows, write_rows
from toolkit.commands.steps import places
from toolkit.inspect.describe.check import mlcroissant

pytestmark = pytest.mark.filterwarnings("ignore")

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def path(described: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Croissant file that is right; mlcroissant is looked at elsewhere."""
    monkeypatch.setattr(mlcroissant, "is_installed", lambda: False)
    described.ok("croissant", "--of", "dataset")
    return described.data / "croissant.json"


def records(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in found["recordSet"] if each["@id"] == name)


def test_what_is_right_has_no_findings(described: Project, path: Path) -> None:
    ran = described.run("validate", path)
    assert (ran.code, ran.err) == (0, ran.err)
    assert "0 findings" in ran.out
    assert str(path) in described.ok("validate").out
    described.ok("croissant", "--of", "dataset", "--spec", "1.1")
    assert "0 findings" in described.ok("validate", path).out


EDITS: dict[str, tuple[Edit | None, str]] = {
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
    "no size": (lambda d: d["distribution"][0].pop("contentSize"), "expected contentSize in bytes (such as 1128 B)"),
    "a size of another unit": (
        lambda d: d["distribution"][0].update(contentSize="1 KB"),
        "expected contentSize in bytes (such as 1128 B), got '1 KB'",
    ),
    "a checksum that is none": (
        lambda d: d["distribution"][0].update(sha256="abc"),
        "expected sha256 of 64 hexadecimal digits in lower case, got 'abc'",
    ),
    "a file above": (
        lambda d: d["distribution"][0].update(contentUrl="../config.yaml"),
        "expected a file below the folder of the Croissant file",
    ),
    "a file twice": (
        lambda d: d["distribution"][0].update(contentUrl=d["distribution"][1]["contentUrl"]),
        "expected each file once",
    ),
    "a format of a file": (
        lambda d: d["distribution"][0].update(encodingFormat="text/plain"),
        "expected encodingFormat application/jsonlines, got 'text/plain'",
    ),
    "a format of files": (
        lambda d: node(d, "documents-files").update(encodingFormat="application/json"),
        "documents-files: expected encodingFormat application/jsonlines, as that of documents/b.jsonl.gz",
    ),
    "a file that is not listed": (
        lambda d: d["distribution"].pop(0),
        "documents-files: expected only files that are listed, its globs match documents/b.jsonl.gz, too",
    ),
    "a file that is not matched": (
        lambda d: node(d, "documents-files").update(includes="documents/b.jsonl.gz"),
        "documents/cc/a.jsonl.gz: expected a FileSet that matches it, got none",
    ),
    "attributes of no documents": (
        lambda d: (d["distribution"].pop(0), node(d, "documents-files").update(includes="documents/cc/*.jsonl.gz")),
        "expected the documents of attributes/exp/b.jsonl.gz among the files, got no documents/b.jsonl.gz",
    ),
    "a key twice": (None, "expected each key once, got 'name' again"),
    "a name that is none": (lambda d: d.update(name=3), "expected a text as name, got 3"),
    "a page that is none": (lambda d: d.update(url="xx"), "expected a URL as url, got 'xx'"),
    "a license by its name": (lambda d: d.update(license="MIT"), "as license, got 'MIT'"),
    "a version of one number": (lambda d: d.update(version="1"), "expected MAJOR.MINOR.PATCH as version, got '1'"),
    "a day that is none": (
        lambda d: d.update(datePublished="2026-02-30"),
        "expected a date (2026-01-31) as datePublished, got '2026-02-30'",
    ),
    "live in words": (lambda d: d.update(isLiveDataset="no"), "expected true or false as isLiveDataset, got 'no'"),
    "nobody": (
        lambda d: d.update(creator={"@type": "sc:Person"}),
        "expected a sc:Person or sc:Organization with a name as creator",
    ),
    "no language": (lambda d: d.update(inLanguage=["en", "??"]), "expected a BCP 47 code as inLanguage, got '??'"),
    "a context without terms": (lambda d: d.update({"@context": {}}), "expected @context with @vocab"),
    "files that are none": (lambda d: d["distribution"].append("x"), "expected cr:FileObject or cr:FileSet in"),
    "a type that is none": (
        lambda d: records(d, "documents")["field"][4].update(dataType="sc:Banana"),
        "documents/text: expected a dataType such as sc:Text, got sc:Banana",
    ),
    "a path that is none": (
        lambda d: records(d, "documents")["field"][4]["source"].update(transform={"jsonPath": "$.["}),
        "documents/text: expected a JSON path, got '$.['",
    ),
    "a path that leads nowhere": (
        lambda d: records(d, "attributes-own-0")["field"][4]["subField"][0]["source"].update(
            transform={"jsonPath": "$['mine']['lable']"}
        ),
        "attributes-own-0/mine/label: expected a JSON path that leads to a key of some row",
    ),
    "an expression that matches no path": (
        lambda d: records(d, "documents")["field"][0]["source"].update(transform={"regex": "^text/(.+)$"}),
        "documents/file: expected a regular expression that matches documents/b.jsonl.gz, got '^text/(.+)$'",
    ),
    "an example of another field": (
        lambda d: records(d, "documents")["examples"][0].update({"documents/zz": 1}),
        "documents: expected examples of its fields, got 'documents/zz'",
    ),
    "an example of another part": (
        lambda d: records(d, "attributes-own-0")["examples"][0]["attributes-own-0/mine"].update(zz=1),
        "expected examples of its fields, got 'zz' in 'attributes-own-0/mine'",
    ),
    "an example that is invented": (
        lambda d: records(d, "documents")["examples"][0].update({"documents/text": "invented"}),
        "documents: example 1: expected one of the first rows, got another record",
    ),
    "a part of an example that is invented": (
        lambda d: records(d, "attributes-own-0")["examples"][1]["attributes-own-0/mine"].update(
            {"attributes-own-0/mine/prob": 0.125}
        ),
        "attributes-own-0: example 2: expected one of the first rows",
    ),
    "an example of another row": (
        lambda d: records(d, "attributes-exp")["examples"][0].update({"attributes-exp/row": 77}),
        "attributes-exp: example 1: expected one of the first rows",
    ),
    "a path in other quotes": (
        lambda d: records(d, "attributes-own-0")["field"][4]["subField"][0]["source"].update(
            transform={"jsonPath": '$["nope"]'}
        ),
        "attributes-own-0/mine/label: expected a JSON path that leads to a key of some row",
    ),
    "a path of another form": (
        lambda d: records(d, "attributes-own-0")["field"][4]["subField"][0]["source"].update(
            transform={"jsonPath": "$..label"}
        ),
        "attributes-own-0/mine/label: expected a JSON path of keys and indexes, got '$..label'",
    ),
    "references to nothing": (
        lambda d: records(d, "documents")["field"][4].update(references={"field": {"@id": "documents/nope"}}),
        "documents/text: expected references to a field, got 'documents/nope'",
    ),
    "references to files": (
        lambda d: records(d, "documents")["field"][4].update(references={"@id": "documents-files"}),
        "documents/text: expected references to a field, got 'documents-files'",
    ),
    "a term of the context": (
        lambda d: d["@context"].update(column="cr:colum"),
        "expected column as cr:column in @context, got cr:colum",
    ),
    "a type of a term of the context": (
        lambda d: d["@context"].update(dataType="cr:dataType"),
        'expected dataType as {"@id":"cr:dataType","@type":"@vocab"} in @context, got cr:dataType',
    ),
    "no term of the context": (
        lambda d: d["@context"].pop("jsonPath"),
        "expected jsonPath in @context, because it is used, got none",
    ),
    "a prefix of the context": (lambda d: d["@context"].pop("rai"), "expected rai in @context, because it is used"),
    "a version of two numbers": (
        lambda d: d.update(version="1.0"),
        "expected MAJOR.MINOR.PATCH as version, got '1.0'",
    ),
    "a term that no vocabulary has": (
        lambda d: d.update({"rai:dataLimitation": "x"}),
        "expected a term of the RAI vocabulary, got rai:dataLimitation; did you mean 'dataLimitations'?",
    ),
    "a term without text": (lambda d: d.update({"rai:dataBiases": 3}), "expected text as rai:dataBiases, got 3"),
    "a version of the format that is none": (
        lambda d: d.update(conformsTo=[d["conformsTo"], "http://mlcommons.org/croissant/9.9"]),
        "expected conformsTo http://mlcommons.org/croissant/1.0 or",
    ),
    "a property that is misspelt": (
        lambda d: d.update(keyword=["x"]),
        "expected a key that `toolkit croissant` writes, got 'keyword'; did you mean 'keywords'?",
    ),
    "a transform that is misspelt": (
        lambda d: records(d, "attributes-own-0")["field"][4]["subField"][0]["source"].update(
            transform={"jsonPth": "$['mine']['label']"}
        ),
        "attributes-own-0/mine/label: expected jsonPath, regex … in `transform`",
    ),
    "a way to extract that is none": (
        lambda d: records(d, "documents")["field"][4]["source"].update(extract={"colunm": "text"}),
        "documents/text: expected column, fileProperty, jsonPath in `extract`, got colunm",
    ),
    "a file set that is a list": (
        lambda d: records(d, "documents")["field"][0]["source"].update(fileSet=[{"@id": "documents-files"}]),
        "documents/file: expected a source among the distribution",
    ),
    "an id that is an object": (
        lambda d: d["recordSet"][0]["key"][0].update({"@id": {}}),
        "expected a key among its fields, got {}",
    ),
    "a kind of file that is none": (
        lambda d: d["distribution"][-1].update({"@type": "cr:Files"}),
        "expected cr:FileObject or cr:FileSet in distribution, got 'cr:Files'",
    ),
    "a key of a creator": (
        lambda d: d["creator"].update(mail="x@example.org"),
        "the dataset: expected a key that `toolkit croissant` writes, got 'mail'; did you mean 'email'?",
    ),
    "an example that is no record": (
        lambda d: records(d, "documents").update(examples="x"),
        "expected examples that are records, got 'x'",
    ),
}


def node(found: dict[str, Any], id_: str) -> dict[str, Any]:
    return next(each for each in found["distribution"] if each["@id"] == id_)


def test_findings_name_what_is_wrong(described: Project, path: Path) -> None:
    right = path.read_bytes()
    for name, (edit, message) in EDITS.items():
        found = json.loads(right)
        if edit:
            edit(found)
        text = json.dumps(found)
        path.write_text(text if edit else text.replace('"name":', '"name": "x", "name":', 1))
        ran = described("validate", path, "--quiet")
        assert (ran.code, message in ran.out) == (1, True), f"{name}: {ran.out}"


OUTPUT_EDITS: dict[str, tuple[Edit, str]] = {
    "a language that no label is": (
        lambda d: d["inLanguage"].append("xx"),
        "expected languages of its labels as inLanguage, got 'xx'",
    ),
    "a label that is no language": (
        lambda d: d["inLanguage"].pop(),
        "expected the language of 'zh', a label of its files, as inLanguage",
    ),
    "a split that is nowhere": (
        lambda d: records(d, "document-splits")["field"][-1]["references"]["field"].update({"@id": "splits/nope"}),
        "expected references to a field, got 'splits/nope'",
    ),
    "a language that is not listed": (
        lambda d: records(d, "languages")["data"].pop(),
        "languages: expected 'zh', which files have, among its data, got none",
    ),
    "a language of no file": (
        lambda d: records(d, "languages")["data"][0].update({"languages/code": "xx"}),
        "languages: expected what there are files of, got 'xx'",
    ),
    "a wrong number": (
        lambda d: records(d, "languages")["data"][0].update({"languages/documents": 99}),
        "languages: expected 1 document of 'ar', as many as rows, got 99",
    ),
    "a number that is none": (
        lambda d: records(d, "languages")["data"][0].update({"languages/documents": "many"}),
        "languages/documents: expected sc:Integer, got 'many'",
    ),
    "a wrong number of a split": (
        lambda d: records(d, "splits")["data"][0].update({"splits/documents": 1}),
        "of 'train', as many as rows, got 1",
    ),
}


def test_numbers_and_labels_are_those_of_the_files(released: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlcroissant, "is_installed", lambda: False)
    released.config["about"]["splits"] = {"train": 0.5, "test": 0.5}
    released.ok("croissant")
    path = released.out / "croissant.json"
    right = path.read_bytes()
    assert "0 findings" in released.ok("validate", path, "--quiet").out
    for name, (edit, message) in OUTPUT_EDITS.items():
        found = json.loads(right)
        edit(found)
        path.write_text(json.dumps(found))
        ran = released("validate", path, "--quiet")
        assert (ran.code, message in ran.out) == (1, True), f"{name}: {ran.out}"
    path.write_bytes(right)
    (released.out / "ar" / "more.jsonl.gz").write_bytes((released.out / "ar" / "ar.jsonl.gz").read_bytes())
    assert "its globs match ar/more.jsonl.gz, too" in released("validate", path, "--quiet").out


def test_paths_are_searched_for_behind_the_first_rows(described: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlcroissant, "is_installed", lambda: False)
    rows = [document(f"b-{i}", "b", metadata={"url": "x"} | ({"late": 1} if i == 150 else {})) for i in range(151)]
    write_rows(described.documents / "b.jsonl.gz", rows)
    write_rows(described.attributes / "exp" / "b.jsonl.gz", [attributes(row["id"], {}) for row in rows])
    described.ok("tag")
    described.ok("croissant", "--of", "dataset")
    path = described.data / "croissant.json"
    assert "$['late']" in path.read_text()
    described.ok("validate", path)
    path.write_text(path.read_text().replace("$['late']", "$['later']"))
    described.ok("validate", path, "--first", 10)  # of rows that are not looked at nothing is said
    assert "documents/metadata/late: expected a JSON path" in described("validate", path).out


FOREIGN: dict[str, Any] = {
    "@type": "sc:Dataset",
    "name": "other",
    "description": "Another.",
    "conformsTo": "http://mlcommons.org/croissant/1.0",
    "license": "https://example.org/license",
    "url": "https://example.org/",
    "creator": {"@type": "Person", "name": "A B"},
    "datePublished": "2026-01-31T10:00:00Z",
    "version": "1.0.0",
    "distribution": [
        {
            "@type": "cr:FileObject",
            "@id": "repo",
            "contentUrl": "https://example.org/repo",
            "encodingFormat": "git+https",
            "sha256": "https://example.org/none",
        },
        {
            "@type": "cr:FileSet",
            "@id": "remote",
            "containedIn": {"@id": "repo"},
            "encodingFormat": "application/x-parquet",
            "includes": "*/*.parquet",
        },
        {
            "@type": "cr:FileObject",
            "@id": "local",
            "contentUrl": "documents/b.jsonl.gz",
            "encodingFormat": "application/jsonlines",
            "contentSize": "1 KB",
        },
        {
            "@type": "cr:FileSet",
            "@id": "all",
            "encodingFormat": "application/jsonlines",
            "includes": "documents/*/*.jsonl.gz",
        },
    ],
    "recordSet": [
        {
            "@type": "cr:RecordSet",
            "@id": "splits",
            "key": {"@id": "splits/name"},
            "dataType": "cr:Split",
            "field": [{"@type": "cr:Field", "@id": "splits/name", "name": "name", "dataType": "sc:Text"}],
            "data": [{"name": "train"}],
        },
        {
            "@type": "cr:RecordSet",
            "@id": "rows",
            "field": [
                {
                    "@type": "cr:Field",
                    "@id": "rows/split",
                    "name": "split",
                    "dataType": ["sc:Text", "wd:Q1"],
                    "references": {"field": {"@id": "splits/name"}},
                    "source": {
                        "fileSet": {"@id": "remote"},
                        "extract": {"fileProperty": "fullpath"},
                        "transform": {"regex": "x/(train|test)/.+parquet$"},
                    },
                },
                {
                    "@type": "cr:Field",
                    "@id": "rows/text",
                    "dataType": "sc:Text",
                    "source": {
                        "fileSet": {"@id": "remote"},
                        "extract": {"column": "a"},
                        "transform": {"jsonPath": "bytes"},
                    },
                },
            ],
        },
    ],
}


def test_what_others_wrote_may_lack_what_is_not_required(described: Project, path: Path) -> None:
    found = json.loads(json.dumps(FOREIGN)) | {"@context": json.loads(path.read_text())["@context"]}
    shard = described.documents / "b.jsonl.gz"
    found["distribution"][2]["md5"] = hashlib.md5(shard.read_bytes()).hexdigest()  # as the file lists it
    other = described.data / "other-croissant.json"
    other.write_text(json.dumps(found))
    assert "0 findings" in described.ok("validate", other).out
    found["distribution"][2]["md5"] = "0" * 32
    other.write_text(json.dumps(found))
    assert f"expected md5 {'0' * 32}" in described("validate", other).out


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
    records(found, "documents")["field"][4]["dataType"] = "cr:BoundingBox"  # which texts are not
    path.write_text(json.dumps(found))
    assert "mlcroissant: documents" in described("validate").out
    assert read_rows(described.documents / "b.jsonl.gz")


@pytest.mark.parametrize("known", ["by the manifest", "by the configuration", "by their rows"])
def test_dropped_documents_inside_the_output_are_no_rows_of_it(
    released: Project, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # outputs of earlier versions have them
    monkeypatch.setattr(places, "check_mix", lambda *_: None)
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
