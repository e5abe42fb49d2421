"""`toolkit validate` on Croissant files: what is damaged is named."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.pipeline.conftest import Project, attributes, document, read_rows, write_rows
from toolkit.commands import _mix_preparation
from toolkit.describe import croissant
from toolkit.validate import croissant_reader

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def path(described: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Croissant file that is right; mlcroissant is looked at elsewhere."""
    monkeypatch.setattr(croissant_reader, "is_installed", lambda: False)
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
        "documents/b.jsonl.gz: expected contentUrl documents/b.jsonl.gz, got documents/none.jsonl.gz",
    ),
    "another size": (
        lambda d: d["distribution"][0].update(contentSize="1 B"),
        "documents/b.jsonl.gz: expected contentSize ",
    ),
    "another checksum": (lambda d: d["distribution"][0].update(sha256="0" * 64), ", got 00000000"),
    "no checksum": (lambda d: d["distribution"][0].pop("sha256"), "documents/b.jsonl.gz: expected sha256 "),
    "a glob without match": (
        lambda d: d["distribution"][-1].update(includes="attributes/none/*.jsonl.gz"),
        "attributes-own-0-files: expected includes ",
    ),
    "an id twice": (
        lambda d: d["recordSet"][1].update({"@id": "documents"}),
        "expected each @id once, got 'documents'",
    ),
    "a key that is no field": (
        lambda d: d["recordSet"][0]["key"][0].update({"@id": "documents/none"}),
        "documents: expected key ",
    ),
    "a source that is nowhere": (
        lambda d: d["recordSet"][0]["field"][2]["source"]["fileSet"].update({"@id": "none"}),
        "documents/id: expected source ",
    ),
    "a column that is nowhere": (
        lambda d: d["recordSet"][0]["field"][2]["source"]["extract"].update(column="identity"),
        "documents/id: expected source ",
    ),
    "another type": (
        lambda d: records(d, "documents")["field"][4].update(dataType="sc:Integer"),
        "documents/text: expected dataType sc:Text, got sc:Integer",
    ),
    "a list that is none": (
        lambda d: records(d, "documents")["field"][4].update(repeated=True),
        "documents/text: expected a key that `toolkit croissant` writes, got 'repeated'",
    ),
    "no size": (lambda d: d["distribution"][0].pop("contentSize"), "documents/b.jsonl.gz: expected contentSize "),
    "a size of another unit": (lambda d: d["distribution"][0].update(contentSize="1 KB"), " B, got 1 KB"),
    "a checksum that is none": (lambda d: d["distribution"][0].update(sha256="abc"), ", got abc"),
    "a file above": (
        lambda d: d["distribution"][0].update(contentUrl="../config.yaml"),
        "expected contentUrl documents/b.jsonl.gz, got ../config.yaml",
    ),
    "a file twice": (
        lambda d: d["distribution"][0].update(contentUrl=d["distribution"][1]["contentUrl"]),
        "expected contentUrl documents/b.jsonl.gz, got documents/cc/a.jsonl.gz",
    ),
    "a format of a file": (
        lambda d: d["distribution"][0].update(encodingFormat="text/plain"),
        "documents/b.jsonl.gz: expected encodingFormat application/jsonlines, got text/plain",
    ),
    "a format of files": (
        lambda d: node(d, "documents-files").update(encodingFormat="application/json"),
        "documents-files: expected encodingFormat application/jsonlines, got application/json",
    ),
    "a file that is not listed": (
        lambda d: d["distribution"].pop(0),
        "expected documents/b.jsonl.gz, which is there, in distribution, got none",
    ),
    "a file that is not matched": (
        lambda d: node(d, "documents-files").update(includes="documents/b.jsonl.gz"),
        "documents-files: expected includes ",
    ),
    "attributes of no documents": (
        lambda d: (d["distribution"].pop(0), node(d, "documents-files").update(includes="documents/cc/*.jsonl.gz")),
        "attributes/exp/b.jsonl.gz: expected only what the data have in distribution",
    ),
    "a key twice": (None, "expected each key once, got 'name' again"),
    "a name that is none": (lambda d: d.update(name=3), "name: expected a text, got 3"),
    "a page that is none": (
        lambda d: d.update(url="xx"),
        "url: expected a URL such as https://example.org/corpus, got 'xx'",
    ),
    "a license by its name": (
        lambda d: d.update(license="MIT"),
        "license: expected a URL such as https://spdx.org/licenses/MIT.html, got 'MIT'",
    ),
    "a version of one number": (
        lambda d: d.update(version="1"),
        "version: expected MAJOR.MINOR.PATCH (1.0.0) of the data (that of Croissant is about.croissant), got '1'",
    ),
    "a day that is none": (
        lambda d: d.update(datePublished="2026-02-30"),
        "datePublished: expected a date such as 2026-01-31, got '2026-02-30'",
    ),
    "live in words": (lambda d: d.update(isLiveDataset="no"), "expected true or false as isLiveDataset, got 'no'"),
    "nobody": (
        lambda d: d.update(creator={"@type": "sc:Person"}),
        "creator: expected the option 'name', which is missing",
    ),
    "no language": (
        lambda d: d.update(inLanguage=["en", "??"]),
        "inLanguage: expected a BCP 47 code such as de or zh-Hant, got '??'",
    ),
    "a context without terms": (lambda d: d.update({"@context": {}}), "conformsTo, cr, data, dataType, dct, "),
    "files that are none": (lambda d: d["distribution"].append("x"), "expected objects in distribution, got 'x'"),
    "a type that is none": (
        lambda d: records(d, "documents")["field"][4].update(dataType="sc:Banana"),
        "documents/text: expected dataType sc:Text, got sc:Banana",
    ),
    "a path that is none": (
        lambda d: records(d, "documents")["field"][4]["source"].update(transform={"jsonPath": "$.["}),
        '"transform":{"jsonPath":"$.["}}',
    ),
    "a path that leads nowhere": (
        lambda d: records(d, "attributes-own-0")["field"][4]["subField"][0]["source"].update(
            transform={"jsonPath": "$['mine']['lable']"}
        ),
        "attributes-own-0/mine/label: expected source ",
    ),
    "an expression that matches no path": (
        lambda d: records(d, "documents")["field"][0]["source"].update(transform={"regex": "^text/(.+)$"}),
        "documents/file: expected source ",
    ),
    "an example of another field": (
        lambda d: records(d, "documents")["examples"][0].update({"documents/zz": 1}),
        "documents: example 1: expected the first rows of the data, got documents/zz 1",
    ),
    "an example of another part": (
        lambda d: records(d, "attributes-own-0")["examples"][0]["attributes-own-0/mine"].update(zz=1),
        "attributes-own-0: example 1: expected the first rows of the data, got attributes-own-0/mine ",
    ),
    "an example that is invented": (
        lambda d: records(d, "documents")["examples"][0].update({"documents/text": "invented"}),
        "documents: example 1: expected the first rows of the data, got documents/text invented",
    ),
    "a part of an example that is invented": (
        lambda d: records(d, "attributes-own-0")["examples"][1]["attributes-own-0/mine"].update(
            {"attributes-own-0/mine/prob": 0.125}
        ),
        "attributes-own-0: example 2: expected the first rows of the data",
    ),
    "an example of another row": (
        lambda d: records(d, "attributes-exp")["examples"][0].update({"attributes-exp/row": 77}),
        "attributes-exp: example 1: expected the first rows of the data, got attributes-exp/row 77",
    ),
    "a path in other quotes": (
        lambda d: records(d, "attributes-own-0")["field"][4]["subField"][0]["source"].update(
            transform={"jsonPath": '$["nope"]'}
        ),
        "attributes-own-0/mine/label: expected source ",
    ),
    "a path of another form": (
        lambda d: records(d, "attributes-own-0")["field"][4]["subField"][0]["source"].update(
            transform={"jsonPath": "$..label"}
        ),
        "attributes-own-0/mine/label: expected source ",
    ),
    "references to nothing": (
        lambda d: records(d, "documents")["field"][4].update(references={"field": {"@id": "documents/nope"}}),
        "documents/text: expected a key that `toolkit croissant` writes, got 'references'",
    ),
    "references to files": (
        lambda d: records(d, "documents")["field"][4].update(references={"@id": "documents-files"}),
        "documents/text: expected a key that `toolkit croissant` writes, got 'references'",
    ),
    "a term of the context": (
        lambda d: d["@context"].update(column="cr:colum"),
        "expected column as cr:column in @context, got cr:colum",
    ),
    "a type of a term of the context": (
        lambda d: d["@context"].update(dataType="cr:dataType"),
        'expected dataType as {"@id":"cr:dataType","@type":"@vocab"} in @context, got cr:dataType',
    ),
    "no term of the context": (lambda d: d["@context"].pop("jsonPath"), "expected jsonPath in @context, got none"),
    "a prefix of the context": (lambda d: d["@context"].pop("rai"), "expected rai in @context, got none"),
    "a version of two numbers": (
        lambda d: d.update(version="1.0"),
        "version: expected MAJOR.MINOR.PATCH (1.0.0) of the data (that of Croissant is about.croissant), got '1.0'",
    ),
    "a term that no vocabulary has": (
        lambda d: d.update({"rai:dataLimitation": "x"}),
        "rai: unknown option 'dataLimitation' of about; did you mean 'dataLimitations'?",
    ),
    "a term without text": (
        lambda d: d.update({"rai:dataBiases": 3}),
        "rai.dataBiases: expected a text or a list, got 3",
    ),
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
        "attributes-own-0/mine/label: expected source ",
    ),
    "a way to extract that is none": (
        lambda d: records(d, "documents")["field"][4]["source"].update(extract={"colunm": "text"}),
        "documents/text: expected source ",
    ),
    "a file set that is a list": (
        lambda d: records(d, "documents")["field"][0]["source"].update(fileSet=[{"@id": "documents-files"}]),
        "documents/file: expected source ",
    ),
    "an id that is an object": (lambda d: d["recordSet"][0]["key"][0].update({"@id": {}}), "documents: expected key "),
    "a kind of file that is none": (
        lambda d: d["distribution"][-1].update({"@type": "cr:Files"}),
        "attributes-own-0-files: expected @type cr:FileSet, got cr:Files",
    ),
    "a key of a creator": (
        lambda d: d["creator"].update(mail="x@example.org"),
        "creator: unknown option 'mail' of about; did you mean 'email'?",
    ),
    "an example that is no record": (
        lambda d: records(d, "documents").update(examples="x"),
        "documents: example 1: expected the first rows of the data, got x",
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
        "document-splits/split: expected references ",
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
        "languages/documents: expected 1 for 'ar', got 99",
    ),
    "a number that is none": (
        lambda d: records(d, "languages")["data"][0].update({"languages/documents": "many"}),
        "languages/documents: expected 1 for 'ar', got many",
    ),
    "a wrong number of a split": (
        lambda d: records(d, "splits")["data"][0].update({"splits/documents": 1}),
        "splits/documents: expected ",
    ),
}


