"""Options of taggers and labels of outputs take fields of the documents' metadata."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from mixers.ml_filter import MlFilter
from tests.marks import slow
from tests.pipeline.conftest import Project, document, read_rows, write_rows
from toolkit.data import row_index
from toolkit.data.dataset import open_dataset

GERMAN, ENGLISH = "der Hund und die Katze\n", "the dog and the cat\n"


@pytest.fixture
def pages(project: Project) -> Project:
    """Four documents that say their language in a nested field, in one of it, as null, and not at all."""
    write_rows(
        project.documents / "a.jsonl.gz",
        [
            document("1", GERMAN, metadata={"of": {"language": "de"}}),
            document("2", ENGLISH, metadata={"of": {"language": "en", "prob": 0.5}}),
            document("3", GERMAN, metadata={"of": None}),
            document("4", GERMAN),
        ],
    )
    project.config["tag"] = {"q-0": {"tagger": "gopher_quality", "language": "metadata.of.language"}}
    return project


def stop_words(project: Project) -> list[int]:
    return [row["gopher_quality"]["stop_words"] for row in project.values("q-0", "a.jsonl.gz")]


def test_a_tagger_reads_a_field_and_null_where_there_is_none(pages: Project) -> None:
    pages.ok("tag")
    read = stop_words(pages)
    pages.config["tag"]["q-0"]["language"] = "de"
    pages.ok("tag", "--overwrite")
    assert read[0] == stop_words(pages)[0] > 0
    pages.config["tag"]["q-0"]["language"] = "en"
    pages.ok("tag", "--overwrite")
    assert read[1] == stop_words(pages)[1] > 0
    pages.config["tag"]["q-0"]["language"] = None
    pages.ok("tag", "--overwrite")
    assert read[2:] == stop_words(pages)[2:]


def test_the_documents_are_its_source(pages: Project) -> None:
    pages.ok("tag")
    before = stop_words(pages)
    assert "up to date" in pages.ok("tag").out
    rows = read_rows(pages.documents / "a.jsonl.gz")
    rows[3]["metadata"] = {"of": {"language": "de"}}
    write_rows(pages.documents / "a.jsonl.gz", rows)
    pages.ok("tag")
    assert stop_words(pages) == [*before[:3], before[0]]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ({"language": 7}, "language: expected metadata.of.language of type str | null, got 7"),
        ("de", 'language: expected an object or null at metadata.of, got "de"'),
    ],
)
def test_another_value_is_an_error_that_names_the_document(of: Any, expected: str, pages: Project) -> None:
    write_rows(pages.documents / "a.jsonl.gz", [document("1", GERMAN), document("2", GERMAN, metadata={"of": of})])
    pages("tag").fails(1, f"a.jsonl.gz:2: tagger gopher_quality: {expected}", "(document '2')")


def test_a_value_that_is_needed_must_be_there(pages: Project) -> None:
    pages.config["tag"] = {"language-0": {"tagger": "language", "lines": "metadata.lines"}}
    pages("tag").fails(
        1, "a.jsonl.gz:1: tagger language: lines: expected metadata.lines of type list[", "got nothing there, or null"
    )


def test_one_document_is_tried_with_its_metadata(pages: Project) -> None:
    shard = pages.documents / "a.jsonl.gz"
    ran = pages.run(
        "tag", "--try", shard, "{tagger: gopher_quality, language: metadata.of.language}", "--json"
    ).succeeds()
    assert ran.json["documents"][0]["attributes"]["gopher_quality"]["stop_words"] > 0


# --- top-level fields -------------------------------------------------------------------------------------------------


@pytest.fixture
def flat(project: Project) -> Project:
    """Three documents with fields of their own, in no metadata."""
    rows = [
        document("1", GERMAN, lang="de", url="https://a.org/x"),
        document("2", ENGLISH, lang="en", url="https://b.org/x"),
        document("3", GERMAN),
    ]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config["tag"] = {"q-0": {"tagger": "gopher_quality", "language": "document.lang"}}
    return project


def test_taggers_read_top_level_fields(flat: Project) -> None:
    flat.ok("tag")
    read = stop_words(flat)
    flat.config["tag"]["q-0"]["language"] = "de"
    flat.ok("tag", "--overwrite")
    assert read[0] == stop_words(flat)[0] > 0
    write_rows(flat.documents / "a.jsonl.gz", [document("1", GERMAN, lang=7)])
    flat.config["tag"]["q-0"]["language"] = "document.lang"
    assert "language: expected document.lang of type str | null, got 7" in flat("tag", "--overwrite").err


def test_labels_blocklists_and_groups_are_of_top_level_fields(flat: Project) -> None:
    (flat.root / "hosts.txt").write_text("b.org\n")
    flat.mixes(
        {"drop": "blocklist", "files": str(flat.root / "hosts.txt"), "url": "document.url"},
        {"drop": "document.lang is None", "name": "unlabelled"},
        output={"by": "document.lang"},
    )
    assert flat.ok("mix", "--dry-run", "--json").json["totals"]["kept"] == 1
    flat.ok("mix")
    assert [path.parent.name for path in flat.out.rglob("*.jsonl.gz") if ".toolkit" not in path.parts] == ["de"]
    found = flat.ok("stats", "--by", "document.lang", "--json").json
    assert "de" in json.dumps(found)
    found = flat.run("stats", flat.documents / "a.jsonl.gz", "--by", "document.lang", "--json").json
    assert "de" in json.dumps(found)
    flat.config["mix"]["rules"] = []
    assert "document.lang may be null here" in flat("mix").err


@pytest.mark.parametrize("field", ["source", "id"])
def test_source_and_id_are_labels_of_all_documents(flat: Project, field: str) -> None:
    flat.mixes(output={"by": f"document.{field}"})
    rows = [row for path in flat.documents.glob("*.gz") for row in read_rows(path)]
    shown = flat.ok("mix", "--dry-run", "--json").json["labels"]
    assert shown.keys() == {row[field] for row in rows}
    flat.ok("mix")
    assert {path.parent.name for path in flat.out.rglob("*.jsonl.gz") if ".toolkit" not in path.parts} == shown.keys()


# --- labels of outputs ------------------------------------------------------------------------------------------------

NULL = "get(get(document.metadata, 'of', None), 'language', None) is None"


def labelled(project: Project, rule: str, **output: Any) -> Project:
    rules = [{"drop": rule, "name": "unlabelled"}]
    project.config["mix"] = {"rules": rules, "output": {"path": str(project.out), **output}}
    return project


@pytest.mark.parametrize("rule", [NULL, *slow("label is None")])
@pytest.mark.parametrize(
    "output",
    [
        {"format": "dolma", "by": "metadata.of.language"},
        {"format": "parquet", "by": "metadata.of.language"},
        {"format": "text", "identification": "metadata.of.language"},
    ],
    ids=lambda output: output["format"],
)
def test_an_output_has_the_label_of_a_field(output: dict[str, Any], rule: str, pages: Project) -> None:
    labelled(pages, rule, **output)
    counted = pages.ok("mix", "--dry-run", "--json").json
    ran = pages.ok("mix", "--json")
    assert ran.json["totals"]["kept"] == counted["totals"]["kept"] == 2
    manifest = json.loads((pages.out / ".toolkit" / "manifest.json").read_bytes())
    assert {label: found["documents"] for label, found in manifest["labels"].items()} == {"de": 1, "en": 1}
    assert pages.run("validate", pages.out).code == 0


def test_a_label_with_its_probability(pages: Project) -> None:
    rows = [
        document("1", GERMAN, metadata={"found": {"label": "de", "prob": 0.75}}),
        document("2", GERMAN, metadata={"found": "de"}),
    ]
    write_rows(pages.documents / "a.jsonl.gz", rows)
    parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    labelled(pages, "label is None", format="parquet", by="metadata.found").ok("mix")
    table = parquet.read_table(next(pages.out.rglob("*.parquet")))
    assert table["prob"].to_pylist() == [0.75, None]
    assert table["label"].to_pylist() == ["de", "de"]


def test_oscar_needs_the_probability_too(pages: Project) -> None:
    rows = [document("1", GERMAN, metadata={"found": {"label": "de", "prob": 0.75}, "lines": [None]})]
    write_rows(pages.documents / "a.jsonl.gz", rows)
    output = {"format": "oscar", "identification": "metadata.found", "sentence_identifications": "metadata.lines"}
    labelled(pages, "label is None", **output).ok("mix")
    (row,) = pages.output()
    assert row["metadata"]["identification"] == {"label": "de", "prob": 0.75}
    output["identification"] = "metadata.of"
    write_rows(pages.documents / "a.jsonl.gz", [document("1", GERMAN, metadata={"of": "de", "lines": [None]})])
    ran = labelled(pages, "label is None", **output)("mix")
    assert ran.code == 1
    assert "a.jsonl.gz:1: identification: expected metadata.of of type {label: str, prob: float}, got" in ran.err


def test_a_label_that_is_no_text_fails_the_shard(pages: Project) -> None:
    write_rows(pages.documents / "a.jsonl.gz", [document("1", GERMAN, metadata={"of": {"language": ["de"]}})])
    ran = labelled(pages, NULL, format="dolma", by="metadata.of.language")("mix")
    assert ran.code == 1
    assert "a.jsonl.gz:1: by: expected metadata.of.language of type" in ran.err
    assert not pages.out.joinpath("documents").exists()


def test_edits_leave_fields_as_they_are_and_taggers_read_them_again(pages: Project) -> None:
    pages.config["tag"]["e-0"] = {"tagger": "length"}
    pages.ok("tag")
    labelled(pages, "label is None", format="dolma", by="metadata.of.language")
    pages.config["mix"]["attributes"] = ["q-0"]
    pages.config["mix"]["rules"] += [
        {"cut": "lines", "when": "line.number == 1 and document.id == '1'"},
        {"set": "stop_words", "to": "gopher_quality.stop_words"},
    ]
    write_rows(pages.documents / "a.jsonl.gz", [document("1", GERMAN + GERMAN, metadata={"of": {"language": "de"}})])
    pages.ok("tag")
    pages.ok("mix")
    (row,) = pages.output()
    assert row["text"] == GERMAN
    assert row["metadata"]["of"] == {"language": "de"}
    assert row["metadata"]["stop_words"] > 0


def test_in_an_expression_a_field_is_written_as_in_an_option(pages: Project) -> None:
    pages.mixes({"drop": 'metadata.of.language == "de"'}, attributes=[])
    pages.ok("mix")
    assert [row["id"] for row in pages.output()] == ["2", "3", "4"]


# Fields that an output has no place for are named, with the documents that have them, by all that show a mix.

ROWS: list[dict[str, Any] | None] = [
    {"url": "http://a.org", "date": None, "of": {"lang": "en", "score": 0.5}},
    {"url": "http://b.org", "of": {}, "empty": None},
    {"url": None, "date": "2020", "of": {"lang": "de"}},
    None,
]
OWN: list[dict[str, Any]] = [
    {"added": "2021-01-01T00:00:00Z"},
    {"own": [1]},
    {"own": None},
    {"own": 1.5, "attributes": {"a": 1}},
]
LOST = {
    "added": 1,
    "attributes": 1,
    "id": 4,
    "metadata.date": 1,
    "metadata.of": 1,
    "metadata.of.lang": 2,
    "metadata.of.score": 1,
    "metadata.url": 2,
    "own": 2,
    "source": 4,
}


def rows() -> list[dict[str, Any]]:
    return [
        document(str(i), f"text {i}", metadata=metadata, **more)
        for i, (metadata, more) in enumerate(zip(ROWS, OWN, strict=True))
    ]


@pytest.fixture
def lossy(project: Project) -> Project:
    project.config["tag"] = {"shape-0": "line_shape"}
    output = {"format": "text", "path": str(project.out), "identification": "metadata.of.lang"}
    project.config["mix"] = {
        "attributes": ["shape-0"],
        "rules": [{"drop": "metadata.of.lang is None", "name": "no language"}],
        "output": output,
    }
    return project


@pytest.mark.parametrize("how", ["one pass", "in place", *slow("step by step", "two processes", "others' documents")])
def test_fields_are_counted_alike_however_documents_come(how: str, lossy: Project) -> None:
    lossy.config["executor"] = {"type": "local" if how == "two processes" else "in_process"}
    lossy.config["processes"] = 2 if how == "two processes" else 1
    entry = {"format": "jsonl", "source": "s"}
    if how == "others' documents":
        write_rows(lossy.documents / "a.jsonl.gz", rows())
    else:
        path = write_rows(lossy.root / "in/a.jsonl", rows())
        if how == "in place":
            lossy.config["documents"] = {**entry, "path": str(path)}
        else:
            lossy.config["ingest"] = [{**entry, "from": [str(path)]}]
    if how == "step by step":
        lossy.ok("ingest")
        lossy.ok("tag")
    ran = lossy.ok("run", "--json").json["mix"]
    assert ran["not_carried"] == LOST
    shown = lossy.ok("mix", "--dry-run", "--json").json
    assert shown["not_carried"] == LOST
    assert lossy.ok("mix", "--json").json["not_carried"] == LOST  # of an output that is there
    for text in (lossy.ok("mix").out, lossy.ok("mix", "--dry-run").out):
        assert "that the output does not carry:\n  id: 4 documents\n  source: 4 documents" in text
        assert "  metadata.url: 2 documents\n" in text
    page = lossy.root / "report.html"
    lossy.ok("report", "--output", page)
    assert '"not_carried":' + json.dumps(LOST, separators=(",", ":")) in page.read_text()


def test_what_is_carried_is_not_named(lossy: Project) -> None:
    write_rows(lossy.documents / "a.jsonl.gz", rows())
    lossy.ok("tag")
    lossy.config["mix"]["rules"] = []
    expected: dict[str, dict[str, int]] = {"dolma": {}, "dolma without": {"own": 2, "metadata.url": 2}}
    outputs: dict[str, dict[str, Any]] = {
        "dolma": {"format": "dolma"},
        "dolma without": {"format": "dolma", "discard": ["own", "metadata"]},
    }
    for name, output in outputs.items():
        lossy.config["mix"]["output"] = {**output, "path": str(lossy.root / name)}
        found = lossy.ok("mix", "--json").json["not_carried"]
        assert found.items() >= expected[name].items()
        assert name == "dolma without" or not found


@pytest.mark.slow
def test_oscar_carries_the_headers_of_records_and_what_is_mapped(pipeline: Project) -> None:
    documents = copy.deepcopy(pipeline.config["ingest"])
    found = pipeline.ok("run", "--json").json["mix"]["not_carried"]
    assert found == {"source": 43}
    dataset = open_dataset(str(pipeline.data), None, None)
    states = {shard: row_index.current(dataset, shard) for shard in dataset.shards()}
    assert states == {shard: row_index.build(dataset, shard, 1 << 20) for shard in states}
    documents[0] |= {"ids": "{path}/{id}", "source": "other"}
    pipeline.config |= {"dataset": str(pipeline.root / "other"), "ingest": documents}
    pipeline.config["mix"]["output"] = {"format": "oscar", "path": str(pipeline.root / "other-out")}
    found = pipeline.ok("run", "--json").json["mix"]["not_carried"]
    assert found == {"id": 43, "source": 43}


def test_fields_that_options_take_are_carried_and_those_with_names_of_attributes_are_not(project: Project) -> None:
    of, lines = {"label": "de", "prob": 0.5}, [{"label": "de", "prob": 0.5}]
    row = document("1", "Text.", of=of, language=of, metadata={"lines": lines, "line_language": lines})
    write_rows(project.documents / "a.jsonl.gz", [row])
    project.config["mix"] = {
        "rules": [
            {"drop": "document.of is None", "name": "x"},
            {"drop": "label is None", "name": "y"},
            {"drop": "metadata.lines is None", "name": "z"},
        ],
        "output": {
            "format": "oscar",
            "path": str(project.out),
            "identification": "document.of",
            "sentence_identifications": "metadata.lines",
        },
    }
    found = project.ok("mix", "--json").json["not_carried"]
    assert {*found} == {"id", "source", "language.label", "language.prob", "metadata.line_language"}
    assert "lang" in MlFilter(language="document.lang").carries(["lang"])
    assert "language" not in MlFilter().carries(["language"])


def test_keys_that_are_data_are_one_field(project: Project) -> None:
    metadata = [{"m": {f"key {i} {k}": 1 for k in range(3)}} for i in range(100)]
    write_rows(
        project.documents / "a.jsonl.gz",
        [document(str(i), "text", metadata=each) for i, each in enumerate([*metadata, {"m": {}}, {"m": 1}])],
    )
    project.config["mix"] = {"attributes": [], "rules": [], "output": {"format": "x", "path": str(project.out)}}
    plugin = Path(project.root, "plain.py")
    plugin.write_text(
        "from toolkit import Writer\n\n\nclass Plain(Writer):\n"
        "    def encode(self, document, mixed):\n        return [('all', document.row + b'\\n')]\n"
    )
    project.config["mix"]["output"]["format"] = f"{plugin}:Plain"
    found = project.ok("mix", "--json").json["not_carried"]
    assert found == {"id": 102, "metadata.m": 102, "source": 102}


def test_each_field_that_a_format_has_no_null_for_must_be_tested(pages: Project) -> None:
    (pages.root / "sure.py").write_text(
        "import msgspec\n"
        "from toolkit import Wanted, Writer\n"
        "class Value(msgspec.Struct):\n    label: str | None\n    prob: float | None = None\n"
        "class Sure(Writer):\n"
        "    def wants(self): return {'of': Wanted('metadata.of', Value, not_null=('label', 'prob'))}\n"
        "    def carries(self, fields): return ()\n"
        "    def encode(self, document, mixed): return [('x', b'%.1f\\n' % mixed.values['of'].prob)]\n"
    )
    rows = [document(str(i), "t", metadata={"of": {"label": "x", "prob": p}}) for i, p in enumerate([0.5, None])]
    write_rows(pages.documents / "a.jsonl.gz", rows)
    pages.mixes({"drop": "metadata.of is None"}, attributes=[], format=f"{pages.root}/sure.py:Sure")
    pages("mix").fails(2, "metadata.of.prob may be null here", "{drop: metadata.of.prob is None")
    pages.config["mix"]["rules"].append({"drop": "metadata.of.prob is None"})
    pages.ok("mix")