def test_numbers_and_labels_are_those_of_the_files(released: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(croissant_reader, "is_installed", lambda: False)
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
    assert "documents-files: expected includes [" in released("validate", path, "--quiet").out


def test_paths_are_searched_for_behind_the_first_rows(described: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(croissant_reader, "is_installed", lambda: False)
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
    assert "documents/metadata/late: expected source " in described("validate", path).out


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
            "data": [{"splits/name": "train"}],
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


def test_what_others_wrote_may_lack_what_is_not_required(described: Project) -> None:
    pytest.importorskip("mlcroissant", reason="the extra `croissant` is not installed")
    described.ok("croissant", "--of", "dataset")
    path = described.data / "croissant.json"
    found = json.loads(json.dumps(FOREIGN)) | {"@context": json.loads(path.read_text())["@context"]}
    shard = described.documents / "b.jsonl.gz"
    found["distribution"][2]["md5"] = hashlib.md5(shard.read_bytes()).hexdigest()  # as the file lists it
    other = described.data / "other.json"
    other.write_text(json.dumps(found))
    ran = described.ok("validate", other)
    assert "0 findings" in ran.out
    assert f"advice: {other}: rows not read: files are not here; --data reads them" in ran.out
    found["distribution"][2]["md5"] = "0" * 32
    other.write_text(json.dumps(found))
    assert f"expected md5 {'0' * 32}" in described("validate", other).out
    found["distribution"][2]["contentUrl"] = "gone.jsonl.gz"
    other.write_text(json.dumps(found))
    gone = f"{other}: local: expected the file gone.jsonl.gz, got none there"
    assert f"advice: {gone}" in described.ok("validate", other).out
    ran = described("validate", other, "--data", "--json", "--first", 1)
    assert (ran.code, {"message": gone, "severity": "specification"} in ran.json["findings"]) == (1, True)


def test_a_description_of_ours_alone_misses_its_files_only_if_data_are_asked_for(
    described: Project, path: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone" / "metadata.txt"
    alone.parent.mkdir()
    alone.write_bytes(path.read_bytes())
    gone = f"{alone}: documents/b.jsonl.gz: expected the file documents/b.jsonl.gz, got none there"
    assert gone in [each.message for each in toolkit.validate([alone]).findings if each.severity == "advice"]
    ran = described("validate", alone, "--data")
    assert (ran.code, gone in ran.out) == (1, True)
    (alone.parent / ".toolkit").mkdir()
    assert described("validate", alone).code == 1, "a folder of ours"


def test_a_split_file_that_was_edited_is_found(described: Project, path: Path) -> None:
    described.ok("croissant", "--of", "dataset", "about.splits={train: 0.5, test: 0.5}", "about.version=2.0.0")
    assert "0 findings" in described.ok("validate", path).out
    split = next((described.data / "splits").glob("**/*.split.gz"))
    split.write_bytes(gzip.compress(gzip.decompress(split.read_bytes()).replace(b"train", b"test")))
    assert f"{split}: expected " in described("validate", path).out


def test_keys_and_references_are_those_of_the_records(project: Project) -> None:
    pytest.importorskip("mlcroissant", reason="the extra `croissant` is not installed")
    write_rows(project.root / "rows.jsonl", [{"id": id_, "of": of} for id_, of in (("a", "x"), ("b", "y"), ("a", "z"))])
    file = {"@type": "cr:FileObject", "@id": "rows.jsonl", "name": "rows.jsonl", "contentUrl": "rows.jsonl"}
    file |= {"encodingFormat": "application/jsonlines", "md5": "0"}
    file["md5"] = hashlib.md5((project.root / "rows.jsonl").read_bytes()).hexdigest()

    def field(id_: str, **more: Any) -> dict[str, Any]:
        return {"@type": "cr:Field", "@id": id_, "name": id_, "dataType": "sc:Text", **more}

    def source(column: str) -> dict[str, Any]:
        return {"fileObject": {"@id": "rows.jsonl"}, "extract": {"column": column}}

    kinds: dict[str, Any] = {"@type": "cr:RecordSet", "@id": "kinds", "name": "kinds", "key": {"@id": "kinds/name"}}
    kinds |= {"field": [field("kinds/name")], "data": [{"kinds/name": name} for name in "xy"]}
    refers = field("rows/of", source=source("of"), references={"field": {"@id": "kinds/name"}})
    rows: dict[str, Any] = {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "key": {"@id": "rows/id"}}
    rows["field"] = [field("rows/id", source=source("id")), refers]
    found = FOREIGN | {"@context": croissant.context("1.1"), "conformsTo": f"{croissant.BASE}1.1"}
    path = project.root / "metadata"
    path.write_text(json.dumps(found | {"distribution": [file], "recordSet": [kinds, rows]}))
    ran = project("validate", path).fails(1)
    assert f"{path}: rows: expected each key once, got 'a' again in record 3" in ran.out
    assert f"{path}: rows/of: expected values that kinds/name has, got 'z'" in ran.out
    assert "2 findings" in ran.out


def test_rows_of_an_output_have_a_key_each(released: Project) -> None:
    released.config["about"]["examples"] = 0
    released.ok("croissant")
    (released.out / ".toolkit" / "manifest.json").unlink()
    path = released.out / "en" / "en_part_1.jsonl.gz"
    rows = read_rows(path)
    write_rows(path, [*rows, rows[0]])
    ran = released("validate", released.out / "croissant.json").fails(1)
    wanted = f"{path}:{len(rows) + 1}: expected each (warc_headers/warc-record-id) once"
    assert f"{wanted}, as the Croissant file says, got that of {path}:1 again" in ran.out


def test_the_examples_of_mlcommons(tmp_path: Path, shared: Path) -> None:
    """Good ones have no faults; of bad ones the fault is named that mlcroissant's own tests expect."""
    pytest.importorskip("mlcroissant", reason="the extra `croissant` is not installed")
    for source in sorted((shared / "croissant").glob("*/*.json")):
        path = tmp_path / "metadata.json"
        path.write_bytes(source.read_bytes())
        found = toolkit.validate([path])
        faults = [each.message for each in found.findings if each.severity != "advice"]
        if source.parent.name == "good":
            assert (faults, bool(found)) == ([], True), source.name
            continue
        (expected, *_), severities = (
            source.with_suffix(".txt").read_text().split("Found the following", 2)[1:],
            {each.severity for each in found.findings},
        )
        for line in expected.splitlines()[1:]:
            assert any(line.strip().removeprefix("-  ") in fault for fault in faults), (source.name, line, faults)
        assert "specification" in severities


def test_without_mlcroissant_the_check_says_so(described: Project, path: Path) -> None:
    described.ok("validate", path).shows(f"advice: {path}: not read by mlcroissant: expected the package mlcroissant")
    other = described.data / "other.json"
    other.write_text(json.dumps(FOREIGN | {"@context": {}}))
    ran = described("validate", other)
    assert (ran.code, f"reader: {other}: not read by mlcroissant: " in ran.out) == (1, True)


def test_changed_data_are_found(described: Project, path: Path) -> None:
    shard = described.documents / "b.jsonl.gz"
    data = shard.read_bytes()
    shard.write_bytes(data[:4] + b"\1\1\1\1" + data[8:])  # another time in the header of gzip
    assert gzip.decompress(data) == gzip.decompress(shard.read_bytes())
    ran = described.run("validate", path).fails(1)
    assert f"{path}: documents/b.jsonl.gz: expected sha256 {hashlib.sha256(shard.read_bytes()).hexdigest()}" in ran.out


def test_what_readers_change_is_a_warning(described: Project) -> None:
    rows = [document("0001", "a", "t", score=1), document("0002", "b", "t", score=2)]
    write_rows(described.documents / "b.jsonl.gz", rows)
    write_rows(described.attributes / "exp" / "b.jsonl.gz", [{**row, "attributes": {}} for row in rows])
    described.ok("tag")
    assert "every `id` is a number" in described.ok("croissant").out
    found = described.ok("validate", "--json").json
    notes = [each["message"] for each in found["findings"] if each["severity"] == "advice"]
    assert any("documents/b.jsonl.gz: every `id` is a number" in note for note in notes)


def test_no_json_is_no_traceback(described: Project, path: Path) -> None:
    path.write_bytes(b"\xff{")
    described.run("validate", path).fails(1).shows(f"{path}: expected a Croissant file")


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
    monkeypatch.setattr(_mix_preparation, "_check_places", lambda *_: None)
    released.config["mix"] |= {"rejected": str(released.out / "dropped")}
    del released.config["mix"]["output"]["part_size"]
    released.ok("mix")
    path = released.out / "dropped" / "documents" / "rejected.jsonl.gz"
    rows = read_rows(path)
    assert rows
    if known != "by the manifest":
        (released.out / ".toolkit" / "manifest.json").unlink()
    check = [released.out] if known == "by their rows" else ["-c", released.yaml]
    released.run("validate", *check).succeeds()
    rows[1]["rejected"] = {"rule": 1}
    del rows[2]["text"]
    write_rows(path, rows)
    found = released.run("validate", *check).out
    assert f"{path}:2: expected the rule that dropped the document" in found
    assert f"{path}:3: " in found
